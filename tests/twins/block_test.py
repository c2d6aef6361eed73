"""The test of a coefficient on blocks of rows as its definition says it: one candidate, one block at a time."""

import math

import scipy.stats


def inflation(values, size):
    """Return by what the mean square of sums of `size` values exceeds that of independent ones."""
    sums = [sum(values[start : start + size]) for start in range(0, len(values) - size + 1, size)]
    return sum(s * s for s in sums) / len(sums) / (size * sum(v * v for v in values) / len(values))


def correlation_length(residual):
    size, largest = 2, 1.0
    while len(residual) // size >= 4:
        largest = max(largest, inflation(residual, size))
        size *= 2
    return largest


def long_run(scores):
    """Return equation (4) of `tamis.columns.block_test`."""
    n, square = len(scores), sum(s * s for s in scores)
    r1, r2 = (sum(scores[i] * scores[i - k] for i in range(k, n)) / (n - k) / (square / n) for k in (1, 2))
    r1 = min(max(r1, 0.0), 0.95)
    ratio = min(max(r2 / r1, 0.0), 0.95) if r1 > 0 else 0.0
    return square * max(1 + 2 * r1 / (1 - ratio), (1 + r1) / (1 - r1))


def pvalue(z, residual, by_lags=False):
    """Return equation (2) of `tamis.columns.block_test` for a candidate, given its part outside the model."""
    n, zz = len(z), sum(v * v for v in z)
    c = sum(a * b for a, b in zip(z, residual, strict=True))
    scores = [a * (b - c / zz * a) for a, b in zip(z, residual, strict=True)]
    size, length = math.ceil(n / 32), correlation_length(residual)
    while True:
        blocks = [range(start, min(start + size, n)) for start in range(0, n, size)]
        concentration = sum((len(block) / n) ** 2 for block in blocks)
        if len(blocks) < 2 or 1 / concentration - 1 < 4:
            return 1.0
        own = sum(sum(z[i] for i in block) ** 2 for block in blocks) / (zz * (1 - concentration))
        if size >= 2.5 * length or size >= 8 * own:
            meat = sum(sum(scores[i] for i in block) ** 2 for block in blocks) / (1 - concentration)
            meat *= 1 + 5 * length / (3 * size)
            if by_lags:
                meat = max(meat, long_run(scores))
            t = abs(c) / math.sqrt(meat)
            return 2 * scipy.stats.t.sf(t, 1 / concentration - 1)
        size *= 2
