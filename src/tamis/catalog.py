"""One entry per algorithm: key, class, family, paper; the rest is derived from the class.

Tests, docs and the command line iterate over it.
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from tamis._declarations import Declaration, declared
from tamis.errors import UnknownNameError, did_you_mean

__all__ = [
    "CATALOG",
    "EFFECT_TITLES",
    "LEARNERS",
    "SCORE_MEANINGS",
    "SCORE_TITLES",
    "Entry",
    "Learner",
    "find",
    "find_learner",
]


_CLASSES = ("binary", "multiclass")
# The parameters with which the methods of a family predict or select for a number, unless an entry states its own.
_FOR_NUMBERS = {"rows": (("task", "regression"),), "cells": (("objective", "squared-error"),)}

# Why the states of a family cannot be merged, unless an entry states its own reason.
_NOT_MERGEABLE = {
    "columns": "Each decision depends on the columns that were accepted before it: merge ForwardPartialCorrelation.",
    "cells": "The model is fitted to all rows at once, so it cannot be merged from parts: fit it to a sample.",
}
_JSON_NAMES = (
    "key", "name", "module", "family", "title", "paper", "targets", "sparse", "missing", "mergeable", "per_batch",
    "rounding", "parameters", "not_mergeable", "regression",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One algorithm of the catalogue: what the class cannot declare itself; the rest is derived from the class.

    The properties are read from the source of the class; only `load` imports it.

    Attributes
    ----------
    key : str
        Name on the command line.
    name : str
        Class name, spelt as in the paper; exported by `tamis`.
    family : {"rows", "columns", "cells", "learners"}
    paper : str
        Authors, year and publication.
    not_mergeable : str
        Why states learned on parts of a stream cannot be merged; empty if they can.
    parameters : tuple of (name, value)
        Parameters of the class that the key implies.
    numbers : tuple of (name, value)
        Parameters of the class for a numeric target, if they differ from those of its family.
    """

    key: str
    name: str
    family: str
    paper: str
    _: KW_ONLY
    not_mergeable: str = ""
    parameters: tuple[tuple[str, Any], ...] = ()
    numbers: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "not_mergeable", self.not_mergeable or _NOT_MERGEABLE.get(self.family, ""))

    @property
    def regression(self) -> tuple[tuple[str, Any], ...]:
        """Parameters of the class for a numeric target."""
        return self.numbers or (_FOR_NUMBERS.get(self.family, ()) if "regression" in self.targets else ())

    def load(self) -> type[Any]:
        """Import the class."""
        return getattr(importlib.import_module("tamis"), self.name)

    @property
    def declaration(self) -> Declaration:
        """The class as declared in its source, not imported."""
        declaration = declared(importlib.import_module("tamis")._NAMES[self.name], self.name)
        assert declaration is not None, self.name
        return declaration

    @property
    def module(self) -> str:
        """Module that defines the class."""
        return self.declaration.module

    @property
    def title(self) -> str:
        """Summary: the first line of the class's docstring."""
        return self.declaration.title

    @property
    def targets(self) -> tuple[str, ...]:
        """Kinds of target: some of "binary", "multiclass" and "regression"."""
        return tuple(self.declaration.get("accepts", {}).get("targets", _CLASSES))

    @property
    def sparse(self) -> bool:
        """Whether learning from CSR rows takes time proportional to the stored values."""
        return bool(self.declaration.get("claims", {}).get("sparse_time", False))

    @property
    def missing(self) -> bool | None:
        """Whether a selector of rows accepts missing values (NaN); None for other families."""
        return bool(self.declaration.get("accepts", {}).get("nan", False)) if self.family == "rows" else None

    @property
    def mergeable(self) -> bool:
        """Whether states learned on parts of a stream can be merged."""
        return "merge" in self.declaration

    @property
    def copies_differ(self) -> str:
        """How a row of weight w differs from w copies of it; empty if it does not."""
        return str(self.declaration.get("claims", {}).get("copies_differ", ""))

    @property
    def per_batch(self) -> bool:
        """Whether the method is defined per batch: a batch is not equivalent to its rows (or columns) one at a time."""
        return self._equals_rows == "" or bool(self.declaration.get("_whole_blocks", False))

    @property
    def _equals_rows(self) -> str:
        return str(self.declaration.get("claims", {"equals_rows": "exactly"}).get("equals_rows", ""))

    @property
    def rounding(self) -> bool:
        """Whether a batch equals its rows one at a time only up to rounding, since sums are taken in another order."""
        return self._equals_rows == "up to rounding"

    def as_dict(self) -> dict[str, Any]:
        """Return all properties by name, for JSON."""
        return {name: getattr(self, name) for name in _JSON_NAMES}


@dataclass(frozen=True)
class Learner(Entry):
    """A learner of another package, or a class with certain parameters: title and capabilities are stated here.

    Attributes
    ----------
    module : str
        Module to import the class from.
    title : str
        Summary of the class with these parameters, in one line.
    targets, sparse
        As the properties of :class:`Entry`.
    """

    module: str = ""
    title: str = ""
    _: KW_ONLY
    targets: tuple[str, ...] = _CLASSES
    sparse: bool = False
    missing: None = None
    mergeable: ClassVar[bool] = False
    per_batch: ClassVar[bool] = False
    rounding: ClassVar[bool] = False

    def load(self) -> type[Any]:
        """Import the class."""
        return getattr(importlib.import_module(self.module), self.name)


CATALOG: tuple[Entry, ...] = (
    Entry("fires", "FIRES", "rows", "Haug, Pawelczyk, Broelemann, Kasneci (2020), KDD",
          numbers=(("model", "gaussian"),)),
    Entry("fires-mc", "MonteCarloFIRES", "rows", "Haug, Pawelczyk, Broelemann, Kasneci (2020), KDD",
          not_mergeable="Each batch starts from the parameters after the batch before: merge FIRES."),
    Entry("ofs", "OFS", "rows", "Wang, Zhao, Hoi, Jin (2014), IEEE TKDE 26(3)"),
    Entry("sofs", "SOFS", "rows", "Wu, Hoi, Mei, Yu (2017), ACM TKDD 11(4)",
          not_mergeable="Whether a row changes the weights depends on the mistakes of the rows before: merge OFS."),
    Entry("efs", "EFS", "rows", "Carvalho, Cohen (2006), KDD",
          not_mergeable="Products of weights depend on the mistakes on the rows before: merge OFS."),
    Entry("fsds", "FSDS", "rows", "Huang, Yoo, Kasiviswanathan (2015), CIKM",
          not_mergeable="The truncation of the sketch depends on the rows before: merge ForwardPartialCorrelation."),
    Entry("leverage", "LeverageScores", "rows", "Papailiopoulos, Kyrillidis, Boutsidis (2014), KDD",
          not_mergeable="The truncation of the sketch depends on the rows before: merge ForwardPartialCorrelation."),
    Entry("cancel-out", "CancelOut", "rows", "Borisov, Haug, Kasneci (2019), ICANN",
          not_mergeable="Each batch continues with the network after the batch before: merge FIRES."),
    Entry("fcbf", "FCBF", "rows", "Yu, Liu (2003), ICML"),
    Entry("t-score", "TScore", "rows", "Wang, Barbu (2023), IEEE TKDE 35(11)"),
    Entry("fisher", "FisherScore", "rows", "Wang, Barbu (2023), IEEE TKDE 35(11)"),
    Entry("mi", "MutualInformation", "rows", "Wang, Barbu (2023), IEEE TKDE 35(11)"),
    Entry("chi2", "ChiSquare", "rows", "Wang, Barbu (2023), IEEE TKDE 35(11)"),
    Entry("gini", "GiniIndex", "rows", "Wang, Barbu (2023), IEEE TKDE 35(11)"),
    Entry("screening", "Screening", "rows", "Wang, Barbu (2023), IEEE TKDE 35(11)"),
    Entry("abfs", "ABFS", "rows", "Barddal, Enembreck, Gomes, Bifet, Pfahringer (2019), Information Systems 83",
          not_mergeable="Each unit depends on all rows since the unit before it was frozen: merge GiniIndex."),
    Entry("discuss", "DISCUSS", "rows", "Barddal (2018), doctoral thesis, chapter 8"),
    Entry("joint", "JointScreening", "rows", "Barddal (2018), section 8.5 (the problem)"),
    Entry("forward", "ForwardPartialCorrelation", "rows", "Efroymson (1960); the streaming form is Tamis' own"),
    Entry("auto", "Auto", "rows", "Breiman, Friedman, Olshen, Stone (1984), the one-standard-error rule"),
    Entry("random", "RandomSubset", "rows", "Guyon, Elisseeff (2003), JMLR 3",
          not_mergeable="There is nothing to merge: the subset depends on the seed alone."),
    Entry("alpha-investing", "AlphaInvesting", "columns", "Zhou, Foster, Stine, Ungar (2005), KDD"),
    Entry("penalised", "PenalisedSelector", "columns", "Zhou, Foster, Stine, Ungar (2005), KDD"),
    Entry("stepwise", "ForwardStepwise", "columns", "Zhou, Foster, Stine, Ungar (2005), KDD"),
    Entry("grafting", "Grafting", "columns", "Perkins, Theiler (2003), ICML"),
    Entry("ifc2f", "IFC2F", "cells", "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(6)",
          not_mergeable="Bins, tree and order are chosen by the first rows, which parts do not share: fit a sample."),
    Entry("etana", "ETANA", "cells", "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(2)"),
    Entry("fetana", "FETANA", "cells", "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(2)"),
    Entry("adaptive-ifc2f", "AdaptiveIFC2F", "cells", "Liyanage, Zois, Chelmis (2021), IEEE TAI 2(6), Section 7"),
    Entry("aaco", "AACO", "cells", "Valancius, Lennon, Oliva (2024), ICML"),
    Entry("fixed-subset", "FixedSubset", "cells", "Peng, Long, Ding (2005), IEEE TPAMI 27(8)"),
    Entry("saola", "SAOLA", "columns", "Yu, Wu, Ding, Pei (2016), ACM TKDD 11(2)"),
    Entry("osfs", "OSFS", "columns", "Wu, Yu, Ding, Wang, Zhu (2013), IEEE TPAMI 35(5)"),
    Entry("fast-osfs", "FastOSFS", "columns", "Wu, Yu, Ding, Wang, Zhu (2013), IEEE TPAMI 35(5)"),
    Entry("gfsfs", "GFSFS", "columns", "Li, Wu, Li, Ding (2013), AAAI and IEEE ICDM"),
    Entry("ofs-density", "OFSDensity", "columns", "Zhou, Hu, Li, Wu (2019), Pattern Recognition 86"),
    Entry("ofs-a3m", "OFSA3M", "columns", "Zhou, Hu, Li, Wu (2019), Information Sciences 481"),
    Entry("sparse-fsa", "SparseFSA", "learners", "Barbu, She, Ding, Gramajo (2017), IEEE TPAMI 39(2)",
          not_mergeable="Each batch corrects the weights of the batch before: merge ForwardPartialCorrelation."),
)  # fmt: skip

LEARNERS: tuple[Entry, ...] = (
    Entry("perceptron", "Perceptron", "learners", "Rosenblatt (1958), Psychological Review 65(6)"),
    Learner("sgd", "SGDClassifier", "learners", "scikit-learn", "sklearn.linear_model",
            "Linear classifier by stochastic gradient descent (hinge loss).", sparse=True),
    Entry("logistic", "SGDLogisticRegression", "learners", "Cox (1958), JRSS B 20(2)",
          parameters=(("learning_rate", "constant"),)),
    Entry("svm", "SGDLinearSVM", "learners", "Shalev-Shwartz, Singer, Srebro, Cotter (2011), Math. Programming 127(1)"),
    Learner("sgd-regressor", "SGDRegressor", "learners", "scikit-learn", "sklearn.linear_model",
            "Linear regression by stochastic gradient descent (Huber's loss).", targets=("regression",), sparse=True,
            parameters=(("loss", "huber"), ("epsilon", 1.0))),
    Learner("least-squares", "SGDRegressor", "learners", "scikit-learn", "sklearn.linear_model",
            "Linear regression by stochastic gradient descent (squared error).", targets=("regression",), sparse=True,
            parameters=(("loss", "squared_error"),)),
    Learner("naive-bayes", "GaussianNB", "learners", "scikit-learn", "sklearn.naive_bayes", "Gaussian naive Bayes."),
    Learner("multinomial-nb", "MultinomialNB", "learners", "scikit-learn", "sklearn.naive_bayes",
            "Multinomial naive Bayes (counts).", sparse=True),
    Learner("bernoulli-nb", "BernoulliNB", "learners", "scikit-learn", "sklearn.naive_bayes",
            "Bernoulli naive Bayes (yes/no features).", sparse=True),
    *(Learner(f"{key}-{detector}", "ResetOnDrift", "learners", "Gama et al. (2004)", "tamis.learners.reset",
              f"{title}, reset when {detector.upper()} detects an increase of {whose} errors.",
              parameters=(("estimator", key), ("detector", detector)))
      for key, title, whose in (("naive-bayes", "Gaussian naive Bayes", "its"),
                                ("knn", "Nearest neighbours", "their"), ("hoeffding-tree", "A Hoeffding tree", "its"))
      for detector in ("adwin", "ecdd")),
    Learner("nb-su", "WeightedNaiveBayes", "learners", "Barddal (2019)", "tamis.learners.naive_bayes",
            "Naive Bayes over the last 1000 rows; features are weighted by symmetrical uncertainty."),
    Learner("nb-window", "WeightedNaiveBayes", "learners", "Barddal (2019)", "tamis.learners.naive_bayes",
            "Naive Bayes over the last 1000 rows.", parameters=(("weight", None),)),
    Learner("nb", "WeightedNaiveBayes", "learners", "Barddal (2019)", "tamis.learners.naive_bayes",
            "Naive Bayes over all rows.", parameters=(("window", None), ("weight", None))),
    Learner("knn-su", "WeightedKNN", "learners", "Barddal (2019)", "tamis.learners.knn",
            "Nearest neighbours of the last 1000 rows; features are weighted by symmetrical uncertainty."),
    Learner("knn", "WeightedKNN", "learners", "Barddal (2019)", "tamis.learners.knn",
            "Nearest neighbours of the last 1000 rows.", parameters=(("weight", None),)),
    Entry("hoeffding-tree", "HoeffdingTree", "learners", "Domingos, Hulten (2000), KDD"),
    Entry("hoeffding-adaptive-tree", "HoeffdingAdaptiveTree", "learners", "Bifet, Gavalda (2009), IDA"),
    Entry("cvfdt", "CVFDT", "learners", "Hulten, Spencer, Domingos (2001), KDD"),
    Entry("adaptive-random-forest", "AdaptiveRandomForest", "learners", "Gomes et al. (2017), Machine Learning"),
    Entry("streaming-random-patches", "StreamingRandomPatches", "learners", "Gomes, Read, Bifet (2019), ICDM"),
    Learner("streaming-random-forest", "StreamingRandomPatches", "learners", "Abdulsalam, Skillicorn, Martin (2007)",
            "tamis.learners.hoeffding", "A hundred trees on two random features each, never replaced.",
            parameters=(("n_estimators", 100), ("max_features", 2), ("warning", None), ("drift", None))),
    Entry("sgbt", "SGBT", "learners", "Gunasekara, Pfahringer, Gomes, Bifet (2024), Machine Learning 113"),
    Entry("oza-boost", "OzaBoost", "learners", "Oza, Russell (2001), AISTATS"),
    Learner("vfdr", "VFDR", "learners", "Gama, Kosina (2011), IJCAI", "tamis.learners.hoeffding",
            "Ordered rules that add a condition once the Hoeffding bound identifies the best one."),
    Learner("vfdr-unordered", "VFDR", "learners", "Kosina, Gama (2015), DMKD", "tamis.learners.hoeffding",
            "Unordered rules: all that cover a row learn it and vote.", parameters=(("ordered", False),)),
    Learner("avfdr", "VFDR", "learners", "Kosina, Gama (2015), DMKD", "tamis.learners.hoeffding",
            "Ordered rules, each dropped if ADWIN detects an increase of its errors.", parameters=(("drift", 0.002),)),
    Entry("random-rules", "RandomRules", "learners", "Almeida, Kosina, Gama (2013), SAC"),
    Entry("streaming-stacking", "StreamingStacking", "learners", "Bifet et al. (2010), ACML"),
    Entry("heft-stream", "HEFTStream", "learners", "Nguyen et al. (2012), PAKDD"),
    Entry("huwrs", "HUWRS", "learners", "Hoens, Chawla, Polikar (2011), ICDM"),
    *(Learner(key + "-regressor" * numbers, "Refit", "learners", paper, "tamis.learners.refit",
              f"{title[numbers]}, refitted every 1,000 rows on the last 10,000.", sparse=key != "hist-boosting",
              targets=("regression",) if numbers else _CLASSES,
              parameters=(("estimator", key + "-regressor" * numbers),))
      for numbers in (False, True)
      for key, paper, title in (
          ("lightgbm", "Ke et al. (2017), NeurIPS", ("LightGBM", "LightGBM for regression")),
          ("random-forest", "Breiman (2001), Machine Learning",
           ("scikit-learn's random forest", "A random forest for regression")),
          ("hist-boosting", "scikit-learn",
           ("scikit-learn's histogram boosting", "Histogram boosting for regression")))),
    *(Learner(f"river-{model}", "RiverClassifier", "learners", "River", "tamis.adapters.river", f"River's {title}.",
              sparse=model == "naive-bayes", parameters=(("model", model),))
      for model, title in (("naive-bayes", "Gaussian naive Bayes"), ("knn", "nearest neighbours of the last 1000 rows"),
                           ("hoeffding-tree", "Hoeffding tree"), ("adaptive-tree", "Hoeffding adaptive tree"),
                           ("adaptive-forest", "adaptive random forest"),
                           ("random-patches", "streaming random patches"))),
)  # fmt: skip


def find(key: str, family: str | None = None) -> Entry:
    """Return the catalogue entry of an algorithm, by its key or its class name.

    Raises
    ------
    UnknownNameError
        If there is none; the message suggests similar names.

    Examples
    --------
    >>> find("fires").name
    'FIRES'
    >>> find("offs")
    Traceback (most recent call last):
    ...
    tamis.errors.UnknownNameError: No selector is named 'offs'; did you mean 'ofs' or 'sofs'? Known: fires, ...
    """
    entries = tuple(entry for entry in CATALOG if family in (None, entry.family))
    return _lookup(key, entries, "classifier" if family == "cells" else "selector")


@functools.cache
def find_learner(key: str) -> Entry:
    """Return the entry of a learner that `tamis run` can train, by its key or its class name."""
    return _lookup(key, LEARNERS, "learner")


def _lookup(key: str, entries: tuple[Entry, ...], noun: str) -> Entry:
    by_name = {name.lower(): entry for entry in reversed(entries) for name in (entry.name, entry.key)}
    if (entry := by_name.get(key.lower())) is not None:
        return entry
    hint = did_you_mean(key.lower(), {name: entry.key for name, entry in by_name.items()}, n=2)
    if noun == "learner" and re.search("xgb|catboost|boost|gbm", key.lower()):
        hint = "; for gradient boosting use 'lightgbm'."
    query = key if len(key) < 80 else f"{key[:80]}..."
    raise UnknownNameError(f"No {noun} is named {query!r}{hint} Known: {', '.join(e.key for e in entries)}.")


# Titles and descriptions of the univariate scores.
SCORE_TITLES = {
    "t": "T-score",
    "fisher": "Fisher score",
    "mi": "Mutual information",
    "chi2": "Chi-square",
    "gini": "Gini index",
}
SCORE_MEANINGS = {
    "t": "distance between two class means, in standard errors",
    "fisher": "variance between the class means, relative to the variance within the classes",
    "mi": "mutual information between the bins of a feature and the class, in nats",
    "chi2": "how much the distribution over the bins of a feature differs between the classes",
    "gini": "decrease of the Gini impurity by the best cut",
}
# Titles of the effects whose confidence bands are valid at all times.
EFFECT_TITLES = {
    "t": "class means apart by",
    "fisher": "class means apart by",
    "mi": "mutual information, nats",
    "chi2": "mutual information, nats",
    "gini": "mutual information, nats",
}
