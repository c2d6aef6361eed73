"""IFC2F as its formulas read: whole joint tables, every history, no sharing, no kernels."""

from __future__ import annotations

import itertools

import numpy as np


def joint(parent, tables, prior):
    """P(class, x_0, ..., x_K-1) of a tree network, shape (L, V, ..., V)."""
    K, L, V, _ = tables.shape
    found = np.zeros((L,) + (V,) * K)
    for c in range(L):
        for x in itertools.product(range(V), repeat=K):
            p = prior[c]
            for f in range(K):
                p *= tables[f, c, x[f], x[parent[f]] if parent[f] >= 0 else 0]
            found[(c, *x)] = p
    return found


def posterior(P, known):
    """P(class | known), known: {feature: value}."""
    at = tuple(known.get(f, slice(None)) for f in range(P.ndim - 1))
    found = P[(slice(None), *at)].reshape(len(P), -1).sum(axis=1)
    return found / found.sum()


def chain_likelihood(chain, k, history):
    """P(x_k = v | the values before, class) as the chain's tables say, shape (V, L)."""
    link = chain.link[k]
    return chain.tables[k][:, :, history[link] if link >= 0 else 0].T


def bellman(likelihood, belief, Q, prices, history=()):
    """(8): the least expected cost from here, over every history."""
    stop = min(belief @ Q[:, j] for j in range(len(Q)))
    k = len(history)
    if k == len(prices):
        return stop
    return min(stop, going_on(likelihood, belief, Q, prices, history))


def going_on(likelihood, belief, Q, prices, history=()):
    """What buying the next feature costs, and everything after it."""
    cost = prices[len(history)]
    for v, delta in enumerate(likelihood(history)):
        p = delta @ belief
        if p > 0:
            cost += p * bellman(likelihood, delta * belief / p, Q, prices, (*history, v))
    return cost


def policy_cost(goes_on, likelihood, belief, Q, prices, history=()):
    """What a policy costs, (1): goes_on(k, belief, history) says whether it buys."""
    k = len(history)
    if k == len(prices) or not goes_on(k, belief, history):
        return min(belief @ Q[:, j] for j in range(len(Q)))
    cost = prices[k]
    for v, delta in enumerate(likelihood(history)):
        p = delta @ belief
        if p > 0:
            cost += p * policy_cost(goes_on, likelihood, delta * belief / p, Q, prices, (*history, v))
    return cost


def walk(model, codes):
    """Decide one row, value by value: label code, features used, posterior. Codes below 0 are missing."""
    belief, used = model._first_belief().copy(), 0
    chain, Q = model._chain, model._Q
    for k in range(len(chain)):
        stop = min(belief @ Q[:, j] for j in range(len(Q)))
        if not (k == 0 and model.always_first) and not stop > going_on_once(model, k, belief, codes):
            break
        if codes[k] < 0:
            continue
        used += 1
        belief = belief * likelihood_with_gaps(chain, k, codes)[codes[k]]
        belief /= belief.sum()
    return int(np.argmin(belief @ Q)), used, belief


def likelihood_with_gaps(chain, k, codes):
    """P(x_k = v | known values, class), links that are missing summed out, shape (V, L)."""
    table, link = chain.tables[k], chain.link[k]
    while link >= 0 and codes[link] < 0:
        table, link = np.einsum("cvu,cuw->cvw", table, chain.tables[link]), chain.link[link]
    return table[:, :, codes[link] if link >= 0 else 0].T


def going_on_once(model, k, belief, codes):
    """One backup at this belief with the vectors of stage k + 1, in the row's own context."""
    stage, Q, cost = model.stopping_.stages[k + 1], model._Q, model.prices_[k]
    for v, delta in enumerate(likelihood_with_gaps(model._chain, k, codes)):
        context = [v if position == k else codes[position] for position in model.stopping_.context[k + 1]]
        if min(context, default=0) < 0:
            vectors = stage.vectors
        else:
            key = sum(value * model.n_bins**i for i, value in enumerate(context))
            vectors = stage.vectors[stage.start[key] : stage.start[key + 1]]
        cost += min(alpha @ (delta * belief) for alpha in [*Q.T, *vectors])
    return cost


def quantile_codes(x, edges):
    """Number of distinct edges strictly below each value; -1 where it is missing."""
    return np.array([-1 if np.isnan(value) else sum(e < value for e in set(edges)) for value in x])


def width_codes(x, low, high, n_bins):
    """Equal widths between whole numbers; an edge belongs to the bin above it."""
    low, high = np.floor(low), np.ceil(high)
    width = ((high - low) or 1.0) / n_bins
    return np.array([sum(low + width * t <= value for t in range(1, n_bins)) for value in x])
