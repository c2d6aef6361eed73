"""Which of many hypotheses their e-values reject, so that the false discovery rate stays below a level.

An e-value is never negative, and its mean is 1 at most if the hypothesis holds. The e-BH procedure rejects the k
largest, k the largest number for which the k-th largest e-value is at least m / (k level): its false discovery rate is
below the level however the e-values depend on one another.

A procedure that restarts, after a drift, say, has a false discovery rate each time. So that all of them together
stay below the level, the k-th beginning is given a share of it (alpha-spending, Foster, Stine 2008, over beginnings):

    level_k = level g(k),    g(k) = 6 / (pi k)^2,    sum_k g(k) = 1                                      (1)

Wang, Ramdas: False discovery rate control with e-values, JRSS B 84(3), 2022.
Foster, Stine: alpha-investing, a procedure for sequential control of expected false discoveries, JRSS B 70(2), 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array

__all__ = ["e_bh", "level_of_beginning"]


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


def level_of_beginning(level: float, k: int) -> float:
    """Return what the k-th beginning, counted from 1, may spend of the level, (1).

    Examples
    --------
    >>> [round(level_of_beginning(0.05, k), 4) for k in (1, 2, 10)]
    [0.0304, 0.0076, 0.0003]
    """
    return float(level * 6.0 / (np.pi * k) ** 2)
