"""Updates of the whole catalogue are atomic: a sample of experiments/interrupts.py, which says what is tried."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from experiments.interrupts import Trial, cases, is_broken
from hypothesis import given, settings
from hypothesis import strategies as st

CASES = cases()
ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def trial(name: str) -> Trial:
    return Trial(CASES[name])


def test_every_family_has_cases() -> None:
    families = {case.family for case in CASES.values()}
    assert families == {"rows", "columns", "cells", "sessions", "learners", "pipeline", "detectors"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_exception_after_the_hook(name: str) -> None:
    outcome = trial(name).hook_raises()
    assert not is_broken(outcome), outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.family != "cells"])
def test_an_allocation_fails(name: str) -> None:
    """An allocation in the middle of an update."""
    one = trial(name)
    if total := one.n_allocations():
        outcome = one.allocation_fails((total + 1) // 2)
        assert outcome is not None
        assert not is_broken(outcome), outcome


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from([name for name, case in CASES.items() if case.family != "cells"]), st.integers(1, 200))
def test_any_allocation_fails(name: str, k: int) -> None:
    outcome = trial(name).allocation_fails(k)
    assert outcome is None or not is_broken(outcome), outcome


@pytest.mark.slow
def test_signals_at_random_moments() -> None:
    """In another process, whose handlers are those of Python."""
    options = ["--sample", "2", "--interrupts", "8", "--allocations", "0"]
    families = ["rows", "columns", "sessions", "learners", "pipeline", "detectors"]
    found = subprocess.run(
        [sys.executable, "experiments/interrupts.py", *options, "--family", *families],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("interrupt: 8") == len(families), found.stdout
