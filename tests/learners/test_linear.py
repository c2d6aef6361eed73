"""Linear classifiers: the twin, scikit-learn's coefficients, classes that appear, bad input, saving."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model

import tamis
from tamis import Perceptron, SGDLinearSVM, SGDLogisticRegression
from tamis.errors import DataError
from tamis.learners.linear import _orders
from tamis.pipeline.scaling import wants_scale
from tests.twins.linear import linear

CLASSES = {"perceptron": Perceptron, "hinge": SGDLinearSVM, "logistic": SGDLogisticRegression}
ALL = list(CLASSES.values())


def rows(rng, n=240, n_classes=3):
    y = rng.integers(0, n_classes, n)
    X = np.where(rng.random((n, 6)) < 0.5, rng.normal(size=(n, 6)), 0.0)
    X[:, 1] += y
    return X, y, 2.0 * rng.random(n)


def learned(model, X, y, weights=None, *, size=77, classes=None):
    classes = np.unique(y) if classes is None else classes
    for at in range(0, len(y), size):
        part = slice(at, at + size)
        given = {} if weights is None else {"sample_weight": weights[part]}
        model.partial_fit(X[part], y[part], classes=classes, **given)
    return model


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("average", [False, 60])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", CLASSES)
def test_equals_its_twin(rng, loss, n_classes, average, is_sparse):
    X, y, weights = rows(rng, n_classes=n_classes)
    # A step of 0.9 with a penalty of 0.95 shrinks the weights by 0.145 a row: their scale is multiplied out.
    for kind, alpha, eta0, penalty in (("constant", 0.95, 0.9, "l2"), ("optimal", 0.02, 0.5, None)):
        options = {"penalty": penalty, "alpha": alpha, "eta0": eta0}
        kind = "constant" if loss == "perceptron" else kind
        rate = {} if loss == "perceptron" else {"learning_rate": kind}
        model = CLASSES[loss](average=average, shuffle=False, **options, **rate)
        learned(model, sp.csr_matrix(X) if is_sparse else X, y, weights)
        for m, (coef, intercept) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
            inside = y == (m if n_classes > 2 else 1)
            expected, of_b = linear(
                X.tolist(), inside.tolist(), loss=loss, weights=weights.tolist(), kind=kind, average=int(average),
                step_of_b=0.01 if is_sparse else 1.0, **options,
            )  # fmt: skip
            np.testing.assert_allclose(coef, expected, rtol=1e-6, atol=1e-8)
            assert intercept == pytest.approx(of_b, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_coefficients_are_those_of_scikit_learn(rng, n_classes, is_sparse, shuffle):
    X, y, weights = rows(rng, n_classes=n_classes)
    X = sp.csr_matrix(X) if is_sparse else X
    common = {"shuffle": shuffle, "random_state": 3}
    slower = {"learning_rate": "invscaling", "eta0": 0.3, "power_t": 0.3, "alpha": 0.01, **common}
    pairs = [
        (Perceptron(**common), linear_model.Perceptron(**common)),
        (Perceptron(penalty="l2", **common), linear_model.Perceptron(penalty="l2", **common)),
        (SGDLogisticRegression(**common), linear_model.SGDClassifier("log_loss", **common)),
        (SGDLinearSVM(**common), linear_model.SGDClassifier("hinge", **common)),
        (SGDLinearSVM(**slower), linear_model.SGDClassifier("hinge", **slower)),
    ]
    for ours, theirs in pairs:
        learned(ours, X, y, weights)
        learned(theirs, X, y, weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        if hasattr(ours, "predict_proba"):
            np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert [hasattr(model(), "predict_proba") for model in ALL] == [False, False, True]


def test_averages_of_one_call_are_those_of_scikit_learn(rng):
    X, y, weights = rows(rng)
    options = {"average": 20, "random_state": 1}
    ours = learned(SGDLinearSVM(**options), X, y, weights, size=len(y))
    theirs = learned(linear_model.SGDClassifier(**options), X, y, weights, size=len(y))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)


def test_accuracy_on_electricity_is_that_of_scikit_learn():
    """Golden number: the accuracy that scikit-learn 1.9's Perceptron(random_state=0) reached in the same run."""
    stream = tamis.load_dataset("electricity")
    result = tamis.prequential(stream, None, Perceptron(), max_rows=5000, baselines="none")
    other = tamis.prequential(
        stream, None, linear_model.Perceptron(random_state=0), max_rows=5000, baselines="none"
    )
    assert result.summary()["accuracy"] == other.summary()["accuracy"] == pytest.approx(0.8016, abs=5e-5)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("average", [False, 9])
def test_a_batch_is_its_rows_one_at_a_time_in_their_order(rng, model, average):
    X, y, weights = rows(rng, 90)
    whole, single = (
        learned(model(shuffle=False, average=average), X, y, weights, size=size) for size in (90, 1)
    )
    np.testing.assert_allclose(whole.coef_, single.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.intercept_, single.intercept_, rtol=1e-9, atol=1e-12)


def test_a_third_class_continues_the_two(rng):
    X, y, _ = rows(rng)
    late = np.concatenate([y[y < 2], y[y == 2]])
    X = np.concatenate([X[y < 2], X[y == 2]])
    model = SGDLogisticRegression(average=5, shuffle=False)
    n = int((late < 2).sum())
    model.partial_fit(X[:9], np.zeros(9, int))
    assert not model.coef_.any()  # one class
    model.partial_fit(X[:n], late[:n])
    weights, intercept, mean = model._coef_.copy(), model._intercept_.copy(), model.coef_.copy()
    before = model.predict(X)
    grown = tamis.loads(tamis.dumps(model))
    grown._grow(3)
    np.testing.assert_array_equal(grown._coef_, [-weights[0], weights[0], np.zeros(6)])
    np.testing.assert_array_equal(grown._intercept_, [-intercept[0], intercept[0], 0.0])
    np.testing.assert_array_equal(grown._mean_, [-mean[0], mean[0], np.zeros(6)])
    model.partial_fit(X[n:], late[n:])
    assert model.classes_.tolist() == [0, 1, 2]
    assert set(before) == {0, 1}
    assert 2 in model.predict(X[n:])


def test_separates_what_is_linear(rng):
    X = rng.normal(size=(4000, 20))
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 3] - X[:, 8], [-0.6, 0.6])]
    X = np.column_stack([X, (X[:, 3] - X[:, 8]) ** 2])  # what the middle class needs
    for model in ALL:
        assert model(average=True).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) > 0.9


@pytest.mark.parametrize("model", ALL)
def test_bad_input_leaves_the_model_as_it_was(rng, model):
    X, y, weights = rows(rng)
    one = learned(model(average=True), X, y, weights)
    before = tamis.dumps(one)
    bad, large = X[:5].copy(), X[:5].copy()
    bad[2, 4], large[1, 1] = np.nan, 1e200
    for rows_, labels, given, message in [
        (bad, y[:5], None, "NaN in column 4 of row 2"),
        (sp.csr_matrix(bad), y[:5], None, "NaN in column 4 of row 2"),
        (large, y[:5], None, "Column 1 contains 1e\\+200 in row 1"),
        (sp.csr_matrix(large), y[:5], None, "Column 1 contains 1e\\+200 in row 1"),
        (X[:5, :3], y[:5], None, "3 features"),
        (X[:5], y[:4], None, "4"),
        (X[:5], y[:5], -weights[:5], "sample_weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            one.partial_fit(rows_, labels, sample_weight=given)
        assert tamis.dumps(one) == before


def test_weights_that_overflow_leave_the_model_as_it_was(rng):
    X, y, _ = rows(rng)
    one = learned(Perceptron(eta0=1e148), X, y)
    before = tamis.dumps(one)
    with pytest.raises(DataError, match="The weights overflow: scale the columns"):
        one.partial_fit(np.full((9, 6), 1e149), y[:9], sample_weight=np.full(9, 1e15))
    assert tamis.dumps(one) == before


@pytest.mark.parametrize(
    "given", [{"alpha": 0.0}, {"eta0": -1.0}, {"penalty": "l1"}, {"average": -1}, {"random_state": -1}]
)
def test_parameters_out_of_range_are_named(rng, given):
    X, y, _ = rows(rng)
    with pytest.raises(ValueError, match=f"{next(iter(given))} must be"):
        SGDLinearSVM(**given).fit(X, y)


def test_a_saved_model_continues(rng):
    X, y, weights = rows(rng)
    one = learned(SGDLogisticRegression(average=3), X, y, weights)
    other = tamis.loads(tamis.dumps(one))
    for model in (one, other):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_rows_are_shuffled_as_by_scikit_learn():
    assert _orders(0, 1, 6).tolist() == [[1, 3, 2, 5, 0, 4]]
    assert _orders(None, 2, 3).tolist() == [[0, 1, 2]] * 2
    one, other = _orders(0, 2, 50)
    assert sorted(one) == sorted(other) == list(range(50))
    assert (one != other).any()


def test_unfitted_models_are_standardised_for():
    assert [wants_scale(model()) for model in ALL] == [True, True, True]
    assert not wants_scale(Perceptron().fit([[0.0], [1.0]], [0, 1]))
