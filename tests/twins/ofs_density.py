"""OFS-Density with every neighbourhood found by sorting all rows, one row at a time."""

import numpy as np

from tests.twins.ofs_a3m import EQUAL, gamma_of, is_copy, orders


def ofs_density(X, y, tolerance=0.05, rule="density", seed=0):
    selected, gamma, bar, order = [], 0.0, 0.0, orders(seed)
    for f in range(X.shape[1]):
        if np.ptp(X[:, f]) == 0:
            continue
        if gamma_of(X, y, [f], rule) < bar - EQUAL or is_copy(X, f, selected):
            continue
        together = gamma_of(X, y, [*selected, f], rule)
        if together > gamma + EQUAL:
            selected, gamma = [*selected, f], together
        elif gamma > 0 and abs(together - gamma) <= tolerance * gamma:
            kept, now = [*selected, f], together
            for q in order(f, selected):
                without = gamma_of(X, y, [j for j in kept if j != q], rule)
                if now - without <= EQUAL:
                    kept, now = [j for j in kept if j != q], without
            if now < gamma - EQUAL:
                selected = [*selected, f]
                continue
            selected, gamma = kept, now
        else:
            continue
        bar = np.mean([gamma_of(X, y, [j], rule) for j in selected])
    return selected
