"""Batches of one row while the last label says something about the next, else of 100; the same after a resume."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import SGDRegressor
from sklearn.naive_bayes import GaussianNB

from tamis import FIRES, prequential
from tamis.cli import main
from tamis.options import RunOptions


def series(n: int = 2000, stay: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Labels that stay the same with this probability in the middle half of the rows, and are independent elsewhere."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    for at in range(n // 4, 3 * n // 4):
        y[at] = y[at - 1] if rng.random() < stay else 1 - y[at - 1]
    return rng.normal(size=(n, 4)) + 0.3 * y[:, None], y


def sizes(result):
    steps = result.frames["steps"]
    return dict(zip(steps["n_seen"].tolist(), steps["n_rows"].tolist(), strict=True))


@pytest.mark.slow
def test_batches_are_small_only_while_labels_are_autocorrelated():
    X, y = series(6000)
    found = sizes(prequential((X, y), None, GaussianNB(), batch_size="auto", auc=False))
    single = [at for at, n in found.items() if n == 1]
    assert set(found.values()) == {1, 100}
    # It takes some hundred rows of the window of 1,000 to notice that the labels have changed.
    assert 1500 < min(single) < 2400
    assert 4500 < max(single) < 5600
    assert len(single) == max(single) - min(single) + 1


def test_independent_rows_give_the_run_in_batches_of_100():
    X, y = series(1500, stay=0.5)
    auto, fixed = (
        prequential((X, y), FIRES(2), GaussianNB(), batch_size=size, baselines="none")
        for size in ("auto", 100)
    )
    assert set(sizes(auto).values()) == {100}
    for name in ("accuracy", "auc", "n_selected", "stability"):
        assert auto.summary()[name] == fixed.summary()[name]


@pytest.mark.slow
def test_a_resumed_run_chooses_the_same_batches(tmp_path):
    X, y = series()

    class Stop(Exception):
        pass

    def stop(step):
        if step.n_seen >= 1000:
            raise Stop

    def run(**more):
        return prequential((X, y), FIRES(2), GaussianNB(), batch_size="auto", baselines="none", **more)

    with pytest.raises(Stop):
        run(checkpoint=tmp_path / "run.tamis", checkpoint_every=1, on_step=stop, on_interrupt="return")
    resumed, whole = run(checkpoint=tmp_path / "run.tamis"), run()
    assert sizes(resumed) == sizes(whole)
    assert resumed.summary()["accuracy"] == whole.summary()["accuracy"]
    assert resumed.selected() == whole.selected()


def test_the_last_label_counts_only_once_it_is_known():
    X, y = series()
    delayed = sizes(prequential((X, y), None, GaussianNB(), batch_size="auto", delay=200, auc=False))
    assert set(delayed.values()) == {100}


def test_numbers_and_wide_rows():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=500))
    X = rng.normal(size=(500, 3))
    assert 1 in sizes(prequential((X, walk), None, SGDRegressor(), batch_size="auto")).values()
    noise = sizes(prequential((X, rng.normal(size=500)), None, SGDRegressor(), batch_size="auto"))
    assert set(noise.values()) == {100}
    wide, y = rng.normal(size=(600, 1001)), np.arange(600) // 50 % 2
    assert 10 in sizes(prequential((wide, y), None, GaussianNB(), batch_size="auto", auc=False)).values()


@pytest.mark.slow
def test_the_option_is_stated_and_refused_as_any_other(tmp_path, capsys, monkeypatch):
    assert RunOptions(batch_size="auto").words() == ["--batch-size", "auto"]
    with pytest.raises(ValueError, match="batch_size must be an integer"):
        RunOptions(batch_size="small")
    monkeypatch.chdir(tmp_path)
    X, y = series(900)
    np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,y", comments="", fmt="%.3f")
    line = ["run", "t.csv", "--label", "y", "--selector", "fires", "--select", "2", "-q"]
    assert main([*line, "--batch-size", "auto"]) == 0
    assert "the batch size chosen by the labels" in " ".join(capsys.readouterr().out.split())
    assert main([*line, "--batch-size", "small"]) == 2
    assert "--batch-size must be a number of rows, or auto, got 'small'" in capsys.readouterr().err
