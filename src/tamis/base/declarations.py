"""What a class accepts and what it claims: declared once in the class, and verified by the checks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Inputs:
    """What a method learns from.

    Attributes
    ----------
    targets : tuple of {"binary", "multiclass", "regression"}
        Supported kinds of target.
    labels : bool
        False: labels are not used, so `y` is optional.
    nan : bool
        True: NaN is a missing value, ignored feature by feature, or encoded.
    categories : bool
        True: missing values and categories are encoded for the hooks, including columns that a parameter `categorical`
        names.
    levels : bool
        True: the hooks receive classes, or the levels of a numeric target.
    weights : bool
        False: `sample_weight` is rejected.
    checked_in_kernel : bool
        True: `_learn` itself raises on NaN and infinity, before it changes anything. Another pass takes 1.6 us for a
        row of 50 and 27 us for 100 rows of 1,000, more than 5 % of the time of the fastest methods.

    Examples
    --------
    >>> from tamis import FIRES
    >>> FIRES.accepts.nan, FIRES.accepts.targets
    (True, ('binary', 'multiclass', 'regression'))
    """

    targets: tuple[str, ...] = ("binary", "multiclass")
    labels: bool = True
    nan: bool = False
    categories: bool = False
    levels: bool = False
    weights: bool = True
    checked_in_kernel: bool = False


@dataclass(frozen=True)
class Claims:
    """What a method guarantees.

    Attributes
    ----------
    equals_rows : {"exactly", "up to rounding", ""}
        Whether a batch is equivalent to its rows one at a time; "": the method is defined per batch. If it is, a large
        batch is processed in parts, which bounds the delay of Ctrl-C.
    sparse_time : bool
        Whether learning from CSR rows takes time proportional to the stored values.
    merges_exactly : bool
        Whether merged parts equal one pass over all rows, up to rounding.
    copies_differ : str
        How a row of weight w differs from w copies of it; "" if it does not.
    ranks_relevance : bool
        Whether the scores rank the relevance of the features to the target.
    invariant_to_shifts : bool
        Whether a constant added to a feature leaves the scores unchanged.
    ignores_constants : bool
        Whether a large constant feature is never the best.
    counts_columns : bool
        Whether the state depends on the number of features, including those that are always 0.
    widens, forgets_columns : bool
        Whether features can be appended, and single ones reset, if the class defines how.
    first_rows : int
        Number of first rows that fix how all are counted, such as bin edges.

    Examples
    --------
    >>> from tamis import OFS
    >>> OFS.claims.equals_rows, OFS.claims.sparse_time
    ('exactly', True)
    """

    equals_rows: str = ""
    sparse_time: bool = False
    merges_exactly: bool = True
    copies_differ: str = ""
    ranks_relevance: bool = True
    invariant_to_shifts: bool = True
    ignores_constants: bool = True
    counts_columns: bool = False
    widens: bool = True
    forgets_columns: bool = True
    first_rows: int = 0
