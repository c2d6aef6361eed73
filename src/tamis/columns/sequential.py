"""The base of selectors that test columns in sequence against a growing model, in bulk until one is accepted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array, Floats, Ints, Mask
from tamis._validation.parameters import integer, parameter
from tamis.base import Claims, ColumnSelector, Inputs
from tamis.base.trace import ACCEPTED, FULL, REJECTED, Verdicts
from tamis.columns.glm import LogisticModel, MultinomialModel, PoissonModel
from tamis.columns.linear import LinearModel
from tamis.columns.projection import Proposal
from tamis.errors import DataError

_NARROW, _WIDE = 32, 4096  # columns tested together


def check_two_classes(classes: Array) -> None:
    """Raise a DataError unless there are two classes, as a logistic model needs."""
    if len(classes) != 2:
        raise DataError(
            f"y has {len(classes)} class(es) ({', '.join(map(repr, classes.tolist()[:5]))}), but"
            " model='logistic' needs two: choose the rows of two classes."
        )


@dataclass(eq=False, repr=False)
class RegressionSelector(ColumnSelector):
    """A selector that tests columns against a regression on the features selected so far."""

    accepts = Inputs(targets=("binary", "regression"))
    claims = Claims(equals_rows="exactly", sparse_time=True)

    model: str = parameter("linear", "logistic", "poisson", default="linear")
    _: KW_ONLY
    intercept: bool = parameter(True, False, default=True)
    max_features: int | None = parameter(integer("[1, inf)"), None, default=None)

    _parts: ClassVar[tuple[str, ...]] = ("_model",)

    def _is_regression(self) -> bool:
        return self.model not in ("logistic", "multinomial")

    def _start_model(self, y: Array, weight: Array, robust: bool = False, exp_tail: bool = False) -> None:
        if self.model == "logistic":
            check_two_classes(self.classes_)
        make: Any = {
            "linear": LinearModel,
            "logistic": LogisticModel,
            "multinomial": MultinomialModel,
            "poisson": PoissonModel,
        }[self.model]
        self._model: LinearModel | LogisticModel | MultinomialModel | PoissonModel = make(
            y.astype(np.float64), weight, bool(self.intercept), robust, exp_tail
        )

    def _grow(self, proposal: Proposal) -> None:
        self._model.accept(proposal)
        self.stopped_ = self._model.stop_reason() or self._limit_reason()

    def _limit_reason(self) -> str | None:
        q = self._model.k - self.intercept
        if self.max_features is None or q < self.max_features:
            return None
        return f"max_features: {q} features are selected"


class SequentialSelector(RegressionSelector):
    """A selector whose threshold for the next candidate depends on the outcomes of the earlier ones.

    The candidates of a block are tested together against the current model; the first that may pass its threshold is
    tested again in full precision. If it is accepted, the candidates after it are tested again, so the decisions equal
    those of one offer at a time.

    A subclass defines `_thresholds`, `_may_be_accepted`, `_is_accepted` and `_record`.
    """

    @abstractmethod
    def _thresholds(self, log_p: Floats, places: Ints) -> Floats:
        """Return the thresholds of the candidates offered at these places, as long as none is accepted."""

    @abstractmethod
    def _may_be_accepted(self, statistic: Floats, log_p: Floats, thresholds: Floats) -> Mask:
        """Return which candidates need the exact test."""

    @abstractmethod
    def _is_accepted(self, proposal: Proposal, threshold: float) -> bool:
        """Return whether a candidate is accepted."""

    @abstractmethod
    def _record(self, verdicts: Verdicts, at: Ints, thresholds: Floats, accepted: bool) -> None:
        """Record thresholds and wealth of the candidates decided on, and update the threshold."""

    # -- the sequence --------------------------------------------------------------------------------------

    def _consider_block(self, columns: Any) -> Verdicts:
        verdicts = Verdicts.empty(columns.shape[1])
        start, width = 0, min(_WIDE, max(_NARROW, columns.shape[1]))
        while start < columns.shape[1]:
            if self.stopped_ is not None:
                verdicts.decision[start:] = FULL
                break
            done = self._consider_chunk(columns[:, start : start + width], start, verdicts)
            width = max(_NARROW, width // 2) if done < width else min(_WIDE, 2 * width)
            start += done
        return verdicts

    def _consider_chunk(self, columns: Any, start: int, verdicts: Verdicts) -> int:
        """Decide up to the first acceptance; return the number of columns decided."""
        evidence = self._model.evidence(columns)
        stop, passed = int(columns.shape[1]), 0
        testable = np.flatnonzero(evidence.status == REJECTED)
        while passed < len(testable):
            rest = testable[passed:]
            statistic, log_p = evidence.statistic[rest], evidence.log_p[rest]
            thresholds = self._thresholds(log_p, self.n_offered_ + start + rest)
            near = np.flatnonzero(self._may_be_accepted(statistic, log_p, thresholds))
            n_clear = int(near[0]) if len(near) else len(rest)
            clear = start + rest[:n_clear]
            verdicts.statistic[clear], verdicts.log_p[clear] = statistic[:n_clear], log_p[:n_clear]
            self._record(verdicts, clear, thresholds[:n_clear], False)
            passed += n_clear + 1
            if len(near) and self._try(
                columns, int(rest[n_clear]), start, float(thresholds[n_clear]), verdicts
            ):
                stop = int(rest[n_clear]) + 1
                break
        refused = np.flatnonzero(evidence.status[:stop] != REJECTED)
        verdicts.decision[start + refused] = evidence.status[refused]
        return stop

    def _try(self, columns: Any, j: int, start: int, threshold: float, verdicts: Verdicts) -> bool:
        """Test one column exactly; return whether it was accepted."""
        proposal = self._model.propose(dense_column(columns, j))
        accepted = self._is_accepted(proposal, threshold)
        at = np.array([start + j])
        verdicts.statistic[at], verdicts.log_p[at] = proposal.statistic, proposal.log_p
        self._record(verdicts, at, np.array([threshold]), accepted)
        if accepted:
            verdicts.decision[at] = ACCEPTED
            self._grow(proposal)
        return accepted


def dense_column(columns: Any, j: int) -> Floats:
    """Return one column as a dense array."""
    return columns[:, [j]].toarray()[:, 0] if sp.issparse(columns) else columns[:, j]
