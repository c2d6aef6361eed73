"""The G-square test of conditional independence of two columns with few values.

Neapolitan (2004): Learning Bayesian Networks, Section 10.3.1; symmetrical uncertainty: Press et al. (1988), Numerical
Recipes. With n_xys the number of rows with the values x and y of the two columns and s of the conditions S::

    G2 = 2 sum_xys n_xys log(n_xys n_s / (n_xs n_ys))                              (1)
    df = (values of X - 1) (values of Y - 1) prod over S of their values           (2)
    independent if and only if the tail of chi-square with df degrees at G2 is at least alpha   (3)
    SU = 2 I(X; Y) / (H(X) + H(Y)), in [0, 1], the strength of a dependence        (4)

Without conditions G2 = 2 N I(X; Y). Any form of dependence is detected, monotone or not, for any number of classes. A
column with more than 16 values is cut at its quantiles, and a value equal to a cut belongs to the bin below.

Errata and deviations, each with its reason:

* With fewer than 5 rows for each degree of freedom the test is unreliable. The public implementation then declares the
  columns independent given S, so with few rows every feature is separated by a set that could not be tested. Here such
  a set separates no column; ``unreliable="independent"`` follows the implementation. Without conditions, in both cases,
  a column that cannot be tested counts as independent. With few rows, columns are cut into few bins.
* For autocorrelated rows, (1) is divided by the variance inflation of the covariances of the values of column and class
  ((11) and (8) of :mod:`tamis.dependence.autocorrelation`), and between two kept columns by the smaller of theirs,
  which is the largest among their values.
* For SAOLA with discrete columns it compares (4) with a number delta: ``threshold``. By default (3) decides.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import scipy.special

from tamis._kernels import njit
from tamis._shapes import Shapes, state_error
from tamis._validation import Array, Floats, Ints, Mask, check_choice, check_number
from tamis.dependence.criterion import KEPT, Candidate, DependenceTest, Screening
from tamis.dependence.information import entropy
from tamis.errors import DataError

_FEW = 16  # largest number of values that are not binned
_ROWS = 5  # rows per degree of freedom below which the test is unreliable
_MARGIN = 1e-6  # tolerance of the screening


@dataclass(eq=False, repr=False)
class GSquare(DependenceTest):
    """Symmetrical uncertainty, and the G-square test of conditional independence.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level, in (0, 1).
    n_bins : int or None, default=None
        Number of bins of equal frequency for a column with more than 16 values, 2 to 16. None: 4, or fewer if two
        conditions with as many values would leave fewer than 5 rows for each degree of freedom.
    threshold : float or None, default=None
        delta: a column is dependent if its symmetrical uncertainty is larger than this, in [0, 1); None: by the
        test.
    unreliable : {"skip", "independent"}, default="skip"
        How a conditioning set with fewer than 5 rows for each degree of freedom is treated: ignored, or as
        independence.
    dependence : {"auto", "independent", "series"}, default="auto"
        Whether tests are corrected for autocorrelated rows, in the order given. "auto": if the classes are
        autocorrelated.

    Attributes
    ----------
    n_kept_, strength_
        As in :class:`tamis.dependence.criterion.DependenceTest`; the strength is the symmetrical uncertainty.

    References
    ----------
    Neapolitan (2004). Learning Bayesian Networks. Prentice Hall. Section 10.3.1.

    Examples
    --------
    The middle third of x1 is a separate class, which a correlation does not detect; x0 is a coarse copy of x1:

    >>> import numpy as np
    >>> from tamis.dependence.g_square import GSquare
    >>> x1 = np.random.default_rng(0).normal(size=900)
    >>> y, x0 = (np.abs(x1) < 0.5).astype(int), (x1 > 0.2).astype(float)
    >>> test = GSquare(n_bins=6).start(y)
    >>> for column in (x0, x1):
    ...     test.keep(test.candidate(column))
    >>> test.strength_.round(2), test.is_separated(0, [1], 3), test.is_separated(1, [0], 3)
    (array([0.03, 0.42]), True, False)
    """

    _state_spec = Shapes(
        f"{KEPT}  _n_classes (=c)  _target (n) in [0, _n_classes)  _of_class (n, c) float in [0, 1]"
        f"  _arity (k) in [1, {_FEW}]  _kept in [0, {_FEW})  _bins in [2, {_FEW}]"
        "  _critical float in [0, inf) increasing"
    )

    _: KW_ONLY
    n_bins: int | None = None
    threshold: float | None = None
    unreliable: str = "skip"

    def check_state(self) -> None:
        """Reject kept columns with values out of their range: kernels count into a cell for each.

        Raises
        ------
        StateError
            If there are any.
        """
        if hasattr(self, "_arity") and (self._kept[: self.n_kept_] >= self._arity[:, None]).any():
            raise state_error("'_kept' of a GSquare contains values out of range")

    def start(self, codes: Ints) -> Self:
        """Validate the parameters, remove all columns and set the classes of the rows.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,), int
            0, 1, ...

        Returns
        -------
        self

        Raises
        ------
        DataError
            If there is only one class.
        ValueError
            If a parameter is invalid.
        """
        self._check_alpha()
        if self.n_bins is not None:
            check_number("n_bins", self.n_bins, low=2, high=_FEW, integer=True)
        check_choice("unreliable", self.unreliable, ("skip", "independent"))
        if self.threshold is not None:
            check_number("threshold", self.threshold, low=0.0, high=1.0, open_high=True)
        target = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        if len(target) == 0 or target.max() == 0:
            raise DataError(
                f"y is constant ({len(codes)} sample(s) of one class), so no feature can be relevant to it: give rows"
                " of two classes."
            )
        self._measure_target(target)
        self._target, self._n_classes = target, int(target.max()) + 1
        self._of_class = np.eye(self._n_classes)[target]
        self._reset_kept(len(codes), np.int64)
        fits = [b for b in (4, 3) if _ROWS * b * b * (b - 1) * (self._n_classes - 1) <= self._n]
        self._bins = max([2, *fits]) if self.n_bins is None else self.n_bins
        self._critical = np.zeros(1)  # critical values by degrees of freedom
        self._arity = np.zeros(0, dtype=np.int64)
        return self

    # -- against the target --------------------------------------------------------------------------------

    def screen(self, columns: Any) -> Screening:
        """Test the columns of an array or CSC matrix of shape (n_rows, m), float64, approximately."""
        X = np.asarray(columns.toarray() if sp.issparse(columns) else columns)
        edges = _edges(X, self._bins)
        above = np.stack([self._of_class.T @ (edge < X) for edge in edges])  # (n_edges, n_classes, m)
        whole = np.broadcast_to(self._of_class.sum(axis=0)[:, None], above.shape[1:])
        tables = -np.diff(np.concatenate([whole[None], above, np.zeros((1, *whole.shape))]), axis=0)
        strength, log_p, testable = _statistics(tables.transpose(2, 0, 1))
        if self.threshold is None:
            near = testable & (log_p < math.log(self.alpha) + _MARGIN)
        else:
            near = strength > self.threshold - _MARGIN
        return Screening(strength, log_p, near | (np.ptp(X, axis=0) == 0.0))

    def candidate(self, column: Floats) -> Candidate:
        """Test one column of shape (n_rows,) in full precision."""
        if (column == column[0]).all():
            return Candidate(column, True, math.nan, math.nan, False)
        array = np.searchsorted(_edges(column[:, None], self._bins)[:, 0], column)
        values = np.unique(array, return_inverse=True)[1].astype(np.int64)
        table = _count(values, self._target[None], int(values.max()) + 1, self._n_classes)
        of_value = (np.unique(values)[:, None] == values).astype(np.float64)
        inflation, with_target = self._inflations(of_value)
        strength, log_p, testable = _statistics(table.astype(np.float64), with_target)
        dependent = self._significant(strength, log_p, testable)
        return Candidate(
            values, False, float(strength[0]), float(log_p[0]), bool(dependent[0]), inflation, with_target
        )

    def _significant(self, strength: Floats, log_p: Floats, testable: Array) -> Mask:
        if self.threshold is not None:
            return np.asarray(strength > self.threshold)
        return np.asarray(testable & (log_p < math.log(self.alpha)))  # (3)

    # -- among the kept columns ----------------------------------------------------------------------------

    def dependence_on_kept(self, candidate: Candidate) -> tuple[Floats, Mask]:
        """Return the symmetrical uncertainty of the candidate and each kept column, and where it is significant."""
        shape = int(candidate.values.max()) + 1, int(self._arity.max(initial=1))
        tables = _count(candidate.values, self._kept[: self.n_kept_], *shape).astype(np.float64)
        inflation = np.minimum(self._own_inflation, candidate.inflation)
        strength, log_p, testable = _statistics(tables, inflation)
        return strength, self._significant(strength, log_p, testable)

    def _on_keep(self, candidate: Candidate) -> None:
        self._arity = np.append(self._arity, candidate.values.max() + 1)

    def _on_drop(self, left: Ints) -> None:
        self._arity = self._arity[left]

    def is_separated(self, place: int, others: list[int], most: int, always: int | None = None) -> bool:
        """Return whether the target is independent of a kept column given some other kept columns."""
        pool = np.array(others if always is None else [always, *others], dtype=np.int64)
        most = min(most, len(pool))
        if most < 1:
            return False
        of_pair = int(self._arity[place] - 1) * (self._n_classes - 1)
        largest = of_pair * math.prod(np.sort(self._arity[pool])[-most:].tolist())
        self._extend_critical_values(min(largest, self._n // _ROWS))
        critical = self._critical * self._with_target[place]
        pair = self._kept[place] * self._n_classes + self._target
        return bool(
            _has_separating_set(
                pair, int(self._arity[place]), self._n_classes, self._kept, self._arity, pool, most,
                always is not None, critical, self.unreliable == "independent",
            )
        )  # fmt: skip

    def _extend_critical_values(self, df: int) -> None:
        """Extend the table of critical values of (3) to these degrees of freedom."""
        if df >= len(self._critical):
            self._critical = np.append(0.0, scipy.special.chdtri(np.arange(1, 2 * df + 1), self.alpha))


def _edges(X: Floats, n_bins: int) -> Floats:
    """Return the sorted cuts of each column, then infinity; the code of a value is the number of cuts below it."""
    n, m = X.shape
    ordered = np.sort(X, axis=0)
    steps = ordered[1:] > ordered[:-1]
    few = steps.sum(axis=0) < _FEW
    edges = np.full((max(_FEW - 1, 1), m), np.inf)
    row, column = np.nonzero(steps & few)
    edges[np.cumsum(steps, axis=0)[row, column] - 1, column] = ordered[row, column]
    place = np.arange(1, n_bins) / n_bins * (n - 1)
    low = place.astype(np.int64)
    share, below, beyond = (place - low)[:, None], ordered[low], ordered[np.minimum(low + 1, n - 1)]
    edges[: n_bins - 1, ~few] = (below + share * (beyond - below))[:, ~few]
    used = int(np.isfinite(edges).any(axis=1).sum())
    return edges[: max(used, 1)]


def _statistics(tables: Floats, inflation: float | Floats = 1.0) -> tuple[Floats, Floats, Mask]:
    """Return (4), the log p-value of (3), and whether it can be tested, of tables of shape (m, values, values)."""
    of_row, of_column = tables.sum(axis=2), tables.sum(axis=1)
    n = of_row.sum(axis=1)
    mean = (entropy(of_row) + entropy(of_column)) / 2.0
    shared = np.maximum(
        2.0 * mean - entropy(tables.reshape(len(tables), tables.shape[1] * tables.shape[2])), 0.0
    )
    strength = np.divide(shared, mean, out=np.zeros_like(mean), where=mean > 0.0)
    df = (np.count_nonzero(of_row, axis=1) - 1) * (np.count_nonzero(of_column, axis=1) - 1)
    return strength, _log_tail(2.0 * n * shared / inflation, df), (df > 0) & (n >= _ROWS * df)


def _log_tail(x: Floats, df: Ints) -> Floats:
    """Return the log of the chi-square tail, asymptotically where it underflows."""
    a, half = np.maximum(df, 1) / 2.0, x / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.log(scipy.special.gammaincc(a, half))
        far = (a - 1.0) * np.log(half) - half - scipy.special.gammaln(a) + np.log1p((a - 1.0) / half)
    return np.where(df == 0, 0.0, np.where(exact > -700.0, exact, far))


@njit()
def _count(one: Array, others: Array, n_one: int, n_other: int) -> Array:
    """Return the number of rows with each pair of values, of one column and each of the others."""
    tables = np.zeros((len(others), n_one, n_other), np.int64)
    for q in range(len(others)):
        for i in range(len(one)):
            tables[q, one[i], others[q, i]] += 1
    return tables


@njit()
def _g_square(pair: Array, given: Array, n_x: int, n_y: int, cells: int) -> float:
    """Return (1) of the pairs x n_y + y, given a code of the conditions."""
    table = np.zeros((cells, n_x, n_y), np.int64)
    for i in range(len(pair)):
        table[given[i], pair[i] // n_y, pair[i] % n_y] += 1
    half = 0.0
    of_x, of_y = np.empty(n_x), np.empty(n_y)
    for s in range(cells):
        of_x[:], of_y[:] = 0.0, 0.0
        total = 0.0
        for x in range(n_x):
            for y in range(n_y):
                of_x[x] += table[s, x, y]
                of_y[y] += table[s, x, y]
                total += table[s, x, y]
        for x in range(n_x):
            for y in range(n_y):
                if table[s, x, y] > 0:
                    half += table[s, x, y] * np.log(table[s, x, y] * total / (of_x[x] * of_y[y]))
    return 2.0 * half


@njit()
def _has_separating_set(
    pair: Array, n_x: int, n_y: int, codes: Array, arity: Array, pool: Array, most: int, only_first: bool,
    critical: Array, unreliable: bool,
) -> bool:  # fmt: skip
    """Whether a set of up to `most` conditions from the pool makes the pair independent, depth first."""
    n, m = len(pair), len(pool)
    conditions, cells = np.zeros((most + 1, n), np.int64), np.ones(most + 1, np.int64)
    upcoming = np.zeros(most + 1, np.int64)
    d = 0
    while d >= 0:
        c = upcoming[d]
        if d == most or c >= (1 if only_first and d == 0 else m):
            d -= 1
            continue
        upcoming[d] = c + 1
        own = arity[pool[c]]
        df = (n_x - 1) * (n_y - 1) * cells[d] * own  # (2)
        if _ROWS * df > n:
            if unreliable:
                return True
            continue  # more conditions cannot be tested either
        conditions[d + 1] = conditions[d] * own + codes[pool[c]]
        cells[d + 1] = cells[d] * own
        if _g_square(pair, conditions[d + 1], n_x, n_y, cells[d + 1]) < critical[df]:  # (3)
            return True
        d += 1
        upcoming[d] = c + 1
    return False
