"""Streams with known truth: rows that do not depend on batches, the law of drift, noise, appended features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import UnknownNameError
from tamis.streams import Irrelevant, Redundant, SyntheticStream, load_stream
from tamis.streams.concepts import SEA

TWO = (SEA((0, 1), 8.0, 6), SEA((2, 5), 9.0, 6))


def stream(n_rows=3000, **options):
    options = {"drifts": [n_rows // 2], "width": 100.0, "label_noise": 0.1, "seed": 3, **options}
    return SyntheticStream(TWO, n_rows, **options)


EVERYTHING = (
    Redundant(3),
    Irrelevant(2),
    Redundant(2, "cosine"),
    Irrelevant(1, 4),
    Redundant(2, "quadratic"),
)


@settings(max_examples=15)
@given(size=st.integers(1, 400), start=st.integers(0, 3000))
def test_rows_do_not_depend_on_batches(size, start):
    mixed = stream(appended=EVERYTHING)
    X, y = mixed.read(0, 3000)
    parts = list(mixed.batches(size, start=start))
    np.testing.assert_array_equal(np.concatenate([X[:0], *(part for part, _ in parts)]), X[start:])
    np.testing.assert_array_equal(np.concatenate([y[:0], *(part for _, part in parts)]), y[start:])


def test_a_name_is_suggested():
    with pytest.raises(UnknownNameError, match="did you mean 'SEA'"):
        load_stream("seaa")
