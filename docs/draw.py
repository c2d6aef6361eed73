"""Draw the pictures of the documentation: `python docs/draw.py` draws those whose source has changed.

Pictures and a checksum of each source are part of the repository, so that building the site trains no model. A
picture is either a function of `figures`, which computes what it shows and returns how to draw it, or the variable
`figure` of a tutorial, which runs block by block. `--all` draws every picture, for instance after a method changed.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
SUMS = PICTURES / "sums.json"
STYLES = {"light": "default", "dark": "dark_background"}
BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\n```{image} \.\./pictures/(\w+)_light\.png)?", re.M | re.S)


def checksums() -> dict[str, str]:
    """Return a checksum of the source of each figure and of each tutorial."""
    sources = {f"{path.stem}.{name}": source for path, name, source in _figures()}
    for page in _tutorials():
        blocks = BLOCKS.findall(page.read_text(encoding="utf-8"))
        sources[f"tutorials/{page.stem}"] = ast.unparse(ast.parse("\n".join(code for code, _ in blocks)))
    return {
        name: hashlib.sha256(source.encode()).hexdigest()[:16] for name, source in sorted(sources.items())
    }


def drawn() -> dict[str, str]:
    """Return the checksums of what has been drawn."""
    sums: dict[str, str] = json.loads(SUMS.read_text(encoding="utf-8")) if SUMS.exists() else {}
    return sums


def draw(names: list[str]) -> None:
    """Draw figures and run tutorials; each is recorded as soon as it is drawn."""
    present = checksums()
    for name in names:
        print(f"drawing {name}", file=sys.stderr, flush=True)
        if name.startswith("tutorials/"):
            run_tutorial(DOCS / f"{name}.md", _save)
        else:
            _save(name.partition(".")[2], figure(name))
        kept = {**drawn(), name: present[name]}
        lines = {known: kept[known] for known in present if known in kept}
        SUMS.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


def figure(name: str) -> Callable[[], Any]:
    """Compute what a figure, named as in `checksums`, shows; return how to draw it."""
    sys.path.insert(0, str(DOCS))
    module, _, function = name.partition(".")
    draw: Callable[[], Any] = getattr(importlib.import_module(f"figures.{module}"), function)()
    return draw


def run_tutorial(page: Path, save: Callable[[str, Callable[[], Any]], None]) -> None:
    """Run a tutorial block by block; the `figure` of the block before a picture is that picture."""
    module = sys.modules["page"] = ModuleType("page")  # classes of the page can be pickled
    for code, picture in BLOCKS.findall(page.read_text(encoding="utf-8")):

        def run(code: str = code) -> Any:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, vars(module))
            return vars(module).get("figure")

        save(picture, run) if picture else run()


def _figures() -> Iterator[tuple[Path, str, str]]:
    """Yield the file, name and source of each function that returns `Draw`; helpers and constants are included."""
    canvas = (DOCS / "figures" / "canvas.py").read_text(encoding="utf-8")
    for path in sorted((DOCS / "figures").glob("*.py")):
        if path.stem == "canvas":
            continue
        functions, shared = {}, [canvas]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.FunctionDef)
                and ast.unparse(node.returns or ast.Constant(None)) == "Draw"
            ):
                functions[node.name] = ast.unparse(node)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                shared.append(ast.unparse(node))
        for name, source in functions.items():
            yield path, name, "\n".join([source, *shared])


def _tutorials() -> list[Path]:
    return sorted((DOCS / "tutorials").glob("*.md"))


def _save(name: str, make: Callable[[], Any]) -> None:
    import matplotlib
    from matplotlib import pyplot as plt
    from matplotlib import style
    from PIL import Image

    matplotlib.use("Agg")
    PICTURES.mkdir(exist_ok=True)
    for suffix, look in STYLES.items():
        buffer = io.BytesIO()
        with style.context(look):
            make().savefig(buffer, dpi=110, transparent=True)
            plt.close("all")
        # 128 colours take a third of the bytes and look the same.
        few = Image.open(buffer).quantize(128, method=Image.Quantize.FASTOCTREE)
        few.save(PICTURES / f"{name}_{suffix}.png", optimize=True)


if __name__ == "__main__":
    old = {} if "--all" in sys.argv[1:] else drawn()
    draw([name for name, checksum in checksums().items() if old.get(name) != checksum])
