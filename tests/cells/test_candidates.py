"""The race: every row is held out once, losses are compared row by row, and ties go to the reference."""

import numpy as np
import pytest

from tamis import ETANA, FixedSubset
from tamis.cells.evaluation import Candidate, compare_classifiers, winner


@pytest.mark.slow
def test_losses_are_those_of_rows_held_out():
    rng = np.random.default_rng(0)
    y = np.array(["b", "a", "c"])[rng.integers(0, 3, 240)]
    X = rng.normal(size=(240, 4)) + (y == "a")[:, None]
    Q = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 1.0], [1.0, 3.0, 0.0]])
    models = {
        "fixed-subset": FixedSubset(0.01, misclassification_cost=Q),
        "etana": ETANA(0.01, misclassification_cost=Q, random_state=0),
    }
    shares = []
    found = compare_classifiers(
        models, lambda rows: X[rows], y, lambda share, name: shares.append((share, name))
    )
    fold = np.empty(240, dtype=int)
    for label in "abc":
        mine = np.flatnonzero(y == label)
        fold[mine] = np.arange(len(mine)) % 3
    for name, result in zip(models, found, strict=True):
        loss = np.empty(240)
        for f in range(3):
            model = models[name].fit(X[fold != f], y[fold != f])
            label = model.predict(X[fold == f])
            loss[fold == f] = [
                Q["abc".index(t), "abc".index(p)] for t, p in zip(y[fold == f], label, strict=True)
            ]
            loss[fold == f] += model.cost_
        np.testing.assert_allclose(result.loss, loss.mean())
    assert found[0].ahead == 0.0
    np.testing.assert_allclose(found[1].ahead, found[0].loss - found[1].loss)
    assert found[1].error > 0.0
    assert [name for _, name in shares] == ["fixed-subset"] * 3 + ["etana"] * 3
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)


def test_a_candidate_wins_only_beyond_one_standard_error():
    def one(name, ahead, error):
        return Candidate(name, 0.5 - ahead, 0.1, 1.0, 0.9, ahead, error)

    reference = one("fixed-subset", 0.0, 0.0)
    assert winner([reference, one("a", 0.01, 0.02), one("b", -0.1, 0.01)]).name == "fixed-subset"
    assert winner([reference, one("a", 0.03, 0.02), one("b", 0.05, 0.02)]).name == "b"
    assert winner([reference, one("a", 0.05, 0.06), one("b", 0.04, 0.01)]).name == "b"


def test_classes_of_one_row_are_never_held_out():
    y = np.r_[np.zeros(20), np.ones(20), 2].astype(int)
    X = np.random.default_rng(0).normal(size=(41, 2)) + y[:, None]
    found = compare_classifiers(
        {"fixed-subset": FixedSubset(), "again": FixedSubset()}, lambda rows: X[rows], y
    )
    assert found[0].loss == found[1].loss
    assert winner(found).name == "fixed-subset"
