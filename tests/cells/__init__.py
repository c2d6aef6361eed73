"""Tests of active feature acquisition."""

_REASON = "it shuffles the rows, and folds hold out all copies of a row together"
_KINDS = ("dense", "sparse")


def scikit_learn_exceptions(estimator):
    """The checks of scikit-learn that a method which holds out rows cannot pass, each with its reason."""
    return {f"check_sample_weight_equivalence_on_{kind}_data": _REASON for kind in _KINDS}
