"""Entropies of a window by counting it again, one pair of values at a time, with logarithms of shares.

Barddal's thesis, section 6.1; categories and bins are whatever can be told apart.
"""

from __future__ import annotations

import math
from collections import Counter


def entropy(values):
    n = len(values)
    return -sum(k / n * math.log2(k / n) for k in Counter(values).values()) if n else 0.0


def conditional_entropy(y, x):
    n = len(x)
    return sum(
        k / n * entropy([b for a, b in zip(x, y, strict=True) if a == v]) for v, k in Counter(x).items()
    )


def bias(x, y):
    return (len(set(x)) - 1) * (len(set(y)) - 1) / (2 * len(x) * math.log(2)) if len(x) else 0.0


def gain(x, y, corrected=False):
    return max(entropy(y) - conditional_entropy(y, x) - (bias(x, y) if corrected else 0.0), 0.0)


def uncertainty(x, y, corrected=False):
    both = entropy(x) + entropy(y)
    return 2 * gain(x, y, corrected) / both if both > 0 else 0.0


def known(x, y, missing):
    """Return the pairs that count: those without the bin of missing values, if there is one to skip."""
    return tuple(zip(*[(a, b) for a, b in zip(x, y, strict=True) if a != missing], strict=True)) or ((), ())


def increased(h, n, k):
    """Return the entropy after one of now k rows of a value was added, now n in all (the thesis' INC, mended)."""
    if n == 1:
        return 0.0
    share = (n - 1) / n
    return share * (h - math.log2(share)) - xlog(k / n) + xlog((k - 1) / n)


def decreased(h, n, k):
    """Return the entropy after one row of a value was removed, now k of n (the thesis' DEC, mended)."""
    if n == 0:
        return 0.0
    more = (n + 1) / n
    return more * (h + xlog((k + 1) / (n + 1)) - xlog(k / (n + 1))) + math.log2(n / (n + 1))


def xlog(p):
    return p * math.log2(p) if p > 0 else 0.0
