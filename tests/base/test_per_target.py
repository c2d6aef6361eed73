"""Several targets: each has the selection of a selector of its own, and all share one."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import tamis
from tamis import (
    FIRES,
    AlphaInvesting,
    AlphaInvestingPerTarget,
    FisherScore,
    ForwardPartialCorrelation,
    MutualInformation,
    PerTarget,
    TScore,
)
from tamis.base.per_target import columns_of_targets
from tamis.checks import target_model_checks
from tamis.errors import DataError


def tagged(rng, n_rows=1500, n_features=30, n_targets=4):
    """Each target depends on two features, of which it has one in common with the next."""
    X = rng.normal(size=(n_rows, n_features))
    signal = X[:, :n_targets] + X[:, 1 : n_targets + 1] + 0.5 * rng.normal(size=(n_rows, n_targets))
    return X, signal


def batches(model, X, y, size=200, **options):
    for start in range(0, X.shape[0], size):
        model.partial_fit(X[start : start + size], y[start : start + size], **options)
    return model


@pytest.mark.parametrize(
    "selector",
    [
        TScore(2),
        FisherScore(2),
        MutualInformation(2),
        FIRES(2),
        ForwardPartialCorrelation(2),
        tamis.OFS(2, random_state=0),
    ],
)
def test_each_target_has_the_selection_of_a_selector_of_its_own(selector, rng):
    X, signal = tagged(rng)
    Y = np.column_stack([signal[:, :3] > 0, np.digitize(signal[:, 3], [-1, 1])])
    if isinstance(selector, FIRES | tamis.OFS):
        Y = Y[:, :3]
    model = batches(PerTarget(selector), X, Y)
    for target, one in enumerate(model.selectors_):
        alone = batches(clone(selector), X, Y[:, target])
        assert tamis.dumps(one) == tamis.dumps(alone)  # the same bits
        assert model.support_by_target_[target].tolist() == alone.get_support().tolist()
    assert model.get_support().tolist() == model.support_by_target_.any(axis=0).tolist()
    assert model.transform(X).shape == (1500, model.price_)
    assert model.scores_by_target_.shape == (Y.shape[1], 30)


def test_classes_and_numbers_of_a_frame_are_told_apart_and_named(rng):
    X, signal = tagged(rng)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    y = pd.DataFrame(
        {"hot": np.where(signal[:, 0] > 0, "yes", "no"), "price": signal[:, 1], "n": (signal[:, 2] > 0) * 1.0}
    )
    model = PerTarget(
        ForwardPartialCorrelation(2, prices={f"f{j}": 5.0 if j == 1 else 1.0 for j in range(30)})
    ).fit(frame, y)
    assert model.targets_ == ["hot", "price", "n"]
    assert [one.task for one in model.selectors_] == ["classification", "regression", "classification"]
    assert model.selectors_[0].classes_.tolist() == ["no", "yes"]
    assert set(model.get_feature_names_out()) >= {"f2", "f3"}
    mask = model.get_support()
    assert model.price_ == mask.sum() + 4.0 * mask[1]  # a column is paid once
    table = model.table()
    assert list(table) == ["feature", "selected", "hot", "price", "n"]
    assert (table["selected"] == (table["hot"] | table["price"] | table["n"])).all()
    as_numbers = PerTarget(ForwardPartialCorrelation(2), tasks=["classification", "regression", "regression"])
    assert as_numbers.fit(frame, y).selectors_[2].task == "regression"


def test_shared_sums_are_those_of_any_rows(rng):
    """A large offset, columns that are constant within a class, new classes, weights, NaN, and CSR rows."""
    X, signal = tagged(rng, n_targets=3)
    X[:, 4] += 1e6
    Y = (signal > 0).astype(int)
    X[:, 7] = Y[:, 1]
    Y[900:, 2] += 2
    gaps = X.copy()
    gaps[::7, 3] = np.nan
    for rows in (X, gaps, sp.csr_matrix(X), np.asfortranarray(X), X.astype(np.float32), X[:, ::-1]):
        model = batches(PerTarget(FisherScore(3)), rows, Y)
        for target, one in enumerate(model.selectors_):
            alone = batches(FisherScore(3), rows, Y[:, target])
            assert tamis.dumps(one) == tamis.dumps(alone)
    model, alone = PerTarget(FisherScore(3)).fit(X, Y), FisherScore(3).fit(X, Y[:, 0])
    row = np.broadcast_to(X[0], (1, 30))  # C-contiguous, with a stride of 0
    model.partial_fit(row, Y[:1])
    assert tamis.dumps(model.selectors_[0]) == tamis.dumps(alone.partial_fit(row, Y[:1, 0]))
    weight = rng.integers(0, 3, size=200).astype(float)
    model = (
        PerTarget(FisherScore(3)).fit(X[:200], Y[:200]).partial_fit(X[:200], Y[:200], sample_weight=weight)
    )
    alone = FisherScore(3).fit(X[:200], Y[:200, 0]).partial_fit(X[:200], Y[:200, 0], sample_weight=weight)
    assert tamis.dumps(model.selectors_[0]) == tamis.dumps(alone)


@pytest.mark.parametrize("n_features", [1, 7, 133, 517])
@pytest.mark.parametrize("selector", [TScore(1), FisherScore(1, restarts=300)])
def test_the_bits_of_many_targets_are_those_of_one(selector, n_features, rng):
    X = rng.normal(size=(1500, n_features)) * np.exp(rng.normal(size=n_features)) + 100.0
    signal = rng.normal(size=(1500, 5)) + X[:, :1] - 100.0
    Y = np.column_stack([signal[:, :4] > [0.0, 1.5, 3.0, 0.2], np.digitize(signal[:, 4], [-1, 0, 2])])
    model = batches(PerTarget(selector), X, Y, size=350)
    for target, one in enumerate(model.selectors_):
        assert tamis.dumps(one) == tamis.dumps(batches(clone(selector), X, Y[:, target], size=350))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((3, 2, 1)), "y must have shape (n_rows, n_targets), got"),
        (None, "requires y to be passed"),
        ([0, 1, 0], "y has the targets 1, but had ['y0', 'y1'] in earlier rows"),
        (np.zeros((3, 0)), "y has 0 targets"),
        (np.zeros((2, 2)), "inconsistent numbers of samples"),
        (np.zeros((3, 3)), "y has the targets 3, but had ['y0', 'y1'] in earlier rows"),
        ([[0, 1], [1, np.inf], [0, np.nan]], "Target 'y1': The label of row 1 of the batch is inf"),
        (np.array([[0, 1.5], [1, 0], [0, 1]]), "Target 'y1': Unknown label type: continuous"),
    ],
)
def test_impossible_targets_are_named_and_change_nothing(y, message, rng):
    X = rng.normal(size=(3, 5))
    model = PerTarget(TScore(2, task="classification")).fit(X, [[0, 1], [1, 0], [0, 1]])
    before = tamis.dumps(model)
    with pytest.raises((DataError, ValueError)) as caught:
        model.partial_fit(X, y)
    assert message in str(caught.value)
    assert tamis.dumps(model) == before


def test_a_rejected_batch_leaves_every_target_as_it_was(rng):
    X, signal = tagged(rng)
    model = batches(PerTarget(FisherScore(2)), X, (signal > 0).astype(int))
    before = tamis.dumps(model)
    bad = X[:10].copy()
    bad[3, 2] = np.inf
    with pytest.raises(DataError, match="inf"):
        model.partial_fit(bad, (signal[:10] > 0).astype(int))
    assert tamis.dumps(model) == before
    again = tamis.loads(before)
    assert again.support_by_target_.tolist() == model.support_by_target_.tolist()
    assert again.targets_ == model.targets_


TABLES = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "csr": sp.csr_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"f{j}" for j in range(X.shape[1])]),
    "arrow": lambda X: pa.table({f"f{j}": column for j, column in enumerate(X.T)}),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("selector", [TScore(2), FIRES(2), ForwardPartialCorrelation(2)])
def test_a_row_is_skipped_by_the_targets_without_a_label(selector, kind, rng):
    X, signal = tagged(rng, n_rows=600, n_targets=4)
    Y = (signal > 0).astype(object)
    Y[:, 1] = np.where(signal[:, 1] > 0, "yes", "no")
    Y[:, 3] = signal[:, 3] if hasattr(selector, "task") else Y[:, 3]
    gaps = Y.copy()
    gaps[rng.random(gaps.shape) < 0.3] = None
    gaps[rng.random(600) < 0.1, 1] = np.nan
    gaps[200:400, 2], gaps[:, 0], gaps[-1] = None, Y[:, 0], None
    weight = rng.integers(1, 3, 600).astype(float)
    for weights in (None, weight):
        model = PerTarget(selector)
        alone = [clone(selector) for _ in range(4)]
        if hasattr(selector, "task"):
            alone[3].set_params(task="regression")
        for part in (slice(start, start + 200) for start in (0, 200, 400)):
            model.partial_fit(
                TABLES[kind](X[part]), gaps[part], None, None if weights is None else weights[part]
            )
            for target, one in enumerate(alone):
                there = part.start + np.flatnonzero([not pd.isna(label) for label in gaps[part, target]])
                if len(there):
                    own = None if weights is None else weights[there]
                    one.partial_fit(TABLES[kind](X[there]), gaps[there, target].tolist(), None, own)
        assert [tamis.dumps(one) for one in model.selectors_] == [tamis.dumps(one) for one in alone]
        assert model.n_seen_ == alone[0].n_seen_ == 599
        assert tamis.loads(tamis.dumps(model)).n_seen_ == 599


def test_categories_of_a_list_are_learned_by_the_labelled_targets(rng):
    rows = [[float(value), "red" if value > 0 else "blue"] for value in rng.normal(size=100)]
    Y = np.array([[value > 0, row % 2] for row, (value, _) in enumerate(rows)], dtype=float)
    Y[::3, 0] = np.nan
    model = PerTarget(FIRES(1, categorical=[1])).fit(rows, Y)
    there = np.flatnonzero(~np.isnan(Y[:, 0]))
    alone = FIRES(1, categorical=[1]).fit([rows[i] for i in there], Y[there, 0])
    assert tamis.dumps(model.selectors_[0]) == tamis.dumps(alone)


def test_a_target_without_any_label_in_the_first_rows_is_named(rng):
    X, gaps = rng.normal(size=(6, 3)), np.array([[0, np.nan], [1, np.nan], [0, 1]] * 2)
    model = PerTarget(TScore(1))
    with pytest.raises(DataError, match="Target 'y1': none of the first rows has a label"):
        model.partial_fit(X[:2], gaps[:2])
    with pytest.raises(DataError, match="Target 'y1': none of the first rows has a label"):
        model.partial_fit(X, gaps, sample_weight=np.isnan(gaps[:, 1]) * 1.0)
    assert not hasattr(model.partial_fit(X, gaps, sample_weight=np.zeros(6)), "selectors_")
    model.partial_fit(X, gaps).partial_fit(X[:2], gaps[:2])
    assert [one.n_seen_ for one in model.selectors_] == [8, 2]
    before = tamis.dumps(model)
    X[4, 2] = np.inf
    with pytest.raises(DataError, match="column 2 of row 4 of the batch"):
        model.partial_fit(X, gaps[:, ::-1])
    assert tamis.dumps(model) == before


def test_parameters_are_validated():
    X, Y = np.zeros((4, 2)), [[0, 1], [1, 0], [0, 1], [1, 1]]
    with pytest.raises(ValueError, match="selector must be a row selector"):
        PerTarget("t").fit(X, Y)
    cells = np.arange(8).reshape(4, 2)
    masked = np.ma.masked_array(Y, mask=cells == 3)
    for model in (PerTarget(TScore(1)), AlphaInvestingPerTarget(AlphaInvesting())):
        with pytest.raises(DataError, match=r"y\[1, 1\] is masked"):
            model.fit(X, masked)
    with pytest.raises(DataError, match=r"Target 'y1': The label of row 2 .* is inf .*infinity"):
        PerTarget(TScore(1)).fit(X, np.where(cells == 5, np.inf, Y))
    with pytest.raises(ValueError, match=r"tasks=.* but FIRES has no parameter task: omit tasks"):
        PerTarget(FIRES(1), tasks=["classification", "regression"]).fit(X, Y)
    with pytest.raises(ValueError, match="tasks must have an entry for each of 2 targets, got 1"):
        PerTarget(FisherScore(1), tasks=["regression"]).fit(X, Y)
    with pytest.raises(ValueError, match="classes must have an entry for each of 2 targets, got 1"):
        PerTarget(FisherScore(1)).partial_fit(X, Y, classes=[[0, 1]])


def test_columns_of_targets_keep_their_types():
    columns, names = columns_of_targets([[1, "a", 0.5], [2, "b", 1.0]], 2)
    assert names is None
    assert [column.dtype.kind for column in columns] == ["i", "U", "f"]
    columns, _ = columns_of_targets(np.array([["a", 1], [np.nan, 2]], dtype=object))
    assert np.isnan(columns[0][1])  # missing, not the text "nan"


CHECKED: dict[str, Any] = {
    **{type(one).__name__: PerTarget(one) for one in (
        FisherScore(2), MutualInformation(2), FIRES(2), ForwardPartialCorrelation(2, prior={1: 2.0}), tamis.OFS(2),
    )},
    "numbers": PerTarget(TScore(2, task="regression")),
    "columns": AlphaInvestingPerTarget(AlphaInvesting()),
    "closed": AlphaInvestingPerTarget(AlphaInvesting(model="logistic", rule="closed-e-lond")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "check"),
    [(name, check) for name, one in CHECKED.items() for check in dict(target_model_checks(one))],
)
def test_checks(name, check):
    try:
        dict(target_model_checks(CHECKED[name]))[check]()
    except SkipTest as reason:
        pytest.skip(str(reason))


class LearnsTheFirst(PerTarget):
    """It learns a target before it validates the next, keeps the features of the first alone, and merges that alone."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if hasattr(self, "selectors_"):
            self.selectors_[0].partial_fit(X, np.asarray(y)[: len(X), 0])
        return super().partial_fit(X, y, classes, sample_weight)

    def _get_support_mask(self):
        return self.support_by_target_[0]

    def merge(self, other):
        return super().merge(other) if not hasattr(self, "selectors_") else self

    def forget_columns(self, columns):
        return self

    def widen(self, n_features):
        return self


class BudgetForEach(AlphaInvestingPerTarget):
    """Each target has a budget of its own, and the shared selection is that of the first."""

    def _share(self):
        pass

    @property
    def selected_(self):
        return self.selectors_[0].selected_[:1]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (LearnsTheFirst(FisherScore(2)), "union rejected_target rows_one_at_a_time merge forgotten_columns"),
        (LearnsTheFirst(FisherScore(2)), "columns_that_come_later"),
        (BudgetForEach(AlphaInvesting()), "union one_budget"),
    ],
)
def test_checks_find_what_is_wrong(model, names):
    checks = dict(target_model_checks(model))
    for name in names.split():
        with pytest.raises(AssertionError, match=f"^{name}: "):
            checks[name]()
