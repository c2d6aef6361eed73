"""ADWIN: an adaptive window, cut where the means of its older and newer parts differ significantly.

Bifet, Gavalda: Learning from Time-Changing Data with Adaptive Windowing, SDM 2007; Barddal's thesis, A.2.

The window of n values is kept as buckets of 1, 2, 4, ... values, at most five of each size; a sixth merges the two
oldest: O(log n) numbers. With the window's variance v, the parts' sizes n0 and n1 and means mu0 and mu1::

    drop the oldest bucket while some border between buckets has |mu0 - mu1| > eps,
    1 / m = 1 / (n0 - 4) + 1 / (n1 - 4),  d = ln(2 ln n / delta),  eps = sqrt(2 v d / m) + 2 d / (3 m)      (1)

Errata and deviations, each with its reason:

* The thesis prints "every split" and "<="; correct is "some split" and ">". Its eps is the plain Hoeffding form;
  every implementation uses (1), with the variance.
* Sums of values far from 0 would lose precision: they are centred at the first value of a window, rounded to a multiple
  of 1024, which leaves values around 0 unchanged.
* Borders are tested every 32 values, as is common: testing at each value would reduce the delay by 16 values at 32
  times the cost.
* `update` reports a drift only if the mean has risen, unless `two_sided`; the window is cut either way.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Floats, check_choice, check_number
from tamis.dependence.autocorrelation import inflation_before
from tamis.drift.detector import EVERY, Detector

_PER_SIZE = 5  # buckets of each size
_SIZES = 48  # 2**48 values
_LEAST, _MIN_WIDTH = 5, 10  # values in each part, and in the window, before a border is tested
# Values seen, warning (never), total and squared deviations of the window, its width; then the number of each size.
_HEAD = 5
STATE_SIZE = _HEAD + _SIZES + 2 * _SIZES * (_PER_SIZE + 1)


@njit(allocates=False)
def _at(size: int, k: int) -> int:
    """Return the index of the total of the k-th oldest bucket of a size; its squared deviations follow."""
    return _HEAD + _SIZES + 2 * (size * (_PER_SIZE + 1) + k)


@njit(allocates=False)
def _insert(state: Floats, x: float) -> None:
    """Add a value as a new bucket, and merge buckets of sizes with one too many."""
    width = state[4]
    state[4] += 1.0
    if width > 0.0:
        state[3] += width / (width + 1.0) * (x - state[2] / width) ** 2
    state[2] += x
    at = _at(0, int(state[_HEAD]))
    state[at], state[at + 1] = x, 0.0
    state[_HEAD] += 1.0
    for size in range(_SIZES - 1):
        if state[_HEAD + size] <= _PER_SIZE:
            break
        n = 2.0**size
        a, b, to = _at(size, 0), _at(size, 1), _at(size + 1, int(state[_HEAD + size + 1]))
        state[to] = state[a] + state[b]
        state[to + 1] = state[a + 1] + state[b + 1] + n / 2.0 * ((state[a] - state[b]) / n) ** 2
        state[_HEAD + size + 1] += 1.0
        _drop(state, size, 2)


@njit(allocates=False)
def _drop(state: Floats, size: int, n: int) -> None:
    """Remove the n oldest buckets of a size."""
    left = int(state[_HEAD + size]) - n
    start = _at(size, 0)
    for i in range(2 * left):
        state[start + i] = state[start + 2 * n + i]
    state[_HEAD + size] = left


@njit(allocates=False)
def _has_significant_cut(state: Floats, delta: float, inflation: float) -> bool:
    """Return whether the means on both sides of some border differ by more than (1), with 1 / m times `inflation`."""
    width = state[4]
    variance = state[3] / width
    d = np.log(2.0 * np.log(width) / delta)
    n0, total0 = 0.0, 0.0
    for size in range(_SIZES - 1, -1, -1):
        for k in range(int(state[_HEAD + size])):
            n0 += 2.0**size
            total0 += state[_at(size, k)]
            n1 = width - n0
            if n0 <= _LEAST + 1 or n1 <= _LEAST + 1:
                continue
            inverse = inflation * (1.0 / (n0 - _LEAST + 1.0) + 1.0 / (n1 - _LEAST + 1.0))
            eps = np.sqrt(2.0 * inverse * variance * d) + 2.0 / 3.0 * d * inverse
            if abs(total0 / n0 - (state[2] - total0) / n1) > eps:  # (1)
                return True
    return False


@njit(allocates=False)
def _drop_oldest_bucket(state: Floats) -> None:
    """Remove the oldest bucket from the window."""
    size = _SIZES - 1
    while state[_HEAD + size] == 0.0:
        size -= 1
    n, at, width = 2.0**size, _at(size, 0), state[4]
    left = width - n
    state[2] -= state[at]
    if left > 0.0:
        gap = state[at] / n - state[2] / left
        state[3] = max(state[3] - state[at + 1] - n * left / width * gap * gap, 0.0)
    else:
        state[3] = 0.0
    state[4] = left
    _drop(state, size, 1)


@njit(allocates=False)
def update_window(state: Floats, x: float, delta: float, every: int) -> int:
    """Add one value; return 1 if the window was cut and its mean has risen, -1 if it was cut and has fallen, else 0."""
    return _update(state, x, delta, every, 1.0)


@njit(allocates=False)
def _update(state: Floats, x: float, delta: float, every: int, inflation: float) -> int:
    _insert(state, x)
    state[0] += 1.0
    if state[0] % every != 0.0 or state[4] <= _MIN_WIDTH:
        return 0
    before, cut = state[2] / state[4], False
    while state[4] > _MIN_WIDTH and _has_significant_cut(state, delta, inflation):
        _drop_oldest_bucket(state)
        cut = True
    if not cut:
        return 0
    return 1 if state[2] / state[4] > before else -1


@njit()
def _adwin(
    values: Floats, state: Floats, origin: Floats, delta: float, every: int, two_sided: bool, series: Floats
) -> int:
    for i in range(len(values)):
        inflation = inflation_before(values[i], series, EVERY)
        if state[4] == 0.0:
            origin[0] = 1024.0 * np.rint(values[i] / 1024.0)
        change = _update(state, values[i] - origin[0], delta, every, inflation)
        if change > 0 or (two_sided and change < 0):
            return i
    return -1


def check_windows(states: Floats) -> None:
    """Reject windows whose buckets do not sum to their width: kernels follow the numbers of buckets.

    Parameters
    ----------
    states : ndarray of shape (n_windows, STATE_SIZE), float64

    Raises
    ------
    StateError
        If a window is inconsistent.
    """
    buckets, width = states[:, _HEAD : _HEAD + _SIZES], states[:, 4]
    fits = (
        np.isfinite(states).all()
        and ((buckets >= 0) & (buckets <= _PER_SIZE) & (buckets == np.floor(buckets))).all()
        and (buckets @ 2.0 ** np.arange(_SIZES) == width).all()
        and (states[:, [0, 3]] >= 0.0).all()
    )
    if not fits:
        raise state_error("The buckets of an ADWIN window do not sum to its width")


class ADWIN(Detector):
    """Maintains a window of recent values with a constant mean; a drift is detected when the window is cut.

    Parameters
    ----------
    delta : float, default=0.002
        Probability of a false cut at each test, in (0, 1); heavy tails, such as those of a Cauchy distribution, exceed
        it.
    every : int, default=32
        Number of values between two tests for a cut.
    two_sided : bool, default=False
        Whether a decrease of the mean is also reported as a drift; the window is cut in either case.
    dependence : {"independent", "auto"}, default="independent"
        Whether values are assumed independent, or the bound is widened once they are found to be autocorrelated.

    Attributes
    ----------
    width : int
        Number of values in the window.
    mean, variance : float
        Mean and variance of the window.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If a value is not finite.

    Notes
    -----
    Memory: 5 kB for any width. Each value takes 20 to 50 ns.

    References
    ----------
    Bifet, Gavalda (2007). Learning from Time-Changing Data with Adaptive Windowing.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.drift import ADWIN
    >>> values = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 1.0], [1000, 1000])
    >>> adwin = ADWIN()
    >>> adwin.drifts(values)
    [1055]
    >>> adwin.width, round(adwin.mean, 1)
    (944, 1.0)
    """

    _shapes = (
        f"state ({STATE_SIZE})  state[{_HEAD}:{_HEAD + _SIZES}] float in [0, {_PER_SIZE}]  _origin (1)"
        "  delta float in (0, 1)  every in [1, 2**62)"
    )

    def __init__(
        self,
        delta: float = 0.002,
        *,
        every: int = 32,
        two_sided: bool = False,
        dependence: str = "independent",
    ) -> None:
        check_number("delta", delta, low=0, high=1, open_low=True, open_high=True)
        check_number("every", every, low=1, high=2**31 - 1, integer=True)
        check_choice("two_sided", two_sided, (False, True))
        self.delta, self.every, self.two_sided = delta, every, two_sided
        self._origin = np.zeros(1)
        super().__init__(dependence)

    @property
    def width(self) -> int:
        """Number of values in the window."""
        return int(self.state[4])

    @property
    def mean(self) -> float:
        """Mean of the window; NaN before the first value."""
        return float(self._origin[0] + self.state[2] / self.state[4]) if self.state[4] else float("nan")

    @property
    def variance(self) -> float:
        """Variance of the window; NaN before the first value."""
        return float(self.state[3] / self.state[4]) if self.state[4] else float("nan")

    def check_state(self) -> None:
        """Reject a window whose buckets do not sum to its width.

        Raises
        ------
        StateError
            If they do not.
        """
        check_windows(self.state[None])

    def _run(self, values: Floats) -> int:
        how = self.delta, self.every, self.two_sided, self._tracked
        return int(_adwin(values, self.state, self._origin, *how))

    _low, _high, _n_numbers = -np.inf, np.inf, STATE_SIZE
