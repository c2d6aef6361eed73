"""Fitted models as plain scikit-learn pipelines and as ONNX: for a service that predicts and does not learn.

=====================================  ==========================================================================
model                                  becomes
=====================================  ==========================================================================
a selector of rows or columns          a `VarianceThreshold` whose `get_support` is the selection
the scale of a `StreamPipeline`        a `MinMaxScaler` from -5 to 5, which limits standardised values
Perceptron, logistic regression, SVM   an `SGDClassifier` with their weights
`WeightedNaiveBayes`                   a `GaussianNB`: a variance is divided by the weight of its feature
Hoeffding trees, majority leaves       a `DecisionTreeClassifier`, behind a `StandardScaler` that centres the cuts
forests of these trees                 a `VotingClassifier`
`Refit`                                its estimator, for the columns of the last fit
an estimator of scikit-learn           a copy, for the selected columns
=====================================  ==========================================================================

Trees whose leaves use naive Bayes have no counterpart in scikit-learn, but are exported to ONNX: a tree ensemble finds
the leaf of each row, whose means and variances are then gathered from tables. So are naive Bayes (as one
leaf), which ignores missing values where a `GaussianNB` rejects them, and trees with majority leaves, whose cuts have
64 bits.
"""

from __future__ import annotations

import functools
import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelBinarizer,
    LabelEncoder,
    MinMaxScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats
from tamis.base.selector_mixin import SelectorMixin
from tamis.learners.class_likelihoods import ClassLikelihoods
from tamis.learners.hoeffding import AdaptiveRandomForest, HoeffdingTree
from tamis.learners.hoeffding.classifier import LEAVES
from tamis.learners.hoeffding.leaves import SAME, UNSEEN, uses_bayes
from tamis.learners.hoeffding.nodes import Link, Moment
from tamis.learners.hoeffding.records import Node
from tamis.learners.linear import Perceptron, SGDLinearSVM, SGDLogisticRegression
from tamis.learners.naive_bayes import WeightedNaiveBayes
from tamis.learners.refit import Refit
from tamis.learners.traits import restrict_columns
from tamis.pipeline.masked_learner import MaskedRegressor
from tamis.pipeline.scaling import LIMIT, RunningScale
from tamis.pipeline.selective_learner import SelectiveLearner

if TYPE_CHECKING:
    from onnx import ModelProto

_LOSSES = {Perceptron: "perceptron", SGDLinearSVM: "hinge", SGDLogisticRegression: "log_loss"}
_LARGEST_SHIFT = 600.0  # of log-priors: beyond it, probabilities underflow
_ONNX_EXTRA = "ONNX needs further packages: pip install 'tamis[onnx]'"


def freeze(model: Any) -> Pipeline:
    """Return a fitted model as a scikit-learn pipeline of columns, scaler and learner that predicts the same.

    Parameters
    ----------
    model : StreamPipeline, selector, learner or Pipeline
        Fitted; it is not changed. In a scikit-learn pipeline, the steps of Tamis are replaced.

    Returns
    -------
    sklearn.pipeline.Pipeline
        All of its steps are scikit-learn's, or those of the library of a refitted model.

    Raises
    ------
    ValueError
        If scikit-learn has no counterpart: trees whose leaves use naive Bayes (see :func:`to_onnx`), categories, other
        learners.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FIRES, SGDLogisticRegression, StreamPipeline
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 30))
    >>> model = StreamPipeline(FIRES(2), SGDLogisticRegression()).fit(X, X[:, 3] > X[:, 9])
    >>> plain = freeze(model)  # or model.freeze()
    >>> [type(step).__name__ for _, step in plain.steps]
    ['VarianceThreshold', 'FunctionTransformer', 'SimpleImputer', 'MinMaxScaler', 'SGDClassifier']
    >>> bool((plain.predict(X) == model.predict(X)).all())
    True
    """
    return _freeze(model, plain=True)


def _freeze(model: Any, *, plain: bool) -> Pipeline:
    """Return a fitted model as a pipeline, unless `plain` also with what only ONNX can represent."""
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        steps = [step for name, one in model.steps for step in _steps_of_step(name, one, plain=plain)]
    elif hasattr(model, "_current_models"):  # a StreamPipeline, which this module must not import
        if model.categories_:
            raise _unsupported("categories", "convert them to numbers before the pipeline")
        steps = _steps_of_models(model._current_models(), plain=plain)
    elif isinstance(model, SelectorMixin) and not hasattr(model, "predict"):
        steps = [("columns", _columns(model.get_support(indices=True), model.n_features_in_))]
    elif not hasattr(model, "n_features_in_"):
        raise _unsupported(
            "features by name", "freeze its estimator_, whose first columns are feature_names_"
        )
    else:
        everything = np.arange(model.n_features_in_)
        steps = _steps_of_learner(model, everything, everything.size, "columns", None, plain=plain)
    pipeline = Pipeline(steps)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        first = pipeline.steps[0][1]
        first.feature_names_in_ = np.array(names, dtype=object)
    return pipeline


def _unsupported(what: str, advice: str) -> ValueError:
    return ValueError(f"A model with {what} cannot be frozen: {advice}.")


def _steps_of_step(name: str, one: Any, *, plain: bool) -> list[tuple[str, Any]]:
    """Return the steps that replace a step of a scikit-learn pipeline."""
    if one is None or isinstance(one, str) or not type(one).__module__.startswith("tamis."):
        return [(name, deepcopy(one))]
    return [(f"{name}_{inner}", step) for inner, step in _freeze(one, plain=plain).steps]


def _steps_of_models(models: SelectiveLearner, *, plain: bool) -> list[tuple[str, Any]]:
    learner = models.learner
    if learner.n_known_classes == 0:
        raise _unsupported("an unfitted learner", "learn from rows of two classes first")
    support = models.selection[1]
    columns = np.arange(models.n_features) if support is None else support
    if len(columns) == 0:
        raise _unsupported("no selected features", "learn until at least one is selected")
    scale = models.scale
    if scale is not None and models.is_sparse:
        raise _unsupported("scaled sparse rows", "pass dense rows, or scale='none'")
    target = learner.target if isinstance(learner, MaskedRegressor) and learner.is_scaled else None
    steps = _steps_of_learner(learner.model, columns, models.n_features, learner.way, target, plain=plain)
    if scale is None:
        return steps
    used = steps[0][1].get_support(indices=True)
    between: list[tuple[str, Any]] = [("scale", _scaler(scale, used))]
    if not learner.accepts_nan:
        between.insert(0, ("impute", SimpleImputer().fit(scale.shift[used][None])))
    if plain:
        between.insert(0, ("numbers", _to_64_bits()))
    return [steps[0], *between, *steps[1:]]


def _steps_of_learner(
    model: Any,
    columns: NDArray[np.intp],
    n_features: int,
    way: str,
    target: RunningScale | None,
    *,
    plain: bool,
) -> list[tuple[str, Any]]:
    """Return the steps of a learner that was trained on rows of all features, and uses some columns."""
    steps: list[tuple[str, Any]] = []
    if isinstance(model, Refit):
        columns, learner, fill = _refitted(model, target)
        if fill is not None:
            steps.append(("impute", SimpleImputer().fit(fill[None])))
    elif type(model) in _LOSSES:
        learner = _linear(model, columns)
    elif isinstance(model, WeightedNaiveBayes):
        learner = _naive_bayes(model, columns) if plain else _one_leaf(model, columns)
    elif isinstance(model, HoeffdingTree | AdaptiveRandomForest):
        if plain:
            centre, learner = _trees(model, columns)
            centring = StandardScaler(with_std=False).fit(centre[None])
            steps += [("numbers", _to_64_bits()), ("centre", centring)]
        else:
            learner = _bayes_trees(model, columns)
    elif type(model).__module__.startswith("sklearn."):
        learner = _restricted(model, columns, n_features, way, target)
    else:
        raise _unsupported(f"the learner {type(model).__name__}", "predict with the model itself")
    last = learner.steps if isinstance(learner, Pipeline) else [("learner", learner)]
    return [("columns", _columns(columns, n_features)), *steps, *last]


def _columns(columns: NDArray[np.intp], n_features: int) -> VarianceThreshold:
    """Return a selector of these columns; scikit-learn has none that is given them, and this one accepts NaN."""
    selector = VarianceThreshold(0.5)
    selector.variances_ = np.zeros(n_features)
    selector.variances_[columns] = 1.0
    selector.n_features_in_ = n_features
    return selector


def _scaler(scale: RunningScale, columns: NDArray[np.intp]) -> MinMaxScaler:
    """Return the limited standardisation as a scaler from -5 to 5 with a limit."""
    shift, factor = scale.shift[columns], scale.factor[columns]
    ends = np.stack([shift - LIMIT / factor, shift + LIMIT / factor])
    scaler = MinMaxScaler((-LIMIT, LIMIT), clip=True).fit(ends)
    scaler.scale_, scaler.min_ = factor, -shift * factor
    return scaler


def _to_64_bits() -> FunctionTransformer:
    """Return a step before a scaler, which would compute with the 32 bits of its rows."""
    return FunctionTransformer(np.float64, feature_names_out="one-to-one").fit(np.zeros((1, 1)))


# -- learners ------------------------------------------------------------------------------------------------------


def _linear(model: Any, columns: NDArray[np.intp]) -> SGDClassifier:
    if len(model.classes_) < 2:
        raise _unsupported("a single class", "learn from rows of two classes first")
    plain = SGDClassifier(loss=_LOSSES[type(model)])
    plain.partial_fit(np.zeros((1, len(columns))), model.classes_[:1], classes=np.sort(model.classes_))
    order = np.argsort(model.classes_, kind="stable")
    coef, intercept = model.coef_[:, columns], np.array(model.intercept_)
    if len(order) == 2:  # the positive class is the second one
        sign = 1.0 if order[0] == 0 else -1.0
        plain.coef_, plain.intercept_ = sign * coef, sign * intercept
    else:
        plain.coef_, plain.intercept_ = coef[order], intercept[order]
    return plain


def _likelihoods(model: WeightedNaiveBayes, columns: NDArray[np.intp]) -> ClassLikelihoods:
    """Return what naive Bayes predicts with from some columns."""
    model.predict_proba(np.zeros((1, model.n_features_in_)))  # computes what the restricted model shares
    likelihoods: ClassLikelihoods = model.restrict_columns(columns)._likelihoods_
    if likelihoods._constants is None or len(likelihoods._columns):
        raise _unsupported("categories", "convert them to numbers before the model")
    return likelihoods


def _naive_bayes(model: WeightedNaiveBayes, columns: NDArray[np.intp]) -> GaussianNB:
    likelihoods = _likelihoods(model, columns)
    assert likelihoods._constants is not None
    prior, centre, pull, level, _, _, missed, _ = likelihoods._constants
    if missed.size:
        raise _unsupported(
            "features that are constant within a class", "export it to ONNX, or use another learner"
        )
    informative = (pull > 0.0).all(axis=0)
    # e log P = level - pull (x - centre)^2. A Gaussian of variance 1 / (2 pull) has another level: the prior takes it.
    variance = np.where(informative, 1.0 / np.where(informative, 2.0 * pull, 1.0), 1.0)
    own = np.where(informative, -0.5 * np.log(2.0 * np.pi * variance), 0.0)
    shift = prior + (np.where(informative, level, 0.0) - own).sum(axis=1)
    shift -= shift.max()
    if shift.min() < -_LARGEST_SHIFT or not informative.any():
        raise _unsupported(
            "such different variances of the classes", "export it to ONNX, or use fewer features"
        )
    plain = GaussianNB()
    plain.partial_fit(np.zeros((1, len(columns))), model.classes_[:1], classes=np.sort(model.classes_))
    order = np.argsort(model.classes_, kind="stable")
    plain.theta_ = np.where(informative, centre, 0.0)[order]
    # A feature without weight is as likely in each class.
    plain.var_ = np.where(informative, variance, 1e300)[order]
    share = np.exp(shift)[order]
    plain.class_prior_ = share / share.sum()
    plain.class_count_ = likelihoods.n_rows[order]
    plain.epsilon_ = 0.0
    return plain


# The left and the right child, -1 at a leaf; feature and threshold; whether missing values go left.
_Branch: TypeAlias = tuple[int, int, int, float, bool]
# The output to which each tree adds, its branches, and the values of its nodes.
_Trees: TypeAlias = list[tuple[int, list[_Branch], list[float]]]


def _pruned(nodes: list[Node], columns: NDArray[np.intp]) -> tuple[list[_Branch], list[Node]]:
    """Return a tree whose splits use these columns only, and its nodes; other splits lead to the heavier child."""
    children: dict[int, list[int]] = {}
    for at, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(at)
    position = {int(j): k for k, j in enumerate(columns)}
    kept: list[_Branch] = []
    reached: list[Node] = []

    def add(at: int) -> int:
        node = nodes[at]
        while node.feature is not None:
            if node.threshold is None:
                raise _unsupported("categories", "convert them to numbers before the tree")
            left, right = children[at]
            heavier_left = nodes[left].weight >= nodes[right].weight
            if node.feature in position:
                break
            at = left if heavier_left else right
            node = nodes[at]
        here = len(kept)
        kept.append((-1, -1, -2, -2.0, False))
        reached.append(node)
        if node.feature is not None and node.threshold is not None:
            kept[here] = (add(left), add(right), position[node.feature], node.threshold, heavier_left)
        return here

    add(0)
    return kept, reached


def _shares(node: Node) -> Floats:
    """Return the share of each class at a node."""
    total = node.class_weights.sum()
    n_classes = len(node.class_weights)
    return node.class_weights / total if total > 0.0 else np.full(n_classes, 1.0 / n_classes)


def _trees(model: Any, columns: NDArray[np.intp]) -> tuple[Floats, Any]:
    """Return a centre for each column, and trees with the same splits of the centred columns.

    scikit-learn's trees compare values of 32 bits, which time stamps need more than.
    """
    from sklearn.ensemble import VotingClassifier

    if model.leaf != "majority":
        raise _unsupported(f"leaf={model.leaf!r}", "train it with leaf='majority', or export it to ONNX")
    is_forest = isinstance(model, AdaptiveRandomForest)
    pruned = [_pruned(nodes, columns) for nodes in (model._nodes() if is_forest else [model.nodes_])]
    cuts = np.array([branch[2:4] for kept, _ in pruned for branch in kept if branch[0] >= 0]).reshape(-1, 2)
    at = cuts[:, 0].astype(np.intp)
    centre = np.bincount(at, cuts[:, 1], len(columns)) / np.maximum(np.bincount(at, None, len(columns)), 1)
    trees = [_tree(kept, reached, centre, np.asarray(model.classes_)) for kept, reached in pruned]
    if not is_forest:
        return centre, trees[0]
    plain = VotingClassifier(
        [(f"tree{i}", tree) for i, tree in enumerate(trees)],
        voting="soft",
        weights=_weights_of_trees(model),
        flatten_transform=False,
    )
    plain.estimators_, plain.classes_ = trees, trees[0].classes_
    plain.le_ = LabelEncoder().fit(plain.classes_)
    plain.named_estimators_ = dict(plain.estimators)
    return centre, plain


def _tree(kept: list[_Branch], reached: list[Node], centre: Floats, classes: Array) -> Any:
    """Return a tree with these branches."""
    from sklearn.tree import DecisionTreeClassifier

    order = np.argsort(classes, kind="stable")
    plain = DecisionTreeClassifier(random_state=0).fit(np.zeros((len(classes), len(centre))), classes[order])
    state = plain.tree_.__getstate__()
    table = np.zeros(len(kept), dtype=state["nodes"].dtype)
    for at, (left, right, feature, cut, missing_left) in enumerate(kept):
        row = table[at]
        row["left_child"], row["right_child"], row["feature"] = left, right, feature
        row["threshold"] = np.float32(cut - centre[feature]) if left >= 0 else cut
        row["n_node_samples"], row["weighted_n_node_samples"] = 1, 1.0
        if "missing_go_to_left" in (table.dtype.names or ()):
            row["missing_go_to_left"] = missing_left
    values = np.array([_shares(node) for node in reached])
    state |= {
        "node_count": len(kept),
        "nodes": table,
        "values": np.ascontiguousarray(values[:, None, order]),
    }
    state["max_depth"] = max(node.depth for node in reached)
    tree = type(plain.tree_)(len(centre), np.array([len(classes)], dtype=np.intp), 1)
    tree.__setstate__(state)
    plain.tree_ = tree
    return plain


class _BayesTrees(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Trees, some of whose leaves may use naive Bayes, for a conversion to ONNX.

    Attributes
    ----------
    trees : list of list
        The branches of each tree.
    leaves : list of list of int
        The leaf number of each node.
    prior : ndarray of shape (n_leaves, n_classes), float64
        Log-probabilities, of a leaf that predicts its majority class or of naive Bayes.
    centre, pull, level, penalty, tolerance : ndarray of shape (n_leaves, n_classes, n_features), float64
        A value x adds level - pull (x - centre)^2, and -penalty if it differs from the centre by more than the
        tolerance times x.
    weights : ndarray of shape (n_trees,), float64
    """

    def fit(self, X: Any, y: Any) -> _BayesTrees:
        """Raise: it is only converted."""
        raise NotImplementedError


def _one_leaf(model: WeightedNaiveBayes, columns: NDArray[np.intp]) -> _BayesTrees:
    """Return naive Bayes as a tree that consists of one leaf."""
    constants = _likelihoods(model, columns)._constants
    assert constants is not None
    plain = _BayesTrees()
    plain.classes_, plain.n_features_in_ = np.asarray(model.classes_), len(columns)
    plain.weights, plain.trees, plain.leaves = np.ones(1), [[(-1, -1, -2, -2.0, False)]], [[0]]
    plain.prior, plain.centre, plain.pull, plain.level, miss = (part[None] for part in constants[:5])
    plain.penalty, plain.tolerance = -miss, np.zeros(miss.shape)
    return plain


def _bayes_trees(model: Any, columns: NDArray[np.intp]) -> _BayesTrees:
    is_forest = isinstance(model, AdaptiveRandomForest)
    if len(model._categorical_):
        raise _unsupported("categories", "convert them to numbers before the tree")
    members = model._trees_ if is_forest else [None]
    n_classes = len(model.classes_)
    plain = _BayesTrees()
    plain.classes_, plain.n_features_in_ = np.asarray(model.classes_), len(columns)
    plain.weights = np.ones(1) if not is_forest else _weights_of_trees(model)
    plain.trees, plain.leaves = [], []
    priors: list[Floats] = []
    tables: list[Floats] = []
    for nodes, member in zip(model._nodes() if is_forest else [model.nodes_], members, strict=True):
        arrays = (model._pools_ if member is None else member.pools).arrays()
        branches, reached = _pruned(nodes, columns)
        plain.trees.append(branches)
        plain.leaves.append(numbers := [])
        for branch, node in zip(branches, reached, strict=True):
            numbers.append(len(priors))
            if branch[0] >= 0:
                continue
            table = np.zeros((5, n_classes, len(columns)))
            with np.errstate(divide="ignore"):
                priors.append(np.log(_shares(node)))
            if node.weight > 0.0 and uses_bayes(arrays, node.place, LEAVES.index(model.leaf)):
                slot = arrays.links[node.place, Link.SLOT]
                moments = arrays.gaussians[slot]
                features = (
                    np.arange(moments.shape[2]) if member is None else member.drawn[slot, : member.n_places]
                )
                at, place = np.nonzero(columns[:, None] == features)
                table[:, :, at] = _densities(moments[:, :, place])
            tables.append(table)
    plain.prior = np.array(priors)
    plain.centre, plain.pull, plain.level, plain.penalty, plain.tolerance = np.moveaxis(
        np.array(tables), 1, 0
    )
    return plain


def _weights_of_trees(model: AdaptiveRandomForest) -> Floats:
    """Return the weight of each tree: its accuracy."""
    n_classes = len(model.classes_)
    return np.array([(tree.tally[0] + 1.0) / (tree.tally[1] + n_classes) for tree in model._trees_])


def _densities(moments: Floats) -> Floats:
    """Return centre, pull, level, penalty and tolerance of the classes and features of a leaf."""
    observed = moments[:, Moment.OBSERVED]
    mean = moments[:, Moment.MEAN]
    deviation = moments[:, Moment.DEVIATION]
    is_normal = (deviation > 0.0) & (observed > 1.0)
    variance = np.where(is_normal, deviation / np.where(is_normal, observed - 1.0, 1.0), 1.0)
    is_new = ~is_normal & (observed <= 0.0)
    return np.stack([
        np.where(is_new, 1.0, mean),
        np.where(is_normal, 0.5 / variance, 0.0),
        np.where(is_normal, -0.5 * np.log(2.0 * np.pi * variance), 0.0),
        np.where(is_normal, 0.0, UNSEEN),
        # -1: any value differs.
        np.where(is_new, -1.0, SAME),
    ])  # fmt: skip


def _refitted(model: Refit, target: RunningScale | None) -> tuple[NDArray[np.intp], Any, Floats | None]:
    fit = model._fit_
    fitted = None if fit is None else fit.fit_once()
    if fit is None or fitted is None or fitted.model is None:
        raise _unsupported("no fitted estimator", "learn from at least min_rows rows of two classes first")
    if len(fit.categorical):
        raise _unsupported("categories", "convert them to numbers before the model")
    if target is not None:
        raise _unsupported("a scaled target", "pass scale='none'")
    learner = deepcopy(fitted.model)
    if not fit.is_numeric:
        _relabel(learner, np.asarray(model.classes_)[fitted.present])
    columns = np.arange(model.n_features_in_) if fit.columns is None else fit.columns
    return columns, learner, fitted.fill


def _relabel(learner: Any, labels: Array) -> None:
    """Let an estimator that was fitted on codes predict labels."""
    if hasattr(learner, "_le"):  # LightGBM
        encoder = LabelEncoder()
        encoder.classes_ = labels
        learner._le, learner._classes = encoder, labels
        learner._class_map = dict(zip(labels.tolist(), range(len(labels)), strict=True))
        return
    last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
    if type(last).__module__.startswith("sklearn.") or isinstance(last, _BayesTrees):
        for part in vars(last).values():  # some have their labels there
            if isinstance(part, LabelBinarizer | LabelEncoder):
                part.classes_ = labels
        if not isinstance(getattr(type(last), "classes_", None), property):
            last.classes_ = labels
    elif not np.array_equal(labels, np.arange(len(labels))):
        raise _unsupported(f"{type(learner).__name__} for these labels", "use labels 0, 1, ...")


def _restricted(
    model: Any, columns: NDArray[np.intp], n_features: int, way: str, target: RunningScale | None
) -> Any:
    """Return a copy of an estimator of scikit-learn for some of its columns."""
    if way == "whole" and len(columns) < n_features:
        plain = deepcopy(restrict_columns(model, columns))
        if hasattr(plain, "feature_count_"):
            plain.feature_count_ = plain.feature_count_[:, columns]
        return plain
    plain = deepcopy(model)
    plain.__dict__.pop("feature_names_in_", None)
    if len(columns) < n_features:
        if not hasattr(plain, "coef_") or way != "zeros":
            raise _unsupported(f"the learner {type(model).__name__} and a selection", "use a linear model")
        plain.coef_ = plain.coef_[..., columns].copy()
        plain.n_features_in_ = len(columns)
    if target is not None:
        plain.coef_ = plain.coef_ / target.factor
        plain.intercept_ = plain.intercept_ / target.factor + target.shift
    return plain


# -- ONNX ----------------------------------------------------------------------------------------------------------


def to_onnx(model: Any) -> ModelProto:
    """Return a fitted model as an ONNX graph that predicts the same.

    Parameters
    ----------
    model : StreamPipeline, selector, learner or Pipeline
        As for :func:`freeze`.

    Returns
    -------
    onnx.ModelProto
        Its input `X` has float64 values of shape (n_rows, n_features). A classifier returns the label and the
        probability (or score) of each class, a selector the selected columns.

    Raises
    ------
    ValueError
        As :func:`freeze`, or if skl2onnx has no converter.
    ImportError
        Without the extra `onnx`.
    """
    frozen = _freeze(model, plain=False)
    try:
        from onnx.checker import ValidationError, check_model
        from onnx.shape_inference import InferenceError
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType
        from skl2onnx.sklapi import CastTransformer
    except ImportError as error:
        raise ImportError(_ONNX_EXTRA) from error
    first, last = frozen.steps[0][1], frozen.steps[-1][1]
    n_features = first.n_features_in_
    vars(first).pop("feature_names_in_", None)  # the input is one array
    for _, step in frozen.steps:
        if _replaces_means(step) or _is_boosted(step) or isinstance(step, _BayesTrees):
            kind: Any = type(step)
            step.__class__ = _with_converter(kind)
    if type(last).__module__.startswith(("sklearn.tree", "sklearn.ensemble")) and not _is_boosted(last):
        # These compare values of 32 bits; forests add probabilities of 64.
        kinds = (np.float32, np.float64) if "_forest" in type(last).__module__ else (np.float32,)
        frozen.steps[-1:-1] = [(f"cast_to_{kind.__name__}", CastTransformer(kind)) for kind in kinds]
    labels = np.asarray(last.classes_) if is_classifier(last) else np.zeros(0, dtype=np.int32)
    # Converters write texts and integers of 32 bits; others are looked up by their codes.
    is_plain = labels.dtype.kind in "OU" or (
        labels.dtype.kind in "iu" and (labels == labels.astype("i4")).all()
    )
    if not is_plain:
        _relabel(last, np.arange(len(labels)))
    try:
        graph = convert_sklearn(
            frozen, "tamis", [("X", DoubleTensorType([None, n_features]))],
            options={id(last): {"zipmap": False}} if is_classifier(last) else {},
            target_opset={"": 21, "ai.onnx.ml": 3},
        )  # fmt: skip
        if not is_plain:
            _look_up(graph.graph, labels)
        check_model(graph, full_check=True)
    except (RuntimeError, NameError, ValidationError, InferenceError) as error:
        reason = str(error).splitlines()[0]
        raise _unsupported(f"{type(last).__name__}", f"skl2onnx cannot convert it ({reason})") from error
    return graph


def _look_up(graph: Any, labels: Array) -> None:
    """Replace codes, the first output, by labels."""
    from onnx import helper, numpy_helper

    output = graph.output[0]
    for node in graph.node:
        node.output[:] = ["codes" if name == output.name else name for name in node.output]
        node.input[:] = ["codes" if name == output.name else name for name in node.input]
    table = numpy_helper.from_array(labels, "labels_of_codes")
    graph.initializer.append(table)
    graph.node.append(helper.make_node("Gather", [table.name, "codes"], [output.name]))
    output.CopyFrom(helper.make_tensor_value_info(output.name, table.data_type, [None]))


def _replaces_means(step: Any) -> bool:
    """Return whether a step does nothing but replace NaN in each column."""
    return (
        isinstance(step, SimpleImputer)
        and not step.add_indicator
        and isinstance(step.missing_values, float)
        and math.isnan(step.missing_values)
        and step.statistics_.dtype.kind == "f"
        and bool(np.isfinite(step.statistics_).all())
    )


@functools.cache
def _with_converter(kind: type) -> type:
    """Return a subclass with a converter below; for the class itself, that of skl2onnx or onnxmltools remains.

    Those round thresholds and means to 32 bits.
    """
    from skl2onnx import update_registered_converter
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    def shape_of_numbers(operator: Any) -> None:
        operator.outputs[0].type = DoubleTensorType([None, 1])

    ours = type(kind.__name__, (kind,), {"__module__": kind.__module__})
    shapes, options, convert = shape_of_numbers, None, _convert_boosting
    if issubclass(kind, SimpleImputer):
        shapes, convert = _shape_of_imputer, _convert_imputer
    elif issubclass(kind, ClassifierMixin):
        shapes = calculate_linear_classifier_output_shapes
        options = {"zipmap": [True, False], "nocl": [True, False]}
        convert = _convert_bayes_trees if kind is _BayesTrees else _convert_boosting
    update_registered_converter(ours, f"Tamis{kind.__name__}", shapes, convert, options=options)
    return ours


def _shape_of_imputer(operator: Any) -> None:
    n_features = len(operator.raw_operator.statistics_)
    operator.outputs[0].type = type(operator.inputs[0].type)([None, n_features])


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Replace NaN by the mean: the runtime has an imputer for 32 bits only."""
    from onnx import TensorProto

    rows, replaced = operator.inputs[0].full_name, operator.outputs[0].full_name
    means, missing = scope.get_unique_variable_name("means"), scope.get_unique_variable_name("missing")
    values = operator.raw_operator.statistics_
    container.add_initializer(means, TensorProto.DOUBLE, [1, len(values)], values.tolist())
    container.add_node("IsNaN", rows, missing, op_version=20)
    container.add_node("Where", [missing, means, rows], replaced, op_version=16)


def _is_boosted(last: Any) -> bool:
    """Return whether an estimator is boosting whose trees compare values of 64 bits."""
    return type(last).__name__.startswith(("LGBM", "HistGradientBoosting"))


def _add_trees(scope: Any, container: Any, rows: str, trees: _Trees, n_targets: int) -> str:
    """Add trees, each with its target, branches and values of nodes; return the name of their sums."""
    from onnx import TensorProto, helper

    nodes = [
        (tree, at, max(feature, 0), max(left, 0), max(right, 0), int(goes_left), cut, left >= 0)
        for tree, (_, branches, _) in enumerate(trees)
        for at, (left, right, feature, cut, goes_left) in enumerate(branches)
    ]
    leaves = [
        (tree, at, target, float(values[at]))
        for tree, (target, branches, values) in enumerate(trees)
        for at, branch in enumerate(branches)
        if branch[0] < 0
    ]
    *columns, cuts, is_split = map(list, zip(*nodes, strict=True))
    *ids, weights = map(list, zip(*leaves, strict=True))
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    raw, total = (scope.get_unique_variable_name(name) for name in ("raw", "total"))
    container.add_node(
        "TreeEnsembleRegressor", rows, raw, op_domain="ai.onnx.ml", op_version=3, n_targets=n_targets,
        nodes_modes=["BRANCH_LEQ" if one else "LEAF" for one in is_split],
        nodes_values_as_tensor=helper.make_tensor(f"{raw}_cuts", TensorProto.DOUBLE, [len(cuts)], cuts),
        target_weights_as_tensor=helper.make_tensor(f"{raw}_leaves", TensorProto.DOUBLE, [len(weights)], weights),
        **{f"nodes_{name}": values for name, values in zip(names, columns, strict=True)},
        **{f"target_{name}": values for name, values in zip(("treeids", "nodeids", "ids"), ids, strict=True)},
    )  # fmt: skip
    container.add_node("Cast", raw, total, to=TensorProto.DOUBLE, op_version=13)
    return str(total)


def _add_labels(scope: Any, container: Any, shares: str, label: str, classes: Array) -> None:
    """Add the most likely label."""
    from onnx import TensorProto

    best, labels = (scope.get_unique_variable_name(name) for name in ("best", "labels"))
    is_text = classes.dtype.kind in "OU"
    kind = TensorProto.STRING if is_text else TensorProto.INT64
    container.add_initializer(
        labels, kind, [len(classes)], [str(c).encode() if is_text else int(c) for c in classes]
    )
    container.add_node("ArgMax", shares, best, axis=1, keepdims=0, op_version=13)
    container.add_node("Gather", [labels, best], label, op_version=13)


def _convert_boosting(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto

    model, rows = operator.raw_operator, operator.inputs[0].full_name
    boosted = _lightgbm_trees if type(model).__name__.startswith("LGBM") else _histogram_trees
    trees, base, link = boosted(model)
    total = _add_trees(scope, container, rows, trees, len(base))

    def new(name: str) -> str:
        return str(scope.get_unique_variable_name(name))

    start, scores = new("start"), operator.outputs[0].full_name if link is None else new("scores")
    container.add_initializer(start, TensorProto.DOUBLE, [1, len(base)], base)
    container.add_node("Add", [total, start], scores, op_version=14)
    if link is None:
        return
    label, shares = (output.full_name for output in operator.outputs)
    if link == "Softmax":
        container.add_node("Softmax", scores, shares, axis=1, op_version=13)
    else:
        one, second, first = new("one"), new("second"), new("first")
        container.add_initializer(one, TensorProto.DOUBLE, [1], [1.0])
        container.add_node("Sigmoid", scores, second, op_version=13)
        container.add_node("Sub", [one, second], first, op_version=14)
        container.add_node("Concat", [first, second], shares, axis=1, op_version=13)
    _add_labels(scope, container, shares, label, np.asarray(model.classes_))


def _histogram_trees(model: Any) -> tuple[_Trees, list[float], str | None]:
    """Return the trees of scikit-learn's histogram boosting, the score without trees, and the link."""
    kind = type(model._loss.link).__name__
    links = {
        "LogitLink": "Sigmoid",
        "HalfLogitLink": "Sigmoid",
        "MultinomialLogit": "Softmax",
        "IdentityLink": None,
    }
    if kind not in links:
        raise _unsupported(f"loss={model.loss!r}", "use log_loss, squared_error, absolute_error or quantile")
    trees: _Trees = []
    for predictors in model._predictors:
        for target, predictor in enumerate(predictors):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                raise _unsupported("categories", "convert them to numbers before the model")
            names = ("left", "right", "feature_idx", "num_threshold", "missing_go_to_left")
            table = zip(nodes["is_leaf"].tolist(), *(nodes[name].tolist() for name in names), strict=True)
            branches = [
                (-1, -1, -2, -2.0, False) if leaf else (*row[:4], bool(row[4])) for leaf, *row in table
            ]
            trees.append((target, branches, nodes["value"].tolist()))
    return trees, np.ravel(model._baseline_prediction).tolist(), links[kind]


def _lightgbm_trees(model: Any) -> tuple[_Trees, list[float], str | None]:
    """Return the trees of LightGBM, the score without trees, and the link."""
    dump = model.booster_.dump_model()
    objective, n_models = dump.get("objective", "regression").split(), dump["num_tree_per_iteration"]
    link = {"binary": "Sigmoid", "multiclass": "Softmax", "regression": None}.get(objective[0], "")
    if (
        link == ""
        or not set(objective[1:]) <= {"sigmoid:1", f"num_class:{n_models}"}
        or dump.get("average_output")
    ):
        raise _unsupported(f"the objective {' '.join(objective)}", "use binary, multiclass or regression")

    def add(node: dict[str, Any], branches: list[_Branch], values: list[float]) -> int:
        here = len(branches)
        branches.append((-1, -1, -2, -2.0, False))
        values.append(node.get("leaf_value", 0.0))
        if "split_feature" in node:
            if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
                raise _unsupported(
                    "categories, or zeros as missing values", "convert them to numbers before the model"
                )
            # Where no missing value occurred in training, LightGBM takes 0 for it.
            missing_left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0.0
            left, right = (add(node[f"{side}_child"], branches, values) for side in ("left", "right"))
            branches[here] = (left, right, node["split_feature"], node["threshold"], missing_left)
        return here

    trees: _Trees = []
    for tree, info in enumerate(dump["tree_info"]):
        trees.append((tree % n_models, [], []))
        add(info["tree_structure"], *trees[-1][1:])
    return trees, [0.0] * n_models, link


def _convert_bayes_trees(scope: Any, operator: Any, container: Any) -> None:
    """Add the leaf of each row and tree, the log-probabilities of its classes, and their weighted mean."""
    from onnx import TensorProto

    model, rows = operator.raw_operator, operator.inputs[0].full_name

    def node(kind: str, *inputs: str, version: int = 13, output: str | None = None, **how: Any) -> str:
        name = output or str(scope.get_unique_variable_name(kind.lower()))
        container.add_node(kind, list(inputs), name, op_version=version, **how)
        return name

    def constant(values: Any, kind: int = TensorProto.DOUBLE) -> str:
        name, values = str(scope.get_unique_variable_name("constant")), np.asarray(values)
        container.add_initializer(name, kind, values.shape, values.ravel().tolist())
        return name

    trees = [
        (target, branches, [float(number) for number in numbers])
        for target, (branches, numbers) in enumerate(zip(model.trees, model.leaves, strict=True))
    ]
    n_trees = len(trees)
    # (n, trees)
    leaf = node("Cast", _add_trees(scope, container, rows, trees, n_trees), to=TensorProto.INT64)

    def table(values: Floats) -> str:
        return node("Gather", constant(values), leaf, axis=0)

    scores = table(model.prior)
    if model.pull.any() or model.level.any() or model.penalty.any():
        # (n, 1, 1, features) against (n, trees, classes, features)
        values = node("Unsqueeze", rows, constant([1, 2], TensorProto.INT64))
        gap = node("Sub", values, table(model.centre), version=14)
        square = node("Mul", gap, gap, version=14)
        parts = node(
            "Sub", table(model.level), node("Mul", table(model.pull), square, version=14), version=14
        )
        if model.penalty.any():
            allowed = node("Mul", table(model.tolerance), node("Abs", values), version=14)
            differs = node("Cast", node("Greater", node("Abs", gap), allowed), to=TensorProto.DOUBLE)
            parts = node("Sub", parts, node("Mul", table(model.penalty), differs, version=14), version=14)
        # A missing value is ignored
        parts = node("Where", node("IsNaN", values), constant([0.0]), parts, version=16)
        sums = node("ReduceSum", parts, constant([3], TensorProto.INT64), keepdims=0)
        scores = node("Add", scores, sums, version=14)
    votes = node("Softmax", scores, axis=2)
    weights = (model.weights / model.weights.sum())[:, None]
    label, shares = (output.full_name for output in operator.outputs)
    weighted = node("Mul", votes, constant(weights), version=14)
    node("ReduceSum", weighted, constant([1], TensorProto.INT64), keepdims=0, output=shares)
    _add_labels(scope, container, shares, label, model.classes_)
