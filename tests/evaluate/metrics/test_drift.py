"""How long a measure takes to be back after a drift, by hand."""

from __future__ import annotations

from tamis.evaluate import recovery


def test_the_row_of_the_drift_itself_lies_before_it():
    back = recovery([100, 200, 300, 400], [0.9, 0.5, 0.9, 0.9], drifts=[200])
    assert back.levels.tolist() == [0.7]
    assert back.drops.tolist() == [0.0]
    assert back.rows.tolist() == [0.0]


def test_back_is_counted_from_where_the_drift_begins():
    back = recovery([100, 200, 300, 400, 500], [0.9, 0.9, 0.6, 0.6, 0.9], drifts=[200])
    assert back.drops.round(6).tolist() == [0.3]
    assert back.rows.tolist() == [300.0]
