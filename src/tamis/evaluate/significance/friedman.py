"""Comparison of several methods over data sets: Friedman's test, with Nemenyi's and Holm's post-hoc tests.

With N data sets (rows), m methods (columns), R_j the mean rank of method j (1 is best, ties share their mean rank):

    Friedman       chi2 = (m - 1) N^2 sum_j (R_j - (m + 1)/2)^2 / (sum of squared ranks - N m (m + 1)^2 / 4)   (1)
    Iman-Davenport F = (N - 1) chi2 / (N (m - 1) - chi2),  df m - 1 and (m - 1)(N - 1)                         (2)
    Nemenyi        CD = q sqrt(m (m + 1) / (6 N)),  q = studentised range quantile / sqrt 2                    (3)
    control        z_j = (R_j - R_control) / sqrt(m (m + 1) / (6 N))                                           (4)
    Holm           p'_(i) = max over k <= i of (n - k + 1) p_(k), p in order                                   (5)

With few data sets F is anti-conservative: four methods with the same ranks on two data sets have p = 0 by (2), although
the 24 orders on the second are equally likely under the null hypothesis, so 1/24 is the smallest possible p-value. Up
to ten data sets an exact p-value is therefore also computed, over the permutations of the ranks within each data set.

Without ties (1) is Demsar's 12 N / (m (m + 1)) (sum_j R_j^2 - m (m + 1)^2 / 4), which is too small with ties. Two
methods differ by Nemenyi's test if their mean ranks differ by at least CD. Two methods alone are compared by `wilcoxon`
or `bayesian_signed_rank` (:mod:`tamis.evaluate.significance.pairs`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy

from tamis._validation import Floats, as_list, as_numbers, check_number, short_repr

# -- scores of methods over data sets: an array, a frame, or two columns -----------------------------------


def as_table(table: Any, names: Sequence[str] | None, at_least: int = 2) -> tuple[list[str], Floats]:
    """Return the names of the methods and their scores, shape (n_datasets, n_methods), of two data sets for a test."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        numeric = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
        names = numeric if names is None else names
        table = frame.select(numeric).to_numpy()
    # Among objects, numbers beside a text remain numbers.
    cells = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    if cells.ndim != 2 or cells.shape[0] < at_least or cells.shape[1] < 2:
        raise ValueError(
            f"table must have a row for each of at least {at_least} data sets and a column for each of at least"
            f" 2 methods, got shape {cells.shape}."
        )
    n_methods = cells.shape[1]
    methods = [f"method {j}" for j in range(n_methods)]
    if names is not None:
        methods = [str(name) for name in as_list("names", names)]
    if len(methods) != n_methods or len(set(methods)) < len(methods):
        raise ValueError(f"names must be {n_methods} distinct names, got {methods!r}.")
    for (row, column), value in np.ndenumerate(cells) if cells.dtype.kind in "OUS" else ():
        if isinstance(value, str | bytes):
            raise ValueError(
                f"{methods[column]!r} has the text {short_repr(value)} in row {row}: pass a number, or drop the row."
            )
    scores = as_numbers("table", cells)
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, column = bad[0].tolist()
        value = scores[row, column]
        found = "no score" if np.isnan(value) else f"the score {value:g}, which is not finite,"
        raise ValueError(
            f"{methods[column]!r} has {found} in row {row}: drop the row, or enter the worst score."
        )
    return methods, scores


def as_pair(first: Any, second: Any, names: Sequence[str] | None) -> tuple[tuple[str, str], Floats]:
    """Return two names and their scores, shape (n_datasets, 2)."""
    table = first
    if second is not None:
        columns = [as_numbers("first", first), as_numbers("second", second)]
        if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
            raise ValueError(
                "first and second must be two columns of the same length,"
                f" got shapes {columns[0].shape} and {columns[1].shape}."
            )
        table = np.column_stack(columns)
    methods, scores = as_table(table, names)
    if len(methods) != 2:
        raise ValueError(f"Exactly two methods can be compared, got {len(methods)}: choose two columns.")
    return (methods[0], methods[1]), scores


_FEW = 10  # number of data sets up to which the orders are enumerated
_ORDERS = 20_000  # all are enumerated up to this number, else as many are drawn at random


def mean_ranks(
    table: Any, names: Sequence[str] | None = None, *, larger_is_better: bool = True
) -> dict[str, float]:
    """Return the mean rank of each method over the data sets, in the order of the columns.

    Parameters
    ----------
    table : array-like or frame of shape (n_datasets, n_methods)
        A score per data set and method. In a frame, the numeric columns are the methods.
    names : list of str, optional
        Names of the methods; by default the columns of a frame, or ``method 0``, ...
    larger_is_better : bool, default=True
        False for errors, times and bytes.

    Returns
    -------
    dict of str to float
        1 is best; equal scores share the mean of their ranks.

    Raises
    ------
    ValueError
        If there are fewer than two methods or no data set, a score is missing or infinite, or the names do not fit.

    Examples
    --------
    >>> mean_ranks([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]], ["a", "b", "c"])
    {'a': 1.0, 'b': 2.25, 'c': 2.75}
    """
    methods, scores = as_table(table, names, at_least=1)
    return dict(zip(methods, _ranks(scores, larger_is_better).mean(axis=0).tolist(), strict=True))


@dataclass(frozen=True)
class Friedman:
    """The result of :func:`friedman`.

    Attributes
    ----------
    ranks : dict of str to float
        Mean rank of each method.
    n_datasets : int
    chi2, chi2_p_value : float
        Friedman's statistic (1), corrected for ties, and its p-value.
    f, p_value : float
        Iman and Davenport's statistic (2), which is less conservative, and its p-value.
    exact_p_value : float
        Share of the permutations of the ranks with an at least as large statistic: of all permutations, or of 20,000
        drawn with a fixed seed if there are more. NaN for more than ten data sets, where (2) is accurate.
    least_p_value : float
        The smallest possible `exact_p_value` with this number of methods and data sets: that of identical rankings.
    """

    ranks: dict[str, float]
    n_datasets: int
    chi2: float
    chi2_p_value: float
    f: float
    p_value: float
    exact_p_value: float
    least_p_value: float

    @property
    def p(self) -> float:
        """The p-value to report: the exact one where there are few data sets."""
        return self.p_value if math.isnan(self.exact_p_value) else self.exact_p_value

    def is_underpowered(self, alpha: float = 0.05) -> bool:
        """Whether there are too few data sets for any ranking of the methods to be significant."""
        return self.least_p_value >= alpha

    def __str__(self) -> str:
        m = len(self.ranks)
        exact = "" if math.isnan(self.exact_p_value) else f"; exact p = {self.exact_p_value:.3g}"
        corrected = (
            f"Iman-Davenport F({m - 1}, {(m - 1) * (self.n_datasets - 1)}) = {self.f:.3f}, p = {self.p_value:.3g}"
            if math.isfinite(self.f)
            else "Iman-Davenport's F is infinite, since all data sets rank alike"
        )
        return (
            f"Friedman over {self.n_datasets} data sets: chi2({m - 1}) = {self.chi2:.3f}, p = {self.chi2_p_value:.3g};"
            f" {corrected}{exact}\n" + _listing(self.ranks)
        )


def friedman(table: Any, names: Sequence[str] | None = None, *, larger_is_better: bool = True) -> Friedman:
    """Test whether any methods differ, by Friedman's test and Iman and Davenport's correction of it.

    Parameters
    ----------
    table, names, larger_is_better
        See :func:`mean_ranks`; at least two data sets.

    Returns
    -------
    Friedman

    Raises
    ------
    ValueError
        As for :func:`mean_ranks`.

    References
    ----------
    Demsar (2006). Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 7.

    Examples
    --------
    >>> print(friedman([[0.9, 0.8, 0.7], [0.7, 0.6, 0.5], [0.8, 0.9, 0.6]], ["a", "b", "c"]))
    Friedman over 3 data sets: chi2(2) = 4.667, p = 0.097; Iman-Davenport F(2, 4) = 7.000, p = 0.0494; exact p = 0.194
     1.33  a
     1.67  b
     3.00  c
    """
    methods, scores = as_table(table, names)
    ranks = _ranks(scores, larger_is_better)
    n, m = ranks.shape
    means = ranks.mean(axis=0)
    spread = (ranks**2).sum() - n * m * (m + 1) ** 2 / 4
    chi2 = float((m - 1) * n**2 * ((means - (m + 1) / 2) ** 2).sum() / spread) if spread > 0 else 0.0  # (1)
    rest = n * (m - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-9 * n * m else math.inf  # (2)
    return Friedman(
        dict(zip(methods, means.tolist(), strict=True)),
        n,
        chi2,
        float(scipy.stats.chi2.sf(chi2, m - 1)),
        f,
        float(scipy.stats.f.sf(f, m - 1, (m - 1) * (n - 1))),
        _exact_p_value(ranks) if n <= _FEW else math.nan,
        float(math.factorial(m)) ** (1 - n),
    )


def _exact_p_value(ranks: Floats) -> float:
    """Return the proportion of orders within the data sets, the first one's fixed, whose mean ranks differ as much."""
    first, *rest = 2.0 * ranks  # whole numbers, so that equal sums are equal

    def spread(*others: Floats, axis: int) -> Floats:
        sums: Floats = np.sum(others, axis=0) + first
        return np.asarray((sums**2).sum(axis=axis))

    test = scipy.stats.permutation_test(
        rest, spread, permutation_type="pairings", alternative="greater", n_resamples=_ORDERS, vectorized=True,
        batch=2_000, random_state=0,
    )  # fmt: skip
    return float(test.pvalue)


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return the critical difference of mean ranks for Nemenyi's test (3).

    Parameters
    ----------
    n_methods : int
        At least 2.
    n_datasets : int
        At least 2.
    alpha : float in (0, 1), default=0.05

    Returns
    -------
    float

    Examples
    --------
    >>> round(critical_difference(7, 10), 3)
    2.848
    """
    check_number("n_methods", n_methods, low=2, integer=True)
    check_number("n_datasets", n_datasets, low=2, integer=True)
    check_number("alpha", alpha, low=0, high=1, open_low=True, open_high=True)
    quantile = float(scipy.stats.studentized_range.isf(alpha, n_methods, np.inf)) / math.sqrt(2)
    return quantile * _rank_error(n_methods, n_datasets)


@dataclass(frozen=True)
class Nemenyi:
    """The result of :func:`nemenyi`; :func:`tamis.report.charts.ranks.plot_ranks` draws it.

    Attributes
    ----------
    ranks : dict of str to float
        Mean rank of each method.
    n_datasets : int
    alpha : float
    critical_difference : float
        (3).
    p_values : ndarray of shape (n_methods, n_methods)
        P-value of each pair; 1 on the diagonal.
    """

    ranks: dict[str, float]
    n_datasets: int
    alpha: float
    critical_difference: float
    p_values: Floats

    @property
    def groups(self) -> list[list[str]]:
        """The largest sets of two or more methods that do not differ significantly, best first."""
        order = sorted(self.ranks, key=self.ranks.__getitem__)
        items: list[tuple[int, int]] = []
        for start, first in enumerate(order):
            near = [
                name
                for name in order[start:]
                if self.ranks[name] - self.ranks[first] < self.critical_difference
            ]
            stop = start + len(near)
            if len(near) > 1 and (not items or stop > items[-1][1]):
                items.append((start, stop))
        return [order[start:stop] for start, stop in items]

    def __str__(self) -> str:
        same = "; ".join(", ".join(group) for group in self.groups) or "none"
        return (
            f"Nemenyi over {self.n_datasets} data sets, alpha = {self.alpha:g}: CD = {self.critical_difference:.3f}\n"
            f"{_listing(self.ranks)}\nnot different: {same}"
        )


def nemenyi(
    table: Any, names: Sequence[str] | None = None, *, alpha: float = 0.05, larger_is_better: bool = True
) -> Nemenyi:
    """Compare all methods with each other: two differ if their mean ranks differ by the critical difference.

    Parameters
    ----------
    table, names, larger_is_better
        See :func:`mean_ranks`; at least two data sets.
    alpha : float in (0, 1), default=0.05

    Returns
    -------
    Nemenyi

    Raises
    ------
    ValueError
        As for :func:`mean_ranks`, or if `alpha` is out of range.

    Examples
    --------
    >>> print(nemenyi([[0.9, 0.8, 0.1]] * 6, ["a", "b", "c"]))
    Nemenyi over 6 data sets, alpha = 0.05: CD = 1.353
     1.00  a
     2.00  b
     3.00  c
    not different: a, b; b, c
    """
    methods, scores = as_table(table, names)
    means = _ranks(scores, larger_is_better).mean(axis=0)
    n, m = scores.shape
    gaps = np.abs(means[:, None] - means) / _rank_error(m, n)
    p_values = _for_all_pairs(gaps, m)
    np.fill_diagonal(p_values, 1.0)
    ranks = dict(zip(methods, means.tolist(), strict=True))
    return Nemenyi(ranks, n, float(alpha), critical_difference(m, n, alpha), p_values)


def _for_all_pairs(z: Floats, n_methods: int) -> Floats:
    """Return the probability that some pair of equal methods differs by as many standard errors."""
    return np.clip(scipy.stats.studentized_range.sf(np.abs(z) * math.sqrt(2), n_methods, np.inf), 0.0, 1.0)


@dataclass(frozen=True)
class Holm:
    """The result of :func:`holm`.

    Attributes
    ----------
    control : str
        The method that the others are compared with.
    ranks : dict of str to float
        Mean rank of each method.
    z : dict of str to float
        (4); negative where the other method is ranked better than the control.
    p_values : dict of str to float
        Two-sided, without adjustment.
    adjusted : dict of str to float
        Below alpha, the method differs from the control: adjusted by Holm (5) if that was named beforehand, and for
        all pairs, as by :func:`nemenyi`, if it was chosen by the same scores.
    chosen : bool
        Whether the control is the best-ranked method, because none was named.
    """

    control: str
    ranks: dict[str, float]
    z: dict[str, float]
    p_values: dict[str, float]
    adjusted: dict[str, float]
    chosen: bool = False

    def __str__(self) -> str:
        width = max(len(name) for name in self.z)
        how = "for all pairs, as it was chosen by these scores" if self.chosen else "after Holm"
        lines = [f"against {self.control} (mean rank {self.ranks[self.control]:.2f}), p-values {how}"]
        for name in sorted(self.z, key=self.adjusted.__getitem__):
            lines.append(f" {name:<{width}}  z = {self.z[name]:6.3f}  p = {self.adjusted[name]:.3g}")
        return "\n".join(lines)


def holm(
    table: Any,
    names: Sequence[str] | None = None,
    *,
    control: str | None = None,
    larger_is_better: bool = True,
) -> Holm:
    """Compare all methods with one of them by their mean ranks, with adjusted p-values.

    Parameters
    ----------
    table, names, larger_is_better
        See :func:`mean_ranks`; at least two data sets.
    control : str, optional
        Name of the method to compare with, for p-values adjusted by Holm; by default the best-ranked one. That choice
        depends on the same scores, so the p-values are then those of Nemenyi's test, which accounts for all pairs.

    Returns
    -------
    Holm

    Raises
    ------
    ValueError
        As for :func:`mean_ranks`, or if `control` is not the name of a method.

    Examples
    --------
    >>> print(holm([[0.9, 0.8, 0.1]] * 6, ["a", "b", "c"], control="a"))
    against a (mean rank 1.00), p-values after Holm
     c  z =  3.464  p = 0.00106
     b  z =  1.732  p = 0.0833
    """
    methods, scores = as_table(table, names)
    ranks = dict(zip(methods, _ranks(scores, larger_is_better).mean(axis=0).tolist(), strict=True))
    chosen = control is None
    if control is None:
        control = min(ranks, key=ranks.__getitem__)
    elif control not in ranks:
        raise ValueError(f"control must be one of {', '.join(map(repr, ranks))}, got {control!r}.")
    error = _rank_error(len(methods), len(scores))
    z = {name: (rank - ranks[control]) / error for name, rank in ranks.items() if name != control}  # (4)
    p_values = {name: float(2 * scipy.stats.norm.sf(abs(value))) for name, value in z.items()}
    of_pairs = _for_all_pairs(np.array(list(z.values())), len(methods))
    adjusted = of_pairs if chosen else holm_adjust(list(p_values.values()))
    return Holm(control, ranks, z, p_values, dict(zip(p_values, adjusted.tolist(), strict=True)), chosen)


def holm_adjust(p_values: Sequence[float]) -> Floats:
    """Return p-values of several tests, adjusted by Holm (5): a test whose value is below alpha is significant.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        In [0, 1].

    Returns
    -------
    ndarray of shape (n_tests,)
        In the same order, at most 1.

    Raises
    ------
    ValueError
        If there is a value that is not in [0, 1].

    Examples
    --------
    >>> holm_adjust([0.02, 0.01, 0.3])
    array([0.04, 0.03, 0.3 ])
    """
    values = as_numbers("p_values", p_values)
    if values.ndim != 1 or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError(f"p_values must be a list of numbers in [0, 1], got {short_repr(p_values)}.")
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)  # (5)
    return adjusted


def _ranks(scores: Floats, larger_is_better: bool) -> Floats:
    return scipy.stats.rankdata(-scores if larger_is_better else scores, axis=1)


def _rank_error(n_methods: int, n_datasets: int) -> float:
    return math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def _listing(ranks: dict[str, float]) -> str:
    return "\n".join(f" {ranks[name]:.2f}  {name}" for name in sorted(ranks, key=ranks.__getitem__))
