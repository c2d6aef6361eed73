"""The copied trees decide as scikit-learn's own."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import tamis
from tamis import AdaptiveIFC2F
from tamis.cells.booster import Booster


@pytest.mark.parametrize("n_classes", [2, 3])
def test_copied_trees_are_those_of_scikit_learn(rng, n_classes, monkeypatch):
    y = rng.integers(0, n_classes, 900)
    numbers = rng.normal(size=(900, 5)) + y[:, None]
    numbers[rng.random(numbers.shape) < 0.4] = np.nan
    numbers[:, 3] = np.nan
    believed = rng.dirichlet(np.ones(n_classes), 900)
    kept = {}
    fit = HistGradientBoostingClassifier.fit
    monkeypatch.setattr(
        HistGradientBoostingClassifier, "fit", lambda self, X, y: kept.update(model=fit(self, X, y))
    )
    booster = Booster(n_classes, 0)
    booster.fit(numbers, believed, y)
    found = booster.posterior(numbers, believed)
    some = ~np.isnan(numbers).all(axis=1)
    want = kept["model"].predict_proba(booster._rows(numbers, believed))
    np.testing.assert_allclose(found[some], want[some], rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(found[~some], believed[~some])


def test_a_class_that_no_walk_met_has_no_chance(rng):
    y = 2 * rng.integers(0, 2, 300)
    numbers, believed = rng.normal(size=(300, 2)) + y[:, None], np.full((300, 3), 1 / 3)
    booster = Booster(3, 0)
    booster.fit(numbers, believed, y)
    found = booster.posterior(numbers, believed)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_saved_model_boosts_as_before(rng, tmp_path):
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 4)) + y[:, None]
    model = AdaptiveIFC2F(decision="boosting", max_steps=3, random_state=0).fit(X, y)
    again = tamis.load(tamis.save(model, tmp_path / "model.tamis"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
