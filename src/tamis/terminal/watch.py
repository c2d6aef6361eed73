"""Display of a running evaluation: a live display, or plain lines where nothing can be redrawn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tamis.terminal.characters import (
    MARKS,
    WIDEST,
    bar,
    duration,
    error_text,
    figure_text,
    printable,
    score_text,
    spark,
    width_of,
)

if TYPE_CHECKING:
    from tamis.evaluate import Step

_N_SHOWN = 8  # features in the live display
_SECONDS = 0.05  # between two steps: the display is drawn again 6 times a second


class Watch:
    """Shows a running evaluation; to be called after each step.

    On a terminal that can redraw lines, a live display is updated in place and removed at the end; elsewhere (a pipe, a
    log file, ``TERM=dumb``) a line is written occasionally.

    Parameters
    ----------
    console : rich.console.Console
        Standard error, so that standard output is reserved for results.
    title, detail : str
        Title and settings of the run.
    window, stability_window : int
        Window sizes of the windowed measures, in rows and batches.
    names : list of str or None
        Names of the features, to list the selected ones.
    n_rows : int or None
        Total number of rows, if known; otherwise the progress of the step is shown.
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
        self._began = self._last_line_time = self._last_step_time = time.monotonic()
        # Time, rows seen and progress at the first step.
        self._first: tuple[float, float, float] | None = None
        self._trend: list[float] = []
        self._stride, self._n_steps = 1, 0
        self._tenth = self._widest = 0
        self.progress: float | None = None
        self.n_seen = 0.0

    def __enter__(self) -> Self:
        if self._is_live:
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

    def is_due(self) -> bool:
        """Return whether the display needs the next step."""
        return (self._is_live or self._is_plain) and (
            self._step is None or time.monotonic() - self._last_step_time >= _SECONDS
        )

    def __call__(self, step: Step) -> None:
        """Record a step; the display refreshes itself."""
        self._last_step_time = time.monotonic()
        self._step, self.n_seen = step, step.n_seen
        self.progress = min(step.n_seen / self.n_rows, 1.0) if self.n_rows else step.progress
        if self._first is None:
            self._first = (time.monotonic(), step.n_seen, self.progress or 0.0)
            self._last_line_time = self._first[0]
        if self._n_steps % self._stride == 0:
            self._record_trend(_measure(step)[1])
        self._n_steps += 1
        if self._is_plain:
            self._print_line(step)

    def _record_trend(self, judged: float) -> None:
        self._trend.append(judged)
        if len(self._trend) >= 1024:  # any length of run in fixed memory
            self._trend, self._stride = self._trend[::2], 2 * self._stride

    def _pace(self) -> tuple[float, float | None]:
        """Return the rows per second and the remaining seconds, from the first step on, when all is compiled."""
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

    def _print_line(self, step: Step) -> None:
        """Write a line at each tenth of the input, at intervals of at least two and at most 30 seconds."""
        now = time.monotonic()
        tenth = int(10 * (self.progress or 0.0))
        if now - self._last_line_time < (2 if tenth > self._tenth else 30):
            return
        self._last_line_time, self._tenth = now, tenth
        rate, left = self._pace()
        name, recent, whole, as_text = _measure(step)
        parts = [
            f"{self.progress:4.0%}" if self.progress is not None else "",
            f"{step.n_seen:,.0f} rows",
            f"{name} {as_text(recent)}, overall {as_text(whole)}",
            f"stability {figure_text(step.stability)}",
            f"{duration(left)} left" if left is not None else f"{rate:,.0f} rows/s" if rate == rate else "",
        ]
        self.console.print(
            "  ".join(part for part in parts if part), no_wrap=True, overflow="ellipsis", highlight=False
        )

    # -- the live display ----------------------------------------------------------------------------------

    def display(self) -> Group:
        """Return the current display; its height stays constant during the run."""
        width = min(self.console.width, WIDEST) - 4
        head = Text(self.title, style="bold", no_wrap=True, overflow="ellipsis")
        if self._step is None:
            wait = "compiling and reading the first rows; the very first run takes some seconds longer"
            body: list[RenderableType] = [Text(self._detail_or(wait), style="dim", no_wrap=True)]
        else:
            body = [
                Text(self.detail, style="dim", no_wrap=True, overflow="ellipsis"), Text(" "),
                self._figures(self._step, width), Text(" "), self._features(self._step, width), Text(" "),
                self._footer(width),
            ]  # fmt: skip
        # Not to the right edge: a terminal shows Ctrl-C as ^C behind the last line, which must not wrap.
        return Group(*(Padding(part, (0, 0, 0, 2), expand=False) for part in [head, *body]))

    def _detail_or(self, wait: str) -> str:
        return self.detail if time.monotonic() - self._began < 1 else wait

    def _figures(self, step: Step, width: int) -> Table:
        grid = Table.grid(padding=(0, 3, 0, 0))
        grid.add_column(width=9, style="dim", no_wrap=True)
        grid.add_column(min_width=5, style="bold", no_wrap=True)
        grid.add_column(no_wrap=True, style="dim", overflow="ellipsis")
        name, recent, whole, as_text = _measure(step)
        grid.add_row(name, as_text(recent), f"last {self.window:,} rows, {as_text(whole)} since the start")
        grid.add_row("", "", self._trend_line(width - 24))
        grid.add_row("stability", figure_text(step.stability), f"last {self.stability_window} selections")
        return grid

    def _trend_line(self, width: int) -> Text:
        trend = [value for value in self._trend if math.isfinite(value)]
        if self.console.options.ascii_only or not trend:
            return Text("")
        text = error_text if self._step is not None and "mae" in self._step.values else "{:.2f}".format
        ends = f"  {text(min(trend))} to {text(max(trend))}"
        return Text.assemble((spark(trend, min(width - len(ends), 48)), "cyan"), (ends, "dim"))

    def _features(self, step: Step, width: int) -> Table:
        chosen = set(step.selected.tolist()) if step.selected is not None else set()
        known = step.names or self.names  # columns may have been appended
        names = [known[j] for j in chosen] if known else [f"x{j}" for j in chosen]
        top, most = step.top[:_N_SHOWN], int(0.4 * width)
        self._widest = max(self._widest, width_of((name for name, _ in top), most))  # never narrower again
        length = width - self._widest - 17
        return _feature_table(top, set(names), self._widest, length, self.console.options.ascii_only)

    def _footer(self, width: int) -> Table:
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


_LEADING = ("majority_accuracy", "average_precision")  # decide whether AUC is shown in place of accuracy


def _measure(step: Step) -> tuple[str, float, float, Callable[[float], str]]:
    """Return the main metric: its name, its windowed and cumulative values, and its format."""
    if "mae" in step.values:
        return "error", step.mae_windowed, step.mae_cumulative, error_text
    from tamis.evaluate.prequential.remarks import is_imbalanced

    total = {name: step.values.get(f"{name}_cumulative", math.nan) for name in _LEADING}
    if is_imbalanced(total):
        return "AUC", step.auc_windowed, step.auc_cumulative, figure_text
    return "accuracy", step.accuracy_windowed, step.accuracy_cumulative, figure_text


def _feature_table(
    top: Iterable[tuple[str, float]], chosen: set[str], widest: int, length: int, ascii_only: bool
) -> Table:
    """Return names, scores and bars; a dot marks the selected features."""
    rows = list(top)
    highest = max((score for _, score in rows if math.isfinite(score)), default=0.0)
    dot, ring = MARKS[ascii_only]
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
            Text(printable(name), style="" if is_chosen else "dim"),
            Text(score_text(score), style="dim"),
            Text(bar(share, length, ascii_only), style="cyan" if is_chosen else "dim"),
        )
    return grid
