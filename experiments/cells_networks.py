"""GDFS and DIME: greedy acquisition by neural networks, as peers of the methods that need none. It needs PyTorch.

Two perceptrons receive the known values x_S, zeros for the others, and the mask of S: a predictor f(x_S) of the class,
first trained on random subsets, and a network that selects the next value. Both methods estimate the same greedy rule,
the value of most conditional mutual information I(Y; x_j | x_S), by walking the training rows:

- GDFS (Covert et al. 2023): the second network has logits of a policy. A sample of the Concrete distribution, m, stands
  for the choice, and the loss of f at max(S, m) is differentiated through it, at falling temperatures.
- DIME (Gadgil, Covert, Lee 2024): the second network estimates I itself, between 0 and the entropy of f, by regression
  on the drop of the loss of f when a value is added. A row may stop where I is at most a penalty.

Architecture and training are those of the authors' programs on tables: two hidden layers of 128, dropout of .3, Adam of
rate .001 divided by five when the loss of the held-out rows stops falling, batches of 128, at most 100 epochs of random
subsets. Inputs are divided by their standard deviation here, since those of Spambase differ by a factor of 10,000.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["DIME", "GDFS", "Walk"]

Floats = NDArray[np.float64]
_SMALLEST_RATE = 1e-5
_ACQUIRED = 1e6  # subtracted from the score of a value that is known


def _perceptron(n_in: int, n_out: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_in, hidden), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(hidden, n_out),
    )  # fmt: skip


def _known(x: Tensor, mask: Tensor) -> Tensor:
    """Return what the networks receive: the known values, and which ones these are."""
    return torch.cat([x * mask, mask], dim=1)


def _entropy(logits: Tensor) -> Tensor:
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1, keepdim=True)


class _Descent:
    """Adam with a rate that falls on plateaus of the validation loss; the weights of the smallest loss are kept."""

    def __init__(self, networks: Sequence[nn.Module], patience: int) -> None:
        self.networks, self.bad, self.patience, self.best = networks, 0, patience, np.inf
        self.optimiser = torch.optim.Adam([p for n in networks for p in n.parameters()], lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, factor=0.2, patience=patience, min_lr=_SMALLEST_RATE
        )
        self.weights = [copy.deepcopy(n.state_dict()) for n in networks]

    def is_stalled(self, loss: float) -> bool:
        """Return whether the loss has not fallen for more than `patience` + 1 epochs."""
        self.schedule.step(loss)
        self.bad += 1
        if loss < self.best:
            self.best, self.bad = loss, 0
            self.weights = [copy.deepcopy(n.state_dict()) for n in self.networks]
        return self.bad > self.patience + 1

    def restore(self) -> None:
        for network, weights in zip(self.networks, self.weights, strict=True):
            network.load_state_dict(weights)


class Walk:
    """Rows walked by a policy.

    Attributes
    ----------
    order : ndarray of shape (n_rows, n_steps), int
        Columns in the order of acquisition.
    posterior : ndarray of shape (n_steps + 1, n_rows, n_classes)
    value : ndarray of shape (n_steps, n_rows)
        Score of the column acquired in each step.
    """

    def __init__(self, order: NDArray[np.int64], posterior: Floats, value: Floats) -> None:
        self.order, self.posterior, self.value = order, posterior, value


class _Networks(ABC):
    """A predictor and a network that selects, with the training that GDFS and DIME share.

    Parameters
    ----------
    max_features : int
        Values acquired for each row while training; at most all.
    hidden : int
    epochs : int
        Largest number of epochs of each phase.
    patience : int
        Epochs without a smaller loss before the rate falls.
    seed : int
    """

    def __init__(
        self, max_features: int, *, hidden: int = 128, epochs: int = 100, patience: int = 5, seed: int = 0
    ) -> None:
        self.max_features, self.hidden, self.epochs = max_features, hidden, epochs
        self.patience, self.seed = patience, seed

    def fit(
        self, X: Floats, y: NDArray[np.int64], held: tuple[Floats, NDArray[np.int64]] | None = None
    ) -> _Networks:
        """Train both networks; `held` has the rows of early stopping, by default every fifth one."""
        if held is None:
            fifth = np.arange(len(y)) % 5 == 4
            X, y, held = X[~fifth], y[~fifth], (X[fifth], y[fifth])
        torch.manual_seed(self.seed)
        n_classes = int(max(y.max(), held[1].max())) + 1
        self._mean, self._scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-3)
        self.n_steps = min(self.max_features, X.shape[1])
        self.predictor = _perceptron(2 * X.shape[1], n_classes, self.hidden)
        self.selector = _perceptron(2 * X.shape[1], X.shape[1], self.hidden)
        self.n_epochs_ = 0
        rows = self._tensor(X), torch.as_tensor(y)
        others = self._tensor(held[0]), torch.as_tensor(held[1])
        self._pretrain(rows, others)
        self._train(rows, others)
        return self

    def walk(self, X: Floats, n_steps: int | None = None) -> Walk:
        """Acquire values for each row, the one of the highest score first."""
        x = self._tensor(X)
        self._set_training(False)
        steps = self.n_steps if n_steps is None else n_steps
        with torch.no_grad():
            mask, order, posterior, value = torch.zeros_like(x), [], [], []
            for step in range(steps + 1):
                logits = self.predictor(_known(x, mask))
                posterior.append(logits.softmax(dim=1))
                if step < steps:
                    score = self._score(x, mask, logits) - _ACQUIRED * mask
                    value.append(score.max(dim=1).values)
                    order.append(score.argmax(dim=1))
                    mask = mask + functional.one_hot(order[-1], x.shape[1])
        return Walk(
            torch.stack(order, dim=1).numpy() if order else np.empty((len(X), 0), dtype=np.int64),
            torch.stack(posterior).numpy().astype(np.float64),
            torch.stack(value).numpy() if value else np.empty((0, len(X))),
        )

    @abstractmethod
    def _train(self, rows: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]) -> None:
        """Train both networks along the walks of the rows."""

    @abstractmethod
    def _score(self, x: Tensor, mask: Tensor, logits: Tensor) -> Tensor:
        """Return the score of each column, given the logits of the predictor."""

    def _tensor(self, X: Floats) -> Tensor:
        return torch.as_tensor((X - self._mean) / self._scale, dtype=torch.float32)

    def _set_training(self, mode: bool) -> None:
        self.predictor.train(mode)
        self.selector.train(mode)

    def _batches(self, rows: tuple[Tensor, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        self.n_epochs_ += 1
        self._set_training(True)
        for part in torch.randperm(len(rows[1])).split(128):
            yield rows[0][part], rows[1][part]

    def _pretrain(self, rows: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]) -> None:
        """Train the predictor on random subsets, whose size is uniform."""
        descent = _Descent([self.predictor], self.patience)
        fixed = (torch.rand(len(held[0]), 1) < torch.rand_like(held[0])).float()
        for _ in range(self.epochs):
            for x, y in self._batches(rows):
                mask = (torch.rand(len(x), 1) < torch.rand_like(x)).float()
                descent.optimiser.zero_grad()
                functional.cross_entropy(self.predictor(_known(x, mask)), y).backward()
                descent.optimiser.step()
            self._set_training(False)
            with torch.no_grad():
                loss = functional.cross_entropy(self.predictor(_known(held[0], fixed)), held[1]).item()
            if descent.is_stalled(loss):
                break
        descent.restore()


def _concrete(logits: Tensor, temperature: float) -> Tensor:
    """Return a sample of the Concrete distribution: one-hot as the temperature goes to 0."""
    return functional.gumbel_softmax(logits, tau=temperature, dim=1)


class GDFS(_Networks):
    """Greedy dynamic feature selection: the policy is trained through samples of the Concrete distribution.

    References
    ----------
    Covert, Qiu, Lu, Kim, White, Lee (2023). Learning to Maximize Mutual Information for Dynamic Feature Selection.
    ICML.
    """

    TEMPERATURES = np.geomspace(1.0, 0.1, 5)

    def _train(self, rows: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]) -> None:
        networks = [self.predictor, self.selector]
        hard = _Descent(networks, self.patience)  # keeps the weights that are best without samples
        for temperature in self.TEMPERATURES:
            descent = _Descent(networks, self.patience)
            for _ in range(self.epochs):
                for x, y in self._batches(rows):
                    descent.optimiser.zero_grad()
                    self._add_gradients(x, y, float(temperature))
                    descent.optimiser.step()
                self._set_training(False)
                with torch.no_grad():
                    soft_loss, hard_loss = self._losses(*held, float(temperature))
                hard.is_stalled(hard_loss)
                if descent.is_stalled(soft_loss):
                    break
            descent.restore()
        hard.restore()

    def _add_gradients(self, x: Tensor, y: Tensor, temperature: float) -> None:
        mask = torch.zeros_like(x)
        for _ in range(self.n_steps):
            logits = self.selector(_known(x, mask))
            soft = torch.maximum(mask, _concrete(logits, temperature))
            loss = functional.cross_entropy(self.predictor(_known(x, soft)), y)
            (loss / self.n_steps).backward()
            drawn = _concrete(logits.detach() - _ACQUIRED * mask, 1.0).argmax(dim=1)
            mask = mask + functional.one_hot(drawn, x.shape[1])

    def _losses(self, x: Tensor, y: Tensor, temperature: float) -> tuple[float, float]:
        """Return the mean loss along the walks with sampled masks, and with masks of whole values."""
        mask, total = torch.zeros_like(x), np.zeros(2)
        for _ in range(self.n_steps):
            sample = _concrete(self.selector(_known(x, mask)) - _ACQUIRED * mask, temperature)
            soft = torch.maximum(mask, sample)
            mask = mask + functional.one_hot(sample.argmax(dim=1), x.shape[1])
            for k, m in enumerate((soft, mask)):
                total[k] += functional.cross_entropy(self.predictor(_known(x, m)), y).item()
        soft_loss, hard_loss = total / self.n_steps
        return float(soft_loss), float(hard_loss)

    def _score(self, x: Tensor, mask: Tensor, logits: Tensor) -> Tensor:
        scores: Tensor = self.selector(_known(x, mask))
        return scores


class DIME(_Networks):
    """Discriminative mutual information estimation: the second network predicts how far each value lowers the loss.

    While training, a random value is acquired with probability `explore`, which is divided by five whenever the loss
    stalls.

    References
    ----------
    Gadgil, Covert, Lee (2024). Estimating Conditional Mutual Information for Dynamic Feature Selection. ICLR.
    """

    explore = 0.1
    DECAYS = 5  # of `explore`

    def _train(self, rows: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]) -> None:
        descent = _Descent([self.predictor, self.selector], self.patience)
        explore, decays = self.explore, 0
        for _ in range(2 * self.epochs):
            for x, y in self._batches(rows):
                descent.optimiser.zero_grad()
                self._add_gradients(x, y, explore)
                descent.optimiser.step()
            if descent.is_stalled(self._held_loss(*held)):
                explore, decays, descent.bad = 0.2 * explore, decays + 1, 0
                for group in descent.optimiser.param_groups:
                    group["lr"] = 1e-3
            if decays == self.DECAYS:
                break
        descent.restore()

    def _add_gradients(self, x: Tensor, y: Tensor, explore: float) -> None:
        mask, n = torch.zeros_like(x), len(x)
        logits = self.predictor(_known(x, mask))
        before = functional.cross_entropy(logits, y, reduction="none")
        (before.mean() / (self.n_steps + 1)).backward()
        for _ in range(self.n_steps):
            estimate = self._score(x, mask, logits.detach())
            best = (estimate.detach() - _ACQUIRED * mask).argmax(dim=1)
            chosen = torch.where(torch.rand(n) < explore, torch.randint(x.shape[1], (n,)), best)
            mask = torch.maximum(mask, functional.one_hot(chosen, x.shape[1]))
            logits = self.predictor(_known(x, mask))
            after = functional.cross_entropy(logits, y, reduction="none")
            drop = before.detach() - after.detach()
            error = functional.mse_loss(estimate[torch.arange(n), chosen], drop)
            ((error + after.mean()) / (self.n_steps + 1)).backward()
            before = after

    def _held_loss(self, x: Tensor, y: Tensor) -> float:
        self._set_training(False)
        with torch.no_grad():
            mask, total = torch.zeros_like(x), 0.0
            for step in range(self.n_steps + 1):
                logits = self.predictor(_known(x, mask))
                total += functional.cross_entropy(logits, y).item()
                if step < self.n_steps:
                    best = (self._score(x, mask, logits) - _ACQUIRED * mask).argmax(dim=1)
                    mask = mask + functional.one_hot(best, x.shape[1])
        return total / (self.n_steps + 1)

    def _score(self, x: Tensor, mask: Tensor, logits: Tensor) -> Tensor:
        estimate: Tensor = self.selector(_known(x, mask)).sigmoid() * _entropy(logits)
        return estimate

    @staticmethod
    def steps_within(value: Floats, penalty: float) -> NDArray[np.int64]:
        """Return how many values each row acquires until no further one is estimated to give more than the penalty."""
        stops = np.concatenate([value <= penalty, np.ones((1, value.shape[1]), dtype=bool)])
        steps: NDArray[np.int64] = stops.argmax(axis=0)
        return steps

    @classmethod
    def penalty_for(cls, value: Floats, mean_features: float) -> float:
        """Return the smallest penalty at which the rows of a walk acquire at most so many values on average."""
        levels = np.r_[0.0, np.quantile(value, np.linspace(0.0, 1.0, 1001))]
        within = [lv for lv in np.unique(levels) if cls.steps_within(value, lv).mean() <= mean_features]
        return float(within[0])
