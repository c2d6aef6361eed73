"""The commands in the help and the docstrings of the package: each is understood, those on files run as printed."""

import ast
import json
import re
import shlex

import numpy as np
import pytest

from tamis.cli import app, main
from tests.test_house import ROOT

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

N = 300
COMMAND = re.compile(r"(?:\[bold\]|`|^ *\$? ?)(tamis [a-z]+ [^`\n]*?)(?=\[/\]|`|$)", re.M)
ON_FILES = ("look", "recommend", "run", "columns", "screen", "train", "watch", "generate")


def printed():
    """Return the commands with arguments in the literal strings of the package, those of f-strings aside."""
    commands = set()
    for path in (ROOT / "src" / "tamis").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                commands |= {m[1] for m in COMMAND.finditer(node.value) if re.search(r" --\w|\.\w+$", m[1])}
    return sorted(command for command in commands if "FILE" not in command and "SOURCE" not in command)


COMMANDS = printed()


def test_the_help_has_examples():
    names = {command.split()[1] for command in COMMANDS}
    assert names >= {
        "look",
        "recommend",
        "run",
        "follow",
        "watch",
        "compare",
        "screen",
        "columns",
        "train",
        "generate",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_printed_command_is_understood(command):
    """Its name, options and their kinds of values; an option that does not exist would be an error here."""
    from typer.main import get_command

    for part in command.split(" | "):
        _, name, *arguments = shlex.split(part)
        known = get_command(app())
        understood = known.get_command(known.make_context("tamis", [name]), name)
        assert understood is not None, f"no command {name}"
        understood.make_context(name, arguments)


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """Small files of the names that the help uses."""
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(N, 6))
    frame = pd.DataFrame(X, columns=["heat", "sound", "light", "rooms", "gene", "dose"])
    is_on = X[:, 0] + 0.3 * rng.normal(size=N) > 0

    def save(name, **columns):
        table = frame.assign(**columns)
        table.to_csv(name, index=False) if name.endswith(".csv") else table.to_parquet(name)

    for kind in ("csv", "parquet"):
        save(f"sensors.{kind}", state=np.where(is_on, "on", "off"))
        save(f"machines.{kind}", state=np.where(is_on, "on", "off"))
        save(
            f"clicks.{kind}", clicked=is_on.astype(int), **{f"page{j}": rng.normal(size=N) for j in range(24)}
        )
        save(f"houses.{kind}", price=X[:, 3] + 0.3 * rng.normal(size=N))
        save(f"genes.{kind}", type=np.where(is_on, "a", "b"))
        save(f"patients.{kind}", ill=np.where(is_on, "yes", "no"))
    save("posts.csv", python=is_on, sql=X[:, 0] > 0)
    save("log.csv", y=is_on.astype(int), p=1 / (1 + np.exp(-3 * X[:, 0])))
    times = pd.date_range("2025-01-01", periods=N, freq="min")
    save("predictions.parquet", default=is_on.astype(int), score=1 / (1 + np.exp(-3 * X[:, 0])), ts=times)
    (tmp_path / "prices.json").write_text(json.dumps(dict.fromkeys(frame, 0.01)), encoding="utf-8")
    lines = [
        f"{int(on)} 1:{abs(a):.3f} 3:{abs(b):.3f}" for on, a, b in zip(is_on, X[:, 0], X[:, 1], strict=True)
    ]
    (tmp_path / "words.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [one for one in COMMANDS if one.split()[1] in ON_FILES and " | " not in one and "--dataset" not in one],
)
def test_a_printed_command_on_a_file_runs(folder, capsys, command):
    words = shlex.split(command)[1:]
    code = main(words)
    assert code == 0, capsys.readouterr().err
