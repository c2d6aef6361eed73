"""A stranger's messy files: look, recommend, run, columns and train need nothing but the options that are printed."""

import datetime as dt
import html
import json
import re
import shlex

import numpy as np
import pytest

from tamis.cli import main

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

N = 200


def payments(rng):
    """Semicolons, decimal commas but for two columns, words for missing values, times, copies, empty and constant."""
    y = rng.random(N) < 0.3
    amount = rng.lognormal(3.5, 0.5, N) + 40 * y
    at = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=20 * i) for i in range(N)]
    euro = [f"{value:.2f}".replace(".", ",") for value in amount]
    yield "id;when;device;amount;amount_eur;country;age;velocity 24h;old score;const;empty;fraud"
    for i in range(N):
        age = "" if i % 9 == 2 else f"{20 + i % 50}.0"
        old = "-" if i % 7 == 3 else f"{rng.normal():.3f}".replace(".", ",")
        yield (
            f"{9000 + i};{at[i]:%d/%m/%Y %H:%M:%S};{rng.integers(1 << 60):032x};{euro[i]};{euro[i]};"
            f"{['FR', 'DE', 'NG'][i % 3]};{age};{i % 4}.0;{old};1;;{'yes' if y[i] else 'no'}"
        )


def days(rng):
    """Dates and times of which the order of day and month cannot be known."""
    x = rng.normal(size=N)
    yield "taken,level,state"
    for i in range(N):
        yield f"{1 + i % 12:02}/{1 + i % 7:02}/2024 10:{i % 60:02},{x[i]:.3f},{'on' if x[i] > 0 else 'off'}"


def machines(rng):
    """Two dozen columns, missing values, a stuck sensor, time stamps, no label named."""
    signal = rng.normal(size=(N, 4))
    X = np.repeat(signal, 6, axis=1) + rng.normal(size=(N, 24))
    X[rng.random((N, 24)) < 0.03] = np.nan
    X[:, 17] = 4.2
    yield ",".join(["time", *(f"s{j:02}" for j in range(24)), "state"])
    for i, row in enumerate(X):
        cells = ",".join("" if np.isnan(value) else f"{value:.2f}" for value in row)
        yield f"2025-03-01T00:{i // 60:02}:{i % 60:02}Z,{cells},{'alarm' if signal[i, 2] > 0.7 else 'ok'}"


def words(rng):
    """Counts, mostly 0, with the index of a frame as a column without a name; three classes."""
    y = rng.integers(0, 3, N)
    counts = rng.poisson(0.2 + 2.0 * (np.arange(12) % 4 == y[:, None]))
    counts[:, 5] = 0
    yield ",".join(["", *(f"w_{j}" for j in range(12)), "topic"])
    for i, row in enumerate(counts.tolist()):
        yield ",".join(map(str, [i, *row, ("sport", "tech", "arts")[y[i]]]))


KINDS = {"payments": payments, "days": days, "machines": machines, "words": words}


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, write in KINDS.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(write(rng)) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def call(folder, capsys):
    def call(line, *more):
        words = shlex.split(line)
        assert words[0] == "tamis"
        code = main([*words[1:], *more])
        out, err = capsys.readouterr()
        assert code == 0, f"{line}: {err}"
        return out, err

    return call


def printed_options(text):
    """Return the options that are printed in brackets, to be added."""
    text = re.sub(r" *\n(?! )", " ", text)  # a long line continues without indent
    return re.findall(r"\((?:set )?(--[^()]+?)(?: treats [^()]+)?\)", text)


def lines_of(page):
    """Return the lines in a shell and in Python with which a report repeats itself."""
    text = page.read_text(encoding="utf-8")
    shell, python = (
        html.unescape(re.sub(r"<[^>]+>", "", found[1])) if (found := re.search(pattern, text, re.S)) else None
        for pattern in (rf"{heading}</h3>.*?<pre[^>]*>(.*?)</pre>" for heading in ("In a shell", "In Python"))
    )
    return shell, python


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_look_prints_can_be_added(call, kind):
    """Its last line, and each option in brackets beside it."""
    name = "state" if kind == "days" else {"payments": "fraud", "machines": "state", "words": "topic"}[kind]
    out, _ = call(f"tamis look {kind}.csv --label {name}")
    line = out.splitlines()[-1].removeprefix("Next: ")
    assert line.startswith(f"tamis run {kind}.csv --label {name}")
    for added in printed_options(out):
        found = json.loads(call(f"{line} {added}".replace("tamis run", "tamis look", 1), "--json")[0])
        assert not found["problems"], added
    call(line, "--selector", "fires", "--learner", "perceptron", "--batch-size", "40", "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "label"), {"payments": "fraud", "machines": "state", "words": "topic"}.items()
)
def test_each_command_takes_the_options_that_are_printed(call, folder, kind, label):
    """Look, recommend, run, columns, screen and train; then each line with which their reports repeat themselves."""
    line = json.loads(call(f"tamis look {kind}.csv --label {label}", "--json")[0])["command"]
    options = line.removeprefix("tamis run ")
    out, _ = call(f"tamis recommend {options} --learner perceptron --report recommend.html", "--quiet")
    [run] = [row for row in out.splitlines() if row.startswith("tamis run ")]
    call(f"{run} --report run.html --batch-size 60", "--quiet")
    rule = "saola" if kind == "words" else "lord++"
    call(f"tamis columns {options} --rule {rule} --report columns.html", "--quiet")
    call(f"tamis screen {options} --report screen.html", "--quiet")
    call(f"tamis train {options} --method fixed-subset --save model.tamis --report train.html", "--quiet")
    labels = pd.read_csv(f"{kind}.csv", sep=None, engine="python")[label].to_numpy()
    for name in ("recommend", "run", "columns", "screen", "train"):
        shell, python = lines_of(folder / f"{name}.html")
        assert shell.startswith(f"tamis {name} {kind}.csv"), shell
        call(shell, "--quiet")
        if name == "run" or (python and kind == "words"):
            frame = pd.read_csv(f"{kind}.csv").filter(like="_")  # the columns of the counts
            X, y = (np.asarray(frame), labels) if name == "train" else (frame, labels)
            exec(python, {"X": X, "y": y, "X_held": X, "y_held": y})
