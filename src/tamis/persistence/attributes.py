"""The attributes that a saved object must have, and the type of each, read from the source of its class."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import math
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tamis._declarations import class_node
from tamis._validation import safe_repr, short_repr
from tamis._validation.parameters import allowed
from tamis.errors import CheckpointError


def check_attributes(cls: type, attributes: dict[Any, Any]) -> None:
    """Validate names and types of the attributes of a loaded object of the class.

    Raises
    ------
    CheckpointError
        If an attribute is impossible, missing, or of another type.
    """
    for name in attributes:
        if type(name) is not str or not name.isidentifier() or name.startswith("__"):
            raise CheckpointError(
                f"The file assigns to a {cls.__name__} the impossible attribute {safe_repr(name)}."
            )
    missing = _required_attributes(cls) - attributes.keys()
    if not missing and is_fitted(cls, attributes):
        missing = _declared_attributes(cls) - attributes.keys()
    for group in _attribute_groups(cls) if not missing else ():
        missing |= group - attributes.keys() if group & attributes.keys() else set()
    if missing:
        raise CheckpointError(
            f"The file contains a {cls.__name__} without the required attribute {min(missing)!r}: save it again."
        )
    for name, kind in attribute_types(cls).items():
        if name in attributes and not _is_of_type(attributes[name], kind):
            raise CheckpointError(
                f"The file contains a {cls.__name__} whose {name!r} is {short_repr(attributes[name])}, which is not of"
                f" type {getattr(kind, '__name__', kind)}: save it again."
            )


def is_fitted(cls: type, attributes: dict[Any, Any]) -> bool:
    """Return whether attributes are those of a fitted object; one with a class-level default may be set before."""
    return any(name not in _parameters(cls) and not hasattr(cls, name) for name in attributes)


@functools.cache
def _parameters(cls: type) -> frozenset[str]:
    get_names: Any = getattr(cls, "_get_param_names", tuple)
    return frozenset(get_names())


# -- required attributes ----------------------------------------------------------------------------------


@functools.cache
def _required_attributes(cls: type) -> frozenset[str]:
    """Return the attributes that every object of the class has."""
    if issubclass(cls, BaseEstimator):
        return _parameters(cls)
    if dataclasses.is_dataclass(cls):
        return _assigned_attributes(cls, "__post_init__") | {field.name for field in dataclasses.fields(cls)}
    return _assigned_attributes(cls, "__init__") if cls.__module__.startswith("tamis.") else frozenset()


# Methods that allocate a state, in turn: of what one of them adds, a loaded object has all attributes or none.
_STARTS = ("_initialize", "_start", "_fit", "start", "_begin", "_build")


@functools.cache
def _declared_attributes(cls: type) -> frozenset[str]:
    """Return the attributes that every fitted object of the class has, by its `_shapes`; a subclass may have none."""
    is_own = cls.__module__.startswith("tamis.")
    names: Any = getattr(getattr(cls, "_state_spec", None), "required", ()) if is_own else ()
    return frozenset(name for name in names if not hasattr(cls, name))


@functools.cache
def _attribute_groups(cls: type) -> tuple[frozenset[str], ...]:
    """Return attributes that are set together."""
    if not cls.__module__.startswith("tamis."):
        return ()
    groups, before = list[frozenset[str]](), _required_attributes(cls)
    for name in _STARTS:
        groups.append(_assigned_attributes(cls, name) - before)
        before |= groups[-1]
    return tuple(groups)


def _assigned_attributes(cls: type, method: str, bases: tuple[type, ...] | None = None) -> frozenset[str]:
    """Return the attributes that a method sets on every path, itself or through the methods that it calls."""
    bases = cls.__mro__ if bases is None else bases
    i = next((i for i, base in enumerate(bases) if method in vars(base)), None)
    node = None if i is None else class_node(bases[i].__module__, bases[i].__qualname__)
    body = [part for part in (node.body if node else ()) if getattr(part, "name", "") == method]
    if i is None or not body:  # no source: nothing is known
        return frozenset()
    members: set[str] = set()
    for name, on_super in _certain_steps(getattr(body[-1], "body", []))[0]:
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
            one, leaves = _certain_steps(statement.body)
            other, other_leaves = _certain_steps(statement.orelse)
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


# -- types of attributes ----------------------------------------------------------------------------------

_BUILTINS = (list, dict, set, frozenset, tuple, str, int, float, bool, bytes, len, repr)
_MAKERS = {getattr(np, name) for name in (
    "arange", "array", "asarray", "ascontiguousarray", "asfortranarray", "concatenate", "diagonal", "empty",
    "empty_like", "eye", "full", "full_like", "ones", "ones_like", "pad", "stack", "vstack", "zeros", "zeros_like",
)}  # fmt: skip


_DISPLAYS: dict[type, Any] = {
    ast.List: list, ast.ListComp: list, ast.Dict: dict, ast.DictComp: dict, ast.Set: set, ast.SetComp: set,
    ast.Tuple: tuple, ast.JoinedStr: str,
}  # fmt: skip


@functools.cache
def attribute_types(cls: type) -> dict[str, Any]:
    """Return the type of each attribute, except parameters of estimators and attributes that may be anything.

    It is the one that a type checker infers: the annotation, or the type of the first assignment. Parameters are
    validated by what the class allows.
    """
    kinds: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, kind in _own_types(base).items():
            if kinds.get(name, Any) is Any:  # a subclass may narrow what may be anything in its base
                kinds[name] = kind
    free = _parameters(cls) if issubclass(cls, BaseEstimator) and allowed(cls) else frozenset()
    return {name: kind for name, kind in kinds.items() if kind is not Any and name not in free}


@functools.cache
def _own_types(cls: type) -> dict[str, Any]:
    """Return the types of the attributes that a class itself assigns."""
    node = class_node(cls.__module__, cls.__qualname__)
    scope = vars(sys.modules[cls.__module__]) if node else {}
    kinds: dict[str, Any] = {}
    inferred: dict[str, Any] = {}
    for part in node.body if node else ():
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            kinds[part.target.id] = _evaluate(part.annotation, scope)
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            inferred[part.targets[0].id] = _Inference(cls, scope, {}).type_of(part.value)
        elif isinstance(part, ast.FunctionDef) and part.args.args:
            arguments = (*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs)
            local = {arg.arg: arg.annotation for arg in arguments}
            for target, annotation, value in _assignments(part):
                if annotation is not None:
                    kinds.setdefault(target, _evaluate(annotation, scope))
                else:
                    inferred.setdefault(target, _Inference(cls, scope, local).type_of(value))
    return inferred | kinds


def _assignments(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Yield name, annotation and value of each assignment to an attribute, in the order of the source."""
    for statement in _statements(method.body):
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        if isinstance(statement, ast.AnnAssign):
            pairs: list[tuple[ast.expr, ast.expr | None]] = [(statement.target, statement.value)]
        else:
            pairs = [pair for target in statement.targets for pair in _pairs(target, statement.value)]
        for target, value in pairs:
            if isinstance(target, ast.Attribute) and _is_self(target.value):
                yield target.attr, getattr(statement, "annotation", None), value


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        parts: list[Any] = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
        for part in parts:
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(part, field, []))


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(part, None) for part in target.elts]


def _evaluate(annotation: ast.expr | None, scope: dict[str, Any]) -> Any:
    """Return the type that an annotation denotes; Any if it is imported for type checkers only."""
    if annotation is None:
        return Any
    try:
        return eval(ast.unparse(annotation), scope)
    except (NameError, AttributeError, TypeError):
        return Any


@dataclasses.dataclass
class _Inference:
    """The types of expressions in a method."""

    cls: type
    scope: dict[str, Any]
    local: dict[str, ast.expr | None]  # annotations of the arguments

    def type_of(self, value: ast.expr | None) -> Any:
        """Return the type of an expression; Any if it is unknown."""
        if isinstance(value, ast.Constant):
            return Any if value.value is None else type(value.value)
        if isinstance(value, ast.Name) and value.id in self.local:
            return _evaluate(self.local[value.id], self.scope)
        if isinstance(value, ast.Name | ast.Attribute):
            constant = self._resolve(value)
            return type(constant) if isinstance(constant, int | float | str) else Any
        if isinstance(value, ast.UnaryOp):
            return bool if isinstance(value.op, ast.Not) else self.type_of(value.operand)
        if isinstance(value, ast.Compare) and isinstance(value.comparators[0], ast.Constant):  # of a word
            return bool if isinstance(value.comparators[0].value, str) else Any
        if isinstance(value, ast.BoolOp):
            return self._either(*value.values)
        if isinstance(value, ast.IfExp):
            return self._either(value.body, value.orelse)
        if isinstance(value, ast.Call):
            return self._of_call(value)
        if isinstance(value, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in value.elts):
            return tuple[tuple(map(self.type_of, value.elts))]  # type: ignore[misc]
        if isinstance(value, ast.List) and value.elts:
            return list[self._either(*value.elts)]  # type: ignore[misc]
        if isinstance(value, ast.ListComp):
            return list[self.type_of(value.elt)]  # type: ignore[misc]
        return _DISPLAYS.get(type(value), Any)

    def _either(self, *values: ast.expr) -> Any:
        kinds = [None if getattr(one, "value", one) is None else self.type_of(one) for one in values]
        return Any if Any in kinds else typing.Union[tuple(kinds)]  # noqa: UP007  of a list

    def _of_call(self, call: ast.Call) -> Any:
        if isinstance(call.func, ast.Subscript):  # list[int]()
            return _evaluate(call.func, self.scope)
        function = self._resolve(call.func)
        if function in _BUILTINS:
            return int if function is len else str if function is repr else function
        if function in _MAKERS:
            return np.ndarray
        if getattr(function, "__module__", "") == "math":
            return int if function in (math.ceil, math.floor) else float
        if isinstance(function, type):
            return function if function.__module__.partition(".")[0] in ("tamis", "numpy") else Any
        function = inspect.unwrap(function) if callable(function) else None
        returned = getattr(function, "__annotations__", {}).get("return", "Any")
        names: Any = getattr(function, "__globals__", {})
        try:
            return eval(returned, names) if isinstance(returned, str) else returned
        except (NameError, AttributeError, TypeError):
            return Any

    def _resolve(self, function: ast.expr) -> Any:
        """Return what is called, if it is a name of the module, of a module or class there, or a method."""
        if isinstance(function, ast.Name):
            if function.id in self.local:
                return None
            return self.scope.get(function.id, vars(builtins).get(function.id))
        if isinstance(function, ast.Attribute):
            owner = self.cls if _is_self(function.value) else self._resolve(function.value)
            return getattr(owner, function.attr, None) if isinstance(owner, type | types.ModuleType) else None
        return None


def _is_of_type(value: Any, kind: Any) -> bool:
    """Return whether a value is of a type, with the elements of containers, as a type checker understands it."""
    if kind is Any or kind is typing.Self or isinstance(kind, typing.TypeVar | str):
        return True
    if kind is None or kind is type(None):
        return value is None
    if kind in (int, float):
        numbers = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
        return isinstance(value, numbers) and type(value) is not bool
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of_type(value, one) for one in of)
    if origin is typing.Literal:
        return value in of
    if origin is tuple and of[-1:] != (...,):
        return type(value) is tuple and len(value) == len(of) and all(map(_is_of_type, value, of))
    if origin in (list, set, frozenset, tuple):
        return type(value) is origin and all(_is_of_type(item, of[0]) for item in value)
    if origin is dict:
        return type(value) is dict and all(
            _is_of_type(key, of[0]) and _is_of_type(item, of[1]) for key, item in value.items()
        )
    if origin is np.ndarray:
        (scalar,) = typing.get_args(of[1]) or (Any,)
        return type(value) is np.ndarray and (
            scalar is Any or (issubclass(value.dtype.type, scalar) and value.dtype.isnative)
        )
    origin = kind if origin is None else origin
    if getattr(origin, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(origin) if not name.startswith("_"))
    return isinstance(value, origin) if isinstance(origin, type) else True
