"""Tests whether methods differ over several data sets: two methods (`pairs`), or more (`friedman`)."""

from tamis.evaluate.significance.friedman import (
    Friedman,
    Holm,
    Nemenyi,
    critical_difference,
    friedman,
    holm,
    holm_adjust,
    mean_ranks,
    nemenyi,
)
from tamis.evaluate.significance.pairs import BayesianSignedRank, Wilcoxon, bayesian_signed_rank, wilcoxon

__all__ = [
    "BayesianSignedRank", "Friedman", "Holm", "Nemenyi", "Wilcoxon", "bayesian_signed_rank", "critical_difference",
    "friedman", "holm", "holm_adjust", "mean_ranks", "nemenyi", "wilcoxon",
]  # fmt: skip
