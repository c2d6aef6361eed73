"""GFSFS with dictionaries: each gain from the rows of every stratum, its mean from binomial coefficients."""

import math
from collections import Counter, defaultdict


def log_sum(counts):
    return sum(n * math.log(n) for n in counts)


def gain(columns, given, y):
    """The information of columns about y beside others less its mean, and that mean, of y permuted within strata."""
    rows, total, mean = range(len(y)), 0.0, 0.0
    strata = defaultdict(list)
    for i in rows:
        strata[tuple(column[i] for column in given)].append(i)
    for members in strata.values():
        values = Counter(tuple(column[i] for column in columns) for i in members)
        classes = Counter(y[i] for i in members)
        both = Counter((tuple(column[i] for column in columns), y[i]) for i in members)
        total += log_sum(both.values())
        mean += log_sum([len(members)]) - log_sum(values.values()) - log_sum(classes.values())
        for a in values.values():
            for b in classes.values():
                for t in range(max(2, a + b - len(members)), min(a, b) + 1):
                    ways = math.comb(a, t) * math.comb(len(members) - a, b - t)
                    term = ways / math.comb(len(members), b) * t * math.log(t)
                    total, mean = total - term, mean + term
    return total / len(y), max(mean, 0.0) / len(y)


def gfsfs(groups, y, of_group, of_feature):
    """The selected groups, as lists of columns by name; `groups` has a dict of columns for each group."""
    values = {name: column for group in groups for name, column in group.items()}

    def adds(names, given):
        return gain([values[name] for name in names], [values[name] for name in given], y)[0]

    def enters(names, given, cost):
        more, mean = gain([values[name] for name in names], [values[name] for name in given], y)
        return more > cost + 3 * math.sqrt(mean / len(y))

    def pays(names, given):
        return bool(names) and enters(names, given, of_group + of_feature * len(names))

    def still_pays(names, given):
        return bool(names) and adds(names, given) > of_group + of_feature * len(names)

    def needed(names, given):
        left = list(names)
        for name in names:
            rest = [other for other in left if other != name]
            if adds([name], given + rest) <= of_feature:
                left = rest
        return left

    def choose(names, given):
        chosen = []
        for name in names:
            if enters([name], given + chosen, of_feature):
                chosen.append(name)
                continue
            swaps = []
            for old in chosen:
                rest = [other for other in chosen if other != old]
                more = adds([name], given + rest) - adds([old], given + rest)
                if enters([name], given + rest, of_feature) and more > 1e-12:
                    swaps.append((more, [*rest, name]))
            if swaps:
                chosen = max(swaps, key=lambda swap: swap[0])[1]
        if not chosen and pays(names, given):
            chosen = list(names)
        return needed(chosen, given) if len(chosen) > 1 else chosen

    selected = []
    for group in groups:
        flat = [name for members in selected for name in members]
        chosen = choose(list(group), flat)
        if pays(chosen, flat):
            selected.append(chosen)
            for old in selected[:-1]:
                others = [name for members in selected if members is not old for name in members]
                left = needed(old, others)
                at = next(i for i, members in enumerate(selected) if members is old)
                selected[at : at + 1] = [left] if still_pays(left, others) else []
            continue
        swaps = []
        for old in selected:
            rest = [members for members in selected if members is not old]
            flat = [name for members in rest for name in members]
            chosen = choose(list(group), flat)
            more = adds(chosen, flat) - adds(old, flat) - of_feature * (len(chosen) - len(old))
            if pays(chosen, flat) and more > 1e-12:
                swaps.append((more, [*rest, chosen]))
        if swaps:
            selected = max(swaps, key=lambda swap: swap[0])[1]
    return selected
