"""Evidence of features beside others as its definition says it: every block, pair, class and side, row by row."""

import math

import numpy as np

from tests.twins import evidence


def beside(x, z, y, n_classes, tau2=0.25, size=32, before=None):
    """Return the log of equation (3) of bits x beside bits z, averaged over the classes."""
    logs = []
    for c in [1] if n_classes == 2 else range(n_classes):
        total = 0.0
        for k in (0, 1):
            s = v = 0.0
            for start in range(0, len(y) - len(y) % size, size):
                rows = [
                    i for i in range(start, start + size) if z[i] == k and (before is None or before[i] >= 0)
                ]
                labels = evidence.moved(y, before, rows, c)
                if len(rows) > 1 and len({x[i] for i in rows}) == 2 and len(set(labels)) > 1:
                    d, spread = evidence.block([[float(x[i])] for i in rows], labels)
                    s, v = s + float(d[0]), v + float(spread[0, 0])
            total += 0.5 * s * s / (v + 1 / tau2) - 0.5 * math.log1p(tau2 * v)
        logs.append(total)
    return math.log(np.mean(np.exp(logs)))


def log_e(alone, bits, y, n_classes, before=None):
    """Return the log of equation (4) of each feature; `alone`: log e of each feature alone."""
    found = []
    for x in range(len(bits)):
        others = [
            math.exp(beside(bits[x], bits[z], y, n_classes, before=before))
            for z in range(len(bits))
            if z != x
        ]
        found.append(math.log(math.exp(alone[x]) / 2 + np.mean(others) / 2))
    return found
