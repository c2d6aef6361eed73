"""Values are bought only where they pay on rows that were not learned from."""

import itertools

import numpy as np
import pytest

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset, load, save
from tamis.cells.policy_selection import Objective, Policy, Walks, best_policy, stratified_folds

ALL = [
    IFC2F(random_state=0),
    ETANA(random_state=0),
    FETANA(n_iterations=500, random_state=0),
    AdaptiveIFC2F(random_state=0),
]
names = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


def told(rng, n=600, K=8, shift=1.2):
    """Half of the columns tell of the class, doubtful rows need several."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, K))
    X[:, : K // 2] += shift * y[:, None]
    return X, y


def expected_cost(model, X, y, Q):
    codes = np.searchsorted(model.classes_, model.predict(X))
    return float((Q[y, codes] + model.cost_).mean())


def by_trying_all(walks, y, Q):
    """The least mean cost of a walk that stops at a risk, at the model's own word, or after so many values."""
    least = np.inf
    for walk in walks:
        n_steps, n = walk.spent.shape
        risks = np.unique((walk.posterior @ Q).min(axis=2))
        for most in range(n_steps):
            for level in [-np.inf, *risks, None]:
                if level is None and walk.stops is None:
                    continue
                total = 0.0
                for i in range(n):
                    k = 0
                    while k < most:
                        risk = min(walk.posterior[k, i] @ Q[:, j] for j in range(len(Q)))
                        if (walk.stops[k, i]) if level is None else risk <= level:
                            break
                        k += 1
                    decision = np.argmin([walk.posterior[k, i] @ Q[:, j] for j in range(len(Q))])
                    total += Q[y[i], decision] + walk.spent[k, i]
                least = min(least, total / n)
    return least


@pytest.mark.slow
def test_the_policy_is_nearly_the_best_of_all(rng):
    n, Q = 60, np.array([[0.0, 1.0], [3.0, 0.0]])
    y = rng.integers(0, 2, n)
    walks = []
    for strength in (0.5, 1.0):
        score = np.cumsum(rng.normal(size=(5, n)) + strength * (2 * y - 1), axis=0)
        p = 1 / (1 + np.exp(-np.concatenate([np.zeros((1, n)), score])))
        spent = np.arange(6)[:, None] * np.full(n, 0.02)
        walks.append(Walks("own", np.stack([1 - p, p], axis=2), spent, rng.random((6, n)) < 0.3))
    policy, _ = best_policy(walks, y, Objective("loss", Q))
    best = by_trying_all(walks, y, Q)
    found = min(by_trying_one(walk, policy, y, Q) for walk in walks)
    assert best - 1e-12 <= found < best + 0.05  # of the levels of risk only some are tried


def test_a_mean_budget_is_kept_by_the_best_of_the_policies_within_it(rng):
    """The twin tries every level of risk: none has fewer errors within the budget, up to the levels' spacing."""
    n, budget = 80, 0.03
    y = rng.integers(0, 2, n)
    score = np.cumsum(rng.normal(size=(5, n)) + 0.8 * (2 * y - 1), axis=0)
    p = 1 / (1 + np.exp(-np.concatenate([np.zeros((1, n)), score])))
    risk, wrong = np.minimum(p, 1 - p), (p > 0.5) != y
    risk[0] = np.inf
    spent = np.arange(6)[:, None] * np.full(n, 0.02)

    def evaluated(most, level):
        stop = risk <= level
        stop[most] = True
        at = stop.argmax(axis=0), np.arange(n)
        return wrong[at].mean(), spent[at].mean()

    walk = Walks("own", np.stack([1 - p, p], axis=2), spent)
    policy, _ = best_policy([walk], y, Objective("loss", 1.0 - np.eye(2)), mean_budget=budget)
    tried = [evaluated(most, level) for most in range(6) for level in [-np.inf, *np.unique(risk[1:])]]
    errors, paid = evaluated(policy.max_values, policy.max_risk)
    assert paid <= budget + 1e-9
    assert policy.max_values > 1
    assert -1e-9 <= errors - min(one for one, price in tried if price <= budget) < 0.03


def test_a_policy_is_judged_where_it_was_not_chosen(rng):
    """Rows that tell nothing, and errors of 10: the best of many policies looks ahead on the rows it was chosen on."""
    bought = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = 100
        y, p = (rng.random(n) < 0.6).astype(int), rng.random((4, n))
        p[0] = y.mean()
        spent = np.full((4, n), 0.001) * np.arange(4)[:, None]
        walks = [Walks("own", np.stack([1 - p, p], axis=2), spent)]
        Q = np.array([[0.0, 10.0], [1.0, 0.0]])
        bought += best_policy(walks, y, Objective("loss", Q))[0].max_values > 0
    assert bought <= 1


def by_trying_one(walk, policy, y, Q):
    total = 0.0
    for i in range(len(y)):
        k = 0
        while k < policy.max_values:
            risk = (walk.posterior[k, i] @ Q).min()
            if k > 0 and (walk.stops[k, i] if policy.rule == "own" else risk <= policy.max_risk):
                break
            k += 1
        total += Q[y[i], (walk.posterior[k, i] @ Q).argmin()] + walk.spent[k, i]
    return total / len(y)


def test_no_rule_tells_the_folds_apart():
    """Before the first value only the folds differ: a level of risk between them would buy for some folds only."""
    y = np.arange(200) % 2
    first = np.where(np.arange(200) < 100, 0.49, 0.47)  # the share of class 1 in two folds
    after = np.where(y == 1, 0.6, 0.4) + np.where(np.arange(200) < 100, 0.0, 0.35 * (1 - 2 * y))
    posterior = np.stack([np.column_stack([1 - p, p]) for p in (first, after)])
    walks = [Walks("own", posterior, np.array([[0.0] * 200, [0.3] * 200]))]
    policy, _ = best_policy(walks, y, Objective("loss", 1 - np.eye(2)))
    assert policy.max_values == 0 or policy.max_risk == -np.inf


def test_folds_hold_every_class():
    y = np.array([0] * 7 + [1] * 3 + [2])
    fold = stratified_folds(y, 3)
    assert fold[-1] == -1  # a class of one row is always learned from
    for held in range(3):
        assert set(y[fold != held]) == {0, 1, 2}
    assert sorted(np.bincount(fold[:7]).tolist()) == [2, 2, 3]


@pytest.mark.slow
@names
def test_noise_is_not_bought(model):
    lost = bought = 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(400, 30)), (rng.random(400) < 0.26).astype(int)
        model.fit(X[:200], y[:200])
        lost += (1 - y[200:]).mean() - model.score(X[200:], y[200:])
        bought += model.n_features_used_.mean()
    assert lost / 5 < 0.01  # against buying nothing
    assert bought / 5 < 0.5


@names
def test_costs_of_errors_are_honoured(rng, model):
    X, y = told(rng, shift=0.4)
    Q = np.array([[0.0, 1.0], [10.0, 0.0]])
    model = type(model)(misclassification_cost=Q, cost=0.05, random_state=0).fit(X[:300], y[:300])
    nothing = min((Q[y[300:], c]).mean() for c in (0, 1))
    assert expected_cost(model, X[300:], y[300:], Q) < nothing + 0.05


@pytest.mark.slow
@names
def test_the_cost_grows_with_the_price_and_never_beyond_deciding_at_once(rng, model):
    X, y = told(rng, n=1200)
    found = []
    for price in (0.0, 0.003, 0.03, 0.1, 0.3, 0.6):
        part = type(model)(price, random_state=0).fit(X[:600], y[:600])
        found.append(expected_cost(part, X[600:], y[600:], 1 - np.eye(2)))
    assert all(b >= a - 0.02 for a, b in itertools.pairwise(found))
    assert found[-1] == pytest.approx(min(y[600:].mean(), 1 - y[600:].mean()), abs=0.03)
    assert part.n_features_used_.mean() == 0.0


@pytest.mark.slow
@names
def test_a_walk_is_the_session_bit_by_bit(rng, model):
    X, y = told(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = type(model)(0.005, random_state=0).fit(X, y)
    beliefs, used = model.predict_proba(X[:40]), model.n_features_used_
    assert used.max() >= 2
    for x, belief, n in zip(X[:40], beliefs, used, strict=True):
        session, paid = model.open(), 0
        while session.next_feature is not None:
            value = x[session.next_feature]
            session.observe(value)
            paid += not np.isnan(value)
        assert [*session.posterior.values()] == belief.tolist()
        assert paid == n


def test_the_discriminant_is_saved_and_learns_on(rng, tmp_path):
    X, y = told(rng, n=900)
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]  # together they tell more than a tree of bins can see
    model = IFC2F(0.001, random_state=0).fit(X[:300], y[:300])
    assert model.policy_.belief == "discriminant"
    save(model, tmp_path / "model.tamis")
    again = load(tmp_path / "model.tamis")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    before = model.predict_proba(X[300:600])
    model.partial_fit(X[300:600], y[300:600])
    after = model.predict_proba(X[300:600])
    assert not np.array_equal(after, before)
    assert (
        np.log(after[np.arange(300), y[300:600]]).mean() > np.log(before[np.arange(300), y[300:600]]).mean()
    )


def test_as_published_nothing_is_held_out(rng):
    X, y = told(rng)
    assert ETANA.published(random_state=0).fit(X, y).policy_ is None
    assert isinstance(ETANA(random_state=0).fit(X, y).policy_, Policy)


@pytest.mark.slow
@pytest.mark.parametrize("method", [IFC2F, ETANA, FETANA, FixedSubset])
def test_evidence_is_worth_what_it_is_after_the_values_that_every_row_buys(method):
    """Thirty copies of a value add up to too much; who buys one of them believes it as one who has only one."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = (rng.normal(size=300) + 2 * y)[:, None] + 0.5 * rng.normal(size=(300, 30))
    X = np.sign(X) * X**2
    dear, one = method(cost=0.2).fit(X, y), FixedSubset(n_features=1).fit(X, y)
    assert (dear.policy_.max_values, dear.policy_.belief) == (1, "discriminant")
    np.testing.assert_array_equal(dear.candidates_[0], one.candidates_[0])
    np.testing.assert_allclose(
        dear._evidence_model.evidence_weight, one._evidence_model.evidence_weight, atol=1e-3
    )
