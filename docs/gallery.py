"""The gallery: every drawn picture, the page that explains it, and a program that draws it."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import NamedTuple

from draw import BLOCKS, DOCS, STYLES

_SECTIONS = {
    "rows": "Rows arrive",
    "columns": "Columns arrive",
    "cells": "Cells arrive",
    "learners": "Learners",
    "tutorials": "Tutorials",
}
_SHOWN = re.compile(r"```{image} (?:\.\./)?pictures/(\w+)_light\.png\n:alt: (.*)\n")


class Picture(NamedTuple):
    """A picture: its file without style and suffix, the page that shows it first, and what the page says it shows."""

    name: str
    page: str
    title: str
    caption: str
    program: str


def gallery_page() -> str:
    """Return the page of all pictures, in the order of `_SECTIONS`."""
    lines = [
        "# Gallery",
        "",
        "Every picture of these pages, and the program that draws it: copy it, then change the stream or the method.",
        "",
    ]
    for section, pictures in gallery().items():
        lines += [f"## {_SECTIONS[section]}", ""]
        for picture in pictures:
            lines += [f"### {picture.title}", ""]
            for style in STYLES:
                lines += [
                    f"```{{image}} ../pictures/{picture.name}_{style}.png",
                    f":alt: {picture.caption}",
                    f":class: only-{style}",
                    "```",
                    "",
                ]
            lines += [f"{picture.caption} [Read the page](../{picture.page}.md)", ""]
            lines += [
                ":::{dropdown} The program",
                "",
                "```python",
                picture.program.rstrip(),
                "```",
                "",
                ":::",
                "",
            ]
    return "\n".join(lines)


def gallery() -> dict[str, list[Picture]]:
    """Return the pictures of each section, in the order of their functions and of the tutorials."""
    shown = _captions()
    found: dict[str, list[Picture]] = {}
    for section in _SECTIONS:
        if section == "tutorials":
            programs = {
                picture: program
                for page in sorted((DOCS / section).glob("*.md"))
                for picture, program in _tutorial(page)
            }
        else:
            path = DOCS / "figures" / f"{section}.py"
            programs = {name: program(path, name) for name in _figures(path)}
        found[section] = [Picture(name, *shown[name], code) for name, code in programs.items()]
    return found


def program(path: Path, name: str) -> str:
    """Return a program that draws one figure: its function, and of the module and the canvas only what it uses."""
    canvas = _definitions(path.with_name("canvas.py"))
    own = _definitions(path)
    imports: dict[str, set[str]] = {}
    parts: dict[str, str] = {}

    def take(wanted: str, known: dict[str, tuple[ast.stmt, str]]) -> None:
        if wanted not in known or wanted in parts:
            return
        node, text = known[wanted]
        if isinstance(node, ast.ImportFrom) and node.level:
            take(wanted, canvas)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.setdefault(_module(node), set()).add(_imported(node, wanted))
        else:
            parts[wanted] = ""  # before what it uses, so that recursion ends
            for used in sorted(_names(node)):
                take(used, known)
            parts[wanted] = parts.pop(wanted) or text

    take(name, own)
    head = [
        f"from {module} import {', '.join(sorted(names))}" if module else "\n".join(sorted(names))
        for module, names in sorted(imports.items())
    ]
    body = list(dict.fromkeys(parts.values()))
    return "\n".join([*head, "", *(f"\n{part}\n" for part in body), f'\n{name}()().savefig("{name}.png")\n'])


def _captions() -> dict[str, tuple[str, str, str]]:
    """Return the page, its title and the caption of each picture."""
    found: dict[str, tuple[str, str, str]] = {}
    for path in sorted(DOCS.rglob("*.md")):
        page = path.relative_to(DOCS).with_suffix("").as_posix()
        if page.startswith("api/"):
            continue
        text = path.read_text(encoding="utf-8")
        for name, caption in _SHOWN.findall(text):
            above = text[: text.index(f"pictures/{name}_light.png")]
            headings = re.findall(r"^##? (.*)$", above, re.M)
            found.setdefault(name, (page, headings[-1 if page == "index" else 0].partition(":")[0], caption))
    return found


def _figures(path: Path) -> list[str]:
    return [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) == "Draw"
    ]


def _tutorial(page: Path) -> list[tuple[str, str]]:
    """Return each picture of a tutorial with all blocks that lead to it."""
    blocks, found = "", []
    for code, picture in BLOCKS.findall(page.read_text(encoding="utf-8")):
        blocks += ("\n" if blocks else "") + code
        if picture:
            found.append((picture, blocks + f'figure.savefig("{picture}.png")\n'))
    return found


def _definitions(path: Path) -> dict[str, tuple[ast.stmt, str]]:
    """Return the statement of a module that defines each of its names, and its text."""
    source = path.read_text(encoding="utf-8")
    found: dict[str, tuple[ast.stmt, str]] = {}
    for node in ast.parse(source).body:
        text = ast.get_source_segment(source, node) or ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
            if node.decorator_list:
                text = f"@{ast.unparse(node.decorator_list[0])}\n{text}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        else:
            names = [
                one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            ]
        found |= dict.fromkeys(names, (node, text))
    return found


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not hasattr(builtins, one.id)}


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return "" if isinstance(node, ast.Import) else str(node.module)


def _imported(node: ast.Import | ast.ImportFrom, name: str) -> str:
    alias = next(one for one in node.names if (one.asname or one.name) == name)
    text = ast.unparse(alias)
    return f"import {text}" if isinstance(node, ast.Import) else text
