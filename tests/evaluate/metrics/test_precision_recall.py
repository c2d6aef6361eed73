"""Average precision and recall at a precision equal their definitions, in any window and batching."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.naive_bayes import GaussianNB

from tamis import FisherScore, prequential
from tamis.evaluate import SlidingPrecisionRecall


def by_definition(positive, scores, precision):
    """(1) and (2) of the module, threshold by threshold."""
    total = before = found = 0.0
    for t in sorted(set(scores), reverse=True):
        accepted = [p for p, s in zip(positive, scores, strict=True) if s >= t]
        share, recall = sum(accepted) / len(accepted), sum(accepted) / sum(positive)
        total += (recall - before) * share
        before = recall
        if share >= precision:
            found = max(found, recall)
    return total, found


@pytest.mark.parametrize("window", [1, 17, 100, 400])
@pytest.mark.parametrize("ties", [False, True])
def test_equals_its_definition_in_any_batching(window, ties):
    rng = np.random.default_rng(window)
    positive = rng.random(300) < 0.15
    scores = rng.normal(size=300) + positive
    scores = np.round(scores) if ties else scores
    for size in (1, 13, 300):
        sliding, seen = SlidingPrecisionRecall(window, 0.6), 0
        for start in range(0, 300, size):
            sliding.update(positive[start : start + size], scores[start : start + size])
            seen = min(start + size, 300)
            p, s = positive[max(0, seen - window) : seen], scores[max(0, seen - window) : seen]
            if p.any():
                assert sliding.windowed == pytest.approx(by_definition(p.tolist(), s.tolist(), 0.6))
            else:
                assert all(math.isnan(value) for value in sliding.windowed)
        last_p, last_s = positive[-window:], scores[-window:]
        if last_p.any():
            assert sliding.windowed[0] == pytest.approx(average_precision_score(last_p, last_s))
            precision, recall, _ = precision_recall_curve(last_p, last_s)
            assert sliding.windowed[1] == pytest.approx(recall[precision >= 0.6].max())


def test_the_mean_is_over_the_rows_where_it_was_known():
    sliding = SlidingPrecisionRecall(2)
    assert all(math.isnan(value) for value in sliding.mean)
    sliding.update([0], [0.5])
    assert all(math.isnan(value) for value in sliding.mean)
    sliding.update([1], [0.7])
    sliding.update([0, 1, 1], [0.9, 0.2, 0.1])
    assert sliding.mean == pytest.approx((1.0, 1.0))
    sliding.update([0], [0.9])
    assert sliding.mean == pytest.approx(((4 * 1 + 0.5) / 5, (4 * 1 + 0) / 5))


@pytest.mark.parametrize(
    ("arguments", "message"), [(([1, 0], [0.5]), "one value for each row"), (([1], [math.nan]), "NaN")]
)
def test_wrong_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SlidingPrecisionRecall().update(*arguments)
    with pytest.raises(ValueError, match="precision"):
        SlidingPrecisionRecall(precision=0.0)


@pytest.mark.parametrize("labels", [("fraud", "ok"), ("honest", "theft"), (0, 1)])
def test_a_run_measures_the_rarer_class_whatever_it_is_called(labels):
    rng = np.random.default_rng(1)
    rare = rng.random(2000) < 0.04
    X = rng.normal(size=(2000, 10))
    X[:, 3] += 2.5 * rare
    rarer = 0 if labels[0] == "fraud" else 1
    y = np.where(rare, labels[rarer], labels[1 - rarer])
    result = prequential((X, y), FisherScore(2), GaussianNB(), auc=True)
    total = result.summary()
    assert result.settings["positive"] == labels[rarer]
    assert 0.4 < total["average_precision"] < 0.95 < total["accuracy"]
    assert 0 <= total["recall_at_precision"] < 0.9
    assert total["auc"] > 0.9
    plain = prequential((X, y), FisherScore(2), GaussianNB(), auc=False)
    assert math.isnan(plain.summary()["average_precision"])
    assert plain.summary()["accuracy"] == total["accuracy"]
