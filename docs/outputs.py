"""What the Python of the pages prints: `python docs/outputs.py [PAGE...]` runs it and writes it below each block.

A block of text right after a block of Python is what that prints, where `...` stands for anything. A test runs every
page and compares: integers and words exactly, decimals to one unit in their last place, since machines round
differently. The pages on streams, Spark and production speak of files and services that are not here, and have tests of
their own.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

DOCS = Path(__file__).parent
BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_DECIMAL = re.compile(r"-?\d*\.\d+(?![\w.])")
_ELSEWHERE = ("streams", "spark", "production")


class Block(NamedTuple):
    """A block of Python: where its text ends, what the page says it prints, and what it prints."""

    end: int
    shown: str
    printed: str

    @property
    def agrees(self) -> bool:
        if "..." in self.shown:
            return doctest.OutputChecker().check_output(self.shown, self.printed, doctest.ELLIPSIS)
        words = [_DECIMAL.sub("0.0", text).split() for text in (self.shown, self.printed)]
        shown, printed = (_DECIMAL.findall(text) for text in (self.shown, self.printed))
        return words[0] == words[1] and all(
            abs(float(one) - float(other)) <= 1.001 * 10.0 ** -len(one.partition(".")[2])
            for one, other in zip(shown, printed, strict=True)
        )


def pages() -> list[str]:
    """Return the pages that have Python in them, relative to the folder of the documentation."""
    folders = (DOCS, DOCS / "tutorials", DOCS / "evidence")
    found = (
        path for folder in folders for path in sorted(folder.glob("*.md")) if path.stem not in _ELSEWHERE
    )
    return [
        path.relative_to(DOCS).as_posix() for path in found if BLOCKS.search(path.read_text(encoding="utf-8"))
    ]


def run(page: str) -> Iterator[Block]:
    """Run a page block by block in the working directory; a page of evidence continues that of its method."""
    module = sys.modules["page"] = ModuleType("page")  # classes of the page can be pickled
    if page.startswith("evidence/"):
        for code, _ in BLOCKS.findall((DOCS / page.removeprefix("evidence/")).read_text(encoding="utf-8")):
            _printed(code, module)
    for found in BLOCKS.finditer((DOCS / page).read_text(encoding="utf-8")):
        yield Block(found.end(), found[2] or "", _printed(found[1], module))


def write_measurements(folder: Path) -> None:
    """Write the file that the pages speak of: 600 rows, the state shows in `pressure` alone."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, size=600)
    columns = np.column_stack([rng.normal(size=(600, 3)), state + 0.3 * rng.normal(size=600)])
    lines = ["heat,sound,light,pressure,state"]
    lines += [
        ",".join([*map(repr, row), ("off", "on")[s]]) for row, s in zip(columns.tolist(), state, strict=True)
    ]
    (folder / "measurements.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _printed(code: str, module: ModuleType) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, vars(module))
    lines = out.getvalue().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _write(page: str) -> None:
    path = DOCS / page
    text, parts, last = path.read_text(encoding="utf-8"), [], 0
    for block in run(page):
        part, last = text[last : block.end], block.end
        if not block.agrees:
            code = part[
                : part.rindex("```python\n") + part[part.rindex("```python\n") :].index("\n```\n") + 5
            ]
            part = code + (f"\n```text\n{block.printed}```\n" if block.printed else "")
        parts.append(part)
    path.write_text("".join([*parts, text[last:]]), encoding="utf-8")


if __name__ == "__main__":
    wanted = sys.argv[1:] or pages()
    for name in wanted:
        print(name, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            write_measurements(Path(folder))
            os.chdir(folder)
            _write(name)
            os.chdir(DOCS)
