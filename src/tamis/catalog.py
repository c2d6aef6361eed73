"""One row per algorithm: name, class, family, paper, capabilities. Tests, docs and the command line run over it."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import Any

from tamis.errors import UnknownNameError

__all__ = [
    "CATALOG",
    "EFFECT_TITLES",
    "LEARNERS",
    "SCORE_MEANINGS",
    "SCORE_TITLES",
    "Entry",
    "find",
    "find_learner",
]


@dataclass(frozen=True)
class Entry:
    """What the catalogue says of one algorithm.

    Attributes
    ----------
    key : str
        Name on the command line.
    name : str
        Class, as the paper spells it.
    module : str
        Where the class lives.
    family : {"rows", "columns", "cells", "learners"}
    title : str
        What it does, in one line.
    paper : str
        Who published it, where and when.
    targets : tuple of {"binary", "multiclass", "regression"}
    sparse : bool
        Learns from CSR rows in time proportional to the stored values.
    mergeable : bool
        States learned on parts of a stream can be merged.
    per_batch : bool
        The method is defined per batch: a batch is not the same as its rows one at a time.
    rounding : bool
        A batch is the same as its rows one at a time up to rounding, because sums are taken in another order; without
        this and `per_batch`, bit for bit.
    parameters : tuple of (name, value)
        What the class is given where it is made by this key.
    regression : tuple of (name, value)
        What the class is given where the target is a number.
    """

    key: str
    name: str
    module: str
    family: str
    title: str
    paper: str
    targets: tuple[str, ...] = ("binary", "multiclass")
    sparse: bool = False
    mergeable: bool = False
    per_batch: bool = False
    rounding: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()
    not_mergeable: str = ""
    regression: tuple[tuple[str, Any], ...] = ()

    def load(self) -> type[Any]:
        """Import the class."""
        found: type[Any] = getattr(importlib.import_module(self.module), self.name)
        return found


CATALOG: tuple[Entry, ...] = (
    Entry(
        "fires", "FIRES", "tamis.rows.fires.fires", "rows",
        "Keeps the features whose coefficients are large and certain in a Bayesian probit or linear model.",
        "Haug, Pawelczyk, Broelemann, Kasneci (2020), KDD",
        targets=("binary", "multiclass", "regression"), sparse=True, per_batch=True,
        not_mergeable="Each batch moves the parameters by a gradient at the parameters that the batch before has left.",
        regression=(("model", "gaussian"),),
    ),
    Entry(
        "fires-mc", "MonteCarloFIRES", "tamis.rows.fires.monte_carlo", "rows",
        "Keeps the features whose parameters are large and certain in a Bayesian network, soft tree or PyTorch module.",
        "Haug, Pawelczyk, Broelemann, Kasneci (2020), KDD",
        per_batch=True,
        not_mergeable="Each batch moves the parameters by a gradient at the parameters that the batch before has left.",
    ),
    Entry(
        "ofs", "OFS", "tamis.rows.ofs", "rows",
        "Keeps the largest weights of a linear classifier that is truncated after each mistake.",
        "Wang, Zhao, Hoi, Jin (2014), IEEE TKDE 26(3)",
        sparse=True,
        not_mergeable="Whether a row changes the weights depends on the mistakes that the rows before have made.",
    ),
    Entry(
        "efs", "EFS", "tamis.rows.efs", "rows",
        "Keeps the features with the largest weight differences in a balanced winnow.",
        "Carvalho, Cohen (2006), KDD",
        sparse=True,
        not_mergeable="Whether a row changes the weights depends on the mistakes that the rows before have made.",
    ),
    Entry(
        "fsds", "FSDS", "tamis.rows.fsds", "rows",
        "Keeps the features with the largest weights in the main directions of the rows; labels are not used.",
        "Huang, Yoo, Kasiviswanathan (2015), CIKM",
        targets=("binary", "multiclass", "regression"), regression=(("task", "regression"),),
        not_mergeable="What the sketch forgets of a block depends on the rows before.",
    ),
    Entry(
        "cancel-out", "CancelOut", "tamis.rows.cancel_out", "rows",
        "Keeps the features whose gates a neural network opens, while gates and network learn.",
        "Borisov, Haug, Kasneci (2019), ICANN",
        per_batch=True,
        not_mergeable="Each batch moves the network from where the batch before has left it.",
    ),
    Entry(
        "fcbf", "FCBF", "tamis.rows.fcbf", "rows",
        "Keeps the features of a sliding window that are relevant to the class and not redundant.",
        "Yu, Liu (2003), ICML",
        not_mergeable="The window holds the last rows of one stream.",
    ),
    Entry(
        "t-score", "TScore", "tamis.rows.screening.screening", "rows",
        "Keeps the features whose class means differ most, relative to their standard errors.",
        "Wang, Barbu (2023), IEEE TKDE 35(11)",
        sparse=True, mergeable=True, rounding=True,
    ),
    Entry(
        "fisher", "FisherScore", "tamis.rows.screening.screening", "rows",
        "Keeps the features whose class means differ most, relative to the spread within the classes.",
        "Wang, Barbu (2023), IEEE TKDE 35(11)",
        sparse=True, mergeable=True, rounding=True,
    ),
    Entry(
        "mi", "MutualInformation", "tamis.rows.screening.screening", "rows",
        "Keeps the features whose bins have the largest mutual information with the class.",
        "Wang, Barbu (2023), IEEE TKDE 35(11)",
        sparse=True, mergeable=True, rounding=True,
    ),
    Entry(
        "chi2", "ChiSquare", "tamis.rows.screening.screening", "rows",
        "Keeps the features whose distributions over bins differ most between the classes.",
        "Wang, Barbu (2023), IEEE TKDE 35(11)",
        sparse=True, mergeable=True, rounding=True,
    ),
    Entry(
        "gini", "GiniIndex", "tamis.rows.screening.screening", "rows",
        "Keeps the features for which a single cut reduces the Gini impurity of the class most.",
        "Wang, Barbu (2023), IEEE TKDE 35(11)",
        sparse=True, mergeable=True, rounding=True,
    ),
    Entry(
        "screening", "Screening", "tamis.rows.screening.screening", "rows",
        "Keeps the best features by one of five scores, all computed in one pass.",
        "Wang, Barbu (2023), IEEE TKDE 35(11)",
        sparse=True, mergeable=True, rounding=True,
    ),
    Entry(
        "abfs", "ABFS", "tamis.rows.abfs.abfs", "rows",
        "Keeps the features of boosted decision stumps, until their errors rise.",
        "Barddal, Enembreck, Gomes, Bifet, Pfahringer (2019), Information Systems 83",
        not_mergeable="Each unit depends on all rows since the unit before it was frozen.",
    ),
    Entry(
        "discuss", "DISCUSS", "tamis.rows.discuss.discuss", "rows",
        "Keeps the features that say most about the class in a sliding window, and follows them when they change.",
        "Barddal (2018), doctoral thesis, chapter 8",
        not_mergeable="When the set was renewed, and from which window, depends on the rows before.",
    ),
    Entry(
        "joint", "JointScreening", "tamis.rows.joint.joint", "rows",
        "Keeps the features that are relevant to the class alone or in pairs, by tests on all rows since a drift.",
        "Barddal (2018), section 8.5, has the problem",
        not_mergeable="Since when rows are counted depends on the drifts found in the rows before.",
    ),
    Entry(
        "forward", "ForwardPartialCorrelation", "tamis.rows.forward.forward", "rows",
        "Keeps the features that add most to those already chosen, by forward selection on a faded scatter matrix.",
        "Efroymson (1960); a stream's form is Tamis' own",
        targets=("binary", "multiclass", "regression"), mergeable=True, rounding=True,
        regression=(("task", "regression"),),
    ),
    Entry(
        "auto", "Auto", "tamis.rows.auto.auto", "rows",
        "Races selectors and sizes, each with a cheap learner, and follows the one that predicts best now.",
        "Herbster, Warmuth (1998), Machine Learning 32(2), has the switching rule",
        not_mergeable="Each selector of the race depends on the order of all rows, and so does the race.",
    ),
    Entry(
        "random", "RandomSubset", "tamis.rows.random_subset", "rows",
        "Keeps features drawn at random, once: the baseline that every other method must beat.",
        "Guyon, Elisseeff (2003), JMLR 3",
        targets=("binary", "multiclass", "regression"), sparse=True, regression=(("task", "regression"),),
        not_mergeable="There is nothing to merge: the subset depends on the seed alone.",
    ),
    Entry(
        "alpha-investing", "AlphaInvesting", "tamis.columns.alpha_investing", "columns",
        "Accepts a feature if its p-value is below a bar that rises with each acceptance and falls with each test.",
        "Zhou, Foster, Stine, Ungar (2005), KDD",
        targets=("binary", "regression"), sparse=True,
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "penalised", "PenalisedSelector", "tamis.columns.penalised", "columns",
        "Accepts a feature if it improves AIC, BIC or RIC; an accepted feature stays.",
        "Zhou, Foster, Stine, Ungar (2005), KDD",
        targets=("binary", "regression"), sparse=True,
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "stepwise", "ForwardStepwise", "tamis.columns.stepwise", "columns",
        "Accepts the best column of a block, again and again, as long as it improves AIC, BIC or RIC.",
        "Zhou, Foster, Stine, Ungar (2005), KDD",
        targets=("binary", "regression"), sparse=True, per_batch=True,
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "grafting", "Grafting", "tamis.columns.grafting", "columns",
        "Accepts a feature if it lowers a lasso's loss faster than the penalty rises, until its weight is 0.",
        "Perkins, Theiler (2003), ICML",
        targets=("binary", "regression"),
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "ifc2f", "IFC2F", "tamis.cells.ifc2f", "cells",
        "Buys the values of a row in the order of a dependency network, and stops when the next does not pay.",
        "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(6)",
        sparse=True,
        not_mergeable="Bins, tree and order are chosen by the first rows, so two models count different things.",
    ),
    Entry(
        "etana", "ETANA", "tamis.cells.etana", "cells",
        "Buys values as if they were independent given the class, and stops when the next does not pay.",
        "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(2)",
        sparse=True,
        not_mergeable="The model is fitted to all rows at once, so there are no parts of it.",
    ),
    Entry(
        "fetana", "FETANA", "tamis.cells.fetana", "cells",
        "Buys values as ETANA does, and stops at half-spaces that it learns from the rows.",
        "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(2)",
        sparse=True,
        not_mergeable="The model is fitted to all rows at once, so there are no parts of it.",
    ),
    Entry(
        "adaptive-ifc2f", "AdaptiveIFC2F", "tamis.cells.adaptive", "cells",
        "Buys for each row the value that is worth most for its price, given the values so far.",
        "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(6), Section 7",
        sparse=True,
        not_mergeable="The model is fitted to all rows at once, so there are no parts of it.",
    ),
    Entry(
        "fixed-subset", "FixedSubset", "tamis.cells.fixed_subset", "cells",
        "Buys the same few values for every row, as many as are worth their price: the baseline of the others.",
        "Peng, Long, Ding (2005), IEEE TPAMI 27(8)",
        sparse=True,
        not_mergeable="The model is fitted to all rows at once, so there are no parts of it.",
    ),
    Entry(
        "saola", "SAOLA", "tamis.columns.saola", "columns",
        "Keeps features that depend on the class, and are not redundant to a single other feature.",
        "Yu, Wu, Ding, Pei (2016), ACM TKDD 11(2)",
        sparse=True,
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "osfs", "OSFS", "tamis.columns.osfs", "columns",
        "Keeps features that depend on the class, given any few of the other selected features.",
        "Wu, Yu, Ding, Wang, Zhu (2013), IEEE TPAMI 35(5)",
        sparse=True,
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "fast-osfs", "FastOSFS", "tamis.columns.fast_osfs", "columns",
        "Keeps features that depend on the class, given any few of the features selected before.",
        "Wu, Yu, Ding, Wang, Zhu (2013), IEEE TPAMI 35(5)",
        sparse=True,
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "ofs-density", "OFSDensity", "tamis.columns.ofs_density", "columns",
        "Keeps features that raise the share of a row's class among its neighbours, which are those that lie dense.",
        "Zhou, Hu, Li, Wu (2019), Pattern Recognition 86",
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "ofs-a3m", "OFSA3M", "tamis.columns.ofs_a3m", "columns",
        "Keeps features that raise the share of a row's class among its neighbours, up to the first gap.",
        "Zhou, Hu, Li, Wu (2019), Information Sciences 481",
        not_mergeable="Each decision depends on the columns that were accepted before it.",
    ),
    Entry(
        "sparse-fsa", "SparseFSA", "tamis.learners.sparse_fsa", "learners",
        "Linear classifier that drops the features of its smallest weights while it learns.",
        "Barbu, She, Ding, Gramajo (2017), IEEE TPAMI 39(2)",
        sparse=True, per_batch=True,
        not_mergeable="The weights of a batch are corrected from those that the batch before has left.",
    ),
)  # fmt: skip

LEARNERS: tuple[Entry, ...] = (
    Entry("perceptron", "Perceptron", "sklearn.linear_model", "learners", "Perceptron.", "scikit-learn", sparse=True),
    Entry("sgd", "SGDClassifier", "sklearn.linear_model", "learners",
          "Linear classifier by stochastic gradient descent (hinge loss).", "scikit-learn", sparse=True),
    Entry("logistic", "SGDClassifier", "sklearn.linear_model", "learners",
          "Logistic regression by stochastic gradient descent.", "scikit-learn", sparse=True,
          parameters=(("loss", "log_loss"),)),
    Entry("sgd-regressor", "SGDRegressor", "sklearn.linear_model", "learners",
          "Linear regression by stochastic gradient descent (Huber's loss).", "scikit-learn", targets=("regression",),
          sparse=True, parameters=(("loss", "huber"), ("epsilon", 1.0))),
    Entry("least-squares", "SGDRegressor", "sklearn.linear_model", "learners",
          "Linear regression by stochastic gradient descent (squared error).", "scikit-learn", targets=("regression",),
          sparse=True, parameters=(("loss", "squared_error"),)),
    Entry("naive-bayes", "GaussianNB", "sklearn.naive_bayes", "learners", "Gaussian naive Bayes.", "scikit-learn"),
    Entry("multinomial-nb", "MultinomialNB", "sklearn.naive_bayes", "learners",
          "Multinomial naive Bayes (counts).", "scikit-learn", sparse=True),
    Entry("bernoulli-nb", "BernoulliNB", "sklearn.naive_bayes", "learners",
          "Bernoulli naive Bayes (yes/no features).", "scikit-learn", sparse=True),
    Entry("naive-bayes-adwin", "ResetOnDrift", "tamis.learners.reset", "learners",
          "Gaussian naive Bayes, restarted when ADWIN finds that its errors rise.", "Gama et al. (2004)",
          parameters=(("estimator", "naive-bayes"), ("detector", "adwin"))),
    Entry("naive-bayes-ecdd", "ResetOnDrift", "tamis.learners.reset", "learners",
          "Gaussian naive Bayes, restarted when ECDD finds that its errors rise.", "Gama et al. (2004)",
          parameters=(("estimator", "naive-bayes"), ("detector", "ecdd"))),
    Entry("knn-adwin", "ResetOnDrift", "tamis.learners.reset", "learners",
          "Nearest neighbours, restarted when ADWIN finds that their errors rise.", "Gama et al. (2004)",
          parameters=(("estimator", "knn"), ("detector", "adwin"))),
    Entry("knn-ecdd", "ResetOnDrift", "tamis.learners.reset", "learners",
          "Nearest neighbours, restarted when ECDD finds that their errors rise.", "Gama et al. (2004)",
          parameters=(("estimator", "knn"), ("detector", "ecdd"))),
    Entry("hoeffding-tree-adwin", "ResetOnDrift", "tamis.learners.reset", "learners",
          "A Hoeffding tree, restarted when ADWIN finds that its errors rise.", "Gama et al. (2004)",
          parameters=(("estimator", "hoeffding-tree"), ("detector", "adwin"))),
    Entry("hoeffding-tree-ecdd", "ResetOnDrift", "tamis.learners.reset", "learners",
          "A Hoeffding tree, restarted when ECDD finds that its errors rise.", "Gama et al. (2004)",
          parameters=(("estimator", "hoeffding-tree"), ("detector", "ecdd"))),
    Entry("nb-su", "WeightedNaiveBayes", "tamis.learners.naive_bayes", "learners",
          "Naive Bayes over the last 1000 rows; features are weighted by symmetrical uncertainty.", "Barddal (2019)"),
    Entry("nb-window", "WeightedNaiveBayes", "tamis.learners.naive_bayes", "learners",
          "Naive Bayes over the last 1000 rows.", "Barddal (2019)", parameters=(("weight", None),)),
    Entry("nb", "WeightedNaiveBayes", "tamis.learners.naive_bayes", "learners",
          "Naive Bayes over all rows.", "Barddal (2019)", parameters=(("window", None), ("weight", None))),
    Entry("knn-su", "WeightedKNN", "tamis.learners.knn", "learners",
          "Nearest neighbours of the last 1000 rows; features are weighted by symmetrical uncertainty.",
          "Barddal (2019)"),
    Entry("knn", "WeightedKNN", "tamis.learners.knn", "learners",
          "Nearest neighbours of the last 1000 rows.", "Barddal (2019)", parameters=(("weight", None),)),
    Entry("hoeffding-tree", "HoeffdingTree", "tamis.learners.hoeffding", "learners",
          "A decision tree that splits a leaf once enough rows show which feature is best there.",
          "Domingos, Hulten (2000), KDD"),
    Entry("hoeffding-adaptive-tree", "HoeffdingAdaptiveTree", "tamis.learners.hoeffding", "learners",
          "A Hoeffding tree whose splits are replaced when their errors rise.", "Bifet, Gavalda (2009), IDA"),
    Entry("cvfdt", "CVFDT", "tamis.learners.hoeffding", "learners",
          "A Hoeffding tree of the last 5000 rows, whose splits give way where another feature is better by now.",
          "Hulten, Spencer, Domingos (2001), KDD"),
    Entry("adaptive-random-forest", "AdaptiveRandomForest", "tamis.learners.hoeffding", "learners",
          "Trees that draw features at each leaf and are replaced when their errors rise.",
          "Gomes et al. (2017), Machine Learning"),
    Entry("streaming-random-patches", "StreamingRandomPatches", "tamis.learners.hoeffding", "learners",
          "Trees on a random subset of features and rows each, replaced when their errors rise.",
          "Gomes, Read, Bifet (2019), ICDM"),
    Entry("streaming-random-forest", "StreamingRandomPatches", "tamis.learners.hoeffding", "learners",
          "A hundred trees on two random features each, which stay for good.", "Abdulsalam, Skillicorn, Martin (2007)",
          parameters=(("n_estimators", 100), ("max_features", 2), ("warning", None), ("drift", None))),
    Entry("vfdr", "VFDR", "tamis.learners.hoeffding", "learners",
          "Ordered rules that get a condition once enough rows say which is best.",
          "Gama, Kosina (2011), IJCAI"),
    Entry("vfdr-unordered", "VFDR", "tamis.learners.hoeffding", "learners",
          "Rules that each stand alone: all that cover a row learn it and vote.",
          "Kosina, Gama (2015), DMKD", parameters=(("ordered", False),)),
    Entry("avfdr", "VFDR", "tamis.learners.hoeffding", "learners",
          "Ordered rules, each dropped when ADWIN finds that its errors rise.",
          "Kosina, Gama (2015), DMKD", parameters=(("drift", 0.002),)),
    Entry("random-rules", "RandomRules", "tamis.learners.hoeffding", "learners",
          "Ten sets of rules, each on a random subset of the features and rows.",
          "Almeida, Kosina, Gama (2013), SAC"),
    Entry("streaming-stacking", "StreamingStacking", "tamis.learners.hoeffding", "learners",
          "A tree for every pair of features, weighed by perceptrons.",
          "Bifet et al. (2010), ACML"),
    Entry("heft-stream", "HEFTStream", "tamis.pipeline.heft_stream", "learners",
          "Naive Bayes and trees on the features that FCBF selects, renewed when it selects others.",
          "Nguyen et al. (2012), PAKDD"),
    Entry("huwrs", "HUWRS", "tamis.learners.huwrs", "learners",
          "Naive Bayes on random subsets of the features, restarted when these look different.",
          "Hoens, Chawla, Polikar (2011), ICDM"),
    Entry("river-naive-bayes", "RiverClassifier", "tamis.adapters.river", "learners",
          "River's Gaussian naive Bayes.", "River", sparse=True, parameters=(("model", "naive-bayes"),)),
    Entry("river-knn", "RiverClassifier", "tamis.adapters.river", "learners",
          "River's nearest neighbours of the last 1000 rows.", "River", parameters=(("model", "knn"),)),
    Entry("river-hoeffding-tree", "RiverClassifier", "tamis.adapters.river", "learners",
          "River's Hoeffding tree.", "River", parameters=(("model", "hoeffding-tree"),)),
    Entry("river-adaptive-tree", "RiverClassifier", "tamis.adapters.river", "learners",
          "River's Hoeffding adaptive tree.", "River", parameters=(("model", "adaptive-tree"),)),
    Entry("river-adaptive-forest", "RiverClassifier", "tamis.adapters.river", "learners",
          "River's adaptive random forest.", "River", parameters=(("model", "adaptive-forest"),)),
    Entry("river-random-patches", "RiverClassifier", "tamis.adapters.river", "learners",
          "River's streaming random patches.", "River", parameters=(("model", "random-patches"),)),
)  # fmt: skip


def find(key: str, family: str | None = None) -> Entry:
    """Return the catalogue's row of an algorithm, by its key or its class name.

    Raises
    ------
    UnknownNameError
        If there is none; the message suggests the nearest names.

    Examples
    --------
    >>> find("fires").name
    'FIRES'
    >>> find("offs")
    Traceback (most recent call last):
    ...
    tamis.errors.UnknownNameError: No selector is named 'offs'; did you mean 'ofs' or 'osfs'? Known: fires, ...
    """
    entries = tuple(entry for entry in CATALOG if family in (None, entry.family))
    return _lookup(key, entries, "classifier" if family == "cells" else "selector")


def find_learner(key: str) -> Entry:
    """Return the row of a learner that `tamis run` can train, by its key or its class name."""
    return _lookup(key, LEARNERS, "learner")


def _lookup(key: str, entries: tuple[Entry, ...], noun: str) -> Entry:
    by_name = {name.lower(): entry for entry in reversed(entries) for name in (entry.name, entry.key)}
    if (entry := by_name.get(key.lower())) is not None:
        return entry
    near = difflib.get_close_matches(key.lower(), by_name, n=2, cutoff=0.6)
    hint = (
        f"; did you mean {' or '.join(map(repr, dict.fromkeys(by_name[n].key for n in near)))}?"
        if near
        else "."
    )
    shown = key if len(key) < 80 else f"{key[:80]}..."
    raise UnknownNameError(f"No {noun} is named {shown!r}{hint} Known: {', '.join(e.key for e in entries)}.")


# What the scores of single columns are called, and what they say.
SCORE_TITLES = {
    "t": "T-score",
    "fisher": "Fisher score",
    "mi": "Mutual information",
    "chi2": "Chi-square",
    "gini": "Gini index",
}
SCORE_MEANINGS = {
    "t": "how far two class means lie apart, in standard errors",
    "fisher": "the spread of the class means against the spread within the classes",
    "mi": "how much the bins of a column tell of the class, in nats",
    "chi2": "how unlike the classes are spread over the bins of a column",
    "gini": "how much the best cut takes off the Gini impurity",
}
EFFECT_TITLES = {  # of the bands that are true at all times
    "t": "class means apart by",
    "fisher": "class means apart by",
    "mi": "mutual information, nats",
    "chi2": "mutual information, nats",
    "gini": "mutual information, nats",
}
