"""The numbers of a report on acquired values: accuracy or squared error against cost, and with missing values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import r2_score

from tamis._guard import limited_threads
from tamis._validation import Array, Floats, Ints, Mask
from tamis.base import CellClassifier, PriceList
from tamis.base.numeric_target import NumericTarget
from tamis.cells.policy_selection import ranking_losses, stratified_folds
from tamis.summaries.paired_losses import PairedLosses

if TYPE_CHECKING:
    from tamis.cells import FixedSubset

_FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
_COUNTS = (1, 2, 3, 5, 8, 12, 20)
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_Z = 1.96  # standard errors of a 95 % confidence interval
_RESAMPLES = 200  # bootstrap samples for the confidence interval of the AUC
_DRAWS = 3  # random feature sets that are averaged
_REFITTED, _BESIDE = 0.4, 0.6  # progress after the first two parts
_FORWARD_ROWS, _FORWARD_STEPS, _FORWARD_POOL = 1_500, 12, 30  # of the forward selection
_WIDE = 200  # maximum number of features for the models of all features


@dataclass(frozen=True, eq=False)
class Estimates:
    """A measure at each point of a curve.

    Attributes
    ----------
    value : ndarray of shape (n_points,)
    band : ndarray of shape (2, n_points)
        95 % confidence interval.
    """

    value: Floats
    band: Floats


@dataclass(frozen=True, eq=False)
class Curve:
    """A way of acquiring values, and its results.

    Attributes
    ----------
    name : str
    cost, acquired : ndarray of shape (n_points,)
        Mean price paid per row, and mean number of values.
    measures : dict of str to Estimates
        For classes, "accuracy" and "auc", the one-vs-rest area under the ROC curve, weighted by class frequency; for
        numeric targets "error", the squared error as a share of the variance.
    """

    name: str
    cost: Floats
    acquired: Floats
    measures: dict[str, Estimates]

    @classmethod
    def of_points(cls, name: str, points: list[tuple[float, float, Floats]], *, is_number: bool) -> Curve:
        """Return the curve through points of (cost, number of values, scores)."""
        names = ("error",) if is_number else ("accuracy", "auc")
        table = np.array([(cost, n, *values) for cost, n, values in points], dtype=np.float64)
        cost, n, *rest = table.reshape(len(points), 2 + 3 * len(names)).T
        values = np.reshape(rest, (len(names), 3, len(points)))
        return cls(
            name, cost, n, {k: Estimates(own[0], own[1:]) for k, own in zip(names, values, strict=True)}
        )


def error_scores(losses: Floats) -> Floats:
    """Return the mean squared error and its 95 % confidence interval, shape (3,).

    >>> error_scores(np.array([0.0, 2.0] * 50)).round(2)
    array([1. , 0.8, 1.2])
    """
    mean, half = losses.mean(), _Z * losses.std() / np.sqrt(len(losses))
    return np.array([mean, max(mean - half, 0.0), mean + half])


def scores(posterior: Floats, label: Any, y: Any, classes: Any) -> Floats:
    """Return the accuracy and its interval, then the area under the ROC curve and its interval, shape (6,).

    >>> posterior = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])
    >>> scores(posterior, [0, 1, 1, 1], np.array([0, 1, 0, 1]), np.array([0, 1])).round(2)
    array([0.75, 0.3 , 0.95, 0.75, 0.  , 1.  ])
    """
    y, n = np.asarray(y), len(y)
    share, z2 = float(np.mean(np.asarray(label) == y)), _Z**2 / n
    half = _Z * np.sqrt(share * (1.0 - share) / n + z2 / (4 * n))
    low, high = ((share + 0.5 * z2 + sign * half) / (1.0 + z2) for sign in (-1, 1))
    known = np.isin(y, classes)
    codes, posterior = np.searchsorted(classes, y[known]), posterior[known]
    if len(np.unique(codes)) < 2:
        return np.array([share, low, high, np.nan, np.nan, np.nan])
    rng, drawn = np.random.default_rng(0), []
    for _ in range(_RESAMPLES):
        rows = rng.integers(0, len(codes), len(codes))
        if len(np.unique(codes[rows])) > 1:
            drawn.append(1.0 - ranking_losses(posterior[rows], codes[rows]).mean())
    auc = 1.0 - float(ranking_losses(posterior, codes).mean())
    return np.array([share, low, high, auc, *np.quantile(drawn, [0.025, 0.975])])


def cost_curves(
    model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any,
    on_progress: Callable[[float, str], None] | None = None,
) -> list[Curve]:  # fmt: skip
    """Return the measures against mean cost for the model, fixed and random feature sets, and all features.

    Parameters
    ----------
    model : CellClassifier
        Fitted to `X` and `y`; copies of it are fitted at a tenth to ten times its prices.
    X, y : training rows and labels
    X_held, y_held : held-out rows and labels
    on_progress : callable, optional
        Called with the completed fraction and the name of the next step.

    Returns
    -------
    list of Curve
        The model; :class:`~tamis.cells.FixedSubset`, which acquires the same values for every row; gradient boosting on
        random features (mean of three draws); logistic (for a numeric target: linear) regression and, up to 200
        features, gradient boosting on all features, one point each.
    """
    rows, held = _sides(model, X, y, X_held)
    tell, is_number = on_progress or (lambda share, what: None), model._is_regression
    items = [_of_model(model, X, y, X_held, y_held, tell)]
    tell(_REFITTED, "the same values for every row")
    counts = [k for k in _COUNTS if k <= min(rows.shape[1], max(len(model.candidates_), 1))]
    fixed = [_point(fixed_subset(model, X, y, k), X_held, y_held) for k in counts]
    items.append(Curve.of_points("same values for every row", fixed, is_number=is_number))
    y, y_held = np.asarray(y), np.asarray(y_held)
    rng = np.random.default_rng(0)
    drawn = [
        [rng.choice(rows.shape[1], min(k, rows.shape[1]), replace=False) for _ in range(_DRAWS)]
        for k in counts
    ]
    boosting, points = _Boosting(model, rows, y, held, y_held), []
    for done, sets in enumerate(drawn):
        tell(_BESIDE + (1 - _BESIDE) * done / len(drawn), "gradient boosting on random values")
        mean = np.mean([boosting.scores(columns) for columns in sets], axis=0)
        known = np.zeros((len(sets), rows.shape[1]), dtype=bool)
        np.put_along_axis(known, np.array(sets), True, axis=1)
        points.append((float(_total_prices(model, known).mean()), float(len(sets[0])), mean))
    items.append(Curve.of_points("random values", points, is_number=is_number))
    return [
        *items,
        *_anchors(boosting, float(_total_prices(model, np.ones((1, rows.shape[1]), dtype=bool))[0])),
    ]


def method_name(model: CellClassifier) -> str:
    """Return the name of the method, with "calibrated" if not the method itself decides."""
    own = type(model).__name__
    return own if getattr(model, "decided_by_", own) == own else f"{own}, calibrated"


def completed(model: CellClassifier, X: Any, y: Any, *, encoded: bool = False) -> Any:
    """Return rows as if all values were available, if the class of the model depends on which were recorded.

    With `encoded`, categories are codes. The rows are unchanged if the class does not depend on what was recorded, or
    this is evidence.
    """
    from tamis.base.missingness import complete_rows

    rows = model._categories.encode(X)[0] if encoded or model.missingness_ is not None else X
    if model.missingness_ is None or model.missingness == "informative" or sp.issparse(rows) or not len(y):
        return rows if encoded else X
    codes = np.unique(y, return_inverse=True)[1] if model._target is None else model._target.codes(y)
    rows = complete_rows(rows, codes, model._sizes, None, model.random_state or 0)[0]
    return rows if encoded else model._categories.decode(rows)


def _sides(model: CellClassifier, X: Any, y: Any, X_held: Any) -> tuple[Any, Any]:
    """Return encoded rows; the training rows completed as those that the model was fitted to."""
    rows, held = completed(model, X, y, encoded=True), model._categories.encode(X_held)[0]
    return (sp.csr_array(rows), sp.csr_array(held)) if sp.issparse(rows) else (rows, held)


def _scaled_cost(model: CellClassifier, factor: float) -> Any:
    """Return the `cost` of the model times a factor."""
    return model.cost.scaled(factor) if isinstance(model.cost, PriceList) else factor * model._own_costs()


def _total_prices(model: CellClassifier, known: Mask) -> Floats:
    """Return the total price of the known features of each row, shape (n_rows,)."""
    return model._whole_tariff().total(np.zeros(model.n_features_in_, dtype=bool), known)


def fixed_subset(model: CellClassifier, X: Any, y: Any, n_features: int | None) -> FixedSubset:
    """Return a classifier with the model's prices that acquires `n_features` values, the same for every row.

    With None, it acquires every value that reduces the expected loss by more than its price.
    """
    from tamis.cells import FixedSubset

    fixed = FixedSubset(
        _scaled_cost(model, 1.0),
        groups=model.groups,
        misclassification_cost=model._unit_loss if model._is_regression else model._Q,
        objective="squared-error" if model._is_regression else "loss",
        n_features=n_features,
        categorical=model.categorical,
        missingness=model.missingness,
    )
    return fixed.fit(X, y)


@dataclass(frozen=True)
class Baseline:
    """A baseline and its results on the held-out rows.

    Attributes
    ----------
    name : str
    loss : float
        Misclassification cost and price per row.
    error : float
        Standard error of `loss`.
    accuracy, cost, n_values : float
        Accuracy (for a numeric target: the coefficient of determination), and price and number of the values per row.
    auc : float or None
        Area under the ROC curve, one-vs-rest, weighted by class frequency; None for a numeric target.
    """

    name: str
    loss: float
    error: float
    accuracy: float
    cost: float
    n_values: float
    auc: float | None


def baselines(model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any) -> list[Baseline]:
    """Return the results of a fitted model and of simpler baselines on the held-out rows.

    Parameters
    ----------
    model : CellClassifier
        Fitted to `X` and `y`.
    X, y : training rows and labels
    X_held, y_held : held-out rows and labels

    Returns
    -------
    list of Baseline
        The model; the same values for every row (:class:`~tamis.cells.FixedSubset`); no value; and, up to 200 features,
        gradient boosting on the values of a forward selection, and logistic (for a numeric target: linear) regression
        and gradient boosting on all values.
    """
    from tamis.cells.bins import indicators

    y, y_held = np.asarray(y), np.asarray(y_held)
    fixed, own_name = fixed_subset(model, X, y, None), method_name(model)
    result = []
    for name, one in ((own_name, model), ("same values for every row", fixed)):
        posterior = one.predict_proba(X_held)
        result.append(_baseline(model, name, posterior, y_held, one.cost_, one.n_features_used_))
    nothing = np.zeros(len(y_held))
    name = "nothing: the mean" if model._is_regression else "nothing"
    prior = np.tile(model.prior_, (len(y_held), 1))
    result.append(_baseline(model, name, prior, y_held, nothing, nothing))
    rows, held = _sides(model, X, y, X_held)
    if rows.shape[1] <= _WIDE:
        rows, held = (part.toarray() if sp.issparse(part) else part for part in (rows, held))
        paid = model._rows(X_held)  # new categories included
        there = ~np.isnan(np.asarray(paid.toarray() if sp.issparse(paid) else paid, dtype=np.float64))
        peers = [(f"all values, {name}", other, np.arange(rows.shape[1])) for name, other in _peers(model)]
        chosen = _forward_selection(model, np.asarray(rows, dtype=np.float64), model._encode_labels(y))
        if len(chosen):
            peers.insert(0, ("forward selection, boosting", _peers(model)[1][1], chosen))
        for name, other, columns in peers:
            seen, asked = (indicators(part[:, columns], model._sizes[columns]) for part in (rows, held))
            other.fit(seen, y)
            predicted = other.predict(asked) if model._is_regression else other.predict_proba(asked)
            paid_for = np.zeros_like(there)
            paid_for[:, columns] = there[:, columns]
            prices, n_values = _total_prices(model, paid_for), paid_for.sum(axis=1)
            result.append(_baseline(model, name, predicted, y_held, prices, n_values))
    return result


def _forward_selection(model: CellClassifier, rows: Floats, y: Ints) -> Ints:
    """Return the columns of a forward selection by the loss and price of boosted trees on held-out rows.

    The trees are fitted once, to random subsets of the columns, and evaluated for each set of columns.
    """
    from tamis.cells.any_order import subset_orders
    from tamis.cells.small_trees import SmallTrees

    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(len(y))[:_FORWARD_ROWS])
    rows, y = rows[some], y[some]
    held = stratified_folds(y, 3) == 0
    if held.all() or not held.any() or len(model.classes_) < 2:
        return np.zeros(0, dtype=np.int64)
    order = subset_orders(int((~held).sum()), rows.shape[1], rng)
    trees = SmallTrees(len(model.classes_)).fit(rows[~held], y[~held], order, model._sizes)
    rows, y = rows[held], y[held]
    known, chosen = np.full(rows.shape, np.nan), list[int]()
    path = [float(model._Q[y].T[int(np.argmin(model.prior_ @ model._Q))].mean())]
    pool = np.arange(rows.shape[1])
    for _ in range(min(_FORWARD_STEPS, rows.shape[1])):
        results = []
        for j in pool:
            known[:, j] = rows[:, j]
            posterior = trees.posterior(known)
            known[:, j] = np.nan
            paid = np.zeros((1, rows.shape[1]), dtype=bool)
            paid[0, np.array([*chosen, int(j)])] = True
            loss = model._Q[y, np.argmin(posterior @ model._Q, axis=1)].mean()
            surprise = -np.log(np.maximum(posterior[np.arange(len(y)), y], 1e-9)).mean()
            results.append((float(loss + _total_prices(model, paid)[0]), float(surprise)))
        best = np.lexsort(np.transpose(results)[::-1])
        path.append(results[best[0]][0])
        chosen.append(int(pool[best[0]]))
        known[:, chosen[-1]] = rows[:, chosen[-1]]
        pool = pool[best[1 : 1 + _FORWARD_POOL]]
    return np.array(chosen[: int(np.argmin(path))], dtype=np.int64)


def _peers(model: CellClassifier) -> list[tuple[str, Any]]:
    """Return the models that use all values."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if model._is_regression:
        return [
            ("linear", _linear(is_number=True)),
            ("boosting", HistGradientBoostingRegressor(random_state=0)),
        ]
    return [("logistic", _linear()), ("boosting", HistGradientBoostingClassifier(random_state=0))]


def _linear(*, is_number: bool = False, sparse: bool = False) -> Any:
    """Return a logistic (for a numeric target: ridge) regression on imputed, standardised features."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    scaler = MaxAbsScaler() if sparse else StandardScaler()
    return make_pipeline(SimpleImputer(), scaler, Ridge() if is_number else LogisticRegression(max_iter=500))


def _baseline(
    model: CellClassifier, name: str, predicted: Floats, y: Any, cost: Any, n_values: Any
) -> Baseline:
    """Return the results of class probabilities, or of predicted numbers."""
    label, auc = (model._decide(predicted) if predicted.ndim == 2 else predicted), None
    if not model._is_regression:
        known = np.isin(y, model.classes_)
        codes = np.searchsorted(model.classes_, y[known])
        auc = (
            1.0 - float(ranking_losses(predicted[known], codes).mean()) if len(np.unique(codes)) > 1 else None
        )
    loss = model._losses(y, label) + cost
    error = float(loss.std() / np.sqrt(max(len(loss), 1)))
    return Baseline(
        name,
        float(loss.mean()),
        error,
        float(r2_score(y, label) if model._is_regression else np.mean(label == y)),
        float(np.mean(cost)),
        float(np.mean(n_values)),
        auc,
    )


@dataclass(frozen=True)
class Gain:
    """The gain of instance-wise acquisition over the same values for every row.

    With equal prices, the fixed subsets are as large as the model's own on average, and accuracies (or errors) are
    compared. With different prices, equal numbers of values may differ in cost: the fixed subset is then the one whose
    values are worth their prices, and losses are compared, which include the prices.

    Attributes
    ----------
    n_values : float
        Mean number of values acquired by the model. With equal prices, also that of the fixed subsets: between two
        integers, a fraction of the rows is given the next larger subset.
    fixed : float
        Accuracy of the fixed subsets, or their squared error as a share of the variance; with different prices, their
        loss per row, of errors and prices.
    mean, low, high : float
        Gain in accuracy, or reduction of the error or of the loss, and its 95 % confidence interval.
    prices_differ : bool
        Whether losses are compared.
    """

    n_values: float
    fixed: float
    mean: float
    low: float
    high: float
    prices_differ: bool = False


def gain_over_fixed(model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any) -> Gain:
    """Return the gain of the model over fixed subsets, paired on the held-out rows."""
    y_held = np.asarray(y_held)
    tariff = model._whole_tariff()
    prices_differ = tariff.varies or bool(np.ptp(tariff.own) > 0.0)
    predicted = model.predict(X_held)
    n_values = float(model.n_features_used_.mean())
    if prices_differ:
        own = model._losses(y_held, predicted) + model.cost_
        subset = fixed_subset(model, X, y, None)
        fixed = model._losses(y_held, subset.predict(X_held)) + subset.cost_
    else:
        own = _of_rows(model, predicted, y_held)
        below, fixed = int(n_values), np.zeros(len(own))
        for k, share in ((below, 1.0 - n_values + below), (below + 1, n_values - below)):
            if share > 0.0:
                fixed += share * _of_rows(model, fixed_subset(model, X, y, k).predict(X_held), y_held)
    apart = fixed - own if prices_differ or model._is_regression else own - fixed
    half = 1.96 * float(apart.std()) / np.sqrt(max(len(apart), 1))
    mean = float(apart.mean())
    return Gain(n_values, float(fixed.mean()), mean, mean - half, mean + half, prices_differ)


def _of_rows(model: CellClassifier, predicted: Any, y: Any) -> Floats:
    """Return whether each decision is correct, or the squared error as a share of the variance."""
    if model._is_regression:
        return model._losses(y, predicted) / model._unit_loss
    return (np.asarray(predicted) == y).astype(np.float64)


def _point(model: CellClassifier, X_held: Any, y_held: Any) -> tuple[float, float, Floats]:
    posterior = model.predict_proba(X_held)
    predicted = model._decide(posterior)
    values = (
        error_scores(_of_rows(model, predicted, y_held))
        if model._is_regression
        else scores(posterior, predicted, y_held, model.classes_)
    )
    return float(model.cost_.mean()), float(model.n_features_used_.mean()), values


def _of_model(
    model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any, tell: Callable[[float, str], None]
) -> Curve:
    points = []
    for done, factor in enumerate(_FACTORS):
        tell(_REFITTED * done / len(_FACTORS), "the model at other prices")
        other = model
        if factor != 1.0:
            other = clone(model).set_params(cost=_scaled_cost(model, factor)).fit(X, y)
        cost, n, values = _point(other, X_held, y_held)
        points.append((cost / factor, n, values))
    points.sort(key=lambda point: point[:2])
    return Curve.of_points(method_name(model), points, is_number=model._is_regression)


class _Boosting:
    """Scores of gradient boosting on subsets of the features; each subset is fitted once."""

    def __init__(self, model: CellClassifier, rows: Any, y: Any, held: Any, y_held: Any) -> None:
        self.model, self.rows, self.y, self.held, self.y_held = model, rows, y, held, y_held
        self._known: dict[tuple[int, ...], Floats] = {}

    def scores(self, columns: Any) -> Floats:
        """Return the scores with these features."""
        key = tuple(sorted(int(column) for column in columns))
        if key not in self._known:
            self._known[key] = self._fitted(list(key))
        return self._known[key]

    def _fitted(self, columns: list[int]) -> Floats:
        dense, other = (
            part.toarray() if sp.issparse(part) else part
            for part in (self.rows[:, columns], self.held[:, columns])
        )
        vary = ~np.isnan(dense).all(axis=0)
        with limited_threads(dense.size):
            return self.scores_of(_peers(self.model)[1][1], dense[:, vary], other[:, vary])

    def scores_of(self, peer: Any, rows: Any, held: Any) -> Floats:
        """Return the held-out scores of a scikit-learn model, fitted to `rows`."""
        peer.fit(rows, self.y)
        if self.model._is_regression:
            return error_scores(_of_rows(self.model, peer.predict(held), self.y_held))
        posterior = peer.predict_proba(held)
        return scores(posterior, peer.classes_[posterior.argmax(axis=1)], self.y_held, peer.classes_)


def _anchors(boosting: _Boosting, price: float) -> list[Curve]:
    rows, is_number = boosting.rows, boosting.model._is_regression
    linear = _linear(is_number=is_number, sparse=sp.issparse(rows))
    name = "linear regression, all" if is_number else "logistic regression, all"
    values = {name: boosting.scores_of(linear, rows, boosting.held)}
    if rows.shape[1] <= _WIDE:
        values["boosting, all"] = boosting.scores(range(rows.shape[1]))
    return [
        Curve.of_points(name, [(price, float(rows.shape[1]), own)], is_number=is_number)
        for name, own in values.items()
    ]


def missing_curve(model: CellClassifier, X: Any, y: Any) -> tuple[Floats, Floats, Floats]:
    """Return fractions of values missing at random, and for each the accuracy or error and the values acquired.

    Parameters
    ----------
    model : CellClassifier
    X, y : held-out rows and labels
    """
    rows, rng = model._categories.encode(X)[0], np.random.default_rng(0)
    kept = (
        sp.csc_array(rows)[:, model.candidates_].toarray()
        if sp.issparse(rows)
        else rows[:, model.candidates_]
    )
    hidden = rng.random(kept.shape)
    measured, acquired = [], []
    for share in _SHARES:
        part = _with_candidates(model, np.where(hidden < share, np.nan, kept.astype(np.float64)))
        measured.append(float(np.mean(_of_rows(model, model.predict(part), np.asarray(y)))))
        acquired.append(float(model.n_features_used_.mean()))
    return np.array(_SHARES), np.array(measured), np.array(acquired)


def _with_candidates(model: CellClassifier, kept: Floats) -> Any:
    """Return rows of the model's width with the values of the candidates; other features are never read."""
    n, K = kept.shape
    if model._categories.values:
        rows = np.full((n, model.n_features_in_), np.nan)
        rows[:, model.candidates_] = kept
        return model._categories.decode(rows)
    at = np.argsort(model.candidates_)
    indices = np.tile(model.candidates_[at], n)
    return sp.csr_array(
        (kept[:, at].ravel(), indices, np.arange(0, n * K + 1, K)), shape=(n, model.n_features_in_)
    )


# -- candidates --------------------------------------------------------------------------------------------


_FOLDS = 3


@dataclass(frozen=True)
class Candidate:
    """A candidate and its results on the held-out rows.

    Attributes
    ----------
    name : str
    loss : float
        Mean misclassification cost and price per row.
    cost, n_values : float
        Mean price, and mean number of values.
    accuracy : float
    ahead : float
        Mean loss of the reference minus the mean loss of this candidate.
    error : float
        Standard error of `ahead`.
    """

    name: str
    loss: float
    cost: float
    n_values: float
    accuracy: float
    ahead: float
    error: float


def compare_classifiers(
    models: Mapping[str, CellClassifier],
    take: Callable[[Ints], Any],
    y: Array,
    on_progress: Callable[[float, str], None] | None = None,
) -> list[Candidate]:
    """Return the results of the candidates, in order.

    Parameters
    ----------
    models : mapping of name to unfitted classifier
        The first one is the reference.
    take : callable
        Returns the rows with these indices.
    y : ndarray of shape (n_rows,)
    on_progress : callable, optional
        Called with the completed share and the name of the next candidate.

    Examples
    --------
    >>> from tamis import ETANA, FixedSubset
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + y[:, None]
    >>> candidates = {"fixed-subset": FixedSubset(0.05), "etana": ETANA(0.05, random_state=0)}
    >>> result = compare_classifiers(candidates, lambda rows: X[rows], y)
    >>> [candidate.name for candidate in result], winner(result).name in candidates
    (['fixed-subset', 'etana'], True)
    """
    y = np.asarray(y)
    is_number = any(model._is_regression for model in models.values())
    codes = NumericTarget(y).codes(y) if is_number else np.unique(y, return_inverse=True)[1]
    fold = stratified_folds(codes, _FOLDS)
    losses, means = list[Floats](), list[Floats]()
    for place, (name, model) in enumerate(models.items()):
        rows = np.full((4, len(y)), np.nan)  # loss, price, number of values, whether correct
        for f in range(_FOLDS):
            if on_progress is not None:
                on_progress((place + f / _FOLDS) / len(models), name)
            held = np.flatnonzero(fold == f)
            if len(held):
                rows[:, held] = _evaluate_fold(clone(model), take, y, np.flatnonzero(fold != f), held)
        rows = rows[:, fold >= 0]
        losses.append(rows[0])
        means.append(rows.mean(axis=1) if rows.size else np.full(4, np.nan))
    paired = PairedLosses(len(models), max_rows=max(len(y), 1))
    behind, error = paired.with_rows(np.stack(losses, axis=1), np.ones(len(losses[0]))).behind(reference=0)
    return [
        Candidate(name, *map(float, (*mean, -gap, one)))
        for name, mean, gap, one in zip(models, means, behind, error, strict=True)
    ]


def _evaluate_fold(
    model: CellClassifier, take: Callable[[Ints], Any], y: Array, learned: Array, held: Array
) -> Floats:
    """Return loss, price, number of values and whether the decision is correct for each held-out row."""
    model.fit(take(learned), y[learned])
    label = model.predict(completed(model, take(held), y[held]))
    price = model.cost_
    return np.stack([model._losses(y[held], label) + price, price, model.n_features_used_, label == y[held]])


def winner(candidates: list[Candidate]) -> Candidate:
    """Return the best candidate among those ahead of the first by more than one standard error, or else the first.

    >>> one = Candidate("fixed-subset", 0.30, 0.1, 2.0, 0.8, 0.0, 0.0)
    >>> winner([one, Candidate("etana", 0.28, 0.1, 2.0, 0.8, 0.02, 0.03)]).name
    'fixed-subset'
    >>> winner([one, Candidate("etana", 0.28, 0.1, 2.0, 0.8, 0.02, 0.01)]).name
    'etana'
    """
    surely = [candidate for candidate in candidates if candidate.ahead > candidate.error]
    return max(surely, key=lambda candidate: candidate.ahead, default=candidates[0])  # the first on ties
