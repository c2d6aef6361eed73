"""The live model and its input: rows as numbers for the watch, and as the caller's frame for the model.

Text and categories are codes in the order in which they first appear; a missing one is NaN. The model gets the frame
back, also for rows with replaced values, so that a pipeline with a OneHotEncoder, LightGBM's categories and a model of
MLflow see the columns that they were fitted on.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from tamis._guard import ThreadSafe
from tamis._validation import Array, Floats, as_rows, as_table, is_missing
from tamis.base.categories import MAX_CATEGORIES, CategoryCodes, split_rows
from tamis.base.rows import describe_differences
from tamis.errors import DataError
from tamis.importance.predictions import is_numeric


class ModelInput(ThreadSafe):
    """The columns of the frames that a model gets; immutable.

    Parameters
    ----------
    library : str, default=""
        "pandas", "polars" or "pyarrow"; "" for arrays, and for frames of numbers.
    names : list, optional
        The names of the columns as the caller gave them.
    categories : dict of int to list, optional
        The values of each column of text or categories, in the order of their codes.
    of_type : list of int, optional
        The columns whose type is categorical, not text.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"heat": [1.5, 2.0], "town": ["Rome", None]})
    >>> given, rows, names = ModelInput().encoded(frame)
    >>> rows.tolist(), given.frame(rows[:1]).to_dict("records")
    ([[1.5, 0.0], [2.0, nan]], [{'heat': 1.5, 'town': 'Rome'}])
    """

    def __init__(
        self,
        library: str = "",
        names: list[Any] | None = None,
        categories: dict[int, list[Any]] | None = None,
        of_type: list[int] | None = None,
    ) -> None:
        self.library, self.names = library, names or []
        self.categories, self.of_type = categories or {}, of_type or []

    def encoded(self, X: Any, model: Any = None) -> tuple[ModelInput, Any, list[str] | None]:
        """Return the input with new categories, the rows as numbers, and the names of their columns.

        A model of MLflow gets a frame of numbers, too, as its signature names the columns.

        Raises
        ------
        DataError
            If the columns are others, one of numbers has become text, or a value is neither.
        """
        table = as_table(X)
        found = [] if table is None else table.categorical
        is_signed = getattr(getattr(model, "metadata", None), "signature", None) is not None
        if table is None or not (found or self.categories or is_signed):
            return self, *as_rows(X)
        if self.names and table.own_names != self.names:
            raise DataError(describe_differences(table.texts, [*map(str, self.names)]))
        if self.names and (new := sorted(set(found) - set(self.categories))):
            raise DataError(
                f"Column {table.own_names[new[0]]!r} has text, but had numbers in the first rows: convert it."
            )
        raw, rows, names = split_rows(table, sorted({*found, *self.categories}))
        numbers, categories = np.array(rows, dtype=np.float64), dict(self.categories)
        for j, values in raw.items():
            codes = CategoryCodes(categories.get(j, ()), MAX_CATEGORIES)
            numbers[:, j] = [np.nan if is_missing(value) else codes.add(value) for value in values]
            categories[j] = codes.values
        if self.names:
            return ModelInput(self.library, self.names, categories, self.of_type), numbers, names
        of_type = [j for j in found if table.column(j).dtype in (nw.Categorical, nw.Enum)]
        library = nw.from_native(table.native, eager_only=True).implementation.value
        return ModelInput(library, list(table.own_names), categories, of_type), numbers, names

    def _column(self, j: int, values: Array) -> Any:
        if j not in self.categories:
            return values
        known = self.categories[j]
        return [known[int(code)] if code < len(known) else None for code in values.tolist()]

    def frame(self, X: Floats) -> Any:
        """Return rows as a frame of the caller's library; arrays unless it had text or categories."""
        if not self.library:
            return X
        columns = {name: self._column(j, X[:, j]) for j, name in enumerate(self.names)}
        if self.library == "pandas":  # its names may be of any type
            import pandas as pd

            frame = pd.DataFrame(columns)
            return frame.astype({self.names[j]: "category" for j in self.of_type})
        backend: Any = self.library
        frame = nw.from_dict(columns, backend=backend)
        casts = [nw.col(self.names[j]).cast(nw.Categorical) for j in self.of_type]
        return frame.with_columns(*casts).to_native()

    def row(self, row: dict[Any, Any]) -> dict[Any, Any]:
        """Return a row with the caller's names and categories."""
        if not self.names:
            return row
        values = [self._column(j, np.array([value]))[0] for j, value in enumerate(row.values())]
        return dict(zip(self.names, values, strict=True))


class LiveModel:
    """A model that is called with encoded rows.

    Parameters
    ----------
    model : object
    given : ModelInput
    has_probabilities : bool
        Whether a function, or `predict`, returns a probability of each class.
    """

    def __init__(self, model: Any, given: ModelInput, *, has_probabilities: bool) -> None:
        self.model, self.given, self.has_probabilities = model, given, has_probabilities

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and self.has_probabilities:
            return self
        member = getattr(self.model, name)
        if name in ("predict", "predict_proba", "decision_function"):
            return lambda X: member(self.given.frame(X))
        if name in ("predict_one", "predict_proba_one"):
            return lambda row: member(self.given.row(row))
        return member

    def __call__(self, X: Floats) -> Any:
        """Return what the function, or `predict`, returns of encoded rows."""
        return getattr(self.model, "predict", self.model)(self.given.frame(X))


def returns_probabilities(model: Any, X: Any) -> bool:
    """Return whether a model without `predict_proba` returns a row of probabilities per row."""
    if not is_numeric("auto", model) or hasattr(model, "predict_one"):
        return False
    function = getattr(model, "predict", model)
    output: Array = np.asarray(function(X) if callable(function) else ())
    return output.ndim == 2 and output.shape[1] > 1
