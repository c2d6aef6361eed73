"""Values that were recorded depending on the class: whether they were, and rows completed as if they were not.

A test that is ordered on suspicion is recorded for most of the ill and for few of the healthy. A model that is fitted
to such records learns that a value was recorded, which indicates suspicion, and not the class of a row whose values
are acquired by the model itself. Suppose that, given the class and the recorded values of a row, whether a value was
recorded does not depend on the value::

    P(x_j | c, x_recorded, j recorded) = P(x_j | c, x_recorded)                                        (1)

Rows are then completed by draws from recorded values of the same class (Little 1988, predictive mean matching): of the
rows in which x_j was recorded, one is drawn of those whose regression on the other values is nearest. The completed
rows have the distribution of rows in which every requested value is available, which is what a policy meets; weights
1 / P(recorded | class) have the same expectation, but few rows carry them if several values are rarely recorded
together.

Donors are of the same fifth of the rows, and each fifth is held out together, so that a copied value is never in both
a training fold and a held-out one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis._validation import Array, Floats, Ints, Mask

_LEVEL = 0.01  # of the test of independence, over all columns
_SHARE = 5  # groups of rows with donors of their own
_SWEEPS = 6  # half as many if there are more values than _CELLS
_CELLS = 200_000
_NEAREST = 10  # donors that one is drawn from
_PREDICTORS = 20  # largest number of columns of a regression
_PSEUDO = 2.0  # rows of any class among the donors: a class with few recorded values is like the others
_FEW = 10  # a class with fewer donors in its group has those of all groups
_SCORED = 5_000  # rows of the classifier of the masks, and of a regression
_SHOWN = 3  # categories of a column that are predictors


@dataclass
class Missingness:
    """How the class depends on which values were recorded.

    Attributes
    ----------
    auc : float
        Area under the ROC curve of the class predicted from which values were recorded, on held-out rows; one-vs-rest,
        weighted by class frequency.
    columns : ndarray of int
        Columns that were recorded at different rates, the most different one first.
    recorded : ndarray of shape (n_columns, n_classes)
        Share of the rows of each class in which they were recorded.
    """

    auc: float
    columns: Ints
    recorded: Floats


def missingness_of(X: Array, y: Ints, n_classes: int) -> Missingness | None:
    """Return how the class depends on which values were recorded; None if it does not, at a level of 1 %.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = np.where(rng.random((1000, 2)) < [[0.5, 0.9]], 1.0, np.nan)
    >>> missingness_of(X, y, 2)
    >>> X[:, 0] = np.where(rng.random(1000) < 0.2 + 0.6 * y, 1.0, np.nan)
    >>> found = missingness_of(X, y, 2)
    >>> found.columns, found.recorded.round(1), round(found.auc, 1)
    (array([0]), array([[0.2, 0.8]]), 0.8)
    """
    known = ~np.isnan(X)
    if known.all():
        return None
    size = np.bincount(y, minlength=n_classes)
    count = np.stack([known[y == c].sum(axis=0) for c in range(n_classes)], axis=1).astype(np.float64)
    total = count.sum(axis=1)
    some = np.flatnonzero((total > 0) & (total < len(y)))
    if not len(some) or np.count_nonzero(size) < 2:
        return None
    from scipy.stats import chi2

    there = size > 0
    expected = total[some, None] * size[there] / len(y)
    lacking = size[there] - expected
    excess = (count[some][:, there] - expected) ** 2
    statistic = (excess / expected + excess / lacking).sum(axis=1)
    p = chi2.sf(statistic, np.count_nonzero(there) - 1)
    if p.min() >= _LEVEL / len(some):
        return None
    order = np.argsort(-statistic, kind="stable")
    differing = some[order[p[order] < _LEVEL]]
    return Missingness(_auc(known[:, some], y), differing, count[differing] / np.maximum(size, 1))


def _auc(known: Mask, y: Ints) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    rows = np.arange(len(y))
    if len(rows) > _SCORED:
        rows = np.sort(np.random.default_rng(0).choice(rows, _SCORED, replace=False))
    rows = rows[np.bincount(y[rows])[y[rows]] >= _SHARE]
    codes = np.unique(y[rows], return_inverse=True)[1]
    if not len(rows) or codes.max() == 0:
        return float("nan")
    folds = StratifiedKFold(_SHARE)
    masks = known[rows].astype(np.float64)
    shares = cross_val_predict(
        LogisticRegression(max_iter=200), masks, codes, cv=folds, method="predict_proba"
    )
    if codes.max() == 1:
        return float(roc_auc_score(codes, shares[:, 1]))
    return float(roc_auc_score(codes, shares, multi_class="ovr", average="weighted"))


def complete_rows(X: Array, y: Ints, sizes: Ints, origin: Ints | None, seed: int) -> tuple[Floats, Ints]:
    """Return rows without missing values in columns that have any, and the group of each row, held out together.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,), int
    sizes : ndarray of shape (n_features,), int
        Number of categories of each column, whose values are codes; 0 for a number.
    origin : ndarray of shape (n_rows,), int, or None
        The original of each copy of a row; copies share a group.
    seed : int

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [np.nan], [5.0], [np.nan], [5.1]] * 50)
    >>> rows, group = complete_rows(X, np.array([0, 0, 0, 1, 1, 1] * 50), np.array([0]), None, 0)
    >>> bool(np.isnan(rows).any()), np.unique(group).tolist(), [bool(rows[i, 0] > 3) for i in (2, 4)]
    (False, [0, 1, 2, 3, 4], [False, True])
    """
    rng = np.random.default_rng(seed)
    group = _groups(y, origin)
    given = np.array(X, dtype=np.float64)
    known = ~np.isnan(given)
    rows = given.copy()
    columns = [j for j in np.argsort((~known).sum(axis=0), kind="stable") if 0 < known[:, j].sum() < len(y)]
    classes = [np.flatnonzero(y == c) for c in np.unique(y)]
    for j in columns:
        rows[:, j] = _drawn(rng, given[:, j], known[:, j], np.zeros(len(y)), classes, group, near=len(y))
    rows[np.isnan(rows)] = 0.0  # columns without any value
    shown = [range(min(size - 1, _SHOWN)) if size else range(1) for size in sizes]
    of_column = np.repeat(np.arange(len(sizes)), [len(one) for one in shown])
    features = np.empty((len(y), len(of_column)))

    def centre(j: int) -> None:
        for place, code in zip(np.flatnonzero(of_column == j), shown[j], strict=True):
            features[:, place] = _centred(rows[:, j] == code if sizes[j] else rows[:, j], classes)

    for j in range(len(sizes)):
        centre(j)
    related = _related_features(features)
    for _ in range(_SWEEPS if rows.size <= _CELLS else _SWEEPS // 2):
        for j in columns:
            target = _centred(given[:, j] if not sizes[j] else rows[:, j] == 0, classes, known[:, j])
            near = related[np.flatnonzero(of_column == j)[0]] if (of_column == j).any() else related[0]
            score = _score(features[:, near[of_column[near] != j]], target, known[:, j], classes)
            rows[:, j] = _drawn(rng, given[:, j], known[:, j], score, classes, group, near=_NEAREST)
            centre(j)
    rows[:, ~known.any(axis=0)] = np.nan
    return rows, group


def _groups(y: Ints, origin: Ints | None) -> Ints:
    """Return a group of each row, stratified by class; copies of a row share one."""
    _, first, back = np.unique(
        np.arange(len(y)) if origin is None else origin, return_index=True, return_inverse=True
    )
    group = np.zeros(len(first), dtype=np.int64)
    for c in np.unique(y):
        mine = np.flatnonzero(y[first] == c)
        group[mine] = np.arange(len(mine)) % _SHARE
    return group[back]


def _centred(column: Array, classes: list[Ints], known: Mask | None = None) -> Floats:
    """Return a column minus the mean of each class, over the rows in which it is known."""
    centred = column.astype(np.float64)
    for mine in classes:
        own = mine if known is None else mine[known[mine]]
        centred[mine] -= centred[own].mean() if len(own) else 0.0
    return centred


def _related_features(features: Floats) -> Ints:
    """Return the features that each one is most correlated with, a few more than are needed."""
    P, most = features.shape[1], _PREDICTORS + _SHOWN
    if most >= P:
        return np.tile(np.arange(P), (P, 1))
    norm = np.sqrt((features**2).sum(axis=0))
    scaled = features / np.where(norm > 0.0, norm, 1.0)
    order = np.argsort(-np.abs(scaled.T @ scaled), axis=1, kind="stable")
    return np.sort(order[:, :most], axis=1)


def _score(Z: Floats, target: Floats, known: Mask, classes: list[Ints]) -> Floats:
    """Return the regression of a centred column on features of each class, or of all if the class has few rows."""
    scale = np.sqrt((Z**2).mean(axis=0))
    Z = np.divide(Z[:, scale > 0], scale[scale > 0], dtype=np.float64)
    score = np.zeros(len(Z))
    if not Z.shape[1]:
        return score
    pooled = _slopes(Z, target, np.flatnonzero(known))
    for mine in classes:
        own = mine[known[mine]]
        slopes = pooled if len(own) < 5 * (Z.shape[1] + 1) else _slopes(Z, target, own)
        score[mine] = Z[mine] @ slopes
    return score


def _slopes(Z: Floats, target: Floats, at: Ints) -> Floats:
    """Return the slopes of a ridge regression on some rows, about 5,000 at most."""
    at = at[:: max(1, len(at) // _SCORED)]
    part = Z[at]
    slopes = np.linalg.solve(part.T @ part + np.eye(Z.shape[1]), part.T @ target[at])
    return np.asarray(slopes, dtype=np.float64)


def _drawn(
    rng: np.random.Generator, given: Floats, known: Mask, score: Floats,
    classes: list[Ints], group: Ints, near: int,
) -> Floats:  # fmt: skip
    """Return a column with each missing value drawn from recorded ones of its class with a near score."""
    column, anyone = given.copy(), np.flatnonzero(known)
    for mine in classes:
        is_known = known[mine]
        everywhere, missing = mine[is_known], mine[~is_known]
        for g in range(_SHARE):
            lacking = missing[group[missing] == g]
            if not len(lacking):
                continue
            donors = everywhere[group[everywhere] == g]
            donors = donors if len(donors) >= _FEW else everywhere
            drawn = given[rng.choice(anyone, len(lacking))]
            if len(donors):
                order = donors[np.argsort(score[donors], kind="stable")]
                n_near = min(near, len(order))
                first = np.searchsorted(score[order], score[lacking]) - n_near // 2
                place = np.clip(first, 0, len(order) - n_near) + rng.integers(0, n_near, len(lacking))
                other = rng.random(len(lacking)) < _PSEUDO / (_PSEUDO + len(everywhere))
                drawn = np.where(other, drawn, given[order[place]])
            column[lacking] = drawn
    return column
