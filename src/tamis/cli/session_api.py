"""The JSON interface of `tamis acquire MODEL --serve`: sessions by id, as described in `session_api.json` (OpenAPI).

A stored session is its list of answers, so each request opens the model in that state and answers with what follows. At
most `_MOST` sessions are kept, in memory; the one that was unused for longest is dropped.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tamis.cli.dialogue import Dialogue

if TYPE_CHECKING:
    from tamis.persistence.journal import Journal

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
