"""Missing values and categories as their definition says it, value by value."""

from math import atan, pi


def encoded(column, target, is_category, prior=10.0, halved_after=1000, n_exact=0):
    """Return the numbers that stand for a column; None where a number is missing."""
    found, sums, seen = [], {}, []
    total = count = 0.0
    is_many = False
    for value, y in zip(column, target, strict=True):
        if is_category:
            n, sum_of = sums.get(value, (0, 0.0))
            mean = sum(seen) / len(seen) if seen else y
            code = (sum_of + prior * mean) / (n + prior)
            sums[value] = n + 1, sum_of + y
            place = list(sums).index(value)
            is_many = is_many or (0 < n_exact <= place and len(seen) < 64)
            if n_exact and not is_many:
                code = place / n_exact if place < n_exact else 1.5 + atan(code) / pi
            found.append(code)
        elif value is None:
            later = [one for one in column[len(seen) :] if one is not None]
            found.append(total / count if count else later[0])
        else:
            found.append(value)
            total, count = total + value, count + 1.0
        seen.append(y)
        if len(seen) % halved_after == 0:
            total, count = total / 2, count / 2
    return found
