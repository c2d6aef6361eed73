"""Contexts: parts of the rows in which other columns are relevant, each with a model of its own.

A column such as a ward or a device may carry no information about the class, but determine which other columns do. A
tree of the classes, or an additive model, then averages over the contexts. Rows are therefore divided by a small
decision tree, whose leaves have models of their own (Kohavi 1996, KDD: naive Bayes trees). A split by a value of column
g is scored by the information of all other columns about the class in both parts::

    T(g) = sum_{j != g} [ N_left I_left(x_j; y) + N_right I_right(x_j; y) ]                           (1)

compared with the same sum for columns of random numbers, split at the same share of the rows: a split is made if T is
more than 6 standard deviations larger. Parts have few rows, so each column has only two levels in (1).

The policy requests the columns on the path of a row first, and then the most informative one in its context.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Mask
from tamis.cells.bins import in_order
from tamis.cells.discriminant import EvidenceWeights, posterior_of
from tamis.cells.ensemble import Ensemble
from tamis.cells.tree import Tree
from tamis.errors import StateError

_CUTS = 15  # cuts tried for each column, at its quantiles
_RANDOM = 20  # columns of random numbers for comparison
_SURE = 6.0  # standard deviations by which a split must exceed them
_LEAST = 40  # smallest number of rows of a context
_MOST = 8  # largest number of contexts
_RARE = 1e-3  # lower bound on the frequency of a class in a context


@njit(strict=True)
def _count(gate: Array, codes: Array, y: Array, counts: Array, of_bin: Array) -> None:
    """Fill in the rows of each bin of a gate, column, code and class."""
    counts[:] = 0
    of_bin[:] = 0
    for i in range(len(gate)):
        if gate[i] >= 0:
            of_bin[gate[i]] += 1
            for j in range(codes.shape[1]):
                if codes[i, j] >= 0:
                    counts[gate[i], j, codes[i, j], y[i]] += 1


@njit(strict=True)
def _information(table: Array, n_log_n: Array) -> float:
    """Return N times the mutual information of a table of counts."""
    total, rows = 0.0, 0
    for v in range(table.shape[0]):
        of_value = 0
        for c in range(table.shape[1]):
            of_value += table[v, c]
            total += n_log_n[table[v, c]]
        rows += of_value
        total -= n_log_n[of_value]
    for c in range(table.shape[1]):
        of_class = 0
        for v in range(table.shape[0]):
            of_class += table[v, c]
        total -= n_log_n[of_class]
    return total + n_log_n[rows]


@njit(strict=True)
def _score_cuts(
    gates: Array, own: Array, codes: Array, y: Array, n_classes: int, is_category: Array, least: int,
    n_log_n: Array, scores: Array, sizes: Array,
) -> None:  # fmt: skip
    """Fill in (1) for each column of bins and each cut, and the number of rows left of the cut.

    A row is left of a cut if its bin is at most the cut or, for categories, equal to it. `own` is the column of `codes`
    that each gate stands for, -1 for random numbers; codes are 0 or 1, -1 if missing.
    """
    n_gates = gates.shape[1]
    n_bins, K = scores.shape[1], codes.shape[1]
    counts, of_bin = np.empty((n_bins + 1, K, 2, n_classes), np.int64), np.empty(n_bins + 1, np.int64)
    left = np.empty((K, 2, n_classes), np.int64)
    for g in range(n_gates):
        _count(gates[:, g], codes, y, counts, of_bin)
        total, n_all = counts.sum(axis=0), of_bin.sum()
        left[:] = 0
        n_left = 0
        for cut in range(n_bins):
            if is_category[g]:
                left[:] = counts[cut]
                n_left = of_bin[cut]
            else:
                left += counts[cut]
                n_left += of_bin[cut]
            sizes[g, cut], scores[g, cut] = n_left, -np.inf
            if n_left < least or n_all - n_left < least:
                continue
            scores[g, cut] = 0.0
            for j in range(K):
                if j != own[g]:
                    scores[g, cut] += _information(left[j], n_log_n)
                    scores[g, cut] += _information(total[j] - left[j], n_log_n)


@dataclass
class Contexts:
    """A decision tree whose leaves are contexts.

    Attributes
    ----------
    column : ndarray of shape (n_splits,), int
    cut : ndarray of shape (n_splits,)
        A row goes to the first child if its value is at most the cut or, for a category, equal to it.
    is_category : ndarray of shape (n_splits,), bool
    child : ndarray of shape (n_splits, 2), int
        The next split, later than its parent; or -1 - c for context c.
    """

    column: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cut: Floats = field(default_factory=lambda: np.zeros(0))
    is_category: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    child: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    _state_spec = Shapes(
        "column (s) in [0, 2**31)  cut (s) finite  is_category (s) bool  child (s, 2) in [-9, s)"
    )

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return len(self.column) + 1

    def route(self, values: Floats) -> tuple[Ints, Ints]:
        """Return the context of each row, -1 if a value on its path is unknown, and that column (otherwise -1)."""
        at = np.zeros(len(values), dtype=np.int64)
        pending = np.full(len(values), -1)
        for split, column in enumerate(self.column):  # parents come first
            mine = np.flatnonzero(at == split)
            value = values[mine, column]
            unknown = np.isnan(value)
            pending[mine[unknown]] = column
            first = value == self.cut[split] if self.is_category[split] else value <= self.cut[split]
            at[mine] = np.where(unknown, split, np.where(first, *self.child[split]))
        return np.where(at < 0, -1 - at, -1), pending


class ContextModel:
    """Class probabilities and the order of acquisition in each context.

    A row whose context is not known yet is decided by a model of all rows.

    Parameters
    ----------
    contexts : Contexts
    trees : list of Tree
        Of each context, for the information of its columns.
    models : list of Ensemble
        The model of all rows, and that of each context.
    """

    _state_spec = Shapes(
        "n_kinds (=m)  n_columns (=d)  evidence_weight (m) float in [0, 2]  prior (k) float in [0, 1]"
        "  contexts (its own)  contexts.column (*) in [0, d)"
        "  models[] (its own)  trees[].parent (d) in [-1, d)  trees[].prior (k) float in [0, 1]"
        "  trees[]._order (d) in [0, d)  trees[].tables (k, d, a, a) float in [0, 2]  models[].prior (k)"
    )

    def __init__(self, contexts: Contexts, trees: list[Tree], models: list[Ensemble]) -> None:
        self.contexts, self.trees, self.models = contexts, trees, models
        self.evidence_weight: EvidenceWeights = np.ones(self.n_kinds)
        self.prior: Floats = models[0].prior

    def check_state(self) -> None:
        """Validate that each context has a tree and a model.

        Raises
        ------
        StateError
            If one has none.
        """
        n = self.contexts.n_contexts
        if not len(self.trees) == len(self.models) - 1 == n or (self.contexts.child < -n).any():
            raise StateError(
                "The contexts of a model do not match their trees: the model was changed from outside, so fit it again"
                " or load it from where it was saved."
            )

    @property
    def n_kinds(self) -> int:
        """Number of kinds of evidence."""
        return self.models[0].n_kinds

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return self.models[0].n_columns

    def partial_fit(self, values: Floats, y: Array, fading: float) -> ContextModel:
        """Return the model unchanged."""
        return self

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each kind, shape (n_kinds, n_steps + 1, n_rows, n_classes).

        Parameters are those of :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        order = in_order(values) if order is None else order
        evidence = self.models[0].evidence(values, order)
        seen, rows = np.full(values.shape, np.nan), np.arange(len(values))
        known_from = np.full(len(values), order.shape[1] + 1)  # the step from which the context is known
        context = np.full(len(values), -1)
        for step in range(order.shape[1]):
            new = rows[order[:, step] >= 0]
            seen[new, order[new, step]] = values[new, order[new, step]]
            due = rows[context < 0]
            context[due] = self.contexts.route(seen[due])[0]
            known_from[due[context[due] >= 0]] = step + 1
            if (context >= 0).all():
                break
        for c in np.unique(context[context >= 0]):
            mine = np.flatnonzero(context == c)
            own = self._of_context(c, values[mine], order[mine])
            later = np.arange(order.shape[1] + 1)[:, None] >= known_from[mine]
            evidence[:, :, mine] = np.where(later[None, :, :, None], own, evidence[:, :, mine])
        return evidence

    def _of_context(self, c: int, values: Floats, order: Array) -> Floats:
        model = self.models[1 + c]
        evidence = model.evidence(values, order)
        # The class frequencies of the context are evidence too.
        evidence[0] += np.log(np.maximum(model.prior, _RARE)) - np.log(np.maximum(self.prior, _RARE))
        return evidence

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown."""
        return posterior_of(self.evidence(values)[:, -1], self.prior, self.evidence_weight)


def find_contexts(values: Floats, codes: Array, y: Array, n_classes: int, sizes: Array) -> Contexts | None:
    """Return the contexts of these rows, None if there is only one.

    Parameters
    ----------
    values : ndarray of shape (n_rows, K)
        NaN where missing.
    codes : ndarray of shape (n_rows, K), int
        Bins of the values; -1 where missing.
    y : ndarray of shape (n_rows,), int
    n_classes : int
    sizes : ndarray of shape (K,), int
        Number of categories of each column; 0 for numbers.
    """
    n_levels = np.maximum(codes.max(axis=0, initial=0) + 1, 2)
    halves = np.where(codes < 0, -1, 2 * codes >= n_levels).astype(np.int64)
    rng = np.random.default_rng(0)
    splits: list[tuple[int, float, bool]] = []
    children: list[list[int]] = []
    # The rows of each part, and the split and side that lead to it.
    parts: list[tuple[Ints, int, int]] = [(np.arange(len(y)), -1, 0)]
    leaves = 0
    while parts:
        rows, parent, side = parts.pop(0)
        split = None
        if len(splits) + 1 < _MOST:
            split = _best_split(values[rows], halves[rows], y[rows], n_classes, sizes, rng)
        if split is None:
            if parent >= 0:
                children[parent][side] = -1 - leaves
            leaves += 1
            continue
        if parent >= 0:
            children[parent][side] = len(splits)
        column, cut, is_category = split
        splits.append(split)
        children.append([0, 0])
        value = values[rows, column]
        first = value == cut if is_category else value <= cut
        parts.append((rows[first], len(splits) - 1, 0))
        parts.append((rows[~first & ~np.isnan(value)], len(splits) - 1, 1))
    if not splits:
        return None
    columns, cuts, categories = (np.array(part) for part in zip(*splits, strict=True))
    return Contexts(columns, cuts.astype(np.float64), categories, np.array(children, dtype=np.int64))


def _best_split(
    values: Floats, halves: Array, y: Array, n_classes: int, sizes: Array, rng: Any
) -> tuple[int, float, bool] | None:
    """Return the column, cut and kind of the best split of some rows, None if none is surely better than random."""
    n, K = values.shape
    least = max(_LEAST, 4 * n_classes)
    if n < 2 * least or K < 2:
        return None
    n_bins = max(_CUTS, int(sizes.max(initial=0)))
    gates = np.full((n, K + _RANDOM), -1, dtype=np.int64)
    edges = np.full((K, _CUTS), np.inf)
    share = np.arange(1, _CUTS + 1) / (_CUTS + 1)
    for j in range(K):
        known = ~np.isnan(values[:, j])
        if sizes[j]:
            gates[known, j] = np.minimum(values[known, j], sizes[j] - 1)
        elif known.any():
            edges[j] = np.quantile(values[known, j], share, method="lower")
            gates[known, j] = np.searchsorted(edges[j], values[known, j], side="left")
    for r in range(_RANDOM):
        gates[:, K + r] = np.argsort(rng.random(n)) * (_CUTS + 1) // n
    is_category = np.r_[sizes > 0, np.zeros(_RANDOM, dtype=bool)]
    scores, left = np.empty((K + _RANDOM, n_bins)), np.zeros((K + _RANDOM, n_bins), dtype=np.int64)
    m = np.arange(n + 1.0)
    own = np.r_[np.arange(K), np.full(_RANDOM, -1)]
    _score_cuts(
        gates, own, halves, y, n_classes, is_category, least, m * np.log(np.maximum(m, 1.0)), scores, left
    )
    random, at = scores[K:, :_CUTS], left[K, :_CUTS]
    usable = np.isfinite(random).all(axis=0)
    if not usable.any():
        return None
    random, at = random[:, usable], at[usable]
    mean, sd = random.mean(axis=0), random.std(axis=0, ddof=1)
    nearest = np.abs(left[:K, :, None] - at).argmin(axis=2)
    with np.errstate(invalid="ignore"):
        z = (scores[:K] - mean[nearest]) / np.maximum(sd.mean(), 1e-12)
    z[~np.isfinite(z)] = -np.inf
    j, cut = (int(at) for at in np.unravel_index(int(z.argmax()), z.shape))
    if z[j, cut] < _SURE:
        return None
    return j, float(cut) if sizes[j] else float(edges[j, cut]), bool(sizes[j])
