"""Bad batches, forgetting everything, and the largest counts: the same words from every summary that counts classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.errors import DataError
from tamis.summaries.batch import change_parts, n_bytes
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.contingency import Contingency, mutual_information
from tamis.summaries.quantiles import QuantileSummary

ROWS, CODES = np.array([[0.0, 2.0], [1.0, 0.0], [2.0, 1.0]]), np.array([0, 1, 1])


def counted(summary):
    return summary.counts(2) if isinstance(summary, QuantileSummary) else summary.table()


@pytest.mark.parametrize("make", [lambda: QuantileSummary(2, 2), lambda: Contingency(2, 3, 2)])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": ROWS[:, :1]}, r"X has shape \(3, 1\), but the summary has 2 features"),
        ({"X": ROWS[0]}, r"X has shape \(2,\)"),
        ({"codes": CODES[:2]}, r"codes is a int64 array of shape \(2,\), but X has 3 rows"),
        ({"codes": CODES.astype(float)}, "codes is a float64 array"),
        ({"codes": CODES - 1}, "codes contains -1, but the summary has 2 classes"),
        ({"codes": CODES + 1}, "codes contains 2, but the summary has 2 classes"),
        (
            {"sample_weight": np.array([1.0, -0.5, 1.0])},
            r"sample_weight\[1\] is -0.5: weights must be finite",
        ),
        ({"sample_weight": np.array([1.0, 1.0, np.nan])}, r"sample_weight\[2\] is nan"),
        ({"sample_weight": np.array([1.0, np.inf, 1.0])}, r"sample_weight\[1\] is inf"),
        ({"sample_weight": np.ones(2)}, r"sample_weight has shape \(2,\), but the batch has 3 rows"),
        ({"keep": 1.5}, r"keep must lie in \[0, 1\], got 1.5"),
        ({"keep": np.array([1.0, np.nan])}, r"keep must lie in \[0, 1\], got \[ 1. nan\]"),
    ],
)
def test_a_bad_batch_is_named_and_changes_nothing(make, change, words):
    summary = make()
    summary.update(ROWS, CODES)
    before = counted(summary)
    with pytest.raises(DataError, match=words):
        summary.update(**{"X": ROWS, "codes": CODES, **change})
    assert np.array_equal(counted(summary), before)


@pytest.mark.parametrize("keep", [0.0, 1e-320, np.array([0.0, 1e-200])])
@pytest.mark.parametrize("rows", [ROWS, sp.csr_matrix(ROWS)], ids=["dense", "sparse"])
def test_what_fades_to_nothing_is_forgotten(keep, rows):
    fresh, faded = QuantileSummary(2, 2), QuantileSummary(2, 2)
    moments = ClassMoments(2, 2), ClassMoments(2, 2)
    for _ in range(5):
        assert faded.update(3.0 * rows, 1 - CODES, keep=keep)
        assert moments[0].update(3.0 * rows, 1 - CODES, keep=keep)
    for one in (fresh, faded, *moments):
        assert one.update(rows, CODES, keep=keep)
    np.testing.assert_allclose(faded.counts(3), fresh.counts(3), atol=1e-98)
    assert np.array_equal(faded.quantile([0.2, 0.7]), fresh.quantile([0.2, 0.7]))
    for name in ("count", "mean", "variance", "effective"):
        np.testing.assert_allclose(getattr(moments[0], name)(), getattr(moments[1], name)(), 1e-12, 1e-15)
    if not sp.issparse(rows):
        tables = Contingency(2, 3, 2), Contingency(2, 3, 2)
        tables[0].update(rows, 1 - CODES)
        for table in tables:
            table.update(rows, CODES, keep=keep)
        np.testing.assert_allclose(tables[0].table(), tables[1].table(), atol=1e-98)


@pytest.mark.parametrize("make", [lambda: QuantileSummary(1, 1), lambda: Contingency(1, 3, 1)])
def test_counts_are_exact_up_to_two_to_the_53(make):
    summary, one = make(), np.array([[2.0]])
    summary.update(one, np.array([0]), np.array([2.0**53 - 2]))
    for exact in (2.0**53 - 1, 2.0**53, 2.0**53):  # one more row is lost: the stated limit
        summary.update(one, np.array([0]))
        assert counted(summary).sum() == exact


def test_a_feature_without_values_counts_nothing_and_tells_nothing(rng):
    summary = QuantileSummary(2, 2, 0.05)
    X, codes = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000)
    X[:, 1] = np.nan
    for start in range(0, 3000, 250):
        rows = X[start : start + 250]
        summary.update(sp.csr_matrix(rows) if start % 500 else rows, codes[start : start + 250])
    assert np.isnan(summary.quantile([0.0, 0.5, 1.0])[1]).all()
    assert not summary.counts(5)[1].any()
    assert summary.rank_error()[1] == 0.0
    assert mutual_information(summary.counts(5))[1] == 0.0


def test_parts_are_changed_in_copies():
    class Owner:
        counts, none = Contingency(2, 3, 2), None

    owner, before = Owner(), Owner.counts
    change_parts(owner, ("counts", "none"), lambda part: part.grow(5))
    assert (owner.counts.n_classes, before.n_classes, owner.none) == (5, 2, None)


def test_the_size_is_that_of_all_arrays():
    class Owner:
        def __init__(self, *parts):
            self.parts, self.name = parts, "owner"

        nbytes = property(n_bytes)

    rows = sp.csr_matrix(np.eye(3))
    assert Owner().nbytes == 0
    assert Owner(np.zeros(3), [Owner(np.zeros(2, np.int32))], rows, None).nbytes == 24 + 8 + 24
