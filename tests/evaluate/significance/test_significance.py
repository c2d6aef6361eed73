"""Tests of significance against their definitions, SciPy, and the examples and tables that others published."""

from __future__ import annotations

import csv
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tamis.evaluate.significance import (
    bayesian_signed_rank,
    critical_difference,
    friedman,
    holm,
    holm_adjust,
    mean_ranks,
    nemenyi,
    wilcoxon,
)
from tests.twins import significance as twin

tables = st.integers(2, 6).flatmap(
    lambda m: st.lists(
        st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=m, max_size=m), min_size=2, max_size=7
    )
)


@given(table=tables)
@settings(max_examples=60)
def test_ranks_groups_and_holm_equal_their_definitions(table):
    expected = np.mean([twin.ranks(row) for row in table], axis=0)
    np.testing.assert_allclose(list(mean_ranks(table).values()), expected)
    compared = nemenyi(table)
    assert [set(group) for group in compared.groups] == twin.groups(
        compared.ranks, compared.critical_difference
    )
    best = min(compared.ranks, key=compared.ranks.__getitem__)
    against = holm(table, control=best)
    assert list(against.adjusted.values()) == pytest.approx(twin.holm(list(against.p_values.values())))
    unnamed, of_best = holm(table), compared.p_values[list(compared.ranks).index(best)]
    assert (unnamed.control, unnamed.chosen, against.chosen) == (best, True, False)
    pairs = dict(zip(compared.ranks, of_best.tolist(), strict=True))
    assert unnamed.adjusted == pytest.approx({name: pairs[name] for name in unnamed.adjusted})
    np.testing.assert_allclose(compared.p_values, compared.p_values.T)


@given(table=tables)
@settings(max_examples=60)
def test_friedman_equals_scipy(table):
    found = friedman(table)
    columns = np.array(table).T
    if len(columns) > 2 and not (columns == columns[0]).all():
        expected = stats.friedmanchisquare(*columns)
        assert found.chi2 == pytest.approx(expected.statistic, abs=1e-9)
        assert found.chi2_p_value == pytest.approx(expected.pvalue, abs=1e-9)
    assert 0 <= found.p_value <= 1


@given(
    table=st.integers(2, 4).flatmap(
        lambda m: st.lists(
            st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=m, max_size=m), min_size=2, max_size=3
        )
    )
)
@settings(max_examples=40, deadline=None)
def test_few_data_sets_are_counted_out(table):
    found = friedman(table)
    assert found.exact_p_value == pytest.approx(twin.friedman_p_value(table))
    assert found.p == found.exact_p_value >= found.least_p_value - 1e-12
    assert found.least_p_value == pytest.approx(math.factorial(len(table[0])) ** (1 - len(table)))


def test_two_streams_that_rank_four_methods_alike_say_one_in_24():
    """By F the p-value would be 0."""
    found = friedman([[0.9, 0.8, 0.7, 0.6], [0.5, 0.4, 0.3, 0.2]])
    assert found.p_value == 0.0
    assert "p = 0;" not in str(found)
    assert found.p == pytest.approx(1 / 24)
    assert not found.is_underpowered(0.05)
    assert found.is_underpowered(0.01)
    assert friedman([[0.9, 0.8], [0.5, 0.4]]).is_underpowered()


def test_many_orders_are_drawn_the_same_each_time_and_many_data_sets_need_none(rng):
    table = rng.normal(size=(6, 6))
    one, again = friedman(table), friedman(table)
    assert one.exact_p_value == again.exact_p_value
    assert one.exact_p_value == pytest.approx(one.p_value, abs=0.03)
    many = friedman(rng.normal(size=(11, 3)))
    assert np.isnan(many.exact_p_value)
    assert many.p == many.p_value


@given(gaps=st.lists(st.sampled_from([-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4]), min_size=2, max_size=9))
@settings(max_examples=80)
def test_wilcoxon_counts_all_signs(gaps):
    found = wilcoxon(0.5 + np.array(gaps), np.full(len(gaps), 0.5))
    plus, minus, p_value = twin.wilcoxon(gaps)
    assert (found.plus, found.minus) == (plus, minus)
    assert found.p_value == pytest.approx(p_value)
    assert found.n_pairs == sum(gap != 0 for gap in gaps)


@pytest.mark.parametrize("n", [7, 25, 26, 80])
def test_wilcoxon_equals_scipy_where_it_has_the_same(rng, n):
    first, second = rng.normal(size=n), rng.normal(size=n) + 0.2
    found = wilcoxon(first, second)
    method = "exact" if n <= 25 else "approx"
    expected = stats.wilcoxon(first, second, method=method, correction=False)
    assert found.exact == (method == "exact")
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
def test_the_posterior_equals_loops_over_all_pairs(rope):
    gaps = [0.07, 0.02, -0.03, 0.04, 0.111, 0.013]
    found = bayesian_signed_rank(
        0.5 + np.array(gaps), np.full(6, 0.5), rope=rope, n_samples=1500, random_state=3
    )
    if rope:  # without one, a pair of the prior's own row lies on the border: a half to each side
        expected = twin.posterior(gaps, rope, 0.5, 1500, 3)
        assert [found.first, found.equal, found.second] == pytest.approx(expected, abs=1e-12)
    again = bayesian_signed_rank(
        0.5 + np.array(gaps), np.full(6, 0.5), rope=rope, n_samples=1500, random_state=3
    )
    other = bayesian_signed_rank(
        np.full(6, 0.5), 0.5 + np.array(gaps), rope=rope, n_samples=1500, random_state=3
    )
    assert again == found
    assert (other.first, other.second) == pytest.approx((found.second, found.first), abs=1e-12)
    assert found.first + found.equal + found.second == pytest.approx(1)


# -- published -------------------------------------------------------------------------------------------------

# Demsar (2006), table 6: AUC of C4.5, with m tuned, with cf tuned, with both. In the row of "voting" the last two are
# both printed .975 but ranked 2 and 3, so a digit is added.
DEMSAR = [
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
]  # fmt: skip
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


def test_the_example_of_demsar():
    found = friedman(DEMSAR, NAMES)
    assert list(found.ranks.values()) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    chi2, f = twin.friedman_without_ties(list(found.ranks.values()), 14)
    assert (chi2, f) == pytest.approx(
        (9.28, 3.69), abs=5e-3
    )  # as printed; corrected for its ties it is larger
    assert found.chi2 > chi2
    assert found.p_value < 0.05
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=5e-3)
    against = holm(DEMSAR, NAMES, control="C4.5")
    assert {name: round(-z, 3) for name, z in against.z.items()} == pytest.approx(
        {"C4.5+m": 2.343, "C4.5+cf": 0.512, "C4.5+m+cf": 2.416}, abs=2e-3
    )
    assert list(against.p_values.values()) == pytest.approx([0.019, 0.607, 0.016], abs=2e-3)


def test_quantiles_of_nemenyi():
    """Demsar (2006), table 5 (a), and its continuation to 12 methods."""
    five = [1.960, 2.344, 2.569, 2.728, 2.850, 2.948, 3.031, 3.102, 3.164, 3.219, 3.268]
    ten = [1.645, 2.052, 2.291, 2.460, 2.589, 2.693, 2.780, 2.855, 2.920, 2.978, 3.030]
    for m, (at_five, at_ten) in enumerate(zip(five, ten, strict=True), start=2):
        error = np.sqrt(m * (m + 1) / 60)
        assert critical_difference(m, 10) / error == pytest.approx(at_five, abs=1e-3)
        assert critical_difference(m, 10, 0.1) / error == pytest.approx(at_ten, abs=1e-3)


def test_nemenyi_p_values_meet_the_critical_difference():
    found = nemenyi(DEMSAR, NAMES)
    z = found.critical_difference / np.sqrt(4 * 5 / (6 * 14))
    assert stats.studentized_range.sf(z * np.sqrt(2), 4, np.inf) == pytest.approx(0.05, abs=1e-6)
    close = nemenyi([[2.0, 1.0]] * 4, alpha=stats.norm.sf(2) * 2)  # mean ranks 1 and 2, z = 2
    assert close.p_values[0, 1] == pytest.approx(close.alpha, rel=1e-5)


@pytest.fixture
def thesis(shared):
    def load(name):
        with open(shared / "tables" / "thesis" / f"{name}.csv", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        return pd.DataFrame(
            [[row[0], *(0.0 if cell == "OOM" else float(cell) for cell in row[1:])] for row in rows],
            columns=head,
        )

    return load


def test_the_ranks_of_weighted_classifiers(thesis):
    """Barddal's table 7.1 and figure 7.1, whose critical difference is printed as 1.96, that of 2 methods."""
    found = friedman(thesis("table_7_1"))
    assert found.ranks == pytest.approx(
        {
            "HAT": 2.2,
            "kNN_SU": 2.85,
            "NB_SU": 3.35,
            "NB_entropy": 4.35,
            "kNN_entropy": 4.45,
            "NB": 5.3,
            "kNN": 5.5,
        }
    )
    assert found.chi2_p_value == pytest.approx(0.003, abs=5e-4)
    compared = nemenyi(thesis("table_7_1"))
    assert compared.critical_difference == pytest.approx(2.848, abs=1e-3)
    best = ["HAT", "kNN_SU", "NB_SU", "NB_entropy", "kNN_entropy"]
    assert compared.groups == [best, ["kNN_SU", "NB_SU", "NB_entropy", "kNN_entropy", "NB", "kNN"]]


@pytest.mark.parametrize(
    ("table", "best"),
    [
        # what the text puts in the first of two groups
        ("table_5_2", {"HAT_none", "VFDT_ADWIN", "VFDT_ECDD", "VFDT_none", "HAT_ADWIN", "HAT_ECDD", "NB_ECDD",
                       "NB_ADWIN"}),
        ("table_8_2", {"VFDT_nstar", "NB_nstar", "VFDT_nbar", "kNN_nstar", "HAT"}),
        ("table_8_3", {"VFDT_thetastar", "HAT", "NB_thetastar", "kNN_thetastar", "VFDT_thetaauto",
                       "VFDT_thetabar"}),
    ],
)  # fmt: skip
def test_the_order_of_the_published_diagrams(thesis, table, best):
    found = nemenyi(thesis(table))
    order = sorted(found.ranks, key=found.ranks.get)
    assert set(order[: len(best)]) == best
    assert best < set(found.groups[0])  # they do not differ, but neither do some that the text puts below


# -- at the door -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_name_their_methods(kind):
    frame = kind({"stream": ["s", "t"], "a": [0.9, 0.8], "b": [0.5, 0.9]})
    assert mean_ranks(frame) == {"a": 1.5, "b": 1.5}
    assert mean_ranks(frame, larger_is_better=False) == {"a": 1.5, "b": 1.5}
    assert mean_ranks(frame, ["x", "y"]) == {"x": 1.5, "y": 1.5}
    assert wilcoxon(frame).names == ("a", "b")


@pytest.mark.parametrize("result", [friedman, nemenyi, holm, wilcoxon, bayesian_signed_rank])
def test_results_can_be_read(result):
    table = np.array(DEMSAR)[:, :2] if result in (wilcoxon, bayesian_signed_rank) else DEMSAR
    names = NAMES[: np.shape(table)[1]]
    text = str(result(table, names=names))
    assert all(name in text for name in names)
    assert text.isascii()


def test_agreement_without_exception():
    found = friedman([[3.0, 2.0, 1.0]] * 5)
    assert (found.f, found.p_value) == (np.inf, 0)
    nothing = friedman([[1.0, 1.0, 1.0]] * 5)
    assert (nothing.chi2, nothing.p_value) == (0, 1)
    assert wilcoxon([1.0, 2.0], [1.0, 2.0]).p_value == 1


def test_rounding_makes_no_difference():
    """0.9 - 0.8 and 0.3 - 0.2 differ in the last digit, but not in what was measured."""
    found = wilcoxon([0.9, 0.3, 0.5], [0.8, 0.2, 0.6])
    assert (found.plus, found.minus) == (4, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: friedman([[1.0, 2.0]]), r"each of at least 2 data sets"),
        (lambda: mean_ranks([[1.0], [2.0]]), r"at least 2 methods, got shape \(2, 1\)"),
        (lambda: mean_ranks([[1.0, np.nan]], ["a", "b"]), r"'b' has no score in row 0"),
        (lambda: mean_ranks([[1.0, 2.0]], ["a", "a"]), r"names must be 2 distinct names"),
        (
            lambda: holm([[1.0, 2.0]] * 2, ["a", "b"], control="c"),
            r"control must be one of 'a', 'b', got 'c'",
        ),
        (lambda: nemenyi([[1.0, 2.0]] * 2, alpha=0), r"alpha must be a number"),
        (lambda: critical_difference(1, 10), r"n_methods must be an integer"),
        (lambda: wilcoxon([1.0, 2.0], [1.0]), r"first and second must be two columns"),
        (lambda: wilcoxon([[1.0, 2.0, 3.0]] * 2), r"two methods can be compared, got 3"),
        (lambda: bayesian_signed_rank([1.0], [2.0], rope=-1), r"rope must be a number"),
        (lambda: critical_difference(3, 1), r"n_datasets must be an integer.*got 1"),
        (lambda: holm_adjust([0.1, np.nan]), r"p_values must be a list of numbers in \[0, 1\], got"),
        (lambda: holm_adjust([0.1, 1.5]), r"p_values must be a list of numbers in \[0, 1\], got"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("test", [friedman, nemenyi, holm, wilcoxon, bayesian_signed_rank])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.9, 0.8]], r"at least 2 data sets .* got shape \(1, 2\)"),
        (
            [[0.9, 0.8], [0.7, np.inf]],
            "'method 1' has the score inf, which is not finite, in row 1: drop the row",
        ),
        ([[0.9, 0.8], [-np.inf, 0.1]], "'method 0' has the score -inf, which is not finite, in row 1"),
        ([[0.9, None], [0.7, 0.6]], "'method 1' has no score in row 0"),
        ([[0.9, "x"], [0.7, 0.6]], "'method 1' has the text 'x' in row 0: pass a number"),
        ([0.9, 0.8], r"got shape \(2,\)"),
    ],
)
def test_every_test_validates_its_scores_alike(test, table, message):
    with pytest.raises(ValueError, match=message):
        test(table)


def test_adjusted_p_values_keep_their_order():
    np.testing.assert_allclose(holm_adjust([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
