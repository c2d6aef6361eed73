"""The command line as a stranger uses it: what is printed where, exit codes, mistakes, interrupts and going on."""

import contextlib
import html
import io
import itertools
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import tamis
from tamis.cli import app, main

TIMES = {
    "seconds", "seconds_select", "seconds_predict", "seconds_learn", "seconds_baselines", "seconds_read",
    "seconds_compile", "seconds_other", "seconds_run", "rows_per_second",
    "memory_bytes", "model_bytes", "ram_hours",
}  # fmt: skip


def write_table(path, n_rows, seed=0):
    """The state shows in `pressure`, then in `heat`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).round(3)
    late = np.arange(n_rows) > n_rows // 2
    state = np.where(np.where(late, X[:, 0], X[:, 3]) > 0, "on", "off")
    lines = [f"{','.join(map(repr, row))},{s}" for row, s in zip(X.tolist(), state, strict=True)]
    path.write_text("\n".join(["heat,sound,light,pressure,state", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_table(folder / "table.csv", 2000)
    write_table(folder / "long.csv", 5_000)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TAMIS_DATA", str(folder / "no data here"))
    monkeypatch.setenv("COLUMNS", "80")
    return folder


@pytest.fixture
def call(here, capsys):
    """Run the command line in this process; return exit code, standard output, standard error."""

    def call(*arguments):
        code = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


NUMBERS = ["run", "table.csv", "--label", "heat", "--task", "regression"]


def start(*arguments, **options):
    line = [sys.executable, "-m", "tamis", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, **options)


def shell(*arguments, stdin=None, **options):
    """Run the command line in a process of its own."""
    with start(*arguments, stdin=subprocess.PIPE, **options) as process:
        out, err = process.communicate(stdin, timeout=120)
    return process.returncode, out, err


RUN = [
    "run",
    "table.csv",
    "--label",
    "state",
    "--selector",
    "fires",
    "--select",
    "1",
    "--batch-size",
    "50",
    "--quiet",
]


# -- what is asked for ---------------------------------------------------------------------------------------


def test_run_prints_its_numbers_and_what_was_chosen_when(call):
    code, out, err = call(*RUN)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "FIRES on table.csv"
    text = " ".join(out.split())
    assert "Learner: SGDLogisticRegression on standardised features." in text
    assert "1 of 4 features gives accuracy " in text
    for name in ("Mean stability ", "Features selected 1 of 4 ", "Rows per second ", "Accuracy ", "Balanced accuracy ",
                 "Kappa ", "   frozen selection ", "   majority class "):  # fmt: skip
        assert name in out or name in text
    heat = next(line for line in lines if "heat" in line)
    pressure = next(line for line in lines if "pressure" in line)
    assert heat.split()[0] == "●"
    assert pressure.split()[0] == "○"
    assert heat.rindex("█") > pressure.rindex("█")
    assert max(map(len, lines)) <= 80


def test_json_is_one_document_with_the_numbers_of_the_api(call, here):
    code, out, err = call(*RUN, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert set(found) == {
        "verdict", "summary", "remarks", "dependence", "selected", "chosen", "settings", "written", "error"
    }  # fmt: skip
    stream = tamis.open_file(here / "table.csv", label="state")
    result = tamis.prequential(stream, tamis.FIRES(n_features_to_select=1), batch_size=50)
    for name, value in result.summary().items():
        if name not in TIMES:
            assert found["summary"][name] == (None if math.isnan(value) else value)
    assert found["selected"] == result.selected() == ["heat"]
    assert found["chosen"]["heat"] == result.selection_map()[:, 0].mean()
    assert found["settings"]["options"]["batch_size"] == 50
    assert found["error"] is None


def test_options_reach_selector_learner_stream_and_evaluation(call):
    code, out, _ = call(
        "run", "table.csv", "--label", "-1", "--selector", "OFS", "--select", "0.5", "--set", "learning_rate=0.5",
        "--set", "information=partial", "--learner", "naive-bayes", "--batch-size", "40", "--max-rows", "1000",
        "--protocol", "paper", "--window", "300", "--stability-window", "5", "--seed", "7", "--missing", "mean",
        "--replay", "300", "--json",
    )  # fmt: skip
    settings = json.loads(out)["settings"]
    params = settings["selector"]["params"]
    assert code == 0
    assert settings["selector"]["class"].endswith("OFS")
    assert (params["learning_rate"], params["information"], params["random_state"]) == (0.5, "partial", 7)
    assert params["n_features_to_select"] == 0.5
    assert settings["learner"]["class"].endswith("GaussianNB")
    assert settings["options"] == {
        "batch_size": 40, "protocol": "paper", "delay": 0, "window": 300, "stability_window": 5, "n_tracked": 20,
        "auc": "auto", "replay": 300, "masking": "auto", "scale": "auto", "baselines": "random", "n_draws": 3,
        "frozen_after": 1000, "max_rows": 1000, "max_waiting": 100_000, "keep_steps": None, "metrics": [],
    }  # fmt: skip
    assert (settings["stream"]["label"], settings["stream"]["missing"]) == (-1, "mean")


def test_same_seed_same_result(call):
    line = (
        "run",
        "table.csv",
        "--label",
        "state",
        "--selector",
        "ofs",
        "--set",
        "information=partial",
        "--json",
    )
    documents = [json.loads(call(*line, "--seed", seed)[1]) for seed in (3, 3, 4)]
    for document in documents:
        document["summary"] = {k: v for k, v in document["summary"].items() if k not in TIMES}
    assert documents[0] == documents[1]
    assert documents[0]["summary"] != documents[2]["summary"]


def test_no_selector_keeps_every_feature(call):
    code, out, _ = call("run", "table.csv", "--label", "state", "--selector", "none")
    assert code == 0
    assert out.startswith("Every feature on table.csv\n")
    assert "Without a selector, the learner used every feature." in " ".join(out.split())
    assert "With all 4 features, accuracy is " in " ".join(out.split())


def test_report_and_results_are_written(call, here, tmp_path):
    code, out, _ = call(*RUN, "--report", tmp_path / "run.html", "--out", tmp_path / "a" / "run")
    assert code == 0
    assert f"The report: {tmp_path / 'run.html'}" in out
    assert "FIRES on table.csv" in (tmp_path / "run.html").read_text(encoding="utf-8")
    result = tamis.evaluate.PrequentialResult.load(tmp_path / "a" / "run")
    assert result.selected() == ["heat"]
    code, out, _ = call(*RUN, "--report", tmp_path / "run.html", "--out", tmp_path / "a" / "run", "--json")
    assert json.loads(out)["written"] == {
        "results": str(tmp_path / "a" / "run"),
        "report": str(tmp_path / "run.html"),
    }


def test_dataset_by_name(call):
    code, out, _ = call("run", "--dataset", "electricity", "--max-rows", "1000", "--json")
    assert code == 0
    assert json.loads(out)["settings"]["stream"]["name"] == "electricity"


@pytest.mark.slow
def test_standard_input(here, call, monkeypatch):
    line = (
        *("run", "-", "--selector", "fires", "--select", "1", "--batch-size", "50", "--baselines", "none"),
        *("--json", "-q", "--label"),
    )
    code, out, err = shell(*line, "state", stdin=(here / "table.csv").read_text(encoding="utf-8"))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["selected"] == ["heat"]
    assert found["summary"]["n_rows"] == 1950
    for label in ("-1", "4"):
        with open(here / "table.csv", encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stdin", file)
            code, out, err = call(*line, label)
        assert (code, err) == (0, "")
        assert json.loads(out)["selected"] == ["heat"]


def test_other_formats_from_standard_input(call, monkeypatch):
    text = "".join(f"{i % 2} 1:{i % 2}.5 3:{i % 3}\n" for i in range(500))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, err = call(
        *("run", "-", "--format", "svmlight", "--n-features", "4", "--selector", "fires", "--select", "1"),
        *("--json", "-q"),
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["selected"] == ["x1"]  # as the file counts


@pytest.mark.slow
def test_the_demo_begins_with_what_pays(call, tmp_path):
    code, out, err = call("demo", "--report", tmp_path / "demo.html", "--quiet")
    assert (code, err) == (0, "")
    assert "The selection pays: 9 of 300 features" in out
    assert "Signal 11 replaces 8" in out
    assert out.index("The selection pays") < out.index("Where it does not pay")
    assert "tamis run FILE --label NAME" in out
    assert (tmp_path / "demo.html").stat().st_size > 10_000
    assert max(map(len, out.splitlines())) <= 80 + len(str(tmp_path))


@pytest.mark.slow
def test_demo_numbers(call):
    code, out, _ = call("demo", "--json")
    found = json.loads(out)
    assert code == 0
    pays, loses = found["pays"], found["loses"]
    assert pays["own"] == found["summary"]["accuracy"] > pays["all"] + 0.005
    assert pays["own"] > pays["frozen"] + 0.1 > pays["random"] + 0.1
    assert 0 < found["rows_to_follow"] < 1000
    assert loses["no_change"] > loses["once"] > loses["fires"]
    assert loses["every"] > loses["fires"]


def test_list_is_the_catalogue(call):
    code, out, _ = call("list")
    found = json.loads(call("list", "--json")[1])
    assert code == 0
    assert [row["key"] for row in found["selectors"]] == [
        e.key for e in tamis.catalog.CATALOG if e.family == "rows"
    ]
    assert [row["key"] for row in found["from_python"]] == [
        e.key for e in tamis.catalog.CATALOG if e.family not in ("rows", "cells")
    ]
    assert [row["key"] for row in found["cells"]] == [
        e.key for e in tamis.catalog.CATALOG if e.family == "cells"
    ]
    for row in found["selectors"] + found["learners"] + found["cells"] + found["from_python"]:
        assert f"  {row['key']} " in out


def test_list_shows_what_set_can_change(call):
    code, out, _ = call("list", "fires")
    found = json.loads(call("list", "fires", "--json")[1])
    assert code == 0
    assert {row["name"]: row["default"] for row in found["parameters"]} == tamis.FIRES().get_params()
    assert all(row["text"] for row in found["parameters"])
    assert "half_life" in out


def test_datasets(call):
    code, out, _ = call("datasets")
    found = json.loads(call("datasets", "--json")[1])
    assert code == 0
    [electricity] = [row for row in found["datasets"] if row["name"] == "electricity"]
    assert (electricity["rows"], electricity["features"], electricity["where"]) == (45_312, 8, "bundled")
    assert "45,312" in out
    assert found["folder"].endswith("no data here")


def test_version_and_help():
    runner = CliRunner()
    assert runner.invoke(app(), ["--version"]).output.strip() == f"tamis {tamis.__version__}"
    for arguments in (
        ["--help"],
        ["run", "-h"],
        ["demo", "--help"],
        ["list", "--help"],
        ["datasets", "--help"],
    ):
        found = runner.invoke(app(), arguments, env={"COLUMNS": "80"})
        assert found.exit_code == 0
        assert "Usage:" in found.output
        assert max(map(len, found.output.splitlines())) <= 80
    assert "tamis run sensors.csv --label state" in runner.invoke(app(), ["run", "--help"]).output


def test_the_commands_fit_a_screen_of_24_lines():
    page = CliRunner().invoke(app(), ["--help"], env={"COLUMNS": "80"}).output.splitlines()
    assert len(page) < 24
    assert not any(line.endswith("...") for line in page[1:])
    for command in app().registered_commands:
        assert sum(line.startswith(f"{command.name} ") for line in page) == 1


@pytest.mark.parametrize("command", ["run", "follow", "compare", "columns"])
def test_rarely_needed_options_are_the_last_of_the_page(command):
    page, usual = (
        CliRunner().invoke(app(), [command, option], env={"COLUMNS": "80"}).output
        for option in ("--help-all", "--help")
    )
    assert "Rarely needed" not in usual
    assert "--help-all" in usual
    panels = re.findall(r"─ (\w[\w ]*) ─", page)
    assert panels[-1] == "Rarely needed"
    assert len(panels) == len(set(panels))
    assert page.index("--label ") < page.index("Rarely needed") < page.index("--max-quoted-lines")


def test_every_option_is_described():
    for name, command in get_command(app()).commands.items():
        for one in command.params:
            assert one.help, (name, one.name)


def test_both_ways_to_call_it_and_completion(here):
    assert shell("--version")[1] == f"tamis {tamis.__version__}\n"
    words = {"_TAMIS_COMPLETE": "complete_bash", "COMP_WORDS": "tamis run --selector fi", "COMP_CWORD": "3"}
    code, out, _ = shell(env={**os.environ, **words})
    assert (code, out.split()[0]) == (0, "fires")


def test_help_imports_nothing_heavy(here):
    heavy = ["numba", "numpy", "scipy", "sklearn", "narwhals", "pandas", "pyarrow", "matplotlib"]
    program = (
        "import sys; from tamis.cli import main; main(['run', '--help']);"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_has_seen_enough_is_no_error(here):
    program = f"{sys.executable} -m tamis list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- what goes wrong -----------------------------------------------------------------------------------------


def wrong(path, row):
    lines = (path / "table.csv").read_text(encoding="utf-8").splitlines()
    lines[1500] = row
    (path / "wrong.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "wrong.csv"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "nowhere.csv", "--label", "state"], 1, "There is no file 'nowhere.csv'"),
        (["run", "electricity", "--label", "state"], 1, "--dataset electricity"),
        (["run", "table.csv", "--label", "stat"], 2, "did you mean 'state'"),
        (["run", "table.csv", "--label", "9"], 2, "has 5 columns, so there is none at position 9"),
        (["run", "table.csv"], 2, "'table.csv': the label column is not named; state is a guess; add --label state."),
        (["run"], 2, "a FILE (- is standard input) or --dataset NAME"),
        (["run", "table.csv", "--dataset", "electricity"], 2, "Give either a FILE"),
        (["run", "--dataset", "electricity", "--label", "x"], 2, "the label of a data set is fixed"),
        (["run", "--dataset", "electrcity"], 2, "did you mean 'electricity'?"),
        ([*RUN, "--batch-size", "0"], 2, "--batch-size must be 1 or more, got 0"),
        ([*RUN, "--delayed", "heat"], 2, "--delayed must be FEATURE=ROWS, as in price=48, got 'heat'."),
        ([*RUN, "--delayed", "heat=-1"], 2, "--delayed must be FEATURE=ROWS, as in price=48, got 'heat=-1'."),
        ([*RUN, "--delayed", "hat=9"], 2, "--delayed must name features, got 'hat'; the features are heat, sound"),
        ([*RUN, "--batch-size", "-5"], 2, "--batch-size must be 1 or more, got -5"),
        ([*RUN, "--batch-size", "ten"], 2, "--batch-size"),
        ([*RUN, "--batch-size", "3000"], 1, "choose a smaller --batch-size"),
        ([*RUN, "--max-rows", "0"], 2, "--max-rows must be 1 or more, got 0"),
        ([*RUN, "--stability-window", "1"], 2, "--stability-window must be 2 or more, got 1"),
        ([*RUN, "--select", "0"], 2, "--select 0"),
        ([*RUN, "--select", "0.0"], 2, "--select 0.0"),
        ([*RUN, "--select", "-3"], 2, "--select -3"),
        ([*RUN, "--select", "nan"], 2, "--select nan"),
        ([*RUN, "--select", "1.5"], 2, "--select 1.5"),
        ([*RUN, "--select", "some"], 2, "--select some is not a number"),
        ([*RUN, "--select", "5"], 2, "--select must be an integer in [1, 4], got 5"),
        ([*RUN, "--selector", "firse"], 2, "did you mean 'fires'"),
        ([*RUN, "--learner", "percepton"], 2, "did you mean 'perceptron'?"),
        ([*RUN, "--protocol", "fair"], 2, "--protocol must be one of 'honest', 'paper', got 'fair'"),
        ([*RUN, "--missing", "drop"], 2, "--missing must be one of 'error', 'mean', 'keep', got 'drop'"),
        ([*RUN, "--format", "xls"], 2, "--format must be one of 'csv'"),
        ([*RUN, "--set", "lerning_rate=2"], 2, "did you mean 'learning_rate'? It has: model, update"),
        ([*RUN, "--set", "learning_rate=fast"], 2, "learning_rate must be a number in (0, 1e6] or None, got 'fast'"),
        ([*RUN, "--set", "learning_rate=-1"], 2, "--set learning_rate must be a number in (0, 1e6] or None, got -1"),
        ([*RUN, "--set", "batch_size=0"], 2, "--set batch_size must be an integer in [1, inf), got 0"),
        ([*RUN, "--set", "model=linear"], 2, "--set model must be one of 'probit'"),
        ([*RUN, "--set", "learning_rate"], 2, "write --set NAME=VALUE"),
        ([*RUN, "--set", "n_features_to_select=3"], 2, "--select"),
        ([*RUN, "--lable", "state"], 2, "--label"),
        ([*RUN, "--report", "no/run.html"], 2, "Cannot write the report 'no/run.html': the folder 'no' does not"),
        ([*RUN, "--report", "."], 2, "this is a folder"),
        ([*RUN, "--out", "table.csv"], 2, "--out table.csv is a file"),
        ([*RUN, "--out", "."], 2, "contains other files"),
        ([*RUN, "--checkpoint", "no/run"], 2, "does not exist; create it first"),
        ([*RUN, "--checkpoint", "."], 2, "is a folder"),
        ([*RUN, "--checkpoint", "table.csv"], 2, "is the input file"),
        ([*RUN, "--learner", "multinomial-nb"], 1, "Negative values"),
        (["run", "table.csv", "--label", "heat"], 1, "distinct numbers, which are not classes"),
        (["run", "table.csv", "--label", "heat"], 1, "predict a number with --task regression"),
        ([*NUMBERS, "--task", "number"], 2, "--task must be classification or regression, got number"),
        ([*NUMBERS, "--selector", "ofs"], 2, "not from numbers: choose one of fires, fires-mc, fsds, leverage"),
        ([*NUMBERS, "--selector", "abfs"], 2, "--selector abfs learns from classes"),
        ([*NUMBERS, "--learner", "sgd"], 2, "--learner sgd predicts classes: choose another one for --task regression"),
        ([*RUN, "--task", "classification", "--learner", "least-squares"], 2, "least-squares predicts numbers"),
        (["run", "table.csv", "--label", "state", "--task", "regression"], 1, "The label contains 'on', which is text"),
        (["list", "firse"], 2, "did you mean 'fires'"),
        (["demo", "--report", "no/demo.html"], 2, "Cannot write the report"),
        (["rum"], 2, "No such command 'rum'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_mistake_is_told_in_one_line(call, arguments, code, said):
    found, out, err = call(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith("tamis: ")
    assert err.count("\n") == 1
    assert said in err
    assert "Traceback" not in err


def test_a_selector_without_missing_values_is_offered_the_mean(call, here):
    (here / "gaps.csv").write_text("a,b,y\n" + "1,2,on\n2,1,off\n,3,on\n" * 20)
    words = ["run", "gaps.csv", "--label", "y", "--selector", "ofs", "--missing", "keep", "--quiet"]
    code, _, err = call(*words, "--batch-size", "10")
    assert (code, err.count("\n")) == (1, 1)
    assert err.endswith(" of the batch: choose --missing mean.\n")


@pytest.mark.parametrize("learner", ["naive-bayes", "hoeffding-tree"])
def test_a_learner_of_dense_rows_is_told_which_take_sparse_ones(call, here, learner):
    words = ("run", "sparse.svm", "--learner", learner, "--selector", "none", "--batch-size", "10", "--quiet")
    (here / "sparse.svm").write_text("1 1:2\n-1 2:1\n" * 20)
    assert call(*words)[0] == 0  # the rows of a batch are converted
    (here / "sparse.svm").write_text("1 1:2\n-1 2000000:1\n" * 20)
    code, _, err = call(*words)  # unless they were larger than 128 MB
    assert (code, err.count("\n")) == (1, 1)
    assert "this learner keeps dense rows: choose another --learner (perceptron, sgd, logistic" in err


def test_a_file_of_one_row_is_told_what_it_lacks(call, here):
    (here / "one.csv").write_text("a,y\n1,on\n")
    code, _, err = call("run", "one.csv", "--label", "y", "--batch-size", "1")
    assert code == 1
    assert "or give at least two rows, one for training and one for testing." in err


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,2,3,on", "has 4 values in line 1501, the others have 5"),
        ("1,2,3,4,", "1 row has no label, the first is row 1,500; add --drop-unlabelled."),
        (
            "1,,3,4,on",
            "sound (0.1 %) has missing values, the first in row 1,500; add --missing mean.",
        ),
    ],
)
def test_wrong_row_is_told_in_one_line(call, here, row, said):
    how = ["--missing", "error"] if "missing" in said else []
    code, out, err = call("run", wrong(here, row), "--label", "state", *how)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err


def test_a_row_that_takes_two_options_is_told_with_the_command_that_mends_it(call, here):
    code, out, err = call("run", wrong(here, "1,inf,3,4,on"), "--label", "state")
    assert (code, out) == (1, "")
    assert "sound (1) contains infinite numbers; add --na inf." in err
    code, out, err = call("run", wrong(here, "1,inf,3,4,on"), "--label", "state", "--missing", "error")
    assert "sound (1) contains infinite numbers: --na inf" in err
    corrected = err.rpartition("Corrected: tamis ")[2].split()
    assert "--missing mean" in " ".join(corrected)


def test_what_messages_advise_helps(call, here):
    name = wrong(here, "1,2,3,4,")
    assert call("run", name, "--label", "state", "--drop-unlabelled")[0] == 0
    name = wrong(here, "1,,3,4,on")
    assert call("run", name, "--label", "state", "--missing", "mean")[0] == 0


def test_column_that_is_no_feature_can_be_dropped(call, here):
    import pyarrow
    import pyarrow.parquet

    columns = {
        "pair": [[i, i] for i in range(400)],
        "x": [float(i % 2) for i in range(400)],
        "y": [0, 1] * 200,
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), here / "pairs.parquet")
    code, _, err = call("run", "pairs.parquet", "--label", "y")
    assert code == 0
    assert "pair is excluded: it is of type list" in err
    code, _, err = call("run", "pairs.parquet", "--label", "y", "--keep", "pair")
    assert (code, "write its parts as columns" in err, "keeps it" in err) == (0, True, False)
    assert call("run", "pairs.parquet", "--label", "y", "--quiet", "--drop", "pair")[0] == 0


def test_wrong_files_are_told_in_one_line(call, here):
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.csv.read_csv(here / "table.csv"), here / "table.parquet")
    assert call("run", "table.parquet", "--label", "state")[0] == 0
    whole = (here / "table.parquet").read_bytes()
    (here / "half.parquet").write_bytes(whole[: len(whole) // 2])
    (here / "empty.csv").touch()
    (here / "head.csv").write_text("a,b,state\n", encoding="utf-8")
    (here / "table.xyz").write_text("a,b,state\n", encoding="utf-8")
    for name, said in [
        ("half.parquet", "half.parquet"),
        ("empty.csv", "is empty"),
        ("head.csv", "has a header but no rows"),
        ("table.xyz", "add --format, one of csv"),
        (".", "'.'"),
    ]:
        code, out, err = call("run", name, "--label", "state")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert said in err


@pytest.mark.slow
def test_results_before_a_wrong_row_are_kept(call, here, tmp_path):
    write_table(here / "late.csv", 60_000)
    with open(here / "late.csv", "a", encoding="utf-8") as file:
        file.write("1,2,3,on\n")
    line = ("run", "late.csv", "--label", "state", "--selector", "fires", "--select", "1")
    line += ("--baselines", "none")
    code, out, err = call(*line, "--quiet", "--report", tmp_path / "late.html")
    assert code == 1
    assert out.startswith("FIRES on late.csv")
    assert err == "tamis: 'late.csv' has 4 values in line 60002, the others have 5: fix that line.\n"
    assert (tmp_path / "late.html").is_file()
    found = json.loads(call(*line, "--json", "--quiet")[1])
    assert found["error"] in err
    assert 0 < found["summary"]["n_rows"] < 60_000


def test_debug_shows_where(call):
    code, _, err = call("run", "nowhere.csv", "--label", "state", "--debug")
    assert code == 1
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("tamis: There is no file 'nowhere.csv'")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_typer_one_line_says_what_to_install(here, missing):
    program = (
        f"import sys; sys.modules[{missing!r}] = None; from tamis.cli import main; sys.exit(main(['list']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tamis: The command line needs typer and rich: pip install 'tamis[cli]'\n"


@pytest.mark.slow
def test_unreadable_terminals_get_question_marks_not_errors(here):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    code, out, err = shell(*RUN, env=environment)
    assert (code, err) == (0, "")
    assert "#" in out
    assert out.isascii()


# -- progress ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_progress_is_lines_where_nothing_can_be_redrawn(call, monkeypatch):
    ticks = itertools.count(0.0, 0.5)  # a clock by which half a second passes between two looks at it
    monkeypatch.setattr("tamis.terminal.watch.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    code, out, err = call(*RUN[:6], "--batch-size", "4", "--json")
    assert code == 0
    json.loads(out)
    assert 1 <= len(err.splitlines()) <= 10 + next(ticks) / 30.0  # at each tenth, and every 30 seconds
    for line in err.splitlines():
        assert re.search(
            r"[\d,]+ rows  accuracy [01]\.\d{3}, overall [01]\.\d{3}  stability -?[01]\.\d{3}  .*\S", line
        )
        assert len(line) <= 80
        assert "\x1b" not in line


# -- stopping and going on -----------------------------------------------------------------------------------


def wait_until_it_waits(process):
    """Return when the process has had nothing to do for a second."""
    psutil = pytest.importorskip("psutil")
    spent, child = -1.0, psutil.Process(process.pid)
    while child.status() == psutil.STATUS_RUNNING or spent != sum(child.cpu_times()[:2]):
        spent = sum(child.cpu_times()[:2])
        time.sleep(1)


def wait_for(path, process):
    for _ in range(1200):
        if path.exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    assert path.exists()
    assert process.poll() is None


LONG = (
    *("run", "long.csv", "--label", "state", "--selector", "fires", "--select", "1", "--batch-size", "10"),
    *("--json", "--quiet", "--baselines", "none"),
)


@pytest.fixture(scope="module")
def uninterrupted(folder):
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert main(list(LONG)) == 0
    return compared(json.loads(out.getvalue()))


def compared(document):
    document["summary"] = {k: v for k, v in document["summary"].items() if k not in TIMES}
    return document


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_keeps_the_results_so_far(call, tmp_path, uninterrupted, number):
    checkpoint, report = tmp_path / "run.tamis", tmp_path / "run.html"
    line = (*LONG, "--checkpoint", checkpoint, "--checkpoint-every", "25")
    with start(*line, "--report", report) as process:
        wait_for(checkpoint, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "tamis: interrupted; the same command resumes from the checkpoint\n"
    found = json.loads(out)
    assert found["settings"]["interrupted"] is True
    assert found["summary"]["n_rows"] < 5_000
    assert report.is_file()
    code, out, err = call(*line)
    assert (code, err) == (0, "")
    assert compared(json.loads(out)) == uninterrupted


@pytest.mark.slow
def test_sigterm_leaves_no_half_written_file(tmp_path):
    place = tmp_path / "sea.csv"
    with start("generate", "SEA", "--rows", "20000000", "--out", place, "--quiet") as process:
        while not list(tmp_path.iterdir()):
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "tamis: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_within_an_exec_ends_with_its_code_too(tmp_path):
    """As where a kernel is compiled. Python -m remembers such an interrupt, though it was caught, and kills itself."""
    program = """
import tamis.cli

def command(**given):
    exec("raise KeyboardInterrupt")

tamis.cli._command = lambda: command
raise SystemExit(tamis.cli.main(["list"]))
"""
    (tmp_path / "interrupted.py").write_text(program, encoding="utf-8")
    line = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tamis: interrupted\n")


@pytest.mark.slow
def test_interrupt_while_input_is_awaited(here):
    rows = (here / "long.csv").read_text(encoding="utf-8")
    line = (
        "run",
        "-",
        "--label",
        "state",
        "--selector",
        "fires",
        "--select",
        "1",
        "-q",
        "--baselines",
        "none",
    )
    with start(*line, stdin=subprocess.PIPE) as process:
        process.stdin.write(rows + 15 * rows.partition("\n")[2])  # two blocks
        process.stdin.flush()
        wait_until_it_waits(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "tamis: interrupted\n"
    assert out.startswith("FIRES on standard input, interrupted after ")


@pytest.mark.slow
def test_interrupt_before_anything_was_tested(here):
    with start("run", "-", "--label", "state", "--selector", "fires", "-q", stdin=subprocess.PIPE) as process:
        process.stdin.write("a,b,state\n")
        process.stdin.flush()
        wait_until_it_waits(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "tamis: interrupted\n"


@pytest.mark.slow
def test_killed_run_goes_on_from_its_checkpoint(call, tmp_path, uninterrupted):
    checkpoint = tmp_path / "run.tamis"
    line = (*LONG, "--checkpoint", checkpoint, "--checkpoint-every", "25")
    with start(*line) as process:
        wait_for(checkpoint, process)
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    code, out, err = call(*line)
    assert (code, err) == (0, "")
    assert compared(json.loads(out)) == uninterrupted
    code, out, err = call(*line, "--select", "2")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "is the checkpoint of another run" in err


# -- the page ------------------------------------------------------------------------------------------------


def test_options_of_the_page_exist():
    page = (Path(__file__).resolve().parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    options = set()
    for command in (
        "run",
        "demo",
        "look",
        "screen",
        "columns",
        "train",
        "acquire",
        "freeze",
        "list",
        "datasets",
        "watch",
        "retire",
    ):
        helped = "".join(
            CliRunner().invoke(app(), [command, option], env={"COLUMNS": "200"}).output
            for option in ("--help", "--help-all")
        )
        options |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", helped))
    assert mentioned - options == {"--install-completion"}


def test_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    """Every line of the page that begins with `tamis run sensors.csv` does what it says."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    table = write_table(tmp_path / "sensors.csv", 1000)
    table.write_text(table.read_text(encoding="utf-8").replace("heat", "warmth", 1), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^tamis (run sensors.csv .*)$", page, flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0
        capsys.readouterr()
    refused = re.findall(r"^\$ tamis (?!acquire)(.*)\n(tamis: .*)$", page, flags=re.MULTILINE)
    assert len(refused) == 3
    for command, message in refused:
        assert main(shlex.split(command)) in (1, 2)
        assert capsys.readouterr().err == f"{message}\n"


def test_a_number_is_predicted_and_the_report_says_how_to_do_it_again(call, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4)).round(3)
    price = (1000 + 50 * (X[:, 0] - X[:, 2])).round(2)
    table = [",".join(map(str, [*row, p])) for row, p in zip(X.tolist(), price.tolist(), strict=True)]
    (folder / "houses.csv").write_text(
        "\n".join(["rooms,sun,noise,age,price", *table]) + "\n", encoding="utf-8"
    )
    how = ["run", "houses.csv", "--label", "price", "--task", "regression", "--select", 2]
    code, out, _ = call(*how, "--baselines", "both", "--report", "houses.html", "--out", "houses", "-q")
    assert code == 0
    for name in (
        "Mean absolute error",
        "random subsets",
        "every feature",
        "mean so far",
        "no-change baseline",
        "R²",
    ):
        assert name in out
    code, out, _ = call(*how, "--baselines", "both", "--json", "-q")
    told = json.loads(out)
    assert sorted(told["selected"]) == ["noise", "rooms"]
    assert told["summary"]["mae"] < 0.5 * min(
        told["summary"][name] for name in ("random_mae", "mean_mae", "last_mae")
    )
    page = (folder / "houses.html").read_text(encoding="utf-8")
    assert "Mean absolute error" in page
    assert "Accuracy" not in page
    [line] = re.findall(r"tamis run[^<]*", page)
    again = shlex.split(html.unescape(line))[1:]
    code, out, _ = call(*again[: again.index("--report")], "--json", "-q")
    assert json.loads(out)["summary"]["mae"] == told["summary"]["mae"]
    code, out, _ = call(
        "run", "houses.csv", "--label", "price", "--learner", "least-squares", "--selector", "fires", "-q"
    )
    assert code == 0
    assert "Mean absolute error" in out


def test_what_a_run_saves_predicts_and_goes_on(call, here):
    """One object has the selection, the scale of the columns and the learner: a linear learner is of no use without."""
    code, _, err = call(
        "run", "table.csv", "--label", "state", "--selector", "t-score", "--select", 1, "--save", "run.tamis",
        "--max-rows", 950, "--baselines", "none", "--quiet", "--force",
    )  # fmt: skip
    assert code == 0, err
    found = tamis.load(here / "run.tamis")
    model, rows = found["pipeline"], tamis.open_file(here / "table.csv", label="state")
    (X, y), (later, labels) = [*rows.batches(950)][:2]
    assert model.get_feature_names_out().tolist() == ["pressure"]
    whole = tamis.StreamPipeline(tamis.TScore(1)).fit(X, y)
    assert model.decision_function(X).tolist() == whole.decision_function(X).tolist()
    assert model.score(X, y) > 0.9
    assert model.partial_fit(later, labels).n_seen_ == 1900
