"""Export of trees and rules as text, and of trees as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._validation import as_list
from tamis.learners.hoeffding.records import Node
from tamis.learners.hoeffding.tree import HoeffdingTree
from tamis.learners.hoeffding.vfdr import VFDR, Literal, Rule
from tamis.report.charts.axes import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 32  # characters of a name in a box


def export_text(
    tree: HoeffdingTree | VFDR,
    feature_names: Sequence[str] | None = None,
    *,
    max_depth: int | None = None,
    decimals: int = 2,
    show_weights: bool = False,
) -> str:
    """Return a tree as text, one line per branch and leaf, in the style of scikit-learn; or rules, one line each.

    Parameters
    ----------
    tree : HoeffdingTree, HoeffdingAdaptiveTree or VFDR
        Fitted.
    feature_names : sequence of str, optional
        One for each column; by default the names of the training frame, or "feature_0" and so on.
    max_depth : int, at least 0, optional
        Branches of a tree below this depth are shown as truncated, with their depth.
    decimals : int, default=2
        Decimals of thresholds, categories and weights; significant digits for thresholds below 0.1.
    show_weights : bool, default=False
        Whether the lines of leaves and rules end with the weight of each class.

    Returns
    -------
    str
        Without a trailing newline.

    Raises
    ------
    ValueError
        If there are not as many names as columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import HoeffdingTree
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> tree = HoeffdingTree(max_depth=1).fit(X, np.where(X[:, 1] > 0.5, "old", "young"))
    >>> print(export_text(tree, ["height", "age"], show_weights=True))
    |--- age <= 0.54
    |   |--- class: young [81.21, 1022.0]
    |--- age >  0.54
    |   |--- class: old [896.79, 0.0]
    """
    names = _names(tree, feature_names)
    if isinstance(tree, VFDR):
        return _rules_as_text(tree, names, decimals, show_weights)
    nodes = tree.nodes_
    lines = []
    for at, node in enumerate(nodes):
        if node.parent >= 0 and (max_depth is None or node.depth <= max_depth + 1):
            lines.append("|   " * (node.depth - 1) + "|--- " + _condition(nodes, at, names, decimals))
        visible = max_depth is None or node.depth <= max_depth
        if node.feature is None and visible:
            label = f"class: {_label(tree, node)}" + _weights(node, decimals) * show_weights
            lines.append("|   " * node.depth + "|--- " + label)
        elif max_depth is not None and node.depth == max_depth + 1:
            lines.append("|   " * node.depth + f"|--- truncated branch of depth {_depth_below(nodes, at)}")
    return "\n".join(lines)


def plot_tree(
    tree: HoeffdingTree,
    feature_names: Sequence[str] | None = None,
    *,
    max_depth: int | None = None,
    decimals: int = 2,
    ax: Axes | None = None,
) -> Axes:
    """Plot a tree: splits with their weight and merit, leaves with their class and its fraction of the weight.

    Parameters
    ----------
    tree : HoeffdingTree or HoeffdingAdaptiveTree
        Fitted.
    feature_names : sequence of str, optional
        As for :func:`export_text`.
    max_depth : int, at least 0, optional
        Nodes below this depth are not drawn.
    decimals : int, default=2
        Decimals of thresholds and categories; significant digits for thresholds below 0.1.
    ax : matplotlib Axes, optional
        The axes to plot to; by default new axes whose width fits the leaves.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are not as many names as columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import HoeffdingTree
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> ax = plot_tree(HoeffdingTree(max_depth=1).fit(X, X[:, 1] > 0.5))
    >>> [text.get_text().split()[0] for text in ax.texts]
    ['feature_1', '<=', 'False', '>', 'True']
    """
    names = [_short(name) for name in _names(tree, feature_names)]
    nodes = [node for node in tree.nodes_ if max_depth is None or node.depth <= max_depth]
    x = _places(nodes)
    deepest = max(node.depth for node in nodes)
    if ax is None:
        longest = max((len(names[node.feature]) for node in nodes if node.feature is not None), default=0)
        leaf = max(1.8, 0.5 + 0.08 * longest)  # inches, so that boxes do not overlap
        ax = new_figure(max(4.0, leaf * (max(x) + 1)), 1.5 * (deepest + 1)).subplots()
    ax.set(xlim=(-0.6, max(x) + 0.6), ylim=(-deepest - 0.5, 0.5))
    ax.axis("off")
    shades = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999"]
    for at, node in enumerate(nodes):
        if node.parent >= 0:
            parent = nodes[node.parent]
            ax.plot([x[node.parent], x[at]], [-parent.depth, -node.depth], color="0.6", linewidth=1, zorder=0)
            middle = (0.35 * x[node.parent] + 0.65 * x[at], -parent.depth - 0.62)
            ax.text(*middle, _sign(nodes, at, decimals), ha="center", va="center", size=8,
                    backgroundcolor="white")  # fmt: skip
        share = node.class_weights.max() / node.weight if node.weight else 0.0
        if node.feature is None:
            text = f"{_label(tree, node)}\n{share:.0%} of {node.weight:,.0f}"
        else:
            text = f"{names[node.feature]}\n{node.merit:.3f} bits\n{node.weight:,.0f} rows"
        shade = shades[int(node.class_weights.argmax()) % len(shades)] if node.feature is None else "white"
        box = {"boxstyle": "round", "facecolor": shade, "edgecolor": "0.4", "alpha": 1.0}
        ax.text(x[at], -node.depth, text, ha="center", va="center", size=9, bbox=box)
    return ax


def _rules_as_text(model: VFDR, names: list[str], decimals: int, show_weights: bool) -> str:
    lines: list[str] = []
    for rule in model.rules_:
        named = {literal.feature for literal in rule.literals if literal.operator == "=="}
        literals = [one for one in rule.literals if one.operator != "!=" or one.feature not in named]
        conditions = " AND ".join(_literal(literal, names, decimals) for literal in literals)
        begin = "ELSE " if lines and (model.ordered or not conditions) else ""
        begin += f"IF {conditions} THEN " if conditions else ""
        lines.append(f"{begin}{_label(model, rule)}{_weights(rule, decimals) * show_weights}")
    return "\n".join(lines)


def _literal(literal: Literal, names: list[str], decimals: int) -> str:
    is_number = literal.operator in ("<=", ">")
    value = _number(literal.value, decimals) if is_number else f"{round(literal.value, decimals):g}"
    return f"{names[literal.feature]} {literal.operator} {value}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 :]}"


def _names(tree: HoeffdingTree | VFDR, names: Sequence[str] | None) -> list[str]:
    check_is_fitted(tree)
    if names is None:
        return list(getattr(tree, "feature_names_in_", [f"feature_{j}" for j in range(tree.n_features_in_)]))
    names = as_list("feature_names", names)
    if len(names) != tree.n_features_in_:
        raise ValueError(
            f"feature_names has {len(names)} names for {tree.n_features_in_} columns: give one name for each column."
        )
    return names


def _label(tree: HoeffdingTree | VFDR, node: Node | Rule) -> Any:
    return tree.classes_[int(node.class_weights.argmax())]


def _weights(node: Node | Rule, decimals: int) -> str:
    return f" {[round(weight, decimals) for weight in node.class_weights.tolist()]}"


def _sign(nodes: list[Node], at: int, decimals: int) -> str:
    """Return the condition on the parent's feature that holds in this branch."""
    node, parent = nodes[at], nodes[nodes[at].parent]
    first = node.parent == at - 1
    if parent.threshold is not None:
        return f"{'<=' if first else '> '} {_number(parent.threshold, decimals)}"
    if node.category is not None:
        return f"== {round(node.category, decimals):g}"
    return f"!= {round(nodes[node.parent + 1].category or 0.0, decimals):g}"


def _number(value: float, decimals: int) -> str:
    small = 0.0 < abs(value) < 0.1
    return f"{value:.{max(decimals, 1)}g}" if small else f"{value:.{decimals}f}"


def _condition(nodes: list[Node], at: int, names: list[str], decimals: int) -> str:
    feature = nodes[nodes[at].parent].feature
    return f"{names[feature or 0]} {_sign(nodes, at, decimals)}"


def _depth_below(nodes: list[Node], top: int) -> int:
    below = takewhile(lambda one: one.depth > nodes[top].depth, nodes[top + 1 :])
    return max((one.depth for one in below), default=nodes[top].depth) - nodes[top].depth + 1


def _places(nodes: list[Node]) -> list[float]:
    """Return the horizontal position of each node: leaves side by side, parents centred above their children."""
    children: list[list[int]] = [[] for _ in nodes]
    for at, node in enumerate(nodes):
        if node.parent >= 0:
            children[node.parent].append(at)
    x, leaves = np.zeros(len(nodes)), 0
    for at in range(len(nodes)):
        if not children[at]:
            x[at], leaves = leaves, leaves + 1
    for at in reversed(range(len(nodes))):
        if children[at]:
            x[at] = (x[children[at][0]] + x[children[at][-1]]) / 2
    return [float(place) for place in x]
