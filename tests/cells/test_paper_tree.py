"""A policy on paper: it decides as the model where answers are few, and its figures are those of its own paths."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.base import PriceList
from tamis.cells.paper_tree import PaperTree

METHODS = [IFC2F, AdaptiveIFC2F, ETANA, FETANA, FixedSubset, AACO]


def words(seed=0, n=900):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, "ill", "well")
    noise = rng.random((n, 3))
    frame = pd.DataFrame({
        "scan": np.where(noise[:, 0] < 0.8, np.where(y == "ill", "dark", "light"), "unclear"),
        "cough": np.where(noise[:, 1] < 0.7, np.where(y == "ill", "yes", "no"), "no"),
        "town": np.where(noise[:, 2] < 0.5, "north", "south"),
    })  # fmt: skip
    return frame, y


def numbers(seed=0, n=900):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + np.outer(y, [1.2, -0.8, 0.5, 0.0])
    X[rng.random((n, 4)) < 0.1] = np.nan
    return X, y


def follow(tree, row):
    """Twin: a person with the tree and one record."""
    node, paid = tree.root, 0.0
    while node.branches:
        value = row[tree.model.name_of(node.position)]
        if value is None or value != value:
            break
        paid += node.price
        for k, branch in enumerate(node.branches):
            answer = tree._answer(node, k)
            fits = value in answer.split(", ") if isinstance(value, str) else value <= branch.high
            if fits:
                node = branch.below
                break
        else:
            break
    return node.decision, paid


@pytest.mark.parametrize("method", METHODS)
def test_with_few_answers_the_tree_is_the_model(method):
    X, y = words()
    prices = PriceList({"scan": 0.03, "cough": 0.01, "town": 0.01}, fees=[(["cough", "town"], 0.01)])
    model = method(prices, random_state=0).fit(X[:600], y[:600])
    tree = PaperTree(model, X, y, min_share=1e-9)
    assert (tree.decided == tree.predicted).all()
    assert tree.cost == pytest.approx(tree.model_cost)


@pytest.mark.parametrize("method", METHODS)
def test_a_person_finds_the_decisions_and_prices_of_the_tree(method):
    X, y = numbers()
    model = method(0.02, random_state=0).fit(X[:600], y[:600])
    tree = PaperTree(model, X, y, depth=3)
    for i in range(0, 900, 7):
        decision, paid = follow(tree, X[i])
        assert (decision, paid) == (tree.decided[i], pytest.approx(tree.cost[i]))
    assert np.mean(tree.decided == tree.predicted) > 0.75
    assert abs(np.mean(tree.decided != y) - np.mean(tree.predicted != y)) < 0.06
    plain = tree.to_dict()
    assert plain["cost"] == pytest.approx(tree.cost.mean())
    assert plain["error"] == pytest.approx(np.mean(tree.decided != y), abs=5e-4)


def test_every_record_of_a_question_has_a_branch_and_limits_separate_them():
    X, y = numbers(1)
    tree = PaperTree(AdaptiveIFC2F(0.005, random_state=0).fit(X, y), X, y)
    assert len(tree.questions()) > 2
    for node in tree.questions():
        known = node.rows[~np.isnan(X[node.rows, tree.model.candidates_[node.position]])]
        parts = [branch.below.rows for branch in node.branches]
        assert sorted(np.concatenate(parts).tolist()) == sorted(known.tolist())
        highs = [branch.high for branch in node.branches]
        assert highs == sorted(highs)
        assert highs[-1] == math.inf


def test_depth_bounds_the_questions_of_a_case():
    X, y = numbers(2)
    model = AdaptiveIFC2F(0.001, random_state=0).fit(X, y)

    def deepest(node):
        return 1 + max(deepest(one.below) for one in node.branches) if node.branches else 0

    for depth in (1, 2, 3):
        tree = PaperTree(model, X, y, depth=depth)
        assert deepest(tree.root) <= depth
        assert (tree.cost <= 0.001 * depth + 1e-12).all()


def test_a_number_has_a_tree_too_and_a_model_without_questions_has_a_decision(tmp_path):
    X, _ = numbers(3)
    y = np.nan_to_num(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=len(X))
    model = AdaptiveIFC2F(0.02, objective="squared-error", random_state=0).fit(X, y)
    tree = PaperTree(model, X, y)
    assert "a squared error, as a share of the variance, of" in tree.verdict()
    tree.write(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8").count("<text") >= len(tree.questions())
    none = PaperTree(IFC2F(10.0, random_state=0).fit(X, y > 0), X, y > 0)
    assert none.questions() == []
    none.write(tmp_path / "none.html")
    assert "<svg" in (tmp_path / "none.html").read_text(encoding="utf-8")


def test_names_are_shown_and_never_run():
    X, y = words()
    X = X.rename(columns={"scan": "<script>alert(1)</script>"})
    page = PaperTree(IFC2F(0.01, random_state=0).fit(X, y), X, y).report()
    assert "<script" not in page


def test_invalid_arguments_are_named():
    X, y = numbers()
    model = IFC2F(0.02, random_state=0).fit(X, y)
    for name, value in (("depth", 0), ("depth", 1.5), ("min_share", 0.0), ("min_share", 2.0)):
        with pytest.raises(ValueError, match=name):
            PaperTree(model, X, y, **{name: value})
