"""Capabilities of learners: adaptation to concept drift, and classes that were not declared."""

from __future__ import annotations

from typing import Any

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
