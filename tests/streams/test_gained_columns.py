"""Files whose later rows name other columns: appended, absent, back again, in another order; the model goes on."""

import json
import random
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

import tamis
from tamis import (
    FIRES,
    OFS,
    Auto,
    FisherScore,
    HoeffdingTree,
    WeightedNaiveBayes,
    open_file,
    prequential,
)
from tamis.cli import main
from tamis.errors import StreamError
from tamis.streams import follow_files
from tests.streams.test_tail import Recorder, run_killed, settled

N = 1200


def rows(n=N, seed=0):
    """Return rows as dicts: "heat" appears at 410, "colour" at 630, "a" vanishes at 700 and returns at 1000."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    made = []
    for i in range(n):
        row = {"a": round(float(rng.normal()), 3), "b": round(float(rng.normal()), 3)}
        if i >= 410:
            row = {"heat": round(float(3 * y[i] + rng.normal()), 3), **row}
        if i >= 630:
            row["colour"] = "red" if rng.random() < 0.2 + 0.6 * y[i] else "blue"
        if 700 <= i < 1000:
            del row["a"]
        made.append({**row, "state": "on" if y[i] else "off"})
    return made


def write(folder, kind, made, start=0):
    """Write the rows as files of one set of columns each, or as one file of JSON; return what to follow."""
    if kind == "jsonl":
        with (folder / "a.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in made)
        return folder / "a.jsonl"
    cuts = [i for i in range(1, len(made)) if made[i].keys() != made[i - 1].keys()]
    for first, last in zip([0, *cuts], [*cuts, len(made)], strict=True):
        part, name = made[first:last], f"{start + first:05d}"
        names = list(part[0])
        if kind == "csv":
            lines = [",".join(str(row[name]) for name in names) for row in part]
            (folder / f"{name}.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
        else:
            table = pa.table({name: [row[name] for row in part] for name in names})
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=70)
    return folder / f"*.{kind}"


def wide(made):
    """Return all columns of the rows, with NaN where a row lacks one; text as codes in order of appearance."""
    codes = {}
    return np.array([
        [row.get("a", np.nan), row.get("b", np.nan), row.get("heat", np.nan),
         codes.setdefault(row["colour"], len(codes)) if "colour" in row else np.nan]
        for row in made
    ])  # fmt: skip


def follow(path, **how):
    return follow_files(path, label="state", **{"idle": 0, **how})


KINDS = ("csv", "parquet", "jsonl")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_batches_are_the_rows_with_all_columns(tmp_path, kind, missing):
    stream, expected = follow(write(tmp_path, kind, rows()), missing=missing), wide(rows())
    stream.gains_columns = True
    n = 0
    for X, y in stream.batches(50):
        np.testing.assert_array_equal(X, expected[n : n + 50, : X.shape[1]])
        assert stream.feature_names == ["a", "b", "heat", "colour"][: X.shape[1]]
        n += len(y)
    assert (n, stream.categorical) == (N, [3])


def test_a_stream_whose_consumer_takes_no_new_columns_is_as_before(tmp_path):
    with pytest.raises(StreamError, match=r"differs in its columns from the first rows \(adds 'heat'\)"):
        list(follow(write(tmp_path, "csv", rows())).batches(50))
    stream = follow(write(tmp_path, "jsonl", rows()), missing="keep")
    with pytest.warns(UserWarning, match="has a key 'heat' in row 411 that is absent from the first rows"):
        found = list(stream.batches(50))
    assert {X.shape[1] for X, _ in found} == {2}


@pytest.mark.parametrize("learner", [WeightedNaiveBayes(None, weight=None), HoeffdingTree()])
def test_the_results_are_those_of_a_model_with_all_columns_from_the_first_row_on(tmp_path, learner):
    """Where each part of the model can gain columns, nothing tells that they came late."""
    made = [{k: v for k, v in row.items() if k != "colour"} for row in rows()]
    found = prequential(follow(write(tmp_path, "csv", made)), None, clone(learner), batch_size=50)
    y = [row["state"] for row in made]
    expected = prequential((wide(made)[:, :3], y), None, clone(learner), batch_size=50)
    np.testing.assert_array_equal(found.frames["steps"]["accuracy"], expected.frames["steps"]["accuracy"])


MODELS = [
    (FIRES(1), None), (Auto(), None), (FisherScore(2), HoeffdingTree()),
    (FisherScore(1), SGDClassifier(random_state=0)), (None, WeightedNaiveBayes()), (None, None),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("selector", "learner"), MODELS)
def test_a_run_uses_columns_as_they_come(tmp_path, kind, selector, learner):
    models = [None if one is None else clone(one) for one in (selector, learner)]
    result = prequential(follow(write(tmp_path, kind, rows())), *models, batch_size=50, baselines="both")
    assert result.feature_names == ["a", "b", "heat", "colour"]
    accuracy = np.asarray(result.frames["steps"]["accuracy"])
    assert accuracy[:7].mean() < 0.65 < 0.8 < accuracy[-4:].mean()
    if selector is not None:
        assert "heat" in result.selected()
        changes = result.frames["changes"]
        first = np.flatnonzero((changes["name"] == "heat") & (changes["event"] == "enter"))[0]
        assert changes["step"][first] >= 7
    assert np.isfinite(result.summary()["accuracy"])


def test_models_that_reject_missing_values_need_an_imputation(tmp_path):
    path = write(tmp_path, "csv", rows())
    with pytest.raises(StreamError, match="differs in its columns"):
        prequential(follow(path), OFS(1, random_state=0), batch_size=50)
    result = prequential(follow(path, missing="mean"), OFS(1, random_state=0), batch_size=50)
    assert result.selected() == ["heat"]


def test_tamis_run_reads_late_keys_again_and_again(tmp_path):
    made = [row for row in rows(800) if "colour" not in row] * 40  # more than a block
    late = [{**row, "late": i % 2, "colour": "red"} for i, row in enumerate(rows())]
    stream = open_file(write(tmp_path, "jsonl", [*made, *late]), label="state")
    assert (tmp_path / "a.jsonl").stat().st_size > 1 << 20
    found = []
    for _ in range(2):
        result = prequential(stream, FIRES(1), batch_size=100)
        found.append(result.frames["steps"]["accuracy"].tolist())
        assert result.feature_names == ["a", "b", "heat", "late", "colour"]
    assert found[0] == found[1]
    result = None
    for n in (200, 25_000, 25_500, 26_000, None):  # resumed before, between and after the new keys
        checkpoint = {"checkpoint": tmp_path / "run.tamis", "checkpoint_every": 1}
        stop = _StopAt(n)
        result = prequential(
            stream, FIRES(1), batch_size=100, on_step=stop, on_interrupt="return", **checkpoint
        )
    assert result.frames["steps"]["accuracy"].tolist() == found[0]


class _StopAt:
    """Stops a run after some rows."""

    def __init__(self, n):
        self.n = n

    def __call__(self, step):
        if self.n is not None and step.n_seen >= self.n:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("selector", "learner"), [MODELS[0], MODELS[2], (OFS(1, random_state=0), None)])
def test_a_resumed_run_leaves_the_same_bytes(tmp_path, kind, selector, learner):
    made, folders = rows(), [tmp_path / "resumed", tmp_path / "whole"]
    (tmp_path / "parts").mkdir()

    def run(folder):
        how = {"missing": "mean"} if isinstance(selector, OFS) else {}
        models = [None if one is None else clone(one) for one in (selector, learner)]
        path = tmp_path / "parts" / ("a.jsonl" if kind == "jsonl" else f"*.{kind}")
        stream = follow(path, dead_letters=folder / "bad.jsonl", **how)
        prequential(
            stream, *models, batch_size=30, keep_steps=40, frozen_after=100, checkpoint=folder / "run.tamis",
            checkpoint_every=1, on_step=Recorder(folder / "steps.jsonl", stream),
        )  # fmt: skip

    for folder in folders:
        folder.mkdir()
    for start in range(0, N, 97):
        write(tmp_path / "parts", kind, made[start : start + 97], start)
        run(folders[0])
    run(folders[1])
    assert (folders[0] / "steps.jsonl").read_bytes() == (folders[1] / "steps.jsonl").read_bytes()
    found, expected = (settled(folder / "run.tamis") for folder in folders)
    assert [name for name in expected if found.get(name) != expected[name]] == []
    assert tamis.load(folders[1] / "run.tamis")["run"]["names"] == ["a", "b", "heat", "colour"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "labels"), [("csv", ["state"]), ("jsonl", ["state", "wet"]), ("parquet", ["wet", "state"])]
)
def test_follow_is_killed_while_columns_come_and_go(tmp_path, kind, labels):
    rng, chance = np.random.default_rng(1), random.Random(len(labels))
    made = [{**row, "wet": int(row["b"] + rng.normal() > 0)} for row in rows()]
    (tmp_path / "parts").mkdir()
    source = tmp_path / "parts" / ("a.jsonl" if kind == "jsonl" else f"*.{kind}")
    named = [word for label in labels for word in ("--label", label)]

    def run(folder, idle=0.0):
        words = [
            *named,
            *(["--drop", "wet"] if len(labels) == 1 else []),
            "--selector",
            "fires",
            "--select",
            "1",
        ]
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        assert main([
            "follow", str(source), *words, "--batch-size", "30", "--every", "100", "--baselines", "none", "--quiet",
            "--idle", str(idle), "--checkpoint", str(place / "run.tamis"), "--checkpoint-seconds", "0.05",
            "--out", str(place / "steps.jsonl"),
        ]) == 0  # fmt: skip

    def turns():
        for start in range(0, N, 150):
            write(tmp_path / "parts", kind, made[start : start + 150], start)
            if start == 0:
                run("warm")  # compiles before anything is forked
            yield

    killed, reached = run_killed(
        lambda: run("killed", 5.0), turns(), tmp_path / "killed" / "run.tamis", chance
    )
    run("killed")
    run("whole")
    assert killed >= 6
    assert len(reached) > 1
    found = (tmp_path / "killed" / "steps.jsonl").read_text()
    assert found == (tmp_path / "whole" / "steps.jsonl").read_text()
    events = [json.loads(line) for line in found.splitlines()]
    assert [one["appended"] for one in events if one["event"] == "columns"] == [["heat"], ["colour"]]
    assert events[-1]["n_seen"] == N
    entered = {one.get("label", "state"): one["entered"] for one in events if one["event"] == "selection"}
    assert entered == ({"state": ["heat"]} if len(labels) == 1 else {"state": ["heat"], "wet": ["b"]})


def test_rows_that_wait_for_their_label_gain_columns(tmp_path):
    made = rows()
    features = [{"id": i, **row, "state": None} for i, row in enumerate(made)]
    late = []
    for i, row in enumerate(features):
        late.append(row)
        if i >= 60:
            late.append({"id": i - 60, "state": made[i - 60]["state"]})
    path = write(tmp_path, "jsonl", late)
    found = []
    for cut in (None, 500):
        checkpoint = tmp_path / f"{cut}.tamis"
        for end in (cut, None) if cut else (None,):
            (tmp_path / "b.jsonl").write_text("".join(path.read_text().splitlines(True)[:end]))
            stream = follow(tmp_path / "b.jsonl", label_key="id", dead_letters=tmp_path / f"{cut}.jsonl")
            result = prequential(stream, FIRES(1), batch_size=40, checkpoint=checkpoint)
        found.append(settled(checkpoint))
        assert result.selected() == ["heat"]
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


def test_delayed_labels_and_times_gain_columns(tmp_path):
    path = write(tmp_path, "jsonl", [{**row, "at": i, "known": i + 20} for i, row in enumerate(rows())])
    for how in ({"delay": 25}, {"delay": ("at", "known")}):
        clock = how["delay"] if isinstance(how["delay"], tuple) else ()
        drop = [] if clock else ["at", "known"]
        result = prequential(follow(path, clock=clock, drop=drop), FIRES(1), batch_size=40, **how)
        assert result.feature_names == ["a", "b", "heat", "colour"]
        assert result.selected() == ["heat"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,b,state\n1,2,3,on\n", r"2.csv' names the column 'b' twice: rename one of them"),
        (
            "a,b,c\n1,2,3\n",
            r"2.csv' has no column 'state', which earlier files have and each row needs: add it",
        ),
        ("a,b,when,state\n1,2,03/04/2024,on\n2,3,05/06/2024,off\n", "whose day and month are ambiguous"),
        ("a,b,c,state\n1,2,3,on\n1,2,x,on\n1,2,5,on\n", "where most values are numbers: fix it"),
    ],
)
def test_what_a_further_file_must_have(tmp_path, text, message):
    (tmp_path / "1.csv").write_text("a,b,state\n" + "1,2,on\n3,4,off\n" * 10)
    (tmp_path / "2.csv").write_text(text + "1,2,3,on\n" * 20 if text.count(",") % 3 == 2 else text)
    (tmp_path / "3.csv").write_text("a,b,state\n")
    with pytest.raises(StreamError, match=message):
        prequential(follow(tmp_path / "*.csv"), FIRES(1), batch_size=5)


def test_nested_values_and_keys_without_a_value_are_no_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "".join(
            json.dumps({"a": i, "b": i % 3, "state": "on" if i % 2 else "off"} | extra) + "\n"
            for i in range(60)
            for extra in ([{}] if i < 20 else [{"never": None}] if i < 40 else [{"meta": {"x": 1}}])
        )
    )
    with pytest.warns(
        UserWarning, match="has a key 'meta' in row 41 that has no plain value, so it is ignored"
    ):
        result = prequential(follow(tmp_path / "a.jsonl"), FIRES(1), batch_size=10)
    assert result.feature_names == ["a", "b"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_columns_is_bounded(tmp_path, kind):
    made = [{**row, "id": i} for i, row in enumerate(rows())]
    how = {"drop": ["id"], "max_columns": 3}
    stream = follow(write(tmp_path, kind, made[:600]), **how)
    first = prequential(stream, FIRES(1), batch_size=50)
    assert first.feature_names == ["a", "b", "heat"]
    again = follow(write(tmp_path, kind, made[600:], 600), **how)
    again.seek(stream.position())
    with pytest.warns(UserWarning, match="'colour'.* beyond the largest number of columns, so it is ignored"):
        result = prequential(again, FIRES(1), batch_size=50)
    assert result.feature_names == ["a", "b", "heat"]
    assert result.selected() == ["heat"]


def test_patterns_apply_to_columns_that_come_later(tmp_path):
    made = [{"a": i, "id_1": i, "code_1": i % 3, "state": "on" if i % 2 else "off"} for i in range(40)]
    made += [{**row, "id_2": 7, "code_2": i % 4} for i, row in enumerate(made)]
    for kind in KINDS:
        stream = follow(write(tmp_path, kind, made), drop=["id_*"], categorical=["code_*"])
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            result = prequential(stream, FIRES(1), batch_size=10)
        assert result.feature_names == ["a", "code_1", "code_2"]
        assert stream.categorical == [1, 2]
