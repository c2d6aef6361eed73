"""Mutual information, chi-square and Gini index against the definitions on all rows, SciPy and scikit-learn."""

from __future__ import annotations

import copy
import itertools
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

import tamis
from tamis import ChiSquare, GiniIndex, MutualInformation, Screening
from tamis._validation import columns_of
from tamis.errors import DataError
from tamis.rows.screening.bin_counts import BinCounts, gini_statistic
from tamis.summaries.contingency import chi_square
from tests.twins import screening as twin

BINNED = (MutualInformation, ChiSquare, GiniIndex)
ALL = ["t", "fisher", "mi", "chi2", "gini"]


def rows(n_classes=3, n=90, seed=0, missing=False):
    """Column 0 depends on the class, 1 has few values, 2 is mostly zero, 3 holds categories, 4 is constant."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 5)).astype(np.float32).astype(np.float64)
    X[:, 0] = (X[:, 0] + y).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(n) < 0.7, 2] = 0.0
    X[:, 3] = (rng.integers(0, 5, n) * (rng.random(n) < 0.5) + y) % 5
    X[:, 4] = 3.0
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def expected(X, y, w, n_classes, n_bins, categorical=()):
    tables = [
        twin.table(X[:, j], y, w, None if j in categorical else n_bins, n_classes) for j in range(X.shape[1])
    ]
    splits = [twin.gini_of_categories if j in categorical else twin.gini for j in range(X.shape[1])]
    return {
        "mi": [twin.mutual_information(table) for table in tables],
        "chi2": [twin.chi_square(table) for table in tables],
        "gini": [split(table) for split, table in zip(splits, tables, strict=True)],
    }


@given(
    cuts=st.lists(st.integers(1, 89), max_size=5),
    sparse=st.lists(st.booleans(), min_size=6, max_size=6),
    n_classes=st.integers(2, 4),
    n_bins=st.integers(2, 7),
    missing=st.booleans(),
    factor=st.sampled_from([None, 0.99, 0.5]),
    per=st.sampled_from(["row", "batch"]),
    clock=st.sampled_from(["global", "class"]),
)
@settings(max_examples=40, deadline=None)
def test_any_batching_equals_the_definition(cuts, sparse, n_classes, n_bins, missing, factor, per, clock):
    X, y = rows(n_classes, missing=missing)
    bounds = [0, *sorted(set(cuts)), 90]
    screening = Screening(
        2, scores=ALL, n_bins=n_bins, categorical=[3], fading=factor, fade_per=per, clock=clock
    )
    for a, b, csr in zip(bounds, bounds[1:], sparse, strict=False):
        part = sp.csr_matrix(X[a:b]) if csr else X[a:b]
        screening.partial_fit(part, y[a:b], classes=range(n_classes))
    w = twin.faded_weights([y[a:b] for a, b in itertools.pairwise(bounds)], factor or 1.0, per, clock)
    for name, scores in expected(X, y, w, n_classes, n_bins, categorical=(3,)).items():
        np.testing.assert_allclose(screening.scores_of(name), scores, rtol=1e-8, atol=1e-12, err_msg=name)
        assert screening.scores_of(name)[4] == 0.0  # constant
    for j in range(4):
        assert screening.scores_of("fisher")[j] == pytest.approx(twin.fisher(X[:, j], y, w), rel=1e-8)
    known = [w[~np.isnan(X[:, j])].sum() for j in range(5)]
    np.testing.assert_allclose(screening.n_observed_, known, rtol=1e-9)


@given(at=st.lists(st.integers(0, 90), min_size=2, max_size=2), swap=st.booleans(), sparse=st.booleans())
@settings(max_examples=25, deadline=None)
def test_merged_parts_equal_the_whole(at, swap, sparse):
    X, y = rows(4)
    X[:70, 3] = np.minimum(X[:70, 3], 1)  # the last part alone has seen all categories
    labels, (first, second) = np.array(["d", "a", "c", "b"])[y], sorted(at)
    parts = []
    for i, rows_of in enumerate((slice(0, first), slice(first, second), slice(second, 90))):
        parts.append(Screening(2, scores=ALL, categorical=[3]))
        if len(y[rows_of]):
            part = sp.csr_matrix(X[rows_of]) if sparse and i == 1 else X[rows_of]
            parts[-1].partial_fit(part, labels[rows_of])
    one, two, three = parts[::-1] if swap else parts
    merged = one.merge(two).merge(three)
    whole = Screening(2, scores=ALL, categorical=[3]).fit(X, labels)
    assert merged.n_seen_ == 90
    for name in ALL:
        np.testing.assert_allclose(merged.scores_of(name), whole.scores_of(name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("per", ["row", "batch"])
@pytest.mark.parametrize("clock", ["global", "class"])
def test_the_earlier_of_two_merged_parts_ages(per, clock):
    X, y = rows(3, n=240)
    labels, cuts = np.array(["b", "a", "c"])[y], [(0, 50), (50, 90), (90, 150), (150, 240)]
    labels[:90] = np.where(labels[:90] == "c", "a", labels[:90])  # which the first part has not seen

    def part(*which):
        found = Screening(
            2, scores=ALL, categorical=[3], half_life=60 if per == "row" else 1.5, fade_per=per, clock=clock
        )
        for a, b in which:
            found.partial_fit(X[a:b], labels[a:b])
        return found

    whole, earlier, later = part(*cuts), part(*cuts[:2]), part(*cuts[2:])
    with pytest.raises(ValueError, match="when is None, but rows fade: state whether"):
        later.merge(earlier)
    with pytest.raises(ValueError, match="when must be one of 'before', 'after', 'together', got 'now'"):
        later.merge(earlier, when="now")
    for merged in (part(*cuts[:2]).merge(later, "after"), part(*cuts[2:]).merge(earlier, when="before")):
        for again, other in ((0, whole), (1, part(*cuts, *cuts[2:]))):
            one = merged.merge(later, "after") if again else merged
            for name in ALL:
                np.testing.assert_allclose(one.scores_of(name), other.scores_of(name), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.n_observed_, other.n_observed_, rtol=1e-9)
    both = part(*cuts[:2]).merge(later, "together")
    np.testing.assert_allclose(both.n_observed_, earlier.n_observed_ + later.n_observed_, rtol=1e-12)


def test_equals_scipy_and_scikit_learn_on_the_same_bins():
    X, y = rows(3, n=240)
    bins = [twin.quantile_bins(X[:, j], np.ones(240), 5) for j in range(3)]
    mi, chi = MutualInformation(2).fit(X[:, :3], y), ChiSquare(2).fit(X[:, :3], y)
    np.testing.assert_allclose(mi.scores_, [mutual_info_score(b, y) for b in bins], rtol=1e-12)
    tables = [np.array([[np.sum((b == i) & (y == c)) for c in range(3)] for i in np.unique(b)]) for b in bins]
    for kind, selector in ((None, chi), ("log-likelihood", mi)):
        found = [scipy.stats.chi2_contingency(t, correction=False, lambda_=kind) for t in tables]
        np.testing.assert_allclose(selector.pvalues_, [f.pvalue for f in found], rtol=1e-9)
    np.testing.assert_allclose(
        chi.scores_,
        [scipy.stats.chi2_contingency(t, correction=False).statistic for t in tables],
        rtol=1e-12,
    )


@pytest.mark.parametrize("name", ["splice", "wdbc"])
def test_real_data_are_scored_as_offline(load_shared, name):
    """Splice holds codes, so counts are exact at any eps; of wdbc's values an eps of 1 / 569 keeps all."""
    X, y, _ = load_shared(name)
    X = np.asarray(X, dtype=np.float32).astype(np.float64)[:, :20]
    codes = np.unique(y, return_inverse=True)[1]
    screening = Screening(3, scores=ALL, eps=0.1 if name == "splice" else 1 / 569)
    for start in range(0, len(y), 100):
        screening.partial_fit(X[start : start + 100], y[start : start + 100])
    order = [screening.classes_.tolist().index(label) for label in np.unique(y).tolist()]
    assert sorted(order) == list(range(len(order)))
    for score, values in expected(X, codes, np.ones(len(y)), len(order), 5).items():
        np.testing.assert_allclose(screening.scores_of(score), values, rtol=1e-9, atol=1e-12)


def test_scores_of_thinned_values_are_near_those_of_all():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 8000)
    X = rng.normal(size=(8000, 12)) + np.linspace(0, 1, 12) * y[:, None]
    screening = Screening(3, scores=["mi", "chi2", "gini"], eps=0.02)
    for start in range(0, 8000, 500):
        screening.partial_fit(X[start : start + 500], y[start : start + 500])
    assert screening.nbytes_ < X.nbytes / 5
    halves = [
        Screening(3, scores=["mi"], eps=0.02).fit(X[half], y[half]) for half in np.split(np.arange(8000), 2)
    ]
    merged = halves[0].merge(halves[1])
    assert merged.nbytes_ < 1.2 * screening.nbytes_
    np.testing.assert_allclose(merged.scores_[3:], screening.scores_[3:], rtol=0.1, atol=1e-3)
    for name, values in expected(X[:, -2:], y, np.ones(8000), 2, 5).items():
        np.testing.assert_allclose(screening.scores_of(name)[-2:], values, rtol=0.05)
        assert (np.diff(screening.scores_of(name)[3:]) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [1, 100, 600])
def test_pvalues_of_many_rows_are_of_exact_counts_at_the_edges_of_the_first(sparse, size):
    X, y = rows(3, n=600, missing=not sparse)
    chi, mi = ChiSquare(2, eps=0.2), MutualInformation(2, eps=0.2)
    for start in range(0, 600, size):
        part = slice(start, start + size)
        for selector in (chi, mi):
            selector.partial_fit(sp.csr_matrix(X[part]) if sparse else X[part], y[part], classes=range(3))
    expected_chi, expected_mi = twin.exact_pvalues(X, y, 5)
    np.testing.assert_allclose(chi.pvalues_, expected_chi, rtol=1e-9)
    np.testing.assert_allclose(mi.pvalues_, expected_mi, rtol=1e-9)


def test_pvalues_of_merged_parts_add_statistics_where_the_edges_differ():
    X, y = rows(2, n=1400)
    parts = [ChiSquare(2).fit(X[a:b], y[a:b]) for a, b in ((0, 500), (500, 1000), (1000, 1100))]
    statistics = [part._bins.test(chi_square) for part in parts[:2]]
    merged = parts[0].merge(parts[1])
    np.testing.assert_allclose(
        merged.pvalues_,
        scipy.stats.chi2.sf(
            statistics[0][0] + statistics[1][0], np.maximum(statistics[0][1] + statistics[1][1], 1)
        ),
        rtol=1e-9,
    )
    copied = copy.deepcopy(merged)
    merged.merge(parts[2])  # its rows still wait: they are counted at the edges here
    np.testing.assert_allclose(
        merged.pvalues_, copied.partial_fit(X[1000:1100], y[1000:1100]).pvalues_, rtol=1e-9
    )
    first = parts[2].merge(ChiSquare(2).fit(X[:500], y[:500]))  # and the other way round
    again = ChiSquare(2).fit(X[:500], y[:500]).partial_fit(X[1000:1100], y[1000:1100])
    np.testing.assert_allclose(first.pvalues_, again.pvalues_, rtol=1e-9)


NULLS = [{}, {"fading": 0.99}, {"fading": 0.99, "clock": "class"}, {"fading": 0.5, "fade_per": "batch"}]


@pytest.mark.slow
@pytest.mark.parametrize("options", NULLS, ids=str)
def test_pvalues_of_unrelated_features_are_uniform(options):
    """At 9,000 rows an eps of 0.05 is a signal to a test that does not know of it."""
    rng = np.random.default_rng(0)
    scores = {name: Screening(2, scores=[name], eps=0.05, **options) for name in ALL[:4]}
    y, X = (rng.random(9000) < 0.3) + (rng.random(9000) < 0.2), rng.normal(size=(9000, 400))
    weights = rng.choice([0.5, 1.0, 2.0], 9000)
    for start in range(0, 9000, 1500):
        part = slice(start, start + 1500)
        for selector in scores.values():
            selector.partial_fit(X[part], y[part], sample_weight=weights[part])
    for name, selector in scores.items():
        pvalues = selector.pvalues_
        # A tenth of the effective rows in a cell makes the tail of chi-square a little light; a row of weight 2 is two
        # equal rows, whose dependence makes the tests conservative.
        assert np.mean(pvalues < 0.05) < 0.09, name
        assert np.mean(pvalues < 0.05) > 0.005, name
        assert 0.36 < np.mean(pvalues < 0.5) < 0.62, name


@pytest.mark.parametrize("kind", [MutualInformation, ChiSquare, GiniIndex])
@pytest.mark.parametrize("repeats", [1, 4])
def test_an_identifier_is_not_relevant(kind, repeats, rng):
    n = 2000
    y = rng.integers(0, 2, n)
    weak = np.where(rng.random(n) < 0.6, y, 1 - y)
    X = np.column_stack([rng.permutation(n) // repeats, weak]).astype(float)
    scores = kind(1, categorical="all").fit(X, y).scores_
    assert scores[0] < 0.1 * scores[1]
    zips = np.column_stack([rng.integers(0, 200, n) + 200 * y, weak]).astype(float)  # 5 rows and more in each
    kept = kind(1, categorical="all").fit(zips, y).scores_
    assert kept[0] > kept[1]


def test_categories_have_no_order():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 12, size=(400, 2)).astype(float), rng.integers(0, 2, 400)
    X[:, 1] = np.where(rng.random(400) < 0.8, 2 * (X[:, 1] // 2) + y, X[:, 1])  # odd or even
    renamed = np.random.default_rng(1).permutation(12)[X.astype(int)]
    for kind in BINNED:
        plain, other = (kind(1, categorical="all").fit(rows_, y).scores_ for rows_ in (X, renamed))
        np.testing.assert_allclose(plain, other, rtol=1e-12)
        assert plain[1] > 5 * kind(1).fit(X, y).scores_[1]  # bins of neighbours see little


def test_columns_are_named_in_three_ways():
    pandas = pytest.importorskip("pandas")
    X, y = rows(2)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    by_name = MutualInformation(2, categorical=["d"]).fit(frame, y).scores_
    mask = np.arange(5) == 3
    for given_ in ([3], np.array([3]), mask, mask.tolist()):
        np.testing.assert_array_equal(MutualInformation(2, categorical=given_).fit(X, y).scores_, by_name)
    assert columns_of("all", 3, None).tolist() == [0, 1, 2]
    for bad, message in (
        ("d", "categorical must be 'all'"),
        (3, "categorical must be 'all'"),
        (["z"], "'z', but the columns are 0 to 4 or a, b"),
        ([5], "the column 5, but"),
        ([True, False], "a mask of 2 columns, but there are 5"),
    ):
        with pytest.raises(ValueError, match=message):
            MutualInformation(2, categorical=bad).fit(frame, y)
    with pytest.raises(ValueError, match="0 to 4, without names"):
        MutualInformation(2, categorical=["d"]).fit(X, y)


def test_table_holds_every_score_in_rows_of_features():
    X, y = rows(2, missing=True)
    X[:, 2] = np.nan
    screening = Screening(1, select_by="gini", categorical=[3]).fit(X, y)
    table = screening.table_
    assert list(table) == [
        "feature", "n_observed", "t", "t_pvalue", "fisher", "fisher_pvalue", "mi", "mi_pvalue",
        "chi2", "chi2_pvalue", "gini", "gini_pvalue",
    ]  # fmt: skip
    assert table["feature"].tolist() == ["x0", "x1", "x2", "x3", "x4"]
    np.testing.assert_array_equal(table["gini"], screening.scores_)
    assert screening.get_support(indices=True) == [np.argmax(table["gini"])]
    assert table["n_observed"][2] == 0.0  # flagged, and no score says anything of it
    assert [table[name][2] for name in ALL] == [0.0] * 5
    assert [table[f"{name}_pvalue"][2] for name in ALL] == [1.0] * 5
    singles = {"mi": MutualInformation, "chi2": ChiSquare, "gini": GiniIndex}
    for name, kind in singles.items():
        single = kind(1, categorical=[3]).fit(X, y)
        np.testing.assert_array_equal(single.scores_, table[name])
        np.testing.assert_array_equal(single.n_observed_, table["n_observed"])
        np.testing.assert_array_equal(single.pvalues_, table[f"{name}_pvalue"])


def test_p_value_of_one_cut_is_that_of_chi_square():
    table = np.array([[[600.0, 300.0], [500.0, 400.0]], [[10.0, 20.0], [0.0, 0.0]]])
    expected = scipy.stats.chi2_contingency(table[0], correction=False).pvalue
    np.testing.assert_allclose(np.exp(-0.5 * gini_statistic(table)[0]), [expected, 1.0], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("q", [[0.5, 0.5], [0.97, 0.03], [0.6, 0.3, 0.1]])
@pytest.mark.parametrize("in_order", [True, False])
def test_p_values_of_the_gini_index_are_rarely_small_by_chance(q, in_order):
    cells = np.outer([0.1, 0.2, 0.2, 0.2, 0.3], q)
    tables = np.random.default_rng(0).multinomial(1500, cells.ravel(), size=4000).reshape(4000, 5, len(q))
    p = np.exp(-0.5 * gini_statistic(tables.astype(float), in_order)[0])
    for alpha in (0.1, 0.01):
        assert np.mean(p < alpha) < alpha + 3 * np.sqrt(alpha / 4000)
    assert np.mean(p < 0.1) > (0.04 if in_order else 0.01)  # a bound, not far above


def test_only_what_is_asked_for_is_kept():
    X, y = rows(2)
    moments, bins, both = (
        Screening(scores=names, dependence="independent").fit(X, y) for names in (["t"], ["mi", "gini"], ALL)
    )
    assert moments._bins is None
    assert bins._moments.n_features == 0
    assert both.nbytes_ >= moments.nbytes_ + bins.nbytes_ - 200


@pytest.mark.parametrize("n_steps", range(2, 7))
def test_what_was_read_before_a_change_is_read_anew(n_steps):
    X, y = rows(2)

    def tables(*, read):
        bins = BinCounts(5, np.array([3]), n_bins=5, eps=0.01, dtype="float32")
        steps = (
            lambda: bins.grow(2),
            lambda: bins.update(sp.csr_matrix(X), y, None, 1.0, None),
            lambda: bins.merge(copy.deepcopy(bins)),
            lambda: bins.reorder(np.array([1, 0])),
            lambda: bins.grow(3),
            lambda: bins.widen(7),
        )
        for i, step in enumerate(steps[:n_steps]):
            if read and i > 0:
                bins.tables()
            step()
        return bins.tables()

    for one, other in zip(tables(read=True), tables(read=False), strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_one_class_only_waits():
    X, _ = rows(2)
    for kind in BINNED:
        selector = kind(2).fit(X, np.zeros(90))
        assert selector.warming_up_
        assert selector.get_support().all()
        assert not selector.scores_.any()
    table = Screening(2).fit(X, np.zeros(90)).table_
    assert not any(table[name].any() for name in ALL)
    assert table["mi_pvalue"].tolist() == [1.0] * 5


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scores", [["mi"], ["t", "gini"]])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (2, np.inf, "infinity in column 2 of row 7"),
        (3, 2.5, "Column 3 is categorical, but contains 2.5 in row 7 of the batch: encode"),
        (3, -1.0, "Column 3 is categorical, but contains -1.0"),
        (3, 65536.0, "Column 3 is categorical, but contains 65536.0"),
    ],
)
def test_what_cannot_be_counted_is_refused_and_leaves_no_trace(sparse, scores, column, value, message):
    X, y = rows(2, missing=True)
    screening = Screening(2, scores=scores, categorical=[3]).fit(X, y)
    before = screening.table_
    bad = X.copy()
    bad[7, column] = value
    for labels in (y, np.array(["new"] * 90)):
        with pytest.raises(DataError, match=message):
            screening.partial_fit(sp.csr_matrix(bad) if sparse else bad, labels)
        assert screening.classes_.tolist() == [0, 1]
        for name, values in before.items():
            np.testing.assert_array_equal(screening.table_[name], values)
    some = slice(0, 40)
    control = Screening(2, scores=scores, categorical=[3]).fit(X, y).partial_fit(X[some], y[some])
    after = screening.partial_fit(X[some], y[some]).table_
    for name, values in control.table_.items():
        np.testing.assert_array_equal(after[name], values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 1}, "n_bins must be an integer in"),
        ({"eps": 0.5}, "eps must be a number in"),
        ({"eps": 0.0}, "eps must be a number in"),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64', got 'float16'"),
        ({"scores": ["mi", "entropy"]}, "scores must be a list of t, .*, got \\['mi', 'entropy'\\]"),
        ({"scores": "mi"}, "scores must be a list of t, fisher, mi, chi2, gini, got 'mi'"),
        ({"scores": []}, "scores must be a list"),
        ({"scores": ["t"], "select_by": "mi"}, "select_by must be one of 't', got 'mi'"),
        ({"half_life": 3, "fading": 0.5}, "have the same meaning: pass only one"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    X, y = rows(2)
    with pytest.raises(ValueError, match=message):
        Screening(2, **options).fit(X, y)


def test_scores_not_asked_for_are_refused():
    X, y = rows(2)
    with pytest.raises(ValueError, match="name must be one of 'mi', got 't'"):
        Screening(2, scores=["mi"]).fit(X, y).scores_of("t")


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        ({"n_bins": 5}, {"n_bins": 7}, "n_bins is 5 here and 7 there"),
        ({"eps": 0.1}, {"eps": 0.01}, r"eps is 0\.1 here and 0\.01 there"),
        ({}, {"fading": 0.9}, r"fading is None here and 0\.9 there"),
        ({"categorical": [3]}, {"categorical": [4]}, r"categorical is \[3\] here and \[4\] there"),
        ({}, {"dtype": "float64"}, "dtype is 'float32' here and 'float64' there"),
    ],
)
@pytest.mark.parametrize("fitted", [False, True])
def test_merging_what_does_not_fit_is_refused(mine, theirs, message, fitted):
    X, y = rows(2)
    here, there = MutualInformation(2, **mine), MutualInformation(2, **theirs).fit(X, y)
    if fitted:
        here.fit(X, y)
    with pytest.raises(ValueError, match=message):
        here.merge(there)


def test_how_much_is_selected_does_not_keep_states_apart():
    X, y = rows(2)
    merged = Screening(1, select_by="t").fit(X, y).merge(Screening(4, select_by="mi").fit(X, y))
    assert (merged.get_support().sum(), merged.n_seen_) == (1, 180)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_long_stream_goes_on_after_saving(tmp_path, sparse):
    rng = np.random.default_rng(0)

    def batch():
        X, y = rng.normal(size=(500, 4)), rng.integers(0, 2, 500)
        X[:, 3] = rng.integers(0, 3, 500) + y
        return (sp.csr_matrix(X) if sparse else X), y

    batches = [batch() for _ in range(12)]
    whole, half = (Screening(2, eps=0.05, categorical=[3], half_life=1000) for _ in range(2))
    for X, y in batches:
        whole.partial_fit(X, y)
    for X, y in batches[:7]:
        half.partial_fit(X, y)
    half = tamis.load(tamis.save(half, tmp_path / "half.tamis"))
    for X, y in batches[7:]:
        half.partial_fit(X, y)
    for name, values in whole.table_.items():
        np.testing.assert_array_equal(half.table_[name], values)


@pytest.mark.parametrize("summary", ["thinned", "pruned"])
@pytest.mark.parametrize("offset", [1e6, 1.7e9, -1e12])
def test_an_offset_leaves_the_scores_unchanged(offset, summary):
    """Numbers are multiples of 1 / 256, so float64 represents all sums exactly."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = np.column_stack([rng.uniform(0.0, 60.0, 3000) + 9.0 * y, rng.uniform(0.0, 60.0, (3000, 3))])
    X = np.floor(X * 256.0) / 256.0
    X[rng.random(3000) < 0.3, 2] = -offset  # a frequent value far away
    kinds = {"mi": MutualInformation, "chi2": ChiSquare, "gini": GiniIndex}
    if summary == "pruned":
        kinds = {name: partial(Screening, scores=[name], summary="pruned") for name in kinds}
    for kind in kinds.values():
        for size in (1, 700, 3000):
            n = 300 if size == 1 else 3000  # the type of stored numbers changes after 256 rows
            plain, moved = kind(1), kind(1)
            for start in range(0, n, size):
                part = slice(start, start + size)
                plain.partial_fit(X[part], y[part], [0, 1])
                moved.partial_fit(X[part] + offset, y[part], [0, 1])
            np.testing.assert_allclose(moved.scores_, plain.scores_, rtol=1e-12)
            assert moved.get_support(indices=True).tolist() == [0]
        if summary == "thinned":
            whole = kind(1).fit(X + offset, y)
            sparse = kind(1).fit(sp.csr_matrix(X + offset), y)
            parts = kind(1).fit(X[:100] + offset, y[:100]).merge(kind(1).fit(X[100:] + offset, y[100:]))
            for other in (sparse, parts, tamis.loads(tamis.dumps(whole))):
                np.testing.assert_allclose(other.scores_, whole.scores_, rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [1, 90, 2000])
def test_an_offset_that_arrives_late_is_followed(size, sparse):
    """The first 500 rows of a column are constant: then it has an offset of which float32 would make ties."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = np.column_stack([1.7e9 + np.floor(rng.uniform(0.0, 60.0, 2000)) + 30.0 * y, rng.normal(size=2000)])
    X[:500, 0] = 1.7e9
    model, control = MutualInformation(1), MutualInformation(1, dtype="float64")
    for start in range(0, 2000, size):
        part = slice(start, start + size)
        for one in (model, control):
            one.partial_fit(sp.csr_matrix(X[part]) if sparse else X[part], y[part], [0, 1])
    assert model._bins._quantiles.dtype == "float64"
    # Up to 64 rows arrived before it was noticed.
    np.testing.assert_allclose(model.scores_, control.scores_, rtol=0.1)


@pytest.mark.parametrize("kind", [MutualInformation, ChiSquare, GiniIndex])
def test_a_column_of_times_in_a_frame_is_selected(kind):
    rng = np.random.default_rng(0)
    seconds = rng.uniform(0.0, 60.0, 2000)
    times = pd.to_datetime("2024-03-01 12:00") + pd.to_timedelta(seconds, unit="s")
    frame = pd.DataFrame({"noise": rng.normal(size=2000), "ts": times, "label": (seconds > 30.0).astype(int)})
    result = tamis.prequential(frame, kind(1), label="label")
    assert result.selected() == ["ts"]


def test_float32_is_kept_where_it_is_fine_enough():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = np.column_stack([rng.normal(size=3000), 0.1 * rng.integers(0, 9, 3000), np.full(3000, 1e9 + 0.1)])
    assert MutualInformation(1).fit(X, y)._bins._quantiles.dtype == "float32"


def test_eps_follows_the_number_of_features():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3)
    for n_features, eps in ((6, 0.001), (1000, 0.002), (9000, 0.01)):
        assert ChiSquare().fit(rng.normal(size=(3, n_features)), y)._bins._quantiles.eps == eps


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-150, 1e60])
def test_numbers_beyond_float32_are_counted(scale, sparse):
    X, y = rows(2)
    usual = MutualInformation(2).fit(X, y).partial_fit(X, y).scores_
    scaled = X * [scale, *[1.0] * (X.shape[1] - 1)]
    for first in (X, scaled):  # from the start, and later
        model = MutualInformation(2)
        for part in (first, scaled):
            model.partial_fit(sp.csr_matrix(part) if sparse else part, y)
        if first is scaled:
            np.testing.assert_allclose(model.scores_, usual, rtol=1e-12)
        assert np.isfinite(model.scores_).all()


@pytest.mark.parametrize("name", ["ChiSquare", "GiniIndex", "MutualInformation", "Screening"])
def test_rows_may_fade_completely_within_a_batch(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    for half_life in (0.5, 2.0, 5.0):
        one = getattr(tamis, name)(1, half_life=half_life).partial_fit(X, y)
        many = getattr(tamis, name)(1, half_life=half_life)
        for start in range(0, 3000, 7):
            many.partial_fit(X[start : start + 7], y[start : start + 7])
        assert np.isfinite(one.scores_).all()
        np.testing.assert_allclose(one.scores_, many.scores_, rtol=1e-6)


@pytest.mark.parametrize("name", ["ChiSquare", "GiniIndex", "MutualInformation"])
def test_values_beyond_float32_do_not_warn(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)
    X[:, 0] += y
    X[:, 2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = [getattr(tamis, name)(1).fit(X * scale, y).scores_ for scale in (1.0, 1e300)]
    np.testing.assert_allclose(*scores, rtol=1e-6)
