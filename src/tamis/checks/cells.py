"""Checks of active feature acquisition: acquisitions, sessions, costs and rejected input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis.checks import shared
from tamis.checks.subject import NAMES, CellSubject, fail, rejects, skip, table
from tamis.checks.suite import Report, named_checks, run_all

_VERBS = ("fit", "predict", "predict_proba", "acquire", "open")


def check_cell_classifier(estimator: Any) -> Report:
    """Run every check on a classifier that acquires values one by one.

    Parameters
    ----------
    estimator : CellClassifier
        Any instance, yours or of Tamis, with `cost` among its parameters; it is not fitted itself. Its class must be
        one that pickle can find: defined in a module, not in a function.

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
    >>> from tamis import ETANA
    >>> from tamis.checks import check_cell_classifier
    >>> report = check_cell_classifier(ETANA.published(prior="empirical"))
    >>> len(report.passed) > 25, report.failed
    (True, {})
    """
    return run_all(estimator, cell_classifier_checks(estimator))


def cell_classifier_checks(estimator: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator : CellClassifier

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the classifier does not keep this promise, and unittest.SkipTest if it does not
        apply.

    Raises
    ------
    TypeError
        If `estimator` is not a CellClassifier.

    Examples
    --------
    >>> from tamis import ETANA
    >>> checks = dict(cell_classifier_checks(ETANA()))
    >>> checks["sessions_walk_the_same_way"]()
    """
    if isinstance(estimator, type) or not all(hasattr(estimator, verb) for verb in _VERBS):
        raise TypeError(f"estimator must be an instance of tamis.cells.CellClassifier, got {estimator!r}.")
    subject = CellSubject(estimator)
    return named_checks(__name__, subject)


def _labels_follow_posteriors(subject: CellSubject) -> None:
    """`predict` is the decision of least expected cost on `predict_proba`, which sums to 1."""
    model, (X, _) = subject.learned(), subject.data(1)
    posterior = model.predict_proba(X)
    if posterior.shape != (len(X), 2) or not np.allclose(posterior.sum(axis=1), 1.0) or (posterior < 0).any():
        fail("predict_proba must contain a distribution over the classes for each row.")
    if (model.predict(X) != model.classes_[posterior.argmax(axis=1)]).any():
        fail("with equal misclassification costs predict must name the likeliest class.")


def _learns(subject: CellSubject) -> None:
    """At a low price, most rows are classified correctly from fewer values than are available."""
    model, (X, y) = subject.learned(), subject.data(1, 400)
    accuracy = float(np.mean(model.predict(X) == y))
    if accuracy < 0.7:
        fail(f"accuracy is {accuracy:.2f} where four features separate the classes.")
    if not 0 < model.n_features_used_.mean() <= 6:
        fail(f"{model.n_features_used_.mean():.2f} values of 6 are acquired.")


def _sessions_walk_the_same_way(subject: CellSubject) -> None:
    """A session requests what `acquire` acquires, in its order, with the same decision, cost and posterior."""
    model, (X, _) = subject.learned(), subject.data(1, 25)
    labels = model.predict(X)
    used, cost = model.n_features_used_, model.cost_
    for i, trace in enumerate(model.acquire(X)):
        session = model.open()
        while session.next_feature is not None:
            session.observe(X[i, session.next_feature])
        if [step["feature"] for step in session.explain()] != trace.features:
            fail(f"row {i}: the session requests other values than acquire acquires.")
        if session.decision != trace.label or trace.label != labels[i] or len(trace.features) != used[i]:
            fail(f"row {i}: session, acquire and predict do not agree on the decision.")
        if not np.allclose([session.cost, trace.cost], cost[i]):
            fail(f"row {i}: session, acquire and predict do not agree on the cost.")
        if not np.allclose(list(session.posterior.values()), trace.posteriors[-1], atol=1e-12):
            fail(f"row {i}: session and acquire do not agree on the posterior.")


def _sessions_go_on_elsewhere(subject: CellSubject) -> None:
    """A session opened from the state of another continues at the same point."""
    model, (X, _) = subject.learned(), subject.data(1, 10)
    for row in X:
        session = model.open()
        if session.next_feature is not None:
            session.observe(row[session.next_feature])
        other = model.open(session.state())
        if (other.next_feature, other.cost) != (session.next_feature, session.cost):
            fail("a session opened from a state requests another value, or has another cost.")
        if other.posterior != session.posterior:
            fail("a session opened from a state has another posterior.")


def _sessions_keep_their_model(subject: CellSubject) -> None:
    """A session continues with the model state that opened it, even if the model is refitted meanwhile."""
    model, other, (X, _) = subject.learned(), subject.learned(), subject.data(1, 8)
    sessions = [(model.open(), other.open()) for _ in X]
    if hasattr(model, "partial_fit"):
        model.partial_fit(*subject.data(2, 60))
    X_new, y_new = subject.data(3)
    model.fit(np.round(X_new[:, ::-1]), np.where(y_new == 1, "a", "b"))
    for row, (session, expected) in zip(X, sessions, strict=True):
        while expected.next_feature is not None:
            session.observe(row[expected.next_feature])
            expected.observe(row[expected.next_feature])
        if session.explain() != expected.explain() or session.decision != expected.decision:
            fail("a session changes when its model is refitted.")


def _missing_values_cost_nothing(subject: CellSubject) -> None:
    """NaN is skipped: it is neither counted nor paid, and no value is requested twice."""
    model, (X, _) = subject.learned(), subject.data(1, 30)
    model.predict(np.full((3, 6), np.nan))
    if model.cost_.any() or model.n_features_used_.any():
        fail("rows without any value have a cost.")
    X[::2, 0] = X[1::3, 2] = np.nan
    for row, trace in zip(X, model.acquire(X), strict=True):
        if len(set(trace.features)) < len(trace.features):
            fail("a value is acquired twice.")
        if np.isnan(row[trace.features]).any() or np.isnan(trace.values).any():
            fail("a missing value is acquired.")
    session = model.open()
    while session.next_feature is not None:
        session.observe(None)
    if session.cost != 0.0:
        fail("a session in which no value is available has a cost.")


def _outcomes(subject: CellSubject) -> None:
    """In rows and sessions, a feature without a result and a new category are paid for, and provide no evidence."""
    X, y = subject.data()
    text, ranges = X.astype(object), np.random.default_rng(0).random(X.shape) < 0.3
    text[:, 0] = np.where(X[:, 0] > 0.7, "high", "low")
    text = table("pandas", text, NAMES)
    model = subject.new(cost=0.01).fit(text.astype(dict.fromkeys(NAMES[1:], float)), y)
    rows = text.iloc[:30].astype(dict.fromkeys(NAMES[1:], float))
    rows.iloc[::2, 0] = "a new category"
    empty = ranges[:30]
    for i, trace in enumerate(model.acquire(rows, no_result=empty)):
        session, before = model.open(), None
        while session.next_feature is not None:
            before, feature, price = session.posterior, session.next_feature, session.next_cost
            at = NAMES.index(feature)
            session.no_result() if empty[i, at] else session.observe(rows.iloc[i, at])
            step = session.explain()[-1]
            if step["cost"] != price:
                fail(f"{step['outcome']}: {step['cost']} is paid of a price of {price}.")
            if step["outcome"] in ("no result", "new category") and session.posterior != before:
                fail(f"{step['outcome']}: the posterior changes.")
        steps, acquired = session.explain(), list(zip(trace.features, trace.outcomes, strict=True))
        if [(step["feature"], step["outcome"]) for step in steps] != acquired:
            fail(f"row {i}: session and acquire do not agree on the outcomes.")
        if not np.isclose(session.cost, trace.cost):
            fail(f"row {i}: session and acquire do not agree on the cost.")
        if model.open(session.state()).explain() != steps:
            fail(f"row {i}: a session opened from a state has other outcomes.")
    session = model.open()
    number = next((name for name in session._names if name != NAMES[0]), None)
    if number is not None and "which unit?" not in str(session.question(1e6, number)):
        fail("a value far outside the range of the training rows is not questioned.")


def _unavailable_features(subject: CellSubject) -> None:
    """Features declared unavailable are never requested, in rows and in sessions alike, and carry no evidence."""
    model, (X, _) = subject.learned(), subject.data(1, 20)
    usual = model.open().next_feature
    if usual is None:
        skip("nothing is asked for")
    mask = np.zeros(X.shape, dtype=bool)
    mask[::2, usual] = True
    together = model.acquire(X, unavailable=mask)
    for row, refused, trace, plain in zip(X, mask, together, model.acquire(X), strict=True):
        if not refused.any() and (trace.features, trace.cost) != (plain.features, plain.cost):
            fail("the acquisitions of a row depend on features that are unavailable in other rows.")
        if usual in trace.features and refused.any():
            fail("an unavailable feature is acquired.")
        session = model.open(unavailable=[usual] if refused.any() else [])
        session = model.open(session.state())
        while session.next_feature is not None:
            session.observe(row[session.next_feature])
        if [step["feature"] for step in session.explain()] != trace.features:
            fail("a session requests other values than acquire acquires where one is unavailable.")
        if not np.allclose(list(session.posterior.values()), trace.posteriors[-1], atol=1e-12):
            fail("with an unavailable feature, session and acquire do not agree on the posterior.")
        if refused.any():
            rejects(lambda session=session: session.observe(1.0, usual), "its value", "unavailable")  # type: ignore[misc]
    nothing = model.open(unavailable=range(X.shape[1]))
    if nothing.next_feature is not None or nothing.cost != 0.0:
        fail("a session in which no feature is available requests one.")
    rejects(lambda: model.open(unavailable=["nose"]), "an unknown column", "nose")


def _free_evidence(subject: CellSubject) -> None:
    """A volunteered value is free, is accepted once, and is not requested again."""
    model = subject.learned()
    session = model.open()
    if session.next_feature is None:
        skip("nothing is asked for")
    names = [model.name_of(k) for k in range(len(model.candidates_))]
    other = next((name for name in names if name != session.next_feature), None)
    if other is None:
        skip("only one value can be requested")
    session.observe(1.0, other)
    if session.cost != 0.0:
        fail("a volunteered value has a cost.")
    rejects(lambda: session.observe(2.0, other), "a value observed twice", repr(other))
    while session.next_feature is not None:
        if session.next_feature == other:
            fail("a known value is requested.")
        session.observe(0.5)


def _prices(subject: CellSubject) -> None:
    """Fewer values are acquired at higher prices, and none above any gain: then the majority class is predicted."""
    X, y = subject.data(2, 400)
    acquired = []
    for cost in (0.001, 0.03, 10.0):
        model = subject.new(cost=cost).fit(X, y)
        labels = model.predict(X)
        acquired.append(float(model.n_features_used_.mean()))
    if not acquired[0] >= acquired[1] >= acquired[2] == 0.0:
        fail(f"at prices of 0.001, 0.03 and 10, {acquired} values are acquired per row.")
    if (labels != model.classes_[np.bincount(y).argmax()]).any():
        fail("without any value the prediction must be the most frequent class.")
    prices = np.array([0.01, 0.02, 0.03, 0.01, 0.01, 0.02])
    model = subject.new(cost=prices).fit(X, y)
    for trace in model.acquire(X[:30]):
        if not np.isclose(trace.cost, prices[trace.features].sum()):
            fail("the cost of a row is not the sum of the prices of its acquired values.")


def _free_values(subject: CellSubject) -> None:
    """A price of 0 is allowed."""
    model, (X, _) = subject.learned(cost=0.0), subject.data(1, 20)
    model.predict(X)
    if model.cost_.any() or not model.n_features_used_.any():
        fail("free values must be acquired, at no cost.")


def _misclassification_costs(subject: CellSubject) -> None:
    """A class is predicted more often if its misclassification cost is higher."""
    X, y = subject.data(3, 400)
    if "misclassification_cost" not in subject.prototype.get_params():
        skip("the method has no parameter misclassification_cost")
    plain = int(subject.learned().predict(X).sum())
    wary = int(subject.new(misclassification_cost=[[0, 1], [8, 0]]).fit(X, y).predict(X).sum())
    if not wary > plain:
        fail(f"class 1 is predicted {wary} times with a high misclassification cost, else {plain} times.")


def _fit_resets(subject: CellSubject) -> None:
    """`fit` resets the model, and so does a clone."""
    X, y = subject.data()
    model = subject.learned()
    refitted = subject.new().fit(*subject.data(5)).fit(X, y)
    subject.compare(refitted, model, "fit after another fit, and of a new copy")
    again = clone(subject.new().fit(*subject.data(5))).fit(X, y)
    subject.compare(again, model, "a clone that was fitted, and a new copy")


def _rows_are_independent(subject: CellSubject) -> None:
    """The prediction for a row does not depend on the other rows."""
    model, (X, _) = subject.learned(), subject.data(1, 30)
    whole = model.predict_proba(X)
    one_by_one = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(len(X))])
    if not np.allclose(whole, one_by_one, rtol=1e-12, atol=0.0):
        fail("rows predicted together and one at a time have different posteriors.")


def takes_frame(subject: CellSubject, library: str) -> None:
    """A session requests values by the column names of a frame."""
    shared.same_as_frame(subject, library)
    X, y = subject.data()
    frame = table(library, X, NAMES)
    model = subject.new().fit(frame, y)
    subject.compare_on(
        model, subject.learned(), frame, X, f"a {library} frame, and its numbers", tolerance=1e-9
    )
    asked = model.open().next_feature
    if model.feature_names_in_.tolist() != NAMES or asked not in NAMES:
        fail(f"the columns are named {NAMES}, but a session requests {asked!r}.")
    other = table(library, X, NAMES[::-1])
    rejects(lambda: model.predict(other), "a frame of other names", "feature names")


def _missing_at_fit(subject: CellSubject) -> None:
    """Rows with missing values are supported in fitting."""
    X, y = subject.data()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = subject.new().fit(X, y)
    if not np.isfinite(model.predict_proba(X)).all():
        fail("after fitting to rows with missing values a posterior is not finite.")


def _labels_of_any_type(subject: CellSubject) -> None:
    """Labels may be text, bool or numbers; the posteriors are the same."""
    (X, y), model = subject.data(), subject.learned()
    for labels in (np.array(["off", "on"]), np.array([False, True]), np.array([-1.0, 7.0])):
        other = subject.new().fit(X, labels[y])
        subject.compare_on(
            other, model, X[:40], X[:40], f"labels {labels.tolist()}, and 0 and 1", tolerance=1e-9
        )
        session = other.open()
        if session.decision not in labels.tolist() or list(session.posterior) != labels.tolist():
            fail(f"a session does not return the labels {labels.tolist()}.")


def _several_classes(subject: CellSubject) -> None:
    """Three classes and a single class are supported."""
    X, y = subject.data()
    three = y + (X[:, 1] > 1.5)
    if subject.new().fit(X, three).predict_proba(X[:9]).shape != (9, 3):
        fail("with three classes predict_proba must have three columns.")
    model = subject.new().fit(X, np.full(len(y), "only"))
    if (model.predict(X) != "only").any() or model.n_features_used_.any():
        fail("a single class must be predicted without any value.")


def _odd_columns(subject: CellSubject) -> None:
    """Constant and all-missing features, and values outside the range of the training rows."""
    X, y = subject.data()
    X[:, 4], X[:, 5] = 3.0, np.nan
    model = subject.new().fit(X, y)
    X[:, :4] *= 1e9
    if not np.isfinite(model.predict_proba(X)).all():
        fail("for values outside the training range a posterior is not finite.")


def _shifted_values(subject: CellSubject) -> None:
    """A constant added to the features, in training and later, leaves acquisitions and posteriors unchanged."""
    X, y = subject.data()
    for offset in (1e3, 1.7e9, -1e8):
        moved = X + offset  # exactly: multiples of 1/8
        shifted = subject.new().fit(moved, y)
        subject.compare_on(
            shifted, subject.learned(), moved, X, f"features plus {offset:g}, and without", tolerance=1e-5
        )


def _bad_rows(subject: CellSubject) -> None:
    """Infinity, text, other widths and no rows are rejected in one line; the model is unchanged."""
    (X, y), model = subject.data(), subject.learned()
    before = model.predict_proba(X)
    endless, words = X.copy(), X.astype(object)
    endless[3, 1], words[2, 2] = np.inf, "tall"
    for what, act, words_of_it in (
        ("infinity at fit", lambda: model.fit(endless, y), ()),
        ("infinity at predict", lambda: model.predict(endless), ()),
        ("text", lambda: model.fit(words, y), ()),
        ("other widths", lambda: model.predict(X[:, :4]), ("4", "6")),
        ("no rows", lambda: model.fit(X[:0], y[:0]), ()),
        ("too few labels", lambda: model.fit(X, y[:9]), ()),
    ):
        rejects(act, what, *words_of_it)
        if (model.predict_proba(X) != before).any():
            fail(f"after {what} was rejected, the model has changed.")


def _bad_prices(subject: CellSubject) -> None:
    """Prices that are negative, not finite, or of the wrong number are rejected by `fit`."""
    X, y = subject.data()
    for what, cost in (
        ("a negative price", -0.1), ("a price of NaN", np.nan), ("five prices for six columns", [0.1] * 5),
        ("a negative price of a column", [0.1, 0.1, -0.1, 0.1, 0.1, 0.1]), ("prices by name without names", {"a": 1.0}),
    ):  # fmt: skip
        model = subject.new(cost=cost)
        rejects(lambda model=model: model.fit(X, y), what, "cost")  # type: ignore[misc]
    frame = table("pandas", X, NAMES)
    model = subject.new(cost={**dict.fromkeys(NAMES, 0.01), "nose": 1.0})
    rejects(lambda: model.fit(frame, y), "the price of an unknown column", "nose")


def _bad_answers(subject: CellSubject) -> None:
    """A session rejects unknown names, text and infinity, and is unchanged afterwards."""
    session = subject.learned().open()
    before = session.next_feature, session.posterior
    rejects(lambda: session.observe(1.0, "nose"), "an unknown name", "nose")
    rejects(lambda: session.observe("tall"), "text", "tall")
    rejects(lambda: session.observe(np.inf), "infinity", "inf")
    if (session.next_feature, session.posterior) != before or session.explain():
        fail("after an answer was rejected, the session has changed.")
    while session.next_feature is not None:
        session.observe(0.5)
    rejects(lambda: session.observe(1.0), "an answer after the decision", "finished")
