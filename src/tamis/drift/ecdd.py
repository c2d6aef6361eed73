"""ECDD: a control chart of the exponentially weighted error rate.

Ross, Adams, Tasoulis, Hand: Exponentially weighted moving average charts for detecting concept drift, Pattern
Recognition Letters 33(2), 2012; Barddal's thesis, A.3.

============  ==============  ======================================================================
paper         here            meaning
============  ==============  ======================================================================
lambda        0.2             weight of the newest value
p_t           ``state[2]``    mean of all values since the last drift
Z_t           ``state[3]``    exponentially weighted mean
ARL0          `arl0`          mean number of values between false alarms
L             `limit`         control limit that gives it
============  ==============  ======================================================================

::

    Z_t = (1 - lambda) Z_{t-1} + lambda x_t                                                     (1)
    sigma_t^2 = p_t (1 - p_t) lambda / (2 - lambda) (1 - (1 - lambda)^(2 t))                    (2)
    drift if Z_t > p_t + L(p_t) sigma_t,   warning if Z_t > p_t + L(p_t) / 2 sigma_t            (3)

Errata and deviations, each with its reason:

* The thesis prints (2), a variance, where (3) needs its square root, and defines 1 as a correct prediction: here 1 is
  an error.
* The published polynomials for L are inaccurate: in simulations, that for ARL0 = 100 is negative at p = 0.4, that for
  1000 increases with p and gives 66 to 550. ``limit="simulated"`` interpolates simulated limits; "published" uses the
  polynomials.
* No drift is detected in the first 30 values, because p_t is imprecise.
* Autocorrelated errors exceed (3) far more often. With ``dependence="auto"``, separate charts then monitor the values
  after an error and those after a correct prediction: if the errors are a Markov chain, the values of each chart are
  independent. If errors follow errors so often that the limit of a chart would exceed 1, its share of false alarms is
  given to the other chart.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, check_choice
from tamis.dependence.autocorrelation import inflation_before
from tamis.drift.detector import EVERY, Detector

_WEIGHT = 0.2
_MIN_VALUES = 30

# Mean time to a false alarm -> coefficients of 1, p, p^3, p^5, p^7 (Ross et al., table 1).
_POLYNOMIAL = {
    100: (2.76, -6.23, 18.12, -312.45, 1002.18),
    400: (3.97, -6.56, 48.73, -330.13, 848.18),
    1000: (1.17, 7.56, -21.24, 112.12, -987.23),
}
# Simulated limits for it at these p: from .02 to .5 from 3,000 paths each; elsewhere from 400,000 values, with the same
# false alarm rate.
_P = np.array(
    [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7]
)
_LIMIT = {
    100: np.array(
        [3.88, 3.88, 3.88, 3.88, 2.96, 2.75, 2.53, 2.41, 2.32, 2.25, 2.17, 2.09, 2.02, 1.95, 1.90, 1.83, 1.61]
    ),
    400: np.array(
        [6.93, 8.14, 5.55, 4.74, 4.28, 3.64, 3.32, 3.12, 2.96, 2.82, 2.70, 2.58, 2.46, 2.35, 2.24, 2.11, 1.82]
    ),
    1000: np.array(
        [12.5, 8.07, 6.06, 5.55, 4.74, 4.11, 3.76, 3.50, 3.28, 3.11, 2.96, 2.80, 2.66, 2.52, 2.37, 2.22, 1.92]
    ),
}
_GRID = np.linspace(0.0, 1.0, 1001)


@njit(allocates=False)
def _reach(p: float, t: float, limits: Floats, halvings: float) -> float:
    """Return L(p) sigma_t of (3), for a mean time to a false alarm of `arl0` / 2^halvings."""
    variance = p * (1.0 - p) * _WEIGHT / (2.0 - _WEIGHT) * (1.0 - (1.0 - _WEIGHT) ** (2.0 * t))  # (2)
    at = p * (limits.shape[1] - 1)
    low = min(int(at), limits.shape[1] - 2)
    limit = limits[0, low] + (at - low) * (limits[0, low + 1] - limits[0, low])
    step = limits[1, low] + (at - low) * (limits[1, low + 1] - limits[1, low])
    return (limit - halvings * step) * np.sqrt(max(variance, 0.0))


@njit(allocates=False)
def _add(x: float, t: float, state: Floats, at: int) -> None:
    """Add the t-th value to the chart p, Z at `state[at:]`."""
    state[at] += (x - state[at]) / t
    state[at + 1] += _WEIGHT * (x - state[at + 1])  # (1)


@njit(allocates=False)
def _event(t: float, state: Floats, at: int, limits: Floats, halvings: float) -> int:
    """Return 2 for a drift, 1 for a warning, else 0, by the chart at `state[at:]` after its t-th value."""
    if t < _MIN_VALUES:
        return 0
    p, reach = state[at], _reach(state[at], t, limits, halvings)
    if state[at + 1] > p + reach:  # (3)
        return 2
    return 1 if state[at + 1] > p + reach / 2.0 else 0


@njit()
def _ecdd(values: Floats, state: Floats, limits: Floats, series: Floats) -> int:
    """State: n, warning, p, Z, whether the last value was an error; then n, p, Z after a correct value, after an error.

    The charts by the last value are updated if there is a series, and detect drifts once values are autocorrelated.
    """
    for i in range(len(values)):
        x = values[i]
        inflation = inflation_before(x, series, EVERY)
        state[0] += 1.0
        chart, n, halvings = 2, state[0], 0.0
        _add(x, n, state, chart)
        if series.shape[0] > 0:
            at = 5 if state[4] < 0.5 else 8
            state[at] += 1.0
            if inflation > 1.0:
                chart, n, after_error = at + 1, state[at], state[8]
                is_known = at == 5 and after_error >= _MIN_VALUES
                if is_known and state[9] + _reach(state[9], after_error, limits, 0.0) >= 1.0:
                    # The chart of values after an error cannot detect a rise: this one gets its false alarms.
                    halvings = min(np.log2(1.0 + after_error / state[5]), 1.0)
            _add(x, state[at], state, at + 1)
            state[4] = 1.0 if x >= 0.5 else 0.0
        event = _event(n, state, chart, limits, halvings)
        state[1] = 1.0 if event == 1 else 0.0
        if event == 2:
            return i
    return -1


def _limits(arl0: int, limit: str) -> Floats:
    """Return the control limits on the grid of p, and by how much they decrease if `arl0` is halved."""

    def at(arl: int) -> Floats:
        limits: Floats = np.zeros(len(_GRID))
        if limit == "simulated":
            limits += np.interp(_GRID, _P, _LIMIT[arl])
            return limits
        for power, factor in zip((0, 1, 3, 5, 7), _POLYNOMIAL[arl], strict=True):
            limits += factor * _GRID**power
        return limits

    # Limits are approximately linear in the logarithm of arl0.
    low, high = (100, 400) if arl0 <= 400 else (400, 1000)
    return np.stack([at(arl0), (at(high) - at(low)) * np.log(2.0) / np.log(high / low)])


class ECDD(Detector):
    """Detects an increase of an error rate by a control chart with a given false alarm rate.

    Parameters
    ----------
    arl0 : {100, 400, 1000}, default=400
        Mean number of values between two false alarms.
    limit : {"simulated", "published"}, default="simulated"
        How the control limit is computed: by simulation, or from the published polynomials (which do not give `arl0`).
    dependence : {"independent", "auto"}, default="independent"
        Whether values are assumed independent, or two charts are used once they are found to be autocorrelated: one for
        the values after an error, one for the others. If errors are a Markov chain, each chart gets independent values.

    Raises
    ------
    ValueError
        If a parameter is not one of these.
    DataError
        If a value is not between 0 and 1.

    References
    ----------
    Ross, Adams, Tasoulis, Hand (2012). Exponentially weighted moving average charts for detecting concept drift.

    Examples
    --------
    The error rate increases from 0.1 to 0.4 after 1000 rows:

    >>> import numpy as np
    >>> from tamis.drift import ECDD
    >>> errors = np.random.default_rng(0).random(1500) < np.repeat([0.1, 0.4], [1000, 500])
    >>> ECDD(arl0=1000).drifts(errors)[1]
    1008
    """

    _shapes = """
        state (11)
        state[:1] float in [0, 2**62]
        state[1:5] float in [0, 1]
        state[5::3] float in [0, 2**62]
        state[6::3] float in [0, 1]
        state[7::3] float in [0, 1]
        _limits (2, 1001) finite
    """

    def __init__(self, arl0: int = 400, limit: str = "simulated", *, dependence: str = "independent") -> None:
        check_choice("limit", limit, ("simulated", "published"))
        if arl0 not in _LIMIT:
            raise ValueError(f"arl0 must be 100, 400 or 1000, got {arl0!r}.")
        self.arl0, self.limit = arl0, limit
        self._limits = _limits(arl0, limit)
        super().__init__(dependence)

    _n_numbers = 11

    def _run(self, values: Floats) -> int:
        return int(_ecdd(values, self.state, self._limits, self._tracked))
