"""EFS: extremal feature selection by a modified balanced winnow, a linear classifier with multiplicative updates.

Carvalho, Cohen: Single-pass Online Learning: Performance, Voting Schemes and Online Feature Selection, KDD 2006.
Covered: the modified balanced winnow (Section 4.2) and extremal feature selection (Section 5), for two and for more
classes. Not covered: voting, which changes the predictions but not the selected features.

===========  ===============  ==============================================================================
paper        here             meaning
===========  ===============  ==============================================================================
u, v         _positive,       two positive weights of each feature; u - v is its coefficient
             _negative
theta_th     `threshold`      decision threshold of the score
M            `margin`         a row is a mistake if y times its score is at most this
alpha, beta  `promotion`,     factors by which a weight grows and shrinks on a mistake
             `demotion`
===========  ===============  ==============================================================================

All u are initialised to 2, all v to 1. A row x is extended by a bias feature of value 1, and divided by its sum::

    x_j <- x_j / (1 + sum_i |x_i|)                                                     (1)
    s = sum_j x_j (u_j - v_j) - theta_th                                               (2)

With y = -1 or +1, the row is a mistake if y s <= M; then for each feature that is present, x_j != 0::

    u_j <- u_j alpha (1 + x_j),  v_j <- v_j beta (1 - x_j)     if y = +1               (3)
    u_j <- u_j beta (1 - x_j),   v_j <- v_j alpha (1 + x_j)    if y = -1               (4)

The importance of a feature is |u_j - v_j|. Extremal selection keeps the most important features, and optionally some of
the least important ones (`low_share`).

Errata of public versions, and our deviations, each with its reason:

* Without bounds, weights overflow, scores become NaN, and learning stops silently, as in float-evaluation. The authors'
  own program (MinorThird) skips a step beyond 2^200 or 2^-200; here weights are clipped there.
* float-evaluation scales each row by its own smallest and largest value, instead of (1); it has no bias, and (3) and
  (4) change every feature, including those that are 0 in the row. That is ``normalize="range"``. The weight of the
  feature with the largest value is then multiplied by 1 - 1 and would remain 0; here it is clipped at 2^-200.
* Winnow requires non-negative values. A negative value here counts with its absolute value for the other class: (3) and
  (4) are exchanged. Rows without negative values are learned as published.
* Three classes or more: one winnow for each class against the rest, and a feature's importance is the maximum over
  them. Until a third class is seen there is one winnow, in which the first class seen is y = +1. The winnow of the
  second class is then initialised with u and v of the first exchanged, and that of the third from the initial weights.
* A sample weight w raises the factors of (3) and (4) to the power w: a weight of 2 applies the update twice.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Mask
from tamis._validation.parameters import number, parameter
from tamis.base import Claims, n_to_select, top_mask
from tamis.rows.linear_classes import IncrementalClasses

# State, for J columns and the bias, which is last; K = 1 winnow until a third class is seen, then one per class:
#   _positive  (K, J + 1) float64   u
#   _negative  (K, J + 1) float64   v
#   _order     (C,) int64           codes of the classes in order of appearance; the first is y = +1 in the one winnow

_FIRST_U, _FIRST_V = 2.0, 1.0
_MOST, _LEAST = 2.0**200, 2.0**-200
_HUGE = 2.0**600


@njit(strict=True)
def _lane_sum(lanes: Array) -> float:
    """Add up the eight sums, over the columns j with the same j mod 8: fast, and the same for dense and CSR rows."""
    total = 0.0
    for k in range(8):
        total += lanes[k]
    return total


@njit(strict=True)
def _row_norm(columns: Array, cells: Array, dense: bool, unit: float) -> float:
    """Return 1 + sum_i |x_i|, the divisor of (1), in units."""
    lanes = np.zeros(8)
    n_whole = columns.shape[0] // 8 * 8 if dense else 0
    for start in range(0, n_whole, 8):
        for k in range(8):  # one instruction
            lanes[k] += abs(cells[start + k] * unit)
    for i in range(n_whole, columns.shape[0]):
        lanes[columns[i] & 7] += abs(cells[i] * unit)
    return unit + _lane_sum(lanes)


@njit(strict=True)
def _half_extremes(cells: Array) -> tuple[float, float]:
    """Return half of the smallest and of the largest value: their difference is always finite."""
    low, high = np.full(8, cells[0]), np.full(8, cells[0])
    n_whole = cells.shape[0] - cells.shape[0] % 8
    for start in range(0, n_whole, 8):
        for k in range(8):
            x = cells[start + k]
            low[k] = x if x < low[k] else low[k]
            high[k] = x if x > high[k] else high[k]
    for i in range(n_whole, cells.shape[0]):
        low[0], high[0] = min(low[0], cells[i]), max(high[0], cells[i])
    return 0.5 * low.min(), 0.5 * high.max()


@njit(strict=True)
def _normalize_range(columns: Array, cells: Array, dense: bool, values: Array) -> None:
    """Write the position of each value of a row between the smallest and the largest one."""
    low, high = _half_extremes(cells) if cells.shape[0] > 0 else (0.0, 0.0)
    if cells.shape[0] < values.shape[0]:  # some are 0
        low, high = min(low, 0.0), max(high, 0.0)
    width = high - low if high > low else 1.0
    if dense:
        for j in range(values.shape[0]):
            values[j] = (0.5 * cells[j] - low) / width
        return
    for j in range(values.shape[0]):
        values[j] = -low / width
    for i in range(cells.shape[0]):
        values[columns[i]] = (0.5 * cells[i] - low) / width


@njit(strict=True)
def _score(u: Array, v: Array, columns: Array, cells: Array, dense: bool, unit: float) -> float:
    lanes = np.zeros(8)
    n_whole = columns.shape[0] // 8 * 8 if dense else 0
    for start in range(0, n_whole, 8):
        for k in range(8):
            lanes[k] += cells[start + k] * unit * (u[start + k] - v[start + k])
    for i in range(n_whole, columns.shape[0]):
        j = columns[i]
        lanes[j & 7] += cells[i] * unit * (u[j] - v[j])
    return _lane_sum(lanes)


@njit(strict=True)
def _step(
    u: Array, v: Array, j: int, x: float, sign: float, alpha: float, beta: float, weight: float
) -> None:
    up, down = alpha * (1.0 + abs(x)), beta * (1.0 - abs(x))
    if weight != 1.0:
        up, down = up**weight, down**weight
    if (x < 0.0) == (sign < 0.0):  # (3)
        u[j], v[j] = min(u[j] * up, _MOST), max(v[j] * down, _LEAST)
    else:  # (4)
        u[j], v[j] = max(u[j] * down, _LEAST), min(v[j] * up, _MOST)


@njit(strict=True, allocates=False)
def _step_all(
    grow: Array,
    shrink: Array,
    cells: Array,
    unit: float,
    total: float,
    absent: bool,
    alpha: float,
    beta: float,
) -> None:
    """Apply `_step` to all cells of a row of weight 1, including cells that are 0 if `absent`, vectorised.

    (3) has grow = u and shrink = v, and (4) the reverse. No branch: a growing weight is never near the lower bound.
    """
    for j in range(cells.shape[0]):
        x = cells[j] * unit / total
        up, down = alpha * (1.0 + abs(x)), beta * (1.0 - abs(x))
        grown = grow[j] * (up if x >= 0.0 else down)
        shrunk = shrink[j] * (down if x >= 0.0 else up)
        grown = grown if grown < _MOST else _MOST
        grown = grown if grown > _LEAST else _LEAST
        shrunk = shrunk if shrunk < _MOST else _MOST
        shrunk = shrunk if shrunk > _LEAST else _LEAST
        taken = absent or x != 0.0
        grow[j] = grown if taken else grow[j]
        shrink[j] = shrunk if taken else shrink[j]


@njit(strict=True)
def _learn_rows(
    data: Array, indptr: Array, indices: Array, dense: bool, by_range: bool, slots: Array, sample_weight: Array,
    positive: Array, negative: Array, threshold: float, margin: float, alpha: float, beta: float,
) -> None:  # fmt: skip
    n_features = positive.shape[1] - 1
    every = np.arange(n_features if dense or by_range else 0, dtype=np.int32)
    ranged = np.empty(n_features if by_range else 0)
    for i in range(slots.shape[0]):
        weight = sample_weight[i]
        cells = data[indptr[i] : indptr[i + 1]]
        columns = every if dense else indices[indptr[i] : indptr[i + 1]]
        unit = total = 1.0
        if by_range:
            _normalize_range(columns, cells, dense, ranged)
            columns = every
        else:
            total = _row_norm(columns, cells, dense, unit)
            if total > _HUGE:  # only the direction matters, and products must be finite
                unit = 1.0 / _HUGE
                total = _row_norm(columns, cells, dense, unit)
        for k in range(positive.shape[0]):
            u, v = positive[k], negative[k]
            sign = 1.0 if k == slots[i] else -1.0
            if by_range:
                if sign * (_score(u, v, columns, ranged, True, 1.0) - threshold) <= margin:
                    if weight == 1.0:
                        grow, shrink = (u, v) if sign > 0.0 else (v, u)
                        _step_all(grow, shrink, ranged, 1.0, 1.0, True, alpha, beta)
                    else:
                        for j in range(n_features):
                            _step(u, v, j, ranged[j], sign, alpha, beta, weight)
                continue
            score = _score(u, v, columns, cells, dense, unit) + unit * (u[n_features] - v[n_features])
            if sign * (score / total - threshold) <= margin:  # (2)
                if dense and weight == 1.0:
                    grow, shrink = (u, v) if sign > 0.0 else (v, u)
                    _step_all(grow, shrink, cells, unit, total, False, alpha, beta)
                else:
                    for m in range(columns.shape[0]):
                        if cells[m] != 0.0:
                            _step(u, v, columns[m], cells[m] * unit / total, sign, alpha, beta, weight)
                _step(u, v, n_features, unit / total, sign, alpha, beta, weight)


@dataclass(eq=False, repr=False)
class EFS(IncrementalClasses):
    """Extremal feature selection: keeps the features with the largest weight differences in a balanced winnow.

    A winnow multiplies its weights on a mistake, whereas a perceptron adds to them. The weights of a few relevant
    features therefore soon exceed those of many others. The time per row is proportional to its stored cells (to the
    number of features, if dense). A batch is equivalent to its rows one at a time, bit for bit.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    promotion : float in (1, inf), default=1.5
        Factor by which a weight grows on a mistake (alpha).
    demotion : float in (0, 1), default=0.5
        Factor by which a weight shrinks on a mistake (beta).
    threshold : float in [0, inf), default=1.0
        A row is predicted to be of the first class if its score exceeds this (theta_th).
    margin : float in [0, inf), default=1.0
        A row counts as a mistake if y times its score is at most this (M).
    normalize : {"sum", "range"}, default="sum"
        Divide each row by the sum of its absolute values, or scale its values to [0, 1] by the smallest and the largest
        of them. "range" was used in the comparison of the FIRES paper; the time per row is then proportional to the
        number of features, and the bias term is omitted.
    low_share : float in [0, 1), default=0.0
        Fraction of the selected features that are those with the smallest scores. The paper reports that a few of them
        improve a text classifier, and uses a tenth.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        ``|u - v|``, from 0 to 2**200; with three classes or more, the largest over the classes. A feature that was
        never present scores 1. All zero while `warming_up_`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If rows, labels or weights are invalid; the model is left unchanged.

    Notes
    -----
    Memory: 16 bytes per feature; with three classes or more, per feature and class. Old rows are not discounted
    explicitly, but because updates are multiplicative, twenty rows of a new concept outweigh any number of old rows.

    References
    ----------
    Carvalho, Cohen (2006). Single-pass Online Learning: Performance, Voting Schemes and Online Feature Selection. KDD,
    548-553. Equations (1) to (4) of the source file's header.

    Examples
    --------
    Texts with some of 500 words; one of three words makes a text spam.

    >>> import numpy as np
    >>> from tamis import EFS
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random(size=(3000, 500)) < 0.04).astype(float)
    >>> y = np.where(X[:, [17, 50, 123]].any(axis=1), "spam", "ham")
    >>> EFS(n_features_to_select=3).fit(X, y).get_support(indices=True)
    array([ 17,  50, 123])
    """

    claims = Claims(
        equals_rows="exactly",
        sparse_time=True,
        copies_differ="the exponent of an update, one for each mistake",
        invariant_to_shifts=False,
    )

    _shapes = """
        _positive (o-(o==2)+(o==0), j+1) float in [2.0**-200, 2.0**200] fill self._first_u()
        _negative (o-(o==2)+(o==0), j+1) float in [2.0**-200, 2.0**200] fill "3.0 - self._first_u()"
    """

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    promotion: float = parameter(number("(1, inf)"), default=1.5)
    demotion: float = parameter(number("(0, 1)"), default=0.5)
    threshold: float = parameter(number("[0, inf)"), default=1.0)
    margin: float = parameter(number("[0, inf)"), default=1.0)
    normalize: str = parameter("sum", "range", default="sum")
    low_share: float = parameter(number("[0, 1)"), default=0.0)

    def _start(self, n_features: int) -> None:
        self._positive = np.full((1, n_features + 1), _FIRST_U)
        self._negative = np.full((1, n_features + 1), _FIRST_V)
        self._order = np.zeros(0, np.int64)

    def _claims(self) -> Claims:
        return replace(self.claims, counts_columns=self.normalize == "range")  # a row changes all features

    def _first_u(self) -> Floats:
        first_u = np.full((self._positive.shape[0], 1), _FIRST_U)
        first_u[1:2] = _FIRST_V  # the winnow of the second class started with u and v exchanged
        return first_u

    def _add_class(self, code: int) -> None:
        self._order = np.append(self._order, code)
        u, v = self._positive, self._negative
        if self._order.shape[0] == 3:
            u, v = np.vstack((u, v)), np.vstack((v, u))
        if self._order.shape[0] >= 3:
            self._positive = np.vstack((u, np.full_like(u[:1], _FIRST_U)))
            self._negative = np.vstack((v, np.full_like(v[:1], _FIRST_V)))

    def _learn_known_classes(
        self, data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, weights: Array
    ) -> None:
        _learn_rows(
            data.astype(np.float64, copy=False), indptr, indices, dense,
            self.normalize == "range", slots, weights, self._positive, self._negative,
            float(self.threshold), float(self.margin), float(self.promotion), float(self.demotion),
        )  # fmt: skip

    def _relevance(self) -> Floats:
        return np.abs(self._positive - self._negative)[:, :-1].max(axis=0)

    def _get_support_mask(self) -> Mask:
        if self.low_share == 0.0 or self.warming_up_:
            return super()._get_support_mask()
        n_kept, scores = n_to_select(self.n_features_to_select, self.n_features_in_), self._relevance()
        n_low = min(round(self.low_share * n_kept), n_kept - 1)
        mask = top_mask(scores, n_kept - n_low)
        return mask | top_mask(np.where(mask, -np.inf, -scores), n_low) if n_low else mask
