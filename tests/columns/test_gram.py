"""Rows and columns both arrive: figures are those of regressions on the rows that count, at any time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.exceptions import NotFittedError

from tamis import AlphaInvesting, GramInvesting, load, save
from tamis.columns.gram import sweep
from tamis.errors import DataError
from tests.twins import block_test as twin
from tests.twins.alpha_investing import last_p_value


def day(rng, n=50, *, without=(), effect=1.0):
    rows = {name: rng.normal(loc=5.0, size=n) for name in ("noise", "a", "b", "more")}
    y = 3.0 + 2.0 * rows["a"] - effect * rows["b"] + rng.normal(size=n)
    return {name: column for name, column in rows.items() if name not in without}, y


def stacked(days):
    return {name: np.concatenate([rows[name] for rows, _ in days]) for name in days[0][0]}, np.concatenate(
        [y for _, y in days]
    )


def test_first_trial_decides_as_alpha_investing(rng):
    X = rng.normal(size=(80, 40)) + 10.0
    y = X[:, 7] - X[:, 30] + rng.normal(size=80)
    X[:, 9] = X[:, 7]
    selector = GramInvesting(trial_rows=80, release=None)
    for part in np.split(np.arange(80), 4):
        selector.partial_fit({f"x{j}": X[part, j] for j in range(40)}, y[part])
    batch = AlphaInvesting().fit(X, y)
    assert selector.selected_ == batch.selected_
    tested = batch.trace_["decision"] != "collinear"
    np.testing.assert_allclose(selector.trace_["p_value"][tested], batch.trace_["p_value"][tested], rtol=1e-9)
    assert selector.trace_["decision"].tolist() == batch.trace_["decision"].tolist()


def test_yesterdays_feature_is_tested_on_todays_rows(rng):
    """After b is accepted the model rests on the rows since b came; every figure is a regression's on these."""
    days = [day(rng, without=("b",)) for _ in range(4)] + [day(rng) for _ in range(6)]
    selector = GramInvesting(trial_rows=100, target_fdr=0.05)
    for i, (rows, y) in enumerate(days):
        selector.partial_fit(rows, y)
        if i == 3:
            assert selector.selected_ == ["a"]
            known, target = stacked(days[:4])
            assert selector.p_values_["a"] == pytest.approx(last_p_value([known["a"]], target), rel=1e-7)
    assert selector.selected_ == ["a", "b"]
    assert selector.n_rows_ == 300
    assert selector.n_seen_ == 500
    known, target = stacked(days[4:])
    design = np.column_stack([np.ones(300), known["a"], known["b"]])
    beta = np.linalg.lstsq(design, target, rcond=None)[0]
    assert selector.coef_ == pytest.approx({"a": beta[1], "b": beta[2]}, rel=1e-9)
    assert selector.intercept_ == pytest.approx(beta[0], rel=1e-9)
    np.testing.assert_allclose(selector.predict(known), design @ beta, rtol=1e-9)


def test_p_values_are_those_of_a_full_fit(rng):
    rows = rng.normal(size=(60, 2)) + 100.0
    y = rows[:, 0] + rows[:, 1] + rng.normal(size=60)
    selector = GramInvesting(trial_rows=60, release=None).partial_fit({"u": rows[:, 0], "v": rows[:, 1]}, y)
    assert selector.selected_ == ["u", "v"]
    assert selector.p_values_["v"] == pytest.approx(last_p_value([rows[:, 0], rows[:, 1]], y), rel=1e-8)
    assert selector.p_values_["u"] == pytest.approx(last_p_value([rows[:, 1], rows[:, 0]], y), rel=1e-8)


def test_what_no_longer_matters_is_let_go_and_not_tried_again(rng):
    selector = GramInvesting(trial_rows=100, half_life=100, target_fdr=0.05)
    for _ in range(4):
        selector.partial_fit(*day(rng))
    assert {"a", "b"} <= set(selector.selected_)
    for _ in range(40):
        selector.partial_fit(*day(rng, effect=0.0))
    assert "a" in selector.selected_
    assert "b" not in selector.selected_
    record = selector.trace_[selector.trace_["name"] == "b"]
    assert record["decision"].tolist() == ["accepted", "released"]
    assert record["p_value"][1] > 0.05
    selector.partial_fit(*day(rng, without=("b",)))
    for _ in range(3):
        selector.partial_fit(*day(rng))  # it was away, so it is tried again
    assert selector.selected_.count("b") == 1


def test_a_column_that_vanishes_is_withdrawn_without_a_test(rng):
    selector = GramInvesting(trial_rows=100)
    selector.partial_fit(*day(rng))
    selector.partial_fit(*day(rng, without=("more",)))
    assert "more" not in selector.trace_["name"]
    assert {"noise", "a", "b"} == set(selector.trace_["name"])


def test_memory_is_that_of_the_matrix_and_copies_go_on(rng, tmp_path):
    selector = GramInvesting(target_fdr=0.1)
    for _ in range(3):
        selector.partial_fit(*day(rng))
    small = len(pickle.dumps(selector))
    for _ in range(20):
        selector.partial_fit(*day(rng))
    assert len(pickle.dumps(selector)) < small + 500
    copied = load(save(selector, tmp_path / "gram.tamis"))
    rows, y = day(rng)
    assert copied.partial_fit(rows, y).p_values_ == selector.partial_fit(rows, y).p_values_


def test_refusals_leave_everything_as_it_was(rng):
    selector = GramInvesting(trial_rows=50).partial_fit(*day(rng))
    assert "a" in selector.selected_
    before = (selector.p_values_, selector.trace_.tolist(), selector.n_seen_)
    rows, y = day(rng)
    refusals = {
        "no column 'a', which is selected": ({k: v for k, v in rows.items() if k != "a"}, y),
        "infinity in column 'b'": ({**rows, "b": rows["b"] * np.inf}, y),
        "NaN in column 'b'": ({**rows, "b": rows["b"] * np.nan}, y),
        "Column 'b' has shape": ({**rows, "b": rows["b"][1:]}, y),
        "inconsistent numbers of samples": (rows, y[1:]),
        "Column 'b' has values up to .*e-200; their squares": ({**rows, "b": rows["b"] * 1e-200}, y),
        "Column 'b' has values up to .*e.160; their squares": ({**rows, "b": rows["b"] * 1e160}, y),
        "no columns": ({}, y),
        "is missing": (rows, y * np.nan),
    }
    for message, batch in refusals.items():
        with pytest.raises(DataError, match=message):
            selector.partial_fit(*batch)
        assert (selector.p_values_, selector.trace_.tolist(), selector.n_seen_) == before
    with pytest.raises(TypeError, match="must be a frame or a mapping"):
        selector.partial_fit(np.ones((3, 2)), np.ones(3))
    for parameters in (
        {"trial_rows": 2},
        {"release": 0.0},
        {"half_life": 0},
        {"rule": "none"},
        {"target_fdr": 0},
    ):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            GramInvesting(**parameters).partial_fit(rows, y)
    with pytest.raises(NotFittedError):
        _ = GramInvesting().coef_


def test_frames_are_taken_by_name(rng):
    pandas = pytest.importorskip("pandas")
    rows, y = day(rng, n=100)
    frame = GramInvesting().partial_fit(pandas.DataFrame(rows), y)
    assert frame.selected_ == GramInvesting().partial_fit(rows, y).selected_


def test_sweeping_twice_undoes_it(rng):
    X = rng.normal(size=(20, 4))
    gram = X.T @ X
    swept = gram.copy()
    for k in (0, 2):
        sweep(swept, k)
    np.testing.assert_allclose(
        swept[[0, 2]][:, [0, 2]], np.linalg.inv(gram[np.ix_([0, 2], [0, 2])]), rtol=1e-10
    )
    for k in (2, 0):
        sweep(swept, k)
    np.testing.assert_allclose(swept, gram, rtol=1e-10)


def series(rng, n, n_columns, phi):
    noise = rng.normal(size=(n + 300, n_columns))
    return lfilter([1], [1, -phi], noise, axis=0)[300:] * np.sqrt(1 - phi**2)


def learn(selector, X, y, size=100):
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        selector.partial_fit({f"x{j}": X[rows, j] for j in range(X.shape[1])}, y[rows])
    return selector


def test_series_are_tested_by_the_sums_over_blocks_of_rows(rng):
    """512 rows are 32 blocks of 16, for any batches."""
    X = series(rng, 512, 20, 0.9)
    y = series(rng, 512, 1, 0.9)[:, 0] + X[:, 3] - X[:, 5]
    selector = learn(
        GramInvesting(variance="series", trial_rows=512, release=None, target_fdr=0.3), X, y, 100
    )
    assert selector.selected_ == ["x3", "x5"]
    for j in range(3):
        expected = twin.pvalue_of_blocks((X[:, j] - X[:, j].mean()).tolist(), (y - y.mean()).tolist())
        assert selector.trace_["p_value"][j] == pytest.approx(expected, rel=1e-9)
    design = np.column_stack([np.ones(512), X[:, [3, 5]]])
    slope = np.linalg.lstsq(design, y, rcond=None)[0]
    for k, name in ((1, "x3"), (2, "x5")):
        others = np.delete(design, k, 1)
        z = design[:, k] - others @ np.linalg.lstsq(others, design[:, k], rcond=None)[0]
        residual = y - design @ slope
        expected = twin.pvalue_of_blocks(z.tolist(), (residual + slope[k] * z).tolist(), residual.tolist())
        assert selector.p_values_[name] == pytest.approx(expected, rel=1e-9)


def test_unrelated_series_are_rejected_and_a_related_one_is_found():
    accepted, plain = 0, 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = series(rng, 1000, 60, 0.9), series(rng, 1000, 1, 0.9)[:, 0]
        selector = learn(GramInvesting(target_fdr=0.1), X, y)
        assert selector.rows_dependent_
        accepted += (selector.trace_["decision"] == "accepted").sum()
        classical = learn(GramInvesting(target_fdr=0.1, variance="classical"), X, y)
        plain += (classical.trace_["decision"] == "accepted").sum()
        assert "x7" in learn(GramInvesting(target_fdr=0.1), X, y + 2.0 * X[:, 7]).selected_
    assert accepted == 0
    assert plain >= 9


def test_where_few_regimes_were_seen_no_unrelated_column_is_relevant():
    n, found, rng = 6000, [], np.random.default_rng(1000)

    def regimes():
        starts = rng.random(n) < 1.0 / 3000.0
        return rng.normal(size=n + 1)[np.cumsum(starts)] + rng.normal(size=n)

    for _ in range(30):
        columns, y = {f"x{j}": regimes() for j in range(10)}, (regimes() > 0.0).astype(float)
        selector = GramInvesting(target_fdr=0.05, release=None, variance="series", trial_rows=n)
        for start in range(0, n, 1000):
            rows = slice(start, start + 1000)
            selector.partial_fit({name: x[rows] for name, x in columns.items()}, y[rows])
        found += [one["p_value"] for one in selector.trace_]
    assert sum(p < 0.01 for p in found) <= 6  # of 300 columns; 15 if the memory is always known


def test_rows_before_dependence_was_found_are_one_block(rng):
    X = series(rng, 400, 3, 0.9)
    selector = learn(GramInvesting(variance="series", trial_rows=400, release=None), X, X[:, 0] + X[:, 1])
    later = learn(GramInvesting(trial_rows=100, release=None, variance="auto"), X[:100], X[:100, 1])
    assert later.rows_dependent_
    assert not len(later.trace_)  # 100 rows are too few: the trial continues
    learn(later, X[100:200], X[100:200, 1])
    gram = later._trial
    assert gram.block_squares[0] >= 100.0
    assert gram.length < 16
    np.testing.assert_allclose(gram.blocks.sum(axis=0), gram.matrix, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(selector._main.blocks.sum(axis=0), selector._main.matrix, rtol=1e-9, atol=1e-9)


def test_blocks_fade_with_the_rows_and_are_saved(rng, tmp_path):
    X = series(rng, 3000, 4, 0.8)
    y = X[:, 1] + series(rng, 3000, 1, 0.8)[:, 0]
    selector = learn(GramInvesting(variance="series", half_life=150, target_fdr=0.1), X, y)
    assert "x1" in selector.selected_
    gram = selector._main
    np.testing.assert_allclose(gram.blocks.sum(axis=0), gram.matrix, rtol=1e-9, atol=1e-9)
    assert gram.block_squares.sum() == pytest.approx(gram.square)
    assert gram.length == 32  # 128 for rows that do not fade
    copied = load(save(selector, tmp_path / "gram.tamis"))
    one, other = learn(copied, X[:50], y[:50]), learn(selector, X[:50], y[:50])
    assert one.p_values_ == other.p_values_
