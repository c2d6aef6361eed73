"""`tamis warm-up`: compile the kernels of methods ahead, in parallel processes, so that the first run does not."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Any

import typer

from tamis._compile_ahead import compile_in_processes, default_kernels, missing, n_processors
from tamis.catalog import CATALOG, LEARNERS
from tamis.cli.failure import FAILED, MisuseError
from tamis.cli.options import AsJSON, Quiet, command
from tamis.cli.output import print_json, progress, terminal

_N_ROWS, _N_COLUMNS = 2500, 8  # kernels that need a drift or a full window are compiled, too
_RULES = {"penalised": "bic", "stepwise": "stepwise-bic"}  # other methods are rules of the same name


@command("warm-up")
def warm_up(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    everything: Annotated[bool, typer.Option("--all")] = False,
    jobs: Annotated[int | None, typer.Option(min=1)] = None,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Compile methods in advance, so that their first use is fast.

    Compiled kernels are cached on disk.

    Parameters
    ----------
    names : METHODS
        Methods and learners of tamis list; by default the kernels of runs with default options.
    everything : bool
        Every method that a command uses, too.
    jobs : N
        Processes that compile at the same time; by default one per core.

    Examples
    --------
    `tamis warm-up` for tamis run with its defaults

    `tamis warm-up fires nb osfs`

    `tamis warm-up --all --jobs 4`
    """
    known = _known()
    if names and everything:
        raise MisuseError("--all includes every method: omit the names, or --all.")
    for name in names or ():
        if name not in known:
            raise MisuseError(
                f"No command uses a method or learner named {name!r}: tamis list shows the names."
            )
    begun, done, jobs = time.perf_counter(), list[dict[str, Any]](), jobs or n_processors()
    kernels = [] if names else compile_listed(list(default_kernels()), jobs, quiet=quiet)
    if names or everything:
        console = terminal(stderr=True)
        with tempfile.TemporaryDirectory() as folder:
            for outcome in _in_processes(
                list(dict.fromkeys(names or known)), _write_rows(Path(folder)), jobs
            ):
                done.append(outcome)
                if not quiet:
                    console.print(_line(outcome), markup=False, highlight=False)
    seconds = time.perf_counter() - begun
    failed = [outcome["method"] for outcome in done if outcome["error"]]
    compiled = sum(outcome["compiled"] for outcome in [*kernels, *done])
    if as_json:
        print_json({"methods": done, "kernels": kernels, "compiled": compiled, "seconds": seconds})
    else:
        n_all, n_failed = len(done) + len(kernels), len(failed) + sum(bool(k["error"]) for k in kernels)
        what = "" if done else " kernels of default runs"
        print(
            f"{n_all - n_failed} of {n_all}{what} ready: {compiled:,} kernel{'s' * (compiled != 1)} compiled in"
            f" {seconds:.0f} s."
        )
    return FAILED if names and failed else 0


def compile_missing(use: str, *, quiet: bool) -> None:
    """Compile the kernels of a default run in parallel processes and announce it, unless they are compiled."""
    names = missing(use)
    if not names:
        return
    jobs, listed = n_processors(), default_kernels()
    seconds = [float(listed[name]["seconds"]) for name in names]
    if not quiet:
        terminal(stderr=True).print(
            f"compiling {len(names)} kernels once, about {max(sum(seconds) / jobs, *seconds):.0f} s;"
            " `tamis warm-up` does it ahead",
            style="dim", markup=False, highlight=False,
        )  # fmt: skip
    compile_listed(names, jobs, quiet=quiet)


def compile_listed(names: list[str], jobs: int, *, quiet: bool) -> list[dict[str, Any]]:
    """Compile kernels of default runs in parallel processes, show the progress, and return the outcomes."""
    outcomes = []
    with progress(quiet) as show:
        for outcome in compile_in_processes(names, jobs):
            outcomes.append(outcome)
            show(len(outcomes) / len(names), "compiling kernels")
    return [{key: value for key, value in outcome.items() if key != "codes"} for outcome in outcomes]


def _known() -> list[str]:
    """Return the methods that a command uses; a few are used from Python only."""
    from tamis.cli.candidates import RULES

    return [
        entry.key
        for entry in (*CATALOG, *LEARNERS)
        if entry.family != "columns" or _RULES.get(entry.key, entry.key) in RULES
    ]


def _line(outcome: dict[str, Any]) -> str:
    if outcome["error"]:
        return f"{outcome['method']}: {outcome['error']}"
    n = outcome["compiled"]
    return (
        f"{outcome['method']}: {n:,} kernel{'s' * (n != 1)} compiled, {outcome['loaded']:,} already cached,"
        f" {outcome['seconds']:.1f} s"
    )


def _write_rows(folder: Path) -> Path:
    """Write rows of two classes with feature drift; values are non-negative, as some learners require."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.random((_N_ROWS, _N_COLUMNS)).round(4)
    X[:, 0] = rng.integers(0, 3, _N_ROWS)
    half = np.arange(_N_ROWS) < _N_ROWS // 2
    y = np.where(half, X[:, 1] + X[:, 2] > 1.0, X[:, 3] + X[:, 4] > 1.0)
    path = folder / "rows.csv"
    header = ",".join([*(f"x{j}" for j in range(_N_COLUMNS)), "y"])
    np.savetxt(path, np.column_stack([X, y]), fmt="%g", delimiter=",", header=header, comments="")
    return path


def _in_processes(keys: list[str], path: Path, jobs: int) -> Iterator[dict[str, Any]]:
    """Use each method in its own process, and yield the compiled kernels as the processes end."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_in_process, key, path) for key in keys]
        try:
            for one in as_completed(waiting):
                yield one.result()
        finally:
            for one in waiting:
                one.cancel()


def _in_process(key: str, path: Path) -> dict[str, Any]:
    code = "import sys; from tamis.cli.warm_up import use; use(*sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", code, key, str(path)], capture_output=True, text=True, cwd=path.parent
    )
    try:
        outcome: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        outcome = {"compiled": 0, "loaded": 0, "seconds": 0.0, "error": f"exit code {ended.returncode}"}
    return {"method": key, **outcome}


def use(key: str, path: str) -> None:
    """Use a method on the rows of a file, and print which of its kernels were compiled, as JSON.

    Parameters
    ----------
    key : str
        Of the catalogue.
    path : str
        A CSV file with the label y.
    """
    from tamis.cli import main

    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main([*_command(key, path), "--quiet", "--json"])
    error = errors.getvalue().strip().splitlines()[-1:] if code else []
    compiled, loaded = _counts()
    seconds = time.perf_counter() - begun
    print(json.dumps({"compiled": compiled, "loaded": loaded, "seconds": seconds, "error": "".join(error)}))


def _command(key: str, path: str) -> list[str]:
    """Return the words of the command that uses a method on a file."""
    run = ["run", path, "--label", "y"]
    entry = next(entry for entry in (*CATALOG, *LEARNERS) if entry.key == key)
    if entry.family == "rows":
        return [*run, "--selector", key, "--learner", "perceptron"]
    if entry.family == "columns":
        return ["columns", path, "--label", "y", "--rule", _RULES.get(key, key)]
    if entry.family == "cells":
        return ["train", path, "--label", "y", "--method", key, "--save", f"{path}.{key}"]
    task = [] if "binary" in entry.targets else ["--task", "regression"]
    return [*run, "--selector", "fires", "--learner", key, *task]


def _counts() -> tuple[int, int]:
    """Return how many kernels this process has compiled, and how many it has loaded from the cache."""
    kernels = {
        id(value): value
        for name, module in list(sys.modules.items())
        if name.startswith("tamis.")
        for value in vars(module).values()
        if hasattr(value, "of_kernel") and hasattr(value, "stats")
    }
    stats = [kernel.stats for kernel in kernels.values()]
    return sum(sum(one.cache_misses.values()) for one in stats), sum(
        sum(one.cache_hits.values()) for one in stats
    )
