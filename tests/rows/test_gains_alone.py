"""What a feature tells alone, against SciPy's tests of tables and ranks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tamis.rows.joint.pair_evidence import gain_alone, trend_alone


def table(seed, n_levels, n_classes, n_features=5):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, 300)
    levels = rng.binomial(n_levels - 1, (codes + 1) / (n_classes + 1), (n_features, 300))
    alone = np.zeros((n_features, n_levels, n_classes))
    for j in range(n_features):
        np.add.at(alone[j], (levels[j], codes), 1)
    return alone, levels, codes


@pytest.mark.parametrize(("n_levels", "n_classes"), [(2, 2), (5, 3), (9, 2)])
def test_gains_are_g_over_2_n_ln_2(n_levels, n_classes):
    alone, _, _ = table(0, n_levels, n_classes)
    alone = np.concatenate([alone, np.zeros_like(alone[:, :1])], axis=1)  # a level that no row has
    gain, freedom = gain_alone(alone)
    for j, found in enumerate(alone):
        g, _, df, _ = stats.chi2_contingency(
            found[found.sum(axis=1) > 0], correction=False, lambda_="log-likelihood"
        )
        assert (gain[j], freedom[j]) == (pytest.approx(g / (600 * np.log(2)), rel=1e-9), df)


@pytest.mark.parametrize(("n_levels", "n_classes"), [(2, 2), (5, 3), (9, 2)])
def test_trends_are_those_of_kruskal_and_wallis(n_levels, n_classes):
    alone, levels, codes = table(1, n_levels, n_classes)
    bits, freedom = trend_alone(alone)
    for j in range(len(alone)):
        h = stats.kruskal(*(levels[j][codes == c] for c in range(n_classes))).statistic
        assert (bits[j], freedom[j]) == (pytest.approx(h / (600 * np.log(2)), rel=1e-9), n_classes - 1)


def test_where_nearly_all_rows_are_alike_there_is_no_trend():
    few, even = np.array([[97.0, 0.0], [0.0, 3.0]]), np.array([[50.0, 0.0], [0.0, 50.0]])
    assert trend_alone(few[None])[0].tolist() == [0.0]
    assert gain_alone(few[None])[0][0] > 0.1
    assert trend_alone(even[None])[0].tolist() == [pytest.approx(99 / (200 * np.log(2)))]
