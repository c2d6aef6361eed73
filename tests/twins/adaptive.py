"""AdaptiveIFC2F's choice as its formulas read: whole joint tables, one row at a time."""

from __future__ import annotations

import numpy as np

from tests.twins.ifc2f import posterior


def entropy(p):
    return -sum(x * np.log(x) for x in p if x > 0)


def information(P, known, feature):
    """(1): what a feature is expected to tell of the class."""
    here = posterior(P, known)
    found = entropy(here)
    for v in range(P.shape[1 + feature]):
        share = mass(P, {**known, feature: v}) / mass(P, known)
        if share > 0:
            found -= share * entropy(posterior(P, {**known, feature: v}))
    return found


def mass(P, known):
    return P[(slice(None), *(known.get(f, slice(None)) for f in range(P.ndim - 1)))].sum()


def walk(P, codes, Q, prices, max_risk, min_rate, group=None, budget=np.inf, max_steps=99):
    """(2): features bought in order, money spent, last posterior. Codes below 0 are not to be had."""
    K = len(codes)
    group = list(range(K)) if group is None else list(group)
    known, asked, bought, spent = {}, [], [], 0.0
    while True:
        belief = posterior(P, known)
        offers = []
        for f in range(K):
            if f in asked or len(asked) >= max_steps:
                continue
            paid = any(group[f] == group[a] for a in asked)
            price = 0.0 if paid else prices[f]
            alone = information(P, known, f)
            together = sum(
                information(P, known, g) for g in range(K) if group[g] == group[f] and g not in asked
            )
            whole = min(together, entropy(belief))
            if price <= budget - spent + 1e-9 and whole > 1e-12:
                offers.append((whole / price if price > 0 else np.inf, alone, -f, price))
        if not offers:
            return bought, spent, belief
        rate, _, f, price = max(offers)
        risk = min(belief @ Q[:, j] for j in range(len(Q)))
        begun = asked or min_rate == np.inf
        if begun and np.isfinite(rate) and (risk <= max_risk or rate <= min_rate):
            return bought, spent, belief
        asked.append(-f)
        if codes[-f] >= 0:
            known[-f] = codes[-f]
            bought.append(-f)
            spent += price
