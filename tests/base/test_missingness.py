"""That a value was recorded is not evidence, although it depends on the class."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import tamis
from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.base.missingness import complete_rows, missingness_of
from tamis.cells.acquisition_result import AcquisitionResult
from tamis.cells.evaluation import compare_classifiers
from tamis.cli import main

METHODS = {
    "adaptive": AdaptiveIFC2F(random_state=0),
    "tree": AdaptiveIFC2F(decision="tree", random_state=0),
    "ensemble": AdaptiveIFC2F(decision="ensemble", random_state=0),
    "etana": ETANA(random_state=0),
    "etana as published": ETANA.published(prior="empirical"),
    "ifc2f": IFC2F(random_state=0),
    "fetana": FETANA(random_state=0, n_iterations=2000),
    "fixed-subset": FixedSubset(),
    "aaco": AACO(random_state=0, n_stored=200),
}


def records(seed=0, n=4000, rates=((0.2,), (0.9,)), shift=0.8, n_columns=4):
    """Return records, the complete rows and the classes; `rates` by class and column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(rates), n)
    X = rng.normal(size=(n, n_columns)) + shift * y[:, None]
    rate = np.array([np.resize(one, n_columns) for one in rates])[y]
    return np.where(rng.random(X.shape) < rate, X, np.nan), X, y


@pytest.mark.filterwarnings("ignore:Which values were recorded")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("adaptive", "tree") else pytest.mark.slow) for n in METHODS]
)
def test_accuracy_is_that_of_complete_rows(name):
    given, X, y = records(rates=((0.2, 0.1, 0.5, 0.2), (0.9, 0.95, 0.8, 0.9)))
    held = slice(2000, None)
    known = METHODS[name].fit(X[:2000], y[:2000]).score(X[held], y[held])
    model = METHODS[name].fit(given[:2000], y[:2000])
    posterior = model.predict_proba(X[held])
    assert model.score(X[held], y[held]) > known - 0.025  # two standard errors of a difference
    assert abs(posterior[:, 1].mean() - y[held].mean()) < 0.05


@pytest.mark.filterwarnings("ignore:Which values were recorded")
def test_three_classes_and_a_column_that_one_class_lacks():
    given, X, y = records(rates=((0.0, 0.3, 0.3), (0.5, 0.4, 0.9), (0.9, 0.9, 0.9)), shift=1.2, n_columns=3)
    model = AdaptiveIFC2F(random_state=0).fit(given[:2000], y[:2000])
    posterior = model.predict_proba(X[2000:])
    np.testing.assert_allclose(posterior.mean(axis=0), np.bincount(y[2000:]) / 2000, atol=0.08)
    assert model.score(X[2000:], y[2000:]) > 0.65


@pytest.mark.parametrize("rates", [((1.0,), (1.0,)), ((0.6,), (0.6,)), ((0.5, 0.9), (0.5, 0.9))])
def test_complete_and_randomly_missing_values_change_no_bit(rates):
    for seed in range(3):
        given, X, y = records(seed, 1200, rates)
        model = AdaptiveIFC2F(random_state=0).fit(given, y)
        plain = AdaptiveIFC2F(random_state=0, missingness="informative").fit(given, y)
        assert model.missingness_ is None
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_what_depends_on_the_class_is_found_and_said(tmp_path):
    given, _, y = records(n=1500, rates=((0.5, 0.2, 0.5, 1.0), (0.5, 0.8, 0.5, 1.0)))
    frame = pd.DataFrame(given, columns=["age", "crp", "heat", "sex"])
    label = np.where(y == 1, "ill", "well")
    said = "an AUC of 0.[78].*: crp was recorded for .*% of the rows of class ill and .*% of those of well"
    with pytest.warns(UserWarning, match=said):
        model = FixedSubset(n_features=3).fit(frame, label)
    assert model.missingness_.columns.tolist() == [1]
    np.testing.assert_allclose(model.missingness_.recorded, [[0.8, 0.2]], atol=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FixedSubset(n_features=3, missingness="informative").fit(frame, label)
    again = tamis.load(tamis.save(model, tmp_path / "model.tamis"))
    assert again.missingness_.auc == model.missingness_.auc
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.filterwarnings("ignore:Which values were recorded")
def test_held_out_figures_are_those_of_complete_rows_and_say_so():
    given, X, y = records(n=4000)
    held = slice(2000, None)
    model = AdaptiveIFC2F(random_state=0).fit(given[:2000], y[:2000])
    result = AcquisitionResult(model, given[:2000], y[:2000], given[held], y[held])
    found = result.to_dict()
    assert found["held_out"]["accuracy"] == pytest.approx(model.score(X[held], y[held]), abs=0.045)
    assert found["held_out"]["mean_cost"] == pytest.approx(model.cost_.mean(), rel=0.25)
    for one in found["held_out"]["baselines"]:
        assert one["accuracy"] < 0.84, one  # .95 from which values were recorded alone
    assert "same class" in found["held_out"]["assumption"]
    assert found["missingness"]["auc"] > 0.95
    assert "AUC" in " ".join(found["remarks"])
    informative = AdaptiveIFC2F(random_state=0, missingness="informative").fit(given[:2000], y[:2000])
    result = AcquisitionResult(informative, given[:2000], y[:2000], given[held], y[held])
    np.testing.assert_array_equal(result.X_held, given[held])
    assert "same reason" in result.to_dict()["held_out"]["assumption"]
    compared = compare_classifiers({"tree": METHODS["tree"]}, lambda rows: given[rows], y)
    assert compared[0].accuracy == pytest.approx(METHODS["tree"].fit(X, y).score(X, y), abs=0.03)


def test_completed_rows_have_the_distribution_of_complete_ones(rng):
    """Means by class, and the correlation within a class, with and without categories."""
    n = 6000
    y = rng.integers(0, 2, n)
    a = rng.normal(size=n) + y
    X = np.column_stack(
        [a, 0.8 * a + 0.6 * rng.normal(size=n), (rng.random(n) < 0.3 + 0.4 * y).astype(float)]
    )
    given = np.where(rng.random(X.shape) < np.where(y == 1, 0.9, 0.3)[:, None], X, np.nan)
    rows, group = complete_rows(given, y, np.array([0, 0, 2]), None, 0)
    assert not np.isnan(rows).any()
    np.testing.assert_array_equal(rows[~np.isnan(given)], given[~np.isnan(given)])
    assert np.isin(rows[:, 2], [0.0, 1.0]).all()
    for c in (0, 1):
        np.testing.assert_allclose(rows[y == c].mean(axis=0), X[y == c].mean(axis=0), atol=0.09)
        correlation = [np.corrcoef(part[y == c, :2].T)[0, 1] for part in (rows, X)]
        assert correlation[0] == pytest.approx(correlation[1], abs=0.12)
    copies = np.repeat(np.arange(n // 2), 2)
    _, group = complete_rows(given, np.repeat(y[: n // 2], 2), np.array([0, 0, 2]), copies, 0)
    assert (group[::2] == group[1::2]).all()


@pytest.mark.parametrize("y", [np.zeros(60, dtype=int), np.arange(60), np.r_[np.zeros(59, dtype=int), 1]])
def test_few_rows_of_a_class_raise_no_error(rng, y):
    X = rng.normal(size=(60, 3))
    X[: len(X) // 2, 0] = np.nan
    n_classes = int(y.max()) + 1
    assert missingness_of(X, y, n_classes) is None or n_classes > 1
    rows, _ = complete_rows(X, y, np.zeros(3, dtype=int), None, 0)
    assert not np.isnan(rows).any()


def test_the_command_reports_it_and_takes_the_word_of_the_user(tmp_path, monkeypatch, capsys):
    given, _, y = records(n=800)
    pd.DataFrame(given, columns=list("abcd")).assign(ill=y).to_csv(tmp_path / "ward.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    common = [
        "train",
        "ward.csv",
        "--label",
        "ill",
        "--method",
        "fixed-subset",
        "--save",
        "m.tamis",
        "--json",
        "--force",
    ]
    assert main(common) == 0
    out, err = capsys.readouterr()
    plain = json.loads(out)
    assert "Warning" not in err
    assert plain["missingness"]["handled_as"] == "uninformative"
    assert set(plain["missingness"]["recorded"]) == set("abcd")
    assert main([*common, "--missingness", "informative"]) == 0
    assert json.loads(capsys.readouterr().out)["missingness"]["handled_as"] == "informative"
    assert main([*common, "--missingness", "guessed"]) == 2
