"""Tests of active feature acquisition."""

_REASON = "it shuffles the rows, and folds hold out all copies of a row together"
_KINDS = ("dense", "sparse")


def scikit_learn_exceptions(estimator):
    """The checks of scikit-learn that a method which holds out rows cannot pass, each with its reason."""
    result = {f"check_sample_weight_equivalence_on_{kind}_data": _REASON for kind in _KINDS}
    if estimator.get_params().get("objective") == "squared-error":
        names = ("estimator_sparse_array", "estimator_sparse_matrix", "regressors_no_decision_function")
        result |= {f"check_{name}": "predict_proba has the levels of the number" for name in names}
    return result
