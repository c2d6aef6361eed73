"""Bands that are true at all times: they hold what the definition says, and rarely miss the truth at any look."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import ChiSquare, FisherScore, GiniIndex, MutualInformation, Screening, TScore
from tamis.dependence.information_band import information_band
from tamis.dependence.mean_band import mean_band


def information(p, w):
    """Mutual information of bins with probabilities p[b, c] in classes of shares w, by its definition."""
    mean = p @ w
    return sum(
        w[c] * p[b, c] * math.log(p[b, c] / mean[b])
        for c in range(len(w))
        for b in range(len(p))
        if p[b, c] > 0
    )


def radius(table, alpha):
    """n r of equation (1): by the predictions of Krichevsky and Trofimov, one row after the other."""
    n_bins, n_classes = table.shape
    found = -math.log(alpha)
    for c in range(n_classes):
        rows = table[:, c].sum()
        found += sum(n * math.log(n / rows) for n in table[:, c] if n)
        seen = np.zeros(n_bins)
        for b in range(n_bins):
            for _ in range(int(table[b, c])):
                found -= math.log((seen[b] + 0.5) / (seen.sum() + n_bins / 2))
                seen[b] += 1
    return found


@pytest.mark.parametrize("effect", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_information_band_holds_the_region_and_is_little_wider(effect, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 2000)
    x = rng.normal(size=2000) + effect * y
    table = np.zeros((4, n_classes))
    np.add.at(table, (np.digitize(x, np.quantile(x, [0.25, 0.5, 0.75])), y), 1)
    low, high = (float(end[0]) for end in information_band(table[None], 0.05))
    q, w, r = table / table.sum(axis=0), table.sum(axis=0) / 2000, radius(table, 0.05) / 2000

    def room(p):
        return r - (w * np.where(q > 0, q * np.log(np.where(q > 0, q, 1) / p), 0.0).sum(axis=0)).sum()

    start = (table + 0.5) / (table + 0.5).sum(axis=0)
    least = most = information(start, w)
    towards = np.log(start / (start @ w)[:, None])
    for step in np.arange(-1.5, 1.5, 0.02):
        for k in range(12):  # closer to independence, or farther from it, and a little to all sides
            z = np.log(start) + step * (towards + (k > 0) * 0.1 * rng.normal(size=q.shape))
            p = np.exp(z) / np.exp(z).sum(axis=0)
            if room(p) >= 0:
                least, most = min(least, information(p, w)), max(most, information(p, w))
    assert low <= least + 1e-12 < most <= high
    assert high - low < 1.7 * (most - least)


def squared_error(x, rest):
    """s^2 of equation (1)."""
    within = (len(x) * x.var() + len(rest) * rest.var()) / (len(x) + len(rest) - 2)
    return sum(max(values.var(ddof=1), within) / len(values) for values in (x, rest))


def test_the_mean_band_is_its_formula():
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=n) + shift for n, shift in ((100, 0.0), (300, 0.5), (50, -0.2)))
    half = math.sqrt(squared_error(a, b) * (1 + 1 / 8) * math.log(9 / 0.05**2))
    gap = abs(a.mean() - b.mean())
    table = [np.array([[f(x)] for x in (a, b)]) for f in (len, np.mean, np.var)]
    low, high = mean_band(*table, 0.05)
    assert (low[0], high[0]) == pytest.approx((max(gap - half, 0), gap + half))
    low, high = mean_band(*(np.array([[f(x)] for x in (a, b, c)]) for f in (len, np.mean, np.var)), 0.05)
    ends = []
    for x, rest in ((a, np.r_[b, c]), (b, np.r_[a, c]), (c, np.r_[a, b])):
        n = 450 * 0.02
        half = math.sqrt(squared_error(x, rest) * (1 + 1 / n) * math.log((1 + n) * (3 / 0.05) ** 2))
        ends.append((abs(x.mean() - rest.mean()) - half, abs(x.mean() - rest.mean()) + half))
    assert (low[0], high[0]) == pytest.approx((max(0, *(e[0] for e in ends)), max(e[1] for e in ends)))
    table[0][1] = 31
    assert [float(end[0]) for end in mean_band(*table, 0.05)] == [0.0, math.inf]


@pytest.mark.parametrize("kind", ["normal", "skewed", "rare"])
def test_bands_rarely_miss_the_truth_at_any_of_thirty_looks(kind):
    """100 features each; the band of the information is exact, that of the means is for many rows."""
    rng = np.random.default_rng(0)
    share, gap = (0.05 if kind == "rare" else 0.4), 0.3
    t, mi = TScore(1), MutualInformation(1, n_bins=3)
    wrong, missed, table = np.zeros(100, bool), np.zeros(100, bool), np.zeros((100, 3, 2))
    late = rng.normal(size=(20000, 1))
    for look in range(30):
        y = (rng.random(200) < share).astype(int)
        X = rng.normal(size=(200, 100)) if kind != "skewed" else rng.exponential(size=(200, 100))
        X += gap * y[:, None]
        t.partial_fit(X, y, classes=[0, 1])
        mi.partial_fit(X, y, classes=[0, 1])
        low, high = t.effect_band(0.1)
        wrong |= (gap < low) | (gap > high)
        if look % 5 == 4 and kind != "skewed":
            edges = mi._bins._exact.edges
            for c in (0, 1):
                below = np.array([(late[:, 0] + gap * c <= edges[:, h, None]).mean(axis=1) for h in (0, 1)])
                table[:, :, c] = np.diff(np.vstack([np.zeros(100), below, np.ones(100)]), axis=0).T
            rows = mi._bins._exact.counts_since_cut()[0].sum(axis=0)
            truth = np.array([information(p, rows / rows.sum()) for p in table])
            low, high = mi.effect_band(0.1)
            missed |= (truth < low) | (truth > high)
    assert wrong.mean() < 0.12
    assert missed.mean() <= 0.05
    assert not (kind == "normal" and (t.effect_band()[0] == 0).any())
    assert (high < np.log(2)).all()


@pytest.mark.parametrize("kind", ["0 or 1", "counts", "lognormal"])
def test_bands_of_means_rarely_miss_nothing_where_a_class_is_rare(kind):
    """Of 40 values of 1 % ones most samples have none, and seem not to vary."""
    rng = np.random.default_rng(0)
    X = {
        "0 or 1": lambda: rng.random((4000, 300)) < 0.01,
        "counts": lambda: rng.poisson(0.1, (4000, 300)),
        "lognormal": lambda: rng.lognormal(0.0, 2.0, (4000, 300)),
    }[kind]().astype(float)
    y, screen, wrong = rng.random(4000) < 0.02, TScore(1), np.zeros(300, bool)
    for start in range(0, 4000, 200):
        screen.partial_fit(X[start : start + 200], y[start : start + 200], classes=[False, True])
        wrong |= screen.effect_band(0.05)[0] > 0
    assert wrong.mean() < 0.05


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    X[:, 0] += 0.5 * y
    X[:, 1] *= 1 + y
    return X, y


@pytest.mark.parametrize("kind", [TScore, FisherScore, MutualInformation, ChiSquare, GiniIndex])
def test_bands_are_those_of_any_batching_merging_and_saving(kind, tmp_path):
    X, y = rows()
    whole = kind(1).fit(X, y)
    low, high = whole.effect_band(0.01)
    assert (low < high).all()
    assert low[0] > 0
    assert (low[1] > 0) == (kind not in (TScore, FisherScore))
    assert (low[2:] == 0).all()
    parts = kind(1)
    for start in range(0, 3000, 170):
        part = slice(start, start + 170)
        parts.partial_fit(sp.csr_matrix(X[part]) if start % 340 else X[part], y[part], classes=[0, 1])
        if start == 170:
            parts = tamis.load(tamis.save(parts, tmp_path / "parts.tamis"))
    left = kind(1).partial_fit(X[:1000], y[:1000])
    right = left.clone_unfitted().partial_fit(X[1000:], y[1000:])
    for other in (parts, left.merge(right)):
        for mine, theirs in zip((low, high), other.effect_band(0.01), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def test_what_has_no_band_says_so():
    X, y = rows(1000)
    with pytest.raises(ValueError, match="effect_band needs rows that do not fade"):
        TScore(1, half_life=100).fit(X, y).effect_band()
    with pytest.raises(ValueError, match="alpha must be"):
        TScore(1).fit(X, y).effect_band(0.0)
    X[:, 3] = np.arange(1000) % 7
    few = MutualInformation(1).fit(X[:200], y[:200])
    assert [end.tolist() for end in few.effect_band()] == [[0.0] * 4, [math.log(2)] * 4]
    low, high = MutualInformation(1, categorical=[3]).fit(X, y).effect_band()
    assert (low[3], high[3]) == (0.0, math.log(2))
    assert high[0] < math.log(2)


def test_a_beginning_begins_the_band_anew():
    X, y = rows()
    table = Screening(None, scores=["t", "mi"], level=0.05, restarts=2000).fit(X, y).table_
    fresh = TScore(1).fit(X[2000:], y[2000:]).effect_band(0.05 * 6 / (math.pi * 2) ** 2)
    np.testing.assert_allclose([table["effect_low"], table["effect_high"]], fresh)
    assert "effect_low" not in Screening(1, scores=["t"]).fit(X, y).table_
