"""A tree of boosting as its definition says it: every split of every node is tried, on lists."""


def gain(rows, g, h):
    return sum(g[i] for i in rows) ** 2 / (sum(h[i] for i in rows) + 1.0)


def splits(codes, rows, n_codes):
    """Every way to part rows: unknown values, code 0, go left, or right."""
    for j in range(len(codes[0])):
        for unknown_left in (True, False):
            if not unknown_left and not any(codes[i][j] == 0 for i in rows):
                continue
            for cut in range(n_codes - 1):
                left = [i for i in rows if (unknown_left if codes[i][j] == 0 else codes[i][j] <= cut)]
                yield left, [i for i in rows if i not in left]


def leaves(codes, rows, g, h, weight, n_codes, depth, least):
    """Return the leaf of each row, a dict, and add up what the rows of a node say, (1)."""
    if depth == 0:
        leaf = -sum(g[i] for i in rows) / (sum(h[i] for i in rows) + 1.0)
        return dict.fromkeys(rows, leaf)
    best, parts = gain(rows, g, h) + 1e-9, (rows, [])
    for left, right in splits(codes, rows, n_codes):
        if min(sum(weight[i] for i in part) for part in (left, right)) < least:
            continue
        found = gain(left, g, h) + gain(right, g, h)
        if found > best:
            best, parts = found, (left, right)
    return {
        i: leaf
        for part in parts
        if part
        for i, leaf in leaves(codes, part, g, h, weight, n_codes, depth - 1, least).items()
    }
