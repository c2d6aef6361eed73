"""`tamis watch`: a log of features, predictions and labels on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis.cli import main

RULE = 'state("*") == "used but no longer relevant"'


@pytest.fixture
def log(tmp_path: Path) -> str:
    """6,000 rows; the score uses age and income, from row 2,000 on the label depends on debt instead of age."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)).round(4)
    y = np.where(np.arange(6000) < 2000, X[:, 0] + X[:, 1] > 0, X[:, 2] + X[:, 1] > 0).astype(int)
    score = (1 / (1 + np.exp(-3 * (X[:, 0] + X[:, 1])))).round(5)
    text = np.where(score > 0.5, "yes", "no")
    lines = ["ts,age,income,debt,noise,score,answer,default"]
    for i in range(6000):
        time = np.datetime64("2026-01-01T00:00:00") + np.timedelta64(i, "m")
        lines.append(",".join([str(time), *map(str, X[i]), str(score[i]), text[i], ("no", "yes")[y[i]]]))
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["watch", *words, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(("prediction", "other"), [("score", "answer"), ("answer", "score")])
@pytest.mark.parametrize("delay", ["0", "300"])
def test_finds_the_feature_that_is_no_longer_relevant(
    log: str, capsys: pytest.CaptureFixture[str], prediction: str, other: str, delay: str
) -> None:
    words = [log, "--label", "default", "--prediction", prediction, "--time", "ts", "--drop", other]
    found = document(capsys, *words, "--delay", delay)
    states = {row["feature"]: row["state"] for row in found["features"]}
    assert states == {
        "age": "used but no longer relevant", "income": "used and relevant", "debt": "relevant but unused",
        "noise": "neither",
    }  # fmt: skip
    [stale] = [alert for alert in found["alerts"] if alert["rule"] == RULE]
    assert (stale["feature"], stale["cause"]) == ("age", "used but no longer relevant")
    minutes = (
        np.datetime64(stale["time"].removesuffix("+00:00")) - np.datetime64("2026-01-01T00:00:00")
    ).astype("timedelta64[m]")
    assert int(minutes.astype(int)) == stale["row"] - 1
    assert found["n_labelled"] == 6000 - int(delay)
    assert found["performance"]["accuracy"] < 0.8
    assert (found["performance"].get("auc") is None) == (prediction == "answer")


def test_prints_alerts_as_json_lines_and_a_table(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", log, "--label", "default", "--prediction", "score", "--drop", "ts,answer", "--quiet"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    n = lines.index("Watch of log.csv")
    assert "age" in [json.loads(line)["feature"] for line in lines[:n]]
    assert f"6,000 rows, 6,000 with labels, {n} alerts" in lines[n + 2 : n + 4]
    assert lines[n + 1].startswith("The model relies on 1 feature no longer relevant: age since row ")
    head = next(i for i, line in enumerate(lines) if line.startswith("feature"))
    assert lines[head].split()[:2] == ["feature", "state"]
    assert lines[head + 1].startswith("age      used but no longer relevant")


def test_writes_alerts_to_a_file(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "alerts.jsonl"
    words = ["watch", log, "--label", "default", "--prediction", "score", "--drop", "ts,answer", "--quiet"]
    words += ["--rule", "accuracy drops by more than 0.1", "--rule", RULE, "--alerts", str(out)]
    words += ["--report", str(tmp_path / "watch.html")]
    for _ in range(2):  # what it wrote itself is replaced
        assert main(words) == 0
    assert "Watch of log.csv" in (tmp_path / "watch.html").read_text(encoding="utf-8")
    alerts = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {alert["rule"] for alert in alerts} == {"accuracy drops by more than 0.1", RULE}
    assert not capsys.readouterr().out.startswith("{")


def test_rules_from_a_file_and_a_command_per_alert(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.toml").write_text(f"[[rules]]\nwhen = '{RULE}'\nseverity = 'critical'\n", "utf-8")
    words = ["--label", "default", "--prediction", "score", "--drop", "ts", "--drop", "answer"]
    words += ["--rules", str(tmp_path / "rules.toml"), "--on-alert", f"cat >> {tmp_path / 'sent'}; exit 4"]
    assert main(["watch", log, *words, "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    sent = json.loads((tmp_path / "sent").read_text(encoding="utf-8"))
    assert [sent] == json.loads(out)["alerts"]
    assert (sent["feature"], sent["severity"]) == ("age", "critical")
    assert "ended with exit code 4" in err


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1500, 4037])
def test_continues_from_its_checkpoint(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: int
) -> None:
    """In two parts, labels 300 rows late: the alerts and the table of one run, and of a file that has not grown."""
    lines = Path(log).read_text(encoding="utf-8").splitlines(keepends=True)
    growing, alerts, state = (str(tmp_path / name) for name in ("part.csv", "alerts.jsonl", "run.tamis"))
    words = [
        "--label",
        "default",
        "--prediction",
        "score",
        "--time",
        "ts",
        "--drop",
        "answer",
        "--delay",
        "300",
    ]
    words += ["--batch-size", "37"]
    outputs = ["--alerts", alerts, "--checkpoint", state]
    for n in (37 * (cut // 37) + 1, len(lines), len(lines)):
        Path(growing).write_text("".join(lines[:n]), encoding="utf-8")
        found = document(capsys, growing, *words, *outputs)
    assert found == document(capsys, log, *words)
    assert [json.loads(line) for line in Path(alerts).read_text(encoding="utf-8").splitlines()] == found[
        "alerts"
    ]
    assert [alert["rule"] for alert in found["alerts"]].count(RULE) == 1
    assert main(["watch", growing, *words, *outputs, "--patience", "7", "--quiet"]) == 1
    assert "whose patience was 500, not 7" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["rotated", "rewritten", "shorter"])
def test_another_log_is_not_continued(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    header, *lines = Path(log).read_text(encoding="utf-8").splitlines(keepends=True)
    path, state = tmp_path / "part.csv", tmp_path / "run.tamis"
    words = [
        "watch",
        str(path),
        "--label",
        "default",
        "--prediction",
        "score",
        "--drop",
        "ts",
        "--drop",
        "answer",
    ]
    words += ["--checkpoint", str(state), "--quiet"]
    path.write_text(header + "".join(lines[:1050]), encoding="utf-8")
    assert main(words) == 0
    kept = state.read_bytes()
    path.write_text(header + "".join(lines[:1100]), encoding="utf-8")
    assert main(words) == 0
    state.write_bytes(kept)
    other = {
        "rotated": lines[1050:2500],
        "rewritten": lines[:1000] + lines[1050:1500],
        "shorter": lines[:500],
    }
    path.write_text(header + "".join(other[how]), encoding="utf-8")
    assert main(words) == 1
    assert "is not the log of which 1,050 rows were watched" in capsys.readouterr().err
    assert state.read_bytes() == kept


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--prediction", "score", "--rule", "auc > 1", "--rules", "a.toml"], 2, "choose one"),
        (["--prediction", "score", "--rules", "none.toml"], 2, "none.toml' cannot be read"),
        (["--prediction", "score", "--webhook", "file:///etc/passwd"], 2, "--webhook: webhook must be a URL"),
        (["--prediction", "nothing"], 2, "has no column 'nothing'"),
        (["--prediction", "score", "--delay", "-1"], 2, "--delay"),
        (["--prediction", "score", "--rule", "psi > "], 2, "cannot be parsed"),
        (["--prediction", "score", "--rule", 'psi("weight") > 1'], 2, "names 'weight'"),
        (["--prediction", "score", "--task", "ranking"], 2, "--task ranking must be"),
    ],
)
def test_refuses_what_it_cannot_do(
    log: str, words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", log, "--label", "default", "--drop", "ts", "--quiet", *words]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--categorical", "answer"]])
def test_predicted_labels_that_are_numbers(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    lines = [line.split(",") for line in Path(log).read_text(encoding="utf-8").splitlines()]
    place = tmp_path / "numbers.csv"
    codes = {"no": "1", "yes": "2"}
    rows = [",".join(line[1:5] + [codes.get(cell, cell) for cell in line[6:]]) for line in lines[:2000]]
    place.write_text("\n".join(rows) + "\n", encoding="utf-8")
    document_of_labels = document(capsys, str(place), "--label", "default", "--prediction", "answer", *words)
    assert document_of_labels["performance"]["accuracy"] == 1.0
    assert document_of_labels["performance"]["auc"] is None


@pytest.mark.parametrize("command", ["watch", "retire"])
def test_predictions_reveal_the_label_by_right(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = np.random.default_rng(1).integers(0, 2, size=1200)
    path = tmp_path / "log.csv"
    lines = [f"{i % 7},{one},{2 * one},{('no', 'yes')[one]}" for i, one in enumerate(state)]
    path.write_text("\n".join(["a,score,leak,default", *lines]) + "\n", encoding="utf-8")
    assert main([command, str(path), "--label", "default", "--prediction", "score"]) == 0
    notes = capsys.readouterr().err
    assert "leak alone predicts" in notes
    assert "score alone" not in notes


def test_a_rule_of_an_unknown_measure_is_a_misuse(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", log, "--label", "default", "--prediction", "score", "--rule", "f1 < 0.5"]
    assert main(words) == 2
    assert "names 'f1', which is not a measure" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [("007", "7"), ("9007199254740993", "9007199254740992")])
def test_predictions_are_read_as_the_labels_are(
    labels: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels that numbers do not represent must not be compared with numbers."""
    heat = np.random.default_rng(0).normal(size=600).round(3)
    lines = [f"{x},{labels[int(x > 0)]},{labels[int(x > 0)]}" for x in heat]
    path = tmp_path / "log.csv"
    path.write_text("heat,p,y\n" + "\n".join(lines) + "\n")
    words = [str(path), "--label", "y", "--prediction", "p"]
    assert main(["watch", *words, "--quiet"]) == 2
    printed = capsys.readouterr().err
    assert "add --categorical p, so that both are read alike" in printed
    assert ("float64 rounds" in printed) == (len(labels[0]) > 3)
    assert document(capsys, *words, "--categorical", "p")["performance"]["accuracy"] == 1.0
