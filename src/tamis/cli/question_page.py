"""The page of `tamis acquire MODEL --serve`: it asks for one value at a time and lists the observed ones.

The server keeps no session: each request has the values observed so far, and the answer has the next question. So any
number of sessions run at once, an undo is a shorter list, and memory does not grow. Names and values are sent as data
and inserted as text, never as HTML.
"""

from __future__ import annotations

import csv
import html
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._json import null_nonfinite
from tamis._validation import as_list
from tamis.cli.dialogue import Dialogue, ImplausibleValueError, amount, decision_text, label_text
from tamis.cli.failure import MisuseError
from tamis.cli.local_server import LocalHandler, LocalPage

if TYPE_CHECKING:
    from tamis.cells import CellClassifier, Session

__all__ = ["QuestionPage", "read_wording"]

_LONGEST = 1 << 18  # bytes of a request


class QuestionPage(LocalPage):
    """Serves the acquisitions of a fitted model.

    Parameters
    ----------
    model : CellClassifier
    wording : dict of str to str, optional
        The question of a column, shown instead of its name.
    port : int, default=0
        0: a free port.
    unavailable : sequence of str or int, optional
        Features that no session of the page asks for.

    Attributes
    ----------
    address : str
        URL of the page.

    Examples
    --------
    >>> import urllib.request
    >>> from tamis import FixedSubset
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> model = FixedSubset(n_features=1).fit(rng.normal(size=(200, 2)) + 2 * y[:, None], y)
    >>> page = QuestionPage(model)
    >>> with urllib.request.urlopen(page.address) as answer:
    ...     b"FixedSubset" in answer.read()
    True
    >>> page.close()
    """

    def __init__(
        self, model: CellClassifier, wording: dict[str, str] | None = None, port: int = 0,
        *, unavailable: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self.model, self.wording, self.unavailable = model, wording or {}, as_list("unavailable", unavailable)
        belief = "Prediction" if model._is_regression else "Probabilities"
        super().__init__("question", _Handler, port, heading=html.escape(type(model).__name__), belief=belief)

    def reply(self, message: Any) -> dict[str, Any]:
        """Return the state of a session after a message: the values observed so far, and possibly one more.

        Parameters
        ----------
        message : dict
            "observed" as in :meth:`Session.state`; "value" or "outcome": "no result"; for a value given unasked,
            "feature"; for one that was questioned, "confirmed" or "unit".

        Raises
        ------
        ValueError
            If the message has another form, or a value is invalid.
        """
        if not isinstance(message, dict) or not isinstance(message.get("observed"), list):
            raise ValueError('A request must be an object with the list "observed".')
        dialogue = Dialogue(self.model, self.unavailable)
        dialogue.advice, dialogue.confirm = "choose Not available", ""
        try:
            dialogue.session = dialogue.open({"observed": message["observed"]})
        except TypeError:
            raise ValueError(
                '"observed" must contain triples of feature, value and whether it was paid.'
            ) from None
        dialogue.handle(message)
        return self._state(dialogue)

    def _state(self, dialogue: Dialogue) -> dict[str, Any]:
        session, first = dialogue.session, self.model.open()
        is_number = session.deviation is not None
        steps = [
            {
                "text": self._text(step["feature"]), "value": step["value"], "paid": step["paid"],
                "price": self._amount(step["cost"]), "after": self._text_after(step["posterior"]),
                "outcome": step["outcome"],
            }
            for step in session.explain()
        ]  # fmt: skip
        bars = [
            [label_text(label), p, first.posterior[label]]
            for label, p in session.posterior.items()
            if not is_number
        ]
        known = {step["feature"] for step in session.explain()} | set(session.unavailable)
        names = [self.model.name_of(k) for k in range(len(self.model.candidates_))]
        question = None
        if not session.finished:
            price, reason = self._amount(session.next_cost), self._reason(dialogue)
            question = {**self._column(dialogue, session.next_feature), "price": price, "reason": reason}
        return {
            **session.state(), "steps": steps, "finished": session.finished,
            "question": question,
            "others": [self._column(dialogue, name) for name in names if name not in known],
            "posterior": bars,
            "number": [_interval("at first", first), _interval("now", session)] if is_number else None,
            "decision": f"{'Prediction' if is_number else 'Decision'}: {decision_text(session)}",
            "cost": self._amount(session.cost),
        }  # fmt: skip

    def _text_after(self, posterior: dict[Any, float]) -> str:
        """Return the largest probability, or the prediction of a number, with a posterior."""
        row = np.array([list(posterior.values())])
        deviation = self.model._deviation(row)
        if deviation is None:
            return f"largest probability {row.max():.3f}"
        return f"prediction {self.model._decide(row)[0]:.5g} ± {deviation[0]:.2g}"

    def _column(self, dialogue: Dialogue, name: Any) -> dict[str, Any]:
        options = [str(one) for one in dialogue.categories.get(name, [])]
        return {
            "feature": name, "text": self._text(name), "options": options, "units": dialogue.units(name),
        }  # fmt: skip

    def _reason(self, dialogue: Dialogue) -> str:
        """Return how much possible answers change the probability of the current decision."""
        session = dialogue.session
        label = session.decision
        items = []
        for value in self._possible_values(dialogue, session.next_feature):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # representative values may be out of range
                other = self.model.open(session.state())
                other.observe(value)
            items.append(other.posterior[label] if session.deviation is None else other.decision)
        low, high = min(items), max(items)
        if session.deviation is not None:
            return f"An answer can move the prediction from {label:.5g} to between {low:.5g} and {high:.5g}."
        now = session.posterior[label]
        return f"An answer can move the probability of {label} from {now:.2f} to between {low:.2f} and {high:.2f}."

    def _possible_values(self, dialogue: Dialogue, name: Any) -> list[Any]:
        """Return the categories of a column, or a number in each of its bins."""
        if name in dialogue.categories:
            return list(dialogue.categories[name])
        position = [self.model.name_of(k) for k in range(len(self.model.candidates_))].index(name)
        edges = self.model._bins.edges[position]
        edges = edges[np.isfinite(edges)]
        if not len(edges):
            return [0.0]
        width = float(np.ptp(edges)) or abs(float(edges[0])) or 1.0
        return [
            float(edges[0] - width / 2),
            *(edges[1:] / 2 + edges[:-1] / 2).tolist(),
            float(edges[-1] + width / 2),
        ]

    def _text(self, name: Any) -> str:
        return self.wording.get(str(name), str(name))

    def _amount(self, price: float) -> str:
        return amount(self.model, price)


def _interval(name: str, session: Session) -> dict[str, Any]:
    """Return the prediction of a numeric target and its 95 % interval, for normal errors."""
    assert session.deviation is not None
    half = 1.96 * session.deviation
    low, high = session.decision - half, session.decision + half
    return {
        "name": name, "value": session.decision, "text": f"{session.decision:.5g}", "low": low, "high": high,
        "interval": f"95 % interval {low:.5g} to {high:.5g}",
    }  # fmt: skip


def read_wording(path: str) -> dict[str, str]:
    """Return the question of each column from a JSON object, or from lines of CSV with a column and its question.

    Raises
    ------
    MisuseError
        If the file cannot be read, or has another form.
    """
    try:
        content = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise MisuseError(f"--wording {path} is not a file of text that can be read.") from None
    if path.lower().endswith(".csv"):
        rows = [row for row in csv.reader(content.splitlines()) if any(part.strip() for part in row)]
        if short := [row for row in rows if len(row) < 2]:
            raise MisuseError(
                f"--wording {path} contains the line {short[0][0]!r}: write a column and its question."
            )
        return {row[0].strip(): row[1].strip() for row in rows}
    try:
        result = json.loads(content)
    except ValueError as error:
        raise MisuseError(f"--wording {path} is not a JSON document: {error}.") from None
    if not isinstance(result, dict) or not all(isinstance(text, str) for text in result.values()):
        raise MisuseError(
            f'--wording {path} must contain one object such as {{"sbp": "Systolic blood pressure (mmHg)"}}.'
        )
    return result


class _Handler(LocalHandler):
    """Serves the page and its replies; subclasses set the page."""

    page: QuestionPage

    def do_GET(self) -> None:
        if self.reject_foreign():
            return
        if self.path != "/":
            self.send_error(404)
            return
        self.answer(200, "text/html; charset=utf-8", self.page.source)

    def do_POST(self) -> None:
        if self.reject_foreign():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/reply" or self.headers.get("Content-Type") != "application/json":
            self.send_error(404)
        elif not (length.isascii() and length.isdigit()) or len(length) > 9 or int(length) > _LONGEST:
            self.send_error(413)
        else:
            self._reply(self.rfile.read(int(length)))

    def _reply(self, body: bytes) -> None:
        try:
            reply = self.page.reply(json.loads(body))
        except ImplausibleValueError as asks:
            text = " ".join(str(asks).split())
            self._send(400, {"error": text, "question": text, "value": asks.value, "units": asks.units})
            return
        except (ValueError, TypeError, RecursionError) as error:
            self._send(400, {"error": " ".join(str(error).split())})
            return
        self._send(200, reply)

    def _send(self, code: int, message: dict[str, Any]) -> None:
        body = json.dumps(null_nonfinite(message), default=str).encode()
        self.answer(code, "application/json", body)
