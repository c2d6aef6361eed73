"""Follow the leader, with a net below: one of several arms, almost as good as the best sequence of them.

The leader is the arm of fewest errors lately. Following it is a good rule, without a promise. So it runs as one more
arm in a fixed share (Herbster, Warmuth: Tracking the best expert, Machine Learning 32(2), 1998; shared with all arms,
as in Bousquet, Warmuth 2002), which begins with the leader and leaves it only for an arm that has been better by some
hundred errors. The coupling of Geulen, Voecking, Winkler (COLT 2010) leaves an arm as seldom as the weights allow.

===========  ===========  ========================================================================
paper        here         meaning
===========  ===========  ========================================================================
w_a          ``weights``  probability that arm a is followed in the next block; they add up to 1
l_a          ``losses``   errors of arm a in a block
eta          ``rate``     learning rate, per error
alpha        ``share``    what all arms give, to be shared by all, before the next block
===========  ===========  ========================================================================

After each block::

    v_a = w_a exp(-eta l_a) / sum_b w_b exp(-eta l_b)                                            (1)
    w_a' = (1 - alpha) v_a + alpha / A                                                           (2)
    stay with arm a with probability min(1, w_a' / w_a), else draw from max(w' - w, 0)           (3)

By (3), arm a is followed with probability w_a in every block, so the expected errors are sum_a w_a l_a. For any
sequence of arms in T blocks these are at most those of the sequence, plus::

    (m ln(A / alpha) + T ln(1 / (1 - alpha))) / eta  +  sum_t gap_t                              (4)
    gap_t = w . l + ln(sum_a w_a exp(-eta l_a)) / eta  <=  eta range(l)^2 / 8                    (5)

where m counts how often the sequence changes arms, and once more if it does not begin with the arm of weight 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array

__all__ = ["follow", "lead", "paired_margin", "regret_bound", "reweigh"]


def reweigh(weights: Array, losses: Array, rate: float, share: float) -> tuple[NDArray[np.float64], float]:
    """Return the weights for the next block (2), and the gap of this one (5).

    >>> weights, gap = reweigh(np.array([0.5, 0.5]), np.array([0.0, 10.0]), rate=0.5, share=0.1)
    >>> weights.round(3), round(gap, 3)
    (array([0.944, 0.056]), 3.627)
    """
    best = losses.min()
    kept = weights * np.exp(-rate * (losses - best))  # (1)
    total = float(kept.sum())
    gap = float(weights @ losses) - float(best) + math.log(total) / rate
    found: NDArray[np.float64] = (1.0 - share) * kept / total + share / len(weights)
    return found, gap


def follow(arm: int, before: Array, after: Array, chance: float) -> int:
    """Return the arm to follow next (3).

    Parameters
    ----------
    arm : int
        The one followed so far, with probability `before`.
    before, after : ndarray of shape (n_arms,)
        The weights before and after the block.
    chance : float
        Drawn evenly from [0, 1).

    Examples
    --------
    An arm that has gained is never left:

    >>> follow(0, np.array([0.5, 0.5]), np.array([0.6, 0.4]), chance=0.99)
    0
    >>> [follow(1, np.array([0.5, 0.5]), np.array([0.6, 0.4]), chance) for chance in (0.79, 0.81)]
    [1, 0]
    """
    stays = min(1.0, float(after[arm] / before[arm]))
    if chance < stays:
        return arm
    gained = np.maximum(after - before, 0.0)
    reached = np.cumsum(gained) / gained.sum()
    return int(
        np.searchsorted(reached, (chance - stays) / (1.0 - stays), side="right").clip(0, len(after) - 1)
    )


def lead(leader: int, errors: Array, margins: Array | float) -> int:
    """Return the leader: another arm where it errs less than the present one by its margin, the one most beyond it.

    >>> lead(0, np.array([0.20, 0.199]), 0.006), lead(0, np.array([0.20, 0.19]), 0.006)
    (0, 1)
    >>> lead(0, np.array([0.20, 0.17, 0.18]), np.array([0.0, 0.04, 0.01]))
    2
    """
    beyond = errors[leader] - margins - errors
    best = int(beyond.argmax())
    return best if beyond[best] > 0.0 else leader


def paired_margin(apart: Array, n_rows: float) -> NDArray[np.float64]:
    """Return two standard errors of the difference in error of two arms that are tested on the same rows.

    On the rows where both err or neither does, the arms do not differ. If that leaves a share d of n rows, the
    difference of their error rates has a variance of at most d / n (a paired test: McNemar 1947), so the margin is::

        2 sqrt(d / n)                                                                            (6)

    Two arms that err on other rows in one of ten:

    >>> paired_margin(np.array([0.1]), 1000).round(3)
    array([0.02])
    """
    margin: NDArray[np.float64] = 2.0 * np.sqrt(apart / n_rows)
    return margin


def regret_bound(
    n_arms: int, n_blocks: int, gaps: float, rate: float, share: float, n_switches: int
) -> float:
    """Return (4): by how many errors the expected ones exceed those of any sequence of arms with so many switches.

    >>> round(regret_bound(20, 1000, gaps=20.0, rate=0.05, share=0.002, n_switches=1), 1)
    244.2
    """
    return (n_switches * math.log(n_arms / share) - n_blocks * math.log1p(-share)) / rate + gaps
