"""One selection for several targets: which features serve which of them, and how many serve all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamis._validation.arrays import Mask
from tamis.report.content import Table
from tamis.report.result import Result


class SharedSelection(Result):
    """The features that are selected for each of several targets, and their union.

    Parameters
    ----------
    selected : dict of str to list of str
        The features selected for each target.
    feature_names : sequence of str

    Attributes
    ----------
    targets, feature_names : list of str
    support_by_target : ndarray of shape (n_targets, n_features), bool
        The features selected for each target.
    """

    def __init__(self, selected: Mapping[str, Sequence[str]], feature_names: Sequence[str]) -> None:
        self.targets, self.feature_names = list(selected), list(feature_names)
        self.support_by_target: Mask = np.array(
            [np.isin(self.feature_names, list(some)) for some in selected.values()]
        )

    def heading(self) -> str:
        """Return the heading of the page."""
        return f"{len(self.targets)} targets"

    def selected(self) -> list[str]:
        """Return the features that are selected for any target."""
        return [self.feature_names[j] for j in np.flatnonzero(self.support_by_target.any(axis=0))]

    @property
    def price(self) -> int:
        """Number of features that are selected for any target."""
        return len(self.selected())

    def verdict(self) -> str:
        """Return how many features all targets need."""
        sizes = self.support_by_target.sum(axis=1)
        each = f"{sizes.min()} to {sizes.max()}" if sizes.min() < sizes.max() else f"{sizes.max()}"
        return (
            f"{self.price} of {len(self.feature_names)} features serve {len(self.targets)} targets, which"
            f" need {each} each, {sizes.sum()} in all."
        )

    def shared_table(self) -> Table:
        """Return a table of the shared selection: for which targets each feature is selected."""
        by_use = np.argsort(-self.support_by_target.sum(axis=0), kind="stable").tolist()
        shared = [
            [self.feature_names[j], ", ".join(np.array(self.targets)[self.support_by_target[:, j]].tolist())]
            for j in by_use
            if self.support_by_target[:, j].any()
        ]
        return Table("Shared selection", [("", "feature"), ("long", "selected for")], shared, is_main=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the targets and the shared selection as plain values."""
        return {
            "verdict": self.verdict(), "remarks": [str(one) for one in self.remarks()], "targets": self.targets,
            "selected": self.selected(), "price": self.price,
        }  # fmt: skip
