"""What a row selector makes of its rows: batches, classes, weights, merging."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis._validation import Array
from tamis.checks.rows.refusals import _refuses_batch
from tamis.checks.subject import Subject, compare, compare_scores, fail, rejects, skip
from tamis.merging import merge_tree

_ROUNDING = 1e-9  # of the largest score: the same sums in another order


def _batch_equals_loop(subject: Subject) -> None:
    """A batch leaves the same bits as its rows one at a time, weighted or not; the same to rounding, if `rounding`."""
    if subject.per_batch:
        skip("the method is defined per batch")
    X, y = subject.rows()
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
                # Classes that are not declared are numbered as they come, so only the scores must agree.
                (compare if classes else compare_scores)(whole, parts, what, tolerance=tolerance)


def _takes(subject: Subject, weights: Array) -> bool:
    try:
        subject.new().partial_fit(*subject.rows(), sample_weight=weights)
    except (ValueError, TypeError):
        return False
    return True


def _same_data_same_bits(subject: Subject) -> None:
    """Two copies that learn the same rows are the same, bit for bit."""
    compare(subject.learned(3), subject.learned(3), "two copies that learned the same")


def _fit_forgets(subject: Subject) -> None:
    """`fit` equals `partial_fit` of a new copy, whatever was learned before."""
    X, y = subject.rows(seed=5)
    wider, target = subject.rows(n_features=8, seed=6)
    once = subject.new().partial_fit(X, y)
    compare(subject.new().fit(X, y), once, "fit, and partial_fit of a new copy")
    compare(
        subject.new().fit(wider, target).fit(X, y),
        once,
        "fit after another fit, and partial_fit of a new copy",
    )


def _finds_planted_features(subject: Subject) -> None:
    """Two of twenty columns decide the target: after 3000 rows, they have the largest scores of ten kept."""
    if subject.prototype._unsupervised:
        skip("the method does not look at the target")
    selector = subject.new(n_features_to_select=10)
    for seed in range(30):
        selector.partial_fit(*subject.rows(100, 20, seed, relevant=(4, 11)))
    best = set(np.argsort(selector.scores_)[-2:].tolist())
    if best != {4, 11}:
        fail(f"columns 4 and 11 decide the target, but columns {sorted(best)} have the largest scores.")


def _single_class(subject: Subject) -> None:
    """While only one class was seen, however many are declared, nothing is ranked and every column is kept."""
    if subject.regression:
        skip("a regression has no classes")
    X, y = subject.rows()
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


def _keeps(subject: Subject, selector: Any, n_selected: int) -> bool:
    n_kept = selector.get_support().sum()
    return bool(n_kept >= 1 if subject.chooses_count else n_kept == n_selected)


def _late_class(subject: Subject) -> None:
    """A class may appear later; those known keep their places."""
    if subject.regression:
        skip("a regression has no classes")
    if not subject.multiclass:
        skip("the method knows two classes only")
    X, y = subject.rows()
    selector = subject.new().partial_fit(X, y).partial_fit(X, np.where(X[:, 2] > 1, -5, y))
    if selector.classes_.tolist() != [0, 1, -5]:
        fail(f"classes 0 and 1, then -5, must make classes_ [0, 1, -5], not {selector.classes_.tolist()}.")
    if not np.isfinite(selector.scores_).all() or not _keeps(subject, selector, 2):
        fail(f"after a third class appeared, scores_ is {selector.scores_}.")
    declared = subject.new().partial_fit(X, y, classes=[1, -5, 0]).classes_.tolist()
    if declared != [1, -5, 0]:
        fail(f"classes=[1, -5, 0] must make classes_ that, not {declared}.")


def _labels_of_any_type(subject: Subject) -> None:
    """Labels may be text, bool, int, whole floats or several types at once; the scores are the same."""
    if subject.regression:
        skip("a regression has no labels")
    X, y = subject.rows()
    plain = subject.new().partial_fit(X, y)
    pairs = [
        ("ham", "spam"),
        (False, True),
        (-1, 1),
        (np.int8(3), np.int8(7)),
        (1.0, 2.0),
        (1, "one"),
        (b"n", b"y"),
    ]
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


def _sample_weights(subject: Subject) -> None:
    """Equal weights change nothing, rows of weight 0 do not count, and impossible weights are refused."""
    X, y = subject.rows()
    none = subject.new().partial_fit(X, y)
    try:
        ones = subject.new().partial_fit(X, y, sample_weight=np.ones(len(X)))
    except (ValueError, TypeError) as error:
        rejects(
            lambda: subject.new().partial_fit(X, y, sample_weight=np.ones(len(X))), "weights", "sample_weight"
        )
        skip(f"the method takes no weights ({error})")
    compare(ones, none, "every weight 1, and no weights", tolerance=_ROUNDING)
    few, half = np.arange(40), np.repeat([1.0, 0.0], [40, 50])
    compare_scores(
        subject.new().partial_fit(X, y, sample_weight=half),
        subject.new().partial_fit(X[few], y[few]),
        "rows of weight 0, and without these rows",
        tolerance=_ROUNDING,
    )
    bad = {"too few weights": half[1:], "a negative weight": half - 1.0, "a weight NaN": half * np.nan}
    for what, weights in bad.items():
        _refuses_batch(subject, (X, y), what, "sample_weight", sample_weight=weights)


def _merge(subject: Subject) -> None:
    """Merged parts of a stream equal the whole, in whatever order, and the other part stays as it is."""
    merge = getattr(subject.prototype, "merge", None)
    if merge is None:
        skip("the method cannot be merged")
    has_order = "when" in inspect.signature(merge).parameters
    after, before = ({"when": when} if has_order else {} for when in ("after", "before"))
    batches = [subject.rows(seed=seed) for seed in range(3)]
    classes = None if subject.regression else [0, 1]

    def part(*which: int) -> Any:
        selector = subject.new()
        for i in which:
            selector.partial_fit(*batches[i], classes=classes)
        return selector

    other = part(1)
    merged = part(0).merge(other, **after)
    compare(other, part(1), "a part that was merged into another, and the same part")
    compare(merged, part(0, 1), "two parts merged, and the whole", tolerance=_ROUNDING)
    compare(other.merge(part(0), **before), merged, "b + a, and a + b", tolerance=_ROUNDING)
    left = part(0).merge(part(1), **after).merge(part(2), **after)
    right = part(0).merge(part(1).merge(part(2), **after), **after)
    compare(left, right, "(a + b) + c, and a + (b + c)", tolerance=_ROUNDING)
    compare(
        merge_tree([part(0), part(1), part(2)], **after), left, "merge_tree, and merge", tolerance=_ROUNDING
    )
    compare(left, part(0, 1, 2), "three parts merged, and the whole", tolerance=_ROUNDING)
    if classes is not None:
        X, y = batches[0]
        order = np.argsort(y, kind="stable")
        zeros, ones = (subject.new().partial_fit(X[y == c], y[y == c], classes=classes) for c in (0, 1))
        compare(
            zeros.merge(ones, **after),
            subject.new().partial_fit(X[order], y[order], classes=classes),
            "a part of each class, merged, and the whole",
            tolerance=_ROUNDING,
        )


CHECKS = (
    _batch_equals_loop,
    _same_data_same_bits,
    _fit_forgets,
    _finds_planted_features,
    _single_class,
    _late_class,
    _labels_of_any_type,
    _sample_weights,
    _merge,
)
