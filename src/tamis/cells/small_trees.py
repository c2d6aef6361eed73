"""Class probabilities from any subset of the values: gradient boosting trained on rows with few known values.

Small trees, one per class and round, are fitted to the gradient of the log-likelihood (Friedman 2001, Annals of
Statistics 29, with the leaves of Chen, Guestrin 2016). Unlike a sum over columns, they represent interactions. With g
and h the first and second derivative of a row's loss with respect to the evidence of a class::

    leaf = -sum g / (sum h + 1),    gain of a split = (sum_left g)^2 / (sum_left h + 1) + the same right      (1)
    log P(c | x_S) = log P(c) + b sum_t leaf_tc(x_S) + const                                                  (2)

An unknown value has a separate code, whose direction is defined by each split. A row is used at several steps of its
walk, with a total weight of one.

A split divides ordered codes, so the categories of a column are ordered by their class profiles: by the first
principal component of P(class | category), weighted by rows (Coppersmith, Hong, Hosking 1999, Data Mining and Knowledge
Discovery 3). For two classes, the best split is among those of this order. The order depends neither on the names of
the classes nor on the codes of the categories.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints
from tamis.cells.bins import Bins, in_order
from tamis.cells.discriminant import posterior_of
from tamis.cells.masked import walk_snapshots

_ROUNDS, _RATE = 60, 0.15
_DEPTH = 5
_BINS = 16
_LEAST = 5.0  # smallest number of rows in a leaf
_RECORDS = 50_000  # number of records (a row at a step of its walk) used for the fit
# Number of records times trees of a round for a draft, which is used only to fit the weights of the evidence.
_DRAFT = 200_000
_SHARE = 2  # each round uses every second record


@njit(strict=True)
def _add_histograms(
    codes: Array, rows: Array, start: Array, first: int, g: Array, h: Array, above: Array, sums: Array
) -> None:
    """Fill in g, h and the number of rows of each code of each column, for each node of a level.

    The rows of a node are consecutive, from `start` on. Only the smaller of two children is summed; the other is the
    difference from their parent, in `above`.
    """
    K = codes.shape[1]
    for node in range(first + 1):
        if first > 0 and _is_larger_child(start, node):
            continue
        own = sums[node]
        own[:] = 0.0
        for r in range(start[node], start[node + 1]):
            i = rows[r]
            code, g_i, h_i = codes[i], g[i], h[i]
            for j in range(K):
                cell = own[j, code[j]]
                cell[0] += g_i
                cell[1] += h_i
                cell[2] += 1.0
    if first > 0:
        for node in range(first + 1):
            if _is_larger_child(start, node):
                sums[node] = above[node // 2] - sums[node ^ 1]


@njit(strict=True)
def _is_larger_child(start: Array, node: int) -> bool:
    """Return whether a child has more rows than the other; on ties, the second one."""
    n, other = start[node + 1] - start[node], start[(node ^ 1) + 1] - start[node ^ 1]
    return n > other or (n == other and node % 2 == 1)


@njit(strict=True)
def _split(sums: Array, used: Array, least: float) -> tuple[int, int, bool]:
    """Return the column of the best split of a node, (1), its cut, and whether unknown values go left; -1 if none.

    All codes of a column are below `used`, so cuts beyond it are equivalent to the last one.
    """
    K, n_codes = sums.shape[:2]
    total_g = total_h = total_n = 0.0
    for c in range(n_codes):
        total_g += sums[0, c, 0]
        total_h += sums[0, c, 1]
        total_n += sums[0, c, 2]
    feature, cut, unknown_left = -1, 0, True
    if total_n < 2.0 * least:
        return feature, cut, unknown_left
    best = total_g * total_g / (total_h + 1.0) + 1e-9
    for j in range(K):
        if sums[j, 0, 2] == total_n:  # no row of the node has a value
            continue
        for side in range(2):
            left_g = left_h = left_n = 0.0
            if side == 0:
                left_g, left_h, left_n = sums[j, 0, 0], sums[j, 0, 1], sums[j, 0, 2]
            elif sums[j, 0, 2] == 0.0:
                continue
            for c in range(min(n_codes - 1, used[j])):
                if c > 0:
                    left_g += sums[j, c, 0]
                    left_h += sums[j, c, 1]
                    left_n += sums[j, c, 2]
                if left_n < least or total_n - left_n < least:
                    continue
                right_g, right_h = total_g - left_g, total_h - left_h
                gain = left_g * left_g / (left_h + 1.0) + right_g * right_g / (right_h + 1.0)
                if gain > best:
                    best, feature, cut, unknown_left = gain, j, c, side == 0
    return feature, cut, unknown_left


@njit(strict=True)
def _grow(
    codes: Array, used: Array, rows: Array, g: Array, h: Array, least: float, sums: Array, above: Array,
    feature: Array, cut: Array, unknown_left: Array, leaf: Array, rate: float, score: Array,
) -> None:  # fmt: skip
    """Fill in one tree of complete levels, and add its leaves to the score of its rows.

    Children of node i are 2 i + 1 and 2 i + 2. A node with feature -1 sends all rows left. Code 0 is unknown; codes 1
    to cut go left. A leaf has `least` rows or more. `sums` and `above` are buffers for g, h and the number of rows of
    the nodes of two levels.
    """
    n_inner = len(feature)
    rows, parted, right = rows.copy(), np.empty_like(rows), np.empty_like(rows)
    start, next_start = np.zeros((2, n_inner + 2), np.int64)
    start[1] = len(rows)
    first = 0
    while first < n_inner:
        _add_histograms(codes, rows, start, first, g, h, above, sums)
        for node in range(first, 2 * first + 1):
            place = node - first
            feature[node], cut[node], unknown_left[node] = _split(sums[place], used, least)
            # The order of the rows is preserved in both children.
            at, n_right = start[place], 0
            next_start[2 * place] = at
            for r in range(start[place], start[place + 1]):
                goes_right = _child(codes[rows[r]], node, feature, cut, unknown_left) - 2 * node - 1
                parted[at] = right[n_right] = rows[r]
                at += 1 - goes_right
                n_right += goes_right
            next_start[2 * place + 1] = at
            parted[at : at + n_right] = right[:n_right]
        next_start[2 * first + 2] = len(rows)
        rows, parted = parted, rows
        start, next_start = next_start, start
        first, sums, above = 2 * first + 1, above, sums
    for i in range(n_inner + 1):
        sum_g = sum_h = 0.0
        for r in range(start[i], start[i + 1]):
            sum_g += g[rows[r]]
            sum_h += h[rows[r]]
        leaf[i] = -sum_g / (sum_h + 1.0) * rate  # (1)
        for r in range(start[i], start[i + 1]):
            score[rows[r]] += leaf[i]


@njit(strict=True)
def _child(code: Array, node: int, feature: Array, cut: Array, unknown_left: Array) -> int:
    """Return the child of a row without a branch, which would often be mispredicted.

    If unknown values go right, one is subtracted from code and cut, so that code 0 becomes the largest byte.
    """
    j, shift = feature[node], 1 - int(unknown_left[node])
    right = (((int(code[max(j, 0)]) - shift) & 255) > cut[node] - shift) & (j >= 0)
    return 2 * node + 1 + int(right)


@njit(strict=True)
def _leaf(code: Array, feature: Array, cut: Array, unknown_left: Array, leaf: Array) -> float:
    """Return the leaf value of a row in one tree."""
    node, n_inner = 0, len(feature)
    while node < n_inner:
        node = _child(code, node, feature, cut, unknown_left)
    return leaf[node - n_inner]


@njit(strict=True)
def _add_leaves(
    codes: Array, rows: Array, feature: Array, cut: Array, unknown_left: Array, leaf: Array, at: Array,
    score: Array,
) -> None:  # fmt: skip
    """Add the leaf of some rows in one tree to their score.

    All rows are processed level by level, since the steps of a single row depend on each other.
    """
    n_inner, first = len(feature), 0
    at[: len(rows)] = 0
    while first < n_inner:
        for r in range(len(rows)):
            at[r] = _child(codes[rows[r]], at[r], feature, cut, unknown_left)
        first = 2 * first + 1
    for r in range(len(rows)):
        score[rows[r]] += leaf[at[r] - n_inner]


@njit(strict=True)
def _boost(
    codes: Array, y: Array, weight: float, log_prior: Array, mixed: Array, n_codes: int, rate: float,
    feature: Array, cut: Array, unknown_left: Array, leaf: Array,
) -> None:  # fmt: skip
    """Fill in the trees (n_rounds, n_outputs, n_inner), each fitted to every second record, alternating."""
    n, n_classes = len(codes), len(log_prior)
    n_rounds, n_outputs = feature.shape[:2]
    score = np.zeros((n, n_classes))
    p, g, h, at = np.empty((n, n_classes)), np.empty(n), np.empty(n), np.empty(n, np.int64)
    widest = (feature.shape[2] + 1) // 2
    used = np.ones(codes.shape[1], np.int64)
    for i in range(n):
        for j in range(codes.shape[1]):
            used[j] = max(used[j], codes[i, j] + 1)
    sums, above = np.empty((2, widest, codes.shape[1], n_codes, 3))
    for t in range(n_rounds):
        rows, others = mixed, mixed[:0]
        if n > 2 * _LEAST:
            rows, others = mixed[t % _SHARE :: _SHARE], mixed[(t + 1) % _SHARE :: _SHARE]
        for i in range(n):
            top = -np.inf
            for c in range(n_classes):
                p[i, c] = score[i, c] + log_prior[c]
                top = max(top, p[i, c])
            total = 0.0
            for c in range(n_classes):
                p[i, c] = np.exp(p[i, c] - top)
                total += p[i, c]
            for c in range(n_classes):
                p[i, c] /= total
        for o in range(n_outputs):
            c = o + n_classes - n_outputs  # with two classes, only the second has trees
            for i in range(n):
                g[i] = weight * (p[i, c] - (y[i] == c))
                h[i] = weight * p[i, c] * (1.0 - p[i, c])
            _grow(
                codes, used, rows, g, h, _LEAST / weight, sums, above,
                feature[t, o], cut[t, o], unknown_left[t, o], leaf[t, o], rate, score[:, c],
            )  # fmt: skip
            _add_leaves(
                codes, others, feature[t, o], cut[t, o], unknown_left[t, o], leaf[t, o], at, score[:, c]
            )


@njit(strict=True)
def _total_evidence(
    codes: Array, feature: Array, cut: Array, unknown_left: Array, leaf: Array, evidence: Array
) -> None:
    """Fill in the evidence of each row from its known values, (2); 0 if none is known."""
    n_rounds, n_outputs = feature.shape[:2]
    for i in range(len(codes)):
        evidence[i] = 0.0
        for o in range(n_outputs if codes[i].any() else 0):
            total = 0.0
            for t in range(n_rounds):
                total += _leaf(codes[i], feature[t, o], cut[t, o], unknown_left[t, o], leaf[t, o])
            evidence[i, o + evidence.shape[1] - n_outputs] = total


@njit(strict=True)
def _leaf_and_path(
    code: Array, feature: Array, cut: Array, unknown_left: Array, leaf: Array
) -> tuple[float, int]:
    """Return the leaf value of a row in one tree, and a bit for each column on its path (modulo 62)."""
    node, n_inner, path = 0, len(feature), 0
    while node < n_inner:
        if feature[node] >= 0:
            path |= 1 << (feature[node] % 62)
        node = _child(code, node, feature, cut, unknown_left)
    return leaf[node - n_inner], path


@njit(strict=True)
def _stepwise_evidence(
    codes: Array, order: Array, feature: Array, cut: Array, unknown_left: Array, leaf: Array, evidence: Array
) -> None:
    """Fill in the evidence of each row before the first of the columns in order, and after each.

    A value that becomes known changes only the trees that test it on the path of the row.
    """
    n_rounds, n_outputs = feature.shape[:2]
    n_classes = evidence.shape[2]
    seen = np.empty(codes.shape[1], codes.dtype)
    value, path = np.empty((n_rounds, n_outputs)), np.empty((n_rounds, n_outputs), np.int64)
    for i in range(len(codes)):
        seen[:] = 0
        path[:] = -1  # all bits set: no leaf is known yet
        evidence[i, 0] = 0.0
        for s in range(order.shape[1]):
            j = order[i, s]
            if j < 0 or codes[i, j] == 0:
                evidence[i, s + 1] = evidence[i, s]
                continue
            seen[j] = codes[i, j]
            evidence[i, s + 1, 0] = 0.0
            for o in range(n_outputs):
                total = 0.0
                for t in range(n_rounds):
                    if (path[t, o] >> (j % 62)) & 1:
                        value[t, o], path[t, o] = _leaf_and_path(
                            seen, feature[t, o], cut[t, o], unknown_left[t, o], leaf[t, o]
                        )
                    total += value[t, o]
                evidence[i, s + 1, o + n_classes - n_outputs] = total


class SmallTrees:
    """Probabilities of the classes from any of the columns, by trees.

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    The class is the sign of a product, so no single column is relevant:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> model = SmallTrees(2).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    >>> model.posterior(np.array([[1.0, 1.0], [1.0, -1.0]])).round(1)
    array([[0., 1.],
           [1., 0.]])
    """

    _state_spec = Shapes(
        "prior (k) float in [0, 1]  _bins.edges (d, 15) float in [-inf, inf]  _bins.sizes (d) in [0, s]"
        "  _bins.levels in [1, 16]  _place (d, s) in [1, 16]  _feature (r, o, 31) in [-1, d)"
        "  _cut (r, o, 31) in [0, 16)  _unknown_left (r, o, 31) bool  _leaf (r, o, 32) float in [-1e50, 1e50]"
        "  evidence_weight float in [0, 2]"
    )

    # State after fit, for R rounds with O = n_classes trees, or one for two classes, of N = 31 inner nodes:
    #   _bins                          edges of the columns, and numbers of categories
    #   _place          (K, S)         int64; bin of each category, from 1
    #   _feature, _cut  (R, O, N)      int64; children of node i are 2 i + 1 and 2 i + 2
    #   _unknown_left   (R, O, N)      bool
    #   _leaf           (R, O, N + 1)  float64
    #   prior           (n_classes,)
    #   evidence_weight float

    def __init__(self, n_classes: int) -> None:
        self.n_classes, self.evidence_weight = n_classes, 1.0
        self.prior: Floats = np.full(n_classes, 1.0 / n_classes)
        self._bins, self._place = Bins(np.empty((0, _BINS - 1))), np.ones((0, 0), dtype=np.int64)
        self._allocate(0)

    def _allocate(self, n_rounds: int) -> None:
        shape = (n_rounds, 1 if self.n_classes == 2 else self.n_classes, 2**_DEPTH - 1)
        self._feature, self._cut = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self._unknown_left = np.ones(shape, dtype=bool)
        self._leaf: Floats = np.zeros((*shape[:2], shape[2] + 1))

    def _trees(self) -> tuple[Array, Array, Array, Array]:
        return self._feature, self._cut, self._unknown_left, self._leaf

    def fit(
        self, values: Floats, y: Array, order: Array | None = None, sizes: Ints | None = None,
        *, draft: bool = False,
    ) -> SmallTrees:  # fmt: skip
        """Fit to rows.

        Parameters
        ----------
        values : ndarray of shape (n_rows, K)
            NaN where missing.
        y : ndarray of shape (n_rows,), int
        order : ndarray of shape (n_rows, n_steps), int, optional
            The columns in the order in which they become known in each row, -1 for none; by default all in order.
        sizes : ndarray of shape (K,), int, optional
            Number of categories of each column, whose values are codes; 0 for numeric columns (the default for all).
        draft : bool
            Whether to use fewer records with many classes, each of which has a tree in every round.
        """
        n, K = values.shape
        self.prior = np.bincount(y, minlength=self.n_classes) / n
        self._bins = Bins(Bins.quantile(values, _BINS).edges, sizes)
        most = int(self._bins.sizes.max(initial=0))
        self._place = np.ones((K, most), dtype=np.int64)
        for j in np.flatnonzero(self._bins.sizes):
            size = int(self._bins.sizes[j])
            self._place[j, :size] = _profile_bins(values[:, j], y, size, self.n_classes)
        self._allocate(_ROUNDS if K else 0)
        records = min(_RECORDS, _DRAFT // self._leaf.shape[1]) if draft else _RECORDS
        some = np.arange(0, n, max(1, -(-n // records)))
        rows, snapshots = walk_snapshots(
            np.asarray(values[some], dtype=np.float64),
            None if order is None else order[some],
            records // len(some),
        )
        weight = len(some) / max(len(rows), 1)
        mixed = np.random.default_rng(0).permutation(len(rows))
        log_prior = np.log(np.maximum(self.prior, 1e-12))
        _boost(
            self._codes(snapshots), y[some[rows]], weight, log_prior, mixed, _BINS + 1, _RATE, *self._trees()
        )
        return self

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return len(self._bins.edges)

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class, cumulated over its columns, unweighted.

        Parameters and return value as for :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        order = in_order(values) if order is None else order
        array = np.empty((len(values), order.shape[1] + 1, self.n_classes))
        _stepwise_evidence(self._codes(values), order, *self._trees(), array)
        return array.transpose(1, 0, 2)

    def total_evidence(self, values: Floats) -> Floats:
        """Return the evidence of all known values of each row, shape (n_rows, n_classes), unweighted."""
        evidence = np.empty((len(values), self.n_classes))
        _total_evidence(self._codes(values), *self._trees(), evidence)
        return evidence

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (2)."""
        return posterior_of(self.total_evidence(values), self.prior, self.evidence_weight)

    def _codes(self, values: Floats) -> NDArray[np.uint8]:
        values = np.asarray(values, dtype=np.float64)
        codes = (self._bins.codes(values) + 1).astype(np.uint8)
        for j in np.flatnonzero(self._bins.sizes):
            known = ~np.isnan(values[:, j])
            code = np.minimum(values[known, j].astype(np.int64), self._bins.sizes[j] - 1)
            codes[known, j] = self._place[j, code]
        return codes


def _profile_bins(column: Floats, y: Array, size: int, n_classes: int) -> Ints:
    """Return the bin of each category, from 1, ordered by class profiles: at most 16 bins of about equal size."""
    known = ~np.isnan(column)
    at = np.minimum(column[known].astype(np.int64), size - 1) * n_classes + y[known]
    counts = np.bincount(at, minlength=size * n_classes).reshape(size, n_classes).astype(np.float64)
    rows = counts.sum(axis=1)
    share = counts.sum(axis=0) / max(rows.sum(), 1.0)
    profile = (counts + share) / (rows[:, None] + 1.0) - share
    axis = np.linalg.eigh((profile * rows[:, None]).T @ profile)[1][:, -1]
    score = (profile * axis).sum(axis=1)
    score *= -1.0 if score[0] > 0.0 else 1.0  # the first category is the most frequent one
    order = np.argsort(np.round(score, 9), kind="stable")
    place = np.arange(size)
    if size > _BINS:
        before = np.cumsum(rows[order]) - rows[order] / 2.0
        place = np.minimum((before * _BINS / max(rows.sum(), 1.0)).astype(np.int64), _BINS - 1)
    bins = np.empty(size, dtype=np.int64)
    bins[order] = place + 1
    return bins
