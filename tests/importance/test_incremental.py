"""What both importances promise: any model, groups, bands, a budget, atomic updates, saved states."""

import threading

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.tree import DecisionTreeClassifier

import tamis
from tamis import IncrementalPFI, IncrementalSAGE
from tamis.errors import CheckpointError, DataError, StateError

BOTH = pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])


def linear(A):
    return 2 * A[:, 0] + A[:, 1]


def stream(rng, n=400, n_features=4):
    X = rng.normal(size=(n, n_features))
    return X, linear(X)


@BOTH
@pytest.mark.parametrize(
    "settings",
    [{}, {"max_calls_per_row": None}, {"sampling": "conditional", "max_calls_per_row": 7, "n_samples": 2}],
)
def test_a_batch_equals_its_rows(kind, settings, rng):
    X, y = stream(rng)
    X[::7, 2] = np.nan
    whole, rows, parts = (kind(random_state=3, half_life=50, **settings) for _ in range(3))
    whole.update(linear, X, y)
    for i in range(len(X)):
        rows.update(linear, X[i : i + 1], y[i : i + 1])
    for start in range(0, len(X), 33):
        parts.update(linear, X[start : start + 33], y[start : start + 33])
    assert tamis.dumps(whole) == tamis.dumps(rows) == tamis.dumps(parts)


@BOTH
def test_large_batches_are_altered_in_parts(kind, rng, monkeypatch):
    X, y = stream(rng)
    whole, parts = kind(random_state=3), kind(random_state=3)
    whole.update(linear, X, y)
    monkeypatch.setattr("tamis.importance.incremental._MOST_VALUES", 100)
    parts.update(linear, X, y)
    assert tamis.dumps(whole) == tamis.dumps(parts)


@BOTH
def test_a_batch_is_one_call_of_three_rows_per_row(kind, rng):
    calls = []
    model = LinearRegression().fit(rng.normal(size=(60, 50)), rng.normal(size=60))
    explainer = kind(random_state=0)
    for _ in range(3):
        X = rng.normal(size=(40, 50))
        explainer.update(lambda A: calls.append(len(A)) or model.predict(A), X, model.predict(X))
    assert calls == [3 * 39, 3 * 40, 3 * 40]


@BOTH
def test_the_budget_leaves_the_expectation_as_it_is(kind, rng):
    """Every feature is measured equally often, and SAGE's windows reach each position of the order equally often."""
    X = rng.normal(size=(20_000, 3))

    def model(A):  # what a factor explains depends on its position in the order
        return A[:, 0] * A[:, 1] + A[:, 2]

    every = kind(max_calls_per_row=None, half_life=None, random_state=0)
    some = kind(max_calls_per_row=3, half_life=None, random_state=1)
    for explainer in (every, some):
        explainer.update(model, X, model(X))
    errors = [np.diff(one.bands(0.6827, method="normal"))[:, 0] / 2 for one in (every, some)]
    differences = some.importances_ - every.importances_
    assert (np.abs(differences) < 4 * np.hypot(*errors)).all()
    assert (np.hypot(*errors) < 0.1 * every.importances_).all()
    assert some._sums[0].sum() < every._sums[0].sum()
    np.testing.assert_allclose(some._sums[0], some._sums[0].mean(), rtol=0.03)


@BOTH
@pytest.mark.parametrize("method", ["chebyshev", "normal"])
def test_bands_cover_the_expectation_in_95_of_100_runs(kind, method):
    """The expectation of both is 2 b^2 for the squared loss of independent standard normal features."""
    covered = []
    for seed in range(150):
        X, y = stream(np.random.default_rng([7, seed]), 600, 2)
        explainer = kind(max_calls_per_row=None, half_life=200, random_state=seed)
        explainer.update(linear, X, y)
        low, high = explainer.bands(0.95, method=method).T
        covered.append((low <= [8, 2]) & (high >= [8, 2]))
    share = np.mean(covered)
    # the normal band takes the draws from one reservoir as independent
    assert share >= (0.95 if method == "chebyshev" else 0.85)
    assert method == "chebyshev" or share < 0.99


@BOTH
def test_every_kind_of_model(kind, rng):
    X = rng.normal(size=(600, 3))
    codes = (X[:, 0] > 0).astype(int) + (X[:, 0] > 1)
    y = np.array(["low", "mid", "top"])[codes]
    forest = tamis.Refit(DecisionTreeClassifier(max_depth=3), every=200).partial_fit(X, y)
    logistic = LogisticRegression().fit(X, y)
    models = {
        "predict_proba": (logistic, y),
        "decision_function": (Perceptron().fit(X, y), y),
        "Refit": (forest, y),
        "function": (logistic.predict_proba, codes),
        "binary function": (lambda A: 1 / (1 + np.exp(-4 * A[:, 0])), (codes > 0).astype(int)),
        "labels": (type("Labels", (), {"classes_": logistic.classes_, "predict": logistic.predict})(), y),
        "numbers": (LinearRegression().fit(X, codes), codes),
    }
    for name, (model, target) in models.items():
        loss = "log" if "function" in name else "auto"
        explainer = kind(max_calls_per_row=None, random_state=0, loss=loss)
        explainer.update(model, X, target)
        first, *others = explainer.importances_
        assert first > 5 * np.abs(others).max(), name


@BOTH
def test_river_models_see_dicts_of_the_column_names(kind, rng):
    naive_bayes = pytest.importorskip("river.naive_bayes")
    linear_model = pytest.importorskip("river.linear_model")
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    y = np.where(X["b"] > 0, "yes", "no")
    model = naive_bayes.GaussianNB()
    target = linear_model.LinearRegression()
    for row, label in zip(X.to_dict("records"), y, strict=True):
        model.learn_one(row, label)
        target.learn_one(row, float(row["b"]))
    explainer, numbers = (
        kind(max_calls_per_row=None, random_state=0),
        kind(max_calls_per_row=None, random_state=0),
    )
    explainer.update(model, X, y)
    numbers.update(target, X, X["b"].to_numpy())
    assert explainer.feature_names_ == ["a", "b", "c"]
    assert np.argmax(explainer.importances_) == np.argmax(numbers.importances_) == 1


@BOTH
def test_groups_are_replaced_together(kind, rng):
    """Of two copies, each is unimportant to a model that averages them, but not both together."""
    pandas = pytest.importorskip("pandas")
    x = rng.normal(size=500)
    X = pandas.DataFrame({"copy": x, "noise": rng.normal(size=500), "same": x})
    explainer = kind(groups={"x": ["copy", "same"]}, max_calls_per_row=None, random_state=0)
    explainer.update(lambda A: 0.5 * (A[:, 0] + A[:, 2]), X, x)
    assert explainer.feature_names_ == ["x", "noise"]
    np.testing.assert_allclose(explainer.importances_, [2, 0], atol=0.4)


def test_conditional_sampling_measures_what_a_feature_adds(rng):
    x = rng.normal(size=1500)
    X = np.column_stack([x, x + 0.01 * rng.normal(size=1500)])
    marginal, conditional = (
        IncrementalPFI(sampling=sampling, max_calls_per_row=None, random_state=0)
        for sampling in ("marginal", "conditional")
    )
    for explainer in (marginal, conditional):
        explainer.update(lambda A: A[:, 0], X, x)
    assert marginal.importances_[0] > 1.5
    assert conditional.importances_[0] < 0.1
    shared = IncrementalSAGE(sampling="conditional", max_calls_per_row=None, random_state=0)
    shared.update(lambda A: A[:, 0], X, x)
    np.testing.assert_allclose(*shared.importances_, rtol=0.25)  # the model uses the first one only


@BOTH
def test_follows_a_model_that_is_replaced(kind, rng):
    X, _ = stream(rng, 2000)
    first, second = (lambda A: A[:, 0]), (lambda A: A[:, 3])
    fading, restarting = (
        kind(half_life=100, restart_with_model=restarts, random_state=0) for restarts in (False, True)
    )
    for explainer in (fading, restarting):
        explainer.update(first, X[:1000], X[:1000, 0], model_version="2026-01")
        assert np.argmax(explainer.importances_) == 0
        explainer.update(second, X[1000:1100], X[1000:1100, 3], model_version="2026-02")
        assert (explainer.version_, explainer.version_start_, explainer.n_rows_) == ("2026-02", 1000, 1100)
    assert fading.importances_[0] > 0.5
    assert restarting.importances_[0] == 0
    fading.update(second, X[1100:], X[1100:, 3])
    assert np.argmax(fading.importances_) == 3
    assert fading.importances_[0] < 0.02


@BOTH
def test_a_model_that_raises_leaves_the_state(kind, rng):
    X, y = stream(rng)
    explainer = kind(random_state=0)
    explainer.update(linear, X[:100], y[:100])
    before = tamis.dumps(explainer)

    def broken(A):
        raise RuntimeError("no connection")

    with pytest.raises(RuntimeError, match="no connection"):
        explainer.update(broken, X[100:], y[100:], model_version=2)
    for model, message in (
        (lambda A: np.full(len(A), np.nan), "model returned nan"),
        (lambda A: A, "must return one number per row"),
        (lambda A: A[:5, 0], "must return one number per row"),
        (3, "model must have one of predict"),
    ):
        with pytest.raises(DataError, match=message):
            explainer.update(model, X[100:], y[100:], model_version=2)
    for rows, target, message in (
        (X[:, :2], y, "X has 2 features, but .* is expecting 4"),
        (X, y[:5], "inconsistent numbers"),
        (np.where(X > 1, np.inf, X), y, "inf"),
        (X, np.where(y > 1, np.nan, y), "missing"),
    ):
        with pytest.raises(DataError, match=message):
            explainer.update(linear, rows, target)
    assert tamis.dumps(explainer) == before


@BOTH
def test_refuses_what_is_invalid(kind, rng):
    X, y = stream(rng)
    for settings, message in (
        ({"half_life": 0}, "half_life"),
        ({"loss": "hinge"}, "loss"),
        ({"max_calls_per_row": 1}, "max_calls_per_row"),
        ({"reservoir_size": 0}, "reservoir_size"),
        ({"groups": ["a"]}, "groups"),
        ({"random_state": -1}, "random_state"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(**settings)
    for groups in ({"a": [0, 1], "b": [1]}, {"a": []}, {"a": [9]}):
        with pytest.raises((ValueError, DataError)):
            kind(groups=groups).update(linear, X, y)
    with pytest.raises(ValueError, match="max_calls_per_row=3 is too small"):
        kind(n_samples=4).update(linear, X, y)
    with pytest.raises(DataError, match="pass labels as the model predicts them"):
        kind(loss="log").update(lambda A: np.full((len(A), 2), 0.5), X, np.where(y > 0, "a", "b"))
    explainer = kind()
    for level in (0, 1, "a"):
        with pytest.raises(ValueError, match="level"):
            explainer.bands(level)
    with pytest.raises(ValueError, match="method"):
        explainer.bands(method="exact")
    with pytest.raises(ValueError, match="model_version"):
        explainer.update(linear, X, y, model_version=1.5)


@BOTH
def test_a_saved_state_continues_bit_by_bit(kind, rng, tmp_path):
    X, y = stream(rng)
    model = LogisticRegression().fit(X, y > 0)
    explainer = kind(random_state=0, groups={"g": [0, 3]})
    explainer.update(model, X[:200], y[:200] > 0, model_version=1)
    other = tamis.load(tamis.save(explainer, tmp_path / "importance.tamis"))
    for one in (explainer, other):
        one.update(model, X[200:], y[200:] > 0)
    assert tamis.dumps(explainer) == tamis.dumps(other)
    other.reset()
    assert tamis.dumps(other) == tamis.dumps(kind(random_state=0, groups={"g": [0, 3]}))


@BOTH
def test_an_altered_state_is_rejected(kind, rng):
    X, y = stream(rng)
    explainer = kind(random_state=0)
    explainer.update(linear, X, y)
    explainer._group_of[1] = 7
    with pytest.raises(CheckpointError, match="_group_of"):
        tamis.loads(tamis.dumps(explainer))
    explainer._store = explainer._store[:, :2]
    with pytest.raises(StateError, match="_group_of"):
        explainer.update(linear, X, y)


@BOTH
def test_two_threads_lose_no_row(kind, rng):
    X, y = stream(rng)
    explainer = kind(random_state=0)

    def work():
        for start in range(0, 400, 20):
            explainer.update(linear, X[start : start + 20], y[start : start + 20])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert explainer.n_rows_ == 800


@BOTH
def test_nothing_is_known_before_the_second_row(kind, rng):
    X, y = stream(rng)
    explainer = kind(random_state=0)
    explainer.update(linear, X[:1], y[:1])
    assert np.isnan(explainer.importances_).all()
    assert np.isnan(explainer.bands()).all()
    assert explainer.n_rows_ == 1


@pytest.mark.parametrize("when", ["after", "together"])
@pytest.mark.parametrize("half_life", [None, 40])
def test_sums_of_parts_are_those_of_all_contributions(when, half_life, rng):
    from tamis.importance.incremental import add_contributions, merged_sums

    features, values = np.tile(np.arange(2), (90, 1)), rng.normal(size=(90, 2))
    keep = 1.0 if half_life is None else 0.5 ** (1 / half_life)
    parts = [np.zeros((4, 2)) for _ in range(3)]
    for part, rows in zip(parts, (slice(0, 50), slice(50, 90), slice(0, 90)), strict=True):
        add_contributions(features[rows], values[rows], keep, part)
    found = merged_sums(parts[0], parts[1], keep**40 if when == "after" else 1.0)
    if when == "after" or half_life is None:
        np.testing.assert_allclose(found, parts[2], rtol=1e-10)
    else:
        weights = np.concatenate([keep ** np.arange(49, -1, -1.0), keep ** np.arange(39, -1, -1.0)])
        np.testing.assert_allclose(found[2], weights @ values / weights.sum(), rtol=1e-10)


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_parts_merge(explainer, rng):
    X = rng.normal(size=(3000, 3))
    y = np.where(X[:, 0] > 0, "a", "b")

    class Model:
        classes_ = np.array(["b", "a"])

        def predict_proba(self, A):
            p = 1 / (1 + np.exp(-2 * A[:, 0] - A[:, 1]))
            return np.column_stack([1 - p, p])

    settings = {"half_life": None, "random_state": 1} | (
        {"empty_set": "mean"} if explainer is IncrementalSAGE else {}
    )
    parts, whole = [explainer(**settings) for _ in range(3)], explainer(**settings)
    for part, rows in zip(parts[1:], (slice(0, 1500), slice(1500, 3000)), strict=True):
        part.update(Model(), X[rows], y[rows], model_version=rows.start)
    whole.update(Model(), X, y)
    merged = tamis.merge_tree(parts, when="after")
    assert merged.n_rows_ == 3000
    assert (merged.version_, merged.version_start_) == (1500, 1500)
    assert len(merged._store) == 100
    low, high = whole.bands(0.95).T
    assert ((low <= merged.importances_) & (merged.importances_ <= high)).all()
    a, b = parts[1]._sums[0], parts[2]._sums[0]
    means = (a * parts[1].importances_ + b * parts[2].importances_) / (a + b)
    np.testing.assert_allclose(merged.importances_, means, rtol=1e-9)
    merged.update(Model(), X[:100], y[:100])
    with pytest.raises(ValueError, match="Cannot merge"):
        merged.merge(explainer(half_life=7).reset() or explainer(half_life=7))
