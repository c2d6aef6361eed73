"""Discretization of numeric features in a sliding window: PaD and window quantiles.

Barddal's thesis, section 6.2 (PaD, after the PiD of Gama and Pinto, SAC 2006). Each feature has two layers:

* layer 1 is a grid of cells of equal width, cell(x) = floor((x - origin) / width), unbounded on both sides; initially
  the range of the window spans ``CELLS_PER_BIN * n_bins`` cells;
* layer 2 merges adjacent cells into at most `n_bins` bins of about equal weight: a bin is closed once it contains
  (remaining rows) / (remaining bins). A value is binned through its cell.

Layer 2 is rebuilt when the count of a bin that gained or lost a row leaves [(1 - ``TOLERANCE``) smallest,
(1 + ``TOLERANCE``) largest], where the extremes are those of the last build, but at most once in ``MIN_GAP`` rows; an
earlier rebuild is postponed until then. A rebuild also renews the grid if the range of the window has become 10 times
wider or narrower. The values of each cell are counted by class as rows enter and leave, so a rebuild does not read the
rows unless one is far outside the grid.

Algorithm 2 cannot be executed as printed. Corrections:

=================================== ==================================================================================
printed                             here
=================================== ==================================================================================
cell width 1 / (max - min)          (max - min) / (20 n_bins)
loop until ``end = F binLength``    over the cells; the floating-point equality may never hold
"F bins of equal width"             layer 2 is of equal frequency, as in the text
the last, incomplete group is lost  it contains the remaining cells
0 means "not set"                   0 is an ordinary value
T_min, T_max at an unstated time    the extremes at the last build
rebuilt after any change of 1 %     at most once in 20 rows, since 1 % of 20 rows is less than one row
counts of moved bins                recounted from the window, so they always equal a recount
no bins until the window is full    rebuilt whenever the number of rows doubles, so bins exist from the first row on
a constant feature                  one bin for its value, one below and one above, so another value is seen at once
=================================== ==================================================================================

The grid spans the window's range, so one far outlier makes the cells coarse while it is in the window; the quantiles
are not affected.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats

CELLS_PER_BIN = 20
TOLERANCE = 0.01
MIN_GAP = 20
_WIDER = 10  # factor by which the range may grow or shrink before the grid is renewed
_FAR = 1 << 30  # distance from the origin, in cells, beyond which the grid is renewed
_POINT = 1e300  # cells per unit if all values are equal: every other value is far away


def n_counted(n_bins: int, n_classes: int, window: int) -> int:
    """Return the number of cells in which a window is counted; 2 means none, if reading the rows is faster.

    This is twice the number of cells of a new grid, and two cells for the values below and above.
    """
    n_cells = CELLS_PER_BIN * n_bins
    return 2 + (2 * n_cells if n_cells * n_classes <= 2 * window else 0)


@njit(strict=True, allocates=False)
def cell_of(x: float, grid: Array) -> float:
    """Return the cell of a value, NaN of NaN."""
    return np.floor((0.5 * x - grid[0]) * grid[1])


@njit(strict=True, allocates=False)
def place_of(cell: float, grid: Array, n: int) -> int:
    """Return the position, of n, at which a cell is counted: the first is for all below, the last for all above."""
    return int(min(max(cell - grid[2], 0.0), n - 1.0))


@njit(strict=True, allocates=False)
def join_counted(grid: Array, cuts: Array, band: Array, counted: Array, cells: Array) -> int:
    """Build layer 2 from the cell counts, if all values are near and the grid fits.

    Parameters
    ----------
    grid, cuts, band, cells
        See :func:`build_bins`.
    counted : ndarray of shape (n_classes, n_counted(n_bins, n_classes, window)), int32
        Number of values of each class at each position.

    Returns
    -------
    int
        Number of positions in use, at least 1; 0, with nothing changed, if the rows must be read instead.
    """
    n, left = counted.shape[1], 0
    if n > cells.shape[0]:  # of another size than allocated: read the rows
        return 0
    totals = cells[:n]
    totals[:] = 0
    for row in counted:
        for p in range(len(row)):
            totals[p] += row[p]
    if totals[0] > 0 or totals[n - 1] > 0 or grid[1] == _POINT:
        return 0
    low, high = 1, n - 2
    while low < high and totals[low] == 0:
        low += 1
    while low < high and totals[high] == 0:
        high -= 1
    if _WIDER * (high - low) < CELLS_PER_BIN * (len(cuts) + 1):
        return 0
    for p in range(n):
        left += totals[p]
    _join_cells(totals[low : high + 1], low + int(grid[2]), left, cuts, band)
    return int(high)


@njit(strict=True, allocates=False)
def build_bins(
    values: Array, fresh: bool, grid: Array, cuts: Array, band: Array, cells: Array, bins: Array
) -> int:
    """Build layer 2 from the values of the window, and layer 1 if `fresh` or if it no longer fits.

    Parameters
    ----------
    values : ndarray of shape (n,), float64
        Finite, or NaN.
    fresh : bool
        Whether to renew the grid in any case.
    grid : ndarray of shape (3,), float64
        Half the origin and cells per half unit (halves, so that no difference overflows), then the first cell counted,
        see :func:`place_of`. Modified in place.
    cuts : ndarray of shape (n_bins - 1,), float64
        Output: the last cell of each bin except the last; infinite where there are fewer bins.
    band : ndarray of shape (2,), float64
        Output: a bin count below the first or above the second triggers the next build.
    cells : ndarray of shape (10 CELLS_PER_BIN n_bins + 2,), int32
        Working space.
    bins : ndarray of shape (n,), int32
        Output: bin of each value; `n_bins` for NaN.

    Returns
    -------
    int
        The cell in the middle of the values.

    Examples
    --------
    Eight values, five of them equal, in up to four bins:

    >>> x = np.array([0.0, 1.0, 7.0, 7.0, 7.0, 7.0, 7.0, 8.0])
    >>> grid, cuts, band, bins = np.zeros(3), np.empty(3), np.empty(2), np.empty(8, np.int32)
    >>> build_bins(x, True, grid, cuts, band, np.empty(802, np.int32), bins)
    40
    >>> bins
    array([0, 0, 1, 1, 1, 1, 1, 2], dtype=int32)
    """
    n_cells, left = CELLS_PER_BIN * (len(cuts) + 1), len(values)
    for p in range(len(values)):
        left -= values[p] != values[p]
    fits = not fresh and _find_cells(values, grid, left, bins)
    low, high = _extremes(bins)
    if not fits or not n_cells <= _WIDER * (high - low) <= _WIDER * _WIDER * n_cells:
        _renew_grid(values, n_cells, grid)
        _find_cells(values, grid, left, bins)
        low, high = _extremes(bins)
    if left == 0 or grid[1] == _POINT:
        cuts[:] = np.inf
        band[0], band[1] = -1.0, 0.0
        if left > 0 and len(cuts) > 1:
            cuts[0], cuts[1] = -1.0, 0.0
        elif left > 0:
            cuts[0] = 0.0
        for p in range(len(bins)):
            bins[p] = min(len(cuts) - 1, 1) if values[p] == values[p] else len(cuts) + 1
        return 0
    cells[: high - low + 1] = 0
    for p in range(len(bins)):
        if bins[p] < _FAR:
            cells[bins[p] - low] += 1
    _join_cells(cells[: high - low + 1], low, left, cuts, band)
    for p in range(len(bins)):
        bins[p] = cells[bins[p] - low] if bins[p] < _FAR else len(cuts) + 1
    return (low + high) // 2


@njit(strict=True, allocates=False)
def _find_cells(values: Array, grid: Array, known: int, bins: Array) -> bool:
    """Write the cell of each value, _FAR for NaN; return whether all other values are nearer than _FAR."""
    origin, scale, near = grid[0], grid[1], 0
    for p in range(len(values)):
        v = np.floor((0.5 * values[p] - origin) * scale)
        inside = abs(v) < _FAR
        near += inside
        bins[p] = int(v) if inside else _FAR
    return near == known


@njit(strict=True, allocates=False)
def _extremes(bins: Array) -> tuple[int, int]:
    low, high = np.int32(_FAR), np.int32(-_FAR)
    for p in range(len(bins)):
        b = bins[p]
        low = b if b < low else low
        high = b if b > high and b < _FAR else high
    return int(low), int(high)


@njit(strict=True, allocates=False)
def _renew_grid(values: Array, n_cells: int, grid: Array) -> None:
    low, high = np.inf, -np.inf
    for x in values:
        if x == x:
            low, high = min(low, 0.5 * x), max(high, 0.5 * x)
    grid[0], grid[1] = low, _POINT
    if high - low > n_cells / _POINT:
        grid[1] = n_cells / (high - low)


@njit(strict=True, allocates=False)
def _join_cells(cells: Array, low: int, left: int, cuts: Array, band: Array) -> None:
    """Group the cells into bins by their counts; overwrite each count with the bin of its cell."""
    closed, count, smallest, largest = 0, 0, left, 0
    cuts[:] = np.inf
    for c in range(len(cells)):
        count += cells[c]
        cells[c] = closed
        if count < left and closed < len(cuts) and count * (len(cuts) + 1 - closed) >= left:
            cuts[closed] = low + c
            smallest, largest = min(smallest, count), max(largest, count)
            closed, left, count = closed + 1, left - count, 0
    smallest, largest = min(smallest, count), max(largest, count)
    band[0], band[1] = (1.0 - TOLERANCE) * smallest, (1.0 + TOLERANCE) * largest


def quantile_cuts(values: Array, n_bins: int) -> Floats:
    """Return the exact quantiles that divide the values of each feature into bins of about equal weight.

    Parameters
    ----------
    values : ndarray of shape (n_features, n), float64
        NaN is skipped.
    n_bins : int, at least 2

    Returns
    -------
    ndarray of shape (n_features, n_bins - 1), float64
        For h = 1, 2, ..., the smallest value x such that at least h / n_bins of the values are <= x. A bin contains the
        values above one cut, up to and including the next. Infinite for a feature without values.

    Examples
    --------
    >>> quantile_cuts(np.array([[4.0, 1.0, 3.0, 2.0], [5.0, 5.0, np.nan, np.nan]]), 2)
    array([[2.],
           [5.]])
    """
    ordered = np.sort(values, axis=1)  # NaN last
    known = np.count_nonzero(ordered == ordered, axis=1)
    at = np.maximum(-(-np.arange(1, n_bins) * known[:, None] // n_bins) - 1, 0)
    cuts = np.take_along_axis(ordered, at, axis=1) if values.shape[1] else np.empty((len(values), n_bins - 1))
    cuts[known == 0] = np.inf
    return cuts
