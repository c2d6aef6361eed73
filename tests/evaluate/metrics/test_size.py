"""The size of what models hold."""

from __future__ import annotations

import numpy as np

from tamis.evaluate import state_bytes


def test_what_is_made_while_counting_is_counted_each_time():
    """The state of a generator is a new dict at each look; those of two must not be taken for one."""
    generators = [np.random.default_rng(seed) for seed in range(50)]
    held = [generator.bit_generator.state for generator in generators]
    assert state_bytes(*generators) == state_bytes(*held) > 50 * 16


def test_what_is_shared_is_counted_once():
    table = np.zeros(100)
    assert state_bytes(table, table) == 800
    assert state_bytes(table, table.copy()) == 1600
