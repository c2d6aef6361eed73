"""What the pictures share: their size, their grey and where a legend stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

Draw = Callable[[], Figure]
GREY = "0.55"


def panels(n: int = 1, height: float = 2.6, **options: Any) -> tuple[Figure, Any]:
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    return plt.subplots(1, n, figsize=(6.2, height), layout="constrained", **options)


def legend_beside(axes: Any) -> None:
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
