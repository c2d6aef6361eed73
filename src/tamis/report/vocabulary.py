"""The terms of reports, as their pages and docs/vocabulary.md explain them."""

from __future__ import annotations

VOCABULARY = {
    "autocorrelated": "Rows are similar to those before them, so they are worth fewer independent rows.",
    "balanced accuracy": "The mean, over the classes, of the share of their rows that is predicted correctly.",
    "candidate": "A selector with a number of features and a learner of its own, one of several that are compared.",
    "delayed": "A label or a value that becomes known some rows after its row; until then nothing learns it.",
    "drift": "A change over time: of what the label depends on (concept drift), or of the inputs alone (input drift).",
    "every feature": "A baseline: a copy of the learner that uses all features.",
    "frozen": "A baseline: a selection of the same size made once, on the first rows, for a copy of the learner.",
    "kappa": "Agreement of predictions and labels beyond chance: 1 is perfect, 0 is chance.",
    "learner": "The model that predicts the label from the selected features.",
    "majority": "A baseline without features: it predicts the most frequent label so far.",
    "no-change": "A baseline without features: it predicts the previous label.",
    "random subsets": "A baseline: copies of the learner with features drawn at random, as many as are selected.",
    "selector": "The method that selects features while rows arrive.",
    "stability": "Similarity of the last selections (Nogueira's measure): 1 if equal, 0 in expectation if random.",
    "test-then-train": "Each batch is predicted before selector and learner learn it (prequential evaluation).",
    "95 % interval": "It contains the true value in 95 of 100 repetitions; dependent rows are accounted for.",
}
