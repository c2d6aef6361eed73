"""Features by name: growing gives the bits of the fixed width, whatever rows are and in whatever order names come."""

from __future__ import annotations

import copy
import gc
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import (
    ABFS,
    DISCUSS,
    EFS,
    FCBF,
    FIRES,
    FSDS,
    OFS,
    Auto,
    ByName,
    ChiSquare,
    FisherScore,
    ForwardPartialCorrelation,
    GiniIndex,
    JointScreening,
    MutualInformation,
    Perceptron,
    RandomSubset,
    Screening,
    StreamPipeline,
    TScore,
    WeightedNaiveBayes,
)
from tamis.base import RowSelector
from tamis.catalog import CATALOG
from tamis.errors import DataError
from tamis.rows.screening.screener import BinScreener

FIRES_OPTIONS: list[dict[str, Any]] = [
    {}, {"half_life": 50}, {"scaling": None}, {"update": "assumed-density"}, {"scaling": "center"},
    {"importance": "signal"},
]  # fmt: skip
SMALL_DISCUSS: dict[str, Any] = {
    "n_features_to_select": 5, "window": 64, "threshold": 0.02, "alpha_drift": None, "half_life": 20,
}  # fmt: skip
GROWING = [
    *(FIRES(5, learning_rate=0.1, **options) for options in FIRES_OPTIONS), FIRES.paper(5), OFS(5), TScore(5),
    FisherScore(5, half_life=40), MutualInformation(5), Screening(5), TScore(None, level=0.1),
    Screening(3, redundancy=8),
    *(ABFS(20, 0.01, **options) for options in ({}, {"categorical": "all"}, {"cuts": "range"}, {"categorical": [2]})),
    *(
        DISCUSS(**{**SMALL_DISCUSS, **options})
        for options in (
            {}, {"categorical": "all"}, {"categorical": [0]}, {"cuts": "range", "half_life": None}, {"threshold": 0.0},
            {"window": 500}, {"n_features_to_select": None},
        )
    ),
    DISCUSS.paper(4, window=50), FCBF(5, threshold=0.0, window=64),
]  # fmt: skip


def named_rows(n: int = 240, n_names: int = 40, seed: int = 0) -> tuple[list[dict[str, float]], Any]:
    """Rows of which each names some of the columns, in an order of its own; later rows know more names."""
    rng = np.random.default_rng(seed)
    rows, y = [], rng.integers(0, 3, n)
    for i in range(n):
        known = 6 + (n_names - 6) * i // n
        names = rng.permutation(known)[: rng.integers(1, 6)]
        rows.append({f"x{j}": float(np.round(rng.normal() + (j == 2) * y[i], 2)) for j in names})
    return rows, y


def fixed(rows: list[dict[str, float]]) -> tuple[sp.csr_matrix, list[str]]:
    """The same rows as CSR over all names, in the order in which they first come."""
    places: dict[str, int] = {}
    for row in rows:
        for name in row:
            places.setdefault(name, len(places))
    cells = [(i, places[name], value) for i, row in enumerate(rows) for name, value in row.items()]
    i, j, values = zip(*cells, strict=True)
    return sp.csr_matrix((values, (i, j)), shape=(len(rows), len(places))), list(places)


@pytest.mark.slow
@pytest.mark.parametrize("selector", GROWING, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_growing_gives_the_bits_of_the_fixed_width(selector: Any, n_classes: int) -> None:
    rows, y = named_rows()
    y %= n_classes
    X, names = fixed(rows)
    grown, wide, step = ByName(selector), copy.deepcopy(selector), 16
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        grown.partial_fit(rows[part], y[part], classes=range(n_classes))
        wide.partial_fit(X[part], y[part], classes=range(n_classes))
        known = len(grown.feature_names_)
        assert grown.feature_names_ == names[:known]
        if (
            isinstance(selector, FIRES) and selector.scaling is not None
        ):  # it sums over the columns, four by four
            largest = np.abs(wide.scores_).max()
            np.testing.assert_allclose(grown.scores_, wide.scores_[:known], rtol=1e-9, atol=1e-12 * largest)
        else:
            assert grown.scores_.tobytes() == wide.scores_[:known].tobytes()
    assert grown.get_support().tolist() == wide.get_support().tolist()
    assert grown.selected_ == [names[j] for j in wide.get_support(indices=True)]
    loaded = tamis.loads(tamis.dumps(grown))
    assert (
        loaded.partial_fit(rows[:9], y[:9]).scores_.tobytes()
        == grown.partial_fit(rows[:9], y[:9]).scores_.tobytes()
    )


def events(rng: np.random.Generator, step: int) -> tuple[list[dict[str, float]], Any]:
    """Rows of few names, of which each batch brings new ones; "late" comes after 20 batches and tells most."""
    y = rng.integers(0, 2, 100)
    rows = [{f"x{j}": 1.0 for j in rng.integers(0, 4 + 4 * step, 5)} for _ in y]
    for row, label in zip(rows, y.tolist(), strict=True):
        row["early"] = float(rng.normal() + label)
        if step >= 20:
            row["late"] = float(rng.normal() - 2.0 * label)
    return rows, y


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["linear", "naive-bayes"])
def test_a_race_goes_on_while_names_come(learner: str) -> None:
    rng, model, widths = np.random.default_rng(0), ByName(Auto(learner=learner)), set()
    for step in range(55):
        model.partial_fit(*events(rng, step))
        auto: Any = model.estimator_
        widths.add(auto.n_features_in_)
        sizes = sorted(
            int(one.split(" ")[1])
            for one in auto.candidates_
            if one.startswith("fires") and "knee" not in one
        )
        assert auto.n_features_in_ / 2 < auto._laid_out_for <= auto.n_features_in_
        assert sizes == sorted({max(1, round(share * auto._laid_out_for)) for share in (0.05, 0.1, 0.2, 0.4)})
        assert ("joint" in auto.candidates_) == (auto._laid_out_for <= 200)
        assert auto.errors_.shape == (len(auto.candidates_),)
        assert auto.comparison_["errors"].shape == (len(auto.comparison_["n_seen"]), len(auto.candidates_))
    assert len(widths) > 8
    assert "late" in model.selected_
    if auto.candidate_ != "all":
        assert "early" in model.selected_
    assert auto.errors_.min() < 0.21
    assert len(auto.comparison_summary()["candidates"]) == len(auto.candidates_)
    loaded = tamis.loads(tamis.dumps(model))
    rows, y = events(rng, 55)
    assert tamis.dumps(loaded.partial_fit(rows, y)) == tamis.dumps(model.partial_fit(rows, y))


@pytest.mark.slow
def test_a_race_knows_its_candidates_after_they_were_laid_out_anew() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = np.c_[rng.normal(size=600) + y, rng.normal(size=(600, 9))]
    before = Auto().fit(X, y)
    narrow, wide = copy.deepcopy(before).widen(19), copy.deepcopy(before).widen(40)
    assert narrow.candidates_ == before.candidates_
    assert [candidate for candidate in wide.candidates_ if candidate.startswith("fires")] == [
        "fires 2",
        "fires 4",
        "fires 8",
        "fires 16",
        "fires knee",
    ]
    sizes = {"1": "2", "2": "4", "4": "8", "knee": "knee"}
    for at, candidate in enumerate(before.candidates_):
        selector, *size = candidate.split(" ")
        now = wide.candidates_.index(" ".join([selector, *(sizes[one] for one in size)]))
        assert wide.errors_[now] == narrow.errors_[at] == before.errors_[at]
    for grown in (narrow, wide):
        assert grown.transform(np.zeros((1, grown.n_features_in_))).shape[1] >= 1
        more = np.pad(X, ((0, 0), (0, grown.n_features_in_ - 10)))
        more[:, 12] = 3.0 * y + rng.normal(size=600)
        assert grown.partial_fit(more, y).get_support()[12]
    forgotten = wide.forget_columns([12])
    more[:, 12] = rng.normal(size=600)
    support = forgotten.partial_fit(more, y).get_support()
    # Noise, as most of the others: it is selected only where all that varies is.
    assert not support[12] or support[:10].all()


@pytest.mark.slow
def test_a_race_has_a_budget() -> None:
    rng, model = np.random.default_rng(0), ByName(Auto(2), budget=30)
    for step in range(20):
        y = rng.integers(0, 2, 100)
        rows = [{f"{step} {j}": 1.0 for j in rng.integers(0, 6, 3)} for _ in y]
        for row, label in zip(rows, y.tolist(), strict=True):
            row["good"] = float(rng.normal() + 2.0 * label)
        model.partial_fit(rows, y)
    assert (len(model.feature_names_), model.n_evicted_ > 0) == (30, True)
    assert "good" in model.selected_


@pytest.mark.parametrize(
    "options", [{}, {"max_columns": 20}, {"n_features_to_select": None}, {"task": "regression"}], ids=repr
)
def test_forward_selection_knows_what_it_would_have_known(options: dict[str, Any]) -> None:
    """What it chooses depends on the names so far, and on what was chosen before; what it knows does not."""
    rows, y = named_rows(600)
    y = y % 2 if "task" not in options else y * 1.0
    X, names = fixed(rows)
    wide = ForwardPartialCorrelation(**{"n_features_to_select": 5, **options})
    model, widths = ByName(copy.deepcopy(wide)), set()
    for start in range(0, 600, 16):
        part = slice(start, start + 16)
        model.partial_fit(rows[part], y[part])
        wide.partial_fit(X[part], y[part])
        widths.add(len(model.estimator_._columns))  # type: ignore[attr-defined]
    assert len(widths) > (1 if "max_columns" in options else 5)
    assert model.feature_names_ == names
    grown: Any = model.estimator_
    assert grown.scores_.shape == wide.scores_.shape
    if wide._marginals is None:
        known = [(grown._scatter, wide._scatter, name) for name in ("mean", "unit", "S")]
    else:
        known = [(grown._marginals, wide._marginals, name) for name in ("mean", "variance", "covariance")]
    for ours, theirs, name in known:
        pair = [getattr(one, name) for one in (ours, theirs)]
        pair = [np.triu(one) if name == "S" else one for one in pair]  # what is below is not kept
        np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "selector", [DISCUSS(window=200), FCBF(window=200), JointScreening(), RandomSubset(6)], ids=repr
)
def test_a_feature_that_emerges_is_found(selector: Any) -> None:
    """Scores of windows are the bits of the fixed width, though the bars follow the number of names."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2400, 40)), rng.integers(0, 2, 2400)
    X[800:, 30] += 2.0 * y[800:]
    X[:800, 20:] = 0.0
    model, wide = ByName(selector), copy.deepcopy(selector)
    for start in range(0, 2400, 100):
        known, part = 40 if start >= 800 else 20, slice(start, start + 100)
        model.partial_fit([{f"x{j}": row[j] for j in range(known)} for row in X[part].tolist()], y[part])
        wide.partial_fit(X[part], y[part])
        if isinstance(selector, DISCUSS | FCBF):
            assert model.scores_.tobytes() == wide.scores_[:known].tobytes()
    assert len(model.feature_names_) == 40
    if isinstance(selector, RandomSubset):
        assert len(model.selected_) == 6
        assert np.sort(model.scores_).tolist() == np.sort(wide.scores_).tolist()
    else:
        assert "x30" in model.selected_


def test_a_mask_of_categories_cannot_grow() -> None:
    for cls in (ABFS, DISCUSS, FCBF):
        with pytest.raises(ValueError, match="mask of a fixed number of columns"):
            cls(categorical=[True, False]).fit(np.eye(2), [0, 1]).widen(3)


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_dicts_frames_and_csr_are_the_same_rows(data: Any) -> None:
    rows, y = named_rows(60, 12)
    y %= 2
    by_dict, mixed, start = ByName(FisherScore(3)), ByName(FisherScore(3)), 0
    while start < len(rows):
        stop = start + data.draw(st.integers(1, 20))
        part = rows[start:stop]
        by_dict.partial_fit(part, y[start:stop])
        X, names = fixed(part)
        order = np.array(data.draw(st.permutations(range(len(names)))))
        columns = [names[j] for j in order]
        kind = data.draw(st.sampled_from(["dicts", "pandas", "polars", "csr"]))
        if kind == "dicts":
            given: Any = [dict(sorted(row.items())) for row in part]
        elif kind == "csr":
            given = X[:, order], columns
        else:
            given = (pd.DataFrame if kind == "pandas" else pl.DataFrame)(
                dict(zip(columns, X.toarray()[:, order].T, strict=True))
            )
        mixed.partial_fit(given, y[start:stop])
        start = stop
    of = dict(zip(mixed.feature_names_, mixed.scores_, strict=True))
    np.testing.assert_allclose(
        [of[name] for name in by_dict.feature_names_], by_dict.scores_, rtol=1e-9, atol=1e-12
    )


def test_rows_come_back_with_what_is_kept() -> None:
    rows, y = named_rows()
    model = ByName(FisherScore(2)).fit(rows, y % 2)
    kept = model.selected_
    assert len(kept) == 2
    few = [{kept[1]: 1.0, "other": 2.0, kept[0]: 3.0}, {"x": 1.0}]
    assert model.transform(few) == [{kept[1]: 1.0, kept[0]: 3.0}, {}]
    frame = pd.DataFrame({"other": [1.0], kept[1]: [2.0]})
    assert list(model.transform(frame).columns) == [kept[1]]
    assert model.transform(pl.from_pandas(frame)).columns == [kept[1]]
    X, names = model.transform((sp.csr_matrix([[1.0, 2.0]]), ["other", kept[0]]))
    assert (X.toarray().tolist(), names) == ([[2.0]], [kept[0]])
    for bad in ([few[0], 5], pd.DataFrame([[1.0, 2.0]]), np.ones((1, 2))):
        with pytest.raises(
            DataError, match=r"X must be a list of dicts|column names of the frame must be strings"
        ):
            model.transform(bad)


@pytest.mark.slow
@pytest.mark.parametrize("key", [entry.key for entry in CATALOG if entry.family == "rows"])
def test_every_selector_learns_from_dicts_in_the_room_it_is_given(key: str) -> None:
    rows, y = named_rows(300, 14)
    y = np.array([row.get("x2", 0.0) > 0 for row in rows]).astype(int)
    cls = next(entry for entry in CATALOG if entry.key == key).load()
    selector = cls(random_state=0) if "random_state" in cls().get_params() else cls()
    X, names = fixed(rows)
    room = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(len(rows), 20))
    wide, model = copy.deepcopy(selector), ByName(selector, max_columns=20)
    for start in range(0, 300, 50):
        part = slice(start, start + 50)
        model.partial_fit(rows[part], y[part], classes=[0, 1])
        wide.partial_fit(room[part], y[part], classes=[0, 1])
    assert model.scores_.tobytes() == wide.scores_[: len(names)].tobytes()
    with pytest.raises(DataError, match="The rows name 21 columns, but max_columns is 20: raise it"):
        model.partial_fit([{f"new{i}": 1.0 for i in range(21 - len(names))}], [1])
    assert model.feature_names_ == names


def words(n: int = 3000, n_words: int = 400, seed: int = 0) -> tuple[list[dict[str, float]], Any]:
    """Mails of which each third has words of its own, and one word of spam that comes with it."""
    rng = np.random.default_rng(seed)
    y, rows = rng.integers(0, 2, n), []
    for i in range(n):
        third = 3 * i // n
        row = {f"w{third}-{int(j)}": 1.0 for j in np.minimum(rng.zipf(1.4, 8), n_words)}
        if rng.random() < (0.6 if y[i] else 0.1):
            row[f"spam{third}"] = 1.0
        rows.append(row)
    return rows, y


BUDGETED = [
    TScore(5), FisherScore(5, half_life=500), Screening(5), Screening(5, redundancy=10), OFS(5), FIRES(5),
    FIRES(5, half_life=300, learning_rate=0.1), MutualInformation(5), ChiSquare(5), GiniIndex(5, half_life=500),
    EFS(5), ForwardPartialCorrelation(5), ForwardPartialCorrelation(5, max_columns=30), ABFS(300, 0.01), DISCUSS(5),
    JointScreening(), FCBF(5),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("selector", BUDGETED, ids=repr)
def test_a_budget_of_names_keeps_what_is_selected(selector: Any) -> None:
    rows, y = words()
    model, found = ByName(selector, budget=60), set()
    for start in range(0, len(rows), 50):
        before = model.selected_ if start else []
        model.partial_fit(rows[start : start + 50], y[start : start + 50], classes=[0, 1])
        names = model.feature_names_
        assert len(set(names)) == len(names) <= 60
        assert model.estimator_.n_features_in_ <= 60
        assert start < 100 or set(before) <= set(names)
        found |= set(model.selected_)
    assert {"spam0", "spam1", "spam2"} <= found
    assert model.n_evicted_ > 20
    assert model.n_passed_over_ > 0
    for place, name in enumerate(model.feature_names_):
        assert model._places[name] == place
    loaded, twin = tamis.loads(tamis.dumps(model)), copy.deepcopy(model)
    for one in (loaded, twin):
        one.partial_fit(rows[:50], y[:50])
    assert loaded.scores_.tobytes() == twin.scores_.tobytes()
    assert loaded.feature_names_ == twin.feature_names_


SUMS = [
    TScore(5), FisherScore(5, half_life=300), MutualInformation(5), ChiSquare(5, half_life=300), GiniIndex(5),
    Screening(5, redundancy=10), FCBF(5, threshold=0.0), DISCUSS(5, window=100, alpha_drift=None, threshold=0.01),
    DISCUSS(5, window=100, alpha_drift=None, threshold=0.01, cuts="range", categorical="all"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("selector", SUMS, ids=repr)
def test_a_place_that_is_given_away_knows_nothing_of_who_had_it(selector: Any) -> None:
    """The scores are those of rows in which each name counts since it came in last, and is 0 before."""
    rows, y = words(1500)
    model, tenants, cells = ByName(selector, budget=60), [], []
    for start in range(0, len(rows), 50):
        model.partial_fit(rows[start : start + 50], y[start : start + 50], classes=[0, 1])
        now = model.feature_names_
        gone = {place for place, name in enumerate(tenants) if name != now[place]}
        cells = [cell for cell in cells if cell[1] not in gone]
        tenants = now
        places = {name: place for place, name in enumerate(now)}
        cells += [
            (i, places[name], 1.0) for i in range(start, start + 50) for name in rows[i] if name in places
        ]
    assert model.n_evicted_ > 20
    i, j, values = zip(*cells, strict=True)
    X, wide = sp.csr_matrix((values, (i, j)), shape=(1500, 60)), copy.deepcopy(selector)
    for start in range(0, 1500, 50):
        wide.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1])
    if isinstance(selector, BinScreener) and selector.half_life:  # sums of faded weights in another order
        np.testing.assert_allclose(model.scores_, wide.scores_, rtol=1e-9)
    else:
        assert model.scores_.tobytes() == wide.scores_.tobytes()
    if isinstance(selector, BinScreener):
        found, wanted = (one.pvalues_ for one in (model.estimator_, wide))  # type: ignore[attr-defined]
        assert (found is None) == (wanted is None)
        if found is not None:  # GiniIndex has none
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
        first, whole = (one._bins._exact._first for one in (model.estimator_, wide))  # type: ignore[attr-defined]
        np.testing.assert_allclose(first, whole, rtol=1e-9)
    if not isinstance(selector, DISCUSS):  # it has selected by what it knew then
        assert model.get_support().tolist() == wide.get_support().tolist()


def test_names_that_come_back_and_names_for_which_there_is_no_place() -> None:
    def batch(name: str) -> list[dict[str, float]]:
        return [{"good": float(i % 2), name: 1.0} for i in range(10)]

    y = np.arange(10) % 2
    model = ByName(FisherScore(1), budget=2).partial_fit(batch("first"), y)
    for _ in range(8):
        model.partial_fit(batch("second"), y)
    assert (model.feature_names_, model.n_evicted_, model.n_passed_over_) == (["good", "first"], 0, 8)
    for _ in range(12):
        model.partial_fit(batch("second"), y)
    assert (model.feature_names_, model.n_evicted_) == (["good", "second"], 1)
    for _ in range(12):
        model.partial_fit(batch("first"), y)
    assert (model.feature_names_, model.n_evicted_) == (["good", "first"], 2)
    assert model.selected_ == ["good"]
    before = tamis.dumps(model)
    with pytest.raises(DataError, match="infinity in column 'good' of row 1"):
        model.partial_fit([{"third": 1.0}, {"good": np.inf}], [0, 1])
    with pytest.raises(DataError, match="inconsistent"):
        model.partial_fit(batch("third"), y[:-1])
    assert tamis.dumps(model) == before


@pytest.mark.parametrize(
    "selector",
    [MutualInformation(2, categorical=[0]), TScore(None, level=0.1), ABFS(categorical="all")],
    ids=repr,
)
def test_who_cannot_forget_has_no_budget(selector: Any) -> None:
    with pytest.raises(
        ValueError, match="cannot forget single columns: omit budget, or level, restarts and categorical"
    ):
        ByName(selector, budget=5).fit([{"a": 1.0}, {"b": 2.0}], [0, 1])
    with pytest.raises(ValueError, match="cannot forget single columns"):
        copy.deepcopy(selector).fit(sp.csr_matrix(np.eye(4)), [0, 1, 0, 1]).forget_columns([1])


def with_and_without(selector: Any, learn: int = 3) -> tuple[Any, Any, Any]:
    """A selector that forgets column 3, one that never saw it, and further rows for both."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 8)).round(1), rng.integers(0, 2, 900)
    X[:, 3] += y
    X[:, 5] += 0.5 * y
    parts = np.split(np.arange(900), 9)
    mine, other = copy.deepcopy(selector), copy.deepcopy(selector)
    for rows in parts[:learn]:
        mine.partial_fit(X[rows], y[rows], classes=[0, 1])
        other.partial_fit(X[rows] * (np.arange(8) != 3), y[rows], classes=[0, 1])
    mine.forget_columns([3])
    return mine, other, [(X[rows], y[rows]) for rows in parts[learn:]]


@pytest.mark.slow
@pytest.mark.parametrize("learn", [1, 3, 7])
@pytest.mark.parametrize("n_bins", [3, None])
def test_counts_of_pairs_that_are_forgotten_are_those_of_zeros(learn: int, n_bins: int | None) -> None:
    mine, other, later = with_and_without(JointScreening(n_bins, alpha_drift=1e-300), learn)
    assert 3 not in mine.selected_
    assert mine.scores_[3] == 0.0
    for X, y in [(np.zeros((0, 8)), []), *later]:
        if len(y):
            mine.partial_fit(X, y)
            other.partial_fit(X, y)
        for ours, theirs in zip(mine._arrays, other._arrays, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert mine.scores_.tobytes() == other.scores_.tobytes()
    assert 3 in mine.selected_ or learn == 7


@pytest.mark.parametrize("options", [{}, {"max_columns": 5}, {"n_features_to_select": None}], ids=repr)
def test_forward_selection_forgets(options: dict[str, Any]) -> None:
    mine, other, later = with_and_without(ForwardPartialCorrelation(**{"n_features_to_select": 2, **options}))
    assert 3 not in mine.get_support(indices=True)
    for X, y in later:
        mine.partial_fit(X, y)
        other.partial_fit(X, y)
    if "max_columns" in options:  # which columns are in the matrix depends on what was known then
        np.testing.assert_allclose(mine._marginals.covariance, other._marginals.covariance, atol=1e-9)
    else:
        np.testing.assert_allclose(mine._scatter.covariance(), other._scatter.covariance(), atol=1e-9)
        np.testing.assert_allclose(mine.scores_, other.scores_, rtol=1e-6, atol=1e-9)
    assert 3 in mine.get_support(indices=True)


@pytest.mark.parametrize("options", [{}, {"cuts": "range"}], ids=repr)
@pytest.mark.parametrize("rows", [20, 300])
def test_stumps_forget(options: dict[str, Any], rows: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 5)), rng.integers(0, 2, 500)
    mine, other = ABFS(5000, **options).fit(X[:rows], y[:rows]), ABFS(5000, **options)
    other.fit(X[:rows] * (np.arange(5) != 2), y[:rows])
    mine.forget_columns([2])
    assert mine.scores_.tobytes() == other.scores_.tobytes()
    mine.partial_fit(X[rows:], y[rows:])
    other.partial_fit(X[rows:], y[rows:])
    assert mine.scores_.tobytes() == other.scores_.tobytes()
    chosen = ABFS(100, 0.01).fit(np.c_[y + 0.1 * X[:, 0], X], y)
    assert 0 in chosen.selected_
    assert 0 not in chosen.forget_columns([0]).selected_


def test_a_sketch_forgets_a_column_and_keeps_the_directions_of_the_others() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 40))  # of rank 3: nothing is lost of it
    y, without = rng.integers(0, 2, 1000), X * (np.arange(40) != 7)
    mine, other = FSDS(5, sketch_size=8).fit(X, y), FSDS(5, sketch_size=8).fit(without, y)
    np.testing.assert_allclose(mine.forget_columns([7]).scores_, other.scores_, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(
        mine.partial_fit(X[:150], y[:150]).scores_, other.partial_fit(X[:150], y[:150]).scores_, rtol=1e-6
    )


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_a_winnow_that_forgets_begins_anew(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 6)), rng.integers(0, n_classes, 300)
    model, fresh = EFS(2).fit(X, y), EFS(2).partial_fit(np.zeros((300, 6)), y)
    before = model._positive.copy()
    model.forget_columns([4])
    assert model._positive[:, 4].tolist() == fresh._positive[:, 4].tolist()
    assert model._negative[:, 4].tolist() == fresh._negative[:, 4].tolist()
    assert np.delete(model._positive, 4, axis=1).tolist() == np.delete(before, 4, axis=1).tolist()


def test_thinned_points_that_are_forgotten() -> None:
    """Of many values only some are kept; a column that is forgotten leaves the others as they are."""
    rng = np.random.default_rng(0)
    X, y = sp.csr_matrix(rng.normal(size=(12000, 4))), rng.integers(0, 2, 12000)
    model = MutualInformation(2, eps=0.05).fit(X, y)
    assert any(points.levels.n_slots == 4 for points in model._bins._quantiles._points)
    before = model.scores_
    model.forget_columns([1])
    assert model.scores_[1] == 0.0
    assert np.delete(model.scores_, 1).tobytes() == np.delete(before, 1).tobytes()
    later = MutualInformation(2, eps=0.05).fit(X.multiply(np.arange(4) != 1).tocsr(), y)
    for one in (model, later):
        one.partial_fit(X, y)
    np.testing.assert_allclose(model.scores_, later.scores_, atol=0.01)
    loaded = tamis.loads(tamis.dumps(model))
    assert loaded.scores_.tobytes() == model.scores_.tobytes()


def test_columns_that_are_forgotten() -> None:
    with pytest.raises(ValueError, match="columns must be from 0 to 3, got"):
        OFS(2).fit(np.eye(4), [0, 1, 0, 1]).forget_columns([4])
    with pytest.raises(ValueError, match="Dense rows have a fixed number of columns"):
        TScore(2).fit(np.eye(4), [0, 1, 0, 1]).forget_columns([0])
    with pytest.raises(ValueError, match="cannot be combined with max_columns"):
        ByName(OFS(2), budget=5, max_columns=7).fit([{"a": 1.0}, {"b": 2.0}], [0, 1])
    selector = OFS(3).fit(np.eye(4), [0, 1, 0, 1])
    before = selector.scores_
    selector.forget_columns([1, 1])
    assert selector.scores_[1] == 0.0 != before[1]
    assert np.delete(selector.scores_, 1).tolist() == np.delete(before, 1).tolist()


def test_missing_is_what_was_never_seen() -> None:
    rows, y = named_rows(200, 10)
    y %= 2
    names = fixed(rows)[1]
    X = np.full((200, 12), np.nan)
    for i, row in enumerate(rows):
        for name, value in row.items():
            X[i, names.index(name)] = value
    for selector in (FisherScore(3), MutualInformation(3)):
        model = ByName(selector, absent="missing", max_columns=12)
        for start in range(0, 200, 40):
            model.partial_fit(rows[start : start + 40], y[start : start + 40])
        wide = copy.deepcopy(selector).fit(X, y)
        np.testing.assert_allclose(model.scores_, wide.scores_[: len(names)], rtol=1e-9)
        zero = ByName(selector).fit(rows, y)
        assert not np.allclose(zero.scores_, model.scores_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_zero_in_a_frame_is_not_missing(frame: Any) -> None:
    X = np.random.default_rng(0).integers(0, 3, size=(300, 3)).astype(float)
    X[::7, 1] = np.nan
    y = X[:, 0] > 0.0
    rows = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
    for model in (
        ByName(TScore(1), absent="missing", max_columns=4),
        ByName(StreamPipeline(TScore(2), WeightedNaiveBayes()), absent="missing"),
    ):
        named, framed = clone(model).partial_fit(rows, y), clone(model).partial_fit(frame(rows), y)
        assert framed.scores_.tobytes() == named.scores_.tobytes()
        if hasattr(model, "predict"):
            assert (framed.predict(frame(rows)) == framed.predict(rows)).all()


def test_values_of_unknown_names_do_not_matter() -> None:
    rows, y = named_rows(50, 8)
    model = ByName(StreamPipeline(FIRES(2), Perceptron())).fit(rows, y % 2)
    known = [dict(row) for row in rows[:5]]
    others = [row | {"text": "blue", "many": [1, 2], "none": None, "huge": 10**400} for row in known]
    assert (model.predict(others) == model.predict(known)).all()
    frame = pd.DataFrame(fixed(rows)[0].toarray(), columns=fixed(rows)[1])
    assert (model.predict(frame.assign(text="blue", when=pd.Timestamp(0))) == model.predict(frame)).all()


def test_none_is_not_named_and_nan_is_missing() -> None:
    rows, y = [{"a": 1.0, "b": None}, {"a": None, "b": 2.0}, {"a": 3, "b": True}], [0, 1, 1]
    without = [{name: value for name, value in row.items() if value is not None} for row in rows]
    one, other = ByName(TScore(1)).fit(rows, y), ByName(TScore(1)).fit(without, y)
    assert one.scores_.tobytes() == other.scores_.tobytes()
    gaps = ByName(TScore(1)).fit([{"a": np.nan, "b": 1.0}, {"a": 2.0}, {"b": 2.0}], y)
    assert gaps.estimator_.n_observed_[:2].tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([{"a": 1.0, "b": "red"}], "Column 'b' contains 'red', which is text"),
        ([{"a": 1.0, "b": "3"}], "Column 'b' contains '3', which is text"),
        ([{"a": np.inf}], "infinity in column 'a' of row 0"),
        ([{"a": 1.0}, {"a": 1.0, "c": -np.inf}], "infinity in column 'c' of row 1"),
        (["a"], r"X must be a list of dicts, a frame or \(CSR matrix, names\), got \['a'\]"),
        (np.ones((1, 2)), "X must be a list of dicts"),
        ((sp.csr_matrix(np.eye(2)), ["a"]), "X has 2 columns and 1 distinct names"),
        ((sp.csr_matrix(np.eye(2)), ["a", "a"]), "X has 2 columns and 1 distinct names"),
        ([{"a": 10**400}], "Column 'a' contains an integer"),
    ],
)
def test_rows_that_cannot_be_learned_leave_all_as_it_was(X: Any, words: str) -> None:
    rows, y = named_rows(50, 8)
    for model in (ByName(FIRES(2)), ByName(FIRES(2)).fit(rows, y), ByName(Auto()).fit(rows, y)):
        before = tamis.dumps(model)
        with pytest.raises(DataError, match=words):
            model.partial_fit(X, [0] * (len(X) if isinstance(X, list) else 2))
        with pytest.raises(DataError, match="inconsistent numbers of samples"):
            model.partial_fit([{"new": 1.0}], [0, 1])
        assert tamis.dumps(model) == before


class OfFixedWidth(TScore):
    """A selector that says nothing of growing."""

    _widen = RowSelector._widen


def test_what_does_not_go_together_is_refused() -> None:
    rows, y = named_rows(50, 8)
    with pytest.raises(ValueError, match="absent='missing', but OFS does not support missing values"):
        ByName(tamis.OFS(2), absent="missing", max_columns=9).fit(rows, y)
    with pytest.raises(ValueError, match="absent='missing' needs max_columns"):
        ByName(TScore(2), absent="missing").fit(rows, y)
    model = ByName(OfFixedWidth()).fit(rows[:20], y[:20])
    with pytest.raises(
        DataError, match=r"1 columns are new, but OfFixedWidth cannot grow: reserve room .* max_columns="
    ):
        model.partial_fit([{"new": 1.0}], [0])
    for wrong, words in ((3, "estimator must be a row selector"), (ByName(OFS()), "estimator must be")):
        with pytest.raises(ValueError, match=words):
            ByName(wrong).fit(rows, y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="OfFixedWidth has a fixed number of columns"):
        OfFixedWidth().fit(np.eye(4), [0, 1, 0, 1]).widen(9)


def test_more_wanted_than_there_are_names_keeps_all() -> None:
    model = ByName(OFS(10)).partial_fit([{"a": 1.0}, {"b": -1.0}], [0, 1])
    assert model.selected_ == ["a", "b"]
    fraction = ByName(FisherScore(0.5)).partial_fit(
        [{"a": 1.0, "b": 0.0}, {"b": 1.0, "c": 3.0, "d": 0.0}], [0, 1]
    )
    assert len(fraction.selected_) == 2


@pytest.mark.slow
def test_growing_over_the_words_of_real_mail_gives_the_bits_of_the_fixed_width(load_shared: Any) -> None:
    X, y, _ = load_shared("spam_corpus")
    X, y = sp.csr_matrix(X[:600]), y[:600]
    used = dict.fromkeys(X.indices.tolist())
    words = [f"w{j}" for j in used]
    X = X[:, list(used)]
    X.sort_indices()
    for selector in (FIRES(50, learning_rate=0.1, scaling=None), OFS(50), TScore(50), MutualInformation(50)):
        grown, wide = ByName(selector), copy.deepcopy(selector)
        for start in range(0, 600, 100):
            part = X[start : start + 100]
            rows = [
                dict(zip([words[j] for j in row.indices], row.data.tolist(), strict=True)) for row in part
            ]
            grown.partial_fit(rows, y[start : start + 100], classes=[0, 1])
            wide.partial_fit(part, y[start : start + 100], classes=[0, 1])
        assert grown.scores_.tobytes() == wide.scores_.tobytes()
        assert grown.get_support().tolist() == wide.get_support().tolist()


def test_rows_alike_are_the_rows_that_they_are_one_by_one() -> None:
    """Rows of the same names, in any order, take a shorter way; a row that lacks a value makes them take the other."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 7)).round(3), rng.integers(0, 2, 60)
    names = [f"x{j}" for j in rng.permutation(7)]
    alike = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    turned = [dict(reversed(row.items())) if i % 2 else row for i, row in enumerate(alike)]
    for selector in (TScore(3), FIRES(3), OFS(3, random_state=0)):
        one, other, longer = (ByName(copy.deepcopy(selector)) for _ in range(3))
        for start in (0, 20, 40):
            part = slice(start, start + 20)
            one.partial_fit(alike[part], y[part])
            longer.partial_fit([*turned[start : start + 19], {**turned[start + 19], "none": None}], y[part])
            other.partial_fit(turned[part], y[part])
        assert one.scores_.tobytes() == longer.scores_.tobytes()
        assert one.feature_names_ == other.feature_names_ == names
        assert one.scores_.tobytes() == other.scores_.tobytes()
    with pytest.raises(DataError, match="infinity in column 'x5' of row 1"):
        ByName(FIRES(3)).fit([alike[0], {**alike[1], "x5": np.inf}], [0, 1])


@pytest.mark.parametrize("selector", [FIRES(2), OFS(2)], ids=lambda one: type(one).__name__)
def test_endless_names_take_no_more_memory(selector: Any) -> None:
    rng, model, sizes = np.random.default_rng(0), ByName(selector, budget=40), []
    tracemalloc.start()
    try:
        for i in range(400):
            y = rng.integers(0, 2, 10)
            rows = [
                {"a": float(label), **{f"user {i} {k} {j}": 1.0 for j in range(3)}}
                for k, label in enumerate(y)
            ]
            model.partial_fit(rows, y, classes=[0, 1])
            if i in (199, 399):
                del rows
                gc.collect()
                sizes.append((len(tamis.dumps(model)), tracemalloc.get_traced_memory()[0]))
    finally:
        tracemalloc.stop()
    (state, memory), (later_state, later_memory) = sizes
    assert "a" in model.selected_
    assert later_state < 1.02 * state
    assert (
        later_memory - memory < 60_000
    )  # 6,000 names of 60 bytes and their places would take half a megabyte


def test_many_names_without_a_budget_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.pipeline.by_name._MANY", 6)
    model = ByName(FisherScore(1)).partial_fit([{"a": 1.0, "b": 0.0}, {"c": 1.0}], [0, 1])
    with pytest.warns(UserWarning, match="have named 7 features.*pass budget"):
        model.partial_fit([dict.fromkeys("defg", 1.0)], [1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit([{"h": 1.0}], [0])  # once
        ByName(FisherScore(1), budget=3).partial_fit([dict.fromkeys("abcdefgh", 1.0)], [0])
        ByName(FisherScore(1), max_columns=9).partial_fit([dict.fromkeys("abcdefgh", 1.0)], [0])
