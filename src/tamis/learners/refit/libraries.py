"""Estimators of other libraries: created by name, seeded, and informed of categorical columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from tamis._validation import Array, Floats, Rows


def _lightgbm(name: str) -> Any:
    try:
        import lightgbm
    except ImportError:
        raise ImportError("estimator='lightgbm' needs LightGBM: pip install 'tamis[boosting]'.") from None
    # Without these two, LightGBM times two ways of building histograms and chooses the faster: results then vary.
    return getattr(lightgbm, name)(n_jobs=1, verbose=-1, deterministic=True, force_col_wise=True)


def _random_forest(name: str) -> Any:
    from sklearn import ensemble

    return getattr(ensemble, name)(n_jobs=1)


def _hist_boosting(name: str) -> Any:
    from sklearn import ensemble

    return getattr(ensemble, name)()


# The estimators available by name, and the functions that create them.
NAMES: dict[str, Callable[[], Any]] = {
    "lightgbm": lambda: _lightgbm("LGBMClassifier"),
    "lightgbm-regressor": lambda: _lightgbm("LGBMRegressor"),
    "random-forest": lambda: _random_forest("RandomForestClassifier"),
    "random-forest-regressor": lambda: _random_forest("RandomForestRegressor"),
    "hist-boosting": lambda: _hist_boosting("HistGradientBoostingClassifier"),
    "hist-boosting-regressor": lambda: _hist_boosting("HistGradientBoostingRegressor"),
}


def new_recipe(estimator: Any, seed: int | None) -> Any:
    """Return an unfitted estimator; each of its `random_state` parameters that is None gets the seed.

    Examples
    --------
    >>> new_recipe("random-forest", 7).random_state
    7
    """
    recipe = NAMES[estimator]() if isinstance(estimator, str) else clone(estimator)
    parameters = recipe.get_params(deep=True)
    unset = [
        name for name, value in parameters.items() if name.split("__")[-1] == "random_state" and value is None
    ]
    return recipe.set_params(**dict.fromkeys(sorted(unset), seed)) if unset else recipe


def library_of(estimator: Any) -> str:
    """Return the top-level package of an estimator's class, or that of the library that it inherits from."""
    packages = [base.__module__.partition(".")[0] for base in type(estimator).__mro__]
    return next((name for name in packages if name in ("lightgbm", "xgboost", "catboost")), packages[0])


def accepts_weights(estimator: Any) -> bool:
    """Return whether `fit` has a parameter `sample_weight`."""
    return bool(has_fit_parameter(estimator, "sample_weight"))


def importances_of(model: Any, X: Any, y: Array) -> Floats:
    """Return the importance of each column for a fitted model.

    LightGBM: the total gain of its splits. Others: `feature_importances_`, or without them the loss of log-likelihood
    (or R^2) if the values of a column are permuted in the last thousand rows.
    """
    if library_of(model) == "lightgbm":
        return np.asarray(model.booster_.feature_importance("gain"), dtype=np.float64)
    if hasattr(model, "feature_importances_"):
        return np.asarray(model.feature_importances_, dtype=np.float64)
    from sklearn.inspection import permutation_importance

    X, y = X[-_PERMUTED:], y[-_PERMUTED:]
    has_proba = hasattr(model, "predict_proba") and len(np.unique(y)) == len(model.classes_)
    scoring = "neg_log_loss" if has_proba else None
    X = X.toarray() if sp.issparse(X) else X
    result = permutation_importance(model, X, y, scoring=scoring, n_repeats=1, random_state=0)
    return np.maximum(result.importances_mean, 0.0)


def with_categories(estimator: Any, X: Rows, categorical: NDArray[np.intp]) -> tuple[Any, dict[str, Any]]:
    """Return the rows in the format of the estimator's `fit` and `predict`, and the options of `fit`.

    Parameters
    ----------
    estimator : estimator
        Unfitted or fitted; a parameter that names categorical columns is set where the library has one.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    categorical : ndarray of int
        Categorical columns, whose numbers are codes.

    Notes
    -----
    LightGBM: `categorical_feature` of `fit`. XGBoost: its parameters `feature_types` and `enable_categorical`.
    CatBoost: `cat_features` of `fit`, the columns as text. scikit-learn's histogram boosting: its parameter
    `categorical_features`, for columns with at most 255 categories in the rows. Other estimators get the codes as
    numbers.
    """
    if len(categorical) == 0 or sp.issparse(X):
        return X, {}
    library = library_of(estimator)
    if library == "lightgbm":
        return X, {"categorical_feature": categorical.tolist()}
    if library == "xgboost":
        types = np.full(X.shape[1], "q", dtype=object)
        types[categorical] = "c"
        estimator.set_params(feature_types=types.tolist(), enable_categorical=True)
    elif library == "catboost":
        cells = X.astype(object)
        cells[:, categorical] = X[:, categorical].astype(str)
        return cells, {"cat_features": categorical.tolist()}
    elif type(estimator).__name__.startswith("HistGradientBoosting"):
        few = [j for j in categorical.tolist() if len(np.unique(X[~np.isnan(X[:, j]), j])) <= _MOST_BINS]
        estimator.set_params(categorical_features=few)
    return X, {}


_MOST_BINS = 255
_PERMUTED = 1000
