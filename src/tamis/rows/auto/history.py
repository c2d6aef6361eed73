"""The history of a comparison: the errors of every candidate over the rows, in bounded memory."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from tamis._shapes import Shapes
from tamis._validation import Array, Floats

_LATELY = 2000.0  # rows over which errors are averaged, at most
_MOST = 512  # maximum number of records, after which pairs are merged


class History:
    """Up to 512 records of a comparison: one per batch or, when there are more, one per 2, 4, 8 ... batches.

    Parameters
    ----------
    n_candidates : int

    Attributes
    ----------
    n_records : int
        Number of records; array rows beyond it are undefined, so that the arrays keep their shape.
    n_seen, followed : ndarray of shape (512,), int64
        Number of rows at the end of each record, and the candidate selected there.
    n_tested : ndarray of shape (512,), int64
        Number of rows of the record on which the candidates were evaluated.
    errors : ndarray of shape (512, n_candidates), float64
        Mean error of each candidate over these rows.

    Examples
    --------
    >>> history = History(2).with_block(100, 0, np.array([0.5, 0.3]), 90)
    >>> history = history.with_block(200, 1, np.array([0.5, 0.1]), 100)
    >>> history.n_records, history.n_seen[:2].tolist(), history.errors[:2].tolist()
    (2, [100, 200], [[0.5, 0.3], [0.5, 0.1]])
    """

    _state_spec = Shapes("""
        n_records in [0, len(n_seen)]
        span in [1, 2**62)
        in_last in [1, span]
        n_seen (g) int64 in [0, 2**62) fixed
        followed (g) int64 in [0, a) fixed
        n_tested (g) int64 in [0, 2**62) fixed
        errors (g, a) finite fixed
    """)

    def __init__(self, n_candidates: int) -> None:
        self.n_records, self.span, self.in_last = 0, 1, 1  # batches per record, and in the last one
        self.n_seen, self.followed, self.n_tested = np.zeros((3, _MOST), np.int64)
        self.errors = np.zeros((_MOST, n_candidates))

    def with_block(self, n_seen: int, followed: int, errors: Array, n_tested: int) -> Self:
        """Return the history with one more batch; this one is unchanged."""
        longer = copy.deepcopy(self)
        if longer.in_last == longer.span:
            if longer.n_records == _MOST:
                longer._halve()
            longer.n_records, longer.in_last = longer.n_records + 1, 0
            longer.n_tested[longer.n_records - 1] = 0
        at, longer.in_last = longer.n_records - 1, longer.in_last + 1
        longer.n_seen[at], longer.followed[at] = n_seen, followed
        longer.n_tested[at] += n_tested
        before = longer.errors[at] if longer.in_last > 1 else errors
        longer.errors[at] = before + (errors - before) * n_tested / max(int(longer.n_tested[at]), 1)
        return longer

    def _halve(self) -> None:
        half = _MOST // 2
        self.n_seen[:half], self.followed[:half] = self.n_seen[1::2], self.followed[1::2]
        weight = np.maximum(self.n_tested, 1e-9).reshape(half, 2, 1)
        pairs = self.errors.reshape(half, 2, -1)
        self.errors[:half] = (weight * pairs).sum(axis=1) / weight.sum(axis=1)
        self.n_tested[:half] = self.n_tested.reshape(half, 2).sum(axis=1)
        self.n_records, self.span, self.in_last = half, 2 * self.span, 2 * self.span

    def after(self, earlier: Self) -> Self:
        """Return the history of an earlier part with the same candidates, followed by this one."""
        longer, n_before = copy.deepcopy(earlier), int(earlier.n_seen[max(earlier.n_records - 1, 0)])
        for at in range(self.n_records):
            longer = longer.with_block(
                n_before + int(self.n_seen[at]),
                int(self.followed[at]),
                self.errors[at],
                int(self.n_tested[at]),
            )
        return longer

    def select(self, origin: Array, goes_to: Array) -> Self:
        """Return the history of other candidates: `origin` are the previous ones of each, `goes_to` the new ones."""
        other = copy.copy(self)
        other.errors, other.followed = self.errors.take(origin, axis=1), goes_to[self.followed]
        return other

    def recent(self, n_rows: int) -> Floats:
        """Return the mean error of each candidate over the last records with `n_rows` tested rows together."""
        n_tested = self.n_tested[: self.n_records]
        first = max(int((n_tested[::-1].cumsum()[::-1] >= n_rows).sum()) - 1, 0)
        total = max(float(n_tested[first:].sum()), 1.0)
        return n_tested[first:] @ self.errors[first : self.n_records] / total

    def records(self) -> dict[str, Array]:
        """Return "n_seen", "followed", "errors" and "n_tested", with a row for each record."""
        names = ("n_seen", "followed", "errors", "n_tested")
        return {name: getattr(self, name)[: self.n_records].copy() for name in names}

    def summary(self, candidates: list[str], n_points: int) -> dict[str, Any]:
        """Return at most `n_points` sections of the history in plain values; errors fade as in the comparison.

        The keys are "n_seen", "followed", "share" and "accuracy", as in :meth:`tamis.Auto.comparison_summary`.
        """
        n_seen, followed, errors, n_tested = self.records().values()
        n = len(n_seen)
        starts = np.unique(np.linspace(0, n, min(n, n_points), endpoint=False).astype(int))
        ends = np.append(starts[1:], n)[: len(starts)] - 1
        rows = np.diff(n_seen, prepend=0)
        share = np.bincount(followed, rows, len(candidates)) / max(int(rows.sum()), 1)
        recent, seen, faded = np.zeros(len(candidates)), 0.0, np.zeros_like(errors)
        for at, n_new in enumerate(np.maximum(n_tested, 1).tolist()):
            seen, news = news_of(seen, n_new, fades_over(int(n_tested[: at + 1].sum())))
            recent = recent + news * (errors[at] - recent)
            faded[at] = recent
        by_share = np.argsort(-share, kind="stable")
        by_errors = np.argsort(n_tested @ errors, kind="stable")
        return {
            "n_seen": n_seen[ends].tolist(),
            "followed": [candidates[candidate] for candidate in followed[ends]],
            "share": {candidates[candidate]: float(share[candidate]) for candidate in by_share},
            "accuracy": {
                candidates[candidate]: (1.0 - faded[ends, candidate]).tolist() for candidate in by_errors
            },
        }


def fades_over(n_tested: int) -> float:
    """Return the number of rows over which errors fade: half of all, since the first errors of a learner are outdated.

    >>> fades_over(500), fades_over(100_000)
    (250.0, 2000.0)
    """
    return min(max(0.5 * n_tested, 1.0), _LATELY)


def news_of(seen: float, n_rows: int, lately: float) -> tuple[float, float]:
    """Return the faded weight of all rows, which tends to 1, and the fraction of it due to the new rows.

    A faded mean m becomes ``m + share * (mean of the new rows - m)``.

    >>> seen, share = news_of(0.0, 100, 2000.0)
    >>> round(seen, 4), share, round(news_of(seen, 100, 2000.0)[1], 3)
    (0.0488, 1.0, 0.513)
    """
    keep = (1.0 - 1.0 / lately) ** n_rows
    seen = keep * seen + 1.0 - keep
    return seen, (1.0 - keep) / seen
