"""What is looked at shows itself: one line in a shell, a few lines of HTML in a notebook, and nothing is fetched."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis.base import html_repr
from tamis.catalog import CATALOG
from tamis.columns.generators import Chain, Columns, Logs, Originals, explore
from tamis.drift import ADWIN, DDM, ECDD, HDDMA, HDDMW
from tamis.evaluate import detections, preq_cv_stability, prequential, recovery, run_experiment
from tamis.streams import ArrayStream
from tamis.streams.files import open_table
from tamis.streams.profile import profile_table

ODD = ["<script>alert(1)</script>", "a" * 500, "&", '"']


def check(thing):
    """Return what it shows, having looked at it."""
    html, line = thing._repr_html_(), repr(thing)
    assert not re.search(r"<script|https?:|src=|url\(|\bon\w+=", html)
    assert len(html) < 30_000  # a chart has its style
    assert "\n" not in line
    assert len(line) < 400
    assert " object at 0x" not in line
    return html


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    return rng.normal(size=(400, 4)) + 2 * y[:, None], y


def test_a_run_a_stream_and_a_session(rows):
    X, y = rows
    stream = ArrayStream(X, y, ODD)
    assert "&lt;script&gt;" in check(stream)
    result = prequential(stream, tamis.FIRES(n_features_to_select=2), GaussianNB())
    shown = check(result)
    for text in ("Accuracy", "random subsets", "Features selected", "2 of 4", "300 rows", "The selection"):
        assert text in shown
    session = tamis.IFC2F(cost=0.01, random_state=0).fit(X, y).open()
    assert repr(session).startswith("Session(next ")
    session.observe(3.0)
    assert "paid 0.01" in check(session)


def test_a_comparison_its_tables_and_tests(rows, tmp_path):
    grid = {name: (name, {"n_rows": 400}) for name in ("SEA", "STAGGER")}
    methods = {"<b>": "mi", "fires": "fires"}
    found = run_experiment(grid, methods, {"nb": "naive-bayes"}, 1, n_features_to_select=2, baselines="none")
    for shown in (check(found), check_html(found.table("accuracy"))):
        assert "&lt;b&gt;" in shown
        assert "STAGGER" in shown
    tests = found.compare("accuracy")
    assert "mean rank" in check_html(tests)
    assert repr(tests).startswith("accuracy on SEA, STAGGER")
    assert repr(found.table("accuracy")).splitlines()[0].split() == ["accuracy", "<b>", "fires"]
    assert tests.plot().axes
    assert found.plot().axes


def check_html(thing):
    html = thing._repr_html_()
    assert not re.search(r"<script|https?:|src=", html)
    return html


def test_detectors_generators_and_recipes(rows):
    for detector in (ADWIN(), DDM(), ECDD(), HDDMA(), HDDMW()):
        detector.update(0.0)
        assert repr(detector) == f"{type(detector).__name__}(n_seen=1, in_warning=False)"
        assert "1 value since the last drift" in check(detector)
    X, y = rows
    stream = Chain(Originals(X), Logs(np.exp(X)))
    assert repr(Columns(X)) == "Columns(400 rows, 4 columns)"
    assert repr(Originals(X)) == "Originals(Columns(400 rows, 4 columns))"
    selector = tamis.AlphaInvesting(model="logistic").fit_stream(stream, y)
    assert repr(stream.recipes(selector)).startswith("Recipes(")
    check(stream.recipes(selector))


def test_what_was_bought_and_what_a_drift_cost(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=ODD)
    model = tamis.IFC2F(cost=0.001, random_state=0).fit(frame, np.array(["<i>", "b"])[y])
    bought = model.acquire(X[0])
    assert "paid" in repr(bought)
    shown = check(bought)
    assert "likeliest class then" in shown
    assert "<i>" not in shown
    assert "30 rows" in check(detections(drifts=[1000, 2000], detected=[400, 1030, 1700]))
    assert "back after" in check(recovery(np.arange(100), np.r_[np.ones(50), 0.0, np.ones(49)], drifts=[50]))
    assert "Pearson" in check(preq_cv_stability((X, y), tamis.TScore(2), n_folds=3))


def test_a_screen_a_search_and_a_look(rows, tmp_path):
    X, y = rows
    screening = tamis.Screening(1, scores=["mi", "t"])
    assert "Screening" in screening._repr_html_()  # its parameters
    shown = check(screening.fit(pd.DataFrame(X, columns=ODD), y))
    assert "<th>mi_pvalue</th>" in shown
    assert "&lt;script&gt;" in shown
    assert screening._repr_mimebundle_()["text/html"] == shown
    found = explore(tamis.AlphaInvesting(model="logistic"), Originals(X), y)
    assert "candidates selected" in check(found)
    (tmp_path / "a.csv").write_text("<b>,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    look = check(profile_table(open_table(str(tmp_path / "a.csv")), label="y"))
    assert "&lt;b&gt;" in look
    assert "40 rows profiled" in look


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.key)
def test_every_method_shows_itself(entry):
    made = entry.load()(**dict(entry.parameters))
    assert entry.name in repr(made)
    if isinstance(made, BaseEstimator):
        html = made._repr_html_()
        assert entry.name in html
        assert not re.search(r"""<(script|img|link)[^>]*(src|href)=["']?https?:""", html)


def test_long_tables_and_texts_are_cut():
    numbers = {f"x{j}": ["y" * 100] for j in range(500)}
    html = html_repr("Thing", ["z" * 1000], numbers)
    assert "and 480 more" in html
    assert len(html) < 4000
