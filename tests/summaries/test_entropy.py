"""Window counts against counting the window again, for any stream."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import DataError
from tamis.summaries.entropy import WindowCounts, update_row
from tests.twins import entropy as twin

PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"
too_long = pytest.mark.skipif(PLAIN, reason="takes minutes where kernels are plain Python")
READ_OUTS = ("entropy", "conditional_entropy", "information_gain", "gain_ratio", "symmetrical_uncertainty")


def read_outs(counts):
    return {name: getattr(counts, name)() for name in READ_OUTS} | {
        "corrected": counts.symmetrical_uncertainty(corrected=True),
        "corrected gain": counts.information_gain(corrected=True),
    }


def recounted(counts):
    """The read-outs, the slow way, from the bins of the window."""
    bins, codes = counts.binned()
    found = {name: [] for name in read_outs(counts)}
    for j in range(counts.n_features):
        missing = len(counts.table(j)) - 1 if counts.missing == "skip" else None
        x, y = twin.known(bins[:, j].tolist(), codes.tolist(), missing)
        h_x, h_y_x = twin.entropy(x), twin.conditional_entropy(y, x)
        found["entropy"].append(h_x)
        found["conditional_entropy"].append(h_y_x)
        found["information_gain"].append(twin.gain(x, y))
        found["gain_ratio"].append(twin.gain(x, y) / h_x if h_x > 0 else 0.0)
        found["symmetrical_uncertainty"].append(twin.uncertainty(x, y))
        found["corrected"].append(twin.uncertainty(x, y, corrected=True))
        found["corrected gain"].append(twin.gain(x, y, corrected=True))
    return found


def assert_exact(counts):
    bins, codes = counts.binned()
    rows = counts.rows()[0]
    missing = np.isnan(rows.toarray() if sp.issparse(rows) else rows)
    for j in range(counts.n_features):
        table = counts.table(j)
        assert ((bins[:, j] == len(table) - 1) == missing[:, j]).all()
        again = np.zeros_like(table)
        np.add.at(again, (bins[:, j], codes), 1)
        assert (table == again).all()
    assert (counts.class_counts == np.bincount(codes, minlength=counts.n_classes)).all()
    assert counts.class_entropy() == pytest.approx(twin.entropy(codes.tolist()), abs=1e-12)
    expected = recounted(counts)
    for name, found in read_outs(counts).items():
        assert found == pytest.approx(np.array(expected[name]), abs=1e-12), name


def assert_same(one, other):
    mine, theirs = read_outs(one), read_outs(other)
    assert [name for name in mine if mine[name].tobytes() != theirs[name].tobytes()] == []
    for mine, theirs in zip((*one.binned(), *one.rows()), (*other.binned(), *other.rows()), strict=True):
        assert np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")


# -- any stream --------------------------------------------------------------------------------------------


@st.composite
def streams(draw):
    """Rows whose columns drift, repeat, jump in scale, stand still and are missing; and the parameters."""
    n, seed = draw(st.integers(1, 160)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["normal", "few", "constant", "jump", "wide", "ids", "sign"]))
        x = {
            "normal": rng.normal(size=n),
            "few": rng.integers(-2, 3, n) / 2.0,
            "constant": np.where(np.arange(n) < n * 0.7, 3.0, rng.normal(size=n) / 1e6 + 3.0),
            "jump": np.where(np.arange(n) < n // 2, rng.random(n), 1e9 + 1e-3 * rng.random(n)),
            "wide": rng.choice([-1e308, 0.0, 5e-324, 1.0, 1e308], n),
            "ids": rng.permutation(n).astype(float),
            "sign": rng.choice([0.0, -0.0, 1.0], n),
        }[kind]
        columns.append(np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.2, 1.0])), np.nan, x))
    codes = rng.integers(0, draw(st.integers(1, 3)), n)
    categorical = [j for j in range(len(columns)) if draw(st.booleans())]
    parameters = {
        "window": draw(st.sampled_from([1, 2, 3, 7, 20, 64, 200])),
        "categorical": categorical,
        "n_bins": draw(st.sampled_from([2, 3, 10])),
        "discretizer": draw(st.sampled_from(["pad", "quantile"])),
        "missing": draw(st.sampled_from(["category", "skip"])),
    }
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return np.column_stack(columns), codes, parameters, cuts


@pytest.mark.slow
@settings(max_examples=15 if PLAIN else 100, deadline=None)
@given(streams())
def test_the_tables_equal_a_recount_of_the_window_whatever_the_batches(stream):
    X, codes, parameters, cuts = stream
    counts = WindowCounts(X.shape[1], 3, **parameters)
    single, su = copy.deepcopy(counts), np.empty(X.shape[1])
    for batch, of_batch in zip(np.split(X, cuts), np.split(codes, cuts), strict=True):
        counts.update(batch, of_batch)
        for row, code in zip(batch, of_batch, strict=True):
            assert single.prepare(row[None], np.array([code])) == 1
            update_row(row, code, single.state, su, True)
        assert_exact(counts)
        assert_same(counts, single)
        if len(batch):
            assert su.tobytes() == counts.symmetrical_uncertainty(corrected=True).tobytes()
    held = min(len(X), parameters["window"])
    rows, of_rows = counts.rows()
    assert np.array_equal(rows, X[len(X) - held :], equal_nan=True)
    assert (of_rows == codes[len(X) - held :]).all()
    assert (counts.n_rows, counts.n_seen) == (held, len(X))


@settings(max_examples=10 if PLAIN else 30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 5, 40]), st.integers(1, 6))
def test_sparse_rows_count_as_dense_categories_do(seed, n, window, batches):
    rng = np.random.default_rng(seed)
    X, codes = (rng.random((n, 7)) < rng.random(7)).astype(float), rng.integers(0, 3, n)
    sparse, dense = WindowCounts(7, 3, window), WindowCounts(7, 3, window, categorical=range(7))
    for rows in np.array_split(np.arange(n), batches):
        sparse.update(sp.csr_matrix(X[rows]), codes[rows])
        dense.update(X[rows], codes[rows])
    mine, theirs = read_outs(sparse), read_outs(dense)
    assert [name for name in mine if mine[name].tobytes() != theirs[name].tobytes()] == []
    assert_exact(sparse)
    assert (sparse.rows()[0].toarray() == dense.rows()[0]).all()
    for i in range(7):
        pairs = [counts.pair_symmetrical_uncertainty(i, range(7)) for counts in (sparse, dense)]
        assert pairs[0] == pytest.approx(pairs[1], abs=1e-15)


@pytest.mark.parametrize("missing", ["category", "skip"])
def test_pairs_equal_a_recount(missing):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 3, 90), rng.normal(size=90), np.zeros(90), rng.normal(size=90)])
    X[:, 3] += X[:, 0]
    X[rng.random(X.shape) < 0.1] = np.nan
    counts = WindowCounts(4, 2, 60, categorical=[0], missing=missing)
    counts.update(X, rng.integers(0, 2, 90))
    bins = counts.binned()[0]
    for i in range(4):
        skipped = [len(counts.table(j)) - 1 if missing == "skip" else None for j in range(4)]
        expected = []
        for j in range(4):
            pairs = [(a, b) for a, b in bins[:, [i, j]].tolist() if a != skipped[i] and b != skipped[j]]
            expected.append(twin.uncertainty(*zip(*pairs, strict=True)))
        found = counts.pair_symmetrical_uncertainty(i, np.arange(4))
        assert found == pytest.approx(np.array(expected), abs=1e-12)
    assert counts.pair_symmetrical_uncertainty(1, [1]) == 1.0


# -- exactness ---------------------------------------------------------------------------------------------


@too_long
def test_after_a_million_rows_nothing_has_drifted():
    rng = np.random.default_rng(0)
    X, codes = rng.integers(0, 10, (1_000_000, 3)).astype(float), rng.integers(0, 2, 1_000_000)
    X[500_000:500_600] = 3.0
    counts, fresh = (WindowCounts(3, 2, categorical=range(3)) for _ in range(2))
    for start in range(0, len(X), 100_000):
        counts.update(X[start : start + 100_000], codes[start : start + 100_000])
        if start == 400_000:
            counts.update(X[500_000:500_500], codes[:500])
            assert counts.entropy().tolist() == [0.0] * 3  # not -1e-10
    fresh.update(X[-200:], codes[-200:])
    assert_same(counts, fresh)
    assert_exact(counts)


def test_the_recurrences_of_the_thesis_say_the_same():
    rng = np.random.default_rng(1)
    values = np.r_[rng.integers(0, 6, 300), np.full(50, 3), rng.integers(0, 6, 100)].astype(float)
    for window in (1, 2, 3, 20):
        counts, h, held = WindowCounts(1, 1, window, categorical=[0]), 0.0, []
        for value in values:
            if len(held) == window:
                gone = held.pop(0)
                h = twin.decreased(h, len(held), held.count(gone))
            held.append(value)
            h = twin.increased(h, len(held), held.count(value))
            counts.update(np.array([[value]]), np.zeros(1, np.int64))
            assert counts.entropy()[0] == pytest.approx(h, abs=1e-9)


def test_golden_uncertainty_of_the_majority_of_three_bits():
    """The thesis' own example, 0.1887; with 10 % of the labels flipped 0.1187."""
    bits = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    codes = (bits.sum(axis=1) >= 2).astype(np.int64)
    counts = WindowCounts(3, 2, 80, categorical=range(3))
    counts.update(bits, codes)
    assert counts.symmetrical_uncertainty() == pytest.approx(np.full(3, 0.1887), abs=5e-5)
    counts = WindowCounts(3, 2, 80, categorical=range(3))
    counts.update(np.tile(bits, (10, 1)), np.r_[np.tile(codes, 9), 1 - codes])
    assert counts.symmetrical_uncertainty() == pytest.approx(np.full(3, 0.1187), abs=5e-5)


@too_long
def test_golden_bias_of_features_that_tell_nothing():
    rng = np.random.default_rng(0)
    counts = WindowCounts(5000, 2, 200, categorical=range(5000))
    counts.update(rng.integers(0, 10, (200, 5000)).astype(float), rng.integers(0, 2, 200))
    su, corrected = counts.symmetrical_uncertainty(), counts.symmetrical_uncertainty(corrected=True)
    assert su.mean() == pytest.approx(0.0156, abs=0.0006)
    assert np.quantile(su, 0.95) == pytest.approx(0.029, abs=0.0015)
    assert corrected.mean() == pytest.approx(0.003, abs=0.0005)
    assert np.quantile(corrected, 0.95) == pytest.approx(0.014, abs=0.0015)


# -- what may come -----------------------------------------------------------------------------------------


def test_one_class_or_nothing_says_nothing():
    counts = WindowCounts(2, 2, categorical=[0])
    assert counts.symmetrical_uncertainty().tolist() == [0.0, 0.0]
    assert (counts.class_entropy(), counts.n_rows) == (0.0, 0)
    assert counts.binned()[0].shape == (0, 2)
    counts.update(np.random.default_rng(0).normal(size=(50, 2)), np.zeros(50, np.int64))
    assert counts.symmetrical_uncertainty().tolist() == [0.0, 0.0]
    assert counts.conditional_entropy().tolist() == [0.0, 0.0]


def test_a_class_that_vanishes_and_one_that_is_new():
    x = np.tile([0.0, 1.0], 50)[:, None]
    counts = WindowCounts(1, 2, 20, categorical=[0])
    counts.update(x, x[:, 0].astype(np.int64))
    assert counts.symmetrical_uncertainty() == 1.0
    counts.update(x, np.ones(100, np.int64))
    assert counts.symmetrical_uncertainty() == 0.0
    counts.grow(4)
    counts.update(x, 3 * x[:, 0].astype(np.int64))
    assert counts.class_counts.tolist() == [10, 0, 0, 10]
    assert counts.symmetrical_uncertainty() == 1.0


@too_long
def test_categories_that_never_repeat_do_not_pile_up():
    counts = WindowCounts(3, 2, 50, categorical=[0, 1])
    for start in range(0, 20_000, 40):
        x = np.arange(start, start + 40.0)
        counts.update(np.column_stack([x, -x / 3, x % 2]), (x % 2).astype(np.int64))
    assert counts.nbytes < 40_000
    assert_exact(counts)


def test_state_is_saved_and_copied(tmp_path):
    rng = np.random.default_rng(5)
    X, codes = rng.normal(size=(300, 3)).round(1), rng.integers(0, 2, 300)
    for first in (X[:150], sp.csr_matrix(X[:150] > 0)):
        counts = WindowCounts(3, 2, 100, categorical=[0])
        counts.update(first, codes[:150])
        others = copy.deepcopy(counts), tamis.load(tamis.save(counts, tmp_path / "counts.tamis"))
        rest = sp.csr_matrix(X[150:] > 0) if sp.issparse(first) else X[150:]
        for each in (counts, *others):
            each.update(rest, codes[150:])
        for other in others:
            assert read_outs(other)["corrected"].tobytes() == read_outs(counts)["corrected"].tobytes()


def test_batches_that_do_not_fit_are_refused_and_change_nothing():
    X, codes = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    counts = WindowCounts(2, 2, 20, categorical=[0])
    counts.update(X, codes)
    before = read_outs(counts)
    infinite = X.copy()
    infinite[7, 1] = np.inf
    for rows, labels, message in [
        (X[:, :1], codes, "2 features"),
        (X, codes[:-1], "30 rows"),
        (X, codes + 1, "codes contains 2"),
        (X, codes - 1, "codes contains -1"),
        (infinite, codes, "infinity in column 1 of row 7"),
    ]:
        with pytest.raises(DataError, match=message):
            counts.update(rows, labels)
    assert all((now == before[name]).all() for name, now in read_outs(counts).items())
    counts = WindowCounts(2, 2)
    with pytest.raises(DataError, match=r"Column 1 contains 0\.5 in row 1"):
        counts.update(sp.csr_matrix([[0, 1], [1, 0.5]]), codes[:2])
    assert counts.n_seen == 0
    counts.update(X, codes)  # dense rows may still come
    X.setflags(write=False)
    counts.update(X[::2].astype(np.float32), codes[::2].astype(np.int8))
    assert counts.n_seen == 45


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features": 0}, "n_features must be"),
        ({"window": 0}, "window must be"),
        ({"n_bins": 1}, "n_bins must be"),
        ({"categorical": [2]}, "categorical names the column 2"),
        ({"discretizer": "pid"}, "discretizer must be"),
        ({"missing": "mean"}, "missing must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        WindowCounts(**{"n_features": 2, "n_classes": 2} | parameters)


def test_features_and_edges_that_there_are_not():
    counts = WindowCounts(2, 2, categorical=[0])
    with pytest.raises(ValueError, match="no feature 2"):
        counts.pair_symmetrical_uncertainty(0, [1, 2])
    with pytest.raises(ValueError, match="Feature 0 is categorical"):
        counts.edges(0)
    with pytest.raises(ValueError, match="n_classes must be"):
        counts.grow(1)
    counts.update(sp.csr_matrix([[0, 1]]), np.array([1]))
    with pytest.raises(ValueError, match="The first rows were CSR"):
        counts.prepare(np.zeros((1, 2)), np.array([1]))


@pytest.mark.slow
@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"discretizer": "quantile"}, {"missing": "skip"}, {"n_bins": 3}], ids=repr
)
@pytest.mark.parametrize("window", [1, 64, 300])
def test_features_that_come_later_are_those_that_were_zero_until_then(options, categorical, window):
    rng = np.random.default_rng(window)
    n_features = np.repeat([2, 2, 3, 3, 5, 6], [10, 60, 10, 330, 1, 90])  # each row's
    X = np.round(rng.normal(size=(501, 6)), 1) * (rng.random((501, 6)) < 0.4)
    X[rng.random(X.shape) < 0.03] = np.nan
    X[np.arange(6) >= n_features[:, None]] = 0.0
    codes = rng.integers(0, 3, 501)
    columns = range(6) if categorical else [0]
    wide = WindowCounts(6, 3, window, categorical=columns, **options)
    grown = WindowCounts(2, 3, window, categorical=[j for j in columns if j < 2], **options)
    start = 0
    while start < 501:
        if n_features[start] > grown.n_features:
            grown.widen(n_features[start], categorical)
        stop = min(
            start + int(rng.integers(1, 40)), int(np.flatnonzero(n_features == n_features[start])[-1]) + 1
        )
        wide.update(X[start:stop], codes[start:stop])
        grown.update(X[start:stop, : grown.n_features], codes[start:stop])
        start = stop
        if grown.n_features == 6:
            assert_same(grown, wide)
    for name in ("_built", "_grid", "_band", "_cuts", "_counted", "_counts", "_keys", "_used"):
        np.testing.assert_array_equal(getattr(grown, name), getattr(wide, name), err_msg=name)


def test_columns_of_ones_that_come_later():
    rng = np.random.default_rng(0)
    ones, codes = rng.random((200, 9)) < 0.3, rng.integers(0, 2, 200)
    ones[:100, 5:] = False
    X = sp.csr_matrix(ones, dtype=np.float64)
    wide, grown = WindowCounts(9, 2, 60), WindowCounts(5, 2, 60)
    wide.update(X, codes)
    grown.update(X[:100, :5], codes[:100])
    grown.widen(9)
    grown.update(X[100:], codes[100:])
    assert grown.symmetrical_uncertainty().tobytes() == wide.symmetrical_uncertainty().tobytes()
    np.testing.assert_array_equal(grown.table(7), wide.table(7))
    assert (grown.rows()[0] != wide.rows()[0]).nnz == 0
