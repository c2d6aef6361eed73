"""Streaming features for several targets, with one error budget for all tests.

Each target has a model of its own, and a column is selected for those targets of which it passes the test. All tests
draw on one rule of :mod:`tamis.columns.online_fdr`, so its bound is about the pairs of a column and a target that are
selected, and a discovery for one target pays for tests of the others. The sequence of tests is: block of offers after
block, in each the targets in their order, for each the columns in their order.

The bounds of `ELOND`, `ClosedELOND` and `AlphaSpending` hold under any dependence of the tests, so for any targets. The
others require p-values that are valid given the past, which contains the decisions about the same columns for earlier
targets: their bounds hold if the targets are independent given the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomically
from tamis._validation import Mask, as_list, as_table
from tamis._validation.parameters import Kind, check_parameters, parameter, parameters
from tamis.base.column_intake import block_of, one_column
from tamis.base.columns import OfferSnapshot
from tamis.base.per_target import SeveralTargets, columns_of_targets, of_target
from tamis.columns.alpha_investing import AlphaInvesting


class _Before:
    """A snapshot of all selectors before an offer; the rule that they share is one object again after it."""

    is_complete = True

    def __init__(self, model: AlphaInvestingPerTarget) -> None:
        self._model, self._snapshots = model, [OfferSnapshot(one) for one in model.selectors_]

    def restore(self) -> None:
        """Restore the selectors."""
        for one in self._snapshots:
            one.restore()
        self._model._share()


@dataclass(eq=False, repr=False)
class AlphaInvestingPerTarget(SeveralTargets):
    """Selects streaming features for several targets, whose tests share one error budget.

    Parameters
    ----------
    selector : AlphaInvesting
        The selector of each target; its rule is shared.
    models : list of str, optional
        The `model` of each target, such as "linear" and "logistic". By default that of the selector.

    Attributes
    ----------
    selectors_ : list of AlphaInvesting
        The selector of each target, with its own trace.
    targets_ : list of str
        Names of the targets: those of the frame, or ``y0``, ``y1`` and so on.
    selected_ : list of str
        Features selected for any target, in the order of their offers.
    selected_by_target_ : dict of str to list of str
        Features selected for each target, in the order of acceptance.
    wealth_ : float
        The remaining error budget of all targets.

    Raises
    ------
    ValueError
        If a parameter is invalid; raised when the targets arrive.
    DataError
        If a target or a column is invalid. The state is then unchanged.

    Notes
    -----
    The bound of the rule is about all pairs of a column and a target. If targets may depend on each other given the
    features, as tags of a text do, use a rule that is valid under any dependence: "closed-e-lond", "e-lond" or
    "alpha-spending"; see :mod:`tamis.columns.targets`. The decisions depend on how columns are divided into blocks, but
    the bound does not.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting, AlphaInvestingPerTarget
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 200))
    >>> Y = X[:, [3, 50]] + X[:, [50, 120]] + rng.normal(size=(300, 2))
    >>> model = AlphaInvestingPerTarget(AlphaInvesting(target_fdr=0.05)).fit(X, Y)
    >>> model.selected_by_target_, model.selected_
    ({'y0': ['x3', 'x50'], 'y1': ['x50', 'x120']}, ['x3', 'x50', 'x120'])
    """

    _allowed = parameters(selector=Kind("an AlphaInvesting", lambda value: isinstance(value, AlphaInvesting)))

    selector: AlphaInvesting
    selectors_: list[AlphaInvesting] = field(init=False)
    targets_: list[str] = field(init=False)
    models: Any = parameter(
        Kind("a list of names of models", lambda value: isinstance(value, list | tuple)), None, default=None
    )

    def start(self, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, and set the targets of the features to come.

        Parameters
        ----------
        y : array-like or frame of shape (n_rows, n_targets)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        atomically(self, self._start, y, sample_weight, from_scratch=True)
        return self

    def _start(self, y: Any, sample_weight: Any) -> None:
        check_parameters(self)
        columns, names = columns_of_targets(y)
        names = self._new_names(names, len(columns), "models")
        selectors = []
        for at, (name, column) in enumerate(zip(names, columns, strict=True)):
            one: AlphaInvesting = clone(self.selector)
            if self.models is not None:
                one.set_params(model=self.models[at])
            with of_target(name):
                selectors.append(one.start(column, sample_weight))
        self.selectors_, self.targets_ = selectors, names
        self._share()

    def _share(self) -> None:
        """Let all selectors use the rule of the first."""
        for one in self.selectors_[1:]:
            one._rule = self.selectors_[0]._rule

    def offer(self, column: Any, name: str | None = None) -> Mask:
        """Decide about one feature for each target; see `offer_many`.

        Parameters
        ----------
        column : array-like or sparse column of shape (n_rows,) or (n_rows, 1)
        name : str, optional

        Returns
        -------
        ndarray of shape (n_targets,), bool
            For which targets it was accepted.
        """
        label = getattr(column, "name", None) if name is None else name
        return self.offer_many(one_column(column), [label] if isinstance(label, str) else None)[:, 0]

    def offer_many(self, block: Any, names: Sequence[str] | None = None) -> Mask:
        """Decide about the columns of a block, for one target after the other. If it raises, nothing has changed.

        Parameters
        ----------
        block : array-like, CSR or CSC matrix or frame of shape (n_rows, m)
        names : sequence of str, optional
            By default the columns of the frame, or ``"x"`` and the number of the offer.

        Returns
        -------
        ndarray of shape (n_targets, m), bool
            Which columns were accepted for each target.
        """
        check_is_fitted(self)
        columns, own = block_of(block)
        labels = own if names is None else [str(name) for name in as_list("names", names)]
        return atomically(self, self._offer, columns, labels, before=_Before(self))

    def _offer(self, columns: Any, names: list[str] | None) -> Mask:
        return np.array([one.offer_many(columns, names) for one in self.selectors_])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start with `y`, then offer the columns of `X` as one block.

        Parameters
        ----------
        X : array-like, CSR or CSC matrix or frame of shape (n_rows, n_features)
        y : array-like or frame of shape (n_rows, n_targets)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        atomically(self, self._fit, X, y, sample_weight, from_scratch=True)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.start(y, sample_weight).offer_many(X)
        if (table := as_table(X)) is not None:
            for one in self.selectors_:
                one.feature_names_in_ = np.array(table.texts, dtype=object)

    @property
    def selected_by_target_(self) -> dict[str, list[str]]:
        """Features selected for each target, in the order of acceptance."""
        check_is_fitted(self)
        return {name: one.selected_ for name, one in zip(self.targets_, self.selectors_, strict=True)}

    @property
    def selected_(self) -> list[str]:
        """Features selected for any target, in the order of their offers."""
        check_is_fitted(self)
        kept = sorted({place for one in self.selectors_ for place in one._kept})
        return [name for _, name in kept]

    @property
    def wealth_(self) -> float:
        """The remaining error budget of all targets."""
        check_is_fitted(self)
        return self.selectors_[0].wealth_
