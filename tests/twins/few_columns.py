"""Few columns by their definition: every candidate is fitted and scored from scratch with lists and loops."""

import numpy as np

from tamis.dependence.autocorrelation import variance_inflation
from tamis.summaries.paired_losses import PairedLosses


def few_columns(X, y, make, importance, refits, window, penalties=()):
    """Return the candidate and its columns after each refit, and its probabilities for the rows that follow.

    `make(penalties)` returns an unfitted classifier, `refits` are the numbers of rows at which it is fitted.
    """
    n_features, names = X.shape[1], ["all", "1/2", "1/4", "1/8", "1/16"]
    names += [*(f"penalty {p:g}" for p in penalties), "unchanged"]
    used = {name: [] for name in names}
    chosen, evidence, n_before, origin = [], [], 0, "1/2"

    def fit_all(rows, labels):
        models, columns = {"all": make(None).fit(rows, labels)}, {"all": list(range(n_features))}
        is_in_use = len(chosen) > 0 and n_before <= len(rows)
        before = "all"
        for name in names[1:5]:
            gain = importance(models[before])
            ranked = []
            for j, value in zip(columns[before], gain, strict=True):
                ranked.append((-value * (4 if is_in_use and j in used[name] else 1), j))
            n_kept = max(2, len(ranked) // 2)
            columns[name] = sorted(j for _, j in sorted(ranked)[:n_kept])
            models[name] = make(None).fit(rows[:, columns[name]], labels)
            before = name
        for penalty in penalties:
            name = f"penalty {penalty:g}"
            charges = [0.0 if is_in_use and j in used[name] else penalty for j in range(n_features)]
            models[name] = make(charges).fit(rows, labels)
            columns[name] = [j for j in range(n_features) if importance(models[name])[j] > 0]
        if chosen and 0.75 * len(rows) <= n_before <= len(rows):
            columns["unchanged"] = kept = chosen[-1][1]
            models["unchanged"] = make(None).fit(rows[:, kept], labels)
        else:
            models["unchanged"], columns["unchanged"] = models[origin], columns[origin]
        return models, columns

    def predict(name, models, columns, rows):
        n_inputs = models[name].n_features_in_
        return models[name].predict_proba(rows if n_inputs == n_features else rows[:, columns[name]])

    def losses(models, columns, labels_fitted, rows, labels):
        result = []
        share = np.bincount(labels_fitted) / len(labels_fitted)
        constant = sum(p * (1 - p) for p in share) / 2
        for name in names:
            moved = predict(name, models, columns, rows) - share
            truth = np.eye(len(share))[labels] - share
            factor = min(1.0, max(0.0, (moved * truth).sum() / max((moved * moved).sum(), 1e-300)))
            result.append(
                [sum((factor * p - t) ** 2) / 2 / constant for p, t in zip(moved, truth, strict=True)]
            )
        result = np.array(result).T
        differences = (result - result[:, :1]).T
        inflation = variance_inflation(differences - differences.mean(axis=1, keepdims=True)).max()
        return result, np.full(len(labels), 1 / inflation)

    def replace(sizes, paired, tolerance, enough):
        behind, error = paired.behind()
        good = [i for i in range(len(sizes)) if behind[i] <= error[i] and behind[i] <= tolerance]
        is_better = behind[-1] > 2 * error[-1] + 2 / len(paired)
        if not is_better:
            good = [i for i in good if sizes[i] < sizes[-1]]
            if len(paired) < enough:
                good = [i for i in good if error[i] <= tolerance and error[-1] <= tolerance]
        return min(((sizes[i], behind[i], i) for i in good), default=(0, 0, len(sizes) - 1))[2], is_better

    def choose():
        paired = PairedLosses(len(names), 3000)
        for block in evidence:
            paired = paired.with_rows(*block)
        sizes = np.array([len(used[name]) for name in names])
        tolerance = 0.05 * max(1 - paired.mean().min(), 0)
        enough = max(1000, int(100 / (np.bincount(fitted_on) / len(fitted_on)).min()))
        at, is_better = replace(sizes, paired, tolerance, enough)
        least = 0.45 * sizes[-1]
        if not is_better and sizes[at] < least:
            near = [i for i, size in enumerate(sizes) if size >= least]
            at, _ = replace(sizes[near], paired.select(near), tolerance, enough)
            at = near[at]
        for block, _ in evidence:
            block[:, -1] = block[:, at]
        return names[at]

    predicted = []
    for i, at in enumerate(refits):
        first = max(0, at - window)
        if i == 0:
            split = at - (at - first) // 3
            models, used = fit_all(X[first:split], y[first:split])
            n_before, fitted_on = split - first, y[first:split]
            evidence.append(losses(models, used, y[first:split], X[split:at], y[split:at]))
        else:
            since = max(refits[i - 1], first)
            evidence.append(losses(models, used, fitted_on, X[since:at], y[since:at]))
        current = choose()
        origin = origin if current == "unchanged" else current
        models, used = fit_all(X[first:at], y[first:at])
        fitted_on, n_before = y[first:at], at - first
        chosen.append(("1/2" if i == 0 and current == "unchanged" else current, used[current]))
        models["unchanged"], used["unchanged"] = models[current], used[current]
        stop = refits[i + 1] if i + 1 < len(refits) else len(y)
        predicted.append(predict(current, models, used, X[at:stop]))
    return chosen, predicted
