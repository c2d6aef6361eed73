"""Rules in a TOML file.

[[rules]]
when = 'psi("*") > 0.2 for 500 rows'
severity = "info"
cooldown = 20000
"""

from __future__ import annotations

import os
import tomllib
from typing import Any

from tamis._interrupts import raise_asynchronous
from tamis._validation import short_repr
from tamis.watch.rules import Rule

_KEYS = ("when", "severity", "cooldown")


def read_rules(path: str | os.PathLike[str]) -> list[Rule]:
    r"""Return the rules of a TOML file.

    Parameters
    ----------
    path : path-like
        A file with one table ``[[rules]]`` for each rule: `when`, the text of the rule, and optionally `severity` and
        `cooldown`, as in :class:`~tamis.watch.rules.Rule`.

    Returns
    -------
    list of Rule

    Raises
    ------
    ValueError
        If the file cannot be read, or a rule is invalid; the message names the rule.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rules.toml")
    >>> _ = path.write_text("[[rules]]\nwhen = 'auc drops by more than 0.05'\nseverity = 'critical'\n")
    >>> read_rules(path)
    [Rule('auc drops by more than 0.05', severity='critical', cooldown=5000)]
    """
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise_asynchronous(error)
        raise ValueError(
            f"The file of rules {os.fspath(path)!r} cannot be read ({error.strerror or error}): name another file."
        ) from error
    except ValueError as error:  # neither TOML nor UTF-8
        raise_asynchronous(error)
        raise ValueError(f"The file of rules {os.fspath(path)!r} is not valid TOML: {error}.") from error
    tables = content.get("rules")
    if set(content) != {"rules"} or not isinstance(tables, list) or not tables:
        raise ValueError(
            f"The file of rules {os.fspath(path)!r} must have a table [[rules]] for each rule and nothing else,"
            f" got {short_repr(sorted(content))}."
        )
    return [_rule(number, table) for number, table in enumerate(tables, start=1)]


def _rule(number: int, table: Any) -> Rule:
    unknown = sorted(set(table) - set(_KEYS)) if isinstance(table, dict) else [table]
    if unknown or "when" not in table:
        raise ValueError(
            f"Rule {number} must have 'when', and optionally 'severity' and 'cooldown', got {short_repr(table)}."
        )
    try:
        return Rule(table["when"], **{key: table[key] for key in _KEYS[1:] if key in table})
    except ValueError as error:
        raise ValueError(f"Rule {number}: {error}") from None
