from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.rows.efs import EFS
from tests.twins.efs import LEAST, MOST, EfsTwin

VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # ours, the twin's
    "paper": ({}, {}),
    "other factors": (
        {"promotion": 1.1, "demotion": 0.9, "threshold": 0.3, "margin": 0.0},
        {"alpha": 1.1, "beta": 0.9, "theta": 0.3, "margin": 0.0},
    ),
    "range": ({"normalize": "range"}, {"by_range": True}),
}


def rows(rng: np.random.Generator, n: int, n_features: int, kind: str) -> np.ndarray:
    if kind == "words":
        return (rng.random((n, n_features)) < 0.2).astype(float)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    return X.astype(np.float32) if kind == "float32" else X


def in_batches(selector: EFS, X: Any, y: np.ndarray, sizes: list[int]) -> EFS:
    start = 0
    for size in sizes:
        if start < X.shape[0]:
            selector.partial_fit(X[start : start + size], y[start : start + size])
        start += size
    return selector


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", ["float64", "float32", "words"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_equals_the_twin_bit_for_bit(rng, variant, kind, n_classes):
    ours, theirs = VARIANTS[variant]
    X, y = rows(rng, 120, 17, kind), rng.integers(0, n_classes, 120)
    y[:40] = rng.integers(0, 2, 40)  # a third class comes late
    weight = rng.integers(0, 3, 120) / 2
    for weights in (None, weight):
        there = slice(None) if weights is None else weights > 0.0  # rows of weight 0 are left out
        twin = EfsTwin(17, **theirs).learn(X[there], y[there], None if weights is None else weights[there])
        assert twin.mistakes > 10
        for matrix in (X, sp.csr_matrix(X)):
            selector = EFS(4, **ours).fit(matrix, y, sample_weight=weights)
            np.testing.assert_array_equal(selector.scores_, twin.scores)


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_any_batching_and_layout_is_the_twin(data):
    n_features, n_rows = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 30))
    ours, theirs = VARIANTS[data.draw(st.sampled_from(sorted(VARIANTS)))]
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    X = rows(rng, n_rows, n_features, data.draw(st.sampled_from(["float64", "words"])))
    y = rng.integers(0, data.draw(st.integers(1, 4)), n_rows)
    sizes = [*data.draw(st.lists(st.integers(1, 10), max_size=8)), n_rows]
    learned = in_batches(EFS(1, **ours), sp.csr_matrix(X) if data.draw(st.booleans()) else X, y, sizes)
    twin = EfsTwin(n_features, **theirs).learn(X, y)
    expected = twin.scores if learned.classes_.shape[0] > 1 else np.zeros(n_features)
    np.testing.assert_array_equal(learned.scores_, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spambase", "usenet", "splice", "coil20"])
def test_equals_the_twin_on_real_data(load_shared: Callable[[str], Any], name):
    X, y, _ = load_shared(name)
    order = np.random.default_rng(0).permutation(X.shape[0])[:100]
    X, y = X[order], y[order]
    dense = X.toarray() if sp.issparse(X) else X
    twin = EfsTwin(X.shape[1]).learn(dense, y)
    assert twin.mistakes > 10
    np.testing.assert_array_equal(EFS().fit(X, y).scores_, twin.scores)


def test_equals_float_evaluation_where_it_is_right():
    """Scores of its class EFS (0.0.2) after these rows, in which the first label is 1; its 0.0 is our 2**-200."""
    rng = np.random.default_rng(2006)
    X = rng.random((60, 6))
    y = (X[:, 1] - X[:, 4] > 0).astype(int)
    found = EFS(2, normalize="range").fit(X, y).scores_
    np.testing.assert_allclose(
        found, [0.0, 0.0020024419654160555, 0.0, 0.0, 0.00011182690653165533, 0.0], rtol=1e-12, atol=1e-55
    )


def test_no_row_makes_a_weight_zero_infinite_or_nan(rng):
    """Noise labels for 4,000 rows: float-evaluation's weights are infinite or NaN by then."""
    X, y = np.zeros((4000, 3)), rng.integers(0, 2, 4000)
    X[:, 0], X[:, 1], X[0] = 1.0, np.where(y == y[0], 5.0, 0.0), [1e308, -1.7e308, 5e-324]
    for normalize in ("sum", "range"):
        selector = EFS(1, normalize=normalize).fit(X, y)
        for weights in (selector._positive, selector._negative):
            assert weights.min() >= LEAST
            assert weights.max() <= MOST
        assert np.isfinite(selector.scores_).all()


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e307])
def test_only_the_shares_of_a_row_count(scale):
    """Of large rows the bias is nothing, and the rest is the direction, even where the sum overflows."""
    x = np.array([[6.0, 0.0, -12.0, 2.0]]) * scale
    selector = EFS(2).fit(x, [1])
    share = np.abs(x[0] / scale) / (20.0 + 1 / scale)
    positive = np.array([3.0 * (1 + share[0]), 2.0, 1.0 - share[2], 3.0 * (1 + share[3])])
    np.testing.assert_allclose(selector._positive[0, :4], positive, rtol=1e-14)


def test_a_negative_value_counts_for_the_other_class():
    turned = EFS(1).partial_fit([[-1.0, 2.0]], ["a"])
    straight = EFS(1).partial_fit([[1.0, 2.0]], ["a"])
    assert turned._positive[0, 0] < 2.0 < straight._positive[0, 0]
    assert turned._positive[0, 1] == straight._positive[0, 1]


def test_a_third_class_continues_from_two(rng):
    X, y = rows(rng, 100, 10, "words"), rng.integers(0, 2, 100)
    selector = EFS(4).partial_fit(X, y)
    scores = selector.scores_
    selector.partial_fit(np.zeros((1, 10)), [2], sample_weight=[1e-100])  # opens the class, teaches nothing
    assert selector._positive.shape == (3, 11)
    np.testing.assert_allclose(selector._positive[1], selector._negative[0], atol=1e-50)
    np.testing.assert_allclose(selector.scores_, np.maximum(scores, 1.0), rtol=1e-14)


def test_a_weight_raises_the_factors(rng):
    x = rng.random((1, 9))
    twice = EFS(4).partial_fit(x, [1], classes=[0, 1], sample_weight=[2.0])
    once = EFS(4).partial_fit(x, [1], classes=[0, 1])
    np.testing.assert_allclose(twice._positive / 2.0, (once._positive / 2.0) ** 2, rtol=1e-14)
    np.testing.assert_allclose(twice._negative, once._negative**2, rtol=1e-14)


def test_finds_planted_words_among_ten_thousand():
    rng = np.random.default_rng(0)
    X = sp.random(4000, 10_000, 0.01, "csr", rng=rng, data_rvs=np.ones)
    relevant = [5, 4040, 9999]
    X = X + sp.csr_matrix(
        (np.ones(1800), (np.arange(1800), np.repeat(relevant, 600))), X.shape
    )  # a third each
    y = np.asarray(X[:, relevant].sum(axis=1)).ravel() > 0
    order = rng.permutation(4000)
    selector = EFS(3)
    for start in range(0, 4000, 100):
        part = order[start : start + 100]
        selector.partial_fit(X[part], y[part])
    assert selector.get_support(indices=True).tolist() == relevant


def test_low_share_takes_the_least_scores(rng):
    X = rows(rng, 200, 40, "words")
    y = (X[:, 3] + X[:, 8] > 0).astype(int)
    scores = EFS(10).fit(X, y).scores_
    kept = EFS(10, low_share=0.3).fit(X, y).get_support()
    order = np.argsort(scores, kind="stable")
    assert set(np.flatnonzero(kept)) == {*order[:3], *order[-7:]}
    assert EFS(1, low_share=0.9).fit(X, y).get_support().sum() == 1
    assert EFS(1.0, low_share=0.5).fit(X, y).get_support().all()
    assert EFS(10, low_share=0.3).partial_fit(X[:2], [1, 1]).get_support().all()  # waits for a second class


def test_widened_columns_are_those_that_were_never_present(rng):
    X, y = sp.csr_matrix(rows(rng, 100, 12, "words")), rng.integers(0, 3, 100)
    later = EFS(3).partial_fit(X[:50, :7], y[:50]).widen(12)
    early = X[:50].toarray()
    early[:, 7:] = 0.0
    known = EFS(3).partial_fit(sp.csr_matrix(early), y[:50])
    for selector in (later, known):
        selector.partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(later.scores_, known.scores_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"promotion": 1}, r"promotion must be a number in \(1, inf\), got 1"),
        ({"demotion": 1.0}, r"demotion must be a number in \(0, 1\), got 1.0"),
        ({"threshold": -1}, "threshold must be a number"),
        ({"margin": np.inf}, "margin must be a number"),
        ({"normalize": "max"}, "normalize must be one of 'sum', 'range', got 'max'"),
        ({"low_share": 1}, r"low_share must be a number in \[0, 1\), got 1"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        EFS(**parameters).fit(np.eye(4), [0, 1, 0, 1])


def test_golden():
    """The numbers were computed by the twin, once; they hold it and the kernel to what they were."""
    rng = np.random.default_rng(2006)
    X = (rng.random((1000, 50)) < 0.1).astype(float)
    y = rng.integers(0, 3, 1000)
    y[X[:, 7] + X[:, 31] > 0] = 1
    selector, twin = EFS(2).fit(X, y), EfsTwin(50).learn(X, y)
    assert twin.mistakes == 1650
    for scores in (selector.scores_, twin.scores):
        assert set(np.argsort(scores)[-2:]) == {7, 31}
        assert float(scores.sum()).hex() == "0x1.006e36bd2f938p+6"
