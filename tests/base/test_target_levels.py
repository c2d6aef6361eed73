"""Levels of a numeric target against their definition, in any batching, and the methods that learn from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tamis import DISCUSS, FisherScore, JointScreening, MutualInformation, Screening, TScore, load, save
from tamis.base.numeric_target import TargetLevels
from tests.twins import target_levels as twin

METHODS = [TScore, FisherScore, MutualInformation, JointScreening, DISCUSS]


def coded(target, bounds):
    levels, found = TargetLevels(), []
    for start, stop in zip(bounds, [*bounds[1:], len(target)], strict=True):
        codes, levels = levels.with_rows(target[start:stop])
        found += codes.tolist()
    return found


@given(
    st.lists(st.integers(1, 2399), max_size=6),
    st.sampled_from(["normal", "zeros", "top", "binary", "trend", "one"]),
)
@settings(max_examples=12, deadline=None)
def test_levels_are_those_of_the_definition(cuts, kind):
    rng = np.random.default_rng(len(cuts))
    target = rng.normal(size=2400)
    target = {
        "normal": target, "zeros": np.maximum(target - 1.0, 0.0), "top": np.minimum(target + 1.5, 0.0),
        "binary": (target > 0.3).astype(float), "trend": target + np.arange(2400) / 1000, "one": np.ones(2400),
    }[kind]  # fmt: skip
    found = coded(target, [0, *sorted(set(cuts))])
    assert found == twin.levels(target.tolist())
    if kind == "trend":  # the cuts follow the target: no level is empty among the last rows
        assert np.bincount(found[-500:], minlength=5).min() > 0
    if kind != "one":  # the largest values have a level of their own, though they are the most frequent ones
        assert len(set(found[100:])) > 1


def numbers(n=1200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    return X, 0.7 * X[:, 2] + 0.7 * X[:, 5] + rng.normal(size=n)


@pytest.mark.parametrize("method", METHODS)
def test_methods_for_classes_learn_the_levels(method):
    """As if the levels were given as classes; T alone knows that they have an order."""
    X, y = numbers()
    model = method(2, task="regression") if method is not JointScreening else method(task="regression")
    by_class = method(2) if method is not JointScreening else method()
    for start in range(0, len(y), 100):
        rows = slice(start, start + 100)
        model.partial_fit(X[rows], y[rows])
    codes = twin.levels(y.tolist())
    by_class.partial_fit(X, codes, classes=range(5))
    if method is TScore:
        expected = [twin.trend(x.tolist(), codes) for x in X.T]
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-9)
    else:
        np.testing.assert_allclose(model.scores_, by_class.scores_, rtol=1e-9)
    assert model.get_support(indices=True).tolist() == [2, 5]


def test_trend_has_the_power_and_the_level_of_a_correlation_test():
    rng, ours, theirs = np.random.default_rng(1), [], []
    for _ in range(40):
        X = rng.normal(size=(300, 20))
        y = 0.15 * X[:, :10].sum(axis=1) + rng.standard_t(4, size=300)
        ours.append(TScore(2, task="regression").fit(X, y).pvalues_)
        theirs.append([stats.pearsonr(x, y).pvalue for x in X.T])
    found, expected = (np.mean(np.array(p) < 0.05, axis=0) for p in (ours, theirs))
    assert found[:10].mean() > 0.9 * expected[:10].mean()
    assert 0.02 < found[10:].mean() < 0.07


def test_dependent_rows_are_not_significant():
    """Columns and target are separate series: as independent rows a third of the trends would be significant."""
    rng, shares = np.random.default_rng(2), {}
    for dependence in ("auto", "independent"):
        noise = rng.normal(size=(2000, 41))
        for i in range(1, 2000):
            noise[i] += 0.9 * noise[i - 1]
        model = TScore(2, task="regression", dependence=dependence).fit(noise[:, 1:], noise[:, 0])
        shares[dependence] = float((model.pvalues_ < 0.05).mean())
    assert shares["auto"] < 0.15 < shares["independent"]


def test_a_rejected_batch_and_a_file_keep_the_cuts(tmp_path):
    X, y = numbers()
    model, other = (Screening(2, task="regression").partial_fit(X[:500], y[:500]) for _ in range(2))
    with pytest.raises(ValueError, match="row 3 of the batch is missing"):
        model.partial_fit(X[500:600], np.where(np.arange(100) == 3, np.nan, y[500:600]))
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.where(np.arange(100)[:, None] == 99, np.inf, X[500:600]), y[500:600] + 1e3)
    save(model, tmp_path / "screening.tamis")
    loaded = load(tmp_path / "screening.tamis").partial_fit(X[500:], y[500:])
    other.partial_fit(X[500:], y[500:])
    np.testing.assert_array_equal(loaded.scores_, other.scores_)
    np.testing.assert_array_equal(model.partial_fit(X[500:], y[500:]).scores_, other.scores_)


def test_parts_of_numbers_cannot_be_merged():
    X, y = numbers()
    one, other = (TScore(2, task="regression").fit(X, y) for _ in range(2))
    with pytest.raises(
        ValueError, match=r"task='regression' discretises the target by the rows of each part"
    ):
        one.merge(other)
