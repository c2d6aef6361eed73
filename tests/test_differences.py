"""What the documentation says of papers and of other implementations still holds, point by point."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from experiments.differences import Found, points

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence.md"
POINTS = [point for beside in points().values() for point in beside]


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_the_point_holds_and_is_on_the_page(point: Callable[[], Found]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the other implementations
        found = point()
    assert found.holds, found
    assert f"| {found.what} |" in PAGE.read_text(encoding="utf-8")
