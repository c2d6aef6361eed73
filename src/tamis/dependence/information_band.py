"""An exact, time-uniform confidence band of the mutual information of a binned feature and the class.

Rows of class c fall into K bins with probabilities p_c, identically distributed. The mixture of the likelihoods of all
p_c by a Dirichlet distribution, divided by the likelihood of the true ones, is a martingale that starts at 1, so by
Ville's inequality, with probability 1 - alpha at all times::

    sum_c n_c KL(q_c | p_c) <= log(1 / alpha) + sum_c [log max likelihood_c - log mixture_c]  =: n r       (1)

with q_c the bin proportions of the n_c rows of class c. With the class proportions w_c = n_c / n, the mutual
information is I = sum_c w_c KL(p_c | m), m = sum_c w_c p_c, which is convex in p. Its minimum and maximum in the region
(1) are bounded by duality; every t, eta and lambda gives a bound, and the best of several is used.

* I >= sum_c w_c sum_b p_cb g_cb, a tangent, for g = log(1 - t + t q_cb / m'_b), t in [0, 1) and m' the mean of q; and
  log E_p(1 + eta g) >= E_q log(1 + eta g) - r wherever 1 + eta g > 0 (Donsker, Varadhan), so

  I >= [exp(E_q log(1 + eta g) - r) - 1] / eta                                                                   (2)

* I <= sum_c w_c KL(p_c | m') for every m'; and with phi(p, m) = p log(p / m) - p + m,

  I <= lambda r + sum_cb w_c max_p [phi(p, m'_b) - lambda phi(q_cb, p)]                                             (3)

No assumption is made on the values or the order of the classes. I refers to the class frequencies so far.

Darling, Robbins: Confidence sequences for mean, variance, and median, PNAS 58(1), 1967 (mixtures).
Krichevsky, Trofimov: The performance of universal encoding, IEEE Transactions on Information Theory 27(2), 1981 (1/2).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from tamis._validation import Array, Floats

_TOWARDS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.99)  # t of the tangents, from independence to the observed shares
_ETAS = np.geomspace(1e-2, 0.999, 16)  # fractions of the largest
_LAMBDAS = 1.0 + np.geomspace(0.1, 1e3, 16)
_HALVINGS = 40
_PART = 256  # features processed together


def information_band(table: Array, alpha: float) -> tuple[Floats, Floats]:
    """Return a lower and an upper bound of the mutual information of bin and class of each feature, in nats.

    Parameters
    ----------
    table : ndarray of shape (n_features, n_bins, n_classes), float64
        Number of rows; the edges of the bins must not depend on them.
    alpha : float
        In (0, 1): the probability that the band of a feature is ever wrong.

    Returns
    -------
    low, high : ndarray of shape (n_features,), float64
        Initially 0 and log(n_classes).

    Examples
    --------
    For 10,000 rows in two bins, with an estimated information of 0.02:

    >>> low, high = information_band(np.array([[[3000.0, 2000.0], [2000.0, 3000.0]]]), 0.05)
    >>> low.round(3), high.round(3)
    (array([0.011]), array([0.031]))
    """
    low, high = np.zeros(len(table)), np.full(len(table), np.log(max(table.shape[2], 1)))
    for start in range(0, len(table), _PART):
        part = slice(start, start + _PART)
        some = np.flatnonzero(table[part].sum(axis=(1, 2)) > 0.0) + start
        if len(some):
            q, w, r = _region(table[some], alpha)
            low[some], high[some] = _lower_bound(q, w, r), np.minimum(high[some], _upper_bound(q, w, r))
    return low, high


def _region(table: Array, alpha: float) -> tuple[Array, Array, Array]:
    """Return the shares q of the bins in each class, the shares w of the classes, and the radius r (1)."""
    n_bins, rows = table.shape[1], table.sum(axis=1)
    q = table / np.maximum(rows, 1.0)[:, None]
    likelihood = xlogy(table, q).sum(axis=(1, 2))
    mixture = (
        gammaln(n_bins / 2.0)
        - gammaln(rows + n_bins / 2.0)
        + (gammaln(table + 0.5) - gammaln(0.5)).sum(axis=1)
    )
    n = rows.sum(axis=1)
    return q, rows / n[:, None], (np.log(1.0 / alpha) + likelihood - mixture.sum(axis=1)) / n


def _lower_bound(q: Array, w: Array, r: Array) -> Floats:
    """Return (2), at least 0."""
    mean = (q * w[:, None]).sum(axis=2, keepdims=True)
    share = np.divide(q, mean, out=np.ones_like(q), where=mean > 0.0)
    best = np.zeros(len(q))
    for t in _TOWARDS:
        g = np.log(1.0 - t + t * share)
        lowest = np.maximum(-g.min(axis=(1, 2)), 1e-12)
        for part in _ETAS:
            eta = part / lowest
            gain = (q * w[:, None] * np.log1p(eta[:, None, None] * g)).sum(axis=(1, 2))
            best = np.maximum(best, np.expm1(gain - r) / eta)
    return best


def _upper_bound(q: Array, w: Array, r: Array) -> Floats:
    """Return (3)."""
    mean = (q * w[:, None]).sum(axis=2, keepdims=True)
    n_bins = q.shape[1]
    mean = (1.0 - 1e-3) * mean + 1e-3 / n_bins  # no bin is empty
    best = np.full(len(q), np.inf)
    for factor in _LAMBDAS:
        inner = (w[:, None] * _inner_maximum(q, mean, factor)).sum(axis=(1, 2))
        best = np.minimum(best, factor * r + inner)
    return best


def _inner_maximum(q: Array, mean: Array, factor: float) -> Floats:
    """Return max over p in [0, 1] of phi(p, mean) - factor phi(q, p), cell by cell.

    It is concave up to factor q, convex beyond: the maximum is at an end, or at a stationary point in the concave part.
    """
    left, right = np.zeros_like(q), np.minimum(factor * q, 1.0)
    for _ in range(_HALVINGS):
        p = np.maximum(0.5 * (left + right), 1e-300)
        rising = np.log(p / mean) + factor * (q / p - 1.0) > 0.0
        left, right = np.where(rising, p, left), np.where(rising, right, p)
    ends = (np.maximum(0.5 * (left + right), 1e-300), np.ones_like(q), np.full_like(q, 1e-300))
    return np.max([_phi(p, mean) - factor * _phi(q, p) for p in ends], axis=0)


def _phi(p: Array, m: Array) -> Floats:
    return xlogy(p, p / m) - p + m
