"""Forward selection on a cluster in two passes: screen to some thousand candidates, then merge their Gram matrices.

The first pass is a univariate screen of all columns (F-test of the class means, or the trend of a numeric target). The
second merges the scatter matrices of the candidates, and forward selection runs on the driver, on the merged matrix.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2

from tamis._validation import Array, Floats, Mask, check_choice, check_number
from tamis.adapters.spark.jobs import collect
from tamis.adapters.spark.screening import learned_from, transform
from tamis.adapters.spark.sources import FrameRows, open_rows
from tamis.base import html_repr, top_mask
from tamis.errors import DataError
from tamis.rows.forward.forward import ForwardPartialCorrelation
from tamis.rows.screening.screening import FisherScore, TScore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_HEAD = ("feature", "entered", "gain", "statistic", "pvalue", "adjusted", "alone")


class ForwardOnce(ForwardPartialCorrelation):
    """Forward selection whose rows count equally and that selects once, after all parts are merged."""

    _is_whole = False

    def _keep(self, block: Any) -> None:
        """Keep no rows: only a detector of drift needs them."""

    def _choose(self, held: tuple[float, float] | None = None) -> None:
        if self._is_whole:
            super()._choose((1.0, 0.0))

    def finished(self) -> ForwardPartialCorrelation:
        """Select, and return an ordinary selector."""
        self._is_whole = True
        if self._pending.n_rows:
            self._take_block()
        self._choose()
        correlation = ForwardPartialCorrelation(**self.get_params())
        correlation.__dict__.update(
            {name: value for name, value in vars(self).items() if name != "_is_whole"}
        )
        return correlation

    def pvalues(self) -> tuple[Floats, Floats]:
        """Return the statistic and the p-value of each selected feature on entry, equation (5)."""
        classes = (
            2 if self._is_regression() else np.count_nonzero(np.diag(self._scatter.S)[len(self._columns) :])
        )
        freedom = max(classes - 1.0, 1.0)
        before = np.r_[0.0, np.cumsum(self._entered)[:-1]] if len(self._entered) else np.zeros(0)
        unexplained = np.maximum(1.0 - before / freedom, 1e-12)
        statistic = self._scatter.n_effective * self._entered / unexplained
        return statistic, np.asarray(chi2.sf(statistic, freedom))


@dataclass(repr=False)
class Selection:
    """The features that :func:`select` selects, and the evidence.

    Attributes
    ----------
    table : dict of str to ndarray of shape (n_selected,)
        A row for each selected feature, in the order of entry. "feature", "entered" (from 1), "gain" (added share of
        the variance of the target), "statistic" and "pvalue" (chi-square test of the gain, given the features selected
        before), "adjusted" (times the number of columns, at most 1: Bonferroni) and "alone" (gain by itself).
    feature_names_in_ : ndarray of shape (n_features,) of str
        All columns; the entries of a vector column are named by their positions.
    n_seen : int
        Rows.
    n_candidates : int
        Columns that the second pass read.
    level : float
        Level of the tests.
    screened : RowSelector or None
        The selector of the first pass; None if all columns were candidates.
    selector : ForwardPartialCorrelation
        The fitted selector of the candidates; its ``table_`` has what each other candidate would add, and the feature
        that it is redundant to.
    """

    table: dict[str, Array]
    feature_names_in_: Array
    n_seen: int
    n_candidates: int
    level: float
    screened: Any = field(repr=False)
    selector: Any = field(repr=False)
    is_vector: bool = False

    def get_feature_names_out(self) -> Array:
        """Return the selected features in the order of the columns."""
        return self.feature_names_in_[self.get_support()]

    def get_support(self) -> Mask:
        """Return which columns are selected."""
        return np.isin(self.feature_names_in_, self.table["feature"])

    def transform(self, df: DataFrame) -> DataFrame:
        """Drop the columns that are not selected; of a vector column, the entries.

        Examples
        --------
        >>> def narrow(selection, df):
        ...     return selection.transform(df)
        """
        return transform(df, _Support(self))

    def __repr__(self) -> str:
        n = len(self.table["feature"])
        return f"Selection({n} of {len(self.feature_names_in_):,} columns, {self.n_seen:,} rows)"

    def _facts(self) -> list[str]:
        n_clear = int((self.table["adjusted"] <= self.level).sum())
        return [
            f"{len(self.table['feature'])} of {len(self.feature_names_in_):,} columns",
            f"{self.n_seen:,} rows",
            f"{self.n_candidates:,} candidates",
            f"{n_clear} significant at level {self.level:g} over all columns",
        ]

    def _rows(self) -> dict[str, list[str]]:
        return {
            str(name): [f"{self.table[column][i]:.4g}" for column in _HEAD[1:]]
            for i, name in enumerate(self.table["feature"])
        }

    def _repr_html_(self) -> str:
        return html_repr("Selection", self._facts(), self._rows(), _HEAD)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the table, and what the columns left out are redundant to, as one HTML file that opens offline.

        Returns
        -------
        pathlib.Path
        """
        of_all = self.selector.table_
        order = np.argsort(-of_all["alone"], kind="stable")
        unselected = [i for i in order if not of_all["entered"][i]][:100]
        others = {
            str(of_all["feature"][i]): [
                f"{of_all['alone'][i]:.4g}", f"{of_all['added'][i]:.4g}", str(of_all["redundant_to"][i]) or "–",
            ]
            for i in unselected
        }  # fmt: skip
        head = ("feature", "alone", "would add", "redundant to")
        tables = {
            "Selected features": (_HEAD, self._rows()),
            "Relevant by themselves, not selected": (head, others),
        }
        body = "".join(f"<h2>{title}</h2>{_table(*table)}" for title, table in tables.items())
        style = "body{font-family:sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:right}"
        result = Path(path)
        result.write_text(
            f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Selection</title><style>{style}</style>"
            f"<h1>Selection</h1><p>{escape('; '.join(self._facts()))}.</p>{body}</html>\n",
            encoding="utf-8",
        )
        return result


class _Support:
    """What `transform` reads of a selector."""

    def __init__(self, selection: Selection) -> None:
        self.get_support = selection.get_support
        if not selection.is_vector:
            self.feature_names_in_ = selection.feature_names_in_


def _table(head: Sequence[str], rows: dict[str, list[str]]) -> str:
    top = "".join(f"<th>{name}</th>" for name in head)
    lines = (
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in rows.items()
    )
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


def select(
    df: Any,
    label: str,
    n: int | None = None,
    *,
    level: float = 0.01,
    candidates: int = 2000,
    task: str = "classification",
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    classes: Any = None,
) -> Selection:
    """Select features that add to one another, from any number of rows, in two passes on a cluster.

    The first pass screens all columns one by one; the second computes the Gram matrix of the best `candidates` on the
    workers, and forward selection (Efroymson 1960) runs on the merged matrix. So copies of a feature are selected once.

    Parameters
    ----------
    df : path, list of paths or pyspark.sql.DataFrame
        As for :func:`screen`.
    label : str
        As for :func:`screen`; a number with ``task="regression"``.
    n : int, optional
        Features to select, at most 250 and at most `candidates`. By default those that are significant at `level`.
    level : float, default=0.01
        Family-wise error rate of the tests over all columns, in (0, 1), if rows are independent (Bonferroni).
    candidates : int, default=2000
        Columns that the second pass reads, at least 1. Their matrix takes 8 bytes times the square of their number, on
        each core and on the driver.
    task : {"classification", "regression"}
    features, weight, classes
        As for :func:`screen`.

    Returns
    -------
    Selection

    Raises
    ------
    DataError
        As for :func:`screen`.
    ValueError
        If a parameter is invalid.

    Notes
    -----
    A column that is irrelevant by itself and relevant only beside another one is not a candidate if there are more than
    `candidates` columns. Rows count equally; their order has no influence except through missing values, which are
    replaced by the mean of the rows before in the partition. The p-values are those of each feature on entry; that it
    was the best of many is accounted for by the adjustment alone.

    Examples
    --------
    >>> def select_clicks():
    ...     selection = select("clicks", "clicked", 20)
    ...     selection.report("clicks.html")
    ...     return selection.table["feature"]
    """
    check_choice("task", task, ("classification", "regression"))
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("candidates", candidates, low=1, integer=True)
    if n is not None:
        check_number("n", n, low=1, high=min(250, candidates), integer=True)
    rows, screened = open_rows(df, label, features, weight), None
    names = rows.columns["features"]
    is_vector = rows.columns["vector"]
    if is_vector or len(names) > candidates:
        score = TScore if task == "regression" else FisherScore
        screened = learned_from(rows, score(1, task=task), classes)
        all_names = np.array(
            [str(j) for j in range(screened.n_features_in_)] if is_vector else names, dtype=object
        )
        kept = top_mask(screened.scores_, min(candidates, len(all_names)))
        if is_vector and not kept.all():
            screened.n_features_to_select = int(kept.sum())
            rows = FrameRows(transform(df, screened, features=names[0]), label, names[0], weight)
            kept = screened.get_support()
        elif not is_vector:
            rows.columns["features"] = [name for name, keep in zip(names, kept, strict=True) if keep]
            if isinstance(rows, FrameRows):
                rows = FrameRows(df, label, rows.columns["features"], weight)
        chosen_from = all_names[kept]
    else:
        chosen_from = all_names = np.array(names, dtype=object)
    m, p = len(chosen_from), len(all_names)
    forward = ForwardOnce(
        None if n is None else min(n, m),
        task=task,
        half_life=math.inf,
        alpha=level * m / p,
        alpha_drift=None,
        max_columns=m,
    )
    learned = learned_from(rows, forward, classes)
    selector = learned.finished()
    statistic, pvalues = learned.pvalues()
    order = learned._order
    table = {
        "feature": chosen_from[order], "entered": np.arange(1, len(order) + 1), "gain": learned._entered.copy(),
        "statistic": statistic, "pvalue": pvalues, "adjusted": np.minimum(1.0, pvalues * p),
        "alone": learned._alone[order],
    }  # fmt: skip
    return Selection(table, all_names, selector.n_seen_, m, level, screened, selector, is_vector)


# -- Which selector, and how many columns: the comparison of one process, on a sample of the rows of a cluster

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
