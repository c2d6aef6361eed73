"""The search of `tamis columns`: candidates are offered until they, the budget or the user ends it."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.candidates import CandidateOptions, ColumnTask
from tamis.cli.failure import MisuseError
from tamis.cli.output import progress, terminal, warnings_in_one_line
from tamis.errors import DataError

if TYPE_CHECKING:
    from tamis.columns.generators import Columns, Progress
    from tamis.columns.result import ColumnsResult
    from tamis.report import Reproduction

# -- groups of columns -------------------------------------------------------------------------------------


_WIDEST = 256  # columns outside of groups that are offered at once


def read_groups(what: str, columns: list[str], texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the columns of each group of two or more.

    Parameters
    ----------
    what : str
        "text": each text column is a group. "prefix" or "prefix:SEPARATOR": columns whose names agree up to the first
        separator, "_" if omitted. Or a path: a JSON object of lists of columns, or a CSV file whose lines are a column
        and its group, without a header.
    columns : list of str
        The numeric columns that are offered.
    texts : dict of str to list of str
        The text columns, and the columns encoded from each, which count as one in a file and for a prefix.

    Raises
    ------
    MisuseError
        If a file does not describe groups of these columns.
    """
    made = {name for names in texts.values() for name in names}
    given = {name: texts.get(name, [name]) for name in dict.fromkeys([*columns, *texts]) if name not in made}
    if what == "text":
        wanted: dict[str, list[str]] = {}
    elif what.split(":", 1)[0] == "prefix":
        separator = what.partition(":")[2] or "_"
        wanted = {}
        for name in given:
            if separator in name:
                wanted.setdefault(name.split(separator, 1)[0], []).append(name)
    else:
        wanted = _read_file(Path(what), given)
    grouped = {name for names in wanted.values() for name in names}
    wanted |= {name: [name] for name in texts if name not in grouped and name not in wanted}
    expanded = {group: [made for name in names for made in given[name]] for group, names in wanted.items()}
    return {group: names for group, names in expanded.items() if len(names) > 1}


def _read_file(path: Path, given: dict[str, list[str]]) -> dict[str, list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(
            f"--groups {path}: cannot be read ({error.__class__.__name__}): write text, prefix, prefix:SEPARATOR, or"
            " the path of a JSON or CSV file."
        ) from None
    groups = _parse_json(path, text) if path.suffix.lower() == ".json" else _parse_csv(path, text)
    seen: set[str] = set()
    for group, names in groups.items():
        for name in names:
            if name not in given:
                raise DataError(
                    f"--groups {path}: group {group!r} names {name!r}, which is not a column of the file."
                )
            if name in seen:
                raise DataError(f"--groups {path}: column {name!r} is in two groups: name it once.")
            seen.add(name)
    return groups


def _parse_json(path: Path, text: str) -> dict[str, list[str]]:
    try:
        groups = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"--groups {path}: line {error.lineno} is not JSON: {error.msg}.") from None
    if not isinstance(groups, dict) or not all(isinstance(names, list) for names in groups.values()):
        raise DataError(f'--groups {path}: write an object of lists, such as {{"sensor 1": ["x0", "x1"]}}.')
    return {group: [str(name) for name in names] for group, names in groups.items()}


def _parse_csv(path: Path, text: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for number, fields in enumerate(csv.reader(text.splitlines()), start=1):
        if not fields:
            continue
        if len(fields) != 2:
            raise DataError(
                f"--groups {path}: line {number} has {len(fields)} field{'s' * (len(fields) != 1)}: write a column"
                " and its group."
            )
        groups.setdefault(fields[1].strip(), []).append(fields[0].strip())
    return groups


def blocks_of_groups(columns: Columns, groups: dict[str, list[str]]) -> Iterator[tuple[list[str], Any]]:
    """Yield names and values: each group at the position of its first column, and other columns in blocks."""
    group_of = {name: group for group, names in groups.items() for name in names}
    waiting: list[str] = []
    offered: set[str] = set()

    def block(names: list[str]) -> tuple[list[str], Any]:
        return names, columns.block([columns.index[name] for name in names])

    for name in columns.names:
        group = group_of.get(name)
        if group is None:
            waiting.append(name)
        if waiting and (group is not None or len(waiting) == _WIDEST):
            yield block(waiting)
            waiting = []
        if group is not None and group not in offered:
            offered.add(group)
            yield block(groups[group])
    if waiting:
        yield block(waiting)


_STAGES = {
    "PrincipalComponents": "components", "Originals": "columns", "Powers": "powers", "Logs": "logarithms",
    "Interactions": "products", "Ratios": "ratios", "FromIterable": "columns",
}  # fmt: skip


class Walk:
    """The search of a selector over the candidates of a table.

    Attributes
    ----------
    matter : Matter
    selector : ColumnSelector
    groups : dict of str to list of str, or None
        Features that are offered and decided on together.
    stages : list of (int, str)
        First candidate of each kind of feature, and the kind.
    ended : str
        Why the search ended.
    seconds : float
    """

    def __init__(
        self,
        matter: ColumnTask,
        selector: Any,
        generating: CandidateOptions,
        source: dict[str, Any],
        title: str,
        groups: dict[str, list[str]] | None = None,
    ) -> None:
        self.groups = groups
        self.matter, self.selector, self.generating = matter, selector, generating
        self.source, self.title = source, title
        self.settings: dict[str, Any] = {}
        self.stages: list[tuple[int, str]] = []
        self.ended, self.seconds = "", math.nan
        self._stream: Any = None

    @property
    def n_offered(self) -> int:
        """How many candidates were offered."""
        return int(getattr(self.selector, "n_offered_", 0))

    def go(
        self, max_seconds: float | None, max_candidates: int | None, checkpoint: str | None, quiet: bool
    ) -> None:
        """Offer candidates until they end, the budget does, or Ctrl-C is pressed."""
        from tamis.columns.generators import FromIterable, explore

        columns = self.matter.columns
        whole = self.matter.rule.kind == "stepwise" and self.generating.names() == ["Originals"]
        self._stream = self.generating.stream(columns)
        if self.groups:
            self._stream = FromIterable(blocks_of_groups(columns, self.groups))
            self._stream.whole = True
            self._stream.columns = columns
        elif whole and not self.generating.shuffle and checkpoint is None:  # the search among all at once
            self._stream = FromIterable([(columns.names, columns.X)])
            self._stream.whole = True
            self._stream.columns = columns  # sparse rows have no names: recipes find their columns by place
        console = terminal(stderr=True)
        n_known, began = 0, time.perf_counter()
        with warnings_in_one_line(console), progress(quiet) as show:

            def note(step: Progress) -> None:
                nonlocal n_known
                kind = _STAGES.get(step.stage, step.stage)
                if not self.stages or self.stages[-1][1] != kind:
                    self.stages.append((n_known + 1, kind))
                n_known = step.n_candidates
                share = self._share(step, max_seconds, max_candidates)
                show(share, f"{step.n_candidates:,} candidates, {step.n_selected:,} accepted ({kind})")

            try:
                exploration = explore(
                    self.selector, self._stream, self.matter.y, max_seconds=max_seconds,
                    max_candidates=max_candidates, on_step=note, checkpoint=checkpoint,
                )  # fmt: skip
            finally:
                self.seconds = time.perf_counter() - began
        self.ended, self.seconds = exploration.ended, exploration.seconds

    def _share(self, step: Progress, max_seconds: float | None, max_candidates: int | None) -> float:
        """Return the completed share of the search: of the expected candidates, or of the time."""
        expected = self.expected()
        share = step.n_candidates / max(min(expected, max_candidates or expected), step.n_candidates, 1)
        return share if max_seconds is None else max(share, min(step.seconds / max_seconds, 1.0))

    def expected(self) -> int:
        """Return the expected number of candidates, if known."""
        columns = self.matter.columns
        parents = sum(name in columns.index for name in self.selector.selected_)
        return self.generating.expected(columns.n_columns, parents)

    def recipes(self) -> Any:
        """Return how the accepted features are made."""
        return self._stream.recipes(self.selector)

    def coefficients(self) -> dict[str, float] | None:
        """Return the coefficient of each accepted feature, if the rule fits a model."""
        from tamis.columns.result import coefficients

        names = self.selector.get_feature_names_out().tolist()
        if not names:
            return None
        y = self.matter.y
        made = self.recipes().transform(
            self.matter.columns.X if self.matter.columns.is_sparse else self._frame()
        )
        values = coefficients(self.selector, made, y)
        return None if values is None else dict(zip(names, values.tolist(), strict=True))

    def _frame(self) -> Any:
        """Return the columns that the accepted features need, by name."""
        import pyarrow as pa

        recipes, columns = self.recipes(), self.matter.columns
        needed = set().union(*(recipes[name].needs() for name in recipes))
        return pa.table({name: columns.column(name) for name in columns.names if name in needed})

    def coefficient_note(self) -> str:
        """Return the meaning of a positive coefficient."""
        if self.matter.model != "logistic":
            return ""
        return f"A positive coefficient increases the probability of {self.selector.classes_[1]!s}."

    @property
    def heading(self) -> str:
        """The subject and the method."""
        where = "standard input" if self.title == "-" else self.title
        return f"{self.matter.rule.name} on {where}"

    @property
    def detail(self) -> str:
        """Number of rows and columns, and their preparation."""
        matter = self.matter
        parts = [f"{len(matter.y):,} rows, {matter.n_given:,} column{'s' * (matter.n_given > 1)}"]
        if matter.texts:
            n = sum(map(len, matter.texts.values()))
            names = ", ".join(list(matter.texts)[:3]) + (" ..." if len(matter.texts) > 3 else "")
            parts.append(f"text as {n:,} column{'s' * (n > 1)} of 0 and 1 ({names})")
        model = f"{matter.model} model {matter.guess}" if matter.model else matter.guess
        if self.groups:
            parts.append(f"{len(self.groups):,} group{'s' * (len(self.groups) > 1)} of columns")
        return "; ".join([*parts, model.strip()])

    def end_reason(self) -> str:
        """Return why there were no more candidates."""
        return {
            "exhausted": "no more candidates", "max_candidates": "--max-candidates", "max_seconds": "--max-seconds",
            "interrupted": "interrupted",
        }.get(self.ended, self.ended)  # fmt: skip

    def result(self, error: str | None = None) -> ColumnsResult:
        """Return the decisions as a result."""
        from tamis.columns.result import ColumnsResult
        from tamis.report import Remark

        remarks: list[str] = []
        if error or self.ended == "interrupted":
            stopped = "This search was interrupted: these are the results so far."
            why = f"Interrupted by: {error}" if error else stopped
            remarks.append(why)
        if getattr(self.selector, "rows_dependent_", False):
            remarks.append(Remark("Rows are autocorrelated: the tests use their effective number.", "note"))
        about = f"{self.detail}. The search stopped: {self.end_reason() or 'an error'}."
        return ColumnsResult(
            self.selector, self.heading, about, remarks=remarks, coefficients=self.coefficients(),
            coefficient_note=self.coefficient_note(), stages=self.stages, seconds=self.seconds,
            reproduction=self._reproduction(),
        )  # fmt: skip

    def _reproduction(self) -> Reproduction:
        """Return the command line, and the lines of Python that do the same."""
        from tamis.evaluate.prequential.rerun import file_words
        from tamis.report import Reproduction

        command = ""
        words = file_words({**self.source, "missing": "keep"})
        if words is not None:
            for name, value in self.settings.items():
                words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
            command = shlex.join(["tamis", "columns", *words, "--report", "report.html"])
        names, pca = self.generating.names(), self.generating.pca
        calls = ", ".join(
            f"{name}(X, {pca})" if name == "PrincipalComponents" else f"{name}(X)" for name in names
        )
        seed = f", random_state={self.generating.seed}" if self.generating.shuffle else ""
        texts = '; text as pandas.get_dummies(frame, prefix_sep="=") makes it' if self.matter.texts else ""
        made = re.sub(r"\s+", " ", repr(self.selector))
        python = [
            f"from tamis import {type(self.selector).__name__}",
            f"from tamis.columns.generators import Chain, explore, {', '.join(sorted(names))}",
            "",
            f"# X: a frame of the columns, y: the label{texts}",
            f"exploration = explore({made}, Chain({calls}{seed}), y)",
            "exploration.selector.selected_, exploration.transform(X)",
        ]
        return Reproduction(command, "\n".join(python))
