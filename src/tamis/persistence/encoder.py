"""Encodes a value as JSON: a table of nodes, and a list of arrays."""

from __future__ import annotations

import importlib
import json
import math
import struct
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator

from tamis._guard import state_of
from tamis.errors import CheckpointError

# -- the classes whose objects a file may contain ----------------------------------------------------------


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


Json: TypeAlias = Any
Array: TypeAlias = np.ndarray[Any, Any]

PLAIN_KINDS = "biufcSUmM"  # dtype kinds whose arrays consist of plain bytes
BIT_GENERATORS = {
    name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
}
_DERIVED = {"_loss_function_"}  # of scikit-learn's SGD family: recomputed by partial_fit


class Encoder:
    """Writes a value as itself (None, bool, int, float, str), as ``{kind: text}``, or as ``{"at": node}``.

    Attributes
    ----------
    nodes : list
    arrays : list of ndarray
    """

    def __init__(self) -> None:
        self.nodes: list[Json] = []
        self.arrays: list[Array] = []
        # By id; the reference to the object keeps its id from being reused
        self._node_of_id: dict[int, tuple[int, Any]] = {}
        # Tuples, frozensets: equal ones may or may not be one object
        self._node_of_content: dict[str, int] = {}
        self._in_progress: set[int] = set()

    def encode(self, value: Any, path: str) -> Json:
        """Return a value as JSON; `path` is its location in the object, for errors."""
        kind = type(value)
        if value is None or kind in (bool, str) or (kind is int and abs(value) < 2**63):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is int:
            return {"int": hex(value)}  # decimals are limited in their length
        if kind is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, np.generic) and value.dtype.kind in PLAIN_KINDS:
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        return {"at": self._node_index(value, path)}

    def _node_index(self, value: Any, path: str) -> int:
        """Return the index of the value's node in the table."""
        if id(value) in self._in_progress:
            raise TypeError(f"Cannot save {path}: it contains itself.")
        if id(value) not in self._node_of_id:
            self._in_progress.add(id(value))
            node = self._node(value, path)
            self._in_progress.remove(id(value))
            at = len(self.nodes)
            if type(value) in (tuple, frozenset):
                at = self._node_of_content.setdefault(json.dumps(node), at)
            self._node_of_id[id(value)] = at, value
            if at == len(self.nodes):
                self.nodes.append(node)
        return self._node_of_id[id(value)][0]

    def _node(self, value: Any, path: str) -> Json:
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            items = value if kind in (list, tuple) else sorted(value, key=repr)
            return {kind.__name__: [self.encode(item, f"{path}[{i}]") for i, item in enumerate(items)]}
        if kind is dict:
            return {"dict": self._pairs(value, path)}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, path)
        if kind in (sp.csr_matrix, sp.csr_array):
            parts = {
                "data": value.data,
                "indices": value.indices,
                "indptr": value.indptr,
                "shape": value.shape,
            }
            return {kind.__name__: self._pairs(parts, path)}
        if kind is np.random.Generator:
            return {"Generator": self._bits(value.bit_generator, value.bit_generator.state, path)}
        if kind is np.random.RandomState:
            return {"RandomState": self._bits(value._bit_generator, value.get_state(legacy=False), path)}
        if is_instance(value):
            return self._instance(value, path)
        raise TypeError(
            f"Cannot save {path or 'the object'}: it is a {kind.__module__}.{kind.__qualname__}, but only plain values,"
            " arrays, CSR matrices, random number generators, and estimators that contain these can be saved."
        )

    def _pairs(self, mapping: dict[Any, Any], path: str) -> Json:
        pairs = []
        for key, value in mapping.items():
            named = isinstance(key, str) and key.isidentifier()
            at = f"{path}[{key!r}]" if not named else f"{path}.{key}" if path else key
            pairs.append([self.encode(key, f"the key of {at}"), self.encode(value, at)])
        return pairs

    def _array(self, value: Array, path: str) -> Json:
        if value.dtype.kind in PLAIN_KINDS:
            # Zero-width strings take no bytes, so a file could declare any number of them.
            self.arrays.append(value if value.dtype.itemsize else value.astype(f"{value.dtype.kind}1"))
            return {"array": len(self.arrays) - 1}
        if value.dtype.kind != "O":
            raise TypeError(
                f"Cannot save {path or 'the array'}: its dtype is {value.dtype}; convert it first."
            )
        order: Literal["C", "F"] = "F" if value.flags.fnc else "C"
        items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value.ravel(order))]
        return {"objects": [order, list(value.shape), items]}

    def _bits(self, bits: Any, state: Any, path: str) -> Json:
        if BIT_GENERATORS.get(type(bits).__name__) is not type(bits):
            raise TypeError(
                f"Cannot save {path or 'the generator'}: it draws from a {type(bits).__qualname__}."
            )
        seed = bits.seed_seq.state if type(bits.seed_seq) is np.random.SeedSequence else None  # for spawn()
        return self._pairs({"state": state, "seed": seed}, path)

    def _instance(self, value: Any, path: str) -> Json:
        name = full_name(type(value))
        package = name.partition(":")[0].partition(".")[0]
        try:
            find_class(name, {} if is_free(name) else {name: type(value)})
            state = state_of(value)
        except (CheckpointError, ImportError, TypeError):
            raise TypeError(
                f"Cannot save {path or 'the object'}: a {name.replace(':', '.')} is not restored by its attributes."
            ) from None
        if package == "sklearn":
            state = {name: part for name, part in state.items() if name not in _DERIVED}
        return {"instance": [name, self._pairs(state, path)]}
