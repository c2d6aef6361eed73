import numpy as np
import pytest

from tamis.importance import IncrementalSAGE
from tests.twins import importance as twin


def proba(A):
    p = 1 / (1 + np.exp(-(A[:, 0] * A[:, 1] + A[:, 2])))
    return np.column_stack([1 - p, p])


def proba_of_row(x):
    return proba(np.array([x]))[0].tolist()


def log_loss(p, y):
    return -np.log(p[y])


@pytest.mark.parametrize(
    ("settings", "of_twin"),
    [
        ({"max_calls_per_row": None}, {}),
        ({"max_calls_per_row": None, "empty_set": "mean"}, {"empty_set": "mean"}),
        ({"max_calls_per_row": 3}, {"k": 1}),
        ({"max_calls_per_row": 4, "empty_set": "mean"}, {"k": 2, "empty_set": "mean"}),
        ({"max_calls_per_row": 7, "n_samples": 2, "reservoir_size": 4}, {"k": 2, "m": 2, "size": 4}),
        ({"groups": {"g": [1, 4]}, "max_calls_per_row": None}, {"groups": [[1, 4]]}),
        ({"sampling": "conditional", "n_neighbours": 3}, {"k": 1, "n_neighbours": 3}),
    ],
)
def test_equals_its_twin(settings, of_twin, rng):
    X = rng.normal(size=(120, 5))
    y = (rng.random(120) < proba(X)[:, 1]).astype(int)
    explainer = IncrementalSAGE(half_life=30, random_state=5, loss="log", **settings)
    explainer.update(proba, X, y)
    means, variances, _ = twin.sage(
        proba_of_row, log_loss, X.tolist(), y.tolist(), np.random.default_rng(5), half_life=30, **of_twin
    )
    np.testing.assert_allclose(explainer.importances_, means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(explainer.variances_, variances, rtol=1e-9, atol=1e-12)


def test_equals_the_authors_program(rng, monkeypatch):
    """With a reservoir of one row and the same orders; the program's mean starts at 0."""
    ixai = pytest.importorskip("ixai.explainer.sage.incremental")
    storage = pytest.importorskip("ixai.storage")
    X = rng.normal(size=(120, 3))
    y = (rng.random(120) < proba(X)[:, 1]).astype(int)
    alpha = 0.05
    draws = np.random.default_rng(5).random((119, 6))
    orders = iter(np.argsort(draws[:, :3], axis=1).tolist())
    monkeypatch.setattr(np.random, "permutation", lambda names: next(orders))
    reference = ixai.IncrementalSage(
        lambda x: dict(enumerate(proba_of_row([x[0], x[1], x[2]]))),
        log_loss,
        [0, 1, 2],
        storage=storage.GeometricReservoirStorage(size=1),
        smoothing_alpha=alpha,
    )
    monkeypatch.setattr(reference, "_loss_function", lambda truth, p: log_loss(p, truth))
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        reference.explain_one(dict(enumerate(row)), target)
    explainer = IncrementalSAGE(
        reservoir_size=1, half_life=np.log(0.5) / np.log(1 - alpha), max_calls_per_row=None, loss="log",
        empty_set="mean", random_state=5,
    )  # fmt: skip
    explainer.update(proba, X, y)
    grown = 1 - (1 - alpha) ** 119
    expected = [reference.importance_values[j] / grown for j in range(3)]
    np.testing.assert_allclose(explainer.importances_, expected, rtol=1e-9)


def test_values_sum_to_the_loss_that_is_explained(rng):
    X = rng.normal(size=(3000, 3))
    explainer = IncrementalSAGE(
        max_calls_per_row=None, half_life=None, n_samples=20, empty_set="mean", random_state=0
    )
    explainer.update(lambda A: 2 * A[:, 0] + A[:, 1], X, 2 * X[:, 0] + X[:, 1])
    assert explainer.importances_.sum() == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize("n_samples", [1, 4])
def test_fewer_samples_raise_the_values_of_an_additive_model(n_samples, rng):
    X = rng.normal(size=(4000, 3))
    explainer = IncrementalSAGE(max_calls_per_row=None, half_life=None, n_samples=n_samples, random_state=0)
    explainer.update(lambda A: 2 * A[:, 0] + A[:, 1], X, 2 * X[:, 0] + X[:, 1])
    np.testing.assert_allclose(explainer.importances_[:2], np.array([4, 1]) * (1 + 1 / n_samples), rtol=0.15)
    assert explainer.importances_[2] == 0.0
