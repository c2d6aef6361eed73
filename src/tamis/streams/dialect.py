"""Detection of the dialect of a CSV file: encoding, delimiter, decimal mark and date format.

Each function is a heuristic that returns the interpretation under which the first rows are consistent.
"""

from __future__ import annotations

import codecs
import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np

from tamis._validation import Array, check_number

DELIMITERS = (",", ";", "\t", "|")
ALIGNED = "  "  # in place of a delimiter: columns that are aligned by blanks
BLANKS = " \t\u00a0\u202f"  # between a number and its sign
_SPACES = " \u00a0\u202f\u2009'\u2019"  # group thousands, with either decimal mark
_LINES = 100  # lines from which the delimiter is detected
_SAMPLE = 200  # values from which the format of most times is detected
GROUPS = {".": f"[,{_SPACES}]", ",": rf"[.{_SPACES}]"}  # what groups thousands, by decimal mark
_UNITS = r"[+-]?(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)?(?:{mark}\d+)?(?:[eE][+-]?\d+)?"
_NUMBERS = {mark: re.compile(_UNITS.format(group=GROUPS[mark], mark=re.escape(mark))) for mark in ".,"}
_UNIT = re.compile(rf"[+-]?[0-9][0-9.,{_SPACES}]*[{BLANKS}]*([^\W\d_]{{1,4}})")
_CODES = ("EUR", "USD", "GBP", "CHF", "JPY", "CAD", "AUD")  # before or after an amount
DURATION = (
    r"^(?P<sign>[+-]?)(?:(?P<days>[0-9]+) days?,? +)?\+?(?P<hours>[0-9]+):(?P<minutes>[0-5][0-9])"
    r"(?::(?P<seconds>[0-5][0-9](?:\.[0-9]+)?))?(?: ?(?P<half>[AaPp])[Mm])?$"
)
_DAYS = (
    "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y",
    "%d-%b-%Y", "%d-%b-%y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y",
)  # fmt: skip
_CLOCKS = (
    "", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p", " %I:%M:%S%p",
)  # fmt: skip
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_ISO = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
_ZONE = r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
_TIMES = (
    re.compile(_CLOCK),
    re.compile(rf"{_ISO}(?:[ T](?:[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9](?:\.[0-9]{{1,9}})?)?)?)?"),
    re.compile(
        rf"{_ISO}[ T](?:[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9](?:\.[0-9]{{1,9}})?)?)?{_ZONE}"
    ),
)  # as Arrow reads them: times of day; dates and times without a zone; with one
_MONTH = r"[A-Z][a-z]{2,8}"
_NAMED_DAY = rf"\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}}"
_TIME_LIKE = re.compile(rf"(?:\d{{1,4}}([./:-])\d{{1,2}}(?:\1\d{{1,4}})?|{_NAMED_DAY})(?:[ T].*)?")
_DATE_LIKE = re.compile(
    rf"(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{2,4}}|{_NAMED_DAY})(?:[ T]\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?: ?[AaPp][Mm])?)?"
)


# First column name of the tables that Tamis writes, in which texts are escaped by :func:`escape_formula`.
RANKING = ("rank", "feature")
FORMULA = r"'*[=+\-@\t\r\n" + "\uff1d\uff0b\uff0d\uff20]"  # evaluated by spreadsheets; = + - @ of any width


def escape_formula(cell: str) -> str:
    """Return a text that no spreadsheet evaluates: formulas are prefixed with an apostrophe.

    The apostrophe is removed when a file that begins with `RANKING` is read.

    >>> escape_formula("=1+1"), escape_formula("heat"), escape_formula("'=1")
    ("'=1+1", 'heat', "''=1")
    """
    return f"'{cell}" if re.match(FORMULA, cell) else cell


def detect_encoding(head: bytes, whole: bool) -> str:
    """Return the encoding of a text from its beginning: UTF-8, UTF-16, or Latin-1 as written by Windows.

    Unless the text is `whole`, its last character may be incomplete.

    >>> [detect_encoding("weiß".encode(one), True) for one in ("utf-8", "latin-1", "utf-16")]
    ['utf-8', 'cp1252', 'utf-16']
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [head[:4096][odd::2].count(0) for odd in (0, 1)]
    if max(zeros) > 0.3 * len(head[:4096]):  # every other byte of the text is 0
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(head, final=whole)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def detect_delimiter(text: str, whole: bool, preferred: str = ",") -> str:
    r"""Return the delimiter that splits all lines into the same number of values, most of them numeric.

    Parameters
    ----------
    text : str
        The first lines.
    whole : bool
        Whether these are all lines, so that the last one is complete.
    preferred : str
        The delimiter returned if none fits.

    Examples
    --------
    >>> detect_delimiter("size;weight\n51,9;3,2\n48,0;2,9\n", whole=True)
    ';'
    """
    lines = text.splitlines()[: 10 * _LINES]
    lines = lines if whole or len(lines) < 2 else lines[:-1]
    mapping = dict[str, tuple[float, int]]()
    for candidate in dict.fromkeys((preferred, *DELIMITERS, " ")):
        if mapping and candidate == " ":  # blanks are then part of values
            break
        rows = split_rows(lines, candidate)[: _LINES + 1]
        n = len(rows[-1]) if rows else 0
        if n > 1 and all(len(row) == n for row in rows[1:]) and _is_header_of(len(rows[0]), n):
            values = [value for row in rows[1:] for value in row if value]
            numbers = sum(is_number(value, ".") or is_number(value, ",") for value in values[:5000])
            mapping[candidate] = (numbers / max(len(values[:5000]), 1), n)
    found = max(mapping, key=mapping.__getitem__) if mapping else ""
    if (not found or (found == " " and len(rows[0]) < n)) and aligned_columns(lines):
        return ALIGNED
    if found:
        return found
    first = lines[0] if lines else ""  # lines of different length: use the delimiter of the names
    at = {candidate: first.count(candidate) for candidate in dict.fromkeys((preferred, *DELIMITERS))}
    return max(at, key=at.__getitem__) if any(at.values()) else preferred


def _is_header_of(n_names: int, n_values: int) -> bool:
    """Return whether a header may belong to rows: it may lack the name of the row names, or end with a separator."""
    return n_names == n_values or (n_names > 1 and abs(n_names - n_values) == 1)


def pad_header(names: list[str], rows: list[list[str]]) -> list[str]:
    """Return the names of a header as many as rows have values.

    R writes no name for the row names, which are then the first column; other programs end each row with a separator.

    >>> pad_header(["x", "y"], [["1", "5", "a"], ["2", "6", "b"]]), pad_header(["x", "y"], [["5", "a", ""]])
    (['', 'x', 'y'], ['x', 'y', ''])
    """
    n = len(rows[0]) if rows else len(names)
    if not all(len(row) == n for row in rows) or n == len(names) or not _is_header_of(len(names), n):
        return names
    if n < len(names):
        return names if names[-1] else names[:-1]
    if not any(row[-1] for row in rows):
        return [*names, ""]
    first = [row[0] for row in rows]
    counts = [int(text) for text in first if text.isdecimal()]
    are_counts = counts == sorted(counts) and len(counts) == len(first)
    are_names = len({*first}) == len(first) and (
        are_counts or not any(is_number(text, ".") for text in first)
    )
    return ["", *names] if are_names else names


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names of which later ones have a number if they occur again, as in pandas.

    >>> unique_names(["x", "x", "x.1", "x"])
    ['x', 'x.2', 'x.1', 'x.3']
    """
    given = list(names)
    taken, seen = set(given), set[str]()
    for j, name in enumerate(given):
        if name in seen:
            given[j] = next(new for k in count(1) if (new := f"{name}.{k}") not in taken)
            taken.add(given[j])
        seen.add(name)
    return given


_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
_NOTES = re.compile(r"\ufeff?(?:(?:#[^\n]*|[ \t,;]*\r?)\n)+")


def split_preamble(text: str) -> tuple[str, str | None]:
    r"""Return the lines above the header, and the delimiter that they declare.

    Spreadsheets write ``sep=;``, instruments write notes that begin with #. A last # line with as many values as the
    line below it contains the names.

    >>> split_preamble("sep=;\na;b\n"), split_preamble("# of 2024\na,b\n1,2\n"), split_preamble("#a,b\n1,2\n")
    (('sep=;\n', ';'), ('# of 2024\n', None), ('', None))
    """
    if said := _SEPARATOR_LINE.match(text):
        return said[0], said[1]
    match = _NOTES.match(text)
    if match is None:
        return "", None
    below = text[match.end() :]
    delimiter = detect_delimiter(below, whole=False)
    notes, first = match[0].splitlines(keepends=True), below.partition("\n")[0]
    if delimiter == " " and len(split_rows([notes[-1].lstrip("#")], " ")) == len(split_rows([first], " ")):
        notes[-1] = "#"
    elif 0 < first.count(delimiter) == notes[-1].count(delimiter):
        notes.pop()
    return "".join(notes), None


def names_are_values(names: list[str], decimal: str) -> bool:
    """Return whether names look like a row of values: most are numbers, but neither positions nor increasing.

    >>> names_are_values(["5.1", "3.5", "1.4", "setosa"], "."), names_are_values(["0.1", "0.5", "0.9", "label"], ".")
    (True, False)
    """
    numbers = [name for name in names if is_number(name, decimal)]
    if 2 * len(numbers) <= len(names):
        return False
    if all(name.isdigit() for name in numbers):
        return len(numbers) == len(names) and len(set(names)) < len(names)
    try:
        values = [float(name.replace(",", ".") if decimal == "," else name) for name in numbers]
    except ValueError:  # grouped thousands
        return True
    rises = all(left < right for left, right in pairwise(values))
    return len(numbers) == len(names) or not rises


def split_rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the values of lines that are not empty."""
    if delimiter == " ":
        return [row for line in lines if (row := _split_at_blanks(line))]
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter, strict=False) if row]
    except csv.Error:  # a value exceeds the reader's limit
        return [line.split(delimiter) for line in lines if line]


_QUOTED = re.compile(r'"((?:[^"\\]|\\.|"")*)"|(\S+)')
_ESCAPED = re.compile(r'\\(.)|""')


def _split_at_blanks(line: str) -> list[str]:
    """Return the values of a line of R's ``write.table``, which quotes texts."""
    values = []
    for quoted, plain in _QUOTED.findall(line):
        values.append(plain or _ESCAPED.sub(lambda match: match[1] or '"', quoted))
    return values


def aligned_columns(lines: list[str]) -> list[slice]:
    """Return the columns of lines as pandas' ``to_string`` writes them, aligned to the right; none of other lines.

    >>> aligned_columns(["       city  n", "0  New York  1", "1      Rome  2"])
    [slice(0, 1, None), slice(1, 11, None), slice(11, 14, None)]
    """
    lines = [line for line in lines if line.strip()]
    if len(lines) < 2 or len({*map(len, lines)}) > 1 or any('"' in line for line in lines):
        return []
    used = {at for line in lines for match in re.finditer(r"\S+", line) for at in range(*match.span())}
    ends = [at + 1 for at in sorted(used) if at + 1 not in used]
    columns = list[slice]()
    start = 0
    for end in ends:  # blanks within names, or within all values of a column, separate nothing
        is_named = bool(lines[0][start:end].strip())
        has_values = any(line[start:end].strip() for line in lines[1:])
        if has_values and (is_named or not columns):
            columns.append(slice(start, end))
            start = end
    return columns if len(columns) > 1 and start == len(lines[0]) else []


def is_number(text: str, decimal: str) -> bool:
    """Return whether a text is a number with that decimal mark; thousands may be grouped, parentheses mean a minus.

    >>> is_number("1.234,5", ","), is_number("1.234,5", "."), is_number("-2e-3", "."), is_number("(1 234)", ".")
    (True, False, True, True)
    """
    text = _with_minus(text)
    if _NUMBERS[decimal].fullmatch(text) and any(letter.isdigit() for letter in text):
        return True
    return text.lower() in ("inf", "-inf", "+inf", "infinity", "-infinity", "nan")


def _with_minus(text: str) -> str:
    """Return a number with a minus in place of the parentheses or the sign that mean one."""
    text = text.strip().replace("\u2212", "-")
    if match := re.fullmatch(r"\((.*)\)|(.*\d)-", text):
        return f"-{match[1] or match[2]}"
    return text


def strip_sign(text: str, sign: str) -> str:
    """Return a number without a currency, percent sign or unit before or after it; any other text is unchanged.

    >>> strip_sign("-$ 1,000", "$"), strip_sign("49.5 %", "%"), strip_sign("a%b", "%")
    ('-1,000', '49.5', 'a%b')
    """
    before, number, after = (part.strip(BLANKS) for part in text.partition(sign))
    if not number or (before not in ("", "+", "-") and after):
        return text
    return before + after


def _sign_of(values: Collection[str]) -> str:
    """Return the only currency, percent sign or unit in texts; "" if there are none or several."""
    signs = {one for text in values for one in text if one in "%‰" or unicodedata.category(one) == "Sc"}
    if not signs:
        units = [match and match[1] for match in map(_UNIT.fullmatch, values)]
        codes = {code for text in values for code in _CODES if code in text}
        # A unit is part of every value: among plain numbers, it may mean another scale.
        signs = {unit or "" for unit in units} if units and not codes else codes
    return signs.pop() if len(signs) == 1 else ""


class NumberFormat:
    """The number format of one column: decimal mark, grouping of thousands, currency or percent sign.

    Attributes
    ----------
    sign : str
        The currency or percent sign before or after numbers; "" if there is none.
    decimal : str
        "," or "."; "?" if either is possible (1,234); "" if most values are not numbers.
    grouped : dict of str to bool
        Whether all values are numbers with that decimal mark.
    """

    def __init__(self, values: Iterable[str]) -> None:
        texts = [_with_minus(value) for value in values]
        self.sign = _sign_of(texts)
        if self.sign:
            texts = [strip_sign(text, self.sign) for text in texts]
        point, comma = ({text for text in texts if is_number(text, mark)} for mark in (".", ","))
        marked = [text for text in texts if ("," in text or "." in text) and text in point | comma]
        self.decimal = ""
        if marked and 2 * len(point | comma) >= len(set(texts)):
            only_point, only_comma = point - comma, comma - point
            self.decimal = "?" if not only_point and not only_comma else ""
            if bool(only_point) != bool(only_comma):
                self.decimal = "." if only_point else ","
        self.grouped = {
            mark: bool(texts) and len(item) == len(set(texts)) for mark, item in ((".", point), (",", comma))
        }


def detect_decimal(columns: Iterable[NumberFormat], n_points: int, delimiter: str) -> str:
    """Return the decimal mark of a file.

    Parameters
    ----------
    columns : iterable of NumberFormat
        Formats of its text columns, excluding numbers with a decimal point.
    n_points : int
        Number of columns with a decimal point.
    delimiter : str

    Examples
    --------
    >>> detect_decimal([NumberFormat(["51,9", "48,0"]), NumberFormat(["red", "blue"])], 0, ";")
    ','
    """
    votes = Counter(column.decimal for column in columns)
    points, commas = votes["."] + n_points, votes[","]
    if commas == points == 0 and delimiter != ",":
        return "," if votes["?"] else "."
    return "," if commas > points else "."


def detect_time_format(values: list[str], given: str | None = None) -> str | None:
    """Return the strptime format of a column of dates; "" if day and month are ambiguous, None without dates.

    >>> detect_time_format(["31.01.2024", "01.02.2024"]), detect_time_format(["03/04/2024"])
    ('%d.%m.%Y', '')
    >>> detect_time_format(["red"]) is None
    True
    """
    fitting = fitting_time_formats(values, given)
    if not fitting:
        return None
    return fitting[0] if len(fitting) == 1 else ""


def odd_times(values: Sequence[str], given: str | None = None) -> tuple[list[str], str]:
    """Return the values that differ in form from most values, which are times, and one of these; ([], "") otherwise.

    Parameters
    ----------
    values : list of str
        Distinct values of a column.
    given : str, optional
        Format that its times must have.

    Examples
    --------
    >>> odd_times(["2024-03-31T01:30:00Z", "2024-03-31T02:30:00", "2024-03-31T03:30:00Z"])
    (['2024-03-31T02:30:00'], '2024-03-31T01:30:00Z')
    >>> odd_times(["31.12.2016", "2017-01-01", "01.01.2017"]), odd_times(["red", "blue"])
    ((['2017-01-01'], '31.12.2016'), ([], ''))
    """
    sample = values[:_SAMPLE]
    if given is None and 2 * sum(map(bool, map(_TIME_LIKE.fullmatch, sample))) < len(sample):
        return [], ""
    known = [given] if given else [day + clock for day in _DAYS for clock in _CLOCKS]
    forms: list[str | re.Pattern[str]] = [*known, *_TIMES]
    counts = {form: sum(_fits(value, form) for value in sample) for form in forms}
    form = max(counts, key=counts.__getitem__)
    if 2 * counts[form] < len(sample):
        return [], ""
    odd = [value for value in values if not _fits(value, form)]
    share = 20 if isinstance(form, str) and "%y" in form else 2  # numbers of versions resemble such dates
    if share * len(odd) >= len(values):
        return [], ""
    return odd, next(value for value in values if _fits(value, form))


def fitting_time_formats(values: Sequence[str], given: str | None = None) -> list[str]:
    """Return the known strptime formats that fit all values.

    >>> fitting_time_formats(["03/04/2024 10:30"])
    ['%d/%m/%Y %H:%M', '%m/%d/%Y %H:%M']
    """
    if not values or (given is None and not all(map(_DATE_LIKE.fullmatch, values[:20]))):
        return []
    known = [given] if given else [day + clock for day in _DAYS for clock in _CLOCKS]
    return [one for one in known if all(_fits(value, one) for value in values)]


def _fits(value: str, form: str | re.Pattern[str]) -> bool:
    try:
        if isinstance(form, str):
            datetime.strptime(value, form)
        elif (match := form.fullmatch(value)) is None:
            return False
        elif form.groups:
            date.fromisoformat(match[1])
    except ValueError:
        return False
    return True


# -- Quoted values of delimited text: their positions, the ends of rows, and unclosed quotes -------------

# An unclosed quote would include all later rows in one value. A quote that remains open for too many lines, is closed
# in the middle of a value on a later line, or is open at the end of the text is an error in the line where it opens.

MAX_LINES = 100  # largest number of lines of a quoted value
LONGEST_LINE = 64 << 20  # bytes; enough for a row of several million numbers


class UnclosedQuote(NamedTuple):
    """A quote that is not closed.

    Attributes
    ----------
    at : int
        Byte offset of the quote in the block.
    at_end : bool
        Whether the quote is open at the end of the text.
    """

    at: int
    at_end: bool

    def message(self, name: str, place: str, max_lines: int) -> str:
        """Return the error message; `place` is the line or row where the quote opens."""
        if self.at_end:
            return (
                f"{name!r} ends within a quoted value that begins in {place}: close the quote there, or copy the file"
                " again if its end is missing."
            )
        return (
            f"{name!r} has a quote in {place} that is not closed where a value ends within {max_lines:,} lines: close"
            f" or double it, or allow more by max_quoted_lines={10 * max_lines}."
        )


def check_max_quoted_lines(max_lines: int | None) -> int | None:
    """Validate `max_quoted_lines` and return it as an option of a file; None: the default."""
    if max_lines is None:
        return None
    check_number("max_quoted_lines", max_lines, low=1, integer=True)
    return None if max_lines == MAX_LINES else int(max_lines)


def quoted_spans(block: bytes, delimiter: str) -> tuple[Array, Array]:
    """Return the starts and ends of quoted values; the end is len(block) if the closing quote is missing.

    A quote in the middle of a value is part of the value.
    """
    if block.startswith(codecs.BOM_UTF8):
        block = b"\n\n\n" + block[3:]
    quotes = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord('"'))
    starts, ends = quotes[0::2], quotes[1::2]
    if len(ends) < len(starts):
        ends = np.append(ends, len(block))
    before = np.frombuffer(b"\n" + block, dtype=np.uint8)[starts]
    allowed = np.frombuffer(delimiter.encode() + b'\r\n"', dtype=np.uint8)
    if np.isin(before, allowed).all():
        parted = starts[1:] != ends[:-1] + 1  # the second quote of two is an escaped quote
        if parted.all():
            return starts, ends
        return starts[np.append(True, parted)], ends[np.append(parted, True)]
    at = rf'(?:^|(?<=[{re.escape(delimiter)}\r\n]))"[^"]*+(?:""[^"]*+)*+(?:"|\Z)'
    items = [match.span() for match in re.finditer(at.encode(), block)]
    spans = np.array(items, dtype=np.int64).reshape(-1, 2)
    starts, ends = spans[:, 0], spans[:, 1] - 1
    if len(spans) and spans[-1, 1] == len(block) and block.count(b'"', int(starts[-1])) % 2:
        ends[-1] = len(block)
    return starts, ends


def first_unclosed(
    block: bytes,
    spans: tuple[Array, Array],
    delimiter: str,
    max_lines: int,
    newline: bytes = b"\n",
    *,
    whole: bool,
) -> UnclosedQuote | None:
    """Return the first unclosed quote, or None.

    Parameters
    ----------
    block : bytes
        Must begin at the start of a row.
    spans : pair of ndarray
        As returned by `quoted_spans`.
    delimiter : str
        Each of its characters may end a value.
    max_lines : int
        Largest number of lines of a quoted value.
    newline : bytes, optional
    whole : bool
        Whether the block is the end of the text.
    """
    starts, ends = spans
    text = np.frombuffer(block, dtype=np.uint8)
    allowed = np.frombuffer(delimiter.encode() + b"\r\n", dtype=np.uint8)
    inside = ends < len(block) - 1
    is_wrong = np.zeros(len(starts), dtype=bool)
    is_wrong[inside] = ~np.isin(text[ends[inside] + 1], allowed)
    is_long = ends - starts >= max_lines
    if is_wrong.any() or is_long.any():
        lines = np.flatnonzero(text == newline[0])
        n = np.searchsorted(lines, ends) - np.searchsorted(lines, starts)
        is_wrong = (n > 0) & (is_wrong | (n >= max_lines) | (ends - starts > LONGEST_LINE))
        if is_wrong.any():
            return UnclosedQuote(int(starts[np.argmax(is_wrong)]), at_end=False)
    if whole and len(starts) and ends[-1] == len(block):
        return UnclosedQuote(int(starts[-1]), at_end=True)
    return None


def row_ends(
    block: bytes, delimiter: str, max_lines: int, *, whole: bool
) -> tuple[list[int], UnclosedQuote | None]:
    r"""Return the ends of the rows of a block, and the unclosed quote in the last of them, if any.

    That row is the line in which the quote opens. Without a delimiter, each line is a row.

    >>> row_ends(b'1,2\n3,"a\nb"\n5,', ",", 100, whole=False)
    ([4, 12], None)
    >>> row_ends(b'1,"2\n3,4\n', ",", 1, whole=False)
    ([5], UnclosedQuote(at=2, at_end=False))
    """
    text = np.frombuffer(block, dtype=np.uint8)
    ends: Array = np.flatnonzero(text == ord("\n"))
    newline = b"\n"
    if b"\r" in block:  # \r without \n also ends a row; for a final \r, this is not known yet
        returns = np.flatnonzero(text[:-1] == ord("\r"))
        returns = returns[text[returns + 1] != ord("\n")]
        newline = newline if len(ends) else b"\r"
        ends = np.sort(np.concatenate([ends, returns])) if len(returns) else ends
    quote: UnclosedQuote | None = None
    if delimiter and b'"' in block:
        starts, stops = quoted_spans(block, delimiter)
        quote = first_unclosed(block, (starts, stops), delimiter, max_lines, newline, whole=whole)
        if len(starts):
            at = np.searchsorted(starts, ends) - 1
            is_end = (at < 0) | (ends > stops[np.maximum(at, 0)])
            if quote is not None:
                is_end = (ends < quote.at) & is_end
                is_end[np.searchsorted(ends, quote.at) :][:1] = True
            ends = ends[is_end]
    stops_at: list[int] = (ends + 1).tolist()
    # In the last line, which has no newline.
    is_cut = quote is not None and (not stops_at or stops_at[-1] <= quote.at)
    if whole and (is_cut or (quote is None and len(block) > (stops_at[-1] if stops_at else 0))):
        stops_at.append(len(block))
    return stops_at, quote
