"""A network and a soft decision tree for FIRES: L samples of their parameters at once, and the gradients of each.

In both, the first parameter has a row for each feature and a column for each unit. Neither has intercepts. Haug et al.
(KDD 2020), Section 4.4; the tree is that of Frosst and Hinton (2017).
"""

from __future__ import annotations

import itertools
import math
from typing import Protocol

import numpy as np

from tamis._validation import Array, Floats, is_integer
from tamis._validation.parameters import Kind
from tamis.rows.scaled_batches import ScaledRows

Shape = tuple[int, ...]
_NOBODY = 1e-12  # fraction of rows reaching a node, below which it is not penalised
HIDDEN = Kind(
    "a tuple of integers in [1, 10000]",
    lambda value: (
        isinstance(value, tuple | list)
        and len(value) > 0
        and all(is_integer(units) and 1 <= units <= 10_000 for units in value)
    ),
)


class SampledModel(Protocol):
    """The protocol of a model for FIRES: shapes of its parameters, their initial means and their gradients.

    A model whose first parameter is linked to the features inherits the rest.
    """

    def shapes(self, n_features: int, n_outputs: int) -> list[Shape]:
        """Return the shape of each parameter."""

    def means(self, n_features: int, n_outputs: int, rng: np.random.Generator) -> list[Floats]:
        """Return zeros for the features, and uniform random numbers for the rest, which break the symmetry of units."""
        first, *others = self.shapes(n_features, n_outputs)
        drawn = [rng.uniform(-1.0, 1.0, size=shape) / math.sqrt(shape[0]) for shape in others]
        return [np.zeros(first), *drawn]

    def units(self, parts: list[Floats]) -> Floats:
        """Return the parameters that are linked to features, of shape (n_features, n_units)."""
        return parts[0]

    def shift(self, parts: list[Floats]) -> float:
        """Return the constant that the published aggregation adds to every feature."""
        return 0.0

    def gradients(
        self, rows: ScaledRows, theta: list[Floats], y: Array, weight: Floats, noise: float | None = None
    ) -> list[Floats]:
        """Return the gradient of the log of the mean likelihood at each sample of each parameter.

        `theta` has an array for each parameter, of shape ``(n_samples, *shape)``; the weights of the rows sum to 1.
        `y` contains the codes of classes or, if the variance `noise` of the errors is given, numbers; the gradient is
        then multiplied by that variance.
        """

    def outputs(self, rows: ScaledRows, theta: list[Floats]) -> Floats:
        """Return the outputs for each sample, of shape (n_samples, n_rows, n_outputs)."""


def sample_weights(log_likelihood: Floats) -> Floats:
    """Return the fraction of each sample in the likelihood of each row, shape (n_samples, n_rows)."""
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    return np.asarray(likelihood / likelihood.sum(axis=0), dtype=np.float64)


def _logit_slopes(logits: Floats, codes: Array, weight: Floats) -> Floats:
    """Return the gradient of the log of the mean likelihood in the logits, of shape (n_samples, n_rows, n_outputs)."""
    logits = logits - logits.max(axis=2, keepdims=True)
    outputs = np.exp(logits)
    total = outputs.sum(axis=2, keepdims=True)
    outputs /= total
    every = np.arange(len(codes))
    shares = sample_weights(logits[:, every, codes] - np.log(total[:, :, 0]))
    slopes = -outputs
    slopes[:, every, codes] += 1.0
    return np.asarray(slopes * (shares * weight)[:, :, None], dtype=np.float64)


def _number_slopes(outputs: Floats, y: Array, weight: Floats, noise: float) -> Floats:
    """Return the gradient of the log of the mean normal likelihood in the outputs, multiplied by its variance."""
    errors = y[None, :] - outputs[:, :, 0]
    shares = sample_weights(-0.5 * errors * errors / noise)
    return np.asarray((errors * shares * weight)[:, :, None], dtype=np.float64)


def _output_slopes(outputs: Floats, y: Array, weight: Floats, noise: float | None) -> Floats:
    return _logit_slopes(outputs, y, weight) if noise is None else _number_slopes(outputs, y, weight, noise)


def _transpose(array: Floats) -> Floats:
    return array.transpose(0, 2, 1)


class Network(SampledModel):
    """Layers of units with softplus between them, and a softmax; no unit has an intercept.

    Parameters
    ----------
    hidden : tuple of int
        Units of each hidden layer.
    """

    def __init__(self, hidden: tuple[int, ...]) -> None:
        self.hidden = hidden

    def shapes(self, n_features: int, n_outputs: int) -> list[Shape]:
        """Return the shape of the matrix before each layer."""
        sizes = [n_features, *self.hidden, n_outputs]
        return list(itertools.pairwise(sizes))

    def shift(self, parts: list[Floats]) -> float:
        """Return the sum of the means of the later matrices."""
        return float(sum(part.mean() for part in parts[1:]))

    def gradients(
        self, rows: ScaledRows, theta: list[Floats], y: Array, weight: Floats, noise: float | None = None
    ) -> list[Floats]:
        """Run the forward and the backward pass."""
        sums = self._sums(rows, theta)
        slopes, items = _output_slopes(sums[-1], y, weight, noise), []
        for below, matrix in zip(sums[-2::-1], theta[:0:-1], strict=True):
            items.append(np.matmul(_transpose(np.logaddexp(0.0, below)), slopes))
            slopes = np.matmul(slopes, _transpose(matrix)) / (1.0 + np.exp(-np.maximum(below, -700.0)))
        return [rows.back(slopes), *items[::-1]]

    def outputs(self, rows: ScaledRows, theta: list[Floats]) -> Floats:
        """Return the sums of the last layer, of shape (n_samples, n_rows, n_outputs)."""
        return self._sums(rows, theta)[-1]

    def _sums(self, rows: ScaledRows, theta: list[Floats]) -> list[Floats]:
        sums = [rows.sums(theta[0])]
        for matrix in theta[1:]:
            sums.append(np.matmul(np.logaddexp(0.0, sums[-1]), matrix))
        return sums


class SoftTree(SampledModel):
    """A full binary tree whose nodes send a fraction of each row to each side; a softmax over sums of its leaves.

    Parameters
    ----------
    depth : int
        Number of nodes from the root to a leaf, without the leaf.
    penalty : float
        Weight of the penalty on nodes that do not send half of their rows to each side.
    """

    def __init__(self, depth: int, penalty: float) -> None:
        self.depth, self.penalty = depth, penalty

    def shapes(self, n_features: int, n_outputs: int) -> list[Shape]:
        """Return the shapes of the inner nodes' and of the leaves' matrix."""
        return [(n_features, 2**self.depth - 1), (2**self.depth, n_outputs)]

    def gradients(
        self, rows: ScaledRows, theta: list[Floats], y: Array, weight: Floats, noise: float | None = None
    ) -> list[Floats]:
        """Run the forward and the backward pass through the tree."""
        left, paths = self._paths(rows, theta[0])
        slopes = _output_slopes(np.matmul(paths[-1], theta[1]), y, weight, noise)
        leaves = np.matmul(_transpose(paths[-1]), slopes)
        path_slopes = np.matmul(slopes, _transpose(theta[1]))
        left_slopes = np.empty_like(left)
        for d in range(self.depth - 1, -1, -1):
            nodes = slice(2**d - 1, 2 ** (d + 1) - 1)
            here, pair = left[:, :, nodes], path_slopes.reshape(*left.shape[:2], 2**d, 2)
            left_slopes[:, :, nodes] = paths[d] * (pair[..., 0] - pair[..., 1])
            path_slopes = here * pair[..., 0] + (1.0 - here) * pair[..., 1]
            of_left, of_path = self._penalty_slopes(d, here, paths[d], weight)
            left_slopes[:, :, nodes] += of_left
            path_slopes = path_slopes + of_path
        return [rows.back(left_slopes * left * (1.0 - left)), leaves]

    def outputs(self, rows: ScaledRows, theta: list[Floats]) -> Floats:
        """Return the sums over the leaves, of shape (n_samples, n_rows, n_outputs)."""
        return np.asarray(np.matmul(self._paths(rows, theta[0])[1][-1], theta[1]), dtype=np.float64)

    def _paths(self, rows: ScaledRows, nodes: Floats) -> tuple[Floats, list[Floats]]:
        """Return the share of a row that each node sends left, and the share that reaches each node, by depth."""
        left: Floats = 1.0 / (1.0 + np.exp(-np.clip(rows.sums(nodes), -700.0, 700.0)))
        paths = [np.ones((*left.shape[:2], 1))]
        for d in range(self.depth):
            here = left[:, :, 2**d - 1 : 2 ** (d + 1) - 1]
            both = np.stack((paths[d] * here, paths[d] * (1.0 - here)), axis=3)
            paths.append(both.reshape(*left.shape[:2], 2 ** (d + 1)))
        return left, paths

    def _penalty_slopes(
        self, depth: int, left: Floats, paths: Floats, weight: Floats
    ) -> tuple[Floats, Floats]:
        """Return the slopes of the penalty: -penalty 2^-depth / 2 sum log a (1 - a), with a the left fraction."""
        w = weight[:, None]
        went_left = (w * paths * left).sum(axis=1, keepdims=True)
        n_arrived = (w * paths).sum(axis=1, keepdims=True)
        share = np.clip(went_left / np.maximum(n_arrived, _NOBODY), 1e-6, 1.0 - 1e-6)
        slope = self.penalty * 2.0**-depth * 0.5 * (1.0 / share - 1.0 / (1.0 - share)) / len(left)
        per_row = np.where(n_arrived > _NOBODY, slope / np.maximum(n_arrived, _NOBODY), 0.0) * w
        return per_row * paths, per_row * (left - share)
