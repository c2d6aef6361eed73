"""PSI, Jensen-Shannon and Kolmogorov-Smirnov distance as their definitions say, of lists of values."""

import math


def bin_of(value, edges):
    return next((b for b, edge in enumerate(edges) if value <= edge), len(edges))


def shares(counts):
    return [count / sum(counts) for count in counts]


def psi(before, after):
    """Half a row is added to each bin."""
    r, c = shares([count + 0.5 for count in before]), shares([count + 0.5 for count in after])
    return sum((b - a) * math.log(b / a) for a, b in zip(r, c, strict=True))


def js(before, after):
    r, c = shares(before), shares(after)
    middle = [(a + b) / 2 for a, b in zip(r, c, strict=True)]

    def divergence(p):
        return sum(a * math.log2(a / m) for a, m in zip(p, middle, strict=True) if a > 0)

    return math.sqrt((divergence(r) + divergence(c)) / 2)


def ks(before, after):
    r, c = shares(before), shares(after)
    return max(abs(sum(r[: b + 1]) - sum(c[: b + 1])) for b in range(len(r)))
