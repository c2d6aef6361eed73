r"""What may have changed in the relation of the labels to the forecasts of a model, and how well each change fits.

The forecast of a row is the calibrated distribution of its label: probabilities p of the classes, or for a regression
a t distribution with 4 degrees of freedom around the predicted number. Each cause of a change is an alternative:

    used but no longer relevant                 the forecast q_j with the value of feature j replaced
    labels got noisier                          (1 - e) p_y + e (1 - p_y) / (c - 1), or e pi_y; a larger scale
    calibration changed                         softmax(b log p); the deviation of the forecast from its mean times b
    prior shift                                 softmax(log p + a_k); the forecast plus a
    something outside the model matters now     softmax(log p + w_k s), with the standardized value s of a feature
                                                that the model does not use, or its absolute value; the forecast + w s
    the effect of a feature changed             the same, with a feature that the model uses

With fixed parameters, :func:`log_ratios` are the increments of sequential tests (:mod:`tamis.watch.causes`). With
parameters of maximum likelihood, :func:`explanations` compares the causes on the rows after a change by the Bayesian
information criterion, in which a choice of one of d features counts as log d.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from tamis._validation import Floats, Ints, Mask
from tamis.watch.calibration import fit_calibration, recalibrate

__all__ = [
    "CALIBRATION",
    "NOISE",
    "STALE",
    "WEAKENING",
    "Explanation",
    "calibrate",
    "explanations",
    "forecast",
    "groups",
    "log_ratios",
]

STALE = "used but no longer relevant"
NOISE, CALIBRATION, PRIOR = "labels got noisier", "calibration changed", "prior shift"
OUTSIDE, EFFECT = "something outside the model matters now", "the effect of a feature changed"
EPS = 0.02
WEAKENING = (NOISE, CALIBRATION, PRIOR)  # causes for which all features become less relevant
_NOISE, _SCALES = (0.1, 0.3), (1.5, 3.0)
_SLOPE, _SHIFT = 0.5, 1.0
_MOST_SHIFTED = 10  # classes whose share may change
_MEDIAN = 0.741  # median of the absolute value under the t distribution with 4 degrees of freedom
_RIDGE = 0.1
_FAR = 6.0  # residuals beyond so many scales are cut, since the comparison of numbers assumes normal ones
_MOST_SCORES = 3
_MOST_PARTS = 5  # features of an unknown model that may have lost their relevance
# A feature has lost its relevance only if the forecast without it fits: a further change of its calibration, or of the
# scale of its errors, must not raise the log-likelihood by this much.
_FURTHER = 3.0
_OF_MEDIAN = 1.36  # n times the variance of the logarithm of a median absolute error


class Explanation(NamedTuple):
    """How well a cause fits the rows after a change."""

    cause: str
    feature: int  # -1 if the cause names none
    score: float  # log-likelihood minus its penalty
    evidence: str
    lost: int = -1  # a feature that has lost its relevance in addition


def calibrate(outputs: Floats, target: Floats, n_features: int) -> tuple[Floats, Floats]:
    """Return the calibration of outputs of shape (n, 1 + f, c), and the shares of the classes (of numbers none)."""
    if outputs.shape[2] > 1:
        codes = target.astype(np.int64)
        counts = np.bincount(codes, minlength=outputs.shape[2]) + 0.5
        return fit_calibration(outputs[:, 0], codes), counts / counts.sum()
    given, centre = outputs[:, 0, 0], float(np.median(target))
    spread = float(given.var())
    slope = float(np.cov(given, target, bias=True)[0, 1]) / spread if spread > 0.0 else 1.0
    level = float(target.mean()) - slope * float(given.mean())
    errors = target[:, None] - (level + slope * outputs[:, :, 0])
    scales = np.median(np.abs(np.column_stack([errors, target - centre])), axis=0) / _MEDIAN
    return np.concatenate([[level, slope, centre], np.maximum(scales, 1e-9)]), np.empty(0)


def forecast(outputs: Floats, calibration: Floats, shares: Floats, rate: float = EPS) -> Floats:
    """Return the calibrated outputs, for classes mixed with their shares at a rate.

    The last column is for classes unknown to the model.
    """
    if outputs.shape[2] == 1:
        return np.asarray(calibration[0] + calibration[1] * outputs)
    known = np.pad(recalibrate(outputs, calibration), ((0, 0), (0, 0), (0, 1)))
    n_known = min(len(shares), known.shape[2])
    prior = np.full(known.shape[2], 1e-3)
    prior[:n_known] = shares[:n_known]
    return np.asarray((1.0 - rate) * known + rate * prior)


def _t(errors: Floats, scale: Floats | float) -> Floats:
    """Return the log-density of t with 4 degrees of freedom, up to a constant."""
    return np.asarray(-np.log(scale) - 2.5 * np.log1p(errors**2 / (4.0 * np.square(scale))))


def groups(n_features: int, n_outputs: int, shares: Floats) -> Ints:
    """Return the group of each column of :func:`log_ratios`: the features, then noise, calibration and prior."""
    n_shifts = 2 if n_outputs <= 2 else 2 * min(len(shares), n_outputs, _MOST_SHIFTED)
    sizes = [2] * n_features + [len(_NOISE), 1, n_shifts]
    return np.repeat(np.arange(len(sizes)), sizes)


def log_ratios(given: Floats, target: Floats, calibration: Floats, shares: Floats) -> Floats:
    """Return the log-likelihood ratio of each alternative to the forecast, of shape (n, h)."""
    if given.shape[2] == 1:
        return _ratios_of_numbers(given[:, :, 0], target, calibration)
    n_classes, rows = given.shape[2] - 1, np.arange(len(given))
    codes = target.astype(np.int64)
    true = np.take_along_axis(given, codes[:, None, None], axis=2)[:, :, 0]
    own, replaced, every = true[:, :1], true[:, 1:], given[:, 0]
    prior = np.append(shares, 1e-3)[np.minimum(codes, len(shares))][:, None]
    stale = np.stack([replaced, 0.5 * (replaced + prior)], axis=2).reshape(len(given), -1)
    rates = np.array(_NOISE)
    noise = (1.0 - rates) * own + rates * (1.0 - own) / n_classes
    flat = every**_SLOPE
    flat = flat[rows, codes][:, None] / flat.sum(axis=1, keepdims=True)
    shifted = [1] if n_classes == 2 else np.argsort(-shares[:n_classes], kind="stable")[:_MOST_SHIFTED]
    shift = []
    for k in shifted:
        for factor in (math.exp(_SHIFT), math.exp(-_SHIFT)):
            total = 1.0 + (factor - 1.0) * every[:, k]
            shift.append(own[:, 0] * np.where(codes == k, factor, 1.0) / total)
    return np.asarray(np.log(np.column_stack([stale, noise, flat, *shift]) / own))


def _ratios_of_numbers(given: Floats, target: Floats, calibration: Floats) -> Floats:
    centre, scales = calibration[2], calibration[3:]
    errors = target[:, None] - given
    own = _t(errors[:, 0], scales[0])
    stale = _t(errors[:, 1:], scales[1:-1])
    without = np.logaddexp(stale, _t(target - centre, scales[-1])[:, None]) - math.log(2.0)
    features = np.stack([stale, without], axis=2).reshape(len(given), -1)
    noise = [_t(errors[:, 0], factor * scales[0]) for factor in _SCALES]
    flat = _t(target - centre - _SLOPE * (given[:, 0] - centre), scales[0])
    shift = [_t(errors[:, 0] + sign * scales[0], scales[0]) for sign in (1.0, -1.0)]
    return np.asarray(np.column_stack([features, *noise, flat, *shift]) - own[:, None])


# -- explanations -------------------------------------------------------------------------------------------------


def _fit(offset: Floats, F: Floats, codes: Ints) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood of softmax(offset + F w), w and its standard errors, by Newton's method."""
    rows, w, inverse = np.arange(len(codes)), np.zeros(F.shape[2]), np.eye(F.shape[2])
    for _ in range(30):
        p = softmax(offset + F @ w, axis=1)
        mean = np.einsum("nc,ncm->nm", p, F)
        curvature = np.einsum("nc,ncm,ncl->ml", p, F, F) - mean.T @ mean + _RIDGE * np.eye(len(w))
        inverse = np.linalg.inv(curvature)
        step = inverse @ ((F[rows, codes] - mean).sum(axis=0) - _RIDGE * w)
        w = w + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    log_p = log_softmax(offset + F @ w, axis=1)[rows, codes]
    return float(log_p.sum()), w, np.sqrt(np.maximum(np.diag(inverse), 0.0))


def _standardized(X: Floats) -> Floats:
    """Return values with mean 0 and standard deviation 1, cut at 5; 0 where they are missing."""
    centred = X - np.nanmean(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0)
    spread = np.sqrt(np.nanmean(np.where(np.isnan(X).all(axis=0), 1.0, centred**2), axis=0))
    return np.clip(np.nan_to_num(centred / np.where(spread > 0.0, spread, np.inf)), -5.0, 5.0)


def _smoothed(differences: Floats, x: Floats) -> Floats:
    """Return the part of differences (n, c) that depends on a feature; a mean over few donors varies in addition."""
    z = _standardized(x[:, None])
    basis = np.column_stack([np.ones(len(z)), z, np.abs(z)])
    smooth = basis @ np.linalg.lstsq(basis, differences, rcond=None)[0]
    return np.asarray(smooth - smooth.mean(axis=0))


def _candidates(X: Floats, residuals: Floats) -> list[tuple[int, Floats]]:
    """Return the columns, or their absolute values, with the strongest relation to the residuals (n, c)."""
    z = _standardized(X)
    tails = np.abs(z) - np.abs(z).mean(axis=0)
    found = []
    for scores in (z, tails):
        error = np.sqrt(np.maximum((scores**2).T @ (residuals**2), 1e-12))
        strength = ((scores.T @ residuals / error) ** 2).sum(axis=1)
        best = np.argsort(-strength, kind="stable")[:_MOST_SCORES]
        found += [(int(j), scores[:, j]) for j in best if strength[j] > 4.0]
    return found


def explanations(
    given: Floats, target: Floats, calibration: Floats, shares: Floats, features: Ints, tested: Mask,
    used: Mask, X: Floats, names: list[str],
) -> list[Explanation]:  # fmt: skip
    """Return the causes of a change in rows, the most likely one first.

    Parameters
    ----------
    given : ndarray of shape (n, 1 + f, c)
        Forecasts, and those with each of `features` replaced.
    target : ndarray of shape (n,)
    calibration, shares
        From :func:`calibrate`.
    features : ndarray of shape (f,)
    tested : ndarray of shape (f,), bool
        The features that may have lost their relevance.
    used : ndarray of shape (n_columns,), bool
        The features that the model uses.
    X : ndarray of shape (n, n_columns)
    names : list of str
    """
    if not len(features):
        given, calibration, features = _without_each(given, calibration, used, X)
        tested = np.ones(len(features), dtype=bool)
    of = _of_numbers if given.shape[2] == 1 else _of_classes
    found = of(given, target, calibration, shares, features, tested, used, X, names)
    merged: dict[tuple[str, int, int], Explanation] = {}
    for one in found:  # variants of an explanation
        key = one.cause, one.feature, one.lost
        best = max(one, merged.get(key, one), key=lambda other: other.score)
        total = np.logaddexp(one.score, merged[key].score) if key in merged else one.score
        merged[key] = best._replace(score=float(total))
    return sorted(merged.values(), key=lambda one: -one.score)


def _without_each(given: Floats, calibration: Floats, used: Mask, X: Floats) -> tuple[Floats, Floats, Ints]:
    """Return forecasts without each of the features used, for predictions of an unknown model.

    The log-probabilities, or the numbers, are regressed on the scores of all features used, whose parts are subtracted.
    """
    n, columns = len(given), np.flatnonzero(used)
    is_number = given.shape[2] == 1
    values = given[:, 0] if is_number else np.log(given[:, 0])
    z = _standardized(X[:, columns])
    basis = np.column_stack([np.ones(n), z, np.abs(z)])
    if n < 3 * basis.shape[1]:
        return given, calibration, np.empty(0, dtype=np.int64)
    slopes = np.linalg.lstsq(basis, values, rcond=None)[0]
    d = len(columns)
    parts = [basis[:, [1 + k, 1 + d + k]] @ slopes[[1 + k, 1 + d + k]] for k in range(d)]
    parts = [part - part.mean(axis=0) for part in parts]
    size = np.array([part.var(axis=0).sum() for part in parts])
    best = np.sort(np.argsort(-size, kind="stable")[:_MOST_PARTS])
    rest = [values - parts[k] if is_number else softmax(values - parts[k], axis=1) for k in best]
    if is_number:  # the variance of t with 4 degrees of freedom is twice its squared scale
        scales = np.sqrt(calibration[3] ** 2 + 0.5 * size[best])
        calibration = np.concatenate([calibration[:4], scales, calibration[-1:]])
    return np.stack([given[:, 0], *rest], axis=1), calibration, columns[best]


def _search(used: Mask, j: int) -> float:
    """Return the penalty of the choice of a feature: the logarithm of the number of scores to choose from."""
    return math.log(2.0 * max(1, int(np.count_nonzero(used == used[j]))))


def _of_classes(
    given: Floats, target: Floats, calibration: Floats, shares: Floats, features: Ints, tested: Mask,
    used: Mask, X: Floats, names: list[str],
) -> list[Explanation]:  # fmt: skip
    n, n_classes = len(given), given.shape[2] - 1
    codes, rows = target.astype(np.int64), np.arange(n)
    log_p = np.log(given[:, 0])
    each = 0.5 * math.log(n)
    true = np.take_along_axis(given, codes[:, None, None], axis=2)[:, :, 0]
    own, prior = true[:, 0], np.append(shares, 1e-3)[np.minimum(codes, len(shares))]
    found = []
    for k in np.flatnonzero(tested).tolist():
        q = true[:, 1 + k]
        gain = np.log(own / q)
        said = f"its value now changes the log-likelihood of a label by {_pm(gain)}"
        choice = math.log(max(1, int(tested.sum())))
        log_q = np.log(given[:, 1 + k])
        further = _fit(log_q, log_q[:, :, None], codes)[0] - float(np.log(q).sum())
        if further < _FURTHER:
            smooth = log_softmax(log_p - _smoothed(log_p - log_q, X[:, features[k]]), axis=1)[rows, codes]
            found += [
                Explanation(STALE, int(features[k]), value - math.log(3.0) - choice, said)
                for value in (
                    float(np.log(q).sum()),
                    float(np.log(0.5 * (q + prior)).sum()),
                    float(smooth.sum()),
                )
            ]
    for other in ((1.0 - own) / max(1, n_classes - 1), prior):

        def loss(rate: float, other: Floats = other) -> float:
            return -float(np.log((1.0 - rate) * own + rate * other).sum())

        best = minimize_scalar(loss, bounds=(0.0, 0.95), method="bounded", options={"xatol": 1e-3})
        rate, step = float(best.x), 0.01
        bend = (loss(rate + step) - 2.0 * loss(rate) + loss(max(rate - step, 0.0))) / step**2
        said = f"{rate:.0%} ± {2.0 / math.sqrt(max(bend, 1.0)):.0%} of the labels are independent of the rows"
        found.append(Explanation(NOISE, -1, -float(best.fun) - each - math.log(2.0), said))
    classes = np.eye(n_classes + 1)[:, 1:n_classes]  # the first class is the reference
    value, w, error = _fit(log_p, log_p[:, :, None], codes)
    said = f"the log-odds of the forecasts are {1.0 + w[0]:.2f} ± {2 * error[0]:.2f} times what they were"
    found.append(Explanation(CALIBRATION, -1, value - each, said))
    value, w, error = _fit(log_p, np.broadcast_to(classes, (n, *classes.shape)), codes)
    k = int(np.argmax(np.abs(w) / error))
    said = f"at equal forecasts, the odds of class {k + 2} of {n_classes} are {math.exp(w[k]):.2f} times what they were"
    found.append(Explanation(PRIOR, -1, value - each * len(w), said))
    places = [
        (0, -1, 0.0),
        *((1 + k, int(features[k]), math.log(2.0 * tested.sum())) for k in np.flatnonzero(tested).tolist()),
    ]
    for place, lost, penalty in places:  # of the forecast, and of those without a feature
        residuals = (np.eye(n_classes + 1)[codes] - given[:, place])[:, 1:n_classes]
        for j, score in _candidates(X, residuals):
            if lost >= 0 and (used[j] or j == lost):
                continue
            value, w, error = _fit(np.log(given[:, place]), score[:, None, None] * classes, codes)
            k = int(np.argmax(np.abs(w) / error))
            said = (
                f"given the forecast, one standard deviation of {names[j]!r} changes the log-odds by {w[k]:.2f} ±"
                f" {2 * error[k]:.2f}"
            )
            value -= penalty + each * len(w) + _search(used, j)
            found.append(Explanation(EFFECT if used[j] else OUTSIDE, j, value, said, lost))
    return found


def _of_numbers(
    given: Floats, target: Floats, calibration: Floats, shares: Floats, features: Ints, tested: Mask,
    used: Mask, X: Floats, names: list[str],
) -> list[Explanation]:  # fmt: skip
    n, scales = len(given), calibration[3:]
    each = 0.5 * math.log(n)
    errors = target[:, None] - given[:, :, 0]
    most = _FAR * max(scales[0], float(np.median(np.abs(errors[:, 0]))) / _MEDIAN)
    own = np.clip(errors[:, 0], -most, most)

    def likelihood(rest: Floats) -> float:
        return -0.5 * n * math.log(max(float(np.mean(rest**2)), 1e-300))

    def slope(z: Floats, of: Floats) -> tuple[float, float, float]:
        w = float(z @ of) / max(float(z @ z), 1e-300)
        rest = of - w * z
        return likelihood(rest), w, 2.0 * math.sqrt(float(np.mean(rest**2)) / max(float(z @ z), 1e-300))

    found = [
        Explanation(
            NOISE, -1, likelihood(own),
            f"the errors are {np.median(np.abs(own)) / _MEDIAN / scales[0]:.2f} times as large as before",
        )
    ]  # fmt: skip
    rests = [(own, -1, 0.0)]
    for k in np.flatnonzero(tested).tolist():
        smooth = _smoothed(given[:, 0] - given[:, 1 + k], X[:, features[k]])[:, 0]
        rest = np.clip(errors[:, 0] + smooth, -most, most)
        score = likelihood(rest) - math.log(max(1, int(tested.sum())))
        rests.append((rest, int(features[k]), math.log(2.0 * tested.sum())))
        ratio = math.log(max(float(np.median(np.abs(rest))) / _MEDIAN, 1e-300) / scales[1 + k])
        if ratio <= 0.0 or n * ratio**2 / (2.0 * _OF_MEDIAN) < _FURTHER:
            gain = _t(errors[:, 0], scales[0]) - _t(errors[:, 1 + k], scales[1 + k])
            said = f"its value now changes the log-likelihood of a label by {_pm(gain)}"
            found.append(Explanation(STALE, int(features[k]), score, said))
    value, w, error = slope(given[:, 0, 0] - given[:, 0, 0].mean(), own)
    said = f"the target changes by {1.0 + w:.2f} ± {error:.2f} per unit of the forecast"
    found.append(Explanation(CALIBRATION, -1, value - each, said))
    value, w, error = slope(np.ones(n), own)
    said = f"the target differs from the forecast by {w:.3g} ± {error:.2g} on average"
    found.append(Explanation(PRIOR, -1, value - each, said))
    for of, lost, penalty in rests:
        for j, score_of in _candidates(X, of[:, None]):
            if lost >= 0 and (used[j] or j == lost):
                continue
            value, w, error = slope(score_of, of)
            said = (
                f"given the forecast, one standard deviation of {names[j]!r} changes the target by {w:.3g} ±"
                f" {error:.2g}"
            )
            value -= penalty + each + _search(used, j)
            found.append(Explanation(EFFECT if used[j] else OUTSIDE, j, value, said, lost))
    return found


def _pm(values: Floats) -> str:
    return f"{values.mean():.3f} ± {2.0 * values.std() / math.sqrt(len(values)):.3f}"
