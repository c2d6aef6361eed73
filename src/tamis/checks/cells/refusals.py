"""What a classifier that buys values refuses, and says in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from tamis.checks.cells.subject import NAMES, CellSubject
from tamis.checks.subject import fail, rejects, table


def _bad_rows(subject: CellSubject) -> None:
    """Infinity, text, other widths and no rows are refused in one line; the model stays as it was."""
    (X, y), model = subject.rows(), subject.fitted()
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
            fail(f"after {what} was refused, the model is not what it was.")


def _bad_prices(subject: CellSubject) -> None:
    """Prices that are negative, not finite, or of the wrong number are refused when the rows are there."""
    X, y = subject.rows()
    for what, cost in (
        ("a negative price", -0.1), ("a price that is no number", np.nan), ("five prices for six columns", [0.1] * 5),
        ("a negative price of a column", [0.1, 0.1, -0.1, 0.1, 0.1, 0.1]), ("prices by name without names", {"a": 1.0}),
    ):  # fmt: skip
        model = subject.new(cost=cost)
        rejects(lambda model=model: model.fit(X, y), what, "cost")  # type: ignore[misc]
    frame = table("pandas", X, NAMES)
    model = subject.new(cost={**dict.fromkeys(NAMES, 0.01), "nose": 1.0})
    rejects(lambda: model.fit(frame, y), "the price of an unknown column", "nose")


def _bad_answers(subject: CellSubject) -> None:
    """A session rejects unknown names, text and infinity, and is unchanged afterwards."""
    session = subject.fitted().open()
    before = session.next_feature, session.posterior
    rejects(lambda: session.observe(1.0, "nose"), "an unknown name", "nose")
    rejects(lambda: session.observe("tall"), "text", "tall")
    rejects(lambda: session.observe(np.inf), "infinity", "inf")
    if (session.next_feature, session.posterior) != before or session.explain():
        fail("after an answer was refused, the session is not what it was.")
    while session.next_feature is not None:
        session.observe(0.5)
    rejects(lambda: session.observe(1.0), "an answer after the decision", "finished")


def _not_fitted(subject: CellSubject) -> None:
    """Before `fit`, there is nothing to predict with."""
    X, _ = subject.rows()
    model = subject.new()
    acts: dict[str, Callable[[], Any]] = {
        "predict": lambda: model.predict(X), "acquire": lambda: model.acquire(X), "open": model.open
    }  # fmt: skip
    for what, act in acts.items():
        try:
            act()
        except NotFittedError:
            continue
        fail(f"{what} before fit must raise NotFittedError.")


CHECKS = (
    _bad_rows,
    _bad_prices,
    _bad_answers,
    _not_fitted,
)
