"""scikit-learn's base classes without the modules that it imports along with them and that they do not use.

``import sklearn.base`` imports ``scipy.stats`` and, where installed, pandas, for functions of other estimators: two
thirds of its time. Importing this module before scikit-learn defers both until something needs them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """A stand-in for a module, which is imported when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Let imports of these modules within this context take effect when the modules are first used.

    Modules that are imported already, or not installed, are unchanged. Another thread that imports one of them
    meanwhile receives a module that behaves like the original.

    Parameters
    ----------
    *names : str
        Modules, with the packages that contain them.

    Examples
    --------
    >>> with deferred("wave"):
    ...     import wave
    >>> "wave" in sys.modules
    False
    >>> wave.Error.__name__, "wave" in sys.modules
    ('Error', True)
    """
    places = {}
    for name in names:
        spec = None
        with contextlib.suppress(ImportError):
            spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is not None:
            places[name] = sys.modules[name] = _Deferred(name)
            places[name].__spec__ = spec
    try:
        yield
    finally:
        for name, place in places.items():
            if sys.modules.get(name) is place:
                del sys.modules[name]


def is_instance(value: Any, module: str, *names: str) -> bool:
    """Return whether a value is an instance of one of the classes of a module, without importing the module.

    Examples
    --------
    >>> from fractions import Fraction
    >>> is_instance(Fraction(1, 2), "fractions", "Fraction"), is_instance(0.5, "fractions", "Fraction")
    (True, False)
    """
    imported = sys.modules.get(module)
    return imported is not None and isinstance(value, tuple(getattr(imported, name) for name in names))


with deferred("scipy.stats", "pandas"):
    import sklearn.base  # noqa: F401
