"""Alpha-investing as Figure 1 says it: a full regression for every candidate, and one wealth."""

import math

import numpy as np
from scipy import stats


def last_p_value(columns, y, intercept=True):
    """The p-value of the last coefficient of a least-squares fit, from the textbook."""
    design = np.column_stack([np.ones(len(y))] * intercept + list(columns))
    beta, *_ = np.linalg.lstsq(design, y, rcond=None)
    residual = y - design @ beta
    df = len(y) - design.shape[1]
    variance = residual @ residual / df * np.linalg.inv(design.T @ design)[-1, -1]
    return 2 * stats.t.sf(abs(beta[-1]) / math.sqrt(variance), df)


def alpha_investing(X, y, w0=0.5, payout=0.5, intercept=True):
    wealth, selected, p_values, wealths = w0, [], [], []
    for i in range(1, X.shape[1] + 1):
        p = last_p_value([X[:, j] for j in selected] + [X[:, i - 1]], y, intercept)
        level = wealth / (2 * i)
        if p <= level:
            selected.append(i - 1)
            wealth += payout - level
        else:
            wealth -= level
        p_values.append(p)
        wealths.append(wealth)
    return selected, p_values, wealths
