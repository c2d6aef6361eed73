"""Auto: the comparison follows what predicts best, restarts after a drift, and keeps the contract."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge, Perceptron, SGDRegressor
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import tamis
from tamis import RandomSubset, load_stream, prequential
from tamis._shapes import Shapes
from tamis.errors import DataError
from tamis.rows import Auto, ForwardPartialCorrelation
from tamis.rows.auto.auto import kind_of_learner, knee
from tamis.rows.auto.column_sets import (
    LinearRegressions,
    LogisticRegressions,
    auc_loss,
    bayes_scores,
    brier_loss,
    logistic_shares,
    predictions,
    softmax_shares,
)
from tamis.rows.auto.forests import Forests, Sample
from tamis.rows.auto.history import History, fades_over
from tamis.rows.waiting_block import concatenate
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.paired_losses import PairedLosses, preferred
from tests.twins import auto as twin

pytestmark = pytest.mark.slow  # races of selectors


def two_worlds(n: int = 3000, p: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """The first two columns decide, then the last two."""
    X = np.random.default_rng(0).normal(size=(2 * n, p))
    y = np.where(np.arange(2 * n) < n, X[:, 0] + X[:, 1] > 0, X[:, -2] + X[:, -1] > 0).astype(int)
    return X, y


def learned(selector: Auto, X: np.ndarray, y: np.ndarray, size: int = 100) -> Auto:
    for start in range(0, len(y), size):
        selector.partial_fit(X[start : start + size], y[start : start + size])
    return selector


@pytest.fixture(scope="module")
def after_drift() -> Auto:
    return learned(Auto(learner="naive-bayes"), *two_worlds())


def test_naive_bayes_of_all_sets_is_that_of_each():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)) * [1, 10, 0.1, 1, 1, 1] + 5, rng.integers(0, 3, 300)
    X[:, 0] += y
    moments = ClassMoments(6, 3)
    moments.update(X, y)
    masks = rng.random((8, 6)) < 0.5
    masks[:, 0] = True
    found = predictions(bayes_scores(X, moments, masks))
    for mask, labels in zip(masks, found, strict=True):
        twin = GaussianNB(var_smoothing=1e-12).fit(X[:, mask], y)
        assert (labels == twin.predict(X[:, mask])).mean() > 0.995


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logistic_regressions_of_all_sets_are_those_of_each(n_classes):
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(200, 5)), rng.integers(0, n_classes, 200)
    masks = rng.random((4, 5)) < 0.6
    for rows in (Z, sp.csr_matrix(Z)):
        many = LogisticRegressions(4, n_classes, 5)
        for start in range(0, 200, 50):
            many.learn(rows[start : start + 50], y[start : start + 50], np.ones(50), masks)
        for a, mask in enumerate(masks):
            margins = []
            for k in range(1 if n_classes == 2 else n_classes):
                w, b = twin.logistic_regression(Z, y == k + (n_classes == 2), mask)
                np.testing.assert_allclose(many.W[a, k], w, atol=1e-12)
                np.testing.assert_allclose(many.b[a, k], b, atol=1e-12)
                margins.append(Z @ w + b)
            expected = margins[0] > 0 if n_classes == 2 else np.argmax(margins, axis=0)
            assert np.array_equal(predictions(many.scores(rows, masks))[a], expected)


def test_a_logistic_regression_survives_margins_of_any_size():
    Z, y = 1e3 * np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 2
    many = LogisticRegressions(1, 2, 3)
    many.learn(Z, y, np.full(400, 1e6), np.ones((1, 3), bool))
    assert np.isfinite(many.W).all()


def many_classes(n: int = 900, p: int = 400, n_classes: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Columns that mix twelve factors, whose means are those of a class; fewer rows than columns for long."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    factors = 2.0 * rng.normal(size=(n_classes, 12))[y] + rng.normal(size=(n, 12))
    loading = rng.normal(size=(12, p)) * (rng.random((12, p)) < 0.3)
    return factors @ loading + rng.normal(size=(n, p)), y


def test_fewer_rows_than_columns_are_not_given_every_column():
    """A Perceptron of every column fits noise there: a random tenth had .78, the comparison .65, all columns .40."""
    X, y = many_classes()

    def accuracy(selector):
        result = prequential((X, y), selector, Perceptron(random_state=0), baselines="none", auc=False)
        return result.summary()["accuracy"]

    by_chance = np.mean([accuracy(RandomSubset(0.1, random_state=seed)) for seed in range(5)])
    assert accuracy(Auto()) > by_chance > accuracy(None)


def test_each_of_several_outputs_learns_in_an_order_of_its_own():
    rng = np.random.default_rng(0)
    Z, y, masks = rng.normal(size=(50, 5)), rng.integers(0, 3, 50), np.ones((1, 5), bool)
    orders = np.random.default_rng(7).permuted(np.tile(np.arange(50), (3, 1)), axis=1)
    for rows in (Z, sp.csr_matrix(Z)):
        many = LogisticRegressions(1, 3, 5)
        many.learn(rows, y, np.ones(50), masks, np.random.default_rng(7))
        for k, order in enumerate(orders):
            w, _ = twin.logistic_regression(Z[order], y[order] == k, masks[0])
            np.testing.assert_allclose(many.W[0, k], w, atol=1e-12)


def test_it_begins_anew_after_a_drift_and_finds_the_new_columns(after_drift):
    assert len(after_drift.restarts_) >= 1
    assert 3000 < after_drift.restarts_[0] <= 3500
    assert all(3000 < row < 4000 for row in after_drift.restarts_)
    assert after_drift.get_support()[[28, 29]].all()
    assert after_drift.errors_[after_drift._candidate] < 0.1


def test_it_says_which_candidate_was_followed_when_and_why(after_drift):
    auto = after_drift.comparison_
    assert auto["errors"].shape == (len(auto["n_seen"]), len(after_drift.candidates_))
    assert auto["n_seen"][-1] == 6000
    at = after_drift.candidates_[0]
    for switch in after_drift.switches_:
        assert switch["from"] == at
        at = switch["to"]
        assert switch["why"] in ("better", "smaller", "drift")
    assert at == after_drift.candidate_
    assert after_drift.errors_.shape == after_drift.excess_losses_.shape == (len(after_drift.candidates_),)
    assert after_drift.excess_losses_.min() == 0.0


def test_the_history_of_the_comparison_is_kept_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("tamis.rows.auto.history._MOST", 8)
    selector = learned(Auto(), *two_worlds(1000, 5))
    auto = selector.comparison_
    assert len(auto["n_seen"]) <= 8
    assert auto["n_seen"][-1] == 2000


def test_what_is_kept_of_the_comparison_is_the_mean_of_its_blocks(monkeypatch):
    monkeypatch.setattr("tamis.rows.auto.history._MOST", 4)
    errors = np.random.default_rng(0).random((11, 3))
    history = History(3)
    for block, rates in enumerate(errors):
        history = history.with_block(10 * block + 10, block % 3, rates, 10)
    records = history.records()
    assert records["n_seen"].tolist() == [40, 80, 110]
    assert records["followed"].tolist() == [0, 1, 1]
    np.testing.assert_allclose(
        records["errors"], [errors[:4].mean(0), errors[4:8].mean(0), errors[8:].mean(0)]
    )


def test_the_look_at_the_shapes_finds_what_it_found_before(monkeypatch):
    """A record of every block had all shapes compared again, for each block and twice its time."""
    X, y = two_worlds()
    selector = learned(Auto(), X[:2000], y[:2000])
    compared = []
    monkeypatch.setattr(Shapes, "_compare", lambda shapes, model: compared.append(model))
    for start in range(2000, 3000, 100):
        selector.partial_fit(X[start : start + 100], y[start : start + 100])
        selector.get_support()
    assert not [model for model in compared if model is selector]


def test_hopeless_selectors_rest_and_wake_after_a_drift(monkeypatch):
    """Labels that the size of two values decides are found by counts of cells alone; then the other two decide."""
    monkeypatch.setattr("tamis.rows.auto.auto._TRIAL", 500)
    X = np.random.default_rng(0).normal(size=(6000, 30))
    size = np.abs(X)
    y = np.where(np.arange(6000) < 3000, size[:, 0] + size[:, 1], size[:, 28] + size[:, 29]) > 1.5
    selector = learned(Auto(learner="naive-bayes"), X[:3000], y[:3000])
    assert selector.suspended_
    assert "joint" not in selector.suspended_
    resting = list(selector.suspended_)
    for start in range(3000, 4500, 100):
        selector.partial_fit(X[start : start + 100], y[start : start + 100])
    assert selector.drifts_ or selector.restarts_
    assert all(selector._resumed_at[name] > 3000 for name in resting)
    for name in resting:  # restarted, from the last rows
        assert selector._rankers[name].n_seen_ <= 600 + 4500 - selector._resumed_at[name]


def test_a_candidate_of_forward_selection_holds_still_as_the_selector_alone_does():
    """The smaller ones did not: the largest candidate alone was favoured for what it held."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(2000, 10))
    X = factors @ rng.normal(size=(10, 60)) + rng.normal(size=(2000, 60))
    y = (factors[:, :3].sum(axis=1) + rng.normal(size=2000) > 0).astype(int)
    auto, sizes = Auto(), (3, 6, 12, 24)
    alone = [ForwardPartialCorrelation(size) for size in sizes]
    sets: list[list[np.ndarray]] = [[] for _ in range(8)]
    for start in range(0, 2000, 100):
        part = slice(start, start + 100)
        auto.partial_fit(X[part], y[part], [0, 1])
        for at, size in enumerate(sizes):
            sets[at].append(auto._masks[auto.candidates_.index(f"forward {size}")])
            sets[at + 4].append(alone[at].partial_fit(X[part], y[part], [0, 1]).get_support())
    assert np.array_equal(sets[0], sets[4])
    left = [sum(int((a & ~b).sum()) for a, b in pairwise(one)) for one in sets]
    assert sum(left[:4]) <= 1.5 * sum(left[4:]), left


def test_a_size_that_is_given_is_kept():
    X, y = two_worlds(500, 20)
    for size, n_kept in ((3, 3), (0.25, 5)):
        selector = learned(Auto(size), X, y)
        assert selector.get_support().sum() == n_kept
        assert not any(
            candidate in ("all", "joint") or "knee" in candidate for candidate in selector.candidates_
        )


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
def test_a_batch_is_its_rows_one_at_a_time(learner):
    X, y = two_worlds(330, 8)
    whole, parts = Auto(learner=learner).partial_fit(X, y, [0, 1]), Auto(learner=learner)
    for start in range(0, len(y), 13):
        parts.partial_fit(X[start : start + 13], y[start : start + 13], [0, 1])
    assert whole.switches_ == parts.switches_
    assert np.array_equal(whole.errors_, parts.errors_)
    assert np.array_equal(whole.scores_, parts.scores_)


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
def test_a_saved_comparison_goes_on_where_it_was(tmp_path, learner):
    X, y = two_worlds(700, 12)
    once = learned(Auto(learner=learner), X, y)
    half = learned(Auto(learner=learner), X[:850], y[:850], 50)
    tamis.save(half, tmp_path / "auto.tamis")
    again = learned(tamis.load(tmp_path / "auto.tamis"), X[850:], y[850:])
    assert again.switches_ == once.switches_
    assert np.array_equal(again.errors_, once.errors_)
    assert np.array_equal(again.get_support(), once.get_support())


@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_comparison_saved_in_its_first_rows_goes_on(n_rows, rng):
    """Then no selector has learned, though they know of the sizes."""
    X = rng.normal(size=(200, 6))
    y = (X[:, 0] > 0).astype(int)
    auto = Auto().partial_fit(X[:n_rows], np.zeros(n_rows, int))
    loaded = tamis.loads(tamis.dumps(auto))
    for one in (auto, loaded):
        one.partial_fit(X[n_rows:], y[n_rows:])
    np.testing.assert_array_equal(loaded.scores_, auto.scores_)


def test_wide_sparse_rows_are_compared_without_being_made_dense():
    rng = np.random.default_rng(0)
    X = sp.random(1500, 5000, 0.004, format="csr", random_state=0)
    y = rng.integers(0, 2, 1500)
    told = sp.csr_matrix((np.ones(y.sum()), (np.flatnonzero(y), np.full(y.sum(), 4321))), shape=X.shape)
    selector = learned(Auto(), (X + told).tocsr(), y)
    assert selector.get_support()[4321]
    assert selector.candidate_ != "all"
    assert selector.scores_[4321] > 0.99


def test_refused_rows_change_nothing():
    X, y = two_worlds(200, 6)
    selector = learned(Auto(), X, y)
    before = selector.errors_, selector.n_seen_, selector._pending.n_rows
    for bad in (np.where(X > 3, -np.inf, X), np.where(X > 2.5, np.inf, X), np.where(X > 2.5, 1e200, X)):
        with pytest.raises(DataError):
            selector.partial_fit(bad, y)
    assert np.array_equal(selector.errors_, before[0])
    assert (selector.n_seen_, selector._pending.n_rows) == before[1:]


def test_parameters_out_of_range_are_refused():
    X, y = two_worlds(50, 6)
    for wrong, name in (
        (Auto(learner="forest"), "learner"),
        (Auto(0), "n_features_to_select"),
        (Auto(7), "n_features"),
    ):
        with pytest.raises(ValueError, match=name):
            wrong.partial_fit(X, y)


def test_linear_learners_begin_with_every_column():
    """So does the learner of a run, which is given all columns until a selection is known: a newcomer has a weight."""
    X, y = load_stream("SEA", seed=1, n_rows=1000, n_drifts=1, n_irrelevant=48).take(1000)
    begun = Auto().partial_fit(X[:100], y[:100])
    assert (begun._learners.W != 0.0).all()


def test_the_first_rows_of_a_comparison_fade():
    """A learner errs more often in its first rows than it will; they would count for 2000 rows otherwise."""
    early, late = (History(1).with_block(100, 0, np.array([error]), 100) for error in (0.5, 0.1))
    for at in range(2, 11):
        early = early.with_block(100 * at, 0, np.array([0.1]), 100)
        late = late.with_block(100 * at, 0, np.array([0.1 if at < 10 else 0.5]), 100)
    first, last = (0.9 - one.summary(["a"], 10)["accuracy"]["a"][-1] for one in (early, late))
    assert first < 0.01  # all alike, either would be .04
    assert last > 0.06
    assert [fades_over(n) for n in (1, 1000, 4000, 5000)] == [1.0, 500.0, 2000.0, 2000.0]


def rare(n: int, share: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    """Two columns shift a little with a rare class, so that no learner that sees them makes it the likelier one."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 60))
    X[:, [7, 20]] += y[:, None]
    return X, y


def test_where_a_class_is_rare_the_error_of_a_candidate_is_one_minus_its_auc():
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.2
    for n_outputs in (1, 2):
        scores = rng.integers(0, 6, (80, 3, n_outputs)).astype(float)  # with ties
        margin = scores[:, :, 0] if n_outputs == 1 else scores[:, :, 1] - scores[:, :, 0]
        ill = auc_loss(scores, y)
        assert ill.shape == (3, y.sum())
        for a in range(3):
            assert 1.0 - ill[a].mean() == pytest.approx(roc_auc_score(y, margin[:, a]))
    X, y = rare(4000)
    for labels in (y, 1 - y):  # the rare class may be the first one
        auto = learned(Auto(learner="naive-bayes"), X[:3900], labels[:3900])
        assert auto.measure_ == "auc"
        scores = bayes_scores(X[3900:], auto._old, auto._masks)
        auc = [
            roc_auc_score(labels[3900:], scores[:, a, 1] - scores[:, a, 0])
            for a in range(len(auto.candidates_))
        ]
        auto.partial_fit(X[3900:], labels[3900:])
        assert 1.0 - auto.comparison_["errors"][-1] == pytest.approx(np.array(auc))
        assert auto.comparison_["n_tested"][-1] == y[3900:].sum()


def test_where_a_class_is_rare_the_columns_that_rank_it_are_found():
    X, y = rare(12_000)
    auto = learned(Auto(learner="naive-bayes"), X, y)
    assert auto.candidate_ != "all"
    assert set(auto.get_support(indices=True)) >= {7, 20}
    assert auto.get_support().sum() <= 6
    best = auto.comparison_summary()
    assert best["measure"] == "auc"
    assert 0.8 < best["accuracy"][auto.candidate_][-1] < 0.95


def test_what_candidates_are_judged_by_changes_with_the_classes_and_blocks_without_the_rare_one_tell_nothing():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9000, 8))
    y = (rng.random(9000) < np.repeat([0.5, 0.01, 0.7], 3000)).astype(int)
    auto = Auto()
    measures = [auto.partial_fit(X[at : at + 100], y[at : at + 100]).measure_ for at in range(0, 9000, 100)]
    assert measures[:30] == ["brier"] * 30  # half of them
    y[:3000] = rng.random(3000) < 0.03
    auto = Auto()
    measures = [auto.partial_fit(X[at : at + 100], y[at : at + 100]).measure_ for at in range(0, 9000, 100)]
    assert set(measures[3:60]) == {"auc"}
    assert measures[-1] == "brier"
    history = auto.comparison_
    silent = history["n_tested"] == 0
    assert silent.any()
    assert np.isfinite(history["errors"]).all()
    assert (auto.errors_ > 0.1).all()  # of the last measure alone: there most rows are of the other class


def test_kept_rows_of_both_kinds_are_joined():
    """A restart reads them; a dense block before a sparse one was not joined."""
    dense = np.ones((2, 3)), np.array([0, 1]), np.ones(2)
    sparse = sp.csr_matrix(np.eye(3)), np.array([1, 1, 0]), np.full(3, 2.0)
    for blocks in ((dense, sparse), (sparse, dense)):
        X, y, weight = concatenate(blocks)
        np.testing.assert_array_equal(
            X.toarray(), sp.vstack([sp.csr_matrix(rows) for rows, *_ in blocks]).toarray()
        )
        assert (y.tolist(), weight.tolist()) == (
            [label for _, labels, _ in blocks for label in labels],
            [w for *_, weights in blocks for w in weights],
        )


# -- the objective, and the anchors ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_brier_score_is_that_of_its_formula_and_one_for_the_proportions(n_classes):
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(50, 3, n_classes)), rng.integers(0, n_classes, 50)
    weight = rng.uniform(1, 9, n_classes)
    shares = softmax_shares(scores)
    assert shares.sum(axis=2) == pytest.approx(1.0)
    found = brier_loss(shares, y, weight)
    for a in range(3):
        expected = [twin.brier(shares[i, a].tolist(), y[i], weight.tolist()) for i in range(50)]
        assert found[a] == pytest.approx(expected)
    if n_classes == 2:
        assert brier_loss(shares[:, :, 1:], y, weight) == pytest.approx(found)
        assert logistic_shares(scores[:, :, 1:] - scores[:, :, :1]) == pytest.approx(shares[:, :, 1:])
    rows = np.repeat(np.arange(n_classes), 60)
    proportions = np.tile(np.full(n_classes, 1.0 / n_classes), (len(rows), 1, 1))
    assert brier_loss(proportions, rows, np.ones(n_classes)).mean() == pytest.approx(1.0)


def few_positives(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten weak signals of twenty columns; one row of six is positive, and no learner finds it likelier than not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5000, 20))
    odds = X[:, :10] @ np.full(10, 0.35) - 2.0
    return X, (rng.random(5000) < 1.0 / (1.0 + np.exp(-odds))).astype(int)


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
def test_where_the_majority_is_predicted_columns_that_rank_the_rows_are_kept(learner):
    """Error rates hid it: one column was kept, by each learner."""
    auto = learned(Auto(learner=learner), *few_positives())
    assert auto.measure_ == "brier"
    assert (auto.get_support(indices=True) < 10).sum() >= 7
    by_errors = learned(Auto(learner=learner, objective="accuracy"), *few_positives())
    assert by_errors.measure_ == "accuracy"
    assert by_errors.get_support().sum() < auto.get_support().sum()


def test_rows_are_ranked_where_the_user_asks_for_it():
    X, y = two_worlds(1000, 8)
    assert learned(Auto(objective="auc"), X, y).measure_ == "auc"
    assert learned(Auto(objective="auc"), X, y + (X[:, 5] > 1)).measure_ == "brier"  # three classes
    X, y = rare(2000)
    assert [learned(Auto(objective=one), X, y).measure_ for one in ("brier", "auto")] == ["brier", "auc"]
    with pytest.raises(ValueError, match="objective must be one of"):
        Auto(objective="gini").fit(X, y)


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
def test_runs_of_labels_discard_no_evidence(learner):
    """Frames of spoken vowels in their order: errors come in runs, and each was taken for a drift."""
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 5, 100), 40)
    voices = rng.normal(size=(5, 12))[y] + 1.2 * np.repeat(rng.normal(size=(100, 12)), 40, axis=0)
    X = np.hstack([voices + 0.5 * rng.normal(size=(4000, 12)), rng.normal(size=(4000, 18))])
    auto = learned(Auto(learner=learner), X, y)
    assert len(auto.drifts_) <= 6  # 11 to 14
    assert len(auto._paired) >= 500


def test_columns_beyond_200_that_matter_only_together_are_found():
    X = np.random.default_rng(0).normal(size=(3000, 206))
    y = (X[:, 3] * X[:, 8] > 0).astype(int)
    auto = learned(Auto(learner="naive-bayes"), X, y)
    assert auto.get_support()[[3, 8]].all()
    assert auto.get_support().sum() < 30


def test_a_selection_made_once_and_every_feature_are_candidates_and_the_regret_is_reported():
    X, y = two_worlds(2000, 30)
    auto = learned(Auto(learner="naive-bayes"), X[:1000], y[:1000])
    at = auto.candidates_.index("frozen 3")
    first = auto._masks[at].copy()
    assert first[[0, 1]].all()
    learned(auto, X[1000:], y[1000:])
    assert np.array_equal(auto._masks[at], first)
    assert not auto._masks[auto.candidates_.index("lasso 3")][[0, 1]].all()
    regret = auto.comparison_summary()["regret"]
    behind, error = auto._paired.behind(0)
    assert regret["all"] == [behind[auto._candidate], error[auto._candidate]]
    assert [name.split()[0] for name in regret] == ["all", "lasso", "frozen"]
    assert max(lost for lost, _ in regret.values()) <= auto.tolerance


def test_recent_errors_are_those_of_the_last_records():
    history = History(2)
    for block in range(6):
        history = history.with_block(100 * block + 100, 0, np.array([block, 1.0]), 100)
    assert history.recent(150).tolist() == [4.5, 1.0]
    assert history.recent(200).tolist() == [4.5, 1.0]
    assert history.recent(10_000).tolist() == [2.5, 1.0]
    assert History(2).recent(5).tolist() == [0.0, 0.0]


# -- the smallest set that is as good --------------------------------------------------------------------------


def test_the_rule_is_that_of_its_formulas():
    rng = np.random.default_rng(0)
    chosen = set()
    for _ in range(300):
        n, n_candidates = int(rng.choice([20, 200, 700, 1500])), int(rng.integers(2, 6))
        rates = rng.choice([0.1, 0.11, 0.15, 0.3], n_candidates)
        losses = (rng.random((n, 1)) < rates) * 1.0  # errors on the same rows
        losses[rng.random((n, n_candidates)) < 0.03] = 1.0
        weight, sizes = rng.choice([1.0, 2.0], n), rng.integers(1, 30, n_candidates)
        now, is_costly = int(rng.integers(n_candidates)), bool(rng.random() < 0.5)
        batch = int(rng.choice([0, 100]))
        paired = PairedLosses(n_candidates, batch=batch).with_rows(losses, weight)
        behind, error = twin.compared(losses.tolist(), weight.tolist(), None, batch)
        assert paired.behind()[0] == pytest.approx(behind)
        assert paired.behind()[1] == pytest.approx(error)
        anchor = int(rng.integers(n_candidates)) if rng.random() < 0.5 else None
        candidate, why = preferred(sizes, paired, 0.02, now, is_costly=is_costly, anchor=anchor)
        assert candidate == twin.smallest(
            sizes.tolist(), losses.tolist(), weight.tolist(), 0.02, now, is_costly, anchor, batch
        )
        assert bool(why) == (candidate != now)
        chosen.add(why)
    assert chosen == {"", "better", "smaller"}


def test_the_error_of_a_difference_is_right_for_runs_of_rows():
    """Losses that are repeated for 20 rows: the standard error of independent rows is too small by a factor of 4.5."""
    rng = np.random.default_rng(0)
    gaps, errors = [], []
    for _ in range(200):
        losses = np.repeat(rng.random((100, 2)), 20, axis=0)
        gap, error = PairedLosses(2, batch=100).with_rows(losses, np.ones(2000)).behind(0)
        gaps.append(gap[1])
        errors.append(error[1])
    assert np.std(gaps) == pytest.approx(np.mean(errors), rel=0.15)


@pytest.mark.parametrize("learner", ["linear", "naive-bayes", "trees"])
@pytest.mark.parametrize("seed", [0, 1])
def test_where_3_of_30_columns_matter_at_most_6_are_kept(learner, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 30))
    y = (X[:, 3] + X[:, 7] - X[:, 12] + 0.7 * rng.normal(size=3000) > 0).astype(int)
    auto = learned(Auto(learner=learner), X, y)
    kept = auto.get_support(indices=True)
    assert {3, 7, 12} <= set(kept)
    assert len(kept) <= 6


def test_every_column_is_kept_where_every_smaller_set_costs_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 10))
    y = (X.sum(axis=1) > 0).astype(int)
    auto = learned(Auto(), X, y)
    assert auto.candidate_ == "all"
    assert auto.excess_losses_[auto._size < 10].min() > auto.tolerance


def test_without_tolerance_the_best_set_is_followed_whatever_its_size():
    X, y = two_worlds(1500, 20)
    auto = learned(Auto(tolerance=0.0, learner="naive-bayes"), X[:1500], y[:1500])
    assert auto.allowed_.max() == 0.0
    assert auto.excess_losses_[auto._candidate] <= 2.0 / len(auto._paired)


def test_fewer_rows_than_columns_begin_with_a_tenth():
    X, y = two_worlds(100, 120)
    assert Auto().partial_fit(X[:100], y[:100]).candidate_ == "forward 12"
    assert Auto(learner="naive-bayes")._kind == "naive-bayes"
    auto = Auto().partial_fit(X[:100], y[:100])
    assert auto._initial_candidate(sp.csr_matrix(X)) == 0  # rare words that are left out are lost


def test_a_change_of_the_candidate_restarts_no_linear_learner():
    """Restarted from the last rows, masked, it did not come back: .60 instead of .68 on isolet."""
    X, y = many_classes()
    auto, detected = Auto(), []
    for start in range(0, 900, 100):
        auto.partial_fit(X[start : start + 100], y[start : start + 100], range(20))
        detected.append(auto.drift_detected_)
    assert auto.switches_
    assert not any(detected)


@pytest.mark.slow
def test_a_rare_class_is_ranked_by_few_columns_whatever_the_learner():
    X, y = rare(12_000)
    for learner in ("linear", "naive-bayes", "trees"):
        auto = learned(Auto(learner=learner), X, y)
        assert auto.measure_ == "auc", learner
        assert set(auto.get_support(indices=True)) >= {7, 20}, learner
        assert auto.get_support().sum() <= 24, learner


# -- forests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", [False, True])
def test_the_first_split_of_a_tree_is_the_best_one(numeric):
    """With every column tried, and the weights of the bootstrap sample read back from the root."""
    from tamis.rows.auto.forests import _bootstrap, _grow

    rng = np.random.default_rng(0)
    for seed in range(20):
        X = rng.normal(size=(60, 3)).round(1)
        y = (
            X[:, seed % 3] ** 2 + rng.normal(size=60)
            if numeric
            else (X[:, seed % 3] + rng.normal(size=60) > 0) * 1.0
        )
        cuts = np.quantile(X, np.linspace(0, 1, 33)[1:-1], axis=0, method="lower").T.copy()
        codes = np.stack(
            [np.searchsorted(cut, column, side="left") for cut, column in zip(cuts, X.T, strict=True)]
        ).astype(np.uint8)
        state = np.array([seed], np.uint64)
        feature, cut, value, gains = np.empty(127, np.int32), np.zeros(127), np.zeros((127, 1)), np.zeros(3)
        times = _bootstrap(np.ones(60), state)
        assert np.array_equal(times, bootstrap_counts(seed, 60))
        args = (
            codes,
            cuts,
            np.zeros(60, np.int64),
            y,
            times,
            np.arange(3),
            3,
            state,
            feature,
            cut,
            value,
            gains,
        )
        _grow(*args, np.zeros(3))
        column, best_cut, gain = twin.best_split(X.tolist(), y.tolist(), times, range(3), cuts.tolist())
        assert value[0, 0] == pytest.approx(np.average(y, weights=times))
        go_left = X[:, feature[0]] <= cut[0]
        split = sum(
            np.average(y[side], weights=times[side]) ** 2 * times[side].sum() for side in (go_left, ~go_left)
        )
        assert split - value[0, 0] ** 2 * times.sum() == pytest.approx(
            gain
        )  # of equal gains either may come first
        assert (feature[0], cut[0]) == (column, best_cut) or numeric is not None


def bootstrap_counts(seed: int, n: int) -> np.ndarray:
    """Return how often each row is drawn: SplitMix64 as its authors say it."""
    state, times, mask = seed, np.zeros(n), 2**64 - 1
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        times[int(((z ^ (z >> 31)) >> 11) / 2**53 * n)] += 1.0
    return times


def test_forests_of_many_classes_and_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    classes = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    sets = np.array(
        [[True] * 6, [True, True, False, False, False, False], [False, False, True, True, True, True]]
    )
    sample = Sample(X[:1500], classes[:1500], np.ones(1500), 4)
    many = Forests(3, 6, 4).fit(sample, sets, rng)
    right = (classes[1500:] == many.scores(X[1500:]).argmax(axis=2).T).mean(axis=1)
    assert right[1] > 0.95
    assert right[0] > 0.9
    assert right[2] < 0.35
    assert many.scores(X[1500:]).sum(axis=2) == pytest.approx(1.0)
    target = X[:, 0] * 3.0 + X[:, 1]
    sample = Sample(X[:1500], target[:1500], np.ones(1500), 1)
    one = Forests(3, 6, 1).ranked(sample, rng).fit(sample, sets, rng)
    left = ((one.scores(X[1500:])[:, :, 0] - target[1500:, None]) ** 2).mean(axis=0) / target.var()
    assert left[1] < 0.1 < 0.9 < left[2]
    assert one.importance[0] > one.importance[1] > 5 * one.importance[2:].max()
    assert one.boosted[0] > one.boosted[1] > 4 > one.boosted[2:].max()
    boosted = Forests(3, 6, 4).ranked(Sample(X, classes, np.ones(2000), 4), rng).boosted
    assert boosted[:2].min() > 4 > 2 > boosted[2:].max()


def test_penalised_boosted_trees_equal_their_twin():
    rng = np.random.default_rng(0)
    for seed in range(3):
        X = rng.normal(size=(60, 4)).round(1)
        y = 2.0 * (X[:, seed] > 0) + 0.7 * X[:, 3] + 0.5 * rng.normal(size=60)
        sample = Sample(X, y, np.ones(60), 1)
        importance = rng.random(4)
        expected = twin.boosted(X.tolist(), sample.target.tolist(), sample.cuts.tolist(), importance.tolist())
        assert sample.boosted(importance, 1) == pytest.approx(expected)
        assert len({int(score) for score in expected}) > 1


def test_boosted_trees_keep_one_of_two_copies():
    """The importance of a forest is shared by copies; a feature that is used already pays no penalty."""
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(2400, 3))
    X = np.hstack([signals, signals + 0.01 * rng.normal(size=(2400, 3)), rng.normal(size=(2400, 14))])
    y = (signals @ [1.0, 0.8, 0.6] + 0.3 * rng.normal(size=2400) > 0).astype(int)
    auto = learned(Auto(learner="trees"), X, y)
    kept = auto._masks[auto.candidates_.index("boosted")]
    assert kept[:3].sum() + kept[3:6].sum() <= 4
    assert (kept[:3] | kept[3:6]).all()
    assert not kept[6:].any()
    assert "boosted" in auto.comparison_summary()["regret"]


def test_the_kind_of_a_learner_is_derived_and_the_knee_is_where_scores_fall():
    from sklearn.ensemble import HistGradientBoostingClassifier

    from tamis.learners import AdaptiveRandomForest, HoeffdingTree

    assert [kind_of_learner(one) for one in (AdaptiveRandomForest(), HoeffdingTree(), GaussianNB(), Perceptron())] == [
        "trees", "trees", "naive-bayes", "linear",
    ]  # fmt: skip
    assert Auto(learner=HistGradientBoostingClassifier())._kind == "trees"
    assert knee(np.array([5.0, 4.9, 4.8, 0.3, 0.2, 0.1, 0.0]), 6) == 3
    assert knee(np.zeros(5), 3) == knee(np.ones(1), 1) == 1
    assert knee(np.arange(9.0), 4) in (1, 2, 3, 4)


def numbers(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three of 30 columns decide a number; its noise has heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30))
    return X, 1e3 + 50 * (X[:, 4] + X[:, 11] + 0.5 * X[:, 20] + rng.standard_t(3, size=n))


@pytest.mark.parametrize(
    "model",
    [
        SGDRegressor(loss="huber", epsilon=1.0),
        SGDRegressor(learning_rate="constant", eta0=0.02, penalty=None),
        SGDRegressor(loss="epsilon_insensitive", alpha=0.01),
        SGDRegressor(loss="squared_epsilon_insensitive"),
    ],
)
def test_linear_regressions_of_all_sets_are_the_learner_that_will_use_the_features(model, rng):
    Z, y, weight = rng.normal(size=(120, 5)), 5 + rng.standard_t(2, size=120), rng.uniform(0.5, 2, 120)
    masks = rng.random((4, 5)) < 0.6
    masks[:, 0] = True
    many, alone = LinearRegressions(4, 5), [clone(model).set_params(shuffle=False) for _ in masks]
    for some, rows in ((slice(0, 50), Z), (slice(50, 120), sp.csr_matrix(Z))):
        many.fit_step(rows[some], y[some], weight[some], masks, make_pipeline(model), some.start)
        known = slice(0, some.stop)
        mean = np.average(y[known], weights=weight[known])
        deviation = np.sqrt(np.average((y[known] - mean) ** 2, weights=weight[known]))
        for one, mask in zip(alone, masks, strict=True):
            one.partial_fit(Z[some][:, mask], (y[some] - mean) / deviation, weight[some])
    found = many.scores(Z, masks)[:, :, 0]
    for a, (one, mask) in enumerate(zip(alone, masks, strict=True)):
        np.testing.assert_allclose(many.W[a, 0, mask], one.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found[:, a], mean + deviation * one.predict(Z[:, mask]), rtol=1e-9)


def test_a_linear_regression_that_diverges_does_not_spoil_the_state():
    many = LinearRegressions(1, 3)
    X, steep = np.full((50, 3), 5.0), SGDRegressor(learning_rate="constant", eta0=1e3)
    for start in range(0, 300, 50):
        many.fit_step(X, np.arange(50.0), np.ones(50), np.ones((1, 3), bool), steep, start)
    assert np.isfinite(many.W).all()
    assert np.isfinite(many.b).all()


def test_the_learner_of_the_user_is_the_linear_learner_of_the_comparison():
    X, y = numbers(600)
    weights = [
        learned(Auto(learner=one, task="regression"), X, y)._learners.W
        for one in ("linear", SGDRegressor(loss="huber", epsilon=1.0), SGDRegressor(), BayesianRidge())
    ]
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[0], weights[3])
    assert not np.array_equal(weights[0], weights[2])


@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_a_number_is_predicted_by_few_columns(learner):
    """Errors are in units of the mean absolute deviation: they do not depend on the unit of the target."""
    X, y = numbers()
    model = learned(Auto(learner=learner, task="regression"), X, y)
    assert set(model.get_support(indices=True)) >= {4, 11}
    assert model.get_support().sum() <= 6
    assert model.measure_ == model.comparison_summary()["measure"] == "mae"
    assert 0.4 < model.errors_[model._candidate] < 0.9 < model.errors_.max() + 0.3
    scaled = learned(Auto(learner=learner, task="regression"), X, y / 64)
    assert scaled.candidate_ == model.candidate_
    np.testing.assert_allclose(scaled.errors_, model.errors_, rtol=1e-6)


def test_a_comparison_for_numbers_is_the_same_row_by_row_and_after_a_file(tmp_path):
    X, y = numbers(700)
    whole = Auto(task="regression").partial_fit(X, y)
    some = Auto(task="regression").partial_fit(X[:330], y[:330])
    with pytest.raises(DataError):
        some.partial_fit(X[330:400], np.where(np.arange(70) == 69, np.inf, y[330:400]))
    tamis.save(some, tmp_path / "auto.tamis")
    other = tamis.load(tmp_path / "auto.tamis")
    for i in range(330, 700, 37):
        other.partial_fit(X[i : i + 37], y[i : i + 37])
    np.testing.assert_array_equal(other.errors_, whole.errors_)
    np.testing.assert_array_equal(other.scores_, whole.scores_)


def test_naive_bayes_predicts_no_numbers():
    X, y = numbers(20)
    with pytest.raises(
        ValueError, match=r"learner='naive-bayes' predicts classes, but task='regression': choose"
    ):
        Auto(learner="naive-bayes", task="regression").fit(X, y)
    assert Auto(learner=BayesianRidge(), task="regression").fit(X, y)._kind == "linear"


def test_a_prior_ranks_features_by_their_weight_too_and_costs_little_if_it_is_wrong():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(1500, 20)), rng.normal(size=1500)
    y = X[:, 3] + 0.9 * X[:, 4] + 0.5 * noise > 0
    good = Auto(1, prior={4: 3.0}).fit(X, y)
    assert good.get_support(indices=True).tolist() == [4]
    assert Auto(1).fit(X, y).get_support(indices=True).tolist() == [3]
    wrong = Auto(prior={7: 5.0, 8: 5.0}).fit(X, y)
    assert {3, 4} <= set(wrong.get_support(indices=True))
