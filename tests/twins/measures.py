"""The measures of an evaluation by their definitions: sets, loops over rows, all pairs of scores."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np


def baselines(actual, before=()):
    """Return, for each row, whether the majority class and the last label were right; ties to the longest leader."""
    counts, leader, last = Counter(), None, None
    majority, no_change = [], []
    for position, label in enumerate([*before, *actual]):
        if position >= len(before):
            majority.append(label == leader)
            no_change.append(label == last)
        counts[label] += 1
        if leader is None or counts[label] > counts[leader]:
            leader = label
        last = label
    return np.array(majority, dtype=float), np.array(no_change, dtype=float)


def chance_corrected(accuracy, baseline):
    return math.nan if baseline == 1 else (accuracy - baseline) / (1 - baseline)


def auc(positive, scores):
    """Share of the pairs of a positive and a negative row in which the positive one scores higher; a tie is a half."""
    pairs = [
        1.0 if p > q else 0.5 if p == q else 0.0
        for p, is_positive in zip(scores, positive, strict=True)
        if is_positive
        for q, is_other in zip(scores, positive, strict=True)
        if not is_other
    ]
    return sum(pairs) / len(pairs) if pairs else math.nan


def macro_auc(actual, scores):
    """Mean of the AUC of each class against the others; a score of NaN (a class not known yet) is the lowest."""
    scores = np.where(np.isnan(scores), -math.inf, scores)
    values = [auc([label == k for label in actual], scores[:, k]) for k in range(scores.shape[1])]
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def selection_accuracy(selected, relevant, n_features, gamma=0.7):
    """Equation (4.10) in sets; a part with an empty denominator is 1."""
    selected, relevant, everything = set(selected), set(relevant), set(range(n_features))
    rsr = len(selected & relevant) / len(relevant) if relevant else 1.0
    cucp = 1 - len(selected - relevant) / len(everything - relevant) if everything - relevant else 1.0
    precision = len(selected & relevant) / len(selected) if selected else 1.0
    return gamma * rsr + (1 - gamma) * cucp, rsr, cucp, precision
