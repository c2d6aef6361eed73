"""AdaptiveIFC2F's choice as its formulas read: whole joint tables, one row at a time."""

from __future__ import annotations

import itertools

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


def shares(information, own, fee, members, feature, left):
    """The largest information per price of members of an unpaid group that include the feature."""
    best = 0.0
    for size in range(1, len(members) + 1):
        for part in itertools.combinations(members, size):
            if feature in part:
                price = fee + sum(own[g] for g in part)
                told = min(sum(information[g] for g in part), left)
                best = max(best, told / price if price > 0 else np.inf)
    return best


def pair_rate(P, known, told, first, price):
    """(3): information per price of a column and the best one after each of its values."""
    total, paid = told[first], price[first]
    for v in range(P.shape[1 + first]):
        share = mass(P, {**known, first: v}) / mass(P, known)
        after = {f: information(P, {**known, first: v}, f) for f in told if f != first}
        second = max(after, key=lambda f: after[f] / price[f], default=None)
        if second is not None and after[second] > 1e-12:
            total, paid = total + share * after[second], paid + share * price[second]
    return total / paid


def walk(P, codes, Q, own, fees, max_risk, min_rate, budget=np.inf, max_steps=99, lookahead=1):
    """(2): features bought in order, money spent, last posterior. Codes below 0 are not to be had."""
    K = len(codes)
    known, asked, bought, spent = {}, [], [], 0.0
    while True:
        belief = posterior(P, known)
        offers, told = [], {f: information(P, known, f) for f in range(K) if f not in asked}
        for f in range(K):
            if f not in told or len(asked) >= max_steps or told[f] <= 1e-12:
                continue
            due = [(members, fee) for members, fee in fees if f in members and not set(members) & set(known)]
            price = own[f] + sum(fee for _, fee in due)
            rates = [told[f] / price if price > 0 else np.inf]
            for members, fee in due:
                rates.append(shares(told, own, fee, [g for g in members if g in told], f, entropy(belief)))
            if lookahead == 2 and len(asked) < max_steps - 1 and price > 0:
                rates.append(pair_rate(P, known, told, f, own))
            if price <= budget - spent + 1e-9:
                offers.append((max(rates), told[f], -f, price))
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
