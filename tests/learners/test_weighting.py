"""Window weights against their definitions."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tamis
from tamis.learners.weighting import WindowWeights


def stream(n=600, share=0.5):
    rng = np.random.default_rng(0)
    codes = (rng.random(n) < share).astype(np.int64)
    X = np.column_stack([rng.normal(size=n) + 2 * codes, rng.normal(size=n), rng.integers(0, 3, n)])
    return X, codes


def test_the_three_kinds_are_what_their_names_say():
    X, codes = stream(share=0.2)
    found = {}
    for kind in ("su", "entropy", "entropy_thesis"):
        weights = WindowWeights(3, 2, kind, categorical=[2])
        weights.update(X, codes)
        found[kind], counts = weights.weights(), weights.counts
    assert (found["su"] == counts.symmetrical_uncertainty()).all()
    assert (found["entropy"] == counts.information_gain()).all()
    assert found["entropy_thesis"] == pytest.approx(1.0 - counts.conditional_entropy())
    # Unbalanced classes: what tells nothing weighs nothing, but for the thesis.
    assert found["entropy"][2] < 0.02 < 0.2 < found["entropy_thesis"][2]
    assert all(weights.argmax() == 0 for weights in found.values())


def test_neutral_until_half_a_window_is_there_and_something_tells():
    X, codes = stream()
    weights = WindowWeights(3, 2, "su", window=100)
    weights.update(X[:49], codes[:49])
    assert weights.neutral
    assert weights.weights().tolist() == [1.0, 1.0, 1.0]
    weights.update(X[49:50], codes[49:50])
    assert not weights.neutral
    assert (weights.weights() < 1.0).all()
    weights.grow(3)
    weights.update(X[:100], np.full(100, 2))  # one class is left in the window
    assert weights.neutral
    assert weights.weights().tolist() == [1.0, 1.0, 1.0]


def test_none_weighs_all_the_same():
    X, codes = stream()
    weights = WindowWeights(3, 2, None)
    weights.update(X, codes)
    assert weights.neutral
    assert weights.weights().tolist() == [1.0, 1.0, 1.0]


def test_copies_and_saved_weights_go_on_alike(tmp_path):
    X, codes = stream()
    weights = WindowWeights(3, 2, "entropy", categorical=[2])
    weights.update(X[:300], codes[:300])
    others = copy.deepcopy(weights), tamis.load(tamis.save(weights, tmp_path / "weights.tamis"))
    for each in (weights, *others):
        each.update(X[300:], codes[300:])
    for other in others:
        assert other.weights().tobytes() == weights.weights().tobytes()


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="kind must be"):
        WindowWeights(3, 2, "gini")
