"""Fixed share as its papers say it: weights of arms, block by block."""

import math


def fixed_share(blocks, rate, share, weights):
    """Return the weights before each block and after the last."""
    course = [list(weights)]
    for losses in blocks:
        kept = [w * math.exp(-rate * loss) for w, loss in zip(course[-1], losses, strict=True)]
        course.append([(1 - share) * v / sum(kept) + share / len(kept) for v in kept])
    return course


def best_sequence(blocks, n_switches):
    """Return the fewest errors of any sequence of arms with at most so many switches, by dynamic programming."""
    n_arms = len(blocks[0])
    best = [[0.0] * n_arms for _ in range(n_switches + 1)]
    for losses in blocks:
        new = []
        for m in range(n_switches + 1):
            come = min(best[m - 1]) if m else math.inf
            new.append([min(best[m][a], come) + losses[a] for a in range(n_arms)])
        best = new
    return min(min(row) for row in best)
