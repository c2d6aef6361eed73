"""The bars of a ranking: one panel a score, the best feature on top, whatever the names and scores."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tamis.report.charts.axes import check_picture, plot_ranking

pytest.importorskip("matplotlib")


def test_bars_are_the_scores_and_an_infinite_one_fills_its_panel():
    names = ["heat", "$price_in_$", "_hidden", "a name that is much longer than any label has room for"]
    scores = {"Fisher score": np.array([np.inf, 2.0, 1.0, 0.0]), "Gini index": np.array([0.4, 0.3, 0.2, 0.1])}
    figure = plot_ranking(names, scores, "80 rows")
    figure.savefig(io.BytesIO())  # draws: a name must not be read as mathematics
    fisher, gini = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(scores)
    assert [bar.get_width() for bar in gini.patches] == scores["Gini index"].tolist()
    assert [bar.get_width() for bar in fisher.patches][1:] == [2.0, 1.0, 0.0]
    assert fisher.patches[0].get_width() == fisher.get_xlim()[1]
    labels = [label.get_text() for label in fisher.get_yticklabels()]
    assert labels[0] == "heat"
    assert max(map(len, labels)) <= 33
    assert fisher.transData.transform((0, 0))[1] > fisher.transData.transform((0, 3))[1]  # the first on top


def test_all_zero_scores_can_be_drawn():
    plot_ranking(["a"], {"T-score": np.zeros(1)}).savefig(io.BytesIO())


@pytest.mark.parametrize("path", ["scores", "scores.jpeg", "a.png.txt"])
def test_formats_that_are_not_known(path):
    with pytest.raises(ValueError, match=r"end its name with \.png, \.svg or \.pdf"):
        check_picture(path)
