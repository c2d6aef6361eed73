"""Entropies and what two variables share by chance, against scikit-learn and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.cluster import contingency_matrix
from sklearn.metrics.cluster import expected_mutual_information as of_scikit_learn

from tamis.dependence.information import entropy, expected_mutual_information


@pytest.mark.parametrize("seed", range(8))
def test_what_is_shared_by_chance_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    one, other = rng.integers(0, 1 + rng.integers(1, 4), n), rng.integers(0, 1 + rng.integers(1, 4), n)
    table = contingency_matrix(one, other)
    a, b = table.sum(axis=1).astype(np.int64), table.sum(axis=0).astype(np.int64)
    want = of_scikit_learn(contingency_matrix(one, other, sparse=True), n)
    assert expected_mutual_information(a, b) == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_two_rows_of_two_classes():
    """Either they agree or they are mirrored: each time log 2 is shared."""
    found = expected_mutual_information(np.array([1, 1]), np.array([1, 1]))
    assert found == pytest.approx(np.log(2.0))


def test_one_value_has_no_entropy_and_an_empty_table_neither():
    assert entropy(np.array([[4, 0], [0, 0], [2, 2]])).tolist() == pytest.approx([0.0, 0.0, np.log(2.0)])
