"""How much of what alpha-investing selects is false, and how much is found, by design and by spending rule.

    python experiments/alpha_rates.py [--runs 100] [--part rules|models|targets|levels|rare|forward]

`rules`: every rule at a target of 0.1 on a linear model of 500 rows and 500 columns, ten of them relevant. A discovery
is false if its own coefficient is 0; the Monte Carlo error of each rate is printed behind it. At the level of clusters
it is false if no relevant column correlates with it by 0.5 or more (:func:`tamis.columns.claims.claims`). Correlated
columns also with ``release=0.05``.

`models`: linear, logistic and Poisson models with classical and robust variance, where these are in danger: counts with
features still to come, rare classes, rare binary columns, few rows, noise that differs from row to row.

`targets`: how many of 200 columns are accepted that have nothing to do with a target of heavy tails.

`levels`: which share of columns that have nothing to do with the class passes the tests of OSFS, SAOLA and grafting.

`rare`: in how many runs a rule accepts any of 200 columns of noise, where 8 of 200 rows are of class 1.

`forward`: in how many runs `ForwardPartialCorrelation(None)` is sure of a column of noise, of 200 in 2,000 rows.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit
from scipy.stats import kurtosis, rankdata

from tamis import SAOLA, AlphaInvesting, ForwardPartialCorrelation, Grafting
from tamis.columns.claims import claims
from tamis.columns.online_fdr import RULES

TARGET = 0.1
Made = tuple[np.ndarray, np.ndarray, np.ndarray]  # columns, target, which are relevant


# -- rules -------------------------------------------------------------------------------------------------


def columns(design: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    kind, _, size = design.partition(" ")
    X, rho = rng.normal(size=(n, p)), float(size or 0)
    if kind == "AR":
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    elif kind == "blocks":  # of ten
        X = np.sqrt(rho) * rng.normal(size=(n, p // 10)).repeat(10, axis=1) + np.sqrt(1 - rho) * X
    return X


def linear(design: str, rng: np.random.Generator) -> Made:
    n, p, k = 500, 500, 10
    X = columns(design, n, p, rng)
    true = np.zeros(p, dtype=bool)
    true[rng.choice(p, k, replace=False)] = True
    noise = {
        "t3": lambda: rng.standard_t(3, n) / np.sqrt(3),
        "lognormal": lambda: np.exp(rng.normal(size=n)) / 2.16,
    }
    y = X[:, true] @ rng.choice([-0.3, 0.3], k) + noise.get(design, lambda: rng.normal(size=n))()
    return X, y, true


DESIGNS = ("independent", "t3", "lognormal", "AR .5", "AR .9", "blocks .5", "blocks .9")
CORRELATED = ("AR .5", "AR .9", "blocks .5", "blocks .9")


def rates(selector: AlphaInvesting, X: np.ndarray, y: np.ndarray, true: np.ndarray) -> list[float]:
    """Return the share that is false, the same of clusters, and the share found, of columns and of clusters."""
    kept = selector.fit(X, y).get_support()
    relevant = {f"x{j}" for j in np.flatnonzero(true)}
    held = [relevant & set(cluster) for cluster in claims(selector, X).values()]
    n = max(len(held), 1)
    return [(kept & ~true).sum() / n, sum(not claim for claim in held) / n, kept[true].mean(),
            len(set().union(*held)) / len(relevant)]  # fmt: skip


def table_of_rules(runs: int, designs: list[str], rules: list[str]) -> None:
    print(f"False share (its standard error) / found, target {TARGET}, {runs} runs")
    for design in designs:
        for release in (None, 0.05) if design in CORRELATED else (None,):
            print(f"\n{design}, release={release}\n{'':24s}{'columns':>22s}{'clusters':>22s}", flush=True)
            for rule in rules:
                found = np.array([
                    rates(AlphaInvesting(rule=rule, target_fdr=TARGET, release=release, trace="selected"),
                          *linear(design, np.random.default_rng([1, seed])))
                    for seed in range(runs)
                ])  # fmt: skip
                mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(runs)
                cells = [f"{mean[i]:.3f} ({error[i]:.3f}) / {mean[i + 2]:.2f}" for i in (0, 1)]
                print(f"{rule:24s}{cells[0]:>22s}{cells[1]:>22s}", flush=True)


# -- models ------------------------------------------------------------------------------------------------


def relevant(p: int, k: int) -> np.ndarray:
    true = np.zeros(p, dtype=bool)
    true[np.linspace(p // 20, p - p // 20, k).astype(int)] = True
    return true


def counts(n: int, k: int, beta: float, ones: float | None = None) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        X = rng.normal(size=(n, 200)) if ones is None else (rng.random((n, 200)) < ones).astype(float)
        true = relevant(200, k) if k > 1 else np.arange(200) == 149
        return X, rng.poisson(np.exp(np.minimum(X[:, true] @ rng.choice([-beta, beta], k), 12))), true

    return make


def classes(n: int, share: float, beta: float, kind: str) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        X = {"normal": lambda: rng.normal(size=(n, 400)), "cubed": lambda: rng.normal(size=(n, 400)) ** 3,
             "binary": lambda: (rng.random((n, 400)) < 0.07).astype(float)}[kind]()  # fmt: skip
        true = relevant(400, 5)
        eta, low, high = X[:, true] @ rng.choice([-beta, beta], 5), -30.0, 30.0
        for _ in range(40):  # the intercept that gives this share
            middle = (low + high) / 2
            low, high = (middle, high) if expit(eta + middle).mean() < share else (low, middle)
        y = (rng.random(n) < expit(eta + middle)).astype(int)
        y[:2] = 0, 1
        return X, y, true

    return make


def numbers(n: int, k: int, beta: float, kind: str) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        X = {"binary": lambda: (rng.random((n, 500)) < 0.07).astype(float)}.get(
            kind, lambda: rng.normal(size=(n, 500))
        )()
        true, noise = relevant(500, k), rng.normal(size=n)
        if kind in ("uneven", "cubed uneven"):
            spread = np.exp(0.7 * rng.normal(size=n))
            X, noise = (X**3 if "cubed" in kind else X) * spread[:, None] ** 0.6, noise * spread
        return X, X[:, true] @ rng.choice([-beta, beta], k) + noise, true

    return make


CASES: dict[str, tuple[str, Callable[[np.random.Generator], Made]]] = {
    "counts, ten relevant (.3), n = 300": ("poisson", counts(300, 10, 0.3)),
    "counts, the 150th (.3), n = 500": ("poisson", counts(500, 1, 0.3)),
    "counts, the 150th (1), n = 500": ("poisson", counts(500, 1, 1.0)),
    "counts, the 150th (2), n = 500": ("poisson", counts(500, 1, 2.0)),
    "counts, 7 % ones, n = 200": ("poisson", counts(200, 10, 1.0, 0.07)),
    "classes 50 : 50, n = 200": ("logistic", classes(200, 0.5, 1.0, "normal")),
    "classes 5 : 95, n = 200": ("logistic", classes(200, 0.05, 1.0, "normal")),
    "classes 2 : 98, n = 1000": ("logistic", classes(1000, 0.02, 1.0, "normal")),
    "classes 2 : 98, cubed columns, n = 1000": ("logistic", classes(1000, 0.02, 0.5, "cubed")),
    "classes 50 : 50, 7 % ones, n = 200": ("logistic", classes(200, 0.5, 2.0, "binary")),
    "classes 5 : 95, 7 % ones, n = 200": ("logistic", classes(200, 0.05, 2.0, "binary")),
    "numbers, n = 20": ("linear", numbers(20, 2, 2.0, "normal")),
    "numbers, 7 % ones, n = 200": ("linear", numbers(200, 10, 1.5, "binary")),
    "numbers, uneven noise, n = 200": ("linear", numbers(200, 5, 0.5, "uneven")),
    "numbers, uneven noise, cubed, n = 200": ("linear", numbers(200, 5, 0.5, "cubed uneven")),
}


def table_of_models(runs: int) -> None:
    print(f"False share (its standard error) / found, rule alpha-investing, target {TARGET}, {runs} runs")
    print(f"{'':42s}{'classical':>22s}{'robust':>22s}")
    for name, (model, make) in CASES.items():
        cells = []
        for variance in ("classical", "robust"):
            found = []
            for seed in range(runs):
                X, y, true = make(np.random.default_rng([2, seed]))
                selector = AlphaInvesting(model, target_fdr=TARGET, variance=variance, trace="selected")
                kept = selector.start(y).offer_many(X)
                found.append([(kept & ~true).sum() / max(kept.sum(), 1), kept[true].mean()])
            mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(runs)
            cells.append(f"{mean[0]:.3f} ({error[0]:.3f}) / {mean[1]:.2f}")
        print(f"{name:42s}{cells[0]:>22s}{cells[1]:>22s}", flush=True)


# -- targets -----------------------------------------------------------------------------------------------


def with_outliers(rng: np.random.Generator, n: int) -> np.ndarray:
    y = rng.normal(size=n)
    y[rng.random(n) < 0.01] *= 100.0
    return y


TARGETS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "counts of mean 1": lambda rng, n: rng.poisson(1.0, n).astype(float),
    "t with 5 degrees": lambda rng, n: rng.standard_t(5, n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "normal, 1 % times 100": with_outliers,
}
UNRELATED: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=(n, 200)),
    "1 % ones": lambda rng, n: (rng.random((n, 200)) < 0.01).astype(float),
    "5 % ones": lambda rng, n: (rng.random((n, 200)) < 0.05).astype(float),
    "lognormal 1": lambda rng, n: rng.lognormal(0.0, 1.0, (n, 200)),
    "lognormal 2": lambda rng, n: rng.lognormal(0.0, 2.0, (n, 200)),
}


def table_of_targets(runs: int, n: int = 300) -> None:
    warnings.simplefilter("ignore", UserWarning)  # the selector says what is measured here
    print(
        f"Accepted of 200 columns of noise, target {TARGET}, {n} rows, {runs} runs: classical / robust / ranks"
    )
    for name, draw in TARGETS.items():
        cells, tails = [], []
        for unrelated in UNRELATED.values():
            accepted = np.zeros(3)
            for seed in range(runs):
                rng = np.random.default_rng([3, seed])
                X, y = unrelated(rng, n), draw(rng, n)
                tails.append(kurtosis(y, fisher=False))
                for i, (target, variance) in enumerate(
                    ((y, "classical"), (y, "robust"), (rankdata(y), "classical"))
                ):
                    selector = AlphaInvesting(target_fdr=TARGET, variance=variance, trace="selected")
                    accepted[i] += len(selector.start(target).offer_many(X).nonzero()[0])
            cells.append(" / ".join(f"{mean:.2f}" for mean in accepted / runs))
        print(f"{name:24s}{np.median(tails):6.1f}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)


# -- levels ------------------------------------------------------------------------------------------------


TESTS: dict[str, Callable[[float], object]] = {
    "fisher-z": lambda alpha: SAOLA(alpha=alpha),
    "g-square": lambda alpha: SAOLA(alpha=alpha, test="g-square"),
    "grafting": lambda alpha: Grafting(alpha=alpha, model="logistic"),
}


def table_of_levels(runs: int, n: int = 300) -> None:
    warnings.simplefilter("ignore", UserWarning)  # the selector says what is measured here
    print(
        f"Share of columns of noise that pass a test, {n} rows, {200 * runs:,} columns: "
        + ", ".join(UNRELATED)
    )
    for n_rare in (n // 2, n // 10, n // 50):
        for alpha in (0.01, 0.001):
            for name, make in TESTS.items():
                shares = []
                for unrelated in UNRELATED.values():
                    passed = []
                    for seed in range(runs):
                        X = unrelated(np.random.default_rng([4, seed]), n)
                        selector = make(alpha).fit(X, np.arange(n) < n_rare)
                        if name == "grafting":  # its first offers, while nothing is selected
                            passed.append(
                                (selector.trace_["statistic"] > selector.trace_["threshold"]).mean()
                            )
                        else:
                            passed.append((selector.trace_["p_value"] < alpha).mean())
                    shares.append(f"{np.mean(passed):.4f}")
                print(
                    f"{n_rare:4d} of {n}, alpha={alpha}, {name:10s}" + " ".join(f"{s:>8s}" for s in shares),
                    flush=True,
                )


# -- rare --------------------------------------------------------------------------------------------------


def table_of_rare(runs: int, rules: list[str], n: int = 200) -> None:
    print(
        f"Share of {runs} runs with a false column, logistic model, target {TARGET}: " + ", ".join(UNRELATED)
    )
    for rule in rules:
        shares = []
        for unrelated in UNRELATED.values():
            wrong = 0
            for seed in range(runs):
                X = unrelated(np.random.default_rng([5, seed]), n)
                selector = AlphaInvesting("logistic", rule=rule, target_fdr=TARGET, trace="selected")
                wrong += bool(selector.start(np.arange(n) < n // 25).offer_many(X).any())
            shares.append(f"{wrong / runs:.3f}")
        print(f"{rule:24s}" + " ".join(f"{share:>8s}" for share in shares), flush=True)


# -- forward -----------------------------------------------------------------------------------------------


def table_of_forward(runs: int, n: int = 2000) -> None:
    print(
        f"Share of {runs} runs in which forward selection keeps noise, not all columns: "
        + ", ".join(UNRELATED)
    )
    for share in (0.5, 0.1, 0.01):
        shares = []
        for unrelated in UNRELATED.values():
            wrong = 0
            for seed in range(runs):
                rng = np.random.default_rng([6, seed])
                X, y = unrelated(rng, n), rng.permutation(np.arange(n) < share * n)
                selector = ForwardPartialCorrelation(n_features_to_select=None)
                for at in range(0, n, 100):
                    selector.partial_fit(X[at : at + 100], y[at : at + 100], classes=[False, True])
                wrong += not selector.get_support().all()
            shares.append(f"{wrong / runs:.3f}")
        print(f"{share:5.0%} of class 1  " + " ".join(f"{s:>8s}" for s in shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--part", choices=("rules", "models", "targets", "levels", "rare", "forward"))
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=DESIGNS)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    args = parser.parse_args()
    if args.part in (None, "rules"):
        table_of_rules(args.runs, args.designs, args.rules)
    if args.part in (None, "models"):
        table_of_models(args.runs)
    if args.part in (None, "targets"):
        table_of_targets(args.runs)
    if args.part in (None, "levels"):
        table_of_levels(args.runs)
    if args.part in (None, "rare"):
        table_of_rare(args.runs, args.rules)
    if args.part in (None, "forward"):
        table_of_forward(args.runs)


if __name__ == "__main__":
    main()
