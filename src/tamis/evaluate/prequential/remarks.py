"""Caveats about the results of a run, as sentences.

The gain of a run over a baseline has a standard error from paired differences, since both predict the same rows.
Differences are autocorrelated on a stream: their standard error is that of a mean over dependent values, (10) of
:mod:`tamis.dependence.autocorrelation`. The gain over random subsets also has the error of the mean of the draws, whose
degrees of freedom are one less than the draws.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis.dependence.autocorrelation import MeanError, mean_error
from tamis.options import RunOptions

# -- the gain over a baseline ------------------------------------------------------------------------------


def paired_gain(steps: dict[str, Any], measure: str, baseline: str = "frozen") -> tuple[float, MeanError]:
    """Return the gain per row over a baseline since it was first scored, and its standard error.

    Parameters
    ----------
    steps : dict of str to ndarray
        The frame of the steps.
    measure : {"accuracy", "mae"}
        A positive difference is a higher accuracy, or a lower error.
    baseline : {"frozen", "random", "all"}, default="frozen"
        Prefix of its columns.

    Examples
    --------
    >>> steps = {
    ...     "n_rows": np.full(5, 100), "accuracy_cumulative": np.array([0.5, 0.6, 0.6, 0.6, 0.6]),
    ...     "frozen_accuracy_cumulative": np.array([np.nan, 0.6, 0.5, 0.55, 0.55]),
    ... }
    >>> gain, error = paired_gain(steps, "accuracy")
    >>> round(gain, 3), round(error.error, 3), error.freedom
    (0.083, 0.117, 2.0)
    """
    theirs = np.asarray(steps[f"{baseline}_{measure}_cumulative"])
    known = np.flatnonzero(np.isfinite(theirs))
    if len(known) < 3:
        return math.nan, MeanError(math.nan, 0.0)
    seen = np.cumsum(steps["n_rows"]).astype(np.float64)
    ahead = (np.asarray(steps[f"{measure}_cumulative"]) - theirs) * seen
    if measure == "mae":
        ahead = -ahead
    sums, n_rows = np.diff(ahead[known]), np.diff(seen[known])
    return float(sums.sum() / n_rows.sum()), mean_error(sums, n_rows)


def auc_gain(steps: dict[str, Any], window: int, baseline: str = "frozen") -> tuple[float, MeanError]:
    """Return the gain in AUC over a baseline since it was first scored, and its standard error.

    The mean over non-overlapping windows of the run; NaN if the run has no AUC at its end. The error is NaN for a
    single window.
    """
    theirs = np.asarray(steps[f"{baseline}_auc_windowed"])
    known = np.flatnonzero(np.isfinite(theirs))
    nothing = math.nan, MeanError(math.nan, 0.0)
    if len(known) < 2 or not math.isfinite(steps["auc_cumulative"][-1]):
        return nothing
    seen = np.cumsum(steps["n_rows"])
    start, end = int(seen[known[0]]), int(seen[known[-1]])
    at = np.unique(np.searchsorted(seen, np.arange(end, start, -window)))
    at = at[np.isfinite(theirs[at]) & (seen[at] - start >= min(window, end - start))]
    apart = np.asarray(steps["auc_windowed"])[at] - theirs[at]
    if not len(apart):
        return nothing
    error = mean_error(apart, np.ones(len(apart)))
    return float(apart.mean()), error._replace(missing=error.missing * window)


def with_draws(error: MeanError, spread: float, n_draws: int) -> MeanError:
    """Return an error with that of the mean of random draws, whose standard deviation is the spread.

    The error of a single draw is unknown, so nothing is significant.
    """
    return error.plus(np.nan_to_num(spread) / math.sqrt(n_draws), n_draws - 1.0)._replace(
        **({} if n_draws > 1 else {"freedom": 0.0})
    )


RARE = 0.1  # share of the rows below which accuracy hardly depends on the selection
_FEW_CHANGES = 12  # of the label in a run, below which its rows are sorted or contain few episodes
_RANKS = 0.6  # the AUC above which a model is useful regardless of its accuracy


def remarks_on(total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    """Return a remark on each baseline that the run does not exceed, and the reason if fewer features are selected.

    Parameters
    ----------
    total : dict of str to float
        The result of ``PrequentialResult.summary()``.
    settings : dict
        Settings of the run.

    Examples
    --------
    >>> total = {"accuracy": 0.40, "majority_accuracy": 0.61, "random_accuracy": 0.52, "random_spread": 0.03}
    >>> below, loses = remarks_on(total, {"options": {"n_draws": 3}})
    >>> below[:45], loses[:40]
    ('Accuracy 0.400 is below the majority class, 0', 'The selection loses to random subsets of')
    """
    return [*_remarks_on(total, settings), *_remarks_on_labels(settings.get("labels", {}))]


def _remarks_on_labels(labels: dict[str, int]) -> list[str]:
    reasons = [
        f"{labels[name]:,} {'label' if labels[name] == 1 else 'labels'} {status}"
        for name, status in (
            ("never", "never arrived"),
            ("given_up", "arrived too late: more than max_waiting rows waited"),
        )
        if labels.get(name)
    ]
    return [f"These rows were not learned: {'; '.join(reasons)}."] if reasons else []


def _remarks_on(total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    if "mae" in total:
        items, measures = _beside_constants(total), ("mae", "mae")
    else:
        if total["majority_accuracy"] == 1.0:
            return [
                "Every row has the same label, so nothing can be selected or evaluated:"
                " check which column is the label."
            ]
        items = [*_few_changes(total), *_beside_classes(total, settings)]
        kept = settings.get("comparison", {}).get("share", {}).get("all", 0.0)
        if kept > 0.5:
            items.append(
                f"Auto kept all features for {kept:.0%} of the rows: no smaller candidate was more accurate there."
            )
            return items
        names = (f"{name}_auc" for name in ("frozen", "random"))
        first, second = (
            is_uninformative(total["accuracy"], total["majority_accuracy"], total.get(name, math.nan))
            for name in names
        )
        measures = ("auc" if first else "accuracy", "auc" if second else "accuracy")
    items += [*_beside_frozen(measures[0], total, settings), *_beside_random(measures[1], total, settings)]
    return [*items, *_beside_all(total), *([why] if (why := settings.get("why_fewer")) else [])]


def _few_changes(total: dict[str, float]) -> list[str]:
    """Return a remark if the label changes so rarely that the rows are sorted by it, or contain few episodes."""
    n, majority = total.get("n_rows", 0.0), total["majority_accuracy"]
    changes = round((1.0 - total.get("no_change_accuracy", 0.0)) * n)
    if n == 0.0 or changes > _FEW_CHANGES or 10 * changes > 2.0 * majority * (1.0 - majority) * n:
        return []
    return [
        f"The label changes only {changes} time{'s' * (changes != 1)} in {n:,.0f} rows: they are sorted by it, or each"
        " class is in a few runs, so no figure here says how well a selection predicts. Shuffle the rows if their order"
        " has no meaning."
    ]


def _beside_classes(total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    """Return remarks on the majority-class and the no-change baseline, and on the measures that are not defined."""
    accuracy, majority, items = total["accuracy"], total["majority_accuracy"], []
    if "third_class" in settings:
        items.append(
            f"{settings['third_class']!r} is a third class, so AUC, average precision and recall at a precision are no"
            " longer defined: read macro AUC, the one-vs-rest AUC averaged over the classes."
        )
    is_scaled = settings.get("scale") == "standard"
    advice = f"Try another learner, {'or more features' if is_scaled else 'more features, or standardised columns'}."
    verb = "is below" if accuracy < majority else "does not exceed"
    below = f"Accuracy {accuracy:.3f} {verb} the majority class, {majority:.3f}"
    auc, is_rare = total.get("auc", math.nan), is_imbalanced(total)
    if is_rare and auc <= _RANKS:
        items.append(
            f"AUC {auc:.3f}: the model ranks rows of the rare class hardly better than a random ranking, 0.5. {advice}"
        )
    if accuracy <= majority and not is_rare:
        items.append(
            f"{below}, but the model ranks the rows: AUC {auc:.3f}. Read AUC and average precision here."
            if auc > _RANKS
            else f"{below}: the model is {'worse' if accuracy < majority else 'no better'} than the majority-class"
            f" baseline. {advice}"
        )
    elif accuracy <= majority:
        items.append(f"{below}, as one class is rare: read AUC and average precision here.")
    last = total.get("no_change_accuracy", math.nan)
    if accuracy <= last and last > majority:
        verb = "is below" if accuracy < last else "does not exceed"
        items.append(
            f"Accuracy {accuracy:.3f} {verb} the no-change baseline, {last:.3f}, which repeats the previous label:"
            " labels are autocorrelated. If they are known in time, try batch_size='auto', or the previous label as a"
            " feature."
        )
    return items


def _beside_constants(total: dict[str, float]) -> list[str]:
    """Return remarks on the mean of all targets before, and on the target before."""
    mae, constant, last, items = total["mae"], total["mean_mae"], total.get("last_mae", math.nan), []
    if mae >= constant:
        items.append(
            f"The mean absolute error {mae:.4g} is not below that of the mean of all targets before, {constant:.4g}:"
            " the model is no more accurate than a constant prediction. Try another learner, or more features."
        )
    if mae >= last and last < constant:
        items.append(
            f"The mean absolute error {mae:.4g} is not below that of the previous target, {last:.4g}: targets are"
            " autocorrelated. If they are known in time, try batch_size='auto', or the previous target as a feature."
        )
    return items


def _beside_random(name: str, total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    """Return a remark on random subsets, unless the run exceeds their mean by more than half of the 95 % interval."""
    spread = total.get("random_auc_spread" if name == "auc" else "random_spread", math.nan)
    n_draws, which = (
        RunOptions.from_settings(settings).n_draws,
        "random_auc_gain" if name == "auc" else "random_gain",
    )
    bound = total.get(f"{which}_bound", math.nan)
    if math.isnan(bound):
        bound = with_draws(MeanError(0.0, math.inf), spread, n_draws).bound
    ours, mean, sign = total[name], total.get(f"random_{name}", math.nan), -1.0 if name == "mae" else 1.0
    ahead, digits = sign * (ours - mean), ".4g" if name == "mae" else ".3f"
    if (missing := total.get(f"{which}_missing", 0.0)) > 0.0:
        return [_undetermined("random subsets of the same size", missing)] if ahead <= 0.0 else []
    is_known = math.isfinite(bound)  # not from a single draw
    if not ahead <= (bound if is_known else 0.0):  # NaN: not compared
        return []
    loses = ahead < -bound and f"{ours:{digits}}" != f"{mean:{digits}}"
    interval = f" ± {bound:{'.2g' if name == 'mae' else '.3f'}} (mean of {n_draws} draws, and 95 % interval)"
    return [
        f"The selection {'loses to' if loses else 'is not significantly better than'} random subsets of the same size:"
        f" {_WORDS.get(name, name)} {ours:{digits}} against {mean:{digits}}{interval if is_known else ' (one draw)'}."
        f" {'Try more features, or another selector' if ahead <= 0.0 else 'More rows and draws narrow the interval'}."
    ]


def _beside_all(total: dict[str, float]) -> list[str]:
    """Return a remark if the same learner with all features is significantly better."""
    gain, bound = total.get("all_gain", math.nan), total.get("all_gain_bound", math.nan)
    if math.isnan(gain) or total["n_selected"] >= total["n_features"]:
        return []
    if (missing := total.get("all_gain_missing", 0.0)) > 0.0:
        return [_undetermined(f"all {total['n_features']:,.0f} features", missing)] if gain <= 0.0 else []
    name = "mae" if "mae" in total else "accuracy"
    digits = ".4g" if name == "mae" else ".3f"
    if not gain < -bound or f"{total[name]:{digits}}" == f"{total[f'all_{name}']:{digits}}":
        return []
    return [
        f"The selection loses to all {total['n_features']:,.0f} features: {_WORDS.get(name, name)}"
        f" {total[name]:{digits}} against {total[f'all_{name}']:{digits}} (95 % interval of the difference:"
        f" ± {bound:{'.2g' if name == 'mae' else '.3f'}})."
    ]


_WORDS = {"auc": "AUC", "mae": "mean absolute error"}


def _beside_frozen(name: str, total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    """Return a remark on the frozen selection, unless the run exceeds it by more than half of the 95 % interval."""
    word = _WORDS.get(name, name)
    which = "frozen_auc_gain" if name == "auc" else "frozen_gain"
    gain, bound = (total.get(f"{which}{part}", math.nan) for part in ("", "_bound"))
    if math.isnan(gain) or total["n_selected"] >= total["n_features"]:
        return []
    frozen = f"one frozen after {RunOptions.from_settings(settings).frozen_after:,} rows (L1)"
    if (missing := total.get(f"{which}_missing", 0.0)) > 0.0:
        return [_undetermined(frozen, missing)] if gain <= 0.0 else []
    if not gain <= bound:
        return []
    digits, is_higher = (".3g", gain <= 0.0) if name == "mae" else (".3f", gain >= 0.0)
    size = f"{abs(gain):{digits}}"
    verdict = "loses to" if gain < -bound and float(size) else "is not significantly better than"
    apart = f"{size} {'higher' if is_higher else 'lower'} (95 % interval: ± {bound:{digits}})"
    return [
        f"The selection {verdict} {frozen}: since then its {word} is {apart if float(size) else 'the same'}."
    ]


def _undetermined(baseline: str, missing: float) -> str:
    return (
        f"Whether the selection loses to {baseline} is undetermined: errors depend on those of so many rows before"
        f" that about {float(f'{missing:.1g}'):,.0f} more rows are needed."
    )


def is_imbalanced(total: dict[str, float]) -> bool:
    """Return whether one of two classes has less than a tenth of the rows, so AUC is more informative than accuracy.

    Examples
    --------
    >>> is_imbalanced({"majority_accuracy": 0.99, "average_precision": 0.2})
    True
    >>> is_imbalanced({"majority_accuracy": 0.6, "average_precision": 0.7})
    False
    """
    is_ranked = math.isfinite(total.get("average_precision", math.nan))
    return is_ranked and total["majority_accuracy"] > 1.0 - RARE


def threshold_note(settings: dict[str, Any]) -> str:
    """Return a note on the decision threshold, with its precision and recall and those of the learner's own threshold.

    Examples
    --------
    >>> threshold = {"value": 0.03, "every": 1000, "window": 10000, "own_value": 0.5, "score": "probability",
    ...          "precision": 0.25, "recall": 0.5, "own_precision": None, "own_recall": 0.0}
    >>> threshold_note({"positive": "fraud", "threshold": threshold})[:50]
    "Decision threshold of 'fraud': probability 0.03, c"
    """
    if not (threshold := settings.get("threshold")):
        return ""
    own = "none is predicted" if threshold["own_precision"] is None else _precision_of(threshold, "own_")
    return (
        f"Decision threshold of {settings['positive']!r}: {threshold['score']} {threshold['value']:.3g}, chosen every"
        f" {threshold['every']:,} rows for the largest F1 of the last {threshold['window']:,} labelled rows:"
        f" {_precision_of(threshold)}; at the learner's own threshold, {threshold['own_value']:g}: {own}."
    )


def _precision_of(threshold: dict[str, Any], prefix: str = "") -> str:
    precision, recall = (threshold[f"{prefix}{name}"] for name in ("precision", "recall"))
    return f"precision {math.nan if precision is None else precision:.3f}, recall {recall or 0.0:.3f}"


def is_uninformative(accuracy: Any, majority: Any, random_auc: Any) -> Any:
    """Return whether AUC is more informative than accuracy: one class is rare, or the majority baseline is as accurate.

    Always False if random subsets have no AUC, because there are more classes or none was requested.

    Examples
    --------
    >>> is_uninformative(np.array([0.99, 0.8, 0.99]), np.array([0.99, 0.6, 0.99]), np.array([0.7, 0.7, np.nan]))
    array([ True, False, False])
    """
    return np.isfinite(random_auc) & ((majority > 1.0 - RARE) | (accuracy <= majority))
