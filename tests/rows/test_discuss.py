"""DISCUSS against its twin, any batches, the printed trigger, recovery after drifts and impossible input."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import load_stream
from tamis.errors import DataError
from tamis.evaluate import selection_accuracy
from tamis.rows.discuss.discuss import DISCUSS
from tests.twins.discuss import DiscussTwin

NAMES = {
    "n_features_to_select": "most",
    "bias_correction": "corrected",
    "min_interval": "interval",
    "alpha_drift": "alpha",
}
OPTIONS = [
    {},
    {"redundancy": None, "threshold": 0.1, "alpha_drift": None},
    {"redundancy": "predominance", "half_life": None, "n_features_to_select": 2},
    {"redundancy": "hoeffding", "threshold": "auto", "bias_correction": False, "margin": 0.0, "min_interval": 1},
    {"half_life": 70, "n_features_to_select": 3, "threshold": 0.0, "delta": 0.5, "alpha_drift": 0.1},
    {"trigger": "literal", "redundancy": "predominance", "bias_correction": False, "threshold": 0.01,
     "n_features_to_select": 2},
    {"trigger": "literal", "threshold": 0.15, "min_features": 2},
]  # fmt: skip


def drifting(n_rows=300, categories=True, seed=0):
    """Rows of six features, of which two and a copy of one matter, others in each third; the last is constant."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_rows, 6)).astype(float) if categories else rng.normal(size=(n_rows, 6))
    X[:, 4], X[:, 5] = np.where(rng.random(n_rows) < 0.1, X[:, 4], X[:, 0]), 7.0
    middle = 1.5 if categories else 0.0
    a, b = np.where(np.arange(n_rows) // (n_rows // 3) % 2, [[2], [3]], [[0], [1]])
    rows = np.arange(n_rows)
    y = (X[rows, a] > middle) & (X[rows, b] > middle - 1)
    return X, np.where(rng.random(n_rows) < 0.05, ~y, y).astype(int)


def twin_of(options, n_classes=2, **more):
    translated = {NAMES.get(name, name): value for name, value in {**options, **more}.items()}
    translated["literal"] = translated.pop("trigger", "crossing") == "literal"
    return DiscussTwin(6, n_classes, **translated)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "categories"), [*((o, True) for o in OPTIONS), *((o, False) for o in OPTIONS[::3])], ids=str
)
def test_equals_the_twin(options, categories):
    X, y = drifting(
        300 if "trigger" in options else 750, categories=categories
    )  # the literal one has ties later
    selector = DISCUSS(window=60, categorical="all" if categories else None, **options)
    twin = twin_of(options, window=60, n_bins=None if categories else 5)
    drifts, sets = 0, set()
    for row, code in zip(X, y, strict=True):
        selector.partial_fit(row[None], [code], classes=[0, 1])
        twin.learn(row.tolist(), int(code))
        assert selector.selected_.tolist() == twin.selected
        assert selector.drift_detected_ == twin.drift
        drifts += twin.drift
        sets.add(tuple(twin.selected))
        np.testing.assert_allclose(selector.scores_, twin.su, atol=1e-12)
    assert drifts >= 2
    assert len(sets) >= 2


@pytest.mark.slow
@given(cuts=st.lists(st.integers(1, 449), max_size=8), literal=st.booleans())
@settings(max_examples=12, deadline=None)
def test_any_batches_give_the_same_bits(cuts, literal):
    X, y = drifting(450, categories=False, seed=1)
    X[::7, 1] = np.nan
    options = {"trigger": "literal", "n_features_to_select": 2} if literal else {"alpha_drift": 0.05}
    whole = DISCUSS(window=60, half_life=100, **options).partial_fit(X, y, classes=[0, 1])
    parts, told = DISCUSS(window=60, half_life=100, **options), False
    for part in np.split(np.arange(len(y)), sorted(set(cuts))):
        told |= parts.partial_fit(X[part], y[part], classes=[0, 1]).drift_detected_
    assert told
    assert parts.selected_.tolist() == whole.selected_.tolist()
    assert parts.scores_.tobytes() == whole.scores_.tobytes()
    assert (parts._mean.tobytes(), parts._next) == (whole._mean.tobytes(), whole._next)
    assert parts._present.began == whole._present.began
    for mine, other in zip(parts._present.bayes, whole._present.bayes, strict=True):
        assert mine.tobytes() == other.tobytes()


@pytest.mark.slow
def test_the_printed_trigger_fires_on_nearly_every_row_and_crossings_seldom():
    """The spec's own runs, 20,000 rows: literal 99 % of rows, crossing by 0.02 at 0.3 %, for BG2 and n = 5."""
    stream = load_stream("BG2", seed=3, n_rows=1600, n_drifts=1, width=1)
    X, y = stream.take(1600)
    shares = []
    for options in ({}, {"trigger": "crossing", "min_interval": 1}):
        selector = DISCUSS.paper(5, categorical="all", **options)
        renewals = _count_selections(selector)
        selector.fit(X, y)
        shares.append(renewals[0] / (1600 - 299))
    assert shares[0] > 0.9
    assert shares[1] < 0.02


def _count_selections(selector):
    counted, renew = [0], selector._renew

    def counting(n):
        counted[0] += 1
        renew(n)

    selector._renew = counting
    return counted


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("BG1", 0.95), ("AN", 0.85)])
def test_finds_the_relevant_features_and_follows_them(name, least):
    stream = load_stream(name, seed=0, n_rows=12_000, n_drifts=1, width=1)
    names = [j for j, kind in enumerate(stream.feature_types) if kind == "nominal"]
    selector, found = DISCUSS(categorical=names), []
    for start, (X, y) in enumerate(stream.batches(200)):
        selector.partial_fit(X, y)
        if start * 200 % 6000 >= 1000:
            truth = stream.relevant_at(start * 200)
            found.append(selection_accuracy(selector.selected_, truth, stream.n_features).accuracy)
    assert np.mean(found) > least


@pytest.mark.slow
def test_recovers_on_fifty_uniform_features_soon(shared):
    """On average over two drifts, and the rows to restart from are nearly all new ones."""
    spec = importlib.util.spec_from_file_location("sea50", shared / "peer_benchmarks" / "sea50.py")
    sea50 = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sea50)
    X, y, relevant = sea50.sea50(0, n=30_000)
    selector, late = DISCUSS(), []
    for start in range(0, 30_000, 25):
        selector.partial_fit(X[start : start + 25], y[start : start + 25])
        concept = start // 10_000
        if len(late) == concept and set(relevant[concept]) <= set(selector.selected_.tolist()):
            late.append(start + 25 - 10_000 * concept)
            assert concept == 0 or selector.n_replay <= late[-1] + 75
    assert len(late) == 3
    assert np.mean(late[1:]) <= 225


def test_a_duplicate_is_passed_by_and_none_of_noise_is_selected_but_one():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 10)).astype(float)
    X[:, 6] = X[:, 2]
    y = X[:, 2].astype(int)
    assert DISCUSS(categorical="all").fit(X, y).selected_.tolist() == [2]
    assert DISCUSS(categorical="all", redundancy=None).fit(X, y).selected_.tolist() == [2, 6]
    noise = rng.integers(0, 2, 600)
    assert len(DISCUSS(delta=1e-6).fit(X, noise).selected_) == 1
    assert DISCUSS(delta=1e-6, min_features=0).fit(X, noise).get_support().all()


def test_weights_repeat_rows_and_a_window_of_one_class_waits():
    X, y = drifting()
    weight = np.arange(len(y)) % 3
    left = DISCUSS(window=60).fit(X, y, sample_weight=weight)
    right = DISCUSS(window=60).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert left.scores_.tobytes() == right.scores_.tobytes()
    with pytest.raises(DataError, match=r"sample_weight\[\d+\] is 0\.5"):
        left.partial_fit(X, y, sample_weight=np.full(len(y), 0.5))
    waiting = DISCUSS(window=60).partial_fit(X[:100], np.zeros(100, int), classes=[0, 1])
    assert waiting.selected_.size == 0
    assert waiting.get_support().all()
    assert not waiting.drift_detected_
    assert waiting.partial_fit(X, y).selected_.size > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": 1.5}, "threshold"),
        ({"threshold": "best"}, "threshold"),
        ({"window": 7}, "window"),
        ({"trigger": "every"}, "trigger"),
        ({"margin": -0.1}, "margin"),
        ({"redundancy": "copies"}, "redundancy"),
        ({"half_life": 0.5}, "half_life"),
        ({"min_interval": 0}, "min_interval"),
        ({"min_features": -1}, "min_features"),
        ({"delta": 0.0}, "delta"),
        ({"alpha_drift": 1.0}, "alpha_drift"),
        ({"cuts": "ranks"}, "cuts"),
        ({"bias_correction": None}, "bias_correction"),
        ({"n_features_to_select": 0}, "n_features_to_select"),
        ({"n_features_to_select": "few"}, "n_features_to_select"),
        ({"n_bins": 1}, "n_bins"),
        ({"categorical": [6]}, "categorical"),
    ],
    ids=str,
)
def test_impossible_parameters_are_named(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        DISCUSS(**options).fit(*drifting(30))


def alarms(X, y, size=100, **parameters):
    selector, found = DISCUSS(**parameters), []
    for at in range(0, len(y), size):
        if selector.partial_fit(X[at : at + size], y[at : at + size], classes=np.unique(y)).drift_detected_:
            found.append(at + size)
    return found, selector


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shares", "rescaled"])
def test_class_shares_and_scales_of_what_is_irrelevant_are_no_drift(kind):
    rng = np.random.default_rng(0)
    late = np.arange(5000) >= 2500
    y = (rng.random(5000) < np.where(late & (kind == "shares"), 0.85, 0.5)).astype(int)
    X = rng.normal(size=(5000, 15))
    X[:, :3] += np.array([1.5, 1.0, 0.8]) * y[:, None]
    if kind == "rescaled":
        X[late, 8:] *= 100.0
    found, selector = alarms(X, y)
    assert found == []
    assert {0, 1} <= set(selector.selected_.tolist())


@pytest.mark.slow
def test_a_drift_is_told_once_and_once_more_when_it_is_over():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 15))
    late = np.arange(6000) >= 3000
    y = np.where(late, X[:, 4] + X[:, 7] > 0, X[:, 0] + X[:, 1] > 0).astype(int)
    y = np.where(rng.random(6000) < 0.1, 1 - y, y)
    found, selector = alarms(X, y, size=50)
    assert len(found) == 2
    assert 3000 < found[0] <= 3100
    assert 900 <= found[1] - found[0] <= 1100
    assert sorted(selector.selected_.tolist()) == [4, 7]


@pytest.mark.slow
def test_a_relation_that_changes_where_errors_do_not_is_a_drift():
    """Another feature begins to tell, while the selected one tells what it told."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    y = (X[:, 0] > 0).astype(int)
    y = np.where(rng.random(4000) < 0.25, 1 - y, y)
    late = np.arange(4000) >= 2000
    X[late, 5] += 2.5 * y[late]
    found, selector = alarms(X, y, size=50)
    assert 2000 < found[0] <= 2400
    assert 5 in selector.selected_


@pytest.mark.slow
def test_values_with_few_rows_do_not_tell_by_chance():
    rng = np.random.default_rng(0)
    for levels in (50, 200):
        X, y = rng.integers(0, levels, (2000, 20)).astype(float), rng.integers(0, 2, 2000)
        found, selector = alarms(X, y, categorical="all", min_features=0)
        assert (found, len(selector.selected_)) == ([], 0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_neither_the_scale_nor_far_values_matter(scale):
    rng = np.random.default_rng(0)
    X = np.clip(rng.standard_cauchy((3000, 20)), -1e7, 1e7)
    y = np.where(rng.random(3000) < 0.1, rng.random(3000) < 0.5, X[:, 0] + X[:, 1] > 0).astype(int)
    X[:, 1] *= scale
    with np.errstate(all="raise", under="ignore"):
        selector = DISCUSS().fit(X, y)
    assert sorted(selector.selected_.tolist()) == [0, 1]


def test_a_rare_class_equals_the_twin_and_completes_the_count():
    X, y = drifting(300)
    y *= np.arange(300) % 9 == 0
    options = {"n_features_to_select": 4, "window": 60}
    selector, twin = DISCUSS(categorical="all", **options), twin_of({}, n_bins=None, most=4, window=60)
    for row, code in zip(X, y, strict=True):
        selector.partial_fit(row[None], [code], classes=[0, 1])
        twin.learn(row.tolist(), int(code))
        assert selector.selected_.tolist() == twin.selected
    assert len(twin.selected) == 4
    assert len(DISCUSS(min_features=1, categorical="all", **options).fit(X, y).selected_) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("share", "n_selected"), [(0.05, 8), (0.5, 2)])
def test_fewer_than_asked_for_only_where_no_class_is_rare(rng, share, n_selected):
    X, y = rng.normal(size=(1500, 20)), (rng.random(1500) < share).astype(int)
    X[:, :2] += 2.0 * y[:, None]
    selector = DISCUSS(8).fit(X, y)
    assert len(selector.selected_) == n_selected
    assert set(selector.selected_[:2]) == {0, 1}
    assert len(DISCUSS().fit(X, y).selected_) <= 2
    assert len(DISCUSS(8, n_bins=2).fit(X, y).selected_) <= 2  # more rows for each bin than the tests need


@pytest.mark.slow
def test_fewer_than_asked_for_are_explained(rng):
    X = rng.normal(size=(1500, 6))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[:, 2] = X[:, 0] + 1e-3 * rng.normal(size=1500)  # a copy
    selector = DISCUSS(4)
    assert selector.partial_fit(X[:20], y[:20]).why_fewer_ == ""  # nothing is selected yet: all are kept
    selector.partial_fit(X[20:], y[20:])
    assert len(selector.selected_) == 2
    assert selector.why_fewer_ == (
        "2 of at most 4 features are selected: of the others, 3 are no more informative about the class in the"
        " last 500 rows than an irrelevant feature may be by chance, and 1 is redundant with a selected one;"
        " min_features=4 or redundancy=None selects more."
    )
    assert DISCUSS(5, threshold=0.1, redundancy=None).fit(X[:, [0, 1, 3, 4, 5]], y).why_fewer_ == (
        "2 of at most 5 features are selected: of the others, 3 are no more informative about the class in the"
        " last 500 rows than threshold=0.1 requires; min_features=5 selects more."
    )
    copies = X[:, [0, 2, 1]]
    assert DISCUSS(3).fit(copies, y).why_fewer_ == (
        "2 of at most 3 features are selected: of the others, 1 is redundant with a selected one;"
        " redundancy=None selects more."
    )
    for cured in (DISCUSS(4, min_features=4).fit(X, y), DISCUSS(3, redundancy=None).fit(copies, y)):
        assert cured.why_fewer_ == ""


@pytest.mark.slow
def test_a_run_says_why_there_are_fewer(rng, tmp_path):
    from sklearn.naive_bayes import GaussianNB

    from tamis.evaluate import prequential

    X = rng.normal(size=(1500, 6))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    result = prequential((X, y), DISCUSS(4), GaussianNB())
    told = result.settings["why_fewer"]
    assert told.startswith("2 of at most 4 features are selected: of the others, 4 are no more informative")
    assert told in result.remarks()
    assert told in result.report(tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_defaults_are_the_documented_ones():
    documented = dict(re.findall(r"^(\w+) : .*default=([^\s,]+)$", inspect.getdoc(DISCUSS), re.MULTILINE))
    given = DISCUSS().get_params()
    assert len(documented) > 5
    assert {name: ast.literal_eval(value) for name, value in documented.items()}.items() <= given.items()
