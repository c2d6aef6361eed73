"""What a selector of columns decides: one by one or in blocks, again, and written down in its trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._validation import Array
from tamis.checks.columns.subject import ColumnSubject, same
from tamis.checks.subject import fail, rejects, skip


def _block_equals_one_by_one(subject: ColumnSubject) -> None:
    """A block leaves the decisions of its columns offered one at a time, or in smaller blocks."""
    if subject.per_batch:
        skip("the method is defined per block")
    X, y = subject.columns(n_features=60, relevant=(20, 40))
    whole = subject.new().start(y)
    accepted = whole.offer_many(X)
    one = subject.new().start(y)
    singles = [one.offer(X[:, j]) for j in range(60)]
    if accepted.tolist() != singles:
        fail(f"offer_many accepts {np.flatnonzero(accepted)}, and offer accepts {np.flatnonzero(singles)}.")
    same(whole, one, "a block, and its columns one at a time", tolerance=1e-6)
    parts = subject.new().start(y)
    for start in range(0, 60, 7):
        parts.offer_many(X[:, start : start + 7])
    same(whole, parts, "a block, and blocks of 7", tolerance=1e-6)


def _fit_equals_offers(subject: ColumnSubject) -> None:
    """`fit` is `start` and an offer of every column; it forgets what was before."""
    X, y = subject.columns()
    same(subject.new().fit(X, y), subject.offered(), "fit, and start with offer_many")
    again = subject.new().fit(*subject.columns(9, seed=3)).fit(X, y)
    same(again, subject.offered(), "fit after another fit, and of a new copy")
    restarted = subject.offered().start(y)
    if restarted.selected_ or restarted.n_offered_ or len(restarted.trace_):
        fail("start must forget the features and the trace of before.")


def _same_data_same_bits(subject: ColumnSubject) -> None:
    """Two copies that were offered the same are the same, bit for bit."""
    same(subject.offered(), subject.offered(), "two copies that were offered the same")


def _finds_planted_features(subject: ColumnSubject) -> None:
    """Two of thirty columns decide the target: both are selected, and not most of the others."""
    X, y = subject.columns(n_features=30, seed=1, relevant=(7, 23))
    selected = subject.new().fit(X, y).selected_
    if not {"x7", "x23"} <= set(selected) or len(selected) > 15:
        fail(f"columns x7 and x23 decide the target, but {selected} are selected.")


def _answers(subject: ColumnSubject) -> None:
    """`offer` returns a bool, `offer_many` an array of them, and the read-outs tell the same story."""
    X, y = subject.columns()
    selector = subject.new().start(y)
    answer = selector.offer(X[:, 2], "two")
    if type(answer) is not bool or (selector.selected_ == ["two"]) != answer:
        fail(f"offer returns {answer!r}, and then selected_ is {selector.selected_}.")
    answers = selector.offer_many(X[:, 3:], ["three", "four", "five", "six"])
    if answers.dtype != np.bool_ or answers.shape != (4,):
        fail(f"offer_many returns {answers!r} for 4 columns; it must be a bool array of shape (4,).")
    if selector.n_offered_ != 5 or selector.n_features_in_ != 5:
        fail(f"after 5 offers, n_offered_ is {selector.n_offered_}.")
    record = selector.trace_
    if record["name"].tolist() != ["two", "three", "four", "five", "six"] or record["offer"].tolist() != [
        *range(5)
    ]:
        fail(f"trace_ names {record['name'].tolist()}.")
    if (record["decision"][1:] == "accepted").tolist() != answers.tolist():
        fail(f"offer_many returns {answers}, and the trace says {record['decision'][1:]}.")


def _trace_of_the_selected(subject: ColumnSubject) -> None:
    """With ``trace="selected"``, only accepted offers are written down, and the decisions are the same."""
    few, every = subject.offered(trace="selected"), subject.offered()
    if few.selected_ != every.selected_:
        fail(f"trace='selected' selects {few.selected_} instead of {every.selected_}.")
    accepted = every.trace_[every.trace_["decision"] == "accepted"]
    if few.trace_[["offer", "name"]].tolist() != accepted[["offer", "name"]].tolist():
        fail(f"trace='selected' leaves {few.trace_['name'].tolist()}, not {accepted['name'].tolist()}.")


def _support(subject: ColumnSubject) -> None:
    """Support, names and transform agree with `selected_`, after `fit` and after offers."""
    X, y = subject.columns()
    for selector in (subject.new().fit(X, y), subject.offered()):
        support = selector.get_support()
        names = [f"x{j}" for j in np.flatnonzero(support)]
        if sorted(selector.selected_) != names or selector.get_feature_names_out().tolist() != names:
            fail(f"get_support() keeps {names}, selected_ is {selector.selected_}.")
        if support.shape != (7,) or not np.array_equal(selector.transform(X), X[:, support]):
            fail("transform does not return the selected columns in their order.")
        renamed = selector.get_feature_names_out(list("abcdefg")).tolist()
        if renamed != [list("abcdefg")[j] for j in np.flatnonzero(support)]:
            fail(f"get_feature_names_out(names) is {renamed}.")


def _second_pass(subject: ColumnSubject) -> None:
    """A feature that was rejected may be offered again under its name; one that is selected not."""
    X, y = subject.columns()
    names = list("abcdefg")
    selector = subject.new().start(y)
    accepted = selector.offer_many(X, names)
    if accepted.all() or not accepted.any():
        fail(f"of 7 columns, two of which decide the target, {np.count_nonzero(accepted)} are accepted.")
    rejected, kept = int(np.flatnonzero(~accepted)[0]), selector.selected_[0]
    selector.offer(X[:, rejected], names[rejected])
    rejects(lambda: selector.offer(X[:, 0], kept), "the name of a selected feature", repr(kept))
    rejects(lambda: selector.offer_many(X[:, :2], ["new", "new"]), "a name twice in a block", "'new'")
    rejects(lambda: selector.offer_many(X[:, :2], ["new"]), "one name for two columns", "1", "2")


def _redundant_columns(subject: ColumnSubject) -> None:
    """A constant column is never selected, and of a column and its copy at most one is."""
    X, _ = subject.columns()
    selector = subject.offered()
    if selector.offer(np.full(120, 7.0), "constant") or selector.offer(np.zeros(120), "zero"):
        fail("a constant column is accepted.")
    for name in list(selector.selected_):
        selector.offer(X[:, int(name[1:])].copy(), f"copy of {name}")
        if {name, f"copy of {name}"} <= set(selector.selected_):
            fail(f"{name} and its copy are both selected.")


class _TwoBlocks:
    """Brings seven columns in two blocks, and notes what was selected when it was asked."""

    def __init__(self, X: Array) -> None:
        self.X, self.next = X, 0
        self.seen: list[list[str]] = []

    def next_features(self, selector: Any) -> Any:
        self.seen.append(list(selector.selected_))
        self.next += 1
        if self.next <= 2:
            columns = slice(4 * self.next - 4, 4 * self.next)
            return [f"s{j}" for j in range(7)[columns]], self.X[:, columns]
        return None


def _feature_streams(subject: ColumnSubject) -> None:
    """A stream may be pairs of names and columns, pairs of names and blocks, or see what was selected before."""
    X, y = subject.columns()
    offers = subject.new().start(y)
    offers.offer_many(X[:, :4], [f"s{j}" for j in range(4)])
    offers.offer_many(X[:, 4:], [f"s{j}" for j in range(4, 7)])
    stream = _TwoBlocks(X)
    same(subject.new().fit_stream(stream, y), offers, "a stream of features, and offers", tolerance=1e-9)
    if stream.seen[0] or stream.seen[-1] != offers.selected_:
        fail(f"the stream saw {stream.seen} as selected.")
    pairs = ((f"s{j}", X[:, j]) for j in range(7))
    one = subject.new().start(y)
    for j in range(7):
        one.offer(X[:, j], f"s{j}")
    same(subject.new().fit_stream(pairs, y), one, "pairs of names and columns, and offers")


def _sample_weights(subject: ColumnSubject) -> None:
    """Equal weights change nothing, rows of weight 0 do not count, and impossible weights are refused."""
    X, y = subject.columns()
    try:
        ones = subject.new().fit(X, y, sample_weight=np.ones(120))
    except (ValueError, TypeError) as error:
        skip(f"the method takes no weights ({error})")
    same(ones, subject.offered(), "every weight 1, and no weights", tolerance=1e-9)
    half = np.repeat([1.0, 0.0], [80, 40])
    few = subject.new().fit(X[:80], y[:80])
    same(subject.new().fit(X, y, sample_weight=half), few, "weight 0, and without these rows", tolerance=1e-6)
    twice = subject.new().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    double = subject.new().fit(X, y, sample_weight=np.full(120, 2.0))
    same(double, twice, "every weight 2, and every row twice", tolerance=1e-6)
    for what, weights in {
        "too few": half[1:],
        "negative": half - 1.0,
        "NaN": half * np.nan,
        "zero": 0 * half,
    }.items():
        rejects(lambda: subject.new().fit(X, y, sample_weight=weights), f"weights: {what}", "sample_weight")  # noqa: B023


CHECKS = (
    _block_equals_one_by_one,
    _fit_equals_offers,
    _same_data_same_bits,
    _finds_planted_features,
    _answers,
    _trace_of_the_selected,
    _support,
    _second_pass,
    _redundant_columns,
    _feature_streams,
    _sample_weights,
)
