"""What a docstring or a page states as a default is the default, for everything public."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.catalog import CATALOG, LEARNERS

PUBLIC = [getattr(tamis, name) for name in tamis.__all__ if callable(getattr(tamis, name))]
EVERY = list(dict.fromkeys([*(entry.load() for entry in (*CATALOG, *LEARNERS)), *PUBLIC]))
DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("evidence/*.md"))]
IN_WORDS = {("Screening", "scores"): ("t", "fisher", "mi", "chi2", "gini")}  # "all of them"


def defaults_said(subject: Any) -> dict[str, str]:
    """Return what the section on parameters says; "None" where a parameter is optional."""
    found = re.search(
        r"Parameters\n-+\n(.*?)(\n\n?[A-Z][a-z]+\n-+\n|\Z)", inspect.getdoc(subject) or "", re.DOTALL
    )
    said = {}
    for names, rest in re.findall(r"^([\w, ]+) : (.*)$", found[1] if found else "", re.MULTILINE):
        default = re.search(r"default=(.+)$", rest)
        if default or "optional" in rest:
            said |= dict.fromkeys(names.split(", "), default[1].strip() if default else "None")
    return said


def value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: subject.__name__)
def test_defaults_are_those_of_the_docstring(subject: Any) -> None:
    parameters, said = inspect.signature(subject).parameters, defaults_said(subject)
    for name, text in said.items():
        expected = IN_WORDS.get((subject.__name__, name), value_of(text))
        assert parameters[name].default == expected, name


def test_most_defaults_are_said() -> None:
    assert sum(len(defaults_said(subject)) for subject in EVERY) > 350


# -- pages -------------------------------------------------------------------------------------------------

VALUE = r"""("[^"`]*"|\([^)`]*\)|[-\w.+]+)"""  # text, a tuple, a number or a name


def defaults_of_page(text: str) -> Iterator[tuple[str, str]]:
    """Yield each (parameter, default) that a page states.

    It does so as `` `name=value`, the default``, `` `name=value` (the default)`` or `` is the default``, in a column
    of a table with the heading "default", and as "..., value by default" in the row of a parameter.
    """
    yield from re.findall(rf"`(\w+)={VALUE}`(?:, | \(| is )the default\b(?! of| where)", text)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = [cells_of(line) for line in table.splitlines()]
        for row in rows:
            cells = dict(zip(head, row, strict=False))
            names = re.findall(r"`(\w+)`", cells.get("parameter", row[0]))
            stated = cells.get("default", "")
            yield from re.findall(rf"`(\w+)={VALUE}`", stated)
            by_default = re.search(r", ((?:`[^`]+`|[-\w.]+)(?: and [-\w.]+)?) by default$", row[-1])
            if "parameter" in head:
                yield from zip(names, re.split(r", (?![^(]*\))", stated), strict=False)
            if by_default:
                yield from zip(names, by_default[1].split(" and "), strict=True)


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def subjects_of(page: Path, text: str) -> list[Any]:
    """Return what the page is about: the classes of its module, then everything public that it calls."""
    own = [entry.load() for entry in CATALOG if entry.module.split(".")[2] == page.stem]
    called = [subject for subject in EVERY if re.search(rf"\b{subject.__name__}[(.`]", text)]
    return own or called


def is_constant(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def statements(page: Path) -> list[tuple[str, str, list[Any]]]:
    """Return name, stated default, and the true defaults, of each statement about a parameter of a subject."""
    text = page.read_text(encoding="utf-8")
    subjects = subjects_of(page, text)
    found = []
    for name, stated in defaults_of_page(text):
        value = {"none": "None", "off": "False"}.get(stated.strip("`"), stated.strip("`"))
        true = [p[name].default for p in (inspect.signature(s).parameters for s in subjects) if name in p]
        if true and is_constant(value):
            found.append((name, value, true))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_defaults_on_a_page_are_those_of_the_signature(page: Path) -> None:
    wrong = [
        f"{name}={stated}, but it is {true[0]!r}"
        for name, stated, true in statements(page)
        if ast.literal_eval(stated) not in true
    ]
    assert wrong == []


@pytest.mark.slow
def test_a_wrong_default_on_a_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "fires.md"
    for text in (
        "`half_life=2001`, the default",
        '`scaling="range"` (the default) of FIRES',
        "| parameter | default | x |\n| --- | --- | --- |\n| `half_life` | 2001 | y |\n",
        "| parameter | x |\n| --- | --- |\n| `half_life` | rows, 2001 by default |\n",
        "| published | default |\n| --- | --- |\n| a | fades (`half_life=2001`) |\n",
    ):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError):
            test_defaults_on_a_page_are_those_of_the_signature(page)
        page.write_text(text.replace("2001", "2000").replace("range", "standard"), encoding="utf-8")
        test_defaults_on_a_page_are_those_of_the_signature(page)
    assert sum(len(statements(page)) for page in PAGES) > 40
