"""Error rates on dependent rows: p-values, bands, `level`, alpha-investing and drift alarms, before and after.

    python experiments/dependent_rows.py --out dependent.json            # about five minutes of processor time
    python experiments/dependent_rows.py --out dependent.json --full     # 300 runs, n = 3,000 and 30,000: hours
    python experiments/dependent_rows.py --out dependent.json --table    # print what was measured so far

Each measurement is written when it is finished, and a second call resumes with those that are missing. Columns and
label are unrelated by construction, but for column 0 where a power is stated, so each rate is one of errors.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm

from tamis import (
    DISCUSS,
    AlphaInvesting,
    ForwardPartialCorrelation,
    GramInvesting,
    JointScreening,
    Screening,
    TScore,
)
from tamis.dependence.fisher_z import FisherZ
from tamis.dependence.g_square import GSquare
from tamis.drift import ADWIN, DDM, ECDD, HDDMA, HDDMW

warnings.simplefilter("ignore")
D = 30


def series(rng, n, n_columns, phi):
    if not phi:
        return rng.normal(size=(n, n_columns))
    noise = rng.normal(size=(n + 1500, n_columns))
    return lfilter([1], [1, -phi], noise, axis=0)[1500:] * np.sqrt(1 - phi**2)


def label(rng, n, phi, share=0.5):
    return (series(rng, n, 1, phi)[:, 0] > norm.isf(share)).astype(int)


def autoregressive(phi):
    return lambda rng, n: (series(rng, n, D, phi), label(rng, n, phi), None)


def cycle(rng, n):
    t = np.arange(n)
    X = np.sin(2 * np.pi * (t[:, None] / 48 + rng.random(D))) + rng.normal(size=(n, D))
    return X, (rng.random(n) < 0.5 + 0.3 * np.sin(2 * np.pi * (t / 48 + rng.random()))).astype(int), None


def heavy(rng, n):
    return np.sinh(2.0 * series(rng, n, D, 0.9)), label(rng, n, 0.9), None


def rare(rng, n):
    return series(rng, n, D, 0.9), label(rng, n, 0.9, 0.005), None


def discrete(rng, n):
    return np.maximum(np.round(series(rng, n, D, 0.9)), 0.0), label(rng, n, 0.9, 0.3), None


def lacking(rng, n):
    X = series(rng, n, D, 0.9)
    X[label(rng, n * D, 0.9, 0.2).reshape(n, D, order="F") > 0] = np.nan  # missing values come in runs
    return X, label(rng, n, 0.9), None


def weighted(rng, n):
    return series(rng, n, D, 0.9), label(rng, n, 0.9), rng.exponential(size=n)


def three_classes(rng, n):
    return series(rng, n, D, 0.9), np.searchsorted([-0.5, 0.5], series(rng, n, 1, 0.9)[:, 0]), None


def oscillating(rng, n):
    """AR(2) of a damped cycle of 20 rows, in columns and label."""
    phi = 2 * 0.95 * np.cos(2 * np.pi / 20)
    Z = lfilter([1], [1, -phi, 0.95**2], rng.normal(size=(n + 500, D + 1)), axis=0)[500:]
    return Z[:, :D], (Z[:, D] > 0).astype(int), None


def regimes(rng, n):
    """Each column and the label switch between two states that last 50 rows in the mean."""
    state = np.cumsum(rng.random((n, D + 1)) < 0.02, axis=0) % 2
    y = (rng.random(n) < np.where(state[:, D], 0.8, 0.2)).astype(int)
    return state[:, :D] + (0.5 + state[:, :D]) * rng.normal(size=(n, D)), y, None


def seasonal_label(rng, n):
    """Weekly cycle of the label; the columns have daily and weekly ones, of other phases, and an AR part."""
    t, phase = np.arange(n), rng.random((2, D))
    X = np.sin(2 * np.pi * (t[:, None] / 24 + phase[0])) + np.sin(2 * np.pi * (t[:, None] / 168 + phase[1]))
    chance = 0.5 + 0.3 * np.sin(2 * np.pi * (t / 168 + rng.random()))
    return X + series(rng, n, D, 0.8), (rng.random(n) < chance).astype(int), None


def long_runs(rng, n):
    """A label in runs of 100 rows in the mean, with lengths of a heavy tail; columns of phi .95."""
    y = np.repeat(np.arange(n) % 2, np.ceil(50 * (rng.pareto(2.0, n) + 0.5)).astype(int))[:n]
    return series(rng, n, D, 0.95), y, None


def volatile(rng, n):
    """Student's t noise (2.5 degrees of freedom) with a common AR volatility, in columns of phi .7."""
    noise = rng.standard_t(2.5, size=(n, D)) * np.exp(series(rng, n, 1, 0.98))
    return lfilter([1], [1, -0.7], noise, axis=0), label(rng, n, 0.95), None


def counts(rng, n):
    """Counts that are mostly 0, of an AR rate, and a class of 2 %."""
    return (
        rng.poisson(np.exp(1.5 * series(rng, n, D, 0.95) - 2)).astype(float),
        label(rng, n, 0.95, 0.02),
        None,
    )


def gaps_at_night(rng, n):
    """Values missing in the same third of each day of 48 rows, weights that are an AR series, phi .95."""
    X = series(rng, n, D, 0.95)
    X[np.arange(n) % 48 < 16, ::2] = np.nan
    return X, label(rng, n, 0.95), np.exp(series(rng, n, 1, 0.9)[:, 0])


def five_classes(rng, n):
    return (
        series(rng, n, D, 0.95),
        np.searchsorted([-1.3, -0.3, 0.3, 1.3], series(rng, n, 1, 0.95)[:, 0]),
        None,
    )


UNSEEN = {  # not used when the estimators were chosen
    "AR(2) cycle": oscillating, "regimes": regimes, "seasonal": seasonal_label, "long runs": long_runs,
    "t2.5, volatility": volatile, "counts, 2 % class": counts, "gaps, AR weights": gaps_at_night,
    "five classes": five_classes,
}  # fmt: skip
DESIGNS = {
    "iid": autoregressive(0.0), "phi .5": autoregressive(0.5), "phi .9": autoregressive(0.9),
    "phi .99": autoregressive(0.99), "cycle": cycle, "heavy tails": heavy, "class of .5 %": rare,
    "discrete": discrete, "missing": lacking, "weights": weighted, "three classes": three_classes,
} | UNSEEN  # fmt: skip
SERIES = ("iid", "phi .5", "phi .9", "phi .99", "cycle", *UNSEEN)


def pvalues(design, n, seed, dependence):
    rng = np.random.default_rng(seed)
    X, y, weight = DESIGNS[design](rng, n)
    scores = ["t", "fisher", "mi", "chi2", "gini"]
    table = Screening(3, scores=scores, dependence=dependence).fit(X, y, sample_weight=weight).table_
    return {name: float(np.mean(table[f"{name}_pvalue"] < 0.01)) for name in scores}


def power(n, seed, dependence):
    """Return which scores find a column that is related to the label, where rows are independent."""
    rng = np.random.default_rng(seed)
    X, y, _ = DESIGNS["iid"](rng, n)
    X[:, 0] += 0.1 * np.sqrt(3000 / n) * y
    scores = ["t", "fisher", "mi", "chi2", "gini"]
    table = Screening(3, scores=scores, dependence=dependence).fit(X, y).table_
    return {name: float(table[f"{name}_pvalue"][0] < 0.01) for name in scores}


def level(design, n, seed, dependence):
    rng = np.random.default_rng(seed)
    X, y, _ = DESIGNS[design](rng, n)
    if design.startswith("phi") or design == "iid":
        X[:, 0] += 0.4 * y
    screen, wrong = TScore(None, level=0.05, dependence=dependence), False
    for start in range(0, n, n // 12):
        rows = slice(start, start + n // 12)
        screen.partial_fit(X[rows], y[rows], classes=np.arange(y.max() + 1))
        kept = screen.get_support() & (not screen.warming_up_)
        wrong |= bool(kept[1:].any())
    return {"any false": float(wrong), "power": float(kept[0])}


def band(design, n, seed, dependence):
    rng = np.random.default_rng(seed)
    X, y, _ = DESIGNS[design](rng, n)
    screen, wrong = TScore(3, dependence=dependence), np.zeros(D, dtype=bool)
    for start in range(0, n, n // 12):
        rows = slice(start, start + n // 12)
        screen.partial_fit(X[rows], y[rows], classes=np.arange(y.max() + 1))
        wrong |= screen.effect_band(0.05)[0] > 1e-12
    return {"excludes 0": float(wrong.mean())}


def investing(phi, model, seed, variance):
    rng = np.random.default_rng(seed)
    X, y = series(rng, 300, 200, phi), series(rng, 300, 1, phi)[:, 0]
    y = {"linear": y, "logistic": y > np.median(y), "poisson": rng.poisson(np.exp(y))}[model]
    return {
        "accepted": float(
            len(AlphaInvesting(target_fdr=0.1, model=model, variance=variance).fit(X, y).selected_)
        )
    }


def investing_unseen(design, seed, variance):
    """Count the accepted of 30 unrelated columns, 1,000 rows, by a logistic model (five classes: multinomial)."""
    X, y, weight = DESIGNS[design](np.random.default_rng(seed), 1000)
    there = ~np.isnan(X).any(axis=0)
    model = "logistic" if y.max() == 1 else "multinomial"
    selector = AlphaInvesting(target_fdr=0.1, model=model, variance=variance)
    return {"accepted": float(len(selector.fit(X[:, there], y, sample_weight=weight).selected_))}


def gram(phi, seed, variance):
    """Count the columns that are accepted at some time of 2,000 rows in batches of 100."""
    rng = np.random.default_rng(seed)
    X, y = series(rng, 2000, 200, phi), series(rng, 2000, 1, phi)[:, 0]
    selector = GramInvesting(target_fdr=0.1, variance=variance)
    for rows in np.split(np.arange(2000), 20):
        selector.partial_fit({f"x{j}": X[rows, j] for j in range(200)}, y[rows])
    return {"accepted": float((selector.trace_["decision"] == "accepted").sum())}


def dependence_tests(phi, make, seed, how):
    """Return the share of unrelated columns that the test of OSFS and SAOLA calls dependent at level .01."""
    rng = np.random.default_rng(seed)
    X, y = series(rng, 3000, D, phi), (series(rng, 3000, 1, phi)[:, 0] > 0).astype(np.int64)
    test = make(0.01, dependence=how).start(y)
    return {"dependent": float(np.mean([test.candidate(x).dependent for x in X.T.copy()]))}


SELECTORS = {
    "DISCUSS": DISCUSS, "Joint": JointScreening, "Forward": lambda: ForwardPartialCorrelation(3),
}  # fmt: skip


def alarms(phi, name, seed):
    """Count the drifts that are detected in 10,000 stationary rows."""
    rng = np.random.default_rng(seed)
    return count_alarms(series(rng, 10_000, 8, phi), label(rng, 10_000, phi), name)


def alarms_unseen(design, name, seed):
    X, y, _ = DESIGNS[design](np.random.default_rng(seed), 10_000)
    return count_alarms(X[:, :8], y, name)


def count_alarms(X, y, name):
    selector, n_alarms = SELECTORS[name](), 0
    for start in range(0, len(y), 100):
        rows = slice(start, start + 100)
        selector.partial_fit(X[rows], y[rows], classes=np.arange(y.max() + 1))
        n_alarms += bool(selector.drift_detected_)
    return {"alarms": float(n_alarms)}


DETECTORS = {"ADWIN": ADWIN, "DDM": DDM, "ECDD": ECDD, "HDDMA": HDDMA, "HDDMW": HDDMW}


def detector_alarms(phi, name, dependence, seed):
    """Count the drifts that are detected in 20,000 errors of a constant rate of 20 %."""
    values = label(np.random.default_rng(seed), 20_000, phi, 0.2).astype(float)
    return {"alarms": float(len(DETECTORS[name](dependence=dependence).drifts(values)))}


def errors_unseen(kind, rng, n):
    """Return errors of a rate that is constant over weeks: of an AR(2) cycle, of regimes, or of a daily cycle."""
    if kind == "AR(2) cycle":
        noise = rng.normal(size=n + 500)
        x = lfilter([1], [1, -2 * 0.95 * np.cos(2 * np.pi / 20), 0.95**2], noise)[500:]
        return (x > np.quantile(x, 0.8)).astype(float)
    if kind == "regimes":
        state = np.cumsum(rng.random(n) < 0.02) % 2
        return (rng.random(n) < np.where(state, 0.35, 0.05)).astype(float)
    return (rng.random(n) < 0.2 + 0.15 * np.sin(2 * np.pi * np.arange(n) / 48)).astype(float)


def detector_alarms_unseen(kind, name, dependence, seed):
    values = errors_unseen(kind, np.random.default_rng(seed), 20_000)
    return {"alarms": float(len(DETECTORS[name](dependence=dependence).drifts(values)))}


def measurements(full):
    """Return (name, number of runs, function of the seed) of each line of the tables."""
    lines = []
    for how in ("independent", "auto"):
        for n, runs in ((3000, 300), (30_000, 300)) if full else ((3000, 15),):
            for design in DESIGNS:
                lines.append(
                    (
                        f"p < .01, {design}, n={n}, {how}",
                        runs,
                        lambda s, d=design, n=n, h=how: pvalues(d, n, s, h),
                    )
                )
            lines.append((f"power, iid, n={n}, {how}", runs, lambda s, n=n, h=how: power(n, s, h)))
        for design in SERIES:
            lines.append(
                (
                    f"level, {design}, {how}",
                    300 if full else 15,
                    lambda s, d=design, h=how: level(d, 3000, s, h),
                )
            )
            lines.append(
                (f"band, {design}, {how}", 300 if full else 8, lambda s, d=design, h=how: band(d, 3000, s, h))
            )
    for variance in ("classical", "auto"):
        for phi in (0.0, 0.5, 0.9, 0.99):
            for model in ("linear", "logistic", "poisson"):
                if model != "poisson" or variance == "auto":
                    lines.append(
                        (
                            f"accepted, phi {phi}, {model}, {variance}",
                            100 if full else 15,
                            lambda s, p=phi, m=model, v=variance: investing(p, m, s, v),
                        )
                    )
    for variance in ("classical", "auto"):
        for phi in (0.0, 0.5, 0.9, 0.99):
            name = f"GramInvesting, phi {phi}, {variance}"
            lines.append((name, 100 if full else 6, lambda s, p=phi, v=variance: gram(p, s, v)))
    for how in ("independent", "auto"):
        for phi in (0.0, 0.5, 0.9, 0.99):
            for make in (FisherZ, GSquare):
                name = f"{make.__name__} of OSFS and SAOLA, phi {phi}, {how}"
                lines.append((name, 100, lambda s, p=phi, m=make, h=how: dependence_tests(p, m, s, h)))
    for phi in (0.0, 0.9, 0.99):
        for name in SELECTORS:
            lines.append(
                (
                    f"drift alarms, phi {phi}, {name}",
                    100 if full else 4,
                    lambda s, p=phi, m=name: alarms(p, m, s),
                )
            )
    for phi in (0.0, 0.5, 0.9, 0.99):
        for name in DETECTORS:
            for how in ("independent", "auto"):
                lines.append(
                    (
                        f"detector alarms, phi {phi}, {name}, {how}",
                        100 if full else 6,
                        lambda s, p=phi, m=name, h=how: detector_alarms(p, m, h, s),
                    )
                )
    runs = 100 if full else 4
    for design in UNSEEN:
        for how in ("classical", "auto"):
            name = f"accepted of 30, {design}, {how}"
            lines.append((name, runs, lambda s, d=design, h=how: investing_unseen(d, s, h)))
        for selector in SELECTORS:
            name = f"drift alarms, {design}, {selector}"
            lines.append((name, runs, lambda s, d=design, k=selector: alarms_unseen(d, k, s)))
    for kind in ("AR(2) cycle", "regimes", "daily cycle"):
        for detector in DETECTORS:
            for how in ("independent", "auto"):
                name = f"detector alarms, {kind}, {detector}, {how}"
                lines.append(
                    (name, runs, lambda s, k=kind, m=detector, h=how: detector_alarms_unseen(k, m, h, s))
                )
    return lines


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("dependent_rows.json"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", default="", help="measurements whose name contains this")
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name, runs, measure in measurements(given.full):
        if given.table or given.only not in name or known.get(name, {}).get("runs", 0) >= runs:
            continue
        start, found = time.process_time(), [measure(1000 + seed) for seed in range(runs)]
        rates = {key: np.array([one[key] for one in found]) for key in found[0]}
        known[name] = {"runs": runs, "seconds": round(time.process_time() - start, 1)} | {
            key: [round(float(v.mean()), 4), round(float(v.std(ddof=1) / np.sqrt(runs)), 4)]
            for key, v in rates.items()
        }
        given.out.write_text(json.dumps(known, indent=1))
        print(name, known[name], flush=True)
    if given.table:
        for name, line in known.items():
            print(f"{name:45}", {key: value for key, value in line.items() if key != "seconds"})


if __name__ == "__main__":
    main()
