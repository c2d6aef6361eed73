"""Refit equals its definition, resumes bit by bit, and passes on what estimators support."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

import tamis
from tamis import FIRES, Refit, StreamPipeline, prequential, run_experiment
from tamis.drift import ADWIN
from tamis.errors import CheckpointError, DataError
from tamis.learners.refit.fit import NAMES, Block, RecentRows, with_categories
from tests.twins.refit import refit


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.normal(size=(900, 4))
    return X, np.where(X[:, 0] * X[:, 2] > 0, "same", "other")


def learned(model: Any, X: Any, y: Any, size: int = 50, **more: Any) -> Any:
    for at in range(0, len(y), size):
        model.partial_fit(X[at : at + size], y[at : at + size], **more)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 100, 640])
def test_equals_its_twin(size: int, data: tuple[Any, Any]) -> None:
    X, y = data
    expected = refit(X, y, lambda: DecisionTreeClassifier(random_state=0), 150, 320, 60)
    model = Refit(DecisionTreeClassifier(), every=150, window=320, min_rows=60)
    for at in range(0, len(y), size):
        stop = min(at + size, len(y))
        if hasattr(model, "n_seen_") and model.n_fits_:
            assert (
                model.predict(X[at : at + 1])[0] == expected[at]
            )  # within a batch the twin alone is refitted
        model.partial_fit(X[at:stop], y[at:stop])
    assert model.fitted_at_ == 840
    assert (
        model.predict(X[-1:])[0]
        == refit(
            np.vstack([X, X[-1:]]),
            np.append(y, y[-1]),
            lambda: DecisionTreeClassifier(random_state=0),
            150,
            320,
            60,
        )[-1]
    )


def test_selected_columns_are_those_of_the_fit(data: tuple[Any, Any]) -> None:
    X, y = data
    columns = [[0, 2] if i < 400 else [1, 2, 3] for i in range(900)]
    expected = refit(X, y, lambda: DecisionTreeClassifier(random_state=0), 150, 320, 60, columns)
    model = Refit(DecisionTreeClassifier(), every=150, window=320, min_rows=60)
    for i in range(900):
        if expected[i] is not None:
            assert model.predict(X[i : i + 1])[0] == expected[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1], columns=columns[i])
    assert model.columns_.tolist() == [1, 2, 3]


def test_a_change_of_the_columns_refits_if_asked(data: tuple[Any, Any]) -> None:
    X, y = data
    model = Refit(DecisionTreeClassifier(), on_change=True, every=500, min_rows=60)
    learned(model, X[:300], y[:300], columns=[0, 2])
    before = model.n_fits_
    model.partial_fit(X[300:310], y[300:310], columns=[0, 2])
    assert model.n_fits_ == before
    model.partial_fit(X[310:320], y[310:320], columns=[0, 1])
    assert (model.n_fits_, model.fitted_at_, model.columns_.tolist()) == (before + 1, 320, [0, 1])


def estimators() -> dict[str, Any]:
    found = {name: name for name in NAMES if not name.endswith("regressor")}
    found |= {
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(5),
    }
    return found


def skip_without(name: str) -> None:
    if "lightgbm" in name:
        pytest.importorskip("lightgbm")


@pytest.mark.slow
@pytest.mark.parametrize("name", estimators())
def test_a_loaded_model_continues_bit_by_bit(name: str, data: tuple[Any, Any]) -> None:
    skip_without(name)
    X, y = data
    model = Refit(estimators()[name], every=200, window=300, min_rows=60, on_drift="adwin")
    learned(model, X[:500], y[:500])
    state = tamis.dumps(model)
    loaded = tamis.loads(state)
    assert tamis.dumps(loaded) == state
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()
    for one in (model, loaded):
        learned(one, X[500:], y[500:])
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_estimators_of_boosting_libraries_are_saved_unfitted(library: str, data: tuple[Any, Any]) -> None:
    module = pytest.importorskip(library)
    X, y = data
    given = (
        module.LGBMClassifier(n_estimators=5, verbose=-1, deterministic=True, force_col_wise=True)
        if library == "lightgbm"
        else module.XGBClassifier(n_estimators=5, n_jobs=1)
    )
    model = learned(Refit(given, every=200, window=300, min_rows=60), X, y)
    loaded = tamis.loads(tamis.dumps(model))
    assert type(loaded.estimator) is type(given)
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()


def test_a_forged_file_is_refused(data: tuple[Any, Any]) -> None:
    model = learned(Refit(DecisionTreeClassifier(), min_rows=60), *data)
    for change in (
        lambda one: setattr(one._rows_, "n_rows", 10**6),
        lambda one: setattr(one._rows_, "blocks", (((np.zeros((3, 9)), np.zeros(3, np.int64), None)),)),
        lambda one: setattr(one._fit_, "columns", np.array([0, 99])),
        lambda one: setattr(one, "_totals_", np.zeros(5)),
    ):
        forged = copy.deepcopy(model)
        change(forged)
        with pytest.raises(CheckpointError, match="was changed from outside"):
            tamis.loads(tamis.dumps(forged))


def test_a_copy_is_independent(data: tuple[Any, Any]) -> None:
    X, y = data
    model = learned(
        Refit(DecisionTreeClassifier(), every=100, min_rows=60, on_drift=ADWIN()), X[:450], y[:450]
    )
    state = tamis.dumps(model)
    twin = copy.deepcopy(model)
    assert twin.estimator_ is model.estimator_  # never fitted again
    learned(twin, X[450:], y[450:])
    assert tamis.dumps(model) == state != tamis.dumps(twin)


def test_a_rejected_batch_leaves_the_model_unchanged(data: tuple[Any, Any]) -> None:
    X, y = data
    model = learned(Refit(LogisticRegression(), every=100, min_rows=60, on_drift="adwin"), X[:450], y[:450])
    state = tamis.dumps(model)
    gap = X[450:].copy()
    gap[3, 1] = np.nan
    with pytest.raises(DataError, match="contains NaN in column 1 of row 3"):
        model.partial_fit(gap, y[450:])
    with pytest.raises(DataError, match="is missing"):
        model.partial_fit(X[450:452], np.array(["same", None], dtype=object))
    with pytest.raises(DataError, match="4 features"):
        model.partial_fit(X[450:, :2], y[450:])
    with pytest.raises(DataError, match="infinity"):
        Refit(DecisionTreeClassifier(), dtype="float32").partial_fit(X * 1e300, y)
    with pytest.raises(DataError, match=r"Pipeline\.fit has no parameter sample_weight"):
        Refit(make_pipeline(LogisticRegression())).partial_fit(X, y, sample_weight=np.ones(900))
    assert tamis.dumps(model) == state


def test_an_estimator_that_fails_leaves_the_model_unchanged(data: tuple[Any, Any]) -> None:
    X, y = data
    model = Refit(RandomForestClassifier(5, max_features=0.5), every=100, min_rows=60)
    learned(model, X[:450], y[:450])
    state = tamis.dumps(model)
    model.set_params(estimator=RandomForestClassifier(5, max_features=-3))
    with pytest.raises(DataError, match="RandomForestClassifier cannot be fitted on the last 520 rows: "):
        model.partial_fit(X[450:530], y[450:530])
    model.set_params(estimator=RandomForestClassifier(5, max_features=0.5))
    assert len(tamis.dumps(model)) == len(state)
    assert model.n_seen_ == 450


def test_before_the_first_fit_the_majority_and_the_mean_are_predicted(data: tuple[Any, Any]) -> None:
    X, _ = data
    model = Refit(DecisionTreeClassifier()).partial_fit(X[:5], ["a", "b", "b", "c", "b"])
    assert model.predict(X[:2]).tolist() == ["b", "b"]
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[0.2, 0.6, 0.2]])
    assert Refit(LinearRegression()).partial_fit(X[:4], [1.0, 2.0, 3.0, 6.0]).predict(X[:1]) == 3.0
    with pytest.raises(AttributeError, match="before its first fit"):
        _ = model.estimator_


def test_a_window_of_one_class_predicts_it(data: tuple[Any, Any]) -> None:
    X, y = data
    model = learned(Refit(DecisionTreeClassifier(), every=50, window=60, min_rows=50), X[:300], y[:300])
    learned(model, X[:100], np.repeat("same", 100))
    assert model.estimator_ is None
    assert set(model.predict(X)) == {"same"}
    assert model.predict_proba(X[:1])[0, model.classes_.tolist().index("same")] == 1.0


def test_numbers_are_predicted(data: tuple[Any, Any]) -> None:
    X, _ = data
    y = X[:, 0] * X[:, 2]
    expected = refit(X, y, lambda: DecisionTreeRegressor(random_state=0), 150, 320, 60)
    model = learned(Refit(DecisionTreeRegressor(), every=150, window=320, min_rows=60), X[:899], y[:899], 1)
    assert model.predict(X[899:])[0] == expected[899]
    assert is_regressor(model)
    assert not is_classifier(model)
    drifting = np.where(np.arange(900) < 600, y, 50 + y)
    model = learned(Refit(RandomForestRegressor(5), min_rows=60, on_drift="adwin"), X, drifting)
    assert 600 <= model.drifts_[-1] < 700
    assert np.abs(model.predict(X[700:]) - drifting[700:]).mean() < 5


def test_a_drift_drops_older_rows_and_refits(data: tuple[Any, Any]) -> None:
    X, y = data
    other = np.where(np.arange(900) < 600, y, np.where(y == "same", "other", "same"))
    plain, drifting = (
        learned(Refit(DecisionTreeClassifier(), every=500, min_rows=60, on_drift=name), X, other)
        for name in (None, "adwin")
    )
    assert 600 <= drifting.drifts_[0] < 680
    assert drifting.score(X[800:], other[800:]) > plain.score(X[800:], other[800:]) + 0.2


def test_sparse_rows_give_the_model_of_dense_ones(data: tuple[Any, Any]) -> None:
    X, y = data
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense = learned(Refit(RandomForestClassifier(5), every=150, window=320, min_rows=60), X, y)
    sparse = learned(
        Refit(RandomForestClassifier(5), every=150, window=320, min_rows=60), sp.csr_matrix(X), y
    )
    assert (dense.predict_proba(X) == sparse.predict_proba(sp.csr_matrix(X))).mean() > 0.99
    assert (sparse.predict_proba(X) == sparse.predict_proba(sp.csr_matrix(X))).all()
    with pytest.raises(TypeError, match="HistGradientBoostingClassifier requires dense rows"):
        Refit(HistGradientBoostingClassifier()).partial_fit(sp.csr_matrix(X), y)


def test_float32_halves_the_rows(data: tuple[Any, Any]) -> None:
    X, y = data
    whole, half = (
        learned(Refit(DecisionTreeClassifier(), dtype=dtype, min_rows=60), X, y)
        for dtype in ("float64", "float32")
    )
    assert half._rows_.concatenate().X.dtype == np.float32
    assert len(tamis.dumps(half)) < 0.7 * len(tamis.dumps(whole))


@pytest.mark.parametrize("size", [1, 30, 200])
def test_memory_is_bounded(size: int, rng: np.random.Generator) -> None:
    model = Refit(DecisionTreeClassifier(max_depth=1), every=100, window=300, min_rows=60)
    X, y = rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000)
    learned(model, X[:2000], y[:2000], size)
    buffers = {
        id(block[0]): len(block[1])
        for rows in (model._rows_, model._fit_.rows)
        for block in (*rows.blocks, *rows.tail)
    }
    assert sum(buffers.values()) <= 300 + 100 + size + 2 * 64


def test_weights_reach_the_estimator(data: tuple[Any, Any]) -> None:
    X, y = data
    weights = np.where(y == "same", 100.0, 1e-3)
    model = Refit(DecisionTreeClassifier(max_depth=1), min_rows=60)
    for at in range(0, 900, 50):  # the first rows without weights count once each
        more = {} if at < 100 else {"sample_weight": weights[at : at + 50]}
        model.partial_fit(X[at : at + 50], y[at : at + 50], **more)
    assert (model.predict(X) == "same").mean() > 0.99


def test_missing_values_are_passed_on_or_filled(data: tuple[Any, Any]) -> None:
    X, y = data
    gaps = X.copy()
    gaps[::3, 1] = np.nan
    learned(Refit(HistGradientBoostingClassifier(max_iter=3), min_rows=60), gaps, y)
    assert not get_tags(Refit(LogisticRegression())).input_tags.allow_nan
    model = Refit(LogisticRegression(), every=100, min_rows=60)
    learned(model, gaps[:300], y[:300], columns=[0, 2])  # column 1 is not selected
    whole = np.where(np.isnan(gaps), 0.0, gaps)
    learned(model, whole[300:600], y[300:600], columns=[0, 1, 2])
    known = gaps[:300][~np.isnan(gaps[:300, 1]), 1]
    fit = model._fit_.rows.concatenate().X[:, 1]
    assert np.isnan(fit).any()
    expected = np.concatenate([known, fit[300:]]).mean()
    assert model._fit_.fit_once().fill[1] == pytest.approx(expected)


def test_categories_reach_each_library(rng: np.random.Generator) -> None:
    X = np.column_stack([rng.normal(size=600), rng.integers(0, 30, 600)])
    y = np.isin(X[:, 1], [3, 8, 11, 17, 22, 29]).astype(int)
    model = learned(Refit(HistGradientBoostingClassifier(max_iter=3), min_rows=60, categorical=[1]), X, y)
    assert model.estimator_.is_categorical_.tolist() == [False, True]
    many = np.column_stack([np.arange(600), X[:, 1]])  # 600 categories are too many for it
    model = learned(
        Refit(HistGradientBoostingClassifier(max_iter=3), min_rows=600, categorical="all"), many, y
    )
    assert model.estimator_.is_categorical_.tolist() == [False, True]
    selected = Refit(HistGradientBoostingClassifier(max_iter=3), min_rows=60, categorical=[1])
    assert learned(selected, X, y, columns=[1]).estimator_.is_categorical_.tolist() == [True]
    cells, options = with_categories(_CatBoost(), X, np.array([1]))
    assert options == {"cat_features": [1]}
    assert isinstance(cells[0, 1], str)


class _CatBoost:
    __module__ = "catboost.core"


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_categories_reach_boosting_libraries(library: str, rng: np.random.Generator) -> None:
    pytest.importorskip(library)
    X = np.column_stack([rng.normal(size=600), rng.integers(0, 30, 600)])
    y = np.isin(X[:, 1], [3, 8, 11, 17, 22, 29]).astype(int)
    if library == "lightgbm":
        model = learned(Refit("lightgbm", min_rows=60, categorical=[1]), X, y)
        assert (
            model.estimator_.booster_.dump_model()["tree_info"][0]["tree_structure"]["decision_type"] == "=="
        )
    else:
        from xgboost import XGBClassifier

        model = learned(Refit(XGBClassifier(n_estimators=5, n_jobs=1), min_rows=60, categorical=[1]), X, y)
        assert model.estimator_.get_booster().feature_types == ["q", "c"]
    assert model.score(X, y) > 0.99


def test_a_run_is_resumed_from_its_checkpoint(data: tuple[Any, Any], tmp_path: Any) -> None:
    X, y = data
    stream, options = (X, y), {"batch_size": 50, "delay": 70, "baselines": "both"}
    whole = prequential(stream, FIRES(2), Refit(RandomForestClassifier(3), every=200, min_rows=60), **options)
    path = tmp_path / "run"
    for max_rows in (400, None):
        part = prequential(
            stream, FIRES(2), Refit(RandomForestClassifier(3), every=200, min_rows=60), **options,
            max_rows=max_rows, checkpoint=path,
        ) if max_rows is None else _first_rows(stream, path, max_rows, options)  # fmt: skip
    timed = [name for name in whole.frames["steps"] if name.startswith("seconds") or name.endswith("bytes")]
    for name, column in whole.frames["steps"].items():
        if name not in timed:
            np.testing.assert_array_equal(part.frames["steps"][name], column)


def _first_rows(stream: Any, path: Any, max_rows: int, options: dict[str, Any]) -> Any:
    class Stop(Exception):
        pass

    def stop(step: Any) -> None:
        if step.values["n_seen"] >= max_rows:
            raise Stop

    model = Refit(RandomForestClassifier(3), every=200, min_rows=60)
    with pytest.raises(Stop):
        prequential(stream, FIRES(2), model, **options, checkpoint=path, checkpoint_every=1, on_step=stop)


def test_delayed_labels_are_learned_when_they_come(data: tuple[Any, Any]) -> None:
    X, y = data
    model = Refit(DecisionTreeClassifier(), every=200, min_rows=60)
    prequential((X, y), None, model, batch_size=50, delay=100)
    assert model.n_seen_ == 800
    direct = learned(Refit(DecisionTreeClassifier(), every=200, min_rows=60), X[:800], y[:800])
    assert (direct.predict(X) == model.predict(X)).all()


def test_a_pipeline_equals_the_run(data: tuple[Any, Any]) -> None:
    X, y = data
    result = prequential((X, y), FIRES(2), Refit(DecisionTreeClassifier(), every=200, min_rows=60))
    model = StreamPipeline(FIRES(2), Refit(DecisionTreeClassifier(), every=200, min_rows=60))
    learned(model, X, y, 30)
    assert (model.predict(X) == result.pipeline().predict(X)).all()


def test_a_new_class_keeps_the_window(data: tuple[Any, Any]) -> None:
    X, y = data
    y = np.where((np.arange(900) > 500) & (X[:, 1] > 1), "third", y)
    model = Refit(DecisionTreeClassifier(), every=100, min_rows=60)
    result = prequential((X, y), None, model)
    assert result.settings["learner_restarts"] == 0
    assert model.n_seen_ == 900
    assert sorted(model.classes_) == ["other", "same", "third"]


def test_a_selector_does_not_reset_it(data: tuple[Any, Any]) -> None:
    X, y = data

    class Alarming(FIRES):
        n_replay = 100

        @property
        def drift_detected_(self) -> bool:
            return True

    model = Refit(DecisionTreeClassifier(), every=100, min_rows=60)
    assert prequential((X, y), Alarming(2), model).settings["replays"] == 0
    assert model.n_seen_ == 900


def test_a_bare_estimator_is_refused_in_one_sentence(data: tuple[Any, Any]) -> None:
    message = (
        r"^RandomForestClassifier has no partial_fit: wrap it, as in Refit\(RandomForestClassifier\(\)\)\.$"
    )
    for run in (
        lambda: prequential(data, None, RandomForestClassifier()),
        lambda: run_experiment(data, [None], [RandomForestClassifier()]),
        lambda: StreamPipeline(None, RandomForestClassifier()).fit(*data),
    ):
        with pytest.raises(ValueError, match=message):
            run()


def test_a_window_smaller_than_the_first_fit_shortens_it(data: tuple[Any, Any]) -> None:
    assert Refit(DecisionTreeClassifier(), window=100).partial_fit(*data).n_fits_ == 1
    with pytest.raises(ValueError, match="estimator must be one of 'lightgbm', "):
        Refit(RandomForestClassifier).partial_fit(*data)


def test_rows_are_joined_in_order() -> None:
    rows = RecentRows()
    for at in range(1000):
        rows = rows.with_rows(Block(np.array([[float(at)]]), np.array([at]), None), max_rows=130)
        n = min(at + 1, 130)
        assert rows.concatenate().y.tolist() == list(range(at + 1 - n, at + 1))
        assert sum(len(y) for _, y, _ in (*rows.blocks, *rows.tail)) <= 130 + 2 * 64
    assert rows.last(7).concatenate().X[:, 0].tolist() == [float(at) for at in range(993, 1000)]
