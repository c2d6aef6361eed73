"""With `redundancy` a screen keeps few copies of one signal, however rows are stored, cut, merged or saved."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis.rows import ChiSquare, FisherScore, GiniIndex, MutualInformation, Screening, TScore
from tamis.rows.screening.redundancy import LastRows, by_addition

SCREENS = (ChiSquare, FisherScore, GiniIndex, MutualInformation, Screening, TScore)


def copies(n: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten copies of one signal, a weaker second one, and noise."""
    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(n, 2))
    X = np.hstack([signals[:, [0] * 10 + [1]] + 0.1 * rng.normal(size=(n, 11)), rng.normal(size=(n, 9))])
    return X, (2 * signals[:, 0] + signals[:, 1] > 0).astype(int)


def explained(X: np.ndarray, y: np.ndarray, n_selected: int) -> list[int]:
    """Forward selection, slow and obvious: in each step the column that adds most, by a ridge regression."""
    X, Y = (X - X.mean(0)) / X.std(0), np.eye(y.max() + 1)[y]
    Y = (Y - Y.mean(0)) / np.sqrt(Y.mean(0))
    n, ridge, kept = len(X), (1 + np.sqrt(X.shape[1] / len(X))) ** 2 - 1, []
    for _ in range(n_selected):
        gains = {}
        for j in set(range(X.shape[1])) - set(kept):
            Z = X[:, [*kept, j]]
            R, b = Z.T @ Z / n + ridge * np.eye(Z.shape[1]), Z.T @ Y / n
            gains[j] = np.trace(b.T @ np.linalg.solve(R, b))
        kept.append(max(gains, key=gains.get))
    return kept


def test_equals_its_twin():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 9)) + 0.5 * rng.normal(size=(300, 9))
        y = np.digitize(X[:, 0] + X[:, 5] + rng.normal(size=300), [-1, 1])
        assert by_addition(X, y, 5) == explained(X, y, 5)


@pytest.mark.slow
@pytest.mark.parametrize("screen", SCREENS)
def test_few_copies_are_kept_of_dense_and_of_sparse_rows(screen):
    X, y = copies()
    for rows in (X, sp.csr_matrix(X)):
        assert not screen(2).fit(rows, y).get_support()[10]
        selector = screen(2, redundancy=15).fit(rows, y)
        assert selector.get_support()[10]
        assert selector.get_support()[:10].sum() == 1
        assert np.array_equal(selector.scores_, screen(2).fit(rows, y).scores_)


def test_batches_merging_and_saving_leave_the_same_columns(tmp_path):
    X, y = copies(2600)
    whole = FisherScore(3, redundancy=20).fit(X, y)
    parts = FisherScore(3, redundancy=20)
    for start in range(0, len(y), 37):
        parts.partial_fit(X[start : start + 37], y[start : start + 37])
    first, second = (
        FisherScore(3, redundancy=20).fit(X[part], y[part]) for part in (slice(1900), slice(1900, None))
    )
    tamis.save(parts, tmp_path / "screen.tamis")
    for other in (parts, tamis.load(tmp_path / "screen.tamis"), first.merge(second)):
        assert np.array_equal(other.get_support(), whole.get_support())
        ours, theirs = (one._last_rows.columns(np.arange(20)) for one in (whole, other))
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_the_last_rows_are_a_thousand_and_wide_enough():
    rows = LastRows()
    for n in (400, 2300, 1, 700):
        rows.add(sp.csr_matrix(np.full((n, 3), float(n))), np.zeros(n, dtype=int))
    rows.widen(5)
    X, codes = rows.columns(np.array([0, 4]))
    assert X.shape == (1000, 2)
    assert len(codes) == 1000
    assert set(X[:, 0]) == {2300.0, 1.0, 700.0}
    assert not X[:, 1].any()


def test_missing_constant_and_huge_columns_are_passed_over():
    X, y = copies(600)
    X[::3, 0], X[:, 11], X[:, 12], X[:, 13] = np.nan, 7.0, np.nan, 1e300 * np.sign(X[:, 13])
    selector = MutualInformation(20, redundancy=20, dtype="float64")
    assert selector.fit(X, y).get_support().all()
    kept = MutualInformation(2, redundancy=20, dtype="float64").fit(X, y).get_support(indices=True)
    assert kept[1] == 10


def test_wrong_words_are_refused():
    X, y = copies(50)
    for wrong, why in (
        (FisherScore(2, redundancy=0), "redundancy"),
        (FisherScore(None, level=0.05, redundancy=5), "n_features_to_select"),
        (FisherScore(21, redundancy=5), "n_features_to_select"),
    ):
        with pytest.raises(ValueError, match=why):
            wrong.fit(X, y)
