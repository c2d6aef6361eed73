"""The base models of FIRES: linear models whose parameters are independent normal random variables.

Equations (1) to (6) are those of :mod:`tamis.rows.fires.fires`. A step of a model computes the gradients of the rows
(:mod:`tamis.rows.fires.likelihood`) and updates mu and sigma.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._kernels import njit, overwrite
from tamis._validation import Array, Floats, Ints
from tamis.rows.fires.likelihood import curvature, gradients, gradients_csr, slopes, targets
from tamis.summaries.moments import absorbed, inverse_scale

_MAX_BALANCE = 10.0  # maximum weight of a row of a rare class
_STEP_PER_FEATURE, _LONGEST_STEP = 0.1, 10.0

# The kernels `learn_batch`, `_step`, `_step_stored` and `_step_wide` share the order of their arguments; each omits
# those that it does not use:
#   rows       X; data, indices (`_step_wide`: places), indptr and columns: those with stored values, of wide CSR rows
#   target     codes, k, balance, sample_weight   class codes or numbers, the class (< 0: none), class and row weights
#   classes    n_classes, counts                  0 classes: numbers; faded number of earlier rows of each
#   balancing  power, step                        of class weights: 0, 1/2 (their roots) or 1; the step if it is above 0
#   model      link, noise, newton, intercept     likelihood, variance of the noise, kind of the update, intercept used
#   margin     offset                             added to that of every row
#   step       rate, bounded                      learning rate, whether it is limited by the likelihood of the batch
#   fading     keep, prior                        fraction of the evidence that remains, initial standard deviation
#   scaling    centre, inverse                    z = (x - centre) * inverse
#   moments    scaling, mean, m2, rows, later     none, centred (1) or scaled (2) by these moments of so many rows; how
#                                                 many with the batch, if they learn it: dense rows, which are centred
#   state      mu, sigma, bias                    updated in place
#   average    average, share                     running average of mu, and its share of the batch
#   moments    s1, s2                             sums of the deviations and of their squares, updated in place


@njit()
def _gradient_step(
    g1: Array, g2: Array, rate: float, keep: float, prior: float, inverse: Array, mu: Array, sigma: Array
) -> None:
    """Fade old evidence, then take one step along the gradients (2) and (3)."""
    for j in range(mu.shape[0]):
        s = inverse[j]
        deviation = prior + keep * (sigma[j] - prior)
        mu[j] = keep * mu[j] + rate * s * g1[j]
        sigma[j] = max(deviation + rate * deviation * s * s * g2[j], 0.0)


@njit()
def _direction(
    g1: Array, g2: Array, keep: float, prior: float, inverse: Array, sigma: Array, v: Array, step: Array
) -> tuple[float, float]:
    """Write a Newton step for each parameter separately; return its slope and the curvature due to the prior."""
    slope, bend = 0.0, 0.0
    for j in range(sigma.shape[0]):
        s = inverse[j]
        v[j] = min(sigma[j] * sigma[j] / keep, prior * prior)
        step[j] = v[j] / (1.0 + v[j] * s * s * g2[j]) * s * g1[j]
        slope += s * g1[j] * step[j]
        bend += step[j] * step[j] / v[j] if v[j] > 0.0 else 0.0
    return slope, bend


@njit()
def _optimal_step(g1: Array, inverse: Array, bend: float) -> float:
    """Return the step along the gradient that maximises the quadratic approximation of the batch likelihood."""
    slope = 0.0
    for j in range(g1.shape[0]):
        slope += (inverse[j] * g1[j]) ** 2
    return slope / bend if bend > 0.0 else 0.0


@njit()
def _assumed_density_step(
    g2: Array, damping: float, keep: float, inverse: Array, v: Array, step: Array, mu: Array, sigma: Array
) -> None:
    """Take the damped step; the precision increases by the damped curvature (4)."""
    for j in range(mu.shape[0]):
        mu[j] = keep * mu[j] + damping * step[j]
        sigma[j] = math.sqrt(v[j] / (1.0 + damping * v[j] * inverse[j] * inverse[j] * g2[j]))


@njit()
def _finite(g1: Array, g2: Array) -> bool:
    total = 0.0
    for j in range(g1.shape[0]):
        total += g1[j] * 0.0 + g2[j] * 0.0
    return total == 0.0


@njit()
def _shift_bias(bias: Array, sum_a: float, sum_b: float, rate: float, newton: bool) -> None:
    """Update the intercept, a parameter whose feature is always 1."""
    if newton:
        bias[1] = bias[1] / (1.0 + bias[1] * sum_b)
        bias[0] += bias[1] * sum_a
    else:
        bias[0] += rate * sum_a
        bias[1] = (math.sqrt(bias[1]) * max(1.0 + rate * sum_b, 0.0)) ** 2


@njit()
def _fold(
    keep: float, prior: float, inverse: Array, mu: Array, sigma: Array, theta: Array, var: Array
) -> None:
    """Write the faded parameters per unit of x instead of per standard deviation."""
    for j in range(mu.shape[0]):
        deviation = (prior + keep * (sigma[j] - prior)) * inverse[j]
        theta[j] = keep * mu[j] * inverse[j]
        var[j] = deviation * deviation


@njit()
def _step(
    X: Any, data: Any, indices: Any, indptr: Any, codes: Array, k: int, balance: Array, sample_weight: Array, link: int,
    noise: float, newton: bool, intercept: bool, rate: float, bounded: bool, keep: float, prior: float, centre: Array,
    inverse: Array, mu: Array, sigma: Array, bias: Array, s1: Array, s2: Array,
) -> bool:  # fmt: skip
    """Update a model with a batch; return False, without changes, if a sum is not finite.

    The deviations of dense rows from the centre are added to s1 and s2, unless these are empty. CSR rows take O(stored
    values), and O(J) once per batch. The branch for rows of the other kind, which are None, is not compiled.
    """
    n, J = codes.shape[0], mu.shape[0]
    y, w, curve = np.empty(n), np.empty(n), np.empty(n)
    theta, var, g1, g2 = np.empty(J), np.empty(J), np.zeros(J), np.zeros(J)
    total = targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    _fold(keep, prior, inverse, mu, sigma, theta, var)
    sum_a, sum_b = 0.0, 0.0
    if X is not None:
        sum_a, sum_b = gradients(
            X, y, w, link, noise, newton, bias, centre, theta, var, g1, g2, curve, sample_weight, s1, s2
        )
    if indptr is not None:
        sum_a, sum_b = gradients_csr(
            data, indices, indptr, y, w, link, noise, newton, bias, centre, theta, var, g1, g2, curve
        )
    if not (np.isfinite(sum_b) and _finite(g1, g2) and _finite(s1, s2)):
        return False
    if newton:
        v, step = np.empty(J), np.empty(J)
        slope, bend = _direction(g1, g2, keep, prior, inverse, sigma, v, step)
        bend += curvature(X, data, indices, indptr, curve, centre, step * inverse)
        damping = min(1.0, slope / bend) if bend > 0.0 else 0.0
        _assumed_density_step(g2, damping, keep, inverse, v, step, mu, sigma)
    else:
        rate /= total
        if bounded:
            bend = curvature(X, data, indices, indptr, curve, centre, g1 * inverse * inverse)
            rate = min(rate, _optimal_step(g1, inverse, bend))
        _gradient_step(g1, g2, rate, keep, prior, inverse, mu, sigma)
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate, newton)
    return True


@njit()
def _step_stored(
    data: Array, indices: Array, indptr: Array, codes: Array, k: int, balance: Array, sample_weight: Array,
    link: int, noise: float, intercept: bool, rate: float, mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """As `_step` if the zeros of CSR rows have no effect (no centring, no fading): O(stored values) in total."""
    n, J = codes.shape[0], mu.shape[0]
    y, w, g1, g2 = np.empty(n), np.empty(n), np.empty(J), np.empty(J)
    total = targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    for j in indices:
        g1[j], g2[j] = 0.0, 0.0
    sum_a, sum_b = 0.0, 0.0
    for i in range(n):
        d, q = bias[0], noise + bias[1]
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            d += x * mu[j]
            q += (x * sigma[j]) ** 2
        slope, bend, _ = slopes(y[i], d, q, link)
        a, b = w[i] * slope, w[i] * bend
        sum_a += a
        sum_b += b + q * 0.0
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            g1[j] += a * x
            g2[j] += b * x * x
    check = sum_b * 0.0
    for j in indices:
        check += g1[j] * 0.0 + g2[j] * 0.0
    if check != 0.0:
        return False
    for j in indices:
        mu[j] += rate / total * g1[j]
        sigma[j] = max(sigma[j] + rate / total * sigma[j] * g2[j], 0.0)
        g1[j], g2[j] = 0.0, 0.0  # a feature stored in several rows is updated once
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, False)
    return True


@njit()
def _margin_of_zeros(
    keep: float, prior: float, centre: Array, inverse: Array, mu: Array, sigma: Array
) -> tuple[float, float]:
    """Return the contributions of features to d and q of a row in which they are 0."""
    d, q = 0.0, 0.0
    for j in range(mu.shape[0]):
        z = centre[j] * inverse[j]
        deviation = (prior + keep * (sigma[j] - prior)) * z
        d -= keep * mu[j] * z
        q += deviation * deviation
    return d, q


@njit()
def _margin_outside(
    columns: Array, keep: float, prior: float, centre: Array, inverse: Array, mu: Array, sigma: Array
) -> tuple[float, float]:
    """As `_margin_of_zeros` for all features outside `columns`."""
    d, q, first = 0.0, 0.0, 0
    for part in range(columns.shape[0] + 1):
        stop = columns[part] if part < columns.shape[0] else mu.shape[0]
        more = _margin_of_zeros(
            keep, prior, centre[first:stop], inverse[first:stop], mu[first:stop], sigma[first:stop]
        )
        d += more[0]
        q += more[1]
        first = stop + 1
    return d, q


@njit()
def _gradient_step_outside(
    columns: Array, g1: float, g2: float, keep: float, prior: float, centre: Array, inverse: Array, mu: Array,
    sigma: Array,
) -> None:  # fmt: skip
    """As `_gradient_step` for features outside `columns`, 0 in all rows; g1, g2: rate times the sums of a, b."""
    first = 0
    for part in range(columns.shape[0] + 1):
        stop = columns[part] if part < columns.shape[0] else mu.shape[0]
        for j in range(first, stop):
            z = centre[j] * inverse[j]
            deviation = prior + keep * (sigma[j] - prior)
            mu[j] = keep * mu[j] - g1 * z
            sigma[j] = max(deviation + g2 * deviation * z * z, 0.0)
        first = stop + 1


@njit()
def _step_wide(
    data: Array, places: Array, indptr: Array, columns: Array, codes: Array, k: int, balance: Array,
    sample_weight: Array, link: int, noise: float, intercept: bool, rate: float, keep: float, prior: float,
    centre: Array, inverse: Array, mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """As `_step` for a gradient step with few stored features: those in `columns`, at their `places` there.

    For a row, all other features act as an intercept, and all are updated equally: one pass for each of the two.
    """
    n, J = codes.shape[0], columns.shape[0]
    y, w, curve = np.empty(n), np.empty(n), np.empty(n)
    theta, var, g1, g2 = np.empty(J), np.empty(J), np.zeros(J), np.zeros(J)
    total = targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    rate /= total
    near_centre, near_inverse, near_mu, near_sigma = (
        centre[columns],
        inverse[columns],
        mu[columns],
        sigma[columns],
    )
    _fold(keep, prior, near_inverse, near_mu, near_sigma, theta, var)
    d, q = _margin_outside(columns, keep, prior, centre, inverse, mu, sigma)
    around = np.array([bias[0] + d, bias[1] + q])
    sum_a, sum_b = gradients_csr(
        data, places, indptr, y, w, link, noise, False, around, near_centre, theta, var, g1, g2, curve
    )
    if not (np.isfinite(sum_b) and _finite(g1, g2)):
        return False
    _gradient_step(g1, g2, rate, keep, prior, near_inverse, near_mu, near_sigma)
    _gradient_step_outside(columns, rate * sum_a, rate * sum_b, keep, prior, centre, inverse, mu, sigma)
    for at in range(J):
        mu[columns[at]], sigma[columns[at]] = near_mu[at], near_sigma[at]
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate, False)
    return True


@njit()
def _update_average(share: float, mu: Array, average: Array) -> None:
    """Move the running average towards mu."""
    for k in range(mu.shape[0]):
        for j in range(mu.shape[1]):
            average[k, j] += share * (mu[k, j] - average[k, j])


@njit(strict=True)
def _count(codes: Array, weight: Array, keep: float, counts: Array, n_classes: int) -> tuple[Array, float]:
    """Return the faded number of rows of each class with the batch, and of all; `weight` is empty if all are 1."""
    arrived, total = np.zeros(n_classes), 0.0
    for i in range(codes.shape[0] if n_classes else 0):
        arrived[int(codes[i])] += weight[i] if weight.shape[0] else 1.0
    for c in range(n_classes):
        arrived[c] += keep * counts[c] if c < counts.shape[0] else 0.0
        total += arrived[c]
    return arrived, total


@njit(strict=True)
def _balance_and_rate(
    code: int, counts: Array, total: float, power: float, rate: float, n_features: int, balance: Array
) -> float:
    """Write the weights of a row outside and inside a class of `counts`, `total` in all; return the step.

    Models of many features need a long step, and rows of unequal weight a short one. A `rate` above 0 is the step.
    """
    known = 0 <= code < counts.shape[0]
    inside = counts[code] if known else 0.0
    balance[:] = 1.0
    if power > 0.0 and total > 0.0:
        least = total / (2.0 * _MAX_BALANCE)
        balance[0], balance[1] = (
            total / (2.0 * max(total - inside, least)),
            total / (2.0 * max(inside, least)),
        )
        if power < 1.0:
            balance[0], balance[1] = math.sqrt(balance[0]), math.sqrt(balance[1])
    if rate > 0.0:
        return rate
    share = inside / total if known and total > 0.0 else 0.5
    unevenness = (1.0 - share) * balance[0] ** 2 + share * balance[1] ** 2
    step = min(max(_STEP_PER_FEATURE * n_features, 1.0), _LONGEST_STEP)
    return step / max(unevenness, 1.0)


@njit(strict=True)
def learn_batch(
    X: Any, data: Any, indices: Any, indptr: Any, columns: Any, codes: Array, n_classes: int, counts: Array,
    power: float, step: float, sample_weight: Array, link: int, noise: float, offset: float, newton: bool,
    intercept: bool, bounded: bool, keep: float, prior: float, scaling: int, mean: Array, m2: Array, rows: float,
    later: float, mu: Array, sigma: Array, bias: Array, average: Array, share: float,
) -> tuple[bool, Array]:  # fmt: skip
    """Update all models with a batch, then their running average and the moments.

    Return whether all sums over the rows are finite, and the faded number of rows of each class.
    """
    counts, total = _count(codes, sample_weight, keep, counts, n_classes)
    first = (1 if mu.shape[0] == 1 else 0) if n_classes else -1
    # Of CSR rows whose zeros have no effect, only the stored values are read.
    is_stored = scaling == 0 and keep == 1.0 and X is None and columns is None and not newton and not bounded
    n = 0 if is_stored else mu.shape[1]
    n_sums = mu.shape[1] if later > 0.0 else 0
    centre, inverse, none, s1, s2 = np.zeros(n), np.ones(n), np.empty(0), np.zeros(n_sums), np.zeros(n_sums)
    if scaling > 0:
        centre = mean
    if scaling > 1:
        inverse = inverse_scale(m2, rows)
    for k in range(mu.shape[0]):
        code, balance, margin, done = first + k, np.empty(2), bias[k].copy(), True
        rate = _balance_and_rate(code, counts, total, power, step, mu.shape[1], balance)
        margin[0] += offset
        if X is not None:
            t1, t2 = (s1, s2) if k == 0 else (none, none)
            done = _step(
                X, None, None, None, codes, code, balance, sample_weight, link, noise, newton, intercept, rate, bounded,
                keep, prior, centre, inverse, mu[k], sigma[k], margin, t1, t2,
            )  # fmt: skip
        if indptr is not None:
            if columns is not None:
                done = _step_wide(
                    data, indices, indptr, columns, codes, code, balance, sample_weight, link, noise, intercept, rate,
                    keep, prior, centre, inverse, mu[k], sigma[k], margin,
                )  # fmt: skip
            elif is_stored:
                done = _step_stored(
                    data, indices, indptr, codes, code, balance, sample_weight, link, noise, intercept, rate, mu[k],
                    sigma[k], margin,
                )  # fmt: skip
            else:
                done = _step(
                    None, data, indices, indptr, codes, code, balance, sample_weight, link, noise, newton, intercept,
                    rate, bounded, keep, prior, centre, inverse, mu[k], sigma[k], margin, none, none,
                )  # fmt: skip
        if not done:
            return False, counts
        if intercept:
            bias[k, 0], bias[k, 1] = margin[0] - offset, margin[1]
    if share > 0.0:
        _update_average(share, mu, average)
    if later > 0.0:
        new_mean, new_m2 = absorbed(s1, s2, later, keep, mean, m2)
        overwrite(mean, new_mean)
        overwrite(m2, new_m2)
    return True, counts


def _share(rows: tuple[float, float], mine: Any, theirs: Any) -> Any:
    """Return the share of the second part in a mean weighted by rows times precision."""
    total = rows[0] * mine + rows[1] * theirs
    return rows[1] * theirs / np.where(total > 0.0, total, 1.0)


class NormalLinear:
    """State of K linear models over J features: one for two classes or a regression, else one per class.

    Parameters
    ----------
    n_features : int
    prior : float
        Initial standard deviation of each parameter.
    intercept, averaged : bool
        Whether there is an intercept; whether the running average of `mu` is kept.

    Attributes
    ----------
    mu, sigma : ndarray of shape (n_models, n_features), float64
        Mean and standard deviation of each parameter, per standard deviation of its feature if that is scaled.
    average : ndarray of shape (n_models, n_features), float64
        Running average of `mu` over the rows; `mu` itself if it is not averaged.
    bias : ndarray of shape (n_models, 2), float64
        Mean and variance of the intercept.
    """

    def __init__(self, n_features: int, prior: float, intercept: bool, averaged: bool) -> None:
        self.prior = prior
        self.intercept = intercept
        self.mu = np.zeros((1, n_features))
        self.sigma = np.full((1, n_features), prior)
        self.bias = self._new_bias(1)
        self.averaged = averaged
        self.evidence = 0.0  # faded number of rows behind the average
        self._average = np.zeros((1 if averaged else 0, n_features))

    @property
    def average(self) -> Floats:
        """Running average of mu, or mu itself."""
        return self._average if self.averaged else self.mu

    def _new_bias(self, n_models: int) -> Floats:
        return np.tile([0.0, self.prior**2 if self.intercept else 0.0], (n_models, 1))

    def grow(self, n_models: int) -> None:
        """Create a model per class: that of two classes becomes the second's, and its mirror image the first's."""
        mirror = len(self.mu) == 1
        new = n_models - (2 if mirror else len(self.mu))
        zeros = np.zeros((new, self.mu.shape[1]))
        self.mu = np.vstack([-self.mu, self.mu, zeros] if mirror else [self.mu, zeros])
        if self.averaged:
            parts = [-self._average, self._average, zeros] if mirror else [self._average, zeros]
            self._average = np.vstack(parts)
        self.sigma = np.vstack([self.sigma] * (1 + mirror) + [zeros + self.prior])
        flipped = self.bias * np.array([-1.0, 1.0])
        self.bias = np.vstack([*([flipped] if mirror else []), self.bias, self._new_bias(new)])

    def reorder(self, codes: Ints, n_classes: int) -> None:
        """Change the code of class c to ``codes[c]``; new classes among `n_classes` have the prior."""
        if n_classes <= 2:
            if len(codes) and codes[0] == 1:
                self.mu, self._average = -self.mu, -self._average
                self.bias = self.bias * np.array([-1.0, 1.0])
            return
        if len(self.mu) == 1:
            self.grow(2)
        n, J = min(len(codes), len(self.mu)), self.mu.shape[1]
        mu = np.zeros((n_classes, J))
        sigma = np.full((n_classes, J), self.prior)
        average = np.zeros((n_classes, J))
        bias = self._new_bias(n_classes)
        mu[codes[:n]], sigma[codes[:n]], bias[codes[:n]] = self.mu[:n], self.sigma[:n], self.bias[:n]
        if self.averaged:
            average[codes[:n]] = self._average[:n]
        self.mu, self.sigma, self.bias = mu, sigma, bias
        self._average = average if self.averaged else average[:0]

    def merge(self, other: NormalLinear, rows: tuple[float, float], keep: float, *, exact: bool) -> None:
        """Combine with the models of later rows, per parameter weighted by rows times precision.

        Parameters
        ----------
        other : NormalLinear
            The same models, in the same units.
        rows : (float, float)
            Weight of the rows of each, at the end of the later ones.
        keep : float in (0, 1]
            Factor of the evidence of this one.
        exact : bool
            Whether the precisions are those of a posterior (assumed-density update): they add, with the prior counted
            once, and the product of the posteriors is normal. Otherwise sigma results from gradient steps, and the mean
            precision is used.
        """
        least, at_first, evidence = 1e-12 * self.prior, self.prior**-2, (keep * self.evidence, other.evidence)
        theirs = np.maximum(other.sigma, least) ** -2
        if exact:
            mine = np.maximum(keep * np.maximum(self.sigma, least) ** -2, at_first)
            precision = np.maximum(mine + theirs - at_first, at_first)
            self.mu = (mine * keep * self.mu + theirs * other.mu) / precision
        else:
            mine = np.maximum(self.prior + keep * (self.sigma - self.prior), least) ** -2
            share = _share(rows, mine, theirs)
            precision = (rows[0] * mine + rows[1] * theirs) / max(sum(rows), 1e-300)
            self.mu = self.mu + share * (other.mu - self.mu)
        self.sigma = precision**-0.5
        self.bias = self.bias + _share(rows, 1.0, 1.0) * (other.bias - self.bias)
        if self.averaged:
            self._average = self._average + _share(evidence, mine, theirs) * (other._average - self._average)
            self.evidence = sum(evidence)

    def scale(self, ratio: Array) -> None:
        """Express the parameters in units of features that are `ratio` times as large."""
        self.mu = self.mu * ratio
        self.sigma = self.sigma * np.abs(ratio)
        self._average = self._average * ratio
