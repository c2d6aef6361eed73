r"""Whether the label depends on a feature given what the model uses: a test of generalised covariance.

Let r be the indicator of a class, or the target, s a score of a feature that the model does not use (its standardized
value, or the absolute value of that), and Z the scores of the ten features on which the model relies most. If label and
feature are independent given Z, the products

    g = (r - E[r | Z]) (s - E[s | Z])

have a mean of 0 (Shah, Peters, The hardness of conditional independence testing and the generalised covariance measure,
Annals of Statistics 48(3), 2020). Both means are linear in Z, with coefficients from earlier rows that fade with
`half_life`, or if the features used are slow, with the rows that count as five independent ones per coefficient. A copy
of a used feature has no residual score, so it is not relevant, and neither is a feature that depends on the label
through used features alone.

The p-value compares the faded mean of g with its error by Student's t. The long-run variance of g is estimated from
blocks (:mod:`tamis.watch.long_run`), so rows may depend on one another; while it is undetermined, so is the p-value. It
holds for one look, so it decides only whether a relevant feature remains so.

A feature becomes relevant by an e-value, which holds at any time. Let S be the sum and V the sum of squares of n sums
of g over m rows. If these sums are independent and normal with mean 0,

    e = sqrt(c / (n + c)) (1 - S^2 / ((n + c) V))^(-n / 2)                                                          (1)

is the likelihood ratio of a normal prior of their mean in units of their deviation, with variance 1 / c, for any
deviation: the t-test at any time of Wang and Ramdas. It is averaged over c = 1, for large effects in few blocks, and
c = 10. Sums over 25, 50, 100, ... rows are stored, and those of about four times as many rows as count for an
independent one are read, so the rows before the memory is known are not lost. Sums of a feature begin when its p-value
of one look falls, or is first undetermined, with a share of 1 / (r (r + 1)) of its capital the r-th time, which its
scores and the outputs share; four grow, and the smallest is given up for the next. So a feature without
relevance is ever called relevant at level a with a probability of at most a.

Wang, Ramdas: Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance, Sequential
Analysis 44(1), 2025.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask
from tamis.watch.long_run import LongRunVariance

_MOST_USED = 10
_EVERY = 500  # rows between two estimates of the coefficients and of the variances
_LEAST = 0.02  # of the variance of a score; below, the used features determine it
_FAR = 3.0
_RIDGE = 1.0
_ROWS_PER_SLOPE = 5  # independent ones
_SIGNIFICANT = 0.05
_STARTS = 4
_FEWEST_ROWS = 25  # of a block
_N_LENGTHS = 9  # of blocks, the longest of 6,400 rows
_INFLATIONS = 4  # rows of a block per independent row: neighbouring sums then hardly correlate
_FEWEST_PAIRS = 8  # of blocks from which the inflation is known
_PROMISING = 0.1  # p-value of one look at which a test begins
_PRIORS = np.array([1.0, 10.0])  # c of (1): the e-value grows fastest after about as many blocks


def _fading(n: int, half_life: float) -> tuple[Floats, float]:
    """Return the weights of the last n rows, and the factor of those before."""
    keep = 0.5 ** (1.0 / half_life)
    return keep ** np.arange(n - 1, -1, -1.0), keep**n


@njit(allocates=False)
def _add_blocks(
    values: Array, is_open: Array, age: Array, base: int, total: Array, partial: Array, pending: Array, squares: Array
) -> None:  # fmt: skip
    """Add rows to the blocks of each start.

    values   (n, s, j)
    is_open  (a, s, j)
    age      (a, j)  rows since the start
    total    (a, s, j)  sums of all rows
    partial  (a, s, j)  those of an incomplete block of `base` rows
    pending  (l, a, s, j)  the first block of an incomplete pair
    squares  (l, a, s, j)  sums of the squared blocks
    """
    n_levels = pending.shape[0]
    for i in range(values.shape[0]):
        for a in range(age.shape[0]):
            for j in range(age.shape[1]):
                age[a, j] += 1
                ends, count = age[a, j] % base == 0, age[a, j] // base - 1
                for s in range(values.shape[1]):
                    if not is_open[a, s, j]:
                        continue
                    total[a, s, j] += values[i, s, j]
                    partial[a, s, j] += values[i, s, j]
                    if not ends:
                        continue
                    block, partial[a, s, j] = partial[a, s, j], 0.0
                    for level in range(n_levels):
                        squares[level, a, s, j] += block * block
                        if (count >> level) & 1 == 0:
                            pending[level, a, s, j] = block
                            break
                        block += pending[level, a, s, j]


class SequentialTTests(ThreadSafe):
    """E-values of features, each with several series whose means are 0 if it is irrelevant: equation (1).

    Parameters
    ----------
    n_series, n_features : int
    n_rows : int
        Rows of the shortest blocks; the others have twice, four times, ... as many.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tests = SequentialTTests(1, 2, 25)
    >>> tests.open(np.array([True, True]), np.ones((1, 2), dtype=bool))
    >>> tests.update(rng.normal(size=(3000, 2)) + [0.0, 0.2])
    >>> tests.lengthen(np.array([[25.0, 40.0]]))
    >>> (tests.evalues() > 1000).tolist()
    [False, True]
    """

    _shapes = (
        "n_rows in [1, 2**62)  n_starts (j) int64 in [0, 2**62)  _capital (a, j) float in [0, 1]"
        "  _age (a, j) int64 in [0, 2**62)  _is_open (a, s, j) bool  _level (s, j) int64 in [-1, 64)"
        "  _total (a, s, j) float  _partial (a, s, j) float  _pending (l, a, s, j) float  _squares (l, a, s, j) float"
    )

    def __init__(self, n_series: int, n_features: int, n_rows: int) -> None:
        self.n_rows, self.n_starts = n_rows, np.zeros(n_features, dtype=np.int64)
        shape = _STARTS, n_series, n_features
        self._capital, self._is_open = np.zeros((_STARTS, n_features)), np.zeros(shape, dtype=bool)
        self._age = np.zeros((_STARTS, n_features), dtype=np.int64)
        self._level = np.full(shape[1:], -1)  # of the blocks in use; unknown at first
        self._total, self._partial = np.zeros((2, *shape))
        self._pending, self._squares = np.zeros((2, _N_LENGTHS, *shape))

    def close(self, features: Mask, *, is_free: Mask) -> None:
        """Give up sums and their capital, which is returned to features whose e-value has never been used."""
        self._is_open[:, :, features], self._capital[:, features], self._level[:, features] = False, 0.0, -1
        self.n_starts[is_free] = 0

    def open(self, features: Mask, is_open: Mask) -> None:
        """Begin sums, in place of those with the least wealth.

        Parameters
        ----------
        features : ndarray of shape (n_features,)
        is_open : ndarray of shape (n_series, n_features)
            The series that are tested.
        """
        least = self._wealth().argmin(axis=0)
        for j in np.flatnonzero(features):
            at = least[j]
            self.n_starts[j] += 1
            self._age[at, j], self._is_open[at, :, j] = 0, is_open[:, j]
            for part in (self._total, self._partial, self._pending, self._squares):
                part[..., at, :, j] = 0.0
            self._capital[at, j] = 1.0 / (self.n_starts[j] * (self.n_starts[j] + 1.0))

    def lengthen(self, rows: Floats) -> None:
        """Use blocks of about these numbers of rows, (n_series, n_features), or of half as many if they are in use.

        Where the number is NaN, the blocks in use remain.
        """
        wanted = np.log2(np.maximum(np.nan_to_num(rows) / self.n_rows, 1.0)).round().astype(np.int64)
        is_short = (self._level < 0) | (self._level + 1 < wanted)
        self._level = np.where(is_short & ~np.isnan(rows), np.minimum(wanted, _N_LENGTHS), self._level)

    def update(self, values: Floats) -> None:
        """Add rows of shape (n, n_series * n_features)."""
        _add_blocks(
            np.ascontiguousarray(values).reshape(len(values), *self._level.shape), self._is_open, self._age,
            self.n_rows, self._total, self._partial, self._pending, self._squares,
        )  # fmt: skip

    def evalues(self) -> Floats:
        """Return the e-value of each feature; what is not at stake counts as it is."""
        return np.asarray(self._wealth().sum(axis=0) + 1.0 / (self.n_starts + 1.0))

    def _wealth(self) -> Floats:
        """Return the capital of each start times its e-value, (a, j)."""
        level, count = np.clip(self._level, 0, _N_LENGTHS - 1), self._age // self.n_rows
        n, S = count[:, None] >> level, self._total - self._partial
        for k in range(_N_LENGTHS):
            S = S - np.where((k < level) & ((count[:, None] >> k) & 1 == 1), self._pending[k], 0.0)
        V = np.take_along_axis(self._squares, level[None, None], axis=0)[0]
        is_known = self._is_open & (V > 0.0) & (self._level == level)
        ratio = np.divide(S**2, V, out=np.zeros(S.shape), where=is_known)
        total = n + _PRIORS[:, None, None, None]
        logs = 0.5 * np.log(_PRIORS[:, None, None, None] / total) - 0.5 * n * np.log1p(-ratio / total)
        values = np.where(is_known, np.exp(np.minimum(logs, 600.0)).mean(axis=0), 1.0) * self._is_open
        return np.asarray(
            self._capital * values.sum(axis=1) / np.maximum(np.count_nonzero(self._is_open, axis=1), 1)
        )


class ConditionalRelevance(ThreadSafe):
    """The p-value of the dependence of the label on each feature, given the predictions and the features used.

    Parameters
    ----------
    n_features, n_outputs : int
        Number of columns, and of residuals per row.
    half_life : float

    Examples
    --------
    The model uses the first feature, which the second one copies; the label depends on the third one, too:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 4))
    >>> X[:, 1] = X[:, 0]
    >>> y = X[:, 0] + X[:, 2] + rng.normal(size=4000)
    >>> test = ConditionalRelevance(4, 1, half_life=500)
    >>> for i in range(0, 4000, 100):
    ...     test.update(X[i : i + 100], y[i : i + 100, None], np.array([0]))
    >>> (test.pvalues() < 0.001).tolist()
    [False, False, True, False]
    """

    _shapes = (
        "_n in [0, 2**62)  _used (u) int64 in [0, j)  _centre (j) float  _square (j) float in [0, inf)  _weight float"
        "  _gram (z, z) float  _of_scores (z, 2*j) float  _of_residuals (z, c) float  _slopes (z, 2*j+c) float"
        "  _mean (c, 2*j) float  _spread (2, 2*j) float in [0, inf)  _weights (2) float in [0, inf)  _series (its own)"
        "  _tests? (its own)  _is_low (j) bool  _is_known (j) bool  _was_known (j) bool"
        "  _of_slopes float  _inflation (j) float in [0, inf]"
    )

    def __init__(
        self, n_features: int, n_outputs: int, half_life: float, *, is_sequential: bool = True
    ) -> None:
        self.half_life = float(half_life)
        self._weight, self._inflation = 0.0, np.full(n_features, np.inf)
        self._centre, self._square = np.zeros(n_features), np.zeros(n_features)
        self.n_outputs = n_outputs
        self._tests = SequentialTTests(2 * n_outputs, n_features, _FEWEST_ROWS) if is_sequential else None
        self._start(np.empty(0, dtype=np.int64))

    def _start(self, used: Ints) -> None:
        """Start from scratch, for other features that the model uses."""
        n_features, z = len(self._centre), 1 + 2 * len(used)
        self._used = used
        self._gram, self._of_scores = np.zeros((z, z)), np.zeros((z, 2 * n_features))
        self._of_residuals = np.zeros((z, self.n_outputs))
        self._slopes: Floats = np.zeros((z, 2 * n_features + self.n_outputs))
        self._mean = np.zeros((self.n_outputs, 2 * n_features))
        self._spread, self._weights = np.zeros((2, 2 * n_features)), np.zeros(2)
        self._series = LongRunVariance(self.n_outputs * 2 * n_features)
        if self._tests is not None:
            self._tests.close(np.ones(n_features, dtype=bool), is_free=np.zeros(n_features, dtype=bool))
        self._is_low, self._is_known, self._was_known = np.zeros((3, n_features), dtype=bool)
        self._n, self._of_slopes = 0, self.half_life

    def update(self, X: Floats, residuals: Floats, used: Ints, inflation: Floats | None = None) -> None:
        """Add labelled rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        residuals : ndarray of shape (n_rows, n_outputs)
        used : ndarray of shape (n_used,)
            The features that the model uses, the most important one first.
        inflation : ndarray of shape (n_features,), optional
            Rows of each feature per independent row, infinite if undetermined; by default 1.
        """
        used = np.sort(used[:_MOST_USED])
        if not np.isin(used, self._used).all():
            self._start(used)
        new = np.ones(X.shape[1]) if inflation is None else inflation
        self._inflation = np.where(np.isinf(new), self._inflation, new)
        needed = _ROWS_PER_SLOPE * len(self._gram) * self._inflation
        of_used = float(needed[self._used].max(initial=0.0))
        needed = np.maximum(needed, of_used)
        is_late = np.isfinite(needed) & (needed > 2.0 * self._of_slopes)
        if np.isfinite(of_used) and of_used > 2.0 * self._of_slopes:
            self._of_slopes, is_late[:] = of_used, True  # twice as long as needed, as it may prove longer
        if self._tests is not None and is_late.any():  # the coefficients so far were of too few rows
            self._tests.close(is_late, is_free=is_late & ~self._was_known)
            self._is_low &= ~is_late
        for start in range(0, len(X), _EVERY):
            rows = slice(start, start + _EVERY)
            self._is_known = needed <= min(2.0 * self._of_slopes, self._n + len(X[rows]))
            self._add(X[rows], residuals[rows], np.isinf(needed) | self._is_known)
        self._was_known |= self._is_known

    def _add(self, X: Floats, residuals: Floats, is_ready: Mask) -> None:
        n, missing = len(X), np.isnan(X)
        fading, faded = _fading(n, self._of_slopes)
        self._weight = faded * self._weight + fading.sum()
        rest = np.where(missing, self._centre, X)
        step = fading @ (rest - self._centre) / self._weight
        self._centre = self._centre + step
        self._square = faded * self._square + fading @ (rest - self._centre) ** 2
        scale = np.sqrt(self._square / self._weight)
        z = np.where(missing | (scale <= 0.0), 0.0, (rest - self._centre) / np.where(scale > 0.0, scale, 1.0))
        z = np.clip(z, -_FAR, _FAR)
        scores = np.column_stack([z, np.abs(z) - 0.8])
        columns = np.concatenate([self._used, self._used + X.shape[1]])
        given = np.column_stack([np.ones(n), scores[:, columns]])
        rest_of_scores = scores - given @ self._slopes[:, : scores.shape[1]]
        products = (residuals - given @ self._slopes[:, scores.shape[1] :])[:, :, None] * rest_of_scores[
            :, None
        ]
        weighted = given * fading[:, None]
        self._gram = faded * self._gram + weighted.T @ given
        self._of_scores = faded * self._of_scores + weighted.T @ scores
        self._of_residuals = faded * self._of_residuals + weighted.T @ residuals
        if self._n >= _EVERY:  # there are coefficients
            fading, faded = _fading(n, self.half_life)
            self._mean = faded * self._mean + np.einsum("n,ncs->cs", fading, products)
            self._spread = faded * self._spread + np.stack([fading @ scores**2, fading @ rest_of_scores**2])
            self._weights = np.array([faded, faded**2]) * self._weights + [fading.sum(), (fading**2).sum()]
            self._series.update(products.reshape(n, -1))
            if self._tests is not None:
                self._tests.update(products.reshape(n, -1))
        before, self._n = self._n, self._n + n
        if self._n // _EVERY > before // _EVERY:
            both = np.column_stack([self._of_scores, self._of_residuals])
            self._slopes = np.asarray(
                np.linalg.solve(self._gram + _RIDGE * np.eye(len(self._gram)), both), np.float64
            )
            self._series.estimate(at_once=self._n < 8 * _EVERY)
            if self._tests is not None:
                self._open_tests(self._tests, is_ready)

    def _open_tests(self, tests: SequentialTTests, is_ready: Mask) -> None:
        """Find the length of the blocks, and begin tests of the features that look relevant by now."""
        V, of_row, freedom = self._series.variance, self._series.of_row, self._series.freedom
        # By its standard error more: a block that is too short is worse than one that is too long.
        longest = V * (1.0 + np.sqrt(2.0 / np.maximum(freedom, 2.0)))
        is_known = (V > 0.0) & (of_row > 0.0) & (freedom >= _FEWEST_PAIRS)
        inflation = np.divide(longest, of_row, out=np.full(len(V), np.nan), where=is_known)
        shape = -1, len(self._centre)
        tests.lengthen((_INFLATIONS * (inflation - 1.0)).reshape(shape))
        is_open = np.tile((self._spread[1] > _LEAST * self._spread[0]).reshape(shape), (self.n_outputs, 1))
        is_open &= (of_row > 0.0).reshape(shape)
        pvalues = self.pvalues()
        # Rows with a long memory are too few to wait until it is known.
        is_low = np.where(np.isnan(pvalues), self._is_low | (tests.n_starts == 0), pvalues < _PROMISING)
        is_low &= is_ready & is_open.any(axis=0)
        tests.open(is_low & ~self._is_low, is_open)
        self._is_low = is_low

    def evalues(self) -> Floats:
        """Return the e-value of each feature, which holds at any time; 0 for those that the model uses.

        NaN if the coefficients of a slow feature are known from too few independent rows.
        """
        assert self._tests is not None
        values = np.where(self._is_known, self._tests.evalues(), np.nan)
        values[self._used] = 0.0
        return values

    def pvalues(self) -> Floats:
        """Return the p-value of each feature, 1 for those that the model uses; NaN while it is undetermined."""
        n_features = len(self._centre)
        if not self._weights[0]:
            return np.full(n_features, np.nan)
        V = self._series.variance.reshape(self._mean.shape)
        total, squares = self._weights
        error = np.sqrt(np.where(V > 0.0, V, np.inf) * squares) / total
        t = np.abs(self._mean / total) / error
        tails = 2.0 * scipy.special.stdtr(np.maximum(self._series.freedom, 1.0).reshape(t.shape), -t)
        is_open = self._spread[1] > _LEAST * self._spread[0]
        tails = np.where(is_open, np.where(V > 0.0, tails, np.nan), 1.0)
        least = np.fmin.reduce(np.fmin.reduce(tails, axis=0).reshape(2, n_features), axis=0)
        values = np.minimum(1.0, least * 2 * len(self._mean))
        # A score that is undetermined may be significant, so only another one that is decides.
        unknown = np.isnan(tails).any(axis=0).reshape(2, n_features).any(axis=0)
        values = np.where(unknown & ~(values < _SIGNIFICANT), np.nan, values)
        values[self._used] = 1.0
        return np.asarray(values)
