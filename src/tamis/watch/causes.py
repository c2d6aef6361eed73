r"""Sequential tests of why the labels of a model differ from its forecasts.

Let p be the probability that the model assigns to the true class of a row, and q_j the mean of this probability when
the value of feature j is replaced by those of earlier rows: four of the last 100, one from each quarter of their order.
For a regression, p and q_j are densities of the target. Each is calibrated on the first 1,000 labelled rows
(:func:`tamis.watch.hypotheses.calibrate`), so q_j is the distribution of a label that does not depend on j. For each
row, with the class frequencies mixed into p and q_j at a rate of 0.02, the alternative of a feature is l_j = log q_j /
p; those of the other causes are in :mod:`tamis.watch.hypotheses`, and those of the features that the model does not use
in :mod:`tamis.watch.outside`. If p is the distribution of the label, the mean of exp(l) given the past is 1, so
R <- (1 + R) exp(theta l) with theta = 1, minus the number of rows, is a martingale (Shiryaev-Roberts; as e-detector:
Shin, Ramdas, Rinaldo, E-detectors: a nonparametric framework for sequential change detection, 2024), and R reaches A
after at least A rows on average. The same is true of the mean of the R of a group: one per feature, and one each for
noise, calibration, prior and all unused features. For other models, theta is chosen on the first 1,000 labelled rows,
and l is limited to 2.5. theta is divided by the variance inflation of l over all earlier rows
(:func:`tamis.dependence.autocorrelation.add_rows`), so rows that depend on one another count as fewer.

Where these 1,000 rows count as fewer than 25 independent ones (:func:`tamis.watch.long_run.reached_inflation`), every
second of them is kept and further ones are awaited, of which every second, fourth, ... is used, until they do.

A feature is tested if l_j is significantly negative on these first rows (below -3 standard errors). A change is
detected if the mean of a group exceeds `n_rows` times the number of groups, and its run has an effective number of 20
independent rows. The cause is then the one with a probability of .99 (:func:`tamis.watch.hypotheses.explanations`), for
a lost feature .995 or .98 twice in succession, given the rows of the shortest and of the longest run of the
alternatives that have half the evidence, either of which may begin with the change. A cause other than a lost feature
needs 100 rows, since several may come together, and noise or calibration 200. Without such a cause, a tenth of the run
is awaited, during which no test can reject, and the runs at the alarm are prolonged; after 1,000 rows the most probable
cause is named, if it has a probability of .9 with fewer than 100 independent rows. The runs begin again if "nothing has
changed" has a probability of .99, or of .1 after 1,000 rows.

After a lost feature, the test pauses until the reverse test (of -l_j) finds the feature relevant again, or the model
changes. After another cause, the test is calibrated on the rows since the change, at least 100, and again when there
are 1,000 of them. A feature is also lost if the gain of its value in these rows is less than half of that before,
relative to the gain of the other features, and by three standard errors: this is a second change in the rows since the
first. A new model is tested with the calibration of its predecessor until its first 1,000 labelled rows are complete.

The constants were chosen on seeds below 300 of the streams of experiments/watch.py and of other generators, and on
seeds below 500 of experiments/watch_causes.py; the figures in the documentation use seeds from 300 and 500 on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask, encode_labels
from tamis.dependence.autocorrelation import SERIES_SIZE, SIGNIFICANT, add_rows, variance_inflation
from tamis.importance.predictions import outputs
from tamis.watch.calibration import find_exponents
from tamis.watch.hypotheses import (
    STALE,
    WEAKENING,
    RefinedForecast,
    calibrate,
    explanations,
    forecast,
    groups,
    log_ratios,
    null_score,
)
from tamis.watch.long_run import reached_inflation
from tamis.watch.outside import OutsideRatios

_FIRST = 200  # labelled rows before the features are chosen, when their reliance has been estimated
_REFERENCE = 1000
_MOST_FEATURES = 5
_LEAST_USED = 0.05  # reliance of a feature that the model uses, relative to the largest one
_N_DONORS = 4
_STORED = 100
_KEPT = 1000  # rows that an explanation may use, and that are awaited; fewer of wide rows
_CLIP, _SHORTEST = 2.5, 20
_FEWEST = 100  # rows of a cause other than a lost feature, and of a first calibration after it
_FEWEST_ALIKE = 200  # of noise and calibration, which a few improbable labels do not distinguish
_READ_EVERY = 32  # values after which an inflation is read again
_NO_CHANGE = -2
_AGAIN = 10  # least rows between two attempts to find the cause
_SURE_OF_LOSS = 0.995  # probability of a loss that is named at once
_TWICE = 0.98  # that of one that must be found twice in succession
_SURE, _ALMOST_SURE = 0.99, 0.9  # probability of a cause that is named, at once and after many dependent rows
_INDEPENDENT = 30  # rows of the reference by which the relation to an unused feature is known
_FEWEST_INDEPENDENT = 25  # rows of a reference
_MOST_OUTSIDE = 200  # unused features whose relation to the label is tested
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
        The cause of a change in the last 1,000 labelled rows that is not a lost feature, or "none".
    evidence : str
        A sentence about the last cause.
    evidence_of : list of str
        A sentence about the loss of each column.
    age : int
        Number of labelled rows since the change, when it was detected.
    """

    _shapes = (
        "lost (j) bool  _n_labelled in [0, inf)  _stored (s, j) float  _features (f) int64 in [0, j)"
        "  _reference (r, g, c) float  _reference_rows (r, j) float  _target (r) float  _phase in [0, 3)"
        "  _stride in [1, 2**62)  _offset in [0, 2**62)  _n_tested in [0, 2**62)"
        "  _outside? (its own)  _refined? (its own)  _shortest in [1, inf)  _shares (k) float"
        "  _calibration (a, d) float"
        "  _theta (h) float in (0, 1.5]  _group (h) int64 in [0, t)  _tested (t) bool  _level (h) float in [-inf, inf]"
        "  _total (h) float in [-inf, inf]  _age (h) int64 in [0, inf)"
        f"  _series (h, {SERIES_SIZE}) float"
        "  _inflation (h) float in [1, inf)  _back float in [-inf, inf]  _awaited in [0, inf)"
        "  _due in [0, 2**62)  _suspect in [-1, j)  _runs (2) int64 in [0, 2**62)  _before (2, f) float"
        "  _rows (w, j) float in (-inf, inf) or nan fixed  _given (w, x, z) float fixed  _labels (w) float fixed"
    )

    def __init__(self, n_columns: int, n_rows: float, random_state: int | None) -> None:
        self.n_rows = float(n_rows)
        self._rng = np.random.default_rng(random_state)
        self._stored: Floats = np.empty((0, n_columns))
        self._features = np.empty(0, dtype=np.int64)
        self._theta, self._group = np.empty(0), np.empty(0, dtype=np.int64)
        self._tested = np.empty(0, dtype=bool)
        self._series: Floats = np.empty((0, SERIES_SIZE))
        self._shares: Floats = np.empty(0)
        self._calibration: Floats = np.empty((0, 0))
        self._before: Floats = np.empty((2, 0))
        self._shortest, self._inflation = _SHORTEST, np.empty(0)
        self._outside: OutsideRatios | None = None
        self._refined: RefinedForecast | None = None
        self._stride, self._n_tested = 1, 0  # every how many rows one is stored
        self.restart()

    def restart(self) -> None:
        """Prepare for a new model: a new reference is collected, and the calibration is kept until it is complete."""
        self.lost = np.zeros(self._stored.shape[1], dtype=bool)
        self.cause, self.evidence, self.age = "none", "", 0
        self.evidence_of: list[str] = [""] * len(self.lost)
        self._n_labelled, self._phase, self._paused = 0, _EXPECTING, False
        self._is_second = False  # whether the reference is that after a cause
        self._left = 0  # labelled rows for which the cause is reported
        self._reset_reference()
        self._reset_runs()

    def _reset_reference(self) -> None:
        self._reference: Floats = np.empty((0, 0, 0))
        self._reference_rows: Floats = np.empty((0, self._stored.shape[1]))
        self._target: Floats = np.empty(0)
        self._offset = 0  # rows before the next one of the reference

    def _start_runs(self) -> None:
        h = len(self._theta)
        self._level, self._total = np.full(h, -700.0), np.zeros(h)
        self._age = np.zeros(h, dtype=np.int64)
        # Rows since an alarm whose cause is not known yet, those until it is sought again, and the runs at the alarm.
        self._suspect = -1
        self._awaited, self._due, self._runs = 0, 0, np.zeros(2, dtype=np.int64)

    def _reset_runs(self) -> None:
        self._start_runs()
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
            used = reliance >= max(_LEAST_USED * float(reliance.max()), 1e-300)
            for j, age in self._add(given, codes, X, used, names):
                ages[j] = age
        self._stored = np.concatenate([self._stored, X])[-_STORED:]
        return ages

    def _choose_features(self, reliance: Floats) -> None:
        """Choose the features with the largest reliance; the calibration of features chosen before is kept."""
        used = np.flatnonzero(reliance >= max(_LEAST_USED * reliance.max(), 1e-300))
        best = used[np.argsort(-reliance[used], kind="stable")]
        features = np.sort(best[:_MOST_FEATURES]).astype(np.int64)
        self._phase = _COLLECTING
        if np.array_equal(features, self._features):
            return
        before = {int(j): k for k, j in enumerate(self._features)}
        at = [before.get(int(j), -1) for j in features]
        if len(self._theta):  # those of new features are tested when they are calibrated
            self._tested[-1] = False
            n_old, of_causes = len(self._features), self._group >= len(self._features)
            place = np.array([k if k >= 0 else 0 for k in at], dtype=np.int64)
            columns = np.append(place, np.flatnonzero(of_causes))
            self._theta, self._inflation = self._theta[columns], self._inflation[columns]
            self._series = np.zeros((len(columns), SERIES_SIZE))
            self._group = np.append(np.arange(len(at)), self._group[of_causes] - n_old + len(at))
            is_known = np.array([k >= 0 for k in at], dtype=bool)
            self._tested = np.append(self._tested[place] & is_known, self._tested[n_old:])
            self._calibration = self._calibration[np.append(0, 1 + place)]
            if self._refined is not None:
                self._refined.select(place, features)
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
        n_outputs = given.shape[2]
        fitting = n_outputs + 1 if n_outputs > 1 else 3
        if len(self._theta) and self._calibration.shape[1] != fitting:  # the model has other classes
            self._tested[:], self._phase = False, _COLLECTING
        if len(self._target) and self._reference.shape[1:] != given.shape[1:]:
            self._reset_reference()
        lost: list[tuple[int, int]] = []
        at = 0
        while at < len(given):
            wanted = self._fewest if self._paused else _REFERENCE
            first = len(given)
            if self._phase == _COLLECTING:
                first = self._offset + (wanted - len(self._target) - 1) * self._stride + 1
            part = slice(at, at + first)
            was_paused = self._paused
            found, n = self._test(given[part], target[part], X[part], used, names)
            part = slice(at, at + n)
            lost, at = lost + found, at + n
            if self._phase != _COLLECTING:
                continue
            if was_paused or not self._paused:  # otherwise, they are in the run of a change
                rows = slice(part.start + self._offset, part.stop, self._stride)
                self._reference = np.concatenate([self._reference.reshape(-1, *given.shape[1:]), given[rows]])
                self._reference_rows = np.concatenate([self._reference_rows, X[rows]])
                self._target = np.append(self._target, target[rows])
                self._offset = -(n - self._offset) % self._stride if n > self._offset else self._offset - n
            if len(self._target) == _REFERENCE:
                lost += self._calibrate(used)
            elif self._paused and len(self._target) >= self._fewest:
                self._calibrate(used, is_final=False)
        return lost

    @property
    def _fewest(self) -> int:
        """Rows of a first calibration after a cause, which count as 25 independent ones."""
        own = self._inflation[self._group < len(self._features) + 3]
        needed = math.ceil(_FEWEST_INDEPENDENT * float(own.max(initial=1.0)) / self._stride)
        return min(_REFERENCE, max(_FEWEST, needed))

    @property
    def _limit(self) -> float:
        return math.log(self.n_rows * max(1, int(self._tested.sum())))

    def _calibrate(self, used: Mask, *, is_final: bool = True) -> list[tuple[int, int]]:
        """Set the calibration from the reference rows, and if it is final, the features tested; return those lost."""
        lost: list[tuple[int, int]] = []
        f, n_outputs = len(self._features), self._reference.shape[2]
        calibration, shares = calibrate(self._reference, self._target)
        calibrated = forecast(self._reference, calibration, shares)
        own = np.minimum(log_ratios(calibrated, self._target, calibration, shares), _CLIP)
        n_own, centred = own.shape[1], (own - own.mean(axis=0)).T.copy()
        if is_final and reached_inflation(centred).max() * _FEWEST_INDEPENDENT > len(own):
            self._thin()
            return lost
        inflation = variance_inflation(centred)
        self._calibration, self._shares = calibration, shares
        self._refined = RefinedForecast(
            self._reference, self._target, calibration, shares, self._features, used, self._reference_rows,
            float(inflation.max()),
        )  # fmt: skip
        if is_final or self._outside is None:
            columns = np.flatnonzero(~used)[:_MOST_OUTSIDE].astype(np.int64)
            z = self._reference_rows[:, columns]
            known = ~np.isnan(z)
            z = np.where(
                known, z - np.where(known, z, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1), 0.0
            )
            # The relation to a slow feature is known from few independent rows.
            if len(columns):
                columns = columns[variance_inflation(z.T.copy()) * _INDEPENDENT <= len(z)]
        else:
            columns = self._outside.columns
        scale = float(calibration[0, 2]) if n_outputs == 1 else 1.0
        self._outside = OutsideRatios(columns, self._reference_rows, calibrated, self._target, scale)
        outside = self._outside.update(self._reference_rows, calibrated, self._target)
        # The ratios of unused features do not depend on reference rows, and are too small there for an exponent.
        theta = np.append(find_exponents(own), np.ones(self._outside.size))
        self._paused = False
        if is_final or len(theta) != len(self._theta):
            of_outside = np.empty(0)
            if outside.size:
                of_outside = variance_inflation((outside - outside.mean(axis=0)).T.copy())
            self._theta, self._inflation = theta, self._stride * np.append(inflation, of_outside)
            group = groups(f, n_outputs, shares)
            self._group = np.append(group, np.full(self._outside.size, f + 3))
            self._shortest = math.ceil(_SHORTEST * float(np.median(self._inflation[:n_own])))
            of_features = own[:, :f]
            error = of_features.std(axis=0) * math.sqrt(float(np.median(inflation)) / len(own))
            refined = self._refined.forecast(self._reference, shares, self._reference_rows)
            gains = -log_ratios(refined, self._target, self._refined.calibration, shares)[:, :f]
            half = gains.std(axis=0) * math.sqrt(float(np.median(inflation)) / len(own))
            before, self._before = self._before, np.array([gains.mean(axis=0), 2.0 * half])
            if self._is_second:  # a second change in the rows after another cause
                lost = self._lost_between(before)
            self._tested = np.concatenate(
                [of_features.mean(axis=0) < -SIGNIFICANT * error, [True] * 3, [self._outside.size > 0]]
            )
            self._phase = _CALIBRATED
            self.lost &= np.isin(np.arange(len(self.lost)), self._features)
            self._reset_reference()
        else:
            self._theta = np.minimum(self._theta, theta)
        self._series = np.zeros((len(theta), SERIES_SIZE))
        self._reset_runs()
        return lost

    def _thin(self) -> None:
        """Keep every second row of the reference, and of those that follow."""
        of_next = len(self._target) % 2 * self._stride
        self._reference, self._reference_rows = self._reference[::2], self._reference_rows[::2]
        self._target = self._target[::2]
        self._rows, self._given, self._labels = self._rows[::2], self._given[::2], self._labels[::2]
        self._stride, self._offset = 2 * self._stride, self._offset + of_next

    def _lost_between(self, before: Floats) -> list[tuple[int, int]]:
        """Return the features whose gain fell by more than half relative to that of the other features."""
        lost, was, now = [], np.flatnonzero(self._tested[: len(self._features)]), self._before
        for k in was.tolist():
            rest = was[was != k]
            ratio = min(1.0, float(now[0, rest].sum() / before[0, rest].sum())) if len(rest) else 1.0
            j = int(self._features[k])
            fall = ratio * before[0, k] - now[0, k]
            bound = 0.5 * SIGNIFICANT * math.hypot(before[1, k], now[1, k])
            if not self.lost[j] and fall > max(bound, 0.5 * ratio * before[0, k]):
                self.lost[j] = True
                self.evidence_of[j] = (
                    f"its value now changes the log-likelihood of a label by {now[0, k]:.3f} ± {now[1, k]:.3f}"
                    f" ({before[0, k]:.3f} ± {before[1, k]:.3f} before)"
                )
                lost.append((j, _REFERENCE * self._stride))
        return lost

    def _ratios(self, given: Floats, target: Floats, X: Floats) -> Floats:
        calibrated = forecast(given, self._calibration, self._shares)
        raw = log_ratios(calibrated, target, self._calibration, self._shares)
        return (
            raw
            if self._outside is None
            else np.column_stack([raw, self._outside.update(X, calibrated, target)])
        )

    def _test(
        self, given: Floats, target: Floats, X: Floats, used: Mask, names: list[str]
    ) -> tuple[list[tuple[int, int]], int]:
        """Test rows until a cause is named; return the lost columns, their runs, and the number of rows tested."""
        lost: list[tuple[int, int]] = []
        if not self.is_testing or not len(given):
            return lost, len(given)
        n_before, most = len(self._rows), max(200, min(_KEPT, 100_000 // X.shape[1]))
        kept = np.arange(-self._n_tested % self._stride, len(X), self._stride)
        self._n_tested += len(X)
        self._rows = np.concatenate([self._rows, X[kept]])
        self._given = np.concatenate([self._given.reshape(-1, *given.shape[1:]), given[kept]])
        self._labels = np.append(self._labels, target[kept])
        raw, limit, at = self._ratios(given, target, X), self._limit, 0
        each = np.maximum(self._inflation, self._series[:, 2])
        of_model = self._group < len(self._features) + 3
        inflation = float(each[of_model].max())  # shared, since their own are uncertain
        each[of_model] = inflation
        theta = np.where(of_model & (each == 1.0), self._theta, np.minimum(self._theta, 1.0) / each)
        while at < len(raw):
            held = np.flatnonzero(self.lost[self._features])
            if len(held):
                at = self._wait(raw, theta, at, limit, int(held[0]))
                continue
            at = self._next(raw, theta, at, limit)
            if at < 0:
                break
            ages = self._ages(limit, of_model, most)
            last = n_before + int(np.searchsorted(kept, at))
            lengths = sorted({math.ceil(age / self._stride) for age in ages.tolist()})
            runs = [slice(max(0, last - length), last) for length in lengths]
            of_stored = max(1.0, inflation / self._stride)
            is_long = self._awaited >= most * self._stride
            j = self._explain(runs, used, names, of_stored, is_long=is_long)
            if j is None:
                self._due = max(_AGAIN, int(ages.max()) // 10)
                continue
            if j == _NO_CHANGE:
                self._start_runs()
                continue
            age = self._stride * (runs[0].stop - runs[0].start)
            if j >= 0:
                lost.append((j, age))
                self.lost[j] = True
            self.age = age + len(raw) - at
            if j not in self._features:  # of an unknown model, no reverse test is possible
                self._paused, self._is_second, self._phase = True, True, _COLLECTING
                rows = slice(max(runs[0].start, last - _REFERENCE), last)
                self._reference, self._target = self._given[rows], self._labels[rows]
                self._reference_rows = self._rows[rows]
                self._reset_runs()
                return lost, at
            self._reset_runs()
            rest = kept[kept >= at]
            n_before, self._rows, self._given, self._labels = (
                len(rest) - len(kept), X[rest], given[rest], target[rest],
            )  # fmt: skip
        # Rows since a change would count as dependent on one another.
        if not self._awaited or float(self._level.max()) < limit:
            add_rows(np.minimum(raw, _CLIP), self._series, _READ_EVERY)
        for name in ("_rows", "_given", "_labels"):
            setattr(self, name, getattr(self, name)[-most:])
        return lost, len(raw)

    def _next(self, raw: Floats, theta: Floats, at: int, limit: float) -> int:
        """Run the tests from a row on; return the row after which a cause is sought, or -1."""
        if not self._due:
            row, _ = _advance(
                raw, at, len(raw), theta, self._group, self._tested, limit, self._level, self._total, self._age,
                self._shortest,
            )  # fmt: skip
            return row + 1 if row >= 0 else -1
        stop = min(len(raw), at + self._due)
        _advance(
            raw, at, stop, theta, self._group, self._tested, math.inf, self._level, self._total, self._age, 1
        )  # fmt: skip
        self._due, self._awaited = self._due - stop + at, self._awaited + stop - at
        return -1 if self._due else stop

    def _ages(self, limit: float, of_model: Mask, most: int) -> Ints:
        """Return the rows of the runs in which a change may have begun.

        Those of the alternatives that have half the evidence; of unused features, if no others have. The runs at the
        alarm are prolonged, since the change may be older than a run that has begun again.
        """
        has_evidence = self._level > 0.5 * limit
        if (has_evidence & of_model).any():
            has_evidence &= of_model
        ages = self._age[has_evidence]
        if not self._awaited:
            self._runs = np.array([ages.min(), ages.max()])
        ages = np.append(self._runs + self._awaited, [ages.min(), ages.max()] if len(ages) else [])
        return np.clip(ages.astype(np.int64), self._shortest, max(most * self._stride, self._shortest))

    def _explain(
        self, runs: list[slice], used: Mask, names: list[str], inflation: float, *, is_long: bool
    ) -> int | None:
        """Name the cause of a change in stored rows: return the lost feature, -1 if there is none, -2 if
        nothing has changed, or None.

        The change may have come before any of the runs; rows before it have the forecast of the model.
        """
        found = []
        assert self._refined is not None
        for rows in runs:
            every = slice(runs[-1].start, rows.stop)
            calibrated = self._refined.forecast(self._given[every], self._shares, self._rows[every])
            n = rows.start - runs[-1].start
            before = null_score(calibrated[:n], self._labels[runs[-1].start : rows.start], inflation)
            found += [(one._replace(score=one.score + before), rows) for one in explanations(
                calibrated[n:], self._labels[rows], self._refined.calibration, self._shares, self._features,
                self._tested[: len(self._features)], used, self._rows[rows], names, inflation,
            )]  # fmt: skip
        score = np.array([one.score for one, _ in found])
        weight: dict[tuple[str, int], float] = {}
        for (one, _), value in zip(found, np.exp(score - logsumexp(score)).tolist(), strict=True):
            key = (STALE, one.lost) if one.lost >= 0 else (one.cause, -1)
            weight[key] = weight.get(key, 0.0) + value
        named = max(weight, key=lambda one: weight[one])
        if weight["", -1] >= (1.0 - _ALMOST_SURE if is_long else _SURE):
            return _NO_CHANGE
        enough = _SURE
        if named[0] == STALE:
            enough = _TWICE if self._suspect == named[1] else _SURE_OF_LOSS
        self._suspect = named[1] if weight[named] >= _TWICE else -1
        if weight[named] < enough:
            if not is_long:
                return None
            # Rows that depend on one another differ in more than the causes do: the test is calibrated again.
            if weight[named] < (
                0.5 if runs[-1].stop - runs[-1].start >= _FEWEST * inflation else _ALMOST_SURE
            ):
                return -1
        best, rows = max(
            (pair for pair in found if named in ((pair[0].cause, pair[0].lost), (STALE, pair[0].lost))),
            key=lambda pair: (pair[0].cause == named[0], pair[0].score),
        )
        fewest = 1 if named[0] == STALE else _FEWEST_ALIKE if named[0] in WEAKENING[:2] else _FEWEST
        if rows.stop - rows.start < fewest:
            return None
        said = best.evidence
        if named[0] == STALE:
            for k in np.flatnonzero(self._features == best.lost):
                said = f"{said} ({self._before[0, k]:.3f} ± {self._before[1, k]:.3f} before)"
        n_rows = self._stride * (rows.stop - rows.start)
        said = f"{said}; on {n_rows:,} labelled rows, this has a probability of {weight[named]:.3f}"
        if named[0] == STALE:
            self.evidence_of[named[1]] = said
        else:
            self.cause, self.evidence, self._left = best.cause, said, _REFERENCE
        return named[1]

    def _wait(self, raw: Floats, theta: Floats, at: int, limit: float, k: int) -> int:
        """Run the reverse test of the k-th feature from a row on; return the row at which the test resumes."""
        steps = theta[k] * np.minimum(-raw[at:, k], _CLIP)
        for i, step in enumerate(steps.tolist(), at):
            self._back = float(np.logaddexp(0.0, self._back)) + step
            if self._back > limit:
                self.lost[self._features[k]] = False
                return i + 1
        return len(raw)


def _codes(target: Array, classes: Array) -> Floats:
    """Return the codes of labels; that of any class unknown to the model is the number of classes."""
    return np.minimum(encode_labels(target, classes)[0], len(classes)).astype(np.float64)
