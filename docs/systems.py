"""The matrix of systems: of each method its paper, its page, the slow version it equals, and its figures."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import NamedTuple

from tamis.catalog import CATALOG, LEARNERS, Entry

__all__ = ["System", "matrix_page", "page_of", "systems"]

_DOCS = Path(__file__).parent
_LEARNERS = {
    "HoeffdingTree": "hoeffding",
    "HoeffdingAdaptiveTree": "hoeffding",
    "CVFDT": "cvfdt",
    "VFDR": "vfdr",
    "RandomRules": "vfdr",
    "AdaptiveRandomForest": "forests",
    "StreamingRandomPatches": "forests",
    "OzaBoost": "boosting",
    "SGBT": "sgbt",
    "HEFTStream": "heft_stream",
    "HUWRS": "huwrs",
    "StreamingStacking": "stacking",
    "WeightedKNN": "knn",
    "WeightedNaiveBayes": "naive_bayes",
    "Perceptron": "linear",
    "SGDLogisticRegression": "linear",
    "SGDLinearSVM": "linear",
    "ResetOnDrift": "drift",
    "Refit": "refit",
}
# Twins that are not named as the page is.
_TWINS = {"forests": "forest", "refit": "refit", "drift": "drift"}
_TABLE = re.compile(r"^\|[ :-]+\|", re.MULTILINE)
_PROGRAM = re.compile(r"\b((?:experiments|benchmarks)/\w+\.py)")
_EVIDENCE = re.compile(r"published|evidence|relation to|when the estimator", re.IGNORECASE)


class System(NamedTuple):
    """A method of a paper.

    `table` is the page and the section that has its figures, `commands` are the programs that make them.
    """

    name: str
    keys: tuple[str, ...]
    paper: str
    page: str
    twin: str
    table: str
    commands: tuple[str, ...]


def page_of(entry: Entry) -> str | None:
    """Return the name of a method's page: that of its module, or of its folder; or that of a learner, if it has one."""
    return entry.module.split(".")[2] if entry in CATALOG else _LEARNERS.get(entry.name)


def systems() -> list[System]:
    """Return every method of the catalogue that Tamis implements."""
    entries: dict[str, list[Entry]] = {}
    for entry in [*CATALOG, *LEARNERS]:
        if page_of(entry):
            entries.setdefault(entry.name, []).append(entry)
    return [_system(name, of_class) for name, of_class in entries.items()]


def _system(name: str, entries: list[Entry]) -> System:
    page = page_of(entries[0])
    assert page is not None
    # A long page has a second one with its details and evidence.
    pages = [one for one in (f"evidence/{page}.md", f"{page}.md") if (_DOCS / one).is_file()]
    texts = [(_DOCS / one).read_text(encoding="utf-8") for one in pages]
    commands = dict.fromkeys(command for text in texts for command in _PROGRAM.findall(text))
    return System(
        name=name,
        keys=tuple(entry.key for entry in entries),
        paper=entries[0].paper,
        page=page,
        twin=f"tests/twins/{_TWINS.get(page, page)}.py",
        table=_table_of(pages[0], texts[0]),
        commands=tuple(commands),
    )


def _table_of(page: str, text: str) -> str:
    """Return the page and section with the figures: where the section only refers to another one, that one."""
    heading, section = _section_with_figures(page, text)
    reference = re.search(r"\]\(([\w./]+\.md(?:#[\w-]+)?)\)", section)
    if reference and not re.search(r"\d", section.replace(reference[1], "")):
        return posixpath.normpath(posixpath.join(posixpath.dirname(page), reference[1]))
    return f"{page}#{_slug(heading)}"


def _section_with_figures(page: str, text: str) -> tuple[str, str]:
    """Return heading and text of the section of evidence: of those with a table the one "as published", if any.

    Where evidence is a slow version alone, it is the section that names the program of the page's figures.
    """
    parts = [part.partition("\n") for part in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]]
    sections = [(heading, rest) for heading, _, rest in parts if _EVIDENCE.search(heading)]
    if not any(re.search(r"\d|\.md", rest) for _, rest in sections):
        sections = [(heading, rest) for heading, _, rest in parts if _PROGRAM.search(rest)]
    with_table = [one for one in sections if _TABLE.search(one[1])]
    published = [one for one in with_table if "published" in one[0].lower()]
    if not sections:
        raise ValueError(
            f"docs/{page} has no section with figures: add '## Evidence', and name the program that prints them."
        )
    return (published or with_table or sections)[0]


def _slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def matrix_page() -> str:
    """Return the page of the matrix, as Markdown."""
    lines = [
        "# Methods and their evidence",
        "",
        "This page is made from the catalogue. Each method equals a second, slow version that was written from its",
        "paper alone (the check). The last columns have the section with its figures, and the programs that print",
        "them. [Evidence](../evidence.md#does-it-reproduce-the-papers) names what is missing, and why.",
        "",
        "| method | paper | check | figures | programs |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in systems():
        programs = ", ".join(f"`{command}`" for command in one.commands)
        lines.append(
            f"| [{one.name}](../{one.page}.md) | {one.paper} | `{one.twin}` | [figures](../{one.table}) | {programs} |"
        )
    return "\n".join(lines) + "\n"
