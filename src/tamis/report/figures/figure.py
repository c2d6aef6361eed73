"""What all figures of a page have: caption and legend around a chart, axes that begin and end well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tamis.report.figures.thinning import Column, Numbers
from tamis.report.page.number_format import count, scientific

__all__ = ["course", "figure", "limits", "rows_label"]


def figure(caption: str, legend: Sequence[tuple[str, str, str]], chart: str, kind: str) -> str:
    """Return a figure; a legend has style class, path and label (HTML) of each sample."""
    items = "".join(
        f'<li><svg aria-hidden="true"><path class="{style}" d="{sample}"/></svg>{label}</li>'
        for style, sample, label in legend
    )
    listing = f'<ul class="legend">{items}</ul>' if items else ""
    head = f"<figcaption>{caption}</figcaption>{listing}"
    return f'<figure class="{kind}">{head}<div class="frame">{chart}</div></figure>'


def limits(*columns: Column, within: tuple[float, float] | None = None) -> tuple[float, float]:
    """Return where an axis begins and ends that shows all values with some room around them."""
    values = np.concatenate([np.asarray(column, np.float64) for column in columns])
    values = values[np.isfinite(values)]
    if not len(values):
        return within or (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    room = max(0.06 * (high - low), 0.02 * max(abs(low), abs(high)))
    bottom, top = within or (-np.inf, np.inf)
    return max(low - room, bottom), min(high + room, top)


def course(values: Numbers) -> str:
    """Return in words how a line goes."""
    there = values[np.isfinite(values)]
    if not len(there):
        return "no values"
    low, high, last = (scientific(float(value)) for value in (there.min(), there.max(), there[-1]))
    return f"between {low} and {high}, {last} at the end"


def rows_label(last: float) -> Callable[[float], str]:
    """Return how numbers of rows are written on an axis that ends at `last`."""
    return _millions if last >= 2e6 else count


def _millions(value: float) -> str:
    return f"{value / 1e6:g} M" if value else "0"
