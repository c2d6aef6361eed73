r"""A sequential test that finds the feature which a model uses although the label no longer depends on it.

Let p be the probability that the model gives the true class of a row, and q_j the mean of the same probability when
the value of feature j is replaced by those of earlier rows. If the label no longer depends on j, q_j predicts it better
than p. Of each row, with a share eps = .02 of the class frequencies pi in all three,

    l_j = log q_j / p,    l_j' = log ((q_j + pi) / 2) / p,    and for a loss that no single feature explains
    l_0 = log pi / p,     l_0' = log ((p + pi) / 2) / p.

If p is calibrated, exp(l) has the mean 1 whatever came before, so R <- (1 + R) exp(theta min(l, 1.5)) less the number
of rows is a supermartingale (Shiryaev-Roberts; as e-detector: Shin, Ramdas, Rinaldo, E-detectors: a nonparametric
framework for sequential change detection, 2024): R reaches A after at least A rows in the mean. No model is exactly
calibrated, and errors are dependent. So theta in [.05, 1] is the largest value for which the mean of exp(theta l) over
the first 1,000 labelled rows of the model is at most 1, divided by the ratio of the variance of sums of 20 rows to that
of 20 independent ones.

A feature is tested if l_j is significantly negative on these first rows (below -4 standard errors). It is lost if R
exceeds `n_rows` times twice the number of features tested, the run has lasted for 40 rows, and the sum of l_j or l_j'
over the run is the largest and exceeds those of l_0 and l_0' by 3. Then the test waits: until the reverse test (of
-l_j) finds that the feature is relevant again, or the model is another one.

The constants 1.5, 20, 40 and 3 were chosen on seeds 0 to 3 of the streams of experiments/watch.py and of two streams of
AR(1) columns. The figures in docs/watch.md are of seeds 100 to 103; a first look at them, with 60 in place of 40,
prompted the choice of 40.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, encode_labels
from tamis.importance.predictions import outputs

__all__ = ["LostRelevance"]

Floats = NDArray[np.float64]

_FIRST = 200  # labelled rows before the features are chosen: their reliance is known by then
_REFERENCE = 1000
_MOST_FEATURES = 5
_N_DONORS = 4
_STORED = 100
_EPS = 0.02
_CLIP, _BLOCK, _SHORTEST, _MARGIN = 1.5, 20, 40, 3.0


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
) -> tuple[int, int]:
    """Run all tests from a row on; return the row of an alarm and the hypothesis, or -1 and -1.

    raw     (n, h)  log-likelihood ratios; the last two hypotheses name no feature
    level   (h)     log R
    total   (h)     sum over the run of the test, which restarts where it is not positive
    age     (h)     rows of the run
    sums    (h, h)  raw sums of all hypotheses over the run of each
    """
    h = raw.shape[1]
    for i in range(start, raw.shape[0]):
        for k in range(h):
            step = theta[k] * min(raw[i, k], _CLIP)
            grown = (
                level[k] + math.log1p(math.exp(-level[k]))
                if level[k] > 0.0
                else math.log1p(math.exp(level[k]))
            )
            level[k] = max(grown + step, -700.0)
            total[k] += step
            age[k] += 1
            for b in range(h):
                sums[k, b] += raw[i, b]
            if total[k] <= 0.0:
                total[k], age[k] = 0.0, 0
                sums[k, :] = 0.0
        first = -1
        for k in range(h - 2):
            if tested[k] and (first < 0 or level[k] > level[first]):
                first = k
        if first < 0 or level[first] <= limit or age[first] < _SHORTEST:
            continue
        best = -1
        for k in range(h - 2):
            if tested[k] and (best < 0 or sums[first, k] > sums[first, best]):
                best = k
        rest = max(sums[first, h - 2], sums[first, h - 1])
        if level[best] > limit and sums[first, best] >= rest + _MARGIN:
            return i, best
    return -1, -1


class LostRelevance(ThreadSafe):
    """Tests which feature of a classifier has lost its relevance, with a bound on false alarms.

    Parameters
    ----------
    n_columns : int
    n_rows : float
        Mean number of labelled rows between two false alarms of a calibrated model, at least.
    random_state : int or None

    Attributes
    ----------
    lost : ndarray of shape (n_columns,), bool
    """

    _shapes = (
        "lost (j) bool  _n_labelled in [0, inf)  _stored (s, j) float  _features (f) int64 in [0, j)"
        "  _reference (r, f+1) float in [0, inf)  _codes (r) int64 in [-1, inf)  _n_reference in [0, r]"
        "  _shares (c) float in [0, inf)  _theta (2*f+2) float in (0, 1]  _tested (2*f+2) bool"
        "  _level (2*f+2) float in [-inf, inf]  _total (2*f+2) float in [-inf, inf]"
        "  _age (2*f+2) int64 in [0, inf)  _sums (2*f+2, 2*f+2) float in [-inf, inf]"
        "  _back float in [-inf, inf]"
    )

    def __init__(self, n_columns: int, n_rows: float, random_state: int | None) -> None:
        self.n_rows = float(n_rows)
        self._rng = np.random.default_rng(random_state)
        self._stored: Floats = np.empty((0, n_columns))
        self.restart()

    def restart(self) -> None:
        """Forget the model."""
        n_columns = self._stored.shape[1]
        self.lost = np.zeros(n_columns, dtype=bool)
        self._n_labelled = 0
        self._start(np.empty(0, dtype=np.int64))

    def _start(self, features: NDArray[np.int64]) -> None:
        h = 2 * len(features) + 2
        self._features = features
        self._reference: Floats = np.zeros((_REFERENCE, len(features) + 1))
        self._codes = np.full(_REFERENCE, -1, dtype=np.int64)
        self._n_reference = 0
        self._shares: Floats = np.empty(0)
        self._theta = np.ones(h)
        self._tested = np.zeros(h, dtype=bool)
        self._reset_runs()
        self._back = -math.inf  # log R of the reverse test

    def _reset_runs(self) -> None:
        h = len(self._theta)
        self._level, self._total = np.full(h, -700.0), np.zeros(h)
        self._age, self._sums = np.zeros(h, dtype=np.int64), np.zeros((h, h))

    @property
    def is_testing(self) -> bool:
        """Whether the reference is complete and a feature is tested."""
        return bool(self._tested.any())

    def update(self, model: Any, X: Floats, y: Array, names: list[str] | None, reliance: Floats) -> list[int]:
        """Add labelled rows, and the reliance on each column; return how long the runs of the columns lost now are.

        The result has one number per column: 0 where it is not lost by these rows.
        """
        ages = [0] * X.shape[1]
        self._n_labelled += len(X)
        reliance = np.nan_to_num(reliance, nan=0.0)
        if not len(self._features) and self._n_labelled >= _FIRST and reliance.max() > 0.0:
            used = np.flatnonzero(reliance >= 0.05 * reliance.max())
            best = used[np.argsort(-reliance[used], kind="stable")]
            self._start(np.sort(best[:_MOST_FEATURES]).astype(np.int64))
        if len(self._features) and len(self._stored) and len(X):
            p, codes = self._probabilities(model, X, y, names)
            for j, age in self._add(p, codes):
                ages[j] = age
        self._stored = np.concatenate([self._stored, X])[-_STORED:]
        return ages

    def _probabilities(
        self, model: Any, X: Floats, y: Array, names: list[str] | None
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return the probability of the true class, as predicted and with each feature replaced, shape (n, f + 1)."""
        n, f = len(X), len(self._features)
        donors = self._rng.integers(0, len(self._stored), size=(n, f, _N_DONORS))
        altered = np.repeat(X[:, None, :], f * _N_DONORS, axis=1).reshape(n, f, _N_DONORS, X.shape[1])
        for k, j in enumerate(self._features.tolist()):
            altered[:, k, :, j] = self._stored[donors[:, k], j]
        every = np.concatenate([X, altered.reshape(-1, X.shape[1])])
        proba, labels = outputs(model, every, names, numeric=False)
        codes = np.asarray(encode_labels(y, np.asarray(labels))[0], dtype=np.int64)
        known = np.append(proba, np.zeros((len(proba), 1)), axis=1)  # a class that the model does not know
        at = np.minimum(codes, proba.shape[1])
        true = np.take_along_axis(known[n:].reshape(n, f * _N_DONORS, -1), at[:, None, None], axis=2)
        own = np.take_along_axis(known[:n], at[:, None], axis=1)
        return np.column_stack([own, true.reshape(n, f, _N_DONORS).mean(axis=2)]), at

    def _add(self, p: Floats, codes: NDArray[np.int64]) -> list[tuple[int, int]]:
        first = min(len(p), _REFERENCE - self._n_reference)
        if first:
            at = slice(self._n_reference, self._n_reference + first)
            self._reference[at], self._codes[at] = p[:first], codes[:first]
            self._n_reference += first
            if self._n_reference == _REFERENCE:
                self._calibrate()
        if first == len(p) or not self.is_testing:
            return []
        return self._test(self._ratios(p[first:], codes[first:]))

    def _calibrate(self) -> None:
        """Set theta and the features tested from the reference rows."""
        counts = np.bincount(self._codes) + 0.5
        self._shares = counts / counts.sum()
        raw = self._ratios(self._reference, self._codes)
        clipped = np.minimum(raw, _CLIP)
        grid = np.arange(1, 21) / 20
        means = np.exp(grid[:, None, None] * clipped).mean(axis=1)  # (grid, h)
        largest = np.where(means <= 1.0, grid[:, None], 0.05).max(axis=0)
        blocks = clipped.reshape(-1, _BLOCK, raw.shape[1]).sum(axis=1)
        inflation = blocks.var(axis=0, ddof=1) / np.maximum(_BLOCK * clipped.var(axis=0), 1e-12)
        self._theta = largest / np.maximum(inflation, 1.0)
        error = raw.std(axis=0) / math.sqrt(len(raw))
        useful = (
            raw[:, : 2 * len(self._features) : 2].mean(axis=0) < -4.0 * error[: 2 * len(self._features) : 2]
        )
        self._tested[: 2 * len(useful)] = np.repeat(useful, 2)

    def _ratios(self, p: Floats, codes: NDArray[np.int64]) -> Floats:
        """Return the log-likelihood ratio of each hypothesis, shape (n, 2 f + 2)."""
        shares = np.append(self._shares, 1.0 / _REFERENCE)[np.minimum(codes, len(self._shares))][:, None]
        p = (1.0 - _EPS) * p + _EPS * shares
        own, replaced = p[:, :1], p[:, 1:]
        values = np.empty((len(p), 2 * replaced.shape[1] + 2))
        values[:, :-2:2], values[:, 1:-2:2] = replaced, 0.5 * (replaced + shares)
        values[:, -2:] = np.column_stack([0.5 * (own + shares), shares])
        return np.asarray(np.log(values / own))

    def _test(self, raw: Floats) -> list[tuple[int, int]]:
        limit = math.log(self.n_rows * max(1, int(self._tested.sum())))
        lost, at = [], 0
        while at < len(raw):
            held = np.flatnonzero(self.lost[self._features])
            if len(held):
                at = self._wait(raw[:, 2 * held[0]], at, limit, int(self._features[held[0]]))
                continue
            row, k = _advance(
                raw, at, self._theta, self._tested, limit, self._level, self._total, self._age, self._sums
            )
            if row < 0:
                break
            j = int(self._features[k // 2])
            self.lost[j], self._back = True, -math.inf
            lost.append((j, int(self._age[k])))
            self._reset_runs()
            at = row + 1
        return lost

    def _wait(self, ratios: Floats, at: int, limit: float, feature: int) -> int:
        """Run the reverse test from a row on; return the row at which the test for losses resumes."""
        for i in range(at, len(ratios)):
            self._back = float(np.logaddexp(0.0, self._back)) + min(-float(ratios[i]), _CLIP)
            if self._back > limit:
                self.lost[feature] = False
                return i + 1
        return len(ratios)
