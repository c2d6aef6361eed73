"""GFSFS equals its twin, and its gain is without bias however few rows a stratum has."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from tamis import GFSFS
from tamis.columns.gfsfs import conditional_gain, refine
from tamis.errors import DataError
from tests.twins.gfsfs import gain, gfsfs


def coded(seed, n=60, p=9, values=3):
    """Columns of few values, some copies with noise, and a class that two of them and a product decide."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, size=(n, p))
    X[:, p - 1] = np.where(rng.random(n) < 0.8, X[:, 0], X[:, p - 1])
    y = (X[:, 0] + X[:, 4] + (X[:, 2] ^ X[:, 3]) + rng.integers(0, 2, size=n)) // 3
    y[:2] = 0, 1
    return X, y.astype(np.int64)


def strata_of(columns, n):
    strata = np.zeros(n, dtype=np.int64), 1
    for column in columns:
        strata = refine(strata, np.asarray(column, dtype=np.int64))
    return strata


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_a_gain_equals_its_twin(seed, n_given):
    X, y = coded(seed, n=40)
    given, columns = X[:, :n_given].T, X[:, 5:7].T
    ours = conditional_gain(strata_of([*given, *columns], 40), strata_of(given, 40), y)
    wanted, mean = gain(columns.tolist(), given.tolist(), y.tolist())
    assert ours == pytest.approx((wanted, math.sqrt(mean / 40)), abs=1e-8)


def test_the_mean_over_all_permutations_is_zero():
    """Eight rows in two strata: every order of the classes within each."""
    x, s = np.array([0, 1, 2, 0, 1, 1, 0, 0]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    fine, coarse = strata_of([s, x], 8), strata_of([s], 8)
    first, last = [*itertools.permutations([0, 1, 1, 2])], [*itertools.permutations([0, 0, 1, 2])]
    gains = [conditional_gain(fine, coarse, np.array([*a, *b]))[0] for a in first for b in last]
    assert np.ptp(gains) > 0.1
    assert np.mean(gains) == pytest.approx(0.0, abs=1e-14)


@given(st.integers(0, 10_000), st.sampled_from([1, 3]), st.sampled_from([0.1, 0.5, 1.0]))
@example(0, 3, 0.5)
def test_equals_its_twin(seed, size, penalty):
    X, y = coded(seed)
    unit = penalty * math.log(60) / 60
    starts = range(0, 9, size)
    groups = [{f"x{j}": X[:, j].tolist() for j in range(start, start + size)} for start in starts]
    wanted = gfsfs(groups, y.tolist(), unit, unit)
    ours = GFSFS(
        {start: [*range(start, start + size)] for start in starts},
        group_penalty=penalty,
        feature_penalty=penalty,
    )
    assert ours.fit(X, y).selected_groups_ == wanted
    by_block = GFSFS(group_penalty=penalty, feature_penalty=penalty).start(y)
    for start in starts:
        names = [f"x{j}" for j in range(start, start + size)]
        by_block.offer_many(sp.csc_matrix(X[:, start : start + size]), names)
    assert by_block.selected_groups_ == wanted
    assert by_block.selected_ == [name for group in wanted for name in group]


def test_columns_in_no_group_are_decided_on_one_by_one():
    X, y = coded(1, n=500, values=2)
    y = X[:, 0] + 2 * X[:, 4] + 4 * (X[:, 2] ^ X[:, 3])
    grouped = GFSFS({"pair": ["x2", "x3"]}).fit(X, y)
    assert ["x2", "x3"] in grouped.selected_groups_
    alone = GFSFS(None).fit(X, y)
    assert all(len(group) == 1 for group in alone.selected_groups_)
    assert {"x0", "x4"} <= set(alone.selected_) & set(grouped.selected_)


def test_unrelated_columns_are_rejected():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(100, 1000)), rng.integers(0, 3, size=100)
    assert GFSFS(None).fit(X, y).selected_ == []
    assert GFSFS({k: [*range(10 * k, 10 * k + 10)] for k in range(100)}).fit(X, y).selected_ == []


@pytest.mark.parametrize("width", [1, 5])
def test_noise_is_rejected_beside_selected_features(width):
    """64 strata of three relevant features: a gain of noise varies far more there than by itself."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(2000, 303))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    groups = {start: [*range(start, start + width)] for start in range(3, 303, width)}
    assert GFSFS(groups).fit(X, y).selected_ == ["x0", "x1", "x2"]


def test_a_better_group_replaces_a_worse_one():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, size=400)
    better = np.where(rng.random(400) < 0.95, y, 1 - y)
    worse = np.where(rng.random(400) < 0.8, better, 1 - better)
    noise = rng.integers(0, 2, size=(400, 2))
    selector = GFSFS().start(y)
    first = selector.offer_many(np.column_stack([worse, noise]), ["worse", "a", "b"])
    assert first.tolist() == [True, False, False]
    assert selector.offer_many(better[:, None], ["better"]).all()
    assert selector.selected_groups_ == [["better"]]


def test_weights_are_rows():
    X, y = coded(4, n=100)
    weights = np.random.default_rng(0).integers(0, 3, size=100)
    rows = np.repeat(np.arange(100), weights)
    assert GFSFS().fit(X, y, sample_weight=weights).selected_ == GFSFS().fit(X[rows], y[rows]).selected_


def test_madelon(load_shared):
    """Five informative columns and combinations of them: few are kept, and three neighbours use them well."""
    X, y, _ = load_shared("madelon")
    selector = GFSFS(None).fit(X, y)
    assert 4 <= len(selector.selected_) <= 8


def test_refusals():
    y = np.array([0, 1, 0, 1])
    with pytest.raises(
        ValueError, match="groups must be one of None, 'blocks', or a dict of lists of columns"
    ):
        GFSFS(3).start(y)
    for groups in ({"a": []}, {"a": ["x"], "b": ["x"]}, {"a": "x"}, {"a": [0.5]}):
        with pytest.raises(ValueError, match="groups must be one of None, 'blocks', or a dict"):
            GFSFS(groups).start(y)
    with pytest.raises(ValueError, match="group_penalty must be a number"):
        GFSFS(group_penalty=-1).start(y)
    with pytest.raises(DataError, match="columns of group 'ends' are not adjacent"):
        GFSFS({"ends": ["x0", "x2"]}).fit(np.eye(4)[:, :3], y)
