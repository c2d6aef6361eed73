"""The same rows as array, file or CSR, at once or in parts, weighted or repeated: in other layers, and on more data.

`tamis.checks` has the relations of a selector (`same_rows`, `sample_weights`); here they run on many data sets.
"""

from __future__ import annotations

import csv
import inspect
import re
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import AlphaInvesting, TScore, prequential
from tamis.adapters.river import RiverClassifier
from tamis.base.declarations import Claims
from tamis.catalog import CATALOG, LEARNERS
from tamis.checks import column_selector_checks, row_selector_checks
from tamis.checks.subject import RowSubject, Subject, compare_scores
from tamis.streams import ArrayStream, open_file
from tamis.summaries.block_sums import BlockSums
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.contingency import Contingency
from tamis.summaries.fixed_bins import FixedBins
from tamis.summaries.moments import RunningMoments
from tamis.summaries.quantiles import QuantileSummary

PAGE = Path(__file__).parents[1] / "docs" / "concepts.md"
ROWS = [entry for entry in CATALOG if entry.family == "rows"]
SELECTORS = [entry for entry in CATALOG if entry.family in ("rows", "columns")]
CHECKS = {"rows": row_selector_checks, "columns": column_selector_checks}


def weighted(seed: int, n: int = 120, most: int = 3) -> tuple[Any, ...]:
    """Return rows of two classes, whole weights, and the rows repeated by them."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    y = (X[:, 1] + rng.normal(size=n) > 0.5).astype(np.int64)
    w = rng.integers(0, most + 1, n).astype(np.float64)
    at = np.repeat(np.arange(n), w.astype(np.int64))
    return X, y, w, X[at], y[at]


# -- the relations of the checks, deeper -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["same_rows", "sample_weights"])
@pytest.mark.parametrize("entry", SELECTORS, ids=lambda entry: entry.key)
def test_relations_hold_on_many_small_data_sets(
    entry: Any, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subject, "n_small", 25)
    for parameters in ((), entry.regression)[: 1 + bool(entry.regression)]:
        try:
            dict(CHECKS[entry.family](entry.load()(**dict(parameters))))[relation]()
        except SkipTest as reason:
            pytest.skip(str(reason))


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.key)
def test_a_file_is_the_array_that_was_written_to_it(entry: Any, seed: int, tmp_path: Path) -> None:
    subject = RowSubject(entry.load()(), multiclass="multiclass" in entry.targets)
    X, y = subject.small(seed)
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*"abcdef", "label"], *([*row, c] for row, c in zip(X, y, strict=True))])
    from_file, from_array = subject.new(), subject.new()
    for rows, labels in open_file(path, label="label", missing="keep").batches(17):
        from_file.partial_fit(rows, labels)
    for start in range(0, len(y), 17):
        from_array.partial_fit(X[start : start + 17], y[start : start + 17])
    compare_scores(from_file, from_array, "a CSV file, and the array")


def test_a_run_on_a_file_is_the_run_on_the_array(tmp_path: Path) -> None:
    X, y, *_ = weighted(0, 400)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,label", comments="", fmt="%.17g")
    one, other = (
        prequential(stream, TScore(2), batch_size=50)
        for stream in (open_file(path, label="label"), ArrayStream(X, y))
    )
    for name in ("n_rows", "accuracy", "kappa", "stability"):
        assert one.summary()[name] == other.summary()[name]


# -- weights -----------------------------------------------------------------------------------------------


def accepts_weights(cls: type) -> bool:
    return any(
        "sample_weight" in inspect.signature(getattr(cls, name)).parameters
        for name in ("fit", "partial_fit", "start")
        if hasattr(cls, name)
    )


def test_the_page_lists_every_class_whose_weighted_rows_are_not_its_copies() -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Sample weights\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", section, flags=re.MULTILINE)
    listed = {name: reason for names, reason in rows for name in re.findall(r"`(\w+)`", names)}
    classes = {entry.load() for entry in (*CATALOG, *LEARNERS)} | {
        getattr(tamis, name) for name in ("Refit", "SparseFSA")
    }
    reasons = {cls.__name__: getattr(cls, "claims", Claims()).copies_differ for cls in classes}
    assert listed == {name: reason for name, reason in reasons.items() if reason}
    assert all(accepts_weights(cls) for cls in classes if getattr(cls, "claims", Claims()).copies_differ)


@pytest.mark.parametrize(
    "entry",
    [e for e in (*CATALOG, *LEARNERS) if e.family == "learners" and e.load().__module__.startswith("tamis.")],
    ids=lambda entry: entry.key,
)
def test_a_learner_leaves_out_rows_of_weight_0(entry: Any) -> None:
    cls = entry.load()
    if not accepts_weights(cls):
        pytest.skip("the learner has no sample_weight")
    X, y, w, *_ = weighted(0, 200, most=1)
    y = y.astype(np.float64) if "regression" in entry.targets else y
    there, models = w > 0, []
    for rows in ({"X": X, "y": y, "sample_weight": w}, {"X": X[there], "y": y[there]}):
        model = cls(**dict(entry.parameters))
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        models.append(model.fit(**rows) if not hasattr(model, "partial_fit") else model.partial_fit(**rows))
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_a_model_of_river_without_weights_learns_a_row_as_often_as_it_counts() -> None:
    pytest.importorskip("river")
    X, y, w, X_repeated, y_repeated = weighted(1)
    one = RiverClassifier("naive-bayes").partial_fit(X, y, classes=[0, 1], sample_weight=w)
    other = RiverClassifier("naive-bayes").partial_fit(X_repeated, y_repeated, classes=[0, 1])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


SUMMARIES = {
    "moments": (lambda: RunningMoments(4), lambda s: [s.mean, s.m2], False),
    "class moments": (lambda: ClassMoments(4, 2), lambda s: [*s.read(), s.effective()], True),
    "bins": (lambda: FixedBins(4, 2, 4), lambda s: [s.counts()], True),
    "contingency": (lambda: Contingency(4, 8, 2), lambda s: [s.table()], True),
    "quantiles": (
        lambda: QuantileSummary(4, 2, 0.001),
        lambda s: [s.counts(4), s.quantile([0.3, 0.5])],
        True,
    ),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_counts_a_row_as_often_as_its_weight(name: str) -> None:
    new, read, of_classes = SUMMARIES[name]
    X, y, w, X_repeated, y_repeated = weighted(2, 600)
    if name == "contingency":
        X, X_repeated = np.abs(X).astype(int) * 1.0, np.abs(X_repeated).astype(int) * 1.0
    one, other = new(), new()
    if name == "bins":
        edges = np.tile([-0.5, 0.0, 0.5], (4, 1))
        one.cut_at(edges), other.cut_at(edges)
    one.update(X, y, w) if of_classes else one.update(X, w)
    other.update(X_repeated, y_repeated) if of_classes else other.update(X_repeated)
    for left, right in zip(read(one), read(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_block_sums_divide_a_row_between_blocks(sparse: bool) -> None:
    X, y, w, *_ = weighted(3, 1500, most=9)
    X[::7, 2] = np.nan
    X, y, w = X[w > 0], y[w > 0], w[w > 0]
    form, places = sp.csr_matrix if sparse else np.asarray, w.astype(np.int64)
    labels = np.repeat(y, places)
    whole, parts = BlockSums(4, 2), BlockSums(4, 2)
    whole.update(form(np.repeat(X, places, axis=0)), labels)
    for start in range(0, len(y), 100):
        part = slice(start, start + 100)
        before = labels[: places[:start].sum()]
        parts.update(form(X[part]), y[part], w[part], 1.0, before, None, places[part])
    assert (parts.length, parts.n_rows) == (whole.length, whole.n_rows)
    np.testing.assert_allclose(parts.covariance()[0], whole.covariance()[0], rtol=1e-8)
    np.testing.assert_allclose(parts.lagged_means()[0], whole.lagged_means()[0], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_alpha_investing_selects_the_same_of_weighted_and_repeated_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(200, 100)), rng.integers(0, 4, 200).astype(np.float64)
    y = X[:, 3] - X[:, 7] + rng.normal(size=200)
    at = np.repeat(np.arange(200), w.astype(int))
    one = AlphaInvesting().start(y, sample_weight=w)
    other = AlphaInvesting().start(y[at])
    one.offer_many(X)
    other.offer_many(X[at])
    assert one.selected_ == other.selected_
    assert one.rows_dependent_ == other.rows_dependent_ is True
    # Copies are not independent rows: nearly all of the features that the evidence of 300 rows selects are irrelevant.
    assert len(one.selected_) < 8


@pytest.mark.parametrize("dependence", ["auto", "independent", "series"])
@pytest.mark.parametrize("model", ["t", "fisher"])
def test_p_values_of_weighted_rows_are_those_of_repeated_rows(model: str, dependence: str) -> None:
    X, y, w, X_repeated, y_repeated = weighted(5, 900, most=4)
    cls = {"t": tamis.TScore, "fisher": tamis.FisherScore}[model]
    one, other = cls(dependence=dependence), cls(dependence=dependence)
    at = 0
    for start in range(0, 900, 90):
        part = slice(start, start + 90)
        one.partial_fit(X[part], y[part], sample_weight=w[part])
        n = int(w[part].sum())
        other.partial_fit(X_repeated[at : at + n], y_repeated[at : at + n])
        at += n
    assert one.rows_dependent_ == other.rows_dependent_ == (dependence != "independent")
    np.testing.assert_allclose(one.pvalues_, other.pvalues_, rtol=1e-7)
    np.testing.assert_allclose(one.n_effective_, other.n_effective_, rtol=1e-7)


@pytest.mark.parametrize("values", [(0.5, 1.0, 2.0), (100.0, 200.0, 300.0)])
def test_p_values_keep_their_level_for_weights_of_any_distribution(values: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(4000, 300)), rng.integers(0, 2, 4000), rng.choice(values, 4000)
    screen = TScore()
    for start in range(0, 4000, 500):
        screen.partial_fit(
            X[start : start + 500], y[start : start + 500], sample_weight=w[start : start + 500]
        )
    assert 0.01 < (screen.pvalues_ < 0.05).mean() < 0.09
