"""Rows of published tables that take seconds are measured again: a page states what the code gives now."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from experiments.fires_tables import METHODS, run, stream_of

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "fires.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "method"),
    [
        ("Spambase", "FIRES-GLM"), ("Spambase", "FIRES, default"), ("Spambase", "OFS"), ("Madelon", "FIRES, default"),
    ],
)  # fmt: skip
def test_the_table_of_fires(shared: Path, title: str, method: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith(f"| {title} | {method} |"))
    accuracy, stability = (float(row.split("|")[column]) for column in (4, 6))
    grid = list(itertools.product((25, 50, 75, 100), (0.1, 0.15, 0.2)))
    measured = run(stream_of(title, shared / "data"), METHODS[method], grid)
    assert measured["accuracy"] == pytest.approx(accuracy, abs=0.0011)
    assert measured["stability"] == pytest.approx(stability, abs=0.0011)
