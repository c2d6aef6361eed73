import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

import tamis
from tamis import Watch
from tamis.errors import CheckpointError, DataError
from tamis.watch import InputDrift, Rule
from tamis.watch.pending import PendingRows
from tests.twins.measures import macro_auc


def stream(seed, n=6000, at=3000):
    """The label depends on columns 0 and 1, from row `at` on 2 and 1; column 3 is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(np.arange(n) < at, X[:, 0] + X[:, 1] > 0, X[:, 2] + X[:, 1] > 0).astype(int)


def frozen(X, y):
    return LogisticRegression().fit(X[:500], y[:500])


def states(watch):
    return [row["state"] for row in watch.table()]


EXPECTED = ["used but no longer relevant", "used and relevant", "relevant but unused", "neither"]


@pytest.mark.slow
@pytest.mark.parametrize("with_model", [True, False])
@pytest.mark.parametrize("delay", [0, 400])
def test_names_the_feature_that_is_used_but_no_longer_relevant(with_model, delay):
    X, y = stream(1)
    model = frozen(X, y)
    watch, alerts = Watch(model if with_model else None), []
    for start in range(500, 6000, 100):
        rows = slice(start, start + 100)
        predictions = None if with_model else model.predict_proba(X[rows])[:, 1]
        keys = list(range(start, start + 100))
        if delay:
            alerts += watch.update(X[rows], predictions=predictions, keys=keys)
            if start >= 500 + delay:
                late = slice(start - delay, start - delay + 100)
                alerts += watch.update_labels(range(start - delay, start - delay + 100), y[late])
        else:
            alerts += watch.update(X[rows], predictions=predictions, keys=keys, y=y[rows])
        if start == 2900:
            assert states(watch) == ["used and relevant"] * 2 + ["neither"] * 2
            assert alerts == []
    assert states(watch) == EXPECTED
    assert alerts == watch.alerts_
    assert all(alert["row"] > 2500 for alert in alerts)
    [stale] = [alert for alert in alerts if "no longer relevant" in alert["rule"]]
    assert (stale["feature"], stale["severity"], stale["cause"]) == (
        "0",
        "warning",
        "used but no longer relevant",
    )
    assert stale["row"] <= 4800
    assert 2450 < watch.table()[0]["since"] <= stale["row"]
    assert [alert["feature"] for alert in alerts if "unused" in alert["rule"]] == ["2"]
    assert watch.performance()["accuracy"] < 0.8


def test_labels_that_arrive_at_once_make_the_same_estimates():
    X, y = stream(2, 2500)
    model = frozen(X, y)
    now, late = Watch(model), Watch(model)
    for start in range(0, 2500, 100):
        rows = slice(start, start + 100)
        now.update(X[rows], y=y[rows])
        late.update(X[rows], keys=[f"row {i}" for i in range(start, start + 100)])
        late.update_labels([f"row {i}" for i in range(start, start + 100)], y[rows])
    assert now.table() == late.table()
    assert now.table()[0]["psi"] < 0.05
    assert now.performance() == late.performance()


def test_a_drift_of_the_inputs_alone_is_no_change_of_relevance():
    X, y = stream(3, 6000, at=10_000)
    X[3000:, 0] = 0.5 * X[3000:, 0] + 0.5  # the relation is the same
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    watch, alerts = Watch(frozen(X, y)), []
    for start in range(0, 6000, 100):
        alerts += watch.update(X[start : start + 100], y=y[start : start + 100])
    found = {(alert["feature"], alert["rule"].split("(")[0].split(" ")[0]) for alert in alerts}
    assert found == {("0", "drift"), (None, "prediction_drift"), (None, "label_drift")}
    assert states(watch)[:2] == ["used and relevant"] * 2


@pytest.mark.slow
def test_stationary_streams_raise_no_alert():
    """Five streams of 6,000 rows, independent and with autocorrelated columns of no relevance."""
    for seed in range(5):
        rng = np.random.default_rng([11, seed])
        X = rng.normal(size=(6000, 6))
        for i in range(1, 6000):
            X[i, 4:] = 0.9 * X[i - 1, 4:] + np.sqrt(1 - 0.81) * X[i, 4:]
        y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=6000) > 0).astype(int)
        watch = Watch(frozen(X, y), rules=['state("*") == "used but no longer relevant"'])
        for start in range(0, 6000, 200):
            assert watch.update(X[start : start + 200], y=y[start : start + 200]) == []


def test_rules_of_ones_own():
    X, y = stream(1)
    rules = [
        Rule('reliance("0") > 2 * relevance("0") for 1000 rows', severity="critical", cooldown=100_000),
        Rule("accuracy drops by more than 0.1", cooldown=1000),
    ]
    watch, alerts = Watch(frozen(X, y), rules=rules), []
    for start in range(500, 6000, 100):
        alerts += watch.update(X[start : start + 100], y=y[start : start + 100])
    of_reliance = [alert for alert in alerts if alert["severity"] == "critical"]
    assert len(of_reliance) == 1
    assert of_reliance[0]["row"] - of_reliance[0]["since_row"] == 1000
    drops = [alert["row"] for alert in alerts if alert["feature"] is None]
    assert len(drops) >= 2
    assert (np.diff(drops) >= 1000).all()


def test_a_new_version_of_the_model_is_watched_at_once():
    X, y = stream(1)
    watch = Watch(frozen(X, y))
    for start in range(500, 4500, 100):
        watch.update(X[start : start + 100], y=y[start : start + 100])
    watch.set_model(LogisticRegression().fit(X[3500:4500], y[3500:4500]), version=2)
    for start in range(4500, 6000, 100):
        watch.update(X[start : start + 100], y=y[start : start + 100])
    reliance = [row["reliance_share"] for row in watch.table()]
    assert reliance[2] > 0.3
    assert reliance[0] < 0.15


def test_regression_and_classes():
    X, _ = stream(4, 3000)
    target = 2 * X[:, 0] + X[:, 1] + 0.1 * X[:, 2]
    model = LinearRegression().fit(X[:, :], 2 * X[:, 0] + X[:, 1])
    with_model, logs = Watch(model, task="regression"), Watch(task="regression")
    labels = np.array(["low", "mid", "top"])[(X[:, 0] > -0.5).astype(int) + (X[:, 0] > 0.5)]
    classifier = LogisticRegression().fit(X, labels)
    classes = Watch()
    for start in range(0, 3000, 100):
        rows = slice(start, start + 100)
        with_model.update(X[rows], y=target[rows])
        logs.update(X[rows], predictions=model.predict(X[rows]), y=target[rows])
        classes.update(X[rows], predictions=classifier.predict(X[rows]), y=labels[rows])
    for watch in (with_model, logs):
        assert states(watch)[:2] == ["used and relevant"] * 2
        assert states(watch)[3] == "neither"
    assert states(classes)[0] == "used and relevant"
    assert classes.performance()["accuracy"] > 0.9
    assert with_model.performance() == logs.performance()


def test_rows_wait_in_bounded_memory():
    X, y = stream(5, 300)
    watch = Watch(frozen(X, y), max_pending=100)
    for start in range(0, 300, 50):
        watch.update(X[start : start + 50])
    assert watch.n_dropped_ == 200
    watch.update_labels(range(150, 250), y[150:250])
    assert (watch.n_labelled_, watch.n_unknown_) == (50, 50)


def test_a_saved_state_continues_bit_by_bit(tmp_path):
    X, y = stream(1)
    watch = Watch(frozen(X, y))

    def work(one, start, stop):
        for first in range(start, stop, 100):
            one.update(X[first : first + 100])
            one.update_labels(range(first - 100, first), y[max(first - 100, 0) : first]) if first else None

    work(watch, 0, 3500)
    other = tamis.load(tamis.save(watch, tmp_path / "watch.tamis"))
    for one in (watch, other):
        work(one, 3500, 6000)
    assert tamis.dumps(watch) == tamis.dumps(other)
    assert watch.table() == other.table()


def test_the_auc_of_two_classes_ends_with_a_third(rng):
    X, y = stream(3, 1200)
    P = 1 / (1 + np.exp(-X[:, :2].sum(axis=1) + rng.normal(size=1200)))
    watch, P = Watch(classes=[0, 1], window=400), np.column_stack([1 - P, P])
    watch.update(X[:600], predictions=P[:600], y=y[:600])
    assert watch.performance()["auc"] == pytest.approx(roc_auc_score(y[200:600], P[200:600, 1]))
    assert math.isnan(watch.performance()["macro_auc"])
    y[600::5] = 2
    watch.update(X[600:], predictions=P[600:], y=y[600:])
    assert math.isnan(watch.performance()["auc"])
    scores = np.column_stack([P, np.zeros(1200)])[-400:]
    assert watch.performance()["macro_auc"] == pytest.approx(macro_auc(y[-400:], scores))


def test_probabilities_of_three_classes_are_ranked_as_by_scikit_learn(rng):
    X, y = rng.normal(size=(900, 3)), rng.integers(0, 3, 900)
    P = rng.dirichlet(np.ones(3), 900) + np.eye(3)[y]
    watch = Watch(classes=[0, 1, 2], window=300)
    for at in range(0, 900, 100):
        watch.update(X[at : at + 100], predictions=P[at : at + 100] / 2, y=y[at : at + 100])
    expected = roc_auc_score(y[-300:], P[-300:] / 2, multi_class="ovr", average="macro")
    assert watch.performance()["macro_auc"] == pytest.approx(expected)


def test_what_is_invalid_changes_nothing():
    X, y = stream(1, 1000)
    watch = Watch(frozen(X, y))
    watch.update(X[:500], keys=range(500))
    before = tamis.dumps(watch)
    for call, message in (
        (lambda: watch.update(X[:, :3]), "X has 3 features"),
        (lambda: watch.update(np.where(X > 1, np.inf, X)), "inf"),
        (lambda: watch.update(X[:5], keys=[1, 2]), "keys must be 5"),
        (lambda: watch.update(X[:1], keys=[3]), "keys must be 1"),
        (lambda: watch.update(X[:5], predictions=[0.1] * 5), "predictions are now a score"),
        (lambda: watch.update(X[:5], predictions=np.ones((3, 2))), "predictions must be 5 rows"),
        (lambda: watch.update(X[:5], predictions=np.full((5, 2), np.nan)), "predictions must be finite"),
        (lambda: watch.update(X[:5], y=[0, 1, None, 0, 1]), "missing"),
        (lambda: watch.update_labels([1, 1], [0, 1]), "keys must not repeat"),
        (lambda: watch.update_labels([1, 2], [0]), "inconsistent"),
    ):
        with pytest.raises(DataError, match=message):
            call()
    assert tamis.dumps(watch) == before
    with pytest.raises(DataError, match="predictions must be given"):
        Watch().update(X)
    for rule, message in (
        ('psi("age") > 1', "names 'age', which is not a feature: the features are"),
        ("ROC > 1", "names 'ROC', which is not a measure: the measures are accuracy, auc"),
        ('roc("0") > 1', "names 'roc', which is not a measure.* and of a feature relevance"),
    ):
        with pytest.raises(ValueError, match=message):
            Watch(frozen(X, y), rules=[rule]).update(X)
    with pytest.raises(ValueError, match="feature_names must not repeat a name"):
        Watch(feature_names=["a", "a"])
    with pytest.raises(DataError, match="feature_names must be 4 names"):
        Watch(feature_names=["a"]).update(X, predictions=y)
    for predictions in (X[:, 0], np.column_stack([y, y + 0.5])):
        with pytest.raises(DataError, match=r"must be scores or probabilities in \[0, 1\]"):
            Watch().update(X, predictions=predictions)
    invalid = {
        "task": "ranking",
        "half_life": 0,
        "patience": -1,
        "window": 1,
        "max_pending": 0,
        "rules": "auc > 1",
    }
    for name, value in invalid.items():
        with pytest.raises(ValueError, match=name):
            Watch(**{name: value})


def test_parts_of_ones_own_are_copied():
    X, y = stream(1, 1500)
    selector, drift = tamis.FisherScore(2), InputDrift(reference=200)
    importance = tamis.IncrementalSAGE(random_state=0)
    watch = Watch(frozen(X, y), selector, importance, drift)
    for start in range(0, 1500, 100):
        watch.update(X[start : start + 100], y=y[start : start + 100])
    assert states(watch)[:2] == ["used and relevant"] * 2
    assert not drift.is_ready
    assert importance.n_rows_ == 0


def test_a_feature_that_was_never_relevant_raises_no_alert():
    """The model uses column 3, which the label has never depended on."""
    X, y = stream(6, 3000, at=10_000)
    weights = np.array([1.0, 1.0, 0.0, 1.0])

    class Model:
        classes_ = np.array([0, 1])

        def predict_proba(self, A):
            p = 1 / (1 + np.exp(-A @ weights))
            return np.column_stack([1 - p, p])

    watch = Watch(Model())
    for start in range(0, 3000, 100):
        assert watch.update(X[start : start + 100], y=y[start : start + 100]) == []
    assert states(watch) == ["used and relevant", "used and relevant", "neither", "used but not relevant"]


def test_a_feature_remains_relevant_at_a_weaker_threshold_than_it_becomes_so():
    class Scores:
        scores_ = np.array([1.0, 0.03, 0.5, 0.01])
        pvalues_ = np.array([1e-9, 1e-9, 0.01, 1e-9])

    watch = Watch(None)
    for was, expected in ((False, [True, False, False, False]), (True, [True, True, True, False])):
        assert watch._is_relevant(Scores(), np.full(4, was)).tolist() == expected


class Counted(int):
    """A key that counts how often it is read."""

    n_hashed = 0

    def __hash__(self) -> int:
        Counted.n_hashed += 1
        return int(self)


def test_a_batch_reads_its_own_keys_however_many_rows_are_pending():
    rng, n_hashed = np.random.default_rng(0), []
    for n_pending in (100, 3000):
        watch = Watch(max_pending=n_pending)
        batches = iter(range(0, 10_000, 50))

        def update(watch=watch, batches=batches):
            X, start = rng.normal(size=(50, 2)), next(batches)
            keys = [Counted(i) for i in range(start, start + 50)]
            watch.update(X, predictions=(X[:, 0] > 0).astype(int), keys=keys)
            return keys

        while not watch.n_dropped_:
            keys = update()
        Counted.n_hashed = 0
        watch.update_labels(keys[10:30], np.arange(20) % 2)
        update()
        n_hashed.append(Counted.n_hashed)
    assert n_hashed[0] == n_hashed[1]


def test_pending_rows_equal_a_dict():
    rng, pending, expected, n_dropped = np.random.default_rng(1), PendingRows(40), {}, 0
    for step in range(300):
        n = int(rng.integers(0, 60 if step % 20 == 0 else 9))
        X, values = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
        keys = [f"{step}-{i}" for i in range(n)]
        n_dropped += pending.add(keys, X, values)
        expected.update(zip(keys, zip(X, values, strict=True), strict=True))
        surplus = max(0, len(expected) - 40)
        for key in list(expected)[:surplus]:
            del expected[key]
        n_dropped -= surplus
        chosen = rng.permutation([*expected, "unknown"])[:6].tolist()
        known, rows, of_rows = pending.rows_of(chosen)
        assert [chosen[i] for i in known] == [key for key in chosen if key in expected]
        for i, row, value in zip(known, rows, of_rows, strict=True):
            np.testing.assert_array_equal(row, expected[chosen[i]][0])
            np.testing.assert_array_equal(value, expected.pop(chosen[i])[1])
        pending.remove([chosen[i] for i in known])
        pending.check_state()
    assert n_dropped == 0
    assert len(pending._X) <= 4 * 40


def test_an_update_that_fails_leaves_the_pending_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    watch = Watch(max_pending=40)
    watch.update(X, predictions=(X[:, 0] > 0).astype(int))
    before = tamis.dumps(watch)
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "_alerts", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            watch.update(X, predictions=(X[:, 0] > 0).astype(int))
        with pytest.raises(ZeroDivisionError):
            watch.update_labels(range(10), np.arange(10) % 2)
    assert tamis.dumps(watch) == before
    assert watch.update_labels(range(10), np.arange(10) % 2) == []
    assert watch.n_unknown_ == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_X", np.zeros((30, 3))),
        ("_X", None),
        ("_predictions", np.zeros((30, 0))),
        ("_predictions", np.full((30, 1), np.nan)),
        ("_predictions", np.full((30, 1), 7.0)),
        ("_predictions", np.full((30, 1), -1.0)),
        ("_slots", {0: 1, 1: 1}),
        ("_free", [0]),
    ],
)
def test_pending_rows_that_no_watch_saved_are_rejected(name, value):
    X = np.random.default_rng(0).normal(size=(30, 2))
    watch = Watch(max_pending=40)
    watch.update(X, predictions=(X[:, 0] > 0).astype(int))
    tamis.loads(tamis.dumps(watch)).update_labels(range(10), np.arange(10) % 2)
    setattr(watch._pending, name, value)
    with pytest.raises(CheckpointError):
        tamis.loads(tamis.dumps(watch))


@pytest.mark.slow
def test_the_state_is_bounded(rng):
    X = rng.normal(size=(60_000, 10))
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=len(X)) > 0).astype(int)
    watch, sizes = Watch(LogisticRegression().fit(X[:1000], y[:1000])), []
    for start in range(0, len(X), 500):
        watch.update(X[start : start + 500], y=y[start : start + 500])
        if start + 500 in (5000, 20_000, 60_000):
            sizes.append(len(tamis.dumps(watch)))
    assert sizes[1] < 1.15 * sizes[0] < 700_000  # the quantile summaries are not full after 5,000 rows
    assert sizes[2] < 1.05 * sizes[1]  # logarithmic, within the summaries
