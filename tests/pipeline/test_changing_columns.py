"""Models whose columns come and go: the answers of a fixed wide space, for every selector and learner."""

from __future__ import annotations

import copy
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import (
    CVFDT,
    FIRES,
    VFDR,
    Auto,
    ByName,
    FisherScore,
    HoeffdingAdaptiveTree,
    HoeffdingTree,
    Perceptron,
    Refit,
    SGDLinearSVM,
    SGDLogisticRegression,
    StreamPipeline,
    TScore,
    WeightedKNN,
    WeightedNaiveBayes,
)
from tamis.catalog import CATALOG, LEARNERS
from tamis.checks import named_model_checks
from tamis.errors import DataError
from tamis.learners import ResetOnDrift
from tests.twins.named_columns import WideColumns

MISSING = [
    WeightedNaiveBayes(), WeightedNaiveBayes(None, weight=None), WeightedNaiveBayes(weight="entropy"), WeightedKNN(),
    WeightedKNN(weight=None), HoeffdingTree(), HoeffdingTree(splitter="quantiles"), HoeffdingTree(leaf="nb"),
    HoeffdingAdaptiveTree(), CVFDT(window=700, check_every=100, test_every=200, test_rows=50), VFDR(),
]  # fmt: skip
ZERO = [
    SGDLogisticRegression(learning_rate="constant"), Perceptron(), SGDLinearSVM(average=True),
    SGDLinearSVM(average=200),
]  # fmt: skip


def wide_rows(absent: float, n_classes: int = 2) -> tuple[Any, Any]:
    """Rows whose last columns are absent in the first thousand."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(2500, 8))
    y = np.digitize(X[:, 1] + 2.0 * X[:, 6] * (np.arange(2500) > 1000), [0.0, 1.0][: n_classes - 1])
    X[:1000, 5:] = absent
    return X, y


@pytest.mark.parametrize("learner", [*MISSING, *ZERO], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_widened_learners_have_the_bits_of_wide_ones(learner: Any, n_classes: int) -> None:
    X, y = wide_rows(0.0 if learner in ZERO else np.nan, n_classes)
    grown = (
        clone(learner).partial_fit(X[:600, :5], y[:600]).partial_fit(X[600:1000, :5], y[600:1000]).widen(8)
    )
    wide = clone(learner).partial_fit(X[:600], y[:600]).partial_fit(X[600:1000], y[600:1000])
    for part in (slice(1000, 1600), slice(1600, 2500)):
        grown, wide = (
            tamis.loads(tamis.dumps(grown)).partial_fit(X[part], y[part]),
            wide.partial_fit(X[part], y[part]),
        )
    for name in ("predict_proba", "decision_function"):
        if hasattr(learner, name):
            found, expected = (getattr(one, name)(X[-500:]) for one in (grown, wide))
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("learner", MISSING[:8], ids=repr)
def test_forgotten_columns_are_as_if_they_had_been_missing(learner: Any) -> None:
    X, y = wide_rows(np.nan)
    X[:1000, 7] = np.random.default_rng(5).normal(size=1000)  # not informative, so no tree splits on it
    without = X.copy()
    without[:1000, 7] = np.nan
    forgot = clone(learner).partial_fit(X[:1000], y[:1000]).forget_columns([7])
    never = clone(learner).partial_fit(without[:1000], y[:1000])
    for one in (forgot, never):
        one.partial_fit(X[1000:], y[1000:])
    assert forgot.predict_proba(X[-500:]).tobytes() == never.predict_proba(X[-500:]).tobytes()


def test_a_column_that_a_tree_splits_on_is_not_forgotten() -> None:
    X, y = wide_rows(np.nan)
    for tree in (HoeffdingTree(), VFDR()):
        tree.partial_fit(X, y)
        before = tamis.dumps(tree)
        with pytest.raises(ValueError, match="cannot forget columns that its splits use"):
            tree.forget_columns([6])
        assert tamis.dumps(tree) == before


def test_what_learners_cannot_do() -> None:
    X, y = wide_rows(0.0)
    with pytest.raises(ValueError, match=r"n_features must be an integer in \[8, inf\), got 7"):
        HoeffdingTree().partial_fit(X, y).widen(7)
    with pytest.raises(ValueError, match=r"columns must be from 0 to 7, got \[8\]"):
        HoeffdingTree().partial_fit(X, y).forget_columns([8])
    with pytest.raises(ValueError, match="when the columns have names"):
        HoeffdingTree().partial_fit(pd.DataFrame(X, columns=list("abcdefgh")), y).widen(9)
    for learner in (
        tamis.AdaptiveRandomForest(),
        HoeffdingTree(categorical=[2]),
        HoeffdingTree(leaf=GaussianNB()),
    ):
        with pytest.raises(ValueError, match="fixed number of columns"):
            learner.partial_fit(np.abs(np.round(X)), y).widen(9)
    with pytest.raises(ValueError, match="categorical columns cannot forget"):
        WeightedNaiveBayes(categorical=[2]).partial_fit(np.abs(np.round(X)), y).forget_columns([3])
    with pytest.raises(ValueError, match="GaussianNB has a fixed number of columns"):
        ResetOnDrift(GaussianNB()).partial_fit(X, y).widen(9)
    with pytest.raises(ValueError, match="features='few'"):
        Refit(features="few").partial_fit(X, y).widen(9)


def test_a_wrapped_learner_grows() -> None:
    X, y = wide_rows(np.nan)
    grown = ResetOnDrift("nb").partial_fit(X[:1000, :5], y[:1000]).widen(8).partial_fit(X[1000:], y[1000:])
    wide = ResetOnDrift("nb").partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    assert grown.predict_proba(X).tobytes() == wide.predict_proba(X).tobytes()
    assert grown.forget_columns([7]).n_features_in_ == 8


@pytest.mark.parametrize("absent", [np.nan, 0.0])
def test_refit_uses_new_columns_from_the_next_fit_on(absent: float) -> None:
    X, y = wide_rows(absent)
    recipe = Refit("hist-boosting", every=500, window=2000)
    grown = clone(recipe).partial_fit(X[:1000, :5], y[:1000])
    before = grown.predict(X[:1000, :5])
    grown.widen(8)
    np.testing.assert_array_equal(grown.predict(X[:1000]), before)
    np.testing.assert_array_equal(tamis.loads(tamis.dumps(grown)).predict(X[:1000]), before)
    grown.partial_fit(X[1000:], y[1000:])
    if np.isnan(absent):
        wide = clone(recipe).partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
        np.testing.assert_array_equal(grown.predict_proba(X), wide.predict_proba(X))
    score = grown.score(X[1500:], y[1500:])
    assert score > 0.9
    grown.forget_columns([6])
    assert 6 not in grown.columns_
    assert grown.score(X[1500:], y[1500:]) < score
    np.testing.assert_array_equal(tamis.loads(tamis.dumps(grown)).predict(X), grown.predict(X))


def sensors(n_batches: int = 30, size: int = 60, seed: int = 0) -> Any:
    """Batches of dicts: a name more every fifth batch, "x1" and later "x7" are informative, each is often absent."""
    rng = np.random.default_rng(seed)
    for batch in range(n_batches):
        y = rng.integers(0, 2, size)
        names = [f"x{j}" for j in range(4 + batch // 5) if j != 2 or batch % 10 < 6]
        rows = [
            {
                name: float(np.round(rng.normal() + 2 * label * (name == "x1") - 3 * label * (name == "x7"), 2))
                for name in rng.permutation(names).tolist() if rng.random() < 0.8
            }
            for label in y.tolist()
        ]  # fmt: skip
        yield rows, y


def names_of(batches: list[Any]) -> list[str]:
    return list(dict.fromkeys(name for rows, _ in batches for row in rows for name in row))


@pytest.mark.parametrize("learner", MISSING, ids=repr)
@pytest.mark.parametrize("size", [37, 100])
def test_growing_pipelines_answer_as_in_a_fixed_wide_space(learner: Any, size: int) -> None:
    batches = [*sensors(15)]
    model = ByName(StreamPipeline(learner=learner, batch_size=size), absent="missing")
    twin = WideColumns(StreamPipeline(learner=learner, batch_size=size), names_of(batches), np.nan)
    for i, (rows, y) in enumerate(batches):
        if i:
            found, expected = model.predict_proba(rows), twin.predict_proba(rows)
            np.testing.assert_allclose(
                found, expected, rtol=1e-9, atol=1e-12
            )  # sums over more columns are rounded
        model.partial_fit(rows, y)
        twin.partial_fit(rows, y)
    assert model.feature_names_ == twin.names


@pytest.mark.parametrize(
    "selector", [None, FisherScore(3), FIRES(3, scaling=None, learning_rate=0.1), TScore(2)], ids=repr
)
@pytest.mark.parametrize("learner", [None, Perceptron()], ids=repr)
def test_zeros_answer_as_in_a_fixed_wide_space(selector: Any, learner: Any) -> None:
    batches = [*sensors(20)]
    pipeline = StreamPipeline(selector, learner, scale="standard")
    model, wide = ByName(pipeline), clone(pipeline)
    names = names_of(batches)
    for i, (rows, y) in enumerate(batches):
        X = sp.csr_matrix(WideColumns(wide, names, 0.0).array(rows))
        if i:
            found, expected = model.decision_function(rows), wide.decision_function(X)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        model.partial_fit(rows, y)
        wide.partial_fit(X, y)
    if selector is not None:
        assert model.get_feature_names_out().tolist() == [names[j] for j in wide.get_support(indices=True)]


@pytest.mark.slow
@pytest.mark.parametrize("absent", ["zero", "missing"])
@pytest.mark.parametrize("selector", [None, FisherScore(3), Auto(3)], ids=repr)
@pytest.mark.parametrize(
    "learner",
    [GaussianNB(), SGDClassifier(random_state=0), WeightedNaiveBayes(), Refit(every=200, min_rows=50)],
    ids=repr,
)
def test_a_new_feature_is_used_and_memory_is_bounded(absent: str, selector: Any, learner: Any) -> None:
    model = ByName(StreamPipeline(selector, learner, batch_size=50), absent=absent, replay=300)
    if absent == "missing" and not model._accepts_nan:
        with pytest.raises(
            ValueError, match="absent='missing', but StreamPipeline does not support missing values"
        ):
            model.fit([{"a": 1.0}, {"b": 1.0}], [0, 1])
        return
    hits, late = [], []
    for i, (rows, y) in enumerate(sensors(45)):
        if i > 35:
            hits.append(np.mean(model.predict(rows) == y))
            late.append(np.mean(model.predict([{**row, "x7": 0.0} for row in rows]) == y))
        model.partial_fit(rows, y)
    assert np.mean(hits) > np.mean(late)  # "x7" came in the middle, and is used
    if selector is not None:
        assert {"x1", "x7"} <= set(model.selected_)
    assert sum(len(one[-1]) for one in model._recent) <= 300 + 50 + 60


def test_the_longest_absent_name_is_evicted_and_may_return() -> None:
    model = ByName(StreamPipeline(learner=WeightedNaiveBayes()), absent="missing", budget=3)
    y = np.array([0, 1] * 20)

    def batch(*names: str) -> list[dict[str, float]]:
        return [{name: float(label + 0.1 * i % 1) for name in names} for i, label in enumerate(y)]

    model.partial_fit(batch("a", "b", "c"), y).partial_fit(batch("b", "a"), y).partial_fit(batch("b"), y)
    assert sorted(model.partial_fit(batch("d"), y).feature_names_) == ["a", "b", "d"]
    assert sorted(model.partial_fit(batch("c", "d"), y).feature_names_) == ["b", "c", "d"]
    assert model.n_evicted_ == 2
    assert model.estimator_.n_features_in_ == 3
    assert model.partial_fit(batch("a", "b", "c", "d"), y).n_passed_over_ == 1  # none of the names is absent
    assert (model.predict(batch("c", "e")) == y).mean() > 0.9
    again = tamis.loads(tamis.dumps(model))
    assert again.partial_fit(batch("z"), y).feature_names_ == model.partial_fit(batch("z"), y).feature_names_


def test_frames_sparse_rows_and_regression() -> None:
    batches = [*sensors(12)]
    names = names_of(batches)
    dicts, frames, pairs = (
        ByName(StreamPipeline(None, SGDRegressor(random_state=0), scale="standard")) for _ in range(3)
    )
    for rows, y in batches:
        known = sorted({name for row in rows for name in row}, key=names.index)
        frame = pd.DataFrame(rows, columns=known).fillna(0.0)
        full = [{name: row.get(name, 0.0) for name in known} for row in rows]
        dicts.partial_fit(full, y * 2.5)
        frames.partial_fit(frame, y * 2.5)
        pairs.partial_fit((sp.csr_matrix(frame.to_numpy()), known), y * 2.5)
    np.testing.assert_allclose(dicts.predict(full), frames.predict(frame[known[::-1]]), rtol=1e-12)
    assert np.isfinite(pairs.predict(full)).all()
    assert tamis.ByName(StreamPipeline(None, SGDRegressor())).__sklearn_tags__().estimator_type == "regressor"
    with pytest.raises(AttributeError):
        _ = dicts.predict_proba


def test_what_a_pipeline_rejects() -> None:
    rows, y = next(iter(sensors()))
    model = ByName(StreamPipeline(FisherScore(2), HoeffdingTree()))
    with pytest.raises(TypeError, match="does not support sample_weight"):
        model.partial_fit(rows, y, sample_weight=np.ones(len(y)))
    with pytest.raises(DataError, match="The rows name 4 columns, but max_columns is 2"):
        ByName(StreamPipeline(), max_columns=2).partial_fit(rows, y)
    with pytest.raises(ValueError, match="replay must be"):
        ByName(StreamPipeline(), replay=0).partial_fit(rows, y)
    for name in ("predict", "score", "predict_proba"):
        assert not hasattr(ByName(FisherScore(2)), name)


@pytest.mark.parametrize("wrap", [ByName, lambda selector: ByName(StreamPipeline(selector))])
def test_fewer_names_than_features_to_select(wrap: Any) -> None:
    rng, model = np.random.default_rng(0), wrap(Auto(3))
    for names in (["a", "b"], ["a", "b", "c", "d"]):
        y = rng.integers(0, 2, 200)
        rows = [{name: float(label * (name == "d") + rng.normal() / 4) for name in names} for label in y]
        model.partial_fit(rows, y)
    assert model.feature_names_ == ["a", "b", "c", "d"]
    assert len(model.selected_) in (3, 4)


class Majority(ClassifierMixin, BaseEstimator):
    """A user's learner: the more frequent class."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        self.classes_ = classes if classes is not None else self.classes_
        self.counts_ = getattr(self, "counts_", 0) + (np.asarray(y)[:, None] == self.classes_).sum(axis=0)
        return self

    def predict(self, X: Any) -> Any:
        return np.repeat(self.classes_[self.counts_.argmax()], X.shape[0])


CHECKED: dict[str, ByName] = {
    "selector": ByName(FisherScore(2)), "zeros": ByName(StreamPipeline(FisherScore(3))),
    "missing": ByName(StreamPipeline(None, HoeffdingTree()), absent="missing"),
    "selected": ByName(StreamPipeline(FisherScore(3), WeightedNaiveBayes()), absent="missing"),
    "fitted again": ByName(StreamPipeline(Auto(3), SGDClassifier(random_state=0), batch_size=50)),
    "regression": ByName(StreamPipeline(None, SGDRegressor(random_state=0))),
    "user": ByName(StreamPipeline(TScore(2), Majority())),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "check"), [(k, c) for k, one in CHECKED.items() for c in dict(named_model_checks(one))]
)
def test_checks(name: str, check: str) -> None:
    try:
        dict(named_model_checks(CHECKED[name]))[check]()
    except SkipTest as reason:
        pytest.skip(str(reason))


class Forgetful(ByName):
    """It learns the rows before it rejects the last one, and takes names by position."""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Any:
        renamed = [{f"x{j}": value for j, value in enumerate(row.values())} for row in X]
        super().partial_fit(renamed[:-1], y[:-1])
        return super().partial_fit(renamed[-1:], y[-1:])


def test_checks_find_what_is_wrong() -> None:
    checks = dict(named_model_checks(Forgetful(StreamPipeline(None, HoeffdingTree()), absent="missing")))
    for name in ("order_of_names", "rejected_batch"):
        with pytest.raises(AssertionError, match=name):
            checks[name]()


KEYS = [
    *(("selector", entry.key) for entry in CATALOG if entry.family == "rows"),
    *(("learner", entry.key) for entry in LEARNERS),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_every_selector_and_learner_of_the_catalogue(kind: str, key: str) -> None:
    entry: Any = next(one for one in (*CATALOG, *LEARNERS) if one.key == key)
    try:
        made = entry.load()(**dict(getattr(entry, "parameters", {})))
    except ImportError as reason:
        pytest.skip(str(reason))
    numbers = key.endswith("-regressor") or key == "least-squares"
    if "random_state" in made.get_params() and made.random_state is None:
        made.set_params(random_state=0)
    pipeline = StreamPipeline(made) if kind == "selector" else StreamPipeline(None, made)
    model = ByName(pipeline, budget=6 if kind == "learner" else None, replay=200)
    if key in ("cancel-out",):
        model.set_params(max_columns=10)
    for i, (rows, y) in enumerate(sensors(18, 40)):
        rows = [{name: abs(value) for name, value in row.items()} for row in rows]
        if i:
            assert np.isin(model.predict(rows), [0, 1]).all() or numbers
        model.partial_fit(rows, y + 0.5 if numbers else y)
        assert model.estimator_.n_features_in_ >= len(model.feature_names_)
    before = copy.deepcopy(model).predict(rows)
    np.testing.assert_array_equal(model.predict(rows), before)
