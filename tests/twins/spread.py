"""What the spread of columns says of the class, as its definition has it: one column, one class, one row at a time."""

from math import log


def is_known(value):
    return value == value  # NaN is not


def variances(column, y, n_classes):
    """The mean and the variance of each class by equation (2), and the variance within all; None for a class unseen."""
    rows = [
        [x for x, label in zip(column, y, strict=True) if label == c and is_known(x)]
        for c in range(n_classes)
    ]
    n = sum(map(len, rows))
    seen = [c for c in range(n_classes) if rows[c]]
    mean = {c: sum(rows[c]) / len(rows[c]) for c in seen}

    def moment(c, power):
        return sum((x - mean[c]) ** power for x in rows[c])

    common = sum(moment(c, 2) for c in seen) / n
    variance = {c: (moment(c, 2) + 10 * common) / (len(rows[c]) + 10) for c in seen}
    kurtosis = sum(moment(c, 4) / variance[c] ** 2 for c in seen) / n
    middle = sum(len(rows[c]) * log(variance[c]) for c in seen) / n
    chi2 = sum(len(rows[c]) * (log(variance[c]) - middle) ** 2 for c in seen) / (max(kurtosis, 3) - 1)
    w = max(0.0, 1 - 2 * (len(seen) - 1) / chi2) if chi2 > 0 else 0.0
    drawn = {c: common * (variance[c] / common) ** w for c in seen}
    return mean, drawn, common


def evidence(row, known_rows, y, n_classes):
    """What the values of a row, NaN where missing, say of each class, equation (1)."""
    found = [0.0] * n_classes
    for j, x in enumerate(row):
        if not is_known(x):
            continue
        mean, variance, common = variances([r[j] for r in known_rows], y, n_classes)
        for c in mean:
            found[c] -= 0.5 * log(variance[c] / common)
            found[c] -= (x - mean[c]) ** 2 / 2 * (1 / variance[c] - 1 / common)
    return found
