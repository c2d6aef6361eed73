"""What a run looks like in a terminal: a calm live display, plain lines where nothing can be redrawn, a final table."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from tamis.catalog import Entry
    from tamis.evaluate import PrequentialResult, Step

__all__ = [
    "Watch",
    "chosen_features",
    "chosen_steps",
    "feature_map",
    "show_datasets",
    "show_entries",
    "show_parameters",
    "show_result",
    "show_streams",
]

_WIDEST = 100  # columns: beyond that the eye loses the line
_N_SHOWN = 8  # features in the live display
_N_LISTED = 16  # features in the final table


def bar(fraction: float, width: int, ascii_only: bool = False) -> str:
    """Return a bar as long as the fraction of `width` columns, to an eighth of a column.

    >>> bar(0.5, 8), bar(0.55, 8), bar(2.0, 4), bar(0.5, 8, ascii_only=True)
    ('████', '████▍', '████', '####')
    """
    fraction = min(max(fraction, 0.0), 1.0) if math.isfinite(fraction) else 0.0
    if ascii_only:
        return "#" * round(fraction * width)
    full, rest = divmod(round(fraction * width * 8), 8)
    return "█" * full + " ▏▎▍▌▋▊▉"[rest].strip()


def spark(values: Iterable[float], width: int) -> str:
    """Return the course of the values as a line of little columns, from the lowest value to the highest.

    >>> spark([0.0, 0.5, 1.0, 0.5], 4)
    '▁▅█▅'
    """
    course = np.array([value for value in values if math.isfinite(value)])
    if course.size == 0 or width < 1:
        return ""
    parts = [part.mean() for part in np.array_split(course, min(width, course.size))]
    low, high = min(parts), max(parts)
    step = (high - low) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[min(int(8 * (part - low) / step), 7)] for part in parts)


def duration(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> duration(7.2), duration(83), duration(7325)
    ('0:07', '1:23', '2:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Watch:
    """Shows a run while it goes on; to be called after each step.

    Where the console is a terminal that can redraw lines there is one display that stays in its place and is gone
    afterwards; elsewhere (a pipe, a log file, ``TERM=dumb``) now and then a line is written.

    Parameters
    ----------
    console : rich.console.Console
        Where to show it: standard error, so that standard output stays for results.
    title, detail : str
        What runs, and how.
    window, stability_window : int
        Rows and batches that the windowed numbers speak of.
    names : list of str or None
        Names of the features, to mark the chosen ones.
    n_rows : int or None
        How many rows there will be, if that is known; else the progress is what the step says.
    quiet : bool
        Show nothing.
    """

    def __init__(
        self,
        console: Console,
        title: str,
        detail: str,
        *,
        window: int,
        stability_window: int,
        names: list[str] | None = None,
        n_rows: int | None = None,
        quiet: bool = False,
    ) -> None:
        self.console = console
        self.title, self.detail = title, detail
        self.window, self.stability_window = window, stability_window
        self.names, self.n_rows = names, n_rows
        self._live: Any = None
        self._is_live = console.is_terminal and not console.is_dumb_terminal and not quiet
        self._is_plain = not self._is_live and not quiet
        self._step: Step | None = None
        self._began = self._said = time.monotonic()
        self._first: tuple[float, float, float] | None = (
            None  # time, rows seen and progress at the first step
        )
        self._trend: list[float] = []
        self._stride, self._n_steps = 1, 0
        self._tenth = self._widest = 0
        self.progress: float | None = None
        self.n_seen = 0.0

    def __enter__(self) -> Self:
        if self._is_live:
            from rich.live import Live

            self._live = Live(
                get_renderable=self.display,
                console=self.console,
                refresh_per_second=6,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, where)

    def __call__(self, step: Step) -> None:
        """Take note of a step; the display draws itself."""
        self._step, self.n_seen = step, step.n_seen
        self.progress = min(step.n_seen / self.n_rows, 1.0) if self.n_rows else step.progress
        if self._first is None:
            self._first = (time.monotonic(), step.n_seen, self.progress or 0.0)
            self._said = self._first[0]
        if self._n_steps % self._stride == 0:
            self._remember(step.accuracy_windowed)
        self._n_steps += 1
        if self._is_plain:
            self._say(step)

    def _remember(self, accuracy: float) -> None:
        self._trend.append(accuracy)
        if len(self._trend) >= 1024:  # any length of run in fixed memory
            self._trend, self._stride = self._trend[::2], 2 * self._stride

    def _pace(self) -> tuple[float, float | None]:
        """Return the rows per second, and the seconds left; counted from the first step, when all is compiled."""
        if self._first is None:
            return math.nan, None
        began, seen, progress = self._first
        passed = time.monotonic() - began
        if passed < 0.5 or self.n_seen == seen:
            return math.nan, None
        gained = (self.progress or 0.0) - progress
        left = None if gained <= 0 else passed * (1 - progress - gained) / gained
        return (self.n_seen - seen) / passed, left

    # -- plain lines ---------------------------------------------------------------------------------------

    def _say(self, step: Step) -> None:
        """Write a line at each tenth of the input, but not more than every two seconds nor less than every 30."""
        now = time.monotonic()
        tenth = int(10 * (self.progress or 0.0))
        if now - self._said < (2 if tenth > self._tenth else 30):
            return
        self._said, self._tenth = now, tenth
        rate, left = self._pace()
        parts = [
            f"{self.progress:4.0%}" if self.progress is not None else "",
            f"{step.n_seen:,.0f} rows",
            f"accuracy {_figure(step.accuracy_windowed)}, all {_figure(step.accuracy_cumulative)}",
            f"stability {_figure(step.stability)}",
            f"{duration(left)} left" if left is not None else f"{rate:,.0f} rows/s" if rate == rate else "",
        ]
        self.console.print(
            "  ".join(part for part in parts if part), no_wrap=True, overflow="ellipsis", highlight=False
        )

    # -- the live display ----------------------------------------------------------------------------------

    def display(self) -> Group:
        """Return the display as it is now; its height does not change while the run goes on."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        width = min(self.console.width, _WIDEST) - 4
        head = Text(self.title, style="bold", no_wrap=True, overflow="ellipsis")
        if self._step is None:
            wait = "compiling and reading the first rows; the first run of all takes some seconds longer"
            body: list[RenderableType] = [Text(self._detail_or(wait), style="dim", no_wrap=True)]
        else:
            body = [
                Text(self.detail, style="dim", no_wrap=True, overflow="ellipsis"),
                Text(" "),
                self._figures(self._step, width),
                Text(" "),
                self._features(self._step, width),
                Text(" "),
                self._bottom(width),
            ]
        # Not to the right edge: a terminal shows Ctrl-C as ^C behind the last line, which must not wrap.
        return Group(*(Padding(part, (0, 0, 0, 2), expand=False) for part in [head, *body]))

    def _detail_or(self, wait: str) -> str:
        return self.detail if time.monotonic() - self._began < 1 else wait

    def _figures(self, step: Step, width: int) -> Table:
        from rich.table import Table

        grid = Table.grid(padding=(0, 3, 0, 0))
        grid.add_column(width=9, style="dim", no_wrap=True)
        grid.add_column(width=5, style="bold", no_wrap=True)
        grid.add_column(no_wrap=True, style="dim", overflow="ellipsis")
        grid.add_row(
            "accuracy", _figure(step.accuracy_windowed),
            f"last {self.window:,} rows, {_figure(step.accuracy_cumulative)} since the start",
        )  # fmt: skip
        grid.add_row("", "", self._course(width - 24))
        interval = _interval(step.stability_low, step.stability_high)
        grid.add_row(
            "stability", _figure(step.stability), f"last {self.stability_window} selections{interval}"
        )
        return grid

    def _course(self, width: int) -> Text:
        from rich.text import Text

        trend = [value for value in self._trend if math.isfinite(value)]
        if self.console.options.ascii_only or not trend:
            return Text("")
        ends = f"  {min(trend):.2f} to {max(trend):.2f}"
        return Text.assemble((spark(trend, min(width - len(ends), 48)), "cyan"), (ends, "dim"))

    def _features(self, step: Step, width: int) -> Table:
        chosen = set(step.selected.tolist()) if step.selected is not None else set()
        names = [self.names[j] for j in chosen] if self.names else [f"x{j}" for j in chosen]
        top, most = step.top[:_N_SHOWN], int(0.4 * width)
        self._widest = max(self._widest, _width_of((name for name, _ in top), most))  # never narrower again
        length = width - self._widest - 17
        return _feature_table(top, set(names), self._widest, length, self.console.options.ascii_only)

    def _bottom(self, width: int) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        rate, left = self._pace()
        cells: list[tuple[RenderableType, int]] = [
            (f"{self.n_seen:,.0f} rows", 16),
            (f"{rate:,.0f} rows/s" if rate == rate else "", 14),
        ]
        if self.progress is None:
            cells.append((duration(time.monotonic() - self._began), 12))
        else:
            length = max(width - 63, 8)
            done = ProgressBar(
                total=1.0, completed=self.progress, width=length, complete_style="cyan", finished_style="cyan"
            )
            cells = [(done, length), (f"{self.progress:.0%}", 4), *cells]
            cells.append((f"{duration(left)} left" if left is not None else "", 12))
        grid = Table.grid(padding=(0, 3, 0, 0))
        for cell, size in cells:
            grid.add_column(width=size, no_wrap=True, justify="left" if cell is cells[0][0] else "right")
        grid.add_row(*(cell for cell, _ in cells))
        return grid


def _feature_table(
    top: Iterable[tuple[str, float]], chosen: set[str], widest: int, length: int, ascii_only: bool
) -> Table:
    """Return names, scores and bars; a dot marks the chosen ones."""
    from rich.table import Table
    from rich.text import Text

    rows = list(top)
    highest = max((score for _, score in rows if math.isfinite(score)), default=0.0)
    dot, ring = _MARKS[ascii_only]
    grid = Table.grid(padding=(0, 2, 0, 0))
    for size in (1, widest, 9, length):
        grid.add_column(
            width=size, no_wrap=True, overflow="ellipsis", justify="right" if size == 9 else "left"
        )
    for name, score in rows:
        is_chosen = name in chosen
        share = score / highest if highest > 0 else 0.0
        grid.add_row(
            Text(dot if is_chosen else ring, style="green" if is_chosen else "dim"),
            Text(_printable(name), style="" if is_chosen else "dim"),
            Text(_score(score), style="dim"),
            Text(bar(share, length, ascii_only), style="cyan" if is_chosen else "dim"),
        )
    return grid


_MARKS = {False: ("●", "○"), True: ("*", " ")}  # chosen or not, on a terminal with or without Unicode


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _width_of(names: Iterable[str], most: int) -> int:
    from rich.cells import cell_len

    return min(max((cell_len(_printable(name)) for name in names), default=0), most)


def _figure(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "  -  "


def _score(value: float) -> str:
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.2e}"


def _interval(low: float, high: float) -> str:
    return f", 95 % {low:.2f} to {high:.2f}" if math.isfinite(low) and math.isfinite(high) else ""


# -- the final table -----------------------------------------------------------------------------------


def show_result(
    console: Console,
    result: PrequentialResult,
    title: str,
    detail: str,
    event: tuple[int, str] | None = None,
) -> None:
    """Print what a run came to: its numbers, and the features that were chosen over time.

    Parameters
    ----------
    console : rich.console.Console
    result : PrequentialResult
    title, detail : str
        What was run, and how.
    event : (int, str), optional
        A step and what happened then.
    """
    from rich.text import Text

    console.print(Text(title, style="bold", no_wrap=True, overflow="ellipsis"))
    console.print(Text(detail, style="dim", no_wrap=True, overflow="ellipsis"))
    console.print()
    console.print(_numbers(result))
    chosen = chosen_features(result, _N_LISTED)
    if chosen:
        console.print()
        console.print(feature_map(console, result, chosen, event))
        n_ever = len(set(result.frames["changes"]["feature"].tolist()))
        if n_ever > len(chosen):
            console.print(
                Text(f"  and {n_ever - len(chosen):,} more that were chosen for less time", style="dim")
            )


def _numbers(result: PrequentialResult) -> Table:
    from rich.table import Table

    steps, total = result.frames["steps"], result.summary()
    options = result.settings["options"]
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=19)
    grid.add_column(justify="right", style="bold", no_wrap=True, min_width=9)
    grid.add_column(style="dim", no_wrap=True, overflow="ellipsis")
    for name, label in _MEASURES.items():
        recent = float(steps[f"{name}_windowed"][-1])
        note = f"last {min(options['window'], int(total['n_rows'])):,} rows {_figure(recent)}"
        grid.add_row(f"  {label}", _figure(total[name]), note)
    if math.isfinite(total["selection_accuracy"]):
        note = f"{total['rsr']:.0%} of the relevant kept, {total['cucp']:.0%} of the rest left out"
        grid.add_row("  selection accuracy", _figure(total["selection_accuracy"]), note)
    if math.isfinite(total["stability"]):
        recent = float(steps["stability"][-1])
        interval = _interval(float(steps["stability_low"][-1]), float(steps["stability_high"][-1]))
        n_compared = min(options["stability_window"], int(total["n_steps"]))
        note = f"last {n_compared} selections {_figure(recent)}{interval}"
        grid.add_row("  stability", _figure(total["stability"]), note)
        grid.add_row("  changes", f"{total['n_changes']:,.0f}", f"in {total['n_steps']:,.0f} selections")
    parts = ", ".join(
        f"{name} {total[f'seconds_{key}']:.2f}"
        for key, name in (("select", "selector"), ("learn", "learner"), ("predict", "prediction"))
    )
    grid.add_row("  seconds", f"{total['seconds']:.2f}", parts)
    grid.add_row("  rows", f"{total['n_rows']:,.0f}", f"{total['rows_per_second']:,.0f} a second")
    return grid


_MEASURES = {
    "accuracy": "accuracy",
    "majority_accuracy": "  majority class",
    "no_change_accuracy": "  last label",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "kappa",
}


def chosen_features(result: PrequentialResult, n: int) -> list[int]:
    """Return at most `n` features: those chosen at the end first, then those chosen for the longest time."""
    changes, n_steps = result.frames["changes"], len(result.frames["steps"]["step"])
    left = n_steps - np.searchsorted(result.frames["steps"]["step"], changes["step"])
    chosen = np.zeros(result.n_features)
    np.add.at(chosen, changes["feature"], np.where(changes["event"] == "enter", left, -left))
    last = np.isin(np.array(result.feature_names, dtype=object), result.selected())
    order = np.lexsort((-chosen, ~last))[:n]
    return [int(j) for j in order if chosen[j] > 0]


def chosen_steps(result: PrequentialResult, feature: int) -> NDArray[np.bool_]:
    """Return at which steps a feature was chosen, shape (n_steps,)."""
    changes, steps = result.frames["changes"], result.frames["steps"]["step"]
    of_feature = changes["feature"] == feature
    turns = np.zeros(len(steps) + 1, dtype=np.int8)
    at = np.searchsorted(steps, changes["step"][of_feature])
    np.add.at(turns, at, np.where(changes["event"][of_feature] == "enter", 1, -1))
    found: NDArray[np.bool_] = np.cumsum(turns[:-1]).astype(bool)
    return found


def feature_map(
    console: Console, result: PrequentialResult, features: list[int], event: tuple[int, str] | None = None
) -> Table:
    """Return when each feature was chosen, as a strip from the first step to the last, and for which share.

    With an `event` there are two shares: before it, and from it on.
    """
    from rich.table import Table
    from rich.text import Text

    names, last = result.feature_names, set(result.selected())
    ascii_only = console.options.ascii_only
    dot, ring = _MARKS[ascii_only]
    width = min(console.width, _WIDEST)
    widest = _width_of((names[j] for j in features), max(width - 50, 10))
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
            Text(_printable(names[j]), style="" if is_last else "dim"),
            Text(shades(steps, strip, ascii_only), style="cyan" if is_last else "dim"),
            *(Text(f"{part.mean():.0%}" if part.size else "-", style="dim") for part in parts),
        )
    return table


def shades(chosen: NDArray[np.bool_], width: int, ascii_only: bool = False) -> str:
    """Return a strip that is the darker, the larger the part of that time in which a feature was chosen.

    >>> shades(np.array([False, False, True, True, True, False, True, True]), 4)
    '  █▒█'
    """
    levels = " .:+#" if ascii_only else " ░▒▓█"
    n = chosen.size
    edges = [
        (i * n // width, max((i + 1) * n // width, i * n // width + 1)) for i in range(width if n else 0)
    ]
    return "".join(levels[math.ceil(4 * float(chosen[low:high].mean()))] for low, high in edges)


def _strip_heading(width: int, event: tuple[int, str] | None, n_steps: int) -> str:
    if event is None:
        return "over time"
    at, what = -(-width * event[0] // max(n_steps, 1)), event[1]  # the first cell that begins no earlier
    left = f"{what} |".rjust(at + 1)
    return (" " * at + f"| {what}") if at + len(what) + 2 <= width or len(left) > width else left


# -- the catalogue and the data sets -----------------------------------------------------------------------


def show_entries(console: Console, heading: str, entries: Iterable[Entry]) -> None:
    """Print rows of the catalogue: name, what it does, what it can learn from, who published it."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(heading, style="bold"))
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column()
    for entry in entries:
        can = [
            *entry.targets,
            *(["sparse rows"] if entry.sparse else []),
            *(["mergeable"] if entry.mergeable else []),
        ]
        grid.add_row(f"  {entry.key}", Text(entry.title))
        grid.add_row("", Text(f"{entry.paper}; {', '.join(can)}", style="dim"))
        grid.add_row("", "")
    console.print(grid)


def show_parameters(console: Console, entry: Entry, parameters: Iterable[dict[str, Any]]) -> None:
    """Print what a selector is, and its parameters with their defaults."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"{entry.name} ({entry.key})", style="bold"))
    console.print(Text(f"{entry.title} {entry.paper}."))
    console.print()
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for row in parameters:
        name = "--select" if row["name"] == "n_features_to_select" else row["name"]
        grid.add_row(f"  {name}", str(row["default"]), Text(row["text"], style="dim"))
    console.print(grid)


def show_datasets(console: Console, rows: Iterable[dict[str, Any]], folder: str) -> None:
    """Print the named data sets."""
    from rich.table import Table
    from rich.text import Text

    found = list(rows)
    widest = _width_of((row["name"] for row in found), 24)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("name", style="cyan", no_wrap=True, overflow="ellipsis", width=widest)
    table.add_column("rows", justify="right", no_wrap=True, width=10)
    table.add_column("features", justify="right", no_wrap=True, width=10)
    table.add_column("where", no_wrap=True, width=10)
    table.add_column(
        "licence", style="dim", no_wrap=True, overflow="ellipsis", width=console.width - widest - 38
    )
    for row in found:
        size = [f"{row[key]:,}" if row[key] is not None else "-" for key in ("rows", "features")]
        table.add_row(_printable(row["name"]), *size, _WHERE[row["where"]], Text(row["licence"] or "-"))
    console.print(table)
    console.print(
        Text(f"\nThe folder is {folder}; another one: TAMIS_DATA=folder", style="dim"), soft_wrap=True
    )


def show_streams(console: Console, rows: Iterable[dict[str, Any]]) -> None:
    """Print the streams whose relevant features are known."""
    from rich.table import Table
    from rich.text import Text

    found = list(rows)
    widest = _width_of((row["name"] for row in found), 24)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("made at will", style="cyan", no_wrap=True, overflow="ellipsis", width=max(widest, 12))
    for name, size in (("rows", 8), ("features", 8), ("drifts", 6)):
        table.add_column(name, justify="right", no_wrap=True, width=size)
    rest = console.width - max(widest, 12) - 32
    table.add_column("what decides", style="dim", no_wrap=True, overflow="ellipsis", width=max(rest, 12))
    for row in found:
        numbers = (f"{row[key]:,}" for key in ("n_rows", "n_features", "drifts"))
        table.add_row(_printable(row["name"]), *numbers, Text(row["text"]))
    console.print()
    console.print(table)
    console.print(
        Text("\nWith known truth, for tamis compare and tamis generate", style="dim"), soft_wrap=True
    )


_WHERE = {"bundled": "with Tamis", "folder": "folder", "OpenML": "OpenML"}
