"""A classifier that buys values under test, and the rows that it learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._validation import Array
from tamis.checks.subject import fail

__all__ = ["NAMES", "CellSubject", "same"]

NAMES = ["red", "größe", "x 2", "blue", "speed", "T"]


@dataclass(frozen=True)
class CellSubject:
    """A classifier that buys values.

    Attributes
    ----------
    prototype : CellClassifier
        Never fitted; every check works with copies of it.
    """

    prototype: Any

    def new(self, **parameters: Any) -> Any:
        """Return a copy that has learned nothing, with a fixed seed if it has one."""
        model = clone(self.prototype).set_params(**parameters)
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        return model

    def rows(self, n_rows: int = 240, seed: int = 0) -> tuple[NDArray[np.float64], Array]:
        """Return rows of six columns, of which four separate the two classes.

        The values are multiples of 1/8, and not large: float32 holds them exactly, and some are zero.
        """
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n_rows)
        X = rng.normal(size=(n_rows, 6))
        X[:, :4] += np.array([1.4, 1.2, 1.0, 0.8]) * y[:, None]
        X = np.round(np.clip(X, -4.0, 4.0) * 8.0) / 8.0
        X[rng.random(X.shape) < 0.1] = 0.0
        return X, y

    def fitted(self, **parameters: Any) -> Any:
        """Return a copy that was fitted to `rows()`."""
        return self.new(**parameters).fit(*self.rows())


def same(one: Any, other: Any, X: Any, what: str, X_other: Any = None) -> None:
    """Fail unless two models buy the same values of rows and have equal posteriors up to rounding."""
    left = one.predict_proba(X)
    used, cost = one.n_features_used_, one.cost_
    right = other.predict_proba(X if X_other is None else X_other)
    if used.tolist() != other.n_features_used_.tolist() or not np.allclose(cost, other.cost_):
        fail(f"{what}: {used.sum()} and {other.n_features_used_.sum()} values are bought.")
    if not np.allclose(left, right, rtol=1e-9, atol=1e-12):
        fail(f"{what}: the posteriors differ by up to {np.abs(left - right).max():.3g}.")
