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
* The first 30 values are never a drift, because p_t is then imprecise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import check_choice
from tamis.drift.detector import Detector

__all__ = ["ECDD"]

Floats = NDArray[np.float64]
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


@njit()
def _ecdd(values: Floats, state: Floats, limit: Floats) -> int:
    for i in range(len(values)):
        x = values[i]
        state[0] += 1.0
        t = state[0]
        state[2] += (x - state[2]) / t
        state[3] += _WEIGHT * (x - state[3])  # (1)
        state[1] = 0.0
        if t < _MIN_VALUES:
            continue
        p = state[2]
        variance = p * (1.0 - p) * _WEIGHT / (2.0 - _WEIGHT) * (1.0 - (1.0 - _WEIGHT) ** (2.0 * t))  # (2)
        at = p * (len(limit) - 1)
        low = min(int(at), len(limit) - 2)
        reach = (limit[low] + (at - low) * (limit[low + 1] - limit[low])) * np.sqrt(max(variance, 0.0))
        if state[3] > p + reach:  # (3)
            return i
        if state[3] > p + reach / 2.0:
            state[1] = 1.0
    return -1


class ECDD(Detector):
    """Detects an increase of an error rate by a control chart with a given false alarm rate.

    Parameters
    ----------
    arl0 : {100, 400, 1000}, default=400
        Mean number of values between two false alarms.
    limit : {"simulated", "published"}, default="simulated"
        How the control limit is computed: by simulation, or from the published polynomials (which do not give `arl0`).

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
        state (4)
        state[:1] float in [0, 2**62]
        state[1:] float in [0, 1]
        _limits (1001) finite
    """

    def __init__(self, arl0: int = 400, limit: str = "simulated") -> None:
        check_choice("limit", limit, ("simulated", "published"))
        if arl0 not in _LIMIT:
            raise ValueError(f"arl0 must be 100, 400 or 1000, got {arl0!r}.")
        self.arl0, self.limit = arl0, limit
        if limit == "simulated":
            self._limits = np.interp(_GRID, _P, _LIMIT[arl0])
        else:
            self._limits = np.polynomial.Polynomial([0.0])(_GRID)
            for power, factor in zip((0, 1, 3, 5, 7), _POLYNOMIAL[arl0], strict=True):
                self._limits += factor * _GRID**power
        self.reset()

    def _initial_state(self) -> Floats:
        return np.zeros(4)

    def _run(self, values: Floats) -> int:
        return int(_ecdd(values, self.state, self._limits))
