"""OFS: online feature selection by truncating a linear classifier after each mistake.

Wang, Zhao, Hoi, Jin: Online Feature Selection and Its Applications, IEEE TKDE 26(3), 2014 (first at BigMine 2012).
Covered: sparse projection with full information, the truncated perceptron (`regularization=0, margin=0`), and
learning from partial information, where B cells of a row may be looked at. For two or more classes.

===========  ======================  ==========================================================================
paper        here                    meaning
===========  ======================  ==========================================================================
w            ``_weights * _scale``   weights of the classifier, at most B columns not zero
B            `n_features_to_select`  columns that survive a truncation
eta          `learning_rate`         step on a mistake
lambda       `regularization`        shrinkage
R            1 / sqrt(lambda)        radius of the ball that w is kept in; 10 by default, as in the paper
epsilon      `exploration`           share of rows of which B random cells are looked at (partial information)
===========  ======================  ==========================================================================

A row (x, y) with y = -1 or +1 is a mistake if y w.x <= margin. Then, and only then, (2) to (4)::

    w <- (1 - lambda eta) w                            (1)   after every row
    w <- w + eta y x                                   (2)
    w <- min(1, R / |w|) w                             (3)
    w <- w, but zero outside its B largest |w_j|       (4)

Partial information: the observed cells are, with probability epsilon, B random ones, else those where w is not zero;
w.x runs over observed cells, there is no (1), and (2) takes the unbiased estimate::

    x_j / (epsilon B / J + (1 - epsilon) [w_j is not zero]) if j is observed, else 0          (5)

Errata of public versions, and our deviations, each with its reason:

* MOA's OFS-P divides integers in (5) (B / J is 0), doubles the bias and projects with sqrt(R); a Python port keeps
  B - 1 entries and ranks the signed w; float-evaluation never truncates, never shrinks, and divides by zero at x = 0.
* Ports of the partial variant update where y w.x <= 0 (`margin=0`); `margin` is 1, the hinge, for both variants here.
* More than two classes: one w_c per class; y and its best rival r exchange a step, w_y + (eta/2) x and w_r - (eta/2) x,
  if (w_y - w_r).x <= margin, and |w_j| becomes sum_c |w_cj|. With two classes w_y - w_r is the published w, bit for
  bit, so a third class may come late: its w_c starts at zero, and the others go on from w / 2 and -w / 2.
* Equal |w_j| at the border of (4): the first columns stay. A sample weight scales eta; a row of weight 0 is skipped.
* (1) is kept as a factor and applied at the next mistake, so a row without a mistake costs O(B), or its stored cells.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tamis._check import Array, Rows, as_rows, check_choice, check_number, refuse_nonfinite
from tamis._jit import njit
from tamis.base import RowSelector, n_to_select

__all__ = ["OFS"]

# State, J columns, of which at most B are kept; K = 1 vector while two classes or fewer were seen, else one a class:
#   _weights  (K, J) float64   zero outside the support; w = _weights * _scale
#   _scale    float            the shrinkage since the last mistake
#   _support  (B,) int32       the kept columns, ascending, in its first _n_kept places
#   _order    (C,) int64       codes of the classes in order of appearance; the first is +1, the second -1
#   _random   (1,) uint64      state of the random numbers

_INFINITY = 0x7FF0000000000000  # magnitudes are ranked as integers: for floats >= 0 the order is the same


@njit(strict=True)
def _uniform(random: Array) -> float:
    """Draw from [0, 1): Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    return (z >> np.uint64(11)) * 2.0**-53


@njit(strict=True)
def _draw(random: Array, drawn: Array, n_features: int) -> None:
    """Fill `drawn` with different columns, each set of them equally likely, in ascending order."""
    n_drawn = 0
    for j in range(n_features):
        if _uniform(random) * (n_features - j) < drawn.shape[0] - n_drawn:
            drawn[n_drawn] = j
            n_drawn += 1


@njit(strict=True)
def _union(support: Array, touched: Array, union: Array) -> int:
    """Merge two ascending lists of columns; return the length of the union."""
    n, a, b = 0, 0, 0
    while a < support.shape[0] or b < touched.shape[0]:
        left = support[a] if a < support.shape[0] else union.shape[0]
        right = touched[b] if b < touched.shape[0] else union.shape[0]
        union[n] = min(left, right)
        n += 1
        a += left <= right
        b += right <= left
    return n


@njit(strict=True)
def _margin(weights: Array, x: Array, columns: Array, slot: int) -> tuple[float, int]:
    """Return the margin by which the row's class wins, and its best rival (-1 if there is one vector)."""
    best, rival, own = -math.inf, -1, 0.0
    for c in range(weights.shape[0]):
        score = 0.0
        for j in columns:
            score += weights[c, j] * x[j]
        if weights.shape[0] == 1:
            own, best = (score, 0.0) if slot == 0 else (-score, 0.0)
        elif c == slot:
            own = score
        elif score > best:
            best, rival = score, c
    return own - best, rival


@njit(strict=True)
def _border(bits: Array, n_kept: int, probe: int) -> tuple[int, int]:
    """Find t such that keeping all bits > t, and the first q of those equal to t, keeps `n_kept`; return t, q.

    Bisection by counting: a count is one SIMD pass, several times faster than a selection that moves numbers.
    """
    low, high = -1, _INFINITY  # at least n_kept lie above low, fewer above high
    n_low, n_high = bits.shape[0], 0
    reach = 1 << 50
    while n_low > n_kept and high - low > 1:
        n_above = 0
        for b in bits:
            n_above += b > probe
        gap = n_above in (n_low, n_high)
        if n_above >= n_kept:
            low, n_low = probe, n_above
        else:
            high, n_high = probe, n_above
        if gap:  # nothing between the old and the new bound: move the bounds to the values they enclose
            least, most = high, low
            for b in bits:
                inside = low < b <= high
                least = min(least, b if inside else high)
                most = max(most, b if inside else low)
            low, high = least - 1, most
        half = (high - low) >> 1
        if high == _INFINITY:  # gallop away from the first probe
            half = min(half, reach)
        elif low < 0:
            half = max(half, high - low - reach)
        reach = min(2 * reach, 1 << 60)
        probe = low + half
    return (low, 0) if n_low <= n_kept else (high, n_kept - n_high)
