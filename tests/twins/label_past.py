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


def log_kt(labels, contexts, n_classes):
    seen, total = {}, 0.0
    for label, context in zip(labels, contexts, strict=True):
        counts = seen.setdefault(context, [0] * n_classes)
        total += math.log((counts[label] + 0.5) / (sum(counts) + 0.5 * n_classes))
        counts[label] += 1
    return total


def log_e_of_orders(x, y, first=128):
    """Return equation (2) of `tamis.summaries.label_past` for two classes and rows that are not thinned."""
    low, high = edges(x[:first])
    weights, evidence, of_labels = [0.5, 0.25, 0.25], [], []
    for m in (1, 2, 3):
        rows = [t for t in range(first, len(x)) if not math.isnan(x[t])]
        past = {t: tuple(y[t - m : t]) for t in range(first, len(x))}
        bet = log_kt([y[t] for t in rows], [(past[t], int(x[t] > low) + int(x[t] > high)) for t in rows], 2)
        null = {}
        for t in rows:
            null.setdefault(past[t], [0, 0])[y[t]] += 1
        largest = sum(n * math.log(n / sum(after)) for after in null.values() for n in after if n)
        evidence.append(bet - largest)
        penalty = 0.02 * m * (len(x) - first)
        of_labels.append(
            math.log(weights[m - 1]) - penalty + log_kt([y[t] for t in past], list(past.values()), 2)
        )
    order = max(range(3), key=lambda m: of_labels[m])
    return math.log(sum(weights[m] * math.exp(evidence[m]) for m in range(order, 3))), order + 1


def sign_of_series(rng, n, phi):
    z, found = rng.normal(), []
    for _ in range(n):
        z = phi * z + math.sqrt(1 - phi**2) * rng.normal()
        found.append(int(z > 0))
    return np.array(found)
