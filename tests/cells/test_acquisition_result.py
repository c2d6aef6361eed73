"""The report on acquired values: its numbers, its figures, and the page that shows them."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from tamis import IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.cells.acquisition_result import AcquisitionResult, plot_paths
from tamis.cells.evaluation import cost_curves, gain_over_fixed, missing_curve, scores
from tamis.report.charts.chart import Band, Line


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 600)
    X = pd.DataFrame(rng.normal(size=(600, 6)), columns=["a", "b", "<i>c</i>", "d", "e", "f"])
    X["a"] += 1.5 * y
    X["<i>c</i>"] += 1.5 * (y == 1)
    X["e"] += 1.5 * (y == 2)
    model = IFC2F(0.02, order="relevance", random_state=0).fit(X[:400], y[:400])
    return model, X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module", autouse=True)
def few_points():
    """Each point of the curves takes four fits of gradient boosting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tamis.cells.evaluation._COUNTS", (1, 3))
        patch.setattr("tamis.cells.evaluation._DRAWS", 2)
        yield


def marks_of(chart, kind):
    return [mark for mark in chart.marks if isinstance(mark, kind)]


@pytest.fixture(scope="module")
def curves(fitted):
    return cost_curves(*fitted)


@pytest.mark.slow
def test_curves_are_what_the_models_do(fitted, curves):
    model, _, _, held, y = fitted
    own, same, drawn, logistic, boosting = curves
    model.predict(held)
    at = np.flatnonzero(np.isclose(own.cost, model.cost_.mean()))  # other prices may lead to the same policy
    assert own.measures["accuracy"].value[at[0]] == pytest.approx(model.score(held, y))
    np.testing.assert_allclose(own.cost, 0.02 * own.acquired)
    assert (np.diff(own.cost) >= 0).all()
    np.testing.assert_allclose(same.cost, 0.02 * same.acquired)
    assert same.measures["accuracy"].value[1] > drawn.measures["accuracy"].value[1]
    assert logistic.cost == boosting.cost == pytest.approx(0.12)
    assert own.measures["accuracy"].value.max() > logistic.measures["accuracy"].value[0] - 0.12


def test_intervals_contain_the_truth_in_nineteen_of_twenty_draws():
    rng, inside = np.random.default_rng(0), np.zeros(2)
    for _ in range(200):
        y = rng.integers(0, 2, 120)
        x = rng.normal(size=120) + 1.5 * y
        posterior = 1 / (1 + np.exp(-1.5 * (x - 0.75)))
        values = scores(np.column_stack([1 - posterior, posterior]), x > 0.75, y, np.array([0, 1]))
        inside += [values[1] < 0.7734 < values[2], values[4] < 0.8556 < values[5]]
    assert (inside > 180).all()
    assert (inside < 200).all()


def test_areas_are_those_of_scikit_learn(rng):
    y, raw = rng.integers(0, 2, 90), rng.normal(size=90).round(1)
    posterior = np.column_stack([-raw, raw])
    assert scores(posterior, raw > 0, y, np.array([0, 1]))[3] == pytest.approx(roc_auc_score(y, raw))
    three, posterior = rng.integers(0, 3, 90), rng.dirichlet(np.ones(3), 90)
    expected = roc_auc_score(three, posterior, multi_class="ovr", average="weighted")
    values = scores(posterior, posterior.argmax(axis=1), three, np.arange(3))
    assert values[3] == pytest.approx(expected)
    assert values[0] == pytest.approx(np.mean(posterior.argmax(axis=1) == three))
    only = scores(posterior, np.zeros(90), np.zeros(90), np.arange(3))
    assert np.isnan(only[3:]).all()
    assert only[0] == 1.0


def test_the_gain_is_that_over_as_many_values_for_every_row(fitted):
    model, X, y, held, y_held = fitted
    gain = gain_over_fixed(model, X, y, held, y_held)
    right = model.predict(held) == y_held
    size = model.n_features_used_.mean()
    low, high = (
        FixedSubset(model._costs(), n_features=k).fit(X, y).predict(held) == y_held
        for k in (int(size), int(size) + 1)
    )
    fixed = (int(size) + 1 - size) * low + (size - int(size)) * high
    assert 0.1 < size % 1 < 0.9
    assert (gain.n_values, gain.fixed) == (pytest.approx(size), pytest.approx(fixed.mean()))
    assert gain.mean == pytest.approx(right.mean() - fixed.mean())
    apart = right.astype(float) - fixed
    assert gain.high - gain.mean == pytest.approx(1.96 * apart.std() / np.sqrt(len(apart)))


@pytest.fixture(scope="module")
def priced(fitted):
    """The same rows; the prices of two relevant features differ by a factor of ten."""
    _, X, y, held, y_held = fitted
    prices = [0.02, 0.02, 0.02, 0.02, 0.2, 0.02]
    return IFC2F(prices, order="relevance", random_state=0).fit(X, y), X, y, held, y_held


def test_with_different_prices_the_gain_is_that_in_loss(priced):
    model, X, y, held, y_held = priced
    gain = gain_over_fixed(*priced)
    own = (model.predict(held) != y_held) + model.cost_
    subset = FixedSubset(model._costs()).fit(X, y)
    fixed = (subset.predict(held) != y_held) + subset.cost_
    assert gain.prices_differ
    assert len(np.unique(model.n_features_used_)) > 1
    assert gain.fixed == pytest.approx(fixed.mean())
    assert gain.mean == pytest.approx((fixed - own).mean())
    half = 1.96 * (fixed - own).std() / np.sqrt(len(own))
    assert (gain.low, gain.high) == (pytest.approx(gain.mean - half), pytest.approx(gain.mean + half))


def test_with_equal_prices_the_gain_is_that_in_accuracy(fitted):
    assert not gain_over_fixed(*fitted).prices_differ


@pytest.mark.slow
def test_the_page_compares_losses_where_prices_differ(priced):
    page = AcquisitionResult(*priced).report()
    gain = gain_over_fixed(*priced)
    expected = "pays" if gain.low > 0 else "has a higher loss" if gain.high < 0 else "has no proven advantage"
    assert f"Instance-wise acquisition {expected}: the loss per row, errors and prices, changes by" in page
    assert "values per row, the same" not in page


@pytest.mark.slow
def test_the_page_says_whether_acquiring_row_by_row_pays(fitted):
    page = AcquisitionResult(*fitted).report()
    gain = gain_over_fixed(*fitted)
    expected = "pays" if gain.low > 0 else "is less accurate" if gain.high < 0 else "has no proven advantage"
    assert f"Instance-wise acquisition {expected}: accuracy changes by" in page


def test_missing_values_are_passed_over(fitted):
    model, _, _, held, y = fitted
    shares, accuracy, bought = missing_curve(model, held, y)
    assert accuracy[0] == pytest.approx(model.score(held, y))
    assert accuracy[0] > accuracy[-1] + 0.1
    assert bought[0] > bought[-1] * 1.5
    assert shares[0] == 0.0


@pytest.mark.slow
def test_page_shows_names_and_needs_no_network(fitted, tmp_path):
    path = AcquisitionResult(*fitted, "wards").report(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert re.search(r"<h1>IFC2F.* on wards</h1>", page)
    assert "&lt;i&gt;c&lt;/i&gt;" in page
    assert "<i>c</i>" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 100_000
    for heading in ("Accuracy against cost", "Acquired values", "Missing values", "Single rows"):
        assert heading in page
    model, *_, held, y = fitted
    accuracy = re.search(r"<dt>Accuracy</dt><dd>([\d.]+)", page).group(1)
    assert float(accuracy) == pytest.approx(model.score(held, y), abs=6e-4)


@pytest.mark.slow
def test_sparse_rows_without_names(rng):
    y = rng.integers(0, 2, 300)
    X = sp.csr_array(
        (rng.random((300, 300)) < 0.05 + 0.3 * (y[:, None] == np.arange(300) % 40)).astype(float)
    )
    model = IFC2F(0.01, random_state=0).fit(X[:200], y[:200])
    page = AcquisitionResult(model, X[:200], y[:200], X[200:], y[200:]).report()
    assert "boosting, all" not in page
    assert "logistic regression, all" in page


def test_a_model_that_acquires_nothing_says_so(rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    X[:, 0] += y
    model = AdaptiveIFC2F(10.0, max_steps=2).fit(X[:150], y[:150])
    page = AcquisitionResult(model, X[:150], y[:150], X[150:], y[150:]).report()
    assert "No value is worth its price here" in page


def test_a_model_with_one_column_to_acquire(rng):
    X, y = rng.normal(size=(200, 1)), rng.integers(0, 2, 200)
    X[:, 0] += y
    model = IFC2F(random_state=0).fit(X[:150], y[:150])
    page = AcquisitionResult(model, X[:150], y[:150], X[150:], y[150:]).report()
    assert "same values for every row" in page
    result = AcquisitionResult(model, X[:150], y[:150], X[150:], y[150:])
    assert len(marks_of(result.costs_chart(), Line)) == len(result.curves)


def test_figures(fitted, curves):
    model, _, _, held, y = fitted
    traces = model.acquire(held[:3])
    figure = plot_paths(traces, model.classes_, ["$x", "2", "3"])
    assert [len(axes.lines) for axes in figure.axes] == [3, 3, 3]
    labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert labels[0] == "at first"
    assert labels[1].startswith(f"{traces[0].features[0]} = ")
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), traces[0].posteriors[:, 0])
    result = AcquisitionResult(*fitted)
    result.curves = curves  # which takes long
    for measure in ("accuracy", "auc"):
        assert len(marks_of(result.costs_chart(measure), Line)) == 5
        assert len(marks_of(result.costs_chart(measure), Band)) == 1
    for curve in curves:
        for own in curve.measures.values():
            low, high = own.band
            assert (low < own.value).all()
            assert (own.value < high).all()
    measured, acquired = (marks_of(chart, Line)[0] for chart in result.missing_charts())
    shares, accuracy, bought = missing_curve(model, held, y)
    np.testing.assert_array_equal(measured.x, shares)
    np.testing.assert_array_equal(measured.y, accuracy)
    np.testing.assert_array_equal(acquired.y, bought)
    assert len(result.plot().axes) == len(result.charts())


# -- numeric targets ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numeric():
    """Two thirds of the variance are explained by a, and by b in the rows where c is high."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    X["c"] = np.where(X["c"] > 0, "high", "low")
    y = 500.0 + 50.0 * (2 * X["a"] + 1.5 * X["b"] * (X["c"] == "high")) + 20.0 * rng.normal(size=600)
    model = AdaptiveIFC2F(0.3, objective="squared-error", misclassification_cost=10.0, max_steps=3)
    return model.fit(X[:400], y[:400]), X[:400], y[:400], X[400:], y[400:].to_numpy()


@pytest.mark.slow
def test_curves_of_a_number_are_squared_errors(numeric):
    model, X, y, held, y_held = numeric
    own, same, drawn, linear, boosting = cost_curves(*numeric)
    assert all(set(curve.measures) == {"error"} for curve in (own, same, drawn, linear, boosting))
    variance = np.var(y)
    shares = (model.predict(held) - y_held) ** 2 / variance
    at = int(np.argmin(np.abs(own.cost - model.cost_.mean())))
    assert own.measures["error"].value[at] == pytest.approx(shares.mean())
    half = 1.96 * shares.std() / np.sqrt(len(shares))
    np.testing.assert_allclose(own.measures["error"].band[:, at], shares.mean() + np.array([-half, half]))
    fixed = FixedSubset(0.3, objective="squared-error", misclassification_cost=10.0, n_features=3).fit(X, y)
    error = np.mean((fixed.predict(held) - y_held) ** 2) / variance
    assert same.measures["error"].value[-1] == pytest.approx(error)
    assert same.cost[-1] == pytest.approx(0.9)
    assert boosting.measures["error"].value[0] < linear.measures["error"].value[0]
    gain = gain_over_fixed(*numeric)
    assert gain.fixed - gain.mean == pytest.approx(shares.mean())
    assert len(marks_of(AcquisitionResult(*numeric).costs_chart("error"), Line)) == 5


@pytest.mark.slow
def test_the_page_of_a_number_shows_errors_and_predictions(numeric):
    model, _, y, held, y_held = numeric
    page = AcquisitionResult(*numeric, "houses").report()
    error = np.mean((model.predict(held) - y_held) ** 2) / np.var(y)
    assert re.search(r"<dt>Squared error</dt><dd>([\d.]+)", page).group(1) == f"{error:.3f}"
    loss = re.search(r"<dt>Errors and prices</dt><dd>([\d.]+)", page).group(1)
    assert float(loss) == pytest.approx(10 * error + model.cost_.mean(), rel=1e-2)
    assert "A squared error of its variance costs 10." in page
    for text in (
        "Squared error against cost",
        "one standard deviation of",
        "linear regression, all",
        "true value",
    ):
        assert text in page
    assert "Accuracy" not in page
    assert "classes" not in page
    _, errors, acquired = missing_curve(model, held, y_held)
    assert errors[0] == pytest.approx(error)
    assert errors[-1] > 2 * errors[0]
    assert acquired[-1] < acquired[0]
    assert len(AcquisitionResult(*numeric).missing_charts()) == 2
