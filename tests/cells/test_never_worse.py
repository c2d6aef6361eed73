"""Random problems: buying is never dearer than deciding at once, whatever data, price and cost of errors."""

import itertools
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.cells.acquisition_result import AcquisitionResult

ALL = [IFC2F(random_state=0), ETANA(random_state=0), FETANA(n_iterations=300, random_state=0),
       AdaptiveIFC2F(max_steps=5, random_state=0), FixedSubset()]  # fmt: skip
names = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
PRICES = (0.001, 0.01, 0.05, 0.2, 0.6)
HELD = 1500


def problem(seed):
    """Rows of two or three classes, of which some columns tell; whole numbers, gaps, costs of errors of any kind."""
    rng = np.random.default_rng(seed)
    L, n, K = int(rng.choice([2, 2, 3])), int(rng.choice([60, 120, 300])), int(rng.choice([3, 8]))
    y = rng.choice(L, n + HELD, p=rng.dirichlet(np.full(L, 3.0)))
    y[: 2 * L] = np.arange(2 * L) % L
    X = rng.normal(size=(n + HELD, K))
    told = int(rng.integers(0, K // 2 + 1))
    X[:, :told] += rng.normal(size=(told, L))[:, y].T * rng.uniform(0.3, 1.5)
    X = [X, np.round(X), np.where(rng.random(X.shape) < 0.1, np.nan, X)][int(rng.integers(3))]
    low = np.arange(L)[:, None] > np.arange(L)
    Q = 1.0 - np.eye(L)
    Q *= [1.0, np.where(low, 10.0, 1.0), np.where(low, 1.0, 10.0), rng.uniform(0.2, 3.0, (L, L))][
        int(rng.integers(4))
    ]
    return X, y, n, Q, float(rng.choice(PRICES))


def losses(model, X, y, n, Q, price):
    """What each held-out row costs, and what it costs to decide at once."""
    own = {"random_state", "n_iterations", "max_steps"} & set(model.get_params())
    settings = {name: model.get_params()[name] for name in own}
    fitted = type(model)(price, misclassification_cost=Q, **settings).fit(X[:n], y[:n])
    label = fitted.predict(X[n:])
    at_once = int(Q[y[:n]].mean(axis=0).argmin())
    return Q[y[n:], label] + fitted.cost_, Q[y[n:], at_once], fitted


@pytest.mark.slow
@names
def test_never_dearer_than_deciding_at_once(model):
    gains = []
    for seed in range(24):
        own, at_once, _ = losses(model, *problem(seed))
        gains.append((at_once - own).mean() / at_once.mean())
        assert gains[-1] > -0.05, seed
    assert np.mean(gains) > 0.02
    assert np.mean(np.array(gains) < -0.03) <= 2 / 24


@pytest.mark.slow
@names
@pytest.mark.parametrize("transposed", [False, True])
def test_costs_of_errors_change_what_is_bought_and_decided(model, transposed):
    Q = np.array([[0.0, 1.0], [10.0, 0.0]])
    Q = Q.T if transposed else Q
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400 + HELD)
    X = rng.normal(size=(len(y), 5)) + 1.2 * y[:, None]
    own, at_once, fitted = losses(model, X, y, 400, Q, 0.005)
    assert own.mean() < 0.95 * at_once.mean()
    shares = np.bincount(fitted.predict(X[400:]), minlength=2) / HELD
    assert shares[0 if transposed else 1] > 0.55  # the class that it is dear to overlook is said more often


@pytest.mark.slow
@names
def test_the_loss_grows_with_the_price(model):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 500 + HELD)
    X = rng.normal(size=(len(y), 6))
    X[:, :3] += 1.3 * (y[:, None] == np.arange(3))
    found, bought = [], []
    for price in (0.001, 0.01, 0.03, 0.1, 0.3, 0.6):
        own, at_once, fitted = losses(model, X, y, 500, 1.0 - np.eye(3), price)
        found.append(own.mean())
        bought.append(fitted.n_features_used_.mean())
        assert own.mean() <= at_once.mean() + 0.01
    error = 1.0 / np.sqrt(HELD)
    assert all(b >= a - error for a, b in itertools.pairwise(found))
    assert bought[0] > 1.5 > bought[-1] == 0.0  # a price of 0.6 is never worth it


@pytest.mark.parametrize(
    ("costs", "best"),
    [([0.25, 0.3, 0.31], 2), ([0.1, 0.3, 0.31], 0), ([0.12, 0.1, 0.31], 1), ([0.31, 0.31, 0.31], 2)],
)
def test_the_order_of_the_fixed_subset_is_used_unless_another_is_surely_ahead(costs, best):
    """Of 100 rows, nineteen errors less are surely fewer, six are not."""
    rows = (np.arange(100) * 37 % 100) / 100
    model = IFC2F()
    model._Q = 1.0 - np.eye(2)
    held = [SimpleNamespace(cost=np.where(rows < cost, 1.0, 0.0)) for cost in costs]
    assert model._best_order(held) == best
    assert model._best_order([None, None]) == 0


@pytest.mark.parametrize("method", [IFC2F, ETANA, FETANA])
def test_of_equal_orders_that_of_the_fixed_subset_is_used(rng, method):
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + 0.1 * rng.normal(size=300) > 0).astype(int)
    assert method(random_state=0).fit(X, y).order_ == "mrmr"


@pytest.mark.parametrize("method", [IFC2F, ETANA, FETANA])
def test_the_named_method_runs_where_it_is_named(method):
    """Without calibration the methods differ; where the calibration decides, it is named."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 6)) + 0.9 * y[:, None] + 0.8 * rng.normal(size=(900, 1))
    posteriors = [
        other(0.005, calibrate="never", random_state=0).fit(X[:600], y[:600]).predict_proba(X[600:])
        for other in (IFC2F, ETANA, FETANA)
    ]
    for one, other in itertools.combinations(posteriors, 2):
        assert np.abs(one - other).max() > 1e-3
    own = method(0.005, calibrate="never", random_state=0).fit(X[:600], y[:600])
    plain = method(0.005, calibrate=False, random_state=0).fit(X[:600], y[:600])
    np.testing.assert_array_equal(own.predict_proba(X), plain.predict_proba(X))
    name = method.__name__
    assert (own.decided_by_, "decided" in repr(own)) == (name, False)
    model = method(0.005, random_state=0)
    assert "decided" not in repr(model)
    model.fit(X[:600], y[:600])
    assert re.match("calibration: (probabilities of|a stop|the order)", model.decided_by_)
    assert repr(model).endswith(f"  # decided by {model.decided_by_}")
    eval(repr(model), {name: method})
    result = AcquisitionResult(model, X[:600], y[:600], X[600:], y[600:])
    assert result.heading().startswith(f"{name}, calibrated on")
    assert result.baselines[0].name == f"{name}, calibrated"
    assert result.to_dict()["decided_by"] == model.decided_by_
    assert "decided by calibration" in " ".join(map(str, result.remarks()))


@pytest.mark.parametrize("method", [IFC2F, ETANA, FETANA])
@pytest.mark.parametrize("seed", range(2))
def test_two_volunteered_values_are_not_worse_than_one(method, seed):
    """Also of columns that nearly copy one another, which a network of few arcs would count twice."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 3000)
    common = rng.normal(size=(3000, 1)) + 0.9 * y[:, None]
    X = np.hstack([common + 0.2 * rng.normal(size=(3000, 5)), rng.normal(size=(3000, 2)) + 0.5 * y[:, None]])
    model = method(0.001, random_state=0).fit(X[:1500], y[:1500])
    names, losses = model._names(), np.zeros((3, 1500))
    for i, row in enumerate(X[1500:]):
        session, given = model.open(), rng.permutation(len(names))[:2]
        for n in range(3):
            if n:
                at = names[given[n - 1]]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    session.observe(row[at], at)
            losses[n, i] = -np.log(session.posterior[int(y[1500 + i])])
    gain = losses[1] - losses[2]
    assert losses[1].mean() < losses[0].mean()
    assert gain.mean() > -gain.std() / np.sqrt(len(gain)), losses.mean(axis=1)


@pytest.mark.parametrize(
    "model", [AdaptiveIFC2F(random_state=0), AdaptiveIFC2F(decision="tree", random_state=0), ETANA(random_state=0),
              IFC2F(random_state=0), FixedSubset()],
)  # fmt: skip
def test_a_free_column_that_changes_no_decision_is_not_acquired(model):
    """Noise and a copy are not; free columns that are only jointly relevant, or relevant, still are."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 6))
    X[:, 2] += 0.8 * y
    X[:, 3:] += 1.2 * y[:, None]
    prices = np.array([0.0, 0.0, 0.0, 0.02, 0.02, 0.02])
    model.set_params(cost=prices).fit(X[:1500], y[:1500])
    cases = model.acquire(X[1500:])
    acquired = {feature for case in cases for feature in case.features}
    assert acquired >= {2, 3}
    assert not acquired & {0, 1}
    if isinstance(model, AdaptiveIFC2F) and model.decision == "auto":
        X[:, 1] = np.abs(X[:, 1]) * np.where(y == 1, 1, -1) * np.sign(X[:, 0])
        model.fit(X[:1500], y[:1500])
        assert model.score(X[1500:], y[1500:]) > 0.97
