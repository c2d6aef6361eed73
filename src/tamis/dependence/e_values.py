"""Multiple testing with e-values: control of the false discovery rate.

An e-value is nonnegative, and its mean is at most 1 under the null hypothesis. The e-BH procedure rejects the k
hypotheses with the largest e-values, k the largest number for which the k-th largest e-value is at least m / (k level):
its false discovery rate is below the level under any dependence of the e-values.

A procedure that restarts, for example after a drift, has a false discovery rate after each start. To bound their sum by
the level, the k-th start gets a share of it (alpha-spending, Foster, Stine 2008, over starts):

    level_k = level g(k),    g(k) = 6 / (pi k)^2,    sum_k g(k) = 1                                      (1)

Vovk, Wang: E-values: calibration, combination and applications, Annals of Statistics 49(3), 2021.
Wang, Ramdas: False discovery rate control with e-values, JRSS B 84(3), 2022.
Foster, Stine: alpha-investing, a procedure for sequential control of expected false discoveries, JRSS B 70(2), 2008.
"""

from __future__ import annotations

import numpy as np

from tamis._validation import Array, Mask


def e_bh(log_e: Array, level: float) -> Mask:
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
    With four hypotheses at level 0.1, one rejection requires an e-value of 40, two rejections require 20 each:

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
    return log_e >= np.log(m / (k * level))


def restart_level(level: float, k: int) -> float:
    """Return the level of the k-th start, counted from 1, (1).

    Examples
    --------
    >>> [round(restart_level(0.05, k), 4) for k in (1, 2, 10)]
    [0.0304, 0.0076, 0.0003]
    """
    return float(level * 6.0 / (np.pi * k) ** 2)
