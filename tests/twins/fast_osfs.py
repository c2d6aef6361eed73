"""Fast-OSFS with every subset tested by two regressions, the superfluous last test of the new feature included."""

import numpy as np

from tests.twins.osfs import independent, separated


def fast_osfs(X, y, alpha=0.01, most=3):
    selected = []
    for i in range(X.shape[1]):
        if np.ptp(X[:, i]) == 0 or independent(X[:, i], y, [], alpha):
            continue
        if separated(X, y, i, selected, alpha, most):
            continue
        selected = [*selected, i]
        for q in selected:
            rest = [j for j in selected if j != q]
            if separated(X, y, q, rest, alpha, most):
                selected = rest
    return selected
