"""OFS-Density equals its twin, with the neighbourhoods of the program and of the article."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis import OFSDensity
from tests.columns.test_ofs_a3m import grouped
from tests.twins.ofs_density import ofs_density


@pytest.mark.slow
@settings(max_examples=25)
@example(4565, True, "article", 0.05)  # distances that are equal but for rounding
@given(
    st.integers(0, 10_000), st.booleans(), st.sampled_from(["code", "article"]), st.sampled_from([0.05, 0.5])
)
def test_equals_its_twin(seed, discrete, neighbours, tolerance):
    X, y = grouped(seed, discrete)
    selector = OFSDensity(tolerance, neighbours=neighbours, random_state=3).fit(X, y)
    rule = {"code": "density", "article": "density-article"}[neighbours]
    assert selector.selected_ == [f"x{j}" for j in ofs_density(X, y, tolerance, rule, seed=3)]


def test_what_left_comes_back_if_that_was_a_loss():
    """As in the released program: the new feature stays, and so does the dependency of before."""
    X, y = grouped(5, False)
    selector = OFSDensity(random_state=3).start(y)
    before, accepted = [], []
    for j in range(12):
        before.append((selector.dependency_, len(selector.selected_)))
        accepted.append(selector.offer(X[:, j]))
    after = [*before[1:], (selector.dependency_, len(selector.selected_))]
    kept = [j for j in range(12) if accepted[j] and after[j] == (before[j][0], before[j][1] + 1)]
    assert len(kept) >= 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"tolerance": 1.0}, r"tolerance must be a number in \[0, 1\), got 1.0"), ({"tolerance": "a"}, "got 'a'"),
        ({"neighbours": "gap"}, "neighbours must be one of 'code', 'article', got 'gap'"),
    ],
)  # fmt: skip
def test_refusals(parameters, words):
    with pytest.raises(ValueError, match=words):
        OFSDensity(**parameters).start(np.array([0, 1, 0]))
