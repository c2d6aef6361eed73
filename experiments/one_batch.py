"""How far one batch travels: the files of Tamis that it passes up to the report, and how deep the calls go.

    python experiments/one_batch.py [--list]

A batch of a run is watched (the first ones start what later ones use) whose records are written together with those of
the 19 before, then the report of the run. Only the frames of Tamis count; rows that were read ahead do not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import Perceptron

import tamis

_HOME = str(Path(tamis.__file__).parent)


class Walk:
    """Records the files and the depth of the calls inside Tamis while it is `on`."""

    def __init__(self) -> None:
        self.files: dict[str, set[str]] = {}
        self.depth = self.deepest = self.calls = 0

    def __call__(self, frame, event, _) -> None:
        name = frame.f_code.co_filename
        if not name.startswith(_HOME) or event not in ("call", "return"):
            return
        if event == "return":
            self.depth = max(0, self.depth - 1)  # it was entered before the walk began
            return
        self.depth += 1
        self.calls += 1
        self.deepest = max(self.deepest, self.depth)
        self.files.setdefault(name[len(_HOME) + 1 :], set()).add(frame.f_code.co_qualname)

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def tell(self, title: str, listed: bool) -> None:
        print(
            f"{title}: {len(self.files)} files, {sum(map(len, self.files.values()))} functions, {self.calls:,} calls,"
            f" {self.deepest} deep"
        )
        if listed:
            for file, functions in sorted(self.files.items()):
                print(f"    {file:<45} {', '.join(sorted(functions))}")


def walk() -> tuple[Walk, Walk]:
    """Return the walks of one batch and of the report."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 6)).round(3)
    rows = [",".join([*map(str, row), "on" if row[1] > row[3] else "off"]) for row in X]
    batch, page = Walk(), Walk()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sensors.csv")
        path.write_text("\n".join(["a,b,c,d,e,f,state", *rows]) + "\n")

        stream = tamis.open_file(path, label="state")
        read = stream.batches

        def batches(*args, **options):
            for n, rows in enumerate(read(*args, **options)):
                yield rows
                if n == 39:  # the run asks for the next batch
                    batch.depth = 0
                    sys.setprofile(batch)
                elif n == 40:
                    sys.setprofile(None)

        stream.batches = batches
        result = tamis.prequential(stream, tamis.FIRES(2), Perceptron())
        with page:
            result.report(Path(folder, "run.html"))
    return batch, page


def main() -> None:
    listed = "--list" in sys.argv
    batch, page = walk()
    batch.tell("one batch", listed)
    page.tell("the report", listed)
    both = batch.files.keys() | page.files.keys()
    print(f"together: {len(both)} files")


if __name__ == "__main__":
    main()
