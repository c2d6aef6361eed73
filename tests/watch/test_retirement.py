"""Columns that can be switched off: the bound, the sets, and the command."""

import json

import numpy as np
import pytest
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from threadpoolctl import threadpool_info, threadpool_limits

from tamis.cli import main
from tamis.errors import DataError
from tamis.watch import loss_bound, retire


def drifting(seed, n=4000, d=6):
    rng = np.random.default_rng([58, seed])
    X = rng.normal(size=(n, d))
    weights = np.where((np.arange(n) < n // 2)[:, None], [1.5, 1.0, 0.2, 0, 0, 0], [1.5, 0.2, 1.0, 0, 0, 0])
    return X, ((X * weights).sum(axis=1) + 0.5 * rng.logistic(size=n) > 0).astype(int)


def test_the_bound_holds_at_all_rows_of_drifting_losses():
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng([59, seed])
        rates = 0.05 + 0.1 * np.sin(np.arange(3000) / rng.uniform(100, 1000)) ** 2
        worse, better = rng.random(3000) < rates, rng.random(3000) < 0.05
        truth = np.cumsum(rates - 0.05) / np.arange(1, 3001)
        wrong += bool((loss_bound(worse.astype(float) - better) < truth).any())
    assert wrong <= 10


def test_the_bound_shrinks_and_grows_with_its_probability():
    d = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=5000, p=[0.05, 0.9, 0.05])
    assert loss_bound(d)[-1] < 0.25 * loss_bound(d)[200]
    assert (loss_bound(d, 0.01) > loss_bound(d, 0.1)).all()


def test_expensive_columns_of_no_use_are_switched_off():
    X, y = drifting(0, 12_000)
    score = 1 / (1 + np.exp(-(1.5 * X[:, 0] + X[:, 1] + X[:, 2])))
    found = retire(X, y, score, {"0": 1.0, "3": 10.0, "4": 10.0, "5": 1.0}, most=0.08)
    assert {"3", "4", "5"} <= set(found.columns)
    assert found.saving >= 21.0
    assert found.bound <= 0.08
    assert "with 95%, and save" in found.verdict()
    with_model = retire(
        X, y, score, {"3": 1.0}, lambda A: 1 / (1 + np.exp(-(1.5 * A[:, 0] + A[:, 1] + A[:, 2])))
    )
    assert with_model.columns == ["3"]
    assert with_model.candidates[0]["loss"] == 0.0


def test_numbers_and_no_column():
    X, _ = drifting(1)
    y = X[:, 0] + X[:, 1]
    found = retire(X[:, :2], y, y, task="regression", most=0.01)
    assert found.columns == []
    assert found.verdict().startswith("No column")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_trees_are_fitted_on_one_thread(monkeypatch, task):
    """On a busy machine the threads of a small fit wait for one another: four times the processor time."""
    seen = []

    def recording(self, *args, of=BaseHistGradientBoosting.fit):
        seen.append({one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"})
        return of(self, *args)

    monkeypatch.setattr(BaseHistGradientBoosting, "fit", recording)
    X, y = drifting(4, 1000)
    with threadpool_limits(3, "openmp"):
        retire(X[:, :2], y, y, task=task)
    assert len(seen) > 4
    assert seen == [{1}] * len(seen)


def test_what_is_invalid_is_named():
    X, y = drifting(2)
    with pytest.raises(ValueError, match="prices names 'age'"):
        retire(X, y, y, {"age": 1.0})
    with pytest.raises(DataError, match="at least 800 rows, got 100"):
        retire(X[:100], y[:100], y[:100])


def test_the_command_reads_the_log_of_watch(tmp_path, capsys):
    X, y = drifting(3, 6000)
    score = 1 / (1 + np.exp(-(1.5 * X[:, 0] + X[:, 1])))
    lines = ["a,b,c,d,e,f,score,default"]
    lines += [
        ",".join(map(str, [*row.round(3), p, label]))
        for row, p, label in zip(X, score.round(4), y, strict=True)
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, text in (("prices.json", '{"d": 2, "e": 1}'), ("prices.csv", "column,price\nd,2\ne,1\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        words = [
            str(tmp_path / "log.csv"),
            "--label",
            "default",
            "--prediction",
            "score",
            "--most",
            "0.1",
            "--quiet",
        ]
        assert main(["retire", *words, "--prices", str(tmp_path / name), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert sorted(found["columns"]) == ["d", "e"]
        assert found["saving"] == 3.0
    (tmp_path / "prices.csv").write_text("d,2\ne,1\nd,3\n", encoding="utf-8")
    assert main(["retire", *words, "--prices", str(tmp_path / "prices.csv")]) == 2
    assert "two prices of d" in capsys.readouterr().err
    (tmp_path / "prices.csv").write_text("age,2\n", encoding="utf-8")
    assert main(["retire", *words, "--prices", str(tmp_path / "prices.csv")]) == 2
    assert "--prices names age, which is not a column" in capsys.readouterr().err
