"""FCBF, slow and obvious: dictionaries of counts, every pair of features, the list of the paper.

Yu, Liu, ICML 2003. It is given the values (or bins) of the rows in the window.
"""

from __future__ import annotations

import math
from collections import Counter

from scipy.stats import chi2


def entropy(values):
    n = len(values)
    return -sum(k / n * math.log2(k / n) for k in Counter(values).values())


def uncertainty(one, other, corrected):
    spread = entropy(one) + entropy(other)
    if spread == 0:
        return 0.0
    gain = spread - entropy(list(zip(one, other, strict=True)))
    if corrected:
        gain -= (len(set(one)) - 1) * (len(set(other)) - 1) / (2 * len(one) * math.log(2))
    return max(2 * gain / spread, 0.0)


def chance(column, y, corrected, n_features):
    free = (len(set(column)) - 1) * (len(set(y)) - 1)
    if free == 0:
        return math.inf
    gain = chi2.isf(0.05 / n_features, free) - (free if corrected else 0)
    return 2 * gain / (2 * len(y) * math.log(2)) / (entropy(column) + entropy(y))


def fcbf(rows, y, *, threshold="chance", corrected=True, most=math.inf):
    """Return the features kept, in order, and the SU of each with the class."""
    columns, y = [list(column) for column in zip(*rows, strict=True)], list(y)
    su = [uncertainty(column, y, corrected) for column in columns]
    order = sorted(range(len(su)), key=lambda j: (-su[j], j))
    bars = [chance(c, y, corrected, len(columns)) if threshold == "chance" else threshold for c in columns]
    s_list = [j for j in order if su[j] > bars[j]]
    p = 0
    while p < len(s_list):  # the next predominant feature removes those after it
        s_list = s_list[: p + 1] + [
            q for q in s_list[p + 1 :] if uncertainty(columns[s_list[p]], columns[q], corrected) < su[q]
        ]
        p += 1
    return s_list[: int(min(most, len(s_list)))] or order[:1], su
