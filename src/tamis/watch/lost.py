r"""A sequential test that detects a feature that a model uses although it is no longer relevant to the label.

Let p be the probability that the model assigns to the true class of a row, and q_j the mean of this probability when
the value of feature j is replaced by those of earlier rows: four of the last 100, one from each quarter of their order.
If the label no longer depends on j, q_j predicts it better than p. Both are calibrated first
(:mod:`tamis.watch.calibration`). For each row, with the class frequencies pi mixed into p and q_j at a rate of 0.02,

    l_j = log q_j / p,    l_j' = log ((q_j + pi) / 2) / p,    and for a loss that no single feature explains
    l_0 = log pi / p,     l_0' = log ((p + pi) / 2) / p.

If p is the distribution of the label, the mean of exp(l) given the past is 1, so R <- (1 + R) exp(theta l) with
theta = 1, minus the number of rows, is a martingale (Shiryaev-Roberts; as e-detector: Shin, Ramdas, Rinaldo,
E-detectors: a nonparametric framework for sequential change detection, 2024), and R reaches A after at least A rows on
average. The same is true of the mean of R_j and R_j'. For other models, theta is chosen on the first 1,000 labelled
rows, and l is limited to 2.5.

A feature is tested if l_j is significantly negative on these first rows (below -4 standard errors). A change is
detected if the mean of R_j and R_j' of a feature exceeds `n_rows` times the number of features tested, and its run has
an effective number of 20 independent rows. The feature is isolated by the statistics with theta = 1 and without a
limit, as in Malladi and Speyer (A generalized Shiryaev sequential probability ratio test for change detection and
isolation, 1999): that of the feature must be e^2 times the sum of those of the other features, and the likelihood of
l_j and l_j' over the run must exceed that of l_0 and l_0'. The test then pauses until the reverse test (of
-max(l_j, l_j'), since donors from autocorrelated rows predict badly) finds the feature relevant again, or the model
changes.

A new model is tested with the calibration of its predecessor until its first 1,000 labelled rows are complete.

The constants were chosen on seeds below 300 of the streams of experiments/watch.py and of other generators; the figures
in the documentation use seeds from 300 on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, encode_labels
from tamis.importance.predictions import outputs
from tamis.watch.calibration import find_exponents, fit_calibration, recalibrate

__all__ = ["LostRelevance"]


_FIRST = 200  # labelled rows before the features are chosen, when their reliance has been estimated
_REFERENCE = 1000
_MOST_FEATURES = 5
_N_DONORS = 4
_STORED = 100
_EPS = 0.02
_CLIP, _LOG_ODDS, _SHORTEST = 2.5, 2.0, 20
_EXPECTING, _COLLECTING, _CALIBRATED = range(3)  # phases of a model


@njit(strict=True)
def _log_sum(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b))."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(strict=True)
def _isolate(level: Array, sums: Array, tested: Array) -> int:
    """Return the index of the feature that explains a change, or -1."""
    best, best_log, others = -1, -np.inf, -700.0
    for j in range(len(tested)):
        if tested[j]:
            log_r = _log_sum(level[1, 2 * j], level[1, 2 * j + 1])
            if log_r > best_log:
                others = _log_sum(others, best_log)
                best, best_log = j, log_r
            else:
                others = _log_sum(others, log_r)
    k = 2 * best + (level[0, 2 * best + 1] > level[0, 2 * best])
    is_explained = _log_sum(sums[k, 0], sums[k, 1]) >= _log_sum(sums[k, 2], sums[k, 3])
    return best if is_explained and best_log >= others + _LOG_ODDS else -1


@njit(strict=True)
def _advance(
    raw: Array,
    start: int,
    theta: Array,
    tested: Array,
    limit: float,
    level: Array,
    total: Array,
    age: Array,
    sums: Array,
    shortest: int,
) -> tuple[int, int]:
    """Run all tests from a row on; return the row of an alarm and the number of the feature, or -1 and -1.

    raw     (n, 2 f + 2)  log-likelihood ratios, two of each feature; the last two are those without a feature
    tested  (f)
    level   (2, 2 f)      log R with theta and limited ratios, and with the original ratios
    total   (2 f)         sum over the run of the test, which restarts when it is not positive
    age     (2 f)         rows of the run
    sums    (2 f, 4)      raw sums over the run: both hypotheses of the feature, and both without a feature
    """
    n_hypotheses = 2 * len(tested)
    for i in range(start, raw.shape[0]):
        highest = -np.inf
        for k in range(n_hypotheses):
            step = theta[k] * min(raw[i, k], _CLIP)
            level[0, k] = max(_log_sum(level[0, k], 0.0) + step, -700.0)
            level[1, k] = max(_log_sum(level[1, k], 0.0) + raw[i, k], -700.0)
            total[k] += step
            age[k] += 1
            sums[k, :2] += raw[i, k - k % 2 : k - k % 2 + 2]
            sums[k, 2:] += raw[i, n_hypotheses:]
            if total[k] <= 0.0:
                total[k], age[k] = 0.0, 0
                sums[k, :] = 0.0
            if k % 2 and tested[k // 2] and max(age[k - 1], age[k]) >= shortest:
                highest = max(highest, _log_sum(level[0, k - 1], level[0, k]))
        if highest - math.log(2.0) > limit:
            best = _isolate(level, sums, tested)
            if best >= 0:
                return i, best
    return -1, -1


class LostRelevance(ThreadSafe):
    """Tests which feature of a classifier has lost its relevance, with a bound on false alarms.

    Parameters
    ----------
    n_columns : int
    n_rows : float
        Lower bound on the mean number of labelled rows between two false alarms, for a calibrated model.
    random_state : int or None

    Attributes
    ----------
    lost : ndarray of shape (n_columns,), bool
    """

    _shapes = (
        "lost (j) bool  _n_labelled in [0, inf)  _stored (s, j) float  _features (f) int64 in [0, j)"
        "  _reference (r, g, c) float in [0, inf)  _codes (r) int64 in [0, inf)  _phase in [0, 3)"
        "  _shortest in [1, inf)  _shares (k) float in [0, inf)  _calibration (d) float  _theta (2*f) float in (0, 1.5]"
        "  _tested (f) bool  _level (2, 2*f) float in [-inf, inf]  _total (2*f) float in [-inf, inf]"
        "  _age (2*f) int64 in [0, inf)  _sums (2*f, 4) float in [-inf, inf]  _back float in [-inf, inf]"
    )

    def __init__(self, n_columns: int, n_rows: float, random_state: int | None) -> None:
        self.n_rows = float(n_rows)
        self._rng = np.random.default_rng(random_state)
        self._stored: Floats = np.empty((0, n_columns))
        self._features = np.empty(0, dtype=np.int64)
        self._theta, self._tested = np.empty(0), np.empty(0, dtype=bool)
        self._shares: Floats = np.empty(0)
        self._calibration: Floats = np.empty(0)
        self._shortest = _SHORTEST
        self.restart()

    def restart(self) -> None:
        """Prepare for a new model: a new reference is collected, and the calibration is kept until it is complete."""
        self.lost = np.zeros(self._stored.shape[1], dtype=bool)
        self._n_labelled, self._phase = 0, _EXPECTING
        self._reset_reference()
        self._reset_runs()

    def _reset_reference(self) -> None:
        self._reference: Floats = np.empty((0, 0, 0))
        self._codes = np.empty(0, dtype=np.int64)

    def _reset_runs(self) -> None:
        h = len(self._theta)
        self._level, self._total = np.full((2, h), -700.0), np.zeros(h)
        self._age, self._sums = np.zeros(h, dtype=np.int64), np.zeros((h, 4))
        self._back = -math.inf  # log R of the reverse test

    @property
    def is_testing(self) -> bool:
        """Whether a reference is complete and a feature is tested."""
        return bool(self._tested.any())

    def update(self, model: Any, X: Floats, y: Array, names: list[str] | None, reliance: Floats) -> list[int]:
        """Add labelled rows and the reliance on each column; return the run length of each column lost in these rows.

        There is one number per column, 0 if it was not lost in these rows.
        """
        ages = [0] * X.shape[1]
        self._n_labelled += len(X)
        reliance = np.nan_to_num(reliance, nan=0.0)
        if self._phase == _EXPECTING and self._n_labelled >= _FIRST and reliance.max() > 0.0:
            self._choose_features(reliance)
        if len(self._features) and len(self._stored) and len(X):
            p, codes = self._probabilities(model, X, y, names)
            for j, age in self._add(p, codes):
                ages[j] = age
        self._stored = np.concatenate([self._stored, X])[-_STORED:]
        return ages

    def _choose_features(self, reliance: Floats) -> None:
        """Choose the features with the largest reliance; the calibration of features chosen before is kept."""
        used = np.flatnonzero(reliance >= 0.05 * reliance.max())
        best = used[np.argsort(-reliance[used], kind="stable")]
        features = np.sort(best[:_MOST_FEATURES]).astype(np.int64)
        self._phase = _COLLECTING
        if np.array_equal(features, self._features):
            return
        before = {int(j): k for k, j in enumerate(self._features)}
        at = [before.get(int(j), -1) for j in features]
        self._theta = np.append(self._theta.reshape(-1, 2), np.ones((1, 2)), axis=0)[at].ravel()
        self._tested = np.append(self._tested, False)[at]
        self._features = features
        self.lost = self.lost & np.isin(np.arange(len(self.lost)), features)
        self._reset_runs()

    def _probabilities(self, model: Any, X: Floats, y: Array, names: list[str] | None) -> tuple[Floats, Ints]:
        """Return the predictions and those with each feature replaced, of shape (n, f + 1, c), and the classes."""
        n, f, s = len(X), len(self._features), len(self._stored)
        ranks = (np.arange(_N_DONORS) + self._rng.random((n, f, _N_DONORS))) * (s / _N_DONORS)
        altered = np.repeat(X[:, None, :], f * _N_DONORS, axis=1).reshape(n, f, _N_DONORS, X.shape[1])
        for k, j in enumerate(self._features.tolist()):
            altered[:, k, :, j] = np.sort(self._stored[:, j])[ranks[:, k].astype(np.int64)]
        every = np.concatenate([X, altered.reshape(-1, X.shape[1])])
        proba, labels = outputs(model, every, names, numeric=False)
        # River's models return classes in arbitrary order.
        order = np.argsort(np.asarray(labels), kind="stable")
        codes = np.minimum(encode_labels(y, np.asarray(labels)[order])[0], len(order))
        proba = proba[:, order]
        replaced = proba[n:].reshape(n, f, _N_DONORS, -1).mean(axis=2)
        return np.concatenate([proba[:n, None], replaced], axis=1), np.asarray(codes, dtype=np.int64)

    def _add(self, p: Floats, codes: Ints) -> list[tuple[int, int]]:
        n_classes = p.shape[2]
        if len(self._calibration) not in (0, n_classes + 1):  # the model has other classes
            self._tested[:], self._phase = False, _COLLECTING
        if len(self._codes) and self._reference.shape[2] != n_classes:
            self._reset_reference()
        first = min(len(p), _REFERENCE - len(self._codes)) if self._phase == _COLLECTING else 0
        lost = self._test(p[:first], codes[:first])
        if first:
            self._reference = np.concatenate([self._reference.reshape(-1, *p.shape[1:]), p[:first]])
            self._codes = np.append(self._codes, codes[:first])
            if len(self._codes) == _REFERENCE:
                self._calibrate()
        return lost + self._test(p[first:], codes[first:])

    def _calibrate(self) -> None:
        """Set the calibration, theta and the features tested from the reference rows."""
        counts = np.bincount(self._codes) + 0.5
        self._shares = counts / counts.sum()
        self._calibration = fit_calibration(self._reference[:, 0], self._codes)
        raw = self._ratios(self._reference, self._codes)
        self._theta, inflation = find_exponents(np.minimum(raw[:, :-2], _CLIP))
        self._shortest = math.ceil(_SHORTEST * inflation)
        of_features = raw[:, :-2:2]
        error = of_features.std(axis=0) / math.sqrt(len(raw))
        self._tested = of_features.mean(axis=0) < -4.0 * error
        self._phase = _CALIBRATED
        self._reset_reference()

    def _ratios(self, p: Floats, codes: Ints) -> Floats:
        """Return the log-likelihood ratio of each hypothesis, shape (n, 2 f + 2)."""
        shares = np.append(self._shares, 1.0 / _REFERENCE)[np.minimum(codes, len(self._shares))][:, None]
        # The probability of a class unknown to the model is 0.
        known = np.pad(recalibrate(p, self._calibration), ((0, 0), (0, 0), (0, 1)))
        true = np.take_along_axis(known, codes[:, None, None], axis=2)[:, :, 0]
        true = (1.0 - _EPS) * true + _EPS * shares
        own, replaced = true[:, :1], true[:, 1:]
        values = np.empty((len(p), 2 * replaced.shape[1] + 2))
        values[:, :-2:2], values[:, 1:-2:2] = replaced, 0.5 * (replaced + shares)
        values[:, -2:] = np.column_stack([0.5 * (own + shares), shares])
        return np.asarray(np.log(values / own))

    def _test(self, p: Floats, codes: Ints) -> list[tuple[int, int]]:
        """Return the columns detected as lost in these rows, and the lengths of their runs."""
        lost: list[tuple[int, int]] = []
        if not self.is_testing or not len(p):
            return lost
        raw, limit, at = self._ratios(p, codes), math.log(self.n_rows * int(self._tested.sum())), 0
        while at < len(raw):
            held = np.flatnonzero(self.lost[self._features])
            if len(held):
                at = self._wait(raw, at, limit, int(held[0]))
                continue
            row, k = _advance(
                raw,
                at,
                self._theta,
                self._tested,
                limit,
                self._level,
                self._total,
                self._age,
                self._sums,
                self._shortest,
            )
            if row < 0:
                break
            j, of_j = int(self._features[k]), slice(2 * k, 2 * k + 2)
            lost.append((j, max(1, int(self._age[of_j][np.argmax(self._total[of_j])]))))
            self.lost[j] = True
            self._reset_runs()
            at = row + 1
        return lost

    def _wait(self, raw: Floats, at: int, limit: float, k: int) -> int:
        """Run the reverse test of the k-th feature from a row on; return the row at which the test resumes."""
        steps = self._theta[2 * k] * np.minimum(-raw[at:, 2 * k : 2 * k + 2].max(axis=1), _CLIP)
        for i, step in enumerate(steps.tolist(), at):
            self._back = float(np.logaddexp(0.0, self._back)) + step
            if self._back > limit:
                self.lost[self._features[k]] = False
                return i + 1
        return len(raw)
