"""Linear classifiers row by row as their equations say it, with every weight and every mean in full."""

import math


def slope(loss, y, p):
    if loss == "logistic":
        return -y / (1.0 + math.exp(y * p))
    return -y if y * p <= (1.0 if loss == "hinge" else 0.0) else 0.0


def rate(kind, t, alpha, eta0, power_t):
    if kind == "constant":
        return eta0
    return eta0 / t**power_t if kind == "invscaling" else 1.0 / (alpha * (alpha**-0.75 + t - 1.0))


def linear(
    X,
    is_class,
    *,
    loss,
    weights,
    penalty,
    alpha,
    kind="constant",
    eta0=1.0,
    power_t=0.5,
    average=0,
    step_of_b=1.0,
):
    """Return weights and intercept of one model after all rows, or their means over the rows from `average` on."""
    w, b = [0.0] * len(X[0]), 0.0
    mean, mean_of_b = list(w), 0.0
    for t, (x, inside, v) in enumerate(zip(X, is_class, weights, strict=True), start=1):
        p = sum(one * value for one, value in zip(w, x, strict=True)) + b
        eta = rate(kind, t, alpha, eta0, power_t)
        step = -eta * v * slope(loss, 1.0 if inside else -1.0, p)
        if penalty == "l2":
            w = [max(0.0, 1.0 - eta * alpha) * one for one in w]
        w = [one + step * value for one, value in zip(w, x, strict=True)]
        b += step * step_of_b
        if 0 < average <= t:
            n = t - average + 1
            mean = [m + (one - m) / n for m, one in zip(mean, w, strict=True)]
            mean_of_b += (b - mean_of_b) / n
    return (mean, mean_of_b) if average else (w, b)
