"""AACO against its twin, and what it is for: columns that pay only together, budgets, fees, missing values."""

import numpy as np
import pytest

from tamis import AACO, load, save
from tamis.base import PriceList
from tests.twins import aaco as twin


def pointer(rng, n=500, others=4):
    """Column 0 indicates which of the others has the class, and says nothing of it alone; the last is a category."""
    y, which = rng.integers(0, 2, n), rng.integers(0, others, n)
    X = np.column_stack([which, rng.normal(size=(n, others)), rng.integers(0, 3, n)]).astype(float)
    X[np.arange(n), 1 + which] += 4 * y - 2
    return X, y


@pytest.mark.parametrize(
    "settings",
    [{}, {"objective": "log-loss"}, {"budget": 0.05}, {"groups": [[1, 2]]},
     {"cost": PriceList(0.01, fees=[([1, 2, 3], 0.02)])}],
    ids=str,
)  # fmt: skip
def test_chooses_as_the_twin(rng, settings):
    X, y = pointer(rng, 50)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0] = rng.integers(0, 4, 50)  # so that the model of subsets has no missing category
    given = {"cost": 0.02, "n_neighbors": 7, "n_subsets": 6, "random_state": 0, **settings}
    model = AACO(categorical=[0, 5], **given).fit(X, y)
    bank = model._bank
    columns, state = model.candidates_, model._start(1)
    row = X[0, columns]
    subsets = [set(np.flatnonzero(one).tolist()) for one in model._subsets]
    tariff = model._tariff

    def posterior(i, known):
        rows = np.full((1, bank.shape[1]), np.nan)
        rows[0, sorted(known)] = bank[i, sorted(known)]
        return model._folds[model._fold[i]].posterior(rows)

    def loss(i, known):
        return float(model._goal.losses(posterior(i, known), model._bank_y[i : i + 1])[0])

    complete = ~np.isnan(bank).any(axis=1)  # missing values are imputed, which the twin does not do
    model._bank, model._bank_y, model._fold = bank[complete], model._bank_y[complete], model._fold[complete]
    bank = model._bank
    known, asked, spent = set(), set(), 0.0
    for _ in range(4):
        sizes = model._bins.sizes > 0
        distances = [twin.distance(row, other, known, model._scale, sizes, *model._clip) for other in bank]

        def price(subset, known=known):
            mask = np.isin(np.arange(len(row)), list(subset))
            return float(tariff.total(np.isin(np.arange(len(row)), list(known)), mask[None])[0])

        wanted = twin.choose(
            row,
            known,
            asked,
            bank,
            distances,
            subsets,
            loss,
            price,
            7,
            left=settings.get("budget", np.inf) - spent,
        )
        found = int(model._choose(state, None)[0])
        assert found == wanted
        if found < 0:
            break
        asked.add(found)
        if not np.isnan(row[found]):
            spent += price({found})
            known.add(found)
        code = model._codes(row[None, [found]], np.array([found]))[0]
        state.spent[0] = spent
        model._observe(state, np.array([found]), code, row[[found]])


def test_losses_of_missing_training_values_are_finite(rng):
    X, y = pointer(rng, 200)
    X[rng.random(X.shape) < 0.3] = np.nan
    model = AACO(0.01, random_state=0).fit(X, y)
    losses = model._subset_losses(
        np.zeros(6, dtype=bool), model._feasible_subsets(np.zeros(6, dtype=bool)), np.arange(200)
    )
    assert np.isfinite(losses).all()
    assert losses[0].mean() > losses.mean(axis=1).min() + 0.1


def test_columns_that_pay_only_together_are_acquired(rng):
    X, y = pointer(rng, 1000, others=2)
    model = AACO(0.04, categorical=[0], random_state=0).fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > 0.93
    assert model.n_features_used_.mean() < 2.2
    assert 0 in {name for trace in model.acquire(X[700:740]) for name in trace.features}


def test_noise_is_not_acquired(rng):
    X, y = rng.normal(size=(300, 8)), rng.integers(0, 2, 300)
    model = AACO(0.01, random_state=0).fit(X, y)
    model.predict(X)
    assert not model.pays_
    assert model.cost_.sum() == 0.0


@pytest.mark.slow
def test_mean_budget_and_spending_all(rng):
    X, y = pointer(rng, 900)
    model = AACO(1.0, mean_budget=3.0, random_state=0).fit(X[:600], y[:600])
    model.predict(X[600:])
    assert 2.0 < model.cost_.mean() < 3.2
    assert model.score(X[600:], y[600:]) > 0.8
    # Until one value is known all rows are alike, and one value alone is worth nothing here.
    model = AACO(1.0, mean_budget=0.5, random_state=0).fit(X[:600], y[:600])
    model.predict(X[600:])
    assert model.cost_.mean() == 0.0
    model = AACO(1.0, budget=3.0, spend="all", random_state=0).fit(X[:600], y[:600])
    model.predict(X[600:])
    assert (model.cost_ == 3.0).all()


def test_a_saved_model_decides_alike(rng, tmp_path):
    X, y = pointer(rng)
    model = AACO(0.02, objective="auc", random_state=0).fit(X[:300], y[:300])
    other = load(save(model, tmp_path / "model.tamis"))
    np.testing.assert_array_equal(other.predict_proba(X[300:]), model.predict_proba(X[300:]))
    np.testing.assert_array_equal(other.cost_, model.cost_)
