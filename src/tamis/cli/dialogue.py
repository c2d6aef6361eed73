"""A session with values as people enter them, for the terminal, for programs and for the page."""

from __future__ import annotations

import copy
import datetime
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tamis.cli.failure import MisuseError
from tamis.errors import DataError

if TYPE_CHECKING:
    from tamis.cells import CellClassifier, Session
    from tamis.persistence.journal import Journal

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_WITH_UNIT = re.compile(r"([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s*([^\d\s.,+-][^\d]*)")


class ImplausibleValueError(DataError):
    """A value that is only recorded once it is confirmed: outside the range of its feature, or a new category.

    Attributes
    ----------
    feature : str or int
    value : float or str
    units : list of str
        Declared units, in one of which the value may be given; the own unit first.
    """

    def __init__(self, question: str, feature: Any, value: Any, units: Sequence[str]) -> None:
        super().__init__(question)
        self.feature, self.value, self.units = feature, value, list(units)


class Dialogue:
    """A session with values as people enter them: categories by their names.

    Parameters
    ----------
    model : CellClassifier
    unavailable : sequence of str, optional
        Features that the session does not ask for.
    budget : float, optional
        Largest total price of the case.
    case : str
        A name of the case, for the log.
    log : Journal, optional
        A line of JSON is appended for each event: time, case, event, and what is known and decided after it.
    """

    advice = "enter ?"  # for an unavailable value
    confirm = "Enter it again to record it unchanged."  # how to answer a question about a value

    def __init__(
        self, model: CellClassifier, unavailable: Sequence[str] = (), budget: float | None = None, *, case: str = "",
        log: Journal | None = None,
    ) -> None:  # fmt: skip
        self.model, self.budget, self.case, self.log = model, budget, case, log
        self.unavailable = [self._column_key(name) for name in unavailable]
        self.categories = {name: sorted(values, key=str) for name, values in model.categories_.items()}
        self.session: Session = self.open({"observed": []})
        # The last feature and value that were not yet confirmed.
        self._questioned: tuple[Any, Any] | None = None

    def open(self, state: Mapping[str, Any]) -> Session:
        """Return a session in that state, without unavailable features."""
        return self.model.open(state, unavailable=self.unavailable, budget=self.budget)

    @property
    def asks(self) -> tuple[Any, float]:
        """The feature to ask for, and its price: what arrived with a panel, then the next feature, or None."""
        arrived = self.session.arrived
        return (arrived[0], 0.0) if arrived else (self.session.next_feature, self.session.next_cost)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.asks[0] is None

    def record(self, event: str, **facts: Any) -> None:
        """Append an event to the log."""
        if self.log is not None:
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            state = {"decision": self.session.decision, "cost": self.session.cost}
            belief: dict[str, Any] = {"posterior": rounded(self.session.posterior)}
            if self.session.deviation is not None:
                belief = {"deviation": self.session.deviation}
            self.log.write([{"event": event, "time": now, "case": self.case, **facts, **state, **belief}])

    def undo(self) -> None:
        """Remove the last answer."""
        self.session.undo()
        self.record("undo")

    @classmethod
    def load(
        cls, path: str, unavailable: Sequence[str] = (), budget: float | None = None, **more: Any
    ) -> Dialogue:
        """Return the dialogue of a saved model."""
        import tamis

        content = tamis.load(path)  # first, so that a wrong path fails at once
        from tamis.cells import CellClassifier

        model = content.get("model") if isinstance(content, dict) else content
        if not isinstance(model, CellClassifier):
            raise MisuseError(
                f"{path} contains no classifier that acquires values: make one with tamis train."
            )
        if not hasattr(model, "classes_"):
            raise MisuseError(f"The model in {path} was saved before it was fitted.")
        try:
            return cls(model, unavailable, budget, **more)
        except ValueError as error:
            raise MisuseError(f"--{error}") from None

    def observe(
        self, value: Any, feature: Any = None, *, unit: str | None = None, confirmed: bool = False
    ) -> None:
        """Add an answer; None means that the value is unavailable.

        Parameters
        ----------
        value : number, str or None
            A number may be followed by a declared unit: ``"98.6 °F"``.
        feature : str or int, optional
            By default the next feature.
        unit : str, optional
        confirmed : bool
            Record the value even if it is outside the range of the feature, or a new category. An answer that is given
            twice is confirmed.

        Raises
        ------
        ImplausibleValueError
            If the value is implausible, and not confirmed.
        """
        feature = self.asks[0] if feature is None else self._column_key(feature)
        given = (feature, str(value))
        if feature in self.categories and value is not None:
            value = self._category(feature, value)
        elif value is not None:
            units = self.units(feature)
            if (
                units
                and unit is None
                and isinstance(value, str)
                and (parts := _WITH_UNIT.fullmatch(value.strip()))
            ):
                value, unit = parts.groups()
            value = self._number(feature, value)
        other = None if feature == self.session.next_feature else feature
        is_new = value is not None and not confirmed and given != self._questioned
        if is_new and (question := self.session.question(value, other, unit=unit)):
            self._questioned = given
            raise self._implausible(question, feature, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the question was answered
            self.session.observe(value, other, unit=unit)
        self._record_step()

    def handle(self, message: Mapping[str, Any]) -> None:
        """Add the answer of a message: "value" or "outcome", with "feature", "unit" and "confirmed", or "values"."""
        feature, outcome = message.get("feature"), message.get("outcome")
        if outcome == "no result":
            self.no_result(feature)
        elif outcome is not None and "value" not in message:
            raise ValueError(f'"outcome" must be "no result", got {safe_repr(outcome)}.')
        elif "values" in message:
            self._observe_all(message["values"], confirmed=message.get("confirmed") is True)
        elif "value" in message:
            self.observe(
                message["value"],
                feature,
                unit=message.get("unit"),
                confirmed=message.get("confirmed") is True,
            )

    def _observe_all(self, values: Any, *, confirmed: bool) -> None:
        """Add several answers by feature, those that were asked for first; all of them or none."""
        if not isinstance(values, Mapping):
            raise ValueError('"values" must be an object of values by feature.')
        before, left = self.session, {self._column_key(feature): value for feature, value in values.items()}
        log, self.log = self.log, None
        self.session = copy.copy(before)
        try:
            while left:
                feature = self.asks[0] if self.asks[0] in left else next(iter(left))
                self.observe(left.pop(feature), feature, confirmed=confirmed)
        except BaseException:
            self.session, self.log = before, log
            raise
        self.log = log
        self.record("answers", values=dict(values))

    def no_result(self, feature: Any = None) -> None:
        """Add that a feature was acquired without a result; its price is paid."""
        feature = self.asks[0] if feature is None else self._column_key(feature)
        self.session.no_result(None if feature == self.session.next_feature else feature)
        self._record_step()

    def _record_step(self) -> None:
        step = self.session.explain()[-1]
        self.record(
            "answer",
            **{name: step[name] for name in ("feature", "value", "outcome", "paid")},
            price=step["cost"],
        )

    def reason(self, feature: Any) -> str:
        """Return how much possible answers change the probability of the current decision."""
        session = self.session
        if feature in session.arrived:
            return "It arrived with the other values of its panel."
        label, other = session.decision, None if feature == session.next_feature else feature
        after = [session.what_if(value, other) for value in self._possible_values(feature)]
        items = [one.posterior[label] if session.deviation is None else one.decision for one in after]
        low, high = min(items), max(items)
        if session.deviation is not None:
            return f"An answer can move the prediction from {label:.5g} to between {low:.5g} and {high:.5g}."
        now = session.posterior[label]
        return f"An answer can move the probability of {label} from {now:.2f} to between {low:.2f} and {high:.2f}."

    def best_questions(self) -> list[dict[str, Any]]:
        """Return up to three questions, best first, each with its price and its reason."""
        arrived = [(feature, 0.0) for feature in self.session.arrived]
        best = [one for one in self.session.best_questions() if one[0] not in dict(arrived)]
        return [
            {"feature": feature, "price": price, "reason": self.reason(feature)}
            for feature, price in [*arrived, *best][:3]
        ]

    def _possible_values(self, name: Any) -> list[Any]:
        """Return the categories of a column, or a number in each of its bins."""
        import numpy as np

        if name in self.categories:
            return list(self.categories[name])
        edges = self.model._bins.edges[self.model._names().index(name)]
        edges = edges[np.isfinite(edges)]
        if not len(edges):
            return [0.0]
        width = float(np.ptp(edges)) or abs(float(edges[0])) or 1.0
        middles = (edges[1:] / 2 + edges[:-1] / 2).tolist()
        return [float(edges[0] - width / 2), *middles, float(edges[-1] + width / 2)]

    def units(self, feature: Any) -> list[str]:
        """Return the declared units of a feature, its own first."""
        from tamis.base.session import units_of  # imports NumPy, and help must be fast

        names = self.model._names()
        return list(units_of(self.model, names.index(feature))) if feature in names else []

    def _implausible(self, question: str, feature: Any, value: Any) -> ImplausibleValueError:
        if feature in self.categories:
            names = [str(one) for one in self.categories[feature]]
            listed = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
            question = (
                f"{feature} has no value {safe_repr(value)}: choose one of {listed}; {self.advice} if the value is"
                f" unavailable. {self.confirm}"
            )
        else:
            question = f"{question} {self.confirm}"
        return ImplausibleValueError(question, feature, value, self.units(feature))

    def _column_key(self, feature: Any) -> Any:
        """Return a column's number where columns have no names."""
        plain = not hasattr(self.model, "feature_names_in_")
        return int(feature) if plain and str(feature).isdigit() else feature

    def _number(self, feature: Any, value: Any) -> float:
        if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
            if _THOUSANDS.fullmatch(value.strip()):
                raise DataError(
                    f"{feature} was given {safe_repr(value)}, a decimal comma or thousands: write it with a point, or"
                    " without the comma."
                )
            value = value.strip().replace(",", ".")
        try:
            number = math.inf if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.inf
        if math.isinf(number):
            raise DataError(
                f"{feature} must be a finite number, got {safe_repr(value)}; {self.advice} if the value is"
                " unavailable."
            )
        return number

    def _category(self, feature: Any, value: Any) -> Any:
        known = self.categories[feature]
        return next((one for one in known if one == value or str(one) == str(value)), value)

    def status(self) -> dict[str, Any]:
        """Return the session for programs: what it asks for, its decision, and its state."""
        session, (feature, price) = self.session, self.asks
        options = self.categories.get("" if feature is None else feature)
        return {
            "next": feature, "price": price, **({"values": options} if options else {}),
            "decision": session.decision, **({} if session.deviation is None else {"deviation": session.deviation}),
            "posterior": rounded(session.posterior), "cost": session.cost, "finished": feature is None,
            **session.state(),
        }  # fmt: skip

    def path(self) -> list[dict[str, Any]]:
        """Return the acquired values in order, each with the class probabilities after it."""
        return [{**step, "posterior": rounded(step["posterior"])} for step in self.session.explain()]


def amount(model: CellClassifier, price: float) -> str:
    """Return a price in the currency of the model's price list, if it has one."""
    from tamis.base import PriceList

    return model.cost.amount(price) if isinstance(model.cost, PriceList) else f"{price:g}"


def decision_text(session: Session) -> str:
    """Return the decision with its probability, or a number with its standard deviation."""
    if session.deviation is None:
        return f"{label_text(session.decision)} ({session.posterior[session.decision]:.3f})"
    return f"{session.decision:.5g} ± {session.deviation:.2g}"


def label_text(label: Any) -> str:
    """Return a class, or the mean of a level of a number, with five digits."""
    return f"{label:.5g}" if isinstance(label, float) else str(label)


def safe_repr(value: Any) -> str:
    """Return a short representation of a value, for a message."""
    from tamis._validation import short_repr  # imports NumPy, and help must be fast

    return short_repr(value)


def rounded(posterior: dict[Any, float]) -> dict[str, float]:
    """Return class probabilities with six decimals, by class label."""
    return {str(label): round(p, 6) for label, p in posterior.items()}
