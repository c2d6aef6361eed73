"""Cases that arrive: fading of earlier rows in every method, and alarms about losses and recorded values."""

import numpy as np
import pytest

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset, load, save
from tamis.cells import CaseMonitor

METHODS = {
    "IFC2F": lambda **given: IFC2F(order="mrmr", random_state=0, **given),
    "ETANA": lambda **given: ETANA(order="mrmr", random_state=0, **given),
    "FETANA": lambda **given: FETANA(order="mrmr", n_iterations=300, random_state=0, **given),
    "AdaptiveIFC2F": lambda **given: AdaptiveIFC2F(decision="discriminant", random_state=0, **given),
    "FixedSubset": lambda **given: FixedSubset(random_state=0, **given),
    "AACO": lambda **given: AACO(n_subsets=20, random_state=0, **given),
}


def rows(n, seed, column=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, column] += 3 * y
    return X, y


@pytest.mark.parametrize("name", METHODS)
def test_every_method_forgets_rows_before_a_drift(name):
    """After 1,500 rows another column carries the class; 600 rows later, a model with fading has replaced it."""
    faded, whole = METHODS[name](fading=0.99), METHODS[name]()
    X, y = rows(1500, 0)
    for model in (faded, whole):
        model.partial_fit(X, y)
    X, y = rows(600, 1, column=3)
    for start in range(0, 600, 50):
        for model in (faded, whole):
            model.partial_fit(X[start : start + 50], y[start : start + 50])
    X, y = rows(800, 2, column=3)
    assert faded.score(X, y) > 0.88
    assert faded.score(X, y) > whole.score(X, y) + 0.2


@pytest.mark.parametrize("name", METHODS)
def test_fading_is_a_share(name):
    X, y = rows(60, 0)
    with pytest.raises(ValueError, match="fading"):
        METHODS[name](fading=1.5).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return AdaptiveIFC2F(0.01, decision="discriminant", random_state=0).fit(*rows(600, 0))


def alarms_of(monitor, model, X, y):
    losses, masks = [], []
    for i, case in enumerate(model.acquire(X)):
        monitor.update(case, None if y is None else y[i])
        if monitor.drift_detected:
            losses.append(i)
        if monitor.changed_features:
            masks.append((i, list(monitor.changed_features)))
    return losses, masks


@pytest.mark.parametrize("seed", range(5))
def test_an_alarm_is_raised_soon_after_the_loss_rises(model, seed):
    X, y = rows(800, 10 + seed)
    y[500:] = 1 - y[500:]
    losses, _ = alarms_of(monitor := CaseMonitor(model), model, X, y)
    assert losses
    assert 500 <= losses[0] < 600
    assert monitor.loss > 0.7  # since the alarm


def test_no_alarm_without_a_change(model):
    n_alarms = 0
    for seed in range(5):
        losses, masks = alarms_of(CaseMonitor(model), model, *rows(1000, 30 + seed))
        n_alarms += len(losses) + len(masks)
    assert n_alarms == 0


def test_an_alarm_names_the_features_that_are_recorded_for_other_cases(model):
    """A value is no longer available from the 500th case on; no label is needed."""
    X, _ = rows(1000, 50)
    X[500:, 1] = np.nan
    losses, masks = alarms_of(monitor := CaseMonitor(model), model, X, None)
    assert not losses
    assert 500 <= masks[0][0] < 600
    assert 1 in masks[0][1]
    assert (monitor.n_cases, monitor.n_labelled) == (1000, 0)


def test_sessions_and_batches_are_the_same_cases(model):
    X, y = rows(80, 60)
    X[::9, 1] = np.nan
    one, other = CaseMonitor(model), CaseMonitor(model)
    for x, case, label in zip(X, model.acquire(X), y, strict=True):
        session = model.open()
        while (column := session.next_feature) is not None:
            session.observe(None if np.isnan(x[column]) else x[column], column)
        assert one.update(session, label) == other.update(case, label)
        assert one.loss == pytest.approx(other.loss)
    assert one.loss > 0.0


def test_a_saved_monitor_goes_on(model, tmp_path):
    X, y = rows(800, 70)
    y[400:] = 1 - y[400:]
    monitor = CaseMonitor(model)
    alarms_of(monitor, model, X[:350], y[:350])
    save(monitor, tmp_path / "monitor.tamis")
    again = load(tmp_path / "monitor.tamis")
    assert alarms_of(again, model, X[350:], y[350:]) == alarms_of(monitor, model, X[350:], y[350:])
    assert again.n_cases == 800
