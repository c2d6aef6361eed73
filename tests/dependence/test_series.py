"""The variance of sums of neighbouring rows, and tests of dependence on autocorrelated rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from tamis import OSFS, SAOLA
from tamis.dependence.fisher_z import FisherZ
from tamis.dependence.g_square import GSquare
from tamis.dependence.series import block_ratios, variance_inflation


def series(rng, n, n_columns, phi):
    return lfilter([1], [1, -phi], rng.normal(size=(n + 500, n_columns)), axis=0)[500:]


@pytest.mark.parametrize("n", [5, 8, 61, 300])
def test_ratios_equal_their_definition(n, rng):
    columns = series(rng, n, 3, 0.8).T
    columns -= columns.mean(axis=1, keepdims=True)
    ratio, excess = block_ratios(columns)
    lengths = [2**k for k in range(1, 20) if n // 2**k >= 4]
    assert ratio.shape == excess.shape == (len(lengths), 3)
    for i, length in enumerate(lengths):
        for j, x in enumerate(columns):
            sums = [sum(x[b * length : (b + 1) * length]) for b in range(n // length)]
            expected = sum(s * s for s in sums) / (len(sums) * length * np.mean(x**2))
            assert ratio[i, j] == pytest.approx(expected)
            assert excess[i, j] == pytest.approx((expected - 1) * np.sqrt((len(sums) - 1) / 2))
    assert (variance_inflation(columns, always=True) == ratio.max(axis=0, initial=1.0)).all()


@pytest.mark.parametrize("make", [FisherZ, GSquare])
@pytest.mark.parametrize("phi", [0.5, 0.9, 0.99])
def test_unrelated_series_are_rarely_dependent(make, phi, rng):
    wrong = {"auto": 0, "independent": 0}
    for _ in range(15):
        X, z = np.split(series(rng, 2000, 21, phi), [20], axis=1)
        y = (z[:, 0] > 0).astype(np.int64)
        for how in wrong:
            test = make(0.01, dependence=how).start(y)
            wrong[how] += sum(test.candidate(x).dependent for x in X.T.copy())
    assert wrong["auto"] <= 6  # of 300
    assert wrong["independent"] > 2 * max(wrong["auto"], 1)


@pytest.mark.parametrize("make", [FisherZ, GSquare])
def test_a_relation_is_found_and_conditions_count_rows_as_fewer_too(make, rng):
    cause = series(rng, 3000, 1, 0.9)[:, 0]
    y = (cause + series(rng, 3000, 1, 0.9)[:, 0] > 0).astype(np.int64)
    copy, unrelated = cause + 0.3 * rng.normal(size=3000), series(rng, 3000, 1, 0.9)[:, 0]
    test = make().start(y)
    assert test.rows_dependent_
    for column in (cause, copy, unrelated):
        test.keep(test.candidate(column))
    assert test.candidate(cause).dependent
    assert not test.is_separated(0, [2], 1)
    assert test.is_separated(2, [0], 1)
    assert not test.dependence_on_kept(test.candidate(unrelated))[1][0]


@pytest.mark.parametrize("make", [FisherZ, GSquare])
def test_independent_and_sorted_rows_count_once(make, rng):
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 3, size=400)
    for codes, held in ((y, X), (np.sort(y), X[np.argsort(y)]), (np.tile(np.sort(y[:200]), 2), X)):
        auto, plain = make().start(codes), make(dependence="independent").start(codes)
        assert not auto.rows_dependent_
        for x in held.T.copy():
            one, other = auto.candidate(x), plain.candidate(x)
            assert (one.log_p, one.dependent, one.inflation) == (other.log_p, other.dependent, 1.0)
    assert make(dependence="series").start(np.sort(y)).rows_dependent_
    with pytest.raises(ValueError, match="dependence must be"):
        make(dependence="none").start(y)


@pytest.mark.parametrize("make", [OSFS, SAOLA])
def test_selectors_choose_fewer_unrelated_series(make, rng):
    X, z = np.split(series(rng, 2000, 41, 0.95), [40], axis=1)
    y = (z[:, 0] > 0).astype(int)
    selector = make(alpha=0.001).fit(X, y)
    assert selector.rows_dependent_
    plain = make(FisherZ(0.001, dependence="independent")).fit(X, y)
    assert not plain.rows_dependent_
    assert len(selector.selected_) <= 1 < len(plain.selected_)
