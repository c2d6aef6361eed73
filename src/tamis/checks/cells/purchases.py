"""Purchases, posteriors and costs, and that a copy continues identically."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

from tamis.checks.cells.subject import CellSubject
from tamis.checks.subject import fail, rejects, skip
from tamis.persistence import load, save


def _labels_follow_posteriors(subject: CellSubject) -> None:
    """`predict` is the decision of least expected cost on `predict_proba`, which sums to 1."""
    model, (X, _) = subject.fitted(), subject.rows(seed=1)
    posterior = model.predict_proba(X)
    if posterior.shape != (len(X), 2) or not np.allclose(posterior.sum(axis=1), 1.0) or (posterior < 0).any():
        fail("predict_proba must hold a distribution over the classes for each row.")
    if (model.predict(X) != model.classes_[posterior.argmax(axis=1)]).any():
        fail("with equal misclassification costs predict must name the likeliest class.")


def _learns(subject: CellSubject) -> None:
    """At a small price most rows are classified rightly, from fewer values than there are."""
    model, (X, y) = subject.fitted(), subject.rows(400, seed=1)
    accuracy = float(np.mean(model.predict(X) == y))
    if accuracy < 0.7:
        fail(f"accuracy is {accuracy:.2f} where four columns tell the classes apart.")
    if not 0 < model.n_features_used_.mean() <= 6:
        fail(f"{model.n_features_used_.mean():.2f} values of 6 are bought.")


def _sessions_walk_the_same_way(subject: CellSubject) -> None:
    """A session asks for what `acquire` buys, in its order, and comes to the same decision, cost and posterior."""
    model, (X, _) = subject.fitted(), subject.rows(25, seed=1)
    labels = model.predict(X)
    used, cost = model.n_features_used_, model.cost_
    for i, trace in enumerate(model.acquire(X)):
        session = model.open()
        while session.next_feature is not None:
            session.observe(X[i, session.next_feature])
        if [step["feature"] for step in session.explain()] != trace.features:
            fail(f"row {i}: the session asks for other values than acquire buys.")
        if session.decision != trace.label or trace.label != labels[i] or len(trace.features) != used[i]:
            fail(f"row {i}: session, acquire and predict do not agree on the decision.")
        if not np.allclose([session.cost, trace.cost], cost[i]):
            fail(f"row {i}: session, acquire and predict do not agree on the cost.")
        if not np.allclose(list(session.posterior.values()), trace.posteriors[-1], atol=1e-12):
            fail(f"row {i}: session and acquire do not agree on the posterior.")


def _sessions_go_on_elsewhere(subject: CellSubject) -> None:
    """A session opened from the state of another is at the same point."""
    model, (X, _) = subject.fitted(), subject.rows(10, seed=1)
    for row in X:
        session = model.open()
        if session.next_feature is not None:
            session.observe(row[session.next_feature])
        other = model.open(session.state())
        if (other.next_feature, other.cost) != (session.next_feature, session.cost):
            fail("a session opened from a state asks for something else, or costs something else.")
        if other.posterior != session.posterior:
            fail("a session opened from a state believes something else.")


def _sessions_keep_their_model(subject: CellSubject) -> None:
    """A session continues with the model state that opened it, even if the model is refitted meanwhile."""
    model, other, (X, _) = subject.fitted(), subject.fitted(), subject.rows(8, seed=1)
    sessions = [(model.open(), other.open()) for _ in X]
    if hasattr(model, "partial_fit"):
        model.partial_fit(*subject.rows(60, seed=2))
    X_new, y_new = subject.rows(seed=3)
    model.fit(np.round(X_new[:, ::-1]), np.where(y_new == 1, "a", "b"))
    for row, (session, expected) in zip(X, sessions, strict=True):
        while expected.next_feature is not None:
            session.observe(row[expected.next_feature])
            expected.observe(row[expected.next_feature])
        if session.explain() != expected.explain() or session.decision != expected.decision:
            fail("a session does not continue unchanged when its model is fitted again.")


def _missing_values_cost_nothing(subject: CellSubject) -> None:
    """NaN is passed over: it is neither counted nor paid, and nothing is asked twice."""
    model, (X, _) = subject.fitted(), subject.rows(30, seed=1)
    model.predict(np.full((3, 6), np.nan))
    if model.cost_.any() or model.n_features_used_.any():
        fail("rows without any value cost something.")
    X[::2, 0] = X[1::3, 2] = np.nan
    for row, trace in zip(X, model.acquire(X), strict=True):
        if len(set(trace.features)) < len(trace.features):
            fail("a value is bought twice.")
        if np.isnan(row[trace.features]).any() or np.isnan(trace.values).any():
            fail("a value that is missing is bought.")
    session = model.open()
    while session.next_feature is not None:
        session.observe(None)
    if session.cost != 0.0:
        fail("a session in which no value is available costs something.")


def _free_evidence(subject: CellSubject) -> None:
    """A value given unasked is free, is accepted once, and is not asked for again."""
    model = subject.fitted()
    session = model.open()
    if session.next_feature is None:
        skip("nothing is asked for")
    names = [model.name_of(k) for k in range(len(model.candidates_))]
    other = next((name for name in names if name != session.next_feature), None)
    if other is None:
        skip("only one value may be asked for")
    session.observe(1.0, other)
    if session.cost != 0.0:
        fail("a value that was volunteered costs something.")
    rejects(lambda: session.observe(2.0, other), "a value told twice", repr(other))
    while session.next_feature is not None:
        if session.next_feature == other:
            fail("a value that is known is asked for.")
        session.observe(0.5)


def _prices(subject: CellSubject) -> None:
    """Dear values are bought less; above any gain nothing is, and the decision is that of the class shares."""
    X, y = subject.rows(400, seed=2)
    bought = []
    for cost in (0.001, 0.03, 10.0):
        model = subject.new(cost=cost).fit(X, y)
        labels = model.predict(X)
        bought.append(float(model.n_features_used_.mean()))
    if not bought[0] >= bought[1] >= bought[2] == 0.0:
        fail(f"at prices of 0.001, 0.03 and 10, {bought} values are bought per row.")
    if (labels != model.classes_[np.bincount(y).argmax()]).any():
        fail("without any value the decision must be the most frequent class.")
    prices = np.array([0.01, 0.02, 0.03, 0.01, 0.01, 0.02])
    model = subject.new(cost=prices).fit(X, y)
    for trace in model.acquire(X[:30]):
        if not np.isclose(trace.cost, prices[trace.features].sum()):
            fail("the cost of a row is not the sum of the prices of what was bought.")


def _free_values(subject: CellSubject) -> None:
    """A price of 0 is allowed."""
    model, (X, _) = subject.fitted(cost=0.0), subject.rows(20, seed=1)
    model.predict(X)
    if model.cost_.any() or not model.n_features_used_.any():
        fail("free values must be bought, for nothing.")


def _misclassification_costs(subject: CellSubject) -> None:
    """What is dear to miss is said more often."""
    X, y = subject.rows(400, seed=3)
    if "misclassification_cost" not in subject.prototype.get_params():
        skip("there is no parameter misclassification_cost")
    plain = int(subject.fitted().predict(X).sum())
    wary = int(subject.new(misclassification_cost=[[0, 1], [8, 0]]).fit(X, y).predict(X).sum())
    if not wary > plain:
        fail(f"where class 1 is dear to miss it is said {wary} times, else {plain} times.")


def _same_data_same_bits(subject: CellSubject) -> None:
    """Fitted to the same rows, copies and clones are the same, bit for bit; `fit` forgets what was before."""
    X, y = subject.rows()
    model = subject.fitted()
    again = clone(subject.new().fit(*subject.rows(seed=5))).fit(X, y)
    refitted = subject.new().fit(*subject.rows(seed=5)).fit(X, y)
    for other in (again, refitted):
        if (other.predict_proba(X) != model.predict_proba(X)).any():
            fail("the same rows and seed give another model.")


def _rows_are_independent(subject: CellSubject) -> None:
    """What is decided of a row does not depend on the rows beside it."""
    model, (X, _) = subject.fitted(), subject.rows(30, seed=1)
    whole = model.predict_proba(X)
    one_by_one = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(len(X))])
    if not np.allclose(whole, one_by_one, rtol=1e-12, atol=0.0):
        fail("rows predicted together and one at a time have other posteriors.")


def _copies_go_on(subject: CellSubject) -> None:
    """Pickled, copied deeply, or saved and loaded, a model decides with the same bits."""
    model, (X, _) = subject.fitted(), subject.rows()
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(save(model, Path(folder) / "model.tamis"), classes=[type(model)])
    copies = {
        "pickle": pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy(model), "load": loaded,
    }  # fmt: skip
    for what, copied in copies.items():
        if (copied.predict_proba(X) != model.predict_proba(X)).any():
            fail(f"after {what} the model decides otherwise.")


CHECKS = (
    _labels_follow_posteriors,
    _learns,
    _sessions_walk_the_same_way,
    _sessions_go_on_elsewhere,
    _sessions_keep_their_model,
    _missing_values_cost_nothing,
    _free_evidence,
    _prices,
    _free_values,
    _misclassification_costs,
    _same_data_same_bits,
    _rows_are_independent,
    _copies_go_on,
)
