"""Spending rules as they are printed: one test after the other, every sum written out. Times count from 1."""

import math


def gamma_lord(j):
    return 0.07720838 * math.log(max(j, 2)) / (j * math.exp(math.sqrt(math.log(j))))


def gamma_power(j):
    return 0.4374901658 / j**1.6


def alpha_wealth(p_values, w0, payout):
    wealth, levels, rejected = w0, [], []
    for i, p in enumerate(p_values, start=1):
        level = wealth / (2 * i)
        levels.append(level)
        rejected.append(p <= level)
        wealth += payout - level if p <= level else -level
    return levels, rejected


def information_investing(p_values, w0, payout, coefficient):
    """A message tells of each feature whether it is in; a feature must save bits beside what it costs to tell."""
    wealth, levels, rejected = w0, [], []
    for i, p in enumerate(p_values, start=1):
        bid = wealth / (2 * i)
        chance_in = -math.expm1(-bid * math.log(2))
        to_tell = payout + coefficient - math.log2(chance_in)
        gain = 2 * math.log(2) * to_tell
        levels.append(math.erfc(math.sqrt(gain / 2)))
        rejected.append(p <= levels[-1])
        wealth += payout if p <= levels[-1] else -bid
    return levels, rejected


def alpha_spending(p_values, alpha):
    levels = [alpha * gamma_power(t) for t in range(1, len(p_values) + 1)]
    return levels, [p <= level for p, level in zip(p_values, levels, strict=True)]


def lond(p_values, alpha):
    levels, rejected = [], []
    for t, p in enumerate(p_values, start=1):
        levels.append(alpha * gamma_power(t) * (sum(rejected) + 1))
        rejected.append(p <= levels[-1])
    return levels, rejected


def e_lond(p_values, alpha, kappa=0.1):
    """A p-value becomes the e-value kappa p^(kappa - 1), which must reach 1 / level of LOND."""
    levels, rejected = [], []
    for t, p in enumerate(p_values, start=1):
        level = alpha * gamma_power(t) * (sum(rejected) + 1)
        rejected.append(kappa * p ** (kappa - 1) >= 1 / level)
        levels.append((kappa * level) ** (1 / (1 - kappa)))
    return levels, rejected


def closed_e_lond(p_values, alpha, kappa=0.1):
    """e-LOND closed over every set of earlier tests: test t rejects if no set S with it contradicts the rejections.

    Of the set, |S and rejections| / rejections <= alpha E_S, where E_S adds g(i) times the i-th e-value of S.
    """
    e_values, levels, rejected = [], [], []
    for t, p in enumerate(p_values):
        n_after, required = sum(rejected) + 1, 1.0
        for bits in range(1 << t):
            inside = [i for i in range(t) if bits >> i & 1]
            evidence = sum(gamma_power(k) * e_values[i] for k, i in enumerate(inside, start=1))
            share = (sum(rejected[i] for i in inside) + 1) / n_after
            required = max(required, (share / alpha - evidence) / gamma_power(len(inside) + 1))
        e_values.append(kappa * p ** (kappa - 1))
        levels.append((kappa / required) ** (1 / (1 - kappa)))
        rejected.append(e_values[-1] >= required)
    return levels, rejected


def lord_plus_plus(p_values, alpha, decay=1.0):
    w0, times, levels, rejected = alpha / 10, [], [], []
    for t, p in enumerate(p_values, start=1):
        level = w0 * gamma_lord(t) * decay ** (t - times[0] if times else 0)
        for j, tau in enumerate(times):
            level += (alpha - w0 if j == 0 else alpha) * gamma_lord(t - tau) * decay ** (t - tau)
        levels.append(level)
        rejected.append(p <= level)
        if p <= level:
            times.append(t)
    return levels, rejected


def saffron(p_values, alpha, lam=0.5):
    """C_j+ is the number of candidates after rejection j and before t."""
    w0, times, levels, rejected = alpha / 2, [], [], []
    for t, p in enumerate(p_values, start=1):
        candidates = [i for i in range(1, t) if p_values[i - 1] <= lam]
        level = w0 * gamma_power(t - len(candidates))
        for j, tau in enumerate(times):
            after = sum(i > tau for i in candidates)
            level += (alpha - w0 if j == 0 else alpha) * gamma_power(t - tau - after)
        levels.append(min(lam, (1 - lam) * level))
        rejected.append(p <= levels[-1])
        if rejected[-1]:
            times.append(t)
    return levels, rejected


def addis(p_values, alpha, lam=0.25, tau_=0.5):
    w0, times, levels, rejected = alpha / 2, [], [], []
    for t, p in enumerate(p_values, start=1):
        kept = [i for i in range(1, t) if p_values[i - 1] <= tau_]
        candidates = [i for i in range(1, t) if p_values[i - 1] <= lam]
        level = w0 * gamma_power(len(kept) - len(candidates) + 1)
        for j, tau in enumerate(times):
            kappa = sum(i <= tau for i in kept)
            after = sum(i > tau for i in candidates)
            level += (alpha - w0 if j == 0 else alpha) * gamma_power(len(kept) - kappa - after + 1)
        levels.append(min(lam, (tau_ - lam) * level))
        rejected.append(p <= levels[-1])
        if rejected[-1]:
            times.append(t)
    return levels, rejected


def e_budget(p_values, alpha, kappa=0.1, candidate=0.0, refund=False):
    """Rules (2) to (5) of `tamis.columns.online_fdr.e_values`: e-LORD, e-SAFFRON (candidate > 0), SCORE (refund)."""
    levels, rejected, spent, left = [], [], 0.0, alpha
    charged = before = 0
    for p in p_values:
        share = math.log(10) / math.log(10 + charged) - math.log(10) / math.log(11 + charged)
        share /= math.log(10) / math.log(10 + before)
        a = min((sum(rejected) + 1) * (1 - candidate) * left * share, candidate or 1.0)
        e = kappa * p ** (kappa - 1)
        levels.append((kappa * a) ** (1 / (1 - kappa)))
        cost = a
        if candidate:
            cost = a / (1 - candidate) if e < 1 / candidate else 0.0
        if refund:
            cost = max(a - max(a * e - 1, 0), 0)
        spent += cost / (sum(rejected) + 1)
        charged += 1 if not candidate or e < 1 / candidate else 0
        rejected.append(p <= levels[-1])
        if rejected[-1]:
            left, before = alpha - spent, charged
    assert spent <= alpha
    return levels, rejected


def e_gai(p_values, alpha, omega_1, candidate=0.0, refund=False, kappa=0.1):
    """Zhang et al. (2025): Algorithms 1 and 2 with the recursion (9) for omega, phi = psi = 1/2; SCORE with refund.

    The cap at lambda is that of the authors' function eSAFFRON.
    """
    levels, rejected, spent, omega = [], [], 0.0, omega_1
    for t, p in enumerate(p_values, start=1):
        before = sum(rejected)
        a = omega * (alpha * (1 - candidate) - spent) * (before + 1)
        a = min(a, candidate or 1.0)
        e = kappa * p ** (kappa - 1)
        levels.append((kappa * a) ** (1 / (1 - kappa)))
        rejected.append(e >= 1 / a)
        cost = a if not candidate or e < 1 / candidate else 0.0
        if refund and rejected[-1]:
            cost = max(a - (a * e - 1), 0)
        spent += cost / (before + 1)
        if rejected[-1]:
            omega -= omega_1 * 0.5 ** (before + 1)
        else:
            omega += omega_1 * 0.5 ** (t - before)
    return levels, rejected
