"""What a run looks like: nothing wraps, nothing jumps, and each cell of the strips is right."""

import io
import math
import re

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tamis.evaluate import PrequentialResult, Step
from tamis.evaluate.prequential.result import STEP_COLUMNS
from tamis.terminal import (
    Watch,
    bar,
    show,
    show_datasets,
    show_streams,
)
from tamis.terminal.characters import duration, shades, spark

NAMES = [
    "pressure",
    "heat",
    "a name that is much longer than any column of a terminal can be " * 3,
    "温度センサー",
]
NAMES += [f"x{j}" for j in range(4, 12)]


def console(width=80, **options):
    options = {
        "file": io.StringIO(),
        "width": width,
        "force_terminal": True,
        "legacy_windows": False,
        **options,
    }
    return Console(highlight=False, _environ={"TERM": "xterm"}, **options)


def step(t, names=NAMES, progress=0.5, **changed):
    values = dict.fromkeys(STEP_COLUMNS, 0.9) | {
        "step": t,
        "n_seen": 100.0 * (t + 2),
        "stability": 1 / (t + 1),
    }
    rng = np.random.default_rng(t)
    order = rng.permutation(len(names))
    top = [(names[j], 10.0 ** (3 - 3 * i)) for i, j in enumerate(order.tolist())]
    return Step({**values, **changed}, order[:3], top, progress)


def watch(screen, **options):
    return Watch(
        screen, "FIRES on sensors.csv", "Perceptron, batches of 100, test-then-train", window=1000,
        stability_window=10, names=NAMES, **options,
    )  # fmt: skip


def lines_of(screen, shown):
    with screen.capture() as capture:
        screen.print(shown)
    return Text.from_ansi(capture.get()).plain.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 120, 250])
@pytest.mark.parametrize("progress", [0.5, None])
def test_display_stays_in_its_place(width, progress):
    screen = console(width)
    shown = watch(screen)
    heights, columns = set(), set()
    for t in range(50):
        shown(step(t, progress=progress, n_seen=10.0**t if t < 9 else 10.0**9))
        shown._first = (shown._first[0] - 1.0, 0.0, 0.0)
        lines = lines_of(screen, shown.display())
        assert max(map(cell_len, lines)) <= width
        assert cell_len(lines[-1]) <= max(width - 2, 75)
        assert lines[2].strip() == lines[-2].strip() == ""
        heights.add(len(lines))
        dots = [line for line in lines if line.lstrip().startswith(("●", "○"))]
        assert len(dots) == 8
        assert sum("●" in line for line in dots) <= 3
        if t > 10:
            columns.update(len(line) - len(line.lstrip()) for line in dots)
    assert len(heights) == 1
    assert len(columns) == 1


def test_display_before_the_first_step_says_that_it_waits():
    screen = console()
    shown = watch(screen)
    shown._began -= 5
    assert any("compiling" in line for line in lines_of(screen, shown.display()))


def test_known_rows_tell_the_progress():
    shown = watch(console(), n_rows=1000)
    shown(step(3, progress=0.9))
    assert shown.progress == 0.5


def test_memory_does_not_grow_with_the_steps():
    shown = watch(console(), quiet=True)
    for t in range(5000):
        shown(step(t, names=["a", "b", "c"], accuracy_windowed=float(t)))
    assert len(shown._trend) < 1024
    assert shown._trend == sorted(shown._trend)


def test_not_a_terminal_gets_lines_that_fit():
    screen = console(80, force_terminal=False)
    with watch(screen, n_rows=10_000_000) as shown:
        shown._last_line_time -= 40  # as if the kernels had been compiled for so long
        shown(step(0, n_seen=100.0))
        assert screen.file.getvalue() == ""
        for t in range(20):
            shown._last_line_time -= 40
            shown(step(t, n_seen=500_000.0 * (t + 1)))
    lines = screen.file.getvalue().splitlines()
    assert len(lines) == 20
    assert lines[9].startswith(" 50%  5,000,000 rows  accuracy 0.900, overall 0.900  stability 0.100")
    assert max(map(len, lines)) <= 80
    assert "nan" not in screen.file.getvalue()


@pytest.mark.parametrize("options", [{"force_terminal": True}, {"force_terminal": False}])
def test_quiet_is_quiet(options):
    screen = console(**options)
    with watch(screen, quiet=True) as shown:
        shown._last_line_time -= 40
        shown(step(0))
    assert screen.file.getvalue() == ""


def test_live_display_is_gone_afterwards():
    screen = console(80)
    with watch(screen) as shown:
        shown(step(0))
        shown._live.refresh()
    written = screen.file.getvalue()
    assert "pressure" in written
    assert written.count("\x1b[2K") >= written.rpartition("pressure")[2].count("\n")  # lines are erased
    assert written.rstrip("\r").endswith("\x1b[2K")


# -- the final table -----------------------------------------------------------------------------------------


def result(n_steps=20, names=NAMES):
    """Feature 0 is chosen in the first half, 1 in the second, 2 all the time, 3 for one step."""
    half = n_steps // 2
    events = [
        (0, 0, "enter"),
        (0, 2, "enter"),
        (3, 3, "enter"),
        (4, 3, "leave"),
        (half, 0, "leave"),
        (half, 1, "enter"),
    ]
    columns = {name: np.full(n_steps, 0.5) for name in STEP_COLUMNS} | {"step": np.arange(n_steps)}
    columns |= {"n_rows": np.full(n_steps, 100), "n_selected": np.full(n_steps, 2)}
    columns |= {"n_seen": 100 * (np.arange(n_steps) + 1)}
    changes = {
        "step": np.array([e[0] for e in events]),
        "feature": np.array([e[1] for e in events]),
        "name": np.array([names[e[1]] for e in events], dtype=object),
        "event": np.array([e[2] for e in events], dtype=object),
    }
    options = {"batch_size": 100, "protocol": "honest", "window": 1000, "stability_window": 10}
    settings = {"options": options, "interrupted": False}
    return PrequentialResult({"steps": columns, "changes": changes, "scores": {}}, settings, names)


def shown_lines(screen, run, **options):
    show(screen, run, **options)
    return screen.file.getvalue().splitlines()


def test_chosen_at_the_end_come_first_then_the_longest():
    lines = shown_lines(console(100, force_terminal=False), result())
    strips = [line for line in lines if line.lstrip().startswith(("●", "○"))]
    assert [line.split()[0] for line in strips] == ["●", "●", "○", "○"]
    shares = [line.split()[-1] for line in strips]
    assert shares == ["100%", "50%", "50%", "5%"]
    two = shown_lines(console(100, force_terminal=False), result(), top=2)
    assert [line.split()[-1] for line in two if "●" in line or "○" in line] == shares[:2]
    assert "  and 2 more" in two


def test_the_verdict_comes_first_and_remarks_follow():
    lines = shown_lines(console(100, force_terminal=False), result(), title="A title")
    assert lines[0] == "A title"
    run = result()
    text = " ".join(lines)
    verdict, remarks = run.verdict(), run.remarks()
    assert text.index(verdict[:60]) < text.index(remarks[0][:40]) < text.index("Measures")


@pytest.mark.parametrize("width", [60, 80, 120, 250])
@pytest.mark.parametrize(
    "event", [None, (10, "the market opens"), (19, "the market opens"), (0, "a long " * 20)]
)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_final_table_fits(width, event, encoding):
    buffer = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    screen = console(width, file=buffer, force_terminal=False)
    run = result()
    run.event = event and (100 * event[0], event[1])
    show(screen, run, "FIRES on " + "x" * 300)
    buffer.flush()
    text = buffer.buffer.getvalue().decode(encoding)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "100%" in text
    assert re.search(r"Balanced accuracy +0\.500 ", text)
    assert re.search(r"majority class +0\.500 ", text)
    assert re.search(r"no-change baseline +0\.500 ", text)
    assert ("████" in text) == (encoding == "utf-8")


def test_shares_before_and_after():
    run = result()
    run.event = (1000, "it happens")
    lines = shown_lines(console(100, force_terminal=False), run)
    at = next(i for i, line in enumerate(lines) if "| it happens" in line)
    strips = lines[at + 1 : at + 4]
    assert [line.split()[-2:] for line in strips] == [["100%", "100%"], ["0%", "100%"], ["100%", "0%"]]
    assert lines[at].index("|") == strips[1].index("█")


@pytest.mark.parametrize("width", [80, 120])
def test_data_sets_keep_their_columns_beside_a_long_licence(width):
    screen = console(width, force_terminal=False)
    rows = [
        {
            "name": "a set with a rather long name",
            "rows": 2_396_000,
            "features": 3_231_961,
            "where": "folder",
        },
        {"name": "b", "rows": None, "features": None, "where": "OpenML"},
    ]
    show_datasets(screen, [{"licence": "as it comes " * 20, **row} for row in rows], "somewhere")
    lines = screen.file.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    assert "2,396,000" in lines[1]
    assert "3,231,961" in lines[1]
    assert "folder      as" in lines[1]
    assert "OpenML" in lines[2]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_streams_fit_the_terminal_and_their_numbers_are_whole(width):
    screen = console(width, force_terminal=False)
    row = {
        "name": "a" * 30,
        "n_rows": 1_000_000,
        "n_features": 10_000,
        "drifts": 20,
        "text": "sum of two " * 20,
    }
    show_streams(screen, [row])
    lines = screen.file.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    line = next(line for line in lines if "aaa" in line)
    assert "1,000,000" in line
    assert "10,000" in line
    assert "sum of" in line


def test_names_cannot_send_commands_to_the_terminal():
    names = ["\x1b[2Jwiped\nout [bold]", *NAMES[1:]]
    screen = console(100, force_terminal=False)
    show(screen, result(names=names))
    assert "?[2Jwiped?out [bold]" in screen.file.getvalue()


@pytest.mark.parametrize(("n", "width"), [(3, 10), (10, 3), (7, 7), (1, 5), (1000, 48), (48, 47)])
def test_strip_shows_every_step(n, width):
    for t in {0, n // 2, n - 1}:
        chosen = np.zeros(n, dtype=bool)
        chosen[t] = True
        strip = shades(chosen, width)
        assert len(strip) == width
        at = [i for i, cell in enumerate(strip) if cell != " "]
        assert at
        assert abs(at[0] / width - t / n) <= max(1 / width, 1 / n)
    assert shades(np.ones(n, dtype=bool), width) == "█" * width
    assert shades(np.zeros(0, dtype=bool), width) == ""


def test_bar_never_leaves_its_width():
    for share in (-1.0, 0.0, 1e-9, 0.3, 0.999, 1.0, 7.0, math.nan, math.inf):
        for ascii_only in (False, True):
            assert cell_len(bar(share, 10, ascii_only)) <= 10
    assert bar(math.nan, 10) == bar(-1.0, 10) == ""


def test_spark_is_as_wide_as_asked_and_forgives_gaps():
    assert len(spark(np.arange(1000.0), 30)) == 30
    assert spark([0.5, math.nan, 0.5], 30) == "▁▁"
    assert spark([], 30) == ""


def test_duration():
    assert [duration(s) for s in (0, 59.9, 60, 3600, 90_000)] == [
        "0:00",
        "0:59",
        "1:00",
        "1:00:00",
        "25:00:00",
    ]


def test_steps_are_due_when_the_display_can_change():
    assert not watch(console(), quiet=True).is_due()
    shown = watch(console())
    assert shown.is_due()
    shown(step(0))
    assert not shown.is_due()
    shown._last_step_time -= 1.0
    assert shown.is_due()
