"""Caveats about the results of a run, as sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis.evaluate.prequential.baselines import error_of_mean
from tamis.options import RunOptions

__all__ = ["RARE", "is_imbalanced", "is_uninformative", "remarks_on", "threshold_note"]

RARE = 0.1  # share of the rows below which accuracy hardly depends on the selection
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
        return _remarks_on_errors(total, settings)
    accuracy = total["accuracy"]
    if total["majority_accuracy"] == 1.0:
        return [
            "Every row has the same label, so nothing can be selected or evaluated: check which column is the label."
        ]
    items = []
    if "third_class" in settings:
        items.append(
            f"{settings['third_class']!r} is a third class, so AUC, average precision and recall at a precision are no"
            " longer defined: read macro AUC, the one-vs-rest AUC averaged over the classes."
        )
    scale = "" if settings.get("scale") == "standard" else ", or standardised columns"
    first = "another learner, more features" if scale else "another learner, or more features"
    if is_imbalanced(total):
        if total["auc"] <= _RANKS:
            items.append(
                f"AUC {total['auc']:.3f}: the model ranks rows of the rare class hardly better than a random ranking,"
                f" 0.5. Try {first}{scale}."
            )
    elif accuracy < total["majority_accuracy"]:
        below = f"Accuracy {accuracy:.3f} is below the majority class, {total['majority_accuracy']:.3f}"
        items.append(
            f"{below}, but the model ranks the rows: AUC {total['auc']:.3f}. Read AUC and average precision here."
            if total.get("auc", 0.5) > _RANKS
            else f"{below}: the model is worse than the majority-class baseline. Try {first}{scale}."
        )
    kept = settings.get("race", {}).get("share", {}).get("all", 0.0)
    if kept > 0.5:
        items.append(
            f"Auto kept all features for {kept:.0%} of the rows: no smaller candidate was more accurate there."
        )
        return items
    ranks = is_uninformative(accuracy, total["majority_accuracy"], total.get("frozen_auc", math.nan))
    items += _beside_frozen("auc" if ranks else "accuracy", total, settings)
    by_rank = is_uninformative(accuracy, total["majority_accuracy"], total.get("random_auc", math.nan))
    metric, name, spread = (
        ("AUC", "auc", "random_auc_spread") if by_rank else ("accuracy", "accuracy", "random_spread")
    )
    ours, mean = total[name], total.get(f"random_{name}", math.nan)
    error, draws = _chance(total.get(spread, math.nan), settings)
    if ours <= mean + error:
        verdict = "loses to" if ours < mean - error else "does no better than"
        items.append(
            f"The selection {verdict} random subsets of the same size: {metric} {ours:.3f} against"
            f" {mean:.3f} ± {error:.3f} (mean and standard error of {draws}). Try more features, or another selector."
        )
    items += [why] if (why := settings.get("why_fewer")) else []
    return items


def _remarks_on_errors(total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    mae, constant, items = total["mae"], total["mean_mae"], []
    if mae >= constant:
        items.append(
            f"The mean absolute error {mae:.4g} is not below that of the mean of all targets before, {constant:.4g}:"
            " the model is no more accurate than a constant prediction. Try another learner, or more features."
        )
    items += _beside_frozen("mae", total, settings)
    mean = total.get("random_mae", math.nan)
    error, draws = _chance(total.get("random_spread", math.nan), settings)
    if mae >= mean - error:
        verdict = "loses to" if mae > mean + error else "does no better than"
        items.append(
            f"The selection {verdict} random subsets of the same size: mean absolute error {mae:.4g} against"
            f" {mean:.4g} ± {error:.2g} (mean and standard error of {draws}). Try more features, or another selector."
        )
    return [*items, *([why] if (why := settings.get("why_fewer")) else [])]


def _beside_frozen(name: str, total: dict[str, float], settings: dict[str, Any]) -> list[str]:
    """Return a remark on the frozen selection, unless the run exceeds it by more than one standard error."""
    word = {"auc": "AUC", "mae": "mean absolute error"}.get(name, name)
    which = "frozen_auc_gain" if name == "auc" else "frozen_gain"
    gain, error = total.get(which, math.nan), total.get(f"{which}_error", math.nan)
    if not gain <= error or total["n_selected"] >= total["n_features"]:  # NaN: not compared
        return []
    verdict = "loses to" if gain < -error else "does no better than"
    after = RunOptions.from_settings(settings).frozen_after
    digits, is_higher = (".3g", gain <= 0.0) if name == "mae" else (".3f", gain >= 0.0)
    size = f"{abs(gain):{digits}}"
    apart = f"{size} {'higher' if is_higher else 'lower'} (standard error {error:{digits}})"
    return [
        f"The selection {verdict} one frozen after {after:,} rows (L1): since then its {word} is"
        f" {apart if float(size) else 'the same'}."
    ]


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


def _chance(spread: float, settings: dict[str, Any]) -> tuple[float, str]:
    """Return the standard error over random subsets, and the number of draws."""
    n_draws = RunOptions.from_settings(settings).n_draws
    return error_of_mean(spread, n_draws), f"{n_draws} draw{'s' * (n_draws != 1)}"
