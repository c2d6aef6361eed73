"""Detection of the dialect of a CSV file: encoding, delimiter, decimal mark and date format.

Each function is a heuristic that returns the interpretation under which the first rows are consistent.
"""

from __future__ import annotations

import codecs
import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from itertools import pairwise

__all__ = [
    "BLANKS",
    "DELIMITERS",
    "RANKING",
    "NumberFormat",
    "detect_decimal",
    "detect_delimiter",
    "detect_encoding",
    "detect_time_format",
    "escape_formula",
    "fitting_time_formats",
    "names_are_values",
    "odd_times",
    "split_preamble",
    "strip_sign",
]

DELIMITERS = (",", ";", "\t", "|")
BLANKS = " \t\u00a0\u202f"  # between a number and its sign
_LINES = 100  # lines from which the delimiter is detected
_SAMPLE = 200  # values from which the format of most times is detected
_UNITS = r"[+-]?(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)?(?:{mark}\d+)?(?:[eE][+-]?\d+)?"
_NUMBERS = {
    ".": re.compile(_UNITS.format(group=",", mark=r"\.")),
    ",": re.compile(_UNITS.format(group=r"\.", mark=",")),
}
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
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
_TIME_LIKE = re.compile(r"\d{1,4}([./:-])\d{1,2}(?:\1\d{1,4})?(?:[ T].*)?")
_DATE_LIKE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{2,4}(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?")


# First column name of the tables that Tamis writes, in which texts are escaped by :func:`escape_formula`.
RANKING = (
    "rank",
    "feature",
)
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
    mapping = {}
    for candidate in dict.fromkeys((preferred, *DELIMITERS)):
        rows = _rows(lines, candidate)
        counts = Counter(map(len, rows))
        if len(counts) == 1 and (n := next(iter(counts))) > 1:
            values = [value for row in rows[1:] for value in row if value]
            numbers = sum(is_number(value, ".") or is_number(value, ",") for value in values[:5000])
            mapping[candidate] = (numbers / max(len(values[:5000]), 1), n)
    if mapping:
        return max(mapping, key=mapping.__getitem__)
    first = lines[0] if lines else ""  # lines of different length: use the delimiter of the names
    at = {candidate: first.count(candidate) for candidate in dict.fromkeys((preferred, *DELIMITERS))}
    return max(at, key=at.__getitem__) if any(at.values()) else preferred


_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
_NOTES = re.compile(r"\ufeff?(?:#[^\n]*\n)+")


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
    if 0 < first.count(delimiter) == notes[-1].count(delimiter):
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


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=False) if row]
    except csv.Error:  # a value exceeds the reader's limit
        rows = [line.split(delimiter) for line in lines if line]
    return rows[: _LINES + 1]


def is_number(text: str, decimal: str) -> bool:
    """Return whether a text is a number with that decimal mark; the other mark may group thousands.

    >>> is_number("1.234,5", ","), is_number("1.234,5", "."), is_number("-2e-3", ".")
    (True, False, True)
    """
    text = text.strip()
    if _NUMBERS[decimal].fullmatch(text) and any(letter.isdigit() for letter in text):
        return True
    return text.lower() in ("inf", "-inf", "+inf", "infinity", "-infinity", "nan")


def strip_sign(text: str, sign: str) -> str:
    """Return a number without a currency or percent sign before or after it; any other text is unchanged.

    >>> strip_sign("-$ 1,000", "$"), strip_sign("49.5 %", "%"), strip_sign("a%b", "%")
    ('-1,000', '49.5', 'a%b')
    """
    before, number, after = (part.strip(BLANKS) for part in text.partition(sign))
    if not number or (before not in ("", "+", "-") and after):
        return text
    return before + after


def _sign_of(values: Iterable[str]) -> str:
    """Return the only currency or percent sign in texts; "" if there are none or several."""
    signs = {one for text in values for one in text if one in "%‰" or unicodedata.category(one) == "Sc"}
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
        Whether all values are numbers with that decimal mark, some with a sign or grouped thousands.
    """

    def __init__(self, values: Iterable[str]) -> None:
        texts = [value.strip() for value in values]
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
            mark: bool(marked or self.sign) and len(item) == len(set(texts))
            for mark, item in ((".", point), (",", comma))
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
