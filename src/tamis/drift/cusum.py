"""Page's CUSUM: detects an increase of the error rates of a classifier within the classes.

Page, Continuous inspection schemes, Biometrika 1954. With p_c the error rate of the classifier on rows of class c, and
p1_c the midpoint between p_c and the error rate of predictions that are independent of the class::

    p1_c = (p_c + max(p_c, 1 - q_c)) / 2 + 0.01        q_c: share of the predictions that are c                 (1)
    S <- max(0, S + ln(p1_c / p_c))   at an error in a row of class c
    S <- max(0, S + ln((1 - p1_c) / (1 - p_c)))   else                                                      (2)

S is the largest log likelihood ratio for an increase of the error rates since some row; that row is where S was last 0.
If the p_c are correct, S exceeds ln(1 / alpha) by chance at most once in 1 / alpha rows. A change of the class
frequencies leaves the error rates within the classes unchanged, so S does not report it as a drift.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array


@njit(strict=True)
def log_likelihood_steps(wrong: Array, rows: Array, chance: Array, steps: Array) -> None:
    """Write the steps of (2).

    Parameters
    ----------
    wrong, rows : ndarray of shape (n_classes,)
        Number of errors in each class, in (0, rows), and number of rows.
    chance : ndarray of shape (n_classes,)
        1 - q_c.
    steps : ndarray of shape (2, n_classes), float64
        Written: the step for a correct prediction, and for an error.

    Examples
    --------
    >>> steps = np.empty((2, 2))
    >>> log_likelihood_steps(np.array([10.0, 20.0]), np.array([100.0, 100.0]), np.array([0.5, 0.5]), steps)
    >>> steps.round(2)
    array([[-0.27, -0.22],
           [ 1.13,  0.59]])
    """
    for c in range(len(wrong)):
        p = min(wrong[c] / rows[c], 0.98)
        drifted = (p + min(max(p, chance[c]), 0.98)) / 2.0 + 0.01  # (1)
        steps[0, c], steps[1, c] = np.log((1.0 - drifted) / (1.0 - p)), np.log(drifted / p)


@njit(strict=True)
def update_cusum(wrong: bool, code: int, evidence: Array, steps: Array) -> float:
    """Update S with one prediction, (2); return S.

    Parameters
    ----------
    wrong : bool
        Whether the prediction was an error.
    code : int
        Class of the row.
    evidence : ndarray of shape (2,), float64
        Updated: S, and the number of rows since it was 0.
    steps : ndarray of shape (2, n_classes), float64
        See :func:`log_likelihood_steps`.

    Examples
    --------
    >>> evidence, steps = np.zeros(2), np.array([[-0.3], [1.0]])
    >>> [round(update_cusum(wrong, 0, evidence, steps), 1) for wrong in (False, True, False, True)]
    [0.0, 1.0, 0.7, 1.7]
    >>> evidence[1]
    np.float64(3.0)
    """
    evidence[0] = max(0.0, evidence[0] + steps[int(wrong), code])
    evidence[1] = evidence[1] + 1.0 if evidence[0] > 0.0 else 0.0
    return float(evidence[0])
