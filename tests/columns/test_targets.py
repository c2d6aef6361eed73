"""Several targets of streaming features share one error budget."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tamis
from tamis import AlphaInvesting, AlphaInvestingPerTarget
from tamis.columns.online_fdr import make_rule
from tamis.errors import DataError


def test_the_budget_is_that_of_one_rule_in_the_order_of_the_tests(rng):
    X, noise = rng.normal(size=(200, 40)), rng.normal(size=(200, 3))
    Y = X[:, [3, 9, 20]] + X[:, [9, 20, 30]] + noise
    for rule in ("alpha-investing", "lord++", "closed-e-lond"):
        model = AlphaInvestingPerTarget(AlphaInvesting(target_fdr=0.1, rule=rule)).start(Y)
        one = make_rule(rule, 0.1).start()
        for part in np.split(np.arange(40), [1, 2, 10]):
            accepted = model.offer_many(X[:, part], [f"f{j}" for j in part])
            for target, selector in enumerate(model.selectors_):
                records = selector.trace_[-len(part) :]
                for record, was in zip(records, accepted[target], strict=True):
                    assert record["threshold"] == pytest.approx(np.exp(one.level()), rel=1e-9)
                    one.update(bool(was), record["log_p"])
        assert model.wealth_ == pytest.approx(one.wealth_, rel=1e-9)
        assert {"f3", "f9", "f20", "f30"} <= set(model.selected_)
        again = tamis.loads(tamis.dumps(model))
        assert (
            again.offer(Y[:, 0] - Y[:, 1], "gap").tolist() == model.offer(Y[:, 0] - Y[:, 1], "gap").tolist()
        )
        assert again.wealth_ == model.wealth_


def test_models_differ_by_target_and_frames_name_them(rng):
    X = rng.normal(size=(300, 30))
    frame = pd.DataFrame(
        {"price": X[:, 2] + rng.normal(size=300), "sold": X[:, 7] + rng.normal(size=300) > 0}
    )
    model = AlphaInvestingPerTarget(AlphaInvesting(target_fdr=0.05), models=["linear", "logistic"]).fit(
        X, frame
    )
    assert model.selected_by_target_ == {"price": ["x2"], "sold": ["x7"]}


def test_an_error_changes_nothing(rng):
    X, Y = rng.normal(size=(100, 5)), rng.normal(size=(100, 2))
    model = AlphaInvestingPerTarget(AlphaInvesting(target_fdr=0.1)).fit(X, Y)
    before = tamis.dumps(model)
    bad = X.copy()
    bad[3, 4] = np.nan
    with pytest.raises(DataError, match="NaN"):
        model.offer_many(bad, list("abcde"))
    assert tamis.dumps(model) == before
    model.offer(Y[:, 0] + 0.1 * X[:, 0], "copy")
    assert model.selectors_[0]._rule is model.selectors_[1]._rule
    with pytest.raises(ValueError, match="models must have an entry for each of 2 targets, got 1"):
        AlphaInvestingPerTarget(AlphaInvesting(), models=["linear"]).start(Y)
    with pytest.raises(ValueError, match="selector must be an AlphaInvesting"):
        AlphaInvestingPerTarget(tamis.SAOLA()).start(Y)


def runs(rule, n_runs, correlation, n_true=4, shared=True):
    """Return false discovery proportions over (column, target) pairs, and power, of five targets."""
    rng, rates, power = np.random.default_rng(5), [], []
    for _ in range(n_runs):
        X, common = rng.normal(size=(100, 60)), rng.normal(size=(100, 1))
        noise = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(100, 5))
        Y = 0.6 * X[:, :n_true].sum(axis=1, keepdims=True) * (n_true > 0) + noise
        X = X[:, (order := rng.permutation(60))]
        true = np.isin(order, np.arange(n_true))
        if shared:
            model = AlphaInvestingPerTarget(AlphaInvesting(rule=rule, target_fdr=0.2)).start(Y)
            kept = model.offer_many(X)
        else:
            kept = np.array([
                AlphaInvesting(rule=rule, target_fdr=0.04).fit(X, Y[:, t]).get_support() for t in range(5)
            ])  # fmt: skip
        rates.append(kept[:, ~true].sum() / max(kept.sum(), 1))
        power.append(kept[:, true].mean() if n_true else np.nan)
    return np.array(rates), np.mean(power)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "correlation"), [("closed-e-lond", 0.95), ("e-lond", 0.95), ("lord++", 0.0)]
)
@pytest.mark.parametrize("n_true", [0, 4])
def test_the_false_discovery_rate_over_all_targets_stays_below_its_bound(rule, correlation, n_true):
    rates, _ = runs(rule, 80, correlation, n_true)
    assert rates.mean() <= 0.2 + 3 * rates.std() / np.sqrt(80)


@pytest.mark.slow
def test_one_budget_finds_more_than_a_fifth_of_it_for_each_of_five_targets():
    for rule, gain in (("lord++", 0.2), ("alpha-investing", 0.05), ("closed-e-lond", 0.0)):
        assert runs(rule, 20, 0.0)[1] > runs(rule, 20, 0.0, shared=False)[1] + gain
