"""Prequential AUC: the area under the ROC curve of the last rows (Brzezinski, Stefanowski 2017).

For the positive rows p and the negative rows q of the window,

    AUC = #{(p, q): score p > score q} + 1/2 #{(p, q): score p = score q}, over all pairs, divided by their number   (1)

A row that enters or leaves changes the number of pairs won by what two searches tell, so (1) is exact and never counted
again. The pairs won are counted twice, as whole numbers: a tie is one half.

The scores lie in a treap: a binary search tree by (score, node) that is a heap by random priorities, so its depth is
logarithmic. Node i + 1 is slot i of the window. Node 0 is not a row: it stands for an absent child, and above the root,
which is its second child.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import as_numbers, check_number
from tamis.errors import StateError

__all__ = ["SlidingAUC"]


@njit(strict=True)
def _side(above: int, node: int, scores: Any) -> int:
    """Return on which side of another node a node belongs."""
    return int(scores[above] < scores[node] or (scores[above] == scores[node] and above < node))


@njit(strict=True)
def _path_to(node: int, children: Any, scores: Any, path: Any) -> int:
    """Write the nodes above the place of `node`, from the top; return their number."""
    depth, at = 1, children[0, 1]
    path[0] = 0
    while at and at != node:
        path[depth] = at
        depth += 1
        at = children[at, _side(at, node, scores)]
    return depth


@njit(strict=True)
def _enter(node: int, label: int, scores: Any, children: Any, sizes: Any, priority: Any, path: Any) -> None:
    depth = _path_to(node, children, scores, path)
    for i in range(1, depth):
        sizes[path[i], label] += 1
    children[node] = 0
    sizes[node] = 0
    sizes[node, label] = 1
    children[path[depth - 1], 1 if depth == 1 else _side(path[depth - 1], node, scores)] = node
    while depth > 1 and priority[path[depth - 1]] < priority[node]:  # turn it up, above its parent
        parent, above = path[depth - 1], path[depth - 2]
        side = int(children[parent, 1] == node)
        inner = children[node, 1 - side]
        for k in range(2):
            sizes[parent, k] += sizes[inner, k] - sizes[node, k]
            sizes[node, k] += sizes[parent, k] - sizes[inner, k]
        children[parent, side], children[node, 1 - side] = inner, parent
        children[above, int(children[above, 1] == parent)] = node
        depth -= 1


@njit(strict=True)
def _leave(node: int, label: int, scores: Any, children: Any, sizes: Any, priority: Any, path: Any) -> None:
    depth = _path_to(node, children, scores, path)
    for i in range(1, depth):
        sizes[path[i], label] -= 1
    above = path[depth - 1]
    side = int(children[above, 1] == node)
    left, right = children[node, 0], children[node, 1]
    while left and right:  # of the two trees that are left, the one with the higher root comes up
        low = int(priority[left] > priority[right])
        root, other = (left, right) if low else (right, left)
        for k in range(2):
            sizes[root, k] += sizes[other, k]
        children[above, side] = root
        above, side = root, low
        left, right = (children[root, 1], right) if low else (left, children[root, 0])
    children[above, side] = left + right


@njit(strict=True)
def _won(label: int, score: float, scores: Any, children: Any, sizes: Any) -> int:
    """Return twice the pairs that the positive row wins, of the row and each row of the other class."""
    other, below = 1 - label, 0
    for equal in range(2):
        at = children[0, 1]
        while at:
            if scores[at] < score or (equal and scores[at] == score):
                right = children[at, 1]
                below += sizes[at, other] - sizes[right, other]
                at = right
            else:
                at = children[at, 0]
    return below if label else 2 * sizes[children[0, 1], other] - below


@njit(strict=True)
def _slide(
    positive: Any, values: Any, n_seen: int, labels: Any, scores: Any, children: Any, sizes: Any, priority: Any,
    totals: Any,
) -> float:  # fmt: skip
    """Take the rows in; return the sum of the AUC after each of them that has one."""
    window, total, path = labels.shape[0], 0.0, np.empty(labels.shape[0] + 1, np.int64)
    slot = n_seen % window
    for i in range(values.shape[0]):
        node, label = slot + 1, positive[i]
        if n_seen + i >= window:
            _leave(node, labels[slot], scores, children, sizes, priority, path)
            totals[0] -= _won(labels[slot], scores[node], scores, children, sizes)
        totals[0] += _won(label, values[i], scores, children, sizes)
        labels[slot], scores[node] = label, values[i]
        _enter(node, label, scores, children, sizes, priority, path)
        n_pairs = sizes[children[0, 1], 0] * sizes[children[0, 1], 1]
        if n_pairs > 0:
            total += 0.5 * totals[0] / n_pairs  # (1)
            totals[1] += 1
        slot += 1
        if slot == window:
            slot = 0
    return total


class SlidingAUC(ThreadSafe):
    """Area under the ROC curve over the last `window` rows, and its mean over the run.

    A row costs O(log window). Memory: 56 bytes per row of the window.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 2.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.

    References
    ----------
    Brzezinski, Stefanowski (2017). Prequential AUC: properties of the area under the ROC curve for data streams with
    concept drift. Knowledge and Information Systems 52.

    Examples
    --------
    Three of the four pairs are in the right order:

    >>> auc = SlidingAUC(window=4)
    >>> auc.update([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9])
    >>> auc.windowed
    0.75
    """

    _shapes = """
        window (=w)  n_seen in [0, 2**62)  _labels (w) in [0, 1]  _scores (w+1) float in [-inf, inf]
        _children (w+1, 2) in [0, w]  _sizes (w+1, 2) in [0, w]  _priority (w+1) in [0, w]  _totals (2) in [0, 2**62)
        _sum float in [0, inf)
    """

    def __init__(self, window: int = 1000) -> None:
        check_number("window", window, low=2, integer=True)
        self.window, self.n_seen = int(window), 0
        n_nodes = self.window + 1
        self._labels = np.zeros(self.window, np.int64)  # of the last rows
        self._scores = np.zeros(n_nodes)
        self._children = np.zeros((n_nodes, 2), np.int64)
        self._sizes = np.zeros((n_nodes, 2), np.int64)  # negative and positive rows at and below each node
        self._priority = np.random.default_rng(0).permutation(n_nodes)
        self._totals = np.zeros(2, np.int64)  # twice the pairs won, rows with an AUC
        self._sum = 0.0

    def check_state(self) -> None:
        """Reject a tree that is none, is not in the order of the scores, or does not hold the rows of the window.

        Raises
        ------
        StateError
            If so.
        """
        nodes, todo, at = list[int](), list[int](), int(self._children[0, 1])
        n = min(self.n_seen, self.window)
        while (todo or at) and len(todo) + len(nodes) <= n:  # in the order of the scores
            if at:
                todo.append(at)
                at = int(self._children[at, 0])
            else:
                nodes.append(todo.pop())
                at = int(self._children[nodes[-1], 1])
        below = np.zeros_like(self._sizes)
        order = np.array(nodes, dtype=np.int64)
        if sorted(nodes) == list(range(1, n + 1)):
            below[order, self._labels[order - 1]] = 1
            for node in sorted(nodes, key=self._priority.__getitem__):  # those below have lower priorities
                below[node] += below[self._children[node]].sum(axis=0)
            sorted_by = np.lexsort((order, self._scores[order]))
            if (sorted_by == np.arange(n)).all() and (below[1 : n + 1] == self._sizes[1 : n + 1]).all():
                return
        raise StateError(
            "The tree of a SlidingAUC does not hold the rows of its window: the model was changed from outside, so"
            " count again or load it from where it was saved."
        )

    def update(self, positive: Any, scores: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        positive : array-like of bool or 0/1, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            Larger scores mean that the positive class is more likely.

        Raises
        ------
        ValueError
            If there is not one label and one score that is a number for each row. Nothing is then counted.
        """
        is_bool = type(positive) is np.ndarray and positive.dtype == bool
        labels = positive if is_bool else as_numbers("positive", positive)
        values = np.ascontiguousarray(as_numbers("scores", scores))
        if labels.ndim != 1 or labels.shape != values.shape:
            raise ValueError(
                "positive and scores must hold one value for each row,"
                f" got shapes {labels.shape} and {values.shape}."
            )
        if np.isnan(values).any():
            raise ValueError("scores must be numbers, got NaN.")
        if not is_bool and not np.isin(labels, (0, 1)).all():
            raise ValueError(f"positive must hold zeros and ones, got {positive!r}.")
        codes = np.ascontiguousarray(labels, dtype=np.int64)
        self._sum += _slide(
            codes, values, self.n_seen, self._labels, self._scores, self._children, self._sizes, self._priority,
            self._totals,
        )  # fmt: skip
        self.n_seen += len(values)

    @property
    def windowed(self) -> float:
        """AUC of the last `window` rows; NaN unless both classes are among them."""
        n_pairs = math.prod(self._sizes[self._children[0, 1]].tolist())
        return 0.5 * int(self._totals[0]) / n_pairs if n_pairs else math.nan

    @property
    def mean(self) -> float:
        """Mean of `windowed` over all rows that had one; NaN if there was none.

        Scores before and after a drift cannot be compared, so there is no AUC of the entire run.
        """
        n_rows = int(self._totals[1])
        return self._sum / n_rows if n_rows else math.nan
