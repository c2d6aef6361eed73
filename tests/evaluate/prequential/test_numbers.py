"""Runs that predict numbers: against a plain loop and scikit-learn's measures, baselines, checkpoints, wrong input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Perceptron, SGDRegressor
from sklearn.metrics import mean_absolute_error

import tamis
from tamis import FIRES, ForwardPartialCorrelation, RandomSubset, prequential
from tamis.errors import DataError
from tamis.evaluate import PrequentialResult
from tests.evaluate.prequential.test_prequential import same, stop_after
from tests.twins import prequential as twin

SELECTORS = [
    FIRES(3, model="gaussian"),
    ForwardPartialCorrelation(3, task="regression"),
    RandomSubset(3, random_state=0, task="regression"),
]


def rows(n=1500, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, 50 + 10 * (2 * X[:, 0] - X[:, 4] + 0.3 * rng.normal(size=n))


def usual():
    return SGDRegressor(loss="huber", epsilon=1.0, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 30, 200])
@pytest.mark.parametrize("scale", ["auto", "none"])
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_equals_the_plain_loop(selector, scale, delay):
    X, y = rows()
    y = y if scale == "auto" else (y - 50) / 20  # a linear model that nobody scales the target of
    expected = twin.prequential_of_numbers(
        X, y, tamis.loads(tamis.dumps(selector)), usual(), 70, 300, delay, scale == "auto"
    )
    result = prequential(
        (X, y), tamis.loads(tamis.dumps(selector)), usual(), batch_size=70, window=300, delay=delay, scale=scale,
        replay="never",
    )  # fmt: skip
    steps = result.frames["steps"]
    assert len(steps["step"]) == len(expected)
    for name in expected[0]:
        np.testing.assert_allclose(
            steps[name], [row[name] for row in expected], err_msg=name, rtol=1e-7, atol=1e-9
        )


def test_the_signal_is_found_and_beats_what_it_must():
    X, y = rows()
    total = prequential((X, y), FIRES(2, model="gaussian"), baselines="both").summary()
    assert total["mae"] < 0.5 * min(total["random_mae"], total["mean_mae"], total["last_mae"])
    assert total["r2"] > 0.85
    assert total["all_mae"] < total["random_mae"]
    assert set(total) >= {"random_spread", "mae_windowed", "stability"}
    assert not {name for name in total if "accuracy" in name and "selection" not in name}


def test_random_subsets_are_those_of_random_subset():
    X, y = rows()
    beside = prequential((X, y), FIRES(12, model="gaussian"), baselines="both", replay="never")
    alone = prequential((X, y), None, usual())
    for name in ("random_mae_cumulative", "all_mae_cumulative", "all_mae_windowed"):
        column = name.replace("random_", "").replace("all_", "")
        np.testing.assert_allclose(beside.frames["steps"][name], alone.frames["steps"][column], rtol=1e-12)


def test_the_learner_says_what_is_predicted_and_few_numbers_are_not_classes():
    X, _ = rows()
    y = np.round(2 * X[:, 0] - X[:, 4])  # a dozen whole numbers
    result = prequential((X, y), FIRES(2, model="gaussian"), SGDRegressor(random_state=0))
    assert result.settings["task"] == "regression"
    assert result.summary()["mae"] < 0.6
    assert prequential((X, y), FIRES(2)).settings["task"] == "classification"
    assert prequential((X, y), None, SGDRegressor(random_state=0)).settings["task"] == "regression"


@pytest.mark.parametrize(
    ("selector", "learner", "message"),
    [
        (
            FIRES(2),
            usual(),
            r"predicts numbers, but FIRES is set to learn classes: choose FIRES\(model='gaussian'\)",
        ),
        (
            FIRES(2, model="gaussian"),
            Perceptron(),
            "predicts classes, but FIRES is set to learn numbers: choose a reg",
        ),
        (RandomSubset(2), usual(), r"choose RandomSubset\(task='regression'\)"),
        (tamis.OFS(2), usual(), "choose one of FIRES, MonteCarloFIRES, FSDS, LeverageScores"),
    ],
)
def test_selector_and_learner_that_do_not_go_together(selector, learner, message):
    with pytest.raises(ValueError, match=message):
        prequential(rows(), selector, learner)


def test_targets_that_are_no_numbers():
    X, y = rows()
    with pytest.raises(DataError, match="y contains 'a', which is text"):
        prequential((X, np.where(y > 50, "a", "b")), FIRES(2, model="gaussian"))
    batches = [(X[:700], y[:700]), (X[700:], np.where(np.arange(700, 1500) == 710, np.nan, y[700:]))]
    with pytest.raises(DataError, match="missing") as raised:
        prequential(batches, FIRES(2, model="gaussian"))
    assert raised.value.result.summary()["n_rows"] == 600  # the batches before it
    with pytest.raises(ValueError, match="auc=True ranks rows of two classes"):
        prequential((X, y), FIRES(2, model="gaussian"), auc=True)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 250])
def test_goes_on_where_it_stopped(tmp_path, delay):
    X, y = rows()
    path = tmp_path / "run.tamis"
    for kept in (X, sp.csr_matrix(X)):
        for selector in SELECTORS[:2]:
            if sp.issparse(kept) and isinstance(selector, ForwardPartialCorrelation):
                continue

            def run(**options):
                model = tamis.loads(tamis.dumps(selector))  # noqa: B023
                return prequential((kept, y), model, baselines="both", delay=delay, **options)  # noqa: B023

            whole = run()
            run(checkpoint=path, on_step=stop_after(6), on_interrupt="return")
            same(whole, run(checkpoint=path))
            path.unlink()


@pytest.mark.slow
def test_thinned_records_keep_the_mean_error():
    X, y = rows(4000)
    whole = prequential((X, y), FIRES(2, model="gaussian"), batch_size=20)
    thinned = prequential((X, y), FIRES(2, model="gaussian"), batch_size=20, keep_steps=40)
    steps = thinned.frames["steps"]
    assert len(steps["step"]) < 40
    assert np.average(steps["mae"], weights=steps["n_rows"]) == pytest.approx(whole.summary()["mae"])
    assert thinned.summary()["mae"] == whole.summary()["mae"]


def test_is_saved_and_read_again(tmp_path):
    result = prequential(rows(), FIRES(2, model="gaussian"))
    again = PrequentialResult.load(result.save(tmp_path / "result"))
    np.testing.assert_equal(again.summary(), result.summary())
    assert again.task is result.task
    assert "mean absolute error" in result._repr_html_()
    assert "mae=" in repr(result)
    assert result.recovery().rows.size == 0


def test_going_on_with_the_learner_after_the_run():
    X, y = rows(3000)
    learner = SGDRegressor(random_state=0)
    result = prequential((X[:2000], y[:2000]), None, learner)
    target = result.target_scale
    predicted = learner.predict(result.scale.transform(X[2000:])) / target.factor + target.shift
    assert mean_absolute_error(y[2000:], predicted) < 0.3 * np.abs(y[2000:] - y.mean()).mean()


class LastSeen(RegressorMixin, BaseEstimator):
    """A regressor of somebody else that says the mean target of the last batch."""

    def partial_fit(self, X, y):
        self.n_features_in_, self.mean_ = X.shape[1], float(np.mean(y))
        return self

    def predict(self, X):
        return np.full((X.shape[0], 1), self.mean_)


def test_regressors_of_others_are_given_targets_as_they_are():
    X, y = rows()
    learner = LastSeen()
    result = prequential((X, y), FIRES(2, model="gaussian"), learner)
    assert learner.mean_ == np.mean(y[1400:])
    assert result.settings["scale"] == "none"
    assert result.summary()["mae"] == pytest.approx(
        mean_absolute_error(y[100:], np.repeat(y[:1400].reshape(-1, 100).mean(axis=1), 100))
    )


def test_no_number_of_columns_throws_the_usual_learner_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3000))
    y = X[:, 0] + 1e6
    y[300] = 1e12  # and no single target
    total = prequential((X, y), FIRES(5, model="gaussian"), baselines="both").summary()
    assert np.isfinite([total["mae"], total["random_mae"], total["all_mae"]]).all()


def test_remarks_say_what_the_run_does_not_beat():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 10)), rng.normal(size=2000)
    found = prequential((X, y), FIRES(2, model="gaussian")).remarks()
    assert found[0].startswith("The mean absolute error")
    assert "mean of all targets before" in found[0]
    assert "one frozen after 1,000 rows (L1)" in found[1]
    assert "random subsets of the same size" in found[2]
    # The errors of three draws have two degrees of freedom.
    level, random = prequential(rows(), FIRES(2, model="gaussian")).remarks()
    assert "is not significantly better than one frozen" in level
    assert random.endswith("(mean of 3 draws, and 95 % interval). More rows and draws narrow the interval.")
    assert prequential(rows(), FIRES(2, model="gaussian"), n_draws=10).remarks() == [level]
