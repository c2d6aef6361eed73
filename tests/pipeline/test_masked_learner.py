"""What a learner is given: the selected columns alone, in its own way, scaled where it needs that; and its rivals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from tamis import DISCUSS, FIRES, FisherScore, RandomSubset, StreamPipeline, load, prequential, save
from tamis.evaluate.prequential.pairs import Ordered, Pair, Tested, mean_and_spread
from tamis.learners import HoeffdingTree, ResetOnDrift, WeightedKNN, WeightedNaiveBayes
from tamis.pipeline.masked_learner import MaskedLearner
from tamis.pipeline.scaling import RunningScale, wants_scale
from tamis.streams.stream import ArrayStream
from tests.twins.prequential import standardised


class Turns(BaseEstimator):
    """Selects columns 0 and 1 of the first batches, then 2 and 3, whatever comes."""

    def __init__(self, at=500):
        self.at = at

    def partial_fit(self, X, y):
        self.n_seen_, self.n_ = getattr(self, "n_seen_", 0) + X.shape[0], X.shape[1]
        return self

    def get_support(self):
        return np.isin(np.arange(self.n_), [2, 3] if self.n_seen_ >= self.at else [0, 1])


class Keeps(ClassifierMixin, BaseEstimator):
    """Remembers what it was given."""

    def partial_fit(self, X, y, classes=None):
        self.seen_ = [*getattr(self, "seen_", []), np.array(X)]
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], dtype=int)


class TakesNaN(Keeps):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def rows(n=1500, n_features=8):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, size=n)
    return rng.normal(size=(n, n_features)) + 1.5 * y[:, None] + 50.0, y


@pytest.mark.parametrize(
    "learner",
    [
        GaussianNB(var_smoothing=0), MultinomialNB(), WeightedNaiveBayes(), WeightedNaiveBayes(None, weight=None),
        WeightedKNN(), ResetOnDrift("naive-bayes"), HoeffdingTree(),
    ],
    ids=lambda learner: type(learner).__name__,
)  # fmt: skip
def test_a_column_that_enters_is_no_constant(learner):
    X, y = rows()
    result = prequential((X, y), Turns(), learner)
    steps = result.frames["steps"]
    before, after = (steps["accuracy"][steps["n_seen"] > at][:4].mean() for at in (100, 500))
    floor = 0.6 if isinstance(learner, MultinomialNB | HoeffdingTree) else before - 0.06
    assert after > min(floor, before - 0.06)
    if not isinstance(
        learner, HoeffdingTree | ResetOnDrift
    ):  # as if these columns alone had been there all the time
        alone = prequential((X[:, [2, 3]], y), None, clone(learner), scale="none").frames["steps"]["accuracy"]
        np.testing.assert_array_equal(steps["accuracy"][5:], alone[5:])


def test_a_learner_that_takes_nan_meets_it_where_nothing_is_selected():
    X, y = rows(600)
    learner = TakesNaN()
    prequential((X.astype(np.float32), y), Turns(300), learner, baselines="none")
    for k, seen in enumerate(learner.seen_[1:], 1):
        expected = np.where(np.isin(np.arange(8), [2, 3] if k >= 3 else [0, 1]), X[100 * k :][:100], np.nan)
        np.testing.assert_array_equal(seen, expected.astype(np.float32))


def test_what_is_missing_outside_the_selection_teaches_no_mean():
    X, y = rows()
    Y = X.copy()
    Y[100::7, 6] = np.nan
    whole, holed = GaussianNB(), GaussianNB()
    prequential((X, y), Turns(), whole, baselines="none")
    found = prequential((Y, y), Turns(), holed)
    assert np.isfinite(found.summary()["random_accuracy"])
    np.testing.assert_allclose(holed.theta_[:, 6], whole.theta_[:, 6], atol=0.25)
    np.testing.assert_array_equal(holed.theta_[:, :6], whole.theta_[:, :6])


def test_sparse_counts_are_learned_whole_and_predicted_narrow():
    rng = np.random.default_rng(2)
    X = rng.poisson(0.3, size=(900, 8)).astype(float)
    y = (X[:, 0] + X[:, 2] + rng.normal(size=900) > 0.8).astype(int)
    dense, sparse = (
        prequential((kind(X), y), Turns(), MultinomialNB()) for kind in (np.asarray, sp.csr_matrix)
    )
    for name in ("accuracy", "random_accuracy_windowed", "random_spread_cumulative"):
        np.testing.assert_array_equal(dense.frames["steps"][name], sparse.frames["steps"][name])


# -- scaling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_scaled_by_the_rows_before_them(dtype):
    X, y = rows(700)
    X[:, 3], X[:, 4] = 7.0, 1e6 * X[:, 4]
    X = X.astype(dtype)
    learner = Keeps()
    result = prequential((X, y), Turns(300), learner, scale="standard", baselines="none")
    assert result.settings["scale"] == "standard"
    for k, seen in enumerate(learner.seen_[1:], 1):
        expected = standardised(X[100 * k :][:100].astype(float), X[: 100 * k].astype(float))
        chosen = np.isin(np.arange(8), [2, 3] if k >= 3 else [0, 1])
        np.testing.assert_allclose(seen, np.where(chosen, expected, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        result.scale.transform(X), standardised(X.astype(float), X.astype(float)), atol=1e-4
    )


def test_what_is_scaled_unless_told_otherwise():
    X, y = rows(400)
    X[:, 0] *= 1e6
    for learner, expected in ((Perceptron(), "standard"), (GaussianNB(), "none"), (WeightedKNN(), "none")):
        assert prequential((X, y), FIRES(2), learner).settings["scale"] == expected
    raw = prequential((X, y), None, Perceptron(random_state=0), scale="none")
    scaled = prequential((X, y), None, Perceptron(random_state=0))
    assert raw.scale is None
    assert scaled.summary()["accuracy"] > raw.summary()["accuracy"] + 0.2
    sparse = prequential((sp.csr_matrix(X), y), None, Perceptron(random_state=0))
    assert sparse.settings["scale"] == "none"
    trained = Perceptron().partial_fit(X[:50], y[:50], classes=[0, 1])
    assert prequential((X, y), None, trained).settings["scale"] == "none"  # it has its own idea of the scale
    assert wants_scale(ResetOnDrift(Perceptron()))
    with pytest.raises(ValueError, match="scale must be"):
        prequential((X, y), None, scale="minmax")


def test_sparse_rows_are_scaled_without_a_shift():
    X = np.array([[0.0, 4.0], [0.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
    scale = RunningScale(2)
    scale.update(sp.csr_matrix(X))
    np.testing.assert_allclose(scale.transform(sp.csr_matrix(X)).toarray(), X / X.std(axis=0))
    np.testing.assert_allclose(scale.transform(X), (X - X.mean(axis=0)) / X.std(axis=0))
    holed = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    np.testing.assert_array_equal(np.isfinite(scale.transform(holed)), np.isfinite(holed))
    scale.update(np.array([[1.0, np.inf]]))
    np.testing.assert_allclose(scale.shift, X.mean(axis=0))  # infinite rows change nothing


# -- rivals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [Perceptron(random_state=0), GaussianNB()], ids=["linear", "bayes"])
def test_random_draws_are_runs_on_their_columns_alone(learner):
    X, y = rows(900, 30)
    X[:, 20:] -= 1.5 * y[:, None]
    result = prequential((X, y), FisherScore(4), clone(learner), baselines="both", n_draws=4)
    alone = []
    for draw in range(4):
        columns = np.sort(np.random.default_rng([draw, 30]).permutation(30)[:4])
        alone.append(prequential((X[:, columns], y), None, clone(learner)).frames["steps"])
    steps = result.frames["steps"]
    for scope in ("cumulative", "windowed"):
        for told, spread in (("accuracy", "random_spread"), ("auc", "random_auc_spread")):
            each = np.array([steps_[f"{told}_{scope}"] for steps_ in alone])
            np.testing.assert_allclose(steps[f"random_{told}_{scope}"], each.mean(axis=0))
            np.testing.assert_allclose(steps[f"{spread}_{scope}"], each.std(axis=0, ddof=1))
    every = prequential((X, y), None, clone(learner)).frames["steps"]
    np.testing.assert_allclose(steps["all_accuracy_windowed"], every["accuracy_windowed"])
    np.testing.assert_allclose(steps["all_auc_windowed"], every["auc_windowed"])
    plain = prequential((X, y), FisherScore(4), clone(learner), baselines="none")
    np.testing.assert_array_equal(steps["accuracy"], plain.frames["steps"]["accuracy"])  # they change nothing
    assert np.isnan(plain.frames["steps"]["random_accuracy_cumulative"]).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: WeightedNaiveBayes(window=None, weight=None, categorical=columns),
        lambda columns: HoeffdingTree(leaf="majority", categorical=columns),
        lambda columns: ResetOnDrift(WeightedNaiveBayes(window=None, weight=None, categorical=columns)),
    ],
    ids=["bayes", "tree", "reset"],
)
def test_random_draws_of_a_learner_that_knows_its_categories(make):
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(0, 4, (1200, 6)).astype(float), rng.normal(size=(1200, 6))])
    y = ((X[:, 0] == 2) | (X[:, 7] > 1)).astype(int)
    result = prequential((X, y), FIRES(3), make([0, 1, 2, 3, 4, 5]), baselines="random", scale="none")
    each = []
    for draw in range(3):
        columns = np.sort(np.random.default_rng([draw, 12]).permutation(12)[:3])
        alone = make([k for k, j in enumerate(columns) if j < 6])
        each.append(
            prequential((X[:, columns], y), None, alone, baselines="none", scale="none").summary()["accuracy"]
        )
    assert result.summary()["random_accuracy"] == pytest.approx(np.mean(each), abs=0.01)


def test_random_draws_follow_a_selector_that_decides_how_many():
    X, y = rows(1200)
    learner = Keeps()
    baseline = Pair(
        "random", Ordered(np.arange(8)[::-1]), MaskedLearner(learner, np.array([0, 1])), False, 100
    )
    for size in (2, 5, 8, 3):
        batch = Tested(X[:50], y[:50], (X[:50], y[:50]), np.array([0, 1]), None, n_selected=size)
        baseline.test_and_train(batch)
        expected = np.where(np.arange(8) >= 8 - size, X[:50], 0)
        np.testing.assert_array_equal(baseline.learner.model.seen_[-1], expected)
    result = prequential((X, y), DISCUSS(3), GaussianNB())
    assert np.isfinite(result.summary()["random_accuracy"])


def test_a_window_shorter_than_a_batch_and_one_longer():
    rng = np.random.default_rng(0)
    for window in (1, 7, 100, 1000):
        baseline = Pair("all", Ordered(), MaskedLearner(GaussianNB(), np.array([0, 1])), True, window)
        hits = []
        for n in (3, 10, 1, 250, 100):
            new = rng.random(n) < 0.7
            hits += new.tolist()
            baseline._count(new)
            assert baseline.score == pytest.approx((np.mean(hits), np.mean(hits[-window:])))
    assert mean_and_spread([0.5])[0] == 0.5
    assert np.isnan(mean_and_spread([])).all()


def test_who_has_no_rivals():
    X, y = rows(400)

    class Stranger:
        """No estimator: there can be no copy of it."""

        def partial_fit(self, X, y, classes=None):
            return self

        def predict(self, X):
            return np.zeros(X.shape[0], dtype=int)

    for selector, learner in ((None, GaussianNB()), (RandomSubset(2), GaussianNB()), (FIRES(2), Stranger())):
        assert np.isnan(prequential((X, y), selector, learner).summary()["random_accuracy"])
    for wrong in ({"baselines": "majority"}, {"n_draws": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            prequential((X, y), FIRES(2), **wrong)


def test_a_run_with_all_of_it_goes_on_from_its_checkpoint(tmp_path):
    X, y = rows()

    def stop(step):
        if step.values["n_seen"] == 700:
            raise KeyboardInterrupt

    options = {"baselines": "both", "auc": True, "replay": 300}
    for i, make in enumerate(
        (lambda: SGDClassifier(random_state=1), WeightedNaiveBayes, lambda: HoeffdingTree())
    ):
        path = tmp_path / f"{i}.tamis"
        prequential(
            (X, y), Turns(600), make(), checkpoint=path, on_step=stop, on_interrupt="return", **options
        )
        resumed = prequential((X, y), Turns(600), make(), checkpoint=path, **options)
        whole = prequential((X, y), Turns(600), make(), **options)
        for name, column in whole.frames["steps"].items():
            if not name.startswith("seconds") and name not in ("memory_bytes", "model_bytes"):
                np.testing.assert_array_equal(resumed.frames["steps"][name], column, err_msg=name)
        assert resumed.settings["scale"] == whole.settings["scale"] == ("standard" if i == 0 else "none")


def test_a_learner_that_began_late_has_columns_of_one_selection():
    """While one class is known there is no selection; the copies forget what they learned of all columns."""
    X, y = rows(600)
    y[:200] = 0
    stream = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    result = prequential(stream, FIRES(2), Perceptron(random_state=0))
    assert np.isfinite(result.summary()["random_accuracy"])
    learner = MaskedLearner(Perceptron(), np.array([0, 1]))
    assert learner.n_known_classes == 0


def test_a_learner_of_standardised_columns_gets_missing_values_at_the_mean():
    """Whatever the selector; without a scale, or with infinite values, the learner still refuses."""
    X, y = rows(900, 12)
    X[::5, 2], X[::7, 9] = np.nan, np.nan
    for selector in (FIRES(3), FisherScore(3)):
        summary = prequential((X, y), selector, Perceptron(random_state=0), baselines="both").summary()
        assert summary["accuracy"] > 0.6
        model = StreamPipeline(selector, Perceptron(random_state=0)).fit(X, y)
        scale = model._current_models().scale
        filled = np.where(np.isnan(X), scale.shift, X)
        np.testing.assert_allclose(model.decision_function(X), model.decision_function(filled), atol=1e-9)
        with pytest.raises(ValueError, match="infinity in column"):
            model.partial_fit(np.where(np.arange(12) == 2, np.inf, X), y)
    with pytest.raises(ValueError, match="NaN in column"):
        StreamPipeline(FIRES(3), Perceptron(), scale="none").fit(X, y)


def test_categories_are_replaced_by_the_mean_targets_of_the_rows_before(rng):
    """A plain loop over batches, for all features and for some of them."""
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 5, 400), rng.integers(0, 90, 400)])
    X[::7, 1] = np.nan
    target = rng.random(400)
    scale, table, before = RunningScale(3, [1, 2]), {}, []
    for at in range(0, 400, 50):
        batch = slice(at, at + 50)
        mean = sum(before) / max(len(before), 1)
        expected = X[batch].copy()
        for i, row in enumerate(X[batch]):
            for j in (1, 2):
                known = table.get((j, row[j]), [])
                expected[i, j] = np.nan if np.isnan(row[j]) else (sum(known) + 10 * mean) / (len(known) + 10)
        np.testing.assert_allclose(scale.encode(X[batch]), expected, rtol=1e-12)
        kept = np.array([2, 0])
        np.testing.assert_array_equal(
            scale.take(kept).transform(X[batch][:, kept]), scale.transform(X[batch])[:, kept]
        )
        scale.update(X[batch])
        scale.learn_categories(X[batch], target[batch])
        for row, value in zip(X[batch], target[batch], strict=True):
            before.append(value)
            for j in (1, 2):
                if not np.isnan(row[j]):
                    table.setdefault((j, row[j]), []).append(value)
    assert scale.encode(np.array([[0.0, 77.0, -1.0]]))[0, 1:].tolist() == [np.mean(target)] * 2  # never seen


def _nominal(n, rng):
    """Six categories of which every other one is mostly of class 1, beside an identifier and noise."""
    X = np.column_stack([rng.integers(0, 6, n), rng.permutation(n), rng.normal(size=n)]).astype(float)
    return X, np.where(rng.random(n) < 0.9, X[:, 0] % 2, 1 - X[:, 0] % 2).astype(int)


@pytest.mark.parametrize("selector", [None, FIRES(1)], ids=["all", "FIRES"])
@pytest.mark.parametrize("delay", [0, 150])
def test_a_linear_learner_gets_mean_targets_and_no_codes(selector, delay, rng):
    X, y = _nominal(3000, rng)
    accuracy = {}
    for categorical in ([], [0, 1]):
        stream = ArrayStream(X, y)
        stream.categorical = categorical
        run = prequential(stream, None if selector is None else clone(selector), Perceptron(), delay=delay)
        accuracy[len(categorical)] = run.frames["steps"]["accuracy"][-10:].mean()
    assert accuracy[2] > 0.8 > 0.65 > accuracy[0]


def test_the_mean_targets_are_saved_and_resumed(tmp_path, rng):
    X, y = _nominal(1200, rng)
    frame = pd.DataFrame({"kind": pd.Categorical(X[:, 0].astype(int).astype(str)), "size": X[:, 2]})
    whole = StreamPipeline(FIRES(1), Perceptron()).fit(frame, y)
    part = StreamPipeline(FIRES(1), Perceptron()).fit(frame[:630], y[:630])
    save(part, tmp_path / "part.tamis")
    resumed = load(tmp_path / "part.tamis").partial_fit(frame[630:], y[630:])
    np.testing.assert_array_equal(resumed.decision_function(frame), whole.decision_function(frame))
    assert whole.score(frame, y) > 0.85
