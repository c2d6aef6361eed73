"""The copied trees decide as scikit-learn's own; the columns that they split on are found."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from tamis.cells.masked import Trees, columns_by_gain


@pytest.mark.parametrize("n_classes", [2, 3])
def test_copied_trees_are_those_of_scikit_learn(rng, n_classes):
    y = rng.integers(0, n_classes, 900)
    numbers = rng.normal(size=(900, 5)) + y[:, None]
    numbers[rng.random(numbers.shape) < 0.4] = np.nan
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(numbers, y)
    np.testing.assert_allclose(
        Trees(model).predict_proba(numbers), model.predict_proba(numbers), rtol=1e-9, atol=1e-14
    )


def test_columns_that_tell_only_beside_others_have_most_gain(rng):
    X = rng.normal(size=(1500, 30))
    y = (X[:, 7] * X[:, 21] > 0).astype(int)
    X[:, 11] = np.nan
    found = columns_by_gain(X, y, 0)
    assert set(found[:2].tolist()) == {7, 21}
    assert 11 not in found
