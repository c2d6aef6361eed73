"""Classes as declared in their source: read from the syntax tree, without importing a module.

The list of the catalogue needs two attributes and one docstring line per class; importing the classes would import
scikit-learn and SciPy too, which takes seconds.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).parent


@dataclass(frozen=True)
class Declaration:
    """A class of the package that is not imported.

    Attributes
    ----------
    module : str
        Module that defines the class.
    title : str
        First line of its docstring; empty without one.
    members : dict of str to object
        Names that the class itself defines: the values of literals, None for methods and everything else.
    bases : tuple of Declaration
        Base classes that belong to the package.

    Examples
    --------
    >>> ofs = declared("tamis.rows", "OFS")
    >>> ofs.module, ofs.get("claims")["sparse_time"], "merge" in ofs
    ('tamis.rows.ofs', True, True)
    """

    module: str
    title: str
    members: dict[str, Any]
    bases: tuple[Declaration, ...]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a class attribute, own or inherited."""
        return next((one.members[name] for one in self._lineage() if name in one.members), default)

    def __contains__(self, name: object) -> bool:
        return any(name in one.members for one in self._lineage())

    def _lineage(self) -> Iterator[Declaration]:
        yield self
        for base in self.bases:
            yield from base._lineage()


@functools.cache
def declared(module: str, name: str) -> Declaration | None:
    """Return the declaration of a class that a module defines or imports; None outside the package."""
    tree = _tree(module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            bases = [declared(module, ast.unparse(base)) for base in node.bases]
            doc = inspect.cleandoc(ast.get_docstring(node) or "")
            inside = tuple(base for base in bases if base is not None)
            return Declaration(module, doc.partition("\n")[0], dict(_members(node)), inside)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return declared(node.module, alias.name)
    return None


@functools.cache
def class_node(module: str, name: str) -> ast.ClassDef | None:
    """Return the definition of a class in the source of a module of the package."""
    tree = _tree(module)
    classes = (one for one in (tree.body if tree else ()) if isinstance(one, ast.ClassDef))
    return next((one for one in classes if one.name == name), None)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield part.name, None
        elif isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
            for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                yield ast.unparse(target), _value(part.value)


def _value(node: ast.expr) -> Any:
    """Return the value of a literal, and the keywords of a call such as ``Claims(sparse_time=True)``."""
    if isinstance(node, ast.Call):
        return {str(one.arg): _value(one.value) for one in node.keywords}
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


@functools.cache
def _tree(module: str) -> ast.Module | None:
    package, *names = module.split(".")
    path = _SOURCE.joinpath(*names)
    imported = getattr(sys.modules.get(module), "__file__", None)
    for file in map(Path, [imported] if imported else [path / "__init__.py", path.with_suffix(".py")]):
        if package == "tamis" and file.is_file():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None
