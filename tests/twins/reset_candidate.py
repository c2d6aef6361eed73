"""The rule by which a reset learner replaces the old one, with the mixture integrated numerically."""

import numpy as np
from scipy.integrate import quad


def evidence(n_ahead, n_behind):
    """Mean likelihood ratio of p in (1/2, 1) against p = 1/2."""
    return quad(lambda p: 2.0 * (2.0 * p) ** n_ahead * (2.0 * (1.0 - p)) ** n_behind, 0.5, 1.0)[0]


def decide(batches, level, most, n_failed=0):
    """Return after which batch the candidate replaces the other learner or is dropped, and which of the two.

    A batch is the pair of the losses of the candidate and of the other learner.
    """
    level /= (1 + n_failed) ** 2
    n_rows = ahead = behind = 0
    for at, (ours, others) in enumerate(batches):
        for one, other in zip(ours, others, strict=True):
            n_rows, ahead, behind = n_rows + 1, ahead + (one < other), behind + (one > other)
        if evidence(ahead, behind) >= 1.0 / level:
            return at, "replaces"
        if n_rows >= most or evidence(behind, ahead) >= 1.0 / level:
            return at, "dropped"
    return None


def rates(rng, n, error):
    """Return losses of a learner that errs with a probability."""
    return (rng.random(n) < error).astype(np.float64)
