"""Which of many hypotheses their e-values reject, so that the false discovery rate stays below a level.

An e-value is never negative, and its mean is 1 at most if the hypothesis holds. The e-BH procedure rejects the k
largest, k the largest number for which the k-th largest e-value is at least m / (k level): its false discovery rate is
below the level however the e-values depend on one another.

Wang, Ramdas: False discovery rate control with e-values, JRSS B 84(3), 2022.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array

__all__ = ["e_bh"]


def e_bh(log_e: Array, level: float) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected.

    Parameters
    ----------
    log_e : ndarray of shape (m,)
        Logarithms of the e-values.
    level : float
        In (0, 1).

    Returns
    -------
    ndarray of shape (m,), bool

    Examples
    --------
    Of four hypotheses at a level of 0.1, the largest e-value would have to be 40 alone; the two largest need 20 each:

    >>> e_bh(np.log([30.0, 1.0, 25.0, 0.2]), 0.1)
    array([ True, False,  True, False])
    >>> e_bh(np.log([30.0, 1.0, 5.0, 0.2]), 0.1)
    array([False, False, False, False])
    """
    m = len(log_e)
    enough = np.sort(log_e)[::-1] >= np.log(m / (np.arange(1, m + 1) * level))
    if not enough.any():
        return np.zeros(m, dtype=bool)
    k = int(np.flatnonzero(enough)[-1]) + 1
    found: NDArray[np.bool_] = log_e >= np.log(m / (k * level))
    return found
