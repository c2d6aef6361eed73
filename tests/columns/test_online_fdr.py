"""Spending rules equal their printed sums, in any batching, and keep what they guarantee."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.base import clone

from tamis.columns.online_fdr import (
    ADDIS,
    ELOND,
    ELORD,
    ESAFFRON,
    LOND,
    RULES,
    SAFFRON,
    SCORE,
    AlphaSpending,
    AlphaWealth,
    ClosedELOND,
    InformationInvesting,
    LORDPlusPlus,
    lord,
    make_rule,
)
from tamis.columns.tails import log_chi2_tail
from tests.twins import online_fdr as twin

# The example of 15 p-values of the R package onlineFDR (Robertson et al. 2019).
EXAMPLE = np.array([
    2.90e-08, 0.06743, 0.01514, 0.08174, 0.00171, 3.60e-05, 0.79149, 0.27201, 0.28295, 7.59e-08, 0.69274, 0.30443,
    0.00136, 0.72342, 0.54757,
])  # fmt: skip
PAIRS = [
    (AlphaWealth(0.5, 0.5), lambda p: twin.alpha_wealth(p, 0.5, 0.5)),
    (AlphaWealth(0.05, 0.02), lambda p: twin.alpha_wealth(p, 0.05, 0.02)),
    (InformationInvesting(0.5, 0.5), lambda p: twin.information_investing(p, 0.5, 0.5, 3.0)),
    (InformationInvesting(1.0, 0.2, 0.0), lambda p: twin.information_investing(p, 1.0, 0.2, 0.0)),
    (AlphaSpending(0.1), lambda p: twin.alpha_spending(p, 0.1)),
    (LOND(0.1), lambda p: twin.lond(p, 0.1)),
    (ELOND(0.1), lambda p: twin.e_lond(p, 0.1)),
    (ELOND(0.2, kappa=0.3), lambda p: twin.e_lond(p, 0.2, 0.3)),
    (ELORD(0.2), lambda p: twin.e_budget(p, 0.2)),
    (ESAFFRON(0.2, candidate=0.3), lambda p: twin.e_budget(p, 0.2, candidate=0.3)),
    (SCORE(0.2, kappa=0.2), lambda p: twin.e_budget(p, 0.2, 0.2, refund=True)),
    (ELORD(0.2, n_tests=500), lambda p: twin.e_gai(p, 0.2, 0.005)),
    (ESAFFRON(0.2, candidate=0.3, n_tests=250), lambda p: twin.e_gai(p, 0.2, 0.01, candidate=0.3)),
    (SCORE(0.2, n_tests=500, kappa=0.2), lambda p: twin.e_gai(p, 0.2, 0.005, refund=True, kappa=0.2)),
    (LORDPlusPlus(0.05), lambda p: twin.lord_plus_plus(p, 0.05)),
    (LORDPlusPlus(0.2, decay=0.9), lambda p: twin.lord_plus_plus(p, 0.2, 0.9)),
    (SAFFRON(0.05), lambda p: twin.saffron(p, 0.05)),
    (ADDIS(0.05), lambda p: twin.addis(p, 0.05)),
]
by_pair = pytest.mark.parametrize(("rule", "by_twin"), PAIRS, ids=[repr(rule) for rule, _ in PAIRS])


@pytest.mark.parametrize(
    ("rule", "rejected"),
    [
        (LORDPlusPlus(0.05), [1, 6, 10]),
        (SAFFRON(0.05), [1, 5, 6, 10, 13]),
        (ADDIS(0.05), [1, 5, 6, 10, 13]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_decides_as_published(rule, rejected):
    assert (np.flatnonzero(rule.start().decide(np.log(EXAMPLE))) + 1).tolist() == rejected


@by_pair
def test_equals_its_twin_one_by_one_and_in_blocks(rule, by_twin, rng):
    p = np.where(rng.random(150) < 0.2, rng.random(150) * 1e-6, rng.random(150))
    levels, rejected = by_twin(p.tolist())
    rule, found, wealths = clone(rule).start(), [], []
    for i in range(150):
        found.append(np.exp(rule.level()))
        rule.update(rejected[i], np.log(p[i]))
        wealths.append(rule.wealth_)
    np.testing.assert_allclose(found, levels, rtol=1e-12)
    again = clone(rule).start()
    assert again.decide(np.log(p)).tolist() == rejected
    np.testing.assert_allclose(again.wealth_, wealths[-1], rtol=1e-9)
    in_parts = clone(rule).start()
    assert (
        np.concatenate([in_parts.decide(part) for part in np.split(np.log(p), [1, 2, 60])]).tolist()
        == rejected
    )
    assert sum(rejected) >= 3


@by_pair
def test_wealths_are_those_of_single_tests(rule, by_twin, rng):
    log_p = np.log(rng.random(40) * 0.5 + 0.5)
    one = clone(rule).start()
    one.update(True, -30.0)
    expected = one.wealths(log_p)
    for i in range(40):
        one.update(False, log_p[i])
        assert one.wealth_ == pytest.approx(expected[i], rel=1e-9)


@settings(max_examples=40)
@given(st.lists(st.floats(1e-300, 1.0), min_size=1, max_size=40), st.sampled_from(list(RULES)))
def test_any_p_values_leave_levels_between_0_and_1(p, name):
    rule = make_rule(name, 0.1).start()
    for value in p:
        level = rule.level()
        assert -np.inf < level < 0
        rule.update(np.log(value) <= level, np.log(value))


def test_figure_1_by_hand():
    rule = AlphaWealth(0.5, 0.5).start()
    rule.update(False, -0.1)  # alpha_1 = 1/4, w = 1/4
    rule.update(True, -9.0)  # alpha_2 = 1/16, w = 1/4 - 1/16 + 1/2
    assert rule.wealth_ == 0.6875
    assert np.exp(rule.level()) == pytest.approx(0.6875 / 6)


@pytest.mark.parametrize("signals", [0.0, 0.05])
@pytest.mark.parametrize(("w0", "payout"), [(0.5, 0.5), (0.05, 0.05)])
def test_bound_of_theorem_1_holds(w0, payout, signals, rng):
    """E(N) <= (payout E(M) + W0) / (1 - payout), N false and M true rejections, within four standard errors."""
    from scipy.special import log_ndtr

    n_runs, n_tests = 500, 400
    excess = []
    for _ in range(n_runs):
        true = rng.random(n_tests) < signals
        log_p = np.log(2) + log_ndtr(-np.abs(rng.normal(size=n_tests) + 4 * true))
        rejected = AlphaWealth(w0, payout).start().decide(log_p)
        false = (rejected & ~true).sum()
        excess.append((1 - payout) * false - payout * (rejected & true).sum() - w0)
    assert np.mean(excess) <= 4 * np.std(excess) / np.sqrt(n_runs)
    if signals:
        assert np.mean(excess) < -w0 / 10  # the bound is not met by doing nothing: true ones are rejected
        assert rejected[true].any()


def test_information_investing_by_hand():
    """A bid of 0.25 bits is a chance of 1 - 2^-0.25 = 0.159 that the feature is in, which is told in 2.652 bits."""
    rule = InformationInvesting().start()
    gain = 2 * np.log(2) * (0.5 + 3 + 2.652)  # 8.53: chance alone has as much once in 286 tests
    assert chi2.logsf(gain, 1) == pytest.approx(rule.level(), abs=1e-3)
    rule.update(False, -0.1)
    assert rule.wealth_ == 0.25
    rule.update(True, -9.0)
    assert rule.wealth_ == 0.75


@pytest.mark.slow
@pytest.mark.parametrize("signals", [0.0, 0.3])
def test_the_message_is_never_longer_than_without_features_by_more_than_the_initial_wealth(signals, rng):
    for _ in range(50):
        log_p = log_chi2_tail((rng.normal(size=300) + 5 * (rng.random(300) < signals)) ** 2)
        rule, longer, n_in = InformationInvesting(0.5, 0.5, 2.0).start(), 0.0, 0
        for i, one in enumerate(log_p, start=1):
            bid, level = rule.wealth_ / (2 * i), rule.level()
            rule.update(one <= level, one)
            if one <= level:
                told = chi2.isf(np.exp(one), 1) / (2 * np.log(2))
                longer += 2.0 - np.log2(-np.expm1(-bid * np.log(2))) - told
                n_in += 1
            else:
                longer += bid
            assert longer <= 0.5 - rule.wealth_ + 1e-9
        assert (n_in > 10) == (signals > 0)


@pytest.mark.parametrize("signals", [0.0, 0.05])
@pytest.mark.parametrize("rule", [InformationInvesting(), InformationInvesting.for_target(0.2)])
def test_the_bound_of_information_investing_holds(rule, signals, rng):
    """E(N) <= (b E(M) + W0) / k, within four standard errors."""
    k = 2 ** (rule.payout + rule.coefficient_bits) / np.log(2) - 1.5 * rule.payout
    excess = []
    for _ in range(500):
        true = rng.random(400) < signals
        rejected = rule.start().decide(log_chi2_tail((rng.normal(size=400) + 4 * true) ** 2))
        excess.append(k * (rejected & ~true).sum() - 0.5 * (rejected & true).sum() - 0.5)
    assert np.mean(excess) <= 4 * np.std(excess) / np.sqrt(500)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RULES))
def test_false_discovery_rate_stays_below_its_target(name, rng):
    from scipy.special import log_ndtr

    shares, power = [], []
    for _ in range(120):
        true = rng.random(400) < 0.2
        rejected = make_rule(name, 0.1).start().decide(log_ndtr(-(rng.normal(size=400) + 3 * true)))
        shares.append((rejected & ~true).sum() / max(rejected.sum(), 1))
        power.append(rejected[true].mean())
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(120)
    assert np.mean(power) > 0.05


def test_a_million_tests_without_rejection_leave_the_wealth_that_theory_says():
    rule = AlphaWealth(0.5, 0.5).start()
    rule.skip(np.zeros(1_000_000))
    assert rule.wealth_ == pytest.approx(0.5 / np.sqrt(np.pi * 1e6), rel=1e-6)
    assert rule.level() == pytest.approx(np.log(rule.wealth_ / 2_000_002), rel=1e-12)


def test_decay_forgets_rejections():
    lasting, fading = LORDPlusPlus(0.1).start(), LORDPlusPlus(0.1, decay=0.9).start()
    for rule in (lasting, fading):
        for _ in range(5):
            rule.update(True, -30.0)
        rule.skip(np.zeros(100))
    assert fading.level() < lasting.level() - 5


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (AlphaWealth(0.0), r"initial_wealth must be a number in \(0, 1\], got 0.0"),
        (AlphaWealth(0.5, 1.0), r"payout must be a number in \[0, 1\), got 1.0"),
        (
            InformationInvesting(coefficient_bits=-1),
            r"coefficient_bits must be a number in \[0, 1000\], got -1",
        ),
        (LORDPlusPlus(1.5), r"alpha must be a number in \(0, 1\), got 1.5"),
        (LORDPlusPlus(0.05, decay=0), r"decay must be a number in \(0, 1\], got 0"),
        (SAFFRON(0.05, 0.1), r"initial_wealth must be a number in \(0, 0.05\], got 0.1"),
        (SAFFRON(candidate=1), r"candidate must be a number in \(0, 1\), got 1"),
        (ADDIS(candidate=0.6), r"candidate must be a number in \(0, 0.5\), got 0.6"),
        (ELORD(n_tests=0), r"n_tests must be an integer in \[1, inf\), got 0"),
        (SCORE(n_tests=100.0), r"n_tests must be an integer in \[1, inf\), got 100.0"),
    ],
)
def test_impossible_parameters_are_named(rule, message):
    with pytest.raises(ValueError, match=message):
        rule.start()


def test_unknown_rule_lists_what_is_known():
    with pytest.raises(ValueError, match=r"rule must be one of 'alpha-investing', .*, got 'lord'"):
        make_rule("lord", 0.05)
    with pytest.raises(ValueError, match="target_fdr must be a number"):
        make_rule("lond", 1.0)


@pytest.mark.parametrize(
    ("rule", "p", "ticks"),
    [
        (ADDIS(0.05), 0.5, True), (ADDIS(0.05), 0.5000001, False), (ADDIS(0.05), 0.25, False),
        (ADDIS(0.05), 0.2500001, True), (SAFFRON(0.05), 0.5, False), (SAFFRON(0.05), 0.5000001, True),
    ],
)  # fmt: skip
def test_candidates_and_discards_at_their_bounds(rule, p, ticks):
    """As published: p <= lambda is a candidate, and p <= tau is not discarded; both bounds belong."""
    rule = clone(rule).start()
    before = rule.level()
    rule.update(False, np.log(p))
    assert (rule.level() < before) == ticks


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ELORD(0.1), ESAFFRON(0.1), SCORE(0.1)])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_rules_for_e_values_bound_the_rate_and_find_more_than_elond(rule, share):
    """Tests depend on the past: for 20 tests after a rejection, all null hypotheses are true."""
    rng, false_share, found = np.random.default_rng(0), {True: [], False: []}, {True: 0, False: 0}
    for _ in range(8):
        p, relevant = scipy.stats.norm.sf(rng.normal((0.0, 4.0), size=(200, 2))), rng.random(200) < share
        for is_elond in (False, True):
            one, since, rejected = (ELOND(0.1) if is_elond else clone(rule)).start(), 20, []
            for t in range(200):
                null = since < 20 or not relevant[t]
                log_p = np.log(p[t, 0 if null else 1])
                accepted = bool(log_p <= one.level())
                one.update(accepted, log_p)
                since = 0 if accepted else since + 1
                rejected += [null] if accepted else []
            false_share[is_elond].append(sum(rejected) / max(len(rejected), 1))
            found[is_elond] += len(rejected) - sum(rejected)
            assert one.wealth_ >= 0.0
    assert np.mean(false_share[False]) < 0.1
    assert found[False] > found[True] or share == 0.0


@pytest.mark.parametrize("rule", [ELORD(0.1), ESAFFRON(0.1), SCORE(0.1)])
def test_costs_of_equations_2_to_4_bound_false_rejections_in_the_mean(rule):
    """For e-values of 1/a with probability a, the largest that (1) allows, the charge equals the false rejections."""
    rule, rng = clone(rule).start(), np.random.default_rng(1)
    costs, hits = [], []
    for _ in range(4000):
        a = rule.candidate if isinstance(rule, ESAFFRON) else rng.uniform(0.05, 0.9)
        e = rng.exponential() if isinstance(rule, SCORE) else (1.0 / a if rng.random() < a else 0.0)
        hit = e >= 1.0 / a
        if hit:
            cost = rule._rejection_cost(a, np.log(e))
        else:
            charged = not isinstance(rule, ESAFFRON) or e < 1.0 / rule.candidate
            cost = a / rule._share() if charged else 0.0
        costs.append(cost)
        hits.append(hit)
    assert np.mean(np.subtract(costs, hits)) > -3.0 * np.std(np.subtract(costs, hits)) / np.sqrt(4000)


@pytest.mark.slow
def test_rules_for_e_values_are_ordered_as_in_their_papers():
    """The main design of Zhang et al. (2025): 500 tests, 20 % effects of mean 3, normal noise with correlation .5^lag.

    Published: e-LORD and e-SAFFRON bound the rate and find more than e-LOND. SCORE dominates e-LORD (Kuang 2026).
    """
    from experiments.e_value_rules import run

    by_rule = {}
    for seed in range(30):
        for key, rates in run("AR .5, 20%, mean 3", seed).items():
            by_rule.setdefault(key, []).append(rates)
    rate, power = {}, {}
    for key, rates in by_rule.items():
        rate[key], power[key] = np.mean(rates, axis=0)
    assert all(value <= 0.06 for value in rate.values())
    for end in ("", ", n"):
        assert power["e-LOND"] + 0.05 < power[f"e-LORD{end}"] < power[f"e-SAFFRON{end}"]
        assert power[f"e-LORD{end}"] <= power[f"SCORE{end}"]
    assert power["e-LORD, n"] > power["e-LORD"] + 0.1  # the number of tests is worth knowing
    assert power["SAFFRON"] > power["LORD++"] > power["SCORE, n"]  # given independent p-values


@pytest.mark.parametrize("rule", [ELORD(0.1, n_tests=20), ESAFFRON(0.1, n_tests=20), SCORE(0.1, n_tests=1)])
def test_tests_beyond_the_expected_number_still_have_a_level(rule, rng):
    rule = clone(rule).start()
    log_p = np.log(rng.random(20_000))
    levels = rule.levels(log_p)
    assert np.isfinite(levels).all()
    # polynomially: ten times as many tests divide the level of an e-value by at most 10^6.1
    assert levels[-1] > levels[1999] - 6.1 * np.log(10.0) / 0.9
    rule.skip(log_p)
    rule.update(True, -400.0)
    assert 0.0 <= rule.wealth_ <= 0.1


@pytest.mark.parametrize("kappa", [0.1, 0.5])
def test_closed_e_lond_equals_the_closure_over_all_sets(kappa, rng):
    n_rejected = 0
    for _ in range(8):
        p = np.where(rng.random(10) < 0.5, 10.0 ** -rng.uniform(2, 12, size=10), rng.random(10))
        levels, rejected = twin.closed_e_lond(p.tolist(), 0.2, kappa)
        rule, found = ClosedELOND(0.2, kappa).start(), []
        for i in range(10):
            found.append(np.exp(rule.level()))
            rule.update(rejected[i], np.log(p[i]))
        np.testing.assert_allclose(found, np.minimum(levels, kappa ** (1 / (1 - kappa))), rtol=1e-9)
        n_rejected += sum(rejected)
    assert n_rejected > 10


@pytest.mark.parametrize("exact", [2000.0, 50.0])
def test_closed_e_lond_rejects_all_that_e_lond_rejects_in_any_batching(exact, rng, monkeypatch):
    monkeypatch.setattr(lord, "_EXACT", exact)
    more = 0
    for share in (0.0, 0.1, 0.5, 0.9):
        log_p = scipy.stats.norm.logsf(rng.normal(size=300) + 4.5 * (rng.random(300) < share))
        by_elond, rule = ELOND(0.1).start().decide(log_p), ClosedELOND(0.1).start()
        rejected = rule.decide(log_p)
        assert rejected[by_elond].all()
        more += np.count_nonzero(rejected & ~by_elond)
        one = ClosedELOND(0.1).start()
        in_parts = np.concatenate([one.decide(part) for part in np.split(log_p, [1, 2, 60, 61])])
        assert in_parts.tolist() == rejected.tolist()
        assert one.wealth_ == pytest.approx(rule.wealth_, rel=1e-12)
        assert one.level() == pytest.approx(rule.level(), rel=1e-12)
        assert 0.0 < rule.wealth_ <= 0.1 * max(rejected.sum(), 1)
    assert more > 20


@pytest.mark.slow
@pytest.mark.parametrize("n_true", [0, 3, 20])
def test_closed_e_lond_bounds_the_largest_false_discovery_proportion_for_the_worst_e_values(n_true):
    """Each null e-value is the largest that still rejects, 1/a_t with probability a_t: nothing is lost to caution."""
    rng, kappa, largest = np.random.default_rng(2), 0.1, []
    for _ in range(500):
        rule, false, n_rejected, worst = ClosedELOND(0.2, kappa).start(), 0, 0, 0.0
        for t in range(60 + n_true):
            level = rule.level()
            hit = t < n_true or rng.random() < np.exp((1.0 - kappa) * level - np.log(kappa))
            log_p = (-60.0 if t < n_true else level) if hit else np.inf
            rule.update(hit, log_p)
            false, n_rejected = false + (hit and t >= n_true), n_rejected + hit
            worst = max(worst, false / max(n_rejected, 1))
        largest.append(worst)
    assert np.mean(largest) <= 0.2 + 3.0 * np.std(largest) / np.sqrt(500)
    assert np.mean(largest) > (0.1 if n_true == 0 else 0.02)


def test_closed_e_lond_stores_few_of_many_tests(rng):
    rule = ClosedELOND(0.1).start()
    rule.decide(np.log(rng.random(100_000)))
    assert len(rule._e) < 4000


WEIGHTED = [name for name, rule in RULES.items() if rule.weighted]


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_one_change_nothing_and_any_batching_gives_the_same(name, rng):
    log_p = np.log(np.where(rng.random(200) < 0.1, 1e-8, rng.random(200)))
    weight, plain = rng.choice([0.2, 1.0, 7.5], size=200), make_rule(name, 0.2).start()
    ones = make_rule(name, 0.2).start()
    assert ones.decide(log_p, np.ones(200)).tolist() == plain.decide(log_p).tolist()
    assert ones.level(1.0) == pytest.approx(plain.level(), rel=1e-9)
    assert ones.wealth_ == pytest.approx(plain.wealth_, rel=1e-9)
    whole, one = make_rule(name, 0.2).start(), make_rule(name, 0.2).start()
    rejected = whole.decide(log_p, weight)
    for p, w, hit in zip(log_p, weight, rejected, strict=True):
        assert (p <= one.level(w)) == hit
        one.update(bool(hit), p, w)
    assert one.level(1.0) == pytest.approx(whole.level(1.0), rel=1e-9)
    assert one.wealth_ == pytest.approx(whole.wealth_, rel=1e-9)


@pytest.mark.parametrize("name", ["alpha-spending", "lond", "e-lond", "e-lord", "lord++", "saffron", "addis"])
def test_a_test_of_weight_3_has_the_level_of_three_tests_in_a_row(name):
    rule, three = make_rule(name, 0.1).start(), make_rule(name, 0.1).start()
    log_p = np.log(np.full(3, 0.45 if name == "addis" else 0.9))
    for one in (rule, three):  # a rejection, and some tests after it
        one.update(True, -60.0, 1.0)
        for _ in range(5):
            one.update(False, log_p[0], 1.0)
    power = 1.0 - getattr(rule, "kappa", 0.0)  # levels of e-values add up, not those of p-values
    levels = np.exp(power * np.array(rule.levels(log_p, np.ones(3))))
    assert np.exp(power * three.level(3.0)) == pytest.approx(levels.sum(), rel=1e-9)
    three.update(False, log_p[0], 3.0)
    rule.skip(log_p, np.ones(3))
    assert three.level(1.0) == pytest.approx(rule.level(1.0), rel=1e-9)


@pytest.mark.parametrize("name", WEIGHTED)
def test_no_weights_spend_more_than_the_budget(name, rng):
    for weight in (np.full(3000, 30.0), np.full(3000, 0.01), rng.choice([0.001, 1000.0], size=3000)):
        rule = make_rule(name, 0.1).start()
        log_p = np.log(np.full(3000, 0.45 if name == "addis" else 0.9))
        wealths = rule.wealths(log_p, weight)
        assert wealths[-1] > 0.0
        assert (np.diff(wealths) < 1e-15).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_keep_the_false_discovery_rate_and_good_ones_gain_power(name, rng):
    """A fifth of 300 effects is true. Good weights favour these by 3 to 1/2, wrong ones the others."""
    shares, power = {}, {}
    for _ in range(100):
        true = rng.random(300) < 0.2
        log_p = scipy.stats.norm.logsf(rng.normal(size=300) + 3 * true)
        for kind, weight in (
            ("none", None), ("good", np.where(true, 3.0, 0.5)), ("bad", rng.choice([3.0, 0.5], p=[0.2, 0.8], size=300)),
        ):  # fmt: skip
            rejected = make_rule(name, 0.1).start().decide(log_p, weight)
            shares.setdefault(kind, []).append((rejected & ~true).sum() / max(rejected.sum(), 1))
            power.setdefault(kind, []).append(rejected[true].mean())
    for kind, one in shares.items():
        assert np.mean(one) <= 0.1 + 3 * np.std(one) / 10, kind
    means = {kind: np.mean(one) for kind, one in power.items()}
    assert means["good"] > means["none"] + 0.01
    assert means["bad"] > 0.7 * means["none"]
