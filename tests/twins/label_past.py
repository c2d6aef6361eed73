"""Evidence given the label before, as its definition says it: one feature, one row after the other."""

import math

import numpy as np


def edges(values):
    present = sorted(v for v in values if not math.isnan(v))
    return [present[len(present) // 3], present[2 * len(present) // 3]]


def log_e(x, y, n_classes, k, first=128):
    """Return equation (1) of `tamis.summaries.label_past`, with the bet written out label by label."""
    low, high = edges(x[:first])
    seen, null, bet = {}, {}, 0.0
    for t in range(first, len(x)):
        if t % k or t - k < 0 or math.isnan(x[t]):
            continue
        cell = (y[t - k], int(x[t] > low) + int(x[t] > high))
        counts = seen.setdefault(cell, [0] * n_classes)
        bet += math.log((counts[y[t]] + 0.5) / (sum(counts) + 0.5 * n_classes))
        counts[y[t]] += 1
        null.setdefault(y[t - k], [0] * n_classes)[y[t]] += 1
    largest = sum(n * math.log(n / sum(after)) for after in null.values() for n in after if n)
    return bet - largest


def sign_of_series(rng, n, phi):
    z, found = rng.normal(), []
    for _ in range(n):
        z = phi * z + math.sqrt(1 - phi**2) * rng.normal()
        found.append(int(z > 0))
    return np.array(found)
