"""Attributes of a row selector: the best are selected, reading changes nothing, a copy continues identically."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tamis.base import n_to_select, top_mask
from tamis.checks.rows.refusals import _is_fitted
from tamis.checks.subject import Subject, compare, fail, skip
from tamis.persistence import dumps, load, loads, save


def _one_row(subject: Subject) -> None:
    """Rows may come one at a time, from the first on."""
    X, y = subject.rows()
    selector = subject.new()
    for i in range(20):
        selector.partial_fit(X[i : i + 1], y[i : i + 1])
    if selector.n_seen_ != 20 or not np.isfinite(selector.scores_).all():
        fail(f"after 20 rows one at a time, n_seen_ is {selector.n_seen_} and scores_ {selector.scores_}.")


def _one_feature(subject: Subject) -> None:
    """One column is enough, and is selected."""
    X, y = subject.rows(n_features=1)
    selector = subject.new(n_features_to_select=1).partial_fit(X, y)
    if selector.get_support().tolist() != [True] or not np.isfinite(selector.scores_).all():
        fail(f"of one column, get_support() is {selector.get_support()} and scores_ {selector.scores_}.")


def _constant_features(subject: Subject) -> None:
    """Columns that never change, all zero or not, leave the scores finite and are never the best."""
    if subject.prototype._unsupervised:
        skip("the method does not look at the rows")
    X, y = subject.rows()
    X[:, 0], X[:, 5] = 0.0, 3.0
    selector = subject.new().fit(X, y).partial_fit(X, y)
    if not np.isfinite(selector.scores_).all() or int(np.argmax(selector.scores_)) in (0, 5):
        fail(f"columns 0 and 5 are constant, and scores_ is {selector.scores_}.")


def _wide_and_long(subject: Subject) -> None:
    """Many more columns than rows, and many more rows than columns."""
    for n_rows, n_features in ((5, 2000), (5000, 2)):
        X, y = subject.rows(n_rows, n_features)
        scores = subject.new().partial_fit(X, y).scores_
        if scores.shape != (n_features,) or not np.isfinite(scores).all():
            fail(
                f"{n_rows} rows of {n_features} columns give scores_ of shape {scores.shape}, or not finite."
            )


def _selects_the_best(subject: Subject) -> None:
    """The support is the columns of the largest scores, as many as asked for; transform returns them in order."""
    X, y = subject.rows()
    many: list[Any] = [1] if subject.chooses_count else [1, 3, np.int64(2), 6, 0.5, 1.0, 0.01]
    for asked in many:
        selector = subject.new(n_features_to_select=asked).partial_fit(X, y)
        scores, support = selector.scores_, selector.get_support()
        if scores.dtype != np.float64 or scores.shape != (6,):
            fail(f"scores_ must be float64 of shape (6,), not {scores.dtype} of shape {scores.shape}.")
        best = top_mask(scores, n_to_select(asked, 6))
        if not subject.chooses_count and not np.array_equal(support, best):
            fail(
                f"n_features_to_select={asked!r} selects {np.flatnonzero(support)}, and scores_ is {scores}."
            )
        if not np.array_equal(selector.transform(X), X[:, support]):
            fail("transform does not return the selected columns in their order.")
        names = [f"x{j}" for j in np.flatnonzero(support)]
        if selector.get_feature_names_out().tolist() != names:
            fail(f"get_feature_names_out() is {selector.get_feature_names_out().tolist()}, not {names}.")


def _reading_changes_nothing(subject: Subject) -> None:
    """Reading scores and support, or transforming, does not change what is learned next."""
    selector = subject.learned()
    X, _ = subject.rows()
    for _ in range(2):
        selector.transform(X[:, :]), selector.get_support(), selector.scores_, repr(selector)
    selector.partial_fit(*subject.rows(seed=1))
    compare(selector, subject.learned(2), "reading between two batches, and not")


def _not_fitted(subject: Subject) -> None:
    """Before the first rows, read-outs raise NotFittedError."""
    X, _ = subject.rows()
    reads: dict[str, Callable[[Any], Any]] = {
        "scores_": lambda selector: selector.scores_,
        "get_support()": lambda selector: selector.get_support(),
        "transform(X)": lambda selector: selector.transform(X),
    }
    for what, read in reads.items():
        try:
            read(subject.new())
        except NotFittedError:
            continue
        fail(f"{what} before the first rows does not raise NotFittedError.")


def _clone(subject: Subject) -> None:
    """A clone has the same parameters and has learned nothing; the constructor stores them as they are."""
    selector = subject.learned()
    copied = clone(selector)
    if repr(copied.get_params()) != repr(selector.get_params()):
        fail(f"the clone of {selector!r} is {copied!r}.")
    if _is_fitted(copied):
        fail("a clone counts as fitted.")
    compare(copied.partial_fit(*subject.rows()), selector, "a clone that learned the same, and the original")


def _copies_go_on(subject: Subject) -> None:
    """Pickled, or copied deeply, in the middle of a stream, a selector continues with the same bits."""
    selector = subject.learned(2)
    copies = {"pickle": pickle.loads(pickle.dumps(selector)), "copy.deepcopy": copy.deepcopy(selector)}
    for what, copied in copies.items():
        _goes_on(subject, selector, copied, what)


def _save_and_load(subject: Subject) -> None:
    """Saved and loaded in the middle of a stream, as a file or as bytes, a selector continues with the same bits."""
    selector = subject.learned(2)
    state = dumps(selector)
    if dumps(selector) != state or dumps(subject.learned(2)) != state:
        fail("tamis.dumps makes other bytes of the same state.")
    _goes_on(subject, selector, loads(state, classes=[type(selector)]), "tamis.dumps and tamis.loads")
    with tempfile.TemporaryDirectory() as folder:
        path = save(selector, Path(folder) / "selector.tamis")
        _goes_on(subject, selector, load(path, classes=[type(selector)]), "tamis.save and tamis.load")


def _goes_on(subject: Subject, selector: Any, copied: Any, what: str) -> None:
    compare(copied, selector, f"after {what}, and before")
    copied.partial_fit(*subject.rows(seed=2))
    compare(selector, subject.learned(2), f"after its copy by {what} learned on, and before")
    compare(copied, subject.learned(3), f"learning on after {what}, and without it")


CHECKS = (
    _one_row,
    _one_feature,
    _constant_features,
    _wide_and_long,
    _selects_the_best,
    _reading_changes_nothing,
    _not_fitted,
    _clone,
    _copies_go_on,
    _save_and_load,
)
