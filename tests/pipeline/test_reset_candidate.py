"""A reset learner replaces the old one only where it predicts better, and the comparison is saved and bounded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDRegressor
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import StreamPipeline, prequential
from tamis.learners import AdaptiveRandomForest
from tamis.pipeline.reset_candidate import LEVEL, MAX_ROWS, ResetCandidate
from tamis.summaries.paired_losses import log_evidence
from tests.twins.reset_candidate import decide, evidence, rates


class Alarms(tamis.FisherScore):
    """Keeps every column, and reports a drift every `period` rows."""

    n_replay = 200

    def __init__(self, period: int = 1000) -> None:
        super().__init__(n_features_to_select=1.0)
        self.period = period

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)
        before, self.n_rows_ = getattr(self, "n_rows_", 0), getattr(self, "n_rows_", 0) + len(y)
        self.drift_detected_ = before // self.period < self.n_rows_ // self.period
        return self


@pytest.mark.parametrize(("ahead", "behind"), [(0, 0), (1, 0), (20, 5), (5, 20), (60, 40), (3, 3)])
def test_evidence_is_that_of_its_definition(ahead: int, behind: int) -> None:
    assert log_evidence(ahead, behind) == pytest.approx(math.log(evidence(ahead, behind)), rel=1e-6, abs=1e-6)


def test_evidence_of_many_rows_is_a_number() -> None:
    assert log_evidence(5000, 100) > 1000
    assert log_evidence(100, 5000) == -math.inf or log_evidence(100, 5000) < -5


@pytest.mark.parametrize(("ours", "others"), [(0.1, 0.4), (0.4, 0.1), (0.3, 0.3), (0.2, 0.25)])
@pytest.mark.parametrize("n_failed", [0, 5])
def test_decides_as_its_twin(ours: float, others: float, n_failed: int) -> None:
    rng = np.random.default_rng(0)
    batches = [(rates(rng, 100, ours), rates(rng, 100, others)) for _ in range(40)]
    candidate, found = ResetCandidate(None, n_failed), None  # type: ignore[arg-type]
    for at, (one, other) in enumerate(batches):
        candidate.compare(one, other)
        if candidate.is_ahead or candidate.is_over:
            found = at, "replaces" if candidate.is_ahead else "dropped"
            break
    assert found == decide(batches, LEVEL, MAX_ROWS, n_failed) is not None


@pytest.mark.parametrize("n_failed", [0, 4])
def test_equal_learners_are_exchanged_as_seldom_as_the_level_says(n_failed: int) -> None:
    rng = np.random.default_rng(1)
    n_wrong, level = 0, LEVEL / (1 + n_failed) ** 2
    for _ in range(400):
        candidate = ResetCandidate(None, n_failed)  # type: ignore[arg-type]
        while not (candidate.is_ahead or candidate.is_over):
            candidate.compare(rates(rng, 100, 0.3), rates(rng, 100, 0.3))
        n_wrong += candidate.is_ahead
    assert n_wrong <= 400 * level + 3 * math.sqrt(400 * level)


def drifting(n: int = 6000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.arange(n) < n // 2, X[:, 0] > 0, X[:, 0] < 0).astype(int)


def test_a_reset_after_a_drift_is_adopted() -> None:
    data = drifting()
    ways = {
        way: prequential(data, Alarms(3000), GaussianNB(), replay=way, baselines="none")
        for way in ("auto", "never", "always")
    }
    # The alarm at row 3,000 comes with the last row before the drift, so the replayed rows are the old ones.
    ways |= {"late": prequential(data, Alarms(3200), GaussianNB(), baselines="none")}
    accuracy = {way: result.summary()["accuracy"] for way, result in ways.items()}
    assert accuracy["late"] > accuracy["never"] + 0.2
    assert ways["late"].settings["replays"] == 1
    assert ways["late"].settings["challenges"] == 1
    assert ways["never"].settings["challenges"] == 0


def test_needless_resets_are_not_adopted() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6000, 20))
    y = (X.sum(axis=1) + 3 * rng.normal(size=6000) > 0).astype(int)
    always, auto, never = (
        prequential((X, y), Alarms(500), GaussianNB(), replay=way, baselines="none")
        for way in ("always", "auto", "never")
    )
    assert auto.settings["replays"] == 0 < auto.settings["challenges"] <= 11
    assert auto.summary()["accuracy"] >= never.summary()["accuracy"] - 0.003 > always.summary()["accuracy"]


def test_learners_that_adapt_are_never_challenged() -> None:
    result = prequential(drifting(), Alarms(500), AdaptiveRandomForest(3), baselines="none")
    assert result.settings["challenges"] == result.settings["replays"] == 0


def test_numbers_are_compared_by_their_errors() -> None:
    X, _ = drifting()
    target = np.where(np.arange(6000) < 3000, X[:, 0], 5.0 - X[:, 1])
    learner = SGDRegressor(learning_rate="invscaling", power_t=0.9, random_state=0)

    class Whole:
        n_replay, n_seen, drift_detected_ = 200, 0, False

        def partial_fit(self, X: Any, y: Any) -> None:
            self.n_seen += len(y)
            self.drift_detected_ = self.n_seen == 3200

        def get_support(self) -> Any:
            return np.ones(3, dtype=bool)

    result = prequential((X, target), Whole(), learner, baselines="none")
    assert (result.settings["replays"], result.settings["challenges"]) == (1, 1)


@pytest.mark.parametrize("delay", [0, 150])
def test_a_run_is_resumed_within_a_comparison(delay: int, tmp_path: Any) -> None:
    X, y = drifting()
    options = {"delay": delay, "baselines": "none", "checkpoint": tmp_path / "run", "checkpoint_every": 1}
    whole = prequential((X, y), Alarms(3200), GaussianNB(), delay=delay, baselines="none")

    def stop(step: Any) -> None:
        if step.n_seen == 3500 + 2 * delay:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        prequential((X, y), Alarms(3200), GaussianNB(), on_step=stop, **options)
    part = prequential((X, y), Alarms(3200), GaussianNB(), **options)
    np.testing.assert_array_equal(part.frames["steps"]["accuracy"], whole.frames["steps"]["accuracy"])
    assert part.settings["replays"] == whole.settings["replays"]


def test_a_pipeline_equals_the_run() -> None:
    X, y = drifting()
    result = prequential((X, y), Alarms(3200), GaussianNB(), baselines="none")
    model = StreamPipeline(Alarms(3200), GaussianNB())
    for at in range(0, 6000, 70):
        model.partial_fit(X[at : at + 70], y[at : at + 70])
    assert (model.predict_proba(X) == result.pipeline().predict_proba(X)).all()
    loaded = tamis.loads(tamis.dumps(model), classes=[Alarms])
    assert (model.predict_proba(X) == loaded.predict_proba(X)).all()
