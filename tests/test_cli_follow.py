"""`tamis follow` as a stranger uses it: what it tells, how it stops, how it goes on, what it refuses."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.cli import main

HEADER = "heat,sound,light,pressure,state\n"
HOW = [
    "--label",
    "state",
    "--selector",
    "fires",
    "--select",
    "1",
    "--batch-size",
    "50",
    "--baselines",
    "none",
    "-q",
]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(3)
    late = np.arange(n) > n // 2
    state = np.where(np.where(late, X[:, 0], X[:, 3]) > 0, "on", "off")
    return [f"{','.join(map(repr, row))},{s}\n" for row, s in zip(X.tolist(), state, strict=True)]


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Run the command in this process; return exit code, the lines it reported, standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["follow", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, [json.loads(line) for line in out.splitlines() if line.startswith("{")], err

    return call


def test_it_tells_what_was_chosen_and_goes_on_where_it_was(call, tmp_path):
    made = rows(2000)
    (tmp_path / "a.csv").write_text(HEADER + "".join(made[:1020]))
    code, reported, err = call("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", "--every", 500)
    assert (code, err) == (0, "")
    assert [one["event"] for one in reported] == ["selection", "scores", "scores", "end"]
    assert reported[0]["entered"] == ["pressure"]
    assert reported[1]["accuracy"] > 0.9
    assert reported[-1] == {
        "event": "end",
        "n_seen": 1000,
        "waiting": 20,
        "bad": 0,
        "unlabelled": 0,
        "repeated": 0,
    }
    with (tmp_path / "a.csv").open("a") as file:
        file.write("".join(made[1020:]))
    code, more, _ = call("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", "--every", 500)
    assert code == 0
    assert more[-1]["n_seen"] == 2000
    _, whole, _ = call("a.csv", *HOW, "--idle", 0, "--every", 500)
    assert reported[:-1] + more == whole
    assert {"left", "entered"} <= set(next(one for one in more if one["event"] == "selection"))


def test_what_it_writes_is_that_of_one_run(call, tmp_path):
    made = rows(600)
    places = (
        "--out",
        "reported.jsonl",
        "--save",
        "models.tamis",
        "--dead-letters",
        "bad.jsonl",
        "--report",
        "a.html",
    )
    (tmp_path / "a.csv").write_text(HEADER + "".join(made[:330]) + "1,2\n")
    code, reported, _ = call("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", *places)
    assert (code, reported) == (0, [])
    with (tmp_path / "a.csv").open("a") as file:
        file.write("".join(made[330:]))
    assert call("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", *places)[0] == 0
    names = ("reported.jsonl", "models.tamis", "bad.jsonl")
    found = [(tmp_path / name).read_bytes() for name in names]
    (tmp_path / "run.tamis").unlink()
    assert call("a.csv", *HOW, "--idle", 0, *places)[0] == 0
    assert [(tmp_path / name).read_bytes() for name in names] == found
    assert json.loads(found[2])["line"] == "1,2"
    assert tamis.load(tmp_path / "models.tamis")["feature_names"] == ["heat", "sound", "light", "pressure"]
    assert "<html" in (tmp_path / "a.html").read_text().lower()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_waits_ends_in_order(tmp_path, number):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(400)))
    line = [
        sys.executable,
        "-m",
        "tamis",
        "follow",
        "a.csv",
        *HOW,
        "--checkpoint",
        "run.tamis",
        "--every",
        "100",
    ]
    with subprocess.Popen(
        line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        reported = [json.loads(next(process.stdout)) for _ in range(5)]
        assert reported[-1]["n_seen"] == 400
        time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["event"] == "interrupted"
    assert "the same command resumes from the checkpoint" in err
    assert tamis.load(tmp_path / "run.tamis")["run"]["n_seen"] == 400


@pytest.mark.slow
def test_the_page_is_there_while_it_waits(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(400)))
    line = [sys.executable, "-m", "tamis", "follow", "a.csv", *HOW, "--live", "--every", "100"]
    with subprocess.Popen(
        line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        said = next(process.stderr)
        assert "the page is at http://127.0.0.1:" in said
        for _ in range(5):
            next(process.stdout)
        known = {"lines": []}
        since = time.monotonic()  # a line is written before it is shown
        while len(known["lines"]) < 5 and time.monotonic() - since < 30:
            with urllib.request.urlopen(said.split()[-1] + "events", timeout=30) as answer:
                known = json.loads(answer.readline().decode().removeprefix("data: "))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert known["selected"] == ["pressure"]
    assert [one["event"] for one in known["lines"]] == ["scores"] * 4 + ["selection"]
    assert process.returncode == 130


@pytest.mark.slow
def test_standard_input_whose_rows_have_numbers(tmp_path):
    made = [f"{n},{row}" for n, row in enumerate(rows(300), start=1)]
    line = [sys.executable, "-m", "tamis", "follow", "-", *HOW, "--number", "n", "--checkpoint", "run.tamis"]

    def feed(text):
        done = subprocess.run(line, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=100)
        return done.returncode, [json.loads(one) for one in done.stdout.splitlines()], done.stderr

    assert feed("n," + HEADER + "".join(made[:150]))[0] == 0
    code, reported, err = feed("n," + HEADER + "".join(made[120:150] + made[200:]))
    assert (code, err) == (0, "")
    assert {"event": "gap", "after": 150, "before": 201}.items() <= reported[0].items()
    assert reported[-1] == {
        "event": "end",
        "n_seen": 250,
        "waiting": 0,
        "bad": 0,
        "unlabelled": 0,
        "repeated": 30,
    }


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("a.csv",), "Name the label column"),
        ((), "Name what to follow"),
        (("b.csv", "--label", "state"), "There is no file 'b.csv'"),
        (("-", "--label", "state", "--checkpoint", "c"), "let the producer number them and add --number"),
        (("a.csv", "--label", "state", "--number", "n"), "--number is for standard input"),
        (("a.csv", "--label", "stat", "--idle", "0"), "did you mean 'state'"),
        (("a.csv", "--label", "state", "--idle", "-1"), "--idle must be"),
        (("a.csv", "--label", "state", "--n-features", "7"), "use --select 7"),
        (("a.csv", "--label", "state", "--out", "a.csv"), "is the input file"),
        (("a.csv", "--label", "state", "--checkpoint", "a.csv"), "is the input file"),
        (("a.csv", "--label", "state", "--checkpoint", "there", "--idle", "0"), "is not from Tamis"),
        (("a.csv.gz", "--label", "state", "--idle", "0"), "is compressed"),
    ],
)
def test_what_cannot_be_followed_is_said_in_a_sentence(call, tmp_path, arguments, reported):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(200)))
    (tmp_path / "there").write_text("mine")
    (tmp_path / "a.csv.gz").write_bytes(b"\x1f\x8b")
    code, _, err = call(*arguments, "-q")
    assert code in (1, 2)
    assert reported in err
    assert err.count("\n") == 1


def test_a_checkpoint_of_another_run_is_refused(call, tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(200)))
    (tmp_path / "b.csv").write_text(HEADER + "".join(rows(200)))
    assert call("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis")[0] == 0
    code, _, err = call("b.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis")
    assert code == 1
    assert "is the checkpoint of another run" in err
    code, reported, err = call("a.csv", *HOW[:-1], "--idle", 0, "--batch-size", 500)
    assert (code, reported) == (0, [])
    assert "too few rows for a first batch" in err


def test_a_number_is_followed_and_goes_on_where_it_was(call, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)).round(3)
    made = [f"{a!r},{b!r},{c!r},{round(20 + 5 * a, 2)}\n" for a, b, c in X.tolist()]
    how = (
        "--label",
        "load",
        "--task",
        "regression",
        "--selector",
        "fires",
        "--select",
        1,
        "--batch-size",
        50,
        "-q",
    )
    (tmp_path / "whole.csv").write_text("heat,sound,light,load\n" + "".join(made))
    code, whole, err = call("whole.csv", *how, "--idle", 0, "--every", 500)
    assert (code, err) == (0, "")
    scores = [one for one in whole if one["event"] == "scores"]
    assert scores[-1]["mae"] < 0.3 * scores[-1]["mean_so_far"]
    assert scores[-1]["r2"] > 0.9
    assert set(scores[-1]) >= {"mae_all", "random_subsets", "every_feature", "last_target"}
    (tmp_path / "part.csv").write_text("heat,sound,light,load\n" + "".join(made[:1020]))
    again = (*how, "--idle", 0, "--every", 500, "--checkpoint", "run.tamis")
    _, first, _ = call("part.csv", *again)
    with open(tmp_path / "part.csv", "a") as file:
        file.write("".join(made[1020:]))
    _, second, _ = call("part.csv", *again)
    assert scores[-1] == [one for one in second if one["event"] == "scores"][-1]
    assert [one["event"] for one in first] == ["selection", "scores", "scores", "end"]


@pytest.mark.parametrize(
    ("option", "place", "limit", "more"),
    [
        ("--checkpoint", "run.tamis", 4000, []),
        ("--dead-letters", "bad.jsonl", 2000, []),
        ("--out", "reported.jsonl", 2000, ["--every", "1"]),
    ],
)
def test_a_disk_that_fills_up_is_told_and_what_was_saved_stays(call, tmp_path, option, place, limit, more):
    made = rows(1000)
    (tmp_path / "a.csv").write_text(HEADER + "".join(made[:200]) + "1,2\n" * 3)
    how = ["a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", "--dead-letters", "bad.jsonl"]
    how = how if option == "--checkpoint" else [*how, "--out", "reported.jsonl", *more]
    assert call(*how)[0] == 0
    kept = (tmp_path / "run.tamis").read_bytes()
    with (tmp_path / "a.csv").open("a") as file:
        bad = "not,a,row,at all\n" * (60 * (option == "--dead-letters"))
        file.write("".join(made[200:230]) + bad + "".join(made[230:]))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))  # of each file
        code, _, err = call(*how)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 1
    assert f"{place}' (File too large)" in err
    assert err.count("\n") == 1
    assert (tmp_path / "run.tamis").read_bytes() == kept
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith(".")) == []
    assert call(*how)[0] == 0  # with room it goes on
    assert tamis.load(tmp_path / "run.tamis")["run"]["n_seen"] == 1000
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 3 + bad.count("\n")


@pytest.mark.parametrize("option", ["--checkpoint", "--dead-letters", "--out"])
def test_a_folder_that_is_read_only_is_told_before_anything_starts(call, tmp_path, monkeypatch, option):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(200)))

    def read_only(*given, **more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tamis.cli.output.tempfile.NamedTemporaryFile", read_only)
    code, reported, err = call("a.csv", *HOW, "--idle", 0, option, "there.jsonl")
    assert (code, reported) == (2, [])
    assert f"{option} 'there.jsonl' cannot be written (Read-only file system): choose another path." in err
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


# -- files and checkpoints as others leave them ----------------------------------------------------------------


def parquet(path, made):
    values = [line.rstrip("\n").split(",") for line in made]
    names = HEADER.rstrip("\n").split(",")
    columns = dict(zip(names, zip(*values, strict=True), strict=True))
    pq.write_table(pa.table({k: v if k == "state" else np.array(v, float) for k, v in columns.items()}), path)


@pytest.mark.parametrize(
    ("content", "reason", "expected"),
    [
        (b"PAR1" + bytes(500) + b"PAR1", "is damaged", 1),
        (b"heat,state\n1,on\n", "is not a Parquet file", 1),
        (b"PAR1" + bytes(500), "is incomplete", 0),
        (b"", "is empty", 0),
    ],
)
@pytest.mark.parametrize("at", [1, 2])
def test_a_part_that_cannot_be_read_is_in_events_counts_and_the_message_at_the_end(
    call, tmp_path, content, reason, expected, at
):
    (tmp_path / "parts").mkdir()
    made = rows(300)
    for k in (1, 2, 3):
        parquet(tmp_path / "parts" / f"{k}.parquet", made[100 * (k - 1) :][:100])
    (tmp_path / "parts" / f"{at}.parquet").write_bytes(content)
    for _ in range(2):
        code, reported, err = call("parts/*.parquet", *HOW, "--idle", 0, "--checkpoint", "run.tamis")
        assert code == expected
        [event] = [one for one in reported if one["event"] == "unreadable"]
        assert (event["file"], event["n_seen"]) == (f"parts/{at}.parquet", 200)
        assert reason in event["reason"]
        assert reported[-1]["unreadable"] == 1
        assert f"parts/{at}.parquet' was not read: it {reason}" in err
        assert f"1 file could not be read: 'parts/{at}.parquet'" in err


def test_parts_none_of_which_can_be_read_are_reported(call, tmp_path):
    (tmp_path / "1.parquet").write_bytes(b"nothing that can be read")
    code, reported, err = call("*.parquet", *HOW, "--idle", 0)
    assert (code, [one["event"] for one in reported]) == (1, ["unreadable"])
    assert "nothing was learned" in err
    assert "1 file could not be read: '1.parquet'" in err


WIDE = ",".join(f"sensor_{j:04d}_temperature" for j in range(200)) + ",state\n"


def wide(n, seed):
    numbers = np.random.default_rng(seed).integers(0, 99, size=(n, 200))
    return [f"{','.join(map(str, row))},{'on' if row[0] > 49 else 'off'}\n" for row in numbers.tolist()]


@pytest.mark.parametrize("how", ["in place", "moved", "rotated", "rotated, pattern"])
def test_another_file_with_the_same_wide_header_is_not_taken_for_the_one_that_was_read(call, tmp_path, how):
    path = tmp_path / "app.csv"
    source = "app.csv*" if "pattern" in how else "app.csv"
    path.write_text(WIDE + "".join(wide(400, 0)))
    line = (source, *HOW, "--format", "csv", "--idle", 0, "--checkpoint", "run.tamis")
    assert call(*line)[1][-1]["n_seen"] == 400
    if how.startswith("rotated"):
        os.replace(path, tmp_path / "app.csv.1")
    other = path if how == "in place" else tmp_path / "other"
    other.write_text(WIDE + "".join(wide(500, 1)))
    os.replace(other, path)
    code, reported, err = call(*line)
    if "pattern" in how:
        assert (code, reported[-1]["n_seen"]) == (0, 900)
        assert "renamed" in [one["event"] for one in reported]
    else:
        assert code == 1
        assert "app.csv' is not the file from which 400 rows were read" in err


@pytest.mark.parametrize("value", [-1, 2.5, 1 << 70, "12", None, [], ...])
@pytest.mark.parametrize("way", [("rows",), ("places",), ("places", "a.csv"), ("places", "a.csv", 0)])
def test_a_checkpoint_with_an_invalid_position_is_rejected_and_nothing_is_overwritten(
    call, tmp_path, way, value
):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(200)))
    line = ("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", "--out", "reported.jsonl")
    assert call(*line)[0] == 0
    written = (tmp_path / "reported.jsonl").read_bytes()
    content = tamis.load(tmp_path / "run.tamis")
    place = content["run"]["position"]
    for key in way[:-1]:
        place = place[key]
    if value is ...:
        del place[way[-1]]
    else:
        place[way[-1]] = value
    tamis.save(content, tmp_path / "run.tamis")
    code, _, err = call(*line)
    assert code == 1
    assert "'run.tamis' cannot be resumed. The position" in err
    assert err.count("\n") == 1
    assert (tmp_path / "reported.jsonl").read_bytes() == written


@pytest.mark.parametrize("key", ["journal", "selected", "n_seen", "n_reported"])
@pytest.mark.parametrize("value", [-1, 2.5, "12", None, ...])
def test_a_checkpoint_with_invalid_events_is_rejected(call, tmp_path, key, value):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(200)))
    line = ("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", "--out", "reported.jsonl")
    assert call(*line)[0] == 0
    content = tamis.load(tmp_path / "run.tamis")
    content["run"]["listener"][key] = value
    if value is ...:
        del content["run"]["listener"][key]
    tamis.save(content, tmp_path / "run.tamis")
    code, _, err = call(*line)
    assert code == 1
    assert "'run.tamis' cannot be resumed. The" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("position", [None, ...])
def test_a_checkpoint_without_a_position_is_rejected(call, tmp_path, position):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(200)))
    line = ("a.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis", "--out", "reported.jsonl")
    assert call(*line)[0] == 0
    content = tamis.load(tmp_path / "run.tamis")
    content["run"]["position"] = None
    if position is ...:
        del content["run"]["position"]
    tamis.save(content, tmp_path / "run.tamis")
    code, _, err = call(*line)
    assert code == 1
    assert "'run.tamis' has no position in a followed stream" in err
    assert (tmp_path / "reported.jsonl").stat().st_size


def test_a_long_line_goes_to_the_dead_letters(call, tmp_path):
    made = rows(400)
    (tmp_path / "a.csv").write_text(HEADER + "".join(made[:200]))
    with (tmp_path / "a.csv").open("ab") as file:
        for _ in range(65):
            file.write(b"x" * (1 << 20))
        file.write(("\n" + "".join(made[200:])).encode())
    code, reported, _ = call("a.csv", *HOW, "--idle", 0, "--dead-letters", "bad.jsonl")
    assert (code, reported[-1]["n_seen"], reported[-1]["bad"]) == (0, 400, 1)
    [bad] = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert (bad["row"], len(bad["line"])) == (201, 1000 + len("... (68,157,441 bytes)"))
    assert "more than 64 MB in row 201" in bad["reason"]
    code, _, err = call("a.csv", *HOW, "--idle", 0)
    assert code == 1
    assert "has more than 64 MB in row 201" in err


WATCHED = ["--watch", "--rule", 'state("*") == "used but no longer relevant"', "--rule", 'psi("heat") > 0.2']


def drifting(n=4000):
    """The state depends on heat and pressure, from the middle on on light and pressure."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4)).round(3)
    early = np.arange(n) < n // 2
    state = np.where(np.where(early, X[:, 0], X[:, 2]) + X[:, 3] > 0, "on", "off")
    return [f"{','.join(map(repr, row))},{s}\n" for row, s in zip(X.tolist(), state, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 130])
def test_watch_follows_relevance_and_reliance_and_continues(call, tmp_path, delay):
    """In two parts as in one run; reliance follows relevance, since the learner adapts."""
    made = drifting()
    how = [
        "--label",
        "state",
        "--learner",
        "perceptron",
        "--selector",
        "fires",
        "--select",
        "2",
        "--baselines",
        "none",
        "-q",
        "--idle",
        0,
    ]
    how += [*WATCHED, "--on-alert", "cat >> sent", "--delay", delay]
    (tmp_path / "a.csv").write_text(HEADER + "".join(made[:1500]))
    code, reported, err = call("a.csv", *how, "--checkpoint", "run.tamis")
    assert (code, err) == (0, "")
    with (tmp_path / "a.csv").open("a") as file:
        file.write("".join(made[1500:]))
    _, more, _ = call("a.csv", *how, "--checkpoint", "run.tamis")
    _, whole, _ = call("a.csv", *how)
    assert reported[:-1] + more == whole
    lines = [one for one in whole if one["event"] == "watch"]
    assert [line["n_seen"] for line in lines] == [1000, 2000, 3000, 4000]
    first, last = (dict(zip(one["features"], one["reliance"], strict=True)) for one in (lines[1], lines[-1]))
    assert first["heat"] > 0.3 > 0.1 > first["light"]
    assert last["light"] > 0.2
    relevance = dict(zip(lines[-1]["features"], lines[-1]["relevance"], strict=True))
    assert relevance["heat"] < 0.1 < 0.3 < relevance["light"]


def test_alerts_of_a_watch_are_events_and_sent(call, tmp_path):
    made = rows(3000, 1)
    (tmp_path / "a.csv").write_text(HEADER + "".join(made))
    how = [
        "--idle",
        0,
        "--watch",
        "--rule",
        'relevance("pressure") > 0.5',
        "--on-alert",
        "cat >> sent; exit 1",
    ]
    code, reported, err = call("a.csv", *HOW, *how)
    alerts = [one for one in reported if one["event"] == "alert"]
    assert code == 0
    assert alerts[0]["feature"] == "pressure"
    assert alerts[0]["n_seen"] == alerts[0]["row"]
    assert "exit code 1" in err
    assert (
        json.loads((tmp_path / "sent").read_text().split("}{")[0].rstrip("}") + "}")["feature"] == "pressure"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rule", "auc > 1"], "are for --watch"),
        (["--webhook", "http://a"], "are for --watch"),
        (["--port", "8000"], "is for --live"),
        (["--live", "--port", "70000"], "--port must be"),
        (["--watch", "--rule", "psi >"], "cannot be parsed"),
        (["--watch", "--webhook", "file:///a"], "webhook must be a URL"),
        (["--watch", "--delay", "sold,returned"], "delayed by a number of rows"),
    ],
)
def test_options_of_a_watch_are_validated(call, tmp_path, words, message):
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows(100)))
    code, _, err = call("a.csv", *HOW, "--idle", 0, *words)
    assert code == 2
    assert message in err


def test_what_happens_to_files_after_the_last_batch_is_told(call, tmp_path):
    for k in (1, 2):
        (tmp_path / f"{k}.csv").write_text(HEADER + "".join(rows(100, k)))
    line = ("*.csv", *HOW, "--idle", 0, "--checkpoint", "run.tamis")
    assert call(*line)[0] == 0
    os.rename(tmp_path / "2.csv", tmp_path / "3.csv")
    os.remove(tmp_path / "1.csv")
    code, reported, _ = call(*line)
    assert code == 0
    assert sorted(one["event"] for one in reported) == ["end", "removed", "renamed"]


def test_columns_are_judged_by_the_rows_that_exist_as_in_a_file(call, tmp_path):
    days = [
        f"0{1 + i // 300}/{1 + i // 30 % 28:02}/2024" for i in range(2400)
    ]  # ambiguous for the first 12 days
    rows = [f"{days[i]},town {i % 90},note {i},{i % 7},{i % 2}" for i in range(2400)]
    (tmp_path / "b.csv").write_text("\n".join(["day,town,note,heat,state", *rows]) + "\n")
    line = (
        "b.csv",
        "--label",
        "state",
        "--selector",
        "fisher",
        "--learner",
        "nb",
        "--select",
        "4",
        "--batch-size",
        "20",
    )
    code, reported, err = call(*line, "--idle", "0")
    assert code == 0, err
    [first] = [one for one in reported if one["event"] == "selection"][:1]
    assert sorted(first["entered"]) == ["day.weekday", "day.year", "heat", "town"]
    assert "note is excluded: an identifier" in err
    assert "town is excluded" not in err


# -- several labels ------------------------------------------------------------------------------------------


SEVERAL = [word for label in ("hot", "dry", "price") for word in ("--label", label)]
USING = ("--selector", "t-score", "--select", "1", "--batch-size", "50", "--idle", 0, "--every", 200, "-q")


def weather(n, kind, seed=0):
    """Return lines: `hot` depends on a, `dry` (sometimes missing) on b, the number `price` on c."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(3)
    made = []
    for i, (a, b, c, d) in enumerate(X.tolist()):
        row = {
            "a": a,
            "b": b,
            "c": c,
            "d": d,
            "hot": "yes" if a > 0 else "no",
            "dry": int(b > 0),
            "price": 2 * c,
        }
        row["dry"] = None if i % 7 == 3 else row["dry"]
        values = ["" if value is None else str(value) for value in row.values()]
        made.append(json.dumps(row) + "\n" if kind == "jsonl" else ",".join(values) + "\n")
    return made if kind == "jsonl" else ["a,b,c,d,hot,dry,price\n", *made]


def lines_of(place):
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_several_labels_have_lines_of_their_own_and_go_on_where_they_were(call, tmp_path, kind):
    made, source = weather(800, kind), f"a.{kind}"
    line = (source, *SEVERAL, *USING, "--drop-unlabelled", "--report", "page.html")
    (tmp_path / source).write_text("".join(made[:430]) + made[430][:9])
    assert call(*line, "--checkpoint", "run.tamis", "--out", "found.jsonl")[0] == 0
    with (tmp_path / source).open("a") as file:
        file.write(made[430][9:] + "".join(made[431:]))
    assert call(*line, "--checkpoint", "run.tamis", "--out", "found.jsonl")[0] == 0
    assert call(*line, "--out", "whole.jsonl")[0] == 0
    assert (tmp_path / "found.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    found = lines_of(tmp_path / "found.jsonl")
    entered = {one["label"]: one["entered"] for one in found if one["event"] == "selection"}
    assert entered == {"hot": ["a"], "dry": ["b"], "price": ["c"]}
    scores = {one["label"]: one for one in found if one["event"] == "scores"}
    assert scores["hot"]["accuracy"] > 0.9
    assert scores["price"]["mae"] < 1.0
    assert [scores[label]["n_seen"] for label in scores] == [800, sum(i % 7 != 3 for i in range(800)), 800]
    assert found[-1]["n_seen"] == 800
    assert "Shared selection" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, _, err = call(source, *SEVERAL[:4], *USING, "--drop-unlabelled", "--checkpoint", "run.tamis")
    assert code == 1
    assert "whose stream.label is ['hot', 'dry', 'price'], not ['hot', 'dry']" in err
    # Each label is predicted as if it were the only one.
    for label, more in (
        ("hot", ["--drop", "dry,price"]),
        ("price", ["--drop", "hot,dry", "--task", "regression"]),
    ):
        assert call(source, "--label", label, *more, *USING, "--out", "alone.jsonl")[0] == 0
        own = [{**one, "label": label} for one in lines_of(tmp_path / "alone.jsonl") if one["event"] != "end"]
        assert [one for one in found if one.get("label") == label] == own


def test_a_row_without_a_label_is_a_bad_row_unless_it_is_skipped(call, tmp_path):
    (tmp_path / "a.csv").write_text("".join(weather(300, "csv")))
    code, _, err = call("a.csv", *SEVERAL, *USING)
    assert code == 1
    assert "rows have no label, the first is row 4; add --drop-unlabelled." in err
    assert call("a.csv", *SEVERAL, *USING, "--dead-letters", "bad.jsonl")[0] == 0
    bad = lines_of(tmp_path / "bad.jsonl")
    assert len(bad) == 43
    assert bad[0]["row"] == 4
    assert bad[0]["reason"].startswith("has no 'dry' in row 4: fix it")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--label", "wet"], "'a.csv' has no column 'wet'"),
        (["--label", "2"], "--label 2 is a position: several labels are given by their names."),
        (["--drop", "dry"], "--drop must not contain the label 'dry': remove it from the list."),
        (["--watch"], "--watch is for one label, but --label names 3: follow each alone."),
        (["--save", "models"], "--save is for one label, but --label names 3: follow each alone."),
        (["--live"], "--live is for one label, but --label names 3: follow each alone."),
        (["--label-key", "a"], "--label-key matches the labels of one column: give --label once."),
        (
            ["--learner", "nb"],
            "--label price contains numbers, but --learner nb is for classes: omit --learner",
        ),
        (
            ["--task", "regression"],
            "--label hot contains text, but --task regression is for numbers: omit --task",
        ),
    ],
)
def test_what_needs_one_label_is_said_in_a_sentence(call, tmp_path, more, message):
    (tmp_path / "a.csv").write_text("".join(weather(300, "csv")))
    code, found, err = call("a.csv", *SEVERAL, *USING, "--drop-unlabelled", *more)
    assert (code in (1, 2), found) == (True, [])
    assert err.startswith(f"tamis: {message}")
    assert err.count("\n") == 1
