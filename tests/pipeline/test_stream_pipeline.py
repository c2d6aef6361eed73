"""StreamPipeline: what prequential evaluates, as a model; the cuts between calls change nothing."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import tamis
from tamis import (
    DISCUSS,
    FIRES,
    OFS,
    FisherScore,
    ForwardPartialCorrelation,
    StreamPipeline,
    TScore,
    WeightedKNN,
    WeightedNaiveBayes,
    prequential,
)
from tamis._validation import Array
from tamis.catalog import CATALOG, LEARNERS
from tamis.errors import DataError
from tamis.learners import ResetOnDrift


def rows(n: int = 430, n_features: int = 8, seed: int = 0) -> tuple[Array, Array]:
    """Rows with a drift in the middle, and columns of unlike sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * 10.0 ** rng.integers(-2, 3, size=n_features)
    a, b = X[:, 1] / X[:, 1].std(), X[:, 4] / X[:, 4].std()
    late = np.arange(n) > n // 2
    return X, np.where(np.where(late, b, a) + 0.2 * rng.normal(size=n) > 0, "yes", "no")


def pipelines() -> dict[str, StreamPipeline]:
    return {
        "linear": StreamPipeline(TScore(2, half_life=200), SGDClassifier(random_state=0)),
        "bayes": StreamPipeline(FIRES(2), GaussianNB(), batch_size=64),
        "knn": StreamPipeline(OFS(3, random_state=0), WeightedKNN(3), scale="standard"),
        "replay": StreamPipeline(FisherScore(2, half_life=100), Perceptron(), replay=150),
        "drift": StreamPipeline(DISCUSS(2), GaussianNB(), batch_size=50),
        "none": StreamPipeline(None, ResetOnDrift(GaussianNB()), batch_size=30),
        "zeros": StreamPipeline(TScore(2), GaussianNB(), masking="zeros"),
        "one": StreamPipeline(TScore(2), Perceptron(), batch_size=1),
        "numbers": StreamPipeline(
            ForwardPartialCorrelation(2, task="regression"), SGDRegressor(random_state=0)
        ),
    }


def target(name: str, X: Array, y: Array) -> Array:
    return 3.0 * X[:, 1] / X[:, 1].std() + 100.0 if name == "numbers" else y


def same(one: StreamPipeline, other: StreamPipeline, asked: Array) -> None:
    """Byte for byte; but nearest neighbours have room for rows that has never been written to."""
    if not isinstance(one.learner, WeightedKNN):
        assert tamis.dumps(one) == tamis.dumps(other)
    assert one.predict(asked).tolist() == other.predict(asked).tolist()
    assert one.get_support().tolist() == other.get_support().tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", pipelines())
def test_the_cuts_between_calls_change_nothing(name: str) -> None:
    X, y = rows()
    y, asked = target(name, X, y), rows(200, seed=1)[0]
    whole = pipelines()[name].fit(X, y)
    cut, rng, at = pipelines()[name], np.random.default_rng(3), 0
    while at < len(y):
        n = int(rng.integers(1, 170))
        cut.partial_fit(X[at : at + n], y[at : at + n])
        at += n
    same(cut, whole, asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", pipelines())
def test_predicts_what_prequential_has_predicted(name: str) -> None:
    """Rows of the run are predicted as they were there, batch after batch."""
    X, y = rows()
    y, model, right = target(name, X, y), pipelines()[name], []
    size = model.batch_size
    selector = None if model.selector is None else clone(model.selector)
    result = prequential(
        (X, y), selector, clone(model.learner), batch_size=size, replay=model.replay, scale=model.scale,
        masking=model.masking, baselines="none",
    )  # fmt: skip
    for at in range(0, len(y), size):
        part, told = X[at : at + size], y[at : at + size]
        if at:
            predicted = model.predict(part)
            right.append(np.abs(predicted - told).mean() if name == "numbers" else (predicted == told).mean())
        model.partial_fit(part, told, classes=None if name == "numbers" else ["no", "yes"])
    steps = result.frames["steps"]
    assert steps["mae" if name == "numbers" else "accuracy"].tolist() == pytest.approx(right, abs=1e-12)
    assert selector is None or model.get_support().tolist() == selector.get_support().tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", pipelines())
def test_a_saved_one_goes_on(name: str, tmp_path: Path) -> None:
    X, y = rows()
    y = target(name, X, y)
    model = pipelines()[name].partial_fit(X[:230], y[:230])
    twins = [
        tamis.load(tamis.save(model, tmp_path / "model")),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    expected = model.predict(X).tolist()
    for twin in [*twins, copy.copy(model)]:
        assert twin.predict(X).tolist() == expected
        twin.partial_fit(X[230:], y[230:])
    assert model.predict(X).tolist() == expected  # what a copy learns does not come here
    whole = pipelines()[name].fit(X, y)
    for twin in twins:
        same(twin, whole, X)


def test_a_run_leaves_one() -> None:
    """It predicts what the run would have, and learns what the run would have."""
    X, y = rows()
    selector, learner = FisherScore(2, half_life=200), SGDClassifier(random_state=0)
    whole = StreamPipeline(clone(selector), clone(learner)).fit(X, y)
    model = prequential((X[:300], y[:300]), selector, learner).pipeline()
    assert model.n_seen_ == 300
    before = tamis.dumps(selector)
    model.partial_fit(X[300:], y[300:])
    assert model.decision_function(X).tolist() == whole.decision_function(X).tolist()
    assert tamis.dumps(selector) == before  # it is a copy
    loaded = tamis.loads(tamis.dumps(model))
    assert loaded.predict(X).tolist() == whole.predict(X).tolist()


def test_goes_through_prequential_itself() -> None:
    X, y = rows()
    parts = FisherScore(2, half_life=200), SGDClassifier(random_state=0)
    plain = prequential((X, y), *map(clone, parts))
    model = StreamPipeline(*parts)
    result = prequential((X, y), None, model)
    assert result.settings["scale"] == "none"
    assert result.frames["steps"]["accuracy"].tolist() == plain.frames["steps"]["accuracy"].tolist()
    assert model.n_seen_ == len(y)


def test_sparse_and_dense_rows_give_the_same() -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(500, 12)).astype(float)
    y = (X[:, 2] > X[:, 7]).astype(int)
    model = StreamPipeline(TScore(3), MultinomialNB())
    dense = clone(model).fit(X, y)
    mixed = clone(model).partial_fit(X[:130], y[:130]).partial_fit(sp.csr_array(X[130:]), y[130:])
    sparse = clone(model).partial_fit(sp.csr_matrix(X[:130]), y[:130]).partial_fit(X[130:], y[130:])
    for other in (mixed, sparse):
        np.testing.assert_allclose(other.predict_proba(X), dense.predict_proba(X), rtol=1e-9)
    assert sparse.is_sparse_
    assert sp.issparse(sparse.transform(sp.csr_matrix(X)))
    np.testing.assert_array_equal(sparse.predict(X), sparse.predict(sp.csr_matrix(X)))


@pytest.mark.parametrize("n_before", [0, 130, 200])
@pytest.mark.parametrize("spoil", ["nan", "label", "width", "negative", "length"])
def test_refused_rows_leave_it_as_it_was(spoil: str, n_before: int) -> None:
    """Also where whole blocks before the bad row could be learned, and where only the learner refuses."""
    X, y = np.abs(rows(470)[0]), rows(470)[1]
    model = StreamPipeline(OFS(8, random_state=0), MultinomialNB())
    if n_before:
        model.partial_fit(X[:n_before], y[:n_before])
    before = tamis.dumps(model)
    bad, labels = X[n_before : n_before + 250].copy(), y[n_before : n_before + 250].astype(object)
    if spoil == "nan":
        bad[240, 3] = np.nan
    elif spoil == "label":
        labels[240] = None
    elif spoil == "negative":
        bad[240, 3] = -1.0
    elif spoil == "length":
        labels = labels[1:]
    elif not n_before:
        bad = bad[:, :0]
    else:
        bad = bad[:, :5]
    expected = {
        "nan": "NaN in column 3 of row 240", "label": "label of row 240", "width": "feature",
        "length": "inconsistent numbers", "negative": "Negative values",
    }  # fmt: skip
    with pytest.raises(ValueError, match=expected[spoil]):
        model.partial_fit(bad, labels)
    assert tamis.dumps(model) == before
    model.partial_fit(X[n_before:], y[n_before:])
    assert tamis.dumps(model) == tamis.dumps(clone(model).fit(X, y))


ROW_METHODS = [
    entry.key
    for entry in (*CATALOG, *LEARNERS)
    if entry.family in ("rows", "learners") and entry.module.startswith("tamis.") and "river" not in entry.key
    if entry.targets != ("regression",) and entry.key != "sparse-fsa"  # which has no partial_fit
]


def of_entry(key: str, **options: Any) -> StreamPipeline:
    """A pipeline of a selector or learner of the catalogue, and of FIRES or naive Bayes."""
    entry = next(entry for entry in (*CATALOG, *LEARNERS) if entry.key == key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = entry.load()(**dict(entry.parameters))
    if "random_state" in one.get_params(deep=False):
        one.set_params(random_state=0)
    plain = WeightedNaiveBayes(window=None, weight=None)
    selector, learner = (one, plain) if entry.family == "rows" else (FIRES(2), one)
    return StreamPipeline(selector, learner, **options)


FEW = ("fires", "t-score", "ofs", "joint", "nb", "hoeffding-tree", "logistic")


@pytest.mark.parametrize(
    "key", [key if key in FEW else pytest.param(key, marks=pytest.mark.slow) for key in ROW_METHODS]
)
def test_rows_that_are_learned_directly_leave_the_same(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row, as an array or in the general case: the pipeline, and the selector alone, leave the same bytes."""
    X, y = rows(220, 6)
    found = []
    for is_direct in (True, False):
        if not is_direct:
            for module in ("base.rows", "pipeline.selective_learner"):
                monkeypatch.setattr(f"tamis.{module}.codes_of_row", lambda *row: None)
        models = [of_entry(key, batch_size=1)]
        models += [clone(one) for one in (models[0].selector, models[0].learner)]
        for model in models:
            model.partial_fit(X[:160], y[:160], classes=["no", "yes"])
            for at in range(160, 220):
                model.partial_fit(X[at : at + 1], y[at : at + 1])
        found.append([*map(tamis.dumps, models), models[0].predict(X).tolist()])
    assert found[0] == found[1]


def test_which_rows_are_learned_directly() -> None:
    X, y = rows(60)
    model = of_entry("fires", batch_size=1).partial_fit(X[:50], y[:50])
    row, label = X[50:51], y[50:51]
    known = model._models.codes_of_row
    assert known(row, label) == [["no", "yes"].index(label[0])]
    assert known(row.astype(np.float32), label) is None
    assert known(np.where(np.arange(row.size) == 1, np.nan, row), label) is None
    assert known(row * 1e80, label) is None
    assert known(row[:, :-1], label) is None
    assert known(np.asfortranarray(X)[50:51], label) is None
    assert known(row, np.array(["maybe"])) is None
    assert known(row, label.astype(object)) is None
    assert known(row, label.tolist()) is None
    assert known(X[50:52], y[50:52]) is None
    model._models.learner.classes = model._models.learner.classes[::-1]
    assert known(row, label) is None


@pytest.mark.parametrize("part", [FIRES, WeightedNaiveBayes])
def test_a_part_that_fails_within_a_row_leaves_all_as_it_was(
    part: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows(60)
    model = of_entry("fires", batch_size=1).partial_fit(X[:50], y[:50])
    before, learn = tamis.dumps(model), part._learn

    def fail(self: Any, *args: Any) -> None:
        learn(self, *args)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(part, "_learn", fail)
        with pytest.raises(MemoryError):
            model.partial_fit(X[50:51], y[50:51])
    assert tamis.dumps(model) == before
    bad = np.full((1, X.shape[1]), np.inf)
    with pytest.raises(DataError, match="infinity in column 0 of row 0"):
        model.partial_fit(bad, y[50:51])
    assert tamis.dumps(model) == before


def test_missing_values_pass_where_selector_and_learner_leave_them_out() -> None:
    X, y = rows()
    X = X.copy()
    X[100::3, 6] = np.nan  # which is not selected
    model = StreamPipeline(TScore(1), GaussianNB()).fit(X, y)
    assert 0.6 < model.score(X, y) < 1.0
    X[240, :] = np.nan
    with pytest.raises(ValueError, match="NaN in column"):
        model.partial_fit(X[100:], y[100:])
    with pytest.raises(ValueError, match="NaN in column 6"):  # the first block has all columns
        StreamPipeline(TScore(1), GaussianNB()).fit(X[100:], y[100:])


def test_the_selector_is_scaled_for_nobody_and_the_learner_is() -> None:
    """Without a scale the perceptron sees the largest column alone."""
    X, y = rows(2000)
    y = np.where(X[:, 1] > 0, "yes", "no")
    X[:, 0] *= 1e4
    fair, unfair = (StreamPipeline(None, Perceptron(), scale=scale).fit(X, y) for scale in ("auto", "none"))
    assert fair.score(X, y) > 0.95 > 0.8 > unfair.score(X, y)
    assert fair.transform(X).tolist() == X.tolist()


def test_reads_out_as_its_parts_do() -> None:
    X, y = rows()
    model = StreamPipeline(TScore(2), GaussianNB())
    assert is_classifier(model)
    assert is_regressor(StreamPipeline(None, SGDRegressor()))
    assert not hasattr(StreamPipeline(None, Perceptron()), "predict_proba")
    assert hasattr(StreamPipeline(), "predict_proba")
    assert hasattr(StreamPipeline(), "decision_function")
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(selector__n_features_to_select=3).partial_fit(X[:30], y[:30])
    assert model.get_support().sum() == 3
    assert model.n_seen_ == 30
    alone = TScore(3).fit(X[:30], y[:30])
    assert model.scores_.tolist() == alone.scores_.tolist() == model.selector_.scores_.tolist()
    assert model.predict_proba(X).shape == (len(X), 2)
    assert model.classes_.tolist() == ["no", "yes"]
    assert not hasattr(model.selector, "n_seen_")
    assert model.learner_.class_count_.sum() == 30
    assert not hasattr(StreamPipeline(None, SGDRegressor()).fit(X, X[:, 1]), "classes_")


def test_one_class_at_first_and_a_label_that_comes_later() -> None:
    X, y = rows(400)
    model = StreamPipeline(TScore(1), GaussianNB()).partial_fit(X[:150], np.repeat("no", 150))
    assert set(model.predict(X)) == {"no"}
    assert model.predict_proba(X).tolist() == [[1.0]] * 400
    assert model.get_support().all()
    model.partial_fit(X, y).partial_fit(X, np.where(y == "yes", "yes", "late"))
    assert model.classes_.tolist() == ["late", "no", "yes"]
    assert model.predict_proba(X).shape == (400, 3)


def test_parts_that_do_not_go_together_are_refused() -> None:
    X, y = rows()
    with pytest.raises(ValueError, match="SGDRegressor predicts numbers, but TScore is set to learn classes"):
        StreamPipeline(TScore(2), SGDRegressor()).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="batch_size must be an integer"):
        StreamPipeline(batch_size=0).fit(X, y)
    with pytest.raises(ValueError, match="learner must be"):
        StreamPipeline(learner=3).fit(X, y)
    with pytest.raises(DataError, match="X has 3 features, but StreamPipeline is expecting 8"):
        StreamPipeline().fit(X, y).predict(X[:, :3])


def _sales(n, seed=0):
    rng = np.random.default_rng(seed)
    sold = rng.integers(0, 2, n)
    city = np.where(rng.random(n) < 0.9, np.array(["Bern", "Oslo"])[sold], "Rome")
    return pd.DataFrame({"size": rng.normal(size=n), "city": city, "age": rng.normal(size=n)}), sold


def test_a_frame_with_text_however_it_is_cut():
    frame, sold = _sales(900)
    whole = StreamPipeline(FIRES(1), tamis.WeightedNaiveBayes(weight=None)).fit(frame, sold)
    assert whole.categories_ == {1: frame["city"].drop_duplicates().tolist()}
    assert (whole.selector_.categorical, whole.learner_.categorical) == ([1], [1])
    assert whole.get_feature_names_out().tolist() == ["city"]
    assert whole.score(*_sales(500, seed=1)) > 0.9
    parts = StreamPipeline(FIRES(1), tamis.WeightedNaiveBayes(weight=None))
    for at in range(0, 900, 70):
        parts.partial_fit(frame[at : at + 70], sold[at : at + 70])
    later = _sales(50, seed=2)[0]
    np.testing.assert_array_equal(parts.predict_proba(later), whole.predict_proba(later))


def test_a_category_of_later_rows_changes_nothing_and_another_kind_is_rejected(tmp_path):
    frame, sold = _sales(400)
    model = StreamPipeline(FIRES(2), tamis.WeightedNaiveBayes(weight=None)).fit(frame, sold)
    before = copy.deepcopy(model.categories_)
    new = frame[:3].assign(city=["Kyiv", None, "Oslo"])
    assert model.predict(new).shape == (3,)
    assert model.categories_ == before
    assert model.predict(frame[:3].assign(city=1.0)).shape == (3,)  # numbers are categories here
    with pytest.raises(DataError, match=r"Feature 'age' had numbers in the first rows, got text"):
        model.partial_fit(frame.assign(age="old"), sold)
    with pytest.raises(DataError, match="now missing: 'city', 'age'"):
        model.predict(frame[["size"]])
    assert model.categories_ == before
    with pytest.raises(DataError, match="OFS learns from numbers, but column 'city' contains categories"):
        StreamPipeline(tamis.OFS(2)).fit(frame, sold)
    path = tmp_path / "model.tamis"
    tamis.save(model, path)
    np.testing.assert_array_equal(tamis.load(path).predict_proba(new), model.predict_proba(new))


def test_a_run_of_a_frame_leaves_a_pipeline_for_frames():
    frame, sold = _sales(900)
    model = tamis.prequential(
        frame.assign(sold=sold), FIRES(1), tamis.WeightedNaiveBayes(weight=None), label="sold"
    ).pipeline()
    later, labels = _sales(500, seed=1)
    assert model.score(later, labels) > 0.9
    codes = {value: code for code, value in enumerate(model.categories_[1])}
    coded = later.assign(city=later["city"].map(codes)).to_numpy(float)
    np.testing.assert_array_equal(model.predict_proba(coded), model.predict_proba(later))
