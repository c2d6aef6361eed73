"""DDM: an error rate that exceeds its minimum by several standard deviations.

Gama, Medas, Castillo, Rodrigues: Learning with Drift Detection, SBIA 2004. With p the mean of all n errors since the
last drift, s its standard deviation, and p_min, s_min those at the minimum of p + s::

    s = sqrt(p (1 - p) / n)                                                                     (1)
    drift if p + s > p_min + 3 s_min,   warning if p + s > p_min + 2 s_min                      (2)

No drift is detected in the first 30 values. The paper prints ">=" in (2), which would detect a drift without any error;
the implementation uses ">". If the first values include no error, p_min = s_min = 0 and the first error is a drift, as
printed.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, check_number
from tamis.dependence.autocorrelation import inflation_before
from tamis.drift.detector import EVERY, Detector

_MIN_VALUES = 30


@njit()
def _ddm(values: Floats, state: Floats, drift: float, warning: float, series: Floats) -> int:
    """State: n, warning, p, then p and s at the minimum of their sum."""
    for i in range(len(values)):
        wide = np.sqrt(inflation_before(values[i], series, EVERY))
        state[0] += 1.0
        n = state[0]
        state[2] += (values[i] - state[2]) / n
        if n <= _MIN_VALUES:
            continue
        p = state[2]
        s = np.sqrt(max(p * (1.0 - p), 0.0) / n)  # (1)
        if p + wide * s <= state[3] + wide * state[4]:
            state[3], state[4] = p, s
        if p + wide * s > state[3] + drift * wide * state[4]:  # (2)
            return i
        state[1] = 1.0 if p + wide * s > state[3] + warning * wide * state[4] else 0.0
    return -1


class DDM(Detector):
    """Detects that the mean of values in [0, 1] has risen some standard deviations above its minimum.

    Parameters
    ----------
    drift : float, default=3.0
        Number of standard deviations for a drift, above 0.
    warning : float, default=2.0
        Number of standard deviations for a warning, above 0 and up to `drift`.
    dependence : {"independent", "auto"}, default="independent"
        Whether values are assumed independent, or the bound is widened once they are found to be autocorrelated.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If a value is not between 0 and 1.

    Notes
    -----
    All values since the last drift have equal weight, so the detection delay grows with the time since the last drift.

    References
    ----------
    Gama, Medas, Castillo, Rodrigues (2004). Learning with Drift Detection.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.drift import DDM
    >>> errors = np.random.default_rng(0).random(1500) < np.repeat([0.1, 0.4], [1000, 500])
    >>> DDM().drifts(errors)
    [1041]
    """

    _shapes = """
        state (5)
        state[:1] float in [0, 2**62]
        state[1:3] float in [0, 1]
        state[3:4] float in [0, inf]
        state[4:] float in [0, 1]
    """

    def __init__(self, drift: float = 3.0, warning: float = 2.0, *, dependence: str = "independent") -> None:
        check_number("drift", drift, low=0, open_low=True, open_high=True)
        check_number("warning", warning, low=0, open_low=True, open_high=True)
        if warning > drift:
            raise ValueError(f"warning={warning} is above drift={drift}: choose warning <= drift.")
        self.drift, self.warning = drift, warning
        super().__init__(dependence)

    def _initial_state(self) -> Floats:
        return np.array([0.0, 0.0, 0.0, np.inf, 0.0])

    def _run(self, values: Floats) -> int:
        how = float(self.drift), float(self.warning), self._tracked
        return int(_ddm(values, self.state, *how))
