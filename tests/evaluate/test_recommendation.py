"""A recommendation is the fewest columns within one standard error of the best, in the honest order."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.cli import main
from tamis.errors import DataError
from tamis.evaluate import recommend
from tamis.evaluate.recommendation import Contestant, _judge
from tamis.rows import RandomSubset


def copies(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Six copies of one signal, a second one, and noise."""
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(n, 2))
    told = signals[:, [0] * 6 + [1]] + 0.1 * rng.normal(size=(n, 7))
    return np.hstack([told, rng.normal(size=(n, 13))]), signals.sum(axis=1) > 0


@pytest.fixture(scope="module")
def found():
    return recommend(copies(), learner="naive-bayes", max_rows=1500)


def test_two_columns_are_enough_and_beat_random_and_all(found):
    curves = found.curve()
    assert found.chosen.size == 2
    assert found.chosen.selector in ("forward", "fires")
    assert found.chosen.accuracy > dict(curves["random"])[2] + 0.1
    assert found.chosen.accuracy > curves["all"][0][1] + 0.03
    assert "fewest within one standard error" in found.reason


def test_random_subsets_are_those_of_the_baseline(found):
    names = {one.selector for one in found.contestants if one.selector.startswith("random-")}
    assert names == {"random-0", "random-1", "random-2"}
    assert len({one.accuracy for one in found.contestants if one.selector.startswith("random-")}) > 5
    assert RandomSubset(2, random_state=0).fit(*copies(50)).get_support().sum() == 2


def test_noise_is_not_sold_as_a_selection():
    rng = np.random.default_rng(1)
    nothing = recommend(
        (rng.normal(size=(1500, 10)), rng.integers(0, 2, 1500)), learner="perceptron", max_rows=1500
    )
    assert nothing.best.accuracy < 0.56
    assert "random subset" in nothing.reason or nothing.chosen.selector == "all"


def test_the_knee_is_within_one_standard_error_of_the_best():
    rows, base = np.full(50, 100), np.tile([0.1, 0.2], 25)
    best = Contestant("perceptron", "forward", 20, 0.85, base, rows)
    near = Contestant(
        "perceptron", "fires", 5, 0.849, base + np.tile([0.03, 0.03, -0.03, -0.028], 13)[:50], rows
    )
    far = Contestant("perceptron", "fisher", 2, 0.80, base + 0.05, rows)
    every = Contestant("perceptron", "all", 40, 0.80, base + 0.05, rows)
    gap, error = near.behind(best)
    assert 0 < gap < error
    assert _judge([best, near, far, every], 5000, 40).chosen is near
    assert _judge([best, far, every], 5000, 40).chosen is best
    assert (
        "Every column" in _judge([far, Contestant("perceptron", "all", 40, 0.9, base, rows)], 5000, 40).reason
    )


def test_sparse_rows_take_the_perceptron():
    X, y = copies(400)
    assert recommend((sp.csr_matrix(X), y), max_rows=400).chosen.learner == "perceptron"


def test_streams_that_tell_nothing_are_refused():
    X, y = copies(200)
    with pytest.raises(DataError, match="one class"):
        recommend((X, np.zeros(200, dtype=int)))
    with pytest.raises(DataError, match="100 at least"):
        recommend((X[:60], y[:60]))
    with pytest.raises(ValueError, match="learner"):
        recommend((X, y), learner="forest")


def test_the_command_ends_in_a_line_that_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = copies(600)
    head = ",".join([*(f"x{j}" for j in range(20)), "y"])
    np.savetxt("my file.csv", np.column_stack([X, y]), delimiter=",", header=head, comments="")
    line = ["recommend", "my file.csv", "--label", "y", "--learner", "naive-bayes", "--quiet"]
    assert main([*line, "--report", "which.html"]) == 0
    out = capsys.readouterr().out
    assert "random" in out
    assert "every column" in out
    command = next(one for one in out.splitlines() if one.startswith("tamis run"))
    page = (tmp_path / "which.html").read_text(encoding="utf-8")
    assert "Accuracy" in page
    assert page.count("<svg") >= 1
    assert main([*shlex.split(command)[1:], "--quiet", "--baselines", "none"]) == 0
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["command"] == command
    assert set(told["curves"]) == {"naive-bayes"}
    assert main([*line[:4], "--max-rows", "5"]) == 2
