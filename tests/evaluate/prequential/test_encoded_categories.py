"""The mean targets of categories come from earlier batches, for the selection and for every baseline."""

import numpy as np
import pandas as pd
import pytest

import tamis
from tamis.pipeline.scaling import RunningScale


@pytest.mark.parametrize("delay", [0, 150])
def test_identifiers_do_not_give_the_labels_of_a_batch_to_the_baselines(delay):
    """Labels are noise; before, identifiers were encoded by the labels of their own rows."""
    rng = np.random.default_rng(0)
    n_rows = 3000
    table = pd.DataFrame({f"id{k}": rng.integers(0, 1500, n_rows).astype(str) for k in range(3)})
    table = table.assign(x=rng.normal(size=n_rows), z=rng.normal(size=n_rows))
    y = rng.integers(0, 2, n_rows)
    result = tamis.prequential((table, y), tamis.FIRES(3), baselines="both", batch_size=100, delay=delay)
    summary = result.summary()
    for name in ("accuracy", "random_accuracy", "all_accuracy", "frozen_accuracy"):
        assert abs(summary[name] - 0.5) < 0.05, name


def test_a_frozen_scale_ignores_later_batches_and_encodes_its_own_once():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 200), rng.normal(size=200)])
    scale = RunningScale(2, [0])
    scale.update(X[:100])
    scale.learn_categories(X[:100], rng.random(100))
    batch = X[100:]
    expected, frozen = scale.transform(batch), scale.frozen(batch)
    assert frozen.encode(batch) is frozen.encode(batch)
    scale.learn_categories(batch, np.ones(100))
    scale.update(batch)
    np.testing.assert_array_equal(frozen.transform(batch), expected)
    np.testing.assert_array_equal(frozen.transform(batch.copy()), expected)
    assert (scale.transform(batch) != expected).any()
