"""SAOLA, one pair of features at a time."""

import numpy as np

from tests.twins.osfs import independent


def correlation(a, b):
    return abs(float(np.corrcoef(a, b)[0, 1]))


def saola(X, y, alpha=0.01):
    selected = []
    for i in range(X.shape[1]):
        f = X[:, i]
        if np.ptp(f) == 0 or independent(f, y, [], alpha):
            continue
        own, enters = correlation(f, y), True
        for q in list(selected):
            if independent(f, X[:, q], [], alpha):
                continue
            other, shared = correlation(X[:, q], y), correlation(f, X[:, q])
            if other >= own and shared > own:
                enters = False
                break
            if own > other and shared > other:
                selected.remove(q)
        if enters:
            selected.append(i)
    return selected
