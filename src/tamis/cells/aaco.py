"""AACO: acquires the subset of features with the lowest cost for the most similar rows, one feature at a time.

Valancius, Lennon, Oliva: Acquisition Conditioned Oracle for Nongreedy Active Feature Acquisition, ICML 2024. The
oracle's next subset of columns minimises the expected loss plus price, given the known values x_o::

    u(x_o) = argmin_u  E[ loss(P(C | x_o, x_u), C) | x_o ] + price(u | o),   u a subset of the unknown columns    (1)

and acquisition stops if u is empty. The expectation is the mean over the nearest training rows in the known columns,
and the minimum is taken over sampled subsets. From the best subset, the column with the lowest loss plus price alone is
acquired; then the subset is chosen again. Unlike with a greedy method, columns that are worth their price only jointly
are acquired.

=========  ==================  ====================================================================
paper      here                meaning
=========  ==================  ====================================================================
k          ``n_neighbors``     rows that the expectation is taken over
O(x_o)     ``_subsets``        sampled subsets of columns, beside each single column
f(x_o)     ``_any_order``      the classifier, from any subset of the values
alpha      ``price_factor_``   factor of the prices: 1, or larger to stay within a mean budget
=========  ==================  ====================================================================

Deviations. The classifier is a discriminant analysis of any columns with a network of pairs
(:mod:`tamis.cells.ensemble`) instead of boosted trees on masked rows, because thousands of subsets and rows must be
evaluated in milliseconds. The loss of a training row is that of a classifier fitted without it. In half of the subsets,
the probability of a column decreases with the rank of its relevance, because uniform subsets of many columns rarely
contain two relevant ones; the paper samples 10,000 uniformly. No feature is acquired unless acquisition reduces the
cost on held-out training rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis._docstrings import fill_docstring
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis._validation.parameters import integer, parameter
from tamis.base import State
from tamis.base.cells import Purchases
from tamis.cells.any_order import AnyOrder
from tamis.cells.binned_classifier import SHARED_DOCS, BinnedClassifier
from tamis.cells.bins import Bins, dense
from tamis.cells.ensemble import Ensemble
from tamis.cells.policy_selection import ROUNDING, is_surely_cheaper, stratified_folds
from tamis.dependence.information import adjusted_mutual_information

# State:
#   _bank      (N, c)     float64  values of the training rows that neighbours are chosen from
#   _bank_y    (N,)       int64    their classes
#   _fold      (N,)       int64    the model of `_folds` that was fitted without the row
#   _bank_origin (N,)     int64    the original row of `fit`
#   _scale     (c,)       float64  factor of the squared difference of two values, or of two different categories
#   _clip      (2, c)     float64  bounds of numbers in a difference
#   _subsets   (b, c)     bool     sampled subsets
#   _folds, _any_order    AnyOrder, of a part of the rows and of all

_FOLDS = 2
# Rows walked to decide whether acquisition reduces the cost: more if that is unclear
_FEW, _WALKED = 100, 300
_LARGEST = 6  # largest number of columns of a sampled subset
_OUTER = 0.005  # quantiles at which numbers are clipped in a difference
_APART = 2.0  # mean squared difference of two random rows in a column
_HALVINGS = 9  # bisection steps for the factor of prices: to within 2 %


@njit(strict=True)
def _extend(
    columns: Array, d: int, x: Array, start: Array, covariance: Array, means: Array, own: Array, at: Array,
    white: Array, centre: Array, evidence: Array,
) -> int:  # fmt: skip
    """Add the evidence of some columns, after the d features already whitened; return the new number of features."""
    for j in columns:
        if j < 0:
            break
        for feature in range(start[j], start[j + 1]):
            at[d] = feature
            for e in range(d + 1):
                total = covariance[feature, at[e]]
                for f in range(e):
                    total -= own[d, f] * own[e, f]
                own[d, e] = np.sqrt(total) if d == e else total / own[e, e]
            for c in range(len(means)):
                total = means[c, feature]
                for f in range(d):
                    total -= own[d, f] * centre[c, f]
                centre[c, d] = total / own[d, d]
            for i in range(len(x)):
                total = x[i, feature]
                for f in range(d):
                    total -= own[d, f] * white[i, f]
                white[i, d] = total / own[d, d]
                for c in range(len(means)):
                    evidence[i, c] += centre[c, d] * (white[i, d] - 0.5 * centre[c, d])
            d += 1
    return d


@njit(strict=True)
def _evidence_of_subsets(
    x: Array, start: Array, known: Array, more: Array, covariance: Array, means: Array, evidence: Array
) -> None:
    """Fill in the evidence of each subset, row and class, from the known columns and the further ones of the subset.

    The known columns are whitened once, since all subsets contain them.
    """
    D, L = covariance.shape[0], len(means)
    own, at = np.empty((D, D)), np.empty(D, np.int64)
    white, centre = np.empty((len(x), D)), np.empty((L, D))
    shared = np.zeros((len(x), L))
    d = _extend(known, 0, x, start, covariance, means, own, at, white, centre, shared)
    for b in range(len(more)):
        evidence[b] = shared
        _extend(more[b], d, x, start, covariance, means, own, at, white, centre, evidence[b])


@njit(strict=True)
def _distances(
    values: Array,
    bank: Array,
    scale: Array,
    categorical: Array,
    low: Array,
    high: Array,
    apart: float,
    distances: Array,
) -> None:
    """Fill in the squared distance of each row to each row of the bank, over the known columns of the row."""
    for i in range(len(values)):
        for n in range(len(bank)):
            total = 0.0
            for j in range(values.shape[1]):
                if np.isnan(values[i, j]):
                    continue
                if np.isnan(bank[n, j]):
                    total += apart
                elif categorical[j]:
                    total += scale[j] * (values[i, j] != bank[n, j])
                else:
                    a = min(max(values[i, j], low[j]), high[j])
                    b = min(max(bank[n, j], low[j]), high[j])
                    total += scale[j] * (a - b) * (a - b)
            distances[i, n] = total


@fill_docstring(SHARED_DOCS)
@dataclass(eq=False, repr=False, kw_only=True)
class AACO(BinnedClassifier):
    """Acquires the subset of features with the lowest expected cost for the most similar training rows.

    Parameters
    ----------
    %(costs)s
    %(row_budgets)s
    spend : {"worth", "all"}, default="worth"
        "all": a row stops only when no value is within `budget`, or after `max_steps` values.
    n_neighbors : int, default=20
        k: number of rows over which the expectation is taken, at least 1.
    n_subsets : int, default=200
        Number of sampled subsets in addition to single columns, at least 0.
    n_stored : int, default=500
        Largest number of training rows from which neighbours are chosen, at least 1; their losses with each subset are
        evaluated.
    n_bins : int, default=4
        Number of bins of each column in the discriminant analysis, at least 2.
    max_features : int, default=40
        Largest number of columns that can be acquired, at most 64: those most relevant to the class.
    max_steps : int, default=30
        The largest number of features acquired per row.
    %(categorical)s
    random_state : int, optional
        Seed of the stored rows and of the subsets.

    Attributes
    ----------
    %(attributes)s
    pays_ : bool
        Whether acquisition reduces the cost on training rows; otherwise no feature is acquired.
    price_factor_ : float
        alpha: 1 without `mean_budget`.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If a value is infinite.

    Notes
    -----
    A step takes O(n_subsets n_stored D) for D features of the acquired columns, shared by rows with the same known
    columns. Memory: O(n_subsets n_stored n_classes).

    References
    ----------
    Valancius, Lennon, Oliva (2024). Acquisition Conditioned Oracle for Nongreedy Active Feature Acquisition. ICML.

    Examples
    --------
    Column 0 alone is uninformative, but indicates which other column contains the class. A greedy method would not
    acquire it first.

    >>> import numpy as np
    >>> from tamis import AACO
    >>> rng = np.random.default_rng(0)
    >>> y, which = rng.integers(0, 2, (2, 600))
    >>> X = rng.normal(size=(600, 3))
    >>> X[:, 0] = which
    >>> X[:, 1:] += 3 * (2 * y[:, None] - 1) * (which[:, None] == [0, 1])
    >>> model = AACO(cost=0.02, random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.85), bool(model.n_features_used_.mean() < 2.9)
    (True, True)
    """

    _shapes = """
        _bank (n, c) float in [-inf, inf] or nan  _bank_y (n) in [0, k)  _fold (n) in [0, len(self._folds))
        _bank_origin (n) in [0, 2**62)
        _scale (c) float in [0, inf)  _clip (2, c) float in [-inf, inf]  _subsets (b, c) bool  _folds[] (its own)
        price_factor_ float in [0, inf)
    """

    n_neighbors: int = parameter(integer("[1, inf)"), default=20)
    n_subsets: int = parameter(integer("[0, 100000]"), default=200)
    n_stored: int = parameter(integer("[1, 100000]"), default=500)
    max_features: int = parameter(integer("[1, 64]"), default=40)
    max_steps: int = parameter(integer("[1, inf)"), default=30)

    _numbers_count = True

    # -- fitting -------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array) -> None:
        rng = np.random.default_rng(self.random_state)
        bins = Bins.quantile(X, self.n_bins).with_categories(self._sizes)
        tables = bins.tables(X, y, len(self.classes_))
        vary = np.flatnonzero(np.count_nonzero(tables.sum(axis=2), axis=1) > 1)
        relevance = (
            adjusted_mutual_information(tables[vary]) if len(self.classes_) > 1 else np.zeros(len(vary))
        )
        self.candidates_ = vary[np.argsort(-relevance, kind="stable")][: self.max_features]
        self._bins: Bins = bins.take(self.candidates_)
        self._tariff = self._whole_tariff().take(self.candidates_)
        values = dense(X[:, self.candidates_])
        everything = np.arange(len(y))
        self._any_order = self._fit_network(values, y, everything)
        fold = np.maximum(stratified_folds(y, _FOLDS, self._origin), 0)
        if len(np.unique(fold)) == _FOLDS:
            self._folds = [self._fit_network(values, y, np.flatnonzero(fold != f)) for f in range(_FOLDS)]
        else:  # too few rows
            self._folds, fold = [self._any_order], np.zeros(len(y), dtype=np.int64)
        rows = everything
        if len(rows) > self.n_stored:
            rows = np.sort(rng.choice(rows, self.n_stored, replace=False))
        self._bank, self._bank_y, self._fold = values[rows], y[rows], fold[rows]
        self._bank_origin = rows if self._origin is None else self._origin[rows]
        self._scale, self._clip = self._scales(values)
        self._subsets = self._sampled_subsets(rng)
        self.price_factor_, self.pays_ = 1.0, True
        self._fit_policy(np.arange(len(rows))[:_WALKED] if len(rows) > _WALKED else np.arange(len(rows)))

    def _fit_network(self, values: Floats, y: Array, rows: Array) -> AnyOrder:
        origin = self._origin_of(rows)
        return self._fit_any_order("network", values[rows], y[rows], self.candidates_, origin)

    def _scales(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the factors that make the mean squared difference of random rows 2 per column, and the bounds."""
        K, sizes = values.shape[1], self._sizes[self.candidates_]
        scale, clip = np.zeros(K), np.zeros((2, K))
        for j in range(K):
            known = values[~np.isnan(values[:, j]), j]
            if sizes[j]:
                share = np.unique(known, return_counts=True)[1] / max(len(known), 1)
                mean = 1.0 - float(share @ share)
            else:
                clip[:, j] = np.quantile(known, [_OUTER, 1.0 - _OUTER])
                mean = _APART * float(np.clip(known, *clip[:, j]).var())
            scale[j] = _APART / mean if mean > 1e-300 else 0.0
        return scale, clip

    def _sampled_subsets(self, rng: np.random.Generator) -> Mask:
        """Return distinct subsets of at least two columns; half of them favour relevant columns."""
        K = len(self.candidates_)
        values = np.zeros((self.n_subsets if K > 1 else 0, K), dtype=bool)
        weight = 1.0 / (1.0 + np.arange(K))
        for b in range(len(values)):
            size = int(rng.integers(2, min(K, _LARGEST) + 1))
            share = weight / weight.sum() if b % 2 else None
            values[b, rng.choice(K, size, replace=False, p=share)] = True
        return np.unique(values, axis=0)[::-1]

    def _fit_policy(self, rows: Ints) -> None:
        """Choose the factor of the prices, and whether to acquire at all, on walks of held-out training rows."""
        if not len(self.candidates_) or len(self.classes_) == 1:
            self.pays_ = False
            return
        if self.mean_budget is not None:
            self.price_factor_ = self._factor_within(rows, float(self.mean_budget))
        if self.spend == "all":
            return
        if self.mean_budget is None:
            few = rows[:_FEW] if len(rows) > _FEW else rows[:0]
            nothing, spent, wrong = self._walk_training_rows(few)
            if is_surely_cheaper(wrong + spent, nothing, self._goal.worst, n_tried=3):
                return
        nothing, spent, wrong = self._walk_training_rows(rows)
        # With a budget, only losses count; otherwise prices do as well.
        paid = 0.0 if self.mean_budget is not None else spent
        self.pays_ = is_surely_cheaper(wrong + paid, nothing, self._goal.worst)
        if self.mean_budget is not None and spent.mean() > self.mean_budget * ROUNDING:
            self.pays_ = False

    def _factor_within(self, rows: Ints, mean_budget: float) -> float:
        """Return the smallest factor of the prices with which walks stay within a mean budget, by bisection."""
        price = self._tariff.following(np.zeros((1, len(self.candidates_)), dtype=bool))[0]
        # At this factor, no feature is worth its price.
        unit = float(self._Q.max()) / max(float(price.max()), 1e-100)
        low, high = unit * 2.0**-16, unit
        for _ in range(_HALVINGS):
            self.price_factor_ = float(np.sqrt(low * high))
            if self._walk_training_rows(rows)[1].mean() <= mean_budget * ROUNDING:
                high = self.price_factor_
            else:
                low = self.price_factor_
        return high

    def _walk_training_rows(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """Return the loss of each training row without any value, its acquisition cost, and its loss afterwards."""
        state, values = self._start(len(rows)), self._bank[rows]
        codes, alive = self._codes(values, np.arange(len(self.candidates_))), np.arange(len(rows))
        before = self._goal.losses(state.posterior, self._bank_y[rows])
        while len(alive):
            part = state.take(alive)
            position = self._choose(part, rows[alive])
            alive, position = alive[position >= 0], position[position >= 0]
            part = state.take(alive)
            code = codes[alive, position]
            part.spent += np.where(code >= 0, self._price(part, position), 0.0)
            part.record(position, code, values[alive, position])
            state.put(alive, part)
        for f, model in enumerate(self._folds):
            mine = self._fold[rows] == f
            state.posterior[mine] = model.posterior(state.numbers[mine])
        return before, state.spent, self._goal.losses(state.posterior, self._bank_y[rows])

    # -- acquisition -----------------------------------------------------------------------------------------

    def _walk(
        self, X: Rows, trace: Purchases | None = None, unavailable: Mask | None = None,
        most_cells: int | None = 1 << 23,
    ) -> State:  # fmt: skip
        # Rows with the same known columns share the losses of the subsets.
        return super()._walk(X, trace, unavailable, most_cells)

    def _next(self, state: State) -> Ints:
        if not self.pays_:
            return np.full(len(state.asked), -1)
        return self._choose(state, None)

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        state.record(position, code, value)
        posterior = self._any_order.posterior(state.numbers)
        state.posterior[:] = np.where((code >= 0)[:, None], posterior, state.posterior)

    def _choose(self, state: State, omitted: Ints | None) -> Ints:
        """Return the next position of each row by (1), -1 to stop; `omitted` rows of the bank are not neighbours."""
        choice = np.full(len(state.asked), -1)
        known, n_asked = state.values >= 0, state.n_asked()
        key = np.concatenate([known, state.asked, state.unavailable, state.without_result], axis=1)
        _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
        for g, at in enumerate(first):
            if state.asked[at].all() or n_asked[at] >= self.max_steps:
                continue
            mine = np.flatnonzero(group.ravel() == g)
            subsets = self._feasible_subsets(state.asked[at])
            whole = np.arange(len(self._bank))
            near = [
                self._neighbors(state.numbers[i : i + 1], None if omitted is None else int(omitted[i]))
                if known[at].any()
                else whole
                for i in mine
            ]
            # The area under the curve is computed over all stored rows.
            rows = (
                whole if self.objective == "auc" or not known[at].any() else np.unique(np.concatenate(near))
            )
            losses = self._subset_losses(known[at], subsets, rows)
            prices = self._tariff.total(state.paid_or_known[at], subsets)
            budget = np.inf if self.budget is None else float(self.budget)
            for i, own in zip(mine, near, strict=True):
                loss = losses[:, np.searchsorted(rows, own)].sum(axis=1) / len(own)
                total = loss + self.price_factor_ * prices
                total[prices > budget * ROUNDING - state.spent[i]] = np.inf
                choice[i] = self._first_of_best(total, subsets)
        return choice

    def _first_of_best(self, total: Floats, subsets: Mask) -> int:
        """Return the best single column of the best subset, -1 if that is the empty one, which comes first."""
        total = total.copy()
        if self.spend == "all":
            total[0] = np.inf
        best = int(np.argmin(total))
        if best == 0 or not np.isfinite(total[best]):
            return -1
        alone = np.full(subsets.shape[1], np.inf)
        single = np.flatnonzero(subsets.sum(axis=1) == 1)
        alone[subsets[single].argmax(axis=1)] = total[single]
        inside = np.flatnonzero(subsets[best])
        return int(inside[np.argmin(alone[inside])])

    def _feasible_subsets(self, asked: Array) -> Mask:
        """Return the empty subset, each column not yet requested, and the sampled subsets of these columns."""
        K = len(asked)
        single = np.eye(K, dtype=bool)[~asked]
        rest = self._subsets & ~asked
        several = rest[rest.sum(axis=1) > 1]
        if len(several) and asked.any():
            several = np.unique(several, axis=0)[::-1]
        return np.concatenate([np.zeros((1, K), dtype=bool), single, several])

    def _neighbors(self, values: Floats, omitted: int | None) -> Ints:
        """Return the rows of the bank nearest in the known values, of which there is at least one."""
        distance = np.empty((1, len(self._bank)))
        sizes = self._bins.sizes > 0
        _distances(values, self._bank, self._scale, sizes, self._clip[0], self._clip[1], _APART, distance)
        if omitted is not None:
            distance[0, self._bank_origin == self._bank_origin[omitted]] = np.inf
        order: Ints = np.argsort(distance[0], kind="stable")
        return order[: self.n_neighbors]

    def _subset_losses(self, known: Mask, subsets: Mask, rows: Ints) -> Floats:
        """Return the loss of rows of the bank given the known columns and each subset, shape (n_subsets, n_rows)."""
        K = len(known)
        rank = np.sort(np.where(subsets, np.arange(K), K), axis=1)[
            :, : max(int(subsets.sum(axis=1).max()), 1)
        ]
        more = np.where(rank == K, -1, rank)
        losses = np.empty((len(subsets), len(rows)))
        for f, model in enumerate(self._folds):
            at = np.flatnonzero(self._fold[rows] == f)
            if len(at):
                posterior = self._subset_posteriors(model, self._bank[rows[at]], known, subsets, more)
                losses[:, at] = self._goal.losses(posterior, self._bank_y[rows[at]])
        return losses

    def _subset_posteriors(
        self, model: AnyOrder, values: Floats, known: Mask, subsets: Mask, more: Array
    ) -> Floats:
        """Return P(class) from the known columns and each subset, shape (n_subsets, n_rows, n_classes).

        In the discriminant analysis, a missing value of a training row is replaced by the mean of its column.
        """
        ensemble, columns = model.model, np.flatnonzero(known)
        assert isinstance(ensemble, Ensemble)
        shape = (len(more), len(values), len(self.classes_))
        kinds = [np.empty(shape) for _ in ensemble._sums]
        for part, evidence in zip(ensemble._sums, kinds, strict=True):
            features = part._features(values)
            _evidence_of_subsets(
                features, part._start, columns, more, part._covariance, part._means, evidence
            )
        path = ensemble._spread.evidence(values)
        # The last entry represents "no column".
        each = np.concatenate([np.diff(path, axis=0), np.zeros((1, *path.shape[1:]))])
        spread = np.zeros(shape)
        for step in (*np.broadcast_to(columns[:, None], (len(columns), len(more))), *more.T):
            spread += each[step]
        kinds += [spread, *(part.subset_evidence(values, subsets | known) for part in ensemble._network)]
        n_known = len(columns) + (more >= 0).sum(axis=1)
        return model.weighted(np.stack(kinds), n_known)
