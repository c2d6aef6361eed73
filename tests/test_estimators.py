"""Every public estimator: scikit-learn's checks as it is, and columns by name."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import tamis
from tamis import (
    FIRES,
    HUWRS,
    IFC2F,
    OFS,
    VFDR,
    AlphaInvesting,
    AlphaInvestingPerTarget,
    ByName,
    FisherScore,
    FixedSubset,
    ForwardPartialCorrelation,
    HEFTStream,
    HoeffdingAdaptiveTree,
    PerTarget,
    Refit,
    ResetOnDrift,
    SGDLogisticRegression,
    SparseFSA,
    StreamPipeline,
    WeightedKNN,
    WeightedNaiveBayes,
)  # fmt: skip
from tamis.catalog import CATALOG

ORDER_MATTERS = (
    "AACO", "AdaptiveIFC2F", "AlphaInvesting", "EFS", "ETANA", "FCBF", "FETANA", "FIRES", "FixedSubset",
    "ForwardPartialCorrelation", "IFC2F", "OFS", "Perceptron", "Refit", "SGDLinearSVM", "SGDLogisticRegression", "SOFS",
)  # fmt: skip
# Why a row of weight 2 is not two rows, which the check shuffles; scikit-learn expects it of its own SGDClassifier and
# RandomForestClassifier, too.
COPIES_DIFFER = dict.fromkeys(ORDER_MATTERS, "the order of rows matters") | {
    entry.name: entry.copies_differ for entry in CATALOG if entry.copies_differ
}
SLOW = ("AACO", "AdaptiveIFC2F", "ETANA", "FETANA", "FixedSubset", "HEFTStream", "IFC2F", "Refit")
NEEDED = {  # they have no default selector
    "ByName": lambda: ByName(FisherScore()),
    "AlphaInvestingPerTarget": lambda: AlphaInvestingPerTarget(AlphaInvesting()),
    "PerTarget": lambda: PerTarget(FisherScore()),
}


def public_classes() -> list[type]:
    """Return the concrete estimators that a package exports, and those of the adapters."""
    names = [name for _, name, is_package in pkgutil.walk_packages(tamis.__path__, "tamis.") if is_package]
    modules = [tamis, *map(importlib.import_module, (name for name in names if "spark" not in name))]
    modules += [importlib.import_module("tamis.adapters.river")]
    members = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    found = {one for one in members if inspect.isclass(one) and issubclass(one, BaseEstimator)}
    return sorted((one for one in found if not inspect.isabstract(one)), key=lambda one: one.__name__)


CLASSES = public_classes()


# Few members and steps where the default would only take longer.
SMALL: dict[str, dict[str, Any]] = {
    "AdaptiveIFC2F": {"max_steps": 5}, "AdaptiveRandomForest": {"n_estimators": 2}, "FETANA": {"n_iterations": 300},
    "HEFTStream": {"n_estimators": 2}, "HUWRS": {"n_estimators": 2}, "OzaBoost": {"n_estimators": 2},
    "SGBT": {"n_estimators": 3}, "StreamingRandomPatches": {"n_estimators": 2},
}  # fmt: skip
# Parameters that lead to other code.
VARIANTS = [
    FIRES(model="gaussian"), OFS(information="partial"), SparseFSA(loss="lorenz"), SparseFSA(loss="huber"),
    SGDLogisticRegression(average=True), WeightedKNN(3, weight=None), WeightedNaiveBayes(None, weight=None),
    HoeffdingAdaptiveTree(leaf="nb"), VFDR(ordered=False, drift=0.002), Refit("hist-boosting"),
    Refit("random-forest-regressor"), ResetOnDrift(GaussianNB()), FixedSubset(objective="squared-error"),
    IFC2F(order="relevance", random_state=0),
    StreamPipeline(FisherScore(1.0), SGDClassifier(random_state=0), batch_size=10),
    StreamPipeline(
        ForwardPartialCorrelation(0.5, task="regression"), SGDRegressor(random_state=0), batch_size=10
    ),
]  # fmt: skip


def made(cls: type) -> Any:
    return NEEDED.get(cls.__name__, cls)(**SMALL.get(cls.__name__, {}))


def expected_to_fail(estimator: Any) -> dict[str, str]:
    found, reason = dict[str, str](), COPIES_DIFFER.get(type(estimator).__name__)
    if reason:
        found |= {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if estimator.get_params().get("objective") == "squared-error":
        names = ("estimator_sparse_array", "estimator_sparse_matrix", "regressors_no_decision_function")
        found |= {f"check_{name}": "predict_proba has the levels of the number" for name in names}
    return found


def takes_arrays(cls: type) -> bool:
    return bool(get_tags(made(cls)).input_tags.two_d_array)


def test_all_are_found() -> None:
    names = {cls.__name__ for cls in CLASSES}
    listed = [entry.load() for entry in (*tamis.catalog.CATALOG, *tamis.catalog.LEARNERS)]
    assert {one.__name__ for one in listed if one.__module__.startswith("tamis")} <= names
    assert names >= {"ByName", "GramInvesting", "LORDPlusPlus", "RiverClassifier", "StreamPipeline"}
    assert {cls.__name__ for cls in CLASSES if not takes_arrays(cls)} >= {
        "ByName",
        "GramInvesting",
        "LORDPlusPlus",
    }
    assert all(hasattr(cls, "fit") for cls in CLASSES if takes_arrays(cls))


def examined(is_slow: bool) -> list[Any]:
    every = [*(made(cls) for cls in CLASSES if takes_arrays(cls)), *VARIANTS]
    return [one for one in every if (type(one).__name__ in SLOW) is is_slow]


@parametrize_with_checks(examined(is_slow=False), expected_failed_checks=expected_to_fail)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(examined(is_slow=True), expected_failed_checks=expected_to_fail)
def test_scikit_learn_checks_that_take_seconds(estimator: Any, check: Any) -> None:
    check(estimator)


# -- labels that were not declared -------------------------------------------------------------------------

LEARNERS = [
    cls for cls in CLASSES if takes_arrays(cls) and hasattr(cls, "partial_fit") and hasattr(cls, "predict")
]


@pytest.mark.parametrize(
    "model",
    [
        *(made(cls) for cls in LEARNERS if get_tags(made(cls)).estimator_type == "classifier"),
        ResetOnDrift(GaussianNB()),
        HUWRS(estimator=GaussianNB()),
        HEFTStream(estimators=[GaussianNB(), "naive-bayes"]),
        StreamPipeline(FisherScore(2), GaussianNB()),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_labels_may_appear_at_any_time(model: Any) -> None:
    X, _ = frame_and_labels()
    two, three = np.digitize(X["b"], [0.0]), np.digitize(X["b"], [-0.5, 0.5])
    model.partial_fit(X[:100], two[:100])
    for at in range(100, 300, 50):
        model.partial_fit(X[at : at + 50], three[at : at + 50])
    assert sorted(model.classes_) == [0, 1, 2]
    assert set(model.predict(X)) <= {0, 1, 2}
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X).shape == (300, 3)


# -- columns by name ---------------------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d"]
CHANGED = {
    "reordered": lambda frame: frame[["b", "a", "c", "d"]],
    "renamed": lambda frame: frame.rename(columns={"b": "z"}),
    "missing": lambda frame: frame[["a", "b", "c"]],
    "extra": lambda frame: frame.assign(e=0.5),
}
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score", "partial_fit")
WRAPPERS = [
    ResetOnDrift(GaussianNB()),
    StreamPipeline(FisherScore(2), GaussianNB()),
    StreamPipeline(None, ResetOnDrift(GaussianNB())),
    StreamPipeline(FisherScore(2), Refit("hist-boosting")),
    Refit("hist-boosting-regressor"),
]


def frame_and_labels() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return pd.DataFrame(X, columns=NAMES), (X[:, 1] - X[:, 2] > 0).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        *(made(cls) for cls in CLASSES if takes_arrays(cls) and any(hasattr(cls, name) for name in METHODS)),
        *WRAPPERS,
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_columns_have_the_names_of_the_first_frame(model: Any) -> None:
    X, y = frame_and_labels()
    model.fit(X, y)
    assert model.feature_names_in_.tolist() == NAMES
    found = [name for name in METHODS if hasattr(model, name)]
    assert found
    for name in found:
        arguments = (y,) if name in ("score", "partial_fit") else ()
        for change in CHANGED.values():
            with pytest.raises(ValueError, match=r"[Ff]eature"):
                getattr(model, name)(change(X), *arguments)
        getattr(model, name)(X, *arguments)


@pytest.mark.parametrize(
    "cls", [one for one in CLASSES if hasattr(one, "partial_fit")], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("kind", ["array", "frame", "list"])
def test_an_empty_batch_changes_nothing(cls: type, kind: str) -> None:
    """A poll of a queue may return no rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    y = (X["a"] > 0).to_numpy().astype(int)
    empty = {"array": X.to_numpy()[:0], "frame": X[:0], "list": []}[kind]
    if kind != "frame" and not takes_arrays(cls):
        pytest.skip("its columns have names")
    new = made(cls)
    assert new.partial_fit(empty, y[:0]) is new
    assert not [name for name in vars(new) if name.endswith("_")]
    fitted = made(cls).partial_fit(X, y)
    dumps = (
        pickle.dumps if cls.__name__ == "RiverClassifier" else tamis.dumps
    )  # Tamis stores no model of River
    before = dumps(fitted)
    assert fitted.partial_fit(empty, y[:0]) is fitted
    assert dumps(fitted) == before


@pytest.mark.parametrize("entry", [one for one in CATALOG if one.family == "rows"], ids=lambda one: one.key)
def test_select_from_model_takes_every_row_selector(entry: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = X[:, 1] - X[:, 4] + 0.5 * rng.normal(size=600) > 0
    model = SelectFromModel(entry.load()(**dict(entry.parameters)), max_features=2, threshold=-np.inf).fit(
        X, y
    )
    importances, scores = model.estimator_.feature_importances_, model.estimator_.scores_
    assert importances.shape == (6,)
    assert (importances >= 0).all()
    np.testing.assert_array_equal(np.argsort(importances, kind="stable"), np.argsort(scores, kind="stable"))
    assert model.get_support().sum() == 2
    np.testing.assert_array_equal(
        np.flatnonzero(model.get_support()), np.sort(np.argsort(-importances, kind="stable")[:2])
    )


@pytest.mark.parametrize("cls", CLASSES, ids=lambda one: one.__name__)
def test_a_copy_has_the_bytes_of_the_model(cls: type) -> None:
    """What two parts of a model share, the parts of its copy share, too."""
    if not hasattr(cls, "partial_fit") or cls.__name__ == "RiverClassifier":
        pytest.skip("it cannot be updated, or is not saved")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(260, 4)), columns=list("abcd"))
    model = made(cls).partial_fit(X, (X["a"] > 0).to_numpy().astype(int))
    twin = copy.deepcopy(model)
    assert tamis.dumps(twin) == tamis.dumps(model)
    for one in (twin, model):
        one.partial_fit(X[:60], (X["b"][:60] > 0).to_numpy().astype(int))
    assert tamis.dumps(twin) == tamis.dumps(model)
