r"""What may have changed in the relation of the labels to the forecasts of a model, and how probable each change is.

The forecast of a row is the calibrated distribution of its label: probabilities p of the classes, or for a regression
a t distribution with 4 degrees of freedom around the predicted number. Each cause of a change is an alternative:

    used but no longer relevant                 the forecast q_j with the value of feature j replaced
    labels got noisier                          (1 - e) p_y + e (1 - p_y) / (c - 1), or e pi_y; a larger scale
    calibration changed                         softmax(b log p); the deviation of the forecast from its mean times b
    prior shift                                 softmax(log p + a_k); the forecast plus a
    something outside the model matters now     softmax(log p + w_k s), with the standardized value s of a feature
                                                that the model does not use, or its absolute value; the forecast + w s
    the effect of a feature changed             the same, with a feature that the model uses, and its part of log p

The comparison uses forecasts refined by what the reference rows show (:class:`RefinedForecast`); "nothing has changed"
is one of the explanations, with deviations of .03 of all parameters.

With fixed parameters, :func:`log_ratios` are the increments of sequential tests (:mod:`tamis.watch.causes`).

:func:`explanations` compares the causes on the rows after a change by their evidence, the likelihood averaged over
normal priors of the parameters (Laplace's approximation). The parameter of the cause has a standard deviation of 1 (1/2
for b); all others, such as b and a under a lost feature, and the parts log p - log q_k of the other features under each
cause, have 0.1: a cause need only be right up to a small change of everything else, and evidence does not grow with
the number of rows because of a slight misfit. The prior of e is 3 (1 - e)^2. The likelihood has the exponent 1 / v,
with the variance inflation v of dependent rows. Causes are equally probable before, except that the calibration changes
a third as often, the effect of a used feature e^-2 times as often, and so does a feature outside together with a lost
one; a choice of one of d features, or of a score, divides by d.

A model that relies on one feature and loses it is a model whose labels are noise, whose forecasts have no slope, and
whose feature is irrelevant. The priors decide: all labels are rarely noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from tamis._guard import ThreadSafe
from tamis._validation import Floats, Ints, Mask
from tamis.watch.calibration import fit_calibration, recalibrate

STALE = "used but no longer relevant"
NOISE, CALIBRATION, PRIOR = "labels got noisier", "calibration changed", "prior shift"
OUTSIDE, EFFECT = "something outside the model matters now", "the effect of a feature changed"
EPS = 0.02
WEAKENING = (NOISE, CALIBRATION, PRIOR)  # causes for which all features become less relevant
_NOISE, _SCALES = (0.1, 0.3), (1.5, 3.0)
_SLOPE, _SHIFT = 0.5, 1.0
_MOST_SHIFTED = 10  # classes whose share may change
_MEDIAN = 0.741  # median of the absolute value under the t distribution with 4 degrees of freedom
_FAR = 6.0  # residuals beyond so many scales are cut, since the comparison of numbers assumes normal ones
_MOST_SCORES = 3
_MOST_PARTS = 5  # features of an unknown model that may have lost their relevance
_RATES = np.arange(1, 25) / 25  # of labels that are independent of the rows, and their prior weights
_OF_RATES = (1.0 - _RATES) ** 2 / np.sum((1.0 - _RATES) ** 2)
_TINY, _SMALL, _LARGE, _SLOPE_SIZE = 0.03, 0.1, 1.0, 0.5  # standard deviations of parameters
_OF_MEDIAN = 1.36  # n times the variance of the logarithm of a median absolute error
_MOST_MISSED = 10  # scores of unused features whose relation is known from the reference
_SIZES = (0.0, 0.1, 0.3, 1.0)  # standard deviations of missed effects
_FLOOR = 0.003  # mixed into the probabilities of an explanation; rare labels tell noise from calibration
_RARE, _SELDOM = 2.0, math.log(3.0)  # log-odds against less frequent causes


class Explanation(NamedTuple):
    """How well a cause fits the rows after a change."""

    cause: str  # empty if nothing has changed
    feature: int  # -1 if the cause names none
    score: float  # log-likelihood minus its penalty
    evidence: str
    lost: int = -1  # a feature that has lost its relevance in addition


def calibrate(outputs: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return the calibration of each forecast of shape (n, 1 + f, c), and the shares of the classes.

    A forecast without a feature is calibrated, too, so that it is the distribution of a label which does not depend on
    this feature. For numbers, the calibration is (level, slope, scale), and the shares are the centre and the scale of
    the target.
    """
    if outputs.shape[2] > 1:
        codes = target.astype(np.int64)
        counts = np.bincount(codes, minlength=outputs.shape[2]) + 0.5
        every = [fit_calibration(outputs[:, k], codes) for k in range(outputs.shape[1])]
        return np.array(every), counts / counts.sum()
    given = outputs[:, :, 0]
    centred = given - given.mean(axis=0)
    spread = np.maximum(np.mean(centred**2, axis=0), 1e-300)
    slope = np.where(spread > 1e-300, centred.T @ (target - target.mean()) / len(target) / spread, 1.0)
    level = target.mean() - slope * given.mean(axis=0)
    errors = target[:, None] - (level + slope * given)
    centre = float(np.median(target))
    scales = np.maximum(np.median(np.abs(np.column_stack([errors, target - centre])), axis=0) / _MEDIAN, 1e-9)
    return np.column_stack([level, slope, scales[:-1]]), np.array([centre, scales[-1]])


def forecast(outputs: Floats, calibration: Floats, shares: Floats, rate: float = EPS) -> Floats:
    """Return the calibrated outputs, for classes mixed with their shares at a rate.

    The last column is for classes unknown to the model.
    """
    if outputs.shape[2] == 1:
        return np.asarray(calibration[:, :1] + calibration[:, 1:2] * outputs)
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
    sizes = [1] * n_features + [len(_NOISE), 1, n_shifts]
    return np.repeat(np.arange(len(sizes)), sizes)


def log_ratios(given: Floats, target: Floats, calibration: Floats, shares: Floats) -> Floats:
    """Return the log-likelihood ratio of each alternative to the forecast, of shape (n, h)."""
    if given.shape[2] == 1:
        return _ratios_of_numbers(given[:, :, 0], target, calibration[:, 2], shares)
    n_classes, rows = given.shape[2] - 1, np.arange(len(given))
    codes = target.astype(np.int64)
    true = np.take_along_axis(given, codes[:, None, None], axis=2)[:, :, 0]
    own, stale, every = true[:, :1], true[:, 1:], given[:, 0]
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


def _ratios_of_numbers(given: Floats, target: Floats, scales: Floats, shares: Floats) -> Floats:
    errors, scale = target[:, None] - given, scales[0]
    own = _t(errors[:, 0], scale)
    stale = _t(errors[:, 1:], scales[1:])
    noise = [_t(errors[:, 0], factor * scale) for factor in _SCALES]
    flat = _t(target - shares[0] - _SLOPE * (given[:, 0] - shares[0]), scale)
    shift = [_t(errors[:, 0] + sign * scale, scale) for sign in (1.0, -1.0)]
    return np.asarray(np.column_stack([stale, *noise, flat, *shift]) - own[:, None])


# -- explanations -------------------------------------------------------------------------------------------------


class _Target:
    """The likelihood of the targets of rows, as a function of a linear predictor."""

    outputs: Floats  # (n, 1 + f, c): the linear predictor of the model, and without each feature
    shifts: Floats  # (m, c)
    unit = 1.0  # of a shift

    def of_score(self, score: Floats) -> Floats:
        """Return the columns of a score: one for each output that it may shift, of shape (m, n, c)."""
        return np.asarray(self.unit * score[None, :, None] * self.shifts[:, None])


class _Labels(_Target):
    def __init__(self, given: Floats, target: Floats, shares: Floats, inflation: float) -> None:
        self.inflation, self.codes, self.rows = inflation, target.astype(np.int64), np.arange(len(given))
        self.n_classes, self.outputs = given.shape[2] - 1, np.log(given)
        order = np.argsort(-shares[: self.n_classes], kind="stable")[: _MOST_SHIFTED + 1]
        self.shifted = np.array([1]) if self.n_classes == 2 else np.sort(order[1:])
        self.shifts = np.eye(self.n_classes + 1)[self.shifted]
        self.base = np.append(shares, np.full(max(0, self.n_classes + 1 - len(shares)), 1e-3))

    def column(self, offset: Floats) -> Floats:
        return offset

    def residuals(self, offset: Floats) -> Floats:
        hits = self.codes[:, None] == self.shifted
        return np.asarray(hits - np.exp(offset[:, self.shifted]))

    def values(self, offset: Floats) -> Floats:
        """Return the log-likelihood of each row."""
        return np.asarray(log_softmax(offset, axis=1)[self.rows, self.codes])

    def evidence(
        self, offset: Floats, columns: Floats, sizes: Floats, scale: float
    ) -> tuple[float, Floats, Floats]:
        """Return the log-evidence of softmax(offset + F w) with w ~ N(0, sizes^2), and w and its standard errors.

        Laplace's approximation; the likelihood has the exponent 1 / inflation, since rows depend on one another.
        """
        F = np.moveaxis(columns * sizes[:, None, None], 0, 2)
        w = np.zeros(F.shape[2])
        for _ in range(30):
            p = softmax(offset + F @ w, axis=1)
            mean = np.einsum("nc,ncm->nm", p, F)
            flat = (F * np.sqrt(p)[:, :, None]).reshape(-1, len(w))
            H = (flat.T @ flat - mean.T @ mean) / self.inflation + np.eye(len(w))
            step = np.linalg.solve(H, (F[self.rows, self.codes] - mean).sum(axis=0) / self.inflation - w)
            w = w + step * min(1.0, 4.0 / max(float(np.abs(step).max()), 1e-12))
            if np.abs(step).max() < 1e-3:
                break
        value = float(self.values(offset + F @ w).sum()) / self.inflation
        value -= 0.5 * float(w @ w) + 0.5 * float(np.linalg.slogdet(H)[1])
        return value, w * sizes, np.sqrt(np.maximum(np.diag(np.linalg.inv(H)), 0.0)) * sizes

    def noise(self) -> list[tuple[float, Floats, str]]:
        """Return forecasts of noisier labels: what their evidence lacks, the forecast, and a sentence."""
        p, found = np.exp(self.outputs[:, 0]), []
        for other in ((1.0 - p) / max(1, self.n_classes - 1), np.broadcast_to(self.base, p.shape)):
            own, others = p[self.rows, self.codes, None], other[self.rows, self.codes, None]
            values = np.log((1.0 - _RATES) * own + _RATES * others).sum(axis=0) / self.inflation
            scores = values + np.log(_OF_RATES)
            best, total = int(np.argmax(scores)), float(logsumexp(scores))
            weight = np.exp(scores - total)
            mean = float(weight @ _RATES)
            error = 2.0 * math.sqrt(float(weight @ (_RATES - mean) ** 2))
            said = f"{mean:.0%} ± {error:.0%} of the labels are independent of the rows"
            mixed = np.log((1.0 - _RATES[best]) * p + _RATES[best] * other)
            found.append((total - float(values[best]) - math.log(2.0), mixed, said))
        return found

    def gain(self, k: int) -> Floats:
        return self.values(self.outputs[:, 0]) - self.values(self.outputs[:, 1 + k])

    def said_calibration(self, w: float, error: float) -> str:
        return f"the log-odds of the forecasts are {1.0 + w:.2f} ± {error:.2f} times what they were"

    def said_prior(self, w: Floats, error: Floats) -> str:
        k = int(np.argmax(np.abs(w) / error))
        of = f"class {self.shifted[k] + 1} of {self.n_classes}"
        return f"at equal forecasts, the odds of {of} are {math.exp(w[k]):.2f} times what they were"

    def said_effect(self, name: str, w: Floats, error: Floats) -> str:
        k = int(np.argmax(np.abs(w) / error))
        said = f"given the forecast, one standard deviation of {name!r} changes the log-odds by {w[k]:.2f} ±"
        return f"{said} {2 * error[k]:.2f}"


class _Numbers(_Target):
    shifts = np.ones((1, 1))

    def __init__(self, given: Floats, target: Floats, calibration: Floats, inflation: float) -> None:
        self.inflation, self.outputs, self.scales = inflation, given, calibration[:, 2]
        self.unit = float(self.scales[0])
        self.errors = target - given[:, 0, 0]
        most = _FAR * max(self.unit, float(np.median(np.abs(self.errors))) / _MEDIAN)
        self.target = given[:, 0, 0] + np.clip(self.errors, -most, most)

    def column(self, offset: Floats) -> Floats:
        return np.asarray(offset - offset.mean())

    def residuals(self, offset: Floats) -> Floats:
        return np.asarray(self.target[:, None] - offset)

    def evidence(
        self, offset: Floats, columns: Floats, sizes: Floats, scale: float
    ) -> tuple[float, Floats, Floats]:
        """Return the log-evidence of normal errors, as that of labels; the logarithm of their scale is normal, too."""
        F, rest = (columns * sizes[:, None, None])[:, :, 0].T, self.residuals(offset)[:, 0]
        w: Floats = np.zeros(F.shape[1])
        least = max(1e-12 * self.unit**2, 1e-300)
        variance = max(float(np.mean(rest**2)), least)
        for _ in range(10):
            H = F.T @ F / (variance * self.inflation) + np.eye(len(w))
            w = np.asarray(np.linalg.solve(H, F.T @ rest / (variance * self.inflation)), np.float64)
            before, variance = variance, max(float(np.mean((rest - F @ w) ** 2)), least)
            if abs(before - variance) < 1e-4 * variance:
                break
        value = -0.5 * len(rest) * math.log(variance) / self.inflation
        value -= 0.5 * float(w @ w) + 0.5 * float(np.linalg.slogdet(H)[1])
        ratio = math.log(max(float(np.median(np.abs(rest - F @ w))) / _MEDIAN, 1e-300) / self.unit)
        spread = scale**2 + _OF_MEDIAN * self.inflation / len(rest)
        value -= 0.5 * (ratio**2 / spread + math.log(spread))
        return value, w * sizes, np.sqrt(np.maximum(np.diag(np.linalg.inv(H)), 0.0)) * sizes

    def noise(self) -> list[tuple[float, Floats, str]]:
        """Return forecasts of noisier labels: what their evidence lacks, the forecast, and a sentence."""
        ratio = np.median(np.abs(self.errors)) / _MEDIAN / self.unit
        return [(0.0, self.outputs[:, 0], f"the errors are {ratio:.2f} times as large as before")]

    def gain(self, k: int) -> Floats:
        without = self.errors + self.outputs[:, 0, 0] - self.outputs[:, 1 + k, 0]
        return _t(self.errors, self.unit) - _t(without, self.scales[1 + k])

    def said_calibration(self, w: float, error: float) -> str:
        return f"the target changes by {1.0 + w:.2f} ± {error:.2f} per unit of the forecast"

    def said_prior(self, w: Floats, error: Floats) -> str:
        w, error = self.unit * w, self.unit * error
        return f"the target differs from the forecast by {w[0]:.3g} ± {2.0 * error[0]:.2g} on average"

    def said_effect(self, name: str, w: Floats, error: Floats) -> str:
        w, error = self.unit * w, self.unit * error
        said = f"given the forecast, one standard deviation of {name!r} changes the target by {w[0]:.3g} ±"
        return f"{said} {2.0 * error[0]:.2g}"


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


def _candidates(
    X: Floats, residuals: Floats, allowed: Mask, most: int = _MOST_SCORES
) -> list[tuple[int, Floats]]:
    """Return the columns, or their absolute values, with the strongest relation to the residuals (n, c)."""
    z = _standardized(X)
    tails = np.abs(z) - np.abs(z).mean(axis=0)
    found = []
    for scores in (z, tails):
        error = np.sqrt(np.maximum((scores**2).T @ (residuals**2), 1e-12))
        strength = np.where(allowed, ((scores.T @ residuals / error) ** 2).sum(axis=1), 0.0)
        best = np.argsort(-strength, kind="stable")[:most]
        found += [(int(j), scores[:, j]) for j in best if strength[j] > 4.0]
    return found


class RefinedForecast(ThreadSafe):
    """The forecast of a model, with what the reference rows show of effects that the model has missed.

    Without them, an old relation to an ignored feature looks new, and forecasts that are rarely near 0 or 1 do not
    distinguish noise from another calibration. The log-odds are a linear function of those of the forecast and of the
    scores of a few features, whose coefficients have a normal prior; its size is that with the largest evidence. A
    forecast without a feature lacks its scores, too.

    Parameters
    ----------
    outputs : ndarray of shape (n, 1 + f, c)
        The predictions of the reference rows.
    target, calibration, shares : ndarray
    features : ndarray of shape (f,)
    used : ndarray of shape (n_columns,), bool
    X : ndarray of shape (n, n_columns)
    inflation : float
        Rows per independent row.
    """

    _shapes = (
        "_columns (m) int64 in [0, 2**31)  _features (f) int64 in [0, 2**31)  _at (2, m) float  _first (a, d) float"
        "  _effects (c, o) float  calibration (a, d) float"
    )

    def __init__(
        self, outputs: Floats, target: Floats, calibration: Floats, shares: Floats, features: Ints, used: Mask,
        X: Floats, inflation: float,
    ) -> None:  # fmt: skip
        n_outputs = outputs.shape[2]
        given = forecast(outputs, calibration, shares, _FLOOR)
        of = _likelihood(given, target, calibration, shares, inflation)
        own, one = of.outputs[:, 0], of.of_score(np.ones(len(given)))
        missed = [j for j, _ in _candidates(X, of.residuals(own), ~used, _MOST_MISSED)]
        self._columns = np.unique(np.append(features, missed).astype(np.int64))
        self._features, self._first = features.copy(), calibration.copy()
        known = np.ma.masked_invalid(X[:, self._columns])
        spread = known.std(axis=0).filled(0.0)
        self._at = np.array([known.mean(axis=0).filled(0.0), np.where(spread > 0.0, spread, np.inf)])
        columns = [of.column(own)[None], one, *(of.of_score(score) for score in self._scores(X).T)]
        is_effect = np.arange(sum(map(len, columns))) > len(one)
        _, w, _ = max(
            (of.evidence(own, np.concatenate(columns), np.where(is_effect, size, _LARGE), _LARGE) for size in _SIZES),
            key=lambda found: found[0],
        )  # fmt: skip
        effects = of.unit * w[is_effect].reshape(-1, len(one)) @ of.shifts[:, :n_outputs]
        self._effects = np.ascontiguousarray(np.column_stack([np.full(n_outputs, 1.0 + w[0]), effects.T]))
        self.calibration, _ = calibrate(self._refined(outputs, X), target)

    def select(self, place: Ints, features: Ints) -> None:
        """Use the calibrations without other features, those at `place`."""
        at = np.append(0, 1 + place)
        self._features, self._first, self.calibration = features.copy(), self._first[at], self.calibration[at]

    def _scores(self, X: Floats) -> Floats:
        z = np.clip(np.nan_to_num((X[:, self._columns] - self._at[0]) / self._at[1]), -5.0, 5.0)
        return np.column_stack([z, np.abs(z) - 0.8])

    def _refined(self, outputs: Floats, X: Floats) -> Floats:
        n_outputs, scores, of = outputs.shape[2], self._scores(X), np.tile(self._columns, 2)
        parts = [(scores * (of != j)) @ self._effects[:, 1:].T for j in (-1, *self._features)]
        if n_outputs == 1:
            values = forecast(outputs, self._first, np.empty(0))
            return np.asarray(self._effects[:, 0] * values + np.stack(parts, axis=1))
        values = np.log(np.maximum(recalibrate(outputs, self._first), 1e-3))
        return np.asarray(softmax(self._effects[:, 0] * values + np.stack(parts, axis=1), axis=2))

    def forecast(self, outputs: Floats, shares: Floats, X: Floats) -> Floats:
        """Return the forecasts of rows, as :func:`forecast`."""
        return forecast(self._refined(outputs, X), self.calibration, shares, _FLOOR)


def _likelihood(
    given: Floats, target: Floats, calibration: Floats, shares: Floats, inflation: float
) -> _Labels | _Numbers:
    if given.shape[2] == 1:
        return _Numbers(given, target, calibration, inflation)
    return _Labels(given, target, shares, inflation)


def explanations(
    given: Floats, target: Floats, calibration: Floats, shares: Floats, features: Ints, tested: Mask,
    used: Mask, X: Floats, names: list[str], inflation: float,
) -> list[Explanation]:  # fmt: skip
    """Return the causes of a change in rows, the most likely one first.

    Parameters
    ----------
    given : ndarray of shape (n, 1 + f, c)
        Refined forecasts, and those without each feature.
    target : ndarray of shape (n,)
    calibration, shares : ndarray
    features : ndarray of shape (f,)
    tested : ndarray of shape (f,), bool
        The features that may have lost their relevance.
    used : ndarray of shape (n_columns,), bool
        The features that the model uses.
    X : ndarray of shape (n, n_columns)
    names : list of str
    inflation : float
        Rows per independent row.
    """
    if not len(features):
        given, calibration, features = _without_each(given, calibration, used, X)
        tested = np.ones(len(features), dtype=bool)
    of = _likelihood(given, target, calibration, shares, inflation)
    own, chosen = of.outputs[:, 0], np.flatnonzero(tested).tolist()
    raw = {k: own - of.outputs[:, 1 + k] for k in chosen}
    parts = {k: _smoothed(raw[k], X[:, features[k]]) for k in chosen}
    shift = of.of_score(np.ones(len(given)))
    m = len(shift)

    def fit(
        offset: Floats, *more: Floats, slope: float = _SMALL, shifts: float = _SMALL, scale: float = _SMALL,
        without: int = -1, small: float = _SMALL,
    ) -> tuple[float, Floats, Floats]:  # fmt: skip
        """Return the evidence, and the coefficients and errors of slope, shifts and further columns."""
        nuisance = [parts[k] for k in chosen if k != without]
        columns = np.stack([of.column(offset), *shift, *more, *nuisance])
        sizes = np.array([slope, *[shifts] * m, *[_LARGE] * len(more), *[small] * len(nuisance)])
        return of.evidence(offset, columns, sizes, scale)

    found = [
        Explanation(NOISE, -1, fit(offset, scale=_LARGE)[0] + value, said)
        for value, offset, said in of.noise()
    ]
    found.append(Explanation("", -1, fit(own, slope=_TINY, shifts=_TINY, scale=_TINY, small=_TINY)[0], ""))
    value, w, error = fit(own, slope=_SLOPE_SIZE)
    found.append(Explanation(CALIBRATION, -1, value - _SELDOM, of.said_calibration(w[0], 2.0 * error[0])))
    value, w, error = fit(own, shifts=_LARGE)
    found.append(Explanation(PRIOR, -1, value, of.said_prior(w[1 : 1 + m], error[1 : 1 + m])))

    def add_effects(offset: Floats, allowed: Mask, penalty: float, k: int = -1) -> None:
        lost = int(features[k]) if k >= 0 else -1
        for j, score in _candidates(X, of.residuals(offset), allowed):
            of_feature = [parts[i] for i in chosen if features[i] == j]
            value, w, error = fit(offset, *of.of_score(score), *of_feature, without=k)
            said = of.said_effect(names[j], w[1 + m : 1 + 2 * m], error[1 + m : 1 + 2 * m])
            value -= penalty + math.log(2.0 * max(1, int((used == used[j]).sum())))
            found.append(Explanation(EFFECT if used[j] else OUTSIDE, j, value, said, lost))

    add_effects(own, used, _RARE)
    add_effects(own, ~used, 0.0)
    choice = math.log(max(1, len(chosen)))
    best, best_k, best_offset = -math.inf, -1, own
    for k in chosen:
        said = f"its value now changes the log-likelihood of a label by {_pm(of.gain(k))}"
        for part in (raw[k], parts[k]):
            value = fit(own - part, without=k)[0] - choice - math.log(2.0)
            found.append(Explanation(STALE, int(features[k]), value, said, int(features[k])))
            if value > best:
                best, best_k, best_offset = value, k, own - part
    if best_k >= 0:
        add_effects(best_offset, ~used, choice + _RARE, best_k)
    merged: dict[tuple[str, int, int], Explanation] = {}
    for one in found:  # variants of an explanation
        key = one.cause, one.feature, one.lost
        best_of = max(one, merged.get(key, one), key=lambda other: other.score)
        total = np.logaddexp(one.score, merged[key].score) if key in merged else one.score
        merged[key] = best_of._replace(score=float(total))
    return sorted(merged.values(), key=lambda one: -one.score)


def null_score(given: Floats, target: Floats, inflation: float) -> float:
    """Return the log-likelihood of targets under calibrated forecasts, as that of the explanations."""
    if not len(given):
        return 0.0
    if given.shape[2] == 1:
        variance = max(float(np.mean((target - given[:, 0, 0]) ** 2)), 1e-300)
        return -0.5 * len(target) * math.log(variance) / inflation
    own = given[np.arange(len(given)), 0, target.astype(np.int64)]
    return float(np.log(own).sum()) / inflation


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
        scales = np.sqrt(calibration[0, 2] ** 2 + 0.5 * size[best])
        calibration = np.column_stack([np.zeros((1 + len(best), 2)), np.append(calibration[0, 2], scales)])
    return np.stack([given[:, 0], *rest], axis=1), calibration, columns[best]


def _pm(values: Floats) -> str:
    return f"{values.mean():.3f} ± {2.0 * values.std() / math.sqrt(len(values)):.3f}"
