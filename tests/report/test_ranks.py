"""The critical-difference diagram: everything is where its rank says, in both drawings, whatever the names are."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET

import matplotlib.pyplot
import numpy as np
import pytest

from tamis.evaluate.significance import nemenyi
from tamis.report.charts.ranks import draw_ranks, plot_ranks

SCORES = np.random.default_rng(4).normal(size=(10, 7)) + 0.6 * np.arange(7)
NAMES = ["<script>", "$x_1$", "a name " * 20, "d", "e", "f", "特徴"]


def places(axes):
    """Return the rank that each method's line meets the axis at, read off the drawing by its ticks."""
    ticks = {text.get_text(): text.get_position()[0] for text in axes.texts if text.get_text().isdigit()}
    per_rank = (ticks["1"] - ticks["7"]) / 6
    elbows = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) == 3]
    return sorted(1 + (ticks["1"] - line[0, 0]) / per_rank for line in elbows), per_rank


def test_lines_bars_and_difference_are_to_scale():
    result = nemenyi(SCORES, NAMES)
    [axes] = plot_ranks(result).axes
    found, per_rank = places(axes)
    np.testing.assert_allclose(found, sorted(result.ranks.values()), atol=1e-9)
    straight = [line for line in axes.lines if len(line.get_xydata()) == 2]
    bars = [line.get_xydata() for line in straight if line.get_linewidth() == pytest.approx(0.72 * 4)]
    widths = sorted((bar[1, 0] - bar[0, 0] - 8) / per_rank for bar in bars)
    ranks = [[result.ranks[name] for name in group] for group in result.groups]
    np.testing.assert_allclose(widths, sorted(max(group) - min(group) for group in ranks), atol=1e-9)
    [rule] = [line.get_xydata() for line in straight if line.get_linewidth() == pytest.approx(0.72 * 2.5)]
    assert (rule[1, 0] - rule[0, 0]) / per_rank == pytest.approx(result.critical_difference)


def test_bars_of_one_level_do_not_touch():
    result = nemenyi(np.tile(np.arange(12.0), (60, 1)))
    [axes] = plot_ranks(result).axes
    bars = [line.get_xydata() for line in axes.lines if line.get_linewidth() == pytest.approx(0.72 * 4)]
    assert len(bars) == len(result.groups) > 5
    for i, one in enumerate(bars):
        for other in bars[:i]:
            assert one[0, 1] != other[0, 1] or one[1, 0] < other[0, 0] or other[1, 0] < one[0, 0]


def test_page_shows_names_and_does_not_run_them():
    svg = draw_ranks(nemenyi(SCORES, NAMES))
    root = ET.fromstring(svg)
    shown = [node.text for node in root.iter("text")]
    assert any("<script>" in one for one in shown)
    assert any("特徴" in one for one in shown)
    assert max(map(len, shown)) < 45
    assert "Critical difference" in root.get("aria-label")
    width, height = (float(part) for part in root.get("viewBox").split()[2:])
    points = [float(n) for line in root.iter("polyline") for n in re.findall(r"[\d.]+", line.get("points"))]
    assert min(points) >= 0
    assert max(points[::2]) <= width
    assert max(points[1::2]) <= height


@pytest.mark.parametrize("n_methods", [2, 3, 30])
def test_any_number_of_methods(n_methods):
    table = np.random.default_rng(0).normal(size=(5, n_methods))
    result = nemenyi(table)
    assert draw_ranks(result).count("<text") >= n_methods
    assert (
        len([line for line in plot_ranks(result).axes[0].lines if len(line.get_xydata()) == 3]) == n_methods
    )
    assert matplotlib.pyplot.get_fignums() == []


def test_a_notebook_shows_the_diagram_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = plot_ranks(nemenyi(SCORES, [*NAMES[:6], "g"]))._repr_png_()
    assert image.startswith(b"\x89PNG")
