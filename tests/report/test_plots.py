import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tamis import FisherScore, prequential
from tamis.report.charts.chart import HeatStrip, Line
from tests.report.runs import ELECTRICITY, make_run, with_truth

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
TITLES = ["Accuracy", "Stability", "Features selected", "Score"]


def heat_strip(run):
    """Return the pixels of the map of the selection."""
    [chart] = [chart for chart in run.charts() if chart.key == "map"]
    return next(mark for mark in chart.marks if isinstance(mark, HeatStrip))


def drawn(run):
    """Return the figure and its pixels: everything in it has really been drawn."""
    figure = run.plot()
    file = io.BytesIO()
    figure.savefig(file, format="rgba", dpi=50)
    width, height = (int(n) for n in figure.get_size_inches() * 50)
    return figure, np.frombuffer(file.getvalue(), np.uint8).reshape(height, width, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        make_run(450, 8, 4, ELECTRICITY),
        make_run(1),
        make_run(30, 1, 1),
        make_run(20, 5, 2, ["$", "_a", "$x^{$", "", "é" * 300], churn=1.0),
        make_run(50, 500, 50),
    ],
    ids=["usual", "one step", "one feature", "odd names", "wide"],
)
def test_every_run_can_be_drawn(run):
    figure, pixels = drawn(run)
    shown = [axes.get_title(loc="left") for axes in figure.axes]
    is_stable = np.isfinite(run.frames["steps"]["stability"]).any()
    assert shown == [title for title in TITLES if is_stable or title != "Stability"]
    assert (pixels[:, :, :3] < 200).any()


def test_a_run_with_a_rare_class_begins_with_the_auc(rng):
    X = rng.normal(size=(1500, 4))
    rare = X[:, 1] + 0.3 * rng.normal(size=1500) > 1.7
    run = prequential((X, rare.astype(int)), FisherScore(1), baselines="both")
    assert run.is_imbalanced
    auc = run.plot().axes[0]
    assert auc.get_title(loc="left") == "AUC"
    recent, whole, *baselines = auc.get_lines()
    np.testing.assert_array_equal(recent.get_ydata(), run.frames["steps"]["auc_windowed"])
    np.testing.assert_array_equal(whole.get_ydata(), run.frames["steps"]["auc_cumulative"])
    shown = [line.get_ydata() for line in baselines]
    for name, drawn in zip(("frozen", "random", "all"), shown, strict=True):
        np.testing.assert_array_equal(drawn, run.frames["steps"][f"{name}_auc_windowed"])


@pytest.mark.slow
def test_lines_and_map_show_the_run():
    run = make_run(300, 8, 4)
    figure, _ = drawn(run)
    accuracy, stability, kept, score = figure.axes
    recent, whole, majority, no_change, frozen = accuracy.get_lines()
    np.testing.assert_array_equal(frozen.get_ydata(), run.frames["steps"]["frozen_accuracy_windowed"])
    assert (majority.get_ydata() == 0.575).all()
    np.testing.assert_array_equal(no_change.get_ydata(), run.frames["steps"]["no_change_accuracy_windowed"])
    np.testing.assert_array_equal(whole.get_ydata(), run.frames["steps"]["accuracy_cumulative"])
    np.testing.assert_array_equal(recent.get_xdata(), run.frames["steps"]["n_seen"])
    np.testing.assert_array_equal(stability.get_lines()[0].get_ydata(), run.frames["steps"]["stability"])
    shown, strip = run.history.map(), heat_strip(run)
    np.testing.assert_array_equal(kept.get_images()[0].get_array(), strip.palette[strip.pixels])
    assert [label.get_text() for label in kept.get_yticklabels()] == shown.names
    [scores] = [chart for chart in run.charts() if chart.key == "sco"]
    assert [line.get_label() for line in score.get_lines()] == [
        f"{line.name} {line.note}" for line in scores.marks if isinstance(line, Line)
    ]


def test_truth_lies_under_the_map_and_drifts_across_all():
    run = with_truth(make_run(100, 8, 3))
    figure, _ = drawn(run)
    strip = heat_strip(run)
    np.testing.assert_array_equal(figure.axes[2].get_images()[0].get_array(), strip.palette[strip.pixels])
    [at] = run.settings["drifts"]
    for axes in figure.axes:
        assert any(set(line.get_xdata()) == {at} for line in axes.get_lines())


def test_legends_lie_beside_the_lines():
    figure, _ = drawn(make_run(100, 8, 4, ["a very long name of a feature, much too long"] * 8))
    for axes in figure.axes:
        if axes.get_legend() is not None:
            assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
            assert axes.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_figure_is_not_left_open_in_pyplot():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    drawn(make_run(10))
    assert plt.get_fignums() == before


@pytest.mark.slow
def test_report_needs_no_matplotlib_and_plot_says_what_brings_it():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tests.report.runs import make_run\n"
        "assert len(make_run(20).report()) > 20_000\n"
        "try: make_run(20).plot()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "A plot needs matplotlib: pip install 'tamis[plots]'.\n"


def test_a_run_without_a_step_has_nothing_to_draw():
    with pytest.raises(ValueError, match="has no chart: No batch was predicted"):
        make_run(0).plot()
