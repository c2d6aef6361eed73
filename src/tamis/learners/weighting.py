"""Feature weights for weighted classifiers, from the entropies of a sliding window.

Barddal's thesis, chapter 7. With H from :mod:`tamis.summaries.entropy`::

    "su"              w_i = SU(X_i, Y)                                                    (7.4)
    "entropy"         w_i = H(Y) - H(Y|X_i), the information gain
    "entropy_thesis"  w_i = log2(classes) - H(Y|X_i)                                      (7.3)

If the classes are unbalanced, H(Y) < log2(classes), so (7.3) gives an irrelevant feature the weight
log2(classes) - H(Y); the information gain gives it 0, and equals (7.3) for balanced classes.
"""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Indices, Ints, Rows, check_choice, columns_of, reject_nonfinite
from tamis.learners.dense_rows import LARGEST, DenseRowClassifier, first_out_of_range
from tamis.summaries.entropy import WindowCounts


class WindowWeights:
    """Weights of all features over a sliding window.

    Parameters
    ----------
    n_features, n_classes : int
        As for :class:`~tamis.summaries.entropy.WindowCounts`.
    kind : {"su", "entropy", "entropy_thesis", None}
        None weights all features equally.
    window : int, at least 2, default=200
        Number of most recent rows that count.
    categorical : sequence of int, default=()
        Categorical features.

    Attributes
    ----------
    neutral : bool
        Whether all weights are 1 because the features cannot be distinguished: all weights would be 0, or fewer than
        window / 2 rows were seen, or `kind` is None.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.arange(1000) % 2
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[:, 1] += 2 * codes
    >>> weights = WindowWeights(3, 2, "su")
    >>> weights.update(X[:50], codes[:50])
    >>> weights.neutral, weights.weights()
    (True, array([1., 1., 1.]))
    >>> weights.update(X[50:], codes[50:])
    >>> weights.neutral, weights.weights().argmax()
    (False, np.int64(1))
    """

    def __init__(
        self, n_features: int, n_classes: int, kind: str | None, window: int = 200, categorical: Any = ()
    ) -> None:
        check_choice("kind", kind, ("su", "entropy", "entropy_thesis", None))
        self.kind = kind
        self.counts: WindowCounts | None
        self.n_features, self.n_classes, self.counts = n_features, n_classes, None
        if kind is not None:
            self.counts = WindowCounts(n_features, n_classes, window, categorical=categorical)

    def update(self, X: Rows, codes: Array) -> None:
        """Update the counts with rows, as :meth:`WindowCounts.update` does."""
        if self.counts is not None:
            self.counts.update(X, codes)

    def grow(self, n_classes: int) -> None:
        """Allocate space for new classes, whose codes follow the existing ones."""
        self.n_classes = n_classes
        if self.counts is not None:
            self.counts.grow(n_classes)

    def weights(self) -> Floats:
        """Return the weights, shape (n_features,): not negative, not normalised, all 1 where `neutral`."""
        weights = self._informative_weights()
        return np.ones(self.n_features) if weights is None else weights

    @property
    def neutral(self) -> bool:
        """Whether all weights are 1 because the features cannot be distinguished."""
        return self._informative_weights() is None

    def _informative_weights(self) -> Floats | None:
        counts = self.counts
        if counts is None or 2 * counts.n_rows < counts.window:
            return None
        if self.kind == "su":
            weights = counts.symmetrical_uncertainty()
        elif self.kind == "entropy":
            weights = counts.information_gain()
        else:
            weights = np.maximum(np.log2(self.n_classes) - counts.conditional_entropy(), 0.0)
        return weights if weights.any() else None


@dataclass(repr=False, eq=False)
class WeightedClassifier(DenseRowClassifier):
    """A classifier that weights features by their relevance in a sliding window."""

    _: KW_ONLY
    weight: str | None = "su"
    score_window: int = 200
    categorical: Any = None

    def _initialize_weighting(self, n_features: int, names: list[str] | None) -> Ints:
        """Return the categorical columns."""
        columns: Ints = columns_of(self.categorical, n_features, names)
        n_classes = len(self.classes_)
        self._weighting_ = WindowWeights(n_features, n_classes, self.weight, self.score_window, columns)
        return columns

    def _grow(self, n_classes: int) -> None:
        super()._grow(n_classes)
        self._weighting_.grow(n_classes)

    def _change_columns(self, how: str, columns: Any) -> None:
        if how == "reset" and len(columns_of(self.categorical, self.n_features_in_, None)):
            raise ValueError(f"{type(self).__name__} with categorical columns cannot forget single columns.")
        super()._change_columns(how, columns)
        weighting = self._weighting_
        weighting.n_features = self.n_features_in_
        if weighting.counts is not None:
            change = weighting.counts.widen if how == "extend" else weighting.counts.forget
            change(columns, value=np.nan)

    @property
    def unweighted_(self) -> bool:
        """Whether no weights are in use."""
        return self._fitted_weighting().neutral

    def _fitted_weighting(self) -> WindowWeights:
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        return self._weighting_

    def _rows_to_predict(self, X: Any) -> Array:
        rows = self._rows(X, False)
        if first_out_of_range(rows, LARGEST) >= 0:
            reject_nonfinite(rows, allow_nan=True)
        return rows

    def _view_of(self, columns: Indices) -> tuple[Self, Floats]:
        """Return a shallow copy for rows of some columns, and their weights."""
        weights = self._fitted_weighting().weights()[columns]
        view = copy(self)
        view.__dict__.pop("feature_names_in_", None)
        view.n_features_in_ = len(columns)
        return view, weights
