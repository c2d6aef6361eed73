"""One row, value by value: what to ask for next, what is believed so far, when to stop asking."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis.base.glance import glance
from tamis.errors import DataError

__all__ = ["Session", "State"]

Floats = NDArray[np.float64]


@dataclass
class State:
    """What is known of some rows; the features are those that the model may ask for, in its own order.

    Attributes
    ----------
    values : ndarray of shape (n_rows, K), int16
        Codes; -1 where unknown.
    asked : ndarray of shape (n_rows, K), bool
        Bought, given, or not to be had: not to be asked for again.
    posterior : ndarray of shape (n_rows, n_classes)
    stage : ndarray of shape (n_rows,), int
        How far along the order a row is, where the order is fixed.
    spent : ndarray of shape (n_rows,), float
        What was paid.
    numbers : ndarray of shape (n_rows, K), float64
        The values themselves, NaN where unknown; of no column if the model decides by codes alone.
    """

    values: NDArray[np.int16]
    asked: NDArray[np.bool_]
    posterior: Floats
    stage: NDArray[np.int64]
    spent: Floats
    numbers: Floats

    def of(self, rows: Array) -> State:
        """Return the state of some rows."""
        return State(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Array, part: State) -> None:
        """Set the state of some rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(part, field.name)


class _Model(Protocol):
    """What a session asks of a fitted model; the hooks are those of `tamis.base.CellClassifier`."""

    classes_: Array
    candidates_: NDArray[np.int64]
    n_features_in_: int

    def name_of(self, position: int) -> str | int: ...
    def _start(self, n_rows: int) -> State: ...
    def _next(self, state: State) -> NDArray[np.int64]: ...
    def _price(self, state: State, position: Array) -> Floats: ...
    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]: ...
    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None: ...
    def _decide(self, posterior: Floats) -> Array: ...


class Session:
    """Classifies one row from the values it asks for; made by :meth:`CellClassifier.open`.

    Attributes
    ----------
    next_feature : str, int or None
        What to buy next: a name, or a column where columns have none; None when buying more does not pay.
    next_cost : float
        What that costs; 0 if nothing is bought next.
    posterior : dict
        Probability of each class now.
    decision : object
        The label of least expected cost now; final when `next_feature` is None.
    cost : float
        What was paid so far.
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

    def __init__(self, model: _Model, state: Mapping[str, Any] | None = None) -> None:
        self._model = model
        self._steps: list[dict[str, Any]] = []
        self._state: State = model._start(1)
        self._choose()
        if state is not None:
            self._replay(state)

    def __repr__(self) -> str:
        return f"Session({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        paid = {str(step["feature"]): [str(step["value"]), f"{step['cost']:g}"] for step in self._steps}
        return glance("Session", self._facts(), paid, ("value of", "", "paid"))

    def _facts(self) -> list[str]:
        likeliest = max(self.posterior.values())
        asks = [] if self.finished else [f"next {self.next_feature!r} for {self.next_cost:g}"]
        return [*asks, f"decision {self.decision!r}", f"probability {likeliest:.3f}", f"paid {self.cost:g}"]

    # -- what is known -------------------------------------------------------------------------------------

    @property
    def next_feature(self) -> str | int | None:
        """What to buy next, or None."""
        return None if self._position < 0 else self._model.name_of(self._position)

    @property
    def next_cost(self) -> float:
        """What `next_feature` costs."""
        at = np.array([self._position])
        return 0.0 if self._position < 0 else float(self._model._price(self._state, at)[0])

    @property
    def finished(self) -> bool:
        """Whether nothing more is worth its price."""
        return self._position < 0

    @property
    def posterior(self) -> dict[Any, float]:
        """Probability of each class now."""
        return dict(zip(self._model.classes_.tolist(), self._state.posterior[0].tolist(), strict=True))

    @property
    def decision(self) -> Any:
        """The label of least expected cost now."""
        return self._model._decide(self._state.posterior)[0].item()

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return float(self._state.spent[0])

    def explain(self) -> list[dict[str, Any]]:
        """Return what was learned, in order.

        Returns
        -------
        list of dict
            One per value: "feature", "value" (None if not to be had), "paid" (False if given unasked), "cost" and
            "posterior".
        """
        return [dict(step) for step in self._steps]

    def state(self) -> dict[str, Any]:
        """Return the session as plain data (JSON), to go on with `model.open(state)` in another process."""
        return {"observed": [[step["feature"], step["value"], step["paid"]] for step in self._steps]}

    # -- what comes in -------------------------------------------------------------------------------------

    def observe(self, value: float | None, feature: str | int | None = None) -> None:
        """Take in a value.

        Parameters
        ----------
        value : float or None
            None (or NaN): the value is not to be had; it costs nothing and is not asked for again.
        feature : str or int, optional
            By default `next_feature`. Another one is free evidence: it costs nothing. A model with a fixed order
            takes it in when that feature's turn comes.

        Raises
        ------
        ValueError
            If the session is finished, or no feature has that name, or it was observed before.
        DataError
            If the value is infinite or no number. The session is left as it was.
        """
        if feature is None and self._position < 0:
            raise ValueError(f"The session is finished: its decision is {self.decision!r}; open another one.")
        position = self._position if feature is None else self._position_of(feature)
        number = _number(value, self._model.name_of(position))
        if self._state.asked[0, position]:
            raise ValueError(
                f"{self._model.name_of(position)!r} was observed before; a session takes it once."
            )
        self._take(position, number, paid=not math.isnan(number) and position == self._position)

    def _take(self, position: int, number: float, *, paid: bool) -> None:
        at = np.array([position])
        code = self._model._codes(np.array([[number]]), at)[0]
        price = float(self._model._price(self._state, at)[0]) if paid else 0.0
        self._model._observe(self._state, at, code, np.array([number]))
        self._state.spent += price
        self._choose()
        self._steps.append(
            {
                "feature": self._model.name_of(position),
                "value": None if math.isnan(number) else number,
                "paid": paid,
                "cost": price,
                "posterior": self.posterior,
            }
        )

    def _choose(self) -> None:
        self._position = int(self._model._next(self._state)[0])

    def _position_of(self, feature: str | int) -> int:
        names = [self._model.name_of(k) for k in range(len(self._model.candidates_))]
        if feature in names:
            return names.index(feature)
        column = _column(self._model, feature)
        raise ValueError(
            f"The model never asks for {feature!r}: it tells nothing that {len(names)} others do not."
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
            self._take(position, _number(value, feature), paid=bool(paid))


def _number(value: float | None, feature: str | int) -> float:
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"{feature!r} was given {value!r}, which is no number; None means not available."
        ) from None
    if math.isinf(number):
        raise DataError(f"{feature!r} was given {value!r}: values must be finite; None means not available.")
    return number


def _column(model: _Model, feature: str | int) -> bool:
    """Return whether the feature is a column of the rows that the model was fitted on."""
    if hasattr(model, "feature_names_in_"):
        return feature in set(model.feature_names_in_)
    return isinstance(feature, int) and 0 <= feature < model.n_features_in_
