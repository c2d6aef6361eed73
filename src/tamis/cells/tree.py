"""Exact inference in the dependency network: the class, and each unknown value, given any known values.

One pass from the leaves to the root and one back, for each class (Pearl 1988). With children g of f, evidence e, and
delta_f(v) = 1 if v agrees with the evidence on f::

    lambda_f(u) = sum_v P(x_f = v | u, c) delta_f(v) prod_g lambda_g(v)                 (up)
    pi_g(v | u) from the rest of the tree above g:  pi_f(v) prod_{h != g} lambda_h(v)   (down)
    P(e | c) = sum_v at the root,   P(x_f = v | e, c) ~ pi_f(v) prod_g lambda_g(v)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints

_NUMBERS = 1 << 22  # expectations in memory at a time


@njit(strict=True)
def _propagate(
    values: Array, parent: Array, order: Array, tables: Array, up: Array, below: Array, rest: Array, down: Array
) -> float:  # fmt: skip
    """Fill in P(x_f = v, e), up to a factor, as `down` of one row and class; return log P(e)."""
    K, V = below.shape
    log_p = 0.0
    below[:] = 1.0
    for at in range(K - 1, -1, -1):  # children before parents
        f = order[at]
        if values[f] >= 0:
            for v in range(V):
                if v != values[f]:
                    below[f, v] = 0.0
        largest = 0.0
        for u in range(V if parent[f] >= 0 else 1):
            total = 0.0
            for v in range(V):
                total += tables[f, v, u] * below[f, v]
            up[f, u] = total
            largest = max(largest, total)
        if largest == 0.0:
            return -np.inf
        log_p += np.log(largest)  # long chains of evidence would underflow
        for u in range(V if parent[f] >= 0 else 1):
            up[f, u] /= largest
            if parent[f] >= 0:
                below[parent[f], u] *= up[f, u]
    for at in range(K):  # parents before children
        f = order[at]
        p = parent[f]
        total = 0.0
        if p >= 0:
            for u in range(V):  # the rest of the tree, without the message of f itself
                rest[u] = down[p, u] / up[f, u] if up[f, u] > 0.0 else 0.0
        for v in range(V):
            mass = tables[f, v, 0] if p < 0 else 0.0
            if p >= 0:
                for u in range(V):
                    mass += rest[u] * tables[f, v, u]
            down[f, v] = mass * below[f, v]
            total += down[f, v]
        for v in range(V):
            down[f, v] /= total
    return log_p


@njit(strict=True)
def _row_posterior(
    values: Array, parent: Array, order: Array, tables: Array, prior: Array, up: Array, below: Array, rest: Array,
    down: Array, posterior: Array,
) -> None:  # fmt: skip
    """Fill in the posterior of one row, and `down` of each class."""
    L = len(tables)
    for c in range(L):
        posterior[c] = _propagate(values, parent, order, tables[c], up, below, rest, down[c])
        posterior[c] += np.log(prior[c]) if prior[c] > 0.0 else -np.inf
    largest, total = posterior.max(), 0.0
    for c in range(L):
        posterior[c] = np.exp(posterior[c] - largest)
        total += posterior[c]
    for c in range(L):
        posterior[c] /= total


@njit(strict=True)
def _infer(
    values: Array,
    parent: Array,
    order: Array,
    tables: Array,
    prior: Array,
    posterior: Array,
    conditional: Array,
) -> None:
    K, V, L = tables.shape[1], tables.shape[2], tables.shape[0]
    up, below, rest = np.empty((K, V)), np.empty((K, V)), np.empty(V)
    down = np.empty((L, K, V))
    for i in range(len(values)):
        _row_posterior(values[i], parent, order, tables, prior, up, below, rest, down, posterior[i])
        for f in range(K):
            for v in range(V):
                for c in range(L):
                    conditional[i, f, v, c] = down[c, f, v]


@njit(strict=True)
def _expected_information(
    values: Array, parent: Array, order: Array, tables: Array, prior: Array, distances: Array, posterior: Array,
    information: Array,
) -> None:  # fmt: skip
    """Fill in the posterior of each row, and the expected information of each feature on the class.

    With distances between classes, information is the decrease of the variance instead of the entropy.
    """
    L, K, V = tables.shape[:3]
    up, below, rest = np.empty((K, V)), np.empty((K, V)), np.empty(V)
    down = np.empty((L, K, V))
    for i in range(len(values)):
        _row_posterior(values[i], parent, order, tables, prior, up, below, rest, down, posterior[i])
        before = 0.0
        for c in range(L):
            if len(distances) == 0 and posterior[i, c] > 0.0:
                before -= posterior[i, c] * np.log(posterior[i, c])
        for c in range(len(distances)):
            for other in range(c):
                before += posterior[i, c] * posterior[i, other] * distances[c, other]
        for f in range(K):
            information[i, f] = 0.0
            if values[i, f] >= 0:
                continue
            after = 0.0
            for v in range(V):
                p = 0.0
                for c in range(L):
                    p += down[c, f, v] * posterior[i, c]
                for c in range(L):
                    joint = down[c, f, v] * posterior[i, c]
                    if len(distances) > 0:
                        for other in range(c):
                            if p > 0.0:
                                pair = joint * down[other, f, v] * posterior[i, other]
                                after += pair * distances[c, other] / p
                    elif joint > 0.0:
                        after -= joint * np.log(joint / p)
            information[i, f] = max(before - after, 0.0)


class Tree:
    """A network with exact posteriors for any order of acquisition.

    Parameters
    ----------
    parent : ndarray of shape (K,), int
        -1 at the root.
    tables : ndarray of shape (K, n_classes, n_values, n_values)
        P(x_f = v | x_parent = u, c) at [f, c, v, u].
    prior : ndarray of shape (n_classes,)
    distances : ndarray of shape (n_classes, n_classes), optional
        Squared distances of classes that are levels of a number; information is then the decrease of the variance.
    """

    def __init__(self, parent: Array, tables: Floats, prior: Floats, distances: Floats | None = None) -> None:
        self.distances = np.zeros((0, 0)) if distances is None else distances
        self.parent, self.prior = np.asarray(parent, dtype=np.int64), prior
        self.tables = np.ascontiguousarray(tables.transpose(1, 0, 2, 3))  # (n_classes, K, n_values, n_values)
        self._order: Ints = np.argsort(_depth(self.parent), kind="stable")

    def infer(self, values: Array) -> tuple[Floats, Floats]:
        """Return the posterior of each row, and the distribution of every feature.

        Parameters
        ----------
        values : ndarray of shape (n_rows, K), int
            Codes; negative where unknown.

        Returns
        -------
        posterior : ndarray of shape (n_rows, n_classes)
        given : ndarray of shape (n_rows, K, n_values, n_classes)
            P(x_f = v | known values, class).
        """
        L, K, V = self.tables.shape[:3]
        posterior, table = np.empty((len(values), L)), np.empty((len(values), K, V, L))
        _infer(
            np.ascontiguousarray(values), self.parent, self._order, self.tables, self.prior, posterior, table
        )
        return posterior, table

    def expected_information(self, values: Array) -> tuple[Floats, Floats]:
        """Return the posterior of each row, and the expected decrease of the entropy (or variance) by each feature.

        Parameters
        ----------
        values : ndarray of shape (n_rows, K), int
            Codes; negative where unknown.

        Returns
        -------
        posterior : ndarray of shape (n_rows, n_classes)
        information : ndarray of shape (n_rows, K)
            H(C | e) - sum_v P(x_f = v | e) H(C | e, x_f = v), in nats; of the variance, in units of the distances.
        """
        L, K = self.tables.shape[:2]
        posterior, information = np.empty((len(values), L)), np.empty((len(values), K))
        _expected_information(
            np.ascontiguousarray(values), self.parent, self._order, self.tables, self.prior, self.distances,
            posterior, information,
        )  # fmt: skip
        return posterior, information


class ExactChain:
    """The features in a fixed order, each conditioned on all earlier ones.

    Parameters
    ----------
    tree : Tree
    order : ndarray of shape (K,), int
        Features of the tree.
    link : ndarray of shape (K,), int
        The context of each position, see :class:`tamis.cells.stopping.PointBased`.
    """

    def __init__(self, tree: Tree, order: Ints, link: Ints) -> None:
        self.tree, self.order, self.link = tree, order, link

    def __len__(self) -> int:
        return len(self.order)

    def likelihood(self, k: int, values: Array) -> Floats:
        """Return P(x_k = v | earlier values, class), shape (n_rows, n_values, n_classes)."""
        L, K, V = self.tree.tables.shape[:3]
        likelihood, step = np.empty((len(values), V, L)), max(1, _NUMBERS // (K * V * L))
        for at in range(0, len(values), step):
            part = values[at : at + step]
            known = np.full((len(part), K), -1, dtype=np.int64)
            known[:, self.order[:k]] = part[:, :k]
            likelihood[at : at + step] = self.tree.infer(known)[1][:, self.order[k]]
        return likelihood

    def grouped_likelihood(self, k: int, values: Array) -> Iterator[tuple[Array | slice, Floats, Ints]]:
        """Return the likelihood as one group of rows, with one table per row."""
        yield slice(None), self.likelihood(k, values), np.arange(len(values))


def _depth(parent: Ints) -> Ints:
    depth = np.zeros(len(parent), dtype=np.int64)
    above = parent.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth
