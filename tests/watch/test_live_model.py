"""A watch of any model: the frame that it was fitted on, text and categories, functions of probabilities."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

import tamis
from tamis import Watch
from tamis.errors import DataError
from tamis.watch.input_drift import InputDrift
from tamis.watch.live_model import ModelInput

N = 2500
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"heat": RNG.normal(size=N), "noise": RNG.normal(size=N), "town": RNG.choice(["Rome", "Oslo", "Bern"], N)}
)
Y = (FRAME.heat + 1.5 * (FRAME.town == "Rome") + 0.5 * RNG.normal(size=N) > 0.5).to_numpy().astype(int)
TYPED = FRAME.astype({"town": "category"})


def encoded(encoder, model):
    return make_pipeline(make_column_transformer((encoder, ["town"]), remainder="passthrough"), model)


def pyfunc(model):
    """Return a model like those that MLflow loads: `predict` of a frame, and a signature of its columns."""

    def predict(X):
        assert list(X.columns) == list(FRAME.columns)
        return model.predict_proba(X)

    return SimpleNamespace(predict=predict, metadata=SimpleNamespace(signature=["heat", "noise", "town"]))


ONE_HOT = encoded(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
MODELS = {
    "one-hot": (ONE_HOT, FRAME),
    "one-hot of categories": (ONE_HOT, TYPED),
    "ordinal": (encoded(OrdinalEncoder(), RandomForestClassifier(20, random_state=0)), FRAME),
    "target": (encoded(TargetEncoder(random_state=0), LogisticRegression()), FRAME),
    "calibrated": (CalibratedClassifierCV(ONE_HOT, cv=2), FRAME),
    "LightGBM": (LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1), TYPED),
    "histogram boosting": (
        HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype"),
        TYPED,
    ),
    "Polars": (ONE_HOT, pl.from_pandas(FRAME)),
    "Arrow": (ONE_HOT, pa.Table.from_pandas(FRAME)),
}
WRAPPED = {
    "function of a frame": lambda model: lambda X: model.predict_proba(X),
    "function of labels": lambda model: model.predict,
    "MLflow": pyfunc,
}


def watched(model, X, **options):
    watch = Watch(model, **options)
    for start in range(1000, N, 100):
        watch.update(X[start : start + 100], y=Y[start : start + 100])
    return watch


def check(watch):
    shares = {row["feature"]: row["reliance_share"] for row in watch.table()}
    assert set(shares) == set(FRAME.columns)
    assert shares["noise"] < 0.1
    assert min(shares["heat"], shares["town"]) > 0.1
    states = {row["feature"]: row["state"] for row in watch.table()}
    assert states["heat"] == states["town"] == "used and relevant"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gets_the_columns_that_it_was_fitted_on(name):
    model, X = MODELS[name]
    native = X.to_pandas() if name in ("Polars", "Arrow") else X
    model.fit(native[:1000], Y[:1000])
    if name in ("Polars", "Arrow"):

        class OfFrame(ClassifierMixin, BaseEstimator):
            classes_ = np.array([0, 1])

            def predict_proba(self, rows):
                assert type(rows).__module__.partition(".")[0] == name.lower().replace("arrow", "pyarrow")
                return model.predict_proba(rows.to_pandas())

        check(watched(OfFrame(), X))
        return
    check(watched(model, X))


@pytest.mark.parametrize("name", WRAPPED)
def test_a_function_gets_them_too(name):
    model = ONE_HOT.fit(FRAME[:1000], Y[:1000])
    watch = watched(WRAPPED[name](model), FRAME)
    check(watch)
    if name != "function of labels":  # probabilities of each class are scores, not numbers
        assert watch.performance()["auc"] > 0.9
        assert watch._lost.is_testing


def test_numbers_of_probabilities_from_an_array():
    def function(X):
        p = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
        return np.column_stack([1.0 - p, p])

    X = FRAME[["heat", "noise"]].to_numpy()
    watch = watched(function, X)
    assert watch.performance()["auc"] > 0.7


def test_a_watch_with_categories_is_saved_and_goes_on(tmp_path):
    model = ONE_HOT.fit(FRAME[:1000], Y[:1000])
    watch, other = watched(model, FRAME[:2000]), watched(model, FRAME[:2000])
    watch.set_model(None)
    tamis.save(watch, tmp_path / "watch.tamis")
    loaded = tamis.load(tmp_path / "watch.tamis")
    loaded.set_model(model)
    for one in (loaded, other):
        one.update(FRAME[2000:2300], y=Y[2000:2300])
    assert repr(loaded.table()) == repr(other.table())  # some are NaN


def test_missing_and_new_categories():
    model = ONE_HOT.fit(FRAME[:1000], Y[:1000])
    holed = FRAME.assign(town=FRAME.town.where(FRAME.index % 5 > 0, None))
    watch = watched(model, holed, input_drift=InputDrift(reference=500, categorical=[2]))
    assert watch.table()[2]["missing"] == pytest.approx(0.2, abs=0.05)
    watch = Watch(model, input_drift=InputDrift(reference=500, categorical=[2]))
    for start in range(0, N, 100):
        part = FRAME[start : start + 100]
        watch.update(part.assign(town="Paris") if start >= 2200 else part, y=Y[start : start + 100])
    assert watch.table()[2]["new"] > 0.1


def test_what_cannot_be_watched_is_named():
    with pytest.raises(ValueError, match=r"got the path 'model.joblib': pass joblib.load\(path\)"):
        Watch("model.joblib")
    watch = Watch(ONE_HOT.fit(FRAME[:1000], Y[:1000]))
    watch.update(FRAME[:100], y=Y[:100])
    with pytest.raises(DataError, match="Column 'heat' has text, but had numbers"):
        watch.update(FRAME[:100].assign(heat="warm"), y=Y[:100])


def test_frames_are_those_that_were_given():
    frame = TYPED.iloc[:50].assign(flag=["x", None] * 25)
    given, rows, names = ModelInput().encoded(frame)
    assert names == list(frame.columns)
    back = given.frame(rows)
    assert back["town"].dtype == "category"
    for name in frame:
        assert back[name].astype(object).where(back[name].notna(), None).tolist() == (
            frame[name].astype(object).where(frame[name].notna(), None).tolist()
        )


def test_other_columns_of_a_frame_with_text_are_named() -> None:
    frame = pd.DataFrame({"heat": [1.0, 2.0] * 20, "place": ["in", "out"] * 20})
    watch = Watch(lambda rows: (rows["heat"] > 1.0).astype(float))
    watch.update(frame, y=[0, 1] * 20)
    for other, message in (
        (frame[["place", "heat"]], "Feature names must be in the same order"),
        (frame.drop(columns="heat"), "yet now missing: 'heat'"),
        (frame.assign(state="on"), "unseen at fit time: 'state'"),
        (frame.assign(heat="hot"), "Column 'heat' has text, but had numbers"),
    ):
        with pytest.raises(DataError, match=message):
            watch.update(other, y=[0, 1] * 20)
