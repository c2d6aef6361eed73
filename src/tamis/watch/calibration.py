r"""Calibration of a classifier on labelled rows, for :mod:`tamis.watch.lost`.

The probabilities of the model become softmax(b log p_k + a_k): a temperature and an offset per class, fitted by maximum
likelihood with a weak normal prior around b = 1, a = 0 (Guo, Pleiss, Sun, Weinberger, On calibration of modern neural
networks, 2017).

Remaining miscalibration is corrected by the exponent of each log-likelihood ratio l: the largest theta for which the
mean of exp(theta l), plus one standard error, is at most 1. For autocorrelated rows, theta is reduced.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from tamis._validation import Floats, Ints

__all__ = ["find_exponents", "fit_calibration", "recalibrate"]


_LEAST = 1e-3  # lower bound on a probability
_GRID = np.arange(1, 31) / 20
_BLOCK = 20
_DEPENDENT = 1.5


def fit_calibration(p: Floats, codes: Ints) -> Floats:
    """Return b, a_0, ..., a_{c-1}.

    Parameters
    ----------
    p : ndarray of shape (n, c)
        Probabilities.
    codes : ndarray of shape (n,)
        The true classes; rows with a code of c, a class unknown to the model, are ignored.

    Examples
    --------
    The model predicts 0.9 where 0.75 would be correct, so its log-odds are halved:

    >>> p = np.tile([[0.9, 0.1], [0.1, 0.9]], (500, 1))
    >>> codes = np.tile([0, 1, 0, 1, 0, 1, 1, 0], 125)
    >>> calibration = fit_calibration(p, codes)
    >>> recalibrate(p[:2], calibration).round(2)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    n_classes = p.shape[1]
    known = codes < n_classes
    logs = np.log(np.maximum(p[known], _LEAST))
    hits = codes[known, None] == np.arange(n_classes)
    prior = np.eye(1, n_classes + 1)[0]

    def loss(weights: Floats) -> tuple[float, Floats]:
        log_q = log_softmax(weights[0] * logs + weights[1:], axis=1)
        excess = np.exp(log_q) - hits
        slope = np.append((excess * logs).sum(), excess.sum(axis=0)) + (weights - prior)
        return 0.5 * float(np.sum((weights - prior) ** 2)) - float(log_q[hits].sum()), slope

    return np.asarray(minimize(loss, prior, jac=True, method="L-BFGS-B").x)


def recalibrate(p: Floats, calibration: Floats) -> Floats:
    """Return the calibrated probabilities of an array of shape (..., c)."""
    return np.asarray(softmax(calibration[0] * np.log(np.maximum(p, _LEAST)) + calibration[1:], axis=-1))


def find_exponents(ratios: Floats) -> tuple[Floats, float]:
    """Return the exponent of each column of log-likelihood ratios, and the variance inflation, 1 for independent rows.

    The exponent is in [0.05, 1.5]. It is divided by the inflation, which is the ratio of the variance of sums of 20
    rows to that of 20 independent rows, if this exceeds 1. An inflation above 1.5 indicates autocorrelated rows, for
    which the estimates are uncertain: all columns then share the largest inflation, and the exponent is at most 1
    before the division.

    Parameters
    ----------
    ratios : ndarray of shape (n, h)
        In row order; n is a multiple of 20.

    Examples
    --------
    For normal ratios of mean -1/2 and variance v, the mean is 1 at an exponent of 1 / v; the estimate is lower:

    >>> l = np.random.default_rng(0).normal(-0.5, [1.0, 1.2], size=(5000, 2))
    >>> exponents, inflation = find_exponents(l)
    >>> exponents.round(2), inflation
    (array([0.78, 0.54]), 1.0)
    """
    n, h = ratios.shape
    powers = np.exp(_GRID[:, None, None] * ratios)
    bounds = powers.mean(axis=1) + powers.std(axis=1) / math.sqrt(n)
    largest = np.where(bounds <= 1.0, _GRID[:, None], _GRID[0]).max(axis=0)
    sums = ratios.reshape(-1, _BLOCK, h).sum(axis=1)
    inflation = sums.var(axis=0, ddof=1) / np.maximum(_BLOCK * ratios.var(axis=0), 1e-12)
    largest_inflation = float(inflation.max())
    if largest_inflation > _DEPENDENT:
        return np.minimum(largest, 1.0) / largest_inflation, largest_inflation
    return largest / np.maximum(inflation, 1.0), 1.0
