"""LeverageScores: unsupervised feature selection by the leverage scores of the columns, without copies of one another.

Papailiopoulos, Kyrillidis, Boutsidis: Provable Deterministic Leverage Score Sampling, KDD 2014: keep the columns with
the largest rank-k leverage scores. Boutsidis, Mahoney, Drineas: An Improved Approximation Algorithm for the Column
Subset Selection Problem, SODA 2009: choose by a pivoted QR factorisation after that. Here both read a sketch of the
stream (:mod:`tamis.rows.sketched_rows`). The labels are not used.

===========  =================  ============================================================================
paper        here               meaning
===========  =================  ============================================================================
k            `n_components`     rank of the scores
V_k          (read out)         the k longest directions of the rows, of unit length: rows of the sketch
l_j          ``scores_``        rank-k leverage score of feature j
===========  =================  ============================================================================

With B the l directions of the sketch, B_j the coordinates of feature j in them, and S the features selected so far::

    l_j = sum_i (V_k)_ij^2,   from 0 to 1; their sum is k                (1)
    next feature: the largest |B_j - projection of B_j on B_S|^2         (2)

The second equation is the pivoted QR factorisation of B. It ends when the selected features explain all others, which
is after l features at the latest; then it restarts with the unselected features.

The rows are centred by the mean of all rows so far. A block of weight n and mean m is centred by m, and merged with
the rows before it, of weight w and mean M, by one additional row, which accounts for the change of the mean::

    sqrt(w n / (w + n)) (m - M)                                          (3)

Deviations, each with its reason:

* The papers have all rows at once and an exact decomposition. The sketch underestimates directions by a bounded amount.
* Boutsidis, Mahoney and Drineas sample columns by (1) before the QR factorisation, for the proof. With the columns of a
  stream in memory anyway, all of them compete.
* The papers factor V_k. B weighs the directions by their length, which was more accurate on eight of ten sets.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy.linalg

from tamis._validation import Floats, Indices, Mask
from tamis._validation.parameters import parameter
from tamis.base import n_to_select
from tamis.rows.sketched_rows import SketchedRows, shrink

# State, besides that of the sketch, for J columns:
#   _mean      (J,) float64   mean of the rows in the sketch
#   _weight    float          their weight
#   _roots     (n,) float64   roots of the weights of the waiting rows

_NOTHING_LEFT = 1e-12  # relative to the longest column: a smaller square is rounding


@dataclass(eq=False, repr=False)
class LeverageScores(SketchedRows):
    """Selects features that together explain most of the variance of all features, without labels.

    A sketch of `sketch_size` directions summarises all rows so far. The first feature selected has the largest variance
    in the sketch, and each further one the largest variance that the features selected before it do not explain.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    n_components : int in [1, 100], default=10
        Rank of the leverage scores (k).
    redundancy : {"pivot", None}, default="pivot"
        "pivot": the variance explained by the features selected before does not count. `scores_` still rates each
        feature by itself. None: the features with the largest leverage scores are selected.
    sketch_size : int in [2, 2000], optional
        Number of directions in the sketch, more than `n_components`. By default the root of the number of features,
        rounded down, and at least ``2 * n_components``.
    block_size : int in [1, 10000], default=100
        Number of rows that are added to the sketch at once.
    half_life : float in [0.01, inf], optional
        Number of rows after which the weight of the sketch is halved. By default, rows do not fade.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. It only affects the validation of targets.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Rank-k leverage scores, from 0 to 1. All zero while `warming_up_`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`. Labels are optional and not used. If they are passed, `warming_up_` is
        true until a second class occurs.

    Raises
    ------
    ValueError
        If a parameter is invalid, or `sketch_size` is not above `n_components`.
    DataError
        If the rows, labels or weights are invalid, or a value exceeds 1e140 in absolute value; the model is left
        unchanged.

    Notes
    -----
    Memory: ``8 (sketch_size + block_size)`` bytes per feature. A block of n rows costs about ``2 J l (l + 2 n) + 2 J
    n^2`` operations for J features and l directions. Reading a selection of m features costs as much as a block, and
    about ``4 J l m`` operations. CSR rows are made dense block by block. Features are centred and not scaled: a feature
    in units a thousand times as small is selected first.

    References
    ----------
    Papailiopoulos, Kyrillidis, Boutsidis (2014). Provable Deterministic Leverage Score Sampling. KDD, 997-1006.
    Boutsidis, Mahoney, Drineas (2009). An Improved Approximation Algorithm for the Column Subset Selection Problem.
    SODA, 968-977.

    Examples
    --------
    Three latent variables drive ten columns each; one of each ten represents them:

    >>> import numpy as np
    >>> from tamis import LeverageScores
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(1000, 3)) * [5, 3, 2], 10, axis=1) + rng.normal(size=(1000, 30))
    >>> LeverageScores(3).fit(X).get_support(indices=True) // 10
    array([0, 1, 2])
    >>> LeverageScores(3, n_components=3, redundancy=None).fit(X).get_support(indices=True) // 10
    array([1, 1, 2])
    """

    _shapes = """
        _mean (j) float in [-1e140, 1e140] fill 0
        _weight float in [0, inf)
        _roots (w) float in [0, inf)
    """

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    n_components: int = 10
    redundancy: str | None = parameter("pivot", None, default="pivot")

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._mean, self._weight, self._roots = np.zeros(n_features), 0.0, np.zeros(0)

    def _default_size(self, n_features: int) -> int:
        return max(math.isqrt(n_features), 2 * int(self.n_components))

    @property
    def _chooses_count(self) -> bool:  # type: ignore[override]
        """Whether `_selection` selects, although the number is fixed."""
        return hasattr(self, "n_seen_") and self.redundancy == "pivot"

    def _take(self, rows: Floats, roots: Floats, block_size: int) -> None:
        waiting = np.concatenate((self._waiting, rows)) if self._n_waiting else rows
        roots = np.concatenate((self._roots, roots)) if self._n_waiting else roots
        if len(waiting) == block_size:
            self._sketch, self._squares, self._mean, self._weight = self._with_block(waiting, roots)
            waiting, roots = waiting[:0], roots[:0]
        self._waiting, self._roots, self._n_waiting = waiting.copy(), roots.copy(), len(waiting)

    def _with_block(self, waiting: Floats, roots: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Return the sketch, its squares, the mean and the weight with a block of rows."""
        keep, n = self._kept_share(len(waiting)), float(roots @ roots)
        before, mean = keep * self._weight, roots @ waiting / n
        moved = math.sqrt(before * n / (before + n)) * (mean - self._mean)  # (3)
        block = np.vstack([waiting - roots[:, None] * mean, moved])
        sketch = math.sqrt(keep) * self._sketch if keep < 1.0 else self._sketch
        weight = before + n
        means = self._mean + n / weight * (mean - self._mean)
        return *shrink(sketch, keep * self._squares, block), means, weight

    def _read(self) -> tuple[Floats, Floats]:
        """Return the sketch with the waiting rows, and its squares."""
        if not self._n_waiting:
            return self._sketch, self._squares
        return self._with_block(self._waiting, self._roots)[:2]

    def _relevance(self) -> Floats:
        sketch, squares = self._read()
        long = sketch[: self._longest(squares)]
        squares = squares[: len(long)]
        there = squares > _NOTHING_LEFT * squares[0]
        scores: Floats = (long[there] ** 2 / squares[there, None]).sum(axis=0)  # (1)
        return np.minimum(scores, 1.0)

    def _selection(self) -> Mask:
        n_features = self.n_features_in_
        return self._best_of_first(n_features, n_to_select(self.n_features_to_select, n_features))

    def _best_of_first(self, n_columns: int, n: int) -> Mask:
        """Return which n of the first columns are selected; the others may be places without a feature."""
        kept = np.zeros(n_columns, np.bool_)
        kept[pivots(self._read()[0][:, :n_columns], n)] = True
        return kept


def pivots(sketch: Floats, n: int) -> Indices:
    """Return the n columns chosen by (2), in this order."""
    n_columns = sketch.shape[1]
    left, chosen = np.arange(n_columns), list[Indices]()
    longest = float(np.einsum("ij,ij->j", sketch, sketch).max(initial=0.0))
    while n > 0:
        triangle, order = scipy.linalg.qr(sketch[:, left], mode="r", pivoting=True, check_finite=False)
        rank = int(np.count_nonzero(np.diag(triangle) ** 2 > _NOTHING_LEFT * longest))
        some = order[: min(n, rank)] if rank else np.arange(min(n, len(left)))
        chosen.append(left[some])
        left = np.delete(left, some)
        n -= len(some)
    return np.concatenate(chosen)
