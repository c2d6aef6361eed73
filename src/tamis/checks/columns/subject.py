"""A selector of columns under test, and the columns that it is offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._validation import Array
from tamis.base import ColumnSelector
from tamis.base.trace import RECORD
from tamis.checks.subject import fail

__all__ = ["ColumnSubject", "same"]


_FLOATS = ("statistic", "log_p", "threshold", "wealth")


@dataclass(frozen=True)
class ColumnSubject:
    """A selector of columns, and what it promises beyond the contract.

    Attributes
    ----------
    prototype : ColumnSelector
        Never started; every check works with copies of it.
    per_batch : bool
        A block need not equal its columns one at a time.
    """

    prototype: ColumnSelector
    per_batch: bool = False

    def new(self, **parameters: Any) -> Any:
        """Return an unfitted copy, with a fixed seed if it has one."""
        selector = clone(self.prototype).set_params(**parameters)
        if "random_state" in selector.get_params():
            selector.set_params(random_state=0)
        return selector

    def columns(
        self, n_features: int = 7, seed: int = 0, relevant: tuple[int, int] = (2, 5)
    ) -> tuple[NDArray[np.float64], Array]:
        """Return 120 rows of columns, and a target that two of them decide.

        The values are multiples of 1/8, and not large: float32 holds them exactly, and about a third are zero.
        """
        rng = np.random.default_rng(seed)
        X = np.round(np.clip(rng.normal(size=(120, n_features)), -4.0, 4.0) * 8.0) / 8.0
        X[rng.random(size=X.shape) < 0.3] = 0.0
        signal = X[:, relevant[0]] - X[:, relevant[1]] + 0.5 * rng.normal(size=120)
        if not self.prototype._is_regression():
            return X, (signal > 0).astype(np.int64)
        counts = np.random.default_rng(seed).poisson(np.exp(np.clip(signal, -3, 3)))
        return X, counts.astype(np.float64) if self.prototype.get_params().get(
            "model"
        ) == "poisson" else signal

    def offered(self, **parameters: Any) -> Any:
        """Return a copy that was offered the columns of `columns()` in one block."""
        X, y = self.columns()
        selector = self.new(**parameters).start(y)
        selector.offer_many(X)
        return selector


def same(one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
    """Fail unless two selectors decided the same, for reasons that agree within a relative tolerance."""
    for name in ("selected_", "n_offered_", "stopped_", "n_features_in_"):
        if getattr(one, name) != getattr(other, name):
            fail(f"{what}: {name} is {getattr(one, name)!r} and {getattr(other, name)!r}.")
    left, right = one.trace_, other.trace_
    if left.dtype != RECORD or right.dtype != RECORD or len(left) != len(right):
        fail(f"{what}: trace_ has {len(left)} and {len(right)} records of dtype {left.dtype}.")
    for name in ("offer", "name", "decision", "n_missing"):
        if left[name].tolist() != right[name].tolist():
            fail(f"{what}: the trace's {name} is {left[name].tolist()} and {right[name].tolist()}.")
    for name in _FLOATS:
        close = np.isclose(left[name], right[name], rtol=tolerance, atol=tolerance, equal_nan=True)
        if not close.all():
            at = int(np.argmin(close))
            fail(f"{what}: {name} of offer {at} is {left[name][at]:.17g} and {right[name][at]:.17g}.")
