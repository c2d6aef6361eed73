"""What the scores of single columns are called, and what they say."""

from __future__ import annotations

__all__ = ["MEANINGS", "TITLES"]

TITLES = {
    "t": "T-score",
    "fisher": "Fisher score",
    "mi": "Mutual information",
    "chi2": "Chi-square",
    "gini": "Gini index",
}
MEANINGS = {
    "t": "how far two class means lie apart, in standard errors",
    "fisher": "the spread of the class means against the spread within the classes",
    "mi": "how much the bins of a column tell of the class, in nats",
    "chi2": "how unlike the classes are spread over the bins of a column",
    "gini": "how much the best cut takes off the Gini impurity",
}
