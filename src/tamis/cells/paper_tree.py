"""A policy as a decision tree on paper: which value to acquire, what each answer leads to, and what that costs.

The tree asks what the model asks. Records decide which answers have a branch of their own, and what a numeric answer
stands for: the median of the records in its bin. Neighbouring answers that lead to the same tree below are one branch.
So the tree is a simpler policy than the model, and its cost and error are those of the tree itself on the records.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Ints, Mask, as_column, check_number, reject_missing
from tamis.base.session import State, next_within
from tamis.cells.records import price_text
from tamis.persistence import replace_file
from tamis.report.charts.ranks import Diagram
from tamis.report.content import Cell, Figure, Section, Table
from tamis.report.result import Result
from tamis.report.text import fraction, plural, shorten

if TYPE_CHECKING:
    from tamis.cells import CellClassifier

_STEP, _ROW, _SIZE = 210.0, 30.0, 13.0  # of the drawing: between levels and between leaves; of letters


@dataclass(frozen=True)
class Branch:
    """Answers to a question, and what they lead to.

    Attributes
    ----------
    codes : tuple of int
        The bins of the answers, or their categories.
    below : Question
    high : float
        Largest number of the branch; inf in the last one.
    """

    codes: tuple[int, ...]
    below: Question
    high: float = field(default=math.inf, compare=False)


@dataclass(frozen=True)
class Question:
    """A place in the tree: a question, or a decision if it has no branches.

    Attributes
    ----------
    decision : object
        The decision here, also if the value is unavailable or unlike any branch.
    rows : ndarray of int
        The records that come here.
    position : int
        The candidate that is acquired; -1 for a decision.
    price : float
    branches : tuple of Branch
    """

    decision: Any
    rows: Ints = field(compare=False)
    position: int = -1
    price: float = 0.0
    branches: tuple[Branch, ...] = ()

    def merged(self, other: Question) -> Question:
        """Return the tree with the records of another tree that equals it."""
        pairs = zip(self.branches, other.branches, strict=True)
        branches = tuple(replace(one, below=one.below.merged(two.below)) for one, two in pairs)
        return replace(self, rows=np.concatenate([self.rows, other.rows]), branches=branches)


class PaperTree(Result):
    """A decision tree that asks what a fitted model asks, with its cost and error on records.

    Parameters
    ----------
    model : CellClassifier
        Fitted.
    X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        Records, the more complete the better; NaN is a value that was not recorded.
    y : array-like of shape (n_rows,)
    depth : int, default=4
        Largest number of questions, at least 1.
    min_share : float, default=0.02
        Smallest share of the records, in (0, 1], that have a branch of their own.
    title : str
        The data, for the heading.

    Raises
    ------
    DataError
        If the columns are not those of the model, or a label is missing.
    ValueError
        If `depth` or `min_share` is out of range.

    Examples
    --------
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 4)) + 3 * y[:, None]
    >>> tree = PaperTree(IFC2F(random_state=0).fit(X, y), X, y, depth=2)
    >>> print(tree.verdict())
    The tree costs 0.0150 per record and errs in 0.014 of them; the model costs 0.0174 and errs in 0.001.
    """

    def __init__(
        self, model: CellClassifier, X: Any, y: Any, *, depth: int = 4, min_share: float = 0.02, title: str = "records"
    ) -> None:  # fmt: skip
        check_is_fitted(model)
        check_number("depth", depth, low=1, integer=True)
        check_number("min_share", min_share, low=0.0, high=1.0, open_low=True)
        self.model, self._title, self.depth = model, title, depth
        rows = model._rows(X)
        self.y = as_column(y, rows.shape[0], type(model).__name__)
        reject_missing(self.y)
        self._values, self._codes = model._cells(rows, np.arange(rows.shape[0]))
        self._least = max(1, math.ceil(min_share * len(self.y)))
        self.root = self._with_limits(self._grow(model._start(1), np.arange(len(self.y)), depth))
        self.decided, self.cost = self._apply()
        self.predicted, self.model_cost = model.predict(X), model.cost_.copy()

    # -- growth --------------------------------------------------------------------------------------------

    def _grow(self, state: State, rows: Ints, depth: int) -> Question:
        """Return the tree below a state, which the records `rows` come to."""
        decision = self.model._decide(state.posterior)[0].item()
        if depth == 0 or len(rows) < self._least:
            return Question(decision, rows)
        position, price = (one[0] for one in next_within(self.model, state, math.inf))
        if position < 0:
            return Question(decision, rows)
        branches = self._branches(state, int(position), rows, depth)
        if not branches:
            return Question(decision, rows)
        return Question(decision, rows, int(position), float(price), tuple(branches))

    def _is_category(self, position: int) -> bool:
        return int(self.model.candidates_[position]) in self.model._categories.values

    def _branches(self, state: State, position: int, rows: Ints, depth: int) -> list[Branch]:
        """Return a branch for each bin or category of the records, those that lead to the same tree as one."""
        codes, values, at = self._codes[rows, position], self._values[rows, position], np.array([position])
        branches: list[Branch] = []
        for code in np.unique(codes[codes >= 0]).tolist():
            mine = codes == code
            below = state.take(np.array([0]))
            price = self.model._price(below, at)
            self.model._observe(below, at, np.array([code], dtype=np.int16), np.median(values[mine])[None])
            below.spent += price
            own = Branch((code,), self._grow(below, rows[mine], depth - 1))
            # Of numbers, only neighbours are one interval.
            same = branches if self._is_category(position) else branches[-1:]
            twin = next((one for one in same if one.below == own.below), None)
            if twin is None:
                branches.append(own)
            else:
                both = Branch(twin.codes + own.codes, twin.below.merged(own.below))
                branches[branches.index(twin)] = both
        return branches

    def _with_limits(self, node: Question) -> Question:
        """Return the tree with the largest number of each branch: short, between those of the records."""
        branches = [replace(one, below=self._with_limits(one.below)) for one in node.branches]
        if node.branches and not self._is_category(node.position):
            ends = [np.sort(self._values[one.below.rows, node.position])[[0, -1]] for one in branches]
            for k in range(len(branches) - 1):
                branches[k] = replace(branches[k], high=_between(float(ends[k][1]), float(ends[k + 1][0])))
        return replace(node, branches=tuple(branches))

    # -- use -----------------------------------------------------------------------------------------------

    def _apply(self) -> tuple[Array, Floats]:
        """Return the decision of the tree for each record, and what it pays."""
        decided, cost = np.empty(len(self.y), dtype=self.model.classes_.dtype), np.zeros(len(self.y))

        def walk(node: Question, rows: Ints) -> None:
            decided[rows] = node.decision
            rest = rows[~np.isnan(self._values[rows, node.position])] if node.branches else rows[:0]
            cost[rest] += node.price
            for branch in node.branches:
                mine = self._goes(branch, node.position, rest)
                walk(branch.below, rest[mine])
                rest = rest[~mine]

        walk(self.root, np.arange(len(self.y)))
        return decided, cost

    def _goes(self, branch: Branch, position: int, rows: Ints) -> Mask:
        """Return which records, not those of an earlier branch, go this way."""
        if self._is_category(position):
            return np.isin(self._codes[rows, position], branch.codes)
        return self._values[rows, position] <= branch.high

    def questions(self) -> list[Question]:
        """Return the questions in the order of their numbers, from the top, level by level."""
        level, questions = [self.root] * bool(self.root.branches), list[Question]()
        while level:
            questions += level
            level = [one.below for node in level for one in node.branches if one.below.branches]
        return questions

    # -- presentation --------------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the method and the data."""
        return f"Decision tree of {type(self.model).__name__} on {self._title}"

    def verdict(self) -> str:
        """Return the cost and the error of the tree, and of the model, on the records."""
        tree, model = self._error(self.decided), self._error(self.predicted)
        costs = [self._price(float(cost.mean())) for cost in (self.cost, self.model_cost)]
        if self.model._is_regression:
            what = "has a squared error, as a share of the variance, of"
            return f"The tree costs {costs[0]} per record and {what} {tree}; the model costs {costs[1]}, with {model}."
        return (
            f"The tree costs {costs[0]} per record and errs in {tree} of them; the model costs {costs[1]} and errs in"
            f" {model}."
        )

    def about(self) -> str:
        """Return the size of the tree, and the records."""
        n = len(self.questions())
        return (
            f"{plural(n, 'question', 'questions')}, at most {self.depth} for a case;"
            f" {plural(len(self.y), 'record', 'records')}. A missing value, or one unlike any branch, ends in the"
            " decision beside the question."
        )

    def headline(self) -> list[Figure]:
        """Return how often the tree decides as the model."""
        return [
            Figure(
                "Decisions equal to the model's",
                f"{np.mean(self.decided == self.predicted):.1%}",
                is_main=False,
            )
        ]

    def sections(self) -> list[Section]:
        """Return the drawing, and the tree as a list of questions."""
        return [Section("tree", "Tree", [self.drawing(), self._table()])]

    def _table(self) -> Table:
        questions, rows = self.questions(), list[list[Cell]]()
        number = {id(node): k for k, node in enumerate(questions, start=1)}
        for node in questions:
            for k, branch in enumerate(node.branches):
                below = branch.below
                leads = (
                    f"go to {number[id(below)]}"
                    if below.branches
                    else f"decide {self._label(below.decision)}"
                )
                first = [str(number[id(node)]), self._question(node), self._label(node.decision)]
                right = "" if below.branches or self.model._is_regression else f"{self._right(below):.0%}"
                place = first if k == 0 else [""] * 3
                rows.append([*place, self._answer(node, k), leads, f"{len(below.rows):,}", right])
        head = [
            ("n", "step"), ("", "acquire"), ("", "if unavailable"), ("", "answer"), ("", "then"), ("n", "records"),
            ("n", "right"),
        ]  # fmt: skip
        return Table("Step by step", head, rows, is_main=True)

    def drawing(self) -> Diagram:
        """Return the tree from left to right: questions, answers, and decisions with their share of right ones."""
        diagram = Diagram("Drawing", self._said(), 0.0)
        leaves = 0

        def place(node: Question, level: int) -> float:
            nonlocal leaves
            x = 8.0 + level * _STEP
            if not node.branches:
                leaves += 1
                y = _ROW * leaves
                diagram.texts.append((x, y, "start", self._decision(node), _SIZE))
                diagram.width = max(diagram.width, x + _STEP)
                return y
            heights = [place(one.below, level + 1) for one in node.branches]
            y = (heights[0] + heights[-1]) / 2
            words = shorten(self._question(node), 22)
            diagram.texts.append((x, y, "start", words, _SIZE))
            start = x + min(0.6 * _SIZE * len(words), 0.6 * _STEP) + 4
            for k, height in enumerate(heights):
                diagram.lines.append(([(start, y), (start + 12, height), (x + _STEP - 6, height)], 1.0))
                answer = shorten(self._answer(node, k), 14)
                diagram.texts.append((x + _STEP - 8, height - 8, "end", answer, _SIZE - 2))
            return y

        place(self.root, 0)
        diagram.height = _ROW * (leaves + 1)
        return diagram

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the tree: the drawing alone if the path ends in .svg, a page otherwise."""
        if not str(path).lower().endswith(".svg"):
            self.report(path)
            return
        svg = self.drawing().svg().strip().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        replace_file(path, lambda file: file.write(f"<!-- Created with Tamis -->\n{svg}\n".encode()))

    def _said(self) -> str:
        return f"A tree of {len(self.questions())} questions; the table below has the same content."

    def _question(self, node: Question) -> str:
        price = f" ({self._price(node.price)})" if node.price else ""
        return f"{self.model.name_of(node.position)}{price}"

    def _answer(self, node: Question, k: int) -> str:
        """Return the answers of a branch in words."""
        branch = node.branches[k]
        if self._is_category(node.position):
            return ", ".join(
                str(self.model._plain_value(node.position, float(code))) for code in branch.codes
            )
        if math.isinf(branch.high):
            return f"> {node.branches[k - 1].high:g}" if k else "any"
        return f"≤ {branch.high:g}"

    def _decision(self, node: Question) -> str:
        if self.model._is_regression:
            return self._label(node.decision)
        return f"{self._label(node.decision)} ({self._right(node):.0%} of {len(node.rows):,})"

    def _right(self, node: Question) -> float:
        return float(np.mean(self.y[node.rows] == node.decision))

    def _label(self, decision: Any) -> str:
        return f"{decision:.5g}" if self.model._is_regression else str(decision)

    def _error(self, decided: Array) -> str:
        if self.model._is_regression:
            return fraction(float(self.model._losses(self.y, decided).mean() / self.model._unit_loss))
        return fraction(float(np.mean(decided != self.y)))

    def _price(self, price: float) -> str:
        return price_text(self.model, price)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        return {
            "verdict": self.verdict(), "method": type(self.model).__name__, "data": self._title,
            "n_rows": len(self.y), "cost": float(self.cost.mean()), "model_cost": float(self.model_cost.mean()),
            "error": float(self._error(self.decided)), "model_error": float(self._error(self.predicted)),
            "tree": self._plain(self.root),
        }  # fmt: skip

    def _plain(self, node: Question) -> dict[str, Any]:
        known = {"decision": node.decision, "n_rows": len(node.rows)}
        if not node.branches:
            return known
        answers = [
            {"answer": self._answer(node, k), **self._plain(one.below)} for k, one in enumerate(node.branches)
        ]
        return {
            **known,
            "acquire": self.model.name_of(node.position),
            "price": node.price,
            "answers": answers,
        }


def _between(low: float, high: float) -> float:
    """Return a number of few digits in [low, high).

    >>> _between(2.4371, 2.5512), _between(3.0, 7.0), _between(0.5, 0.5000001)
    (2.5, 5.0, 0.5)
    """
    middle = low / 2 + high / 2
    for digits in range(-3, 17):
        if low <= (short := round(middle, digits)) < high:
            return float(short)
    return low
