"""How a classifier leaves out the columns that are not selected now.

A selection moves. A learner that met a column as zeros while it was not selected takes it for a constant, and is
misled once it enters: a Gaussian of variance 0 outvotes all others. There are three ways to keep that from happening,
each learner has the first that it can take (:func:`way_of`):

=============  =====================================================================================================
``"whole"``    learns every column of a row, for what it knows of one does not depend on the others; predicts with
               :func:`narrowed`, which knows the selected columns alone: as if it had learned these from the beginning
``"missing"``  learns and predicts with NaN elsewhere: it understands missing values (trees, River's models)
``"zeros"``    learns and predicts with 0 elsewhere: a weight that is multiplied by 0 neither says nor learns anything
=============  =====================================================================================================
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.utils import get_tags

__all__ = ["narrowed", "takes_nan", "way_of"]


def way_of(learner: Any) -> str:
    """Return how a learner leaves columns out: ``"whole"``, ``"missing"`` or ``"zeros"``.

    Parameters
    ----------
    learner : classifier
        Fitted or not. Besides those named here, one that has a method ``narrowed`` learns whole rows, and one whose
        tags allow NaN is given missing values.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from tamis.learners import HoeffdingTree, WeightedKNN
    >>> [way_of(learner) for learner in (GaussianNB(), WeightedKNN(), HoeffdingTree(), Perceptron())]
    ['whole', 'whole', 'missing', 'zeros']
    """
    told: str | None = getattr(learner, "way_of_leaving_out", None)
    if told is not None:
        return told
    if isinstance(learner, GaussianNB | MultinomialNB | BernoulliNB) or hasattr(learner, "narrowed"):
        return "whole"
    return "missing" if takes_nan(learner) else "zeros"


def takes_nan(learner: Any) -> bool:
    """Return whether a learner says in its tags that it understands NaN."""
    try:
        return bool(get_tags(learner).input_tags.allow_nan)
    except (AttributeError, TypeError):  # somebody else's, without scikit-learn's tags
        return False


def narrowed(learner: Any, columns: NDArray[np.intp]) -> Any:
    """Return a classifier that predicts from some columns what the learner would had it learned no others.

    Parameters
    ----------
    learner : classifier
        Fitted, with the way ``"whole"``. It is not changed; what it knows is shared.
    columns : ndarray of shape (n_columns,), int
        Ascending.

    Returns
    -------
    classifier
        For rows of these columns, in this order. It does not learn.

    Examples
    --------
    >>> X, y = np.array([[1.0, 9.0], [2.0, 1.0], [7.0, 5.0], [8.0, 6.0]]), [0, 0, 1, 1]
    >>> narrowed(GaussianNB().fit(X, y), np.array([0])).predict([[1.5], [7.5]])
    array([0, 1])
    """
    if hasattr(learner, "narrowed"):
        return learner.narrowed(columns)
    view = copy(learner)
    view.__dict__.pop("feature_names_in_", None)
    view.n_features_in_ = len(columns)
    if isinstance(learner, GaussianNB):
        view.theta_, view.var_ = learner.theta_[:, columns], learner.var_[:, columns]
        return view
    shares = learner.feature_log_prob_[:, columns]
    if isinstance(learner, MultinomialNB):  # the shares of these columns add up to 1
        shares = shares - np.logaddexp.reduce(shares, axis=1, keepdims=True)
    view.feature_log_prob_ = shares
    return view
