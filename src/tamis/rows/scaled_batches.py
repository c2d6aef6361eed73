"""Base class of selectors that train a model by gradient steps on scaled batches of fixed size."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from tamis._validation import Array, Floats, Rows
from tamis._validation.parameters import integer, parameter, parameters
from tamis.base import Claims, RowSelector
from tamis.errors import DataError
from tamis.summaries.moments import RunningMoments


class ScaledRows(NamedTuple):
    """Rows with their scaling, z = (x - centre) * inverse; CSR rows stay sparse."""

    X: Rows
    centre: Floats
    inverse: Floats

    def sums(self, theta: Floats) -> Floats:
        """Return the products z . theta, of shape (n_samples, n_rows, n_units)."""
        folded = theta * self.inverse[:, None]
        values = (
            np.stack([self.X @ one for one in folded]) if sp.issparse(self.X) else np.matmul(self.X, folded)
        )
        return np.asarray(values - np.matmul(self.centre, folded)[:, None, :], dtype=np.float64)

    def back(self, slopes: Floats) -> Floats:
        """Return the sums over rows of z times the slopes, of shape (n_samples, n_features, n_units)."""
        turned = self.X.T
        values = (
            np.stack([turned @ one for one in slopes]) if sp.issparse(turned) else np.matmul(turned, slopes)
        )
        values = values - self.centre[:, None] * slopes.sum(axis=1)[:, None, :]
        return np.asarray(values * self.inverse[:, None], dtype=np.float64)

    def dense(self) -> Floats:
        """Return the rows as an array."""
        rows = self.X.toarray() if sp.issparse(self.X) else self.X
        return np.asarray((rows - self.centre) * self.inverse, dtype=np.float64)


@dataclass(eq=False, repr=False)
class ScaledBatches(RowSelector):
    """A selector that learns from batches of `batch_size` rows, with an output for each class.

    The parameters of its model are stored in flat arrays. A subclass implements three hooks.
    """

    claims = Claims(copies_differ="batches of `batch_size` count rows")
    _allowed = parameters(n_steps=integer("[1, 1000]"))

    _shapes = "_moments.mean (j)  _moments.m2 (j)  _seed in [0, 2**31)  _n_outputs in [1, _most_outputs]"

    _: KW_ONLY
    scaling: str | None = parameter("standard", None, default="standard")
    batch_size: int = parameter(integer("[1, inf)"), default=100)
    random_state: Any = 0

    @abstractmethod
    def _layout(self, n_outputs: int) -> list[tuple[int, ...]]:
        """Return the shapes of the parameters for this number of classes."""

    @abstractmethod
    def _make_room(self, n_outputs: int) -> None:
        """Allocate the state for this number of classes; the state of earlier classes stays."""

    @property
    def _most_outputs(self) -> int:
        """Outputs of the model for the target so far: one for a numeric target."""
        return 1 if self._is_regression() else max(2, len(self.classes_))

    @abstractmethod
    def _learn_batch(self, rows: ScaledRows, y: Array, weight: Floats, total: float) -> None:
        """Learn rows of a total weight; `weight` contains their shares of it."""

    def _start(self, n_features: int) -> None:
        self._seed = int(check_random_state(getattr(self, "random_state", None)).randint(2**31 - 1))
        self._moments = RunningMoments(n_features)
        self._n_outputs = 0

    def _parts(self, flat: Floats) -> list[Floats]:
        """Return views of the parameters in their shapes; those of samples have one more axis in front."""
        shapes = self._layout(self._n_outputs)
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        if ends[-1] != flat.shape[-1]:
            names = " or ".join(name for name in ("model", "hidden", "depth") if hasattr(self, name))
            raise DataError(
                f"{names} cannot change between batches: restore the previous value, or call fit."
            )
        parts = np.split(flat, ends[:-1], axis=-1)
        return [part.reshape(*flat.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)]

    def _copy_parameters(self, flat: Floats, fresh: list[Floats]) -> Floats:
        """Return new parameters as a flat array, with the earlier ones copied into it."""
        known = self._parts(flat) if len(flat) else []
        for new, old in zip(fresh, known, strict=False):
            new[tuple(map(slice, old.shape))] = old
        return np.concatenate([part.ravel() for part in fresh])

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        if self._most_outputs > self._n_outputs:
            self._make_room(self._most_outputs)
        self._moments = copy.copy(self._moments)
        for start in range(0, len(y), self.batch_size):
            part = slice(start, start + self.batch_size)
            rows = self._scale_rows(X[part], weight[part])
            total = float(weight[part].sum())
            self._learn_batch(rows, y[part], weight[part] / total, total)

    def _scale_rows(self, X: Rows, weight: Array) -> ScaledRows:
        """Return rows with the scaling of all rows up to their last one."""
        if self.scaling is None:
            return ScaledRows(X, np.zeros(X.shape[1]), np.ones(X.shape[1]))
        if not self._moments.update(X, weight):
            largest = np.abs(X.data if sp.issparse(X) else X).max()
            raise DataError(
                f"X contains values up to {largest:g}, whose squares are too large to sum: rescale the features."
            )
        return ScaledRows(X, self._moments.mean, self._moments.inverse_scale())
