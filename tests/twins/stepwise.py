"""Forward stepwise regression by full regressions: at each step the column with the smallest RSS."""

import math

from tests.twins.penalised import charge, rss


def stepwise(X, y, criterion, max_features):
    selected = []
    while len(selected) < max_features:
        kept = [X[:, j] for j in selected]
        left = [j for j in range(X.shape[1]) if j not in selected]
        best = min(left, key=lambda j: rss([*kept, X[:, j]], y))
        gain = len(y) * math.log(rss(kept, y) / rss([*kept, X[:, best]], y))
        if gain <= charge(criterion, len(y), X.shape[1] + 1):
            break
        selected.append(best)
    return selected
