"""Minimum redundancy, maximum relevance as its definition says it: one pair of columns at a time."""

from sklearn.metrics import adjusted_mutual_info_score


def mrmr(codes, y, price, n_columns):
    """Columns in the order of equation (7) of Peng, Long, Ding (2005), per price; information adjusted for chance."""
    d = len(codes[0])
    column = [[row[j] for row in codes] for j in range(d)]
    relevance = [adjusted_mutual_info_score(y, column[j]) for j in range(d)]
    chosen = []
    while len(chosen) < n_columns:
        worth = {}
        for j in range(d):
            if j in chosen:
                continue
            shared = [adjusted_mutual_info_score(column[j], column[k]) for k in chosen]
            gain = relevance[j] - (sum(shared) / len(shared) if shared else 0.0)
            worth[j] = gain / price[j] if gain > 0 else gain * price[j]
        chosen.append(max(worth, key=worth.get))
    return chosen
