"""A decision threshold is the best on past rows by its definition, and never chosen from rows it is tested on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tamis import FisherScore, prequential
from tamis.evaluate.metrics.ranking import PastThreshold, best_threshold


def f1(positive, scores, threshold):
    """(1) of the module."""
    hits = sum(p and s >= threshold for p, s in zip(positive, scores, strict=True))
    return 2 * hits / (sum(s >= threshold for s in scores) + sum(positive))


@pytest.mark.parametrize("digits", [1, 8])
def test_it_is_the_largest_score_of_best_f1(digits):
    rng = np.random.default_rng(0)
    for _ in range(30):
        positive = rng.random(60) < 0.2
        positive[0] = True
        scores = np.round(rng.normal(size=60) + positive, digits)
        values = {t: f1(positive.tolist(), scores.tolist(), t) for t in scores.tolist()}
        best = max(values.values())
        assert best_threshold(positive, scores) == max(t for t, value in values.items() if value == best)


def test_rows_are_tested_by_the_threshold_of_the_rows_before_them():
    """The twin chooses from a plain list after each thousand rows, and tests row by row."""
    rng = np.random.default_rng(1)
    positive = rng.random(4000) < 0.03
    scores = rng.normal(size=4000) + 2 * positive + np.arange(4000) / 2000  # the scale of the scores drifts
    threshold, value = PastThreshold(window=1500, every=500), math.nan
    hits = decided = n_positive = 0
    for at in range(0, 4000, 100):
        part = slice(at, at + 100)
        threshold.update(positive[part], scores[part], scores[part] > 99)
        if not math.isnan(value):
            for p, s in zip(positive[part], scores[part], strict=True):
                hits, decided, n_positive = hits + (p and s >= value), decided + (s >= value), n_positive + p
        seen = at + 100
        if seen % 500 == 0 and positive[max(0, seen - 1500) : seen].sum() >= 10:
            value = best_threshold(positive[max(0, seen - 1500) : seen], scores[max(0, seen - 1500) : seen])
    assert threshold.value == value
    expected = hits / decided, hits / n_positive, 2 * hits / (decided + n_positive)
    assert threshold.scores() == pytest.approx(expected)
    precision, recall, f = threshold.own_scores()
    assert (math.isnan(precision), recall, f) == (True, 0.0, 0.0)


def test_labels_that_have_not_arrived_choose_nothing():
    positive, scores = np.arange(100) % 4 == 0, np.arange(100.0)
    threshold = PastThreshold(every=50)
    threshold.update(positive, scores, positive, (np.zeros(0, dtype=bool), np.zeros(0)))
    assert threshold.value == math.inf
    threshold.update(positive, scores, positive, (positive, scores))
    assert (threshold.value, threshold.n_tested) == (best_threshold(positive, scores), 0)


@pytest.mark.slow
def test_a_learner_that_never_decides_for_the_rare_class_gets_a_threshold_that_finds_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    y = np.where(rng.random(5000) < 1 / (1 + np.exp(5 - 1.6 * X[:, 2])), "fraud", "no")
    for delay in (0, 300):
        result = prequential((X, y), FisherScore(1), GaussianNB(), delay=delay)
        found = result.settings["threshold"]
        assert found["own_recall"] < 0.1 < found["recall"]
        assert 0.0 < found["value"] < 0.4  # of "fraud", which is the first class
        assert "Decision threshold of 'fraud': probability 0." in result.threshold_note()
        assert repr(result).startswith("PrequentialResult(average_precision=")
    balanced = prequential((X, X[:, 0] > 0), FisherScore(1), GaussianNB())
    assert balanced.threshold_note() == ""
    assert repr(balanced).startswith("PrequentialResult(n_rows=")


@pytest.mark.parametrize(
    ("positive", "scores", "decided", "message"),
    [
        ([True], [0.1, 0.2], [True], "one value for each row"),
        ([True], [math.nan], [True], "must not contain NaN"),
        ([True], [0.1], [True, False], "decided must contain one value"),
    ],
)
def test_input_that_does_not_fit_is_rejected(positive, scores, decided, message):
    with pytest.raises(ValueError, match=message):
        PastThreshold().update(positive, scores, decided)
