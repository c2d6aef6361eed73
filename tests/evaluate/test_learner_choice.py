"""The learner of a run where none is named: the best of three on the first rows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.cli import main
from tamis.errors import DataError
from tamis.evaluate.candidates import LEARNERS, FirstRows, choose_learner
from tamis.streams.stream import ArrayStream


def rows(n: int = 1500, p: int = 4) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, p))


@pytest.mark.parametrize(
    ("best", "label"),
    [
        ("adaptive-random-forest", lambda X: X[:, 0] * X[:, 1] > 0),
        ("naive-bayes", lambda X: (X**2).sum(axis=1) > 3.4),  # a sphere: a variance of each class
        ("perceptron", lambda X: X[:, ::2].sum(axis=1) > X[:, 1::2].sum(axis=1)),
        (LEARNERS[-1], lambda X: np.sin(3 * X[:, 0]) + np.sin(3 * X[:, 1]) > 0),  # many steps of two columns
    ],
)
def test_the_learner_that_suits_the_labels_is_chosen(best, label):
    X = rows(p=12 if best == "perceptron" else 4)
    if best == "perceptron":  # pairs of columns that hardly differ: none tells anything by itself
        X[:, 1::2] = X[:, ::2] + 0.5 * X[:, 1::2]
    choice = choose_learner((X, label(X)))
    assert choice.name == best
    assert set(choice.scores) == set(LEARNERS)
    assert choice.scores[best] == max(choice.scores.values())
    assert choice.n_rows == 1500
    assert choice.sentence().startswith(
        f"Learner: {best}, accuracy {choice.scores[best]:.3f} on the first 1,500 rows"
    )


def test_a_learner_that_cannot_be_the_best_any_more_is_stopped():
    X = rows(2000)
    first = FirstRows(ArrayStream(X, X[:, 0] * X[:, 1] > 0), 2000)
    whole, stopped = (first.run("logistic", most_errors=most) for most in (math.inf, 300))
    assert whole.rows.sum() == 1900
    assert stopped.losses @ stopped.rows > 300 >= stopped.losses[:-1] @ stopped.rows[:-1]
    assert stopped.losses.tolist() == whole.losses[: len(stopped.losses)].tolist()
    choice = choose_learner((X, X[:, 0] * X[:, 1] > 0))
    assert choice.name == "adaptive-random-forest"
    assert choice.scores["perceptron"] < choice.scores["adaptive-random-forest"]


def test_only_the_first_rows_are_read():
    X = rows(6000)
    y = np.where(np.arange(6000) < 2000, X[:, 0] * X[:, 1] > 0, X[:, 0] > 0)
    choice = choose_learner((X, y))
    assert (choice.n_rows, choice.name) == (2000, "adaptive-random-forest")
    assert choose_learner((X, y), max_rows=500).n_rows == 500


@pytest.mark.parametrize("wait", [50, 10**6])
def test_values_that_are_delayed_are_missing_when_learners_are_compared(wait):
    X = rows()
    stream = ArrayStream(X, X[:, 0] * X[:, 1] > 0, ["a", "b", "c", "d"])
    on_time, late = (choose_learner(one) for one in (stream, stream.with_delayed_features({"a": wait})))
    assert on_time.scores["adaptive-random-forest"] > 0.8
    assert 0.4 < late.scores["adaptive-random-forest"] < 0.6


def test_a_learner_is_chosen_where_values_are_missing():
    X = rows()
    y = X[:, 0] * X[:, 1] > 0
    X[::5, 2] = np.nan
    choice = choose_learner((X, y))
    assert choice.name == "adaptive-random-forest"
    assert {"nb", "logistic"} < set(choice.scores)


def test_where_a_class_is_rare_average_precision_decides_and_200_rows_of_it_are_waited_for():
    rng = np.random.default_rng(0)
    X = rows(12_000)
    y = (rng.random(12_000) < 0.02).astype(int)
    X[y == 1, 0] += 2.0
    choice = choose_learner((X, y))
    assert choice.measure == "average precision"
    assert 9_000 < choice.n_rows < 11_000
    assert choice.scores["naive-bayes"] > 0.1
    assert "the rare class has 1.91% of the rows" in choice.sentence()


def test_sparse_rows_are_tried_with_learners_that_take_them():
    X = sp.random(800, 300, 0.05, format="csr", random_state=0)
    choice = choose_learner(
        (X, np.asarray(X[:, :150].sum(axis=1)).ravel() > np.asarray(X[:, 150:].sum(axis=1)).ravel())
    )
    assert set(choice.scores) == {"logistic", "perceptron", "lightgbm"} & set(LEARNERS)


@pytest.mark.parametrize(("n", "why"), [(60, "60 rows"), (300, "one class in its first 300 rows")])
def test_what_no_learner_can_be_chosen_by_is_refused(n, why):
    with pytest.raises(DataError, match=why):
        choose_learner((rows(n), np.zeros(n)))


def test_run_chooses_a_learner_where_none_is_named_and_the_printed_command_names_it(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    X = rows(1200)
    table = np.column_stack([X, X[:, 0] * X[:, 1] > 0])
    np.savetxt("signs.csv", table, delimiter=",", header="a,b,c,d,y", comments="", fmt="%.5f")
    line = ["run", "signs.csv", "--label", "y", "--json"]
    assert main(line) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["settings"]["learner"]["class"].endswith("AdaptiveRandomForest")
    assert "Learner: adaptive-random-forest" in printed.err
    assert main([*line, "--learner", "logistic", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["settings"]["learner"]["class"].endswith("SGDLogisticRegression")
    assert "Learner:" not in printed.err


def test_boosting_selects_its_features_where_it_is_chosen(tmp_path, capsys, monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.chdir(tmp_path)
    X = rows(1500, 6)
    table = np.column_stack([X, np.sin(3 * X[:, 0]) + np.sin(3 * X[:, 1]) > 0])
    np.savetxt("waves.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="", fmt="%.5f")
    line = ["run", "waves.csv", "--label", "y", "--baselines", "none", "--json"]
    assert main(line) == 0
    printed = capsys.readouterr()
    assert "Learner: lightgbm" in printed.err
    result = json.loads(printed.out)
    assert result["settings"]["selector"] is None
    assert set(result["selected"]) == {"a", "b"}
    for words in (["--selector", "auto"], ["--select", "3"]):
        assert main([*line, *words, "--max-rows", "600"]) == 0
        settings = json.loads(capsys.readouterr().out)["settings"]
        assert settings["selector"]["class"].endswith("Auto")
        assert settings["learner"]["params"]["features"] == "all"


def test_naive_bayes_counts_categories_where_there_are_some():
    """A class has the odd codes: no line or bell curve over the codes separates them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 1500), rng.normal(size=1500)]).astype(float)
    y = (X[:, 0] % 2 == 1) ^ (rng.random(1500) < 0.1)
    stream = ArrayStream(X, y)
    stream.categorical = [0]
    choice = choose_learner(stream)
    assert "naive-bayes" not in choice.scores
    assert choice.scores["nb"] > 0.85 > 0.7 > choose_learner((X, y)).scores["naive-bayes"]
