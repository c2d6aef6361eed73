"""OSFS with every subset tested by two regressions: the correlation of what is left of the two columns."""

import itertools
import math
from statistics import NormalDist

import numpy as np


def partial_correlation(a, b, given):
    design = np.column_stack([np.ones(len(a)), *given])
    a, b = (v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (a, b))
    return 0.0 if min(a @ a, b @ b) < 1e-12 else float(a @ b / math.sqrt((a @ a) * (b @ b)))


def independent(a, b, given, alpha):
    r = abs(partial_correlation(a, b, given))
    w = math.sqrt(len(a) - len(given) - 3) * math.atanh(min(r, 1 - 1e-15))
    return w < NormalDist().inv_cdf(1 - alpha / 2)


def separated(X, y, i, others, alpha, most):
    return any(
        independent(X[:, i], y, [X[:, j] for j in given], alpha)
        for size in range(1, most + 1)
        for given in itertools.combinations(others, size)
    )


def osfs(X, y, alpha=0.01, most=3):
    selected = []
    for i in range(X.shape[1]):
        if np.ptp(X[:, i]) == 0 or independent(X[:, i], y, [], alpha):
            continue
        selected = [*selected, i]
        for q in selected:
            rest = [j for j in selected if j != q]
            if separated(X, y, q, rest, alpha, most):
                selected = rest
    return selected
