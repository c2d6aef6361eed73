"""Streaming rows and features: alpha-investing on the Gram matrix of a linear model, updated with each batch.

After Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005, whose rows are fixed.
Here a row is stored only through its contribution to G = sum_i w_i [1 z_i y_i]' [1 z_i y_i], z being the selected
features and those on trial. Sweeping G, equation (1), on the intercept and the selected features
yields::

    G_xx, G_xy, G_yy   of a candidate x and y: |z|^2, c and RSS of the t test                    (2)
    G_kk, G_ky         of a selected feature: its part of (Z'Z)^-1 and its coefficient           (3)

A new column in a batch starts a trial. After `trial_rows` rows, the candidates of the trial are tested in order, each
at a cost as in alpha-investing. Accepted candidates join the model, which then covers the rows of the trial only,
because the new features have no values on earlier rows. Selected features are tested again after every batch.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._shapes import Shapes
from tamis._validation.arrays import Array, Floats, as_numbers, fill_masked
from tamis._validation.labels import as_column, as_target
from tamis._validation.parameters import check_parameters, integer, number, parameter
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis._validation.table import as_table
from tamis.columns.block_test import blocked_log_p, is_determined
from tamis.columns.online_fdr import RULES, SpendingRule, make_rule
from tamis.columns.tails import log_t_tail
from tamis.dependence.autocorrelation import blocked_length, is_series, join_blocks
from tamis.errors import DataError

# -- The Gram matrix of an intercept, named columns and a target, updated with each batch; and the sweep operator

# Sweeping a symmetric matrix G on its k-th column makes that column a regressor (Beaton 1964; Goodnight 1979)::
#
#     pivot d = G_kk;  row k: G_kj / d;  others: G_ij - G_ik G_kj / d;  column k: -G_ik / d;  G_kk: 1 / d        (1)
#
# For autocorrelated rows, G is also stored by block. The sum over block k of the product of two columns with
# coefficients a and b is a' G_k b, from which the tests of :mod:`tamis.columns.block_test` are computed without the
# rows. There are 16 to 32 blocks of L rows, and L doubles; with fading, the two oldest blocks are merged instead once
# 16 blocks contain the effective number of rows. Rows from before the series was detected form the first block.

_MOST = 32  # blocks
COLLINEAR = 1e-10  # share of a column's variance: a Gram matrix has half the digits of its columns


def sweep(gram: Floats, k: int) -> None:
    """Sweep a symmetric matrix on its k-th column in place, equation (1); a second time undoes it.

    Parameters
    ----------
    gram : ndarray of shape (m, m), float64
    k : int

    Examples
    --------
    >>> G = np.array([[4.0, 2.0], [2.0, 3.0]])
    >>> sweep(G, 0)
    >>> G  # the coefficient 2 / 4, and the residual sum of squares 3 - 2^2 / 4
    array([[ 0.25,  0.5 ],
           [-0.5 ,  2.  ]])
    """
    pivot = gram[k, k]
    row, column = gram[k] / pivot, gram[:, k].copy()
    gram -= np.outer(column, row)
    gram[k], gram[:, k] = row, -column / pivot
    gram[k, k] = 1.0 / pivot


class AugmentedGram:
    """G of the intercept, some named columns and y, each centred on its mean in the first rows.

    Examples
    --------
    >>> rows = {"a": np.array([1.0, 2.0, 3.0])}
    >>> gram = AugmentedGram().with_rows(rows, ["a"], np.array([2.0, 4.0, 6.0]), 1.0)
    >>> swept, _ = gram.sweep_on(["a"])
    >>> float(swept[1, -1]), gram.n  # the coefficient, and the rows
    (2.0, 3.0)
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shift = np.zeros(1)
        self.matrix: Floats = np.zeros((2, 2))
        self.square = 0.0  # sum of the squared weights of the rows
        self.blocks: Floats = np.zeros((0, 2, 2))
        self.block_squares = np.zeros(0)  # as `square`
        self.length = 1  # L
        self.n_last = 0  # rows of the last block

    _state_spec = Shapes("""
        shift (q) float in [-1e150, 1e150]  matrix (q+1, q+1) finite  square float in [0, inf)
        blocks (b, q+1, q+1) finite  block_squares (b) float in [0, inf)
        length in [1, 2**62)  n_last in [0, length]
    """)

    @property
    def n(self) -> float:
        """Sum of the weights of the rows."""
        return float(self.matrix[0, 0])

    def subset(self, names: list[str]) -> AugmentedGram:
        """Return the Gram matrix of these columns; all must be known, except before the first rows."""
        if self.n == 0.0 or names == self.names:
            return self
        subset = AugmentedGram()
        places = [self.names.index(name) for name in names]
        subset.names, subset.shift = list(names), self.shift[[*places, -1]]
        kept = [0, *(1 + place for place in places), -1]
        subset.matrix = self.matrix[np.ix_(kept, kept)]
        subset.blocks = self.blocks[:, kept][:, :, kept]
        subset.square, subset.block_squares = self.square, self.block_squares
        subset.length, subset.n_last = self.length, self.n_last
        return subset

    def with_rows(
        self, columns: dict[str, Floats], names: list[str], y: Floats, keep: float, series: bool = False
    ) -> AugmentedGram:
        """Return the Gram matrix with further rows; the weights of earlier rows are multiplied by `keep`.

        With `series`, these rows are also stored by block.
        """
        updated = AugmentedGram()
        values = np.column_stack([*(columns[name] for name in names), y])
        fresh = self.n == 0.0
        updated.names, updated.shift = list(names), values.mean(axis=0) if fresh else self.shift
        rows = np.column_stack([np.ones(len(y)), values - updated.shift])
        updated.matrix = rows.T @ rows + (0.0 if fresh else keep * self.matrix)
        updated.square = len(y) + (0.0 if fresh else keep * keep * self.square)
        updated.blocks = np.zeros((0, *updated.matrix.shape))
        if series:
            updated._add_blocks(rows, keep, AugmentedGram() if fresh else self)
        return updated

    def _add_blocks(self, rows: Floats, keep: float, before: AugmentedGram) -> None:
        """Add rows to the blocks of an earlier state."""
        blocks = list(keep * (before.blocks if len(before.blocks) or not before.n else before.matrix[None]))
        squares = (
            before.block_squares if len(before.blocks) or not before.n else np.array([before.square])
        ) * keep**2
        length, n_last = before.length, before.n_last if len(before.blocks) else before.length
        start = 0
        while start < len(rows):
            if not blocks or n_last >= length:
                if len(blocks) >= _MOST:
                    starts, length = join_blocks(len(blocks), length, self.n**2 / self.square, _MOST)
                    blocks = list(np.add.reduceat(blocks, starts, axis=0))
                    squares = np.add.reduceat(squares, starts)
                blocks.append(np.zeros_like(self.matrix))
                squares, n_last = np.r_[squares, 0.0], 0
            part = rows[start : start + length - n_last]
            blocks[-1] = blocks[-1] + part.T @ part
            squares[-1] += len(part)
            start, n_last = start + len(part), n_last + len(part)
        self.blocks, self.block_squares, self.length, self.n_last = np.array(blocks), squares, length, n_last

    def _sums(self, left: Floats, right: Floats) -> Floats:
        """Return a' G_k b of each block, shape (n_blocks,), for a and b of shape (m,) with few entries."""
        i, j = np.flatnonzero(left), np.flatnonzero(right)
        return left[i] @ self.blocks[:, i[:, None], j] @ right[j]

    def _residual(self, swept: Floats, regressors: list[int]) -> tuple[Floats, tuple[float, float]]:
        """Return the coefficients of the residual of y in the columns, and its correlation length and memory."""
        residual = np.zeros(len(swept))
        inside = [0, *regressors]
        residual[inside], residual[-1] = -swept[inside, -1], 1.0
        intercept = np.eye(1, len(swept))[0]
        variance = float(swept[-1, -1]) * self.square / self.n
        length, level = blocked_length(self._sums(intercept, residual), self._share, variance)
        return residual, (length, self.length * 2.0**level if level else 1.0)

    @property
    def _share(self) -> Floats:
        """F."""
        return self.block_squares / self.square

    def is_determined(self, names: list[str]) -> bool:
        """Whether the number of rows suffices for tests beside these columns, given their autocorrelation."""
        swept, regressors = self.sweep_on(names)
        return len(self.blocks) > 0 and is_determined(
            self._share, self.length, *self._residual(swept, regressors)[1]
        )

    def series_log_p(self, swept: Floats, regressors: list[int], k: int) -> float:
        """Return the log p-value of column k beside the regressors, valid for autocorrelated rows; 0 if undetermined.

        Parameters
        ----------
        swept : ndarray of shape (m, m), float64
            The matrix swept on the intercept and the regressors.
        regressors : list of int
            With or without k.
        k : int
        """
        if not len(self.blocks):
            return 0.0
        z = np.zeros(len(swept))
        residual, memory = self._residual(swept, regressors)
        by_block, apart = self._sums(np.eye(1, len(z))[0], residual), 0.0
        inside = [0, *regressors]
        if k in regressors:
            z[inside] = swept[k, inside] / swept[k, k]
            c, square = swept[k, -1] / swept[k, k], 1.0 / swept[k, k]
        else:
            z[inside], z[k] = -swept[inside, k], 1.0
            c, square = swept[k, -1], swept[k, k]
            apart = c / swept[-1, -1]
            residual = residual - c / square * z
        own = self._sums(np.eye(1, len(z))[0], z) - apart * by_block
        scores = self._sums(z, residual)
        # Squares of sums are those of `square` independent rows, but |z|^2 is a sum over n.
        of_rows = np.array([(square - apart * c) * self.square / self.n])
        log_p = blocked_log_p(
            own[:, None], scores[:, None], self._share, self.length, of_rows, np.array([c]), *memory
        )
        return float(log_p[0])

    def centred_square_sum(self, k: int) -> float:
        """Return the centred sum of squares of a column."""
        return float(self.matrix[k, k] - self.matrix[0, k] ** 2 / self.matrix[0, 0])

    def sweep_on(self, names: list[str]) -> tuple[Floats, list[int]]:
        """Return the matrix swept on the intercept and these columns, and which of them are not collinear."""
        swept, regressors = self.matrix.copy(), []
        sweep(swept, 0)
        for k in (1 + self.names.index(name) for name in names):
            if swept[k, k] > COLLINEAR * self.centred_square_sum(k):
                sweep(swept, k)
                regressors.append(k)
        return swept, regressors


# -- Streaming rows and features: alpha-investing on the Gram matrix of a linear model, updated with each batch

_LOOK = 512  # last targets of a trial, by which autocorrelation is detected at its end
_SMALLEST = 1e-100  # lower bound on a column's largest absolute value; its inverse is the upper bound
_DECISION = np.dtype([("n_seen", np.int64), ("name", object), ("p_value", np.float64), ("threshold", np.float64),
                      ("wealth", np.float64), ("decision", "U9")])  # fmt: skip


@dataclass(eq=False, repr=False)
class GramInvesting(ThreadSafe, BaseEstimator):  # type: ignore[misc]
    """Selects streaming features for a linear model of streaming rows.

    Parameters
    ----------
    rule : str or SpendingRule, default="alpha-investing"
        How the threshold for a new feature is updated: one of ``tamis.columns.online_fdr.RULES``, or a rule object.
    target_fdr : float or None, default=None
        As for :class:`tamis.AlphaInvesting`; None: the paper's 0.5 and 0.5 for "alpha-investing", otherwise 0.05.
    trial_rows : int, default=100
        Number of rows for which a new column is observed before it is tested; at least 3 more than the number of
        selected features are used.
    release : float or None, default=0.05
        In (0, 1]: a selected feature is removed when its p-value exceeds this. None: selected features are kept.
    half_life : float or None, default=None
        Number of rows after which the weight of a row is halved, in (0, inf). None: all rows have equal weight.
    variance : {"auto", "classical", "series"}, default="auto"
        "classical": tests assume independent errors. "series": tests are valid for autocorrelated rows
        (:mod:`tamis.columns.block_test`); a trial then lasts until there are five blocks of 2.5 times the correlation
        length of the errors. "auto": "series" as soon as the last 512 targets at the end of a trial are found to be
        autocorrelated.

    Attributes
    ----------
    selected_ : list of str
        Names of the selected features, in the order in which they entered.
    p_values_ : dict of str to float
        P-values of the selected features on the rows so far. These tests cost no wealth.
    coef_ : dict of str to float
    intercept_ : float
    n_rows_ : float
        Number of rows in the model (weighted, with a half-life).
    n_seen_ : int
    rows_dependent_ : bool
        Whether tests are those for autocorrelated rows.
    trace_ : ndarray, structured
        One record per decision: ``n_seen``, ``name``, ``p_value``, ``threshold``, ``wealth``, ``decision`` (accepted,
        rejected, collinear, released).

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If a batch lacks a selected feature or is invalid. The state is then unchanged.

    Notes
    -----
    Memory is O((q + m)^2) for q selected columns and m on trial, independent of the number of rows; for autocorrelated
    rows 33 times as much, for the matrices of 32 blocks. A column that is absent before its trial ends is withdrawn
    untested. A rejected column is tried again after it has been absent. If the target is a random walk, no number of
    rows suffices for a test: trials do not end, and selected features are kept.

    References
    ----------
    Zhou, Foster, Stine, Ungar (2005). Streaming Feature Selection using Alpha-investing. KDD. Figure 1. Series:
    Flyvbjerg, Petersen (1989). Error estimates on averages of correlated data. Equations (2) and (3) of
    :mod:`tamis.columns.block_test`.

    Examples
    --------
    `b` arrives two days after `a`, and `a` is still tested:

    >>> import numpy as np
    >>> from tamis import GramInvesting
    >>> rng = np.random.default_rng(0)
    >>> selector = GramInvesting(target_fdr=0.05)
    >>> for day in range(4):
    ...     rows = {"noise": rng.normal(size=100), "a": rng.normal(size=100), "b": rng.normal(size=100)}
    ...     y = 2 * rows["a"] - rows["b"] + rng.normal(size=100)
    ...     if day < 2:
    ...         del rows["b"]
    ...     _ = selector.partial_fit(rows, y)
    >>> selector.selected_, selector.p_values_["a"] < 1e-20
    (['a', 'b'], True)

    Twenty unrelated autocorrelated columns, and an autocorrelated target:

    >>> from scipy.signal import lfilter
    >>> rows = lfilter([1], [1, -0.9], rng.normal(size=(1000, 21)), axis=0)
    >>> columns, target = {f"x{j}": rows[:, j] for j in range(20)}, rows[:, 20]
    >>> for variance in ("classical", "auto"):
    ...     selector = GramInvesting(target_fdr=0.05, variance=variance, release=None).partial_fit(columns, target)
    ...     print(variance, len(selector.selected_))
    classical 10
    auto 0
    """

    _shapes = "_main? (its own)  _trial? (its own)  _recent? (t) finite"

    rule: str | SpendingRule = parameter(*RULES, SpendingRule, default="alpha-investing")
    _: KW_ONLY
    target_fdr: float | None = parameter(number("(0, 1)"), None, default=None)
    trial_rows: int = parameter(integer("[3, inf)"), default=100)
    release: float | None = parameter(number("(0, 1]"), None, default=0.05)
    half_life: float | None = parameter(number("(0, inf)"), None, default=None)
    variance: str = parameter("auto", "classical", "series", default="auto")

    # -- rows ----------------------------------------------------------------------------------------------

    def _initialize(self) -> None:
        default = None if self.rule == "alpha-investing" else 0.05
        target = default if self.target_fdr is None else self.target_fdr
        self._rule: SpendingRule = make_rule(self.rule, target).start()
        self.selected_: list[str] = []
        self._trial_names: list[str] = []
        self._decided: set[str] = set()  # rejected or released, and present in every batch since
        self._main = AugmentedGram()  # for the selected features
        # For the selected features and those on trial, since the start of the trial
        self._trial = AugmentedGram()
        self._decisions: list[tuple[Any, ...]] = []
        self._recent = np.zeros(0)  # last targets of the trial
        self.rows_dependent_ = self.variance == "series"
        self.n_seen_ = 0

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Update the model with rows, and test the columns whose trial ends. If it raises, the model is unchanged.

        Parameters
        ----------
        X : frame, or mapping of str to array-like of shape (n_rows,)
            All selected features, and any number of candidates.
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        if not has_rows(y):
            return self
        check_parameters(self)
        columns = _columns(X)
        target = as_target(as_column(y, len(next(iter(columns.values()))), type(self).__name__))
        atomically(self, self._learn, columns, target, from_scratch=True)
        return self

    def _learn(self, columns: dict[str, Floats], target: Floats) -> None:
        if not hasattr(self, "n_seen_"):
            self._initialize()
        if lacking := [name for name in self.selected_ if name not in columns]:
            raise DataError(
                f"The rows have no column {lacking[0]!r}, which is selected: they must contain it."
            )
        self._decided = self._decided & set(columns)
        on_trial = [name for name in self._trial_names if name in columns]
        if not on_trial:
            self._trial, self._recent = AugmentedGram(), np.zeros(0)
            on_trial = [n for n in columns if n not in self.selected_ and n not in self._decided]
        self._trial_names = on_trial
        keep = 1.0 if self.half_life is None else 0.5 ** (len(target) / self.half_life)
        how = target, keep, self.rows_dependent_
        self._main = self._main.subset(self.selected_).with_rows(columns, self.selected_, *how)
        if on_trial:
            names = [*self.selected_, *on_trial]
            self._trial = self._trial.subset(names).with_rows(columns, names, *how)
            self._recent = np.r_[self._recent, target][-_LOOK:]
        self.n_seen_ += len(target)
        if on_trial and self._trial.n >= max(self.trial_rows, len(self.selected_) + 3):
            if self.variance == "auto" and not self.rows_dependent_:
                self.rows_dependent_ = is_series(self._recent - self._recent.mean())
            if not self.rows_dependent_ or self._trial.is_determined(self.selected_):
                self._decide()
        if self.release is not None:
            self._release()

    # -- tests ---------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Test the candidates on trial in order."""
        swept, regressors = self._trial.sweep_on(self.selected_)
        accepted: list[str] = []
        for name in self._trial_names:
            k = 1 + self._trial.names.index(name)
            df = self._trial.n - len(self.selected_) - len(accepted) - 2
            if swept[k, k] <= COLLINEAR * self._trial.centred_square_sum(k) or df < 1 or swept[-1, -1] <= 0:
                self._record(name, math.nan, math.nan, "collinear")
                continue
            drop = swept[k, -1] ** 2 / swept[k, k]  # (2)
            log_p = _log_p(float(drop * df), float(swept[-1, -1] - drop), df)
            if self.rows_dependent_:
                log_p = max(log_p, self._trial.series_log_p(swept, regressors, k))
            level = self._rule.level()
            passed = log_p <= level
            self._rule.update(passed, log_p)
            self._record(name, math.exp(log_p), math.exp(level), "accepted" if passed else "rejected")
            if passed:
                accepted.append(name)
                regressors.append(k)
                sweep(swept, k)
        if accepted:
            self.selected_ = [*self.selected_, *accepted]
            self._main = self._trial.subset(self.selected_)
        self._decided = self._decided | set(self._trial_names) - set(accepted)
        self._trial_names, self._recent = [], np.zeros(0)

    def _release(self) -> None:
        """Remove the selected feature with the largest p-value until none is above `release`."""
        while self.selected_ and (p_values := self.p_values_):
            worst = max(p_values, key=lambda name: p_values[name])
            if not p_values[worst] > self.release:  # type: ignore[operator]
                break
            self._record(worst, p_values[worst], math.nan, "released")
            self.selected_ = [name for name in self.selected_ if name != worst]
            self._main = self._main.subset(self.selected_)
            self._decided = self._decided | {worst}

    def _record(self, name: str, p_value: float, threshold: float, decision: str) -> None:
        self._decisions.append((self.n_seen_, name, p_value, threshold, self._rule.wealth_, decision))

    def _check_started(self) -> None:
        if not hasattr(self, "n_seen_"):
            raise NotFittedError("GramInvesting has seen no rows yet: call partial_fit first.")

    # -- results -------------------------------------------------------------------------------------------

    @property
    def p_values_(self) -> dict[str, float]:
        """P-values of the selected features on the rows so far; collinear and undetermined ones have none."""
        self._check_started()
        df = self._main.n - len(self.selected_) - 1
        if df < 1:
            return {}
        swept, regressors = self._main.sweep_on(self.selected_)
        p_values = {}
        for k in regressors:
            log_p = _log_p(float(swept[k, -1] ** 2 / swept[k, k] * df), float(swept[-1, -1]), df)  # (3)
            if self.rows_dependent_:
                if (of_series := self._main.series_log_p(swept, regressors, k)) == 0.0:
                    continue
                log_p = max(log_p, of_series)
            p_values[self.selected_[k - 1]] = math.exp(log_p)
        return p_values

    @property
    def coef_(self) -> dict[str, float]:
        """Coefficients of the selected features."""
        self._check_started()
        swept, regressors = self._main.sweep_on(self.selected_)
        return {
            name: float(swept[k, -1]) if k in regressors else 0.0
            for k, name in enumerate(self.selected_, start=1)
        }

    @property
    def intercept_(self) -> float:
        """Prediction of the model if every selected feature is 0."""
        self._check_started()
        swept, _ = self._main.sweep_on([])
        level, shift = float(swept[0, -1] + self._main.shift[-1]), self._main.shift
        means = swept[0, 1:-1] + shift[:-1]
        return level - float(sum(b * mean for b, mean in zip(self.coef_.values(), means, strict=True)))

    @property
    def n_rows_(self) -> float:
        """Number of rows in the model."""
        self._check_started()
        return self._main.n

    @property
    def trace_(self) -> Array:
        """One record per decision."""
        self._check_started()
        return np.array(self._decisions, dtype=_DECISION)

    def predict(self, X: Any) -> Floats:
        """Return the predictions of the model for rows that have the selected features.

        Parameters
        ----------
        X : frame, or mapping of str to array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,), float64
        """
        columns = _columns(X)
        value = np.full(len(next(iter(columns.values()))), self.intercept_)
        for name, coefficient in self.coef_.items():
            value += coefficient * columns[name]
        return value

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.dict = False, True  # columns have names
        return tags


def _log_p(numerator: float, rss: float, df: float) -> float:
    t2 = numerator / rss if rss > 0 else math.inf
    return float(log_t_tail(np.array([t2]), df)[0])


def _columns(X: Any) -> dict[str, Floats]:
    """Return the validated columns by name."""
    if not isinstance(X, dict):
        table = as_table(X)
        if table is None:
            raise TypeError(f"X must be a frame or a mapping of names to columns, got {type(X).__name__}.")
        X = dict(zip(table.texts, np.ascontiguousarray(as_rows(table)[0].T), strict=True))
    if not X:
        raise DataError("The rows have no columns: give at least one.")
    numeric, n_rows = {}, None
    for name, values in X.items():
        column = as_numbers(f"Column {name!r}", fill_masked(values))
        n_rows = len(column) if n_rows is None else n_rows
        if column.shape != (n_rows,):
            raise DataError(f"Column {name!r} has shape {column.shape}, but the first has {n_rows} rows.")
        if n_rows == 0:
            raise DataError("The batch has 0 rows: give at least one.")
        reject_nonfinite(column[:, None], [name])
        if (size := float(np.abs(column).max())) and not _SMALLEST < size < 1.0 / _SMALLEST:
            raise DataError(
                f"Column {name!r} has values up to {size:.3g}; their squares exceed float64: scale it first."
            )
        numeric[name] = column
    return numeric
