"""The templates of pages: everything that is printed is escaped."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import tamis
from tamis.report.charts import svg
from tamis.report.number_format import count
from tamis.report.text import printable, shorten
from tamis.report.vocabulary import VOCABULARY

# Permissions of a page: only its own styles and pictures. No scripts, no requests.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(template_name: str, **values: Any) -> str:
    """Return a template of the package ``tamis.report`` with its values filled in."""
    page: str = _environment().get_template(template_name).render(values)
    return page


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tamis", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    environment.filters |= {
        "count": count,
        "shorten": shorten,
        "kind": lambda item: type(item).__name__,
        "listing": _listing,
    }
    style = files("tamis.report").joinpath("style.css").read_text(encoding="utf-8")
    environment.globals |= {
        "sample": svg.sample, "shapes": svg.shapes, "tick_positions": svg.tick_positions,
        "policy": _POLICY, "style": style, "version": tamis.__version__,
        "vocabulary": VOCABULARY,
    }  # fmt: skip
    return environment


def _listing(settings: Any) -> str:
    return json.dumps(settings, indent=1, ensure_ascii=False, default=str)


def _finalize(value: Any) -> Any:
    """Return a text without characters that HTML rejects; markup is unchanged."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
