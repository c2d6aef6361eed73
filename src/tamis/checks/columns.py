"""Checks of streaming features: offers, traces, feature streams and rejected columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array
from tamis.base import ColumnSelector
from tamis.checks import shared
from tamis.checks.subject import NAMES, ColumnSubject, fail, rejects, skip, table
from tamis.checks.suite import Report, entry_of, named_checks, run_all

_NAMES = [*NAMES, "x1"]


def check_column_selector(estimator: ColumnSelector, *, per_batch: bool | None = None) -> Report:
    """Run every check on a selector of streaming features.

    Parameters
    ----------
    estimator : ColumnSelector
        Any instance, yours or of Tamis; it is not fitted itself. Its class must be one that pickle can find: defined
        in a module, not in a function.
    per_batch : bool, optional
        Whether the method is defined per block, so that a block may differ from its features one at a time. By default
        as in the catalogue, and False for a class that is not in it.

    Returns
    -------
    Report
        The checks that ran, and those skipped with their reasons.

    Raises
    ------
    AssertionError
        If a check fails; the message lists all failed checks, each with its name and the difference.

    Examples
    --------
    >>> from tamis import AlphaInvesting
    >>> from tamis.checks import check_column_selector
    >>> report = check_column_selector(AlphaInvesting())
    >>> len(report.passed) > 20, report.failed
    (True, {})
    """
    return run_all(estimator, column_selector_checks(estimator, per_batch=per_batch))


def column_selector_checks(
    estimator: ColumnSelector, *, per_batch: bool | None = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator, per_batch
        As for :func:`check_column_selector`.

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the selector does not keep this promise, and unittest.SkipTest if it does
        not apply.

    Raises
    ------
    TypeError
        If `estimator` is not an instance of ColumnSelector.

    Examples
    --------
    >>> from tamis import AlphaInvesting
    >>> checks = dict(column_selector_checks(AlphaInvesting()))
    >>> checks["block_equals_one_by_one"]()
    """
    if not isinstance(estimator, ColumnSelector):
        raise TypeError(f"estimator must be an instance of tamis.base.ColumnSelector, got {estimator!r}.")
    entry = entry_of(estimator)
    if per_batch is None:
        per_batch = entry is not None and entry.per_batch
    subject = ColumnSubject(estimator, per_batch)
    return named_checks(__name__, subject)


def _block_equals_one_by_one(subject: ColumnSubject) -> None:
    """A block leaves the decisions of its columns offered one at a time, or in smaller blocks."""
    if subject.per_batch:
        skip("the method is defined per block")
    X, y = subject.data(0, 60, (20, 40))
    whole = subject.new().start(y)
    accepted = whole.offer_many(X)
    one = subject.new().start(y)
    singles = [one.offer(X[:, j]) for j in range(60)]
    if accepted.tolist() != singles:
        fail(f"offer_many accepts {np.flatnonzero(accepted)}, and offer accepts {np.flatnonzero(singles)}.")
    subject.compare(whole, one, "a block, and its columns one at a time", tolerance=1e-6)
    parts = subject.new().start(y)
    for start in range(0, 60, 7):
        parts.offer_many(X[:, start : start + 7])
    subject.compare(whole, parts, "a block, and blocks of 7", tolerance=1e-6)


def _fit_equals_offers(subject: ColumnSubject) -> None:
    """`fit` is `start` and an offer of every column; it resets the selector."""
    X, y = subject.data()
    subject.compare(subject.new().fit(X, y), subject.learned(), "fit, and start with offer_many")
    again = subject.new().fit(*subject.data(3, 9)).fit(X, y)
    subject.compare(again, subject.learned(), "fit after another fit, and of a new copy")
    restarted = subject.learned().start(y)
    if restarted.selected_ or restarted.n_offered_ or len(restarted.trace_):
        fail("start must reset the features and the trace.")


def _finds_planted_features(subject: ColumnSubject) -> None:
    """The target depends on two of thirty features: both are selected, and not most of the others."""
    X, y = subject.data(1, 30, (7, 23))
    selected = subject.new().fit(X, y).selected_
    if not {"x7", "x23"} <= set(selected) or len(selected) > 15:
        fail(f"the target depends on x7 and x23, but {selected} are selected.")


def _answers(subject: ColumnSubject) -> None:
    """`offer` returns a bool, `offer_many` an array of them, and the attributes are consistent."""
    X, y = subject.data()
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
        fail(f"offer_many returns {answers}, but the trace contains {record['decision'][1:]}.")


def _trace_of_the_selected(subject: ColumnSubject) -> None:
    """With ``trace="selected"``, only accepted offers are recorded, and the decisions are the same."""
    few, every = subject.learned(trace="selected"), subject.learned()
    if few.selected_ != every.selected_:
        fail(f"trace='selected' selects {few.selected_} instead of {every.selected_}.")
    accepted = every.trace_[every.trace_["decision"] == "accepted"]
    if few.trace_[["offer", "name"]].tolist() != accepted[["offer", "name"]].tolist():
        fail(f"trace='selected' leaves {few.trace_['name'].tolist()}, not {accepted['name'].tolist()}.")


def _support(subject: ColumnSubject) -> None:
    """Support, names and transform agree with `selected_`, after `fit` and after offers."""
    X, y = subject.data()
    for selector in (subject.new().fit(X, y), subject.learned()):
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
    """A rejected feature may be offered again under its name, a selected one may not."""
    X, y = subject.data()
    names = list("abcdefg")
    selector = subject.new().start(y)
    accepted = selector.offer_many(X, names)
    if accepted.all() or not accepted.any():
        fail(f"of 7 features, two of them relevant, {np.count_nonzero(accepted)} are accepted.")
    rejected, kept = int(np.flatnonzero(~accepted)[0]), selector.selected_[0]
    selector.offer(X[:, rejected], names[rejected])
    rejects(lambda: selector.offer(X[:, 0], kept), "the name of a selected feature", repr(kept))
    rejects(lambda: selector.offer_many(X[:, :2], ["new", "new"]), "a name twice in a block", "'new'")
    rejects(lambda: selector.offer_many(X[:, :2], ["new"]), "one name for two columns", "1", "2")


def _redundant_columns(subject: ColumnSubject) -> None:
    """A constant column is never selected, and of a column and its copy at most one is."""
    X, _ = subject.data()
    selector = subject.learned()
    if selector.offer(np.full(120, 7.0), "constant") or selector.offer(np.zeros(120), "zero"):
        fail("a constant column is accepted.")
    for name in list(selector.selected_):
        selector.offer(X[:, int(name[1:])].copy(), f"copy of {name}")
        if {name, f"copy of {name}"} <= set(selector.selected_):
            fail(f"{name} and its copy are both selected.")


class _TwoBlocks:
    """Yields seven columns in two blocks, and records the selection at each call."""

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
    """A stream yields names with columns or blocks, and may receive the current selection."""
    X, y = subject.data()
    offers = subject.new().start(y)
    offers.offer_many(X[:, :4], [f"s{j}" for j in range(4)])
    offers.offer_many(X[:, 4:], [f"s{j}" for j in range(4, 7)])
    stream = _TwoBlocks(X)
    subject.compare(
        subject.new().fit_stream(stream, y), offers, "a stream of features, and offers", tolerance=1e-9
    )
    if stream.seen[0] or stream.seen[-1] != offers.selected_:
        fail(f"the stream saw {stream.seen} as selected.")
    pairs = ((f"s{j}", X[:, j]) for j in range(7))
    one = subject.new().start(y)
    for j in range(7):
        one.offer(X[:, j], f"s{j}")
    subject.compare(subject.new().fit_stream(pairs, y), one, "pairs of names and columns, and offers")


def _read_outs_are_copies(subject: ColumnSubject) -> None:
    """Writing into returned arrays changes nothing."""
    selector = subject.learned()
    selector.trace_["name"] = "other"
    selector.selected_.clear()
    selector.get_support()[:] = False
    subject.compare(selector, subject.learned(), "after its read-outs were written to, and before")


def _column_kinds(subject: ColumnSubject) -> None:
    """A column may be an array, a list, a table of one column or a sparse column, of any numeric kind."""
    X, y = subject.data()
    one = subject.new().start(y)
    shapes: list[Any] = [
        X[:, 0], X[:, 1].tolist(), X[:, [2]], sp.csc_matrix(X[:, [3]]), sp.csr_matrix(X[:, [4]]),
    ]  # fmt: skip
    for column in [*shapes, X[:, 5].astype(np.float32), X[:, 6]]:
        one.offer(column)
    if not subject.per_batch:
        subject.compare(one, subject.learned(), "columns of any shape, and a block", tolerance=1e-6)


def takes_frame(subject: ColumnSubject, library: str) -> None:
    """The column names of a frame are used, and transform finds the selected ones."""
    shared.same_as_frame(subject, library)
    X, y = subject.data()
    frame = table(library, X, _NAMES)
    selector = subject.new().fit(frame, y)
    wanted = [_NAMES[int(name[1:])] for name in subject.learned().selected_]
    if selector.selected_ != wanted or selector.feature_names_in_.tolist() != _NAMES:
        fail(f"a {library} frame selects {selector.selected_}, and an array {wanted}.")
    offers = subject.new().start(y)
    offers.offer_many(frame)
    if offers.selected_ != wanted:
        fail(f"offer_many of a {library} frame selects {offers.selected_}, and fit {wanted}.")
    in_order = [name for name in _NAMES if name in wanted]
    shuffled = table(library, X[:, ::-1], _NAMES[::-1])
    out = offers.transform(shuffled)
    if not np.array_equal(np.asarray(out), X[:, [_NAMES.index(name) for name in in_order]]):
        fail(f"after offers, transform of a {library} frame must find the selected columns by name.")
    if library != "pyarrow":  # scikit-learn does not support this output
        out = selector.set_output(transform=library).transform(frame)
        if list(out.columns) != in_order or type(out) is not type(frame):
            fail(f"set_output(transform={library!r}) returns columns {list(out.columns)}, not {in_order}.")
        series = frame[_NAMES[2]]
        one = subject.new().start(y)
        if one.offer(series) and one.selected_ != [_NAMES[2]]:
            fail(f"a {library} series named {_NAMES[2]!r} is called {one.selected_}.")


def _any_size(subject: ColumnSubject) -> None:
    """Features whose squares overflow or underflow are decided on as at usual scale, without a warning."""
    X, y = subject.data()
    wanted = subject.learned().selected_
    sizes = 2.0 ** np.array([-660, 0, 540, -1000, 1000, 0, -660])  # 1e-199, 1, 1e162, ...
    for what, given in (("an array", X * sizes), ("CSC", sp.csc_matrix(X * sizes))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            selected = subject.new().fit(given, y).selected_
        if selected != wanted:
            fail(
                f"of columns of sizes 1e-301 to 1e301 ({what}) it selects {selected}, of usual size {wanted}."
            )


def _refuses_columns(subject: ColumnSubject, X: Any, what: str, *words: str, names: Any = None) -> None:
    """Fail unless the block is rejected without an effect on attributes and on later decisions."""
    selector, control = subject.learned(), subject.learned()
    more, _ = subject.data(9)
    rejects(lambda: selector.offer_many(X, names), what, *words)
    subject.compare(selector, control, f"after rejecting {what}, and before")
    if sp.issparse(X) or np.ndim(X) == 2:
        last = X[:, [-1]] if sp.issparse(X) else np.asarray(X)[:, -1]
        if np.shape(X)[1] == 3:  # the last column of three is the one to reject
            rejects(lambda: selector.offer(last, "the last"), what, "the last")
    subject.compare(selector, control, f"after rejecting {what}, and before")
    selector.offer_many(more), control.offer_many(more)
    subject.compare(selector, control, f"offers after rejecting {what}, and without it")


def _shifted_columns(subject: ColumnSubject) -> None:
    """A constant added to the features leaves the decisions unchanged; a constant feature is not selected."""
    X, y = subject.data()
    for offset in (1e3, 1.7e9, -1e8):
        moved = X + offset  # exactly: multiples of 1/8
        moved[:, 0] = offset
        wanted = X.copy()
        wanted[:, 0] = 0.0
        what = f"features plus {offset:g}, and without"
        shifted = subject.new().fit(moved, y)
        subject.compare(shifted, subject.new().fit(wanted, y), what, tolerance=1e-5)
        if "x0" in shifted.selected_:
            fail(f"a feature that is always {offset:g} is selected.")


def _impossible_columns(subject: ColumnSubject) -> None:
    """Columns of a wrong length, with NaN or infinity, or of text, are rejected by name and change nothing."""
    X, _ = subject.data(5, 3, (0, 1))
    good = X.copy()
    for value in (np.nan, np.inf, -np.inf):
        X[:] = good
        X[17, 2] = value
        what = f"{value} in row 17"
        _refuses_columns(subject, X, what, "'c'", "row 17", names=list("abc"))
        _refuses_columns(subject, sp.csc_matrix(X), f"{what} (CSC)", "'c'", "row 17", names=list("abc"))
        _refuses_columns(subject, X, f"{what}, without a name", "'x9'")
    X[3, 2], X[4, 2] = np.inf, -np.inf  # their sum is NaN
    _refuses_columns(subject, X, "inf and -inf", "'c'", "infinity", names=list("abc"))
    _refuses_columns(subject, good[:-1], "a block that is too short", "119", "120")
    text = good.astype(object)
    text[7, 2] = "seven"
    selector = subject.learned()
    rejects(lambda: selector.offer_many(text), "text", "seven")
    rejects(lambda: selector.offer_many(good + 1j), "complex numbers", "omplex")
    rejects(lambda: selector.offer(good[:50, 0], "short"), "a short column", "'short'", "50", "120")
    rejects(lambda: selector.offer(good), "a block as a column", "offer_many")
    rejects(lambda: selector.offer_many(good[:, :0]), "a block of 0 columns", "0")
    subject.compare(selector, subject.learned(), "after rejecting columns, and before")


def _fails_late(subject: ColumnSubject) -> None:
    """A column rejected at the end of a block that is processed in parts undoes the whole block."""
    more, _ = subject.data(9)
    wide = np.ones((120, 3000))
    wide[:, :3], wide[60, -1] = more[:, :3], np.nan
    selector, control = subject.learned(), subject.learned()
    rejects(lambda: selector.offer_many(wide), "NaN in the last of 3000 columns", "'x3006'", "row 60")
    subject.compare(selector, control, "after rejecting the end of a block, and before")
    selector.offer_many(more), control.offer_many(more)
    subject.compare(selector, control, "offers after rejecting the end of a block, and without it")


def _imputes_if_told(subject: ColumnSubject) -> None:
    """With ``missing="mean"``, NaN becomes the column's mean, and the trace contains their number."""
    X, y = subject.data()
    X[4, 2] = X[5, 2] = X[0, 6] = np.nan
    filled = X.copy()
    for j in (2, 6):
        filled[np.isnan(X[:, j]), j] = np.nanmean(X[:, j])
    for kind in (np.array, sp.csc_matrix):
        selector = subject.new(missing="mean").fit(kind(X), y)
        wanted = subject.new().fit(filled, y)
        if selector.selected_ != wanted.selected_:
            fail(
                f"missing='mean' selects {selector.selected_}, and columns that were filled {wanted.selected_}."
            )
        if selector.trace_["n_missing"].tolist() != [0, 0, 2, 0, 0, 0, 1]:
            fail(f"the trace reports {selector.trace_['n_missing'].tolist()} missing values.")
    rejects(lambda: selector.offer(np.full(120, np.nan), "empty"), "a column of NaN only", "'empty'")
    rejects(lambda: selector.offer(np.full(120, np.inf), "infinite"), "a column of infinity", "'infinite'")


def _impossible_targets(subject: ColumnSubject) -> None:
    """Invalid targets (missing, constant, two-dimensional, of another length) and parameters are rejected."""
    X, y = subject.data()
    gaps = y.astype(np.float64)
    gaps[8] = np.nan
    targets = {
        "no target": None, "a target that is too short": y[1:], "a target of two columns": np.column_stack([y, y]),
        "a target with NaN": gaps, "a constant target": np.ones(120), "an empty target": y[:0],
    }  # fmt: skip
    for what, target in targets.items():
        selector = subject.learned()
        rejects(lambda: selector.fit(X, target), what, "y")  # noqa: B023
        subject.compare(selector, subject.learned(), f"after rejecting {what}, and before")
        if what != "a target that is too short":
            rejects(lambda: subject.new().start(target), what, "y")  # noqa: B023
    for name in ("missing", "trace"):
        rejects(lambda: subject.new(**{name: "other"}).start(y), f"{name}='other'", name, "'other'")  # noqa: B023


def _prior(subject: ColumnSubject) -> None:
    """Equal weights change nothing, a larger weight does not reject a column, and invalid weights are rejected."""
    if "prior" not in subject.prototype.get_params():
        skip("the method has no prior weights")
    X, y = subject.data()
    try:
        same = subject.new(prior=dict.fromkeys((f"x{j}" for j in range(7)), 1.0)).fit(X, y)
    except ValueError as reason:
        skip(str(reason))
    subject.compare(
        same, subject.new().fit(X, y), "a weight of 1 for every column, and no prior", tolerance=1e-9
    )
    best = same.selected_[0]
    for prior in ({best: 50.0}, {int(best[1:]): 50.0}):
        if best not in (selected := subject.new(prior=prior).fit(X, y).selected_):
            fail(f"{best} is selected without a prior, but prior={prior} selects {selected}.")
    for what, invalid in (
        ("a weight of 0", {"x0": 0.0}),
        ("a weight of NaN", {"x0": np.nan}),
        ("a list", [1.0] * 7),
    ):
        rejects(lambda: subject.new(prior=invalid).start(y), what, "prior")  # noqa: B023
