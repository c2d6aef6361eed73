"""Every line of a shell block of README and docs runs, as in a shell; links between pages lead somewhere."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not page.startswith(("docs/api/", "docs/_build/"))]

# `.ci/run` and `.ci/release` install the package in environments of their own; demo and Kafka have tests of their own.
ELSEWHERE = {
    "pip install '.[dev]' && pytest",
    "pip install '.[cli]' && tamis demo",
    "pip install 'tamis[cli]'",
    "pip install 'tamis[boosting]'",
    "tamis demo",
}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def shell_lines(page: str) -> list[str]:
    blocks = re.findall(r"^```bash\n(.*?)^```", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


LINES = sorted(
    line
    for line in {line for page in PAGES for line in shell_lines(page)} - ELSEWHERE
    if not line.startswith(("python experiments/", "tamis follow kafka:"))  # these take minutes, or a broker
)


def write_files(folder: Path) -> None:
    """Write the files that the pages speak of: the label shows in the last column but one."""
    rng = np.random.default_rng(0)
    n = 600
    X = rng.normal(size=(n, 6)).round(3)
    code = (X[:, 5] + 0.3 * rng.normal(size=n) > 0).astype(int)
    columns = dict(zip(["heat", "sound", "light", "dust", "speed", "pressure"], X.T, strict=True))

    def csv(name: str, **more: object) -> str:
        table = {**columns, **more}
        rows = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
        text = "\n".join([",".join(table), *rows]) + "\n"
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        return text

    def parquet(name: str, **more: object) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({**columns, **more}), folder / name)

    state = np.array(["off", "on"])[code]
    for name in ("sensors.csv", "measurements.csv"):
        text = csv(name, state=state)
    for name in ("big.csv.gz", "log.csv.gz"):
        (folder / name).write_bytes(gzip.compress(text.encode()))
    (folder / "producer.csv").write_text(
        csv("numbered.csv", serial=np.arange(n), state=state), encoding="utf-8"
    )
    csv("genes.csv", type=state)
    csv("posts.csv", python=code, sql=(X[:, 0] > 0).astype(int))
    csv("houses.csv", price=(100 + 10 * X[:, 0]).round(2))
    csv("payments/monday.csv", id=np.arange(n), fraud=code)
    csv("payments.csv", fraud=code)
    (folder / "rules.toml").write_text(
        "[[rules]]\nwhen = 'psi(\"*\") > 0.2 for 500 rows'\n", encoding="utf-8"
    )
    parquet("clicks.parquet", **{f"c{i}": rng.normal(size=n) for i in range(30)}, clicked=code)
    parquet("parts/first.parquet", clicked=code)
    parquet("machines.parquet", state=state)
    minutes = (
        np.arange(2 * n).astype("datetime64[m]").astype("datetime64[s]")
    )  # enough rows for `tamis retire`
    log = {**columns, "score": 1 / (1 + np.exp(-3 * X[:, 5])), "default": code}
    twice = {name: np.tile(column, 2) for name, column in log.items()}
    pq.write_table(pa.table({**twice, "ts": minutes}), folder / "predictions.parquet")
    (folder / "prices.json").write_text('{"heat": 2.0, "sound": 1.0}', encoding="utf-8")
    parquet("houses.parquet", price=100 + 10 * X[:, 0])
    words = [f"{2 * c - 1} 1:{1 + c} 2:1 {3 + i % 60}:1" for i, c in enumerate(code)]
    (folder / "words.svm").write_text("\n".join(words) + "\n", encoding="utf-8")


def write_programs(folder: Path) -> None:
    """Write the programs that the lines with a pipe call."""
    programs = {"tamis": f'exec "{sys.executable}" -m tamis "$@"', "producer": "cat producer.csv"}
    folder.mkdir()
    for name, command in programs.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        path.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_a_shell_line_does_what_it_says(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What has no end, or compares over long streams, is given one by the option that the page names."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    command = line + " --max-rows 500" if re.search(r"tamis (follow|compare)", line) else line
    command = command.replace("--seeds 5", "--seeds 2").replace("--delay 1000", "--delay 100")
    if "--rows" not in command:
        command = re.sub(r"tamis generate \S+", r"\g<0> --rows 5000", command)
    if re.search("[|>]", command):
        write_programs(tmp_path / "bin")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
        code = subprocess.run(["bash", "-o", "pipefail", "-c", command], timeout=300, check=False).returncode
    else:
        code = main(shlex.split(command)[1:])
    assert code == 0, capfd.readouterr().err
    for name in re.findall(r"(?:--report|--out|--plot|--save|>) ([\w.]+)", line):
        assert (tmp_path / name).exists(), f"{name} was not written"
    for page in tmp_path.glob("*.html"):
        assert page.stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("line", ["tamis demo", "tamis recommend --dataset electricity"])
def test_what_the_page_shows_is_what_is_printed(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word, but for the times."""
    found = re.search(
        rf"^```text\n\$ {re.escape(line)}\n(.*?)^```", text_of("docs/cli.md"), flags=re.M | re.S
    )
    assert found is not None, f"docs/cli.md does not show what {line} prints"
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*line.split()[1:], "--quiet"]) == 0
    shown, printed = (
        [
            row.rstrip()
            for row in text.strip().splitlines()
            if not row.startswith(("  Rows per second", 31 * " "))
        ]
        for text in (found[1], capsys.readouterr().out)
    )
    assert printed == shown


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_to_a_page_and_a_heading(page: str) -> None:
    missing = []
    for target, anchor in re.findall(
        r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)", re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    ):
        path = (ROOT / page).parent / target if target else ROOT / page
        if "api" in Path(target).parts:
            continue  # written when the site is built, which looks for them itself
        if not path.is_file() or (anchor and anchor not in anchors(path.read_text(encoding="utf-8"))):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are called in links, as GitHub and MyST call them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    slugs = [
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", title).lower()).strip().replace(" ", "-")
        for title in titles
    ]
    return {*slugs, *re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE)}
