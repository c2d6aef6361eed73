"""Print how large each file of the package is: lines, functions, the longest function."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tamis"


def functions(path: Path) -> list[tuple[int, str]]:
    """Return (lines without the docstring, name) of every function of a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            doc = (first.end_lineno or 0) - first.lineno + 1 if is_doc else 0
            found.append(((node.end_lineno or 0) - node.lineno + 1 - doc, node.name))
    return found


def main() -> None:
    """Print the table, largest file first."""
    rows = []
    for path in sorted(SOURCE.rglob("*.py")):
        sizes = functions(path)
        longest = max(sizes, default=(0, "-"))
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        rows.append((n_lines, len(sizes), *longest, path.relative_to(SOURCE).as_posix()))
    print(f"{'lines':>6} {'functions':>9} {'longest':>8}  {'its name':<28} file")
    for n_lines, n_functions, length, name, file in sorted(rows, reverse=True):
        print(f"{n_lines:>6} {n_functions:>9} {length:>8}  {name:<28} {file}")
    total = sum(row[0] for row in rows)
    print(f"{total:>6} {sum(row[1] for row in rows):>9} {max(row[2] for row in rows):>8}  {len(rows)} files")


if __name__ == "__main__":
    main()
