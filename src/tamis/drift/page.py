"""Page's CUSUM: have the errors of a classifier risen, within the classes, since some row?

Page, Continuous inspection schemes, Biometrika 1954. With p_c the share of the rows of class c that the classifier had
wrong, and p1_c half way from there to what it would have wrong if its guesses did not depend on the class::

    p1_c = (p_c + max(p_c, 1 - q_c)) / 2 + 0.01        q_c: share of the guesses that are c                 (1)
    S <- max(0, S + ln(p1_c / p_c))   at an error in a row of class c
    S <- max(0, S + ln((1 - p1_c) / (1 - p_c)))   else                                                      (2)

S is the best evidence that the errors have risen since some row; that row is where S was last 0. Beyond ln(1 / alpha),
it is false once in 1 / alpha rows at the most, if the p_c are right. A classifier errs within a class as often as
before when the classes come in other shares, so S does not take that for a drift.
"""

from __future__ import annotations

import numpy as np

from tamis._check import Array
from tamis._jit import njit

__all__ = ["hear", "prepare"]


@njit(strict=True)
def prepare(wrong: Array, rows: Array, chance: Array, steps: Array) -> None:
    """Write the steps (2).

    Parameters
    ----------
    wrong, rows : ndarray of shape (n_classes,)
        Of how many rows of each class how many were wrong, in (0, rows).
    chance : ndarray of shape (n_classes,)
        1 - q_c.
    steps : ndarray of shape (2, n_classes), float64
        Written: the step at a row that is right, and at one that is wrong.

    Examples
    --------
    >>> steps = np.empty((2, 2))
    >>> prepare(np.array([10.0, 20.0]), np.array([100.0, 100.0]), np.array([0.5, 0.5]), steps)
    >>> steps.round(2)
    array([[-0.27, -0.22],
           [ 1.13,  0.59]])
    """
    for c in range(len(wrong)):
        p = min(wrong[c] / rows[c], 0.98)
        drifted = (p + min(max(p, chance[c]), 0.98)) / 2.0 + 0.01  # (1)
        steps[0, c], steps[1, c] = np.log((1.0 - drifted) / (1.0 - p)), np.log(drifted / p)


@njit(strict=True)
def hear(wrong: bool, code: int, evidence: Array, steps: Array) -> float:
    """Take in whether a row of a class was wrong (2); return S.

    Parameters
    ----------
    wrong : bool
    code : int
    evidence : ndarray of shape (2,), float64
        Changed: S, and the rows since it was 0.
    steps : ndarray of shape (2, n_classes), float64
        See :func:`prepare`.

    Examples
    --------
    >>> evidence, steps = np.zeros(2), np.array([[-0.3], [1.0]])
    >>> [round(hear(wrong, 0, evidence, steps), 1) for wrong in (False, True, False, True)]
    [0.0, 1.0, 0.7, 1.7]
    >>> evidence[1]
    np.float64(3.0)
    """
    evidence[0] = max(0.0, evidence[0] + steps[int(wrong), code])
    evidence[1] = evidence[1] + 1.0 if evidence[0] > 0.0 else 0.0
    return float(evidence[0])
