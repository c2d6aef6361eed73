"""OFS: online feature selection by truncating a linear classifier after each mistake.

Wang, Zhao, Hoi, Jin: Online Feature Selection and Its Applications, IEEE TKDE 26(3), 2014 (first at BigMine 2012).
Covered: sparse projection with full information, the truncated perceptron (`regularization=0, margin=0`), and
learning from partial information, where only B cells of a row are observed; for two and for more classes.

===========  ======================  =========================================================================
paper        here                    meaning
===========  ======================  =========================================================================
w            _weights * _scale       weights of the classifier, at most B of them nonzero
B            `n_features_to_select`  number of features after a truncation
eta          `learning_rate`         step on a mistake
lambda       `regularization`        shrinkage
R            1 / sqrt(lambda)        radius of the ball to which w is projected; 10 by default, as in the paper
epsilon      `exploration`           fraction of the rows of which B random cells are observed
===========  ======================  =========================================================================

After each row (x, y), y = -1 or +1, w shrinks; if y w.x <= margin, a mistake, then (2) to (4) follow::

    w <- (1 - lambda eta) w                            (1)
    w <- w + eta y x                                   (2)
    w <- min(1, R / |w|) w                             (3)
    w <- w, but 0 outside its B largest |w_j|          (4)

With partial information the cells observed are B random ones with probability epsilon, else those where w is not
zero; w.x runs over observed cells, (1) is omitted, and (2) uses the unbiased estimate of x_j::

    x_j / (epsilon B / J + (1 - epsilon) [w_j is not 0]) if x_j is observed, else 0        (5)

Errata of public versions, and our deviations, each with its reason:

* MOA's OFS-P divides integers in (5), so B / J is 0, doubles the bias and projects to sqrt(R); a Python port keeps
  B - 1 weights, the largest with their sign; float-evaluation omits (1) and (4) and divides by |w| = 0 at x = 0.
* Ports of the partial variant learn if y w.x <= 0; here `margin` is 1, the hinge, for both. At the published eta the
  variance of (5) dominates if B is far below J: a step of about eta epsilon B / J finds the features.
* Three classes or more: one w_c for each; if (w_y - w_r).x <= margin for the highest-scoring other class r, w_y takes
  half the step and w_r half of its opposite, and |w_j| becomes sum_c |w_cj|. For two classes w_y - w_r is the published
  w, bit for bit; a third class may appear later: its w_c starts at 0, and the others continue from w / 2 and -w / 2.
* Ties of |w_j| at the cutoff of (4): the first columns stay. A sample weight scales eta; a row of weight 0 is skipped.
* From the second row on, a feature that was the same in all rows counts as 0 until it varies: without an intercept, a
  constant of 10 would be selected before any relevant feature. Partial information, which may not read all cells, does
  not do this.
* (1) is kept as a factor until the next mistake, so other rows cost O(B), or their stored cells if sparse.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tamis._atomic import atomic
from tamis._docstrings import fill_docstring
from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, check_choice, is_integer
from tamis._validation.parameters import number, parameter
from tamis.base import Claims, n_to_select, top_mask
from tamis.base.rows import check_mergeable, joint_classes
from tamis.merging import MERGE_DOCS
from tamis.rows.linear_classes import LinearClasses, row_margin

# State, for J columns; K = 1 vector until a third class is seen, then one per class, in order of appearance:
#   _weights  (K, J) float64   0 outside the support
#   _scale    float            the shrinkage since the last mistake
#   _support  (J,) int32       the selected columns, ascending, in its first _n_kept positions
#   _order    (C,) int64       codes of the classes in order of appearance; the first is y = +1, the second -1
#   _random   (1,) uint64      state of the random numbers

_INFINITY = 0x7FF0000000000000  # |w_j| is ranked by its bits: the order of integers is that of floats >= 0


@njit(strict=True)
def _uniform(random: Array) -> float:
    """Draw from [0, 1): Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    return float(z >> np.uint64(11)) * 2.0**-53


@njit(strict=True)
def _sample_columns(random: Array, drawn: Array, n_features: int) -> None:
    """Write a uniformly random subset of the columns, ascending."""
    n_drawn = 0
    for j in range(n_features):
        if _uniform(random) * (n_features - j) < drawn.shape[0] - n_drawn:
            drawn[n_drawn] = j
            n_drawn += 1


@njit(strict=True)
def _cells_at(columns: Array, cells: Array, chosen: Array) -> Array:
    """Return the cells of the chosen columns of a sparse row."""
    values, k = np.zeros(chosen.shape[0], cells.dtype), 0
    for i in range(chosen.shape[0]):
        while k < columns.shape[0] and columns[k] < chosen[i]:
            k += 1
        if k < columns.shape[0] and columns[k] == chosen[i]:
            values[i] = cells[k]
    return values


@njit(strict=True)
def _merge(kept: Array, columns: Array, cells: Array, merged: Array, merged_cells: Array) -> int:
    """Merge the selected columns, where the row has 0, with those of the row; return the number of merged columns."""
    n, a, b = 0, 0, 0
    while a < kept.shape[0] or b < columns.shape[0]:
        left = kept[a] if a < kept.shape[0] else merged.shape[0]
        right = columns[b] if b < columns.shape[0] else merged.shape[0]
        merged[n] = min(left, right)
        merged_cells[n] = cells[b] if right <= left else 0.0
        n += 1
        a += left <= right
        b += right <= left
    return n


@njit(strict=True)
def _step(block: Array, cells: Array, up: int, down: int, step: float, share: float, rest: float) -> None:
    """Apply (2) to some columns of the weights; `share` > 0 means partial information."""
    for i in range(cells.shape[0]):
        shift = step * cells[i]
        if share > 0.0:  # (5)
            shift /= share + (rest if block[:, i].any() else 0.0)
        block[up, i] += shift
        if down >= 0:
            block[down, i] -= shift


@njit(strict=True)
def _length(block: Array, columns: Array) -> float:
    """Return |w|, summed in eight lanes by column: fast, and in the same order for dense and sparse rows."""
    lanes = np.zeros(8)
    for c in range(block.shape[0]):
        for i in range(columns.shape[0]):
            lanes[columns[i] & 7] += block[c, i] * block[c, i]
    total = 0.0
    for k in range(8):
        total += lanes[k]
    return math.sqrt(total if block.shape[0] == 1 else 2.0 * total)  # (w / 2, -w / 2) represents w


@njit(strict=True)
def _cutoff(bits: Array, n_kept: int, probe: int) -> tuple[int, int]:
    """Return t and q: all bits > t and the first q of those equal to t are the `n_kept` largest, without zeros.

    By counting and bisection, from an initial guess: a count is one SIMD pass, unlike a selection that moves numbers.
    """
    low, high = -1, _INFINITY  # n_kept or more are above low, fewer above high
    n_low, n_high = bits.shape[0], 0
    reach = 1 << 48
    while n_low > n_kept and high - low > 1:
        n_above = 0
        for i in range(bits.shape[0]):  # not `for b in bits`, which the compiler does not vectorise
            n_above += bits[i] > probe
        empty = n_above in (n_low, n_high)
        if n_above >= n_kept:
            low, n_low = probe, n_above
        else:
            high, n_high = probe, n_above
        if empty:  # ties or gaps: move the bounds to existing values
            least, most = high, low
            for i in range(bits.shape[0]):
                inside = low < bits[i] <= high
                least = min(least, bits[i] if inside else high)
                most = max(most, bits[i] if inside else low)
            low, high = least - 1, most
        half = (high - low) >> 1
        if high == _INFINITY:  # while one side is open: gallop
            half = min(half, reach)
        elif low < 0:
            half = max(half, high - low - reach)
        reach = min(2 * reach, 1 << 60)
        probe = low + half
    if n_low <= n_kept:
        return max(low, 0), 0
    return high, (n_kept - n_high if high > 0 else 0)


@njit(strict=True)
def _truncate(
    block: Array, columns: Array, n_most: int, factor: float, guess: int, support: Array
) -> tuple[int, int]:
    """Clear all but the `n_most` largest columns of `block`, scale these; return their number and the cutoff."""
    sizes = np.abs(block[0])
    for c in range(1, block.shape[0]):
        sizes += np.abs(block[c])
    bits = sizes.view(np.int64)
    border, n_equal = _cutoff(bits, n_most, guess)
    i = 0
    # Lift the first of equal weights over the cutoff, without unpredictable branches.
    while n_equal > 0:
        equal = bits[i] == border
        bits[i] += equal
        n_equal -= equal
        i += 1
    n_kept = 0
    for i in range(columns.shape[0]):
        support[n_kept] = columns[i]
        n_kept += bits[i] > border
    for c in range(block.shape[0]):
        for i in range(columns.shape[0]):
            block[c, i] = block[c, i] * factor if bits[i] > border else 0.0
    return n_kept, border


@njit(strict=True)
def _learn_rows(
    data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, sample_weight: Array,
    weights: Array, scale: float, support: Array, n_kept: int, n_most: int, random: Array,
    eta: float, shrink: float, radius: float, margin: float, epsilon: float,
) -> tuple[float, int]:  # fmt: skip
    """Learn from rows in order (epsilon 0: full information); return the new scale and size of the support."""
    n_features = weights.shape[1]
    share, rest = epsilon * n_most / n_features, 1.0 - epsilon
    every, drawn = np.arange(n_features if dense else 0, dtype=np.int32), np.empty(n_most, np.int32)
    merged, merged_cells = np.empty(n_features, np.int32), np.empty(n_features, data.dtype)
    border = _INFINITY >> 1
    for i in range(slots.shape[0]):
        if sample_weight[i] == 0.0:
            continue
        kept, cells = support[:n_kept], data[indptr[i] : indptr[i + 1]]
        columns = every if dense else indices[indptr[i] : indptr[i + 1]]
        if epsilon > 0.0:
            chosen = kept
            if _uniform(random) < epsilon:
                _sample_columns(random, drawn, n_features)
                chosen = drawn
            cells = cells[chosen] if dense else _cells_at(columns, cells, chosen)
            columns = chosen
        wide = columns.shape[0] == n_features
        lead, up, down, half = row_margin(weights, kept if wide else columns, cells, wide, slots[i])
        mistake = lead * scale <= margin
        scale *= shrink  # (1)
        if mistake:
            block = weights
            if not wide:  # no other column can enter
                n = _merge(kept, columns, cells, merged, merged_cells)
                columns, cells, block = merged[:n], merged_cells[:n], weights[:, merged[:n]]
            block *= scale
            scale = 1.0
            _step(block, cells, up, down, half * eta * sample_weight[i], share, rest)  # (2)
            length = _length(block, columns)
            if length == math.inf and radius < math.inf:  # overflow: only the direction matters
                block *= 2.0**-600
                length = _length(block, columns)
            factor = radius / length if length > radius else 1.0  # (3)
            n_kept, border = _truncate(block, columns, n_most, factor, border, support)  # (4)
            if not wide:
                for c in range(block.shape[0]):
                    for i in range(columns.shape[0]):
                        weights[c, columns[i]] = block[c, i]
    return scale, n_kept


@dataclass(eq=False, repr=False)
class OFS(LinearClasses):
    """Online feature selection: a linear classifier, truncated to its largest weights after each mistake.

    A row costs about B operations (or its stored cells, if sparse). A mistake costs O(n_features) operations (O(B) plus
    the stored cells, if sparse). A batch is equivalent to its rows one at a time, bit for bit. OFS has no intercept and
    does not scale: scale the features first. Features that are constant so far are ignored, with full information.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features the truncation keeps (B), or which fraction of them.
    learning_rate : float in (0, inf), default=0.2
        Step on a mistake (eta).
    regularization : float in [0, inf), default=0.01
        Shrinkage (lambda); the weights stay in a ball of radius ``1 / sqrt(regularization)``. 0 disables both.
    margin : float, default=1.0
        A row counts as a mistake if ``y w.x <= margin``: 1 is the hinge loss, 0 the perceptron.
    information : {"full", "partial"}, default="full"
        "partial" reads at most B cells of each row: those of the selected features, or random ones. It needs more rows,
        and a `learning_rate` of about ``0.2 * exploration * B / n_features``.
    exploration : float in (0, 1], default=0.2
        Fraction of the rows in which random cells are read (epsilon); only for partial information.
    random_state : int, RandomState or None, default=None
        Seed of the exploration.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Absolute weight of each feature (with three classes or more, summed over the classes); 0 if the feature is not
        selected. While fewer than B features have a weight, the first of the others complete the selection.
    classes_ : ndarray of shape (n_classes,)
    n_seen_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If the rows, labels or weights are invalid; the model is left unchanged.

    References
    ----------
    Wang, Zhao, Hoi, Jin (2014). Online Feature Selection and Its Applications. IEEE TKDE 26(3), 698-710.

    Examples
    --------
    Three of 200 features determine the label; the others are noise.

    >>> import numpy as np
    >>> from tamis import OFS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 200))
    >>> y = np.where(X[:, 17] - X[:, 50] + X[:, 123] > 0, "spam", "ham")
    >>> selector = OFS(n_features_to_select=10)
    >>> for start in range(0, 1000, 100):
    ...     selector = selector.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> sorted(np.argsort(selector.scores_)[-3:].tolist())
    [17, 50, 123]
    >>> float(np.mean(selector.predict(X[1000:]) == y[1000:])) > 0.85
    True
    """

    _shapes = """
        _weights (o-(o==2)+(o==0), j) float in [-1e300, 1e300] fill 0
        _support (j) int32 in [0, j) fill 0
        _n_kept in [0, j]
        _n_most in [1, j]
        _scale float in [-1, 1]
        _random (1) uint64 any "the state of random numbers"
    """

    claims = Claims(
        equals_rows="exactly",
        sparse_time=True,
        merges_exactly=False,
        copies_differ="the step of the gradient",
        invariant_to_shifts=False,
    )

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    learning_rate: float = parameter(number("(0, inf)"), default=0.2)
    regularization: float = parameter(number("[0, inf)"), default=0.01)
    margin: float = parameter(number("[0, inf)"), default=1.0)
    information: str = parameter("full", "partial", default="full")
    exploration: float = parameter(number("(0, 1]"), default=0.2)
    random_state: Any = None

    def _start(self, n_features: int) -> None:
        if self.information == "full" and self.learning_rate * self.regularization >= 1:
            raise ValueError(
                f"learning_rate times regularization must be below 1, got {self.learning_rate!r} and"
                f" {self.regularization!r}: each row would reverse the weights; lower one of them."
            )
        super()._start(n_features)
        self._weights = np.zeros((1, n_features))
        self._scale, self._n_kept = 1.0, 0
        self._n_most = n_to_select(self.n_features_to_select, n_features)
        self._support = np.zeros(n_features, np.int32)
        self._order = np.zeros(0, np.int64)
        seed = check_random_state(self.random_state).randint(1, 2**63, size=1, dtype=np.uint64)
        self._random: NDArray[np.uint64] = seed

    def check_state(self) -> None:
        """Raise if the selected columns of a loaded selector are not in ascending order.

        Raises
        ------
        StateError
            If so.
        """
        super().check_state()
        if hasattr(self, "n_features_in_") and (np.diff(self._support[: self._n_kept]) <= 0).any():
            raise state_error("'_support' of an OFS is not in ascending order")

    def _claims(self) -> Claims:
        is_full = self.information == "full"
        by_count = not is_full or not is_integer(self.n_features_to_select)
        return replace(self.claims, ignores_constants=is_full, counts_columns=by_count)

    def _widen(self, n_features: int) -> None:
        super()._widen(n_features)
        self._n_most = n_to_select(self.n_features_to_select, n_features)

    def _forget_columns(self, columns: Indices) -> None:
        kept = self._support[: self._n_kept]
        kept = kept[~np.isin(kept, columns)]
        super()._forget_columns(columns)
        self._support = np.pad(kept, (0, len(self._support) - len(kept)))
        self._n_kept = len(kept)

    def _learn_known_classes(
        self, data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, weights: Array
    ) -> None:
        partial, regularization = self.information == "partial", float(self.regularization)
        self._scale, self._n_kept = _learn_rows(
            data, indptr, indices, dense, slots, weights,
            self._weights, self._scale, self._support, self._n_kept, self._n_most, self._random,
            float(self.learning_rate), 1.0 if partial else 1.0 - regularization * self.learning_rate,
            1.0 / math.sqrt(regularization) if regularization else math.inf,
            float(self.margin), float(self.exploration) if partial else 0.0,
        )  # fmt: skip

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str | None = None) -> Self:
        """Average the weights with those of a selector of other rows, weighted by their numbers, and truncate the mean.

        Parameter mixing (McDonald, Hall, Mann 2010), an approximation of one pass: whether a row is a mistake depends
        on the rows before. The mean of weights in the ball (3) lies in it. The order of the parts has no influence.

        Parameters
        ----------
        other : OFS
            With the same columns and parameters.
        when : {"after", "before"}, optional
            Whether the rows of `other` follow or precede those of this selector; it has no influence.

        %(returns_and_raises)s
        ValueError
            If its columns or parameters differ.

        Examples
        --------
        >>> import numpy as np
        >>> from tamis import OFS
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 50))
        >>> y = X[:, 17] - X[:, 42] > 0
        >>> parts = OFS(2).fit(X[:1000], y[:1000]), OFS(2).fit(X[1000:], y[1000:])
        >>> parts[0].merge(parts[1]).get_support(indices=True)
        array([17, 42])
        """
        check_choice("when", when, ("after", "before", None))
        if not check_mergeable(self, other, ("random_state",)):
            return self
        codes, joint = joint_classes(self, other)
        theirs = codes[other._order]
        order = np.r_[self._order, theirs[~np.isin(theirs, self._order)]]
        share = other.n_seen_ / max(self.n_seen_ + other.n_seen_, 1)
        mine, their = self._weights_by_class(self._order, order), other._weights_by_class(theirs, order)
        weights = (1.0 - share) * mine + share * their
        if len(order) <= 2:
            weights = 2.0 * weights[:1]
        self._merge_constants(other)
        weights[:, self._constant] = 0.0
        sizes = np.abs(weights).sum(axis=0)
        kept = top_mask(sizes, self._n_most) & (sizes > 0.0)
        support = np.flatnonzero(kept).astype(np.int32)
        self.__dict__.update(joint)
        self._weights, self._scale, self._order = np.where(kept, weights, 0.0), 1.0, order
        self._support = np.pad(support, (0, self.n_features_in_ - len(support)))
        self._n_kept, self.n_seen_ = len(support), self.n_seen_ + other.n_seen_
        return self

    def _weights_by_class(self, order: Array, classes: Array) -> Floats:
        """Return a vector for each of `classes`; those of this selector belong to the classes in `order`."""
        weights = self._scale * self._weights
        if len(weights) == 1:
            weights = np.vstack([0.5 * weights, -0.5 * weights])
        vectors = np.zeros((max(len(classes), 2), weights.shape[1]))
        for code, vector in zip(order, weights, strict=False):
            vectors[np.flatnonzero(classes == code)[0]] = vector
        if len(order) == 1:  # the opposite of the only class
            vectors[1 - int(np.flatnonzero(classes == order[0])[0]) if len(classes) <= 2 else -1] = weights[1]
        return vectors

    def _relevance(self) -> Floats:
        sizes: Floats = np.abs(self._weights).sum(axis=0)
        return sizes * self._scale

    def _coefficients(self) -> Array:
        return self._scale * self._weights
