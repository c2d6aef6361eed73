"""Capabilities of learners: adaptation to concept drift, undeclared classes, missing values, and masking.

Masking is how a classifier ignores the columns that are currently unselected. The selection changes over time. A
learner that was passed zeros for an unselected column treats it as a constant and is misled once the column is
selected: a Gaussian of variance 0 dominates all others. Four strategies prevent this; each learner uses the first that
it supports (:func:`masking_strategy`):

=============  =====================================================================================================
``"whole"``    learns all columns, because its statistics of a column do not depend on the others; predicts with
               :func:`restrict_columns` from the selected columns only, as if it had been trained with these alone
``"columns"``  learns and predicts from all columns, and is passed the selected ones with the rows to learn from
``"missing"``  learns and predicts with NaN elsewhere: it supports missing values (trees, River's models)
``"zeros"``    learns and predicts with 0 elsewhere: a weight multiplied by 0 has no effect and is not updated
=============  =====================================================================================================
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from tamis._deferred import is_instance

# Parts of the class names of River's models that monitor their errors or keep a window.
_RIVER = ("adaptive", "arf", "srp", "adwin", "knn", "leveraging", "streamingrandompatches", "ddm")


def adapts_itself(learner: Any) -> bool:
    """Return whether a learner adapts to concept drift itself, so that it should not be reset from outside.

    Parameters
    ----------
    learner : estimator
        Its attribute ``adapts_itself`` decides. Without one, learners of Tamis with a `window` or a level of `drift`
        that is not None adapt, and a wrapped River model (the parameter `model`) is recognised by its class name. All
        others do not adapt.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tamis.learners import AdaptiveRandomForest, HoeffdingTree, WeightedNaiveBayes
    >>> [adapts_itself(one) for one in (AdaptiveRandomForest(), HoeffdingTree(), GaussianNB())]
    [True, False, False]
    >>> adapts_itself(WeightedNaiveBayes(window=1000)), adapts_itself(WeightedNaiveBayes(window=None))
    (True, False)
    """
    stated = getattr(learner, "adapts_itself", None)
    if stated is not None:
        return bool(stated)
    if type(learner).__module__.startswith("tamis.learners."):
        return any(getattr(learner, name, None) is not None for name in ("window", "drift"))
    is_raw = type(learner).__module__.startswith("river.")
    model = learner if is_raw else getattr(learner, "model", None)
    name = model if isinstance(model, str) else type(model).__name__
    is_river = isinstance(model, str) or type(model).__module__.startswith("river.")
    return is_river and any(part in name.lower().replace("-", "") for part in _RIVER)


def accepts_new_classes(learner: Any) -> bool:
    """Return whether a fitted learner continues after a new label, instead of being reset with all labels."""
    return bool(getattr(learner, "accepts_new_classes", False))


_NAIVE_BAYES = "sklearn.naive_bayes"
_PER_COLUMN = ("GaussianNB", "MultinomialNB", "BernoulliNB")  # each column is modelled independently


def masking_strategy(learner: Any) -> str:
    """Return how a learner ignores unselected columns: ``"whole"``, ``"columns"``, ``"missing"`` or ``"zeros"``.

    Parameters
    ----------
    learner : classifier
        Fitted or not. Besides the classes named here, a learner with a method ``restrict_columns`` learns whole rows,
        and one whose tags allow NaN is given missing values. An attribute ``masking_strategy`` overrides both.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tamis.learners import HoeffdingTree, WeightedKNN
    >>> [masking_strategy(learner) for learner in (GaussianNB(), WeightedKNN(), HoeffdingTree(), Perceptron())]
    ['whole', 'whole', 'missing', 'zeros']
    """
    strategy: str | None = getattr(learner, "masking_strategy", None)
    if strategy is not None:
        return strategy
    if is_instance(learner, _NAIVE_BAYES, *_PER_COLUMN) or hasattr(learner, "restrict_columns"):
        return "whole"
    return "missing" if accepts_nan(learner) else "zeros"


def accepts_nan(learner: Any) -> bool:
    """Return whether the tags of a learner declare support for NaN."""
    return _has_input_tag(learner, "allow_nan", unknown=False)


def accepts_sparse(learner: Any) -> bool:
    """Return whether the tags of a learner declare support for CSR rows, or it has no tags."""
    return _has_input_tag(learner, "sparse", unknown=True)


def _has_input_tag(learner: Any, name: str, *, unknown: bool) -> bool:
    try:
        return bool(getattr(get_tags(learner).input_tags, name))
    except (AttributeError, TypeError):  # a third-party class without scikit-learn's tags
        return unknown


def restrict_columns(learner: Any, columns: NDArray[np.intp]) -> Any:
    """Return a classifier that predicts from a subset of the columns, as if trained with these only.

    Parameters
    ----------
    learner : classifier
        Fitted, with the strategy ``"whole"``. It is not modified; the fitted state is shared.
    columns : ndarray of shape (n_columns,), int
        Ascending.

    Returns
    -------
    classifier
        For rows of these columns, in this order. It must not be trained.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.array([[1.0, 9.0], [2.0, 1.0], [7.0, 5.0], [8.0, 6.0]]), [0, 0, 1, 1]
    >>> restrict_columns(GaussianNB().fit(X, y), np.array([0])).predict([[1.5], [7.5]])
    array([0, 1])
    """
    if hasattr(learner, "restrict_columns"):
        return learner.restrict_columns(columns)
    view = copy(learner)
    view.__dict__.pop("feature_names_in_", None)
    view.n_features_in_ = len(columns)
    if is_instance(learner, _NAIVE_BAYES, "GaussianNB"):
        view.theta_, view.var_ = learner.theta_[:, columns], learner.var_[:, columns]
        return view
    shares = learner.feature_log_prob_[:, columns]
    if is_instance(learner, _NAIVE_BAYES, "MultinomialNB"):  # the shares of these columns add up to 1
        shares = shares - np.logaddexp.reduce(shares, axis=1, keepdims=True)
    view.feature_log_prob_ = shares
    return view
