"""A session with values as people enter them, for the terminal, for programs and for the page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tamis.cli.failure import MisuseError
from tamis.errors import DataError

if TYPE_CHECKING:
    from tamis.cells import CellClassifier, Session

__all__ = ["Dialogue", "amount", "decision_text", "label_text", "rounded", "safe_repr"]

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


class Dialogue:
    """A session with values as people enter them: categories by their names.

    Parameters
    ----------
    model : CellClassifier
    unavailable : sequence of str, optional
        Features that the session does not ask for.
    """

    advice = "enter ?"  # for an unavailable value

    def __init__(self, model: CellClassifier, unavailable: Sequence[str] = ()) -> None:
        self.model = model
        self.unavailable = [self._column_key(name) for name in unavailable]
        self.categories = {name: sorted(values, key=str) for name, values in model.categories_.items()}
        self.session: Session = self.open({"observed": []})

    def open(self, state: Mapping[str, Any]) -> Session:
        """Return a session in that state, without unavailable features."""
        return self.model.open(state, unavailable=self.unavailable)

    @classmethod
    def load(cls, path: str, unavailable: Sequence[str] = ()) -> Dialogue:
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
            return cls(model, unavailable)
        except ValueError as error:
            raise MisuseError(f"--{error}") from None

    def observe(self, value: Any, feature: Any = None) -> None:
        """Add an answer; None means that the value is unavailable."""
        feature = self.session.next_feature if feature is None else self._column_key(feature)
        if feature in self.categories and value is not None:
            value = self._category(feature, value)
        elif value is not None:
            value = self._number(feature, value)
        self.session.observe(value, None if feature == self.session.next_feature else feature)

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
        for category in known:
            if category == value or str(category) == str(value):
                return category
        names = [str(one) for one in known]
        listed = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
        raise DataError(
            f"{feature} has no value {safe_repr(value)}: choose one of {listed}; {self.advice} if the value is"
            " unavailable."
        )

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
