"""A session classifies one row, value by value: the next feature, the current posterior, and when to stop."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._guard import ThreadSafe, lock_of
from tamis._validation import Array, Floats, Ints, Mask, check_number, is_missing, short_repr
from tamis.base.html_repr import html_repr
from tamis.base.prices import PriceList
from tamis.errors import DataError

_ROUNDING = 1.0 + 1e-9  # of a sum of prices, against a budget


@dataclass
class State:
    """The known values of some rows; features are the candidates of the model, in its own order.

    Attributes
    ----------
    values : ndarray of shape (n_rows, K), int16
        Codes; -1 where unknown.
    asked : ndarray of shape (n_rows, K), bool
        Acquired, volunteered or unavailable: not to be requested again.
    posterior : ndarray of shape (n_rows, n_classes)
    stage : ndarray of shape (n_rows,), int
        Position of a row in a fixed order.
    spent : ndarray of shape (n_rows,), float
        Costs paid so far.
    numbers : ndarray of shape (n_rows, K), float64
        The values, NaN where unknown; without columns if the model uses codes alone.
    volunteered : ndarray of shape (n_rows,), bool
        Whether a value was provided that had not been requested.
    unavailable : ndarray of shape (n_rows, K), bool
        Declared unavailable in advance: in `asked`, but not a step. Without columns if there are none.
    without_result : ndarray of shape (n_rows, K), bool
        Acquired and paid for, but without evidence: no result, or a category that did not occur in `fit`.
    """

    values: NDArray[np.int16]
    asked: Mask
    posterior: Floats
    stage: Ints
    spent: Floats
    numbers: Floats
    volunteered: Mask
    unavailable: Mask
    without_result: Mask

    @property
    def paid_or_known(self) -> Mask:
        """The features whose group has been paid for: known ones, and those acquired without a result."""
        return (self.values >= 0) | self.without_result

    def n_asked(self) -> Ints:
        """Return the number of values requested or volunteered, for each row."""
        return self.asked.sum(axis=1) - self.unavailable.sum(axis=1)

    def record(self, position: Array, code: Array, value: Array) -> None:
        """Store a value of each row and its code."""
        rows = np.arange(len(position))
        self.values[rows, position], self.asked[rows, position] = code, True
        if self.numbers.shape[1]:
            self.numbers[rows, position] = value

    def take(self, rows: Array) -> State:
        """Return the state of some rows."""
        return State(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Array, part: State) -> None:
        """Set the state of some rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(part, field.name)


class _Model(Protocol):
    """The part of a fitted model that a session uses; the hooks are those of `tamis.base.CellClassifier`."""

    classes_: Array
    candidates_: Ints
    n_features_in_: int
    cost: Any
    _ranges: Floats | None

    def name_of(self, position: int) -> str | int: ...
    def _names(self) -> list[str | int]: ...
    def _reject_invalid_state(self) -> None: ...
    def _start(self, n_rows: int, unavailable: Mask | None = None) -> State: ...
    def _unavailable(self, columns: Any, n_rows: int) -> Mask | None: ...
    def _next(self, state: State) -> Ints: ...
    def _price(self, state: State, position: Array) -> Floats: ...
    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]: ...
    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None: ...
    def _decide(self, posterior: Floats) -> Array: ...
    def _deviation(self, posterior: Floats) -> Floats | None: ...
    def _number(self, position: int, value: Any, name: str | int) -> float: ...
    def _plain_value(self, position: int, number: float) -> Any: ...


class Session(ThreadSafe):
    """Classifies one row from the values it requests; returned by :meth:`CellClassifier.open`.

    Attributes
    ----------
    next_feature : str, int or None
        The feature to acquire next: a name, or a column number if columns have no names; None if no further feature is
        worth its cost.
    next_cost : float
        Cost of `next_feature`; 0 if there is none.
    posterior : dict
        Current probability of each class.
    decision : object
        The label of least expected cost, or the prediction of a number; final when `next_feature` is None.
    deviation : float or None
        Standard deviation of a numeric target given the values; None for classes.
    cost : float
        Total cost paid so far.
    finished : bool
        Whether `next_feature` is None.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 4)) + 3 * y[:, None]
    >>> session = IFC2F(cost=0.01, random_state=0).fit(X, y).open()
    >>> row = [3.0, 3.1, 2.9, 3.0]
    >>> while session.next_feature is not None:
    ...     session.observe(row[session.next_feature])
    >>> session.decision, round(session.cost, 2)
    (1, 0.01)
    """

    def __init__(
        self, model: _Model, state: Mapping[str, Any] | None = None, unavailable: Any = None,
        budget: float | None = None,
    ) -> None:  # fmt: skip
        self._model = model
        if budget is None and isinstance(state, Mapping):
            budget = state.get("budget")
        self._budget = math.inf
        if budget is not None:
            check_number("budget", budget, low=0.0)
            self._budget = float(budget)
        self._names = model._names()
        self._steps: list[dict[str, Any]] = []
        before = list(state.get("unavailable", [])) if isinstance(state, Mapping) else []
        refused = model._unavailable([*before, *([] if unavailable is None else unavailable)], 1)
        self._state: State = model._start(1, refused)
        self._position = int(next_within(model, self._state, self._budget)[0][0])
        if state is not None:
            self._replay(state)

    def __repr__(self) -> str:
        return f"Session({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        paid = {str(step["feature"]): [str(step["value"]), f"{step['cost']:g}"] for step in self._steps}
        return html_repr("Session", self._facts(), paid, ("value of", "", "paid"))

    def _facts(self) -> list[str]:
        if self.deviation is None:
            certainty = f"probability {max(self.posterior.values()):.3f}"
        else:
            certainty = f"standard deviation {self.deviation:.4g}"
        asks = [] if self.finished else [f"next {self.next_feature!r} for {self.next_cost:g}"]
        return [*asks, f"decision {self.decision!r}", certainty, f"paid {self.cost:g}"]

    # -- current state -------------------------------------------------------------------------------------

    @property
    def next_feature(self) -> str | int | None:
        """The feature to acquire next, or None."""
        return None if self._position < 0 else self._names[self._position]

    @property
    def next_cost(self) -> float:
        """The cost of `next_feature`."""
        at = np.array([self._position])
        return 0.0 if self._position < 0 else float(self._model._price(self._state, at)[0])

    @property
    def finished(self) -> bool:
        """Whether no further feature is worth its cost."""
        return self._position < 0

    @property
    def posterior(self) -> dict[Any, float]:
        """Current probability of each class."""
        return self._posterior_of(self._state)

    def _posterior_of(self, state: State) -> dict[Any, float]:
        return dict(zip(self._model.classes_.tolist(), state.posterior[0].tolist(), strict=True))

    @property
    def decision(self) -> Any:
        """The label of least expected cost."""
        return self._model._decide(self._state.posterior)[0].item()

    @property
    def deviation(self) -> float | None:
        """Standard deviation of a numeric target now; None for classes."""
        deviation = self._model._deviation(self._state.posterior)
        return None if deviation is None else float(deviation[0])

    @property
    def cost(self) -> float:
        """Total cost paid so far."""
        return float(self._state.spent[0])

    @property
    def arrived(self) -> list[str | int]:
        """The features whose values arrived with those of their panels, and were not recorded yet."""
        cost = self._model.cost
        if not isinstance(cost, PriceList) or not cost.panels:
            return []
        known = {step["feature"] for step in self._steps} | set(self.unavailable)
        paid = {cost.panel_of(step["feature"]) for step in self._steps if step["paid"]} - {None}
        return [name for name in self._names if name not in known and cost.panel_of(name) in paid]

    def best_questions(self, n: int = 3) -> list[tuple[str | int, float]]:
        """Return the features to acquire next, best first: each is what the model asks for without those before it.

        Parameters
        ----------
        n : int, default=3
            Fewer are returned if no other feature is worth its cost.

        Returns
        -------
        list of (str or int, float)
            Features and prices.
        """
        state = self._state.take(np.array([0]))
        position = self._position
        found = list[tuple[str | int, float]]()
        while position >= 0 and len(found) < n:
            at = np.array([position])
            found.append((self._names[position], float(self._model._price(state, at)[0])))
            self._model._observe(state, at, np.array([-1], dtype=np.int16), np.array([np.nan]))
            position = int(next_within(self._model, state, self._budget)[0][0])
        return found

    def what_if(self, value: Any, feature: str | int | None = None) -> Session:
        """Return another session, in which the feature has this value; this one is unchanged.

        Parameters
        ----------
        value, feature
            As for `observe`, without a warning for a value out of range.

        Raises
        ------
        ValueError, DataError
            As for `observe`.
        """
        other = copy.copy(self)
        position = self._position_to_observe(feature)
        other._record(position, value, self._outcome(position, value))
        return other

    def undo(self) -> None:
        """Remove the last value; those before it are kept as they were.

        Raises
        ------
        ValueError
            If no value was observed.
        """
        if not self._steps:
            raise ValueError("There is nothing to undo: no value was observed.")
        state = self.state()
        vars(self).update(vars(Session(self._model, {**state, "observed": state["observed"][:-1]})))

    def explain(self) -> list[dict[str, Any]]:
        """Return the values observed so far, in order.

        Returns
        -------
        list of dict
            One per value: "feature", "value" (None if unavailable or without a result), "paid" (False if it was
            unavailable, or provided without being requested), "cost", "posterior" and "outcome": "value", "out of
            range" (of the values in `fit`, or of the declared range), "new category" (one that did not occur in `fit`),
            "no result" or "unavailable".
        """
        return [dict(step) for step in self._steps]

    @property
    def unavailable(self) -> list[str | int]:
        """The features that were declared unavailable when the session was opened."""
        mask = self._state.unavailable
        return (
            [name for name, refused in zip(self._names, mask[0], strict=True) if refused] if mask.size else []
        )

    def state(self) -> dict[str, Any]:
        """Return the session as plain data (JSON); `model.open(state)` resumes it in another process."""
        observed = [[step["feature"], step["value"], step["paid"]] for step in self._steps]
        refused, limit = self.unavailable, self._budget
        more = {"unavailable": refused} if refused else {}
        return {"observed": observed, **more, **({"budget": limit} if limit < math.inf else {})}

    # -- observations --------------------------------------------------------------------------------------

    def observe(self, value: Any, feature: str | int | None = None, *, unit: str | None = None) -> None:
        """Record the value of a feature. If it raises, the session is unchanged.

        A value outside the range of the rows of `fit`, or outside the declared range, is recorded with a warning;
        `question` returns the question to ask before. A category that did not occur in `fit` is paid for, but provides
        no evidence.

        Parameters
        ----------
        value : float, category or None
            None (or NaN): the value is unavailable. It costs nothing and is not requested again.
        feature : str or int, optional
            By default `next_feature`. Any other feature is free evidence: it costs nothing and is used immediately.
        unit : str, optional
            A unit declared in ``PriceList(units=...)``, from which the value is converted; by default the feature's
            own. With it, no warning is given.

        Raises
        ------
        ValueError
            If the session is finished, the feature is unknown or was observed before, or the unit was not declared.
        DataError
            If the value is infinite or not a number.
        """
        position = self._position_to_observe(feature)
        value = self._in_own_unit(position, value, unit)
        outcome = self._outcome(position, value)
        if outcome == "out of range" and unit is None:
            warnings.warn(f"{self._names[position]}: {self.question(value, feature)}", stacklevel=3)
        self._record(position, value, outcome)

    def no_result(self, feature: str | int | None = None) -> None:
        """Record that a feature was acquired without a result: its price is paid, and it is not requested again.

        Parameters
        ----------
        feature : str or int, optional
            By default `next_feature`. Any other feature costs nothing.

        Raises
        ------
        ValueError
            If the session is finished, or the feature is unknown or was observed before.
        """
        self._record(self._position_to_observe(feature), None, "no result")

    def question(
        self, value: Any, feature: str | int | None = None, *, unit: str | None = None
    ) -> str | None:
        """Return the question to ask before a value is recorded; None if the value is plausible.

        Parameters
        ----------
        value, feature, unit
            As for `observe`.

        Returns
        -------
        str or None
            For a value outside the range of the feature, such as "98.6 is outside 35.1 to 40.9: which unit?"; for a
            category that did not occur in `fit`.
        """
        position = self._position_to_observe(feature)
        value = self._in_own_unit(position, value, unit)
        outcome = self._outcome(position, value)
        if outcome == "new category":
            return f"{short_repr(value)} did not occur in the training rows: is it right?"
        if outcome != "out of range":
            return None
        low, high = limits_of(self._model, position)
        units = list(units_of(self._model, position))
        own = f" {units[0]}" if units else ""
        others = f" ({', '.join(units)})" if len(units) > 1 else ""
        return f"{float(value):g} is outside {low:g} to {high:g}{own}: which unit?{others}"

    def _outcome(self, position: int, value: Any) -> str:
        number = self._model._number(position, value, self._names[position])
        return outcome_of(value, number, limits_of(self._model, position))

    def _in_own_unit(self, position: int, value: Any, unit: str | None) -> Any:
        if unit is None or is_missing(value):
            return value
        name, units = self._names[position], units_of(self._model, position)
        known = {_plain_unit(one): terms for one, terms in units.items()}
        if _plain_unit(unit) not in known:
            listed = f"use {', '.join(units)}" if units else "declare it in PriceList(units=...)"
            raise ValueError(f"{name!r} has no unit {short_repr(unit)}: {listed}.")
        factor, offset = known[_plain_unit(unit)]
        return factor * self._model._number(position, value, name) + offset

    def _position_to_observe(self, feature: str | int | None) -> int:
        if feature is None and self._position < 0:
            raise ValueError(f"The session is finished: its decision is {self.decision!r}; open another one.")
        return self._position if feature is None else self._position_of(feature)

    def _record(self, position: int, value: Any, outcome: str) -> None:
        if self._names[position] in self.unavailable:
            raise ValueError(f"{self._names[position]!r} is unavailable in this session: open another one.")
        if any(step["feature"] == self._names[position] for step in self._steps):
            raise ValueError(
                f"{self._names[position]!r} was observed before: a session accepts each value once."
            )
        with lock_of(self._model):
            self._model._reject_invalid_state()
            self._add(position, value, outcome, paid=outcome != "unavailable" and position == self._position)

    def _add(self, position: int, value: Any, outcome: str, *, paid: bool) -> None:
        number = self._model._number(position, value, self._names[position])
        at, state = np.array([position]), self._state.take(np.array([0]))  # a copy
        code = self._model._codes(np.array([[number]]), at)[0]
        price = float(self._model._price(state, at)[0]) if paid else 0.0
        state.volunteered |= position != self._position and not math.isnan(number)
        code = code - np.int16(paid and math.isnan(number))  # paid for without evidence
        add_values(self._model, state, at, code, np.array([number]), price)
        next_position = int(next_within(self._model, state, self._budget)[0][0])
        step = {
            "feature": self._names[position],
            "value": None if math.isnan(number) else self._model._plain_value(position, number),
            "paid": paid,
            "cost": price,
            "posterior": self._posterior_of(state),
            "outcome": outcome,
        }
        if outcome == "new category":
            step["value"] = value.item() if isinstance(value, np.generic) else value
        # A single C call, which signals do not interrupt.
        vars(self).update(_state=state, _position=next_position, _steps=[*self._steps, step])

    def _position_of(self, feature: str | int) -> int:
        if feature in self._names:
            return self._names.index(feature)
        column = _column(self._model, feature)
        raise ValueError(
            f"The model never asks for {feature!r}: it adds no information to {len(self._names)} others."
            if column
            else f"No feature is named {feature!r}."
        )

    def _replay(self, state: Mapping[str, Any]) -> None:
        try:
            observed: list[Any] = list(state["observed"])
        except (KeyError, TypeError):
            raise ValueError(
                "state is not what Session.state() returned: it has no list 'observed'."
            ) from None
        for feature, value, paid in observed:
            position = self._position_of(feature)
            outcome = "no result" if value is None and paid else self._outcome(position, value)
            self._add(position, value, outcome, paid=bool(paid))


def limits_of(model: _Model, position: int) -> tuple[float, float]:
    """Return the declared range of the candidate at a position, or that of its values in `fit`; NaN for a category."""
    if isinstance(model.cost, PriceList) and (declared := model.cost.ranges.get(model.name_of(position))):
        return float(declared[0]), float(declared[1])
    low, high = (np.nan, np.nan) if model._ranges is None else model._ranges[position].tolist()
    return low, high


def units_of(model: _Model, position: int) -> dict[str, tuple[float, float]]:
    """Return the factor and the offset of each declared unit of the candidate at a position, its own unit first."""
    return model.cost.factors(model.name_of(position)) if isinstance(model.cost, PriceList) else {}


def outcome_of(value: Any, number: float, limits: tuple[float, float]) -> str:
    """Return the outcome of a value that was acquired: the number it is encoded as, and its range.

    >>> outcome_of(98.6, 98.6, (35.1, 40.9)), outcome_of("pink", math.nan, (math.nan, math.nan))
    ('out of range', 'new category')
    """
    if value is None:
        return "unavailable" if math.isnan(number) else "no result"
    if math.isnan(number):
        return "unavailable" if is_missing(value) else "new category"
    return "out of range" if number < limits[0] or number > limits[1] else "value"


def _plain_unit(unit: str) -> str:
    return unit.replace("°", "").strip().casefold()


def next_within(model: _Model, state: State, budget: float) -> tuple[Ints, Floats]:
    """Return the position to acquire for each row, or -1, and its price; what exceeds the budget is passed over."""
    position, price = model._next(state), np.zeros(len(state.spent))
    due = np.flatnonzero(position >= 0)
    while len(due):
        part = state.take(due)
        price[due] = model._price(part, position[due])
        due = due[state.spent[due] + price[due] > budget * _ROUNDING]
        part = state.take(due)
        model._observe(part, position[due], np.full(len(due), -1, dtype=np.int16), np.full(len(due), np.nan))
        position[due], price[due] = model._next(part), 0.0
        state.put(due, part)
        due = due[position[due] >= 0]
    return position, price


def add_values(
    model: _Model, state: State, position: Array, code: Array, value: Array, price: Floats | float
) -> None:
    """Add a value of each row, and its price; its code is -1 if it is unavailable, -2 if paid for without evidence."""
    is_empty = code < -1
    model._observe(state, position, np.maximum(code, np.int16(-1)), np.where(is_empty, np.nan, value))
    state.without_result[np.arange(len(position)), position] = is_empty
    state.spent += price


def session_number(value: float | None, feature: str | int) -> float:
    """Return the observed number, NaN for None; raise if it is not a number, or infinite."""
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"{feature!r} was given {value!r}, which is not a number; pass None if unavailable."
        ) from None
    if math.isinf(number):
        raise DataError(f"{feature!r} was given {value!r}: values must be finite; None means not available.")
    return number


def _column(model: _Model, feature: str | int) -> bool:
    """Return whether the feature is a column of the rows that the model was fitted on."""
    if hasattr(model, "feature_names_in_"):
        return feature in set(model.feature_names_in_)
    return isinstance(feature, int) and 0 <= feature < model.n_features_in_
