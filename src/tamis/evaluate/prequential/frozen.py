"""The baseline of a frozen selection: an L1-regularised model of the first rows ranks the features once.

With z the columns standardised over the first n rows, the weights are (Tibshirani 1996, JRSS B 58)::

    w = argmin_w  1/n sum_i loss(y_i, w' z_i + b) + penalty sum_j |w_j|                              (1)

The loss is logistic, each class against the others, or half the squared error of a standardised target. The columns
are ordered by the largest |w_j| over the classes, and those with w_j = 0 by their covariance with the target.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import Array, Rows, encode_labels
from tamis.base.row_encoder import class_targets
from tamis.evaluate.prequential.baselines import Baseline, whole
from tamis.pipeline.masked_learner import MaskedLearner, View
from tamis.pipeline.scaling import LIMIT, RunningScale
from tamis.streams.stream import Batch

__all__ = ["FrozenBaseline", "lasso_order"]

# Per row (C = 0.1 of scikit-learn for 1,000 rows). On 13 streams the first 5, 10 and 20 % of the columns reach a mean
# accuracy of .637 with naive Bayes and logistic regression; with a tenth of the penalty .624, with ten times the
# penalty .612, and in the order in which columns enter as the penalty decreases .637, at ten times the cost.
_PENALTY = 0.01


def lasso_order(
    X: Rows, y: Array, *, is_regression: bool = False, categorical: Sequence[int] = ()
) -> NDArray[np.intp]:
    """Return the features in descending order of their weights (1).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        NaN is imputed with the mean of the column.
    y : ndarray of shape (n_rows,)
        Labels of at least two classes, or numbers.
    is_regression : bool, default=False
        Whether `y` contains numbers.
    categorical : sequence of int, optional
        Positions of the features whose values are category codes. A category is replaced by its mean target in the
        other half of the rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> lasso_order(X, X[:, 3] - 0.5 * X[:, 1] > 0)[:2]
    array([3, 1])
    """
    X = _encode_categories(X, y, categorical, is_regression)
    scale = RunningScale(X.shape[1])
    scale.update(X)
    Z: Any = scale.transform(X)
    if not sp.issparse(Z):
        Z = np.nan_to_num(Z, nan=0.0, posinf=LIMIT, neginf=-LIMIT)
    if is_regression:
        deviation = float(np.std(y))
        targets = (np.asarray(y, np.float64) - np.mean(y))[:, None] / (deviation or 1.0)
    else:
        codes, classes = encode_labels(y, np.array([]))
        of_class = np.eye(len(classes))[codes]
        targets = of_class[:, 1:] if len(classes) == 2 else of_class
    fit = _linear_weights if is_regression else _logistic_weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not converged still ranks
        weights = np.max([np.abs(fit(Z, targets[:, k])) for k in range(targets.shape[1])], axis=0)
    covariance = np.abs(Z.T @ (targets - targets.mean(axis=0))).max(axis=1)
    order: NDArray[np.intp] = np.lexsort((-covariance, -weights))
    return order


def _encode_categories(X: Rows, y: Array, categorical: Sequence[int], is_regression: bool) -> Rows:
    if not categorical or sp.issparse(X):
        return X
    target = np.asarray(y if is_regression else class_targets(encode_labels(y, np.array([]))[0]), np.float64)
    halves = slice(0, None, 2), slice(1, None, 2)
    encoded: Array = np.array(X, dtype=np.float64)
    for half, other in (halves, halves[::-1]):
        coder = RunningScale(X.shape[1], categorical)
        coder.learn_categories(X[other], target[other])
        encoded[half] = coder.encode(X[half])
    return encoded


def _logistic_weights(Z: Rows, is_class: Array) -> NDArray[np.float64]:
    from sklearn.linear_model import LogisticRegression

    # scikit-learn 1.8 renamed the option.
    is_renamed = LogisticRegression().get_params().get("penalty", "deprecated") == "deprecated"
    lasso = {"l1_ratio": 1.0} if is_renamed else {"penalty": "l1"}
    # liblinear penalises the intercept as well, so it is given in units of a tenth.
    model = LogisticRegression(
        C=1.0 / (_PENALTY * len(is_class)),
        solver="liblinear",
        intercept_scaling=10.0,
        random_state=0,
        **lasso,
    )
    weights: NDArray[np.float64] = model.fit(Z, is_class).coef_[0]
    return weights


def _linear_weights(Z: Rows, target: Array) -> NDArray[np.float64]:
    from sklearn.linear_model import Lasso

    weights: NDArray[np.float64] = Lasso(_PENALTY).fit(Z, target).coef_
    return weights


class FrozenBaseline(Baseline):
    """A copy of the learner on features that were selected once, from the first rows.

    Until then it uses all features, and has no score. If its size never changes, its learner is then retrained on these
    rows with the selected features only. Memory: these rows, until then.

    Parameters
    ----------
    learner : MaskedLearner
        Unfitted.
    n_rows : int
        Number of rows to select on; more if they are all of one class.
    is_fixed, window, ranks
        As for :class:`Baseline`.
    is_regression : bool, default=False
        Whether the target is numeric.
    categorical : sequence of int, optional
        Positions of the features whose values are category codes.
    """

    def __init__(
        self,
        learner: MaskedLearner,
        n_rows: int,
        is_fixed: bool,
        window: int,
        ranks: bool = False,
        is_regression: bool = False,
        categorical: Sequence[int] = (),
    ) -> None:
        super().__init__(learner, None, is_fixed, window, ranks)
        self.categorical = list(categorical)
        self.n_rows, self.is_regression = n_rows, is_regression
        self.first: list[Batch] = []
        self.has_score = False

    def test_and_train(
        self,
        tested: Batch | None,
        due: Batch | None,
        classes: Array,
        scale: RunningScale | None,
        positive: Any = None,
    ) -> None:
        """Predict and learn as in :class:`Baseline`; then select once there are enough rows."""
        if self.columns is not None and self.first:  # selected since the batch before
            for X, y in self.first if self.is_fixed else ():
                self.learner.learn(self._view(X, scale), y, self.learner.classes)
            self.first = []
        self.has_score |= self.order is not None and tested is not None
        super().test_and_train(tested, due, classes, scale, positive)
        if self.order is None and due is not None:
            self._add(due)

    def _view(self, X: Rows, scale: RunningScale | None) -> View:
        return super()._view(whole(X), scale)

    def _add(self, due: Batch) -> None:
        self.first.append((whole(due[0]), due[1]))
        n_kept = sum(len(y) for _, y in self.first)
        while n_kept - len(self.first[0][1]) >= self.n_rows:  # all of one class
            n_kept -= len(self.first.pop(0)[1])
        if n_kept < self.n_rows:
            return
        y = np.concatenate([y for _, y in self.first])[: self.n_rows]
        if not self.is_regression and len(encode_labels(y, np.array([]))[1]) < 2:
            return
        parts: list[Any] = [X for X, _ in self.first]
        X: Any = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
        self.order = lasso_order(
            X[: self.n_rows], y, is_regression=self.is_regression, categorical=self.categorical
        )

    @property
    def score(self) -> tuple[float, float]:
        """As for any baseline; NaN until rows are predicted from selected columns."""
        return super().score if self.has_score else (np.nan, np.nan)

    @property
    def ranking(self) -> tuple[float, float]:
        """As for any baseline; NaN until rows are predicted from selected columns."""
        return super().ranking if self.has_score else (np.nan, np.nan)
