"""The report of a watch: the strips show the shares, each alert is a point and a sentence."""

import numpy as np
import pytest

from tamis import Watch
from tamis.report.charts.chart import HeatStrip, Points

NAMES = ["<b>age</b>", "income", "debt", "noise"]


def test_the_verdict_names_the_feature_that_is_no_longer_relevant(watch):
    [alert] = [alert for alert in watch.alerts_ if alert["feature"]]
    said = f"The model relies on 1 feature no longer relevant: {alert['feature']} since row"
    assert watch.verdict().startswith(said)
    assert f"accuracy is {watch.performance()['accuracy']:.3f}" in watch.verdict()
    assert watch.report().index("The model relies on") < watch.report().index("<section")
    assert Watch().verdict() == "No rows have arrived."


@pytest.fixture(scope="module")
def watch():
    """The label depends on age and income, from row 2,000 on on debt and income; the predictions stay."""
    X = np.random.default_rng(0).normal(size=(6000, 4))
    y = np.where(np.arange(6000) < 2000, X[:, 0] + X[:, 1] > 0, X[:, 2] + X[:, 1] > 0)
    watch = Watch(
        feature_names=NAMES,
        rules=['state("*") == "used but no longer relevant"', "accuracy drops by more than 0.1"],
    )
    for i in range(0, 6000, 100):
        watch.update(X[i : i + 100], predictions=X[i : i + 100, 0] + X[i : i + 100, 1] > 0, y=y[i : i + 100])
    return watch


def test_strips_are_the_shares_over_the_rows(watch):
    [chart] = watch.charts()
    [strip] = [mark for mark in chart.marks if isinstance(mark, HeatStrip)]
    history = watch.history()
    assert strip.pixels.shape == (8, len(history["row"]))
    order = [NAMES.index(name) for name in chart.rows[::2]]
    assert chart.rows[1::2] == [""] * 4
    assert order[0] == 0  # the feature with an alert
    for row, name in enumerate(("relevance", "reliance")):
        opacity = strip.palette[strip.pixels[row::2].T, 3] / 255
        expected = history[name][:, order] / history[name].max()
        np.testing.assert_allclose(opacity, expected, atol=0.02)
    assert history["relevance"][-1, 0] < 0.05 < 0.3 < history["relevance"][15, 0]
    assert (strip.low, strip.high) == (0, 6000)


def test_each_alert_of_a_feature_is_a_point_at_its_row(watch):
    [chart] = watch.charts()
    [points] = [mark for mark in chart.marks if isinstance(mark, Points)]
    [alert] = [alert for alert in watch.alerts_ if alert["feature"]]
    assert points.x.tolist() == [alert["row"]]
    assert points.y.tolist() == [0.5]
    assert len(watch.alerts_) == 2


def test_the_page_has_each_alert_with_its_sentence_and_escapes_names(watch):
    page = watch.report(title="Watch of <i>log</i>", command="tamis watch log.csv")
    for alert in watch.alerts_:
        sentence = alert["message"].replace("'", "&#39;").replace('"', "&#34;")
        assert sentence.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "<b>age" not in page
    assert "<i>log" not in page
    assert "tamis watch log.csv" in page


def test_a_watch_without_rows_has_a_page():
    page = Watch().report()
    assert "No rows have arrived" in page
    assert "No rule has raised an alert" in page


def test_the_figure_has_the_same_rows(watch):
    pytest.importorskip("matplotlib")
    [axes] = watch.plot().axes
    assert len(axes.get_yticklabels()) == 8
    assert len(axes.images) == 1
