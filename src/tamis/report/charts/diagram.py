"""A diagram of lines and texts, for a page as SVG and for a figure with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.report.charts.axes import new_figure
from tamis.report.templates import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


@dataclass
class Diagram:
    """Lines and texts in a frame, in hundredths of an inch from its upper left corner.

    Attributes
    ----------
    title, description : str
        The description is read aloud in place of the picture.
    width, height : float
    lines : list of (list of (float, float), float)
        The points of each line, and its width.
    texts : list of (float, float, str, str, float)
        Place, anchor ("start", "middle" or "end"), words and size.

    Examples
    --------
    >>> Diagram("", "A word.", 60.0, 20.0, texts=[(30.0, 10.0, "middle", "<a>", 13.0)]).svg().count("&lt;a&gt;")
    1
    """

    title: str
    description: str
    width: float
    height: float = 0.0
    lines: list[tuple[list[tuple[float, float]], float]] = field(default_factory=list)
    texts: list[tuple[float, float, str, str, float]] = field(default_factory=list)

    def svg(self) -> str:
        """Return the diagram as SVG, in the colour of the text around it; names are shown, never run."""
        return render("diagram.html.j2", drawing=self)

    def figure(self) -> Figure:
        """Return the diagram as a matplotlib figure, which pyplot does not know.

        Raises
        ------
        ImportError
            If matplotlib is missing; the message names the extra to install.
        """
        figure = new_figure(self.width / 100, self.height / 100)
        # The axes fill it; the constrained layout would warn that it has no grid.
        figure.set_layout_engine("none")
        from matplotlib import rcParams

        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        for points, width in self.lines:
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, color=rcParams["text.color"], linewidth=0.72 * width, solid_capstyle="butt")
        for x, y, anchor, words, size in self.texts:
            escaped = words.replace("$", r"\$")  # matplotlib would typeset it as mathematics
            axes.text(x, y, escaped, ha=_ANCHORS[anchor], va="center", fontsize=0.72 * size)
        return figure
