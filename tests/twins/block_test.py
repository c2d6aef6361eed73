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


def rises_from(variances, blocks):
    """Return the first level that no later one exceeds by more than 1.5 standard errors, (4a)."""
    flat = 0
    for level in range(len(blocks)):
        for later in range(level + 1, len(blocks)):
            if min(blocks[level], blocks[later]) >= 8:
                error = math.sqrt(2 / blocks[later] - 2 / blocks[level])
                if variances[later] / variances[level] - 1 > 1.5 * error:
                    flat = level + 1
    return flat


def memory_length(residual):
    n, sizes = len(residual), []
    while n // 2 ** (len(sizes) + 1) >= 4:
        sizes.append(2 ** (len(sizes) + 1))
    ratios = [inflation(residual, size) for size in sizes]
    excess = [(ratio - 1) * math.sqrt((n // size - 1) / 2) for ratio, size in zip(ratios, sizes, strict=True)]
    if max(excess, default=0.0) <= 3:
        return 1.0
    return sizes[rises_from(ratios, [n // size for size in sizes])]


def joined(sums):
    return [sum(sums[i : i + 2]) for i in range(0, len(sums), 2)]


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
    size, length, memory = math.ceil(n / 32), correlation_length(residual), memory_length(residual)
    share = c / sum(v * v for v in residual)
    apart = [a - share * b for a, b in zip(z, residual, strict=True)]
    square = sum(v * v for v in apart)
    while True:
        blocks = [range(start, min(start + size, n)) for start in range(0, n, size)]
        concentration = sum((len(block) / n) ** 2 for block in blocks)
        if len(blocks) < 2 or 1 / concentration - 1 < 4:
            return 1.0
        sums = [sum(apart[i] for i in block) for block in blocks]
        own, curve = sum(s * s for s in sums) / (square * (1 - concentration)), []
        while len(sums) >= 8:
            curve.append((len(sums), sum(s * s for s in sums)))
            sums = joined(sums)
        flat = rises_from([square for _, square in curve], [count for count, _ in curve]) == 0
        if size >= max(2.5 * length, 2 * memory) or (size >= 8 * own and flat):
            meat = sum(sum(scores[i] for i in block) ** 2 for block in blocks) / (1 - concentration)
            short = max(5 * length / 3, memory / 2)
            if size >= 8 * own and flat:
                short = min(short, 5 * own / 3)
            meat *= 1 + short / size
            if by_lags:
                meat = max(meat, long_run(scores))
            t = abs(c) / math.sqrt(meat)
            return 2 * scipy.stats.t.sf(t, 1 / concentration - 1)
        size *= 2
