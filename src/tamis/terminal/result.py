"""A finished run: its metrics, and the features selected over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.terminal.characters import (
    MARKS,
    WIDEST,
    error_text,
    figure_text,
    interval_text,
    printable,
    shades,
    width_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tamis.evaluate import PrequentialResult

__all__ = ["chosen_features", "chosen_steps", "feature_map", "show_result"]


_PARTS = {
    "select": "selector", "learn": "learner", "predict": "prediction", "baselines": "baselines", "read": "reading",
    "compile": "compilation", "other": "rest",
}  # fmt: skip
_N_LISTED = 16  # features in the final table


def show_result(
    console: Console,
    result: PrequentialResult,
    title: str,
    detail: str,
    event: tuple[int, str] | None = None,
) -> None:
    """Print the result of a run: its metrics, and the features selected over time.

    Parameters
    ----------
    console : rich.console.Console
    result : PrequentialResult
    title, detail : str
        Title and settings of the run.
    event : (int, str), optional
        A step and its event.
    """
    from rich.text import Text

    console.print(Text(title, style="bold", no_wrap=True, overflow="ellipsis"))
    console.print(Text(detail, style="dim", no_wrap=True, overflow="ellipsis"))
    if note := result.dependence_note():
        console.print(Text(note, style="dim"))
    console.print()
    if note := result.threshold_note():
        console.print(Text(note))
        console.print()
    for remark in result.remarks():
        console.print(Text(remark, style="yellow"))
    if result.remarks():
        console.print()
    console.print(_numbers(result))
    chosen = chosen_features(result, _N_LISTED)
    if chosen:
        console.print()
        console.print(feature_map(console, result, chosen, event))
        n_ever = len(set(result.frames["changes"]["feature"].tolist()))
        if n_ever > len(chosen):
            console.print(
                Text(f"  and {n_ever - len(chosen):,} more that were selected for less time", style="dim")
            )


def _numbers(result: PrequentialResult) -> Table:
    from rich.table import Table

    steps, total = result.frames["steps"], result.summary()
    options = result.options
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=19)
    grid.add_column(justify="right", style="bold", no_wrap=True, min_width=9)
    grid.add_column(style="dim", no_wrap=True, overflow="ellipsis")
    for name, label in ({**_RANKING, **_MEASURES} if result.is_imbalanced else _MEASURES).items():
        if name not in total or (name in _OPTIONAL and not math.isfinite(total[name])):
            continue
        as_text = error_text if name.endswith("mae") else figure_text
        recent = float(steps[f"{name}_windowed"][-1])
        note = f"last {min(options.window, int(total['n_rows'])):,} rows {as_text(recent)}"
        if name.startswith("frozen_"):
            note += f", after {options.frozen_after:,} rows (L1)"
        if name == "average_precision" and result.is_imbalanced:
            note += f", at random {1.0 - total['majority_accuracy']:.3f}"
        if name.startswith("random_"):
            n_draws, spread = (
                options.n_draws,
                "random_auc_spread" if name.endswith("auc") else "random_spread",
            )
            note += f", {n_draws} draw{'s' * (n_draws != 1)}, ± {as_text(total[spread]).strip()}"
        grid.add_row(f"  {label}", as_text(total[name]), note)
    for name in result.settings.get("metrics", ()):
        latest = error_text(float(steps[f"{name}_windowed"][-1]))
        grid.add_row(
            f"  {name}",
            error_text(total[name]),
            f"last {min(options.window, int(total['n_rows'])):,} rows {latest}",
        )
    if math.isfinite(total["selection_accuracy"]):
        note = f"{total['rsr']:.0%} of the relevant selected, {total['cucp']:.0%} of the rest unselected"
        grid.add_row("  selection accuracy", figure_text(total["selection_accuracy"]), note)
    if math.isfinite(total["stability"]):
        recent = float(steps["stability"][-1])
        interval = interval_text(float(steps["stability_low"][-1]), float(steps["stability_high"][-1]))
        n_compared = min(options.stability_window, int(total["n_steps"]))
        note = f"last {n_compared} selections {figure_text(recent)}{interval}"
        grid.add_row("  stability", figure_text(total["stability"]), note)
        grid.add_row("  changes", f"{total['n_changes']:,.0f}", f"in {total['n_steps']:,.0f} selections")
    if race := result.settings.get("comparison"):
        grid.add_row("  candidate", race["followed"][-1], _course(race))
    parts = [f"{name} {total[f'seconds_{key}']:.2f}" for key, name in _PARTS.items()]
    grid.add_row("  seconds", f"{total['seconds_run']:.2f}", ", ".join(parts[:3]))
    grid.add_row("", "", ", ".join(parts[3:5]))
    grid.add_row("", "", ", ".join(parts[5:]))
    grid.add_row("  rows", f"{total['n_rows']:,.0f}", f"{total['rows_per_second']:,.0f} a second")
    return grid


def _course(race: dict[str, Any]) -> str:
    """Return the candidates of a race that were selected longest, and the number of switches."""
    longest = ", ".join(
        f"{candidate} {share:.0%}" for candidate, share in list(race["share"].items())[:2] if share > 0
    )
    n = race["n_switches"]
    return f"{longest} of the rows, {n} change{'s' * (n != 1)}"


_RANKING = {
    "average_precision": "average precision",
    "auc": "AUC",
    "frozen_auc": "  frozen selection",
    "random_auc": "  random subsets",
    "all_auc": "  every feature",
    "recall_at_precision": "recall at prec. .9",
}
_MEASURES = {
    "accuracy": "accuracy",
    "frozen_accuracy": "  frozen selection",
    "random_accuracy": "  random subsets",
    "all_accuracy": "  every feature",
    "majority_accuracy": "  majority class",
    "no_change_accuracy": "  no-change",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "kappa",
    "macro_auc": "macro AUC",
    **_RANKING,
    "mae": "mean abs. error",
    "frozen_mae": "  frozen selection",
    "random_mae": "  random subsets",
    "all_mae": "  every feature",
    "mean_mae": "  mean so far",
    "last_mae": "  last target",
    "r2": "R²",
}
_OPTIONAL = {
    "frozen_accuracy", "random_accuracy", "all_accuracy", "auc", "frozen_auc", "random_auc", "all_auc",
    "average_precision", "recall_at_precision", "macro_auc", "frozen_mae", "random_mae", "all_mae",
}  # fmt: skip


def chosen_features(result: PrequentialResult, n: int) -> list[int]:
    """Return at most `n` features: those selected at the end first, then those selected for the longest time."""
    changes, n_steps = result.frames["changes"], len(result.frames["steps"]["step"])
    left = n_steps - np.searchsorted(result.frames["steps"]["step"], changes["step"])
    chosen = np.zeros(result.n_features)
    np.add.at(chosen, changes["feature"], np.where(changes["event"] == "enter", left, -left))
    last = np.isin(np.array(result.feature_names, dtype=object), result.selected())
    order = np.lexsort((-chosen, ~last))[:n]
    return [int(j) for j in order if chosen[j] > 0]


def chosen_steps(result: PrequentialResult, feature: int) -> NDArray[np.bool_]:
    """Return the steps at which a feature was selected, shape (n_steps,)."""
    changes, steps = result.frames["changes"], result.frames["steps"]["step"]
    of_feature = changes["feature"] == feature
    turns = np.zeros(len(steps) + 1, dtype=np.int8)
    at = np.searchsorted(steps, changes["step"][of_feature])
    np.add.at(turns, at, np.where(changes["event"][of_feature] == "enter", 1, -1))
    output: NDArray[np.bool_] = np.cumsum(turns[:-1]).astype(bool)
    return output


def feature_map(
    console: Console, result: PrequentialResult, features: list[int], event: tuple[int, str] | None = None
) -> Table:
    """Return a strip of the steps at which each feature was selected, and the share of these steps.

    With an `event` there are two shares: before it and after it.
    """
    from rich.table import Table
    from rich.text import Text

    names, last = result.feature_names, set(result.selected())
    ascii_only = console.options.ascii_only
    dot, ring = MARKS[ascii_only]
    width = min(console.width, WIDEST)
    widest = width_of((names[j] for j in features), max(width - 50, 10))
    split = None if event is None else event[0]
    shares = ["chosen"] if split is None else ["before", "after"]
    strip = max(width - widest - 7 - 9 * len(shares), 8)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", width=3, justify="right", no_wrap=True)
    table.add_column("", width=widest, no_wrap=True, overflow="ellipsis")
    table.add_column(
        _strip_heading(strip, event, len(result.frames["steps"]["step"])), width=strip, no_wrap=True
    )
    for share in shares:
        table.add_column(share, width=6, justify="right", no_wrap=True)
    for j in features:
        steps, is_last = chosen_steps(result, j), names[j] in last
        parts = [steps] if split is None else [steps[:split], steps[split:]]
        table.add_row(
            Text(dot if is_last else ring, style="green" if is_last else "dim"),
            Text(printable(names[j]), style="" if is_last else "dim"),
            Text(shades(steps, strip, ascii_only), style="cyan" if is_last else "dim"),
            *(Text(f"{part.mean():.0%}" if part.size else "-", style="dim") for part in parts),
        )
    return table


def _strip_heading(width: int, event: tuple[int, str] | None, n_steps: int) -> str:
    if event is None:
        return "over time"
    at, words = -(-width * event[0] // max(n_steps, 1)), event[1]  # the first cell not before it
    left = f"{words} |".rjust(at + 1)
    return (" " * at + f"| {words}") if at + len(words) + 2 <= width or len(left) > width else left
