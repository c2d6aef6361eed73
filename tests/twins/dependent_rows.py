"""Statistics of dependent rows as their definitions say them: blocks as lists of rows, one feature at a time."""

import math

import numpy as np


def label_inflation(y, n_classes, level):
    """Return equation (2) of `tamis.summaries.label_series` at one level: of all classes, and of each."""
    size = 2**level
    blocks = [y[start : start + size] for start in range(0, len(y) - size + 1, size)]
    dispersion, of_class = 0.0, []
    for c in range(n_classes):
        counts = [sum(1 for label in block if label == c) for block in blocks]
        mean = sum(counts) / len(blocks)
        if 0 < mean < size:
            d = sum((n - mean) ** 2 for n in counts) / ((len(blocks) - 1) * mean)
            dispersion += d
            of_class.append(d / (1 - mean / size))
    return dispersion / (len(of_class) - 1), of_class


def blocks_of(n, most=32):
    """Return the blocks of rows: as many as `most`, then half as many of twice the length."""
    length, blocks = 1, []
    for i in range(n):
        if not blocks or len(blocks[-1]) == length:
            if len(blocks) == most:
                blocks = [blocks[k] + blocks[k + 1] for k in range(0, most, 2)]
                length *= 2
            blocks.append([])
        blocks[-1].append(i)
    return blocks


def covariance(x, y, w, n_classes, blocks):
    """Return equation (2) of `tamis.summaries.block_sums` and its degrees of freedom; NaN in x is skipped."""
    residual, share, count = {}, {}, {}
    for c in range(n_classes):
        there = [i for i in range(len(x)) if y[i] == c and not math.isnan(x[i])]
        count[c] = sum(w[i] for i in there)
        mean = sum(w[i] * x[i] for i in there) / count[c]
        residual[c] = [sum(w[i] * (x[i] - mean) for i in block if i in set(there)) for block in blocks]
        squares = [sum(w[i] for i in block if y[i] == c) for block in blocks]
        share[c] = [one / sum(squares) for one in squares]
    spare = {c: 1 - sum(f**2 for f in share[c]) for c in share}
    found = np.zeros((n_classes, n_classes))
    for c in range(n_classes):
        for d in range(n_classes):
            products = sum(a * b for a, b in zip(residual[c], residual[d], strict=True))
            found[c, d] = products / (count[c] * count[d] * math.sqrt(spare[c] * spare[d]))
    return found, min(1 / (1 - spare[c]) - 1 for c in spare)


def table_inflation(cells, y, n_bins, n_classes, blocks):
    """Return tr V / d of equation (8) of `tamis.dependence.autocorrelation`, of rows without weights."""
    n = len(y)
    p = [sum(cell == b for cell in cells) / n for b in range(n_bins)]
    q = [sum(label == c for label in y) / n for c in range(n_classes)]
    trace = 0.0
    for b in range(n_bins):
        for c in range(n_classes):
            score = [
                sum(((cells[i] == b) - p[b]) * ((y[i] == c) - q[c]) for i in block)
                / math.sqrt(n * p[b] * q[c])
                for block in blocks
            ]
            total, spare = sum(score), 1 - sum((len(block) / n) ** 2 for block in blocks)
            trace += (
                sum((s - len(block) / n * total) ** 2 for s, block in zip(score, blocks, strict=True)) / spare
            )
    return trace / ((n_bins - 1) * (n_classes - 1))


def lagged_means(x, y, w, n_classes, lag):
    """Return the mean of x over the rows whose label `lag` rows before is of each class."""
    found = []
    for c in range(n_classes):
        there = [i for i in range(lag, len(x)) if y[i - lag] == c and not math.isnan(x[i])]
        found.append(sum(w[i] * x[i] for i in there) / sum(w[i] for i in there))
    return found
