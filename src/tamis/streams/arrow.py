"""pyarrow and its modules, imported when one of their names is first used: streams of arrays do without them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tamis.errors import import_extra


class _Later:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._module is None:
            self._module = import_extra(self._name, "Tables need pyarrow", "cli")
        return getattr(self._module, name)


pa, pc, kinds = _Later("pyarrow"), _Later("pyarrow.compute"), _Later("pyarrow.types")
csv, ipc, parquet = _Later("pyarrow.csv"), _Later("pyarrow.ipc"), _Later("pyarrow.parquet")
