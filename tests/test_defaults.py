"""What a docstring says is the default is the default, for everything public."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

import tamis
from tamis.catalog import CATALOG, LEARNERS

PUBLIC = [getattr(tamis, name) for name in tamis.__all__ if callable(getattr(tamis, name))]
EVERY = list(dict.fromkeys([*(entry.load() for entry in (*CATALOG, *LEARNERS)), *PUBLIC]))
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
