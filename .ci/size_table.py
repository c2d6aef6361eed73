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
    # Raised by 9: claims that depend on parameters are one method.
    # Raised by 176: a ranking shows itself (it was in `report` and `cli`).
    "rows": 9787,
    # Raised by 5: naive Bayes validates rows to predict without two calls.
    "learners": 6411,
    # Raised by 664: labels of files are exact, every odd cell is named, and a followed file is recognised by its data.
    "streams": 5766,
    "cli": 4342,
    # Raised by 301: a search shows itself (it was in `report` and `cli`).
    "columns": 4333,
    # Raised by 125: a measure that is no longer defined is NaN, and `macro_auc`.
    # Raised by 1,679: runs, experiments and recommendations show themselves (it was in `report` and `cli`).
    # Raised by 4: an interrupted run and a chosen batch size are named in the heading.
    "evaluate": 7137,
    "summaries": 4418,
    # Raised by 2: shifted features.
    # Raised by 705: a model and its held-out rows show themselves (it was in `report` and `cli`).
    "cells": 4732,
    # Raised by 5: `macro_auc` in the charts.
    "report": 967,
    # Raised by 36: parameters as fields, and input handling that an author of a selector need not see.
    "base": 2286,
    # Raised by 12: copies of a replay share its rows, and kernels use enums.
    TOP: 2175,
    # Raised by 222: reads that are interrupted, the same rows in every form, weights and shifts.
    "checks": 1635,
    # Raised by 167: a watch shows itself (it was in `report` and `cli`).
    "watch": 1593,
    # Raised by 52: River's rows are validated on arrival.
    "adapters": 1439,
    # Raised by 230: the types of the whole state are validated when a file is loaded.
    "persistence": 1251,
    # Raised by 92 for the autocorrelation of `drift` and `summaries`, which moved here.
    "dependence": 1138,
    "pipeline": 1019,
    # Raised by 20: names of array types, and `parameter`, a field with the values that it accepts.
    "_validation": 763,
    "importance": 656,
    "drift": 624,
    # Raised by 1: `macro_auc`.
    "terminal": 584,
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
