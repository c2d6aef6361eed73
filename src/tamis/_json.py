"""JSON has no NaN and no infinity."""

from __future__ import annotations

import math
from typing import Any


def null_nonfinite(value: Any) -> Any:
    """Return a copy of a value in which NaN and infinity, which JSON lacks, are None.

    >>> null_nonfinite({"score": (0.5, math.nan)})
    {'score': [0.5, None]}
    """
    if isinstance(value, dict):
        return {key: null_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [null_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
