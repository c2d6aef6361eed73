"""Baselines, kappas and AUC against their definitions; what a run says of a stream whose truth is known."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from tamis import FIRES, FisherScore, prequential
from tamis.evaluate import (
    PrequentialResult,
    RunningErrors,
    RunningMetrics,
    SlidingAUC,
    SlidingMacroAUC,
    SlidingPrecisionRecall,
    state_bytes,
)
from tamis.streams import ArrayStream
from tests.twins.measures import auc, baselines, chance_corrected, macro_auc

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=80)


@given(
    labels=labels,
    before=st.lists(st.integers(0, 6), max_size=5),
    window=st.integers(1, 30),
    size=st.integers(1, 20),
)
@settings(max_examples=80)
def test_baselines_and_their_kappas_equal_the_definition(labels, before, window, size):
    actual, predicted = (np.array(side) for side in zip(*labels, strict=True))
    metrics = RunningMetrics(window)
    metrics.learn(np.array(before, dtype=int))
    for start in range(0, len(actual), size):
        metrics.update(actual[start : start + size], predicted[start : start + size])
    right = dict(zip(("majority", "no_change"), baselines(actual.tolist(), before), strict=True))
    for found, part in ((metrics.cumulative, slice(None)), (metrics.windowed, slice(-window, None))):
        accuracy = (actual == predicted)[part].mean()
        for name, kappa in (("majority", "kappa_m"), ("no_change", "kappa_t")):
            baseline = right[name][part].mean()
            assert found[f"{name}_accuracy"] == pytest.approx(baseline, abs=1e-12)
            assert found[kappa] == pytest.approx(chance_corrected(accuracy, baseline), abs=1e-12, nan_ok=True)


@given(
    rows=st.lists(
        st.tuples(st.booleans(), st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.1, 0.25, 7.0, math.inf])),
        min_size=1, max_size=60,
    ),
    window=st.integers(2, 25),
    size=st.integers(1, 60),
)  # fmt: skip
@settings(max_examples=100)
def test_sliding_auc_equals_all_pairs(rows, window, size):
    positive, scores = (np.array(side) for side in zip(*rows, strict=True))
    sliding, after_each_row = SlidingAUC(window), []
    for start in range(0, len(rows), size):
        sliding.update(positive[start : start + size], scores[start : start + size])
        stop = min(start + size, len(rows))
        recent = slice(max(0, stop - window), stop)
        assert sliding.windowed == pytest.approx(
            auc(positive[recent], scores[recent]), abs=1e-12, nan_ok=True
        )
    after_each_row = [
        auc(positive[max(0, stop - window) : stop], scores[max(0, stop - window) : stop])
        for stop in range(1, len(rows) + 1)
    ]
    known = [value for value in after_each_row if not math.isnan(value)]
    assert sliding.mean == pytest.approx(np.mean(known) if known else math.nan, nan_ok=True)


def test_auc_of_many_rows_equals_scikit_learn(rng):
    positive = rng.random(5000) < 0.3
    scores = np.round(rng.normal(size=5000) + positive, 2)
    sliding, at_once = SlidingAUC(1200), SlidingAUC(1200)
    for part in np.array_split(np.arange(5000), 37):
        sliding.update(positive[part], scores[part])
        sliding.check_state()
    at_once.update(positive, scores)
    assert at_once.windowed == sliding.windowed
    assert sliding.windowed == pytest.approx(roc_auc_score(positive[-1200:], scores[-1200:]), abs=1e-12)


@pytest.mark.parametrize(
    ("positive", "scores", "message"),
    [
        ([0, 1], [0.5], "one value for each row"),
        ([0, 1], [0.5, np.nan], "must not contain NaN"),
        ([0, 2], [0.5, 0.1], "zeros and ones"),
    ],
)
def test_auc_refuses_and_stays_as_it_was(positive, scores, message):
    sliding = SlidingAUC(5)
    sliding.update([0, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match=message):
        sliding.update(positive, scores)
    assert (sliding.windowed, sliding.n_seen) == (1.0, 2)


# -- in a run ----------------------------------------------------------------------------------------------


def rows(n=1000, n_features=8):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 2] + X[:, 5] > 0).astype(int)


class Known(ArrayStream):
    """The relevant features are 2 and 5, from row 550 on 1 alone; every tenth row before it is of the new kind."""

    drifts, drift_widths = (550,), (100,)

    def relevant_at(self, t):
        return np.array([2, 5] if t < 550 else [1])

    def relevant_rows(self, start, stop):
        table = np.zeros((stop - start, 8), dtype=bool)
        for i, t in enumerate(range(start, stop)):
            table[i, [1] if t >= 550 or (t >= 500 and t % 10 == 0) else [2, 5]] = True
        return table


class Always(FIRES):
    """Selects columns 2 and 6, whatever comes."""

    def get_support(self, indices=False):
        return np.isin(np.arange(8), [2, 6])


def test_a_run_tells_the_baselines_of_the_tested_rows():
    X, y = rows()
    result = prequential((X, y), FIRES(2), auc=False)
    majority, no_change = baselines(y[100:].tolist(), y[:100].tolist())
    total, steps = result.summary(), result.frames["steps"]
    assert total["majority_accuracy"] == pytest.approx(majority.mean())
    assert total["no_change_accuracy"] == pytest.approx(no_change.mean())
    assert total["kappa_t"] == pytest.approx(chance_corrected(total["accuracy"], no_change.mean()))
    assert steps["majority_accuracy_windowed"][-1] == pytest.approx(majority.mean())
    assert "majority_accuracy=" in repr(result)
    assert math.isnan(total["selection_accuracy"])
    assert math.isnan(total["auc"])


@pytest.mark.parametrize("learner", [SGDClassifier(random_state=0), GaussianNB()])
def test_a_run_ranks_the_rows_if_asked(learner):
    X, y = rows()
    options = {"window": 150, "scale": "none"}
    result = prequential((X, y), None, learner, auc=True, **options)
    plain = prequential((X, y), None, learner.__class__(**learner.get_params()), **options)
    twin, scores = learner.__class__(**learner.get_params()), []
    twin.partial_fit(X[:100], y[:100], classes=[0, 1])
    for start in range(100, 1000, 100):
        part = slice(start, start + 100)
        score = getattr(twin, "decision_function", None)
        scores += (score(X[part]) if score else twin.predict_proba(X[part])[:, 1]).tolist()
        twin.partial_fit(X[part], y[part])
    assert result.frames["steps"]["auc_windowed"][-1] == pytest.approx(roc_auc_score(y[-150:], scores[-150:]))
    assert result.summary()["auc"] > 0.9
    assert result.summary()["accuracy"] == plain.summary()["accuracy"]


def test_a_run_refuses_to_rank_by_a_learner_without_scores():
    with pytest.raises(ValueError, match=r"auc=True needs a learner with decision_function"):
        prequential(rows(), None, SimpleNamespace(partial_fit=print, predict=print), auc=True)


def test_where_the_truth_is_known_the_selection_is_compared_with_it(tmp_path):
    X, y = rows()
    result = prequential(Known(X, y), Always(2))
    steps = result.frames["steps"]
    # one of two relevant, one of six others; of the new kind none of one, two of seven others
    old, new = 0.7 / 2 + 0.3 * 5 / 6, 0.3 * 5 / 7
    drift = 0.45 * old + 0.55 * new  # in rows 500 to 600, five of the first fifty are of the new kind
    expected = [old] * 4 + [drift] + [new] * 4
    np.testing.assert_allclose(steps["selection_accuracy"], expected)
    np.testing.assert_allclose(steps["rsr"], [0.5] * 4 + [0.5 * 0.45] + [0] * 4)
    assert result.summary()["selection_accuracy"] == pytest.approx(np.mean(expected))
    truth = result.relevance_map()
    assert [np.flatnonzero(row).tolist() for row in truth] == [[2, 5]] * 4 + [[1]] * 5
    assert result.settings["drifts"] == [550.0]
    assert result.recovery("selection_accuracy").n_lost == 1
    assert result.summary()["n_drifts"] == 1
    assert prequential(Known(X, y), Always(2), max_rows=500).summary()["n_drifts"] == 0
    again = PrequentialResult.load(result.save(tmp_path / "run"))
    assert again.summary() == pytest.approx(result.summary(), nan_ok=True)
    np.testing.assert_array_equal(again.relevance_map(), truth)


def test_without_a_selection_all_features_count_as_selected():
    result = prequential(Known(*rows()), None)
    np.testing.assert_allclose(result.frames["steps"]["selection_accuracy"], 0.7)


def test_a_run_with_truth_and_auc_goes_on_from_its_checkpoint(tmp_path):
    stream, options = Known(*rows()), {"auc": True, "batch_size": 50}
    whole = prequential(stream, FIRES(2), SGDClassifier(random_state=0), **options)
    file = tmp_path / "run.tamis"

    def stop(step):
        if step.n_seen == 500:
            raise KeyboardInterrupt

    prequential(
        stream, FIRES(2), SGDClassifier(random_state=0), checkpoint=file, on_step=stop, on_interrupt="return",
        **options,
    )  # fmt: skip
    rest = prequential(stream, FIRES(2), SGDClassifier(random_state=0), checkpoint=file, **options)
    for name, column in whole.frames["steps"].items():
        if not name.startswith(("seconds", "memory", "model")):
            np.testing.assert_array_equal(rest.frames["steps"][name], column, err_msg=name)
    np.testing.assert_array_equal(rest.relevance_map(), whole.relevance_map())


def test_bytes_are_those_of_the_numbers():
    table = np.zeros((50, 4))
    assert state_bytes(table, table[:, 1], None) == 1600
    assert state_bytes({"a": 1.0}) == 16 + 1 + 8
    assert state_bytes([table, [table]]) == 16 + 8 + 1600
    small, large = (FIRES(2).partial_fit(np.ones((4, n)), [0, 1, 0, 1]) for n in (10, 1010))
    # Mean, deviation and running average of each weight; mean and variance of each column; its sum and count for what
    # is missing.
    assert (state_bytes(large) - state_bytes(small)) / 8000 == 7


def test_ram_hours_are_bytes_by_time():
    result = prequential(rows(), FIRES(2))
    steps = result.frames["steps"]
    assert (steps["model_bytes"] > 8 * 8 * 3).all()
    expected = (steps["model_bytes"] * steps["seconds_total"]).sum() / 2**30 / 3600
    assert result.summary()["ram_hours"] == pytest.approx(expected)


def test_many_generators_count_each():
    """What is looked at on the way lives on, lest the next one take its place in memory and be taken for it."""
    one = state_bytes(np.random.default_rng(0))
    assert one > 0
    assert (
        state_bytes(*(np.random.default_rng(seed) for seed in range(100))) > 50 * one
    )  # some parts are shared


@given(
    seed=st.integers(0, 1000),
    classes=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    window=st.integers(2, 30),
)
@settings(max_examples=60)
def test_macro_auc_equals_the_definition_at_each_step(seed, classes, window):
    rng, sliding = np.random.default_rng(seed), SlidingMacroAUC(window)
    n_classes = np.maximum.accumulate(classes)
    actual, scores, values = np.zeros(0, dtype=int), np.zeros((0, n_classes[-1])), []
    for k in n_classes:
        n = int(rng.integers(1, 9))
        codes, known = rng.integers(0, k, n), rng.integers(0, 4, (n, k)) / 3
        sliding.update(codes, known)
        actual = np.append(actual, codes)
        scores = np.vstack(
            [scores, np.pad(known, ((0, 0), (0, len(scores.T) - k)), constant_values=math.nan)]
        )
        now = macro_auc(actual[-window:], scores[-window:])
        assert sliding.windowed == pytest.approx(now, abs=1e-12, nan_ok=True)
        values.append(now)
    assert sliding.n_seen == len(actual)
    assert math.isfinite(sliding.mean) or np.isnan(values).all()
    for auc_of_class in sliding._of_class:
        auc_of_class.check_state()


def test_macro_auc_equals_scikit_learn(rng):
    sliding, actual, scores = SlidingMacroAUC(1000), rng.integers(0, 5, 3000), rng.dirichlet(np.ones(5), 3000)
    scores[np.arange(3000), actual] += 0.1
    scores /= scores.sum(axis=1, keepdims=True)
    for at in range(0, 3000, 100):
        sliding.update(actual[at : at + 100], scores[at : at + 100])
    expected = roc_auc_score(actual[-1000:], scores[-1000:], multi_class="ovr", average="macro")
    assert sliding.windowed == pytest.approx(expected, abs=1e-12)
    assert 0.5 < sliding.mean < 1.0


@pytest.mark.parametrize(
    ("actual", "scores", "message"),
    [
        ([0, 1], [[0.1, 0.9]], r"one code for each row.*got shapes \(2,\) and \(1, 2\)"),
        ([0, 2], [[0.1, 0.9], [0.2, 0.8]], "codes from 0 to 1"),
        ([0, 1], [[0.1, math.nan], [0.2, 0.8]], "must not contain NaN"),
        ([0], [[0.1]], "a column for each class so far"),
    ],
)
def test_macro_auc_rejects_a_batch_and_is_unchanged(actual, scores, message):
    sliding = SlidingMacroAUC(10)
    sliding.update([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(ValueError, match=message):
        sliding.update(actual, scores)
    assert (sliding.n_seen, sliding.windowed) == (2, 1.0)


def test_macro_auc_of_too_many_classes_is_undefined():
    sliding = SlidingMacroAUC(10)
    sliding.update([0, 1], np.eye(2))
    sliding.update([0, 100], np.zeros((2, 101)))
    assert math.isnan(sliding.windowed)
    assert math.isnan(sliding.mean)
    assert state_bytes(sliding) < 500


def three_classes():
    """Return rows of two classes, and of a third from row 1,000 on."""
    X, y = rows(2000)
    return X, np.where((np.arange(2000) >= 1000) & (X[:, 0] > 1), 2, y)


def in_batches(X, y):
    return ((X[at : at + 100], y[at : at + 100]) for at in range(0, len(y), 100))


RANKS = [
    f"{name}_{scope}"
    for name in ("auc", "average_precision", "recall_at_precision", "frozen_auc", "random_auc", "all_auc")
    for scope in ("cumulative", "windowed")
]


@pytest.mark.parametrize("learner", [GaussianNB(), SGDClassifier(random_state=0)])
def test_measures_of_two_classes_end_with_a_third(learner, tmp_path):
    X, y = three_classes()
    options = {"window": 300, "scale": "none", "frozen_after": 300, "baselines": "both"}
    result = prequential(in_batches(X, y), FisherScore(3), learner, **options)
    steps, total = result.frames["steps"], result.summary()
    for name in RANKS:
        assert np.isfinite(steps[name][5:9]).all(), name
        assert np.isnan(steps[name][9:]).all(), name
    assert np.isnan(steps["macro_auc_windowed"][:9]).all()
    assert np.isfinite(steps["macro_auc_windowed"][9:]).all()
    assert math.isnan(total["frozen_auc_gain"])
    assert "threshold" not in result.settings
    assert result.remarks()[0].startswith(
        "2 is a third class, so AUC, average precision and recall at a precision"
    )
    assert "third class" in result.report()
    saved = json.loads((result.save(tmp_path / "run") / "settings.json").read_text())["summary"]
    assert saved["auc"] is None
    assert saved["macro_auc"] == total["macro_auc"]


def test_a_run_ranks_three_classes_as_scikit_learn():
    X, y = three_classes()
    X, y = X[1000:], y[1000:]
    result = prequential((X, y), None, GaussianNB(), window=500, scale="none")
    twin = GaussianNB().partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    scores = []
    for at in range(100, 1000, 100):
        scores += twin.predict_proba(X[at : at + 100]).tolist()
        twin.partial_fit(X[at : at + 100], y[at : at + 100])
    expected = roc_auc_score(y[-500:], scores[-500:], multi_class="ovr", average="macro")
    assert result.frames["steps"]["macro_auc_windowed"][-1] == pytest.approx(expected)
    assert result.remarks() == [one for one in result.remarks() if "third class" not in one]
    assert math.isnan(prequential((X, y), None, GaussianNB(), auc=False).summary()["macro_auc"])


def test_a_run_continues_after_its_third_class(tmp_path):
    X, y = three_classes()
    names = ("auc_windowed", "macro_auc_windowed", "macro_auc_cumulative")
    stream, file = Undeclared(X, y), tmp_path / "run.tamis"
    whole = prequential(stream, FIRES(2), GaussianNB())
    with pytest.raises(RuntimeError, match="stop"):
        prequential(stream, FIRES(2), GaussianNB(), checkpoint=file, checkpoint_every=1, on_step=stop_at_1300)
    again = prequential(stream, FIRES(2), GaussianNB(), checkpoint=file)
    for name in names:
        np.testing.assert_array_equal(again.frames["steps"][name], whole.frames["steps"][name])
    assert again.remarks() == whole.remarks()


def stop_at_1300(step):
    if step.n_seen == 1300:
        raise RuntimeError("stop")


class Undeclared(ArrayStream):
    """An array whose classes are known as they arrive."""

    def __init__(self, X, y):
        super().__init__(X, y)
        self.classes = None


# For each measure: a new one, how it counts rows, and its values over the window.
UNDEFINED = {
    "kappa": (RunningMetrics, lambda m, y, p, X: m.update(y, p), lambda m: [m.windowed["kappa"]]),
    "recall": (RunningMetrics, lambda m, y, p, X: m.update(y, p), lambda m: [m.windowed["balanced_accuracy"]]),
    "r2": (RunningErrors, lambda m, y, p, X: m.update(y, p), lambda m: [m.windowed["r2"]]),
    "auc": (SlidingAUC, lambda m, y, p, X: m.update(y == 1, X[:, 0]), lambda m: [m.windowed]),
    "macro auc": (SlidingMacroAUC, lambda m, y, p, X: m.update(y, X), lambda m: [m.windowed]),
    "precision": (
        SlidingPrecisionRecall, lambda m, y, p, X: m.update(y == 1, X[:, 0]), lambda m: list(m.windowed),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_measure_that_becomes_undefined_is_that_of_its_window(name, rng):
    """Three classes, then only class 0, then three again: each value is that of the rows of its window alone."""
    kind, add, read = UNDEFINED[name]
    window, found = 40, []
    measure = kind(window)
    y = np.concatenate([rng.integers(0, 3, 60), np.zeros(80, dtype=int), rng.integers(0, 3, 40)])
    p, X = np.where(rng.random(180) < 0.7, y, 0), rng.normal(size=(180, 3))
    for stop in range(20, 181, 20):
        add(measure, *(part[stop - 20 : stop] for part in (y, p, X)))
        fresh = kind(1000)
        add(fresh, *(part[max(0, stop - window) : stop] for part in (y, p, X)))
        assert read(measure) == pytest.approx(read(fresh), abs=1e-9, nan_ok=True)
        found.append(read(measure)[0])
    assert name == "recall" or np.isnan(found[4:7]).all()
    assert np.isfinite([*found[:3], *found[8:]]).all()
