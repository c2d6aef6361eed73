"""Parts of Auto merge: exact moments, rankings by the rules of their selectors, and the losses of both."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Perceptron

import tamis
from tamis import Auto
from tests.twins.moments import ClassMomentsTwin

pytestmark = pytest.mark.slow  # races of selectors


def _rows(n=8000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30))
    return X, X[:, 4] + X[:, 11] + 0.5 * rng.normal(size=n) > 0


def _parts(X, y, n_rows=2000, **options):
    return [Auto(**options).fit(X[i : i + n_rows], y[i : i + n_rows]) for i in range(0, len(y), n_rows)]


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
@pytest.mark.parametrize("n_rows", [1040, 3000])
def test_a_short_part_is_learned_as_in_one_pass(learner, n_rows):
    X, y = _rows(n_rows + 450)
    one = Auto(learner=learner).fit(X[:n_rows], y[:n_rows])
    other = Auto(learner=learner).fit(X[n_rows:], y[n_rows:])
    whole = tamis.dumps(Auto(learner=learner).fit(X, y))
    before = tamis.dumps(other)
    assert tamis.dumps(tamis.loads(tamis.dumps(one)).merge(other)) == whole
    assert tamis.dumps(other) == before
    assert tamis.dumps(other.merge(one, when="before")) == whole


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
def test_merged_parts_select_what_one_pass_selects(learner):
    X, y = _rows()
    parts = _parts(X, y, learner=learner)
    before = [tamis.dumps(part) for part in parts]
    merged = tamis.merge_tree(parts)
    assert [tamis.dumps(part) for part in parts] == before
    assert merged.get_support(indices=True).tolist() == [4, 11]
    assert merged.n_seen_ == 8000
    later = tamis.loads(tamis.dumps(merged)).partial_fit(X[:1000], y[:1000])
    assert later.get_support()[[4, 11]].all()
    assert later.get_support().sum() <= 3  # a third one is a near tie with forests
    assert later.n_seen_ == later.comparison_["n_seen"][-1] == 9000


def test_moments_are_those_of_all_rows():
    X, y = _rows(4000)
    merged = tamis.merge_tree(_parts(X[:, :12], y, 1000))
    fading = (1.0 - 1.0 / 300.0) ** np.arange(3999, -1, -1)
    for moments, weight in ((merged._old, np.ones(4000)), (merged._young, fading)):
        of_all = ClassMomentsTwin(2)
        of_all.update(X[:, :12], y.astype(int), weight)
        values = np.stack(
            [np.broadcast_to(moments.weight()[:, None], (2, 12)), moments.mean(), moments.variance()], 2
        )
        np.testing.assert_allclose(values, of_all.table(), rtol=1e-9, atol=1e-12)


def test_losses_are_those_of_the_last_tested_rows_of_both():
    X, y = _rows(2400)
    early, late = _parts(X, y, 1200)
    merged = tamis.loads(tamis.dumps(early)).merge(late)
    n = len(late._paired)
    np.testing.assert_array_equal(merged._paired.losses[-n:], late._paired.losses)
    np.testing.assert_array_equal(
        merged._paired.losses[:-n], early._paired.losses[-len(merged._paired) + n :]
    )
    np.testing.assert_allclose(merged._learners.W, (early._learners.W + late._learners.W) / 2, rtol=1e-12)
    assert merged.comparison_["n_seen"].tolist() == [
        *early.comparison_["n_seen"],
        *(1200 + late.comparison_["n_seen"]),
    ]
    rows = [switch["row"] for switch in merged.switches_]
    assert rows == sorted(rows)


def test_after_a_restart_in_the_later_part_the_earlier_one_does_not_count():
    X, y = _rows(6000)
    y[3000:] = X[3000:, 20] + X[3000:, 25] > 0
    early, late = Auto(learner="naive-bayes").fit(X[:2000], y[:2000]), Auto(learner="naive-bayes")
    late.partial_fit(X[2000:], y[2000:])
    assert late.restarts_
    merged = early.merge(late)
    np.testing.assert_array_equal(merged._old.mean(), late._old.mean())
    assert merged.restarts_ == [2000 + row for row in late.restarts_]
    assert merged.get_support(indices=True).tolist() == [20, 25]


def test_parts_of_one_origin_have_its_classes():
    X, y = _rows(6000)
    labels = np.where(y, "a", "b")
    first = Auto().partial_fit(X[:200], labels[:200], classes=["b", "a"])
    parts = [
        first.clone_unfitted().partial_fit(X[i : i + 2000], labels[i : i + 2000]) for i in (0, 2000, 4000)
    ]
    merged = tamis.merge_tree([first.clone_unfitted(), *parts, first.clone_unfitted()])
    assert (merged.n_seen_, merged.classes_.tolist()) == (6000, ["b", "a"])
    assert merged.get_support(indices=True).tolist() == [4, 11]


def test_a_class_that_one_part_lacks():
    X, y = _rows(4000)
    labels = y.astype(int)
    labels[3000:] += X[3000:, 2] > 1.5
    parts = [Auto().fit(X[i : i + 2000], labels[i : i + 2000]) for i in (0, 2000)]
    for merged in (
        tamis.merge_tree(parts),
        tamis.loads(tamis.dumps(parts[0])).merge(parts[1]).partial_fit(X[:300], labels[:300]),
        tamis.loads(tamis.dumps(parts[1])).merge(parts[0]).partial_fit(X[:300], labels[:300]),
    ):
        assert merged.classes_.tolist() == [0, 1, 2]
        assert set(merged.get_support(indices=True)) >= {4, 11}


def test_regression_and_sparse_rows():
    X, _ = _rows(6000)
    target = X[:, 4] + X[:, 11] + 0.5 * np.random.default_rng(1).normal(size=6000)
    assert tamis.merge_tree(_parts(X, target, task="regression")).get_support(indices=True).tolist() == [
        4,
        11,
    ]
    S = sp.random(6000, 3000, 0.01, "csr", random_state=0)
    S = S.tolil()
    S[:, [4, 11]] = (X[:, [4, 11]] > 0.5).astype(float)
    merged = tamis.merge_tree(_parts(sp.csr_matrix(S), target > 0, 3000))
    assert merged.n_seen_ == 6000
    assert set(merged.get_support(indices=True)) >= {4, 11}


def test_what_does_not_merge():
    X, y = _rows(1600)
    early, late = (slice(None, 800), slice(800, None))

    def fitted(rows, labels=y, **options):
        return Auto(**options).fit(X[rows], labels[rows])

    with pytest.raises(ValueError, match="The learner is of kind 'linear' here and 'trees' there"):
        fitted(early).merge(fitted(late, learner="trees"))
    with pytest.raises(ValueError, match=r"tolerance is 0\.01 here and 0\.1 there"):
        fitted(early).merge(fitted(late, tolerance=0.1))
    one, other = (
        Auto().partial_fit(X[rows], y[rows], classes=c) for rows, c in ((early, [0, 1]), (late, [1, 0]))
    )
    before = tamis.dumps(one)
    with pytest.raises(
        ValueError, match=r"The classes are in the order \[0, 1\] here and \[1, 0\] there: declare"
    ):
        one.merge(other)
    assert tamis.dumps(one) == before
    with pytest.raises(ValueError, match="Categories are encoded by the target of earlier rows"):
        fitted(early, categorical=[0]).merge(fitted(late, categorical=[0]))
    assert fitted(early, learner=Perceptron()).merge(fitted(late, learner=Perceptron())).n_seen_ == 1600
