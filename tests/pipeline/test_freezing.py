"""A frozen model predicts what the model predicts, with scikit-learn's classes, and so does its ONNX graph."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier, SGDRegressor
from sklearn.linear_model import Perceptron as TheirPerceptron
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tamis
from tamis import (
    FIRES,
    OSFS,
    AdaptiveRandomForest,
    AlphaInvesting,
    ByName,
    ForwardPartialCorrelation,
    HoeffdingAdaptiveTree,
    HoeffdingTree,
    Perceptron,
    PerTarget,
    Refit,
    SGDLinearSVM,
    SGDLogisticRegression,
    SparseFSA,
    StreamingRandomPatches,
    StreamPipeline,
    WeightedKNN,
    WeightedNaiveBayes,
    freeze,
)
from tamis.cli import main
from tamis.pipeline.freezing import to_onnx

RNG = np.random.default_rng(11)
SCALES = np.where(np.arange(9) % 2, 50.0, 1.0)
X = RNG.normal(size=(2600, 9)) * SCALES + 3.0
SCORE = X[:, 1] / 50.0 + X[:, 6] + 0.3 * RNG.normal(size=len(X))
TWO = np.where(SCORE > 3.1, "up", "down")
THREE = np.digitize(SCORE, [2.5, 4.0])[::-1].copy()
NUMBERS = 3.0 + 20.0 * SCORE
NEW = RNG.normal(size=(100_000, 9)) * SCALES + 3.0
NEW[:, 3] *= 100.0  # beyond the limit of the scale
NEW[:2000] = np.round(NEW[:2000], 1)


def few() -> ForwardPartialCorrelation:
    return ForwardPartialCorrelation(3)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "all defaults": (StreamPipeline, TWO),
    "logistic": (lambda: StreamPipeline(FIRES(3), SGDLogisticRegression()), THREE),
    "averaged": (lambda: StreamPipeline(few(), SGDLogisticRegression(average=True)), TWO),
    "perceptron": (lambda: StreamPipeline(few(), Perceptron()), TWO),
    "svm": (lambda: StreamPipeline(few(), SGDLinearSVM()), THREE),
    "their linear model": (lambda: StreamPipeline(few(), SGDClassifier(loss="log_loss", random_state=0)), THREE),
    "their perceptron": (lambda: StreamPipeline(None, TheirPerceptron()), TWO),
    "their naive Bayes": (lambda: StreamPipeline(few(), GaussianNB()), THREE),
    "their regressor": (lambda: StreamPipeline(FIRES(3, model="gaussian"), SGDRegressor(random_state=0)), NUMBERS),
    "naive Bayes behind a selector": (lambda: StreamPipeline(few(), WeightedNaiveBayes()), THREE),
    "naive Bayes": (WeightedNaiveBayes, TWO),
    "roots": (lambda: WeightedNaiveBayes(formulation="roots"), THREE),
    "a linear learner": (Perceptron, THREE),
    "tree": (lambda: HoeffdingTree(leaf="majority"), THREE),
    "tree behind a selector": (lambda: StreamPipeline(few(), HoeffdingTree(leaf="majority")), THREE),
    "adaptive tree": (lambda: HoeffdingAdaptiveTree(leaf="majority"), TWO),
    "forest": (lambda: AdaptiveRandomForest(5, leaf="majority"), THREE),
    "patches behind a selector": (lambda: StreamPipeline(few(), StreamingRandomPatches(5, leaf="majority")), TWO),
    "random forest": (lambda: Refit("random-forest"), TWO),
    "boosting": (lambda: StreamPipeline(few(), Refit("lightgbm")), THREE),
    "boosting on few columns": (lambda: Refit("lightgbm", features="few"), TWO),
    "boosted numbers": (lambda: Refit("lightgbm-regressor"), NUMBERS),
    "histogram boosting": (lambda: StreamPipeline(few(), Refit("hist-boosting")), THREE),
    "histogram boosting of two classes": (lambda: Refit("hist-boosting"), TWO),
    "histogram boosting of numbers": (lambda: Refit("hist-boosting-regressor"), NUMBERS),
    "a pipeline of scikit-learn": (lambda: make_pipeline(StandardScaler(), few(), LogisticRegression()), THREE),
}  # fmt: skip
# Leaves that use naive Bayes: only ONNX can represent them.
BAYES: dict[str, tuple[Callable[[], Any], Any]] = {
    "bayes leaves": (HoeffdingTree, THREE),
    "only bayes leaves": (lambda: HoeffdingTree(leaf="nb", grace_period=400), TWO),
    "bayes leaves behind a selector": (lambda: StreamPipeline(few(), HoeffdingTree()), THREE),
    "adaptive tree with bayes leaves": (HoeffdingAdaptiveTree, TWO),
    "forest with bayes leaves": (lambda: AdaptiveRandomForest(10), THREE),
    "patches with bayes leaves": (lambda: StreamPipeline(few(), StreamingRandomPatches(5)), TWO),
}
# Time stamps have digits that 32 bits do not; a third of the values is missing.
STAMPS = np.column_stack([1.7e9 + 7.0 * np.arange(1500) + RNG.normal(size=1500), RNG.normal(size=(1500, 3))])
STAMPS[RNG.random(STAMPS.shape) < 0.3] = np.nan
ODD: dict[str, Callable[[], Any]] = {
    "scaled": lambda: StreamPipeline(few(), SGDLogisticRegression()),
    "naive Bayes": WeightedNaiveBayes,
    "naive Bayes behind a selector": lambda: StreamPipeline(few(), WeightedNaiveBayes()),
    "tree": lambda: HoeffdingTree(leaf="majority"),
    "tree with bayes leaves": HoeffdingTree,
    "forest": lambda: AdaptiveRandomForest(3, leaf="majority"),
    "refitted networks": lambda: Refit(MLPClassifier([3], max_iter=20, random_state=0)),
    "refitted ridge": lambda: StreamPipeline(few(), Refit(RidgeClassifier())),
    "a refitted pipeline": lambda: StreamPipeline(
        few(), Refit(make_pipeline(StandardScaler(), LogisticRegression()))
    ),
    "histogram boosting": lambda: Refit("hist-boosting"),
}
LABELS = {
    "bool": np.array([False, True]),
    "large": np.array([-1, 2**40]),
    "float": np.array([2.0, 5.0]),
    "small": np.array([250, 251], dtype=np.uint8),
    "text": np.array(["é", "a longer one"], dtype=object),
}
needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("skl2onnx", "onnxruntime")),
    reason="skl2onnx or onnxruntime is not installed",
)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Any]:
    made: dict[str, Any] = {}

    def fit(name: str) -> Any:
        if name.startswith("boost"):
            pytest.importorskip("lightgbm")
        if name not in made:
            make, y = (MODELS | BAYES)[name]
            made[name] = make().fit(X, y)
        return made[name]

    return fit


@pytest.mark.parametrize("name", MODELS)
def test_a_frozen_model_predicts_the_same(fitted, name: str) -> None:
    model = fitted(name)
    frozen = freeze(model)
    assert not [step for _, step in frozen.steps if type(step).__module__.startswith("tamis.")]
    if MODELS[name][1] is NUMBERS:
        np.testing.assert_allclose(frozen.predict(NEW), model.predict(NEW), rtol=1e-12, atol=1e-10)
        return
    assert (frozen.predict(NEW) == model.predict(NEW)).all()
    for verb in ("predict_proba", "decision_function"):
        if hasattr(model, verb) and hasattr(frozen, verb):
            np.testing.assert_allclose(
                getattr(frozen, verb)(NEW), getattr(model, verb)(NEW), rtol=1e-9, atol=1e-9
            )


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ODD)
def test_any_labels_missing_values_and_time_stamps(name: str, labels: str, subtests: Any) -> None:
    state = (np.arange(1500) // 300) % 2  # a function of the time stamp
    rows = STAMPS
    if "refitted" in name:  # without missing values
        rows = np.nan_to_num(STAMPS - [1.7e9, 0.0, 0.0, 0.0]) / [4e3, 1.0, 1.0, 1.0]
    model = ODD[name]().fit(rows, LABELS[labels][state])
    with subtests.test("scikit-learn"):
        if name.startswith("naive"):
            known = np.nan_to_num(rows)
            assert (freeze(model).predict(known) == model.predict(known)).all()
        elif "bayes" not in name:
            for some in (rows, rows.astype(np.float32)):
                predicted = freeze(model).predict(some)
                assert (predicted == model.predict(some)).all()
                assert predicted.dtype.kind == model.predict(some).dtype.kind
    with subtests.test("ONNX"):
        runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        if "ridge" in name:
            with pytest.raises(
                ValueError, match="RidgeClassifier cannot be frozen: skl2onnx cannot convert it"
            ):
                to_onnx(model)
            return
        session = runtime.InferenceSession(to_onnx(model).SerializeToString())
        predicted = np.ravel(session.run(None, {"X": rows})[0])
        assert (predicted == model.predict(rows)).all()
        assert predicted.dtype.kind in (model.predict(rows).dtype.kind, "i", "O")


def test_binary_features_behind_a_selector() -> None:
    rows = (X > 3.0).astype(float)
    model = StreamPipeline(few(), BernoulliNB()).fit(rows, TWO)
    assert (freeze(model).predict(rows) == model.predict(rows)).all()
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    assert (session.run(None, {"X": rows})[0] == model.predict(rows)).all()


@needs_onnx
def test_other_conversions_of_the_process_are_not_changed() -> None:
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.impute import SimpleImputer

    to_onnx(StreamPipeline(few(), SGDLogisticRegression()).fit(X, TWO))
    imputer = SimpleImputer().fit(X)
    convert_sklearn(imputer, initial_types=[("X", FloatTensorType([None, 9]))])


@pytest.mark.parametrize("name", ["tree", "logistic"])
def test_a_file_of_joblib_needs_no_tamis(fitted, name: str, tmp_path) -> None:
    joblib.dump(freeze(fitted(name)), tmp_path / "model.joblib")
    assert b"tamis" not in (tmp_path / "model.joblib").read_bytes()
    again = joblib.load(tmp_path / "model.joblib")
    assert (again.predict(NEW[:500]) == fitted(name).predict(NEW[:500])).all()


def test_the_model_is_not_changed_and_may_learn_on() -> None:
    model = StreamPipeline(few(), SGDLogisticRegression()).fit(X[:1500], TWO[:1500])
    before = tamis.dumps(model)
    frozen = model.freeze()
    assert tamis.dumps(model) == before
    expected = model.predict(NEW[:500])
    model.partial_fit(X[1500:], TWO[1500:])
    assert (frozen.predict(NEW[:500]) == expected).all()


@pytest.mark.parametrize(
    "make", [FIRES, OSFS, lambda: AlphaInvesting(model="logistic"), lambda: PerTarget(FIRES(3))]
)
def test_a_selector_becomes_its_columns(make: Callable[[], Any]) -> None:
    selector = make()
    several = isinstance(selector, PerTarget)
    selector.fit(X, np.column_stack([TWO, THREE > 1]) if several else TWO)
    frozen = freeze(selector)
    assert (frozen.transform(NEW[:50]) == selector.transform(NEW[:50])).all()
    assert (frozen["columns"].get_support() == selector.get_support()).all()


def test_missing_values_are_replaced_by_the_mean_as_in_the_model() -> None:
    holes = np.where(RNG.random((500, 9)) < 0.2, np.nan, NEW[:500])
    model = StreamPipeline(few(), SGDLogisticRegression()).fit(X, TWO)
    assert (model.freeze().predict(holes) == model.predict(holes)).all()
    tree = HoeffdingTree(leaf="majority").fit(X, THREE)
    assert (tree.predict(holes) == freeze(tree).predict(holes)).all()


def test_names_of_a_frame_are_those_of_the_pipeline() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"sensor {j}" for j in range(9)])
    model = StreamPipeline(few(), SGDLogisticRegression()).fit(frame, TWO)
    frozen = model.freeze()
    assert frozen.feature_names_in_.tolist() == list(frame)
    assert (frozen.predict(frame) == model.predict(frame)).all()
    with pytest.raises(ValueError, match="feature names"):
        frozen.predict(frame.rename(columns={"sensor 1": "other"}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HoeffdingTree().fit(X, TWO), "leaf='nb-adaptive' cannot be frozen: .*leaf='majority', or export"),
        (lambda: ByName(FIRES(1)).fit([{"a": 1.0}, {"b": 2.0}], [0, 1]), "features by name cannot be frozen"),
        (lambda: SparseFSA(3).fit(X, TWO), "the learner SparseFSA cannot be frozen"),
        (lambda: WeightedKNN().fit(X, TWO), "the learner WeightedKNN cannot be frozen"),
        (lambda: Refit("random-forest").partial_fit(X[:20], TWO[:20]), "no fitted estimator"),
        (lambda: HoeffdingTree(leaf="majority", categorical=[0]).fit(np.round(X), np.round(X[:, 0])), "categories"),
        (lambda: WeightedNaiveBayes(categorical=[0]).fit(np.round(X), TWO), "categories"),
        (lambda: StreamPipeline(few()).fit(X[:100], ["one"] * 100), "an unfitted learner"),
        (lambda: StreamPipeline(few(), MLPClassifier(random_state=0)).fit(X, TWO), "MLPClassifier and a selection"),
        (lambda: StreamPipeline(None, SGDClassifier(), scale="standard").fit(sp.csr_matrix(X), TWO), "sparse rows"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_an_error_that_names_it(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        freeze(make())


@needs_onnx
@pytest.mark.slow
@pytest.mark.parametrize("name", [*MODELS, *BAYES])
def test_an_onnx_graph_predicts_the_same(fitted, name: str) -> None:
    import onnxruntime

    model = fitted(name)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    outputs = session.run(None, {"X": NEW})
    predicted = outputs[0].reshape(len(NEW))
    if (MODELS | BAYES)[name][1] is NUMBERS:
        np.testing.assert_allclose(predicted, model.predict(NEW), rtol=1e-5, atol=1e-4)
        return
    assert (predicted == model.predict(NEW)).all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(outputs[1], model.predict_proba(NEW), atol=1e-6)


@needs_onnx
def test_values_that_leaves_have_not_had_in_onnx() -> None:
    """Constant features within a class, a class that a leaf has not seen, missing values, and a tree without rows."""
    import onnxruntime

    rows = np.round(X[:, :4] / 30.0)
    rows[TWO == "up", 2] = 1.0
    rows[THREE == 0, 3] = 0.0
    new = np.round(NEW[:5000, :4] / 30.0)
    new[RNG.random(new.shape) < 0.1] = np.nan
    new[:700] = rows[:700]
    for labels in (TWO, THREE):
        for model in (HoeffdingTree(leaf="nb"), HoeffdingTree(grace_period=50), AdaptiveRandomForest(4)):
            model.fit(rows, labels)
            session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
            predicted, shares = session.run(None, {"X": new})
            np.testing.assert_allclose(shares, model.predict_proba(new), atol=1e-9)
            assert (predicted == model.predict(new)).all()


@needs_onnx
@pytest.mark.parametrize("name", ["bayes leaves", "forest with bayes leaves", "histogram boosting"])
def test_a_row_in_onnx_takes_less_than_50_microseconds(fitted, name: str) -> None:
    import timeit

    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_onnx(fitted(name)).SerializeToString(), options)
    row = {"X": NEW[:1]}
    assert min(timeit.repeat(lambda: session.run(None, row), number=50, repeat=20)) / 50 < 50e-6


@needs_onnx
def test_a_selector_and_missing_values_in_onnx() -> None:
    import onnxruntime

    selector = FIRES(3).fit(X, TWO)
    session = onnxruntime.InferenceSession(to_onnx(selector).SerializeToString())
    assert (session.run(None, {"X": NEW[:50]})[0] == selector.transform(NEW[:50])).all()
    model = StreamPipeline(few(), SGDLogisticRegression()).fit(X, TWO)
    holes = np.where(RNG.random((500, 9)) < 0.2, np.nan, NEW[:500])
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    assert (session.run(None, {"X": holes})[0] == model.predict(holes)).all()


def test_onnx_without_its_extra_names_it(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'tamis\[onnx\]'"):
        to_onnx(Perceptron().fit(X, TWO))


def test_the_command(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = StreamPipeline(few(), SGDLogisticRegression()).fit(X, TWO)
    tamis.save({"pipeline": model, "selector": None}, "run.tamis")
    tamis.save(model, "model.tamis")
    assert main(["freeze", "run.tamis", "--out", "model.joblib", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["steps"] == [
        "VarianceThreshold", "FunctionTransformer", "SimpleImputer", "MinMaxScaler", "SGDClassifier",
    ]  # fmt: skip
    assert (joblib.load("model.joblib").predict(NEW[:99]) == model.predict(NEW[:99])).all()
    assert main(["freeze", "model.tamis", "--out", "model.joblib"]) == 2  # it is not overwritten
    assert main(["freeze", "model.tamis", "--out", "model.joblib", "--force"]) == 0
    capsys.readouterr()
    assert main(["freeze", "model.tamis"]) == 2
    assert "Nothing is written: pass --out FILE, --onnx FILE, or both." in capsys.readouterr().err
    tamis.save({"selector": None}, "other.tamis")
    assert main(["freeze", "other.tamis", "--out", "other.joblib"]) == 1
    assert "contains no pipeline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("logistic", {"numpy.dtype"}),
        ("naive Bayes", set()),
        ("forest", {"sklearn.tree._tree.Tree"}),
        (
            "boosting",
            {"collections.OrderedDict", "lightgbm.basic.Booster", "lightgbm.sklearn.LGBMClassifier"},
        ),
    ],
)
def test_the_types_that_skops_must_trust_are_those_of_the_page(fitted, name: str, types: set[str]) -> None:
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    stored = skops.dumps(freeze(fitted(name)))
    assert set(skops.get_untrusted_types(data=stored)) == types
    again = skops.loads(stored, trusted=sorted(types))
    assert (again.predict(NEW[:99]) == fitted(name).predict(NEW[:99])).all()
