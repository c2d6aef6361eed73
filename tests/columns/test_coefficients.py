"""Coefficients of a grown model: those that solve its equations in the units of the features."""

import numpy as np
import scipy.special

from tamis import OSFS, AlphaInvesting
from tamis.columns.result import coefficients


def test_coefficients_are_those_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 80))
    y = X[:, 3] - X[:, 30] + 0.5 * rng.normal(size=150)
    selector = AlphaInvesting("logistic", target_fdr=0.05).fit(X, y + X[:, 7] > 0)
    made = X[:, selector.get_support()]
    found = coefficients(selector, made, y)
    design = np.column_stack([made, np.ones(150)])
    state = (y + X[:, 7] > 0) == selector.classes_[1]
    solved = np.append(found, 0.0)
    for _ in range(50):  # the intercept
        mean = scipy.special.expit(design @ solved)
        solved[-1] += (state - mean).sum() / (mean * (1 - mean)).sum()
    np.testing.assert_allclose(design.T @ (state - scipy.special.expit(design @ solved)), 0.0, atol=1e-3)
    assert coefficients(OSFS().fit(X[:, :5], y > 0), X[:, :0], y) is None


def test_separated_classes_have_no_coefficients():
    x = np.arange(40.0)
    selector = AlphaInvesting("logistic", variance="classical").fit(x[:, None], x > 19.5)  # sorted labels
    assert np.isnan(coefficients(selector, x[:, None], x > 19.5)).all()
