"""Fitted models as plain scikit-learn pipelines and as ONNX: for a service that predicts and does not learn.

=====================================  ==========================================================================
model                                  becomes
=====================================  ==========================================================================
a row selector                         a `VarianceThreshold` whose `get_support` is the selection
the scale of a `StreamPipeline`        a `MinMaxScaler` from -5 to 5, which limits standardised values
Perceptron, logistic regression, SVM   an `SGDClassifier` with their weights
`WeightedNaiveBayes`                   a `GaussianNB`: a variance is divided by the weight of its feature
Hoeffding trees, majority leaves       a `DecisionTreeClassifier`
forests of these trees                 a `VotingClassifier`
`Refit`                                its estimator, for the columns of the last fit
an estimator of scikit-learn           a copy, for the selected columns
=====================================  ==========================================================================
"""

from __future__ import annotations

from copy import deepcopy
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelEncoder, MinMaxScaler
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats
from tamis.base import RowSelector
from tamis.learners.class_likelihoods import ClassLikelihoods
from tamis.learners.column_masking import restrict_columns
from tamis.learners.hoeffding import AdaptiveRandomForest, HoeffdingTree
from tamis.learners.hoeffding.records import Node
from tamis.learners.linear import Perceptron, SGDLinearSVM, SGDLogisticRegression
from tamis.learners.naive_bayes import WeightedNaiveBayes
from tamis.learners.refit import Refit
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
        If scikit-learn has no counterpart: trees whose leaves use naive Bayes, categories, other learners.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FIRES, SGDLogisticRegression, StreamPipeline
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 30))
    >>> model = StreamPipeline(FIRES(2), SGDLogisticRegression()).fit(X, X[:, 3] > X[:, 9])
    >>> plain = freeze(model)  # or model.freeze()
    >>> [type(step).__name__ for _, step in plain.steps]
    ['VarianceThreshold', 'SimpleImputer', 'MinMaxScaler', 'SGDClassifier']
    >>> bool((plain.predict(X) == model.predict(X)).all())
    True
    """
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        steps = [step for name, one in model.steps for step in _steps_of_step(name, one)]
    elif hasattr(model, "_current_models"):  # a StreamPipeline, which this module must not import
        if model.categories_:
            raise _unsupported("categories", "convert them to numbers before the pipeline")
        steps = _steps_of_models(model._current_models())
    elif isinstance(model, RowSelector):
        steps = [("columns", _columns(model.get_support(indices=True), model.n_features_in_))]
    else:
        everything = np.arange(model.n_features_in_)
        steps = _steps_of_learner(model, everything, everything.size, "columns", None)
    pipeline = Pipeline(steps)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        first = pipeline.steps[0][1]
        first.feature_names_in_ = np.array(names, dtype=object)
    return pipeline


def _unsupported(what: str, advice: str) -> ValueError:
    return ValueError(f"A model with {what} cannot be frozen: {advice}.")


def _steps_of_step(name: str, one: Any) -> list[tuple[str, Any]]:
    """Return the steps that replace a step of a scikit-learn pipeline."""
    if one is None or isinstance(one, str) or not type(one).__module__.startswith("tamis."):
        return [(name, deepcopy(one))]
    return [(f"{name}_{inner}", step) for inner, step in freeze(one).steps]


def _steps_of_models(models: SelectiveLearner) -> list[tuple[str, Any]]:
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
    steps = _steps_of_learner(learner.model, columns, models.n_features, learner.way, target)
    if scale is None:
        return steps
    used = steps[0][1].get_support(indices=True)
    between: list[tuple[str, Any]] = [("scale", _scaler(scale, used))]
    if not learner.accepts_nan:
        between.insert(0, ("impute", SimpleImputer().fit(scale.shift[used][None])))
    return [steps[0], *between, *steps[1:]]


def _steps_of_learner(
    model: Any, columns: NDArray[np.intp], n_features: int, way: str, target: RunningScale | None
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
        learner = _naive_bayes(model, columns)
    elif isinstance(model, HoeffdingTree):
        learner = _tree(model.nodes_, model, columns)
    elif isinstance(model, AdaptiveRandomForest):
        learner = _forest(model, columns)
    elif type(model).__module__.startswith("sklearn."):
        learner = _restricted(model, columns, n_features, way, target)
    else:
        raise _unsupported(f"the learner {type(model).__name__}", "predict with the model itself")
    return [("columns", _columns(columns, n_features)), *steps, ("learner", learner)]


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


def _naive_bayes(model: WeightedNaiveBayes, columns: NDArray[np.intp]) -> GaussianNB:
    model.predict_proba(np.zeros((1, model.n_features_in_)))  # computes what the restricted model shares
    view = model.restrict_columns(columns)
    likelihoods: ClassLikelihoods = view._likelihoods_
    constants = likelihoods._constants
    if constants is None or len(likelihoods._columns) or constants[6].size:
        raise _unsupported("categories, or features that are constant within a class", "use another learner")
    prior, centre, pull, level = constants[:4]
    informative = (pull > 0.0).all(axis=0)
    # e log P = level - pull (x - centre)^2. A Gaussian of variance 1 / (2 pull) has another level: the prior takes it.
    variance = np.where(informative, 1.0 / np.where(informative, 2.0 * pull, 1.0), 1.0)
    own = np.where(informative, -0.5 * np.log(2.0 * np.pi * variance), 0.0)
    shift = prior + (np.where(informative, level, 0.0) - own).sum(axis=1)
    shift -= shift.max()
    if shift.min() < -_LARGEST_SHIFT or not informative.any():
        raise _unsupported(
            "such different variances of the classes", "use another learner, or fewer features"
        )
    plain = GaussianNB()
    plain.partial_fit(np.zeros((1, len(columns))), model.classes_[:1], classes=np.sort(model.classes_))
    order = np.argsort(model.classes_, kind="stable")
    plain.theta_ = np.where(informative, centre, 0.0)[order]
    # A feature without weight is as likely in each class.
    plain.var_ = np.where(informative, variance, 1e300)[order]
    share = np.exp(shift)[order]
    plain.class_prior_, plain.class_count_, plain.epsilon_ = (
        share / share.sum(),
        likelihoods.n_rows[order],
        0.0,
    )
    return plain


def _forest(model: AdaptiveRandomForest, columns: NDArray[np.intp]) -> Any:
    from sklearn.ensemble import VotingClassifier

    trees = [_tree(nodes, model, columns) for nodes in model._nodes()]
    n_classes = len(model.classes_)
    weights = np.array([(tree.tally[0] + 1.0) / (tree.tally[1] + n_classes) for tree in model._trees_])
    plain = VotingClassifier(
        [(f"tree{i}", tree) for i, tree in enumerate(trees)],
        voting="soft",
        weights=weights,
        flatten_transform=False,
    )
    plain.estimators_, plain.classes_ = trees, trees[0].classes_
    plain.le_ = LabelEncoder().fit(plain.classes_)
    plain.named_estimators_ = dict(plain.estimators)
    return plain


def _tree(nodes: list[Node], model: Any, columns: NDArray[np.intp]) -> Any:
    """Return a tree with the same splits; one on a feature that is not among the columns leads to the heavier child."""
    from sklearn.tree import DecisionTreeClassifier

    if model.leaf != "majority":
        raise _unsupported(f"leaf={model.leaf!r}", "train it with leaf='majority'")
    children: dict[int, list[int]] = {}
    for at, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(at)
    position = {int(j): k for k, j in enumerate(columns)}
    kept: list[
        tuple[int, int, int, float, bool]
    ] = []  # left, right, feature, threshold, missing values go left
    values: list[Floats] = []

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
        total = node.class_weights.sum()
        n_classes = len(node.class_weights)
        values.append(node.class_weights / total if total > 0.0 else np.full(n_classes, 1.0 / n_classes))
        if node.feature is not None and node.threshold is not None:
            # scikit-learn's trees compare values of 32 bits.
            cut = float(np.float32(node.threshold))
            kept[here] = (add(left), add(right), position[node.feature], cut, heavier_left)
        return here

    add(0)
    order = np.argsort(model.classes_, kind="stable")
    labels = np.asarray(model.classes_)[order]
    plain = DecisionTreeClassifier(random_state=0).fit(np.zeros((len(labels), len(columns))), labels)
    state = plain.tree_.__getstate__()
    table = np.zeros(len(kept), dtype=state["nodes"].dtype)
    for at, (left, right, feature, cut, missing_left) in enumerate(kept):
        row = table[at]
        row["left_child"], row["right_child"], row["feature"], row["threshold"] = left, right, feature, cut
        row["n_node_samples"], row["weighted_n_node_samples"] = 1, 1.0
        if "missing_go_to_left" in (table.dtype.names or ()):
            row["missing_go_to_left"] = missing_left
    state |= {
        "node_count": len(kept),
        "nodes": table,
        "values": np.ascontiguousarray(np.array(values)[:, None, order]),
    }
    state["max_depth"] = max(node.depth for node in nodes)
    tree = type(plain.tree_)(len(columns), np.array([len(labels)], dtype=np.intp), 1)
    tree.__setstate__(state)
    plain.tree_ = tree
    return plain


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
    elif type(learner).__module__.startswith("sklearn."):
        learner.classes_ = labels
        for part in getattr(learner, "steps", ())[-1:]:
            part[1].classes_ = labels
    elif not np.array_equal(labels, np.arange(len(labels))):
        raise _unsupported(f"{type(learner).__name__} for these labels", "use labels 0, 1, ...")


def _restricted(
    model: Any, columns: NDArray[np.intp], n_features: int, way: str, target: RunningScale | None
) -> Any:
    """Return a copy of an estimator of scikit-learn for some of its columns."""
    if way == "whole" and len(columns) < n_features:
        return deepcopy(restrict_columns(model, columns))
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
    frozen = freeze(model)
    try:
        from skl2onnx import convert_sklearn, update_registered_converter
        from skl2onnx.common.data_types import DoubleTensorType
        from skl2onnx.sklapi import CastTransformer
    except ImportError as error:
        raise ImportError(_ONNX_EXTRA) from error
    first, last = frozen.steps[0][1], frozen.steps[-1][1]
    n_features = first.n_features_in_
    vars(first).pop("feature_names_in_", None)  # the input is one array
    _register_lightgbm(last)
    update_registered_converter(
        SimpleImputer, "TamisImputer", _shape_of_imputer, _convert_imputer, overwrite=True
    )
    if type(last).__module__.startswith(("sklearn.tree", "sklearn.ensemble")):
        # These compare values of 32 bits; forests add probabilities of 64.
        kinds = (np.float32, np.float64) if "_forest" in type(last).__module__ else (np.float32,)
        frozen.steps[-1:-1] = [(f"cast_to_{kind.__name__}", CastTransformer(kind)) for kind in kinds]
    return convert_sklearn(
        frozen, "tamis", [("X", DoubleTensorType([None, n_features]))],
        options={id(last): {"zipmap": False}} if is_classifier(last) else {},
        target_opset={"": 21, "ai.onnx.ml": 3},
    )  # fmt: skip


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


def _register_lightgbm(last: Any) -> None:
    """Register the converter below: that of onnxmltools rounds thresholds to 32 bits."""
    if not type(last).__module__.startswith("lightgbm."):
        return
    from skl2onnx import update_registered_converter
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    def shape_of_numbers(operator: Any) -> None:
        operator.outputs[0].type = DoubleTensorType([None, 1])

    shapes, options = shape_of_numbers, None
    if is_classifier(last):
        shapes, options = (
            calculate_linear_classifier_output_shapes,
            {"zipmap": [True, False], "nocl": [True, False]},
        )
    name = f"Tamis{type(last).__name__}"
    update_registered_converter(type(last), name, shapes, _convert_lightgbm, overwrite=True, options=options)


def _convert_lightgbm(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto, helper

    model, rows = operator.raw_operator, operator.inputs[0].full_name
    dump = model.booster_.dump_model()
    objective, n_models = dump.get("objective", "regression").split(), dump["num_tree_per_iteration"]
    link = {"binary": "Sigmoid", "multiclass": "Softmax", "regression": None}.get(objective[0], "")
    if (
        link == ""
        or not set(objective[1:]) <= {"sigmoid:1", f"num_class:{n_models}"}
        or dump.get("average_output")
    ):
        raise _unsupported(f"the objective {' '.join(objective)}", "use binary, multiclass or regression")

    def new(name: str) -> str:
        return str(scope.get_unique_variable_name(name))

    nodes: dict[str, list[Any]] = {
        name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                              "missing_value_tracks_true")
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, node: dict[str, Any]) -> int:
        at = next(numbers)
        is_leaf = "leaf_value" in node and "split_feature" not in node
        row = [tree, at, 0, 0.0, "LEAF", 0, 0, 0]
        for values, value in zip(nodes.values(), row, strict=True):
            values.append(value)
        here = len(nodes["nodeids"]) - 1
        if is_leaf:
            for values, value in zip(
                leaves.values(), (tree, at, tree % n_models, node["leaf_value"]), strict=True
            ):
                values.append(value)
            return at
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            raise _unsupported(
                "categories, or zeros as missing values", "convert them to numbers before the model"
            )
        # Where no missing value occurred in training, LightGBM takes 0 for it.
        missing_left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0.0
        left, right = add(tree, node["left_child"]), add(tree, node["right_child"])
        row = [
            tree,
            at,
            node["split_feature"],
            node["threshold"],
            "BRANCH_LEQ",
            left,
            right,
            int(missing_left),
        ]
        for values, value in zip(nodes.values(), row, strict=True):
            values[here] = value
        return at

    for tree, info in enumerate(dump["tree_info"]):
        numbers = count()
        add(tree, info["tree_structure"])
    raw, total = new("raw"), new("total")
    thresholds, weights = nodes.pop("values"), leaves.pop("weights")
    container.add_node(
        "TreeEnsembleRegressor", rows, raw, op_domain="ai.onnx.ml", op_version=3, n_targets=n_models,
        nodes_values_as_tensor=helper.make_tensor(new("cuts"), TensorProto.DOUBLE, [len(thresholds)], thresholds),
        target_weights_as_tensor=helper.make_tensor(new("leaves"), TensorProto.DOUBLE, [len(weights)], weights),
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in leaves.items()},
    )  # fmt: skip
    to_double = {"to": TensorProto.DOUBLE, "op_version": 13}
    if link is None:
        container.add_node("Cast", raw, operator.outputs[0].full_name, **to_double)
        return
    container.add_node("Cast", raw, total, **to_double)
    label, shares = (output.full_name for output in operator.outputs)
    if link == "Softmax":
        container.add_node("Softmax", total, shares, axis=1, op_version=13)
    else:
        one, second, first = new("one"), new("second"), new("first")
        container.add_initializer(one, TensorProto.DOUBLE, [1], [1.0])
        container.add_node("Sigmoid", total, second, op_version=13)
        container.add_node("Sub", [one, second], first, op_version=14)
        container.add_node("Concat", [first, second], shares, axis=1, op_version=13)
    best, labels = new("best"), new("labels")
    classes = np.asarray(model.classes_)
    is_text = classes.dtype.kind in "OU"
    kind = TensorProto.STRING if is_text else TensorProto.INT64
    container.add_initializer(
        labels, kind, [len(classes)], [str(c).encode() if is_text else int(c) for c in classes]
    )
    container.add_node("ArgMax", shares, best, axis=1, keepdims=0, op_version=13)
    container.add_node("Gather", [labels, best], label, op_version=13)
