"""Rules for e-values on the simulation designs of their papers: false discovery rate and power of each rule.

    python experiments/e_value_rules.py --out e_value_rules.json            # three minutes
    python experiments/e_value_rules.py --out e_value_rules.json --table    # print what was measured so far

Zhang et al. (2025), program e-GAI-RAI.R of the authors: 500 tests, a share of them of mean mu instead of 0, with normal
noise that correlates by .5 to the power of the lag, alpha .05. Their memory design: 10,000 tests with 1 % effects and
an autoregression whose coefficient moves from -1 to 1. An e-value is the likelihood ratio of the two means, and a
p-value the upper tail, both given the observations before. Their program leaves those out of the mean but keeps the
conditional variance ("as programmed"), so that its e-values exceed 1 in the mean; the rules are stated for the former.

"feedback" just meets the assumption: for 20 tests after a rejection all hypotheses are null.

A measurement is written when it is finished, and a second call resumes with those that are missing.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm

from tamis.columns.online_fdr import ELOND, ELORD, ESAFFRON, SAFFRON, SCORE, ClosedELOND, LORDPlusPlus

ALPHA, KAPPA = 0.05, 0.1
RUNS = {"feedback": 40, "memory": 10}  # 200 of the other designs
LENGTH = {"memory": 10_000}  # 500 in the other designs
SHARES = ((0.1, 3), (0.2, 3), (0.4, 3), (0.6, 3), (0.2, 4))
DESIGNS = {
    f"{name}, {share:.0%}, mean {mu}": (name, share, mu)
    for name, settings in (
        ("AR .5", SHARES), ("as programmed", SHARES), ("independent", SHARES[:3]), ("feedback", ((0.4, 4),)),
        ("memory", ((0.01, 4),)),
    )
    for share, mu in settings
}  # fmt: skip


def rules(n_tests):
    return {
        "e-LOND": ELOND(ALPHA, KAPPA), "closed e-LOND": ClosedELOND(ALPHA, KAPPA),
        "e-LORD": ELORD(ALPHA, KAPPA), "e-SAFFRON": ESAFFRON(ALPHA, KAPPA), "SCORE": SCORE(ALPHA, KAPPA),
        "e-LORD, n": ELORD(ALPHA, KAPPA, n_tests=n_tests),
        "e-SAFFRON, n": ESAFFRON(ALPHA, KAPPA, n_tests=n_tests),
        "SCORE, n": SCORE(ALPHA, KAPPA, n_tests=n_tests),
        "LORD++": LORDPlusPlus(ALPHA), "SAFFRON": SAFFRON(ALPHA),
    }  # fmt: skip


def draw(name, share, mu, seed):
    """Return which hypotheses are false, and the observations, their means under the null hypothesis, and variances."""
    rng = np.random.default_rng(seed)
    n = LENGTH.get(name, 500)
    false = rng.random(n) < share
    noise = rng.normal(size=n)
    if name == "memory":
        phi = 2.0 / (1.0 + np.exp(-0.01 * (np.arange(n) - n / 2))) - 1.0
        x, centre = np.empty(n), np.zeros(n)
        for t in range(n):
            centre[t] = phi[t] * x[t - 1] if t else 0.0
            x[t] = centre[t] + mu * false[t] + noise[t]
        return false, x, centre, np.ones(n)
    rho = 0.5 if name in ("AR .5", "as programmed") else 0.0
    variance = np.full(n, 1.0 - rho**2)
    variance[0] = 1.0
    deviations = lfilter([1.0], [1.0, -rho], noise * np.sqrt(variance))
    x = mu * false + deviations
    past = mu * false if name == "as programmed" else deviations
    return false, x, rho * np.concatenate([[0.0], past[:-1]]), variance


def evidence(x, centre, variance, mu):
    """Return the log p-values that the rules turn into the e-values, and those of the upper tail."""
    log_e = mu * (x - centre) / variance - mu**2 / (2.0 * variance)
    return (log_e - math.log(KAPPA)) / (KAPPA - 1.0), norm.logsf((x - centre) / np.sqrt(variance))


def run(design, seed):
    name, share, mu = DESIGNS[design]
    false, x, centre, variance = draw(name, share, mu, seed)
    outcomes = {}
    for key, rule in rules(len(x)).items():
        rule.start()
        if name == "feedback":
            truth, rejected, since = false.copy(), np.zeros(len(x), dtype=bool), 20
            for t in range(len(x)):
                truth[t] &= since >= 20
                one = x[t : t + 1] - mu * (false[t] and not truth[t])
                by_e, by_p = evidence(one, 0.0, 1.0, mu)
                log_p = float((by_e if hasattr(rule, "kappa") else by_p)[0])
                rejected[t] = log_p <= rule.level()
                rule.update(bool(rejected[t]), log_p)
                since = 0 if rejected[t] else since + 1
        else:
            by_e, by_p = evidence(x, centre, variance, mu)
            truth, rejected = false, rule.decide(by_e if hasattr(rule, "kappa") else by_p)
        outcomes[key] = (
            float((rejected & ~truth).sum() / max(rejected.sum(), 1)),
            float((rejected & truth).sum() / max(truth.sum(), 1)),
        )
    return outcomes


def measure(design):
    runs = [run(design, seed) for seed in range(RUNS.get(DESIGNS[design][0], 200))]
    table = {}
    for key in runs[0]:
        rates = np.array([one[key] for one in runs])
        table[key] = [*rates.mean(axis=0), *(rates.std(axis=0, ddof=1) / math.sqrt(len(runs)))]
    return table


def print_table(measured):
    names = list(rules(1))
    print("| design | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names))
    for design, table in measured.items():
        cells = [f"{table[key][0]:.3f} / {table[key][1]:.2f}" for key in names]
        print(f"| {design} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="print what was measured and stop")
    options = parser.parse_args()
    measured = json.loads(options.out.read_text()) if options.out.exists() else {}
    if not options.table:
        for design in DESIGNS:
            if design not in measured:
                measured[design] = measure(design)
                options.out.write_text(json.dumps(measured, indent=1))
                print(design, "done", flush=True)
    print_table(measured)
