"""Agreement of a selection with the truth: selection accuracy and its two parts, precision, detection rate at k.

For streams whose relevant features are known at every row. With S the selected features, R the relevant ones, X all:

| symbol | here | meaning |
| --- | --- | --- |
| SA | `accuracy` | gamma RSR + (1 - gamma) CUCP (1) |
| RSR = abs(S & R) / abs(R) | `rsr` | relevant selection recall: fraction of the relevant features selected (2) |
| CUCP = 1 - abs(S - R) / abs(X - R) | `cucp` | complement of unnecessary complexity: others unselected (3) |
| gamma | `gamma` | 0.7: missing a relevant feature costs more than keeping an irrelevant one |

A term with a zero denominator is 1. By (1), an empty selection thus scores 0.3, all features 0.7, and the true set 1:
the accuracy alone is ambiguous, its two parts are not. Published code skips the empty selection (0/0) when averaging;
here it counts as in the formula.

Redundant features count as irrelevant unless `copy_of` contains their originals; then one of the original and its
copies counts as the original, and each further one as irrelevant.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Indices, Mask, as_numbers, check_number, reject_masked
from tamis.base import top_mask


class SelectionAccuracy(NamedTuple):
    """The result of :func:`selection_accuracy`; each value is in [0, 1], and 1 is best.

    Attributes
    ----------
    accuracy : float
        The weighted mean (1) of `rsr` and `cucp`.
    rsr : float
        Recall: share of the relevant features that were selected (2).
    cucp : float
        Share of the other features that are unselected (3).
    precision : float
        Share of the selected features that are relevant; 1 if none was selected.
    """

    accuracy: float
    rsr: float
    cucp: float
    precision: float


@njit(strict=True)
def _score(mask: Any, truth: Any, gamma: float, out: Any) -> None:
    n_rows, n_features = truth.shape
    n_selected = 0
    for j in range(n_features):
        n_selected += mask[j]
    for i in range(n_rows):
        hits, relevant = 0, 0  # k, K
        for j in range(n_features):
            hits += truth[i, j] & mask[j]
            relevant += truth[i, j]
        rsr = hits / relevant if relevant > 0 else 1.0  # (2)
        others = n_features - relevant
        cucp = 1.0 - (n_selected - hits) / others if others > 0 else 1.0  # (3)
        out[0] += gamma * rsr + (1.0 - gamma) * cucp  # (1)
        out[1] += rsr
        out[2] += cucp
        out[3] += hits / n_selected if n_selected > 0 else 1.0


def selection_accuracy(
    selected: Any, relevant: Any, n_features: int, *, gamma: float = 0.7, copy_of: Any = None
) -> SelectionAccuracy:
    """Compare a selection with the relevant features.

    Parameters
    ----------
    selected : array-like
        Column indices, or a mask of shape (n_features,), bool.
    relevant : array-like
        The same; or a table of shape (n_rows, n_features), bool, with the relevant features of each row. The result is
        then the mean over the rows.
    n_features : int
        At least 1.
    gamma : float in [0, 1], default=0.7
        Weight of the recall.
    copy_of : array-like of int, shape (n_features,), optional
        The column that each column is a copy of; the column itself if it is not a copy. A copy of a relevant feature
        then counts as that feature, once. By default copies count as irrelevant.

    Returns
    -------
    SelectionAccuracy
        accuracy, rsr, cucp, precision.

    Raises
    ------
    ValueError
        If an index or a shape does not fit `n_features`, or `gamma` is out of range.

    References
    ----------
    Galelli et al. (2014). An evaluation framework for input variable selection algorithms for environmental data-driven
    models. Environmental Modelling & Software 62. Barddal, Feature drift in data streams, equation (4.10).

    Examples
    --------
    One of two relevant features and one of eight others:

    >>> selection_accuracy([0, 5], relevant=[0, 1], n_features=10)
    SelectionAccuracy(accuracy=0.6125, rsr=0.5, cucp=0.875, precision=0.5)
    >>> [round(selection_accuracy(chosen, [0, 1], 10).accuracy, 3) for chosen in ([], range(10), [0, 1])]
    [0.3, 0.7, 1.0]

    Column 5 is a copy of column 1:

    >>> round(selection_accuracy([0, 5], [0, 1], 10, copy_of=[0, 1, 2, 3, 4, 1, 6, 7, 8, 9]).accuracy, 3)
    1.0
    """
    check_number("n_features", n_features, low=1, integer=True)
    check_number("gamma", gamma, low=0, high=1)
    mask, truth = as_mask("selected", selected, n_features), np.asarray(relevant)
    if truth.dtype != bool or truth.ndim != 2:
        truth = as_mask("relevant", relevant, n_features)[None]
    if truth.shape[1] != n_features or len(truth) == 0:
        raise ValueError(
            f"relevant must have {n_features} columns and at least a row, got shape {truth.shape}."
        )
    if copy_of is not None:
        original = _originals(copy_of, n_features)
        parts = np.mean([_score_with_copies(mask, row, original, float(gamma)) for row in truth], axis=0)
        return SelectionAccuracy(*parts.tolist())
    return score_rows(mask, truth, float(gamma))


def score_rows(mask: Mask, truth: Mask, gamma: float = 0.7) -> SelectionAccuracy:
    """Return the mean accuracy over rows of a mask (n_features,), given the relevant features (n_rows, n_features)."""
    sums = np.zeros(4)
    _score(mask, truth, gamma, sums)
    return SelectionAccuracy(*(sums / len(truth)).tolist())


def _score_with_copies(mask: Mask, truth: Mask, original: Indices, gamma: float) -> tuple[float, ...]:
    stand_for = np.zeros_like(truth)
    stand_for[original[mask]] = True  # the originals represented by a selected column, itself or a copy
    hits, n_selected, n_relevant = int((stand_for & truth).sum()), int(mask.sum()), int(truth.sum())
    rsr = hits / n_relevant if n_relevant else 1.0
    cucp = 1.0 - (n_selected - hits) / (len(truth) - n_relevant) if n_relevant < len(truth) else 1.0
    return gamma * rsr + (1 - gamma) * cucp, rsr, cucp, hits / n_selected if n_selected else 1.0


def detection_rate(scores: Any, relevant: Any, k: int | None = None) -> float:
    """Return the share of the relevant features that is among the `k` features of the highest scores: DetRate@k.

    Parameters
    ----------
    scores : array-like of shape (n_features,)
        Larger is more relevant; of equal scores the earlier column comes first.
    relevant : array-like
        Column indices, or a mask of shape (n_features,), bool.
    k : int, optional
        In [1, n_features]; by default as many as there are relevant features.

    Returns
    -------
    float
        In [0, 1]; 1 if nothing is relevant.

    Raises
    ------
    ValueError
        If `scores` is not one-dimensional and numeric, or an index or `k` is out of range.

    References
    ----------
    Wang, Barbu (2023). Online Feature Screening for Data Streams with Concept Drift. TKDE 35, equation (23).

    Examples
    --------
    >>> scores = [0.9, 0.1, 0.8, 0.7]
    >>> detection_rate(scores, relevant=[0, 3]), detection_rate(scores, relevant=[0, 3], k=3)
    (0.5, 1.0)
    """
    values = as_numbers("scores", scores)
    if values.ndim != 1 or len(values) == 0 or np.isnan(values).any():
        raise ValueError(f"scores must be a column of numbers without NaN, got shape {values.shape}.")
    truth = as_mask("relevant", relevant, len(values))
    n_relevant = int(truth.sum())
    if n_relevant == 0:
        return 1.0
    if k is not None:
        check_number("k", k, low=1, high=len(values), integer=True)
    return float((top_mask(values, n_relevant if k is None else int(k)) & truth).sum() / n_relevant)


def as_mask(name: str, chosen: Any, n_features: int) -> Mask:
    """Return the mask of a set of columns that is specified by indices or by a mask."""
    reject_masked(name, chosen)
    at = np.asarray(list(chosen) if isinstance(chosen, set | frozenset | range) else chosen)
    if at.dtype == bool and at.shape == (n_features,):
        return at
    mask = np.zeros(n_features, dtype=bool)
    if at.shape == (0,):
        return mask
    if at.ndim != 1 or at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= n_features:
        raise ValueError(
            f"{name} must contain indices from 0 to {n_features - 1}, or be a mask of {n_features}, got {chosen!r}."
        )
    mask[at] = True
    return mask


def _originals(copy_of: Any, n_features: int) -> Indices:
    original = np.asarray(copy_of)
    if original.shape != (n_features,) or original.dtype.kind not in "iu":
        raise ValueError(
            f"copy_of must contain a column index for each of {n_features} columns, got {copy_of!r}."
        )
    if original.min() < 0 or original.max() >= n_features or (original[original] != original).any():
        raise ValueError(f"copy_of must name originals, which are copies of themselves, got {copy_of!r}.")
    return original.astype(np.intp)


# -- the size of a model -----------------------------------------------------------------------------------


_NUMBER = 8
_CONTAINERS = (list, tuple, set, frozenset, deque)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


def state_bytes(*models: Any) -> int:
    """Return the bytes of the numbers in models; shared arrays are counted once.

    Parameters
    ----------
    *models : object
        Estimators, arrays, containers of them; None counts nothing.

    Returns
    -------
    int

    Examples
    --------
    Two columns of a table are views of the same 800 bytes:

    >>> import numpy as np
    >>> table = np.zeros((50, 2))
    >>> state_bytes(table), state_bytes([table[:, 0], table[:, 1]])
    (800, 816)
    """
    total, seen = 0, set()
    todo: list[Any] = list(models)
    kept = []  # temporary objects must be kept alive, or another object may reuse their id
    while todo:
        item = todo.pop()
        if item is None or isinstance(item, _CODE):
            continue
        if isinstance(item, bool | int | float | complex | np.generic):
            total += item.nbytes if isinstance(item, np.generic) else _NUMBER
            continue
        while isinstance(item, np.ndarray) and isinstance(item.base, np.ndarray):
            item = item.base
        if id(item) in seen:
            continue
        seen.add(id(item))
        kept.append(item)
        size, parts = _open(item)
        total += size
        todo.extend(parts)
    return total


def _open(thing: Any) -> tuple[int, Iterable[Any]]:
    """Return the bytes of one object itself, and its contents."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes, thing.ravel().tolist() if thing.dtype.kind == "O" else ()
    if isinstance(thing, str | bytes | bytearray):
        return len(thing), ()
    if isinstance(thing, dict):
        inside = getattr(thing, "__dict__", {})
        return 2 * _NUMBER * len(thing), [*thing.keys(), *thing.values(), *inside.values()]
    if isinstance(thing, _CONTAINERS):
        return _NUMBER * len(thing), list(thing)
    if isinstance(thing, np.random.Generator | np.random.RandomState):
        state = thing.bit_generator.state if isinstance(thing, np.random.Generator) else thing.get_state()
        return 0, [state]
    slots = [name for kind in type(thing).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    attributes = [*vars(thing).values()] if hasattr(thing, "__dict__") else []
    attributes += [getattr(thing, name) for name in slots if hasattr(thing, name)]
    if not attributes:
        return sys.getsizeof(thing), ()  # memory of compiled code, as far as it reports it
    return 0, attributes


def _names(slots: Any) -> tuple[str, ...]:
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
