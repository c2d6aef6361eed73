"""The classes whose objects a file may contain."""

from __future__ import annotations

import importlib
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from tamis.errors import CheckpointError

_PUBLIC = {f"sklearn.{module}" for module in (*sklearn.__all__, "feature_extraction.text")}
# Estimators of other libraries that are saved unfitted: their attributes are the parameters that they are fitted with.
_UNFITTED = {
    "lightgbm.sklearn": ("LGBMClassifier", "LGBMRegressor"),
    "xgboost.sklearn": ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
}


def is_instance(value: Any) -> bool:
    """Return whether the value is an object that is saved by its attributes."""
    return isinstance(value, BaseEstimator) or type(value).__module__.partition(".")[0] == "tamis"


def is_free(name: str) -> bool:
    """Return whether files with objects of a class, by its full name, are loaded without naming it."""
    module, _, short = name.partition(":")
    return module.partition(".")[0] in ("tamis", "sklearn") or short in _UNFITTED.get(module, ())


def full_name(cls: type) -> str:
    """Return the name that `find_class` resolves; for a class of scikit-learn, the one in its public module."""
    module = cls.__module__
    if module.startswith("sklearn."):
        module = module.partition("._")[0]
    return f"{module}:{cls.__qualname__}"


def find_class(name: str, classes: dict[str, type]) -> type:
    """Return a class by its name; only modules of Tamis and public ones of scikit-learn are imported."""
    module, _, short = name.partition(":")
    result: Any = classes.get(name)
    if result is None and module.partition(".")[0] == "tamis" and "__main__" not in module:
        result = getattr(_import_or_none(module), short, None)
    elif result is None and module in _PUBLIC:
        result = getattr(_import_or_none(module), short, None)
        result = result if isinstance(result, type) and issubclass(result, BaseEstimator) else None
    elif result is None and short in _UNFITTED.get(module, ()):
        result = getattr(_import_or_none(module), short, None)
        if result is None:
            package = module.partition(".")[0]
            raise CheckpointError(f"The file contains a {short}: pip install {package} to load it.")
    has_plain_new = result.__new__ is object.__new__  # false for every class whose __new__ needs arguments
    if not has_plain_new or not isinstance(result, type) or full_name(result) != name:
        raise CheckpointError(
            f"The file contains an object of class {name.replace(':', '.')}, which belongs neither to Tamis nor to the"
            f" public estimators of scikit-learn: if it is yours, load the file with classes=[{short}]."
        )
    return result


def _import_or_none(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, ValueError):
        return None
