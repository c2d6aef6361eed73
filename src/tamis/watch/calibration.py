r"""Calibration of a classifier on labelled rows, for :mod:`tamis.watch.causes`.

The probabilities of the model become softmax(b log p_k + a_k): a temperature and an offset per class, fitted by maximum
likelihood with a weak normal prior around b = 1, a = 0 (Guo, Pleiss, Sun, Weinberger, On calibration of modern neural
networks, 2017).

Remaining miscalibration is corrected by the exponent of each log-likelihood ratio l: the largest theta for which the
mean of exp(theta l), plus one standard error, is at most 1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from tamis._validation import Floats, Ints

_LEAST = 1e-3  # lower bound on a probability
_GRID = np.arange(1, 31) / 20


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
    """Return calibrated probabilities (..., c), by one calibration (c + 1) or one for each second last index."""
    logs = np.log(np.maximum(p, _LEAST))
    return np.asarray(softmax(calibration[..., :1] * logs + calibration[..., 1:], axis=-1))


def find_exponents(ratios: Floats) -> Floats:
    """Return the exponent of each column of log-likelihood ratios, in [0.05, 1.5].

    Parameters
    ----------
    ratios : ndarray of shape (n, h)

    Examples
    --------
    For normal ratios of mean -1/2 and standard deviation s, the mean is 1 at an exponent of 1 / s^2; the estimate is
    lower:

    >>> l = np.random.default_rng(0).normal(-0.5, [1.0, 1.2], size=(5000, 2))
    >>> find_exponents(l).round(2)
    array([0.95, 0.65])
    """
    n, h = ratios.shape
    exponents = np.empty(h)
    for k in range(h):
        powers = np.exp(_GRID[:, None] * ratios[:, k])
        bound = powers.mean(axis=1) + powers.std(axis=1) / math.sqrt(n)
        exponents[k] = np.where(bound <= 1.0, _GRID, _GRID[0]).max()
    return exponents
