"""The base of both incremental importances: groups, the reservoir, the outputs of the model and the estimates.

The estimate for a feature is the mean of its contributions v_1, v_2, ..., weighted by w_i = 2^(-age / half_life). Its
variance is that of a contribution times sum w_i^2 / (sum w_i)^2, which tends to alpha / (2 - alpha) for exponential
smoothing with the rate alpha of the papers. The papers' band follows from Chebyshev's inequality: for independent rows,
the mean deviates from its expectation by more than sqrt(variance / (1 - level)) with a probability of at most 1 - level
(Fumagalli et al. 2023).

The rows of `sums`, of shape (4, g), are sum w, sum w^2, the mean, and the weighted sum of squared deviations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import ndtri

from tamis._atomic import atomically, deliver_signals
from tamis._docstrings import fill_docstring
from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation.arrays import Array, Floats, Ints, Mask, Rows, columns_of
from tamis._validation.labels import as_column, as_target, encode_labels
from tamis._validation.parameters import Kind, check_parameters, integer, number, parameter
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis._validation.values import check_choice, check_number, short_repr
from tamis.base.rows import check_columns
from tamis.errors import DataError
from tamis.importance.predictions import CHANGE, LOSSES, is_numeric, loss, outputs
from tamis.importance.reservoir import draw_donors

# -- faded means of the contributions ----------------------------------------------------------------------


@njit(strict=True)
def add_contributions(features: Array, values: Array, keep: float, sums: Array) -> None:
    """Fade by one row, then add its contributions; the rows of `sums` are sum w, sum w^2, mean and m2."""
    for i in range(features.shape[0]):
        if keep < 1.0:
            for j in range(sums.shape[1]):
                sums[0, j] *= keep
                sums[1, j] *= keep * keep
                sums[3, j] *= keep
        for c in range(features.shape[1]):
            j, v = features[i, c], values[i, c]
            sums[0, j] += 1.0
            sums[1, j] += 1.0
            delta = v - sums[2, j]
            sums[2, j] += delta / sums[0, j]
            sums[3, j] += delta * (v - sums[2, j])


def merged_sums(earlier: Floats, later: Floats, keep: float) -> Floats:
    """Return the sums of two parts of a stream; `keep` is the factor of the earlier weights.

    >>> one = np.array([[2.0], [2.0], [1.0], [0.0]])  # two contributions of 1
    >>> merged_sums(one, np.array([[2.0], [2.0], [3.0], [0.0]]), 1.0)[:, 0]
    array([4., 4., 2., 4.])
    """
    faded = earlier * np.array([[keep], [keep * keep], [1.0], [keep]])
    total = faded[0] + later[0]
    share = np.divide(later[0], total, out=np.zeros_like(total), where=total > 0.0)
    gap = later[2] - faded[2]
    values = faded + later
    values[2] = faded[2] + share * gap
    values[3] += share * faded[0] * gap * gap
    return np.asarray(values)


def means(sums: Floats) -> Floats:
    """Return the mean of each feature; NaN before its first measurement."""
    return np.where(sums[0] > 0.0, sums[2], np.nan)


def variances(sums: Floats) -> Floats:
    """Return the unbiased variance of the contributions; NaN before two were measured."""
    weight, squared, _, m2 = sums
    freedom = weight - squared / np.where(weight > 0.0, weight, 1.0)
    return np.asarray(np.divide(m2, freedom, out=np.full_like(m2, np.nan), where=freedom > 1e-9 * weight))


def bands(sums: Floats, level: float, method: str) -> Floats:
    """Return the lower and upper ends, shape (g, 2).

    >>> sums = np.array([[100.0], [100.0], [0.5], [99.0]])  # 100 contributions of mean 0.5 and variance 1
    >>> bands(sums, 0.95, "normal").round(2)
    array([[0.3, 0.7]])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("method", method, ("chebyshev", "normal"))
    factor = 1.0 / np.sqrt(1.0 - level) if method == "chebyshev" else ndtri(0.5 + level / 2.0)
    weight, squared = sums[:2]
    half = factor * np.sqrt(variances(sums)) * np.sqrt(squared) / np.where(weight > 0.0, weight, 1.0)
    return np.column_stack([means(sums) - half, means(sums) + half])


# -- groups ------------------------------------------------------------------------------------------------


def group_columns(
    groups: Mapping[str, list[Any]] | None, n_columns: int, names: list[str] | None
) -> tuple[Ints, list[Any]]:
    """Return the feature of each column, and the names of the features: the groups, then the other columns.

    Raises
    ------
    ValueError
        If a group is empty, or shares a column with another one.

    Examples
    --------
    >>> group_columns({"colour": ["red", "blue"]}, 3, ["red", "size", "blue"])
    (array([0, 1, 0]), ['colour', 'size'])
    """
    group_of = np.full(n_columns, -1, dtype=np.int64)
    for g, (name, columns) in enumerate((groups or {}).items()):
        members = columns_of(columns, n_columns, names, f"groups[{name!r}]")
        if not len(members) or (group_of[members] >= 0).any():
            raise ValueError(
                f"groups[{name!r}] must be columns that are in no other group, got {short_repr(columns)}."
            )
        group_of[members] = g
    alone, first = np.flatnonzero(group_of < 0), len(groups or {})
    group_of[alone] = np.arange(first, first + len(alone))
    return group_of, [*(groups or {}), *(int(j) if names is None else names[j] for j in alone)]


_MOST_VALUES = 1 << 21  # values of altered rows in memory: 16 MiB

# Descriptions shared by all importances, by their placeholder in a docstring.
_SHARED_DOCS = {
    "groups_and_half_life": """
groups : dict of str to list of int or str, optional
    Columns that are replaced together and treated as one feature, such as the columns of a one-hot encoding.
half_life : float in [0.01, inf] or None, default=1000
    Number of rows after which a row weighs half as much; with None, all rows weigh the same.""",
    "reservoir_and_seed": """
reservoir_size : int, default=100
    Number of rows in the reservoir.
n_neighbours : int, default=5
    Number of nearest rows for conditional sampling.
restart_with_model : bool, default=False
    Whether the estimates are reset when `model_version` changes; otherwise those of the old model fade.
random_state : int or None, default=None
    Seed of all draws.""",
}


_GROUPS = Kind("a dict of lists of columns", lambda value: isinstance(value, Mapping))
_SEED = Kind("an integer from 0 to 2**32 - 1", integer("[0, 4294967295]").accepts)


class Plan(NamedTuple):
    """The features to measure in each row, and the evaluations of the model that they require."""

    features: Ints  # (n, k)
    replaced: Mask  # (n, e, j): the columns that an evaluation replaces
    steps: Ints  # (n, k): number of features added before, for SAGE


@dataclass(repr=False, eq=False, kw_only=True)
class IncrementalImportance(ThreadSafe, ABC):
    """An importance that is estimated from altered rows; a subclass plans them and takes differences of losses."""

    # sums: weight, squared weight, mean and sum of squared deviations of the contributions of each feature.
    _shapes = (
        "_store? (r, j) float  _group_of? (j) int64 in [0, g)  _sums (4, g) float in (-inf, inf)"
        "  _sums[:2] float in [0, inf)  _sums[3:] float in [0, inf)  _n_rows in [0, inf)"
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fill_docstring(_SHARED_DOCS)(cls)

    _shares_donors = False  # whether the evaluations of a row replace values by those of the same rows

    loss: str = parameter(*LOSSES, default="auto")
    groups: Mapping[str, list[Any]] | None = parameter(None, _GROUPS, default=None)
    half_life: float | None = parameter(number("[0.01, inf]"), None, default=1000)
    max_calls_per_row: int | None = parameter(integer("[2, inf)"), None, default=3)
    sampling: str = parameter("marginal", "conditional", default="marginal")
    n_samples: int = parameter(integer("[1, inf)"), default=1)
    reservoir_size: int = parameter(integer("[1, inf)"), default=100)
    n_neighbours: int = parameter(integer("[1, inf)"), default=5)
    restart_with_model: bool = parameter(True, False, default=False)
    random_state: int | None = parameter(_SEED, None, default=None)

    def __post_init__(self) -> None:
        check_parameters(self)
        self._clear()

    def _clear(self) -> None:
        self._rng = np.random.default_rng(self.random_state)
        self._store: Floats | None = None
        self._group_of: Ints | None = None
        self._names: list[str] | None = None
        self._feature_names: list[Any] = []
        self._classes: Array = np.empty(0, dtype=np.int64)
        self._n_rows = 0
        self._measure = ""
        self._version: int | str | None = None
        self._version_start = 0
        self._restart(0)

    def _restart(self, n_features: int) -> None:
        """Drop the estimates, but not the reservoir."""
        self._sums = np.zeros((4, n_features))

    @abstractmethod
    def _n_evaluations(self, n_features: int) -> int:
        """Return the number of evaluations of altered rows per row, before `n_samples`."""

    @abstractmethod
    def _n_draws(self, n_features: int) -> int:
        """Return the number of random numbers per row that `_plan` needs."""

    @abstractmethod
    def _plan(self, u: Floats) -> Plan:
        """Return the features to measure, drawn with numbers in [0, 1) of shape (n, n_draws)."""

    @abstractmethod
    def _contributions(self, plan: Plan, base: Floats, altered: Floats, y: Array) -> Floats:
        """Return the contributions, shape (n, k), from outputs of shape (n, c) and (n, e, n_samples, c)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={self._n_rows}, n_features={self._sums.shape[1]})"

    # -- updating ------------------------------------------------------------------------------------------

    def update(
        self, model: Any, X: Any, y: ArrayLike | None = None, *, model_version: int | str | None = None
    ) -> None:
        """Add labelled rows. If it raises, the object is unchanged.

        Parameters
        ----------
        model : object
            The model to explain, fitted: with `predict_proba`, `decision_function` or `predict`, a River model, or
            a function that returns probabilities or numbers for an array of shape (n_rows, n_features). It is not
            stored and may differ between calls.
        X : array-like, frame or CSR matrix of shape (n_rows, n_features)
            Missing values are passed on to the model.
        y : array-like of shape (n_rows,)
            Labels, or the targets of a regression. The columns that a function returns are the labels 0, 1, ...
            Not needed with ``loss="change"``.
        model_version : int or str, optional
            If it differs from the version before, `version_` and `version_start_` change, and the estimates are
            reset with ``restart_with_model=True``.

        Raises
        ------
        DataError
            If the rows, the labels or the model's predictions are invalid.
        ValueError
            If a parameter is invalid.
        """
        if not has_rows(X):
            return
        check_parameters(self)
        rows, names = as_rows(X)
        reject_nonfinite(rows, names, allow_nan=True)
        n = rows.shape[0]
        labels = np.zeros(n) if self.loss == CHANGE else as_column(y, n, type(self).__name__)
        if model_version is not None and (
            not isinstance(model_version, int | str) or isinstance(model_version, bool)
        ):
            raise ValueError(f"model_version must be an integer or text, got {short_repr(model_version)}.")
        if self._group_of is None:
            group_columns(self.groups, rows.shape[1], names)  # raises if they are invalid
        else:
            check_columns(type(self).__name__, rows, names, len(self._group_of), self._names)
        atomically(self, self._update, model, rows, names, labels, model_version, in_parts=True)

    def _update(
        self, model: Any, rows: Rows, names: list[str] | None, y: Array, version: int | str | None
    ) -> None:
        if self._group_of is None:
            self._group_of, self._feature_names = group_columns(self.groups, rows.shape[1], names)
            self._names = names
            self._restart(len(self._feature_names))
        if version is not None and version != self._version:
            if self.restart_with_model and self._version is not None:
                self._restart(self._sums.shape[1])
            self._version, self._version_start = version, self._n_rows
        calls = 1 + self._n_evaluations(self._sums.shape[1]) * self.n_samples
        if self.max_calls_per_row is not None and calls > self.max_calls_per_row:
            raise ValueError(
                f"max_calls_per_row={self.max_calls_per_row} is too small: pass at least {calls}, or fewer n_samples."
            )
        step = max(1, _MOST_VALUES // (calls * rows.shape[1]))
        for start in range(0, len(y), step):
            deliver_signals()
            part = rows[start : start + step]
            dense = part.toarray() if sp.issparse(part) else part
            self._add_rows(model, np.asarray(dense, dtype=np.float64), y[start : start + step])

    def _add_rows(self, model: Any, X: Floats, y: Array) -> None:
        self._n_rows += len(X)
        if self._store is None:  # no rows to draw replacements from yet
            self._store, X, y = X[:1].copy(), X[1:], y[1:]
            if not len(X):
                return
        # All numbers of a row are drawn together, so that a batch draws the same numbers as its rows one at a time.
        n_features = self._sums.shape[1]
        first = self._n_draws(n_features)
        n_sets = self._n_evaluations(n_features)
        drawn = 1 if self._shares_donors else n_sets
        u = self._rng.random((len(X), first + drawn * self.n_samples + 1))
        plan = self._plan(u[:, :first])
        u_donor = np.tile(u[:, first:-1], (1, n_sets // drawn))
        altered = self._replace_features(X, plan.replaced, u_donor, u[:, -1].copy())
        base, others, codes, measure = self._outputs(model, X, altered, y)
        self._measure = measure
        values = self._contributions(plan, base, others, codes)
        add_contributions(plan.features, values, self._keep, self._sums)

    @property
    def _keep(self) -> float:
        return 1.0 if self.half_life is None else float(0.5 ** (1.0 / self.half_life))

    def _replace_features(self, X: Floats, replaced: Mask, u_donor: Floats, u_slot: Floats) -> Floats:
        """Return the rows with replaced columns, shape (n, e * n_samples, j), and store the rows."""
        replaced = np.repeat(replaced, self.n_samples, axis=1)
        n, e, _ = replaced.shape
        assert self._store is not None
        rows = np.concatenate([self._store, X])
        stored, donors = np.zeros(self.reservoir_size, np.int64), np.zeros((n, e), np.int64)
        nearest = self.n_neighbours if self.sampling == "conditional" else 0
        filled = draw_donors(
            rows, len(self._store), self.reservoir_size, nearest, replaced, u_donor, u_slot, stored, donors
        )  # fmt: skip
        self._store = rows[stored[:filled]]
        return np.where(replaced, rows[donors], X[:, None, :])

    def _outputs(self, model: Any, X: Floats, altered: Floats, y: Array) -> tuple[Floats, Floats, Array, str]:
        """Return the outputs for the rows and the altered rows, by a single call of the model, and the coded target."""
        n, e, j = altered.shape
        numeric = is_numeric(self.loss, model)
        every = np.concatenate([X, altered.reshape(-1, j)])
        is_change = self.loss == CHANGE
        values, labels = outputs(model, every, self._names, numeric=numeric, any_width=is_change)
        if is_change:
            # y is unused; an unseen class of a River model would shift the columns.
            values, codes = (
                (values, y) if labels is None else self._by_class(values, labels, labels[:1].repeat(n))
            )
        elif labels is None:
            codes = as_target(y)
        else:
            values, codes = self._by_class(values, labels, y)
        measure = self.loss if self.loss != "auto" else "squared" if numeric else "log"
        shape = (n, e // self.n_samples, self.n_samples, values.shape[1])
        return values[:n], values[n:].reshape(shape), codes, measure

    def _by_class(self, probabilities: Floats, labels: Array, y: Array) -> tuple[Floats, Array]:
        """Return the probabilities in the order of the classes seen so far, and the codes of the labels."""
        columns, classes = encode_labels(labels, self._classes)
        codes, every = encode_labels(y, classes)
        if len(every) > len(classes) and np.array_equal(labels, np.arange(len(labels))):
            unknown = every[len(classes) :].tolist()
            if any(isinstance(label, str) for label in unknown):
                raise DataError(
                    f"y contains {unknown[0]!r}, but the classes of the model are 0 to {len(labels) - 1}: pass labels"
                    " as the model predicts them."
                )
        self._classes = every
        whole = np.zeros((len(probabilities), len(every)))
        whole[:, columns] = probabilities
        return whole, codes

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def n_rows_(self) -> int:
        """Number of rows so far."""
        return self._n_rows

    @property
    def feature_names_(self) -> list[Any]:
        """Names of the features: the groups, then the other columns (their indices, if X has no names)."""
        return list(self._feature_names)

    @property
    def importances_(self) -> Floats:
        """Mean contribution of each feature, shape (n_features,), in units of the loss; NaN before measurements."""
        return means(self._sums)

    @property
    def variances_(self) -> Floats:
        """Variance of the contributions of single rows, shape (n_features,); NaN before two were measured."""
        return variances(self._sums)

    @property
    def version_(self) -> int | str | None:
        """The last `model_version`."""
        return self._version

    @property
    def version_start_(self) -> int:
        """Number of rows before the first one of the current `model_version`."""
        return self._version_start

    def bands(self, level: float = 0.95, *, method: str = "chebyshev") -> Floats:
        """Return the lower and upper end of the confidence band of each importance.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
        method : {"chebyshev", "normal"}, default="chebyshev"
            The bound of the paper, valid for contributions of any distribution with finite variance, or the band of a
            normal distribution, which is 2.3 times narrower. The latter assumes independent draws from the reservoir:
            its coverage was 81 to 94 % at the 95 % level (benchmarks/bench_importance.py).

        Returns
        -------
        ndarray of shape (n_features, 2)
            NaN before two measurements. The bands assume independent rows.

        Raises
        ------
        ValueError
            If an argument is invalid.
        """
        return bands(self._sums, level, method)

    def merge(self, other: Self, when: str = "after") -> Self:
        """Add the estimates of another part of the stream, which explained the same model; `other` is unchanged.

        Parameters
        ----------
        other : object of the same class
            Must have the same parameters (except `random_state`) and columns.
        when : {"after", "together"}, default="after"
            Whether the rows of `other` came after these rows, which fade accordingly, or at the same time.

        Returns
        -------
        self
            Means and variances are those of all contributions. The reservoir contains rows of both parts with the
            probabilities that it would have after all rows.

        Raises
        ------
        ValueError
            If the two cannot be merged; both are unchanged.
        """
        check_choice("when", when, ("after", "together"))
        if type(self) is not type(other) or not self._is_part_like(other):
            raise ValueError(
                f"Cannot merge a {type(other).__name__} with other parameters or columns into a {type(self).__name__}:"
                " pass parts of one stream."
            )
        if other._group_of is not None and other is not self:
            atomically(self, self._merge, other, when, in_parts=True)
        return self

    def _is_part_like(self, other: Self) -> bool:
        """Return whether the parameters and the columns are the same."""
        mine, theirs = (
            {k: v for k, v in vars(one).items() if not k.startswith("_") and k != "random_state"}
            for one in (self, other)
        )
        is_new = self._group_of is None or other._group_of is None
        return mine == theirs and (is_new or self._feature_names == other._feature_names)

    def _merge(self, other: Self, when: str) -> None:
        if self._group_of is None:
            self._group_of = other._group_of
            self._feature_names = other._feature_names
            self._names = other._names
            self._restart(self._sums.shape[1] or other._sums.shape[1])
        keep = self._keep**other._n_rows if when == "after" else 1.0
        self._merge_estimates(other, keep)
        if self._store is None or other._store is None:
            self._store = other._store if self._store is None else self._store
        else:
            share = other._n_rows / (self._n_rows + other._n_rows)
            if when == "after":
                share = 1.0 - (1.0 - 1.0 / self.reservoir_size) ** other._n_rows
            self._store = self._merged_store(self._store, other._store, share)
        if when == "after" and other._version is not None and other._version != self._version:
            self._version, self._version_start = other._version, self._n_rows + other._version_start
        self._n_rows += other._n_rows
        self._measure = self._measure or other._measure
        self._classes = (
            encode_labels(other._classes, self._classes)[1] if len(other._classes) else self._classes
        )

    def _merge_estimates(self, other: Self, keep: float) -> None:
        self._sums = merged_sums(self._sums, other._sums, keep)

    def _merged_store(self, mine: Floats, theirs: Floats, share: float) -> Floats:
        rows = np.concatenate([mine, theirs])
        if len(rows) <= self.reservoir_size:
            return rows
        n = int(
            np.clip(
                self._rng.binomial(self.reservoir_size, share), self.reservoir_size - len(mine), len(theirs)
            )
        )
        kept = [
            self._rng.permutation(len(part))[:k] for part, k in ((mine, self.reservoir_size - n), (theirs, n))
        ]
        return np.concatenate([mine[kept[0]], theirs[kept[1]]])

    def reset(self) -> None:
        """Return to the state before the first row."""
        self._clear()

    def _losses(self, values: Floats, y: Array) -> Floats:
        return loss(self._measure, values, y)
