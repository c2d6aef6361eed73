"""Runs made up for the tests of the report: what they hold is known, and any length takes no time."""

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.evaluate.prequential.result import STEP_COLUMNS

ELECTRICITY = ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]


def settings(**changed):
    base = {
        "stream": {
            "kind": "dataset",
            "name": "electricity",
            "shuffle": None,
            "shape": [45312, 8],
            "fingerprint": "0a1b",
        },
        "selector": {"class": "tamis.rows.fires.FIRES", "params": {"n_features_to_select": 4}},
        "learner": {"class": "tamis.learners.linear.Perceptron", "params": {"random_state": 0}},
        "options": {
            "batch_size": 100,
            "protocol": "honest",
            "window": 1000,
            "stability_window": 10,
            "n_tracked": 20,
        },
        "versions": {"tamis": "0.1.0"},
    }
    return {**base, **changed}


def make_run(
    n_steps=60, n_features=8, n_selected=4, names=None, seed=0, batch=100, churn=0.1, n_tracked=20, **changed
):
    rng = np.random.default_rng(seed)
    names = names or [f"x{j}" for j in range(n_features)]
    step = np.arange(n_steps)
    n_rows = np.full(n_steps, batch)
    accuracy = np.clip(0.8 + 0.05 * np.sin(step / 40) + rng.normal(0, 0.04, n_steps), 0, 1)
    whole = np.cumsum(accuracy) / (step + 1) if n_steps else accuracy
    kernel = min(10, max(n_steps, 1))
    recent = (
        np.convolve(np.pad(accuracy, (kernel - 1, 0), mode="edge"), np.ones(kernel) / kernel, "valid")
        if n_steps
        else accuracy
    )
    current, events, entered, left = [], [], [], []
    for t in range(n_steps):
        new = list(current)
        if not current:
            new = rng.choice(n_features, n_selected, replace=False).tolist()
        elif rng.random() < churn and n_selected < n_features:
            while (feature := int(rng.integers(n_features))) in current:
                pass
            new[int(rng.integers(len(new)))] = feature
        gone, come = set(current) - set(new), set(new) - set(current)
        events += [(t, j, "enter") for j in sorted(come)] + [(t, j, "leave") for j in sorted(gone)]
        entered.append(len(come))
        left.append(len(gone))
        current = new
    tracked = min(n_tracked, n_features)
    level = rng.normal(0, 1, tracked)[None, :] + np.cumsum(rng.normal(0, 0.05, (n_steps, tracked)), axis=0)
    features = np.tile(np.arange(tracked), n_steps)
    stability = np.clip(0.9 + 0.08 * np.sin(step / 15), 0, 1)
    stability[:1] = np.nan
    frames = {
        "steps": {
            "step": step,
            "n_seen": batch + np.cumsum(n_rows),
            "n_rows": n_rows,
            "accuracy": accuracy,
            "accuracy_cumulative": whole,
            "accuracy_windowed": recent,
            "kappa_cumulative": 2 * whole - 1,
            "kappa_windowed": 2 * recent - 1,
            "balanced_accuracy_cumulative": whole - 0.02,
            "balanced_accuracy_windowed": recent - 0.02,
            "majority_accuracy_cumulative": np.full(n_steps, 0.575),
            "majority_accuracy_windowed": np.full(n_steps, 0.575),
            "no_change_accuracy_cumulative": np.full(n_steps, 0.853),
            "no_change_accuracy_windowed": 0.85 + 0.02 * np.cos(step / 30),
            "frozen_accuracy_cumulative": np.where(step < 10, np.nan, whole - 0.04),
            "frozen_accuracy_windowed": np.where(step < 10, np.nan, recent - 0.04),
            "stability": stability,
            "n_selected": np.full(n_steps, n_selected),
            "n_entered": np.array(entered, int),
            "n_left": np.array(left, int),
            "seconds_select": rng.gamma(4, 5e-5, n_steps),
            "seconds_predict": rng.gamma(4, 2e-5, n_steps),
            "seconds_learn": rng.gamma(4, 8e-5, n_steps),
            "seconds_total": rng.gamma(4, 5e-5, n_steps) + 8e-4,
            "seconds_run": np.full(n_steps, 2e-3),
            "memory_bytes": 180e6 + 1e4 * step,
        },
        "changes": {
            "step": np.array([e[0] for e in events], int),
            "feature": np.array([e[1] for e in events], int),
            "name": np.array([names[e[1]] for e in events], object),
            "event": np.array([e[2] for e in events], object),
        },
        "scores": {
            "step": np.repeat(step, tracked),
            "feature": features,
            "name": np.array([names[j] for j in features], object),
            "score": level.ravel(),
        },
    }
    for name in STEP_COLUMNS:
        frames["steps"].setdefault(name, np.full(n_steps, np.nan))
    return PrequentialResult(frames, settings(**changed), names)


def with_truth(run, drift=0.5):
    """Let features 0 and 1 be relevant before the drift, and 1 and the last one after it."""
    n_steps, last = len(run.frames["steps"]["step"]), run.n_features - 1
    at = int(drift * n_steps)
    events = [(0, 0, "enter"), (0, 1, "enter"), (at, 0, "leave"), (at, last, "enter")]
    step, feature, event = zip(*events, strict=True)
    run.frames["truth"] = {
        "step": np.array(step),
        "feature": np.array(feature),
        "name": np.array([run.feature_names[j] for j in feature], object),
        "event": np.array(event, object),
    }
    after = np.arange(n_steps) >= at
    run.frames["steps"]["rsr"] = np.where(after, 0.5, 1.0)
    run.frames["steps"]["cucp"] = np.full(n_steps, 0.9)
    run.frames["steps"]["selection_accuracy"] = 0.7 * run.frames["steps"]["rsr"] + 0.27
    run.settings |= {"drifts": [float(run.frames["steps"]["n_seen"][at])], "drift_widths": [0.0]}
    return run
