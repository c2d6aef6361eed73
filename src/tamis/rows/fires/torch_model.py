"""A PyTorch module as a model of FIRES: vectorised samples of its parameters, and gradients by autograd."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._validation import Array, Floats
from tamis.errors import DataError
from tamis.rows.fires.sampled_models import Shape
from tamis.rows.scaled_batches import ScaledRows


class TorchModel:
    """A module that takes rows of shape (n_rows, n_features) and returns logits of shape (n_rows, n_classes).

    Its parameters are not modified: FIRES stores the means and standard deviations separately.

    Parameters
    ----------
    module : torch.nn.Module
    n_features : int
    """

    def __init__(self, module: Any, n_features: int) -> None:
        try:
            import torch
        except ImportError:
            raise ImportError("A model that is a module needs PyTorch: pip install 'tamis[torch]'.") from None
        self._torch, self._module = torch, module
        self._parameters = dict(module.named_parameters())
        linked = [i for i, part in enumerate(self._parameters.values()) if _is_linked(part, n_features)]
        if not linked:
            raise DataError(
                f"The module has no parameter of shape (n_units, {n_features}), for {n_features} features: "
                f"start it with a layer such as torch.nn.Linear({n_features}, n_units)."
            )
        self._linked = linked[0]

    def shapes(self, n_features: int, n_outputs: int) -> list[Shape]:
        """Return the shapes of the module's parameters; they do not depend on the number of classes."""
        return [tuple(part.shape) for part in self._parameters.values()]

    def means(self, n_features: int, n_outputs: int, rng: np.random.Generator) -> list[Floats]:
        """Return the module's own parameters, and zeros for those that are linked to features."""
        means = [part.detach().cpu().numpy().astype(np.float64) for part in self._parameters.values()]
        means[self._linked][:] = 0.0
        return means

    def units(self, parts: list[Floats]) -> Floats:
        """Return the transposed first parameter of shape (n_units, n_features)."""
        return parts[self._linked].T

    def shift(self, parts: list[Floats]) -> float:
        """Return the sum of the means of the later matrices, as for a network."""
        return float(sum(part.mean() for part in parts[self._linked + 1 :] if part.ndim > 1))

    def gradients(
        self, rows: ScaledRows, theta: list[Floats], y: Array, weight: Floats, noise: float | None = None
    ) -> list[Floats]:
        """Compute the gradients by autograd."""
        torch = self._torch
        samples, outputs, kind = self._run(rows, theta, requires_grad=True)
        target = torch.as_tensor(y, **({} if noise is None else {"dtype": kind.dtype}), device=kind.device)
        if noise is None:
            if outputs.ndim != 3 or outputs.shape[2] <= y.max():
                raise DataError(
                    f"The module returns an array of shape {tuple(outputs.shape[1:])} for {len(y)} rows of "
                    f"{int(y.max()) + 1} classes: it must return a logit for each class."
                )
            log_likelihood = torch.log_softmax(outputs, 2)[:, torch.arange(len(y)), target]
        else:
            log_likelihood = -0.5 * (target - outputs[:, :, 0]) ** 2 / noise
        objective = torch.logsumexp(log_likelihood, 0) @ torch.tensor(
            weight, dtype=kind.dtype, device=kind.device
        )
        gradients = torch.autograd.grad(objective, list(samples.values()))
        unit = 1.0 if noise is None else noise
        return [unit * part.cpu().numpy().astype(np.float64) for part in gradients]

    def outputs(self, rows: ScaledRows, theta: list[Floats]) -> Floats:
        """Return the module's outputs for each sample, of shape (n_samples, n_rows, n_outputs)."""
        _, outputs, _ = self._run(rows, theta, requires_grad=False)
        if outputs.ndim != 3 or outputs.shape[2] != 1:
            raise DataError(
                f"The module returns an array of shape {tuple(outputs.shape[1:])} for {outputs.shape[1]} rows and a "
                "numeric target: it must return one number for each row, of shape (n_rows, 1)."
            )
        return np.asarray(outputs.cpu().numpy(), dtype=np.float64)

    def _run(
        self, rows: ScaledRows, theta: list[Floats], *, requires_grad: bool
    ) -> tuple[dict[str, Any], Any, Any]:
        torch = self._torch
        kind = next(iter(self._parameters.values()))
        as_tensor = {"dtype": kind.dtype, "device": kind.device}
        samples = {
            name: torch.tensor(part, **as_tensor, requires_grad=requires_grad)
            for name, part in zip(self._parameters, theta, strict=True)
        }
        X = torch.tensor(rows.dense(), **as_tensor)
        call = torch.func.vmap(lambda one: torch.func.functional_call(self._module, one, (X,)))
        with torch.set_grad_enabled(requires_grad):
            return samples, call(samples), kind


def _is_linked(part: Any, n_features: int) -> bool:
    return bool(part.ndim == 2 and part.shape[1] == n_features)
