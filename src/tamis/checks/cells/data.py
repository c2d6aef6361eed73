"""The same rows in other shapes, types and frames, with gaps, and with labels of any kind."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tamis.checks.cells.subject import NAMES, CellSubject, same
from tamis.checks.subject import fail, rejects, table


def _sparse_rows(subject: CellSubject) -> None:
    """CSR, CSC and COO rows are bought from as dense ones are."""
    (X, y), (test, _) = subject.rows(), subject.rows(50, seed=1)
    dense = subject.fitted()
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        same(subject.new().fit(kind(X), y), dense, kind(test), f"{kind.__name__}, and dense rows", test)


def _input_kinds(subject: CellSubject) -> None:
    """float32, Fortran order, views and lists are the same rows."""
    (X, y), model = subject.rows(), subject.fitted()
    wide = np.repeat(X, 2, axis=1)
    for what, rows in (
        ("float32", X.astype(np.float32)), ("Fortran order", np.asfortranarray(X)), ("a view", wide[:, ::2]),
        ("a list", X.tolist()),
    ):  # fmt: skip
        same(subject.new().fit(rows, y), model, X[:40], f"{what}, and float64")


def takes_frame(subject: CellSubject, library: str) -> None:
    """A frame's names are what a session asks for."""
    X, y = subject.rows()
    frame = table(library, X, NAMES)
    model = subject.new().fit(frame, y)
    same(model, subject.fitted(), frame, f"a {library} frame, and its numbers", X)
    asked = model.open().next_feature
    if model.feature_names_in_.tolist() != NAMES or asked not in NAMES:
        fail(f"the columns are named {NAMES}, but a session asks for {asked!r}.")
    other = table(library, X, NAMES[::-1])
    rejects(lambda: model.predict(other), "a frame of other names", "feature names")


def _missing_at_fit(subject: CellSubject) -> None:
    """Rows with holes are learned from."""
    X, y = subject.rows()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = subject.new().fit(X, y)
    if not np.isfinite(model.predict_proba(X)).all():
        fail("after learning from rows with holes a posterior is not finite.")


def _labels_of_any_type(subject: CellSubject) -> None:
    """Labels may be text, bool or numbers; the posteriors are the same."""
    (X, y), model = subject.rows(), subject.fitted()
    for labels in (np.array(["off", "on"]), np.array([False, True]), np.array([-1.0, 7.0])):
        other = subject.new().fit(X, labels[y])
        same(other, model, X[:40], f"labels {labels.tolist()}, and 0 and 1")
        session = other.open()
        if session.decision not in labels.tolist() or list(session.posterior) != labels.tolist():
            fail(f"a session does not speak of the labels {labels.tolist()}.")


def _several_classes(subject: CellSubject) -> None:
    """There may be more than two classes, or one."""
    X, y = subject.rows()
    three = y + (X[:, 1] > 1.5)
    if subject.new().fit(X, three).predict_proba(X[:9]).shape != (9, 3):
        fail("with three classes predict_proba must have three columns.")
    model = subject.new().fit(X, np.full(len(y), "only"))
    if (model.predict(X) != "only").any() or model.n_features_used_.any():
        fail("with one class it must be the decision, without any value.")


def _odd_columns(subject: CellSubject) -> None:
    """Constant columns, columns of holes only, and values beyond those learned from."""
    X, y = subject.rows()
    X[:, 4], X[:, 5] = 3.0, np.nan
    model = subject.new().fit(X, y)
    X[:, :4] *= 1e9
    if not np.isfinite(model.predict_proba(X)).all():
        fail("values beyond the range that was learned from leave a posterior that is not finite.")


def _leaves_data_alone(subject: CellSubject) -> None:
    """The caller's arrays are neither written to nor kept, and may be read-only."""
    X, y = subject.rows()
    kept = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    model = subject.new().fit(X, y)
    before = model.predict_proba(X)
    X.flags.writeable = y.flags.writeable = True
    if (kept[0] != X).any() or (kept[1] != y).any():
        fail("fit or predict writes into the caller's arrays.")
    X[:], y[:] = 0.0, 0
    if (model.predict_proba(kept[0]) != before).any():
        fail("the model keeps the caller's arrays: overwriting them later changes it.")


CHECKS = (
    _sparse_rows,
    _input_kinds,
    _missing_at_fit,
    _labels_of_any_type,
    _several_classes,
    _odd_columns,
    _leaves_data_alone,
)
