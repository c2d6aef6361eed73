"""Error rates on dependent rows: p-values, bands, `level`, alpha-investing, intervals and drift alarms.

    python experiments/dependent_rows.py --out dependent.json            # about five minutes of processor time
    python experiments/dependent_rows.py --out dependent.json --full     # 300 runs, n = 3,000 and 30,000: hours
    python experiments/dependent_rows.py --out dependent.json --table    # print what was measured so far
    python experiments/dependent_rows.py --out slow.json --only promise  # slow streams: two minutes
    python experiments/dependent_rows.py --out slow.json --promises [--before OTHER.json]

`--promises` prints a table of slow streams (lots, hidden states, long memory, regimes, calendars) beside what another
version of the package gave, with standard errors of the simulation. "undetermined" is never counted as an error.

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
from scipy.signal import fftconvolve, lfilter
from scipy.special import fdtrc
from scipy.stats import norm

from tamis import (
    DISCUSS,
    AlphaInvesting,
    ForwardPartialCorrelation,
    GramInvesting,
    JointScreening,
    MutualInformation,
    Screening,
    TScore,
)
from tamis.dependence.fisher_z import FisherZ
from tamis.dependence.g_square import GSquare
from tamis.drift import ADWIN, DDM, ECDD, HDDMA, HDDMW
from tamis.evaluate.prequential.remarks import paired_gain, remarks_on, with_draws

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


def moving_average(rng, n, n_columns, d):
    """ARFIMA(0, d, 0): an autocorrelation that decreases as a power of the lag."""
    k = np.arange(1, 20_000)
    weights = np.r_[1.0, np.cumprod((k - 1 + d) / k)]
    x = fftconvolve(rng.normal(size=(n + 20_000, n_columns)), weights[:, None], axes=0)[20_000 : n + 20_000]
    return x / np.sqrt((weights**2).sum())


def states(rng, n, n_columns, length, geometric=False):
    """Columns that are constant in lots of `length` rows, or of a geometric number with this mean."""
    sizes = rng.geometric(1.0 / length, n) if geometric else np.full(n // length + 1, length)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), n)) + 1]
    return np.repeat(rng.normal(size=(len(sizes), n_columns)), sizes, axis=0)[:n]


def noisy(rng, state, scale=1.0):
    return (scale * state + rng.logistic(size=len(state)) > 0).astype(int)


def lots(rng, n, length=200, geometric=False):
    S = states(rng, n, D + 1, length, geometric)
    return S[:, :D], noisy(rng, S[:, D])


def noisy_lots(rng, n):
    S = 0.7 * states(rng, n, D + 1, 100)
    return S[:, :D] + rng.normal(size=(n, D)), noisy(rng, S[:, D])


def hidden_state(rng, n):
    X = series(rng, n, D + 1, 0.99)
    return X[:, :D], noisy(rng, X[:, D], 1.5)


def long_memory(rng, n, d=0.4):
    X = moving_average(rng, n, D + 1, d)
    return X[:, :D], (X[:, D] > np.median(X[:, D])).astype(int)


def slow_regimes(rng, n):
    S = states(rng, n, D + 1, 1000, geometric=True)
    return S[:, :D] + rng.normal(size=(n, D)), noisy(rng, S[:, D])


def regimes_of(draw, label=True, columns=True):
    """Levels under noise, in label and columns or in one of them; `draw` returns the length of a regime."""

    def design(rng, n):
        levels = np.zeros((n, D + 1))
        for j in range(0 if columns else D, D + 1 if label else D):
            start = 0
            while start < n:
                stop = start + int(draw(rng)) + 1
                levels[start:stop, j], start = rng.normal(), stop
        X = levels + rng.normal(size=(n, D + 1))
        return X[:, :D], (X[:, D] > 0).astype(int)

    return design


def random_walks(rng, n):
    X = np.cumsum(rng.normal(size=(n, D + 1)), axis=0)
    return X[:, :D], (X[:, D] > np.median(X[:, D])).astype(int)


def calendar(rng, n):
    """Hourly rows: unrelated daily profiles, flatter at the weekend, and an AR(.8) part."""
    profile = np.tile(rng.normal(size=(24, D + 1)), (n // 24 + 1, 1))[:n]
    profile = (np.roll(profile, 1, axis=0) + profile + np.roll(profile, -1, axis=0)) / np.sqrt(3.0)
    X = profile * np.where(np.arange(n) // 24 % 7 >= 5, 0.3, 1.0)[:, None] + series(rng, n, D + 1, 0.8)
    return X[:, :D], (X[:, D] > np.median(X[:, D])).astype(int)


def two_calendars(rng, n):
    """Cycles of 24 and 100 rows, and an AR(.8) part."""
    t, phase, scale = np.arange(n)[:, None], rng.random((2, D + 1)), rng.uniform(0.3, 1.0, (2, D + 1))
    X = sum(a * np.sin(2 * np.pi * (t / p + b)) for p, a, b in zip((24, 100), scale, phase, strict=True))
    X = X + series(rng, n, D + 1, 0.8)
    return X[:, :D], (X[:, D] > np.median(X[:, D])).astype(int)


def drifting_calendar(rng, n):
    """Daily profiles of a common clock whose phase drifts by .66 rows a day."""
    hour = np.cumsum(1.0 + 0.3 * rng.normal(size=n) * (rng.random(n) < 0.2)).astype(int) % 24
    profile = rng.normal(size=(24, D + 1))
    profile = (np.roll(profile, 1, axis=0) + profile + np.roll(profile, -1, axis=0)) / np.sqrt(3.0)
    X = profile[hour] + series(rng, n, D + 1, 0.8)
    return X[:, :D], (X[:, D] > np.median(X[:, D])).astype(int)


def nested_lots(rng, n):
    S = states(rng, n, D + 1, 400) + states(rng, n, D + 1, 50) + 0.5 * states(rng, n, D + 1, 10)
    return S[:, :D] + 0.3 * rng.normal(size=(n, D)), noisy(rng, S[:, D])


def pareto_regimes(rng, n):
    """States whose lengths have a Pareto distribution of index 1.5."""
    lengths = np.ceil(60 * (rng.pareto(1.5, (D + 1, n)) + 0.3)).astype(int)
    S = np.array([np.repeat(rng.normal(size=n), own)[:n] for own in lengths]).T
    return S[:, :D] + 0.5 * rng.normal(size=(n, D)), noisy(rng, S[:, D])


def daily_sine(rng, n):
    phase = rng.random(D + 1)
    X = np.sin(2 * np.pi * (np.arange(n)[:, None] / 24 + phase)) + rng.normal(size=(n, D + 1))
    return X[:, :D], (X[:, D] > 0).astype(int)


def five_runs(rng, n):
    return series(rng, n, D, 0.9), np.arange(n) * 10 // n % 2


SLOW = {
    "lots of 200 rows": lots, "lots of 50 rows": lambda rng, n: lots(rng, n, 50),
    "lots, random lengths": lambda rng, n: lots(rng, n, 200, True), "noisy lots of 100 rows": noisy_lots,
    "hidden AR(.99)": hidden_state, "AR(.99)": lambda rng, n: autoregressive(0.99)(rng, n)[:2],
    "AR(.9)": lambda rng, n: autoregressive(0.9)(rng, n)[:2], "long memory, d = .4": long_memory,
    "regimes of 1,000 rows": slow_regimes, "random walks": random_walks, "calendar": calendar,
    "calendar of 24 and 100 rows": two_calendars, "calendar, drifting phase": drifting_calendar,
    "nested lots": nested_lots, "regimes of Pareto lengths": pareto_regimes,
    "AR(.995)": lambda rng, n: autoregressive(0.995)(rng, n)[:2],
    "daily sine": daily_sine, "five runs of each class": five_runs,
} | {
    f"regimes of {kind}": regimes_of(draw) for kind, draw in {
        "1,000 rows, exponential": lambda rng: rng.exponential(1000),
        "300 rows, exponential": lambda rng: rng.exponential(300),
        "3,000 rows, exponential": lambda rng: rng.exponential(3000),
        "1,000 rows, gamma(.5)": lambda rng: rng.gamma(0.5, 2000),
        "1,000 rows, gamma(4)": lambda rng: rng.gamma(4, 250),
        "1,000 rows, Pareto(1.5)": lambda rng: 333 * (rng.pareto(1.5) + 1),
    }.items()
} | {
    "regimes of the label only": regimes_of(lambda rng: rng.exponential(1000), columns=False),
    "regimes of the columns only": regimes_of(lambda rng: rng.exponential(1000), label=False),
}  # fmt: skip
DIFFERENCES = {
    "independent": lambda rng, n: rng.normal(size=n), "AR(.9)": lambda rng, n: series(rng, n, 1, 0.9)[:, 0],
    "AR(.99)": lambda rng, n: series(rng, n, 1, 0.99)[:, 0],
    "long memory, d = .3": lambda rng, n: moving_average(rng, n, 1, 0.3)[:, 0],
    "long memory, d = .4": lambda rng, n: moving_average(rng, n, 1, 0.4)[:, 0],
    "regimes of 1,000 rows": lambda rng, n: states(rng, n, 1, 1000, True)[:, 0],
    "lots of 200 rows": lambda rng, n: states(rng, n, 1, 200)[:, 0],
}  # fmt: skip


def slow_pvalues(design, n, seed):
    rng = np.random.default_rng(seed)
    scores = ["t", "fisher", "mi", "chi2", "gini"]
    screen = Screening(3, scores=scores).fit(*SLOW[design](rng, n))
    found = {f"p < .01, {name}": float(np.mean(screen.table_[f"{name}_pvalue"] < 0.01)) for name in scores}
    return found | {"undetermined": float(np.isnan(screen.n_effective_).mean())}


def slow_level(design, kind, n, seed):
    rng = np.random.default_rng(seed)
    (X, y), screen, wrong = SLOW[design](rng, n), kind(), False
    for start in range(0, n, 250):
        screen.partial_fit(X[start : start + 250], y[start : start + 250], classes=[0, 1])
        wrong |= not screen.warming_up_ and bool(screen.get_support().any())
    return {"any false": float(wrong)}


def rows_until_selected(phi, shift, seed):
    """Count the rows until a level of .05 keeps the one relevant of 30 columns; at most 20,000."""
    rng = np.random.default_rng(seed)
    z = series(rng, 20_000, 1, phi)[:, 0]
    X, y = series(rng, 20_000, D, phi), (z > 0).astype(int)
    X[:, 0] += shift * z
    screen = TScore(None, level=0.05)
    for start in range(0, 20_000, 125):
        screen.partial_fit(X[start : start + 125], y[start : start + 125], classes=[0, 1])
        if not screen.warming_up_ and screen.get_support()[0]:
            break
    return {"rows": float(start + 125)}


def power_of_pvalues(phi, n, seed):
    """Return which scores find a column with .15 of the state of the label."""
    rng = np.random.default_rng(seed)
    X, z = series(rng, n, 4, phi), series(rng, n, 1, phi)[:, 0]
    X[:, 0] += 0.15 * z
    table = Screening(2, scores=["t", "mi"]).fit(X, (z > 0).astype(int)).table_
    return {name: float(table[f"{name}_pvalue"][0] < 0.01) for name in ("t", "mi")}


def eigenvalues(values, n_blocks, seed):
    """Return the share of 2,000 p-values below .01, with the bias of tr V^2 and without, of Gaussian block sums."""
    rng, nu, d = np.random.default_rng(seed), n_blocks - 1, len(values)
    sums = rng.normal(size=(2000, n_blocks, d)) * np.sqrt(values)
    V = np.einsum("rka,rkb->rab", sums[:, 1:], sums[:, 1:]) / nu
    trace, square = np.einsum("raa->r", V), (V**2).sum(axis=(1, 2))
    found = {}
    for name, of_square in (("with", square), ("without", (square - trace**2 / nu) / (1.0 + 1.0 / nu))):
        left = np.clip(np.where(of_square > 0.0, trace**2 / np.maximum(of_square, 1e-300), d), 1.0, d)
        found[name] = float(np.mean(fdtrc(left, nu * left, (sums[:, 0] ** 2).sum(axis=1) / trace) < 0.01))
    return found


def covered(design, n_batches, seed):
    """Return whether the 95 % interval of the mean of differences, in batches of 100 rows, has the true mean 0."""
    differences = DIFFERENCES[design](np.random.default_rng(seed), 100 * n_batches)
    steps = {
        "n_rows": np.full(n_batches + 1, 100), "frozen_accuracy_cumulative": np.zeros(n_batches + 1),
        "accuracy_cumulative": np.r_[0.0, np.cumsum(differences.reshape(-1, 100).sum(axis=1))]
        / (100.0 * np.arange(1, n_batches + 2)),
    }  # fmt: skip
    gain, error = paired_gain(steps, "accuracy")
    bound = getattr(error, "bound", 1.96 * error if isinstance(error, float) else None)
    return {"wrong": float(abs(gain) > bound), "undetermined": float(np.isnan(bound))}


def remark_of_no_gain(design, n_batches, n_draws, seed):
    """Return whether remarks say that a selection loses: as good as a frozen one, and as the mean of random subsets.

    Subsets differ by .02 in accuracy, and each subset and the selection have differences of their own.
    """
    rng = np.random.default_rng(seed)
    n = 100 * n_batches
    of_rows = 0.3 * np.array([DIFFERENCES[design](rng, n) for _ in range(n_draws + 2)])
    offset = 0.02 * rng.normal(size=n_draws)  # whose mean over all subsets is 0
    ours, frozen, draws = of_rows[0], of_rows[1], of_rows[2:] + offset[:, None]
    seen = 100.0 * np.arange(1, n_batches + 2)

    def course(values):
        return 0.6 + np.r_[0.0, np.cumsum(values.reshape(-1, 100).sum(axis=1))] / seen

    steps = {
        "n_rows": np.full(n_batches + 1, 100), "accuracy_cumulative": course(ours),
        "frozen_accuracy_cumulative": course(frozen), "random_accuracy_cumulative": course(draws.mean(axis=0)),
    }  # fmt: skip
    spread = float(np.std([course(one)[-1] for one in draws], ddof=1))
    total = {"accuracy": steps["accuracy_cumulative"][-1], "majority_accuracy": 0.1, "random_spread": spread}
    total |= {
        "random_accuracy": steps["random_accuracy_cumulative"][-1],
        "n_selected": 3.0,
        "n_features": 30.0,
    }
    for name in ("frozen", "random"):
        gain, error = paired_gain(steps, "accuracy", name)
        error = with_draws(error, spread, n_draws) if name == "random" else error
        parts = {"": gain, "_error": error.error, "_bound": error.bound, "_missing": error.missing}
        total |= {f"{name}_gain{part}": value for part, value in parts.items()}
    said = " ".join(remarks_on(total, {"options": {"n_draws": n_draws}}))
    return {
        "loses to frozen": float("The selection loses to one frozen" in said),
        "loses to random": float("The selection loses to random subsets" in said),
        "undetermined": float("is undetermined" in said),
    }


def slow_investing(kind, model, rule, seed):
    """Return whether any of 100 unrelated columns is accepted, at a target of .1."""
    rng = np.random.default_rng(seed)
    n = {"30 lots of 200 rows": 6000, "30 lots of 50 rows": 1500}.get(kind, 1000)
    if kind.startswith("30 lots"):
        S = states(rng, n, 101, n // 30)
        X, y = S[:, :100], S[:, 100] + 3.0 * rng.normal(size=n)
    elif kind == "slow state":
        X, y = series(rng, n, 100, 0.99), series(rng, n, 1, 0.99)[:, 0] + rng.normal(size=n)
    elif kind == "AR(.9)":
        X, y = series(rng, n, 100, 0.9), series(rng, n, 1, 0.9)[:, 0]
    elif kind == "volatility":
        scale = np.exp(series(rng, n, 1, 0.98))
        X, y = scale * rng.normal(size=(n, 100)), scale[:, 0] * rng.normal(size=n)
    else:
        X, y = rng.standard_t(1.5, size=(n, 100)), rng.standard_t(1.5, size=n)
    with warnings.catch_warnings(record=True) as named:
        warnings.simplefilter("always")
        target = y if model == "linear" else (y > np.median(y)).astype(int)
        selector = AlphaInvesting(model, target_fdr=0.1, rule=rule).fit(X, target)
    return {"any false": float(len(selector.selected_) > 0), "warning": float(bool(named))}


def power_of_investing(n, seed):
    """Return whether a slope of .4 between AR(.9) series is found at .001: by the test, and with a known variance."""
    rng = np.random.default_rng(seed)
    x, noise = series(rng, n, 2, 0.9).T
    y = 0.4 * x + noise
    centred = x - x.mean()
    z = centred @ (y - y.mean()) / np.sqrt(centred @ centred * (1 + 0.9**2) / (1 - 0.9**2))
    p_value = AlphaInvesting(variance="series").fit(x[:, None], y).trace_["p_value"][0]
    return {"found": float(p_value < 0.001), "of a known variance": float(2 * norm.sf(abs(z)) < 0.001)}


def slow_tests(design, make, seed):
    X, y = SLOW[design](np.random.default_rng(seed), 2000)
    test = make(0.01).start(y.astype(np.int64))
    return {"dependent": float(np.mean([test.candidate(x).dependent for x in X.T.copy()]))}


def slow_measurements(full):
    runs, lines = (200 if full else 20), []
    kinds = {
        "TScore": lambda: TScore(None, level=0.05), "MI": lambda: MutualInformation(None, level=0.05),
        "JointScreening": lambda: JointScreening(level=0.05),
    }  # fmt: skip
    for design in SLOW:
        for name, kind in kinds.items():
            lines.append(
                (
                    f"promise: level .05, {name}, {design}",
                    runs,
                    lambda s, d=design, k=kind: slow_level(d, k, 4000, s),
                )
            )
        for n in (3000, 6000, 12_000):
            lines.append(
                (
                    f"promise: p < .01, {design}, n={n}",
                    runs // 2,
                    lambda s, d=design, n=n: slow_pvalues(d, n, s),
                )
            )
        for make in (FisherZ, GSquare):
            name = f"promise: {make.__name__} .01, {design}"
            lines.append((name, runs // 2, lambda s, d=design, m=make: slow_tests(d, m, s)))
    for design in DIFFERENCES:
        for n_batches in (100, 300):
            name = f"promise: 95 % interval, {design}, {n_batches} batches"
            lines.append((name, 10 * runs, lambda s, d=design, n=n_batches: covered(d, n, s)))
        for n_draws in (3, 10):
            name = f"promise: no gain, {design}, {n_draws} draws"
            lines.append((name, 10 * runs, lambda s, d=design, k=n_draws: remark_of_no_gain(d, 100, k, s)))
    for kind in ("30 lots of 200 rows", "30 lots of 50 rows", "slow state", "AR(.9)", "volatility", "t(1.5)"):
        for rule in ("alpha-investing", "saffron"):
            for model in ("linear", "logistic")[: 1 if kind in ("volatility", "t(1.5)") else 2]:
                name = f"promise: any false at .1, {kind}, {model}, {rule}"
                lines.append((name, runs, lambda s, k=kind, m=model, r=rule: slow_investing(k, m, r, s)))
    for phi, shift in ((0.0, 0.2), (0.9, 0.5), (0.99, 0.5)):
        name = f"promise: rows until selected, phi {phi}, {shift}"
        lines.append((name, runs, lambda s, p=phi, v=shift: rows_until_selected(p, v, s)))
    for n in (150, 300, 700, 1300):
        name = f"promise: slope of .4 found by alpha-investing, n={n}"
        lines.append((name, 5 * runs, lambda s, n=n: power_of_investing(n, s)))
    for n in (2000, 4000):
        name = f"promise: power of p < .01, phi .9, n={n}"
        lines.append((name, 2 * runs, lambda s, n=n: power_of_pvalues(0.9, n, s)))
    for values in ((1, 1, 1, 1), (6, 3, 2, 1.5), (10, 1, 1, 1), (10, 7, 5, 3, 2, 2, 1, 1)):
        for n_blocks in (7, 13, 26):
            name = f"eigenvalues {values}, {n_blocks} blocks"
            lines.append((name, 10, lambda s, v=values, b=n_blocks: eigenvalues(v, b, s)))
    return lines


def print_promises(known, before):
    """Print what was measured, beside what was before, with the standard errors of the simulation."""
    for name, line in known.items():
        if not name.startswith("promise: "):
            continue
        cells = []
        for key, (mean, error) in ((key, value) for key, value in line.items() if isinstance(value, list)):
            earlier = before.get(name, {}).get(key)
            then = f"{earlier[0]:.4g} -> " if earlier else ""
            cells.append(f"{key} {then}{mean:.4g} ± {error:.2g}")
        print(f"{name[9:]:55} {'; '.join(cells)}")


SERIES = ("iid", "phi .5", "phi .9", "phi .99", "cycle", *UNSEEN)


def pvalues(design, n, seed, dependence):
    rng = np.random.default_rng(seed)
    X, y, weight = DESIGNS[design](rng, n)
    scores = ["t", "fisher", "mi", "chi2", "gini"]
    screen = Screening(3, scores=scores, dependence=dependence).fit(X, y, sample_weight=weight)
    found = {name: float(np.mean(screen.table_[f"{name}_pvalue"] < 0.01)) for name in scores}
    return found | {"undetermined": float(np.isnan(screen.n_effective_).mean())}


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
    if np.ptp(y) == 0:  # a rare class without rows
        return {"accepted": 0.0}
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
    parser.add_argument("--promises", action="store_true", help="print the table of slow streams")
    parser.add_argument("--before", type=Path, help="what another version gave")
    parser.add_argument("--only", default="", help="measurements whose name contains this")
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out.exists() else {}
    if given.promises:
        print_promises(known, json.loads(given.before.read_text()) if given.before else {})
        return
    for name, runs, measure in measurements(given.full) + slow_measurements(given.full):
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
