"""Which selector, and how many columns: the comparison of one process, on a sample of the rows of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis._validation import check_number
from tamis.adapters.spark.jobs import collect
from tamis.adapters.spark.sources import open_rows
from tamis.errors import DataError

_RARE_ROWS = 200  # rows of the rarer of two classes that a comparison by AUC needs
_MOST_ROWS = 100_000


def recommend(
    df: Any,
    label: str,
    *,
    n_rows: int = 5000,
    features: str | Sequence[str] | None = None,
    learner: str | None = None,
    n_draws: int = 3,
) -> Any:
    """Compare selectors and sizes on a sample of the rows that is stratified by class and keeps their order.

    Of each class every k-th row is read, in the order of files or partitions, so every period of the stream and every
    class has its share. One pass counts the labels, a second one reads the sampled rows; the comparison runs on the
    driver.

    Parameters
    ----------
    df : path, list of paths or pyspark.sql.DataFrame
        As for :func:`screen`.
    label : str
        Column of the classes.
    n_rows : int, default=5000
        Rows to sample, in [200, 100000]. Of two classes, as many more as have 200 rows of the rarer one, at most
        100,000. The driver stores 8 bytes times rows times columns.
    features : str or list of str, optional
        As for :func:`screen`. Of thousands of columns, name those that :func:`select` has screened.
    learner, n_draws
        As for :func:`tamis.evaluate.recommend`.

    Returns
    -------
    tamis.evaluate.Recommendation

    Raises
    ------
    DataError
        As for :func:`screen`, or if the rows are fewer than 200 or of one class.
    ValueError
        If a parameter is invalid.

    Notes
    -----
    Neighbouring rows of the sample are far apart in the stream: gains of a method from the autocorrelation of labels,
    or from a drift shorter than n_rows / N of the stream, are not measured.

    Examples
    --------
    >>> def which_for_clicks():
    ...     return recommend("clicks", "clicked", learner="lightgbm").arguments()
    """
    from tamis.evaluate.recommendation import recommend as compare

    check_number("n_rows", n_rows, low=200, high=_MOST_ROWS, integer=True)
    rows = open_rows(df, label, features, None)
    counts = collect(rows, "count", {})
    total = Counter[Any]()
    before: dict[int, list[tuple[Any, int]]] = {}
    for part, of_part in counts:
        before[part] = list(total.items())
        total.update(dict(of_part))
    if not total:
        raise DataError("df has no rows: there is nothing to learn from.")
    task = {"before": before, "total": list(total.items()), "wanted": list(allocate(total, n_rows).items())}
    sampled = collect(rows, "sample", task)
    X = np.concatenate([X for _, (X, _) in sampled])
    y = np.concatenate([y for _, (_, y) in sampled])
    return compare((X, y), learner=learner, max_rows=len(y), n_draws=n_draws)


def allocate(total: Counter[Any], n_rows: int) -> dict[Any, int]:
    """Return how many rows of each class to sample: in proportion to the classes, at least one of each."""
    n = total.total()
    rarest = min(total.values())
    if len(total) == 2:
        n_rows = min(max(n_rows, -(-min(_RARE_ROWS, rarest) * n // rarest)), _MOST_ROWS)
    return {label: min(n_of, max(1, round(n_rows * n_of / n))) for label, n_of in total.items()}
