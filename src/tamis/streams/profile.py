"""Profile of the first rows of a file: its columns, the excluded ones, and all problems at once.

Only the first rows are read (a megabyte of CSV, or 10,000 rows); the profile does not cover later rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import takewhile
from shlex import quote
from typing import Any, TypeAlias
from unicodedata import normalize

import numpy as np
import scipy.sparse as sp

from tamis._interrupts import raise_asynchronous
from tamis._validation import as_list
from tamis.base.html_repr import html_repr
from tamis.streams.arrow import kinds, pc
from tamis.streams.csv_table import CSVTable
from tamis.streams.dialect import fitting_time_formats
from tamis.streams.encode import is_text, time_parts
from tamis.streams.files import find_column, markers_of, match_columns
from tamis.streams.leaks import leak_of, leak_text, missingness_of, orders, repeats_of, runs_of_labels
from tamis.streams.stream import Stream
from tamis.streams.tables import Head, Table, without_markers

_ROWS = 10_000
_DISTINCT = 1000  # texts of a column that are compared
_FEW = 20  # number of rows below which no column is classified as an identifier
_UNIQUE, _MANY = 0.95, 0.5  # proportion of distinct texts of an identifier, and of free text
_RARE = 0.05  # proportion of the rows below which a class is rare
_NUMBERS = 50  # a label with more distinct numbers than this, and than a tenth of the rows, is not a class
_N_LISTED = 4
_N_MARKERS = 3  # numbers for missing values at each end of a column
_NAMELESS = "(no name)"
_MEASURE = re.compile(r"[-+]?\d+(?:[.,]\d+)?\s*(?P<unit>[^\d\s.,:/-][^:/-]{0,12})")  # 165cm, 5'4", 70 kg
_IDENTIFIER_NAME = re.compile(
    r"(?i:(?:^|[_\W])(?:id|uuid|guid|index|serial|row)s?$|^id[_\W])|^id(?=[A-Z])|(?<=[a-z])I[Dd]$"
)
_HASH = r"^(?:[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$"
_LABEL_NAME = re.compile(
    r"y|label|labels|target|class|outcome|response|state|status|diagnosis|species|churn(?:ed)?|default|is_.*|has_.*",
    re.IGNORECASE,
)
_IDENTIFIERS = 50  # distinct values of an identifier that repeats, at least
_LARGE = 1e15  # integers from which on are identifiers rather than amounts
# Numbers that stand for a missing value where no other value is near.
_SENTINEL = re.compile(
    r"-[1-9]|-?(?:9{2,}|8{3,}|7{3,})(?:\.(?:9+|25))?|-?[1-9].*e\+[23]\d|-?2147483647|-2147483648|-32768"
)


@dataclass(frozen=True)
class ColumnProfile:
    """Profile of one column.

    Attributes
    ----------
    name : str
    kind : str
        "number", "flag", "category", "text", "identifier", "time", "constant", "empty", "unreadable", "mixed" (numbers
        and words) or "label".
    n_missing : int
    n_unique : int
        Number of distinct values that are not missing.
    examples : tuple of str
        The first distinct values.
    note : str
        Remark, or "".
    """

    name: str
    kind: str
    n_missing: int
    n_unique: int
    examples: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Problem:
    """A problem with the file, and the option of :func:`open_file` that fixes it.

    Attributes
    ----------
    text : str
    option : str
        "" if a different file or label is required.
    value : object
        The value to set; None if the user must decide.
    """

    text: str
    option: str = ""
    value: Any = None


@dataclass(repr=False)
class TableProfile:
    """Profile of the first rows of a table.

    Attributes
    ----------
    path : str
    written : dict
        The dialect of a CSV file: `delimiter`, `decimal`, `encoding`.
    n_rows : int
        Number of rows profiled.
    whole : bool
        Whether these are all rows.
    columns : list of ColumnProfile
    label : str or None
    classes : dict of str to int
        Number of rows of each class, the largest first; empty if the label is numeric.
    excluded : dict of str to str
        Excluded columns and their reasons.
    notes : list of str
        Remarks that require no action.
    problems : list of Problem
        All problems that prevent reading.
    suggestions : list of Problem
        Options that improve the features, although the file can be read without them.
    warnings : list of str
        Signs that the rows are not a stream, or that a column is not known before the label.
    """

    path: str
    written: dict[str, str] = field(default_factory=dict)
    n_rows: int = 0
    whole: bool = True
    n_columns: int = 0
    columns: list[ColumnProfile] = field(default_factory=list)
    label: str | None = None
    classes: dict[str, int] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    suggestions: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"TableProfile({self.path!r}, {', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        rows = {
            column.name: [
                column.kind, f"{column.n_missing:,}", f"{column.n_unique:,}", ", ".join(column.examples),
            ]
            for column in self.columns
        }  # fmt: skip
        head = ("column", "type", "missing", "distinct", "examples")
        stands = "".join(f"<p>{html_repr('Problem:', [problem.text])}</p>" for problem in self.problems[:20])
        return html_repr(self.path, self._facts(), rows, head) + stands

    def _facts(self) -> list[str]:
        rows = f"{self.n_rows:,} rows profiled" + (", the whole file" if self.whole else "")
        n = len(self.problems)
        return [rows, f"{len(self.columns):,} columns", f"{n:,} problem{'s' * (n != 1)}"]

    @property
    def has_numeric_label(self) -> bool:
        """Whether the label contains numbers that are not classes; of few rows, decimals in many of them."""
        if not self.classes:
            return any(column.n_unique for column in self.columns if column.name == self.label)
        decimals = [name for name in self.classes if re.fullmatch(r"[-+]?\d*\.\d*[1-9]\d*(e.*)?", name)]
        return len(decimals) > max(10, self.n_rows // 10)

    def change(self, name: str, **what: Any) -> None:
        """Update the profile of a column."""
        at = next(j for j, column in enumerate(self.columns) if column.name == name)
        self.columns[at] = replace(self.columns[at], **what)


def profile_table(
    table: Table,
    label: str | int | None = None,
    *,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    predictions: Sequence[str] = (),
    missing: str = "keep",
    times: str = "parts",
    drop_unlabelled: bool = False,
    na: Sequence[str] = (),
    classes: bool = True,
    max_texts: int | None = None,
    grows: bool = False,
) -> TableProfile:
    """Profile the first rows of a table.

    Parameters
    ----------
    table : Table
        As returned by :func:`tamis.streams.files.open_table`; it can be read from its beginning afterwards.
    label, categorical, drop, missing, times, drop_unlabelled, na
        As for :func:`tamis.open_file`.
    keep : list of str
        Columns, or patterns, that are never excluded.
    predictions : list of str
        Columns that are kept, and may reveal the label.
    classes : bool, default=True
        Whether the label must be a class, not a number.
    max_texts : int, optional
        Columns with more distinct texts are excluded.
    grows : bool, default=False
        Whether rows will be appended, so that an empty column may receive values.

    Raises
    ------
    StreamError
        If a named column does not exist, or no row can be read.
    """
    names, path = table.names(), table.source.name
    profile = TableProfile(path, n_columns=len(names))
    if isinstance(table, CSVTable):
        names_of = ("format", "delimiter", "decimal", "encoding")
        profile.written = {name: getattr(table, name) for name in names_of}
        if n := table.above.count("\n"):
            first = _short_text(table.above.lstrip("\ufeff").splitlines()[0])
            profile.notes.append(
                f"{_plural(n, 'line', 'lines')} above the header skipped, the first is {first!r}"
            )
    if label is not None:
        profile.label = names[find_column(label, names, path)]
    chosen = [
        {name for one in as_list(option, columns) for name in match_columns(one, names, path)}
        for option, columns in {
            "categorical": categorical, "drop": drop, "keep": keep, "predictions": predictions,
        }.items()
    ]  # fmt: skip
    text, dropped, kept, predicted = chosen
    kept |= predicted
    table.text, table.label = text | dropped, profile.label or ""
    head = table.head()
    if head is None:
        return profile
    profile.n_rows, profile.whole = head.n_rows, head.whole
    for name, numbers in markers_of(na, names, path).items():
        if name != profile.label:
            head.columns[names.index(name)] = without_markers(head.columns[names.index(name)], numbers)
    _profile_columns(profile, table, head, text)
    _note_signs(profile, table, dropped)
    _note_renamed(profile, table)
    _check_label(profile, head, names, classes=classes, drop_unlabelled=drop_unlabelled)
    if isinstance(table, CSVTable) and profile.label not in text:
        _note_spelling(profile)
    _note_variants(profile, head, dropped)
    _check_mixed(profile, table, dropped)
    _note_times(profile, table, dropped | text, times)
    _exclude_columns(profile, dropped | kept | text, dropped, max_texts, grows=grows)
    excluded = dropped | set(profile.excluded)
    _note_copies(profile, head, excluded)
    codes = _label_codes(profile, head)
    _suggest_markers(profile, head, excluded | text | kept, codes)
    apart = excluded | text | {problem.value for problem in profile.problems}
    _check_missing(profile, head, apart, missing)
    _note_leaks(profile, head, excluded | predicted, codes)
    _add_notes(profile, excluded)
    return profile


def profile_stream(stream: Stream) -> TableProfile:
    """Profile the first rows of a stream that is not a table: arrays, a named data set, svmlight."""
    X, y = stream.take(_ROWS)
    described = stream.describe()
    profile = TableProfile(str(described.get("name") or described.get("path") or "rows"), n_rows=len(y))
    profile.whole = len(y) < _ROWS
    profile.n_columns = X.shape[1] - getattr(stream, "n_unused", 0)
    profile.label = str(described.get("label", "the label"))
    values, counts = np.unique(y, return_counts=True)
    _set_classes(profile, values.tolist(), counts.tolist())
    if sp.issparse(X):
        share = X.nnz / max(1, X.shape[0])
        profile.notes.append(f"{share:,.1f} values are stored in each row, on average")
        return profile
    names = stream.feature_names or [f"x{j}" for j in range(X.shape[1])]
    for j, name in enumerate(names):
        profile.columns.append(_profile_dense_column(name, X[:, j], j in set(stream.categorical)))
    _add_notes(profile, set())
    return profile


# -- columns -----------------------------------------------------------------------------------------------


def _profile_columns(profile: TableProfile, table: Table, head: Head, text: set[str]) -> None:
    """Add the profile of each column; texts are judged by more rows, if the table has them."""
    apart = text | {name for name in table.names() if table.categories(name)}
    for name, column in zip(table.names(), head.columns, strict=True):
        profile.columns.append(_profile_column(name, column, apart))
    more = None if table.later is None else table.later.head()
    for name, column in zip(table.names(), () if more is None else more.columns, strict=False):
        again = _profile_column(name, column, apart)
        if again.kind in ("identifier", "text", "category") and name != profile.label:
            profile.change(name, kind=again.kind, note=again.note, n_unique=again.n_unique)


def _note_renamed(profile: TableProfile, table: Table) -> None:
    for name in dict.fromkeys(table.renamed.values()):
        new = [one for one, old in table.renamed.items() if old == name and one in table.names()]
        if new:
            text = f"several columns are named {name or _NAMELESS}: the later ones are read as {_join(new)}"
            profile.notes.append(text)


def _profile_column(name: str, column: Any, text: set[str]) -> ColumnProfile:
    """Return the profile of a column of Arrow values."""
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    present = column.drop_null()
    if kinds.is_floating(column.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
    n_missing = len(column) - len(present)
    try:
        distinct = present.unique()
    except Exception as error:  # lists, structs and similar types
        raise_asynchronous(error)
        return ColumnProfile(name, "unreadable", n_missing, 0, (), str(column.type))
    examples = tuple(_short_text(value) for value in distinct[:3].to_pylist())
    if len(distinct) < 2:
        kind, note = ("empty", "constant")[len(distinct)], ""
    elif name in text and not kinds.is_boolean(column.type) and not _is_time(column.type):
        kind, note = "category", ""
    else:
        kind, note = _kind_of_values(name, present, len(distinct), has_missing=n_missing > 0)
    return ColumnProfile(name, kind, n_missing, len(distinct), examples, note)


def _is_time(kind: Any) -> bool:
    return bool(time_parts(kind)) or kinds.is_duration(kind)


def _kind_of_values(name: str, present: Any, n_unique: int, *, has_missing: bool) -> tuple[str, str]:
    """Return the kind of a column with two or more distinct values, and a note."""
    kind, n = present.type, len(present)
    if kinds.is_boolean(kind):
        return "flag", ""
    if _is_time(kind):
        return "time", ""
    is_repeated = n_unique > max(_IDENTIFIERS, 0.05 * n)
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        if is_repeated and (
            _IDENTIFIER_NAME.search(name) or pc.all(pc.match_substring_regex(present, _HASH)).as_py()
        ):
            return "identifier", f"{n_unique:,} distinct texts in {n:,} rows"
        if n < _FEW or n_unique <= _MANY * n:
            return "category", ""
        return (
            "identifier" if n_unique >= _UNIQUE * n else "text",
            f"{n_unique:,} distinct texts in {n:,} rows",
        )
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)):
        return "unreadable", str(kind)
    if n >= _FEW and n_unique == n and not has_missing and (why := _identifier_reason(name, present)):
        return "identifier", why
    if is_repeated and n_unique < n and _are_repeated_identifiers(name, present):
        return "identifier", f"{n_unique:,} different numbers that repeat in {n:,} rows"
    return "number", ""


def _short_text(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= 24 else f"{text[:21]}..."


def _identifier_reason(name: str, column: Any) -> str:
    """Return why a column of distinct numbers is an identifier; "" if it may be a feature."""
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(values).all() or (values != np.floor(values)).any():
        return ""
    if (steps := set(np.diff(values).tolist())) in ({1.0}, {-1.0}):
        return f"it numbers the rows in {'ascending' if steps == {1.0} else 'descending'} order"
    return f"{len(values):,} different numbers in as many rows" if _IDENTIFIER_NAME.search(name) else ""


def _are_repeated_identifiers(name: str, column: Any) -> bool:
    """Return whether numbers that repeat are identifiers, by the name of their column or their size."""
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(values).all() or (values != np.floor(values)).any():
        return False
    # Times in microseconds and nanoseconds are as large, but in order.
    is_large = bool((np.abs(values) >= _LARGE).all() and np.mean(np.diff(values) >= 0) < 0.9)
    return is_large or bool(_IDENTIFIER_NAME.search(name))


def _profile_dense_column(name: str, values: Any, is_category: bool) -> ColumnProfile:
    there = values[~np.isnan(values)]
    different = np.unique(there)
    kind = ("empty", "constant")[len(different)] if len(different) < 2 else "number"
    examples = tuple(f"{value:g}" for value in dict.fromkeys(there[:100].tolist()))[:3]
    return ColumnProfile(
        name, "category" if is_category and kind == "number" else kind, len(values) - len(there), len(different),
        examples,
    )  # fmt: skip


# -- problems ---------------------------------------------------------------------------------------------


def _check_label(
    profile: TableProfile, head: Head, names: list[str], *, classes: bool, drop_unlabelled: bool
) -> None:
    if profile.label is None:
        likely = [column.name for column in profile.columns if _may_be_label(column, profile.n_rows)]
        guess = next((name for name in likely if _LABEL_NAME.fullmatch(name)), likely[-1] if likely else None)
        is_guess = "" if guess is None else f"; {guess} is a guess"
        profile.problems.append(Problem(f"the label column is not named{is_guess}", "label", guess))
        return
    at = names.index(profile.label)
    column, seen = head.columns[at], profile.columns[at]
    profile.change(profile.label, kind="label", note="")
    if seen.n_missing and not drop_unlabelled:
        first = pc.index(column.is_null(nan_is_null=True), True).as_py() + 1
        text = f"{_plural(seen.n_missing, 'row has', 'rows have')} no label, the first is row {first:,}"
        profile.problems.append(Problem(text, "drop_unlabelled", True))
    counted = pc.value_counts(column.drop_null())
    values, counts = counted.field(0), counted.field(1).to_pylist()
    many = seen.n_unique > max(_NUMBERS, profile.n_rows // 10)
    fractions = kinds.is_floating(column.type) and many
    if many and (fractions or kinds.is_integer(column.type) or kinds.is_decimal(column.type)):
        if classes:
            text = (
                f"the label {profile.label} contains {seen.n_unique:,} distinct numbers, which are not classes:"
                " predict a number with --task regression"
            )
            profile.problems.append(Problem(text))
        return
    if many and seen.kind in ("identifier", "text"):
        profile.problems.append(
            Problem(f"the label {profile.label} has {seen.note}, too many for classes", "label")
        )
        return
    _set_classes(profile, values.to_pylist(), counts)


def _note_spelling(profile: TableProfile) -> None:
    """Note that labels are text because numbers would not represent all of them."""
    numbers = [text for text in profile.classes if re.fullmatch(r"[+-]?[0-9]+", text)]
    if len(numbers) == len(profile.classes) and (
        zeros := [text for text in numbers if re.match("[+-]?0.", text)]
    ):
        profile.notes.append(
            f"the label {profile.label} has leading zeros, as in {zeros[0]}: it is read as text"
        )


def _note_variants(profile: TableProfile, head: Head, apart: set[str]) -> None:
    """Note texts that differ only in case, blanks or the form of their letters, and numbers in several units."""
    for seen, column in zip(profile.columns, head.columns, strict=True):
        if seen.name in apart or seen.kind not in ("label", "category", "mixed") or seen.n_unique > _DISTINCT:
            continue
        if not is_text(column.type):
            continue
        texts, variants = column.drop_null().unique().to_pylist(), dict[str, list[str]]()
        found = [one for one in map(_MEASURE.fullmatch, texts) if one]
        measured = {re.sub(r"[\d.,\s]", "", one["unit"]): one[0] for one in found}
        if len(texts) >= 10 and len(found) >= 0.9 * len(texts) and 2 <= len(measured) <= 4:
            listed = _join([*map(repr, measured.values())])
            profile.warnings.append(
                f"{seen.name} contains numbers in several units, such as {listed}, read as categories without an order:"
                " write them in one unit"
            )
        for text in texts:
            variants.setdefault(" ".join(normalize("NFKC", text).casefold().split()), []).append(text)
        several = [texts for texts in variants.values() if len(texts) > 1]
        if several:
            what = "one label" if seen.kind == "label" else "one text"
            listed = "; ".join(
                f"{what} in {len(one)} spellings: {', '.join(map(repr, one[:4]))}" for one in several[:3]
            )
            kind = "classes" if seen.kind == "label" else "categories"
            profile.warnings.append(
                f"{seen.name} contains {listed}; they are read as separate {kind}, so unify them"
            )


def _may_be_label(column: ColumnProfile, n_rows: int) -> bool:
    return column.kind in ("category", "flag", "number") and 2 <= column.n_unique <= max(
        2, min(20, n_rows // 10)
    )


def _set_classes(profile: TableProfile, values: list[Any], counts: list[int]) -> None:
    order = sorted(range(len(counts)), key=lambda k: -counts[k])
    profile.classes = {str(values[k]): int(counts[k]) for k in order}


def _check_mixed(profile: TableProfile, table: Table, dropped: set[str]) -> None:
    """Report columns that mix numbers with other words, which are missing-value markers or categories."""
    if not isinstance(table, CSVTable):
        return
    for one in table.mixed_columns():
        if one.name in dropped:
            continue
        profile.change(one.name, kind="mixed")
        few = list(dict.fromkeys(one.words))
        listed = ", ".join(repr(word) for word in few[:3]) + (" ..." if len(few) > 3 else "")
        if one.decimal and table.options.get("decimal"):
            text = f"{one.name} contains {listed}, but the decimal mark is set to {table.decimal}"
            fix = Problem(text, "decimal", one.decimal)
            profile.problems += [fix] * all(problem.option != "decimal" for problem in profile.problems)
            continue
        if one.decimal:
            other = "points" if table.decimal == "." else "commas"
            text = f"{one.name} contains {listed}, but the decimal marks of the others are {other}"
        else:
            among = f"times such as {one.time}" if one.time else "numbers"
            text = f"{one.name} contains {listed} among {among}, first in row {one.row:,}"
        if not one.decimal and len(few) <= 3:
            for word in few:
                profile.problems.append(Problem(text, "na", word))
        elif one.decimal or one.time or one.n_numbers <= _FEW:
            profile.problems.append(Problem(text, "categorical", one.name))
        else:
            text = f"{text}: write them as numbers in one unit, or treat them as missing"
            profile.problems.append(Problem(text, "na", f"{one.name}=*"))


def _note_signs(profile: TableProfile, table: Table, dropped: set[str]) -> None:
    """Note columns of numbers with a currency or percent sign."""
    if not isinstance(table, CSVTable):
        return
    for column in list(profile.columns):
        if column.name in dropped or column.kind != "number":
            continue
        marks = {".": "a decimal point", ",": "a decimal comma"}
        if sign := table.grouped.get(column.name) or marks.get(table.decimals.get(column.name, "")):
            profile.change(column.name, note=f"numbers written with {sign}")
            text = f"{column.name} contains numbers written with {sign}, read as {', '.join(column.examples)}"
            profile.notes.append(f"{text} (--categorical {quote(column.name)} treats them as categories)")


def _note_times(profile: TableProfile, table: Table, apart: set[str], times: str) -> None:
    parts = table.times()
    if isinstance(table, CSVTable):
        for name in [name for name, form in table.time_formats.items() if not form and name not in apart]:
            seen = next(column for column in profile.columns if column.name == name)
            form = quote(fitting_time_formats(seen.examples)[0])
            profile.excluded[name] = f"day and month of its dates are ambiguous (set --time-format {form})"
    for column in list(profile.columns):
        if column.kind != "time" or column.name in apart:
            continue
        encoded = "seconds since 1970" if column.name in parts else "seconds"
        if times == "parts" and column.name in parts:
            encoded = ", ".join(f".{part}" for part in parts[column.name])
        profile.change(column.name, note=f"becomes {encoded}")


def _exclude_columns(
    profile: TableProfile, apart: set[str], dropped: set[str], max_texts: int | None, *, grows: bool
) -> None:
    for column in profile.columns:
        if column.kind == "unreadable" and column.name not in dropped:
            why = (
                f"it is of type {column.note}, which is neither a number nor text: write its parts as columns"
            )
            profile.excluded[column.name] = why
        if column.name in apart or column.kind == "label":
            continue
        if not grows and profile.n_rows >= _FEW:
            if column.kind == "empty":
                profile.excluded[column.name] = "it is empty" + " so far" * (not profile.whole)
            elif column.kind == "constant" and profile.whole:
                profile.excluded[column.name] = f"it is {column.examples[0]} in every row"
        if column.kind in ("identifier", "text"):
            kind = "an identifier" if column.kind == "identifier" else "free text"
            profile.excluded.setdefault(column.name, f"{kind}, {column.note}")
        elif column.kind == "category" and max_texts is not None and column.n_unique > max_texts:
            profile.excluded[column.name] = f"text with {column.n_unique:,} distinct values"


def _check_missing(profile: TableProfile, head: Head, apart: set[Any], missing: str) -> None:
    """Report columns with missing or infinite numbers."""
    holes, infinite = [], []
    for seen, column in zip(profile.columns, head.columns, strict=True):
        if seen.name in apart or seen.kind in ("label", "category", "text", "identifier", "unreadable"):
            continue
        is_text = kinds.is_string(column.type) or kinds.is_large_string(column.type)
        if seen.n_missing and not (is_text and seen.kind == "constant"):
            holes.append(seen)
        if kinds.is_floating(column.type) and (n := pc.sum(pc.is_inf(column)).as_py()):
            infinite.append(f"{seen.name} ({n:,})")
    if holes and missing != "mean":
        shares = [f"{one.name or _NAMELESS} ({_share(one.n_missing, profile.n_rows)})" for one in holes]
        text = f"{_join(shares)} have missing values"
        if len(holes) == 1:
            column = head.columns[profile.columns.index(holes[0])]
            first = pc.index(column.is_null(nan_is_null=True), True).as_py() + 1
            text = f"{shares[0]} has missing values, the first in row {first:,}"
        if missing == "error":
            profile.problems.append(Problem(text, "missing", "mean"))
        else:
            profile.notes.append(f"{text}, kept for models that accept them (--missing mean)")
    if infinite:
        verb = "contains" if len(infinite) == 1 else "contain"
        profile.problems.append(Problem(f"{_join(infinite)} {verb} infinite numbers", "na", "inf"))
    options = {problem.option for problem in profile.problems}
    if missing == "error" and "missing" not in options and (profile.suggestions or "na" in options):
        list_of = profile.problems if "na" in options else profile.suggestions
        list_of.append(Problem("the values that are then missing must be imputed", "missing", "mean"))


def _note_copies(profile: TableProfile, head: Head, gone: set[str]) -> None:
    """Note columns that duplicate an earlier one."""
    first: dict[bytes, str] = {}
    copies: dict[str, list[str]] = {}
    for seen, column in zip(profile.columns, head.columns, strict=True):
        if seen.name in gone or seen.n_unique < 2 or seen.kind in ("label", "unreadable"):
            continue
        digest = blake2b(str(column.type).encode())
        if kinds.is_floating(column.type):
            digest.update(column.fill_null(float("nan")).to_numpy().tobytes())
        else:
            encoded = column if kinds.is_dictionary(column.type) else column.dictionary_encode()
            digest.update(str(encoded.dictionary.to_pylist()).encode())
            digest.update(encoded.indices.fill_null(-1).to_numpy().tobytes())
        original = first.setdefault(digest.digest(), seen.name)
        if original != seen.name:
            copies.setdefault(original, []).append(seen.name)
    for original, names in copies.items():
        verb = "has" if len(names) == 1 else "have"
        text = f"{_join(names)} {verb} the values of {original or _NAMELESS} in every row"
        profile.notes.append(f"{text} (--drop {quote(','.join(names))})")


def _add_notes(profile: TableProfile, gone: set[str]) -> None:
    """Add remarks on the remaining columns and the classes."""
    used = [column for column in profile.columns if column.kind != "label" and column.name not in gone]
    if profile.label is not None and profile.columns and not used:
        texts = [one.name for one in profile.columns if one.kind == "text" or " " in "".join(one.examples)]
        if texts := [name for name in texts if name in profile.excluded]:
            text = f"{_join(texts)}: text is not made into words"
            how = "count them first, as in the tutorial docs/tutorials/text.md"
            profile.problems.append(Problem(f"{text}: {how}"))
        else:
            profile.problems.append(Problem("no column is left besides the label", "keep", None))
    still = [column.name for column in used if column.kind in ("constant", "empty")]
    if still:
        profile.notes.append(f"{_join(still)}: the same in every row so far")
    wide = [f"{c.name} ({c.n_unique:,})" for c in used if c.kind == "category" and c.n_unique > 100]
    if wide:
        profile.notes.append(
            f"{_join(wide)}: text with many distinct values, encoded as numbers without an order"
        )
    n = sum(profile.classes.values())
    if len(profile.classes) == 1:
        text = f"every row so far has the label {next(iter(profile.classes))}"
        profile.warnings.append(f"{text}: the file may be sorted by it" if not profile.whole else text)
    rare = [f"{label} ({_share(k, n)})" for label, k in profile.classes.items() if k < _RARE * n]
    if rare and len(profile.classes) <= 20:
        profile.notes.append(f"rare {'class' if len(rare) == 1 else 'classes'}: {_join(rare)}")


# -- signs that rows are not a stream ----------------------------------------------------------------------


_Codes: TypeAlias = tuple[Any, Any, list[Any]]


def _label_codes(profile: TableProfile, head: Head) -> _Codes | None:
    """Return which rows have a label, the codes of the labels, and the classes; None without classes."""
    if profile.label is None or not profile.classes:
        return None
    at = next(j for j, column in enumerate(profile.columns) if column.name == profile.label)
    encoded = head.columns[at]
    encoded = encoded if hasattr(encoded, "indices") else encoded.dictionary_encode()
    has_label = encoded.is_valid().to_numpy(zero_copy_only=False)
    return has_label, encoded.indices.drop_null().to_numpy(), encoded.dictionary.to_pylist()


def _as_floats(column: Any) -> Any:
    """Return numbers, or the codes of categories and times, as float64; NaN where a value is missing."""
    if not (kinds.is_floating(column.type) or kinds.is_integer(column.type)):
        column = (column if kinds.is_dictionary(column.type) else column.dictionary_encode()).indices
    return column.to_numpy(zero_copy_only=False).astype("float64")


def _suggest_markers(profile: TableProfile, head: Head, apart: set[str], codes: _Codes | None) -> None:
    """Suggest to treat numbers such as -999 as missing values, unless that hides their relation to the label."""
    found: dict[float, list[tuple[str, str]]] = {}
    others: set[float] = set()
    for seen, column in zip(profile.columns, head.columns, strict=True):
        if seen.kind != "number" or seen.name in apart or seen.n_unique < _N_LISTED:
            continue
        values = _as_floats(column)
        markers = _markers_in(values[np.isfinite(values)])
        others |= {marker for marker in found.keys() - set(markers) if (values == marker).any()}
        for marker in markers:
            share = _share(int(np.sum(values == marker)), profile.n_rows)
            text = f"{seen.name} is {marker:g} in {share} of the rows, which may stand for a missing value"
            if codes is not None and not _is_better_missing(values[codes[0]], marker, codes[1]):
                profile.notes.append(f"{text}, but is related to the label")
                continue
            found.setdefault(marker, []).append((seen.name, text))
    for marker, columns in found.items():
        if len(columns) > _N_LISTED and marker not in others:
            text = f"{_join([name for name, _ in columns])} contain {marker:g}, which may stand for a missing value"
            columns = [("*", text)]
        profile.suggestions += [Problem(text, "na", f"{name}={marker:g}") for name, text in columns]


def _markers_in(values: Any) -> list[float]:
    """Return the extreme values that stand for a missing one: of their form, and far from all others."""
    distinct, counts = np.unique(values, return_counts=True)
    pairs = list(zip(distinct.tolist(), counts.tolist(), strict=True))
    sides = [
        list(takewhile(lambda pair: _SENTINEL.fullmatch(f"{pair[0]:.10g}"), side[:_N_MARKERS]))[::-1]
        for side in (pairs, pairs[::-1])
    ]
    rest = distinct[len(sides[0]) : len(distinct) - len(sides[1])]
    if len(rest) < _N_MARKERS:
        return []
    low, high, found = float(rest[0]), float(rest[-1]), []
    for value, n in sides[0] + sides[1]:
        width, gap, size = high - low, max(low - value, value - high), abs(value)
        is_below_zero = value < 0 <= low
        is_far = gap >= width or (n > 2 and 2 * gap >= width)
        # A few negative numbers near zero may be amounts.
        is_code = is_below_zero and (size >= 9 or (n > 2 and gap >= 2 and (is_far or width >= _FEW)))
        if (is_code or (is_far and size >= 9)) and (n > 1 or size > 1e20 or (is_below_zero and size >= 99)):
            found.append(value)
        else:
            low, high = min(low, value), max(high, value)
    return found


def _is_better_missing(values: Any, marker: float, codes: Any) -> bool:
    """Return whether the mean in place of a marker says as much about the classes as the marker does."""

    def explained(x: Any) -> float:
        means = np.bincount(codes, weights=x) / np.maximum(np.bincount(codes), 1)
        return float(np.var(means[codes]) / max(np.var(x), 1e-300))

    is_marker = values == marker
    there = np.isfinite(values) & ~is_marker
    if not there.any():
        return False
    imputed = np.where(there, values, values[there].mean())
    by_marker = explained(is_marker.astype(np.float64))
    return len(codes) * by_marker < 10.0 or explained(imputed) >= by_marker


def _note_leaks(profile: TableProfile, head: Head, gone: set[str], codes: _Codes | None) -> None:
    """Note labels in sorted order, columns that reveal the label, and rows that repeat."""
    skipped = ("label", "unreadable", "empty", "mixed")
    used = [
        (seen, _as_floats(column))
        for seen, column in zip(profile.columns, head.columns, strict=True)
        if seen.kind not in skipped
    ]
    rows = [one for one in used if one[0].kind != "identifier" or one[0].n_unique < profile.n_rows]
    used = [one for one in used if one[0].name not in gone]
    if not used:
        return
    is_repeat = repeats_of([values for _, values in rows])
    if (n := int(is_repeat.sum())) >= 0.01 * profile.n_rows:
        text = "of the rows repeat the features of an earlier row: remove them if they are copies"
        profile.warnings.append(f"{_share(n, profile.n_rows)} {text}")
    if codes is None:
        targets = [
            _as_floats(x) for one, x in zip(profile.columns, head.columns, strict=True) if one.kind == "label"
        ]
        for seen, values in used if targets and not profile.classes else ():
            if seen.kind in ("number", "time") and orders(values, targets[0]):
                profile.warnings.append(f"{leak_text(seen.name, 1.0)} (otherwise --drop {quote(seen.name)})")
        return
    has_label, y, known = codes
    if runs := runs_of_labels(y, f"the label {profile.label}"):
        text = "no selection can be judged on them: shuffle them, or name another label"
        profile.warnings.append(f"{runs}; {text}")
    for seen, values in used:
        is_new = has_label & ~is_repeat
        _note_leak(profile, seen, values[is_new], y[~is_repeat[has_label]], known, is_sorted=bool(runs))


def _note_leak(
    profile: TableProfile, seen: ColumnProfile, values: Any, y: Any, classes: list[Any], *, is_sorted: bool
) -> None:
    """Note that a column reveals the label by its values, or by where they are missing."""
    name = seen.name or _NAMELESS
    ask = f"(otherwise --drop {quote(seen.name)})"
    if seen.n_missing and (one := missingness_of(np.isnan(values), y)):
        profile.warnings.append(
            f"{name} is {one[0]} only where {profile.label} is {classes[one[1]]}: is it known before the label? {ask}"
        )
    elif not is_sorted and (share := leak_of(values, y)):
        profile.warnings.append(f"{leak_text(name, share)} {ask}")


def _join(parts: list[str]) -> str:
    more = len(parts) - _N_LISTED
    return ", ".join(part or _NAMELESS for part in parts[:_N_LISTED]) + (
        f" and {more:,} more" if more > 0 else ""
    )


def _plural(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _share(n: int, of: int) -> str:
    share = 100 * n / max(of, 1)
    return f"{share:.1f} %" if share >= 0.05 else f"{n:,} of {of:,}"
