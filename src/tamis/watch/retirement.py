r"""Which columns of a model can be switched off, with an any-time bound on the loss.

The columns are ordered by the change of the predictions that they explain, per price, on the first quarter of the rows.
The others compare, for increasing numbers of columns switched off, the losses of the predictions with those without
the columns. These are the predictions of the model with the columns set to their typical values; or, without the model,
those of gradient-boosted trees that are fitted to all earlier rows, from time to time, without the columns.

With d_i in [-1, 1] the difference of the losses of row i, D the mean of the means of d_i given the past, and V_n the
sum of the squared differences of d_i from the mean of the earlier ones, for all n at once, with a probability of at
least 1 - alpha (Howard, Ramdas, McAuliffe, Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences,
Annals of Statistics 49(2), 2021, Theorem 4)::

    D <= mean d + u(V_n) / n,     u(v) = sqrt(k1^2 v l + k2^2 c^2 l^2) + k2 c l,     c = 2                     (1)
    l(v) = 1.4 log log(2 max(v, 1)) + log(zeta(1.4) / (alpha log(2)^1.4))

with k1 = (2^(1/4) + 2^(-1/4)) / sqrt(2) and k2 = (sqrt(2) + 1) / 2. The bound assumes nothing about the rows, which may
drift and depend on one another. alpha is divided by the number of candidate sets, so it holds for the one chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from tamis._guard import limited_threads
from tamis._validation.arrays import Array, Floats, Ints, as_array
from tamis._validation.labels import as_column
from tamis._validation.rows import as_rows
from tamis._validation.values import check_choice, check_number, short_repr
from tamis.errors import DataError
from tamis.report.content import Cell, Figure, Names, Section, Table
from tamis.report.result import Result
from tamis.report.text import count, fraction, plural

_MOST_SETS = 12
_FIRST = 200  # rows of the first fit
_MOST_ROWS = 5000  # rows of a fit, and between two fits
_MEASURED = 2000  # rows on which the columns are ordered


def loss_bound(differences: ArrayLike, alpha: float = 0.05) -> Floats:
    """Return the upper bound (1) of the mean difference of losses after each row.

    Parameters
    ----------
    differences : array-like of shape (n_rows,)
        In [-1, 1].
    alpha : float, default=0.05
        Probability that the bound is ever exceeded.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> loss_bound(np.zeros(10_000))[[99, 9999]].round(4)
    array([0.2035, 0.002 ])
    """
    d = as_array("differences", differences).astype(np.float64)
    check_number("alpha", alpha, low=0.0, high=1.0)
    n = np.arange(1, len(d) + 1)
    mean = np.cumsum(d) / n
    v = np.maximum(np.cumsum((d - np.concatenate([[0.0], mean[:-1]])) ** 2), 1.0)
    k1, k2, c = (2**0.25 + 2**-0.25) / math.sqrt(2), (math.sqrt(2) + 1) / 2, 2.0
    log = 1.4 * np.log(np.log(2.0 * v)) + math.log(float(zeta(1.4)) / (alpha * math.log(2.0) ** 1.4))
    log = np.maximum(log, 0.0)
    return np.asarray(mean + (np.sqrt(k1**2 * v * log + (k2 * c * log) ** 2) + k2 * c * log) / n)


@dataclass(frozen=True)
class Retirement(Result):
    """Columns that can be switched off.

    Attributes
    ----------
    columns : list of str
        Those of the largest saving whose bound is at most `most`; empty if there is none.
    candidates : list of dict
        For each set of columns in order of size: columns, saving, loss and bound.
    """

    columns: list[str]
    candidates: list[dict[str, Any]]
    n_columns: int
    n_rows: int
    level: float
    most: float
    is_refit: bool

    @property
    def saving(self) -> float:
        """The sum of the prices of the columns switched off."""
        return float(self._chosen["saving"]) if self.columns else 0.0

    @property
    def bound(self) -> float:
        """The upper bound of the loss, 0 without columns."""
        return float(self._chosen["bound"]) if self.columns else 0.0

    @property
    def _chosen(self) -> dict[str, Any]:
        return next(one for one in self.candidates if one["columns"] == self.columns)

    def verdict(self) -> str:
        """Return how many columns can be switched off, at which loss and saving."""
        if not self.columns:
            return f"No column can be switched off: a loss of at most {self.most:.1%} is not certain for any."
        return (
            f"{len(self.columns):,} of {self.n_columns:,} columns cost at most {100 * self.bound:.2g} points with"
            f" {self.level:.0%}, and save {self.saving:g} per row."
        )

    def about(self) -> str:
        """Return the number of rows and what is compared."""
        how = "a model refitted without them" if self.is_refit else "the model with typical values"
        return f"{plural(self.n_rows, 'row', 'rows')}; the predictions are compared with those of {how}."

    def headline(self) -> list[Figure]:
        """Return the number of columns, the bound and the saving."""
        return [
            Figure("Columns", count(len(self.columns)), f"of {count(self.n_columns)}"),
            Figure("Loss at most", fraction(self.bound), f"with {self.level:.0%}"),
            Figure("Saving", f"{self.saving:g}", "per row"),
        ]

    def sections(self) -> list[Section]:
        """Return the table of the sets of columns."""
        rows: list[list[Cell]] = [
            [count(len(one["columns"])), f"{one['saving']:g}", fraction(one["loss"]), fraction(one["bound"])]
            for one in self.candidates
        ]
        head = [("n", "columns off"), ("n", "saving"), ("n", "loss"), ("n", "at most")]
        chosen: list[list[Cell]] = [[Names([name])] for name in self.columns]
        return [
            Section("sets", "Sets of columns", [Table("By size", head, rows, "", is_main=True)]),
            Section(
                "columns", "Columns to switch off", [Table("By relevance", [("long", "column")], chosen, "")]
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "verdict": self.verdict(), "columns": self.columns, "saving": self.saving, "bound": self.bound,
            "level": self.level, "candidates": self.candidates,
        }  # fmt: skip


def retire(
    X: Any, y: ArrayLike, predictions: ArrayLike, prices: Mapping[str, float] | None = None, model: Any = None, *,
    task: str = "classification", most: float = 0.01, level: float = 0.95, feature_names: Sequence[str] | None = None,
    random_state: int | None = 0,
) -> Retirement:  # fmt: skip
    """Return the columns of the largest total price that can be switched off at a bounded loss.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Logged rows in the order of time: numbers, categories as codes, NaN for missing values.
    y : array-like of shape (n_rows,)
        Labels, or numbers.
    predictions : array-like of shape (n_rows,)
        The logged predictions: labels, or numbers. For two classes, floats are scores of the larger label.
    prices : mapping of str to float, optional
        Price of each column per row; by default 1 each. Columns without a price are free, and stay on.
    model : object with `predict`, optional
        The live model. Without it, the bound is that of a refitted model.
    task : {"classification", "regression"}, default="classification"
    most : float, default=0.01
        Largest acceptable bound of the loss: of accuracy, or of the mean absolute error, in units of that of the mean.
    level : float, default=0.95
        Probability with which the bound holds, after all rows at once.
    feature_names : list of str, optional
        By default the columns of X, or "0", "1", ...
    random_state : int or None, default=0
        Seed of the refitted model.

    Returns
    -------
    Retirement

    Examples
    --------
    The label depends on the first of four columns:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 4))
    >>> y = (X[:, 0] + 0.3 * rng.normal(size=20_000) > 0).astype(int)
    >>> found = retire(X, y, (X[:, 0] > 0).astype(int), {"1": 5.0, "2": 1.0, "3": 0.5}, most=0.02)
    >>> sorted(found.columns), found.saving
    (['1', '2', '3'], 6.5)
    """
    check_choice("task", task, ("classification", "regression"))
    check_number("most", most, low=0.0)
    check_number("level", level, low=0.5, high=1.0 - 1e-9)
    rows, names = as_rows(X)
    rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    n, d = rows.shape
    names = [str(name) for name in (feature_names or names or range(d))]
    target, given = as_column(y, n, "retire"), as_column(predictions, n, "retire")
    if n < 4 * _FIRST:
        raise DataError(f"X must have at least {4 * _FIRST} rows, got {n}: pass a longer log.")
    if unknown := sorted(set(prices or {}) - set(names)):
        raise ValueError(
            f"prices names {short_repr(unknown[0])}, which is not a column of X: rename it, or drop it."
        )
    cost = np.array([1.0 if prices is None else float(prices.get(name, 0.0)) for name in names])
    losses = _Losses(task, target, given)
    first = min(_MEASURED, n // 4)
    order = _order(rows[:first], losses.values[:first], cost)
    sizes = np.unique(np.linspace(1, len(order), min(_MOST_SETS, len(order))).round().astype(int))
    alpha, candidates = (1.0 - level) / max(len(sizes), 1), list[dict[str, Any]]()
    for size in sizes:
        off = np.sort(order[:size])
        predicted = (
            _refitted(rows, target, off, task, random_state) if model is None else _switched(model, rows, off)
        )
        differences = losses.of(predicted)[first:] - losses.of(given)[first:]
        bound = loss_bound(np.clip(differences, -1.0, 1.0), alpha)
        candidates.append(
            {
                "columns": [names[j] for j in off], "saving": float(cost[off].sum()),
                "loss": float(np.nanmean(differences)), "bound": float(bound[-1]),
            }
        )  # fmt: skip
    good = [one for one in candidates if one["bound"] <= most]
    chosen: list[str] = max(good, key=lambda one: one["saving"])["columns"] if good else []
    return Retirement(chosen, candidates, d, n - first, level, most, model is None)


class _Losses:
    """The loss of each prediction: 1 for another label, or the absolute error over that of the mean, at most 1."""

    def __init__(self, task: str, target: Array, given: Array) -> None:
        self.is_number, self.target = task == "regression", target
        self.classes = np.unique(target)
        is_score = not self.is_number and len(self.classes) == 2 and given.dtype.kind == "f"
        self.is_score = is_score and not np.isin(given, self.classes).all()
        self.values = (
            given.astype(np.float64) if self.is_number or self.is_score else given == self.classes[-1]
        )
        self.values = np.asarray(self.values, dtype=np.float64)
        self.scale = 1.0
        if self.is_number:
            self.scale = float(np.abs(target - np.mean(target)).mean()) or 1.0

    def of(self, predictions: Array) -> Floats:
        """Return the losses."""
        if self.is_number:
            return np.minimum(np.abs(self.target - predictions.astype(np.float64)) / self.scale, 1.0)
        if self.is_score and predictions.dtype.kind == "f" and not np.isin(predictions, self.classes).all():
            predictions = self.classes[(predictions > 0.5).astype(int)]
        return np.asarray(predictions != self.target, dtype=np.float64)


def _order(X: Floats, values: Floats, cost: Floats) -> Ints:
    """Return the columns with a price, those that explain least of the predictions per price first."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.inspection import permutation_importance

    with limited_threads(X.size):
        model = HistGradientBoostingRegressor(max_iter=50, random_state=0).fit(X, values)
        found = permutation_importance(model, X[-1000:], values[-1000:], n_repeats=2, random_state=0)
    columns = np.flatnonzero(cost > 0.0)
    return columns[
        np.argsort(np.maximum(found.importances_mean, 0.0)[columns] / cost[columns], kind="stable")
    ]


def _switched(model: Any, X: Floats, off: Ints) -> Array:
    """Return the predictions of a model with columns set to their medians in the first rows."""
    typical = X.copy()
    typical[:, off] = np.nanmedian(X[:_MEASURED, off], axis=0)
    return np.asarray(getattr(model, "predict", model)(typical))


def _refitted(X: Floats, y: Array, off: Ints, task: str, random_state: int | None) -> Array:
    """Return the prediction of each row by a model that was fitted to earlier rows, without columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    kept = np.delete(X, off, axis=1)
    if not kept.shape[1]:
        kept = np.zeros((len(X), 1))
    predicted, at = y.copy(), _FIRST
    while at < len(X):
        stop = min(len(X), at + min(at, _MOST_ROWS))
        rows = slice(max(0, at - _MOST_ROWS), at)
        if len(np.unique(y[rows])) < 2:
            predicted[at:stop] = y[at - 1]
        else:
            model = kind(max_iter=50, early_stopping=False, random_state=random_state)
            with limited_threads(kept[rows].size):
                predicted[at:stop] = model.fit(kept[rows], y[rows]).predict(kept[at:stop])
        at = stop
    return predicted
