r"""Sequential tests of why the labels of a model differ from its forecasts.

Let p be the probability that the model assigns to the true class of a row, and q_j the mean of this probability when
the value of feature j is replaced by those of earlier rows: four of the last 100, one from each quarter of their order.
If the label no longer depends on j, q_j predicts it better than p. For a regression, p and q_j are densities of the
target. All are calibrated first (:func:`tamis.watch.hypotheses.calibrate`). For each row, with the class frequencies
pi mixed into p and q_j at a rate of 0.02, the alternatives of a feature are

    l_j = log q_j / p,    l_j' = log ((q_j + pi) / 2) / p,

and those of the other causes are in :mod:`tamis.watch.hypotheses`. If p is the distribution of the label, the mean of
exp(l) given the past is 1, so R <- (1 + R) exp(theta l) with theta = 1, minus the number of rows, is a martingale
(Shiryaev-Roberts; as e-detector: Shin, Ramdas, Rinaldo, E-detectors: a nonparametric framework for sequential change
detection, 2024), and R reaches A after at least A rows on average. The same is true of the mean of the R of a group:
one per feature, and one each for noise, calibration and prior. For other models, theta is chosen on the first 1,000
labelled rows, and l is limited to 2.5. theta is divided by the variance inflation of l over all earlier rows
(:func:`tamis.dependence.autocorrelation.add_values`), so rows that depend on one another count as fewer.

A feature is tested if l_j is significantly negative on these first rows (below -4 standard errors). A change is
detected if the mean of a group exceeds `n_rows` times the number of groups, and its run has an effective number of 20
independent rows. The run then shows the cause: the explanation of its rows (:mod:`tamis.watch.hypotheses`) must be e^3
times as likely as any other cause on at least 200 rows; a lost feature e^4 times, also as any other feature, on any
number of rows. Otherwise, ten further rows are awaited, and after 1,500 rows the most likely cause other than a lost
feature is named.

After a lost feature, the test pauses until the reverse test (of -max(l_j, l_j'), since donors from autocorrelated rows
predict badly) finds the feature relevant again, or the model changes. After another cause, it pauses until it is
calibrated on 1,000 rows after the change. A new model is tested with the calibration of its predecessor until its first
1,000 labelled rows are complete.

The constants were chosen on seeds below 300 of the streams of experiments/watch.py and of other generators, and on
seeds below 500 of experiments/watch_causes.py; the figures in the documentation use seeds from 300 and 500 on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Mask, encode_labels
from tamis.dependence.autocorrelation import SERIES_SIZE, add_values
from tamis.importance.predictions import outputs
from tamis.watch.calibration import find_exponents
from tamis.watch.hypotheses import (
    CALIBRATION,
    EFFECT,
    NOISE,
    STALE,
    calibrate,
    explanations,
    forecast,
    groups,
    log_ratios,
)

__all__ = ["CauseTest"]


_FIRST = 200  # labelled rows before the features are chosen, when their reliance has been estimated
_REFERENCE = 1000
_MOST_FEATURES = 5
_N_DONORS = 4
_STORED = 100
_FLOOR = 0.01  # mixed into the probabilities of an explanation
_KEPT = 1000  # rows that an explanation may use; fewer of wide rows
_CLIP, _LOG_ODDS, _SHORTEST = 2.5, 3.0, 20
_NESTED = 5.0  # log-odds in favour of a lost feature over another effect of it
_FEWEST = 200  # rows for a cause other than a lost feature, since several causes may come together
# Rows between two attempts to find the cause, and before the likeliest one is named.
_AGAIN, _LONGEST = 10, 1500
# Noise and calibration differ only where forecasts are nearly certain; with a smaller difference, noise is named.
_TIE = 2.0
_EVERY = 32  # values after which an inflation is estimated
_EXPECTING, _COLLECTING, _CALIBRATED = range(3)  # phases of a model


@njit(strict=True)
def _log_sum(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b))."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(strict=True)
def _advance(
    raw: Array,
    start: int,
    stop: int,
    theta: Array,
    group: Array,
    tested: Array,
    limit: float,
    level: Array,
    total: Array,
    age: Array,
    shortest: int,
) -> tuple[int, int]:
    """Run all tests over rows; return the row of an alarm and the group with the largest statistic, or -1 and -1.

    raw     (n, h)  log-likelihood ratios
    group   (h)     the group of each, in increasing order
    tested  (g)
    level   (h)     log R
    total   (h)     sum over the run of the test, which restarts when it is not positive
    age     (h)     rows of the run
    """
    for i in range(start, stop):
        best, found, k = limit, -1, 0
        for g in range(len(tested)):
            log_r, longest, size = -700.0, 0, 0
            while k < len(group) and group[k] == g:
                step = theta[k] * min(raw[i, k], _CLIP)
                level[k] = max(_log_sum(level[k], 0.0) + step, -700.0)
                total[k] += step
                age[k] += 1
                if total[k] <= 0.0:
                    total[k], age[k] = 0.0, 0
                log_r = _log_sum(log_r, level[k])
                longest, size, k = max(longest, age[k]), size + 1, k + 1
            if tested[g] and longest >= shortest and log_r - math.log(size) > best:
                best, found = log_r - math.log(size), g
        if found >= 0:
            return i, found
    return -1, -1


@njit(allocates=True)
def _add_series(raw: Array, series: Array, every: int) -> None:
    """Add a column of ratios to each series."""
    for k in range(raw.shape[1]):
        add_values(np.minimum(raw[:, k], _CLIP), series[k], every)


class CauseTest(ThreadSafe):
    """Tests which feature of a model has lost its relevance, or what else has changed, with a bound on false alarms.

    Parameters
    ----------
    n_columns : int
    n_rows : float
        Lower bound on the mean number of labelled rows between two false alarms, for a calibrated model.
    random_state : int or None

    Attributes
    ----------
    lost : ndarray of shape (n_columns,), bool
    cause : str
        The cause of a change in the last 1,000 labelled rows that is not only a lost feature, or "none".
    evidence : str
        A sentence about the last change.
    age : int
        Number of labelled rows since the change, when it was detected.
    """

    _shapes = (
        "lost (j) bool  _n_labelled in [0, inf)  _stored (s, j) float  _features (f) int64 in [0, j)"
        "  _reference (r, g, c) float  _target (r) float  _phase in [0, 3)"
        "  _shortest in [1, inf)  _shares (k) float in [0, inf)  _calibration (d) float"
        "  _theta (h) float in (0, 1.5]  _group (h) int64 in [0, t)  _tested (t) bool  _level (h) float in [-inf, inf]"
        "  _total (h) float in [-inf, inf]  _age (h) int64 in [0, inf)"
        f"  _series (h, {SERIES_SIZE}) float in [-inf, inf]"
        "  _inflation float in [1, inf)  _back float in [-inf, inf]  _before (2, f) float"
        "  _rows (w, j) float in (-inf, inf) or nan fixed  _given (w, x, z) float fixed  _labels (w) float fixed"
    )

    def __init__(self, n_columns: int, n_rows: float, random_state: int | None) -> None:
        self.n_rows = float(n_rows)
        self._rng = np.random.default_rng(random_state)
        self._stored: Floats = np.empty((0, n_columns))
        self._features = np.empty(0, dtype=np.int64)
        self._theta, self._group = np.empty(0), np.empty(0, dtype=np.int64)
        self._tested, self._series = np.empty(0, dtype=bool), np.empty((0, SERIES_SIZE))
        self._shares: Floats = np.empty(0)
        self._calibration: Floats = np.empty(0)
        self._before: Floats = np.empty((2, 0))
        self._shortest, self._inflation = _SHORTEST, 1.0
        self.restart()

    def restart(self) -> None:
        """Prepare for a new model: a new reference is collected, and the calibration is kept until it is complete."""
        self.lost = np.zeros(self._stored.shape[1], dtype=bool)
        self.cause, self.evidence, self.age = "none", "", 0
        self._n_labelled, self._phase, self._paused = 0, _EXPECTING, False
        self._left = 0  # labelled rows for which the cause is reported
        self._reset_reference()
        self._reset_runs()

    def _reset_reference(self) -> None:
        self._reference: Floats = np.empty((0, 0, 0))
        self._target: Floats = np.empty(0)

    def _reset_runs(self) -> None:
        h = len(self._theta)
        self._level, self._total = np.full(h, -700.0), np.zeros(h)
        self._age = np.zeros(h, dtype=np.int64)
        self._back = -math.inf  # log R of the reverse test
        self._rows: Floats = np.empty((0, self._stored.shape[1]))
        self._given: Floats = np.empty((0, 0, 0))
        self._labels: Floats = np.empty(0)

    @property
    def is_testing(self) -> bool:
        """Whether a reference is complete."""
        return bool(self._tested.any()) and not self._paused

    def update(
        self, X: Floats, target: Array, values: Floats, model: Any, labels: Array | None, names: list[str], *,
        reliance: Floats, has_names: bool = False,
    ) -> list[int]:  # fmt: skip
        """Add labelled rows; return the run length of each column lost in these rows, 0 if it was not lost.

        Parameters
        ----------
        X : ndarray of shape (n, n_columns)
        target : ndarray of shape (n,)
            Labels, or numbers.
        values : ndarray of shape (n, c)
            The predictions: a probability for each of `labels`, or a number.
        model : object or None
            Predicts the rows with replaced values; None if only the predictions are known.
        labels : ndarray of shape (c,) or None
            The classes; None for numbers.
        names : list of str
        reliance : ndarray of shape (n_columns,)
        has_names : bool
            Whether the model gets the names.
        """
        ages = [0] * X.shape[1]
        self._n_labelled += len(X)
        self._left -= len(X)
        if self._left <= 0:
            self.cause = "none"
        reliance = np.nan_to_num(reliance, nan=0.0)
        if self._phase == _EXPECTING and self._n_labelled >= _FIRST and reliance.max() > 0.0:
            self._choose_features(reliance if model is not None else np.zeros(len(reliance)))
        if self._phase != _EXPECTING and len(self._stored) and len(X):
            given, classes = self._outputs(X, values, model, labels, names if has_names else None)
            codes = np.asarray(target, dtype=np.float64) if classes is None else _codes(target, classes)
            least = 0.01 if model is not None else 0.05  # the reliance of logged predictions varies by chance
            used = reliance >= least * max(float(reliance.max()), 1e-300)
            for j, age in self._add(given, codes, X, used, names):
                ages[j] = age
        self._stored = np.concatenate([self._stored, X])[-_STORED:]
        return ages

    def _choose_features(self, reliance: Floats) -> None:
        """Choose the features with the largest reliance; the calibration of features chosen before is kept."""
        used = np.flatnonzero(reliance >= max(0.05 * reliance.max(), 1e-300))
        best = used[np.argsort(-reliance[used], kind="stable")]
        features = np.sort(best[:_MOST_FEATURES]).astype(np.int64)
        self._phase = _COLLECTING
        if np.array_equal(features, self._features):
            return
        before = {int(j): k for k, j in enumerate(self._features)}
        at = [before.get(int(j), -1) for j in features]
        if len(self._theta):  # those of new features are tested when they are calibrated
            n_old, of_causes = len(self._features), self._group >= len(self._features)
            place = np.array([k if k >= 0 else 0 for k in at], dtype=np.int64)
            columns = np.concatenate([(2 * place[:, None] + [0, 1]).ravel(), np.flatnonzero(of_causes)])
            self._theta, self._series = self._theta[columns], self._series[columns]
            self._group = np.concatenate(
                [np.repeat(np.arange(len(at)), 2), self._group[of_causes] - n_old + len(at)]
            )
            is_known = np.array([k >= 0 for k in at], dtype=bool)
            self._tested = np.append(self._tested[place] & is_known, self._tested[n_old:])
            if len(self._shares) == 0:
                scales = self._calibration[3:]
                self._calibration = np.concatenate(
                    [self._calibration[:3], scales[:1], scales[1 + place], scales[-1:]]
                )
        self._before = np.full((2, len(features)), np.nan)
        self._features = features
        self.lost = self.lost & np.isin(np.arange(len(self.lost)), features)
        self._reset_runs()

    def _outputs(
        self, X: Floats, values: Floats, model: Any, labels: Array | None, names: list[str] | None
    ) -> tuple[Floats, Array | None]:
        """Return the predictions and those with each feature replaced, of shape (n, f + 1, c), and the classes."""
        if model is None or not len(self._features):
            order = slice(None) if labels is None else np.argsort(labels, kind="stable")
            return values[:, None, order], None if labels is None else labels[order]
        n, f, s = len(X), len(self._features), len(self._stored)
        ranks = (np.arange(_N_DONORS) + self._rng.random((n, f, _N_DONORS))) * (s / _N_DONORS)
        altered = np.repeat(X[:, None, :], f * _N_DONORS, axis=1).reshape(n, f, _N_DONORS, X.shape[1])
        for k, j in enumerate(self._features.tolist()):
            altered[:, k, :, j] = np.sort(self._stored[:, j])[ranks[:, k].astype(np.int64)]
        every = np.concatenate([X, altered.reshape(-1, X.shape[1])])
        proba, classes = outputs(model, every, names, numeric=labels is None)
        if classes is not None:  # River's models return classes in arbitrary order
            classes = np.asarray(classes)
            if (
                labels is not None
                and len(labels) == proba.shape[1]
                and np.array_equal(classes, range(len(labels)))
            ):
                classes = labels
            order = np.argsort(classes, kind="stable")
            proba, classes = proba[:, order], classes[order]
        replaced = proba[n:].reshape(n, f, _N_DONORS, -1).mean(axis=2)
        return np.concatenate([proba[:n, None], replaced], axis=1), classes

    def _add(
        self, given: Floats, target: Floats, X: Floats, used: Mask, names: list[str]
    ) -> list[tuple[int, int]]:
        n_outputs, d = given.shape[2], len(self._calibration)
        fitting = n_outputs + 1 if n_outputs > 1 else 5 + len(self._features)
        if d not in (0, fitting):  # the model has other classes
            self._tested[:], self._phase = False, _COLLECTING
        if len(self._target) and self._reference.shape[1:] != given.shape[1:]:
            self._reset_reference()
        first = min(len(given), _REFERENCE - len(self._target)) if self._phase == _COLLECTING else 0
        lost = self._test(given[:first], target[:first], X[:first], used, names)
        if first:
            self._reference = np.concatenate([self._reference.reshape(-1, *given.shape[1:]), given[:first]])
            self._target = np.append(self._target, target[:first])
            if len(self._target) == _REFERENCE:
                self._calibrate()
        return lost + self._test(given[first:], target[first:], X[first:], used, names)

    def _calibrate(self) -> None:
        """Set the calibration, theta and the features tested from the reference rows."""
        f, n_outputs = len(self._features), self._reference.shape[2]
        self._calibration, self._shares = calibrate(self._reference, self._target, f)
        raw = self._ratios(self._reference, self._target)
        self._group = groups(f, n_outputs, self._shares)
        self._theta, self._inflation = find_exponents(np.minimum(raw, _CLIP))
        self._shortest = math.ceil(_SHORTEST * self._inflation)
        of_features = raw[:, : 2 * f : 2]
        error = of_features.std(axis=0) / math.sqrt(len(raw))
        self._before = np.array([-of_features.mean(axis=0), 2.0 * error])
        self._tested = np.append(of_features.mean(axis=0) < -4.0 * error, np.ones(3, dtype=bool))
        self._series = np.zeros((raw.shape[1], SERIES_SIZE))
        self._phase, self._paused = _CALIBRATED, False
        self.lost &= np.isin(np.arange(len(self.lost)), self._features)
        self._reset_reference()
        self._reset_runs()

    def _ratios(self, given: Floats, target: Floats) -> Floats:
        calibrated = forecast(given, self._calibration, self._shares)
        return log_ratios(calibrated, target, self._calibration, self._shares)

    def _test(
        self, given: Floats, target: Floats, X: Floats, used: Mask, names: list[str]
    ) -> list[tuple[int, int]]:
        """Return the columns detected as lost in these rows, and the lengths of their runs."""
        lost: list[tuple[int, int]] = []
        if not self.is_testing or not len(given):
            return lost
        n_before, most = len(self._rows), max(200, min(_KEPT, 100_000 // X.shape[1]))
        self._rows = np.concatenate([self._rows, X])
        self._given = np.concatenate([self._given.reshape(-1, *given.shape[1:]), given])
        self._labels = np.append(self._labels, target)
        raw, limit, at = self._ratios(given, target), math.log(self.n_rows * int(self._tested.sum())), 0
        theta = self._theta / np.maximum(1.0, self._series[:, 2] / self._inflation)
        while at < len(raw) and not self._paused:
            held = np.flatnonzero(self.lost[self._features])
            if len(held):
                at = self._wait(raw, at, limit, int(held[0]))
                continue
            row, _ = _advance(
                raw, at, len(raw), theta, self._group, self._tested, limit, self._level, self._total, self._age,
                self._shortest,
            )  # fmt: skip
            if row < 0:
                break
            at = row + 1
            # The longest run of a hypothesis that has half the evidence: its own start would favour each of them.
            age = max(1, int(self._age[self._level > 0.5 * limit].max(initial=0)))
            last = n_before + row + 1
            rows = slice(max(0, last - min(age, most)), last)
            j = self._explain(rows, used, names, is_long=age >= _LONGEST * self._inflation)
            if j is None:  # further rows are awaited
                stop = min(len(raw), at + _AGAIN)
                _advance(
                    raw, at, stop, theta, self._group, self._tested, math.inf, self._level, self._total, self._age, 1
                )  # fmt: skip
                at = stop
                continue
            if j >= 0:
                lost.append((j, age))
                self.lost[j] = True
            self.age = age + len(raw) - at
            if j not in self._features:  # of an unknown model, no reverse test is possible
                self._paused, self._phase = True, _COLLECTING
                self._reset_reference()
            self._reset_runs()
            n_before, self._rows, self._given, self._labels = -at, X[at:], given[at:], target[at:]
        _add_series(raw, self._series, _EVERY)
        for name in ("_rows", "_given", "_labels"):
            setattr(self, name, getattr(self, name)[-most:])
        return lost

    def _explain(self, rows: slice, used: Mask, names: list[str], *, is_long: bool) -> int | None:
        """Name the cause of a change in stored rows: return the lost feature, -1 if there is none, or None."""
        calibrated = forecast(self._given[rows], self._calibration, self._shares, _FLOOR)
        found = explanations(
            calibrated, self._labels[rows], self._calibration, self._shares, self._features,
            self._tested[: len(self._features)], used, self._rows[rows], names,
        )  # fmt: skip
        best = found[0]
        if best.lost >= 0:  # only if it is clearly more than the other cause alone
            alone = next((one for one in found if one.cause == best.cause and one.lost < 0), None)
            if alone is not None and best.score - alone.score < (_LOG_ODDS + 1.0) * self._inflation:
                best = alone
        # Another effect of the same feature contains the loss of its relevance as a special case.
        nested = _NESTED if rows.stop - rows.start >= _FEWEST // 2 else 1.0
        others = {
            one.cause: one.score - nested * (one.cause == EFFECT and one.feature == best.feature)
            for one in reversed(found)
            if one.cause != best.cause or (best.cause == STALE and one is not best)
        }
        second = max(others, key=lambda cause: others[cause])
        odds = (best.score - others[second]) / self._inflation
        is_short = best.cause != STALE and rows.stop - rows.start < _FEWEST * self._inflation
        if is_short or odds < _LOG_ODDS + (best.cause == STALE):
            if not is_long or best.cause == STALE:
                return None
            if best.cause == CALIBRATION and odds < _TIE:
                best = next((one for one in found if one.cause == NOISE), best)
        said = best.evidence
        if best.cause == STALE:
            for k in np.flatnonzero(self._features == best.feature):
                said = f"{said} ({self._before[0, k]:.3f} ± {self._before[1, k]:.3f} before)"
        if best.lost >= 0:
            said = f"{said}, and {names[best.lost]!r} no longer matters"
        self.evidence = (
            f"{said}; on {rows.stop - rows.start:,} labelled rows, this is {math.exp(min(odds, 14.0)):,.1f} times as"
            f" likely as {second!r}"
        )
        if best.cause == STALE:
            return best.feature
        self.cause, self._left = best.cause, _REFERENCE
        return best.lost

    def _wait(self, raw: Floats, at: int, limit: float, k: int) -> int:
        """Run the reverse test of the k-th feature from a row on; return the row at which the test resumes."""
        steps = self._theta[2 * k] * np.minimum(-raw[at:, 2 * k : 2 * k + 2].max(axis=1), _CLIP)
        for i, step in enumerate(steps.tolist(), at):
            self._back = float(np.logaddexp(0.0, self._back)) + step
            if self._back > limit:
                self.lost[self._features[k]] = False
                return i + 1
        return len(raw)


def _codes(target: Array, classes: Array) -> Floats:
    """Return the codes of labels; that of any class unknown to the model is the number of classes."""
    return np.minimum(encode_labels(target, classes)[0], len(classes)).astype(np.float64)
