import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.report import text as number_format


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, "0.500"), (1, "1.000"), (-0.0001, "0.000"), (-0.25, "−0.250"), (math.nan, "–"), (math.inf, "–")],
)
def test_fraction(value, shown):
    assert number_format.fraction(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (1, "1.00"), (99.97, "100"), (0.00123, "0.00123"), (0.000999, "9.99 × 10⁻⁴"),
        (-12345.6, "−12,300"), (1e5, "1.00 × 10⁵"), (1e-300, "1.00 × 10⁻³⁰⁰"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_scientific(value, shown):
    assert number_format.scientific(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (1e-9, "1 ns"), (0.9996e-3, "1 ms"), (0.9996, "1 s"), (59.94, "59.9 s"), (59.97, "1 min 0 s"),
        (3599.4, "59 min 59 s"), (3599.6, "1 h 0 min"), (400_000, "111 h 7 min"), (-1e-9, "0 s"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_duration(seconds, shown):
    assert number_format.duration(seconds) == shown


@pytest.mark.parametrize(
    ("n_bytes", "shown"), [(0, "0 B"), (999, "999 B"), (999.9, "1 kB"), (2.5e9, "2.5 GB"), (math.nan, "–")]
)
def test_size(n_bytes, shown):
    assert number_format.size(n_bytes) == shown


@given(
    low=st.floats(-1e12, 1e12),
    span=st.floats(1e-12, 1e12),
    at_most=st.integers(2, 12),
)
def test_ticks_are_few_round_and_inside(low, span, at_most):
    high = low + span
    assume(span > 1e-9 * max(abs(low), abs(high)))  # closer, and labels could not tell them apart
    places = number_format.ticks(low, high, at_most)
    assert 1 <= len(places) <= at_most
    slack = 1e-6 * span
    assert all(low - slack <= place <= high + slack for place in places)
    assert places == sorted(set(places))
    if len(places) > 1:
        step = places[1] - places[0]
        mantissa = float(f"{step:.3e}".split("e")[0])
        assert mantissa in (1, 2, 5)


def test_a_thousandth_is_written_out():
    assert number_format.scientific(0.001) == "0.00100"
    assert number_format.scientific(0.00099) == "9.90 × 10⁻⁴"
