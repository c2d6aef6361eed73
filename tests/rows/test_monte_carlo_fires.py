"""FIRES over networks, soft trees and modules: against differences of its objective, and on planted streams."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import FIRES, MonteCarloFIRES
from tamis.errors import DataError
from tamis.rows.scaled_batches import ScaledRows
from tests.twins import monte_carlo_fires as twin

SMALL = {
    "network": {"model": "network", "hidden": (4, 3)},
    "tree": {"model": "tree", "depth": 3, "node_penalty": 0.3},
}


def rows(n=12, n_features=3, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (1.0, 3.0, 0.2)[:n_features] + (0, 2, -1)[:n_features]
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, np.arange(n) % n_classes


def noise_of(selector):
    """The samples of the next step, sample by sample in the shapes of the parameters."""
    return [selector._parts(one) for one in selector._draw()]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("scaling", ["standard", None])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_step_follows_the_differences_of_the_objective(name, scaling, sparse):
    selector = MonteCarloFIRES(
        1, **SMALL[name], scaling=scaling, learning_rate=0.5, longest_gradient=None, sigma=0.7, n_samples=4
    )
    X, y = rows()
    selector.partial_fit(X, y, classes=[0, 1, 2])
    more, labels = rows(seed=1)
    weight = np.linspace(0.2, 2, len(more))
    mu, sigma = ([part.copy() for part in selector._parts(flat)] for flat in (selector._mu, selector._sigma))
    noise = noise_of(selector)
    selector.partial_fit(sp.csr_matrix(more) if sparse else more, labels, sample_weight=weight)
    Z = more
    if scaling:  # weighted moments of all rows so far
        every, w = np.vstack([X, more]), np.concatenate([np.ones(len(X)), weight])
        mean = np.average(every, axis=0, weights=w)
        Z = (more - mean) / np.sqrt(np.average((every - mean) ** 2, axis=0, weights=w))
    strength = 0.3 if name == "tree" else 0.0
    model = getattr(twin, name)
    of_mu, of_sigma = twin.gradients(model, mu, sigma, noise, Z, labels, weight / weight.sum(), strength)
    for now, before, slope in zip(selector._parts(selector._mu), mu, of_mu, strict=True):
        np.testing.assert_allclose(now, before + 0.5 * slope, atol=1e-8)
    for now, before, slope in zip(selector._parts(selector._sigma), sigma, of_sigma, strict=True):
        np.testing.assert_allclose(now, np.maximum(before + 0.5 * slope, 0), atol=1e-8)
    mu, sigma = selector._parts(selector._mu), selector._parts(selector._sigma)
    np.testing.assert_allclose(selector.scores_, twin.scores(mu, sigma, 0.01), rtol=1e-12)
    shift = [sum(part.mean() for part in parts[1:]) for parts in (mu, sigma)] if name == "network" else (0, 0)
    selector.aggregation = "paper"
    np.testing.assert_allclose(selector.scores_, twin.scores(mu, sigma, 0.01, shift), rtol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_a_step_for_numbers_follows_the_differences_of_the_objective(name):
    selector = MonteCarloFIRES(
        1, **SMALL[name], task="regression", learning_rate=0.5, longest_gradient=None, sigma=0.7, n_samples=4
    )
    (X, _), (more, _) = rows(), rows(seed=1)
    target, later = X @ (1, 2, -1) + 7, more @ (1, 2, -1) + 5
    selector.partial_fit(X, target)
    mu, sigma = ([part.copy() for part in selector._parts(flat)] for flat in (selector._mu, selector._sigma))
    squares, n = selector._error
    noise = noise_of(selector)
    selector.partial_fit(more, later)
    every, numbers = np.vstack([X, more]), np.concatenate([target, later])
    Z, y = (more - every.mean(axis=0)) / every.std(axis=0), (later - numbers.mean()) / numbers.std()
    model = getattr(twin, f"{name}_outputs")
    errors = y - [model(x, mu)[0] for x in Z]
    keep = 0.5 ** (len(y) / 2000)
    variance = (keep * squares + errors @ errors) / (keep * n + len(y))
    strength = 0.3 if name == "tree" else 0.0
    weight = np.full(len(y), 1 / len(y))
    of_mu, of_sigma = twin.gradients(
        twin.normal(model, variance), mu, sigma, noise, Z, y, weight, strength / variance
    )
    for now, before, slope in zip(selector._parts(selector._mu), mu, of_mu, strict=True):
        np.testing.assert_allclose(now, before + 0.5 * variance * slope, atol=1e-8)
    for now, before, slope in zip(selector._parts(selector._sigma), sigma, of_sigma, strict=True):
        np.testing.assert_allclose(now, np.maximum(before + 0.5 * variance * slope, 0), atol=1e-8)


@pytest.mark.parametrize(
    ("model", "options"), [("tree", {"learning_rate": 3, "n_steps": 5}), ("network", {})]
)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_columns_of_a_number_are_selected_whatever_its_unit(model, options, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    y = X[:, 3] - 2 * X[:, 7] + noise * rng.normal(size=3000)
    for unit in (1e-6, 1e6):
        selector = MonteCarloFIRES(2, model=model, task="regression", **options).fit(X, unit * y + 5)
        assert selector.get_support(indices=True).tolist() == [3, 7]


def test_numbers_that_depend_on_two_columns_together_are_found_by_a_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    y = np.sign(X[:, 3] * X[:, 7]) + 0.3 * rng.normal(size=3000)
    tree = MonteCarloFIRES(2, model="tree", task="regression", learning_rate=3, n_steps=5).fit(X, y)
    assert tree.get_support(indices=True).tolist() == [3, 7]
    assert FIRES(2, model="gaussian").fit(X, y).get_support(indices=True).tolist() != [3, 7]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_columns_that_come_later_equal_columns_of_zeros(name, task):
    X, y = rows(n=60)
    early = np.where(np.arange(3) < 2, X, 0.0)
    whole = MonteCarloFIRES(1, **SMALL[name], task=task).partial_fit(early, y).partial_fit(X, y)
    grown = (
        MonteCarloFIRES(1, **SMALL[name], task=task).partial_fit(early[:, :2], y).widen(3).partial_fit(X, y)
    )
    np.testing.assert_allclose(grown._mu, whole._mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grown._sigma, whole._sigma, rtol=1e-9)
    forgotten = MonteCarloFIRES(1, **SMALL[name], task=task).partial_fit(X, y).forget_columns([1])
    assert (forgotten.mu_[1] == 0.0).all()
    assert (forgotten.sigma_[1] == 0.03).all()
    assert (forgotten.mu_[[0, 2]] != 0.0).any()


def test_golden_first_step_by_hand():
    """A tree of one node at mu = 0 with sigma near 0: each leaf has half of a row, and the logits are what leaves say.

    The left leaf's logits less the right leaf's, times a quarter, times y - p, times x, is the slope of the node.
    """
    options = {
        "scaling": None,
        "longest_gradient": None,
        "node_penalty": 0.0,
        "learning_rate": 0.1,
        "sigma": 1e-9,
    }
    selector = MonteCarloFIRES(1, model="tree", depth=1, **options)
    X, y = np.array([[1.0, -2.0], [0.5, 4.0]]), np.array([1, 0])
    selector.partial_fit(X, y)
    base = selector._base()
    leaves = base.means(2, 2, np.random.default_rng((selector._seed, 2)))[1]
    p = np.exp(leaves.mean(axis=0)) / np.exp(leaves.mean(axis=0)).sum()
    slope = ((np.eye(2)[y] - p) @ (leaves[0] - leaves[1])) * 0.25
    np.testing.assert_allclose(selector.mu_[:, 0], 0.1 * (slope[:, None] * X).mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("model", ["network", "tree"])
def test_long_gradients_are_shortened(model):
    X, y = rows(n=60)
    steps = []
    for longest in (None, 1e-3):
        selector = MonteCarloFIRES(1, model=model, longest_gradient=longest, learning_rate=1.0, sigma=0.5)
        selector.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
        mu, sigma = selector._mu, selector._sigma
        selector.partial_fit(X, y)
        steps.append(np.concatenate([selector._mu - mu, selector._sigma - sigma]))
    assert np.linalg.norm(steps[1]) <= 1e-3 + 1e-12 < np.linalg.norm(steps[0])


def test_a_pair_that_tells_only_together_is_found_where_a_linear_model_finds_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    y = X[:, 3] * X[:, 7] > 0
    tree = MonteCarloFIRES(2, model="tree", depth=2, learning_rate=3, n_steps=5).fit(X, y)
    assert tree.get_support(indices=True).tolist() == [3, 7]
    assert FIRES(2).fit(X, y).get_support(indices=True).tolist() != [3, 7]


def test_a_node_that_no_row_reaches_is_not_penalised():
    """Each node sends all of a row to one side, to the last digit."""
    X, y = np.tile([[1e3, -1e3]], (20, 1)), np.arange(20) % 2
    selector = MonteCarloFIRES(1, model="tree", scaling=None, sigma=50.0).fit(X, y)
    assert np.isfinite(selector._mu).all()


@pytest.mark.parametrize("model", ["network", "tree"])
def test_another_seed_draws_other_samples_and_the_same_one_the_same(model):
    X, y = rows(n=60)
    one, same, other = (MonteCarloFIRES(1, model=model, random_state=s).fit(X, y).scores_ for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_a_class_that_comes_late_keeps_what_is_known():
    X, y = rows(n=90)
    selector = MonteCarloFIRES(1, **SMALL["network"]).partial_fit(X[y < 2], y[y < 2])
    mu, sigma = selector.mu_, selector._parts(selector._sigma)
    selector._make_room(3)
    np.testing.assert_array_equal(selector.mu_, mu)
    assert selector._parts(selector._mu)[-1].shape == (3, 3)
    np.testing.assert_array_equal(selector._parts(selector._sigma)[-1][:, :2], sigma[-1])
    assert (selector._parts(selector._sigma)[-1][:, 2] == 0.03).all()
    assert np.isfinite(selector.partial_fit(X, y).scores_).all()


def test_steps_without_a_finite_gradient_are_refused_and_nothing_is_learned():
    X, y = rows(n=60)
    selector = MonteCarloFIRES(1, scaling=None).partial_fit(X, y)
    before = selector._mu.copy()
    with pytest.raises(DataError, match="lower learning_rate"):
        selector.partial_fit(np.where(X == 0, 1e300, X), y)
    np.testing.assert_array_equal(selector._mu, before)
    with pytest.raises(DataError, match="too large to sum"):
        MonteCarloFIRES(1).partial_fit(np.where(X == 0, 1e200, X), y)


@pytest.mark.parametrize("changed", [{"depth": 2}, {"model": "network"}])
def test_another_model_between_batches_is_refused_and_the_old_one_goes_on(changed):
    X, y = rows(n=60)
    selector = MonteCarloFIRES(1, model="tree").partial_fit(X, y)
    kept = {name: getattr(selector, name) for name in changed}
    with pytest.raises(DataError, match="cannot change between batches"):
        selector.set_params(**changed).partial_fit(X, y)
    selector.set_params(**kept).partial_fit(X, y)
    selector.set_params(**changed).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "forest"}, "model must be one of 'network', 'tree', or a torch.nn.Module, got 'forest'"),
        ({"hidden": ()}, r"hidden must be a tuple of integers in \[1, 10000\], got \(\)"),
        ({"hidden": (3, 0)}, r"hidden must be a tuple of integers in \[1, 10000\], got \(3, 0\)"),
        ({"depth": 11}, r"depth must be an integer in \[1, 10\], got 11"),
        ({"longest_gradient": 0}, r"longest_gradient must be a number in \(0, inf\) or None, got 0"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        MonteCarloFIRES(1, **parameters).fit(*rows())


def module(torch, n_features=3, n_classes=3):
    """The network of SMALL, as a module."""
    layers = [torch.nn.Linear(n_features, 4, bias=False), torch.nn.Softplus()]
    layers += [
        torch.nn.Linear(4, 3, bias=False),
        torch.nn.Softplus(),
        torch.nn.Linear(3, n_classes, bias=False),
    ]
    return torch.nn.Sequential(*layers).double()


def test_a_module_learns_as_the_network_does():
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'tamis[torch]'")
    X, y = rows(n=60)
    ours = MonteCarloFIRES(1, **SMALL["network"]).partial_fit(X[:30], y[:30])
    net = module(torch)
    theirs = MonteCarloFIRES(1, model=net, random_state=ours.random_state).partial_fit(X[:30], y[:30])
    # The module's matrices are turned: give it the network's state, sample by sample.
    for name in ("_mu", "_sigma"):
        setattr(theirs, name, np.concatenate([part.T.ravel() for part in ours._parts(getattr(ours, name))]))
    theta = [np.stack([part, part + 0.1]) for part in ours._parts(ours._mu)]
    batch, weight = ScaledRows(X, np.full(3, 0.5), np.full(3, 2.0)), np.full(len(y), 1 / len(y))
    expected = ours._base().gradients(batch, theta, y, weight)
    found = theirs._base().gradients(batch, [part.transpose(0, 2, 1) for part in theta], y, weight)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b.transpose(0, 2, 1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(theirs.scores_, ours.scores_, rtol=1e-12)


def test_a_module_selects_and_is_left_as_it_was():
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'tamis[torch]'")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = np.where(X[:, 2] - X[:, 6] > 0, "a", "b")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    before = [part.detach().clone() for part in net.parameters()]
    selector = MonteCarloFIRES(2, model=net).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 6]
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    with pytest.raises(DataError, match=r"returns an array of shape \(1, 2\) for 1 rows of 3 classes"):
        selector.partial_fit(X[:1], ["c"])
    with pytest.raises(DataError, match=r"no parameter of shape \(n_units, 9\)"):
        MonteCarloFIRES(2, model=net).fit(X[:, :9], y)
    with pytest.raises(TypeError):
        tamis.save(selector, "never.tamis")
    with pytest.raises(ValueError, match="fixed number of columns"):
        selector.widen(11)


def test_a_module_learns_numbers():
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'tamis[torch]'")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = X[:, 2] - X[:, 6] + 0.5 * rng.normal(size=3000)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(10, 16), torch.nn.ReLU()]
    selector = MonteCarloFIRES(
        2, model=torch.nn.Sequential(*layers, torch.nn.Linear(16, 1)), task="regression"
    )
    assert selector.fit(X, y).get_support(indices=True).tolist() == [2, 6]
    wrong = MonteCarloFIRES(2, model=torch.nn.Sequential(*layers, torch.nn.Linear(16, 2)), task="regression")
    with pytest.raises(DataError, match=r"one number for each row, of shape \(n_rows, 1\)"):
        wrong.fit(X, y)
