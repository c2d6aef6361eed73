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


def robust_test(design, target, df):
    """HC2 of the last coefficient of a least-squares fit, from the textbook, and its degrees of freedom."""
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ target
    meat = np.zeros_like(inverse)
    for row, value in zip(design, target, strict=True):
        meat += np.outer(row, row) * (value - row @ beta) ** 2 / (1 - row @ inverse @ row)
    variance = (inverse @ meat @ inverse)[-1, -1]
    others = design[:, :-1]
    z = design[:, -1] - others @ np.linalg.lstsq(others, design[:, -1], rcond=None)[0]
    degrees = min(sum(z**2) ** 2 / sum(z**4) - 1, df)
    t = abs(beta[-1]) / math.sqrt(variance)
    return t, 2 * stats.t.sf(t, degrees)


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


def group_p_value(columns, selected, y, intercept=True):
    """The F test of the last coefficients of a least-squares fit, from two residual sums of squares."""
    residuals = []
    for chosen in (selected, [*selected, *columns]):
        design = (
            np.column_stack([np.ones(len(y))] * intercept + list(chosen)) if chosen or intercept else None
        )
        fitted = 0.0 if design is None else design @ np.linalg.lstsq(design, y, rcond=None)[0]
        residuals.append(float(np.sum((y - fitted) ** 2)))
    df = len(y) - intercept - len(selected) - len(columns)
    f = (residuals[0] - residuals[1]) / len(columns) / (residuals[1] / df)
    return stats.f.sf(f, len(columns), df)


def group_alpha_investing(X, y, groups, p_value, w0=0.5, payout=0.5):
    """Alpha-investing with a test for each group of columns; `p_value(columns, selected, y)`."""
    wealth, selected, p_values = w0, [], []
    for i, group in enumerate(groups, 1):
        p = p_value([X[:, j] for j in group], [X[:, j] for j in selected], y)
        level = wealth / (2 * i)
        if p <= level:
            selected += group
        wealth += payout - level if p <= level else -level
        p_values += [p] * len(group)
    return selected, p_values, wealth


def logistic_likelihood(columns, y):
    """The largest log likelihood of a logistic model with a constant, by Newton's method."""
    design = np.column_stack([np.ones(len(y)), *columns])
    beta = np.zeros(design.shape[1])
    for _ in range(100):
        mu = 1 / (1 + np.exp(-design @ beta))
        beta = beta + np.linalg.solve((design.T * (mu * (1 - mu))) @ design, design.T @ (y - mu))
    mu = 1 / (1 + np.exp(-design @ beta))
    return float(np.sum(np.where(y == 1, np.log(mu), np.log(1 - mu))))


def group_p_value_logistic(columns, selected, y):
    ratio = 2 * (logistic_likelihood([*selected, *columns], y) - logistic_likelihood(selected, y))
    return stats.chi2.sf(ratio, len(columns))


def multinomial_likelihood(columns, y):
    """The largest log likelihood of a multinomial model with constants, by Newton's method on all parameters."""
    design = np.column_stack([np.ones(len(y)), *columns])
    n_classes, k = int(max(y)) + 1, design.shape[1]
    theta = np.zeros((n_classes - 1, k))
    for _ in range(60):
        slope, hessian = np.zeros_like(theta), np.zeros((n_classes - 1, k, n_classes - 1, k))
        for row, label in zip(design, y, strict=True):
            odds = np.exp(np.append(0.0, theta @ row))
            mu = odds / odds.sum()
            for c in range(1, n_classes):
                slope[c - 1] += ((label == c) - mu[c]) * row
                for d in range(1, n_classes):
                    w = mu[c] * ((c == d) - mu[d])
                    hessian[c - 1, :, d - 1] += w * np.outer(row, row)
        step = np.linalg.solve(hessian.reshape(theta.size, theta.size), slope.ravel())
        theta = theta + step.reshape(theta.shape)
        if np.abs(step).max() < 1e-10:
            break
    odds = np.exp(np.column_stack([np.zeros(len(y)), design @ theta.T]))
    return float(sum(math.log(row[int(label)] / row.sum()) for row, label in zip(odds, y, strict=True)))


def group_p_value_multinomial(columns, selected, y):
    ratio = 2 * (multinomial_likelihood([*selected, *columns], y) - multinomial_likelihood(selected, y))
    return stats.chi2.sf(ratio, len(columns) * int(max(y)))
