"""The test of a coefficient on blocks of rows as its definition says it: one candidate, one block at a time."""

import cmath
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


def pvalue_of_blocks(z, residual, with_it=None):
    """Return the p-value of (3) of `tamis.columns.block_test`; `with_it` is the residual beside a selected feature."""
    n, size = len(z), math.ceil(len(z) / 32)
    c = sum(a * b for a, b in zip(z, residual, strict=True))
    slope = c / sum(a * a for a in z)
    scores = [a * (b - slope * a) for a, b in zip(z, residual, strict=True)]
    of_memory = residual if with_it is None else with_it
    length, memory = correlation_length(of_memory), memory_length(of_memory)
    share = c / sum(v * v for v in residual) if with_it is None else 0.0
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
            sums = [sum(scores[i] for i in block) for block in blocks]
            short = max(5 * length / 3, memory / 2)
            if size >= 8 * own and flat:
                short = min(short, 5 * own / 3)
            variance = sum(one * one for one in sums) / (1 - concentration) * (1 + short / size)
            return 2 * scipy.stats.t.sf(abs(c) / math.sqrt(variance), 1 / concentration - 1)
        size *= 2


def coefficients(values):
    """Return the Fourier coefficients at 0, 1, ... cycles, up to half the number of values."""
    n = len(values)
    return [
        sum(v * cmath.exp(-2j * math.pi * f * i / n) for i, v in enumerate(values)) for f in range(n // 2 + 1)
    ]


def statistic(z, r):
    """Return t and the degrees of freedom of (2) of `tamis.columns.block_test`."""
    n, c = len(z), sum(a * b for a, b in zip(z, r, strict=True))
    apart = [a - c / sum(v * v for v in r) * b for a, b in zip(z, r, strict=True)]
    products = [
        abs(a) ** 2 * abs(b) ** 2
        for f, (a, b) in enumerate(zip(coefficients(apart), coefficients(r), strict=True))
        if 0 < f < n / 2
    ]
    size = math.ceil(n / 32)
    blocks = [range(start, min(start + size, n)) for start in range(0, n, size)]
    concentration = sum((len(block) / n) ** 2 for block in blocks)
    gaps = [sum(z[i] * r[i] for i in block) - len(block) / n * c for block in blocks]
    within = sum(gap * gap for gap in gaps) / (1 - concentration)
    freedom = min(sum(products) ** 2 / sum(q * q for q in products), 1 / concentration - 1)
    return abs(c) / math.sqrt(max(within, 2 / n**2 * sum(products))), freedom


def whitened(values, by):
    """Return values whose Fourier coefficients are divided by the smoothed spectrum of others."""
    n, power = len(values), [abs(one) ** 2 for one in coefficients(by)]
    last = (n + 1) // 2 - 1
    scaled = []
    for f, one in enumerate(coefficients(values)):
        around = range(max(int(min(0.7 * f, f - 4)), 1), min(int(max(1.4 * f, f + 4)), last) + 1)
        scaled.append(one / math.sqrt(sum(power[g] for g in around) / len(around)) if 3 <= f <= last else 0.0)
    return [
        2 / n * sum((one * cmath.exp(2j * math.pi * f * i / n)).real for f, one in enumerate(scaled))
        for i in range(n)
    ]


def pvalue(z, residual):
    """Return the p-value of `tamis.columns.block_test` for a candidate beside an intercept."""
    tests = [statistic(z, residual), statistic(whitened(z, residual), whitened(residual, residual))]
    p = [2 * scipy.stats.t.sf(t, freedom) for t, freedom in tests if freedom >= 4]
    return min(1.0, len(p) * min(p, default=1.0))
