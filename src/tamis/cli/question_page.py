"""The page of `tamis acquire MODEL --serve`: it asks for one value at a time and lists the observed ones.

The server keeps no session: each request has the values observed so far, and the answer has the next question. So any
number of sessions run at once, an undo is a shorter list, and memory does not grow. Names and values are sent as data
and inserted as text, never as HTML.

Programs may instead open sessions by id, as described in `session_api.json` (OpenAPI). A stored session is its list of
answers, so each request opens the model in that state and answers with what follows. At most `_MOST` sessions are kept,
in memory; the one that was unused for longest is dropped.
"""

from __future__ import annotations

import csv
import html
import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
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
    from tamis.persistence.journal import Journal

# -- sessions for programs ---------------------------------------------------------------------------------


_MOST = 10_000
_PATH = re.compile(r"/sessions/([\w-]{1,64})(?:/(answers|what-if|undo|stop))?")
_STORED = ("observed", "unavailable", "budget")
_TOO_LONG = 1000  # values of a session, or letters of a case


class UnknownSessionError(LookupError):
    """A path or a session that does not exist."""


class SessionStore:
    """Sessions of a fitted model, by id.

    Parameters
    ----------
    model : CellClassifier
    unavailable : sequence of columns
        Features that no session asks for.
    budget : float, optional
        Largest total price of a case, unless a session has one of its own.
    log : Journal, optional
        An event of each request that changes a session.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FixedSubset
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> store = SessionStore(FixedSubset(n_features=1).fit(rng.normal(size=(200, 2)) + 2 * y[:, None], y))
    >>> code, session = store.handle("POST", "/sessions", {"case": "Miller"})
    >>> code, session["case"], session["next"], session["finished"]
    (201, 'Miller', 0, False)
    >>> code, session = store.handle("POST", f"/sessions/{session['id']}/answers", {"value": 3.0})
    >>> code, session["decision"], session["finished"]
    (200, 1, True)
    """

    def __init__(
        self, model: Any, unavailable: Any = (), budget: float | None = None, log: Journal | None = None
    ) -> None:
        self.model, self.unavailable, self.budget, self.log = model, list(unavailable), budget, log
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def handle(self, method: str, path: str, message: Any) -> tuple[int, dict[str, Any] | None]:
        """Return the status and the document that answer a request.

        Parameters
        ----------
        method : {"GET", "POST", "PUT", "DELETE"}
        path : str
        message : dict
            The document of the request; empty if it has none.

        Raises
        ------
        UnknownSessionError
            If the path or the session does not exist.
        ValueError
            If the document has another form, or a value is invalid.
        """
        if not isinstance(message, dict):
            raise ValueError("A request must contain one JSON object.")
        with self._lock:
            if (method, path) == ("POST", "/sessions"):
                key = secrets.token_urlsafe(12)
                created = self._change(
                    key, {"observed": [], "stopped": False, "case": ""}, self._open, message
                )
                return 201, created
            match = _PATH.fullmatch(path)
            if match is None or match[1] not in self._sessions:
                raise UnknownSessionError(f"There is no {path}: POST /sessions opens a session.")
            key, action = match[1], match[2]
            stored = self._sessions[key]
            self._sessions.move_to_end(key)
            known: dict[tuple[str, str | None], Callable[[Dialogue, dict[str, Any], Any], None]] = {
                ("GET", None): lambda *_: None, ("PUT", None): self._replace,
                ("POST", "answers"): self._answer, ("POST", "undo"): self._undo, ("POST", "stop"): self._stop,
            }  # fmt: skip
            if (method, action) == ("DELETE", None):
                del self._sessions[key]
                return 204, None
            if (method, action) == ("POST", "what-if"):
                dialogue = self._dialogue(stored, log=None)
                dialogue.handle(message)
                return 200, self._document(key, stored, dialogue)
            if (method, action) not in known:
                raise UnknownSessionError(f"{path} does not accept {method}.")
            return 200, self._change(key, stored, known[method, action], message)

    # -- requests ------------------------------------------------------------------------------------------

    def _open(self, dialogue: Dialogue, stored: dict[str, Any], message: Mapping[str, Any]) -> None:
        self._restore(dialogue, stored, message)
        stored["case"] = str(message.get("case", ""))[:_TOO_LONG]
        dialogue.case = stored["case"]
        dialogue.record("open")

    def _replace(self, dialogue: Dialogue, stored: dict[str, Any], message: Mapping[str, Any]) -> None:
        """Open the session with other answers, such as an earlier one that was corrected."""
        self._restore(dialogue, stored, message)
        dialogue.record("replace", observed=stored["observed"])

    @staticmethod
    def _restore(dialogue: Dialogue, stored: dict[str, Any], message: Mapping[str, Any]) -> None:
        given = {name: message[name] for name in _STORED if name in message}
        observed = given.setdefault("observed", stored["observed"])
        try:
            if not isinstance(observed, list) or len(observed) > _TOO_LONG:
                raise TypeError
            dialogue.session = dialogue.open({**stored, **given})
        except TypeError:
            raise ValueError(
                f'"observed" must be a list of at most {_TOO_LONG:,} triples of feature, value and whether it was paid.'
            ) from None
        stored |= given
        if "stopped" in message:
            stored["stopped"] = message["stopped"] is True

    @staticmethod
    def _answer(dialogue: Dialogue, stored: dict[str, Any], message: Mapping[str, Any]) -> None:
        if not {"value", "values", "outcome"} & set(message):
            raise ValueError('An answer must have "value", "values" or "outcome".')
        dialogue.handle(message)
        stored["stopped"] = False

    @staticmethod
    def _undo(dialogue: Dialogue, stored: dict[str, Any], message: Mapping[str, Any]) -> None:
        if stored["stopped"]:
            stored["stopped"] = False
        else:
            dialogue.undo()

    @staticmethod
    def _stop(dialogue: Dialogue, stored: dict[str, Any], message: Mapping[str, Any]) -> None:
        stored["stopped"] = True
        dialogue.record("decision")

    # -- state ---------------------------------------------------------------------------------------------

    def _dialogue(self, stored: Mapping[str, Any], log: Journal | None) -> Dialogue:
        budget = stored.get("budget", self.budget)
        dialogue = Dialogue(self.model, self.unavailable, budget, case=stored["case"], log=log)
        dialogue.advice, dialogue.confirm = "send null", 'Send it again with "confirmed": true to record it.'
        dialogue.session = dialogue.open(stored)
        return dialogue

    def _change(
        self, key: str, stored: dict[str, Any], change: Callable[[Dialogue, dict[str, Any], Any], None], message: Any
    ) -> dict[str, Any]:  # fmt: skip
        """Change a session, and keep it if nothing was raised."""
        fresh = dict(stored)
        dialogue = self._dialogue(fresh, self.log)
        change(dialogue, fresh, message)
        self._sessions[key] = fresh | dialogue.session.state()
        if len(self._sessions) > _MOST:
            self._sessions.popitem(last=False)
        return self._document(key, self._sessions[key], dialogue)

    @staticmethod
    def _document(key: str, stored: Mapping[str, Any], dialogue: Dialogue) -> dict[str, Any]:
        status = dialogue.status()
        if stored["stopped"]:
            status |= {"next": None, "price": 0.0, "finished": True}
        questions = [] if status["finished"] else dialogue.best_questions()
        return {"id": key, "case": stored["case"], **status, "questions": questions, "steps": dialogue.path()}


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
    budget : float, optional
        Largest total price of a case.
    title : str
        By default the method.
    host : str
        Address to listen on; by default the loopback address, which other machines cannot reach.
    log : Journal, optional
        An event of each answer is appended to it.

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
        *, unavailable: Sequence[Any] = (), budget: float | None = None, title: str = "", host: str = "127.0.0.1",
        log: Journal | None = None,
    ) -> None:  # fmt: skip
        self.model, self.wording, self.unavailable = model, wording or {}, as_list("unavailable", unavailable)
        self.budget, self.log = budget, log
        self.sessions = SessionStore(model, self.unavailable, budget, log)
        belief = "Prediction" if model._is_regression else "Probabilities"
        heading = html.escape(title or type(model).__name__)
        super().__init__("question", _Handler, port, host, heading=heading, belief=belief)

    def reply(self, message: Any) -> dict[str, Any]:
        """Return the state of a session after a message: the values observed so far, and possibly one more.

        Parameters
        ----------
        message : dict
            "observed" as in :meth:`Session.state`; "value" or "outcome": "no result"; for a value given unasked,
            "feature"; for one that was questioned, "confirmed" or "unit". "case" names the case in the log, "event"
            is what else happened, and with "what_if" nothing is logged.

        Raises
        ------
        ValueError
            If the message has another form, or a value is invalid.
        """
        if not isinstance(message, dict) or not isinstance(message.get("observed"), list):
            raise ValueError('A request must be an object with the list "observed".')
        case = str(message.get("case", ""))
        log = None if message.get("what_if") else self.log
        dialogue = Dialogue(self.model, self.unavailable, self.budget, case=case, log=log)
        dialogue.advice, dialogue.confirm = "choose Not available", ""
        try:
            dialogue.session = dialogue.open({"observed": message["observed"]})
        except TypeError:
            raise ValueError(
                '"observed" must contain triples of feature, value and whether it was paid.'
            ) from None
        dialogue.handle(message)
        if (event := message.get("event")) in ("open", "undo", "edit", "decision"):
            dialogue.record(event)
        return self._state(dialogue)

    def _state(self, dialogue: Dialogue) -> dict[str, Any]:
        session, first = dialogue.session, self.model.open()
        is_number = session.deviation is not None
        steps = [
            {
                "text": self._text(step["feature"]), "value": step["value"], "paid": step["paid"],
                "price": self._amount(step["cost"]), "after": self._text_after(step["posterior"]),
                "outcome": step["outcome"], **self._column(dialogue, step["feature"]),
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
        questions = [
            {
                **self._column(dialogue, one["feature"]),
                "price": self._amount(one["price"]),
                "reason": one["reason"],
            }
            for one in dialogue.best_questions()
        ]
        return {
            **session.state(), "steps": steps, "finished": dialogue.finished,
            "question": questions[0] if questions else None, "other_questions": questions[1:],
            "others": [self._column(dialogue, name) for name in names if name not in known],
            "posterior": bars,
            "number": [_interval("at first", first), _interval("now", session)] if is_number else None,
            "decision": f"{'Prediction' if is_number else 'Decision'}: {decision_text(session)}",
            "cost": self._amount(session.cost),
        }  # fmt: skip

    def _text_after(self, posterior: dict[Any, float]) -> str:
        """Return the likeliest class with its probability, or the prediction of a number, with a posterior."""
        row = np.array([list(posterior.values())])
        deviation = self.model._deviation(row)
        if deviation is None:
            likeliest = max(posterior, key=lambda label: posterior[label])
            return f"{label_text(likeliest)} {posterior[likeliest]:.3f}"
        return f"prediction {self.model._decide(row)[0]:.5g} ± {deviation[0]:.2g}"

    def _column(self, dialogue: Dialogue, name: Any) -> dict[str, Any]:
        options = [str(one) for one in dialogue.categories.get(name, [])]
        return {
            "feature": name, "text": self._text(name), "options": options, "units": dialogue.units(name),
        }  # fmt: skip

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
    """Serves the page, its replies, and the sessions of programs; subclasses set the page."""

    page: QuestionPage

    def do_GET(self) -> None:
        if self.reject_foreign():
            return
        if self.path == "/":
            self.answer(200, "text/html; charset=utf-8", self.page.source)
        elif self.path == "/openapi.json":
            text = files("tamis.cli").joinpath("session_api.json").read_text(encoding="utf-8")
            self.answer(200, "application/json", text.encode())
        else:
            self._reply(lambda _: self.page.sessions.handle("GET", self.path, {}), b"{}")

    def do_POST(self) -> None:
        if self.reject_foreign():
            return
        length = self.headers.get("Content-Length", "0")
        if length != "0" and self.headers.get("Content-Type") != "application/json":
            self.send_error(404)
        elif not (length.isascii() and length.isdigit()) or len(length) > 9 or int(length) > _LONGEST:
            self.send_error(413)
        elif self.path == "/reply":
            self._reply(lambda message: (200, self.page.reply(message)), self.rfile.read(int(length)))
        else:
            handle, body = self.page.sessions.handle, self.rfile.read(int(length)) or b"{}"
            self._reply(lambda message: handle(self.command, self.path, message), body)

    do_PUT = do_DELETE = do_POST

    def _reply(self, handle: Callable[[Any], tuple[int, dict[str, Any] | None]], body: bytes) -> None:
        try:
            code, reply = handle(json.loads(body))
        except ImplausibleValueError as asks:
            text = " ".join(str(asks).split())
            code, reply = 400, {"error": text, "question": text, "value": asks.value, "units": asks.units}
        except UnknownSessionError as error:
            code, reply = 404, {"error": str(error)}
        except (ValueError, TypeError, RecursionError) as error:
            code, reply = 400, {"error": " ".join(str(error).split())}
        content = b"" if reply is None else json.dumps(null_nonfinite(reply), default=str).encode()
        self.answer(code, "application/json", content)
