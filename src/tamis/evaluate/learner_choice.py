"""Choice of a learner if none is named: a few are compared on the first rows of a stream.

Each is evaluated prequentially (test-then-train) on these rows, with all features. The most accurate one is chosen. If
one of two classes is rare, it is the one with the largest average precision, since the majority-class baseline is
nearly always correct there. If features are categorical or have missing values, the naive Bayes that accepts them
replaces the Gaussian one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tamis._validation import check_number
from tamis.errors import DataError
from tamis.evaluate.candidates import FirstRows
from tamis.streams.any_source import as_stream

_ROWS = 2000


@dataclass(frozen=True)
class LearnerChoice:
    """The learner chosen on the first rows, and the scores of all compared learners.

    Attributes
    ----------
    name : str
        Key of the catalogue.
    scores : dict of str to float
        Accuracy or average precision of each learner.
    measure : {"accuracy", "average precision"}
    n_rows : int
        Number of rows read.
    majority, no_change : float
        Accuracy of the majority-class and of the no-change baseline; with average precision, the share of the rare
        class, and NaN.
    """

    name: str
    scores: dict[str, float]
    measure: str
    n_rows: int
    majority: float
    no_change: float

    def sentence(self) -> str:
        """Return the choice and its reason, as one sentence."""
        others = ", ".join(f"{name} {score:.3f}" for name, score in self.scores.items() if name != self.name)
        beside = f"majority {self.majority:.3f}, no-change {self.no_change:.3f}"
        if self.measure != "accuracy":
            beside = f"the rare class has {self.majority:.2%} of the rows"
        return (
            f"Learner: {self.name}, {self.measure} {self.scores[self.name]:.3f} on the first {self.n_rows:,} rows"
            f" ({others}; {beside})."
        )


def choose_learner(stream: Any, *, max_rows: int | None = None, random_state: int = 0) -> LearnerChoice:
    """Choose a learner for a stream: a linear one, naive Bayes, an adaptive forest or refitted boosting.

    Parameters
    ----------
    stream : Stream or (X, y)
        As for :func:`tamis.prequential`; its first rows are read.
    max_rows : int, optional
        Maximum number of rows to use, at least 200. By default 2000, or for a rare class as many as contain 200 rows of
        it, at most 50,000.
    random_state : int, default=0
        Seed of the learners.

    Returns
    -------
    LearnerChoice

    Raises
    ------
    DataError
        If there are fewer than 200 rows, or only one class.

    Examples
    --------
    The label is whether two features have the same sign, which a linear model cannot represent:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> choice = choose_learner((X, X[:, 0] * X[:, 1] > 0))
    >>> choice.scores["logistic"] < 0.6 < choice.scores["adaptive-random-forest"] <= choice.scores[choice.name]
    True
    """
    if max_rows is not None:
        check_number("max_rows", max_rows, low=200, integer=True)
    first = FirstRows(as_stream(stream), _ROWS, max_rows)
    if first.n_rows < 200 or len(first.labels) < 2:
        n = first.n_rows
        reason = f"has {n} rows" if n < 200 else f"has one class in its first {n:,} rows"
        raise DataError(f"The stream {reason}, too few to choose a learner: name one.")
    measure = "average_precision" if first.is_rare else "accuracy"
    options = {"baselines": "none", "auc": first.is_rare}
    runs = [first.run(name, measure=measure, seed=random_state, options=options) for name in first.learners]
    best = max(runs, key=lambda one: one.score)
    total = best.run.summary()
    share = float(first.counts.min() / first.n_rows) if first.is_rare else float(total["majority_accuracy"])
    no_change = float("nan") if first.is_rare else float(total["no_change_accuracy"])
    scores = {one.learner: one.score for one in runs}
    return LearnerChoice(best.learner, scores, measure.replace("_", " "), first.n_rows, share, no_change)
