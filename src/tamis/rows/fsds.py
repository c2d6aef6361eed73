"""FSDS: unsupervised feature selection by ridge regression on the singular vectors of a sketch of the stream.

Huang, Yoo, Kasiviswanathan: Unsupervised Feature Selection on Data Streams, CIKM 2015. The sketch is Frequent
Directions: Liberty, Simple and Deterministic Matrix Sketching, KDD 2013. The labels are not used.

===========  =================  ============================================================================
paper        here               meaning
===========  =================  ============================================================================
m            J                  number of features
l            `sketch_size`      columns of the sketch
k            `n_components`     singular vectors used for the scores
B_t          ``_sketch``        the sketch after block t, here its l rows: orthogonal, of decreasing length
Y_t          a block            the new rows as columns, `block_size` of them
===========  =================  ============================================================================

The sketch is that of :mod:`tamis.rows.sketched_rows`. The features are scored by the ridge regressions of the first k
directions::

    w_j = max_i |U_ji| s'_i / (s'_i^2 + a),   a = 8 s'_k,   i = 1, ..., k          (1)

Row i of the sketch is s'_i U_i, so (1) is the largest |B_ji| / (s'_i^2 + a), without a division by s'_i.

Errata of public versions, and our deviations, each with its reason:

* The published code has as many columns as there are rows in the first batch, and shrinks by the last of them if
  there are fewer than l: it loses information although the sketch has space. Here delta is 0 until there are l columns.
* The authors use the batches of the caller. Here rows are buffered until there are `block_size` of them, so a batch
  leaves the same state as its rows one at a time; scores treat the buffered rows as a block.
* In the paper, old rows fade by shrinking only; with `half_life` the sketch fades with each block.
* Rows are not centred, as in the paper. If their means are large, the first direction is the mean: centre them.
* A row with sample weight w is multiplied by sqrt(w); a row of weight 0 is ignored.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from tamis._validation import Floats
from tamis.base.declarations import Claims
from tamis.rows.sketched_rows import SketchedRows

_RIDGE = 8.0


@dataclass(eq=False, repr=False)
class FSDS(SketchedRows):
    """Selects the features with the largest weights in the leading directions of the stream, without labels.

    A sketch of `sketch_size` directions summarises all rows so far. It never overestimates the length of a direction,
    and the underestimation is bounded. The scores are ridge regression coefficients of the `n_components` longest
    directions.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    n_components : int in [1, 100], default=2
        Number of directions used for the scores (k): typically the number of clusters.
    sketch_size : int in [2, 2000], optional
        Number of directions in the sketch (l), more than `n_components`. By default the root of the number of features,
        rounded down, and at least ``n_components + 1``.
    block_size : int in [1, 10000], default=100
        Number of rows that are added to the sketch at once.
    half_life : float in [0.01, inf], optional
        Number of rows after which the weight of the sketch is halved. By default nothing fades, as published.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. It only affects the validation of targets.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Largest coefficient of a feature (equation 1 of the source file's header), from 0. All zero while `warming_up_`.
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
    n^2`` operations. Reading scores between two blocks costs as much as a block. CSR rows are made dense block by
    block.

    References
    ----------
    Huang, Yoo, Kasiviswanathan (2015). Unsupervised Feature Selection on Data Streams. CIKM, 1031-1040.
    Liberty (2013). Simple and Deterministic Matrix Sketching. KDD, 581-588.

    Examples
    --------
    Two latent variables drive three features each of forty; the others are noise.

    >>> import numpy as np
    >>> from tamis import FSDS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 40))
    >>> X[:, :3] += 3 * rng.normal(size=(1000, 1))
    >>> X[:, 20:23] += 3 * rng.normal(size=(1000, 1))
    >>> FSDS(6).fit(X).get_support(indices=True)
    array([ 0,  1,  2, 20, 21, 22])
    """

    claims = Claims(
        equals_rows="exactly",
        ranks_relevance=False,
        # The sketch is of rows as they are.
        invariant_to_shifts=False,
        copies_differ="a row is multiplied by the root of its weight; copies fill the sketch sooner",
    )

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    n_components: int = 2

    def _default_size(self, n_features: int) -> int:
        return max(math.isqrt(n_features), int(self.n_components) + 1)

    def _relevance(self) -> Floats:
        sketch, squares = (
            self._updated_sketch(self._waiting) if self._n_waiting else (self._sketch, self._squares)
        )
        k = self._longest(squares)
        ridge = squares[:k, None] + _RIDGE * np.sqrt(squares[k - 1])
        long = np.abs(sketch[:k])
        coefficients = np.divide(long, ridge, out=np.zeros_like(long), where=ridge > 0.0)
        return coefficients.max(axis=0)  # (1)
