"""Checks of online feature selection: batches, classes, weights, merging, read-outs and rejected batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from tamis._validation import Array
from tamis.base import Claims, RowSelector, n_to_select, top_mask
from tamis.base.per_target import PerTarget
from tamis.base.rows import can_widen
from tamis.checks import shared
from tamis.checks.subject import NAMES, RowSubject, compare_scores, fail, rejects, skip, table
from tamis.checks.suite import Report, entry_of, named_checks, run_all
from tamis.merging import merge_tree


def check_row_selector(
    estimator: RowSelector,
    *,
    per_batch: bool | None = None,
    multiclass: bool | None = None,
    rounding: bool | None = None,
) -> Report:
    """Run every check on a row selector.

    Parameters
    ----------
    estimator : RowSelector
        Any instance, yours or of Tamis; it is not fitted itself. Its class must be one that pickle can find: defined
        in a module, not in a function.
    per_batch : bool, optional
        Whether the method is defined per batch, so that a batch may differ from the same rows one at a time. By
        default as in the catalogue, and False for a class that is not in it.
    multiclass : bool, optional
        Whether the method supports more than two classes. By default as in the catalogue, and True for a class that
        is not in it.
    rounding : bool, optional
        Whether a batch agrees with its rows one at a time only up to rounding, because sums are taken in another
        order. By default as in the catalogue, and False (the same bits) for a class that is not in it.

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
    >>> from tamis import OFS
    >>> from tamis.checks import check_row_selector
    >>> report = check_row_selector(OFS())
    >>> len(report.passed) > 25, report.failed
    (True, {})
    """
    checks = row_selector_checks(estimator, per_batch=per_batch, multiclass=multiclass, rounding=rounding)
    return run_all(estimator, checks)


def row_selector_checks(
    estimator: RowSelector,
    *,
    per_batch: bool | None = None,
    multiclass: bool | None = None,
    rounding: bool | None = None,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator, per_batch, multiclass, rounding
        As for :func:`check_row_selector`.

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the selector does not keep this promise, and unittest.SkipTest if it does
        not apply.

    Raises
    ------
    TypeError
        If `estimator` is not an instance of RowSelector.

    Examples
    --------
    >>> from tamis import OFS
    >>> checks = dict(row_selector_checks(OFS()))
    >>> checks["batch_equals_loop"]()
    """
    if not isinstance(estimator, RowSelector):
        raise TypeError(f"estimator must be an instance of tamis.base.RowSelector, got {estimator!r}.")
    entry = entry_of(estimator)
    if per_batch is None:
        per_batch = entry is not None and entry.per_batch
    if multiclass is None:
        multiclass = entry is None or "multiclass" in entry.targets
    if rounding is None:
        rounding = entry is not None and entry.rounding
    subject = RowSubject(estimator, per_batch, multiclass, rounding)
    return named_checks(__name__, subject)


_ROUNDING = 1e-9  # of the largest score: the same sums in another order


def _batch_equals_loop(subject: RowSubject) -> None:
    """A batch leaves the same bits as its rows one at a time, weighted or not; the same to rounding, if `rounding`."""
    if subject.per_batch:
        skip("the method is defined per batch")
    X, y = subject.data()
    tolerance = _ROUNDING if subject.rounding else 0.0
    for classes in (None if subject.regression else [0, 1], None):
        for weights in (np.ones(len(X)), 0.25 + np.arange(len(X)) % 7):
            if np.ptp(weights) and not _takes(subject, weights):
                continue
            whole = subject.new().partial_fit(X, y, classes, weights if np.ptp(weights) else None)
            for size in (1, 7):
                parts = subject.new()
                for start in range(0, len(X), size):
                    rows = slice(start, start + size)
                    parts.partial_fit(X[rows], y[rows], classes, weights[rows] if np.ptp(weights) else None)
                what = f"{len(X)}{' weighted' * bool(np.ptp(weights))} rows at once, and {size} at a time"
                # Undeclared classes are numbered in order of appearance, so only the scores must agree.
                (subject.compare if classes else compare_scores)(whole, parts, what, tolerance=tolerance)


def _takes(subject: RowSubject, weights: Array) -> bool:
    try:
        subject.new().partial_fit(*subject.data(), sample_weight=weights)
    except (ValueError, TypeError):
        return False
    return True


def _fit_forgets(subject: RowSubject) -> None:
    """`fit` equals `partial_fit` on a new copy, regardless of earlier training."""
    X, y = subject.data(5)
    wider, target = subject.data(6, n_features=8)
    once = subject.new().partial_fit(X, y)
    subject.compare(subject.new().fit(X, y), once, "fit, and partial_fit of a new copy")
    again = subject.new().fit(wider, target).fit(X, y)
    subject.compare(again, once, "fit after another fit, and partial_fit of a new copy")


def _finds_planted_features(subject: RowSubject) -> None:
    """The target depends on two of twenty features: after 3000 rows, they have the largest scores of ten kept."""
    if not subject.prototype.claims.ranks_relevance:
        skip("the scores do not rank relevance")
    selector = subject.new(n_features_to_select=10)
    for seed in range(30):
        selector.partial_fit(*subject.data(seed, 100, 20, (4, 11)))
    best = set(np.argsort(selector.scores_)[-2:].tolist())
    if best != {4, 11}:
        fail(f"the target depends on columns 4 and 11, but columns {sorted(best)} have the largest scores.")


def _labels_are_optional(subject: RowSubject) -> None:
    """An unsupervised method ignores labels of any kind, and is not warming up."""
    if subject.prototype.accepts.labels:
        skip("the method uses labels")
    X, y = subject.data()
    without = subject.new().partial_fit(X[:50]).partial_fit(X[50:])
    if without.warming_up_:
        fail("without labels, warming_up_ must be False.")
    gaps = X[:, 0].copy()
    gaps[8] = np.nan
    kinds = {"numbers": X[:, 0], "text": y.astype(str), "NaN": gaps, "two columns": X[:, :2]}
    for what, labels in {"classes": y, **kinds}.items():
        given = subject.new().partial_fit(X[:50], labels[:50]).partial_fit(X[50:], labels[50:])
        subject.compare(given, without, f"labels that are {what}, and none")


def _single_class(subject: RowSubject) -> None:
    """Until two classes have been seen, even if more are declared, nothing is ranked and every column is kept."""
    subject.skip_without_classes()
    X, y = subject.data()
    for declared in ([0, 1], None):
        selector = subject.new().partial_fit(X[y == 1], y[y == 1], classes=declared)
        what = "" if declared is None else f", two declared (classes={declared})"
        if not selector.warming_up_ or selector.scores_.any() or not selector.get_support().all():
            fail(
                f"after rows of one class only{what}, warming_up_ must be True, scores_ all zero and get_support()"
                " all True."
            )
    if selector.transform(X).shape != X.shape:
        fail(
            f"after rows of one class only, transform keeps {selector.transform(X).shape[1]} of {X.shape[1]} columns."
        )
    selector.partial_fit(X[y == 0], y[y == 0])
    if selector.warming_up_ or not _keeps(subject, selector, 2):
        fail("after rows of a second class, warming_up_ must be False and get_support() must keep 2 columns.")
    selector.partial_fit(X[y == 0], y[y == 0])
    if selector.n_seen_ != len(X) + np.count_nonzero(y == 0) or not np.isfinite(selector.scores_).all():
        fail(
            f"after another batch of one class, n_seen_ is {selector.n_seen_} and scores_ {selector.scores_}."
        )


def _keeps(subject: RowSubject, selector: Any, n_selected: int) -> bool:
    n_kept = selector.get_support().sum()
    return bool(n_kept >= 1 if subject.chooses_count else n_kept == n_selected)


def _late_class(subject: RowSubject) -> None:
    """A class may appear later; earlier classes keep their positions."""
    subject.skip_without_classes()
    if not subject.multiclass:
        skip("the method supports two classes only")
    X, y = subject.data()
    selector = subject.new().partial_fit(X, y).partial_fit(X, np.where(X[:, 2] > 1, -5, y))
    if selector.classes_.tolist() != [0, 1, -5]:
        fail(f"classes 0 and 1, then -5, must make classes_ [0, 1, -5], not {selector.classes_.tolist()}.")
    if not np.isfinite(selector.scores_).all() or not _keeps(subject, selector, 2):
        fail(f"after a third class appeared, scores_ is {selector.scores_}.")
    declared = subject.new().partial_fit(X, y, classes=[1, -5, 0]).classes_.tolist()
    if declared != [1, -5, 0]:
        fail(f"classes=[1, -5, 0] must make classes_ that, not {declared}.")


def _labels_of_any_type(subject: RowSubject) -> None:
    """Labels may be text, bool, int, whole floats or several types at once; the scores are the same."""
    subject.skip_without_classes()
    X, y = subject.data()
    plain = subject.new().partial_fit(X, y)
    pairs = [
        ("ham", "spam"), (False, True), (-1, 1), (np.int8(3), np.int8(7)), (1.0, 2.0), (1, "one"), (b"n", b"y"),
    ]  # fmt: skip
    for pair in pairs:
        labels = np.array(pair, dtype=object if type(pair[0]) is not type(pair[1]) else None)[y]
        for given in (labels, labels.astype(object), labels.tolist()):
            selector = subject.new().partial_fit(X, given)
            compare_scores(selector, plain, f"labels {pair[0]!r} and {pair[1]!r}, and 0 and 1")
            if selector.classes_.tolist() != list(pair):
                fail(f"labels {pair[0]!r} and {pair[1]!r} make classes_ {selector.classes_.tolist()}.")
            selector.partial_fit(X, given)
            compare_scores(
                selector, clone(plain).partial_fit(X, y).partial_fit(X, y), f"the labels {pair} again"
            )


def _merge(subject: RowSubject) -> None:
    """Merged parts of a stream equal the complete stream, in any order, and the other part is unchanged."""
    merge = getattr(subject.prototype, "merge", None)
    if merge is None:
        skip("the method cannot be merged")
    if subject.regression and subject.prototype.accepts.levels:
        skip("the levels of a numeric target depend on the rows of each part")
    has_order = "when" in inspect.signature(merge).parameters
    after, before = ({"when": when} if has_order else {} for when in ("after", "before"))
    batches = [subject.data(seed) for seed in range(3)]
    classes = None if subject.regression else [0, 1]

    def part(*which: int) -> Any:
        selector = subject.new()
        for i in which:
            selector.partial_fit(*batches[i], classes=classes)
        return selector

    other = part(1)
    merged = part(0).merge(other, **after)
    subject.compare(other, part(1), "a part that was merged into another, and the same part")
    subject.compare(other.merge(part(0), **before), merged, "b + a, and a + b", tolerance=_ROUNDING)
    if not getattr(subject.prototype, "claims", Claims()).merges_exactly:
        if merged.n_seen_ != part(0, 1).n_seen_:
            fail(f"two parts merged have seen {merged.n_seen_} rows, and together {part(0, 1).n_seen_}.")
        return
    subject.compare(merged, part(0, 1), "two parts merged, and the whole", tolerance=_ROUNDING)
    left = part(0).merge(part(1), **after).merge(part(2), **after)
    right = part(0).merge(part(1).merge(part(2), **after), **after)
    subject.compare(left, right, "(a + b) + c, and a + (b + c)", tolerance=_ROUNDING)
    subject.compare(
        merge_tree([part(0), part(1), part(2)], **after), left, "merge_tree, and merge", tolerance=_ROUNDING
    )
    subject.compare(left, part(0, 1, 2), "three parts merged, and the whole", tolerance=_ROUNDING)
    if classes is not None:
        X, y = batches[0]
        order = np.argsort(y, kind="stable")
        zeros, ones = (subject.new().partial_fit(X[y == c], y[y == c], classes=classes) for c in (0, 1))
        subject.compare(
            zeros.merge(ones, **after),
            subject.new().partial_fit(X[order], y[order], classes=classes),
            "a part of each class, merged, and the whole",
            tolerance=_ROUNDING,
        )


def _read_outs_are_copies(subject: RowSubject) -> None:
    """Writing into `scores_` or the support changes nothing in the model."""
    selector = subject.learned()
    scores, support = selector.scores_, selector.get_support()
    if scores.flags.writeable:
        scores[...] = -1.0
    if support.flags.writeable:
        support[...] = False
    subject.compare(selector, subject.learned(), "after writing into scores_, and before")
    if not np.array_equal(selector.get_support(), subject.learned().get_support()):
        fail("writing into what get_support() returned changes the model.")


def _columns_that_come_later(subject: RowSubject) -> None:
    """After `widen`, new columns score as if they had been zero from the start; or `widen` is rejected."""
    (X, y), (later, target) = subject.data(), subject.data(1)
    X[:, 4:] = 0.0
    if not can_widen(subject.prototype):
        rejects(lambda: subject.new().partial_fit(X, y).widen(7), "widen", "number of columns")
        skip("the method has a fixed number of columns")
    if subject.prototype._claims().counts_columns:
        skip("what the method learns depends on the number of columns")
    grown = subject.new().partial_fit(sp.csr_matrix(X[:, :4]), y).widen(6)
    grown.partial_fit(sp.csr_matrix(later), target)
    whole = subject.new().partial_fit(sp.csr_matrix(X), y).partial_fit(sp.csr_matrix(later), target)
    subject.compare(grown, whole, "columns that came later, and columns of zeros", tolerance=1e-9)


def _several_targets(subject: RowSubject) -> None:
    """In `PerTarget`, each target gets the selection and the scores of a selector of its own."""
    subject.skip_without_labels()
    (X, y), (_, other) = subject.data(), subject.data(1)
    model = PerTarget(subject.new()).partial_fit(X[:50], np.column_stack([y, other])[:50])
    model.partial_fit(X[50:], np.column_stack([y, other])[50:])
    for target, selector in zip((y, other), model.selectors_, strict=True):
        alone = subject.new().partial_fit(X[:50], target[:50]).partial_fit(X[50:], target[50:])
        subject.compare(selector, alone, "one of two targets, and that target alone", tolerance=_ROUNDING)
        if not np.array_equal(selector.get_support(), alone.get_support()):
            fail("the selection for one of two targets is not that of the target alone.")
    if not np.array_equal(model.get_support(), model.support_by_target_.any(axis=0)):
        fail("the shared selection of two targets is not the union of theirs.")


def _prior(subject: RowSubject) -> None:
    """Equal weights change nothing, a weighted copy of a column precedes it, and invalid weights are rejected."""
    if "prior" not in subject.prototype.get_params():
        skip("the method has no prior weights")
    X, y = subject.data()
    plain = subject.new().partial_fit(X, y)
    same = subject.new(prior=dict.fromkeys(range(6), 5.0)).partial_fit(X, y)
    subject.compare(same, plain, "a weight of 5 for every column, and no prior", tolerance=_ROUNDING)
    if not np.array_equal(same.get_support(), plain.get_support()):
        fail(
            f"equal weights select {same.get_support(indices=True)}, and without {plain.get_support(indices=True)}."
        )
    X[:, 0] = X[:, 4]
    for heavy, other in ((0, 4), (4, 0)):
        kept = subject.new(n_features_to_select=1, prior={heavy: 100.0}).partial_fit(X, y).get_support()
        if not kept[heavy]:
            fail(f"column {heavy} has a weight of 100 and is a copy of column {other}, but is not selected.")
    for what, prior in (
        ("a weight of 0", {0: 0.0}),
        ("a weight of NaN", {0: np.nan}),
        ("a list", [1.0] * 6),
        ("an unknown column", {"none": 2.0}),
    ):
        rejects(lambda: subject.new(prior=prior).partial_fit(X, y), what, "prior")  # noqa: B023
    frame = table("pandas", X, NAMES)
    named = subject.new(n_features_to_select=1, prior={NAMES[4]: 100.0}).partial_fit(frame, y)
    if not np.array_equal(named.get_support(), kept):
        fail("a weight by the name of a column differs from that by its position.")


def takes_frame(subject: RowSubject, library: str) -> None:
    """A frame gives the scores of its values; its column names are returned, in the requested kind of frame."""
    shared.same_as_frame(subject, library)
    X, y = subject.data()
    frame = table(library, X, NAMES)
    selector = subject.new().partial_fit(frame, y)
    compare_scores(selector, subject.learned(), f"a {library} frame, and an array")
    if selector.feature_names_in_.tolist() != NAMES:
        fail(f"feature_names_in_ of a {library} frame is {selector.feature_names_in_.tolist()}.")
    kept = [name for name, keep in zip(NAMES, selector.get_support(), strict=True) if keep]
    if selector.get_feature_names_out().tolist() != kept:
        fail(
            f"get_feature_names_out() is {selector.get_feature_names_out().tolist()}, but {kept} are selected."
        )
    other = table(library, X[:, ::-1], NAMES[::-1])
    _refuses_frame(
        subject, selector, frame, other, y, "columns in another order", NAMES[0], NAMES[-1], "order"
    )
    other = table(library, X, [*NAMES[:-1], "new"])
    _refuses_frame(subject, selector, frame, other, y, "a column of another name", "new", NAMES[-1])
    gap = X.copy()
    gap[7, 2] = np.nan
    other = table(library, gap, NAMES)
    _refuses_frame(subject, selector, frame, other, y, "a frame with NaN", NAMES[2], "row 7")
    if library != "pyarrow":  # scikit-learn does not support this output
        out = selector.set_output(transform=library).transform(frame)
        if list(out.columns) != kept or type(out) is not type(frame):
            fail(
                f"set_output(transform={library!r}): transform returns {type(out)} of columns {list(out.columns)}."
            )


def _refuses_frame(
    subject: RowSubject, selector: Any, frame: Any, other: Any, y: Array, what: str, *words: str
) -> None:
    if subject.tags.allow_nan and "NaN" in what:
        return
    rejects(lambda: selector.partial_fit(other, y), what, *words)
    subject.compare(selector, subject.new().partial_fit(frame, y), f"after rejecting {what}, and before")


def _refuses_batch(
    subject: RowSubject, batch: tuple[Any, Any], what: str, *words: str, **options: Any
) -> None:
    """Fail unless the batch is rejected by a new and by a fitted copy, and leaves both unchanged."""
    selector = subject.new()
    rejects(lambda: selector.partial_fit(*batch, **options), what, *words)
    if subject.is_fitted(selector):
        fail(f"after rejecting {what} as its first batch, the selector counts as fitted.")
    selector = subject.learned()
    rejects(lambda: selector.partial_fit(*batch, **options), what, *words)
    rejects(lambda: selector.fit(*batch, **options), f"{what} (by fit)", *words)
    subject.compare(selector, subject.learned(), f"after rejecting {what}, and before")
    selector.partial_fit(*subject.data(1))
    subject.compare(selector, subject.learned(2), f"learning on after rejecting {what}, and without it")


def _empty_batch(subject: RowSubject) -> None:
    """A batch of no rows changes nothing, and cannot be fitted; one of no columns is rejected."""
    X, y = subject.data()
    for kind, made in {"": np.asarray, **({" (CSR)": sp.csr_matrix} if subject.tags.sparse else {})}.items():
        what, empty = f"a batch of 0 rows{kind}", made(X[:0])
        selector = subject.new().partial_fit(empty, y[:0])
        if subject.is_fitted(selector):
            fail(f"after {what}, the selector counts as fitted.")
        rejects(lambda: subject.new().fit(empty, y[:0]), f"{what} (by fit)", "0")  # noqa: B023
        subject.compare(
            subject.learned().partial_fit(empty, y[:0]), subject.learned(), f"after {what}, and before"
        )
        _refuses_batch(subject, (made(X[:, :0]), y), f"a batch of 0 columns{kind}", "0")
    _refuses_batch(subject, (X[0], y[:1]), "one row that is not a table")


def _feature_count(subject: RowSubject) -> None:
    """Another number of columns than before is rejected, naming both."""
    for n_features in (5, 7):
        X, y = subject.data(n_features=n_features)
        selector = subject.learned()
        what = f"{n_features} columns after 6"
        rejects(lambda: selector.partial_fit(X, y), what, "6", str(n_features))  # noqa: B023
        rejects(lambda: selector.transform(X), f"{what} (by transform)", "6", str(n_features))  # noqa: B023
        subject.compare(selector, subject.learned(), f"after rejecting {what}, and before")


def _non_finite(subject: RowSubject) -> None:
    """NaN and infinity are rejected, naming the column and the row, wherever they are."""
    for value in (np.inf, -np.inf, np.nan):
        if np.isnan(value) and subject.tags.allow_nan:
            continue
        for row, column in ((0, 0), (83, 5), (89, 2)):
            X, y = subject.data()
            X[row, column] = value
            what = f"{value} in row {row}, column {column}"
            _refuses_batch(subject, (X, y), what, f"column {column}", f"row {row}")
            if subject.tags.sparse:
                _refuses_batch(
                    subject, (sp.csr_matrix(X), y), f"{what} (CSR)", f"column {column}", f"row {row}"
                )
    X, y = subject.data()
    X[3, 1], X[4, 1] = np.inf, -np.inf  # their sum is NaN
    _refuses_batch(subject, (X.astype(np.float32), y), "inf and -inf in float32", "column 1", "row 3")


def _not_numbers(subject: RowSubject) -> None:
    """Text and complex numbers are rejected."""
    X, y = subject.data()
    text = X.astype(object)
    text[7, 3] = "seven"
    _refuses_batch(subject, (text, y), "text", "3", "seven")
    _refuses_batch(subject, (X + 1j, y), "complex numbers", "omplex")


def _impossible_targets(subject: RowSubject) -> None:
    """A target that is missing, too short, two-dimensional, or has missing values is rejected."""
    subject.skip_without_labels()
    X, y = subject.data()
    gaps, nothing = y.astype(np.float64), y.astype(object)
    gaps[8], nothing[8] = np.nan, None
    targets: dict[str, tuple[Any, tuple[str, ...]]] = {
        "no target": (None, ("y",)),
        "a target that is too short": (y[1:], ("90", "89")),
        "a target of two columns": (np.column_stack([y, y]), ("y",)),
        "a target with NaN": (gaps, ("row 8",)),
        "a target with None": (nothing, ("row 8",)),
    }
    for what, (target, words) in targets.items():
        _refuses_batch(subject, (X, target), what, *words)
    if not subject.regression:
        _refuses_batch(subject, (X, 0.5 * y), "labels that are not whole", "0.5")


def _impossible_selection(subject: RowSubject) -> None:
    """An invalid `n_features_to_select` (0, too large, not a number) is rejected when rows arrive, not before."""
    if subject.chooses_count:
        skip("the method determines the number of features itself")
    X, y = subject.data()
    for value in (0, -1, 7, 0.0, 1.5, -0.5, float("nan"), "a", None, True):
        selector = subject.new(n_features_to_select=value)
        if selector._chooses_count:
            continue  # None leaves it to the method
        rejects(
            lambda: selector.partial_fit(X, y),  # noqa: B023
            f"n_features_to_select={value!r} of 6 columns",
            "n_features_to_select",
            repr(value),
        )
        if subject.is_fitted(selector):
            fail(f"after rejecting n_features_to_select={value!r}, the selector counts as fitted.")


def _one_row(subject: RowSubject) -> None:
    """Rows may arrive one at a time, from the first on."""
    X, y = subject.data()
    selector = subject.new()
    for i in range(20):
        selector.partial_fit(X[i : i + 1], y[i : i + 1])
    if selector.n_seen_ != 20 or not np.isfinite(selector.scores_).all():
        fail(f"after 20 rows one at a time, n_seen_ is {selector.n_seen_} and scores_ {selector.scores_}.")


def _one_feature(subject: RowSubject) -> None:
    """A single feature is supported, and is selected."""
    X, y = subject.data(n_features=1)
    selector = subject.new(n_features_to_select=1).partial_fit(X, y)
    if selector.get_support().tolist() != [True] or not np.isfinite(selector.scores_).all():
        fail(f"of one column, get_support() is {selector.get_support()} and scores_ {selector.scores_}.")


def _constant_features(subject: RowSubject) -> None:
    """Constant columns of any size leave the scores finite and are never the best."""
    if not (claims := subject.prototype._claims()).ranks_relevance and not subject.prototype.accepts.labels:
        skip("the scores do not rank relevance")
    X, y = subject.data()
    large = [1e9, 1e-9, *([] if subject.tags.positive_only else [-10.0, -1e9])]
    for value in (3.0, *(large if claims.ignores_constants else [])):
        # A method that standardises features cannot distinguish rounding errors from other variation.
        for noise in (0.0,) if claims.invariant_to_shifts else (0.0, np.finfo(np.float64).eps):
            X[:, 0], X[:, 5] = 0.0, value * (1.0 + noise * (np.arange(len(X)) % 3))
            selector = subject.new().fit(X, y).partial_fit(X, y)
            what = f"column 0 is zero and column 5 is {value:g}{', up to rounding' if noise else ''}"
            if not np.isfinite(selector.scores_).all():
                fail(f"{what}, and scores_ is {selector.scores_}.")
            if int(np.argmax(selector.scores_)) in (0, 5):
                fail(f"{what}, and scores_ is {selector.scores_}.")


def _shifted_features(subject: RowSubject) -> None:
    """A constant added to the features leaves the scores unchanged, unless `claims` exclude it."""
    if not subject.prototype._claims().invariant_to_shifts:
        skip("the scores depend on the location of the features")
    X, y = subject.data(n_rows=600)
    plain = subject.new().partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    for offset in (1e3, 1e6, 1.7e9, *([] if subject.tags.positive_only else [-1e8])):
        moved = X + offset  # exactly: multiples of 1/8
        shifted = subject.new().partial_fit(moved[:300], y[:300]).partial_fit(moved[300:], y[300:])
        compare_scores(shifted, plain, f"X + {offset:g}, and X", tolerance=1e-5)


def _wide_and_long(subject: RowSubject) -> None:
    """Many more features than rows, and many more rows than features, are supported."""
    for n_rows, n_features in ((5, 2000), (5000, 2)):
        X, y = subject.data(0, n_rows, n_features)
        scores = subject.new().partial_fit(X, y).scores_
        if scores.shape != (n_features,) or not np.isfinite(scores).all():
            fail(
                f"{n_rows} rows of {n_features} columns give scores_ of shape {scores.shape}, or not finite."
            )


def _selects_the_best(subject: RowSubject) -> None:
    """The support is the requested number of features with the largest scores; transform returns them in order.

    A method with its own selection rule chooses other features, but as many as requested.
    """
    X, y = subject.data()
    many: list[Any] = [1] if subject.chooses_count else [1, 3, np.int64(2), 6, 0.5, 1.0, 0.01]
    for asked in many:
        selector = subject.new(n_features_to_select=asked).partial_fit(X, y)
        scores, support = selector.scores_, selector.get_support()
        if scores.dtype != np.float64 or scores.shape != (6,):
            fail(f"scores_ must be float64 of shape (6,), not {scores.dtype} of shape {scores.shape}.")
        best = top_mask(scores, n_to_select(asked, 6))
        if not subject.chooses_count and support.sum() != best.sum():
            fail(f"n_features_to_select={asked!r} of 6 columns selects {support.sum()}.")
        if not selector._chooses_count and not np.array_equal(support, best):
            fail(
                f"n_features_to_select={asked!r} selects {np.flatnonzero(support)}, and scores_ is {scores}."
            )
        if not np.array_equal(selector.transform(X), X[:, support]):
            fail("transform does not return the selected columns in their order.")
        names = [f"x{j}" for j in np.flatnonzero(support)]
        if selector.get_feature_names_out().tolist() != names:
            fail(f"get_feature_names_out() is {selector.get_feature_names_out().tolist()}, not {names}.")
