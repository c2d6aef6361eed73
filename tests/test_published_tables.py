"""Rows of published tables that take seconds are measured again: a page states what the code gives now."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path

import pytest
from experiments.fires_tables import METHODS, run, stream_of

from tests import behaviour

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "fires.md"


def matrix():
    spec = importlib.util.spec_from_file_location("systems", ROOT / "docs" / "systems.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SYSTEMS = matrix().systems()


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


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_every_method_has_a_check_figures_and_programs(system) -> None:
    assert (ROOT / system.twin).is_file()
    page, _, section = system.table.partition("#")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if section:
        headings = re.findall(r"^##+ (.*)", text, flags=re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]
        text = text.split(headings[slugs.index(section)], 1)[1]
    assert re.search(r"\d", text), f"docs/{system.table} has no figure"
    assert system.commands, (
        f"docs/{page} names no program of experiments/ or benchmarks/ that prints its figures"
    )
    assert [command for command in system.commands if not (ROOT / command).is_file()] == []
    assert f"[{system.name}](../{system.page}.md)" in matrix().matrix_page()


def test_every_method_of_the_catalogue_is_in_the_matrix() -> None:
    keys = {key for system in SYSTEMS for key in system.keys}
    assert set(behaviour.ENTRIES) <= keys | {"river-naive-bayes"}
    unknown = sorted(set(behaviour.ENTRIES) ^ set(behaviour.stored()))
    assert not unknown, f"run python -m tests.behaviour {' '.join(unknown)}, and commit what it stores"


@pytest.mark.slow
@pytest.mark.parametrize("key", behaviour.ENTRIES)
def test_a_method_behaves_as_when_its_tables_were_made(key: str) -> None:
    known = behaviour.stored()[key]
    (system,) = (one for one in SYSTEMS if key in one.keys)
    assert behaviour.is_same(behaviour.numbers_of(behaviour.ENTRIES[key]), known["numbers"]), (
        f"{key} gives other results than at {known['commit']}, when docs/{system.page}.md was right: run"
        f" {', '.join(system.commands)}, correct the page, and then python -m tests.behaviour {key}."
    )
