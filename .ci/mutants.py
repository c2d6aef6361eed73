"""Measures the tests: small changes of the code, drawn at random, are made one at a time; which does no test notice?

    python .ci/mutants.py FOLDER            # nine changes in each package; resumes where it was stopped
    python .ci/mutants.py FOLDER --report   # what was found so far
    python .ci/mutants.py FOLDER --dependants 45  # then tests of what uses the package, where its own let one through

Cosmic Ray makes the changes and keeps the results. It cannot draw a sample, and it knows nothing of kernels that stay
compiled in a cache while their source changes; both are here. FOLDER gets a clone, so the working tree stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

PACKAGES = tuple(sorted(folder.parent.name for folder in Path("src/tamis").glob("*/__init__.py")))
# Without its decorator a kernel gives the same, slowly; variables inserted or replaced at random break every function.
LEFT_OUT = ("core/RemoveDecorator", "core/VariableInserter", "core/VariableReplacer")
SECONDS = 45.0  # for which tests are run: of the changed file, of those that import it, then of its package
CPU_LIMIT = 5 * int(SECONDS)  # a change that makes one test run for so long is noticed
FILES = 12  # of tests of other packages, the nearest first, that are looked at
CONFIG = """[cosmic-ray]
module-path = {modules}
timeout = 7200
excluded-modules = []
test-command = "{python} {script} . --test --dependants {dependants}"
[cosmic-ray.distributor]
name = "local"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--per-package", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", action="store_true")
    parser.add_argument(
        "--dependants", type=float, default=0.0, metavar="SECONDS", help="for tests of other packages"
    )
    parser.add_argument("--test", action="store_true", help=argparse.SUPPRESS)  # what Cosmic Ray runs
    given = parser.parse_args()
    if given.test:
        sys.exit(test_the_changed_file(given.dependants))
    here = given.folder.resolve()
    if not given.report:
        if not (here / ".git").exists():
            run("git", "clone", "-q", ".", str(here))
        os.chdir(here)
        prepare(given.per_package, given.seed, given.dependants)
        run("cosmic-ray", "exec", "mutants.toml", "mutants.sqlite")
    os.chdir(here)
    report()


def run(*command: str) -> None:
    subprocess.run(command, check=True)


# -- before ------------------------------------------------------------------------------------------------


def prepare(per_package: int, seed: int, dependants: float) -> None:
    """List the changes that could be made and draw some."""
    if not Path("mutants.sqlite").exists():
        modules = [path.as_posix() for package in PACKAGES for path in sources(package)]
        names = {"modules": modules, "python": sys.executable, "script": Path(__file__).resolve()}
        text = CONFIG.format(**names, dependants=dependants)
        Path("mutants.toml").write_text(text)
        run("cosmic-ray", "init", "mutants.toml", "all.sqlite")
        draw(per_package, random.Random(seed))


def sources(package: str) -> list[Path]:
    return sorted(Path("src/tamis", package).rglob("*.py"))


def draw(per_package: int, rng: random.Random) -> None:
    """Keep one change at each of some places drawn at random; packages take turns, so any part is a fair sample."""
    from cosmic_ray.work_db import WorkDB, use_db

    places: dict[str, dict[object, list[object]]] = defaultdict(lambda: defaultdict(list))
    with use_db("all.sqlite", WorkDB.Mode.open) as every:
        for item in sorted(every.work_items, key=lambda item: str(item.mutations)):
            (change,) = item.mutations
            package = change.module_path.parts[2]
            if change.operator_name not in LEFT_OUT and not is_type(change.module_path, change.start_pos):
                places[package][change.module_path, change.start_pos].append(item)
    with use_db("mutants.sqlite") as chosen:
        for package in PACKAGES:
            some = rng.sample(list(places[package].values()), per_package)
            chosen.add_work_items([rng.choice(place) for place in some])


def is_type(path: Path, position: tuple[int, int]) -> bool:
    """Return whether a place is in an annotation, which says nothing when the program runs."""
    return any(start <= position < end for start, end in annotations(path))


_annotations: dict[Path, list[tuple[tuple[int, int], tuple[int, int]]]] = {}


def annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    if path not in _annotations:
        found = [
            part
            for node in ast.walk(ast.parse(path.read_text()))
            for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
            if part is not None
        ]
        _annotations[path] = [
            ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)) for part in found
        ]
    return _annotations[path]


# -- one change --------------------------------------------------------------------------------------------


class Stop:
    """Ends the tests after so many seconds of the processor: a busy machine makes none of them slow."""

    time_is_up = False

    def __init__(self, seconds: float) -> None:
        self.end = time.process_time() + seconds

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown" and time.process_time() > self.end:
            self.session.shouldstop, self.time_is_up = "time is up", True

    def pytest_sessionstart(self, session: Any) -> None:
        self.session = session


def test_the_changed_file(dependants: float) -> int:
    """Run the tests of the changed file, then of its package, then of those that use it; return 0 if all pass."""
    changed = subprocess.run(["git", "diff", "--name-only"], capture_output=True, text=True, check=True)
    path = Path(changed.stdout.split()[0])
    same_age(path)
    without_kernels_of(path)
    os.environ.update(
        NUMBA_CACHE_DIR=str(Path("cache/changed").resolve()), PYTHONPATH=str(Path("src").resolve())
    )
    sys.path.insert(0, "src")
    limit = CPU_LIMIT + int(dependants)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    code = passed(chosen_tests(path), SECONDS)
    if code == 0 and dependants:
        code = passed(tests_of_dependants(path), dependants)
    keep_new_kernels(path)
    return code


def passed(tests: list[str], seconds: float) -> int:
    """Run tests for so long; return 0 if all that were run passed."""
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "--override-ini=addopts=", "--import-mode=importlib"]
    stop = Stop(seconds)
    code = int(pytest.main([*options, "--doctest-modules", *tests], plugins=[stop])) if tests else 0
    return 0 if code == 5 or (stop.time_is_up and code == 2) else code  # 5: there was none


def same_age(changed: Path | None = None) -> None:
    """Give all other files one date: their kernels in the cache are valid as long as their date is the same."""
    for path in Path("src").rglob("*.py"):
        if path != changed:
            os.utime(path, (1e9, 1e9))


def without_kernels_of(path: Path) -> None:
    """Copy the cache without the kernels of a file and of those that may hold a copy of them."""
    shutil.rmtree("cache/changed", ignore_errors=True)
    copy_kernels(Path("cache/all"), Path("cache/changed"), users_of(path))


def keep_new_kernels(path: Path) -> None:
    """Keep what was compiled of other files."""
    copy_kernels(Path("cache/changed"), Path("cache/all"), users_of(path))


def copy_kernels(source: Path, target: Path, without: set[Path]) -> None:
    for file in source.rglob("*.nb?"):
        # tamis_0123/discuss._learn-81.py311.nbi, where the number stands for the folder's path
        if file.name.split(".")[0] not in {path.stem for path in without}:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


def users_of(path: Path) -> set[Path]:
    """Return a file and all that import from it, directly or not."""
    found, new = set[Path](), {path}
    while new:
        found |= new
        new = set(importers(new)) - found
    return found


def importers(files: set[Path]) -> list[Path]:
    """Return the files that import from one of some files."""
    names = [".".join(file.with_suffix("").parts[1:]).removesuffix(".__init__") for file in files]
    lines = re.compile(rf"^\s*from ({'|'.join(map(re.escape, names))}) import", re.MULTILINE)
    return [file for file in sorted(Path("src/tamis").rglob("*.py")) if lines.search(file.read_text())]


def chosen_tests(path: Path) -> list[str]:
    """Name the examples and tests of the changed file, of those that import from it, then of its package."""
    package = path.parts[2]
    users = [user for user in importers({path}) if user.parts[2] == package]
    stems = [path.stem, *(user.stem for user in users), path.parent.name, path.stem.split("_")[0]]
    tests = tests_of(package)
    own = [
        test
        for stem in stems
        for test in tests
        if test.stem.startswith((f"test_{stem}", f"test_{package}_{stem}"))
    ]
    return [
        str(path),
        *dict.fromkeys(map(str, [*tests_that_import(path), *own, Path("tests/test_defaults.py"), *tests])),
    ]


def tests_that_import(path: Path) -> list[Path]:
    """Name the files of tests that import from a module, whatever they are called."""
    name = re.escape(".".join(path.with_suffix("").parts[1:]))
    line = re.compile(rf"^\s*(from {name} import|import {name}\b)", re.MULTILINE)
    return [test for test in sorted(Path("tests").rglob("test_*.py")) if line.search(test.read_text())][
        :FILES
    ]


def tests_of(package: str) -> list[Path]:
    folder = Path("tests", package)
    return sorted(folder.rglob("test_*.py") if folder.exists() else Path("tests").glob(f"test_{package}*.py"))


def tests_of_dependants(path: Path) -> list[str]:
    """Name tests, outside its package, of the files that import from the changed file, directly first."""
    every = sorted(set(Path("tests").rglob("test_*.py")) - set(tests_of(path.parts[2])))
    found, seen, new = dict[str, None](), {path}, {path}
    while new := set(importers(new)) - seen:
        seen |= new
        names = {f"test_{stem}" for user in new for stem in (user.stem, f"{user.parts[2]}_{user.stem}")}
        found |= {str(test): None for test in every if test.stem in names}
    return list(found)[:FILES]


# -- after -------------------------------------------------------------------------------------------------


def report() -> None:
    """Print what no test noticed, then the shares."""
    from cosmic_ray.work_db import WorkDB, use_db

    noticed: dict[str, list[bool]] = defaultdict(list)
    with use_db("mutants.sqlite", WorkDB.Mode.open) as done:
        for item, result in done.completed_work_items:
            change = item.mutations[0]
            noticed[change.module_path.parts[2]].append(result.is_killed)
            if not result.is_killed:
                changed = [
                    line for line in (result.diff or "").splitlines() if re.match(r"[-+](?![-+])", line)
                ]
                print(f"{change.module_path}:{change.start_pos[0]}", *changed, sep="\n")
    for package, one in [*noticed.items(), ("all", [one for some in noticed.values() for one in some])]:
        low, high = interval(sum(one), len(one))
        print(f"{package:12} {sum(one):4} of {len(one):4} noticed, {low:.2f} to {high:.2f}")


def interval(k: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a share."""
    if n == 0:
        return 0.0, 1.0
    z, p = 1.96, k / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


if __name__ == "__main__":
    main()
