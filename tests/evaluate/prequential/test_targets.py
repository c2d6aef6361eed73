"""Runs for several targets: one for each, and the union of their selections, in Python and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tamis import TScore, prequential, prequential_by_target
from tamis.cli import main
from tamis.evaluate import TargetsResult


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(900, 8)), columns=list("abcdefgh"))
    frame["hot"], frame["dry"] = (
        np.where(frame.a + frame.b > 0, "yes", "no"),
        (frame.b - frame.c > 0).astype(int),
    )
    return frame


def test_each_run_is_that_of_its_label_without_the_others(frame):
    result = prequential_by_target(frame, TScore(2), labels=["hot", "dry"], baselines="none")
    alone = prequential(frame.drop(columns="dry"), TScore(2), label="hot", baselines="none")
    assert result.results["hot"].summary()["accuracy"] == alone.summary()["accuracy"]
    assert result.selected() == ["a", "b", "c"]
    assert result.support_by_target.tolist() == [
        [j in (0, 1) for j in range(8)],
        [j in (1, 2) for j in range(8)],
    ]
    assert result.verdict().startswith("3 of 8 features serve 2 targets, which need 2 each, 4 in all")
    by_polars = prequential_by_target(
        pl.from_pandas(frame), TScore(2), labels=["hot", "dry"], baselines="none"
    )
    assert by_polars.results["dry"].summary()["accuracy"] == result.results["dry"].summary()["accuracy"]
    of_arrays = prequential_by_target(
        (frame[list("abcdefgh")].to_numpy(), frame[["hot", "dry"]]), TScore(2), baselines="none"
    )
    assert of_arrays.targets == ["hot", "dry"]
    assert of_arrays.results["hot"].summary()["accuracy"] == alone.summary()["accuracy"]
    assert [len(table.rows) for table in result.tables()] == [2, 3]
    assert "hot: " in result.report()


def test_a_target_of_numbers_is_a_regression(frame):
    with_price = frame.assign(price=frame.d * 1.5 + 0.1 * frame.e)
    result = prequential_by_target(with_price, labels=["price", "dry"], baselines="none", max_rows=400)
    assert [one.task.name for one in result.results.values()] == ["regression", "classification"]
    assert [chart.title for chart in result.charts()] == ["Mean absolute error", "Accuracy"]
    many = TargetsResult({f"y{at}": result.results["dry"] for at in range(9)})
    assert len(many.charts()[0].marks) == 6
    assert "6 worst of 9 targets" in many.charts()[0].caption


@pytest.mark.parametrize(
    ("labels", "message"),
    [(None, "Pass a frame and labels"), (["wet"], "labels names 'wet', which is not a column")],
)
def test_unknown_labels_are_named(frame, labels, message):
    with pytest.raises(ValueError, match=message):
        prequential_by_target(frame, labels=labels)


def test_the_command_takes_several_labels(frame, tmp_path, capsys):
    frame.to_csv(path := tmp_path / "weather.csv", index=False)
    words = [
        "run",
        str(path),
        "--label",
        "hot",
        "--label",
        "dry",
        "--selector",
        "tscore",
        "--select",
        "2",
        "--learner",
        "nb",
        "-q",
    ]
    assert main([*words, "--json", "--columns", str(tmp_path / "names.txt")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["targets"] == ["hot", "dry"]
    assert document["verdict"].startswith("3 of 8 features serve 2 targets")
    assert document["by_target"]["dry"]["selected"] == ["b", "c"]
    assert document["selected"] == ["a", "b", "c"]
    assert (tmp_path / "names.txt").read_text().split() == ["a", "b", "c"]
    assert main([*words, "--report", str(tmp_path / "page.html"), "--out", str(tmp_path / "results")]) == 0
    shown = capsys.readouterr().out
    assert "3 of 8 features serve 2 targets" in shown
    assert "Shared selection" in shown
    page = (tmp_path / "page.html").read_text()
    assert "--label hot --label dry --selector tscore --select 2 --learner nb" in page  # all options
    assert "Accuracy" in shown
    assert ">hot<" in page
    assert ">dry<" in page
    assert (tmp_path / "results" / "dry").is_dir()


def test_the_command_takes_classes_and_numbers(frame, tmp_path, capsys):
    with_price = frame.assign(price=(frame.d * 1.5 + 0.1 * frame.e).round(3))
    with_price.to_csv(path := tmp_path / "weather.csv", index=False)
    words = [
        "run",
        str(path),
        "--label",
        "hot",
        "--label",
        "price",
        "--selector",
        "none",
        "--max-rows",
        "300",
        "-q",
    ]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    measured = {name: one["summary"] for name, one in document["by_target"].items()}
    assert "accuracy" in measured["hot"]
    assert "mae" in measured["price"]
    assert len(document["selected"]) == 9  # without a selector, all are needed: dry too


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--checkpoint", "c.tamis"], "--checkpoint needs a run of one target, but --label names 2"),
        (["--max-rows", "50"], "The stream ends within its first batch of 100 rows"),
        (["--label", "3"], "--label 3 is a position: several labels are given by their names"),
    ],
)
def test_what_needs_one_label_is_refused(frame, tmp_path, capsys, more, message):
    frame.to_csv(path := tmp_path / "weather.csv", index=False)
    assert main(["run", str(path), "--label", "hot", "--label", "dry", *more]) in (1, 2)
    assert message in " ".join(capsys.readouterr().err.split())
