"""Experiments: the same cells however they run, what is done stays done, a cell that fails fails alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from tamis.errors import CheckpointError, UnknownNameError
from tamis.evaluate import ExperimentResult, prequential, run_experiment
from tamis.evaluate.experiment.cells import CELLS, EXPERIMENT
from tamis.evaluate.prequential.remarks import is_uninformative
from tamis.rows import OFS, FisherScore
from tamis.streams import load_stream

GRID = {
    "streams": {
        "SEA": ("SEA", {"n_rows": 1500, "n_drifts": 1, "n_irrelevant": 8}),
        "electricity": "electricity",
    },
    "selectors": {
        "ofs": OFS(2),
        "fading": ("fisher", {"half_life": 500.0}),
        "none": "none",
        "truth": "oracle",
    },
    "learners": "sgd",
    "seeds": 2,
    "max_rows": 1500,
    "n_features_to_select": {"SEA": 2, "electricity": 3},
}
TIMES = (
    "seconds", "seconds_select", "seconds_predict", "seconds_learn", "seconds_baselines", "seconds_read",
    "seconds_compile", "seconds_other", "seconds_run", "rows_per_second",
    "ram_hours",
)  # fmt: skip
UNEQUAL = (*TIMES, "memory_bytes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("experiment") / "grid"


@pytest.fixture(scope="module")
def result(folder):
    return run_experiment(**GRID, folder=folder)


def numbers(result):
    return {name: column for name, column in result.cells.items() if name not in UNEQUAL}


def assert_same(found, wanted):
    found, wanted = numbers(found), numbers(wanted)
    assert list(found) == list(wanted)
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def marks(folder):
    """When each finished cell was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}


class Breaks(OFS):
    """Fails where there are 8 features (electricity)."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if X.shape[1] == 8:
            raise RuntimeError("no <eight>\nplease")
        return super().partial_fit(X, y, classes, sample_weight)


class Dies(OFS):
    """Takes its process with it where there are 8 features."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if X.shape[1] == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().partial_fit(X, y, classes, sample_weight)


# -- what runs ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_cell_is_a_prequential_run(result):
    for seed in (0, 1):
        stream = load_stream("SEA", seed=seed, n_rows=1500, n_drifts=1, n_irrelevant=8)
        learner = SGDClassifier(random_state=seed)
        expected = prequential(stream, FisherScore(2, half_life=500.0), learner, max_rows=1500)
        found = result.run("SEA", "fading", seed)
        for name in ("accuracy_cumulative", "kappa_t_windowed", "selection_accuracy", "stability"):
            np.testing.assert_array_equal(found.frames["steps"][name], expected.frames["steps"][name])
        assert found.selected() == expected.selected()


def test_cells_are_tidy(result):
    cells = result.cells
    assert result.streams == ["SEA", "electricity"]
    assert result.methods == ["ofs", "fading", "none", "truth"]
    assert result.oracles == ["truth"]
    # The oracle needs a truth.
    assert len(cells["key"]) == 2 * 4 + 2 * 3
    assert set(cells["status"]) == {"done"}
    assert {"accuracy", "kappa_t", "selection_accuracy", "rsr", "stability", "model_bytes", *TIMES} <= set(
        result.metrics
    )
    for backend in ("pandas", "polars", "pyarrow"):
        assert result.to_frame(backend).shape == (14, len(cells))


def test_what_takes_no_seed_runs_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    found = run_experiment((X, X[:, 0] > 0), ["fisher", "none"], ["naive-bayes", "sgd"], seeds=3)
    names = [(m, s) for m, s in zip(found.cells["method"], found.cells["seed"], strict=True)]
    assert names.count(("fisher + naive-bayes", 0)) == 1
    assert len(names) == 2 * (1 + 3)
    assert found.table().n.tolist() == [[1, 3, 1, 3]]


@pytest.mark.slow
def test_processes_change_nothing(result, tmp_path):
    parallel = run_experiment(**GRID, folder=tmp_path, n_jobs=2)
    assert_same(parallel, result)
    one, other = (each.run("SEA", "ofs", 1).frames for each in (parallel, result))
    np.testing.assert_array_equal(one["changes"]["feature"], other["changes"]["feature"])


def test_the_callers_objects_stay_as_they_were():
    selector, learner = OFS(2), SGDClassifier()
    X = np.random.default_rng(0).normal(size=(400, 4))
    before = X.copy()
    run_experiment((X, X[:, 0] > 0), selector, learner, seeds=1)
    assert not hasattr(selector, "n_seen_")
    assert not hasattr(learner, "coef_")
    np.testing.assert_array_equal(X, before)


# -- what is done stays done -------------------------------------------------------------------------------


def test_nothing_runs_twice(result, folder):
    before = marks(folder)
    told = []
    again = run_experiment(**GRID, folder=folder, on_progress=told.append)
    assert marks(folder) == before
    assert [(p.n_done, p.n_cells) for p in told] == [(14, 14)]
    assert_same(again, result)
    assert_same(ExperimentResult.load(folder), result)
    assert (folder / "cells.parquet").is_file()


def test_a_changed_definition_runs_anew_and_nothing_else(result, folder):
    before = marks(folder)
    changed = {**GRID, "selectors": {**GRID["selectors"], "ofs": OFS(2, learning_rate=0.5)}}
    told = []
    found = run_experiment(**changed, folder=folder, on_progress=told.append)
    assert [p.n_done for p in told] == list(range(10, 15))
    after = marks(folder)
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 4
    assert (found.table().mean[:, 1:2] == result.table().mean[:, 1:2]).all()
    assert (found.table().mean[:, 0] != result.table().mean[:, 0]).all()


def test_a_changed_file_runs_anew(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3)).round(3)
    path = tmp_path / "table.csv"

    def run(turned):
        lines = [f"{','.join(map(str, row))},{(row[0] > 0) != turned}" for row in X.tolist()]
        path.write_text("a,b,c,y\n" + "\n".join(lines) + "\n", encoding="utf-8")
        told = []
        run_experiment(
            (path, {"label": "y"}), "none", folder=tmp_path / "out", seeds=1, on_progress=told.append
        )
        return len(told) - 1

    assert [run(False), run(False), run(True)] == [1, 0, 1]


def test_damaged_cells_are_run_again(result, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(result.folder, copy)
    first, second, *_ = result.cells["key"]
    (copy / "cells" / first / "steps.parquet").write_bytes(b"PAR1 half")
    (copy / "cells" / second / "settings.json").write_text("{", encoding="utf-8")
    half = copy / "cells" / f".{second}.0123"
    half.mkdir()
    told = []
    found = run_experiment(**GRID, folder=copy, on_progress=told.append)
    assert [p.n_done for p in told] == [12, 13, 14]
    assert not half.exists()
    assert_same(found, result)


SCRIPT = """
    import sys
    from tests.evaluate.experiment.test_experiment import GRID
    from tamis.evaluate import run_experiment

    if __name__ == "__main__":
        run_experiment(**GRID, folder=sys.argv[1], n_jobs=2, on_progress=lambda p: print(p, flush=True))
"""


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on(result, tmp_path, request):
    script, place = tmp_path / "script.py", tmp_path / "out"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(request.config.rootpath)}
    command = [sys.executable, str(script), str(place)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    for line in process.stdout:
        if line.startswith("3 of 14"):
            break
    process.kill()
    process.wait()
    process.stdout.close()
    time.sleep(0.3)  # its processes end too
    n_done = int((ExperimentResult.load(place).cells["status"] == "done").sum())
    assert 3 <= n_done < 14
    told = []
    found = run_experiment(**GRID, folder=place, on_progress=told.append)
    assert told[0].n_done == n_done
    assert len(told) == 14 - n_done + 1
    assert told[-1].remaining == 0.0
    assert_same(found, result)
    assert {path.name for path in (place / "cells").iterdir()} == set(found.cells["key"])


def test_two_do_not_run_in_one_folder(result, folder):
    def again(progress):
        with pytest.raises(
            CheckpointError, match=rf"is being written by process {os.getpid()}, started at 20"
        ):
            run_experiment(**GRID, folder=folder)

    run_experiment(**GRID, folder=folder, on_progress=again)


@pytest.mark.parametrize("last", ["cells", "lock", "half a file"])
def test_one_that_was_killed_before_its_first_cell_is_run_again(tmp_path, monkeypatch, last):
    grid = {"streams": "electricity", "selectors": "none", "learners": "sgd", "seeds": 1, "max_rows": 500}
    (tmp_path / CELLS).mkdir()
    if last != "cells":
        (tmp_path / ".lock").write_text('{"pid": 1, "host": "elsewhere", "since": "2020-01-01 00:00:00"}')
    if last == "half a file":
        (tmp_path / f".{EXPERIMENT}.0123456789abcdef.tmp").write_text('{"tamis"')
    assert run_experiment(**grid, folder=tmp_path).cells["status"].tolist() == ["done"]
    assert not (tmp_path / ".lock").exists()


# -- what fails --------------------------------------------------------------------------------------------


def test_a_failing_cell_fails_alone_and_is_tried_again(tmp_path):
    grid = {**GRID, "selectors": {"breaks": Breaks(2), "none": "none"}}
    for _ in range(2):
        told = []
        found = run_experiment(**grid, folder=tmp_path, on_progress=told.append)
        assert found.failed == {
            f"electricity, breaks, sgd, seed {seed}": "RuntimeError: no <eight> please" for seed in (0, 1)
        }
        assert told[-1].n_failed == 2
        assert found.table().n.tolist() == [[2, 2], [0, 2]]
    assert [p.n_done for p in told] == [6, 7, 8]
    page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "2 cells failed" in page
    assert "no &lt;eight&gt; please" in page
    with pytest.raises(ValueError, match="No finished cell has the stream 'electricity'"):
        found.run("electricity", "breaks")


@pytest.mark.slow
def test_a_process_that_dies_and_what_cannot_be_sent_fail_alone():
    class Local(OFS):
        pass

    selectors = {"dies": Dies(2), "local": Local(2), "none": "none"}
    found = run_experiment(**{**GRID, "selectors": selectors, "seeds": 1}, n_jobs=2)
    died = found.failed["electricity, dies, sgd, seed 0"]
    unsent = [found.failed[f"{stream}, local, sgd, seed 0"] for stream in ("SEA", "electricity")]
    assert len(found.failed) == 3
    assert "died (by signal 9)" in died
    assert all("cannot be sent to a process" in error and "choose n_jobs=1" in error for error in unsent)
    assert int((found.cells["status"] == "done").sum()) == 3


def test_ctrl_c_keeps_what_is_done(tmp_path):
    def interrupt(progress):
        if progress.n_done == 2:
            raise KeyboardInterrupt

    found = run_experiment(**GRID, folder=tmp_path, on_progress=interrupt)
    assert found.interrupted
    assert int((found.cells["status"] == "done").sum()) == 2
    assert "12 missing" in repr(found)
    assert "12 cells are missing" in found.report(tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"streams": "SAE"},
            UnknownNameError,
            "No stream, data set or file is named 'SAE'; did you mean 'SEA'",
        ),
        ({"streams": ("SEA", {"rows": 5})}, ValueError, "'SEA' has no parameter 'rows'; it has: seed, "),
        ({"streams": []}, ValueError, "streams must name at least one stream"),
        ({"streams": iter([])}, ValueError, "yields batches that cannot be read for every cell"),
        ({"selectors": "fries"}, UnknownNameError, "did you mean 'fires'"),
        ({"selectors": ("ofs", {"rate": 1})}, ValueError, "OFS has no parameter 'rate'"),
        ({"selectors": [OFS(1), OFS(2)]}, ValueError, "Two selectors are named 'OFS': give"),
        ({"selectors": "oracle", "streams": "electricity"}, ValueError, "'oracle' needs a stream with known"),
        ({"learners": "sdg"}, UnknownNameError, "did you mean 'sgd'"),
        ({"seeds": 0}, ValueError, "seeds must be an integer in .1, inf"),
        ({"seeds": [1, -1]}, ValueError, "seeds must be an integer in .0, inf"),
        ({"seeds": []}, ValueError, "seeds must contain at least one"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be an integer in .1, inf"),
        (
            {"batches": 10},
            ValueError,
            "'batches' is not an option of an experiment; the options are batch_size, ",
        ),
        ({"n_features_to_select": {"AES": 2}}, ValueError, "names 'AES', which is not one of the streams"),
    ],
)
def test_mistakes_show_before_anything_runs(tmp_path, change, error, message):
    given = {"streams": GRID["streams"], "selectors": "none", "learners": "sgd", "seeds": 1, **change}
    with pytest.raises(error, match=message):
        run_experiment(**given, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(CheckpointError, match="contains other files: choose a new folder"):
        run_experiment(**GRID, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(CheckpointError, match="does not contain an experiment"):
        ExperimentResult.load(tmp_path)
    (tmp_path / EXPERIMENT).write_text("[]", encoding="utf-8")
    with pytest.raises(CheckpointError, match="does not contain an experiment"):
        ExperimentResult.load(tmp_path)


# -- what is shown -----------------------------------------------------------------------------------------


def test_tables_hold_mean_and_deviation(result):
    table = result.table("selection_accuracy")
    with pytest.raises(FrozenInstanceError):
        table.metric = "accuracy"
    values = [result.run("SEA", "ofs", seed).summary()["selection_accuracy"] for seed in (0, 1)]
    assert table.mean[0, 0] == pytest.approx(np.mean(values), rel=1e-12)
    assert table.deviation[0, 0] == pytest.approx(np.std(values, ddof=1), rel=1e-12)
    assert np.isnan(table.mean[1]).all()
    # The oracle knows: nothing is better, but it is never called the best.
    assert table.mean[0].argmax() == 3
    assert not table.best[0, 3]
    assert table.best[0].sum() == 1
    lines = table.to_markdown().splitlines()
    assert lines[0] == "| selection_accuracy | ofs | fading | none | truth |"
    assert lines[2].count("**") == 2
    assert result.keep_all == ["none"]
    assert table.comparable()[0] == ["ofs", "fading"]
    assert result.table("accuracy").comparable()[0] == ["ofs", "fading", "none"]
    assert not result.table("seconds").larger_is_better


def test_comparison_ranks_all_but_the_oracle(result):
    found = result.compare("accuracy")
    assert found.streams == ["SEA", "electricity"]
    assert set(found.nemenyi.ranks) == {"ofs", "fading", "none"}
    assert sum(found.friedman.ranks.values()) == pytest.approx(6)
    assert set(found.bayes) == set(found.nemenyi.ranks) - {found.holm.control}
    assert found.friedman.p == found.friedman.exact_p_value >= 1 / 6  # two streams, three methods
    assert found.friedman.is_underpowered()
    assert "2 streams are too few to test" in result.report()
    assert sum(result.compare("seconds").friedman.ranks.values()) == pytest.approx(6)
    with pytest.raises(
        ValueError, match="needs two methods, and two streams on which each of them has a score"
    ):
        result.compare("selection_accuracy")


def test_curves_are_tidy(result):
    frame = result.curves("accuracy_windowed")
    assert {len(column) for column in frame.values()} == {14 * 14}
    mine = (frame["stream"] == "SEA") & (frame["method"] == "none") & (frame["seed"] == 1)
    steps = result.run("SEA", "none", 1).frames["steps"]
    np.testing.assert_array_equal(frame["accuracy_windowed"][mine], steps["accuracy_windowed"])
    np.testing.assert_array_equal(frame["n_seen"][mine], steps["n_seen"])
    with pytest.raises(ValueError, match="column must be one of"):
        result.curves("accurate")


def test_figure_and_page(result, tmp_path):
    figure = result.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["SEA", "electricity"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == result.methods
    page = result.report(tmp_path / "report.html", "A <b> title").read_text(encoding="utf-8")
    assert "<h1>A &lt;b&gt; title</h1>" in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 200_000
    glance = page.split('id="glance"')[1].split("</section>")[0]
    assert "<table" not in page.split('id="glance"')[0]  # it begins with the chart
    dots = [re.findall(rf'class="line s{i} dot" d="([^"]*)"', glance) for i in range(1, 5)]
    assert [marks.count("M") for _, marks in dots] == [2, 2, 2, 1]  # a stream each; the oracle knows one
    assert glance.count('<path class="upright"') == 1 + len(result.streams)
    assert re.search(
        r"<desc[^>]*>The best on each stream. SEA: \w+ 0\.\d+; electricity: \w+ 0\.\d+.</desc>", glance
    )
    for wanted in (
        "majority</em>",
        "no change</em>",
        "Kappa-temporal",
        "CD = ",
        "true drift",
        "relevant, not kept",
    ):
        assert wanted in page
    assert 'class="upright" d="M500 0v1000"' in page  # the drift, in the middle of the stream


@pytest.mark.parametrize("baseline", ["random", "all"])
def test_an_advantage_is_tested_between_seeds_with_rows_of_their_own_or_within_the_runs(result, baseline):
    gain, bound = result.gain_over(baseline)
    for i, stream in enumerate(result.streams):
        for j, method in enumerate(result.methods):
            at = result.finished(stream, method)
            of = {
                name: result.cells[name][at].mean()
                for name in ("accuracy", "majority_accuracy", f"{baseline}_auc")
            }
            name = f"{baseline}_{'auc_' * bool(is_uninformative(*of.values()))}gain"
            gains, bounds = (result.cells[f"{name}{part}"][at] for part in ("", "_bound"))
            np.testing.assert_allclose(gain[i, j], gains.mean())
            if stream == "SEA":  # t with one degree of freedom
                np.testing.assert_allclose(bound[i, j], 12.7062 * gains.std(ddof=1) / np.sqrt(2), rtol=1e-4)
            else:  # more seeds are no more rows
                np.testing.assert_allclose(bound[i, j], bounds.mean())


def test_a_comparison_says_loses_only_beyond_the_interval(folder, tmp_path):
    """Five seeds whose gain over a frozen selection is 0 in the mean, surely negative, surely positive, or unknown."""
    grid = tmp_path / "grid"
    run_experiment(
        {"SEA": ("SEA", {"n_rows": 600})},
        {"zero": OFS(2), "behind": OFS(3), "ahead": OFS(4), "unknown": OFS(1)},
        "sgd", seeds=5, folder=grid, frozen_after=200,
    )  # fmt: skip
    noise = np.array([-0.02, -0.01, 0.0, 0.01, 0.021])
    listed = json.loads((grid / EXPERIMENT).read_text(encoding="utf-8"))
    for cell in listed["cells"]:
        path = grid / CELLS / cell["key"] / "settings.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        shift = {"behind": -0.05, "ahead": 0.05}.get(cell["selector"], 0.0)
        for kind in ("", "auc_"):
            document["summary"] |= {
                f"frozen_{kind}gain": shift + noise[cell["seed"]],
                f"frozen_{kind}gain_bound": None,
            }
            document["summary"] |= {f"all_{kind}gain": 0.0, f"random_{kind}gain": None}
        path.write_text(json.dumps(document), encoding="utf-8")
        cell["resampled"] = cell["selector"] != "unknown"
    (grid / EXPERIMENT).write_text(json.dumps(listed), encoding="utf-8")
    result = ExperimentResult.load(grid)
    remarks = " ".join(result.remarks())
    assert "Loses to a frozen selection (L1, of the first rows): behind on SEA." in remarks
    assert "No proven advantage over a frozen selection (L1, of the first rows): zero on SEA." in remarks
    assert result.no_better_than_frozen() == {"SEA": ["zero", "behind"]}
    assert (
        "The selection pays in 1 of 4 pairs of stream and method, and in 1 it is undetermined."
        in result.verdict()
    )
