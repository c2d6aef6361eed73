"""Preq-CV stability: which rows a copy sees, similarities against their definitions, and what random sets come to."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from tamis import FIRES
from tamis.evaluate import jaccard_similarity, nogueira, pearson_similarity, preq_cv_stability

tables = st.integers(2, 6).flatmap(
    lambda r: st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=r, max_size=r)
)


@given(Z=tables)
@settings(max_examples=100)
def test_similarities_equal_their_definitions(Z):
    pearson, jaccard = [], []
    for one, other in itertools.combinations(Z, 2):
        defined = 0 < sum(one) < 5 and 0 < sum(other) < 5
        pearson.append(np.corrcoef(one, other)[0, 1] if defined else float(one == other))
        union = sum(a or b for a, b in zip(one, other, strict=True))
        jaccard.append(sum(a and b for a, b in zip(one, other, strict=True)) / union if union else 1.0)
    assert pearson_similarity(Z) == pytest.approx(np.mean(pearson), abs=1e-12)
    assert jaccard_similarity(Z) == pytest.approx(np.mean(jaccard), abs=1e-12)


def test_random_sets_agree_by_chance_alone(rng):
    """Published code has .75, .36 and .10 here, as it takes absolute values."""
    for d in (20, 50, 200):
        Z = np.zeros((300, d), dtype=bool)
        for row in Z:
            row[rng.choice(d, 5, replace=False)] = True
        assert pearson_similarity(Z) == pytest.approx(0, abs=0.01)
        assert pearson_similarity(Z) == pytest.approx(nogueira(Z), abs=1e-12)  # all are of one size
    assert math.isnan(pearson_similarity(Z[:1]))


class Diary(BaseEstimator):
    """Remembers the rows that it saw, by their first column, and selects as many columns as it was taught batches."""

    copies: list = []  # noqa: RUF012

    def partial_fit(self, X, y):
        if not hasattr(self, "rows_"):
            self.rows_, self.n_ = [], 0
            Diary.copies.append(self)
        self.rows_ += X[:, 0].astype(int).tolist()
        self.n_ += 1
        return self

    def get_support(self):
        return np.arange(30) < self.n_


def diaries(folds, n_folds=10, n_rows=5000, **options):
    Diary.copies = []
    X = np.zeros((n_rows, 30))
    X[:, 0] = np.arange(n_rows)
    result = preq_cv_stability((X, np.arange(n_rows) % 2), Diary(), folds=folds, n_folds=n_folds, **options)
    return result, [copy.rows_ for copy in Diary.copies]


@pytest.mark.parametrize(
    ("folds", "shared"), [("cross", 0.8), ("split", 0.0), ("bootstrap", (1 - 1 / math.e) ** 2)]
)
def test_copies_share_as_many_rows_as_the_name_says(folds, shared):
    _, rows = diaries(folds, batch_size=1000)
    overlap = [len(set(one) & set(other)) / 5000 for one, other in itertools.combinations(rows, 2)]
    assert np.mean(overlap) == pytest.approx(shared, abs=0.01)
    assert np.mean([len(one) / 5000 for one in rows]) == pytest.approx(
        {"cross": 0.9, "split": 0.1, "bootstrap": 1.0}[folds], abs=0.02
    )


@pytest.mark.parametrize("folds", ["cross", "split", "bootstrap"])
def test_the_rows_of_a_copy_do_not_depend_on_batches(folds):
    _, whole = diaries(folds, n_rows=600, batch_size=600)
    _, parts = diaries(folds, n_rows=600, batch_size=37)
    assert sorted(map(tuple, whole)) == sorted(map(tuple, parts))


def test_a_copy_without_rows_waits():
    result, rows = diaries("split", n_rows=25, batch_size=4)
    assert np.isnan(result.pearson[:2]).all()  # two copies have no row among the first eight
    assert np.isfinite(result.pearson[2:]).all()
    np.testing.assert_array_equal(result.n_seen, [4, 8, 12, 16, 20, 24, 25])
    assert sorted(itertools.chain(*rows)) == list(range(25))


def test_signal_is_stable_and_noise_is_not(rng):
    X = rng.normal(size=(3000, 40))
    clear, coins = X[:, 3] > X[:, 8], rng.integers(0, 2, 3000)
    template = FIRES(2)
    for folds in ("cross", "split", "bootstrap"):
        found = preq_cv_stability((X, clear), template, folds=folds, n_folds=5)
        assert found.mean_pearson > 0.9
    assert preq_cv_stability((X, coins), template, folds="split", n_folds=5).mean_pearson < 0.3
    assert not hasattr(template, "n_seen_")
    short = preq_cv_stability((X, clear), template, n_folds=5, max_rows=250)
    assert short.n_seen[-1] == 250
    assert "Pearson" in str(short)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": "leave"}, "folds must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"max_rows": 0}, "max_rows must"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        preq_cv_stability((np.zeros((4, 2)), [0, 1, 0, 1]), FIRES(1), **options)


def test_no_table_of_sets_is_refused():
    with pytest.raises(ValueError, match="Z must be a table"):
        pearson_similarity([[0.5, 1.0]])
