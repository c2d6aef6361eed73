"""Labels that come at times told by two columns: against a plain loop, beside a delay in rows, in bounded memory."""

from __future__ import annotations

import html
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Perceptron

import tamis
from tamis import FIRES, open_file, prequential
from tamis.cli import main
from tamis.errors import DataError
from tamis.evaluate.prequential.delayed import DelayedLabels
from tamis.streams import ArrayStream
from tests.evaluate.prequential.test_prequential import rows, same, stop_after
from tests.twins import prequential as twin

TIMES = ("at", "known")
NAMES = [f"x{j}" for j in range(12)]


def timed(X, y, now, comes, classes=None):
    """The rows with the time of the row as the third column, and that of the label as the last."""
    both = np.column_stack([X[:, :2], now, X[:, 2:], comes])
    names = [*NAMES[:2], "at", *NAMES[2:], "known"]
    return ArrayStream(both, y, feature_names=names, classes=classes)


def times(n, seed=0, never=0.0):
    """Rows come irregularly, several at one time; labels after 0 to 100 units, some of them before their row."""
    rng = np.random.default_rng(seed)
    now = np.floor(np.cumsum(rng.exponential(0.7, n)))
    comes = now + rng.choice([-5.0, 0.0, 1.0, 7.5, 30.0, 100.0], n)
    comes[rng.random(n) < never] = np.nan
    return now, comes


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 1, 30, 250])
@pytest.mark.parametrize("kind", ["classes", "numbers", "sparse"])
def test_times_that_tell_a_delay_in_rows_are_that_delay(delay, kind):
    X, y = rows(900)
    y = y if kind != "numbers" else y + X[:, 0]
    number = np.arange(900.0)
    stream = timed(X, y, number, number + delay)
    expected = ArrayStream(X, y, feature_names=NAMES)
    if kind == "sparse":
        stream._X, expected._X = sp.csr_matrix(stream._X), sp.csr_matrix(X)
    model = {"model": "gaussian"} if kind == "numbers" else {}
    same(
        prequential(stream, FIRES(3, **model), batch_size=70, delay=TIMES, baselines="both"),
        prequential(expected, FIRES(3, **model), batch_size=70, delay=delay, baselines="both"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("never", [0.0, 0.3])
def test_equals_the_plain_loop(n_classes, never):
    X, y = rows(800, n_classes=n_classes)
    now, comes = times(800, never=never)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = twin.prequential(X, y, FIRES(3), Perceptron(random_state=0), 70, now=now, comes=comes)
    result = prequential(
        timed(X, y, now, comes, np.unique(y)),
        FIRES(3),
        Perceptron(random_state=0),
        batch_size=70,
        delay=TIMES,
    )
    steps = result.frames["steps"]
    assert len(steps["step"]) == len(expected)
    for name in set(expected[0]) - {"selected"}:
        np.testing.assert_allclose(steps[name], [row[name] for row in expected], err_msg=name, atol=1e-12)
    assert result.feature_names == NAMES
    assert result.settings["labels"] == {
        "waiting": int((np.maximum(comes, now) > now[-1]).sum()), "never": int(np.isnan(comes).sum()), "given_up": 0,
    }  # fmt: skip
    remarks = [remark for remark in result.remarks() if "never arrived" in remark]
    assert remarks == (
        [f"These rows were not learned: {int(np.isnan(comes).sum())} labels never arrived."] if never else []
    )


def test_no_more_rows_wait_than_may_and_who_is_given_up_is_counted():
    X, y = rows(3000)
    now = np.arange(3000.0)
    comes = now + np.where(np.arange(3000) % 2, 1e6, 0.0)  # every second label will not be there in time
    waiting = []
    delayed = DelayedLabels(TIMES, max_rows=200)
    for start in range(0, 3000, 100):
        part = slice(start, start + 100)
        (found, _), upto = delayed.exchange(X[part], y[part], now[part], comes[part])
        waiting.append(delayed.n_waiting)
        np.testing.assert_array_equal(found, X[part][::2])
        np.testing.assert_array_equal(upto, np.arange(2, 102) // 2)
    assert max(waiting) == 200
    assert sum(len(block[0]) for block in delayed.blocks) == 200
    assert delayed.counts() == {"waiting": 200, "never": 0, "given_up": 1300}
    result = prequential(timed(X, y, now, comes), FIRES(3), delay=TIMES, max_waiting=200)
    assert result.settings["labels"] == delayed.counts()
    assert "1,300 labels arrived too late: more than max_waiting rows waited" in result.remarks()[-1]


def test_labels_that_never_come_teach_nobody():
    X, y = rows(600)
    result = prequential(timed(X, y, np.arange(600.0), np.full(600, np.nan)), FIRES(3), delay=TIMES)
    assert len(result.frames["steps"]["step"]) == 0
    assert result.settings["labels"]["never"] == 600


@pytest.mark.slow
def test_rows_that_wait_survive_a_stop(tmp_path):
    X, y = rows()
    now, comes = times(len(y), never=0.1)
    path = tmp_path / "run.tamis"
    for kept in (X, sp.csr_matrix(X)):

        def run(**options):
            stream = timed(X, y, now, comes)
            if sp.issparse(kept):  # noqa: B023
                stream._X = sp.csr_matrix(stream._X)
            return prequential(stream, FIRES(3), delay=TIMES, max_waiting=40, **options)

        whole = run()
        run(checkpoint=path, on_step=stop_after(6), on_interrupt="return")
        again = run(checkpoint=path)
        same(whole, again)
        assert again.settings["labels"] == whole.settings["labels"]
        path.unlink()


@pytest.mark.parametrize("delay", [("at",), ("at", "at"), "at", ("at", 3), -1, 1.5, None])
def test_what_is_no_delay(delay):
    with pytest.raises(ValueError, match="delay must be an integer in"):
        prequential(rows(300), FIRES(3), delay=delay)


def test_times_that_cannot_be_used():
    X, y = rows(300)
    with pytest.raises(
        DataError, match="delay names the column 'at', which does not exist; the columns are x0, x1"
    ):
        prequential((X, y), FIRES(3), delay=TIMES)
    now = np.arange(300.0)
    with pytest.raises(DataError, match="The time 'at' of row 50 of the batch is nan: fix it"):
        prequential(timed(X, y, np.where(now == 150, np.nan, now), now), FIRES(3), delay=TIMES)
    with pytest.raises(ValueError, match="max_waiting must be an integer in"):
        prequential((X, y), FIRES(3), max_waiting=0)
    with pytest.raises(ValueError, match="protocol='paper' shows the selector the labels"):
        prequential(timed(X, y, now, now), FIRES(3), delay=TIMES, protocol="paper")


def test_the_report_of_such_a_run(tmp_path):
    X, y = rows(600)
    result = prequential(timed(X, y, *times(600)), FIRES(3), delay=TIMES)
    page = result.report(tmp_path / "run.html").read_text(encoding="utf-8")
    assert "each before its label arrived, by the label times" in page
    assert "delay=('at', 'known')" in html.unescape(page)


def write_file(path, *, dates=False, never="", mark="a,at,colour,b,known,state"):
    """Rows whose labels come up to 200 minutes later, and some never; `never` is what stands there then."""
    rng = np.random.default_rng(0)
    begin = np.datetime64("2024-03-01T00:00:00")
    lines = [mark]
    for i in range(1200):
        now, comes = (60.0 * i, 60.0 * (i + int(rng.integers(0, 200))))
        told = [
            str(begin + np.timedelta64(int(t), "s")).replace("T", " ") if dates else t for t in (now, comes)
        ]
        b, state = rng.normal(), rng.random() < 0.5
        known = never if i % 40 == 7 else told[1]
        colour = ("red", "blue")[i % 2]
        lines.append(
            f"{rng.normal():.3f},{told[0]},{colour},{b + 2 * state:.3f},{known},{'on' if state else 'off'}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


LATE = ["--label", "state", "--delay", "at,known", "--selector", "fires", "--select", "1", "-q"]


def told_by(capsys, *words):
    code = main([*words, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def test_two_columns_of_a_file_tell_when_labels_come(tmp_path, capsys):
    numbers, dates = write_file(tmp_path / "numbers.csv"), write_file(tmp_path / "dates.csv", dates=True)
    found = told_by(capsys, "run", numbers, *LATE)
    stream = open_file(numbers, label="state", clock=("at", "known"))
    assert stream.feature_names == ["a", "colour", "b", "at", "known"]
    whole = prequential(stream, FIRES(1), delay=("at", "known")).summary()
    assert found["summary"]["accuracy"] == whole["accuracy"] > 0.65
    assert (found["selected"], found["settings"]["labels"]["never"]) == (["b"], 30)
    at_once = told_by(
        capsys, "run", numbers, "--drop", "at,known", *[w for w in LATE if w not in ("--delay", "at,known")]
    )
    assert at_once["summary"]["accuracy"] != found["summary"]["accuracy"]
    for times in ("parts", "seconds"):
        by_dates = told_by(capsys, "run", dates, *LATE, "--times", times)
        assert by_dates["summary"]["accuracy"] == found["summary"]["accuracy"]


def test_categories_keep_their_places_beside_columns_of_times(tmp_path, capsys):
    path = write_file(tmp_path / "late.csv")
    assert (
        main(
            ["compare", path, "--selector", "mi", "--learner", "naive-bayes", "--seeds", "1", *LATE[:4], "-q"]
        )
        == 0
    )
    assert "mi" in capsys.readouterr().out
    saved = str(tmp_path / "models.tamis")
    told_by(
        capsys, "run", path, *LATE[:4], "--selector", "mi", "--learner", "naive-bayes", "-q", "--save", saved
    )
    models = tamis.load(saved)
    assert models["feature_names"] == ["a", "colour", "b"]
    assert set(models["pipeline"].predict(np.zeros((2, 3)))) <= {"on", "off"}


def test_a_followed_file_tells_when_labels_come_and_goes_on(tmp_path, capsys):
    path, half = write_file(tmp_path / "late.csv", dates=True), tmp_path / "half.csv"
    events = {}
    for name in ("whole", "stopped"):
        out, checkpoint = str(tmp_path / f"{name}.jsonl"), str(tmp_path / f"{name}.tamis")
        words = ["--out", out, "--checkpoint", checkpoint, "--idle", "0", "--every", "100", *LATE]
        lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
        for n in (1201,) if name == "whole" else (500, 1201):
            half.write_text("".join(lines[:n]), encoding="utf-8")
            assert main(["follow", str(half), *words]) == 0
        found = [json.loads(line) for line in Path(out).read_text(encoding="utf-8").splitlines()]
        events[name] = [one for one in found if one["event"] in ("scores", "selection")]
    assert events["whole"] == events["stopped"]
    assert {name for one in events["whole"] for name in one.get("entered", [])} == {"b"}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        ("at,colour", "column 'colour' must contain times, but contains text such as 'red'"),
        ("at,knwon", "has no column 'knwon'; did you mean 'known'?"),
        ("at,state", "clock names 'state', which is the label"),
        ("at,at", "--delay must be a number of rows, 0 or more, or two columns"),
        ("at", "--delay must be a number of rows, 0 or more, or two columns"),
        ("-5", "--delay must be a number of rows, 0 or more, or two columns"),
        ("known,at", "The time 'known' of row 7 of the batch is nan: fix it"),
    ],
)
def test_columns_that_tell_no_times_are_refused_in_one_sentence(tmp_path, capsys, delay, words):
    path = write_file(tmp_path / "late.csv", never="" if delay in ("known,at", "at") else "3")
    for command in ("run", "follow"):
        more = ["--idle", "0"] if command == "follow" else []
        assert (
            main([command, path, "--label", "state", "--delay", delay, "--selector", "fires", "-q", *more])
            != 0
        )
        out, err = capsys.readouterr()
        assert words in err.replace("\n", " ")
        assert len(err.strip().splitlines()) == 1
        assert "accuracy" not in out
