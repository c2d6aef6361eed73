"""The classes whose objects a file may contain, and the attributes that such an object must have."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from tamis._validation import safe_repr
from tamis.errors import CheckpointError

__all__ = ["check_attributes", "find_class", "full_name", "is_free", "is_instance"]

_PUBLIC = {f"sklearn.{module}" for module in (*sklearn.__all__, "feature_extraction.text")}
# Estimators of other libraries that are saved unfitted: their attributes are the parameters that they are fitted with.
_UNFITTED = {
    "lightgbm.sklearn": ("LGBMClassifier", "LGBMRegressor"),
    "xgboost.sklearn": ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
}


def is_instance(value: Any) -> bool:
    """Return whether the value is an object that is saved by its attributes."""
    return isinstance(value, BaseEstimator) or type(value).__module__.partition(".")[0] == "tamis"


def is_free(name: str, cls: type) -> bool:
    """Return whether files with objects of a class, by its full name, are loaded without naming it."""
    module, _, short = name.partition(":")
    is_known = module.partition(".")[0] in ("tamis", "sklearn") or short in _UNFITTED.get(module, ())
    return is_known and not hasattr(cls, "loaded_if_named")


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
        if getattr(result, "loaded_if_named", False):
            raise CheckpointError(
                f"The file contains a {short}, which executes code from its author: if you trust the author, load the"
                f" file with classes=[{short}]."
            )
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


# -- attributes of an object ------------------------------------------------------------------------------


def check_attributes(cls: type, attributes: dict[Any, Any]) -> None:
    """Validate the attribute names of a loaded object of the class.

    Raises
    ------
    CheckpointError
        If an attribute is impossible, or if one is missing.
    """
    for name in attributes:
        if type(name) is not str or not name.isidentifier() or name.startswith("__"):
            raise CheckpointError(
                f"The file assigns to a {cls.__name__} the impossible attribute {safe_repr(name)}."
            )
    missing = _required_attributes(cls) - attributes.keys()
    # An attribute with a class-level default may be set before the object is fitted.
    stated = {name for name in attributes if not hasattr(cls, name)}
    if not missing and stated - _parameters(cls):
        missing = _fitted_attributes(cls) - attributes.keys()
    for group in _attribute_groups(cls) if not missing else ():
        missing |= group - attributes.keys() if group & attributes.keys() else set()
    if missing:
        raise CheckpointError(
            f"The file contains a {cls.__name__} without the required attribute {min(missing)!r}: save it again."
        )


def _parameters(cls: type) -> frozenset[str]:
    get_names: Any = getattr(cls, "_get_param_names", tuple)
    return frozenset(get_names())


@functools.cache
def _required_attributes(cls: type) -> frozenset[str]:
    """Return the attributes that every object of the class has."""
    if issubclass(cls, BaseEstimator):
        return _parameters(cls)
    if dataclasses.is_dataclass(cls):
        return frozenset(field.name for field in dataclasses.fields(cls))
    return _assigned_attributes(cls, "__init__") if cls.__module__.startswith("tamis.") else frozenset()


@functools.cache
def _fitted_attributes(cls: type) -> frozenset[str]:
    """Return the attributes that every fitted estimator of the class has."""
    members: set[str] = set()
    if cls.__module__.startswith("tamis."):
        for name in getattr(cls, "_fitted_by", ()):  # methods that were run, and attributes
            members |= _assigned_attributes(cls, name) if hasattr(cls, name) else {name}
    return frozenset(members)


@functools.cache
def _attribute_groups(cls: type) -> tuple[frozenset[str], ...]:
    """Return attributes that are set together, later than the others."""
    methods = getattr(cls, "_jointly_set_by", ()) if cls.__module__.startswith("tamis.") else ()
    return tuple(
        _assigned_attributes(cls, method) - _required_attributes(cls) - _fitted_attributes(cls)
        for method in methods
    )


def _assigned_attributes(cls: type, method: str, bases: tuple[type, ...] | None = None) -> frozenset[str]:
    """Return the attributes that a method sets on every path, itself or through the methods that it calls."""
    bases = cls.__mro__ if bases is None else bases
    i = next((i for i, base in enumerate(bases) if method in vars(base)), None)
    if i is None:
        return frozenset()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(vars(bases[i])[method]))).body[0]
    except (OSError, TypeError, SyntaxError):  # no source: nothing is known
        return frozenset()
    members: set[str] = set()
    for name, on_super in _certain_steps(getattr(tree, "body", []))[0]:
        if on_super is None:
            members.add(name)
        elif on_super or name != method:
            members |= _assigned_attributes(cls, name, bases[i + 1 :] if on_super else None)
    return frozenset(members)


# An attribute that is set, with None; or a method that is called, and whether on super().
_Steps = set[tuple[str, bool | None]]


def _certain_steps(statements: Iterable[ast.stmt]) -> tuple[_Steps, bool]:
    """Return the steps that statements always execute, and whether they may return from the method."""
    steps: _Steps = set()
    for statement in statements:
        leaves = False
        if isinstance(statement, ast.If):
            (one, leaves), (other, other_leaves) = (
                _certain_steps(statement.body),
                _certain_steps(statement.orelse),
            )
            leaves |= other_leaves
            steps |= other if _raises(statement.body) else one if _raises(statement.orelse) else one & other
        elif isinstance(statement, ast.With | ast.Try):
            inner, leaves = _certain_steps(statement.body)
            steps |= inner
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            steps |= set(_statement_steps(statement))
        leaves |= any(isinstance(part, ast.Return) for part in ast.walk(statement))
        if leaves:
            return steps, True
    return steps, False


def _statement_steps(statement: ast.Assign | ast.AnnAssign | ast.Expr) -> Iterator[tuple[str, bool | None]]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets if statement.value is not None else []:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Attribute) and _is_self(part.value):
                yield part.attr, None
    call = statement.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        on = call.func.value
        on_super = isinstance(on, ast.Call) and isinstance(on.func, ast.Name) and on.func.id == "super"
        if on_super or _is_self(on):
            yield call.func.attr, on_super


def _raises(statements: list[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Raise)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
