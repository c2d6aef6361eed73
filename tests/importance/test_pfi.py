import numpy as np
import pytest

from tamis.importance import IncrementalPFI, IncrementalSAGE
from tests.twins import importance as twin


def model(A):
    return A[:, 0] * A[:, 1] + A[:, 2]


def squared(p, y):
    return (p - y) ** 2


@pytest.mark.parametrize(
    ("settings", "of_twin"),
    [
        ({"max_calls_per_row": None}, {}),
        ({"max_calls_per_row": 3}, {"k": 2}),
        ({"max_calls_per_row": 7, "n_samples": 3, "reservoir_size": 4}, {"k": 2, "m": 3, "size": 4}),
        ({"groups": {"g": [1, 3]}, "max_calls_per_row": None}, {"groups": [[1, 3]]}),
        ({"sampling": "conditional", "n_neighbours": 3}, {"k": 2, "n_neighbours": 3}),
    ],
)
def test_equals_its_twin(settings, of_twin, rng):
    X = rng.normal(size=(150, 4))
    y = X @ [1.0, 0.5, 1.0, 0.0]
    explainer = IncrementalPFI(half_life=30, random_state=5, **settings)
    explainer.update(model, X, y)
    means, variances, shares = twin.pfi(
        lambda x: x[0] * x[1] + x[2], squared, X.tolist(), y.tolist(), np.random.default_rng(5),
        half_life=30, **of_twin,
    )  # fmt: skip
    np.testing.assert_allclose(explainer.importances_, means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(explainer.variances_, variances, rtol=1e-9, atol=1e-12)
    half = np.sqrt(np.array(variances) * shares / 0.1)
    np.testing.assert_allclose(np.diff(explainer.bands(0.9))[:, 0], 2 * half, rtol=1e-8, atol=1e-12)


def test_equals_the_authors_program(rng):
    """With a reservoir of one row, both replace a value by that of the row before; the program's mean starts at 0."""
    ixai = pytest.importorskip("ixai.explainer.pfi")
    storage = pytest.importorskip("ixai.storage")
    X = rng.normal(size=(120, 3))
    y = X @ [1.0, 0.5, 1.0]
    alpha = 0.05
    reference = ixai.IncrementalPFI(
        lambda x: {"output": x[0] * x[1] + x[2]},
        lambda truth, p: (p["output"] - truth) ** 2,
        [0, 1, 2],
        storage=storage.GeometricReservoirStorage(size=1),
        smoothing_alpha=alpha,
    )
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        reference.explain_one(dict(enumerate(row)), target)
    half_life = np.log(0.5) / np.log(1 - alpha)
    explainer = IncrementalPFI(reservoir_size=1, half_life=half_life, max_calls_per_row=None)
    explainer.update(model, X, y)
    grown = 1 - (1 - alpha) ** 119
    expected = [reference.importance_values[j] / grown for j in range(3)]
    np.testing.assert_allclose(explainer.importances_, expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_has_the_expectation_of_its_definition(loss, rng):
    """A batch permutation importance with every pair of rows, of a model of three classes."""
    X = rng.normal(size=(300, 2))

    def proba(A):
        powers = np.exp(np.column_stack([A[:, 0], A[:, 1], np.zeros(len(A))]))
        return powers / powers.sum(axis=1, keepdims=True)

    y = np.array([rng.choice(3, p=p) for p in proba(X)])

    def losses(A, target):
        p = proba(A)
        if loss == "log":
            return -np.log(p[np.arange(len(A)), target])
        return ((p - np.eye(3)[target]) ** 2).sum(axis=1)

    expected = []
    for j in range(2):
        altered = np.repeat(X, 300, axis=0)
        altered[:, j] = np.tile(X[:, j], 300)
        expected.append(losses(altered, np.repeat(y, 300)).mean() - losses(X, y).mean())
    explainer = IncrementalPFI(
        loss=loss, half_life=None, max_calls_per_row=None, reservoir_size=300, random_state=0
    )
    for _ in range(30):
        explainer.update(proba, X, y)
    np.testing.assert_allclose(explainer.importances_, expected, rtol=0.1)


def test_the_change_of_the_predictions_needs_no_labels(rng):
    """The mean squared difference of two predictions, of every pair of rows."""
    X = rng.normal(size=(300, 3))

    def proba(A):
        p = 1 / (1 + np.exp(-2 * A[:, 0] - A[:, 1]))
        return np.column_stack([1 - p, p])

    expected = []
    for j in range(3):
        altered = np.repeat(X, 300, axis=0)
        altered[:, j] = np.tile(X[:, j], 300)
        expected.append(((proba(altered) - np.repeat(proba(X), 300, axis=0)) ** 2).sum(axis=1).mean())
    probabilities = type("Model", (), {"predict_proba": staticmethod(proba)})()
    explainer = IncrementalPFI(
        loss="change", half_life=None, max_calls_per_row=None, reservoir_size=300, random_state=0
    )
    for _ in range(30):
        explainer.update(probabilities, X)
    np.testing.assert_allclose(explainer.importances_, expected, rtol=0.1)
    assert explainer.importances_[2] == 0.0
    with pytest.raises(ValueError, match="loss"):
        IncrementalSAGE(loss="change")
