"""Reaction to the true drifts of a stream: the delay of a detector, and the recovery time of a measure.

Drift i begins at row b_i = position - width / 2 (a position is the centre of a drift; an abrupt one begins there), and
its interval lasts until b_{i+1}:

    delay_i    = first detection in [b_i, b_{i+1}) - b_i                                       (1)
    recovery_i = first point after the drop at which the measure has recovered - b_i                (2)

The measure has dropped while it is below the median over the `reference` rows before the drift minus `tolerance`, and
has recovered once it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._validation import Floats, Mask, as_numbers, check_number
from tamis.base.html_repr import html_repr


def _by_drift(*columns: Floats) -> dict[str, list[str]]:
    """Return a row of texts for each drift."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {str(i): [f"{value:.4g}" for value in row] for i, row in enumerate(rows, start=1)}


@dataclass(frozen=True)
class Detections:
    """The result of :func:`detections`.

    Attributes
    ----------
    delays : ndarray of shape (n_drifts,)
        Rows from the start of each drift to its detection; NaN if it was missed.
    n_false_alarms : int
        Detections that are not the first one between the start of a drift and the start of the next.
    """

    delays: Floats
    n_false_alarms: int

    @property
    def n_missed(self) -> int:
        """Drifts that were not detected."""
        return int(np.isnan(self.delays).sum())

    @property
    def mean_delay(self) -> float:
        """Mean delay of the drifts that were detected; NaN if there is none."""
        return _mean(self.delays)

    def __str__(self) -> str:
        n_detected = len(self.delays) - self.n_missed
        late = f" after {self.mean_delay:,.0f} rows on average" if n_detected else ""
        return f"{n_detected} of {len(self.delays)} drifts detected{late}, {self.n_false_alarms} false alarms"

    def __repr__(self) -> str:
        return f"Detections({self})"

    def _repr_html_(self) -> str:
        return html_repr("Detections", [str(self)], _by_drift(self.delays), ("drift", "delay in rows"))


def detections(drifts: Any, detected: Any, *, widths: Any = 0, max_delay: float = math.inf) -> Detections:
    """Compare the rows at which a detector raised an alarm with the true drifts.

    Parameters
    ----------
    drifts : array-like of shape (n_drifts,)
        Row positions of the centres of the true drifts, increasing.
    detected : array-like of shape (n_alarms,)
        Row positions of the alarms.
    widths : float or array-like of shape (n_drifts,), default=0
        Number of rows that each drift takes.
    max_delay : float, default=inf
        An alarm later than this many rows is a false one.

    Returns
    -------
    Detections

    Raises
    ------
    ValueError
        If `drifts` do not increase, or a width is negative.

    Examples
    --------
    >>> result = detections(drifts=[1000, 2000], detected=[400, 1030, 1700])
    >>> result.delays, result.n_false_alarms
    (array([30., nan]), 2)
    >>> print(result)
    1 of 2 drifts detected after 30 rows on average, 2 false alarms
    """
    begins = _begins(drifts, widths)
    alarms = np.sort(as_numbers("detected", detected).reshape(-1))
    delays = np.full(len(begins), np.nan)
    for i, (begin, end) in enumerate(_turns(begins)):
        at = np.searchsorted(alarms, begin)
        if at < len(alarms) and alarms[at] < end and alarms[at] - begin <= max_delay:
            delays[i] = alarms[at] - begin  # (1)
    return Detections(delays, len(alarms) - int(np.isfinite(delays).sum()))


@dataclass(frozen=True)
class Recovery:
    """The result of :func:`recovery`, with one value per drift.

    Attributes
    ----------
    rows : ndarray of shape (n_drifts,)
        Rows from the start of the drift until the measure has recovered. 0 if it did not drop; NaN if it did not
        recover before the next drift, or if values before or after the drift are missing.
    levels : ndarray of shape (n_drifts,)
        Median of the measure before the drift (a mean would still depend on the drift before it).
    drops : ndarray of shape (n_drifts,)
        Level minus the lowest value between the drift and the next, at least 0.
    """

    rows: Floats
    levels: Floats
    drops: Floats

    @property
    def n_lost(self) -> int:
        """Number of drifts after which the measure did not recover."""
        return int(np.isnan(self.rows).sum())

    @property
    def mean_rows(self) -> float:
        """Mean of `rows` over the drifts after which the measure recovered; NaN if there is none."""
        return _mean(self.rows)

    def __str__(self) -> str:
        back = len(self.rows) - self.n_lost
        rows = f", within {self.mean_rows:,.0f} rows on average" if back else ""
        return f"back after {back} of {len(self.rows)} drifts{rows}"

    def __repr__(self) -> str:
        return f"Recovery({self})"

    def _repr_html_(self) -> str:
        numbers = _by_drift(self.rows, self.levels, self.drops)
        return html_repr(
            "Recovery", [str(self)], numbers, ("drift", "rows until back", "level before", "drop")
        )


def recovery(
    at: Any, values: Any, drifts: Any, *, widths: Any = 0, tolerance: float = 0.05, reference: float = 1000
) -> Recovery:
    """Count the rows that a measure takes to recover after each true drift.

    Parameters
    ----------
    at : array-like of shape (n_points,)
        Number of rows seen at each value, increasing.
    values : array-like of shape (n_points,)
        A measure over recent rows, larger is better: windowed accuracy, selection accuracy. NaN is ignored.
    drifts : array-like of shape (n_drifts,)
        Row positions of the centres of the true drifts, increasing.
    widths : float or array-like of shape (n_drifts,), default=0
        Number of rows that each drift takes.
    tolerance : float, default=0.05
        The measure has recovered when it is at most this far below its level before the drift. 0.05 is three standard
        deviations of an accuracy over 1000 rows.
    reference : float, default=1000
        Number of rows before the drift from which the level is computed.

    Returns
    -------
    Recovery

    Raises
    ------
    ValueError
        If the shapes differ, `drifts` do not increase, a width is negative, or a parameter is out of range.

    Examples
    --------
    >>> back = recovery([100, 200, 300, 400, 500], [0.9, 0.9, 0.6, 0.8, 0.9], drifts=[200])
    >>> print(back)
    back after 1 of 1 drifts, within 300 rows on average
    """
    check_number("tolerance", tolerance, low=0)
    check_number("reference", reference, low=0, open_low=True)
    begins = _begins(drifts, widths)
    x, y = as_numbers("at", at).reshape(-1), as_numbers("values", values).reshape(-1)
    if len(x) != len(y):
        raise ValueError(f"at and values must have the same length, got {len(x)} and {len(y)}.")
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    rows, levels, drops = (np.full(len(begins), np.nan) for _ in range(3))
    for i, (begin, end) in enumerate(_turns(begins)):
        before, turn = y[(x > begin - reference) & (x <= begin)], (x > begin) & (x <= end)
        if not (len(before) and turn.any()):
            continue
        levels[i] = np.median(before)
        drops[i] = max(levels[i] - y[turn].min(), 0.0)
        rows[i] = _rows_to_recover(x[turn] - begin, y[turn] < levels[i] - tolerance)  # (2)
    return Recovery(rows, levels, drops)


def _rows_to_recover(passed: Floats, below: Mask) -> float:
    if not below.any():
        return 0.0
    drop = int(below.argmax())
    recovered = np.flatnonzero(~below[drop:])
    return float(passed[drop + recovered[0]]) if len(recovered) else math.nan


def _begins(drifts: Any, widths: Any) -> Floats:
    centres = as_numbers("drifts", drifts).reshape(-1)
    spans = np.broadcast_to(as_numbers("widths", widths), centres.shape)
    begins = centres - spans / 2
    if (np.diff(begins) <= 0).any():
        raise ValueError(
            f"drifts must begin in ascending order, got centres {drifts!r} with widths {widths!r}."
        )
    if (spans < 0).any():
        raise ValueError(f"widths must be at least 0, got {widths!r}.")
    return begins


def _turns(begins: Floats) -> list[tuple[float, float]]:
    """Return the interval of rows of each drift."""
    ends = [*begins[1:].tolist(), math.inf][: len(begins)]
    return list(zip(begins.tolist(), ends, strict=True))


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
