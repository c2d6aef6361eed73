"""Refit(features="few") equals its definition, keeps few columns, accounts for prices, and resumes bit by bit."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import tamis
from tamis import FIRES, Refit, StreamPipeline, prequential
from tamis.cli import main
from tamis.errors import CheckpointError
from tests.twins.few_columns import few_columns

OPTIONS: dict[str, Any] = {"every": 400, "window": 900, "min_rows": 200, "features": "few"}
REFITS = (200, 400, 800, 1200, 1600)


def lightgbm(penalties: list[float] | None = None, **options: Any) -> Any:
    module = pytest.importorskip("lightgbm")
    if penalties is not None:
        options |= {"cegb_tradeoff": 1.0, "cegb_penalty_feature_coupled": penalties}
    usual = {"n_estimators": 8, "num_leaves": 6, "n_jobs": 1, "verbose": -1, "random_state": 0}
    return module.LGBMClassifier(**usual | {"deterministic": True, "force_col_wise": True} | options)


def tree(penalties: list[float] | None = None) -> Any:
    return DecisionTreeClassifier(max_depth=6, random_state=0)


@pytest.fixture
def signs(rng: np.random.Generator) -> tuple[Any, Any]:
    """Twelve columns; the class depends on the signs of two of them, and on a third one."""
    X = rng.normal(size=(1700, 12))
    return X, ((X[:, 2] * X[:, 7] > 0) ^ (X[:, 4] > 1.2) ^ (rng.random(1700) < 0.05)).astype(int)


def learned(model: Any, X: Any, y: Any, size: int = 100, **more: Any) -> Any:
    for at in range(0, len(y), size):
        model.partial_fit(X[at : at + size], y[at : at + size], **more)
    return model


@pytest.mark.parametrize("kind", ["lightgbm", "tree"])
def test_equals_its_twin(kind: str, signs: tuple[Any, Any]) -> None:
    X, y = signs
    if kind == "lightgbm":
        make, penalties = lightgbm, (2.0, 5.0, 10.0, 20.0)
        expected, predicted = few_columns(
            X, y, make, lambda model: model.booster_.feature_importance("gain"), REFITS, 900, penalties
        )
    else:
        make = tree
        expected, predicted = few_columns(X, y, make, lambda model: model.feature_importances_, REFITS, 900)
    model = Refit(make(), **OPTIONS)
    for at, stop, proba in zip((0, *REFITS), (*REFITS, len(y)), (None, *predicted), strict=True):
        if proba is not None:
            np.testing.assert_array_equal(model.predict_proba(X[at:stop]), proba)
        learned(model, X[at:stop], y[at:stop], 70)
    assert [one["candidate"] for one in model.refits_] == [name for name, _ in expected]
    assert model.columns_.tolist() == expected[-1][1]
    assert [one["row"] for one in model.refits_] == list(REFITS)
    for one, columns, (_, known) in zip(model.refits_, selections(model), expected, strict=True):
        assert sorted(columns) == known  # what entered and left adds up
        assert one["n_columns"] == one["price"] == len(known)


@pytest.mark.parametrize("size", [1, 130, 1700])
def test_the_batches_do_not_matter(size: int, signs: tuple[Any, Any]) -> None:
    X, y = signs
    stop = 800 if size < 1700 else 1700  # several fits within a batch are one
    one, other = (
        learned(Refit(tree(), **OPTIONS), X[:stop], y[:stop], k, classes=[0, 1]) for k in (100, size)
    )
    if size < 1700:
        assert (one.predict_proba(X) == other.predict_proba(X)).all()
    assert set(other.columns_.tolist()) & {2, 4, 7}


@pytest.mark.parametrize(
    "estimator",
    [
        lambda: lightgbm(n_estimators=40),
        lambda: RandomForestClassifier(20, max_depth=8),
        lambda: HistGradientBoostingClassifier(max_iter=15),
        lambda: pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, n_jobs=1),
        lambda: pytest.importorskip("catboost").CatBoostClassifier(
            n_estimators=10, verbose=False, thread_count=1
        ),
    ],
    ids=["lightgbm", "random-forest", "hist-boosting", "xgboost", "catboost"],
)
def test_columns_that_are_relevant_only_together_are_kept(estimator: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 16))
    y = X[:, 3] * X[:, 8] > 0
    few, every = (
        learned(Refit(estimator(), **OPTIONS | {"features": features}), X[:1300], y[:1300])
        for features in ("few", "all")
    )
    assert {3, 8} <= set(few.columns_.tolist())
    assert len(few.columns_) <= 4
    assert few.score(X[1300:], y[1300:]) >= every.score(X[1300:], y[1300:])
    assert few.selected_features_.tolist() == [f"x{j}" for j in few.columns_]
    assert few.get_support(indices=True).tolist() == few.columns_.tolist()


def test_a_selection_is_more_stable_than_importances(rng: np.random.Generator) -> None:
    X = rng.normal(size=(6000, 5)) @ rng.normal(size=(5, 30)) + rng.normal(size=(6000, 30))
    y = (X[:, :10] @ np.linspace(1.0, 0.1, 10) + 2 * rng.normal(size=6000) > 0).astype(int)
    model = learned(Refit(lightgbm(), **OPTIONS | {"every": 300}), X, y)
    sets, ranked = selections(model), []
    for one, chosen in zip(model.refits_, sets, strict=True):
        first, last = max(0, one["row"] - 900), one["row"]
        gain = lightgbm().fit(X[first:last], y[first:last]).booster_.feature_importance("gain")
        ranked.append(set(np.argsort(-gain, kind="stable")[: len(chosen)].tolist()))
    late = slice(4, None)  # the window is full
    ours, usual = (sum(len(a ^ b) for a, b in pairwise(one[late])) for one in (sets, ranked))
    assert ours <= usual / 2


# -- prices ---------------------------------------------------------------------------------------------------


def test_prices_add_up_and_groups_count_once(signs: tuple[Any, Any]) -> None:
    X, y = signs
    prices = {"c2": 30.0, "c7": 2.0, "c8": 4.0}
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    model = Refit(tree(), **OPTIONS, prices=prices, keep=["c0"], exclude=["c11"], groups=[["c7", "c8"]])
    learned(model, frame, y)
    for one, used in zip(
        model.refits_, selections(model), strict=True
    ):  # brute force: a sum over the columns
        own = [prices.get(f"c{j}", 1.0) for j in used if j not in (7, 8)]
        assert one["price"] == sum(own) + (4.0 if used & {7, 8} else 0.0)
        assert 0 in used
        assert 11 not in used


def selections(model: Any) -> list[set[int]]:
    """Return the columns after each refit."""
    columns, result = set[int](), []
    for one in model.refits_:
        columns = (columns | set(one["entered"])) - set(one["left"])
        result.append(columns)
    return result


@pytest.mark.parametrize("make", [lightgbm, lambda: RandomForestClassifier(20, max_features=1)])
def test_the_cheaper_of_two_equal_columns_is_used(make: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(1500, 8))
    X[:, 5] = X[:, 1] + 1e-3 * rng.normal(size=1500)
    y = X[:, 1] > 0
    for cheap, dear in ((1, 5), (5, 1)):
        model = learned(Refit(make(), **OPTIONS, prices={dear: 50.0}), X, y)
        assert model.get_support()[cheap]
        assert not model.get_support()[dear]
        assert model.price_ == model.get_support().sum()


def test_kept_columns_are_used_and_excluded_ones_are_not(signs: tuple[Any, Any]) -> None:
    X, y = signs
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    for make in (lightgbm, tree):
        model = Refit(make(), **OPTIONS, keep=["c0"], exclude=["c2", "c3"])
        learned(model, frame, y)
        assert {0} <= set(model.columns_.tolist()) <= set(range(12)) - {2, 3}
        assert "c0" in model.selected_features_
        other = X.copy()
        other[:, 2:4] = 1e6
        assert (
            model.predict_proba(pd.DataFrame(other, columns=frame.columns)) == model.predict_proba(frame)
        ).all()


def test_a_group_is_paid_once(rng: np.random.Generator) -> None:
    """The codes of a category, each of which is too weak to be worth its price."""
    kinds = rng.integers(0, 8, 3000)
    effect = np.tile([1.0, -1.0], 4)[kinds]
    X = np.column_stack([*(kinds == k for k in range(8)), rng.normal(size=(3000, 8))]).astype(float)
    y = rng.random(3000) < 1 / (1 + np.exp(-effect))
    prices = dict.fromkeys(range(8), 3.0)
    model = learned(Refit(lightgbm(), **OPTIONS, prices=prices, groups=[list(range(8))]), X, y)
    used = set(model.columns_.tolist())
    assert len(used & set(range(8))) >= 6
    assert model.price_ == 3.0 + len(used - set(range(8)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"prices": {"age": 1.0}},
            "prices names its features, but X has no column names",
        ),
        ({"prices": [1.0, 2.0]}, "prices has 2 entries for 12 features"),
        ({"prices": {0: -1.0}}, "prices of column 0 is -1.0: it must be 0, or from 1e-100 to 1e100"),
        ({"prices": {12: 1.0}}, "prices names 12, which is not a column of X"),
        ({"keep": [12]}, "keep names 12, which is not a column of X"),
        (
            {"keep": [1], "exclude": [1]},
            r"exclude must leave the columns of keep, and at least one, got exclude=\[1\]",
        ),
        ({"exclude": "all"}, "exclude must leave the columns of keep"),
        ({"groups": [[0, 1], [1, 2]]}, r"groups names 1 twice"),
        ({"groups": [0, 1]}, "groups must be a list of lists of columns"),
        ({"features": "some"}, "features must be one of 'all', 'few', got 'some'"),
    ],
)
def test_invalid_parameters_are_rejected(
    options: dict[str, Any], message: str, signs: tuple[Any, Any]
) -> None:
    X, y = signs
    with pytest.raises(ValueError, match=message):
        Refit(tree(), **OPTIONS | options).partial_fit(X[:100], y[:100])


# -- other tasks and data -------------------------------------------------------------------------------------


def test_numbers_have_few_columns_in_any_unit(rng: np.random.Generator) -> None:
    module = pytest.importorskip("lightgbm")
    X = rng.normal(size=(1500, 15))
    y = X[:, 1] + np.abs(X[:, 4]) + 0.2 * rng.normal(size=1500)
    recipe = module.LGBMRegressor(
        n_estimators=15, num_leaves=6, n_jobs=1, verbose=-1, deterministic=True, force_col_wise=True
    )
    small, large = (learned(Refit(recipe, **OPTIONS), X[:1300], unit * y[:1300]) for unit in (1.0, 1024.0))
    assert {1, 4} <= set(small.columns_.tolist())
    assert len(small.columns_) <= 5
    assert small.columns_.tolist() == large.columns_.tolist()
    assert small.score(X[1300:], y[1300:]) > 0.75


def test_estimators_without_importances_or_probabilities(rng: np.random.Generator) -> None:
    X = rng.normal(size=(1500, 12))
    y = X[:, 2] + X[:, 5] > 0
    for estimator in (make_pipeline(StandardScaler(), LogisticRegression()), RidgeClassifier()):
        model = learned(Refit(estimator, **OPTIONS), X, y)
        assert model.columns_.tolist() == [2, 5]
    model = learned(Refit(LinearRegression(), **OPTIONS), X, X[:, 2] - X[:, 5])
    assert model.columns_.tolist() == [2, 5]
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    assert learned(Refit(LogisticRegression(), **OPTIONS), sparse, y).columns_.tolist() == [2, 5]


def test_one_class_weights_and_two_columns(signs: tuple[Any, Any]) -> None:
    X, y = signs
    model = learned(Refit(lightgbm(), **OPTIONS), X[:500], np.zeros(500, int))
    assert set(model.predict(X)) == {0}
    learned(model, X, y, sample_weight=None)
    assert model.score(X, y) > 0.6
    weighted = Refit(lightgbm(), **OPTIONS)
    for at in range(0, 1700, 100):
        weighted.partial_fit(X[at : at + 100], y[at : at + 100], sample_weight=np.full(100, 4.0))
    plain = learned(Refit(lightgbm(), **OPTIONS), X, y)
    # Penalties have the unit of the weights.
    assert len(weighted.columns_) == pytest.approx(len(plain.columns_), abs=3)
    assert learned(Refit(tree(), **OPTIONS), X[:, [2]], y).columns_.tolist() == [0]


def test_a_selector_limits_the_columns(signs: tuple[Any, Any]) -> None:
    X, y = signs
    model = Refit(lightgbm(), **OPTIONS, on_change=True, exclude=[11])
    learned(model, X, y, columns=np.array([0, 2, 7, 11]))
    assert set(model.columns_.tolist()) <= {0, 2, 7}
    assert model.n_fits_ == len(REFITS)  # nothing changed
    model.partial_fit(X[:10], y[:10], columns=np.array([0, 2, 7, 9]))
    assert model.n_fits_ == len(REFITS) + 1


# -- files, runs and pipelines --------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lightgbm, lambda: RandomForestClassifier(5)])
def test_a_loaded_model_continues_bit_by_bit(make: Any, signs: tuple[Any, Any]) -> None:
    X, y = signs
    model = learned(Refit(make(), **OPTIONS, prices={2: 3.0}, groups=[[0, 1]]), X[:1000], y[:1000])
    state = tamis.dumps(model)
    loaded, twin = tamis.loads(state), copy.deepcopy(model)
    assert tamis.dumps(loaded) == state
    for one in (model, loaded, twin):
        learned(one, X[1000:], y[1000:])
    for one in (loaded, twin):
        assert (one.predict_proba(X) == model.predict_proba(X)).all()
        assert one.refits_ == model.refits_
        assert one.comparison_ == model.comparison_


def test_a_forged_file_is_refused(signs: tuple[Any, Any]) -> None:
    model = learned(Refit(tree(), **OPTIONS), *signs)
    for change in (
        lambda few: setattr(few, "candidates", few.candidates[:2]),
        lambda few: setattr(few, "fits", few.fits[:2]),
        lambda few: setattr(few, "used", few.used[:, :5]),
        lambda few: setattr(few.fits[1], "columns", np.array([3, 40])),
        lambda few: setattr(few.fits[1], "penalties", np.array([np.inf])),
    ):
        forged = copy.deepcopy(model)
        change(forged._few_)
        with pytest.raises(CheckpointError):
            tamis.loads(tamis.dumps(forged))


def test_a_run_shows_the_columns_of_the_model(signs: tuple[Any, Any], tmp_path: Any) -> None:
    X, y = signs
    model = Refit(lightgbm(), **OPTIONS)
    result = prequential((X, y), None, model)
    before = next(one for one in reversed(model.refits_) if one["row"] < 1700)
    assert result.selected() == [f"x{j}" for j in model.columns_]
    assert result.summary()["n_selected"] == before["n_columns"]
    changed = sum(len(one["entered"]) + len(one["left"]) for one in model.refits_)
    assert len(result.frames["changes"]["step"]) == changed
    assert result.settings["model_columns"]["refits"] == model.refits_
    assert np.isfinite(result.summary()["all_gain"])  # every column, with a plain Refit
    place = tmp_path / "run.html"
    result.report(place)
    text = place.read_text()
    assert "Features of the learner" in text
    assert "penalty 5" in text
    assert json.loads(json.dumps(result.to_dict()))["selected"] == result.selected()
    pipeline = result.pipeline()
    assert pipeline.get_feature_names_out().tolist() == result.selected()
    assert (
        StreamPipeline(None, Refit(lightgbm(), **OPTIONS)).fit(X, y).predict(X) == pipeline.predict(X)
    ).all()
    assert "model_columns" not in prequential((X, y), FIRES(3), Refit(tree())).settings


def test_the_selection_of_a_run_does_not_limit_the_model(signs: tuple[Any, Any]) -> None:
    X, y = signs
    run, direct = Refit(tree(), **OPTIONS), learned(Refit(tree(), **OPTIONS), X, y)
    prequential((X, y), None, run, baselines="none")
    assert run.refits_ == direct.refits_


def test_a_run_is_resumed_from_its_checkpoint(signs: tuple[Any, Any], tmp_path: Any) -> None:
    class StopError(Exception):
        pass

    def stop(step: Any) -> None:
        if step.n_seen >= 1000:
            raise StopError

    whole = prequential(signs, None, Refit(tree(), **OPTIONS))
    with pytest.raises(StopError):
        prequential(
            signs, None, Refit(tree(), **OPTIONS), checkpoint=tmp_path / "c", checkpoint_every=1, on_step=stop
        )
    resumed = prequential(signs, None, Refit(tree(), **OPTIONS), checkpoint=tmp_path / "c")
    assert resumed.settings["model_columns"] == whole.settings["model_columns"]
    for name, column in whole.frames["steps"].items():
        if not name.startswith("seconds") and not name.endswith("bytes"):
            np.testing.assert_array_equal(resumed.frames["steps"][name], column)


def test_the_command_line_has_few_features(tmp_path: Any, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6))
    table = np.column_stack([X, X[:, 1] > X[:, 4]])
    np.savetxt("up.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="", fmt="%.5f")
    line = "run up.csv --label y --learner random-forest --features few --quiet --json --baselines none"
    assert main(line.split()) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["selected"] == ["b", "e"]
    assert printed["settings"]["selector"] is None
    assert printed["settings"]["learner"]["params"]["features"] == "few"
    result = prequential(
        (X, X[:, 1] > X[:, 4]), None, Refit("random-forest", features="few"), baselines="none"
    )
    assert result.reproduce().python
    for words, message in (
        (["--learner", "logistic"], "--features is for learners that are refitted"),
        (["--learner", "lightgbm", "--features", "some"], "--features"),
    ):
        assert main(["run", "up.csv", "--label", "y", "--features", "few", *words]) == 2
        assert message in capsys.readouterr().err


def test_names_hold_in_runs_and_pipelines(signs: tuple[Any, Any]) -> None:
    frame = pd.DataFrame(signs[0], columns=[f"c{j}" for j in range(12)])
    y = signs[1]
    terms: dict[str, Any] = {
        "prices": {"c2": 5.0},
        "keep": ["c0"],
        "exclude": ["c11"],
        "groups": [["c3", "c4"]],
    }
    result = prequential(
        frame.assign(y=y), None, Refit(tree(), **OPTIONS, **terms), label="y", baselines="none"
    )
    pipeline = StreamPipeline(None, Refit(tree(), **OPTIONS, **terms)).fit(frame, y)
    assert "c0" in result.selected()
    assert "c11" not in result.selected()
    assert pipeline.get_feature_names_out().tolist() == result.selected()
