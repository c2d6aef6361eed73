"""A classifier of the last rows beside the same one of all rows: when does it know better?"""

import numpy as np
import pytest

from tamis import ForwardPartialCorrelation
from tamis.rows.forward.recency import Recency, _update


def evidence(mine, others, codes):
    """The largest sum over all beginnings, as (2) means it."""
    steps = [
        np.log(1.4) * ((a == c) and (b != c)) + np.log(0.6) * ((a != c) and (b == c))
        for a, b, c in zip(mine, others, codes, strict=True)
    ]
    return max(0.0, *(sum(steps[start:]) for start in range(len(steps))))


def test_evidence_is_the_best_over_all_beginnings():
    rng = np.random.default_rng(0)
    mine, others, codes = rng.integers(0, 3, (3, 200))
    found, stakes = np.zeros(2), np.full(3, 0.4)
    for end in range(1, 201):
        _update(others[end - 1 : end], mine[end - 1 : end], codes[end - 1 : end], 1e9, stakes, found)
        assert found[0] == pytest.approx(evidence(mine[:end], others[:end], codes[:end]))


def test_stops_at_the_first_row_that_suffices():
    codes, found = np.ones(100, np.int64), np.zeros(2)
    heard = _update(0 * codes, codes, codes, np.log(100), np.full(2, 0.4), found)
    assert heard == found[1] == int(np.ceil(np.log(100) / np.log(1.4)))


def test_a_rare_class_is_worth_as_much_as_a_common_one():
    recency = Recency(1e-4, 1, 2)
    targets = np.eye(2)[(np.arange(100) % 10 == 0).astype(int)]
    recency.learn(np.zeros((100, 1)), targets, np.ones(100), 1.0)
    share = recency.memory[1].target_mean
    np.testing.assert_allclose(recency.stakes * share, 0.4 * share[1])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_relation_out_of_nothing_is_found(task):
    """No errors rise, for there was nothing to know; what the memory holds would hide the new relation for long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 12))
    margin = np.where(np.arange(6000) < 4000, rng.normal(size=6000), X[:, 7] + X[:, 9])
    y = margin if task == "regression" else (margin > 0).astype(int)
    model = ForwardPartialCorrelation(2, task=task)
    for start in range(0, 4500, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    assert len(model.drifts_) == 1
    assert 4000 < model.drifts_[0] < 4300
    assert set(model.get_support(indices=True)) == {7, 9}


def test_rare_and_many_classes_and_long_tails_are_no_drift():
    drifts = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(2, size=(4000, 10))
        y = (X[:, 0] + rng.normal(size=4000) > (2.5 if seed % 2 else 0.0)).astype(int)
        y += 2 * (X[:, 1] > 0) if seed % 3 == 0 else 0
        drifts += len(ForwardPartialCorrelation(2).fit(X, y).drifts_)
    assert drifts <= 1


def test_parts_that_are_merged_know_what_the_whole_knows_whatever_the_codes_of_their_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 4)), np.array(list("abc"))[rng.integers(0, 3, 600)]
    X[:, 1] += y == "c"
    whole = ForwardPartialCorrelation(2).fit(X, y)
    first, last = ForwardPartialCorrelation(2), ForwardPartialCorrelation(2)
    first.partial_fit(X[:300], y[:300])
    late = y[300:].copy()
    late[late == "a"] = "d"  # classes in another order, and one that the first part has not met
    last.partial_fit(X[300:], late)
    merged = first.merge(last)
    memory = merged._recency.memory[0]
    of_class = dict(zip(merged.classes_.tolist(), memory.target_mean.tolist(), strict=True))
    assert of_class["d"] == pytest.approx((late == "d").sum() / 600)
    assert of_class["a"] == pytest.approx((y[:300] == "a").sum() / 600)
    assert of_class["c"] == pytest.approx((y == "c").mean())
    told = memory.covariance[merged.classes_.tolist().index("c"), 1]
    assert told == pytest.approx(whole._recency.memory[0].covariance[2, 1], abs=0.02)
    assert merged._errors.tally.shape[1] == len(merged.classes_)
    merged.partial_fit(X, y)
