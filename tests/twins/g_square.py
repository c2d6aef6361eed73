"""The G-square test, each stratum of the conditions tested by SciPy and the results added up."""

import itertools

import numpy as np
import scipy.stats


def g_square(x, y, given):
    found = 0.0
    strata = sorted(set(zip(*given, strict=True))) if given else [()]
    for stratum in strata:
        rows = np.all([g == value for g, value in zip(given, stratum, strict=True)], axis=0) if given else ...
        table = scipy.stats.contingency.crosstab(x[rows], y[rows]).count
        found += scipy.stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
    return found


def degrees(x, y, given):
    sizes = [len(np.unique(g)) for g in given]
    return int((len(np.unique(x)) - 1) * (len(np.unique(y)) - 1) * np.prod(sizes))


def separated(X, y, i, others, alpha, most, unreliable="skip", always=()):
    for size in range(1 - len(always), most + 1 - len(always)):
        for more in itertools.combinations(others, size):
            given = [X[:, j] for j in (*always, *more)]
            df = degrees(X[:, i], y, given)
            if len(y) < 5 * df:
                if unreliable == "independent":
                    return True
                continue
            if scipy.stats.chi2.sf(g_square(X[:, i], y, given), df) >= alpha:
                return True
    return False
