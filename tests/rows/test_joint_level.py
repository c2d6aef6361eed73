"""JointScreening with a level: its evidence is the definition's, and few of what it keeps is false at any look."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Perceptron
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import JointScreening, TScore, prequential
from tamis.dependence.e_values import e_bh, restart_level
from tamis.learners import WeightedKNN, WeightedNaiveBayes
from tamis.rows.joint.pair_counts import cut
from tamis.rows.joint.pair_evidence import PairEvidence
from tamis.streams import as_stream
from tests.twins import evidence as alone_twin
from tests.twins import pair_evidence as twin


def xor(n, at=(3, 8), d=12, seed=0, flip=0.1):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, ((X[:, at[0]] > 0.5) ^ (X[:, at[1]] > 0.5) ^ (rng.random(n) < flip)).astype(np.int64)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pair_evidence_equals_its_definition_in_any_batching(n_classes):
    X, y = xor(400, at=(0, 2), d=4)
    X[:, 3] = np.random.default_rng(1).integers(0, 2, 400)
    if n_classes == 3:
        y[::5] = 2
    first, rows, labels = X[:80], X[80:], y[80:]
    found = PairEvidence(first, np.arange(4), n_classes)
    found.update(rows, labels)
    bits = (rows > cut(first, 2)[:, 0]).T
    cells = (rows[:, :, None] > cut(first, 5)).sum(axis=2)
    alone = [alone_twin.log_e(alone_twin.of_bins(cells[:, j], 5), labels, n_classes) for j in range(4)]
    np.testing.assert_allclose(found.log_e(), twin.log_e(alone, bits, labels, n_classes), atol=1e-9)
    parts = PairEvidence(first, np.arange(4), n_classes)
    for start in range(0, 320, 7):
        parts.update(rows[start : start + 7], labels[start : start + 7])
    np.testing.assert_array_equal(parts.log_e(), found.log_e())
    before = np.r_[np.full(40, -1), labels[:280]]  # a cycle of 40 rows
    for start in range(0, 320, 7):
        part = slice(start, start + 7)
        if start == 0:
            cyclic = PairEvidence(first, np.arange(4), n_classes)
        cyclic.update(rows[part], labels[part], before[part])
    np.testing.assert_array_equal(cyclic.log_e(), found.log_e())
    lagged = [
        alone_twin.log_e(alone_twin.of_bins(cells[:, j], 5), labels, n_classes, before=before)
        for j in range(4)
    ]
    of_pairs, of_lagged = (
        [2.0 * np.exp(one) for one in twin.log_e(np.full(4, -np.inf), bits, labels, n_classes, of)]
        for of in (None, before)
    )
    expected = np.exp(np.minimum(alone, lagged)) / 2 + np.minimum(of_pairs, of_lagged) / 2
    np.testing.assert_allclose(cyclic.log_e(cyclic=True), np.log(expected), atol=1e-9)
    few = PairEvidence(first, np.array([0, 2]), n_classes)  # the others are looked at alone
    few.update(rows, labels)
    np.testing.assert_allclose(few.log_e()[[1, 3]], [alone[1], alone[3]], atol=1e-9)


@pytest.mark.slow
def test_the_mean_e_value_of_what_tells_nothing_is_one_at_most():
    """Also beside a relevant feature and a copy of it, stopped at 10 or at the end."""
    rng = np.random.default_rng(0)
    stopped = []
    for _ in range(25):
        X, y = rng.normal(size=(640, 40)), rng.integers(0, 2, 640)
        X[:, 1] = y + 0.5 * rng.normal(size=640)
        X[:, 2] = X[:, 1]
        evidence, value = PairEvidence(X[:64], np.arange(40), 2), np.ones(40)
        for start in range(64, 640, 64):
            evidence.update(X[start : start + 64], y[start : start + 64])
            value = np.where(value >= 10, value, np.exp(evidence.log_e()))
        assert value[1] > 10
        stopped.append(np.delete(value, [1, 2]))
    assert np.mean(stopped) < 1.1
    assert np.mean(np.array(stopped) >= 10) < 0.05


@pytest.mark.slow
def test_with_a_level_the_kept_columns_are_those_of_the_tests_with_evidence(tmp_path):
    X, y = xor(3000)
    model, plain = JointScreening(level=0.05), JointScreening()
    for start in range(0, 3000, 50):
        rows = X[start : start + 50], y[start : start + 50]
        model.partial_fit(*rows, classes=[0, 1])
        plain.partial_fit(*rows, classes=[0, 1])
        if start == 1000:
            model = tamis.load(tamis.save(model, tmp_path / "model.tamis"))
        assert set(model.selected_) <= set(plain.selected_)
        assert model.get_support(indices=True).tolist() == sorted(model.selected_)
    assert sorted(model.selected_) == [3, 8]
    assert (model.evalues_[[3, 8]] > 1e6).all()
    assert np.delete(model.evalues_, [3, 8]).max() < 100
    whole = JointScreening(level=0.05).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(whole.evalues_, model.evalues_)
    assert whole.selected_ == model.selected_
    log_e = np.log(model.evalues_)
    assert e_bh(log_e, restart_level(0.05, 1)).sum() == 2


@pytest.mark.slow
def test_on_noise_and_after_drifts_next_to_nothing_false_is_kept():
    false = {None: 0, 0.05: 0}
    for level in false:
        for seed in range(25):
            X, y = xor(600, d=20, seed=seed, flip=0.5)
            model = JointScreening(level=level)
            for start in range(0, 600, 60):
                model.partial_fit(X[start : start + 60], y[start : start + 60], classes=[0, 1])
                if model.selected_:
                    false[level] += 1
                    break
    assert false[0.05] == 0 < false[None]
    (X, y), (Z, t) = xor(1500), xor(1500, at=(0, 5), seed=1)
    model = JointScreening(level=0.05).partial_fit(np.r_[X, Z], np.r_[y, t], classes=[0, 1])
    assert len(model.drifts_) == 1
    assert sorted(model.selected_) == [0, 5]
    since = model.drifts_[0] + 1 - 1500
    fresh = PairEvidence(X[:2], np.arange(12), 2)
    fresh._edges, fresh._fine = model._pair_evidence._edges, model._pair_evidence._fine
    fresh.update(Z[since:], t[since:])  # no row that the drift was found by is evidence
    np.testing.assert_allclose(np.log(model.evalues_), fresh.log_e(), atol=1e-12)
    assert math.isclose(restart_level(0.05, model._n_beginnings), 0.05 * 6 / (2 * math.pi) ** 2)


@pytest.mark.parametrize("learner", [GaussianNB(), WeightedNaiveBayes(), WeightedKNN(), Perceptron()])
@pytest.mark.slow
def test_a_run_that_selects_nothing_predicts_the_commonest_class(learner):
    X, y = xor(600, flip=0.5)
    y = (np.random.default_rng(1).random(600) < 0.3).astype(np.int64)
    for selector in (JointScreening(level=0.01), TScore(None, level=0.01)):
        result = prequential(as_stream((X, y)), selector, clone(learner), batch_size=50)
        assert not selector.get_support().any()
        assert abs(result.summary()["accuracy"] - np.mean(y == 0)) < (
            0.2 if isinstance(learner, Perceptron) else 0.03
        )


def test_what_a_level_needs_is_said():
    X, y = xor(200)
    with pytest.raises(ValueError, match="sample_weight contains 2, but with level a row counts once"):
        JointScreening(level=0.05).fit(X, y, sample_weight=np.full(200, 2.0))
    with pytest.raises(AttributeError, match="evalues_ needs level"):
        _ = JointScreening().fit(X, y).evalues_
    young = JointScreening(level=0.05).fit(X[:40], y[:40])
    assert young.evalues_.tolist() == [1.0] * 12
    assert not young.get_support().any()
    a_third = JointScreening(level=0.05).partial_fit(X, y).partial_fit(X[:1], [7])
    assert a_third._n_beginnings == 2


def test_columns_that_come_and_go_begin_the_evidence_anew():
    X, y = xor(2400, at=(0, 1), d=6)
    X -= 0.5  # columns that come late are told from the 0 that they were
    early = sp.csr_matrix(X[:1000, 2:])
    model = JointScreening(level=0.05).partial_fit(early, y[:1000], classes=[0, 1])
    assert not model.selected_
    order = [2, 3, 4, 5, 0, 1]  # the two that tell come late
    model.widen(6).partial_fit(sp.csr_matrix(X[1000:, order]), y[1000:])
    assert sorted(model.selected_) == [4, 5]
    assert model._n_beginnings >= 2
    model.forget_columns([4])
    assert 4 not in model.selected_
    assert model.evalues_[4] == 1.0
