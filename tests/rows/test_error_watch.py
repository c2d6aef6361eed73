"""ErrorWatch against a loop over plain numbers, and how rarely it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.rows.forward.error_watch import ErrorWatch


def slow(guesses, codes, n_classes, alpha, block):
    """The row at which the evidence is first beyond the bar, and since when it has risen; None."""
    rows, wrong, guessed = ([0.0] * n_classes for _ in range(3))
    evidence, since, right_step, wrong_step = 0.0, 0, [0.0] * n_classes, [0.0] * n_classes
    for i, (guess, code) in enumerate(zip(guesses, codes, strict=True)):
        if i % block == 0:
            seen = [r > 0 for r in rows]
            total = max(sum(guessed) + 2.0 * sum(seen), 1.0)
            blindly = 1.0 - 1.0 / max(sum(seen), 2)
            for c in range(n_classes):
                p = (wrong[c] + 10.0 * blindly) / (rows[c] + 10.0)
                chance = 1.0 - (guessed[c] + 2.0 * seen[c]) / total
                p, later = min(p, 0.98), (min(p, 0.98) + min(max(p, chance), 0.98)) / 2 + 0.01
                right_step[c], wrong_step[c] = np.log((1 - later) / (1 - p)), np.log(later / p)
                if not seen[c]:
                    right_step[c] = wrong_step[c] = 0.0
        rows, wrong, guessed = ([0.999 * v for v in some] for some in (rows, wrong, guessed))
        rows[code] += 1.0
        wrong[code] += guess != code
        guessed[guess] += 1.0
        evidence = max(0.0, evidence + (wrong_step if guess != code else right_step)[code])
        since = since + 1 if evidence > 0 else 0
        if evidence > -np.log(alpha):
            return i, since
    return None


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_loop(seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, 2000, p=[0.6, 0.3, 0.1])
    guesses = np.where(
        rng.random(2000) < np.where(np.arange(2000) < 1500, 0.2, 0.6), rng.integers(0, 3, 2000), codes
    )
    expected = slow(guesses.tolist(), codes.tolist(), 3, 1e-4, 50)
    watch, at = ErrorWatch(1e-4), None
    watch.grow(3)
    for start in range(0, 2000, 50):
        watch.expect()
        n = watch.update(guesses[start : start + 50], codes[start : start + 50])
        if watch.is_sufficient:
            at = start + n - 1
            break
    assert (at, watch.n_rows) == expected


def test_a_class_that_comes_late_has_steps():
    watch = ErrorWatch(1e-4)
    watch.grow(2)
    watch.update(np.array([0, 1, 1]), np.array([0, 0, 1]))
    watch.grow(3)
    watch.expect()
    assert watch.update(np.full(200, 2), np.full(200, 2)) == 200
    assert np.isfinite(watch.steps).all()


def test_false_alarms_are_as_rare_as_it_says():
    rng, rows = np.random.default_rng(0), 0
    alarms = 0
    for _ in range(40):
        watch = ErrorWatch(1e-3)
        watch.grow(2)
        codes = rng.integers(0, 2, 5000)
        guesses = codes ^ (rng.random(5000) < 0.3)
        for start in range(0, 5000, 100):
            watch.expect()
            part = slice(start, start + 100)
            rows += watch.update(guesses[part], codes[part])
            if watch.is_sufficient:
                alarms += 1
                watch.reset()
    assert alarms <= rows * 1e-3


def test_the_guesses_of_a_young_classifier_are_no_evidence():
    watch, codes = ErrorWatch(1e-4), np.arange(400) % 2
    watch.grow(2)
    watch.count(codes, codes)
    watch.expect()
    watch.count(1 - codes, codes)
    assert (watch.is_sufficient, watch.n_rows) == (False, 0)
    watch.update(1 - codes, codes)
    assert watch.is_sufficient
