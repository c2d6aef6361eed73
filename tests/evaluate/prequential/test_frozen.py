"""The baseline of a frozen selection: which columns, from which rows on, resumed, and what is said of it."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.signal import fftconvolve, lfilter
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Perceptron, SGDRegressor
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import DISCUSS, FIRES, ForwardPartialCorrelation, RandomSubset, prequential
from tamis.dependence.autocorrelation import MeanError, mean_error
from tamis.evaluate import PrequentialResult, run_experiment
from tamis.evaluate.prequential.frozen import lasso_order
from tamis.evaluate.prequential.remarks import auc_gain, paired_gain, remarks_on, with_draws


def rows(n=3000, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    signal = X[:, 3] - 0.6 * X[:, 8] + 0.3 * rng.normal(size=n)
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def coordinate_descent(Z, t, penalty, n_rounds=300):
    """The lasso of a standardised target by its definition, one coordinate after the other."""
    n, d = Z.shape
    w, t = np.zeros(d), t - t.mean()
    for _ in range(n_rounds):
        for j in range(d):
            rest = t - Z @ w + Z[:, j] * w[j]
            slope, curvature = Z[:, j] @ rest / n, Z[:, j] @ Z[:, j] / n
            w[j] = np.sign(slope) * max(abs(slope) - penalty, 0.0) / curvature
    return w


def proximal_gradient(Z, is_class, penalty, n_rounds=3_000):
    """The logistic lasso by proximal gradient steps; the intercept is not penalised."""
    n, d = Z.shape
    w, b = np.zeros(d), 0.0
    for _ in range(n_rounds):
        apart = 1 / (1 + np.exp(-(Z @ w + b))) - is_class
        w = w - Z.T @ apart / n
        b -= apart.mean()
        w = np.sign(w) * np.maximum(np.abs(w) - penalty, 0.0)
    return w


# -- the order of the columns ------------------------------------------------------------------------------


def test_order_is_that_of_the_weights_by_their_definition():
    X, y = rows(500)
    X[:, 5] = 1e4 * (X[:, 5] + 0.1 * y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = np.argsort(-np.abs(proximal_gradient(Z, y, 0.01)), kind="stable")
    np.testing.assert_array_equal(lasso_order(X, y)[:6], expected[:6])
    target = X[:, 3] - 0.5 * X[:, 8] + 1e-4 * X[:, 5]
    weights = coordinate_descent(Z, (target - target.mean()) / target.std(), 0.01)
    n_kept = np.count_nonzero(weights)
    assert 3 <= n_kept < 12
    expected = np.argsort(-np.abs(weights), kind="stable")
    np.testing.assert_array_equal(lasso_order(X, target, is_regression=True)[:n_kept], expected[:n_kept])


def test_order_of_several_classes_of_sparse_rows_and_of_missing_values():
    X, y = rows(1000, n_classes=4)
    names = np.array(["d", "a", "c", "b"], dtype=object)[y]
    assert set(lasso_order(X, names)[:2]) == {3, 8}
    X[X < 0.5] = 0.0
    np.testing.assert_array_equal(lasso_order(sp.csr_matrix(X), names)[:2], lasso_order(X, names)[:2])
    X[::3, 8] = np.nan
    X[:, 0] = 7.0  # constant
    order = lasso_order(X, names)
    assert set(order[:2]) == {3, 8}
    assert sorted(order) == list(range(12))


def test_columns_without_a_weight_follow_by_their_covariance():
    X, y = rows(400)
    X[:, 1] = X[:, 3]  # as good as column 3, and redundant to it
    assert set(lasso_order(X, y)[:2]) == {3, 8} or set(lasso_order(X, y)[:3]) == {1, 3, 8}


# -- in a run ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("learner", [Perceptron(random_state=0), GaussianNB()], ids=["linear", "bayes"])
def test_is_the_learner_on_the_columns_of_the_first_rows(learner):
    """The same as a run on these columns alone, from the rows after which they are known."""
    X, y = rows(2500)
    result = prequential((X, y), FIRES(2), clone(learner), batch_size=50, frozen_after=430)
    steps = result.frames["steps"]
    columns = np.sort(lasso_order(X[:430], y[:430])[:2])
    alone = prequential((X[:, columns], y), None, clone(learner), batch_size=50).frames["steps"]
    begins = int(np.flatnonzero(np.isfinite(steps["frozen_accuracy_cumulative"]))[0])
    assert steps["n_seen"][begins] == 500  # the batch after the row 450, when 430 rows had labels

    def of_batches(frame, name):
        return np.diff(frame[f"{name}_cumulative"] * np.cumsum(frame["n_rows"]))[begins:]

    # The scale is that of the rows before the batch; replayed rows have that of the row 450.
    apart = of_batches(steps, "frozen_accuracy") - of_batches(alone, "accuracy")
    if isinstance(learner, GaussianNB):
        np.testing.assert_allclose(apart, 0, atol=1e-9)
    assert abs(apart.mean()) < 1.5
    plain = prequential((X, y), FIRES(2), clone(learner), batch_size=50, baselines="none")
    np.testing.assert_array_equal(steps["accuracy"], plain.frames["steps"]["accuracy"])  # it changes nothing


def test_who_has_none():
    X, y = rows(1300)
    runs = [
        {"selector": None}, {"selector": RandomSubset(2)}, {"baselines": "none"}, {"frozen_after": 0},
        {"max_rows": 1000}, {"delay": 400},
    ]  # fmt: skip
    for options in runs:
        options = {"selector": FIRES(2)} | options
        total = prequential((X, y), learner=GaussianNB(), **options).summary()
        assert all(np.isnan(value) for name, value in total.items() if name.startswith("frozen_")), options
    total = prequential((X, y), FIRES(2), GaussianNB(), baselines="all").summary()
    assert np.isfinite([total["frozen_accuracy"], total["frozen_auc"], total["all_accuracy"]]).all()
    with pytest.raises(ValueError, match=r"frozen_after must be an integer in \[0, inf\), got -1"):
        prequential((X, y), FIRES(2), frozen_after=-1)


def test_waits_for_a_second_class_with_bounded_rows():
    X, y = rows(3000)
    y[:1500] = 0
    classes = [(X[at : at + 100], y[at : at + 100]) for at in range(0, 3000, 100)]
    result = prequential(classes, FIRES(2), GaussianNB(), frozen_after=500)
    steps = result.frames["steps"]
    begins = steps["n_seen"][np.isfinite(steps["frozen_accuracy_cumulative"])][0]
    assert begins == 1700  # the second class came with the row 1501


def test_follows_the_size_of_a_selector_that_decides_how_many():
    X, y = rows(3000)
    X[1500:, 6] += 2 * y[1500:]  # a third column becomes relevant
    result = prequential((X, y), DISCUSS(), GaussianNB(), frozen_after=500)
    sizes = set(result.frames["steps"]["n_selected"].tolist())
    assert len(sizes) > 1
    assert result.summary()["frozen_accuracy"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("kind", ["two", "three", "numbers", "delayed"])
def test_goes_on_from_a_checkpoint(tmp_path, kind, sparse):
    X, y = rows(1600, n_classes=3 if kind == "three" else 2)
    if kind == "numbers":
        y = X[:, 3] - X[:, 8] + 10.0
    selector = FIRES(2, model="gaussian") if kind == "numbers" else FIRES(2)
    learner = SGDRegressor(random_state=0) if kind == "numbers" else Perceptron(random_state=0)
    options = {"delay": 150 if kind == "delayed" else 0, "frozen_after": 700, "n_draws": 1}
    given = sp.csr_matrix(X) if sparse else X
    whole = prequential((given, y), tamis.loads(tamis.dumps(selector)), clone(learner), **options)
    for stop in (400, 700, 800, 1200):  # before, at and after the selection

        def interrupt(step):
            if step.n_seen >= stop:  # noqa: B023
                raise KeyboardInterrupt

        for on_step in (interrupt, None):
            kept = prequential(
                (given, y), tamis.loads(tamis.dumps(selector)), clone(learner), checkpoint=tmp_path / f"{stop}.tamis",
                checkpoint_every=1, on_step=on_step, on_interrupt="return", **options,
            )  # fmt: skip
            assert kept.settings["interrupted"] == (on_step is not None)
        for name, column in whole.frames["steps"].items():
            if not name.startswith(("seconds", "memory", "model")):
                np.testing.assert_array_equal(kept.frames["steps"][name], column, err_msg=name)


def test_a_result_that_was_saved_and_one_from_before(tmp_path):
    X, y = rows(1500)
    result = prequential((X, y), FIRES(2), GaussianNB(), frozen_after=500)
    result.save(tmp_path / "run")
    loaded = PrequentialResult.load(tmp_path / "run")
    assert loaded.summary()["frozen_gain"] == result.summary()["frozen_gain"]
    assert loaded.remarks() == result.remarks()
    for frame in (loaded.frames["steps"], result.frames["steps"]):
        for name in [name for name in frame if name.startswith("frozen_")]:
            frame[name] = np.full(len(y) // 100 - 1, np.nan)  # as `load` fills what was not measured
    assert np.isnan(loaded.summary()["frozen_gain"])
    assert not any("frozen" in remark for remark in loaded.remarks())


# -- the paired difference ---------------------------------------------------------------------------------


def steps_of(ours, theirs, size, known_from):
    n = len(ours) // size
    seen = size * np.arange(1, n + 1)
    ours, theirs = (np.cumsum(one)[seen - 1] / seen for one in (ours, theirs))
    theirs[:known_from] = np.nan
    return {"n_rows": np.full(n, size), "accuracy_cumulative": ours, "frozen_accuracy_cumulative": theirs}


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_difference_is_that_of_the_rows_since(size):
    rng = np.random.default_rng(size)
    ours, theirs = rng.random((2, 7000)) < [[0.8], [0.7]]
    known = 700 // size
    gain, error = paired_gain(steps_of(ours, theirs, size, known), "accuracy")
    apart = (ours.astype(float) - theirs)[(known + 1) * size : 7000 // size * size]
    assert gain == pytest.approx(apart.mean())
    assert error.error == pytest.approx(apart.std(ddof=1) / np.sqrt(len(apart)), rel=0.35)


def test_the_standard_error_covers_errors_that_come_in_runs():
    """Differences that last for 50 rows: of 200 streams, at least two thirds are within one standard error."""
    rng, within = np.random.default_rng(0), []
    for _ in range(200):
        ours = np.repeat(rng.random(100) < 0.5, 50)
        theirs = np.repeat(rng.random(100) < 0.5, 50)
        gain, error = paired_gain(steps_of(ours, theirs, 10, 5), "accuracy")
        if np.isfinite(error.error):
            within.append(abs(gain) <= error.error)
    assert len(within) > 120
    assert 0.6 < np.mean(within) < 0.88


def test_too_few_rows_for_a_difference():
    ours, theirs = np.ones(400), np.zeros(400)
    gain, error = paired_gain(steps_of(ours, theirs, 100, 2), "accuracy")
    assert np.isnan([gain, error.error]).all()
    assert paired_gain(steps_of(ours, theirs, 100, 1), "accuracy") == (1.0, MeanError(0.0, 1.0))
    steps = {"n_rows": np.full(8, 100), "auc_windowed": np.linspace(0.6, 0.95, 8)}
    steps["auc_cumulative"] = steps["auc_windowed"]
    steps["frozen_auc_windowed"] = np.where(np.arange(8) < 2, np.nan, 0.5)
    gain, error = auc_gain(steps, 200)
    ends = steps["auc_windowed"][[5, 7]] - 0.5  # the windows of the rows 401 to 600 and 601 to 800
    assert gain == pytest.approx(ends.mean())
    assert error.error == pytest.approx(ends.std(ddof=1) / np.sqrt(2))
    assert error.bound == pytest.approx(12.706 * error.error, rel=1e-4)
    assert np.isnan(auc_gain(steps, 1000)[1].error)
    steps["auc_cumulative"] = np.append(steps["auc_windowed"][:7], np.nan)  # a third class
    gain, error = auc_gain(steps, 200)
    assert np.isnan([gain, error.error]).all()


@pytest.mark.parametrize(("phi", "n_batches"), [(0.0, 100), (0.9, 100), (0.99, 100), (0.995, 300)])
def test_intervals_cover_the_mean_of_dependent_differences_or_are_undetermined(phi, n_batches):
    """Batches of 100 rows: .99 and .995 are memories of 200 to 800 rows."""
    outside = 0
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(size=n_batches * 100 + 2000)
        rows_ = lfilter([1], [1, -phi], noise)[2000:]
        error = mean_error(rows_.reshape(-1, 100).sum(axis=1), np.full(n_batches, 100.0))
        outside += abs(rows_.mean()) > error.bound
    assert outside <= 14  # the plain error of batches: 4 to 40


@pytest.mark.parametrize("d", [0.3, 0.4])
def test_intervals_under_long_memory_are_wider_or_undetermined(d):
    outside, rng = 0, np.random.default_rng(0)
    weights = np.r_[1.0, np.cumprod((np.arange(1, 8000) - 1 + d) / np.arange(1, 8000))]
    for _ in range(100):
        rows_ = fftconvolve(rng.normal(size=18_000), weights)[8000:18_000]
        error = mean_error(rows_.reshape(-1, 100).sum(axis=1), np.full(100, 100.0))
        outside += abs(rows_.mean()) > error.bound
    assert outside <= 13  # 15 to 20 with the variance of blocks alone


def test_intervals_of_independent_differences_are_rarely_undetermined():
    values = np.random.default_rng(1).normal(size=(100, 300))
    errors = [mean_error(100.0 * one, np.full(300, 100.0)).error for one in values]
    assert np.isnan(errors).mean() <= 0.1  # .18 without a test whether the parts are dependent


def test_a_memory_of_most_of_the_run_is_undetermined():
    state = np.repeat(np.random.default_rng(0).normal(size=8), 20)
    error = mean_error(100 * state, np.full(160, 100.0))
    assert np.isnan(error.bound)
    assert 5_000 < error.missing < 100_000


def test_three_draws_have_two_degrees_of_freedom():
    error = with_draws(MeanError(0.0, math.inf), 0.03, 3)
    assert error.freedom == pytest.approx(2.0)
    assert error.bound == pytest.approx(4.3027 * 0.03 / np.sqrt(3), rel=1e-4)
    assert with_draws(MeanError(0.01, 50.0), np.nan, 1).bound == np.inf


# -- what is said ------------------------------------------------------------------------------------------


def test_the_first_sentence_says_where_it_is_level():
    X, y = rows(4000)
    level = prequential((X, y), FIRES(2), GaussianNB(), frozen_after=500)
    assert level.remarks()[0].startswith(
        "The selection is not significantly better than one frozen after 500 rows (L1): since"
    )
    turned = np.where(np.arange(4000)[:, None] < 2000, X, np.roll(X, 1, axis=1))  # the relevant columns move
    ahead = prequential((turned, y), FIRES(2, half_life=300), GaussianNB(), frozen_after=500)
    assert not any("frozen" in remark for remark in ahead.remarks())
    assert ahead.summary()["frozen_gain"] > 0.1
    assert "frozen_accuracy=" in repr(ahead)
    assert "frozen selection" in ahead._repr_html_()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "is not significantly better than one frozen after 1,000 rows (L1): since then its accuracy is 0.004"),
        ({"frozen_gain": -0.015}, "is not significantly better than one frozen after 1,000 rows (L1): since"),
        (
            {"frozen_gain": -0.02, "frozen_gain_bound": np.nan, "frozen_gain_missing": 41_234.0},
            "loses to one frozen after 1,000 rows (L1) is undetermined: errors depend on those of so many"
            " rows before that about 40,000 more rows are needed.",
        ),
        ({"frozen_gain": -0.02}, "loses to one frozen after 1,000 rows (L1): since then its accuracy is 0.020 lower"),
        # By 1.5 standard errors.
        ({"frozen_gain": 0.015}, "is not significantly better than one frozen after 1,000 rows (L1): since"),
        ({"frozen_gain": 0.02}, None),
        ({"frozen_gain": np.nan, "frozen_gain_error": np.nan}, None),
        ({"n_selected": 9.0}, None),
        (
            {"majority_accuracy": 0.95, "frozen_auc": 0.7, "frozen_auc_gain": -0.1, "frozen_auc_gain_error": 0.02,
             "frozen_auc_gain_bound": 0.05},
            "loses to one frozen after 1,000 rows (L1): since then its AUC is 0.100 lower (95 % interval: ± 0.050)",
        ),
    ],
)  # fmt: skip
def test_sentences(changes, sentence):
    total = {
        "accuracy": 0.8, "majority_accuracy": 0.6, "random_accuracy": 0.5, "random_auc": 0.5, "auc": 0.8,
        "random_spread": 0.01, "random_auc_spread": 0.01, "frozen_gain": 0.004, "frozen_gain_error": 0.01,
        "frozen_gain_bound": 0.0196, "n_selected": 3.0, "n_features": 9.0,
    } | changes  # fmt: skip
    found = [remark for remark in remarks_on(total, {"options": {}}) if "frozen" in remark]
    assert found == [] if sentence is None else sentence in found[0]


@pytest.mark.parametrize(
    ("gain", "bound", "n_draws", "sentence"),
    [
        (0.03, 0.04, 3, "significantly better than random subsets of the same size: accuracy 0.800 against 0.770 ±"),
        (-0.03, 0.04, 3, "significantly better than random subsets of the same size: accuracy 0.800 against 0.830 ±"),
        (0.05, 0.04, 3, None),
        (-0.05, 0.04, 3, "loses to random subsets of the same size: accuracy 0.800 against 0.850 ± 0.040"),
        (-0.05, np.inf, 1, "better than random subsets of the same size: accuracy 0.800 against 0.850 (one draw). Try"),
        (0.05, np.inf, 1, None),
    ],
)  # fmt: skip
def test_sentences_on_random_subsets(gain, bound, n_draws, sentence):
    total = {
        "accuracy": 0.8, "majority_accuracy": 0.6, "random_accuracy": 0.8 - gain, "random_gain": gain,
        "random_gain_bound": bound, "random_spread": 0.01, "n_selected": 3.0, "n_features": 9.0,
    }  # fmt: skip
    found = [remark for remark in remarks_on(total, {"options": {"n_draws": n_draws}}) if "random" in remark]
    assert found == [] if sentence is None else sentence in found[0]


def test_numbers_have_a_sentence_too():
    X, y = rows(3000)
    y = X[:, 3] - 0.6 * X[:, 8] + 0.1 * np.random.default_rng(1).normal(size=3000)
    result = prequential((X, y), FIRES(2, model="gaussian"), frozen_after=500)
    total = result.summary()
    assert total["frozen_mae"] < total["random_mae"]
    [remark] = [remark for remark in result.remarks() if "frozen" in remark]
    assert ("lower" in remark) == (total["frozen_gain"] > 0)  # a lower error is a gain


@pytest.mark.slow
def test_a_comparison_names_the_methods_that_are_level(tmp_path):
    X, y = rows(3000)
    turned = np.where(np.arange(3000)[:, None] < 1500, X, np.roll(X, 1, axis=1))
    result = run_experiment(
        {"still": (X, y), "turned": (turned, y)},
        {"fires": FIRES(2, half_life=300), "forward": ForwardPartialCorrelation(2, half_life=300), "none": None},
        {"nb": GaussianNB()}, folder=tmp_path / "grid", seeds=[0], frozen_after=500,
    )  # fmt: skip
    level = result.no_better_than_frozen()
    assert "turned" not in level
    assert "none" not in level["still"]
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert " a frozen selection (L1, of the first rows): " in page
    assert "selected once from the first rows (L1)" in page


class Fixed(BaseEstimator):
    """A selector of given columns."""

    def __init__(self, columns=(0, 1)):
        self.columns = columns

    def partial_fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def get_support(self):
        return np.isin(np.arange(self.n_features_in_), self.columns)


def test_the_verdict_says_what_to_do_instead():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 12))
    every = X.sum(axis=1) + rng.normal(size=4000) > 0  # all columns matter
    assert (
        prequential((X, every), FIRES(2)).verdict().startswith("Keep all 12 features: 2 of 12 features give")
    )
    few = np.hstack([X[:, [3]], np.zeros((4000, 1)), 0.5 * rng.normal(size=(4000, 60))])
    label = X[:, 3] + 0.3 * rng.normal(size=4000) > 0
    learner = GaussianNB()
    found = prequential((few, label), Fixed([5, 6]), learner).verdict()
    assert found.startswith("Select once instead of online: 2 of 62 features give accuracy 0.")
    assert "against a selection frozen after 1,000 rows" in found
    assert prequential((few, label), Fixed([0, 5]), learner).verdict().startswith("The selection")
