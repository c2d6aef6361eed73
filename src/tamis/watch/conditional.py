r"""Whether the label depends on a feature given what the model uses: a test of generalised covariance.

Let r be the residuals of the predictions (the indicator of a class minus its probability, or the target minus its
prediction), s a score of a feature that the model does not use (its standardized value, or the absolute value of that),
and Z the predictions and the scores of the ten features on which the model relies most. If label and feature are
independent given Z, the products

    g = (r - E[r | Z]) (s - E[s | Z])

have a mean of 0 (Shah, Peters, The hardness of conditional independence testing and the generalised covariance measure,
Annals of Statistics 48(3), 2020). Both means are linear in Z, with coefficients from earlier rows that fade with
`half_life`. A copy of a used feature has no residual score, so it is not relevant, and neither is a feature that
depends on the label through used features alone.

The p-value compares the faded mean of g with its error by Student's t. The long-run variance of g is estimated from
blocks (:mod:`tamis.watch.long_run`), so rows may depend on one another; while it is undetermined, so is the p-value. It
holds for one look, so it decides only whether a relevant feature remains so.

A feature becomes relevant by an e-value, which holds at any time. Let S be the sum and V the sum of squares of n sums
of g over m rows, where m is a multiple of the inflation of the variance of g before the first of them. If these sums
are independent and normal with mean 0,

    e = sqrt(c / (n + c)) (1 - S^2 / ((n + c) V))^(-n / 2)                                                          (1)

is the likelihood ratio of a normal prior of their mean in units of their deviation, with variance 1 / c, for any
deviation: the t-test at any time of Wang and Ramdas. It is averaged over c = 1, for large effects in few blocks, and
c = 10. Sums of a feature begin when its p-value of one look falls,
with a share of 1 / (r (r + 1)) of its capital the r-th time, which its scores and the outputs share; the last four
grow, and the capital of earlier ones is given up. So a feature without relevance is ever called relevant at level a
with a probability of at most a.

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
_SIGNIFICANT = 0.05
_STARTS = 4
_FEWEST_ROWS = 25  # of a block
_INFLATIONS = 4  # rows of a block per independent row: neighbouring sums then hardly correlate
_FEWEST_PAIRS = 16  # of blocks from which the inflation is known
_GIVEN_UP, _UNKNOWN = -1, -2  # in place of the rows of a block
_PROMISING = 0.1  # p-value of one look at which a test begins
_PRIORS = np.array([1.0, 10.0])  # c of (1): the e-value grows fastest after about as many blocks


@njit(allocates=False)
def _add_blocks(values: Array, lengths: Array, filled: Array, partial: Array, sums: Array) -> None:
    """Add rows (n, m) to the blocks of each start: lengths, filled, partial (a, m), and sums (3, a, m) = n, S, V."""
    for i in range(values.shape[0]):
        for a in range(lengths.shape[0]):
            for k in range(values.shape[1]):
                if lengths[a, k] <= 0:
                    continue
                partial[a, k] += values[i, k]
                filled[a, k] += 1
                if filled[a, k] == lengths[a, k]:
                    sums[0, a, k] += 1.0
                    sums[1, a, k] += partial[a, k]
                    sums[2, a, k] += partial[a, k] ** 2
                    partial[a, k], filled[a, k] = 0.0, 0


class SequentialTTests(ThreadSafe):
    """E-values of features, each with several series whose means are 0 if it is irrelevant: equation (1).

    Parameters
    ----------
    n_series, n_features : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tests = SequentialTTests(1, 2)
    >>> tests.open(np.array([True, True]), np.array([[25, 25]]))
    >>> tests.update(rng.normal(size=(3000, 2)) + [0.0, 0.2])
    >>> (tests.evalues() > 1000).tolist()
    [False, True]
    """

    _shapes = (
        "n_starts (j) int64 in [0, 2**62)  _lengths (a, s, j) int64 in [-2, 2**62)"
        "  _filled (a, s, j) int64 in [0, 2**62)  _partial (a, s, j) float  _sums (3, a, s, j) float"
        "  _capital (a, j) float in [0, 1]"
    )

    def __init__(self, n_series: int, n_features: int) -> None:
        self.n_starts = np.zeros(n_features, dtype=np.int64)
        shape = _STARTS, n_series, n_features
        self._lengths, self._filled = np.zeros((2, *shape), dtype=np.int64)
        self._partial, self._sums = np.zeros(shape), np.zeros((3, *shape))
        self._capital = np.zeros((_STARTS, n_features))

    def reset(self) -> None:
        """Give up all sums, and their capital."""
        self._lengths[:], self._capital[:] = 0, 0.0

    def open(self, features: Mask, lengths: Ints) -> None:
        """Begin sums of these numbers of rows, in place of the oldest ones.

        Parameters
        ----------
        features : ndarray of shape (n_features,)
        lengths : ndarray of shape (n_series, n_features)
            0 for a series without a test, -2 for one whose number is to follow by `assign`.
        """
        for j in np.flatnonzero(features):
            at = self.n_starts[j] % _STARTS
            self.n_starts[j] += 1
            self._lengths[at, :, j], self._filled[at, :, j] = lengths[:, j], 0
            self._partial[at, :, j], self._sums[:, at, :, j] = 0.0, 0.0
            self._capital[at, j] = 1.0 / (self.n_starts[j] * (self.n_starts[j] + 1.0))

    def assign(self, lengths: Ints) -> None:
        """Begin the sums whose number of rows was unknown; 0 if it still is."""
        self._lengths = np.where((self._lengths == _UNKNOWN) & (lengths > 0), lengths, self._lengths)

    def close(self, lengths: Ints) -> None:
        """Give up the sums of fewer than half of these numbers of rows, and their capital."""
        self._lengths[(self._lengths > 0) & (2 * self._lengths < lengths)] = _GIVEN_UP

    def update(self, values: Floats) -> None:
        """Add rows of shape (n, n_series * n_features)."""
        flat = _STARTS, values.shape[1]
        _add_blocks(
            np.ascontiguousarray(values),
            self._lengths.reshape(flat),
            self._filled.reshape(flat),
            self._partial.reshape(flat),
            self._sums.reshape(3, *flat),
        )

    def evalues(self) -> Floats:
        """Return the e-value of each feature; what is not at stake counts as it is."""
        n, S, V = self._sums
        ratio = np.divide(S**2, V, out=np.zeros(S.shape), where=V > 0.0)
        total = n + _PRIORS[:, None, None, None]
        logs = 0.5 * np.log(_PRIORS[:, None, None, None] / total) - 0.5 * n * np.log1p(-ratio / total)
        values = np.where(V > 0.0, np.exp(np.minimum(logs, 600.0)).mean(axis=0), 1.0)
        values = np.where((self._lengths == 0) | (self._lengths == _GIVEN_UP), 0.0, values)
        count = np.count_nonzero(self._lengths, axis=1)
        grown = self._capital * values.sum(axis=1) / np.maximum(count, 1)
        return np.asarray(grown.sum(axis=0) + 1.0 / (self.n_starts + 1.0))


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
    >>> y, predictions = X[:, 0] + X[:, 2] + rng.normal(size=4000), X[:, :1]
    >>> test = ConditionalRelevance(4, 1, half_life=500)
    >>> for i in range(0, 4000, 100):
    ...     test.update(X[i : i + 100], predictions[i : i + 100], y[i : i + 100, None], np.array([0]))
    >>> (test.pvalues() < 0.001).tolist()
    [False, False, True, False]
    """

    _shapes = (
        "_n in [0, 2**62)  _used (u) int64 in [0, j)  _centre (j) float  _square (j) float in [0, inf)  _weight float"
        "  _gram (z, z) float  _of_scores (z, 2*j) float  _of_residuals (z, c) float  _slopes (z, 2*j+c) float"
        "  _mean (c, 2*j) float  _spread (2, 2*j) float in [0, inf)  _weights (2) float in [0, inf)  _series (its own)"
        "  _tests (its own)  _is_low (j) bool"
    )

    def __init__(self, n_features: int, n_outputs: int, half_life: float) -> None:
        self.half_life = float(half_life)
        self._n, self._weight = 0, 0.0
        self._centre, self._square = np.zeros(n_features), np.zeros(n_features)
        self.n_outputs = n_outputs
        self._tests = SequentialTTests(2 * n_outputs, n_features)
        self._is_low = np.zeros(n_features, dtype=bool)
        self._start(np.empty(0, dtype=np.int64), n_outputs)

    def _start(self, used: Ints, n_predictions: int) -> None:
        """Start from scratch, for other features that the model uses."""
        n_features, z = len(self._centre), 1 + n_predictions + 2 * len(used)
        self._used = used
        self._gram, self._of_scores = np.zeros((z, z)), np.zeros((z, 2 * n_features))
        self._of_residuals = np.zeros((z, self.n_outputs))
        self._slopes: Floats = np.zeros((z, 2 * n_features + self.n_outputs))
        self._mean = np.zeros((self.n_outputs, 2 * n_features))
        self._spread, self._weights = np.zeros((2, 2 * n_features)), np.zeros(2)
        self._series = LongRunVariance(self.n_outputs * 2 * n_features)
        self._tests.reset()
        self._is_low[:] = False
        self._n = 0

    def update(self, X: Floats, predictions: Floats, residuals: Floats, used: Ints) -> None:
        """Add labelled rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        predictions : ndarray of shape (n_rows, n_predictions)
        residuals : ndarray of shape (n_rows, n_outputs)
        used : ndarray of shape (n_used,)
            The features that the model uses, the most important one first.
        """
        used = np.sort(used[:_MOST_USED])
        if not np.isin(used, self._used).all() or self._gram.shape[0] != 1 + predictions.shape[1] + 2 * len(
            self._used
        ):
            self._start(used, predictions.shape[1])
        for start in range(0, len(X), _EVERY):
            rows = slice(start, start + _EVERY)
            self._add(X[rows], predictions[rows], residuals[rows])

    def _add(self, X: Floats, predictions: Floats, residuals: Floats) -> None:
        n, missing = len(X), np.isnan(X)
        keep = 0.5 ** (1.0 / self.half_life)
        fading, faded = keep ** np.arange(n - 1, -1, -1.0), keep**n
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
        given = np.column_stack([np.ones(n), predictions, scores[:, columns]])
        rest_of_scores = scores - given @ self._slopes[:, : scores.shape[1]]
        products = (residuals - given @ self._slopes[:, scores.shape[1] :])[:, :, None] * rest_of_scores[
            :, None
        ]
        if self._n >= _EVERY:  # there are coefficients
            self._mean = faded * self._mean + np.einsum("n,ncs->cs", fading, products)
            self._spread = faded * self._spread + np.stack([fading @ scores**2, fading @ rest_of_scores**2])
            self._weights = np.array([faded, faded**2]) * self._weights + [fading.sum(), (fading**2).sum()]
            self._series.update(products.reshape(n, -1))
            self._tests.update(products.reshape(n, -1))
        weighted = given * fading[:, None]
        self._gram = faded * self._gram + weighted.T @ given
        self._of_scores = faded * self._of_scores + weighted.T @ scores
        self._of_residuals = faded * self._of_residuals + weighted.T @ residuals
        before, self._n = self._n, self._n + n
        if self._n // _EVERY > before // _EVERY:
            both = np.column_stack([self._of_scores, self._of_residuals])
            self._slopes = np.asarray(
                np.linalg.solve(self._gram + _RIDGE * np.eye(len(self._gram)), both), np.float64
            )
            self._series.estimate(at_once=self._n < 8 * _EVERY)
            self._open_tests()

    def _open_tests(self) -> None:
        """Close the tests whose blocks are too short, and begin those of features that look relevant by now."""
        V, of_row, freedom = self._series.variance, self._series.of_row, self._series.freedom
        is_known = (V > 0.0) & (of_row > 0.0)
        # By its standard error more: a block that is too short is worse than one that is too long.
        longest = V * (1.0 + np.sqrt(2.0 / np.maximum(freedom, 2.0)))
        inflation = np.divide(longest, of_row, out=np.ones(len(V)), where=is_known)
        rows = np.ceil(np.maximum(_FEWEST_ROWS, _INFLATIONS * np.maximum(inflation - 1.0, 0.0))).astype(
            np.int64
        )
        shape = -1, len(self._centre)
        self._tests.close(rows.reshape(shape))
        known = np.where(is_known & (freedom >= _FEWEST_PAIRS), rows, 0).reshape(shape)
        self._tests.assign(known)
        is_open = np.tile((self._spread[1] > _LEAST * self._spread[0]).reshape(shape), (self.n_outputs, 1))
        is_open &= (of_row > 0.0).reshape(shape)
        is_low = (np.nan_to_num(self.pvalues(), nan=1.0) < _PROMISING) & is_open.any(axis=0)
        self._tests.open(is_low & ~self._is_low, np.where(is_open, np.where(known > 0, known, _UNKNOWN), 0))
        self._is_low = is_low

    def evalues(self) -> Floats:
        """Return the e-value of each feature, which holds at any time; 0 for those that the model uses."""
        values = self._tests.evalues()
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
