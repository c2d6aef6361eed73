"""A selector or learner of another kind is rejected before the first row; the message names what to pass."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.svm import SVC

from tamis import ETANA, FIRES, AlphaInvesting, Perceptron, StreamPipeline, prequential
from tamis.errors import UnknownNameError

SELECTOR = "selector must be an estimator with partial_fit and get_support or None, got "
LEARNER = "learner must be a classifier or regressor with partial_fit or None, got "
REJECTED = {
    "a name": (("fires", None), f"{SELECTOR}'fires': pass FIRES()."),
    "a name with parameters": ((None, "lightgbm"), f"{LEARNER}'lightgbm': pass Refit(estimator='lightgbm')."),
    "the name of a rule for columns": (("alpha-investing", None), f"{SELECTOR}'alpha-investing'."),
    "a class": ((FIRES, None), f"{FIRES!r}: pass FIRES()."),
    "a class of learners": ((FIRES(2), Perceptron), f"{Perceptron!r}: pass Perceptron()."),
    "a rule for columns": ((AlphaInvesting(), None), f"{SELECTOR}AlphaInvesting()."),
    "a model that acquires": ((ETANA(), None), f"{SELECTOR}ETANA()."),
    "a number": ((42, None), f"{SELECTOR}42."),
    "a selector as learner": ((None, FIRES(2)), f"{LEARNER}FIRES(n_features_to_select=2)."),
    "a learner without partial_fit": ((None, SVC()), "SVC has no partial_fit: wrap it, as in Refit(SVC())."),
}


@pytest.mark.parametrize("name", REJECTED)
def test_other_objects_are_rejected(name):
    (selector, learner), message = REJECTED[name]
    X = np.random.default_rng(0).normal(size=(200, 5))
    y = X[:, 0] > 0
    with pytest.raises(ValueError, match=re.escape(message)):
        prequential((X, y), selector, learner)
    pipeline = StreamPipeline(selector, learner)
    with pytest.raises(ValueError, match=re.escape(message)):
        pipeline.partial_fit(X, y)


def test_an_unknown_name_is_answered_with_similar_ones():
    with pytest.raises(UnknownNameError, match="did you mean 'fires'"):
        prequential((np.eye(200), np.arange(200) % 2), "fire")
