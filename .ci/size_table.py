"""Print how large each file and folder of the package is; fail if a folder exceeds its budget of code lines.

    python .ci/size_table.py           folders
    python .ci/size_table.py --files   files too: lines, functions, the longest function

A code line is one with a token: docstrings, comments and blank lines do not count. The budget of a folder is what it
had when it was last made smaller. A change that raises one says why, in a comment above it.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tamis"
TOP = "(top)"  # modules beside the folders
BUDGETS = {
    # Raised by 46: states that were seen too rarely, one kernel of FIRES, rows that are learned directly.
    "rows": 9469,
    # Raised by 31: comparisons of several labels.
    "evaluate": 7321,
    "streams": 6945,
    "learners": 6500,
    "cells": 5458,
    # Raised by 124: several labels in screen, compare and follow.
    "cli": 5155,
    # Raised by 12: regimes in the memory of the target.
    "columns": 4420,
    # Raised by 21: rows before a dependence is known.
    "summaries": 4621,
    # Raised by 74: rows that are learned directly, labels that are missing for one target.
    "base": 3071,
    "watch": 3186,
    # Raised by 20: one context for system errors, cached code of moved modules.
    TOP: 2461,
    # Raised by 133: ONNX for every label, missing value and time stamp.
    "pipeline": 2306,
    # Raised by 12: labels that are missing for one target.
    "checks": 2001,
    "adapters": 1516,
    "dependence": 1177,
    "persistence": 1188,
    # Raised by 38: rankings of several labels.
    "report": 963,
    # Raised by 16: one name of index arrays.
    "_validation": 949,
    "importance": 620,
    # Raised by 6: one function for a new detector.
    "drift": 587,
    "terminal": 528,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def docstring(node: ast.AST) -> set[int]:
    """Return the lines of the docstring of a module, class or function."""
    if not isinstance(node, Function | ast.ClassDef | ast.Module) or ast.get_docstring(node) is None:
        return set()
    return set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))


def code_lines(path: Path) -> int:
    """Return the number of code lines of a file."""
    with tokenize.open(path) as file:
        tokens = [token for token in tokenize.generate_tokens(file.readline) if token.type not in LAYOUT]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return len(lines.difference(*map(docstring, ast.walk(tree))))


def functions(path: Path) -> list[tuple[int, str]]:
    """Return (lines without the docstring, name) of every function of a file."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, Function)]
    return [((n.end_lineno or 0) - n.lineno + 1 - len(docstring(n)), n.name) for n in nodes]


def folder_of(path: Path) -> str:
    """Return the folder of the package to whose budget a file belongs."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else TOP


def main() -> int:
    """Print the tables, largest first; return 1 if a folder exceeds its budget or has none."""
    paths = sorted(SOURCE.rglob("*.py"))
    sizes = {path: code_lines(path) for path in paths}
    if "--files" in sys.argv:
        print(f"{'code':>6} {'functions':>9} {'longest':>8}  {'its name':<28} file")
        for path in sorted(paths, key=sizes.__getitem__, reverse=True):
            found = functions(path)
            length, name = max(found, default=(0, "-"))
            print(
                f"{sizes[path]:>6} {len(found):>9} {length:>8}  {name:<28} {path.relative_to(SOURCE).as_posix()}"
            )
    used, files = Counter[str](), Counter(map(folder_of, paths))
    for path, size in sizes.items():
        used[folder_of(path)] += size
    print(f"{'code':>6} {'budget':>7} {'files':>6}  folder")
    for folder, size in used.most_common():
        print(f"{size:>6} {BUDGETS.get(folder, 0):>7} {files[folder]:>6}  {folder}")
    print(f"{used.total():>6} {sum(BUDGETS.values()):>7} {files.total():>6}  all")
    over = [folder for folder, size in used.items() if size > BUDGETS.get(folder, 0)]
    for folder in over:
        print(
            f"{folder} exceeds its budget: make it smaller, or raise the budget with a comment that says why."
        )
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
