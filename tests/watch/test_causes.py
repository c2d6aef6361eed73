import math

import numpy as np
import pytest

import tamis
from tamis import Watch
from tamis.watch.causes import CauseTest, _advance
from tamis.watch.long_run import reached_inflation
from tamis.watch.outside import OutsideRatios
from tests.twins.causes import first_alarm


class Model:
    """The true model of the label: weights of the columns, for two or more classes."""

    def __init__(self, weights):
        self.weights = np.asarray(weights, dtype=float)
        self.classes_ = np.arange(2 if self.weights.ndim == 1 else self.weights.shape[1])

    def predict_proba(self, X):
        if self.weights.ndim == 1:
            p = 1 / (1 + np.exp(-X @ self.weights))
            return np.column_stack([1 - p, p])
        powers = np.exp(X @ self.weights)
        return powers / powers.sum(axis=1, keepdims=True)


def labels(model, X, seed):
    chances = model.predict_proba(X).cumsum(axis=1)
    return (np.random.default_rng(seed).random(len(X))[:, None] > chances).sum(axis=1)


@pytest.mark.parametrize("drift", [-0.2, 0.3])
def test_equals_its_twin(rng, drift):
    raw = rng.normal(-0.15, 0.8, size=(400, 6))
    raw[150:, 2] += drift
    theta, group = np.array([1.0, 0.8, 0.9, 0.7, 1.0, 0.6]), np.array([0, 0, 1, 1, 2, 2])
    for tested in ([True, True, True], [True, True, False], [False, True, False]):
        for limit, shortest in ((3.0, 1), (3.0, 60), (8.0, 20)):
            state = (np.full(6, -700.0), np.zeros(6), np.zeros(6, dtype=np.int64))
            found = _advance(raw, 0, 400, theta, group, np.array(tested), limit, *state, shortest)
            expected = first_alarm(raw.tolist(), theta.tolist(), group.tolist(), tested, limit, shortest)
            assert found == ((-1, -1) if expected is None else expected)
            if limit == 3.0 and drift > 0 and tested[0]:
                assert expected is not None


def update(test, model, X, y, reliance):
    """Add rows to a test, with the predictions of a model."""
    values = model.predict_proba(X)
    names = [str(j) for j in range(X.shape[1])]
    return test.update(X, y, values, model, model.classes_, names, reliance=np.asarray(reliance, dtype=float))


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", [[2.0, 1.5, 1.0, 0.0], [[2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0], [0, 0, 0]]]
)
def test_finds_the_feature_within_100_rows_and_its_return(weights):
    model = Model(weights)
    X = np.random.default_rng(0).normal(size=(8000, 4))
    y = labels(model, X, 1)
    shown = X.copy()
    shown[4000:6000, 1] = np.roll(
        X[4000:6000, 1], 7
    )  # the label depends on values that the model does not see
    watch, found = Watch(model, rules=['state("*") == "used but no longer relevant"']), []
    for start in range(0, 8000, 20):
        rows = slice(start, start + 20)
        found += watch.update(shown[rows], y=y[rows])
        if start == 3980:
            assert found == []
    [alert] = found
    assert alert["feature"] == "1"
    assert 4040 <= alert["row"] <= 4160
    states = [row["state"] for row in watch.table()]
    assert states[:3] == ["used and relevant"] * 3  # 2,000 rows after it is relevant again


def test_more_noise_in_the_labels_names_no_feature():
    model = Model([2.0, 1.5, 1.0, 0.0])
    X = np.random.default_rng(2).normal(size=(6000, 4))
    y = labels(model, X, 3)
    flipped = np.random.default_rng(4).random(6000) < 0.25
    y[3000:] = np.where(flipped, 1 - y, y)[3000:]
    watch = Watch(model)
    for i in range(0, 6000, 100):
        watch.update(X[i : i + 100], y=y[i : i + 100])
        assert not watch._lost.lost.any()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_an_old_relation_to_an_ignored_feature_and_blunt_forecasts_hide_no_noise(scale):
    X = np.random.default_rng(12).normal(size=(7000, 4))
    y = labels(Model([2.4, 2.0, 1.6, 1.0]), X, 13)
    y = np.where((np.arange(7000) >= 4000) & (np.random.default_rng(14).random(7000) < 0.1), 1 - y, y)
    watch, causes = Watch(Model(scale * np.array([2.0, 1.7, 1.4, 0.0]))), []
    for i in range(0, 7000, 100):
        causes += [one["cause"] for one in watch.update(X[i : i + 100], y=y[i : i + 100]) if one["cause"]]
    assert set(causes) == {"labels got noisier"}


def test_a_new_model_is_tested_afresh_and_a_saved_state_continues():
    model = Model([2.0, 1.5])
    X = np.random.default_rng(5).normal(size=(3000, 2))
    y = labels(model, X, 6)
    X[2500:, 0] = np.roll(X[2500:, 0], 3)
    test = CauseTest(2, 50_000, 0)
    for i in range(0, 2500, 100):
        update(test, model, X[i : i + 100], y[i : i + 100], [2.0, 1.0])
    assert test.is_testing
    assert not test.lost.any()
    other = tamis.loads(tamis.dumps(test))
    for one in (test, other):
        starts = range(2500, 2700, 50)
        ages = [update(one, model, X[i : i + 50], y[i : i + 50], np.ones(2)) for i in starts]
        assert np.array(ages)[:, 1].tolist() == [0] * 4
        assert 20 <= np.max(ages) <= 130
        assert one.lost.tolist() == [True, False]
    assert tamis.dumps(test) == tamis.dumps(other)


def test_a_new_model_is_tested_at_once_with_the_calibration_of_the_one_before():
    model, other = Model([2.0, 1.5, 0.0]), Model([0.0, 1.5, 2.0])
    X = np.random.default_rng(5).normal(size=(4000, 3))
    y = labels(model, X, 6)
    test = CauseTest(3, 50_000, 0)

    def watch(model, first, last, reliance):
        return [update(test, model, X[i : i + 50], y[i : i + 50], reliance) for i in range(first, last, 50)]

    watch(model, 0, 1500, [2.0, 1.5, 0.0])
    theta = test._theta.copy()
    test.restart()
    assert test.is_testing
    assert not np.any(watch(model, 1500, 1800, [2.0, 1.5, 0.0]))
    np.testing.assert_array_equal(test._theta, theta)
    X[1800:2100, 0] = np.roll(X[1800:2100, 0], 3)
    assert np.max(watch(model, 1800, 2100, [2.0, 1.5, 0.0])) > 0
    assert test.lost.tolist() == [True, False, False]

    # A model of other features: those in common keep their calibration, the others are tested when they have one.
    test.restart()
    y[2100:] = labels(other, X[2100:], 7)
    watch(other, 2100, 2400, [0.0, 1.5, 2.0])
    assert test._features.tolist() == [1, 2]
    assert test._tested.tolist() == [True, False, True, True, True, False]
    assert test._theta[0] == theta[1]
    assert not np.any(watch(other, 2400, 3400, [0.0, 1.5, 2.0]))
    assert test._tested.tolist() == [True] * 6
    assert not test.lost.any()


def test_the_order_and_the_number_of_the_classes_may_change():
    model = Model([2.0, 1.5])
    X = np.random.default_rng(7).normal(size=(3000, 2))
    y = labels(model, X, 8)

    class Reversed(Model):
        def __init__(self):
            super().__init__([2.0, 1.5])
            self.classes_ = np.array([1, 0])

        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    class Three(Model):
        def __init__(self):
            super().__init__([2.0, 1.5])
            self.classes_ = np.arange(3)

        def predict_proba(self, X):
            return np.column_stack([super().predict_proba(X), np.zeros(len(X))])

    tests = CauseTest(2, 50_000, 0), CauseTest(2, 50_000, 0)
    for i in range(0, 2000, 100):
        for test, models in zip(tests, ([model, model], [model, Reversed()]), strict=True):
            update(test, models[i // 100 % 2], X[i : i + 100], y[i : i + 100], np.ones(2))
    assert tamis.dumps(tests[0]) == tamis.dumps(tests[1])
    update(tests[0], Three(), X[2000:2100], y[2000:2100], np.ones(2))
    assert not tests[0].is_testing
    for i in range(2100, 3000, 100):
        update(tests[0], Three(), X[i : i + 100], y[i : i + 100], np.ones(2))
    assert tests[0].is_testing


def test_a_class_that_the_model_does_not_know_is_counted():
    model = Model([2.0, 1.5])
    X = np.random.default_rng(7).normal(size=(1500, 2))
    y = labels(model, X, 8)
    y[::50] = 7
    test = CauseTest(2, 50_000, 0)
    for i in range(0, 1500, 100):
        update(test, model, X[i : i + 100], y[i : i + 100], np.ones(2))
    assert np.isfinite(test._level).all()
    assert math.isclose(test._shares.sum(), 1.0)


def test_is_off_with_none_and_validated():
    X = np.random.default_rng(9).normal(size=(100, 2))
    watch = Watch(Model([1.0, 1.0]), rows_per_false_alarm=None)
    watch.update(X, y=X[:, 0] > 0)
    assert watch._lost is None
    with pytest.raises(ValueError, match="rows_per_false_alarm"):
        Watch(rows_per_false_alarm=10)


CHANGES = {
    "labels got noisier": lambda rng, X, f: (f, rng.random(len(f)) < 0.25),
    "calibration changed": lambda rng, X, f: (0.4 * f, np.zeros(len(f), dtype=bool)),
    "prior shift": lambda rng, X, f: (f - 1.5, np.zeros(len(f), dtype=bool)),
    "something outside the model matters now": lambda rng, X, f: (
        f + 2 * X[:, 3],
        np.zeros(len(f), dtype=bool),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("cause", CHANGES)
@pytest.mark.parametrize("with_model", [True, False])
def test_a_change_of_the_labels_has_its_cause_and_names_no_lost_feature(cause, with_model):
    rng, model = np.random.default_rng(21), Model([2.0, 1.5, 1.0, 0.0])
    X = rng.normal(size=(5500, 4))
    f = X @ model.weights
    changed, flipped = CHANGES[cause](rng, X, f)
    late = np.arange(5500) >= 2500
    y = (np.where(late, changed, f) + rng.logistic(size=5500) > 0).astype(int)
    y = np.where(late & flipped, 1 - y, y)
    watch, alerts = Watch(model if with_model else None), []
    for start in range(0, 5500, 100):
        rows = slice(start, start + 100)
        alerts += watch.update(
            X[rows], predictions=None if with_model else model.predict_proba(X[rows])[:, 1], y=y[rows]
        )
    causes = [alert["cause"] for alert in alerts if alert["cause"]]
    assert causes[0] == cause
    assert not [alert for alert in alerts if "no longer" in alert["rule"]]
    [message] = [alert["message"] for alert in alerts if alert["rule"] == 'cause != "none"'][:1]
    assert message.startswith(cause.capitalize())
    assert "this has a probability of" in message


@pytest.mark.slow
@pytest.mark.parametrize(("cause", "change"), [("prior shift", "rise"), ("labels got noisier", "noise")])
def test_a_regression_has_causes(cause, change):
    rng = np.random.default_rng(22)
    X = rng.normal(size=(4500, 3))
    late = np.arange(4500) >= 2500
    y = X[:, 0] + X[:, 1] + 0.5 * np.where(late & (change == "noise"), 2.5, 1.0) * rng.normal(size=4500)
    y += 0.6 * (late & (change == "rise"))
    watch, alerts = Watch(lambda A: A[:, 0] + A[:, 1], task="regression"), []
    for start in range(0, 4500, 100):
        alerts += watch.update(X[start : start + 100], y=y[start : start + 100])
    assert next(alert["cause"] for alert in alerts if alert["cause"]) == cause
    assert not [alert for alert in alerts if "no longer" in alert["rule"]]


@pytest.mark.slow
def test_a_lost_feature_of_a_regression_is_found_within_200_rows():
    rng = np.random.default_rng(23)
    X = rng.normal(size=(4500, 3))
    y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=4500)
    X[2500:, 1] = rng.permutation(X[2500:, 1])
    watch, alerts = Watch(lambda A: A[:, 0] + A[:, 1], task="regression"), []
    for start in range(0, 4500, 50):
        alerts += watch.update(X[start : start + 50], y=y[start : start + 50])
    stale = [alert for alert in alerts if "no longer" in alert["rule"]]
    assert [alert["feature"] for alert in stale] == ["1"]
    assert stale[0]["row"] <= 2700


@pytest.mark.slow
@pytest.mark.parametrize("seed", [31, 32, 33])
def test_the_only_feature_of_a_model_is_lost_although_a_drift_came_before_and_labels_depend_on_one_another(
    seed,
):
    rng, n, change = np.random.default_rng(seed), 6000, 3600
    x, level = rng.normal(size=n), np.zeros(n)
    for i in range(1, n):  # the labels of neighbouring rows depend on one another
        level[i] = 0.95 * level[i - 1] + 0.4 * rng.normal()
    late = np.arange(n) >= change - 400
    y = (1.5 * x + level + 0.8 * late + rng.logistic(size=n) > 0).astype(int)
    x[change:] = rng.permutation(x[change:])
    X = np.column_stack([x, level + rng.normal(size=n), rng.normal(size=n)])
    watch, found = Watch(Model([1.2, 0.0, 0.0])), []
    for start in range(0, n, 50):
        alerts = watch.update(X[start : start + 50], y=y[start : start + 50])
        found += [(alert["feature"], alert["row"]) for alert in alerts if "no longer" in alert["rule"]]
    [(feature, row)] = found
    assert feature == "0"
    assert change < row <= change + 1200


@pytest.mark.slow
def test_a_feature_outside_the_model_is_named_although_it_is_correlated_with_those_inside():
    rng, model = np.random.default_rng(41), Model([1.2, 1.0, 0.8, 0.0])
    X = np.sqrt(0.6) * rng.normal(size=(5500, 1)) + np.sqrt(0.4) * rng.normal(size=(5500, 4))
    late = np.arange(5500) >= 2500
    y = (X @ model.weights + 1.5 * late * X[:, 3] + 0.5 * rng.logistic(size=5500) > 0).astype(int)
    watch, causes = Watch(model), []
    for start in range(0, 5500, 100):
        alerts = watch.update(X[start : start + 100], y=y[start : start + 100])
        causes += [alert["cause"] for alert in alerts if alert["cause"]]
    assert causes[:1] == ["something outside the model matters now"]


def test_ratios_of_unused_features_are_a_test_martingale_and_grow_after_a_change(rng):
    n = 8000
    X = rng.normal(size=(n, 4))
    p = 1 / (1 + np.exp(-X[:, 0]))
    y = (rng.random(n) < p).astype(float)
    given = np.stack([1 - p, p, np.zeros(n)], axis=1)[:, None]
    numbers = X[:, :1, None]
    of_numbers = X[:, 0] + 0.5 * rng.standard_t(4, size=n)
    for of, target, scale in ((given, y, 1.0), (numbers, of_numbers, 0.5)):
        test = OutsideRatios(np.array([1, 2, 3]), X[:1000], of[:1000], target[:1000], scale)
        ratios = test.update(X[1000:], of[1000:], target[1000:])
        mean = np.exp(ratios).mean(axis=0)
        assert (mean <= 1.0 + 3 * np.exp(ratios).std(axis=0) / np.sqrt(7000)).all()
        assert (ratios.sum(axis=0) < 0).all()
        of_changed = (
            target + X[:, 2] if scale == 0.5 else (rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - X[:, 2])))
        )
        ratios = test.update(X[:500], of[:500], np.asarray(of_changed, dtype=float)[:500])
        assert ratios.sum(axis=0).argmax() == 1
        assert ratios[:, 1].sum() > 8


@pytest.mark.slow
def test_a_copy_of_a_used_feature_is_not_relevant_and_an_unused_feature_is():
    rng, model = np.random.default_rng(24), Model([2.0, 1.5, 0.0, 0.0, 0.0])
    X = rng.normal(size=(4000, 5))
    X[:, 2] = X[:, 0]
    X[:, 3] = X[:, 1] + 0.1 * rng.normal(size=4000)
    y = (X @ np.array([2.0, 1.5, 0, 0, 0.8]) + rng.logistic(size=4000) > 0).astype(int)
    watch = Watch(model)
    for start in range(0, 4000, 100):
        watch.update(X[start : start + 100], y=y[start : start + 100])
    states = [row["state"] for row in watch.table()]
    assert states == ["used and relevant"] * 2 + ["neither"] * 2 + ["relevant but unused"]


def test_a_reference_of_few_lots_is_extended_until_it_counts_as_enough_rows():
    """The first 1,000 rows contain five lots of 200, from which no calibration can be known."""
    rng, model = np.random.default_rng(50), Model([2.0, 1.5, 0.0])
    X = np.repeat(rng.normal(size=(100, 3)), 200, axis=0)
    y = labels(model, X, 51)
    test, ready, most = CauseTest(3, 50_000, 0), [], 0
    for i in range(0, 20_000, 100):
        update(test, model, X[i : i + 100], y[i : i + 100], [2.0, 1.5, 0.0])
        ready += [i + 100] if test.is_testing and not ready else []
        most = max(most, len(test._target), len(test._rows))
        assert test.cause == "none"
        assert not test.lost.any()
    assert 2_000 <= ready[0] <= 20_000
    assert most <= 1_000


def test_the_inflation_of_few_long_lots_is_extrapolated_and_that_of_short_memory_is_not(rng):
    lots = np.repeat(rng.normal(size=(50, 5)), 200, axis=1)
    short = rng.normal(size=(50, 1002))
    short = short[:, 2:] + short[:, 1:-1] + short[:, :-2]
    for rows, low, high in ((lots, 200, 1_000), (short, 2, 5)):
        found = np.median(reached_inflation(rows - rows.mean(axis=1, keepdims=True)))
        assert low <= found <= high
