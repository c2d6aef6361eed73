"""Statistics of leaves, and the merit of splits.

A numeric feature is summarised by a normal distribution and a range for each class, or by counts between edges
(`splitter="quantiles"`, see below), a categorical one by counts. With N the weight of the rows, N_b that
of branch b, and H the entropy of the class in bits::

    merit = H - sum_b N_b / N H_b                                                                (1)
    split if  merit_1 - merit_2 > eps  or  eps < tie_threshold,  eps = sqrt(R^2 ln(1 / delta) / (2 n))  (2)

R = log2 of the number of classes at the leaf, n the weight of its rows, merit_2 that of the second best feature or of
no split: 0. A regularised tree (Deng, Runger: Feature selection via regularized trees, IJCNN 2012; proposed for
Hoeffding trees in section 10 of Barddal's thesis) compares in (2), with F the features of the splits in the tree::

    merit' = merit if the feature is in F,  (1 - new_feature_penalty) merit otherwise                  (3)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints, Mask
from tamis.dependence.split_gain import LEAST_SHARE, entropy_times_weight, gain_of_two, share_below
from tamis.learners.hoeffding.nodes import Arrays, Chain, Kind, Link, Moment, Number, State, new_leaf, release
from tamis.summaries.quantile_kernels import first_not_below

# -- Class counts of a numeric feature in bins whose edges follow its quantiles, for the thresholds of a leaf

# The first distinct values of a feature are the edges, with their counts. A later value is counted in its bin: the
# values above the edge before and at or below its own. A bin with more than twice its share of the weight is divided
# at a value inside, half of each class on either side, and the two neighbours with the least weight are merged
# (Gibbons, Matias, Poosala: Fast incremental maintenance of approximate histograms, VLDB 1997). The range of the
# values does not matter, so thresholds fit heavy tails, and a monotone transformation of a feature changes only the
# thresholds of splits.

_LARGEST_SHARE = 2.0  # of the mean weight of a bin


@njit(strict=True, allocates=False)
def _insert(edges: Floats, bins: Floats, at: int, last: int, x: float) -> None:
    """Insert an edge and an empty bin at a position; those from there to before `last` move up."""
    for k in range(last, at, -1):
        edges[k] = edges[k - 1]
        for c in range(bins.shape[0]):
            bins[c, k] = bins[c, k - 1]
    edges[at] = x
    for c in range(bins.shape[0]):
        bins[c, at] = 0.0


@njit(strict=True, allocates=False)
def _lightest_pair(bins: Floats, excluded: int) -> tuple[int, float]:
    """Return the first of the two neighbouring bins with the least weight, and that weight; not one of `excluded`."""
    best, least, before = -1, np.inf, 0.0
    for k in range(bins.shape[1]):
        weight = 0.0
        for c in range(bins.shape[0]):
            weight += bins[c, k]
        if k > 0 and k != excluded and k - 1 != excluded and before + weight < least:
            best, least = k - 1, before + weight
        before = weight
    return best, least


@njit(strict=True, allocates=False)
def _divide(edges: Floats, bins: Floats, at: int, x: float, weight: float) -> None:
    """Divide a bin at a value inside, and merge the lightest neighbours, unless these have as much weight."""
    pair, least = _lightest_pair(bins, at)
    if pair < 0 or least >= weight:
        return
    for c in range(bins.shape[0]):  # the bin before the joint edge is added to the one after it
        bins[c, pair + 1] += bins[c, pair]
    if pair < at:
        for k in range(pair, at - 1):
            edges[k] = edges[k + 1]
            for c in range(bins.shape[0]):
                bins[c, k] = bins[c, k + 1]
        at -= 1
        edges[at] = x
    else:
        _insert(edges, bins, at, pair, x)
    for c in range(bins.shape[0]):
        half = 0.5 * bins[c, at + 1]
        bins[c, at], bins[c, at + 1] = half, half


@njit(strict=True, allocates=False)
def count_value(edges: Floats, bins: Floats, c: int, x: float, weight: float, total: float) -> None:
    """Count a value of a class.

    Parameters
    ----------
    edges : ndarray of shape (n_edges,)
        Ascending; infinite where fewer distinct values have occurred. Changed in place.
    bins : ndarray of shape (n_classes, n_edges + 1)
        Weight of each class at or below each edge and above the edge before, and above all. Changed in place.
    c : int
        The class.
    x, weight : float
    total : float
        Weight of all values, this one included.
    """
    n = edges.shape[0]
    at = first_not_below(edges, 0, n, x)
    if edges[n - 1] == np.inf:
        if edges[at] != x:
            _insert(edges, bins, at, n - 1, x)
        bins[c, at] += weight
        return
    bins[c, at] += weight
    if at < n and edges[at] == x:
        return
    here = 0.0
    for k in range(bins.shape[0]):
        here += bins[k, at]
    if here * (n + 1) > _LARGEST_SHARE * total:
        _divide(edges, bins, at, x, here)


@njit(strict=True, allocates=False)
def best_edge(edges: Floats, bins: Floats, total: Floats, part: Floats, rest: Floats) -> tuple[float, float]:
    """Return the gain and the edge of the best split at an edge; -1 if there is none.

    Parameters
    ----------
    edges, bins : ndarray
        See :func:`count_value`.
    total, part, rest : ndarray of shape (n_classes,)
        Overwritten.
    """
    best, threshold = -1.0, 0.0
    for c in range(bins.shape[0]):
        total[c], part[c] = bins[c].sum(), 0.0
    for k in range(edges.shape[0]):
        if edges[k] == np.inf:
            break
        for c in range(bins.shape[0]):
            part[c] += bins[c, k]
        gain = gain_of_two(total, part, rest)
        if gain > best:
            best, threshold = gain, edges[k]
    return best, threshold


@njit(strict=True, allocates=False)
def weight_up_to(edges: Floats, bins: Floats, c: int, edge: float) -> float:
    """Return the weight of a class at or below an edge."""
    weight = 0.0
    for k in range(edges.shape[0]):
        if edges[k] > edge:
            break
        weight += bins[c, k]
    return weight


# -- Statistics of leaves, and the merit of splits -------------------------------------------------------

_SLACK = 1.000001 / float(np.log(2.0))
_ROUNDING = 1e-12  # apparent gain in bits of a split without gain


class SplitOptions(NamedTuple):
    """The parameters of a tree, as passed to the kernels; -1 for no limit."""

    leaf: int
    grace_period: float
    delta: float
    tie_threshold: float
    n_cuts: int
    binary: bool
    max_depth: int
    max_nodes: int
    watched: bool  # whether errors are monitored for drift
    seed: int
    step: bool  # whether to stop at each change of the tree
    new_feature_penalty: float  # fraction of its merit that a feature not used by a split loses


@njit(allocates=False)
def update_statistics(tree: Arrays, slot: int, row: Floats, cells: Ints, y: int, weight: float) -> None:
    """Update the statistics of a leaf with a row; missing values are ignored."""
    kept = tree.gaussians[slot, y]
    observed, mean, deviation = kept[Moment.OBSERVED], kept[Moment.MEAN], kept[Moment.DEVIATION]
    lowest, highest = kept[Moment.LOWEST], kept[Moment.HIGHEST]
    for f in range(row.shape[0]):
        x = row[f]
        if x != x:
            continue
        n = observed[f] + weight
        gap = x - mean[f]
        # gap * weight / n may differ from the first value, and equal values would have a variance.
        mean[f] += gap if observed[f] == 0.0 else gap * weight / n
        deviation[f] += weight * gap * (x - mean[f])
        lowest[f] = x if observed[f] == 0.0 or x < lowest[f] else lowest[f]
        highest[f] = x if observed[f] == 0.0 or x > highest[f] else highest[f]
        observed[f] = n
    for f in range(tree.edges.shape[1]):
        if row[f] == row[f]:
            total = tree.gaussians[slot, :, Moment.OBSERVED, f].sum()
            count_value(tree.edges[slot, f], tree.bins[slot, f], y, row[f], weight, total)
    for g in range(cells.shape[0]):
        if cells[g] >= 0:
            tree.counts[slot, y, cells[g]] += weight
            tree.totals[slot, y, g] += weight


# -- merits ------------------------------------------------------------------------------------------------


@njit(allocates=False)
def standard_deviation(kept: Floats, f: int) -> float:
    """Return the standard deviation of a numeric feature in a class."""
    n = kept[Moment.OBSERVED, f]
    deviation: float = np.sqrt(max(kept[Moment.DEVIATION, f], 0.0) / (n - 1.0)) if n > 1.0 else 0.0
    return deviation


@njit(allocates=False)
def share_at_or_below(kept: Floats, f: int, cut: float, deviation: float) -> float:
    """Return the fraction of a class whose value of a numeric feature is at or below a cut."""
    return share_below(cut, kept[Moment.MEAN, f], deviation, kept[Moment.LOWEST, f], kept[Moment.HIGHEST, f])


@njit(allocates=False)
def _best_cut(kept: Floats, f: int, n_cuts: int, least: float, work: Floats) -> tuple[float, float]:
    """Return the merit and the threshold of the best of `n_cuts` equally spaced cuts; -1 if none is above `least`.

    Logarithms are computed only where (1) may exceed the best so far: its upper bound is log2(e) chi^2 / N, which is

        log2(e) sum_c n_c (s_c - s)^2 / (N s (1 - s)),   s_c, s: the fraction of class c, and of all, below the cut
    """
    total, part, rest, deviation = work[0], work[1], work[2], work[3]
    low, high, n = np.inf, -np.inf, 0.0
    for c in range(kept.shape[0]):
        total[c], deviation[c] = kept[c, Moment.OBSERVED, f], standard_deviation(kept[c], f)
        n += total[c]
        if total[c] > 0.0:
            low, high = min(low, kept[c, Moment.LOWEST, f]), max(high, kept[c, Moment.HIGHEST, f])
    best, threshold = -1.0, 0.0
    for k in range(n_cuts):
        cut = low + (high - low) / (n_cuts + 1.0) * (k + 1)
        if not low < cut < high:
            continue
        inside = 0.0
        for c in range(kept.shape[0]):
            part[c] = total[c] * share_at_or_below(kept[c], f, cut, deviation[c]) if total[c] > 0.0 else 0.0
            inside += part[c]
        share, spread = inside / n, 0.0
        for c in range(kept.shape[0]):
            if total[c] > 0.0:
                spread += (part[c] - total[c] * share) ** 2 / total[c]
        if _SLACK * spread <= max(best, least) * inside * (1.0 - share):
            continue
        merit = gain_of_two(total, part, rest)
        if merit > best:
            best, threshold = merit, cut
    return best, threshold


@njit()
def _best_categories(tree: Arrays, slot: int, g: int, binary: bool, work: Floats) -> tuple[float, int, int]:
    """Return the merit, the category or -1 for all, and the number of branches; merit -1 without a split."""
    counts = tree.counts[slot]
    total, part, rest = work[0], work[1], work[2]
    n = 0.0
    for c in range(counts.shape[0]):
        total[c] = tree.totals[slot, c, g]
        n += total[c]
    inner, branches, large = 0.0, 0, 0
    best, category = -1.0, -1
    cell = tree.lists[Chain.FIRST, g]
    while cell >= 0:
        for c in range(counts.shape[0]):
            part[c] = counts[c, cell]
        weight = part.sum()
        if weight > 0.0:
            branches += 1
            large += weight > LEAST_SHARE * n
            inner += entropy_times_weight(part)
            if binary:
                merit = gain_of_two(total, part, rest)
                if merit > best:
                    best, category = merit, cell
        cell = tree.next_cell[cell]
    if binary:
        return best, category, 2
    return ((entropy_times_weight(total) - inner) / n if large >= 2 else -1.0), -1, branches


@njit(allocates=False)
def split_merit(
    tree: Arrays, slot: int, f: int, least: float, rules: SplitOptions, work: Floats
) -> tuple[float, float, int, int]:
    """Return the merit of a feature, the threshold or category, and the number of branches."""
    n_numeric = tree.gaussians.shape[3]
    if f < tree.edges.shape[1]:
        merit, at = best_edge(tree.edges[slot, f], tree.bins[slot, f], work[0], work[1], work[2])
        return merit, at, -1, 2
    if f < n_numeric:
        merit, at = _best_cut(tree.gaussians[slot], f, rules.n_cuts, least, work)
        return merit, at, -1, 2
    merit, cell, branches = _best_categories(tree, slot, f - n_numeric, rules.binary, work)
    return merit, 0.0, cell, branches


@njit(allocates=False)
def hoeffding_bound(n_classes: int | np.integer[Any], n: float, rules: SplitOptions) -> float:
    """Return eps of (2)."""
    weight_range = np.log2(n_classes)
    eps: float = np.sqrt(weight_range * weight_range * np.log(1.0 / rules.delta) / (2.0 * n))
    return eps


@njit(allocates=False)
def write_split(tree: Arrays, node: int, feature: int, threshold: float, category: int, merit: float) -> None:
    """Write a split into a node."""
    links, n_numeric = tree.links[node], tree.gaussians.shape[3]
    links[Link.FEATURE], links[Link.CUT_CELL] = feature, category
    of_categories = Kind.MULTIWAY if category < 0 else Kind.ONE_AGAINST_REST
    links[Link.KIND] = Kind.NUMERIC if feature < n_numeric else of_categories
    tree.numbers[node, Number.THRESHOLD], tree.numbers[node, Number.MERIT] = threshold, merit


@njit()
def features_in_use(tree: Arrays, n_features: int) -> Mask:
    """Return F of (3): which features the splits of the tree and of its alternate trees use."""
    used = np.zeros(n_features, np.bool_)
    for node in range(tree.links.shape[0]):
        if tree.links[node, Link.ALIVE] == 1 and tree.links[node, Link.LEFT] >= 0:
            used[tree.links[node, Link.FEATURE]] = True
    return used


@njit()
def best_split(tree: Arrays, node: int, n: float, rules: SplitOptions, used: Mask) -> int:
    """Write the split chosen by (2) into the leaf, and return its number of branches; 0 if there is none yet.

    `used` is F of (3) at the leaf's places, or empty without a penalty.
    """
    slot = tree.links[node, Link.SLOT]
    n_classes = np.count_nonzero(tree.weights[node])
    if n_classes < 2:
        return 0
    n_numeric = tree.gaussians.shape[3]
    work = np.empty((4, tree.gaussians.shape[1]))
    best, second, feature, threshold, category, branches = _ROUNDING, _ROUNDING, -1, 0.0, -1, 0
    gain = 0.0
    for f in range(n_numeric + tree.totals.shape[2]):
        full, at, cell, n_branches = split_merit(tree, slot, f, second, rules, work)
        merit = full
        if used.shape[0] > 0 and not used[f]:
            merit *= 1.0 - rules.new_feature_penalty  # (3)
        if merit > best:
            best, second, gain = merit, best, full
            feature, threshold, category, branches = f, at, cell, n_branches
        elif merit > second:
            second = merit
    eps = hoeffding_bound(n_classes, n, rules)
    if feature < 0 or not (best - second > eps or eps < rules.tie_threshold):
        return 0
    if rules.max_nodes >= 0 and tree.state[State.LIVE] + branches > rules.max_nodes:
        return 0
    write_split(tree, node, feature, threshold, category, gain)
    return branches


# -- splitting ---------------------------------------------------------------------------------------------


@njit()
def _add_child(tree: Arrays, node: int, before: int, cell: int) -> int:
    """Add a leaf after the child `before`, or as the first one if that is -1, and return it."""
    child = new_leaf(tree, node, tree.links[node, Link.DEPTH] + 1)
    tree.links[child, Link.CELL] = cell
    if before < 0:
        tree.links[node, Link.LEFT] = child
    else:
        tree.links[before, Link.NEXT] = child
    return child


@njit()
def _sum_weights(tree: Arrays, node: int) -> None:
    """Set the initial weight of a child to the sum over the classes."""
    tree.numbers[node, Number.WEIGHT] = tree.weights[node].sum()


@njit()
def split_weights(tree: Arrays, node: int, c: int) -> tuple[float, float]:
    """Return the weight of a class on either side of the binary split written into a leaf."""
    links, slot = tree.links[node], tree.links[node, Link.SLOT]
    feature, n_numeric = links[Link.FEATURE], tree.gaussians.shape[3]
    if links[Link.KIND] == Kind.NUMERIC:
        kept = tree.gaussians[slot, c]
        all_of_it = kept[Moment.OBSERVED, feature]
        part = 0.0
        if all_of_it > 0.0 and feature < tree.edges.shape[1]:
            part = weight_up_to(
                tree.edges[slot, feature], tree.bins[slot, feature], c, tree.numbers[node, Number.THRESHOLD]
            )
        elif all_of_it > 0.0:
            cut = tree.numbers[node, Number.THRESHOLD]
            part = all_of_it * share_at_or_below(kept, feature, cut, standard_deviation(kept, feature))
    else:
        all_of_it = tree.totals[slot, c, feature - n_numeric]
        part = tree.counts[slot, c, links[Link.CUT_CELL]]
    return part, max(all_of_it - part, 0.0)


@njit()
def add_children(tree: Arrays, node: int) -> None:
    """Add the children of the split written into a node; its statistics give their initial class weights."""
    links, slot = tree.links[node], tree.links[node, Link.SLOT]
    feature, n_numeric = links[Link.FEATURE], tree.gaussians.shape[3]
    n_classes = tree.weights.shape[1]
    if links[Link.KIND] == Kind.MULTIWAY:
        cell, child = tree.lists[Chain.FIRST, feature - n_numeric], -1
        while cell >= 0:
            if tree.counts[slot, :, cell].sum() > 0.0:
                child = _add_child(tree, node, child, cell)
                for c in range(n_classes):
                    tree.weights[child, c] = tree.counts[slot, c, cell]
                _sum_weights(tree, child)
            cell = tree.next_cell[cell]
    else:
        left = _add_child(tree, node, -1, links[Link.CUT_CELL])
        right = _add_child(tree, node, left, -1)
        for c in range(n_classes):
            tree.weights[left, c], tree.weights[right, c] = split_weights(tree, node, c)
        _sum_weights(tree, left)
        _sum_weights(tree, right)


@njit()
def split(tree: Arrays, node: int) -> None:
    """Split a leaf by the split written into it, and release its statistics."""
    add_children(tree, node)
    release(tree, node, True, False)


@njit()
def add_branch(tree: Arrays, node: int, cell: int) -> None:
    """Add a leaf for a new category to a multiway split."""
    child = tree.links[node, Link.LEFT]
    while tree.links[child, Link.NEXT] >= 0:
        child = tree.links[child, Link.NEXT]
    _add_child(tree, node, child, cell)
