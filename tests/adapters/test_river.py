"""River's classifiers and detectors here, our selectors there."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from river import checks, compose, drift, ensemble, forest, naive_bayes, preprocessing, tree
from river.datasets import synth
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from tamis import (
    FIRES,
    ByName,
    FisherScore,
    Refit,
    ResetOnDrift,
    StreamPipeline,
    WeightedNaiveBayes,
    prequential,
)
from tamis.adapters.river import (
    RiverClassifier,
    RiverDetector,
    RiverLearner,
    RiverRegressor,
    RiverReplay,
    RiverSelector,
)
from tamis.base import RowSelector
from tamis.base.rows import can_widen
from tamis.catalog import CATALOG, LEARNERS
from tamis.drift import DriftDetector
from tamis.errors import DataError

MODELS = [dict(entry.parameters)["model"] for entry in LEARNERS if entry.name == "RiverClassifier"]


def rows(rng, n=600):
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 2] > 0, "yes", "no")


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns(rng, name):
    X, y = rows(rng)
    model = RiverClassifier(name, random_state=0)
    for at in range(0, 400, 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100], classes=["no", "yes"])
    assert model.score(X[400:], y[400:]) > 0.8
    share = model.predict_proba(X[400:])
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert share.shape == (200, 2)


def test_learns_as_river_does(rng):
    X, y = rows(rng)
    ours, theirs = (
        RiverClassifier(tree.HoeffdingTreeClassifier(grace_period=50)),
        tree.HoeffdingTreeClassifier(grace_period=50),
    )
    frame = pd.DataFrame(X, columns=list("abcd"))
    ours.partial_fit(frame[:250], y[:250]).partial_fit(frame[250:500], y[250:500])
    for row, label in zip(frame[:500].to_dict(orient="records"), y[:500], strict=True):
        theirs.learn_one(row, label)
    want = [theirs.predict_one(row) for row in frame[500:].to_dict(orient="records")]
    assert ours.predict(frame[500:]).tolist() == want


class Alone:
    """Counts how many threads are inside at once."""

    inside = most = n_calls = 0

    def __enter__(self):
        self.inside += 1
        self.n_calls += 1
        self.most = max(self.most, self.inside)
        time.sleep(1e-4)

    def __exit__(self, *_):
        self.inside -= 1


def in_threads(call, n=4):
    with ThreadPoolExecutor(n) as pool:
        for done in [pool.submit(call) for _ in range(n)]:
            done.result()


def test_threads_use_a_classifier_one_at_a_time(rng):
    X, y = rows(rng, 30)
    alone = Alone()

    class Spy(naive_bayes.GaussianNB):
        def learn_one(self, x, y):
            with alone:
                super().learn_one(x, y)

        def predict_proba_one(self, x):
            with alone:
                return super().predict_proba_one(x)

    model = RiverClassifier(Spy()).partial_fit(X, y)
    in_threads(lambda: model.partial_fit(X, y).predict_proba(X))
    assert (alone.most, alone.n_calls) == (1, 30 + 4 * 60)


def test_threads_use_a_detector_and_a_replay_one_at_a_time():
    alone = Alone()

    class SpyDetector(drift.PageHinkley):
        def update(self, x):
            with alone:
                super().update(x)

    class SpyModel(naive_bayes.GaussianNB):
        def learn_one(self, x, y):
            with alone:
                super().learn_one(x, y)

    detector = RiverDetector(SpyDetector())
    in_threads(lambda: [detector.update(0.0) for _ in range(20)])
    assert (alone.most, detector.n_seen) == (1, 80)
    model = RiverReplay(FisherScore(1), SpyModel(), replay="never", every=7)
    in_threads(lambda: [model.learn_one({"a": float(i), "b": 1.0}, i % 2) for i in range(20)])
    assert (alone.most, alone.n_calls) == (1, 160)
    assert len(model.selector_._rows) == 80 % 7


def test_stored_values_only(rng):
    X, y = rows(rng)
    X[np.abs(X) < 0.5] = 0.0
    seen = []

    class Spy(naive_bayes.GaussianNB):
        def learn_one(self, x, y):
            seen.append(x)
            super().learn_one(x, y)

    RiverClassifier(Spy()).partial_fit(sp.csr_array(X[:5]), y[:5])
    assert seen == [{j: v for j, v in enumerate(row) if v} for row in X[:5].tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_what_is_missing_is_left_out(rng, name):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = np.nan
    whole = RiverClassifier(name, random_state=0).partial_fit(X[:400], y[:400], classes=["no", "yes"])
    assert np.isnan(X[0]).all()
    assert whole.score(X[400:], y[400:]) > 0.7
    assert np.isfinite(whole.predict_proba(X[400:])).all()


def test_weights_are_handed_over(rng):
    X, y = rows(rng)
    twice = RiverClassifier(tree.HoeffdingTreeClassifier()).partial_fit(X, y, sample_weight=np.full(600, 2.0))
    assert twice.model_._train_weight_seen_by_model == 1200
    with pytest.raises(DataError, match="sample_weight has shape"):
        twice.partial_fit(X, y, sample_weight=[1.0])
    model = RiverClassifier(naive_bayes.GaussianNB())
    with pytest.raises(DataError, match="weights must be whole numbers"):
        model.partial_fit(X, y, sample_weight=np.full(600, 0.5))
    assert not hasattr(model, "model_")


def test_a_model_that_says_nothing_yet(rng):
    X, _ = rows(rng)
    model = RiverClassifier("adaptive-forest", random_state=0).partial_fit(
        X[:1], ["yes"], classes=["no", "yes"]
    )
    model.model_ = model.model_.clone()  # as before the first row
    assert set(model.predict(X[:3])) == {"no"}
    np.testing.assert_allclose(model.predict_proba(X[:3]), 0.5)


def test_refusals(rng):
    X, y = rows(rng)
    with pytest.raises(
        ValueError, match=r"model must be one of 'naive-bayes', .*, or a classifier of River, got 'hat'"
    ):
        RiverClassifier("hat").fit(X, y)
    with pytest.raises(DataError, match="X has 2 features, but RiverClassifier is expecting 4"):
        RiverClassifier("naive-bayes").fit(X, y).predict(X[:, :2])
    model = RiverClassifier("naive-bayes").fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(DataError, match="Column 0 is 'd', was 'a': Feature names must be in the same order"):
        model.predict(pd.DataFrame(X, columns=list("dcba")))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["river-naive-bayes", "river-adaptive-tree", "naive-bayes-adwin"])
def test_in_an_evaluation(rng, key):
    entry = next(entry for entry in LEARNERS if entry.key == key)
    X, y = rows(rng, 1000)
    result = prequential((X, y), FIRES(2), entry.load()(**dict(entry.parameters)), batch_size=100)
    assert result.summary()["accuracy"] > 0.7


def test_detector_has_the_protocol():
    detector = RiverDetector(drift.binary.DDM())
    assert isinstance(detector, DriftDetector)
    x = (np.random.default_rng(0).random(2000) < np.repeat([0.1, 0.5], 1000)).astype(float)
    warned, found = False, []
    for i, value in enumerate(x):
        if detector.update(value):
            found.append(i)
            assert detector.n_seen == 0
        warned |= detector.in_warning
    assert warned
    assert 1000 <= found[-1] < 1100
    model = ResetOnDrift("naive-bayes", RiverDetector(drift.ADWIN()))
    model.partial_fit(x[:100, None], x[:100].astype(int), classes=[0, 1])
    assert model.n_seen_ == 100


def test_selector_in_a_pipeline():
    model = compose.Pipeline(RiverSelector(FisherScore(1), every=50), naive_bayes.GaussianNB())
    right = 0
    for i, (x, y) in enumerate(synth.SEA(variant=0, seed=1).take(2000)):
        x = {**x, "noise": float(i % 7)}
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    assert right / 2000 > 0.7
    selector = model["RiverSelector"]
    assert list(selector.transform_one({0: 1.0, 1: 2.0, "noise": 3.0})) in ([0], [1])
    assert selector.clone()._kept is None


def test_selector_takes_frames(rng):
    X, y = rows(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    selector = RiverSelector(FisherScore(1))
    assert list(selector.transform_many(frame)) == list("abcd")
    selector.learn_many(frame, y)
    assert list(selector.transform_many(frame)) == ["c"]
    assert selector.transform_one({"a": 1.0}) == {}


class Renews(FisherScore):
    """Keeps the first column for 300 rows, then the second, and says so."""

    n_replay = 150

    @property
    def drift_detected_(self):
        return self.n_seen_ == 300

    def _get_support_mask(self):
        return np.arange(self.n_features_in_) == (self.n_seen_ >= 300)


def test_a_classifier_begins_anew_from_the_last_rows(rng):
    X, y = rows(rng, 420)
    model = RiverReplay(Renews(1), naive_bayes.GaussianNB(), replay="always")
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), label)
    expected = naive_bayes.GaussianNB()
    for row, label in zip(X[150:].tolist(), y[150:].tolist(), strict=True):
        expected.learn_one({1: row[1]}, label)
    assert model.n_replays == 1
    for row in X[:20].tolist():
        assert model.predict_proba_one(dict(enumerate(row))) == expected.predict_proba_one({1: row[1]})


def test_one_dict_that_is_filled_again_for_each_row_will_do(rng):
    X = rng.normal(size=(600, 5))
    told = {}
    for name in ("new", "same"):
        model = RiverReplay(FisherScore(2, half_life=100), naive_bayes.GaussianNB(), replay=200)
        row, told[name] = {}, []
        for x in X.tolist():
            row = {} if name == "new" else row
            row.update(enumerate(x))
            told[name].append(model.predict_proba_one(row))
            model.learn_one(row, int(x[3] > 0))
        assert model.n_replays > 0
    assert told["same"] == told["new"]


def test_a_classifier_goes_on_if_it_is_told_to(rng):
    X, y = rows(rng, 420)
    model = RiverReplay(Renews(1), naive_bayes.GaussianNB(), replay="never")
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), label)
    assert model.n_replays == 0
    assert model.predict_one(dict(enumerate(X[0].tolist()))) in ("yes", "no")


def test_a_value_that_a_later_row_lacks_is_zero(rng):
    X, y = rows(rng, 100)
    X[50:, 1] = 0.0
    ours = RiverSelector(FisherScore(2))
    for i in range(100):
        ours.learn_one({j: x for j, x in enumerate(X[i].tolist()) if j != 1 or i < 50}, y[i])
    np.testing.assert_allclose(ours._model.scores_, FisherScore(2).partial_fit(X, y).scores_, rtol=1e-12)


class Sorts(RiverSelector):
    """With classes for the numbers that River's checks give to a transformer."""

    def learn_one(self, x, y):
        super().learn_one(x, y > 40)


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [entry.key for entry in CATALOG if entry.family == "rows"],
)
def test_rivers_own_checks_pass(key):
    cls = next(entry for entry in CATALOG if entry.key == key).load()
    seed = {"random_state": 0} if "random_state" in cls().get_params() else {}
    selector = cls(**seed)
    model = Sorts(selector, every=20, max_columns=None if can_widen(selector) else 8)
    names = set()
    for check in checks.yield_checks(model):
        check(model.clone())
        names.add(getattr(check, "__name__", "") or check.func.__name__)
    assert {"check_emerging_features", "check_disappearing_features", "check_pickling"} <= names


class OfFixedWidth(FisherScore):
    """A selector that says nothing of growing."""

    _widen = RowSelector._widen


def test_features_that_come_later_are_learned(rng):
    X, y = rows(rng, 400)
    selector = RiverSelector(FisherScore(1), every=50)
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        selector.learn_one(dict(enumerate(row if i >= 200 else row[:2])), label)
    assert selector.transform_one(dict(enumerate(X[0].tolist()))) == {2: X[0, 2]}
    fixed = RiverSelector(OfFixedWidth(1), every=50)
    fixed.learn_many(pd.DataFrame(X[:50, :2]), y[:50])
    with pytest.raises(DataError, match="cannot grow: reserve room for new names"):
        fixed.learn_many(pd.DataFrame(X[50:100]), y[50:100])


def test_a_masked_label_or_error_is_refused():
    model = RiverSelector(FisherScore(1), every=3)
    model.learn_one({"a": 1.0}, "no")
    with pytest.raises(DataError, match=r"y\[0\] is masked"):
        model.learn_one({"a": 2.0}, np.ma.masked)
    detector = RiverDetector(drift.ADWIN())
    for nothing in (np.ma.masked, np.nan, None, np.zeros(2)):
        with pytest.raises(DataError, match=r"masked|must be a finite number"):
            detector.update(nothing)
    detector.update(np.True_)
    assert detector.n_seen == 1


# -- learners of Tamis in River ----------------------------------------------------------------------------


def learned(model, X, y):
    predicted = []
    for row, label in zip(X.tolist(), np.asarray(y).tolist(), strict=True):
        predicted.append(model.predict_one(dict(enumerate(row))))
        model.learn_one(dict(enumerate(row)), label)
    return predicted


def test_a_refit_in_river_is_the_one_that_learns_batches(rng):
    X, y = rows(rng, 650)
    recipe = Refit(DecisionTreeClassifier(max_depth=3, random_state=0), every=200, min_rows=100)
    ours, alone = RiverLearner(recipe), clone(recipe)
    predicted = learned(ours, X, y)
    expected = [None] * 100
    for at in range(0, 600, 100):
        alone.partial_fit(X[at : at + 100], y[at : at + 100])
        expected += alone.predict(X[at + 100 : at + 200]).tolist()
    assert predicted == expected[:650]
    proba = ours.predict_proba_one(dict(enumerate(X[0].tolist())))
    np.testing.assert_allclose(
        [proba[label] for label in alone.classes_.tolist()], alone.predict_proba(X[:1])[0]
    )


def test_a_refit_behind_a_selector_is_fitted_on_the_selected_names(rng):
    X, _ = rows(rng, 900)
    y = np.where(X[:, 2] - X[:, 0] > 0, "yes", "no")
    pipeline = RiverSelector(FisherScore(2)) | RiverLearner(
        Refit(DecisionTreeClassifier(max_depth=3), every=100)
    )
    learned(pipeline, X, y)
    kept = set(pipeline["RiverSelector"].transform_one(dict(enumerate(X[0].tolist()))))
    inner = pipeline["RiverLearner"]._learner.model
    assert {list(pipeline["RiverLearner"]._names)[j] for j in inner.columns_} == kept


@pytest.mark.slow
def test_a_regressor_and_what_is_refused(rng):
    X, _ = rows(rng, 400)
    model = RiverRegressor(Refit("random-forest-regressor", every=100))
    predicted = learned(model, X, 5.0 + 3 * X[:, 0])
    assert predicted[:100] == [0.0] * 100
    assert np.corrcoef(predicted[200:], X[200:, 0])[0, 1] > 0.9
    with pytest.raises(DataError, match=r"A row contains 'new', .* RiverRegressor\(\.\.\., columns"):
        model.predict_one({"new": 1.0})
    with pytest.raises(ValueError, match="every must be an integer"):
        RiverLearner(Refit(), every=0)


def test_auto_keeps_the_old_classifier_unless_the_new_one_is_better(rng):
    """The columns turn at row 300, where the selector reports it: with a changed class the new one wins."""
    X = rng.normal(size=(1500, 3))
    still, turned = X[:, 0] > 0, np.where(np.arange(1500) < 290, X[:, 0], -X[:, 0]) > 0

    class Alarm(FisherScore):
        n_replay = 10

        @property
        def drift_detected_(self):
            return self.n_seen_ == 300

    found = {}
    for name, y in (("still", still), ("turned", turned)):
        model = RiverReplay(Alarm(1), naive_bayes.GaussianNB())
        predicted = learned(model, X, y)
        found[name] = model.n_replays, np.mean(np.array(predicted[400:], object) == y[400:])
    assert found["still"][0] == 0
    assert found["turned"][0] == 1
    assert found["turned"][1] > 0.8
    forest_ = RiverReplay(Alarm(1), forest.ARFClassifier(seed=0, n_models=2))
    learned(forest_, X[:400], turned[:400])
    assert forest_._candidate is None


def test_what_follows_a_selector_in_a_pipeline_learns_the_selected_values_only(rng):
    X, _ = rows(rng, 300)
    y = np.where(X[:, 2] - X[:, 0] > 0, "yes", "no")
    model = RiverSelector(FisherScore(2)) | naive_bayes.GaussianNB()
    expected = naive_bayes.GaussianNB()
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        model.learn_one(dict(enumerate(row)), label)
        expected.learn_one(dict(enumerate(row)) if i < 100 else {0: row[0], 2: row[2]}, label)
    given = {0: 0.3, 1: 5.0, 2: 0.2, 3: -5.0}
    assert model.predict_proba_one(given) == expected.predict_proba_one({0: 0.3, 2: 0.2})


# -- clones, ensembles and River's checks of every adapter -------------------------------------------------

ADAPTERS = {
    "RiverSelector": lambda: Sorts(FisherScore(2), every=20),
    "RiverReplay": lambda: RiverReplay(
        FisherScore(2, half_life=50), naive_bayes.GaussianNB(), replay=50, every=20
    ),
    "RiverLearner": lambda: RiverLearner(GaussianNB(), every=10),
    "RiverRegressor": lambda: RiverRegressor(SGDRegressor(random_state=0), every=10),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ADAPTERS)
def test_rivers_own_checks_of_every_adapter(name):
    model = ADAPTERS[name]()
    for check in checks.yield_checks(model):
        check(model.clone())


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_constructor_stores_its_parameters(name):
    model = ADAPTERS[name]()
    for row, label in synth.SEA(seed=1).take(60):
        model.learn_one(row, 50 * label)
    before = repr(ADAPTERS[name]())
    for one in (model, preprocessing.StandardScaler() | model):
        assert repr(one.clone().clone().clone()) == repr(one.clone())
    assert repr(model.clone()) == repr(model) == before
    assert model.clone()._rows == [] if name != "RiverReplay" else not model.clone()._recent


@pytest.mark.parametrize(
    "ensemble_of",
    [
        lambda model: ensemble.BaggingClassifier(model, n_models=3, seed=1),
        lambda model: ensemble.ADWINBaggingClassifier(model, n_models=3, seed=1),
        lambda model: ensemble.LeveragingBaggingClassifier(model, n_models=3, seed=1),
        lambda model: ensemble.AdaBoostClassifier(model, n_models=3, seed=1),
        lambda model: ensemble.VotingClassifier([model, naive_bayes.GaussianNB()]),
    ],
)
@pytest.mark.parametrize("name", ["RiverReplay", "RiverLearner"])
def test_rivers_ensembles_learn(ensemble_of, name):
    model, right = ensemble_of(preprocessing.StandardScaler() | ADAPTERS[name]()), 0
    for i, (row, label) in enumerate(synth.SEA(seed=1).take(600)):
        right += model.predict_one(row) == label if i >= 300 else 0
        model.learn_one(row, label)
    assert right > 0.75 * 300


def test_a_detector_is_copied_when_it_begins():
    given = drift.PageHinkley()
    detector = RiverDetector(given)
    assert detector.detector is given
    found = [detector.update(float(i > 1000)) for i in range(1100)]
    assert sum(found) == 1
    assert given.drift_detected is False
    assert clone(detector, safe=False).detector is not given


# -- rows that are rejected --------------------------------------------------------------------------------

BAD_ROWS = [
    ({"a": "x", "b": 1.0}, "yes", "Column 'a' contains 'x', which is text"),
    ({"a": [1], "b": 1.0}, "yes", r"Column 'a' contains \[1\], which is not a number"),
    ({"a": [1, 2], "b": 1.0}, "yes", r"Column 'a' contains \[1, 2\], which is not a number"),
    ({"a": {}, "b": 1.0}, "yes", "Column 'a' contains {}, which is not a number"),
    ({"a": 1.0, "b": math.inf}, "yes", "infinity in column 'b'"),
    ({"a": 1.0, "b": 1.0}, None, "missing"),
    ({"a": 1.0, "b": 1.0}, math.nan, "missing"),
    ({"a": 1.0, "b": 1.0}, ["yes"], r"y contains \['yes'\], which cannot be a label"),
]


def of_two(rng, n=90):
    for value in rng.normal(size=n).tolist():
        yield {"a": value, "b": float(rng.normal())}, "yes" if value > 0 else "no"


@pytest.mark.parametrize(
    "make",
    [
        lambda: RiverSelector(FisherScore(1), every=30),
        lambda: RiverReplay(FisherScore(1), naive_bayes.GaussianNB(), replay=50, every=30),
        lambda: RiverLearner(GaussianNB(), every=30),
    ],
)
@pytest.mark.parametrize(("row", "label", "message"), BAD_ROWS)
def test_a_bad_row_is_rejected_on_arrival_and_no_other_is_lost(rng, make, row, label, message):
    clean, spoilt = make(), make()
    for i, (x, y) in enumerate(of_two(rng)):
        if i in (3, 35, 89):
            with pytest.raises(DataError, match=message):
                spoilt.learn_one(row, label)
        clean.learn_one(x, y)
        spoilt.learn_one(x, y)
    probe = {"a": 0.3, "b": -0.2}
    if isinstance(clean, RiverSelector):
        assert spoilt._model.estimator_.n_seen_ == clean._model.estimator_.n_seen_ == 90
        assert spoilt._model.scores_.tolist() == clean._model.scores_.tolist()
    else:
        assert spoilt.predict_proba_one(probe) == clean.predict_proba_one(probe)


def test_a_bad_target_is_rejected_on_arrival(rng):
    model = RiverRegressor(SGDRegressor(random_state=0), every=10)
    for target in ("x", None, math.nan, math.inf):
        with pytest.raises(DataError):
            model.learn_one({"a": 1.0}, target)
    assert model._rows == []


def test_a_new_name_without_room_is_rejected_on_arrival(rng):
    model = RiverSelector(FisherScore(1), every=30, max_columns=2)
    for x, y in of_two(rng, 10):
        model.learn_one(x, y)
    with pytest.raises(DataError, match="The rows name 3 columns, but max_columns is 2"):
        model.learn_one({"a": 1.0, "b": 2.0, "c": 3.0}, "yes")
    assert len(model._rows) == 10


class RejectsLarge(FisherScore):
    """Rejects rows for a reason that only the selector knows."""

    def _learn(self, X, y, sample_weight):
        if abs(X).max() > 50:
            raise DataError("too large")
        super()._learn(X, y, sample_weight)


def test_of_a_rejected_batch_only_the_rejected_rows_are_lost(rng):
    model, n_raised = RiverSelector(RejectsLarge(1), every=30), 0
    for i, (x, y) in enumerate(of_two(rng)):
        try:
            model.learn_one(x | ({"b": 99.0} if i == 7 else {}), y)
        except DataError as error:
            n_raised += str(error) == "too large"
    assert n_raised == 1
    assert model._model.estimator_.n_seen_ == 89


def test_features_come_and_go_with_a_model(rng):
    """A dict names other features at any time; the batches give the bits of the model itself."""
    recipe = ByName(
        StreamPipeline(FisherScore(2), WeightedNaiveBayes(), batch_size=50), absent="missing", budget=4
    )
    ours, alone, hits = RiverLearner(recipe, every=50), clone(recipe), []
    assert ours.predict_one({"a": 1.0}) is None
    assert ours.predict_proba_one({"a": 1.0}) == {}
    batch = []
    for i in range(1500):
        label = int(rng.integers(2))
        row = {f"sensor{i // 500}": label + rng.normal() / 4, f"noise{i // 100 % 5}": rng.normal()}
        if i % 500 > 100:
            hits.append(ours.predict_one(row) == label)
            assert ours.predict_proba_one({**row, "unknown": 3.0}) == ours.predict_proba_one(row)
        ours.learn_one(row, label)
        batch.append((row, label))
        if len(batch) == 50:
            alone.partial_fit([x for x, _ in batch], [y for _, y in batch])
            batch = []
    assert np.mean(hits) > 0.9
    assert ours._named.feature_names_ == alone.feature_names_
    assert len(alone.feature_names_) <= 4
    assert ours.predict_proba_one(row) == dict(enumerate(alone.predict_proba([row])[0].tolist()))
    with pytest.raises(DataError, match="infinity"):
        ours.learn_one({"new": np.inf}, 1)
    numbers = RiverRegressor(ByName(StreamPipeline(None, SGDRegressor(random_state=0))), every=20)
    assert numbers.predict_one({"a": 1.0}) == 0.0
    for i in range(400):
        value = float(rng.normal())
        numbers.learn_one({"a" if i < 200 else "b": value}, 2.0 * value)
    assert 0.3 < numbers.predict_one({"b": 1.0}) < 3.0
    with pytest.raises(ValueError, match="ByName of a selector does not predict"):
        RiverLearner(ByName(FisherScore(2)))
