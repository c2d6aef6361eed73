"""A recommendation is the fewest columns within one standard error of the best, in the honest order."""

from __future__ import annotations

import html
import json
import shlex

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

from tamis import FIRES, FisherScore, ForwardPartialCorrelation, prequential, recommend
from tamis.cli import main
from tamis.errors import DataError
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
    assert "smallest subset within one standard error" in found.reason


def test_random_subsets_are_those_of_the_baseline(found):
    names = {one.selector for one in found.contestants if one.selector.startswith("random-")}
    assert names == {"random-0", "random-1", "random-2"}
    assert len({one.accuracy for one in found.contestants if one.selector.startswith("random-")}) > 5
    assert RandomSubset(2, random_state=0).fit(*copies(50)).get_support().sum() == 2


def test_noise_is_not_sold_as_a_selection():
    rng = np.random.default_rng(1)
    nothing = recommend(
        (rng.normal(size=(1500, 10)), rng.integers(0, 2, 1500)), learner="logistic", max_rows=1500
    )
    assert nothing.best.accuracy < 0.56
    assert "random subset" in nothing.reason or nothing.chosen.selector == "all"


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
    assert found.chosen.accuracy > dict(found.curve()["random"])[2] + 0.1  # by accuracy both have .97
    assert sum(found.chosen.rows) <= y.sum()
    assert repr(found).endswith(f"AUC {found.chosen.accuracy:.3f})")
    fitted = {"forward": ForwardPartialCorrelation, "fires": FIRES, "fisher": FisherScore}[
        found.chosen.selector
    ]
    run = prequential((X, labels), fitted(found.chosen.size), GaussianNB(), n_draws=1).summary()
    assert found.ranking == {name: run[name] for name in found.ranking}
    assert f"average precision {run['average_precision']:.3f} (0.03" in found.ranking_note()
    assert "Decision threshold of 'fraud': probability" in found.ranking_note()


def test_the_knee_is_within_one_standard_error_of_the_best():
    rows, base = np.full(50, 100), np.tile([0.1, 0.2], 25)
    best = Contestant("logistic", "forward", 20, 0.85, base, rows)
    near = Contestant(
        "logistic", "fires", 5, 0.849, base + np.tile([0.03, 0.03, -0.03, -0.028], 13)[:50], rows
    )
    far = Contestant("logistic", "fisher", 2, 0.80, base + 0.05, rows)
    every = Contestant("logistic", "all", 40, 0.80, base + 0.05, rows)
    gap, error = near.behind(best)
    assert 0 < gap < error
    assert _judge([best, near, far, every], 5000, 40, 0.5).chosen is near
    assert _judge([best, far, every], 5000, 40, 0.5).chosen is best
    assert (
        "All features"
        in _judge([far, Contestant("logistic", "all", 40, 0.9, base, rows)], 5000, 40, 0.5).reason
    )


def arm(selector, size, errors, learner="logistic"):
    rows = np.full(50, 100)
    return Contestant(learner, selector, size, 1.0 - float(np.mean(errors)), np.asarray(errors), rows)


NOISE = np.tile([0.01, -0.01], 25)


def test_the_reason_says_how_many_columns_and_beside_what():
    best, one = arm("forward", 9, 0.2 + NOISE), arm("fires", 1, 0.2002 - NOISE)
    far, draw = arm("fisher", 1, np.full(50, 0.4)), arm("random-0", 1, np.full(50, 0.4))
    assert _judge([best, one, far, draw], 5000, 40, 0.5).reason == (
        "The smallest subset within one standard error of the best accuracy, 0.800 (forward, 9), has 1 of 40 columns."
    )
    assert _judge([best, far, draw], 5000, 40, 0.5).reason == (
        "The smallest subset within one standard error of the best accuracy has 9 of 40 columns."
    )


def test_only_draws_of_the_same_size_and_learner_speak_against_a_selection():
    best = arm("forward", 5, 0.2 + NOISE)
    others = [arm("random-0", 6, 0.2 - NOISE), arm("random-1", 5, 0.2 - NOISE, "naive-bayes")]
    assert "random" not in _judge([best, *others], 5000, 40, 0.5).reason
    assert _judge([best, *others, arm("random-2", 5, 0.2 - NOISE)], 5000, 40, 0.5).reason.endswith(
        " But random subsets of that size are as accurate: the selection has no advantage."
    )


def test_of_arms_of_one_size_the_more_accurate_is_chosen_and_one_at_the_error_counts():
    best, worse = arm("forward", 3, 0.2 + NOISE), arm("fires", 3, 0.2001 - NOISE)
    assert _judge([worse, best], 5000, 40, 0.5).chosen is best
    even = arm("fisher", 2, best.errors.copy())  # no gap and no error
    assert _judge([best, even], 5000, 40, 0.5).chosen is even
    other = arm("fires", 1, 0.2001 - NOISE, "naive-bayes")  # what another learner says does not count
    assert _judge([best, other], 5000, 40, 0.5).chosen is best


@pytest.mark.parametrize(("max_rows", "n_rows"), [(100, 100), (250, 250), (400, 400), (1000, 400)])
def test_so_many_rows_are_read_and_no_more(max_rows, n_rows):
    X, y = copies(400)
    shares = []
    found = recommend((X, y), learner="logistic", max_rows=max_rows, n_draws=1, on_progress=shares.append)
    assert found.n_rows == n_rows
    # Whole blocks are judged, after the first.
    assert {one.rows.sum() for one in found.contestants} == {n_rows // 100 * 100 - 10}
    assert shares == [min(at, n_rows) / max_rows for at in range(100, n_rows + 100, 100)]
    assert {one.selector for one in found.contestants if one.selector.startswith("random")} == {"random-0"}
    assert found.as_dict()["n_features"] == 20


def test_sparse_rows_take_the_linear_learner():
    X, y = copies(400)
    assert recommend((sp.csr_matrix(X), y), max_rows=400).chosen.learner == "logistic"


def test_streams_that_tell_nothing_are_refused():
    X, y = copies(200)
    with pytest.raises(DataError, match="one class"):
        recommend((X, np.zeros(200, dtype=int)))
    with pytest.raises(DataError, match="The stream has 99 rows: a recommendation needs at least 100"):
        recommend((X[:99], y[:99]))
    with pytest.raises(ValueError, match="learner"):
        recommend((X, y), learner="forest")


def test_where_a_class_is_rare_it_says_that_accuracy_tells_little():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 6)), (rng.random(2000) < 0.01).astype(int)
    X[y == 1, 0] += 1.5
    found = recommend((X[:450], y[:450]), learner="naive-bayes")
    assert found.majority == 1.0 - y[:450].mean()
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
    assert "random" in out
    assert "every column" in out
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
    assert found.arguments().endswith("--learner lightgbm")
    assert {one.learner for one in found.contestants} == {"lightgbm"}
    forest = recommend((X, y), learner="adaptive-random-forest", n_draws=1)
    assert [one.accuracy for one in found.contestants] == [one.accuracy for one in forest.contestants]
    assert found.best.accuracy > 0.7
    for name, message in (
        ("lightgbm-regressor", "predicts numbers"),
        ("lightgmb", "did you mean 'lightgbm'"),
    ):
        with pytest.raises(ValueError, match=message):
            recommend((X, y), learner=name)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_frozen_selection_is_compared_from_the_row_at_which_it_was_made(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20)) * (rng.random((4000, 20)) < 0.5)
    y = X[:, 3] - X[:, 8] > 0
    given = sp.csr_matrix(X) if sparse else X
    found = recommend((given, y), learner="logistic", n_draws=1)
    frozen = [one for one in found.contestants if one.selector == "frozen"]
    assert all(one.rows[: 1100 // 100 - 1].sum() == 0 and one.rows[-1] == 100 for one in frozen)
    assert dict(found.curve()["frozen"])[2] > 0.85
    assert "frozen after 1,000 rows (L1) is as accurate" in found.reason  # nothing changes here
    assert found.chosen.selector != "frozen"
    short = recommend((given, y), learner="logistic", n_draws=1, max_rows=1000)
    assert "frozen" not in short.curve()


def test_a_frozen_selection_loses_where_the_relevant_columns_change():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 20))
    y = np.where(np.arange(5000) < 1500, X[:, 3], X[:, 12]) > 0
    found = recommend((X, y), learner="naive-bayes", n_draws=1)
    assert "frozen" not in found.reason
    assert found.best.accuracy > dict(found.curve()["frozen"])[1] + 0.1


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
    result = recommend(frame, label="state", learner="naive-bayes", n_draws=1)
    assert result.n_rows == 600
    assert "With naive-bayes" in result.report()
    with pytest.raises(DataError, match="label='stat' is not a column: did you mean 'state'"):
        recommend(frame, label="stat")


def test_a_stream_that_is_of_one_class_for_too_long_has_no_recommendation():
    X = np.random.default_rng(0).normal(size=(700, 3))
    with pytest.raises(DataError, match=r"^No rows arrived after those that began the comparison"):
        recommend((X, (np.arange(700) == 690).astype(int)), learner="naive-bayes")
