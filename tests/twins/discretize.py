"""PaD and window quantiles, slow and obvious: one feature, one row at a time.

Barddal's thesis, section 6.2, mended as `tamis.summaries.discretize` says; the cell of a value is computed by the same
two operations, so that a value on the border of two cells falls on the same side.
"""

from __future__ import annotations

import math
from collections import Counter, deque


class PadTwin:
    def __init__(self, window, n_bins, *, cells_per_bin=20, tolerance=0.01, min_gap=20):
        self.n_bins, self.n_cells = n_bins, cells_per_bin * n_bins
        self.tolerance, self.min_gap = tolerance, min_gap
        self.values = deque(maxlen=window)
        self.t, self.built, self.due = 0, 0, False
        self.origin, self.scale = 0.0, 0.0
        self.cuts, self.low, self.high = [], 0.0, 0.0
        self.builds = []

    def cell(self, x):
        cell = (0.5 * x - self.origin) * self.scale
        return math.floor(cell) if math.isfinite(cell) else cell

    def bin(self, x):
        return self.n_bins if math.isnan(x) else sum(cut < self.cell(x) for cut in self.cuts)

    def bins(self):
        return [self.bin(x) for x in self.values]

    def update(self, x):
        full = len(self.values) == self.values.maxlen
        old = self.bin(self.values[0]) if full else None
        new = self.bin(x)
        self.values.append(x)
        self.t += 1
        count = Counter(self.bins())
        if old != new:
            lost = old not in (None, self.n_bins) and count[old] < self.low
            self.due = self.due or lost or (new != self.n_bins and count[new] > self.high)
        n = len(self.values)
        fresh = not full and (n == self.values.maxlen or n in {2**k for k in range(60)})
        if fresh or (self.due and self.t - 1 - self.built > self.min_gap):
            self.build(fresh)
            self.built, self.due = self.t - 1, False
            self.builds.append(self.t)

    def build(self, fresh):
        known = [x for x in self.values if not math.isnan(x)]
        self.cuts, self.low, self.high = [], -1.0, 0.0
        if not known:
            return
        low, high = 0.5 * min(known), 0.5 * max(known)
        if high == low:
            self.origin, self.scale = low, 1e300
            self.cuts = [-1, 0] if self.n_bins > 2 else [0]
            return
        cells = [self.cell(x) for x in known]
        spread = max(cells) - min(cells)
        far = any(abs(c) >= 2**30 for c in cells)
        if fresh or far or not self.n_cells / 10 <= spread <= 10 * self.n_cells:
            self.origin, self.scale = low, self.n_cells / (high - low)
        self.group(Counter(self.cell(x) for x in known))

    def group(self, cells):
        left, to_close, count, counts = sum(cells.values()), self.n_bins, 0, []
        for cell in sorted(cells):
            count += cells[cell]
            if count < left and to_close > 1 and count >= left / to_close:
                self.cuts.append(cell)
                counts.append(count)
                left, to_close, count = left - count, to_close - 1, 0
        counts.append(count)
        self.low, self.high = (1 - self.tolerance) * min(counts), (1 + self.tolerance) * max(counts)


class QuantileTwin:
    """Exact quantiles of the window, again every quarter of it, and whenever the rows have doubled before."""

    def __init__(self, window, n_bins):
        self.n_bins, self.quarter = n_bins, max(window // 4, 1)
        self.values, self.t, self.cuts = deque(maxlen=window), 0, []

    def bins(self):
        return [self.n_bins if math.isnan(x) else sum(cut < x for cut in self.cuts) for x in self.values]

    def update(self, x):
        doubled = self.t < self.quarter and self.t in {2**k for k in range(60)}
        if self.t > 0 and (self.t % self.quarter == 0 or doubled):
            known = sorted(v for v in self.values if not math.isnan(v))
            n = len(known)
            self.cuts = (
                [known[math.ceil(h * n / self.n_bins) - 1] for h in range(1, self.n_bins)] if n else []
            )
        self.values.append(x)
        self.t += 1
