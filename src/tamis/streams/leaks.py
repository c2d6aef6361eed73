"""Signs that rows are not a stream of labelled rows: sorted labels, columns that reveal the label, repeated rows.

Each check returns sentences for people, who know what a column is; nothing is changed. With p_c the proportion of class
c, a column reveals the label if predicting from its values alone has at most a twentieth of the errors of the majority
class, without the row itself: the most frequent label of the same value, or the label of the next smaller value. A
column reveals a number if their ranks have a correlation of at least 0.999.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis._validation import Array

_FEWEST = 50  # rows below which nothing is reported
_RARE = 10  # rows that are not of the majority class, of which at least that many are needed
_ERRORS = 0.05  # of those of the majority class
_PROBE = 2000  # rows on which most columns are ruled out
_SAME_ORDER = 0.999  # correlation of ranks
_CHANCE = 14.0  # rows expected where there are none: a coincidence of one in a million


def runs_of_labels(codes: Array, name: str = "the label") -> str:
    """Return a sentence if rows are sorted by their label, or each class is in a few runs of rows; else "".

    Examples
    --------
    >>> runs_of_labels(np.repeat([0, 1], 100))
    'the rows are sorted by the label: it changes once in 200 rows'
    >>> runs_of_labels(np.random.default_rng(0).integers(0, 2, 200))
    ''
    """
    n, share = len(codes), np.unique(codes, return_counts=True)[1] / max(len(codes), 1)
    changes, by_chance = int(np.count_nonzero(codes[1:] != codes[:-1])), n * (1.0 - float(share @ share))
    if n < _FEWEST or not 0 < 10 * changes <= by_chance or changes >= 3 * len(share):
        return ""
    times = "once" if changes == 1 else f"{changes} times"
    if changes == len(share) - 1:
        return f"the rows are sorted by {name}: it changes {times} in {n:,} rows"
    return f"{name} changes only {times} in {n:,} rows, so each class is in a few runs of rows"


def leak_of(values: Array, codes: Array) -> float:
    """Return the proportion of labels that the values of one column predict, if it reveals the label; else 0.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Numbers, or codes of categories; a missing value is a value.
    codes : ndarray of shape (n_rows,), int
        Classes.

    Examples
    --------
    >>> y = np.tile([0, 1, 1], 100)
    >>> leak_of(2.5 * y, y), leak_of(np.arange(300) % 7, y)
    (1.0, 0.0)
    """
    n, values = len(codes), np.nan_to_num(values.astype(np.float64), nan=np.finfo(np.float64).max)
    for rows in dict.fromkeys((min(n, _PROBE), n)):
        known = codes[:rows]
        by_majority = rows - int(np.bincount(known).max(initial=0))
        # Among the first rows, more errors are tolerated.
        allowed = _ERRORS * by_majority * (1 if rows == n else 4)
        if rows < _FEWEST or by_majority < _RARE or (errors := _errors(values[:rows], known)) > allowed:
            return 0.0
    return 1.0 - errors / n


def orders(values: Array, target: Array) -> bool:
    """Return whether a column has the order of a numeric label, or the reverse order.

    >>> y = np.random.default_rng(0).normal(size=100)
    >>> orders(-np.exp(y), y), orders(np.arange(100.0), y)
    (True, False)
    """
    there = np.isfinite(values) & np.isfinite(target)
    if there.sum() < _FEWEST:
        return False
    with np.errstate(invalid="ignore"):
        correlation = np.corrcoef(_ranks(values[there]), _ranks(target[there]))[0, 1]
    return bool(abs(correlation) >= _SAME_ORDER)


def _ranks(values: Array) -> Array:
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2.0)[groups]


def leak_text(name: str, share: float) -> str:
    """Return the question about a column that reveals the label.

    >>> leak_text("action", 1.0)
    'action alone predicts every label: is it known before the label?'
    """
    most = f"{100 * share:.3g} % of the labels" if share < 0.9995 else "nearly every label"
    what = "every label" if share == 1.0 else most
    return f"{name} alone predicts {what}: is it known before the label?"


def _errors(values: Array, codes: Array) -> int:
    distinct, groups = np.unique(values, return_inverse=True)
    counts = np.zeros((len(distinct), int(codes.max()) + 1), dtype=np.int64)
    np.add.at(counts, (groups, codes), 1)
    sizes, label = counts.sum(axis=1), counts.argmax(axis=1)
    is_single = sizes == 1
    errors = int(np.sum((sizes - counts.max(axis=1))[~is_single]))
    steps = np.diff(values)
    n_up, n_down = int(np.sum(steps > 0)), int(np.sum(steps < 0))
    if min(n_up, n_down) < 0.05 * (n_up + n_down):
        return errors + int(is_single.sum())  # in order of a time, neighbours have equal labels anyway
    differs = label != np.roll(label, 1)
    differs[0] = label[0] != label[min(1, len(label) - 1)]
    return errors + int(np.sum(differs & is_single))


def missingness_of(is_missing: Array, codes: Array) -> tuple[str, int] | None:
    """Return whether values are "missing" or "present" only where the label is one class, and the class; else None.

    Examples
    --------
    >>> y = np.tile([0, 0, 1], 100)
    >>> missingness_of(y == 0, y), missingness_of(np.arange(300) % 5 == 0, y)
    (('present', 1), None)
    """
    share = np.bincount(codes) / max(len(codes), 1)
    for word, mask in (("present", ~is_missing), ("missing", is_missing)):
        counts = np.bincount(codes[mask], minlength=len(share))
        most, n = int(counts.argmax()), int(counts.sum())
        others = n * (1.0 - share[most])  # rows of other classes, by chance
        if _RARE <= n <= len(codes) - _RARE and others > _CHANCE and n - counts[most] <= _ERRORS * others:
            return word, most
    return None


def repeats_of(columns: Sequence[Array]) -> Array:
    """Return whether each row repeats an earlier one; none does if independent columns repeat as often."""
    n = len(columns[0])
    generator = np.random.default_rng(0)
    total, by_chance = np.zeros(n, dtype=np.uint64), n * n / 2.0
    for column in columns:
        bits = np.ascontiguousarray(np.nan_to_num(column, nan=np.pi) + 0.0, dtype=np.float64).view(np.uint64)
        total += (bits ^ (bits >> np.uint64(32))) * (
            2 * generator.integers(1, 1 << 62, dtype=np.uint64) + np.uint64(1)
        )
        counts = np.unique(bits, return_counts=True)[1]
        by_chance *= float(counts @ counts) / n**2
    is_repeat = np.ones(n, dtype=bool)
    is_repeat[np.unique(total, return_index=True)[1]] = False
    return is_repeat & (n >= _FEWEST and is_repeat.sum() > 10 * by_chance)
