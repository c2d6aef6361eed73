"""Evidence as its definition says it: every block, one feature at a time, one class against the rest."""

import math

import numpy as np


def block(phi, z):
    """Return equations (1) and (2) of one block, by going through every pair of rows."""
    m = len(phi)
    phi = np.asarray(phi, dtype=float)
    mean = phi.mean(axis=0)
    d = sum((row - mean) * of_c for row, of_c in zip(phi, z, strict=True))
    r = sum(np.outer(row - mean, row - mean) for row in phi)
    y = sum(one**2 for one in z) - sum(z) ** 2 / m
    return d, np.outer(d, d) / 3 + 2 * r * y / (3 * (m - 1))


def moved(y, before, rows, c):
    """Return which rows are of a class, minus which earlier ones are."""
    return [float(y[i] == c) - (0.0 if before is None else float(before[i] == c)) for i in rows]


def log_e(phi_of_block, y, n_classes, size=32, tau2=0.02, before=None):
    """Return the log of equation (3), averaged over the classes; phi_of_block(rows) gives rows and what they show."""
    logs = []
    for c in range(n_classes):
        s = v = 0.0
        for start in range(0, len(y) - len(y) % size, size):
            rows = np.arange(start, start + size)
            rows, phi = phi_of_block(rows if before is None else rows[before[rows] >= 0])
            if len(rows) > 1 and np.ptp(phi, axis=0).any():
                d, spread = block(phi, moved(y, before, rows, c))
                s, v = s + d, v + spread
        if np.ndim(s) == 0:
            logs.append(0.0)
            continue
        k = len(s)
        bent = v + np.eye(k) / tau2
        logs.append(0.5 * s @ np.linalg.solve(bent, s) - 0.5 * math.log(np.linalg.det(np.eye(k) + tau2 * v)))
    return math.log(np.mean(np.exp(logs)))


def of_values(x):
    def phi(rows):
        rows = rows[~np.isnan(x[rows])]
        spread = np.std(x[rows], ddof=1) if len(rows) > 1 else 0.0
        return rows, (x[rows] / (spread or 1.0))[:, None]

    return phi


def of_bins(cells, n_bins):
    def phi(rows):
        rows = rows[cells[rows] >= 0]
        return rows, math.sqrt(n_bins) * np.eye(n_bins)[cells[rows]]

    return phi
