"""Selection by evidence: e-values are those of the definition in any batching, and few selected features are false."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import ChiSquare, FisherScore, GiniIndex, MutualInformation, Screening, TScore
from tamis.dependence.e_values import e_bh
from tamis.errors import DataError
from tamis.summaries.evidence import Evidence
from tests.twins import evidence as twin

pytestmark = pytest.mark.slow  # evidence of many streams

SCREENS = (TScore, FisherScore, MutualInformation, ChiSquare, GiniIndex)


def rows(n=700, n_classes=2, missing=False, seed=0):
    """Column 0 moves with the class, 1 widens, 2 holds categories, 3 is constant, 4 tells nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 0.6 * y
    X[:, 1] *= 1 + 0.6 * y
    X[:, 2] = np.where(rng.random(n) < 0.4, y, rng.integers(0, 9, n))
    X[:, 3] = 3.0
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_equals_its_definition(n_classes, weighted):
    X, y = rows(n_classes=n_classes, missing=True)
    w = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 700) if weighted else np.ones(700)
    t = TScore(None, level=0.05).partial_fit(X, y, range(n_classes), w)
    chi = ChiSquare(None, level=0.05, categorical=[2]).partial_fit(X, y, range(n_classes), w)
    X, y = X[w > 0.0], y[w > 0.0]  # a row counts once or not at all
    for j in range(5):
        expected = twin.log_e(twin.of_values(X[:, j]), y, n_classes)
        assert math.log(t.evalues_[j]) == pytest.approx(expected, abs=1e-8)
        first = np.sort(X[:256, j][~np.isnan(X[:256, j])])
        if j == 2:
            codes, counts = np.unique(first, return_counts=True)
            common = codes[np.argsort(-counts, kind="stable")][:4].tolist()
            cells = np.array([common.index(x) if x in common else 4 for x in X[:, j]])
        else:
            edges = [first[math.ceil(len(first) * h / 5 - 1e-9) - 1] for h in range(1, 5)]
            cells = (X[:, j, None] > edges).sum(axis=1)
        cells[np.isnan(X[:, j])] = -1
        expected = twin.log_e(twin.of_bins(cells, 5), y, n_classes)
        if not weighted:  # whose edges are quantiles of weights
            assert math.log(chi.evalues_[j]) == pytest.approx(expected, abs=1e-8)
    assert t.evalues_[3] == chi.evalues_[3] == 1.0


@pytest.mark.parametrize("kind", [TScore, ChiSquare])
@pytest.mark.parametrize("of", ["values", "labels"])
def test_weights_are_no_evidence(kind, of):
    """Rows may be weighted by the amount that a column holds, or for balance: that relates no column to the class."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = np.exp(rng.normal(size=(2000, 5))), rng.integers(0, 2, 2000)
        weight = X[:, 0] if of == "values" else 1.0 + 30.0 * y
        found = kind(None, level=0.05).partial_fit(X, y, [0, 1], weight).evalues_
        assert found.max() < 20.0
        if kind is TScore:
            np.testing.assert_array_equal(found, kind(None, level=0.05).partial_fit(X, y, [0, 1]).evalues_)


def test_evidence_of_two_bins_equals_its_definition():
    X, y = rows()
    screen = ChiSquare(None, level=0.05, n_bins=2).partial_fit(X, y, [0, 1])
    for j in (0, 1, 4):
        cells = (X[:, j] > np.sort(X[:256, j])[127]).astype(int)
        expected = twin.log_e(twin.of_bins(cells, 2), y, 2)
        assert math.log(screen.evalues_[j]) == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCREENS)
@pytest.mark.parametrize("sparse", [False, True])
def test_any_batching_and_saving_give_the_same_evidence(kind, sparse, tmp_path):
    X, y = rows(n_classes=3)
    options = {"n_features_to_select": None, "level": 0.05}
    options |= {} if kind in (TScore, FisherScore) else {"categorical": [2]}
    whole = kind(**options).partial_fit(X, y, classes=range(3))
    for size in (1, 90, 300):
        parts = kind(**options)
        for start in range(0, 700, size):
            part = slice(start, start + size)
            parts.partial_fit(sp.csr_matrix(X[part]) if sparse else X[part], y[part], classes=range(3))
            if start == 300:
                parts = tamis.load(tamis.save(parts, tmp_path / "parts.tamis"))
        np.testing.assert_allclose(np.log(parts.evalues_), np.log(whole.evalues_), atol=1e-9)
        np.testing.assert_array_equal(parts.get_support(), whole.get_support())


def test_each_score_selects_what_it_sees():
    X, y = rows(3000)
    found = {kind: kind(None, level=0.05).fit(X, y).get_support(indices=True).tolist() for kind in SCREENS}
    assert found[TScore] == found[FisherScore] == [0]
    assert found[MutualInformation] == found[ChiSquare] == found[GiniIndex] == [0, 1, 2]
    nothing = TScore(None, level=0.05).fit(X[:, [3, 4]], y)
    assert nothing.get_support().tolist() == [False, False]
    table = Screening(None, scores=["mi", "t"], level=0.05).fit(X, y).table_
    np.testing.assert_array_equal(table["selected"], [True, True, True, False, False])
    assert table["evalue"][4] < 10 < table["evalue"][0]


@pytest.mark.parametrize("case", ["normal", "cauchy", "rare", "moving"])
def test_the_mean_e_value_of_features_that_tell_nothing_is_one_at_most(case):
    """Over 40 streams of 200 features, at the times when each one's e-value is largest so far or 10."""
    rng = np.random.default_rng(0)
    stopped = []
    for _ in range(10):
        y = (rng.random(960) < (0.04 if case == "rare" else 0.5)).astype(np.int64)
        X = np.exp(rng.normal(size=(960, 300))) if case == "rare" else rng.normal(size=(960, 300))
        if case == "cauchy":
            X = rng.standard_cauchy(X.shape)
        if case == "moving":  # values and class shares drift together from block to block
            time = np.repeat(np.linspace(0, 5, 30), 32)
            X, y = X + time[:, None], (rng.random(960) < 0.1 + 0.15 * time).astype(np.int64)
        evidence, value = Evidence(300, 2), np.ones(300)
        for start in range(0, 960, 32):
            evidence.update(X[start : start + 32], y[start : start + 32])
            value = np.where(value >= 10, value, np.exp(evidence.log_e()))  # stop at 10
        stopped.append(value)
    assert np.mean(stopped) < 1.15
    assert np.mean(np.array(stopped) >= 10) < 0.1


def test_merged_evidence_multiplies():
    X, y = rows(1100)
    labels = np.array(["b", "a"])[y]
    for kind in (TScore, GiniIndex):
        cuts = ((0, 320), (320, 640), (640, 960), (960, 1100))
        parts = [kind(None, level=0.05).partial_fit(X[a:b], labels[a:b]) for a, b in cuts]
        logs = [np.log(part.evalues_) for part in parts]
        left = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
        if kind is TScore:
            np.testing.assert_allclose(
                np.log(left.evalues_)[0], np.log(kind(None, level=0.05).fit(X, labels).evalues_)[0], atol=0.5
            )
        assert np.log(left.evalues_)[0] > max(log[0] for log in logs)
        assert left.n_seen_ == 1100
    with pytest.raises(ValueError, match=r"level is 0\.1 here and 0\.05 there"):
        TScore(None, level=0.1).fit(X, y).merge(TScore(None, level=0.05).fit(X, y))


def test_a_class_that_comes_late_starts_with_what_the_others_have():
    X, y = rows(640)
    screen = TScore(None, level=0.05).partial_fit(X, y)
    before = screen.evalues_
    screen.partial_fit(X[:1], [7])  # which waits for its block
    np.testing.assert_allclose(screen.evalues_, before, rtol=1e-9)


def test_restarts_forget_and_spend_the_level():
    X, y = rows(640)
    screen = MutualInformation(None, level=0.05).fit(X, y)
    assert screen.get_support()[0]
    screen.restart()
    assert screen.get_support().sum() == 0
    assert screen.scores_.max() == 0.0
    assert screen.n_seen_ == 640
    screen.partial_fit(X, y)
    np.testing.assert_allclose(
        screen.evalues_, MutualInformation(None, level=0.05).fit(X, y).evalues_, rtol=1e-9
    )
    for screen in (TScore(None, level=0.05).fit(X, y), TScore(1).fit(X, y)):  # without level: it forgets
        assert screen.restart().scores_.max() == 0.0
    shares = [6 / (math.pi * k) ** 2 for k in range(1, 100_000)]
    assert 0.9999 < sum(shares) < 1
    X[:, 4] += 0.2 * y
    log_e = math.log(TScore(None, level=0.9).fit(X[:, 4:], y).evalues_[0])
    level = 1.01 / (math.exp(log_e) * shares[0])  # just enough before a restart
    assert 0 < level < 0.9
    once = TScore(None, level=level).fit(X[:, 4:], y)
    assert once.get_support().all()
    assert not once.restart().partial_fit(X[:, 4:], y).get_support().any()
    with pytest.raises(ValueError, match="was restarted cannot be merged"):
        once.merge(TScore(None, level=level).fit(X[:, 4:], y))


def two_drifts(seed, n=9000, effect=0.6):
    """Columns 2, 7 and 11 of 20 tell, one after the other."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 20)), rng.integers(0, 2, n)
    for i, j in enumerate((2, 7, 11)):
        rows = slice(i * n // 3, (i + 1) * n // 3)
        X[rows, j] += effect * y[rows]
    return X, y


@pytest.mark.parametrize("kind", [TScore, MutualInformation])
@pytest.mark.parametrize("restarts", ["drift", 2000])
def test_restarts_are_the_same_in_any_batching_and_by_hand(kind, restarts, tmp_path):
    X, y = two_drifts(0)
    X[::7, 3] = np.nan
    whole = kind(None, level=0.05, restarts=restarts).partial_fit(X, y)
    parts = kind(None, level=0.05, restarts=restarts)
    for start in range(0, 9000, 700):
        part = slice(start, start + 700)
        rows = sp.csr_matrix(X[part]) if restarts == 2000 else X[part]
        parts.partial_fit(rows, y[part], classes=[0, 1])
        assert parts.drift_detected_ == any(start < at <= start + 700 for at in parts.restarts_)
        if start == 2100:
            parts = tamis.load(tamis.save(parts, tmp_path / "parts.tamis"))
    assert parts.restarts_ == whole.restarts_
    by_hand, begun = kind(None, level=0.05), 0
    for at in whole.restarts_:
        by_hand.partial_fit(X[begun:at], y[begun:at], classes=[0, 1]).restart()
        begun = at
    by_hand.partial_fit(X[begun:], y[begun:])
    assert by_hand.restarts_ == whole.restarts_
    for other in (whole, by_hand):
        np.testing.assert_allclose(np.log(parts.evalues_), np.log(other.evalues_), atol=1e-9)
        np.testing.assert_array_equal(parts.get_support(), other.get_support())
    if restarts == "drift":
        assert len(whole.restarts_) == 2
        assert 3000 < whole.restarts_[0] <= 4608
        assert 6000 < whole.restarts_[1] <= 7680
        assert whole.get_support(indices=True).tolist() == [11]
        assert TScore(None, level=0.05).fit(X, y).get_support(indices=True).tolist() == [2, 7, 11]
    else:
        assert whole.restarts_ == [2000, 4000, 6000, 8000]


@pytest.mark.slow
def test_over_all_beginnings_the_level_is_kept():
    """Of 60 streams with two drifts, each looked at every 300 rows: how often something that never told is kept."""
    false, found, alarms = [], [], []
    for seed in range(60):
        X, y = two_drifts(seed, n=4500, effect=1.0)
        screen, wrong = TScore(None, level=0.2, restarts="drift"), 0.0
        for start in range(0, 4500, 300):
            kept = screen.partial_fit(X[start : start + 300], y[start : start + 300]).get_support(
                indices=True
            )
            told = {2, 7, 11} if start >= 3000 else {2, 7} if start >= 1500 else {2}
            wrong = max(wrong, len({*kept.tolist()} - told) / max(len(kept), 1))
        false.append(wrong)
        found.append(kept.tolist() == [11])
        alarms.append(len(screen.restarts_))
    assert np.mean(false) < 0.1
    assert np.mean(found) > 0.9
    assert alarms == [2] * 60


def test_what_is_refused_after_a_restart_leaves_all_as_it_was():
    X, y = two_drifts(0)
    screen = Screening(None, scores=["mi", "t"], level=0.05, restarts=400).partial_fit(X[:300], y[:300])
    before, scores = screen.evalues_, screen.scores_
    bad = X[300:2000].copy()
    bad[1200, 2] = np.inf
    with pytest.raises(DataError, match="infinity in column 2"):
        screen.partial_fit(bad, y[300:2000])
    np.testing.assert_array_equal(screen.evalues_, before)
    np.testing.assert_array_equal(screen.scores_, scores)
    assert screen.restarts_ == []
    screen.partial_fit(X[300:2000], y[300:2000])
    again = Screening(None, scores=["mi", "t"], level=0.05, restarts=400).partial_fit(X[:2000], y[:2000])
    assert screen.restarts_ == again.restarts_ == [400, 800, 1200, 1600, 2000]


def test_restarts_without_a_level_forget():
    X, y = two_drifts(0)
    screen = TScore(1, restarts="drift").fit(X, y)
    assert screen.get_support(indices=True).tolist() == [11]
    with pytest.raises(ValueError, match="restarts='drift': when it restarts depends on the order"):
        screen.merge(TScore(1, restarts="drift").fit(X, y))


def test_columns_that_show_while_a_drift_is_watched_for():
    X, y = two_drifts(0)
    X[:1000, 11:] = 0.0
    early, late = sp.csr_matrix(X[:1000]), sp.csr_matrix(X[1000:])
    known, widened = (MutualInformation(None, level=0.05, restarts="drift") for _ in range(2))
    known.partial_fit(early, y[:1000]).partial_fit(late, y[1000:])
    widened.partial_fit(early[:, :11], y[:1000]).widen(20).partial_fit(late, y[1000:])
    assert widened.restarts_ == known.restarts_
    np.testing.assert_allclose(np.log(widened.evalues_), np.log(known.evalues_), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_features_to_select": None, "level": 0.05, "restarts": "often"},
            "restarts must be one of 'drift', None, or an integer",
        ),
        ({"restarts": 500, "half_life": 9}, "restarts=500 discards all rows at once, and half_life"),
        (
            {"level": 0.05},
            "level=0.05 decides how many features are kept: set n_features_to_select=None, which is 0.1",
        ),
        ({"n_features_to_select": None}, "n_features_to_select must be a number"),
        (
            {"n_features_to_select": None, "level": 0.05, "half_life": 9},
            "needs rows that do not fade: omit half_life",
        ),
        ({"n_features_to_select": None, "level": 1.0}, "level must be a number in"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TScore(**options).fit(*rows())


def test_evalues_need_a_level():
    with pytest.raises(
        AttributeError,
        match=r"evalues_ needs level: pass, for example, n_features_to_select=None, level=0.05",
    ):
        _ = TScore(1).fit(*rows()).evalues_


def test_what_is_refused_leaves_the_evidence_alone():
    X, y = rows()
    screen = Screening(None, scores=["mi", "t"], level=0.05).fit(X, y)
    before = screen.evalues_
    bad = X.copy()
    bad[7, 2] = np.inf
    with pytest.raises(DataError, match="infinity in column 2"):
        screen.partial_fit(bad, y)
    np.testing.assert_array_equal(screen.evalues_, before)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150])
def test_evidence_of_values_does_not_depend_on_their_scale(scale):
    X, y = rows(320)
    one, other = Evidence(5, 2), Evidence(5, 2)
    one.update(X, y)
    other.update(X * scale, y)
    np.testing.assert_allclose(other.log_e(), one.log_e(), atol=1e-6)


def test_columns_that_show_while_rows_arrive():
    X, y = rows(640)
    known, widened = (MutualInformation(None, level=0.05) for _ in range(2))
    X[:300, 4] = 0.0
    known.partial_fit(sp.csr_matrix(X[:300]), y[:300]).partial_fit(sp.csr_matrix(X[300:]), y[300:])
    widened.partial_fit(sp.csr_matrix(X[:300, :4]), y[:300]).widen(5).partial_fit(
        sp.csr_matrix(X[300:]), y[300:]
    )
    np.testing.assert_allclose(widened.evalues_, known.evalues_, rtol=1e-9)


def test_e_bh_is_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        log_e = rng.normal(size=12) * 3
        best = 0
        for k in range(1, 13):
            if sorted(log_e, reverse=True)[k - 1] >= math.log(12 / (k * 0.2)):
                best = k
        expected = [best > 0 and sum(other > e for other in log_e) < best for e in log_e]
        assert e_bh(log_e, 0.2).tolist() == expected
    assert list(itertools.chain(e_bh(np.array([]), 0.1))) == []
