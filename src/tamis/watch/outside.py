r"""Log-likelihood ratios of a relation of the label to features that a model does not use.

Let z be the standardized value of such a feature, cut at 3, and p the forecast of a class, whose odds are tilted by
exp(v z) for the relation to z that the model has missed before: v is fitted on the reference rows, and then follows the
residuals with a half-life of 2,000 rows. The alternative tilts the odds by a further exp(w z), where w is the slope of
the residuals on z with a half-life of 200 rows. Since v and w are known before the label, the mean of the ratio given
the past is 1 if p with v is the distribution of the label: the ratios are those of a test martingale. Of a number, the
ratio is that of the t distributions around the forecasts plus (v + w) z and plus v z scales.
"""

from __future__ import annotations

import math

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints

_FAR = 3.0
_FAST, _SLOW = 200.0, 2000.0  # half-lives
_RIDGE = 4.0  # a normal prior of w with a standard deviation of 1/2
_MOST = 2.0
_MOST_CLASSES = 3
_CUT = 4.0  # of the error of a number, in scales


@njit(allocates=False)
def _ratios(
    p: Array,
    target: Array,
    z: Array,
    slopes: Array,
    sums: Array,
    keep: float,
    keep_slow: float,
    is_number: bool,
    ratios: Array,
) -> None:
    """Write the ratios (n, o * c) and update the sums.

    p, target    (n, c)     forecasts and indicators of classes; 0 and errors of numbers
    z            (n, o)
    slopes       (c, o)     v
    sums         (3, c, o)  of residual times z, and of the variance of that, in recent rows and for v
    """
    for i in range(z.shape[0]):
        for a in range(p.shape[1]):
            for k in range(z.shape[1]):
                x = z[i, k]
                w = sums[0, a, k] / (sums[1, a, k] + _RIDGE)
                step = min(max(w, -_MOST), _MOST) * x
                if is_number:
                    error = target[i, a] - slopes[a, k] * x
                    ratio = 2.5 * math.log((4.0 + error**2) / (4.0 + (error - step) ** 2))
                    rest, variance = min(max(error, -_CUT), _CUT), 1.0
                else:
                    tilt = math.exp(slopes[a, k] * x)
                    q = p[i, a] * tilt / (1.0 - p[i, a] + p[i, a] * tilt)
                    ratio = step * target[i, a] - math.log1p(q * math.expm1(step))
                    rest, variance = target[i, a] - q, q * (1.0 - q)
                ratios[i, a * z.shape[1] + k] = ratio
                sums[0, a, k] = keep * sums[0, a, k] + rest * x
                sums[1, a, k] = keep * sums[1, a, k] + variance * x * x
                if keep_slow > 0.0:
                    sums[2, a, k] = keep_slow * sums[2, a, k] + variance * x * x
                    slopes[a, k] += rest * x / (sums[2, a, k] + _RIDGE)


class OutsideRatios(ThreadSafe):
    """The ratios of the features that a model does not use.

    Parameters
    ----------
    columns : ndarray of shape (o,)
    X : ndarray of shape (n, n_columns)
        The reference rows.
    given, target : ndarray
        Their calibrated forecasts of shape (n, 1 + f, c), and their labels.
    scale : float
        Scale of the errors of numbers.
    """

    _shapes = (
        "columns (o) int64 in [0, 2**31)  _centre (o) float  _spread (o) float  _classes (c) int64 in [0, 2**31)"
        "  _slopes (c, o) float  _sums (3, c, o) float"
    )

    def __init__(self, columns: Ints, X: Floats, given: Floats, target: Floats, scale: float) -> None:
        self.columns, self.scale = columns, scale
        X = X[:, columns]
        known = ~np.isnan(X)
        count = np.maximum(known.sum(axis=0), 1)
        self._centre = np.where(known, X, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, (X - self._centre) ** 2, 0.0).sum(axis=0) / count)
        self._spread = np.where(spread > 0.0, spread, np.inf)
        n_classes = given.shape[2] - 1
        if n_classes < 1:
            self._classes = np.zeros(1, dtype=np.int64)
        else:
            order = np.argsort(-given[:, 0, :n_classes].mean(axis=0), kind="stable")
            self._classes = (
                np.array([1]) if n_classes == 2 else np.sort(order[:_MOST_CLASSES]).astype(np.int64)
            )
        shape = len(self._classes), len(columns)
        self._slopes, self._sums = np.zeros(shape), np.zeros((3, *shape))
        for _ in range(3):  # Newton's method
            self._sums[:] = 0.0
            self._run(self._standardized(X), given, target, 1.0, 0.0)
            self._slopes += self._sums[0] / (self._sums[1] + _RIDGE)
        self._sums = np.stack([np.zeros(shape), np.zeros(shape), self._sums[1]])

    @property
    def size(self) -> int:
        """Number of ratios per row."""
        return self._slopes.size

    def _standardized(self, X: Floats) -> Floats:
        z = (X - self._centre) / self._spread
        return np.ascontiguousarray(np.clip(np.nan_to_num(z), -_FAR, _FAR))

    def _run(self, z: Floats, given: Floats, target: Floats, keep: float, keep_slow: float) -> Floats:
        is_number = given.shape[2] == 1
        ratios = np.empty((len(z), self.size))
        if is_number:
            p, hits = np.zeros((len(z), 1)), (target[:, None] - given[:, 0]) / self.scale
        else:
            p = np.ascontiguousarray(given[:, 0, self._classes])
            hits = (target[:, None] == self._classes).astype(np.float64)
        _ratios(p, hits, z, self._slopes, self._sums, keep, keep_slow, is_number, ratios)
        return ratios

    def update(self, X: Floats, given: Floats, target: Floats) -> Floats:
        """Return the ratios of further rows, of shape (n, c * o)."""
        keep, keep_slow = 0.5 ** (1.0 / _FAST), 0.5 ** (1.0 / _SLOW)
        return self._run(self._standardized(X[:, self.columns]), given, target, keep, keep_slow)
