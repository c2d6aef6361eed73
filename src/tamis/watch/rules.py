"""Rules that raise alerts: a comparison of measures, a minimum duration, a severity and a cool-down.

    reliance("age") > 2 * relevance("age") for 2000 rows
    state("*") == "used but no longer relevant"
    psi("*") > 0.2
    auc drops by more than 0.05

A measure of a feature is a call with its name, or with "*" for each feature in turn. A measure of the performance is a
name. A comparison with a missing value (NaN) is false. Expressions are parsed and interpreted, not executed.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from tamis._validation import check_choice, check_number, short_repr

SEVERITIES = ("info", "warning", "critical")
_DROP = re.compile(r"(\w+)\s+drops\s+by\s+more\s+than\s+(\d+(?:\.\d+)?)")
_FOR = re.compile(r"\s+for\s+([\d_,]+)\s+rows?$")
_LONGEST = 500

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


_RELATIONS: dict[type, str] = {
    ast.Gt: "above", ast.GtE: "at least", ast.Lt: "below", ast.LtE: "at most", ast.Eq: "equal to",
    ast.NotEq: "not",
}  # fmt: skip
_WORDS = {
    "psi": "PSI", "js": "Jensen-Shannon distance", "ks": "Kolmogorov-Smirnov distance", "auc": "AUC",
    "missing": "share of missing values", "missing_before": "share of missing values in the reference",
    "new": "share of new categories", "gone": "number of categories that no longer occur",
    "label_drift": "PSI of the labels", "prediction_drift": "PSI of the predictions", "drift": "PSI",
    "error_increase": "increase of the error", "missing_rise": "increase of the share of missing values",
    "shift": "change of the mean rank", "r2": "R²", "mae": "mean absolute error", "log_loss": "log loss",
}  # fmt: skip


class Rule:
    """A condition on the measures of a :class:`~tamis.watch.watch.Watch`.

    Parameters
    ----------
    text : str
        A comparison of numbers, measures of the performance (`auc`, `accuracy`) and measures of a feature
        (`reliance("age")`, `relevance`, `psi`, `js`, `ks`, `missing`, `new`, `gone`, `state`), joined by `and`, `or`
        and `not`; or `MEASURE drops by more than NUMBER`, compared with the first complete window. Then optionally
        `for N rows`. With the name "*", the rule is applied to each feature in turn.
    severity : {"info", "warning", "critical"}, default="warning"
    cooldown : int, default=5000
        Number of rows after an alert during which the same rule raises none for the same feature. A rule on a state or
        a cause raises another alert only after it has ceased to be satisfied.

    Raises
    ------
    ValueError
        If the text is not a rule.

    Notes
    -----
    Mean number of false alarms in 50,000 rows without a change, at an accuracy of 0.9 and of 0.75, with the default
    window of 1,000 rows: "accuracy drops by more than 0.05" 0.02 and 0.5 with independent errors, 4 and 6 with
    autocorrelated errors (0.9); "auc drops by more than 0.05" 0 and 0.2, and 2 and 6. With a window of 5,000 rows, all
    are at most 1.4 (experiments/watch_rules.py).

    Examples
    --------
    >>> Rule('psi("*") > 0.2 for 500 rows', severity="info")
    Rule('psi("*") > 0.2 for 500 rows', severity='info', cooldown=5000)
    >>> Rule('import os')
    Traceback (most recent call last):
    ...
    ValueError: The rule 'import os' cannot be parsed: write it as in 'psi("age") > 0.2 for 500 rows'.
    """

    def __init__(self, text: str, severity: str = "warning", cooldown: int = 5000) -> None:
        check_choice("severity", severity, SEVERITIES)
        check_number("cooldown", cooldown, low=0, integer=True)
        self.text, self.severity, self.cooldown = text, severity, int(cooldown)
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError(f"A rule must be text of at most {_LONGEST} characters, got {short_repr(text)}.")
        body = text.strip()
        held = _FOR.search(body)
        self.n_rows = int(re.sub("[_,]", "", held[1]) or 0) if held else 0
        self._body = body[: held.start()] if held else body
        self._check()

    def __repr__(self) -> str:
        return f"Rule({self.text!r}, severity={self.severity!r}, cooldown={self.cooldown})"

    def _check(self) -> None:
        if _DROP.fullmatch(self._body) is None and _walk(self._tree, self.text) != "truth":
            raise _unparsable(self.text)

    @functools.cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self._body, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _unparsable(self.text) from None

    @functools.cached_property
    def names(self) -> set[str]:
        """The measures that the rule uses."""
        if (drop := _DROP.fullmatch(self._body)) is not None:
            return {drop[1]}
        return {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    @functools.cached_property
    def features(self) -> list[str]:
        """The features to which the rule refers; "*" for each in turn."""
        if _DROP.fullmatch(self._body) is not None:
            return []
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        return list(dict.fromkeys(str(node.args[0].value) for node in calls))  # type: ignore[attr-defined]

    def holds(
        self,
        of_feature: Callable[[str, str], Any],
        performance: Mapping[str, Any],
        before: Mapping[str, float],
        feature: str | None,
    ) -> bool:
        """Return whether the condition is satisfied.

        Parameters
        ----------
        of_feature : callable
            Returns a measure by its name and the name of a feature.
        performance, before : mapping of str to float
            Current performance, and that in the first complete window.
        feature : str or None
            The feature that "*" refers to.
        """
        if (drop := _DROP.fullmatch(self._body)) is not None:
            now = performance.get(drop[1], math.nan)
            return bool(before.get(drop[1], math.nan) - now > float(drop[2]))

        def value(node: ast.expr) -> Any:
            if isinstance(node, ast.Constant):
                return node.value
            if isinstance(node, ast.Name):
                return performance.get(node.id, math.nan)
            if isinstance(node, ast.Call):
                return of_feature(*_measure_of(node, feature))
            if isinstance(node, ast.BinOp):
                try:
                    return _OPERATORS[type(node.op)](value(node.left), value(node.right))
                except ZeroDivisionError:
                    return math.nan
            if isinstance(node, ast.UnaryOp):
                operand = value(node.operand)
                return not operand if isinstance(node.op, ast.Not) else -operand
            if isinstance(node, ast.BoolOp):
                parts = (bool(value(part)) for part in node.values)
                return all(parts) if isinstance(node.op, ast.And) else any(parts)
            assert isinstance(node, ast.Compare)
            sides = [value(side) for side in (node.left, *node.comparators)]
            pairs = zip(node.ops, sides[:-1], sides[1:], strict=True)
            return all(not _is_nan(a, b) and _OPERATORS[type(op)](a, b) for op, a, b in pairs)

        return bool(value(self._tree))

    def sentence(
        self,
        of_feature: Callable[[str, str], Any],
        performance: Mapping[str, Any],
        before: Mapping[str, float],
        feature: str | None,
        since: int,
    ) -> str:
        """Return what the rule found, in words with its evidence; the arguments are those of `holds`.

        >>> values = {"psi": 0.3124, "relevance": 0.004, "reliance": 0.11}
        >>> Rule('psi("*") > 0.2 for 500 rows').sentence(lambda measure, name: values[measure], {}, {}, "age", 4100)
        "The PSI of 'age' is 0.312, above 0.2 since row 4,100."
        """
        after = f"since row {since:,}"
        if (drop := _DROP.fullmatch(self._body)) is not None:
            now, first = performance.get(drop[1], math.nan), before.get(drop[1], math.nan)
            return (
                f"The {_WORDS.get(drop[1], drop[1])} has fallen from {first:.3f} to {now:.3f}, by more than"
                f" {drop[2]} {after}."
            )
        tree = self._tree
        if self.names == {"cause"}:
            return f"{performance['cause'].capitalize()} {after}: {performance.get('evidence', '')}."
        if (
            isinstance(tree, ast.Compare)
            and len(tree.ops) == 1
            and isinstance(tree.left, ast.Call | ast.Name)
        ):
            of = ""
            if isinstance(tree.left, ast.Name):
                measure, value = tree.left.id, performance.get(tree.left.id, math.nan)
            else:
                measure, name = _measure_of(tree.left, feature)
                value, of = of_feature(measure, name), f" of {name!r}"
                if measure == "state":
                    evidence = performance.get("evidence of features", {}).get(name)
                    after += f": {evidence}" * bool(evidence)
                    return f"{name!r} is {value} {after}; {of_feature('reliance', name):.1%} of the reliance is on it."
            relation = _RELATIONS.get(type(tree.ops[0]))
            if relation is not None and isinstance(tree.comparators[0], ast.Constant):
                limit: Any = tree.comparators[0].value
                return f"The {_WORDS.get(measure, measure)}{of} is {value:.3g}, {relation} {limit:g} {after}."
        found = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                measure, name = _measure_of(node, feature)
                value = of_feature(measure, name)
                found.append(f"{measure} of {name!r} {value if isinstance(value, str) else f'{value:.3g}'}")
            elif isinstance(node, ast.Name) and node.id in performance:
                shown = performance[node.id]
                shown = shown if isinstance(shown, str) else f"{shown:.3g}"
                found.append(f"{_WORDS.get(node.id, node.id)} {shown}")
        return f"{self._body} {after}: {', '.join(dict.fromkeys(found))}."


def _measure_of(node: ast.Call, feature: str | None) -> tuple[str, str]:
    """Return the measure that a call names, and the feature: that of a rule for each, if it names "*"."""
    name = str(node.args[0].value)  # type: ignore[attr-defined]
    return node.func.id, feature if name == "*" and feature is not None else name  # type: ignore[attr-defined]


def _is_nan(*values: Any) -> bool:
    return any(isinstance(value, float) and math.isnan(value) for value in values)


def _unparsable(text: str) -> ValueError:
    return ValueError(
        f"The rule {short_repr(text)} cannot be parsed: write it as in 'psi(\"age\") > 0.2 for 500 rows'."
    )


def _walk(node: ast.expr, text: str) -> str:
    """Return the kind of an expression, "number", "text" or "truth"; raise unless it is one of a rule."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
        return "text" if isinstance(node.value, str) else "number"
    if isinstance(node, ast.Name):
        return "text" if node.id == "cause" else "number"
    if isinstance(node, ast.Call):
        named = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and not node.keywords
        if named and isinstance(node.func, ast.Name) and isinstance(node.args[0].value, str):  # type: ignore[attr-defined]
            return "text" if node.func.id == "state" else "number"
    if (
        isinstance(node, ast.BinOp)
        and type(node.op) in _OPERATORS
        and {_walk(node.left, text), _walk(node.right, text)} == {"number"}
    ):
        return "number"
    if isinstance(node, ast.UnaryOp):
        kind = "truth" if isinstance(node.op, ast.Not) else "number"
        if isinstance(node.op, ast.Not | ast.USub) and _walk(node.operand, text) == kind:
            return kind
    if isinstance(node, ast.BoolOp) and {_walk(part, text) for part in node.values} == {"truth"}:
        return "truth"
    if isinstance(node, ast.Compare) and all(type(op) in _OPERATORS for op in node.ops):
        kinds = {_walk(side, text) for side in (node.left, *node.comparators)}
        is_equality = all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        if kinds == {"number"} or (kinds == {"text"} and is_equality):
            return "truth"
    raise _unparsable(text)
