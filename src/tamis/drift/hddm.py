"""HDDM-A and HDDM-W: drifts of a bounded mean by Hoeffding's and McDiarmid's bounds.

Frias-Blanco et al.: Online and Non-Parametric Drift Detection Methods Based on Hoeffding's Bounds, IEEE TKDE 27(3),
2015; Barddal's thesis, A.4.

With e(n, a) = sqrt(ln(1 / a) / (2 n)), the mean of all n values, and the prefix of n0 values with the smallest mean +
e::

    A: drift if  mean - mean0 >= sqrt(m / 2 ln(2 / a)),   m = (n - n0) / (n0 n)                 (1)

With exponentially weighted means of rate lambda, D_t = lambda^2 + (1 - lambda)^2 D_{t-1} the sum of squared weights,
mean1 and D1 at the minimum of mean + sqrt(D ln(1 / a) / 2), mean2 and D2 of the later values::

    W: drift if  mean2 - mean1 > sqrt((D1 + D2) / 2 ln(1 / a))                                  (2)

A warning is the same with a larger a. Deviations, each with its reason:

* The thesis prints a warning level below the drift level; then a warning would never precede a drift.
* In the authors' program all instances of HDDM-W share their samples; here each instance has its own.
* Both detect an increase, which is relevant for errors; `two_sided` also detects a decrease.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, check_choice, check_number
from tamis.dependence.autocorrelation import inflation_before
from tamis.drift.detector import EVERY, Detector


@njit()
def _hddm_a(
    values: Floats, state: Floats, drift: float, warning: float, two_sided: bool, series: Floats
) -> int:
    """State: n, warning, mean, then n and mean of the prefixes of smallest and largest mean."""
    for i in range(len(values)):
        inflation = inflation_before(values[i], series, EVERY)
        bound = inflation * np.log(1.0 / drift) / 2.0
        state[0] += 1.0
        n = state[0]
        state[2] += (values[i] - state[2]) / n
        mean, reach = state[2], np.sqrt(bound / n)
        if state[3] == 0.0 or state[4] + np.sqrt(bound / state[3]) >= mean + reach:
            state[3], state[4] = n, mean
        if state[5] == 0.0 or state[6] - np.sqrt(bound / state[5]) <= mean - reach:
            state[5], state[6] = n, mean
        rise, fall = mean - state[4], state[6] - mean
        up, down = (n - state[3]) / (state[3] * n) / 2.0, (n - state[5]) / (state[5] * n) / 2.0
        log_drift, log_warning = inflation * np.log(2.0 / drift), inflation * np.log(2.0 / warning)
        if up > 0.0 and rise >= np.sqrt(up * log_drift):  # (1)
            return i
        if two_sided and down > 0.0 and fall >= np.sqrt(down * log_drift):
            return i
        suspect = up > 0.0 and rise >= np.sqrt(up * log_warning)
        suspect |= two_sided and down > 0.0 and fall >= np.sqrt(down * log_warning)
        state[1] = 1.0 if suspect else 0.0
    return -1


@njit()
def _hddm_w(
    values: Floats, state: Floats, drift: float, warning: float, two_sided: bool, rate: float, series: Floats
) -> int:
    """State: n, warning, mean, D; then for rises and for falls: cut, mean1, D1, mean2, D2 (0 where there is none)."""
    for i in range(len(values)):
        x = values[i]
        inflation = inflation_before(x, series, EVERY)
        bound, bound_warning = inflation * np.log(1.0 / drift) / 2.0, inflation * np.log(1.0 / warning) / 2.0
        state[0] += 1.0
        if state[0] == 1.0:
            state[2], state[3] = x, 1.0
        else:
            state[2] += rate * (x - state[2])
            state[3] = rate**2 + (1.0 - rate) ** 2 * state[3]
        state[1] = 0.0
        for side in range(2 if two_sided else 1):
            sign = 1.0 if side == 0 else -1.0
            at = 4 + 5 * side
            cut = sign * state[2] + np.sqrt(state[3] * bound)
            # The stored cut may be of another inflation.
            least = sign * state[at + 1] + np.sqrt(state[at + 2] * bound)
            if state[0] == 1.0 or cut < least:
                state[at], state[at + 1], state[at + 2] = cut, state[2], state[3]
                state[at + 3], state[at + 4] = 0.0, 0.0
            elif state[at + 4] == 0.0:
                state[at + 3], state[at + 4] = x, 1.0
            else:
                state[at + 3] += rate * (x - state[at + 3])
                state[at + 4] = rate**2 + (1.0 - rate) ** 2 * state[at + 4]
            if state[at + 4] > 0.0:
                moved, spread = sign * (state[at + 3] - state[at + 1]), state[at + 2] + state[at + 4]
                if moved > np.sqrt(spread * bound):  # (2)
                    return i
                if moved > np.sqrt(spread * bound_warning):
                    state[1] = 1.0
    return -1


def _check_levels(drift: float, warning: float) -> None:
    check_number("alpha", drift, low=0, high=1, open_low=True, open_high=True)
    check_number("alpha_warning", warning, low=0, high=1, open_low=True, open_high=True)
    if warning < drift:
        raise ValueError(f"alpha_warning={warning} is below alpha={drift}: choose alpha_warning >= alpha.")


class HDDMA(Detector):
    """Detects an increase of the mean of values in [0, 1], by comparing their mean with that of the best prefix.

    Parameters
    ----------
    alpha : float, default=0.001
        Level of a drift at each value, in (0, 1); the false alarms of many values add up.
    alpha_warning : float, default=0.005
        Level of a warning, from `alpha` to 1.
    two_sided : bool, default=False
        Whether a decrease is also reported as a drift.
    dependence : {"independent", "auto"}, default="independent"
        Whether values are assumed independent, or the bound is widened once they are found to be autocorrelated.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If a value is not between 0 and 1.

    References
    ----------
    Frias-Blanco et al. (2015). Online and Non-Parametric Drift Detection Methods Based on Hoeffding's Bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.drift import HDDMA
    >>> errors = np.random.default_rng(0).random(1500) < np.repeat([0.1, 0.4], [1000, 500])
    >>> HDDMA().drifts(errors)
    [1017]
    """

    _shapes = """
        state (7) float in [0, 2**62]
        state[1:3] float in [0, 1]
        state[3::2] float in [0, state[0]]
        state[4::2] float in [0, 1]
        alpha float in (0, 1]  alpha_warning float in (0, 1]
    """

    def __init__(
        self,
        alpha: float = 0.001,
        alpha_warning: float = 0.005,
        *,
        two_sided: bool = False,
        dependence: str = "independent",
    ) -> None:
        _check_levels(alpha, alpha_warning)
        check_choice("two_sided", two_sided, (False, True))
        self.alpha, self.alpha_warning, self.two_sided = alpha, alpha_warning, two_sided
        super().__init__(dependence)

    _n_numbers = 7

    def _run(self, values: Floats) -> int:
        how = self.alpha, self.alpha_warning, self.two_sided, self._tracked
        return int(_hddm_a(values, self.state, *how))


class HDDMW(Detector):
    """Detects an increase of the recent mean of values in [0, 1], by exponentially weighted means.

    Parameters
    ----------
    alpha : float, default=0.001
        Level of a drift at each value, in (0, 1); the false alarms of many values add up.
    alpha_warning : float, default=0.005
        Level of a warning, from `alpha` to 1.
    rate : float, default=0.05
        lambda: weight of the newest value, in (0, 1].
    two_sided : bool, default=False
        Whether a decrease is also reported as a drift.
    dependence : {"independent", "auto"}, default="independent"
        Whether values are assumed independent, or the bound is widened once they are found to be autocorrelated.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If a value is not between 0 and 1.

    References
    ----------
    Frias-Blanco et al. (2015). Online and Non-Parametric Drift Detection Methods Based on Hoeffding's Bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.drift import HDDMW
    >>> errors = np.random.default_rng(0).random(1500) < np.repeat([0.1, 0.6], [1000, 500])
    >>> HDDMW().drifts(errors)
    [1012]
    """

    _shapes = """
        state (14) finite
        state[:4] float in [0, 2**62]
        state[6:9:2] float in [0, 1]
        state[11::2] float in [0, 1]
        alpha float in (0, 1]  alpha_warning float in (0, 1]  rate float in (0, 1]
    """

    def __init__(
        self,
        alpha: float = 0.001,
        alpha_warning: float = 0.005,
        *,
        rate: float = 0.05,
        two_sided: bool = False,
        dependence: str = "independent",
    ) -> None:
        _check_levels(alpha, alpha_warning)
        check_number("rate", rate, low=0, high=1, open_low=True)
        check_choice("two_sided", two_sided, (False, True))
        self.alpha, self.alpha_warning, self.rate, self.two_sided = alpha, alpha_warning, rate, two_sided
        super().__init__(dependence)

    _n_numbers = 14

    def _run(self, values: Floats) -> int:
        how = self.alpha, self.alpha_warning, self.two_sided, self.rate, self._tracked
        return int(_hddm_w(values, self.state, *how))
