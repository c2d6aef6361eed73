"""What a row selector must remember of earlier rows to accept further ones: encoder and target levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._validation import Array, Rows, as_rows, as_target, encode_labels
from tamis.base.categories import split_rows
from tamis.base.numeric_target import TargetLevels
from tamis.base.row_encoder import RowEncoder, class_targets
from tamis.errors import DataError


class RowIntake:
    """Splits rows, encodes their categories and labels; immutable.

    Parameters
    ----------
    encoder : RowEncoder, optional
        If the method requires complete numeric rows.
    levels : TargetLevels, optional
        Of a numeric target, for classification methods.
    n_unlabelled : int, default=0
        Number of rows without labels so far.

    Examples
    --------
    >>> from tamis import FIRES
    >>> selector = FIRES(1).fit([[1.0, 2.0], [3.0, np.nan]], ["a", "b"])
    >>> selector._intake.target_of(selector, np.array(["b", "c"]), 2)[0]
    array([1, 2])
    """

    def __init__(
        self, encoder: RowEncoder | None = None, levels: TargetLevels | None = None, n_unlabelled: int = 0
    ) -> None:
        self.encoder, self.levels = encoder, levels
        self.n_unlabelled = n_unlabelled

    def split(self, selector: Any, X: Any) -> tuple[dict[int, list[Any]], Rows, list[str] | None]:
        """Return the categories of the rows, the rows with 0 in their place, and the names of the columns."""
        if not selector.accepts.categories:
            return {}, *as_rows(X)
        encoder = self.encoder
        declared = vars(selector).get("categorical") if encoder is None else list(encoder.categories) or None
        if declared is None and type(X) is np.ndarray:
            return {}, *as_rows(X)
        raw, rows, names = split_rows(X, declared)
        if encoder is not None and (new := [j for j in raw if j not in encoder.categories]):
            raise DataError(
                f"Column {names[new[0]] if names else new[0]!r} has categories, but had numbers in earlier rows:"
                f" name it in categorical, and start a new {type(selector).__name__}."
            )
        return raw, rows, names

    def encode(
        self,
        X: Rows,
        raw: dict[int, list[Any]],
        y: Array,
        sample_weight: Array | None,
        names: list[str] | None,
    ) -> tuple[Rows, RowEncoder | None]:
        """Return complete numeric rows, and the updated encoder."""
        if self.encoder is None:
            return X, None
        numbers = class_targets(y) if raw and y.dtype == np.int64 and self.levels is None else y
        return self.encoder.with_rows(X, raw, numbers, sample_weight, names)

    def check_target(self, selector: Any, y: Array | None) -> None:
        """Reject a target with missing values, of rows of weight 0 too."""
        if y is not None and (selector._is_regression() or self.levels is not None):
            as_target(y)
        elif y is not None:
            encode_labels(y, np.array([]))

    def target_of(self, selector: Any, y: Array | None, n_rows: int) -> tuple[Any, ...]:
        """Return the target of a regression, or codes, with all classes, those not seen yet, and the levels."""
        levels, is_regression = self.levels, selector._is_regression()
        if y is None:
            known = () if is_regression else (selector.classes_, selector._unseen, levels)
            return np.zeros(n_rows, np.float64 if is_regression else np.int64), *known
        if levels is not None:
            codes, levels, classes = *levels.with_rows(as_target(y)), selector.classes_
        elif is_regression:
            return (as_target(y),)
        else:
            codes, classes = encode_labels(y, selector.classes_)
        n_known, unseen = len(selector.classes_), selector._unseen
        if len(unseen) or len(classes) > n_known:
            unseen = np.concatenate([unseen, np.arange(n_known, len(classes))])
            unseen = np.setdiff1d(unseen, codes)
        return codes, classes, unseen, levels
