"""T-score and Fisher score against the definitions and scikit-learn, in any batching, faded, sparse and merged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

from tamis import FisherScore, Screening, TScore
from tamis.errors import DataError
from tests.twins import screening as twin


def rows(n_classes=3, n=90, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 5)) * [1, 10, 1e-3, 1, 1] + [0, 1e4, 0, 0, 3]
    X[:, 0] += y
    X[:, 3] = (rng.random(n) < 0.3) * (1 + y)
    X[:, 4] = 3.0
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


@given(
    cuts=st.lists(st.integers(1, 89), max_size=6),
    sparse=st.lists(st.booleans(), min_size=7, max_size=7),
    n_classes=st.integers(2, 4),
    missing=st.booleans(),
    factor=st.sampled_from([None, 0.99, 0.5]),
    per=st.sampled_from(["row", "batch"]),
    clock=st.sampled_from(["global", "class"]),
)
@settings(max_examples=60, deadline=None)
def test_any_batching_equals_the_definition(cuts, sparse, n_classes, missing, factor, per, clock):
    X, y = rows(n_classes, missing=missing)
    bounds = [0, *sorted(set(cuts)), 90]
    options = {"fading": factor, "fade_per": per, "clock": clock}
    fisher, t = FisherScore(2, **options), TScore(2, **options)
    for a, b, csr in zip(bounds, bounds[1:], sparse, strict=False):
        part = sp.csr_matrix(X[a:b]) if csr else X[a:b]
        fisher.partial_fit(part, y[a:b], classes=range(n_classes))
        t.partial_fit(part, y[a:b], classes=range(n_classes))
    batches = [y[a:b] for a, b in itertools.pairwise(bounds)]
    w = twin.faded_weights(batches, factor or 1.0, per, clock)
    if per == "row":  # the weights of the rows are then those of the rows one at a time
        np.testing.assert_allclose(w, twin.faded_weights([y], factor or 1.0, per, clock))
    for j in range(4):
        assert fisher.scores_[j] == pytest.approx(twin.fisher(X[:, j], y, w), rel=1e-8)
        assert t.scores_[j] == pytest.approx(twin.t_score(X[:, j], y, w, n_classes), rel=1e-8)
    assert fisher.scores_[4] == t.scores_[4] == 0.0  # constant


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spambase", "splice", "wdbc", "german"])
def test_equals_scikit_learn_on_real_data(load_shared, name):
    X, y, _ = load_shared(name)
    X = np.asarray(X, dtype=np.float64)
    order = np.random.default_rng(0).permutation(len(y))
    selector = FisherScore(3)
    for start in range(0, len(y), 100):
        selector.partial_fit(X[order[start : start + 100]], y[order[start : start + 100]])
    f, p = f_classif(X, y)
    direct = [twin.fisher(X[:, j], y, np.ones(len(y))) for j in range(X.shape[1])]
    np.testing.assert_allclose(selector.scores_, direct, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(selector.f_, f, rtol=1e-8, atol=1e-9)  # which sums squares without centring
    t = TScore(3).fit(X, y)
    first, second = X[y == t.classes_[0]], X[y == t.classes_[1]]
    varied = np.ptp(X, axis=0) > 0
    assert (
        selector.pvalues_[varied] >= (1 - 1e-6) * p[varied]
    ).all()  # see test_pvalues_are_those_of_the_tests
    expected = np.abs(first.mean(0) - second.mean(0)) / np.sqrt(
        first.var(0) / len(first) + second.var(0) / len(second)
    )
    np.testing.assert_allclose(t.scores_, expected, rtol=1e-10)


@pytest.mark.slow
def test_sparse_data_equals_dense(load_shared):
    X, y, _ = load_shared("pcmac")
    for kind in (TScore, FisherScore):
        dense = kind(10).fit(X.toarray(), y)
        sparse = kind(10)
        for start in range(0, len(y), 200):
            sparse.partial_fit(X[start : start + 200], y[start : start + 200])
        np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n", [40, 400])
def test_pvalues_are_those_of_the_tests(n_classes, n):
    X, y = rows(n_classes, n)
    y[y == 1] = np.where(np.arange(np.sum(y == 1)) < 3, 1, 0)  # a class of three rows
    for kind, pvalue in ((TScore, twin.t_pvalue), (FisherScore, twin.fisher_pvalue)):
        expected = [pvalue(X[:, j], y) for j in range(4)]
        found = kind(2, dependence="independent").fit(X, y).pvalues_
        np.testing.assert_allclose(found, [*expected, 1.0], rtol=1e-8)


def test_of_classes_that_vary_alike_pvalues_are_those_of_scipy():
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    y = np.arange(20_000) % 2
    expected = scipy.stats.ttest_ind(X[y == 0], X[y == 1], equal_var=False).pvalue
    for kind in (TScore, FisherScore):
        np.testing.assert_allclose(kind(2).fit(X, y).pvalues_, expected, atol=0.01)


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_pvalues_do_not_depend_on_the_unit(scale):
    X, y = rows(3)
    for kind in (TScore, FisherScore):
        found = kind(1).fit(scale * X[:, [0, 3]], y).pvalues_
        np.testing.assert_allclose(found, kind(1).fit(X[:, [0, 3]], y).pvalues_, rtol=1e-9)


def test_a_feature_that_tells_a_class_of_few_rows_apart_may_do_so_by_chance():
    y = np.arange(300) < 2
    X = np.column_stack([y, np.arange(300) == 0, np.arange(300) < 3])
    for kind in (TScore, FisherScore):
        told, half, one_more = kind(2, dependence="independent").fit(X, y).pvalues_
        assert told == pytest.approx(2 / (300 * 299))  # the two rows may be any two
        assert half > 2 / 300
        assert one_more > 3 * 2 / (300 * 299)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.02])
@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("kind", ["normal", "bits", "counts", "lognormal", "Cauchy"])
def test_pvalues_of_unrelated_features_are_never_too_small(kind, n, share):
    """Where a class is rare, single rows of it are no proof."""
    rng = np.random.default_rng(0)
    draw = {
        "normal": rng.normal, "bits": lambda size: rng.random(size) < 0.01, "Cauchy": rng.standard_cauchy,
        "counts": lambda size: rng.poisson(0.3, size), "lognormal": lambda size: rng.lognormal(0.0, 2.0, size),
    }[kind]  # fmt: skip
    X, y = draw(size=(n, 1500)).astype(float), rng.permutation(n) < share * n
    table = Screening(1, scores=["t", "fisher", "mi", "chi2"]).fit(X, y).table_
    for score in ("t", "fisher", "mi", "chi2"):
        pvalues = table[f"{score}_pvalue"]
        assert np.mean(pvalues < 0.05) < 0.085, score
        assert np.mean(pvalues < 0.001) < 0.006, score
        assert pvalues.min() > 1e-5, score


@given(at=st.integers(0, 90), swap=st.booleans())
@settings(max_examples=30, deadline=None)
def test_merged_parts_equal_the_whole(at, swap):
    X, y = rows(4)
    labels = np.array(["d", "a", "c", "b"])[y]
    for kind in (TScore, FisherScore):
        parts = [kind(2), kind(2)]
        for selector, part in zip(parts, (slice(0, at), slice(at, 90)), strict=True):
            if len(y[part]):
                selector.partial_fit(X[part], labels[part])
        left, right = parts[::-1] if swap else parts
        left.merge(right)
        whole = kind(2).fit(X, labels)
        assert left.n_seen_ == 90
        np.testing.assert_allclose(left.scores_, whole.scores_, rtol=1e-9)


def test_merging_what_does_not_fit_is_refused():
    X, y = rows(2)
    fitted = TScore(2).fit(X, y)
    before = fitted.scores_.copy()
    with pytest.raises(TypeError, match="A TScore can be merged only with another one, got a FisherScore"):
        fitted.merge(FisherScore(2).fit(X, y))
    with pytest.raises(ValueError, match="5 here and 3 there"):
        fitted.merge(TScore(2).fit(X[:, :3], y))
    with pytest.raises(ValueError, match=r"half_life is None here and 10 there"):
        fitted.merge(TScore(2, half_life=10).fit(X, y))
    np.testing.assert_array_equal(fitted.scores_, before)


@pytest.mark.parametrize("kind", [TScore, FisherScore])
@pytest.mark.parametrize("sparse", [False, True])
def test_infinite_values_are_refused_and_missing_ones_passed_over(kind, sparse):
    X, y = rows(2, missing=True)
    selector = kind(2).fit(X, y)
    before = selector.scores_.copy()
    X[7, 2] = np.inf
    with pytest.raises(DataError, match="infinity in column 2 of row 7"):
        selector.partial_fit(sp.csr_matrix(X) if sparse else X, np.array(["new"] * 90))
    np.testing.assert_array_equal(selector.scores_, before)
    assert selector.classes_.tolist() == [0, 1]


def test_a_feature_without_values_scores_nothing():
    X, y = rows(2)
    X[:, 1] = np.nan
    X[y == 0, 2] = np.nan
    assert FisherScore(2).fit(X, y).scores_[1] == 0.0
    assert TScore(2).fit(X, y).scores_[[1, 2]].tolist() == [0.0, 0.0]


def test_one_class_only_waits():
    X, _ = rows(2)
    selector = TScore(2).fit(X, np.zeros(90))
    assert selector.warming_up_
    assert selector.get_support().all()
    assert not selector.scores_.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_life": 10, "fading": 0.9}, "have the same meaning: pass only one"),
        ({"fading": 0}, "fading must be a number in"),
        ({"half_life": -1}, "half_life must be a number in"),
        ({"clock": "wall"}, "clock must be one of"),
        ({"fade_per": "day"}, "fade_per must be one of"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TScore(2, **options).fit(*rows(2))


@pytest.mark.slow
def test_published_drift_needs_a_clock_per_batch():
    """Section 3.2's linear stream: fading 0.9 per row sees nothing, per block of rows it follows the drift."""
    rng = np.random.default_rng(0)
    p, k, length = 200, 20, 500
    hits = {}
    for options in ((0.9, "row"), (0.9, "batch"), (None, "row")):
        rng = np.random.default_rng(0)
        selector, found = TScore(k, fading=options[0], fade_per=options[1]), []
        for step in range(30):
            common = rng.normal(size=(length, 1))
            X = rng.normal(size=(length, p)) + 0.5 * common
            first = 2 * step
            y = X[:, first : first + k].sum(axis=1) + 3 * rng.normal(size=length) > 0
            selector.partial_fit(X, y, classes=[False, True])
            found.append(np.isin(selector.get_support(indices=True), range(first, first + k)).mean())
        hits[options] = np.mean(found[10:])
    assert hits[0.9, "batch"] > hits[None, "row"] + 0.05
    assert hits[0.9, "batch"] > hits[0.9, "row"] + 0.2


@pytest.mark.parametrize("kind", [TScore, FisherScore])
def test_any_scale_that_can_be_squared_scores_the_same_and_a_smaller_one_is_named(kind):
    X, y = rows(2)
    usual = kind(2).fit(X, y).scores_
    for scale in (1e-140, 1e140):
        np.testing.assert_allclose(kind(2).fit(X * scale, y).scores_, usual, rtol=1e-9)
    X[:, 0] *= 1e-300
    with pytest.warns(
        UserWarning, match=r"Column 0 differs between the classes by less than 1e-146, .* rescale it"
    ):
        scores = kind(2).fit(X, y).scores_
    assert scores[0] == 0.0
    np.testing.assert_allclose(scores[1:], usual[1:], rtol=1e-12)


@pytest.mark.parametrize("kind", [TScore, FisherScore])
def test_merging_leaves_the_other_as_it_was(kind):
    X, y = rows(3)
    labels = np.array(["d", "a", "c"])[y]
    other, untouched = (kind(2).fit(X[:40], labels[:40]) for _ in range(2))
    kind(2).fit(X[40:], np.char.add(labels[40:], "!")).merge(other)  # whose classes get other codes there
    np.testing.assert_array_equal(other.scores_, untouched.scores_)
    for selector in (other, untouched):
        selector.partial_fit(X[40:], labels[40:])
    np.testing.assert_array_equal(other.scores_, untouched.scores_)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_many_classes_are_each_compared_with_the_rest(offset):
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(200), np.arange(60).repeat(4), np.zeros(800, int)]
    X = offset + rng.normal(size=(len(y), 3)) + np.outer(y == 7, [0, 5, 0])
    selector = TScore(1).fit(X, y)
    expected = []
    for c in range(200):
        own, rest = X[y == c], X[y != c]
        error = np.sqrt(own.var(axis=0) / len(own) + rest.var(axis=0) / len(rest))
        expected.append(np.abs(own.mean(axis=0) - rest.mean(axis=0)) / error)
    np.testing.assert_allclose(selector.scores_, np.max(expected, axis=0), rtol=1e-6)
    assert selector.pvalues_.argmin() == 1
