"""A recommendation is the fewest columns that are as good as the best, evaluated test-then-train."""

from __future__ import annotations

import dataclasses
import html
import json
import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

from tamis import (
    FIRES,
    Auto,
    FisherScore,
    ForwardPartialCorrelation,
    Refit,
    prequential,
    recommend,
    recommend_by_target,
)
from tamis.catalog import find_learner
from tamis.cli import main
from tamis.errors import DataError
from tamis.evaluate.candidates import Candidate, paired
from tamis.evaluate.recommendation import Recommendation, TargetsRecommendation, _smallest


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
    assert found.chosen.size == 2
    assert found.chosen.selector in ("forward", "fires")
    assert found.chosen.score > found.figures["random_accuracy"] + 0.1
    assert found.chosen.score > found.all_score + 0.03
    assert "smallest set that is behind the best accuracy" in found.reason


def test_noise_is_not_sold_as_a_selection():
    rng = np.random.default_rng(1)
    nothing = recommend(
        (rng.normal(size=(1500, 10)), rng.integers(0, 2, 1500)), learner="logistic", max_rows=1500
    )
    assert nothing.best.score < 0.56
    assert "majority-class baseline is as accurate" in nothing.reason


def test_lightgbm_is_compared_with_its_own_selection():
    pytest.importorskip("lightgbm")
    X, y = copies(700)
    found = recommend((X, y), learner="lightgbm", n_draws=1)
    assert [one.selector for one in found.candidates] == ["none", "auto", "few"]
    few = found.candidates[-1]
    assert few.words() == "--features few --learner lightgbm"
    run = prequential((X, y), None, Refit("lightgbm", features="few"), baselines="none")
    assert few.score == run.summary()["accuracy"]
    assert few.size == len(run.selected())


@pytest.mark.slow
def test_where_a_class_is_rare_auc_is_compared():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.03).astype(int)
    X = rng.normal(size=(4000, 30))
    X[:, [7, 20]] += y[:, None]
    labels = np.where(y, "fraud", "no")
    found = recommend((X, labels), learner="naive-bayes")
    assert found.measure == "auc"
    assert found.chosen.size in (2, 3)
    assert "rows, so accuracy is uninformative" in found.reason
    assert found.chosen.score > found.figures["random_auc"] + 0.1  # by accuracy both have .97
    assert repr(found).endswith(f"AUC {found.chosen.score:.3f})")
    selectors = {"forward": ForwardPartialCorrelation, "fires": FIRES, "fisher": FisherScore}
    by_auto = Auto(learner="naive-bayes")
    chosen = selectors.get(found.chosen.selector, lambda: by_auto)(**found.chosen.assigned)
    run = prequential((X, labels), chosen, GaussianNB(), max_rows=found.n_rows).summary()
    assert found.figures["average_precision"] == run["average_precision"]
    assert f"verage precision {run['average_precision']:.3f} (0.03" in found.figures_note()
    assert "Decision threshold of 'fraud': probability" in found.figures_note()


def candidate(selector, size, losses, learner="logistic"):
    losses = np.asarray(losses)
    rows = np.full(len(losses), 100)
    assigned = {} if selector == "none" else {"n_features_to_select": size}
    return Candidate(learner, selector, assigned, size, 1.0 - float(losses.mean()), losses, rows, None, None)


NOISE = np.tile([0.01, -0.01], 25)


def shuffled(values):
    """Return these values for 50 blocks, in an order without memory."""
    return np.random.default_rng(0).permutation(np.tile(values, 13)[:50])


def test_the_smallest_behind_the_best_by_at_most_the_tolerance_with_one_standard_error_is_chosen():
    best = candidate("forward", 20, 0.15 + NOISE)
    near = candidate("fires", 5, best.losses + shuffled([0.03, 0.03, -0.03, -0.028]))
    far = candidate("fisher", 2, best.losses + 0.05)
    every = candidate("none", 40, best.losses + 0.05)
    gap, error = (values[1] for values in paired([best, near]).behind(in_order="error"))
    assert 0 < gap < error
    assert _smallest([best, near, far, every]) == (best, near)
    assert _smallest([best, far, every]) == (best, best)
    # Too few rows to know.
    wide = candidate("fires", 5, best.losses + shuffled([0.09, 0.09, -0.09, -0.084]))
    gap, error = (values[1] for values in paired([best, wide]).behind(in_order="error"))
    assert gap < 0.01 < gap + error
    assert _smallest([best, wide]) == (best, best)
    assert _smallest([best, wide], scale=10.0) == (best, wide)  # of losses that are ten times as large


def test_a_lucky_candidate_does_not_change_the_learner():
    every = candidate("none", 40, 0.15 + NOISE)
    other = candidate("none", 40, 0.17 + NOISE, "naive-bayes")
    lucky = candidate("fires", 2, 0.149 + np.tile([0.05, -0.05, -0.05, 0.05], 13)[:50], "naive-bayes")
    assert _smallest([every, other, lucky]) == (every, every)
    better = candidate("fires", 2, 0.12 - NOISE, "naive-bayes")
    assert _smallest([every, other, better]) == (better, better)


@pytest.mark.parametrize(("n_errors", "is_ahead"), [(2.2, False), (2.5, True)])
def test_of_eight_blocks_a_lead_of_two_standard_errors_is_within_the_interval(n_errors, is_ahead):
    ahead = np.array([0.01, -0.01, -0.01, 0.01, 0.01, -0.01, -0.01, 0.01])
    ahead += n_errors * ahead.std(ddof=1) / np.sqrt(8)
    every = candidate("none", 40, np.full(8, 0.15))
    other = candidate("none", 40, np.full(8, 0.17), "naive-bayes")
    best = candidate("fires", 2, 0.15 - ahead, "naive-bayes")
    chosen = best if is_ahead else every
    assert _smallest([every, other, best]) == (chosen, chosen)


def test_of_candidates_of_one_size_the_better_is_chosen_and_one_at_the_error_counts():
    best, worse = candidate("forward", 3, 0.2 + NOISE), candidate("fires", 3, 0.2001 - NOISE)
    assert _smallest([worse, best])[1] is best
    even = candidate("fisher", 2, best.losses.copy())  # no gap and no error
    assert _smallest([best, even])[1] is even
    other = candidate("fires", 1, 0.2001 - NOISE, "naive-bayes")  # another learner does not count
    assert _smallest([best, other])[1] is best


@pytest.mark.parametrize(
    "kind", ["balanced", "rare", "few rows", "categories", "missing", "sorted", "many classes", "numbers"]
)
def test_the_figures_are_those_of_the_printed_command(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(len(kind))
    n = 230 if kind == "few rows" else 2600
    X = rng.normal(size=(n, 9))
    signal = X[:, 1] - X[:, 4] + 0.8 * rng.normal(size=n)
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    frame["y"] = signal > (2.4 if kind == "rare" else 0)
    if kind == "many classes":
        frame["y"] = np.digitize(signal, [-1.5, 0, 0.5, 2])
    if kind == "categories":
        frame["town"] = np.where(signal + rng.normal(size=n) > 0, "Rome", rng.choice(["Oslo", "Bern"], n))
    if kind == "missing":
        frame = frame.mask(np.column_stack([rng.random((n, 9)) < 0.1, np.zeros(n, bool)]))
    if kind == "sorted":
        frame = frame.iloc[np.argsort(frame["y"], kind="stable")]
    if kind == "numbers":
        frame["y"] = 100.0 * signal
    name, options = ("t.parquet", []) if kind in ("rare", "missing") else ("t.csv", [])
    frame.to_parquet(name) if name.endswith("parquet") else frame.to_csv(name, index=False)
    if kind == "missing":
        options = ["--missing", "mean"]
    if kind == "numbers":
        options = ["--task", "regression"]
    max_rows = ["--max-rows", "1500"] if kind == "balanced" else []
    assert main(["recommend", name, "--label", "y", *options, *max_rows, "--json", "--quiet"]) == 0
    printed = json.loads(capsys.readouterr().out)
    command = [*shlex.split(printed["command"])[1:], "--max-rows", str(printed["n_rows"])]
    assert main([*command, "--json", "--quiet"]) == 0
    run = json.loads(capsys.readouterr().out)
    totals = run["summary"]
    assert totals[printed["measure"]] == printed["chosen"]["score"]
    beside = ("mean", "last") if kind == "numbers" else ("majority", "no_change")
    for name in (*beside, "random", "frozen", "all"):
        figure = f"{name}_{'mae' if kind == 'numbers' else 'accuracy'}"
        assert totals[figure] == printed["figures"][figure], figure
    every = [*command[:3], *command[3 : command.index("--selector")], "--selector", "none"]
    every += ["--learner", printed["chosen"]["learner"], "--max-rows", str(printed["n_rows"])]
    assert main([*every, "--json", "--quiet"]) == 0
    everything = json.loads(capsys.readouterr().out)["summary"][printed["measure"]]
    beside = printed["figures"][f"all_{printed['measure']}"]
    if printed["chosen"]["selector"] != "none":  # all columns have no baselines
        assert everything == pytest.approx(beside, rel=1e-9)


@pytest.mark.parametrize(("max_rows", "n_rows"), [(200, 200), (250, 250), (400, 400), (1000, 400)])
def test_so_many_rows_are_read_and_no_more(max_rows, n_rows):
    X, y = copies(400)
    shares = []
    found = recommend((X, y), learner="logistic", max_rows=max_rows, n_draws=1, on_progress=shares.append)
    assert found.n_rows == n_rows
    assert {one.rows.sum() for one in found.candidates} <= {n_rows - 100}
    assert shares == sorted(shares)
    assert shares[-1:] in ([], [1.0])
    assert found.to_dict()["n_features"] == 20


def test_sparse_rows_take_the_linear_learner():
    X, y = copies(400)
    assert recommend((sp.csr_matrix(X), y), max_rows=400).chosen.learner == "logistic"


def test_streams_that_tell_nothing_are_refused():
    X, y = copies(200)
    with pytest.raises(DataError, match="one class"):
        recommend((X, np.zeros(200, dtype=int)))
    with pytest.raises(DataError, match="The stream has 199 rows: a recommendation needs at least 200"):
        recommend((X[:199], y[:199]))
    with pytest.raises(ValueError, match="learner"):
        recommend((X, y), learner="forest")


def test_where_a_class_is_rare_it_says_that_accuracy_tells_little():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 6)), (rng.random(2000) < 0.01).astype(int)
    X[y == 1, 0] += 1.5
    found = recommend((X[:450], y[:450]), learner="naive-bayes")
    assert found.measure == "auc"
    assert "AUC is compared: the rarer class has 7 of 450 rows" in found.reason


@pytest.mark.slow
def test_of_a_rare_class_200_rows_are_waited_for():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12_000, 4)), (rng.random(12_000) < 0.02).astype(int)
    X[y == 1, 0] += 1.5
    found = recommend((X, y), learner="naive-bayes")
    assert found.n_rows == 100 * int(np.ceil((np.flatnonzero(y)[199] + 1) / 100))
    assert found.chosen.selector != "all"
    assert recommend((X, y), learner="naive-bayes", max_rows=3000).n_rows == 3000


def test_accuracy_tells_nothing_where_a_class_is_nearly_always_right():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    assert "right as often" not in recommend((X, X[:, 0] > 0), learner="naive-bayes").reason


def test_the_command_ends_in_a_line_that_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = copies(600)
    head = ",".join([*(f"x{j}" for j in range(20)), "y"])
    np.savetxt("my file.csv", np.column_stack([X, y]), delimiter=",", header=head, comments="")
    line = ["recommend", "my file.csv", "--label", "y", "--learner", "naive-bayes", "--quiet"]
    assert main([*line, "--report", "which.html"]) == 0
    out = capsys.readouterr().out
    assert "random subsets" in " ".join(out.split())
    assert "all columns" in " ".join(out.split())
    command = next(one for one in out.splitlines() if one.startswith("tamis run"))
    page = (tmp_path / "which.html").read_text(encoding="utf-8")
    assert "Accuracy" in page
    assert f"<code>{command}</code>" in html.unescape(page)  # of the file that was read, to be copied
    assert page.count("<svg") >= 1
    assert main([*shlex.split(command)[1:], "--quiet", "--baselines", "none"]) == 0
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["command"] == command
    assert set(told["curves"]) == {"naive-bayes"}
    assert main([*line[:4], "--max-rows", "5"]) == 2
    capsys.readouterr()
    holes = ["x1,x2,note_1,y", *(f"{'' if i == 9 else X[i, 0]};{X[i, 6]};a;{int(y[i])}" for i in range(600))]
    (tmp_path / "holes.csv").write_text("\n".join(holes).replace(",", ";"))
    options = ["--label", "y", "--drop", "note_*", "--missing", "mean", "--delimiter", ";"]
    assert main(["recommend", "holes.csv", *options, "--learner", "naive-bayes", "--quiet"]) == 0
    command = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("tamis run"))
    assert main([*shlex.split(command)[1:], "--quiet", "--baselines", "none"]) == 0


def test_a_name_of_the_catalogue_is_proxied_by_its_kind_and_recommended():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    y = X[:, 2] * X[:, 5] > 0  # no linear model, and no naive Bayes
    found = recommend((X, y), learner="lightgbm", n_draws=1)
    assert found.arguments().endswith("--learner lightgbm --n-draws 1")
    assert {one.learner for one in found.candidates} == {"lightgbm"}
    run = prequential(
        (X, y), None, find_learner("lightgbm").load()("lightgbm", random_state=0), max_rows=1500
    )
    assert found.all_score == pytest.approx(run.summary()["accuracy"], abs=1e-12)
    assert found.best.score > 0.7
    with pytest.raises(ValueError, match="did you mean 'lightgbm'"):
        recommend((X, y), learner="lightgmb")


@pytest.mark.parametrize("sparse", [False, True])
def test_the_frozen_selection_of_the_run_is_named(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20)) * (rng.random((4000, 20)) < 0.5)
    y = X[:, 3] - X[:, 8] > 0
    given = sp.csr_matrix(X) if sparse else X
    found = recommend((given, y), learner="logistic", n_draws=1)
    assert found.figures["frozen_accuracy"] > 0.85
    assert found.arguments().endswith("--n-draws 1")


def test_a_frozen_selection_loses_where_the_relevant_columns_change():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 20))
    y = np.where(np.arange(5000) < 1500, X[:, 3], X[:, 12]) > 0
    found = recommend((X, y), learner="naive-bayes", n_draws=1)
    assert not any("frozen" in remark for remark in found.run_remarks)
    assert found.best.score > found.figures["frozen_accuracy"] + 0.1


def test_autocorrelated_rows_are_stated_and_the_no_change_baseline_where_it_is_better():
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 2, 100), rng.integers(5, 15, 100))[:600]
    reason = recommend((rng.normal(size=(600, 3)), y), learner="naive-bayes").reason
    assert "Rows are autocorrelated: 600 rows count as " in reason
    assert f"repeats the previous label, reaches {np.mean(y[1:] == y[:-1]):.3f}" in reason
    shuffled = recommend((rng.normal(size=(600, 3)), rng.permutation(y)), learner="naive-bayes")
    assert "autocorrelated" not in shuffled.reason


def test_a_frame_with_text_and_missing_values_is_accepted():
    X, y = copies(600)
    frame = (
        pd.DataFrame(X).rename(columns="x{}".format).assign(country=np.where(np.arange(600) % 3, "FR", None))
    )
    frame.loc[::7, "x3"] = np.nan
    frame["state"] = np.where(y, "on", "off")
    result = recommend(frame, label="state", learner="nb", n_draws=1)
    assert result.n_rows == 600
    assert "with nb" in result.report()
    with pytest.raises(DataError, match="label='stat' is not a column: did you mean 'state'"):
        recommend(frame, label="stat")


def test_numbers_are_compared_by_their_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 10))
    y = 5.0 * (2 * X[:, 3] - X[:, 5]) + rng.normal(size=1500)
    found = recommend((X, y), task="regression", n_draws=1)
    assert (found.measure, found.chosen.size) == ("mae", 2)
    assert found.best.score == min(one.score for one in found.candidates)
    assert found.chosen.score < 0.5 * min(found.figures["random_mae"], found.figures["mean_mae"])
    assert f"mean absolute error {found.chosen.score:.2f}"[:22] in found.verdict()
    assert recommend((X, y), learner="least-squares", n_draws=1).measure == "mae"
    with pytest.raises(ValueError, match=r"learner='logistic' predicts classes: .*task='regression'"):
        recommend((X, y), task="regression", learner="logistic")
    with pytest.raises(ValueError, match=r"learner='least-squares' predicts numbers"):
        recommend((X, y > 0), task="classification", learner="least-squares")
    with pytest.raises(DataError, match=r"choose task='regression'"):
        recommend((X, y))
    with pytest.raises(DataError, match="have the same target"):
        recommend((X, np.ones(1500)), task="regression")


def test_the_shared_candidate_is_the_smallest_union_behind_the_best_mean_over_targets():
    def run(*names):
        return SimpleNamespace(selected=lambda: list(names), feature_names=list("abcdefgh"))

    def target(small, losses, scale=1.0):
        everything = dataclasses.replace(candidate("none", 8, 0.2 * scale + NOISE), run=run())
        auto = dataclasses.replace(candidate("auto", len(small), losses), assigned={}, run=run(*small))
        own = dataclasses.replace(candidate("fires", 1, everything.losses), run=run("a"))
        own.assigned["n_features_to_select"] = ord(small[-1])  # so no fixed candidate is common
        return Recommendation(own, own, [everything, auto, own], {}, {}, 5000, 8, "", scale=scale)

    waves = np.tile([0.03, 0.03, -0.03, -0.028], 13)[:50]
    good, bad = 0.2 + NOISE, 0.25 + waves
    same = {"hot": target("ab", good), "dry": target("bc", good)}
    both = TargetsRecommendation(same)
    assert {one.selector for one in both.chosen.values()} == {"auto"}
    assert (both.price, both.selected()) == (3, ["a", "b", "c"])
    assert both.commands() == ["tamis run FILE --label hot --label dry --selector auto --learner logistic"]
    # One target loses .05, so .025 in the mean; in units of a target of numbers it may be little.
    assert TargetsRecommendation({**same, "dry": target("bc", bad)}).chosen["hot"].selector == "none"
    assert (
        TargetsRecommendation({**same, "dry": target("bc", 2.05 + waves, 10.0)}).chosen["hot"].selector
        == "auto"
    )


def test_targets_of_classes_and_of_numbers_get_a_command_each(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 6)).round(2), columns=list("abcdef"))
    frame["hot"], frame["dry"] = frame.a + frame.b > 0, np.where(frame.b > frame.c, "yes", "no")
    frame.to_csv(path := tmp_path / "weather.csv", index=False)
    words = [
        "recommend",
        str(path),
        "--label",
        "hot",
        "--label",
        "dry",
        "--learner",
        "nb",
        "--n-draws",
        "1",
        "-q",
    ]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["targets"] == ["hot", "dry"]
    assert set(document["by_target"]) == {"hot", "dry"}
    assert document["price"] == len(document["selected"]) <= 6
    (command,) = document["commands"]
    assert command.startswith(f"tamis run {path} --label hot --label dry --selector")
    assert main([*shlex.split(command)[1:], "-q", "--json", "--baselines", "none"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["selected"] == document["selected"]
    assert {name: one["shared"]["score"] for name, one in document["by_target"].items()} == {
        name: one["summary"]["accuracy"] for name, one in again["by_target"].items()
    }
    found = recommend_by_target(frame, labels=["hot", "dry"], learner="nb", n_draws=1)
    assert found.commands()[0].removeprefix("tamis run FILE") == command.removeprefix(f"tamis run {path}")
    assert "Which selector for 2 targets?" in str(found.report())
