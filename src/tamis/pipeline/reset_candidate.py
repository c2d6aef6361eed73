"""A reset learner beside the one that predicts; it replaces that one if it is significantly better.

After the selector raises an alarm, a new learner is trained on the replayed rows, and both are updated from then on.
Both predict each row before they learn from it, and :func:`tamis.summaries.paired_losses.log_evidence` decides after
every batch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.pipeline.masked_learner import MaskedLearner
from tamis.summaries.paired_losses import log_evidence

# Level of the first candidate. False alarms make later ones less credible: after f failed candidates (not adopted,
# or replaced again by the old learner) the level is LEVEL / (1 + f)^2, which sums to at most 1.65 LEVEL.
LEVEL = 0.2
MAX_ROWS = 1000  # length of a comparison, unless the learners are swapped


class ResetCandidate:
    """A learner that runs beside the one that predicts, with the numbers of rows on which each was better.

    Parameters
    ----------
    learner : MaskedLearner
        Trained on the replayed rows.
    n_failed : int, default=0
        Number of earlier candidates that failed.
    is_old : bool, default=False
        Whether it is the learner that was replaced.

    Attributes
    ----------
    n_rows : int
        Number of rows that both predicted.
    n_ahead, n_behind : int
        Number of rows on which only the candidate was correct (or closer to the target), and only the other one.
    """

    def __init__(self, learner: MaskedLearner, n_failed: int = 0, is_old: bool = False) -> None:
        self.learner, self.n_failed, self.is_old = learner, n_failed, is_old
        self.n_rows = self.n_ahead = self.n_behind = 0

    def compare(self, ours: NDArray[Any], others: NDArray[Any]) -> None:
        """Count the rows on which the candidate's loss is smaller or larger than that of the other learner."""
        self.n_rows += len(ours)
        self.n_ahead += int(np.count_nonzero(ours < others))
        self.n_behind += int(np.count_nonzero(ours > others))

    @property
    def level(self) -> float:
        """Probability of adopting a candidate that is not better."""
        return LEVEL / (1.0 + self.n_failed) ** 2

    @property
    def is_ahead(self) -> bool:
        """Whether it is significantly better."""
        return log_evidence(self.n_ahead, self.n_behind) >= -math.log(self.level)

    @property
    def is_over(self) -> bool:
        """Whether it is significantly worse, or the comparison has lasted long enough."""
        return self.n_rows >= MAX_ROWS or log_evidence(self.n_behind, self.n_ahead) >= -math.log(self.level)

    def state(self) -> dict[str, Any]:
        """Return the state to save."""
        counts = {
            name: getattr(self, name) for name in ("n_rows", "n_ahead", "n_behind", "n_failed", "is_old")
        }
        return counts | {"learner": self.learner.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.learner.restore(state.pop("learner"))
        self.__dict__.update(state)
