import numpy as np
import pytest

from tamis.watch.history import History


@pytest.mark.parametrize("step", [1, 100, 730])
def test_points_are_evenly_spaced_and_bounded(step):
    history = History(1)
    for row in range(step, 80_000 * max(1, step // 100), step):
        history.add(row, np.array([row]), np.array([-row]))
        if row in (step, 20 * step):
            assert history.read()[0][0] == step
    rows, relevance, reliance = history.read()
    gaps = np.diff(rows)
    assert gaps.max() - gaps.min() <= step
    assert 128 <= len(rows) <= 256
    np.testing.assert_array_equal(relevance[:, 0], rows)
    np.testing.assert_array_equal(reliance[:, 0], -rows)
