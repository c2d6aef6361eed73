"""What the report says of how to repeat a run is done here, and must lead to the same run."""

import json
import shlex

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from tamis import (
    ABFS,
    FCBF,
    FIRES,
    OFS,
    Auto,
    FisherScore,
    ForwardPartialCorrelation,
    MonteCarloFIRES,
    Perceptron,
    ResetOnDrift,
    SGDLogisticRegression,
    WeightedKNN,
    load_dataset,
    load_stream,
    open_file,
    prequential,
)  # fmt: skip
from tamis.evaluate.prequential.rerun import command_line, snippet, subject
from tests.report.runs import settings


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, rng):
    """A folder to run in, with a file of 600 rows."""
    X = rng.normal(size=(600, 5)).round(3)
    state = np.where(X[:, 1] + X[:, 3] > 0, "on", "off")
    lines = [
        "a,b,c,d,e,state",
        *(",".join([*map(str, row), label]) for row, label in zip(X, state, strict=True)),
    ]
    (tmp_path / "my data.csv").write_text("\n".join(lines) + "\n")
    texts = rng.choice(["red", "green", "blue"], size=(600, 2))
    texts = [f"{line},{','.join(words)}" for line, words in zip(lines[1:], texts, strict=True)]
    (tmp_path / "texts.csv").write_text("\n".join(["a,b,c,d,e,state,f,g", *texts]) + "\n")
    (tmp_path / "bare.txt").write_text("\n".join(lines[1:]).replace(",", ";") + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runs():
    few = {"batch_size": 50, "window": 300, "stability_window": 4}
    yield lambda: prequential(load_dataset("electricity"), FIRES(4), max_rows=2000)
    yield lambda: prequential(
        open_file("my data.csv", label="state"), FIRES(2, update="assumed-density"), **few
    )
    yield lambda: prequential(
        open_file("bare.txt", label=-1, format="csv", delimiter=";", header=False, categorical=["x0"]),
        OFS(0.4, random_state=3), Perceptron(random_state=3), protocol="paper",
    )  # fmt: skip
    yield lambda: prequential(open_file("my data.csv", label="state"), None, GaussianNB())
    yield lambda: prequential(load_stream("SEA"), FIRES(3), max_rows=1000)
    yield lambda: prequential(open_file("texts.csv", label="state"), Auto(categorical=[5, 6]), **few)
    yield lambda: prequential(
        open_file("texts.csv", label="state"),
        Auto(0.4, learner="naive-bayes", categorical=[5, 6]),
        GaussianNB(),
        **few,
    )
    yield lambda: prequential(
        open_file("texts.csv", label="state", categorical=["f", "g"]),
        FCBF(categorical=[5, 6]),
        WeightedKNN(categorical=[5, 6]),
        **few,
    )
    yield lambda: prequential(
        open_file("my data.csv", label="state"), MonteCarloFIRES(2, hidden=(8, 4), random_state=1),
        Perceptron(random_state=1), **few,
    )  # fmt: skip
    yield lambda: prequential(
        open_file("my data.csv", label="state"), ABFS(), GaussianNB(), replay=200, **few
    )
    yield lambda: prequential(
        open_file("my data.csv", label="a", drop=["state"]), ForwardPartialCorrelation(2, task="regression"), **few,
        scale="none", baselines="both", n_draws=2,
    )  # fmt: skip
    yield lambda: prequential(
        open_file("texts.csv", label="state", categorical=["e"], clock=["a", "c"]),
        FisherScore(0.5),
        delay=("a", "c"),
        **few,
    )


IDS = [
    "data set", "file", "odd file", "baseline", "known truth", "race", "race of naive Bayes", "categories", "list",
    "no size", "numbers", "times",
]  # fmt: skip


def same(result, other):
    assert json.dumps(result.settings) == json.dumps(other.settings)
    for kind in ("changes", "scores"):
        for name, column in result.frames[kind].items():
            np.testing.assert_array_equal(column, other.frames[kind][name])
    measure = result.task.measure
    np.testing.assert_array_equal(result.frames["steps"][measure], other.frames["steps"][measure])


@pytest.mark.slow
@pytest.mark.parametrize("run", [*runs()], ids=IDS)
def test_python_leads_to_the_same_run(run, folder):
    result, names = run(), {}
    exec(snippet(result.settings), names)
    same(result, names["result"])
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("run", [*runs()], ids=IDS)
def test_shell_leads_to_the_same_run(run, folder, capsys):
    pytest.importorskip("typer")
    from tamis.cli import main
    from tamis.evaluate import PrequentialResult

    result = run()
    words = shlex.split(command_line(result.settings))
    assert main([*words[1:], "--quiet", "--out", "again"]) == 0, capsys.readouterr().err
    same(result, PrequentialResult.load("again"))
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "--selector auto",
        "--selector auto --categorical f,g --learner hoeffding-tree",
        "--categorical f,g --selector fcbf --learner knn --seed 3",
        "--selector mi --select 0.5 --set half_life=500 --learner naive-bayes",
        "--selector fires-mc --set hidden=[8,4] --select 2",
        "--selector abfs --replay 100 --scale none",
        "--selector none --learner river-naive-bayes",
        "--delay 20 --baselines none --learner hoeffding-adaptive-tree --seed 1",
        "--delay a,c --selector chi2",
        "--delayed a=60 --delayed b=20 --delay 30 --selector none --learner hoeffding-tree",
    ],
)
def test_a_printed_line_prints_itself(words, capsys):
    pytest.importorskip("typer")
    from tamis.cli import main
    from tamis.evaluate import PrequentialResult

    few = "--batch-size 50 --max-rows 300 --quiet"
    assert main(shlex.split(f"run texts.csv --label state {words} {few} --out first")) == 0, (
        capsys.readouterr().err
    )
    first = PrequentialResult.load("first")
    line = command_line(first.settings)
    assert main([*shlex.split(line)[1:], "--quiet", "--out", "again"]) == 0, capsys.readouterr().err
    again = PrequentialResult.load("again")
    same(first, again)
    assert command_line(again.settings) == line


def test_an_estimator_in_a_parameter_is_made_again():
    run = prequential(load_dataset("electricity"), None, ResetOnDrift(GaussianNB(), "ecdd"), max_rows=400)
    names = {}
    exec(snippet(run.settings), names)
    same(run, names["result"])


def test_what_is_the_default_is_not_said():
    result = prequential(load_dataset("electricity"), FIRES(4, half_life=500), Perceptron(), max_rows=500)
    assert snippet(result.settings).splitlines() == [
        "from tamis import FIRES, Perceptron, load_dataset, prequential",
        "",
        "stream = load_dataset('electricity')",
        "selector = FIRES(n_features_to_select=4, half_life=500)",
        "learner = Perceptron()",
        "result = prequential(stream, selector, learner, max_rows=500)",
        'result.report("report.html")',
    ]
    assert command_line(result.settings) == (
        "tamis run --dataset electricity --selector fires --select 4 --set half_life=500 --learner perceptron"
        " --max-rows 500 --report report.html"
    )


@pytest.mark.parametrize(
    ("learner", "name"),
    [(SGDClassifier(random_state=0), "sgd"), (SGDLogisticRegression(learning_rate="constant"), "logistic")],
    ids=["sgd", "logistic"],
)
def test_a_learner_of_the_catalogue_has_its_name(learner, name):
    line = command_line(prequential(load_dataset("electricity"), FIRES(2), learner, max_rows=300).settings)
    assert f"--learner {name} " in line


class Mine(FIRES):
    """Somebody's own."""


@pytest.mark.parametrize(
    "run",
    [
        lambda X, y: prequential((X, y), FIRES(2)),
        lambda X, y: prequential(load_dataset("electricity", shuffle=1), FIRES(2), max_rows=300),
        lambda X, y: prequential(load_dataset("electricity"), Mine(2), max_rows=300),
        lambda X, y: prequential(load_dataset("electricity"), FIRES(2), Perceptron(alpha=0.5), max_rows=300),
        lambda X, y: prequential(load_dataset("electricity"), FIRES(2), SGDClassifier(), max_rows=300),
        lambda X, y: prequential(load_dataset("electricity"), FIRES(2), max_rows=300, n_tracked=3),
    ],
    ids=["memory", "shuffled", "own selector", "learner's parameter", "no seed", "n_tracked"],
)
def test_no_line_for_the_shell_that_would_not_be_the_same(run, rng):
    X = rng.normal(size=(300, 4))
    assert command_line(run(X, X[:, 0] > 0).settings) is None


def test_rows_from_memory_are_left_to_the_reader(rng):
    X = rng.normal(size=(300, 4))
    lines = snippet(prequential((X, X[:, 0] > 0), Mine(2)).settings)
    assert "stream = ...  # the same rows: kind arrays, shape [300, 4], fingerprint " in lines
    assert "import Mine" in lines
    compile(lines, "snippet", "exec")


def test_settings_from_a_file_import_nothing_foreign():
    foreign = {"class": "no_such_module.Selector", "params": {"n": 3, "how": "well"}}
    lines = snippet(settings(selector=foreign))
    assert "from no_such_module import Selector" in lines
    assert "Selector(n=3, how='well')" in lines
    assert command_line(settings(selector=foreign)) is None


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, "FIRES on electricity"),
        ({"selector": None}, "Every feature on electricity"),
        ({"stream": {"kind": "file", "path": "-"}}, "FIRES on standard input"),
        ({"stream": {"kind": "file", "path": "a/b.csv.gz"}}, "FIRES on b.csv.gz"),
        ({"stream": {"kind": "arrays", "shape": [3, 2]}}, "FIRES, test-then-train"),
    ],
)
def test_subject(changed, shown):
    assert subject(settings(**changed)) == shown
