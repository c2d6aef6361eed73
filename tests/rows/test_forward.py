"""ForwardPartialCorrelation against its twin, on published data, on numbers that break sums, and with wrong input."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Perceptron

from tamis import Auto, FisherScore, ForwardPartialCorrelation, load, prequential, save
from tamis._shapes import Shapes
from tamis.checks import check_row_selector
from tamis.rows.forward.scatter import Scatter
from tamis.rows.forward.steps import ADVANTAGE, choose
from tests.twins.forward import ForwardPartialCorrelation as Twin


def copies(n_rows=3000, seed=0):
    """Two signals: ten copies of the first, one of the second, and three columns of noise."""
    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(n_rows, 2))
    X = np.hstack(
        [signals[:, [0] * 10 + [1]] + 0.1 * rng.normal(size=(n_rows, 11)), rng.normal(size=(n_rows, 3))]
    )
    return X, (2 * signals[:, 0] + signals[:, 1] > 0).astype(int)


def fed(model, X, y, size, **options):
    for at in range(0, len(y), size):
        model.partial_fit(X[at : at + size], y[at : at + size], **options)
    return model


# -- witnesses -----------------------------------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.sampled_from([None, 40.0]),
    st.integers(2, 4),
    st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_equals_the_twin(seed, n_kept, half_life, n_classes, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 7)) @ rng.normal(size=(7, 7)) + rng.normal(size=7)
    X[:, 5] = 2 * X[:, 1] - X[:, 2]  # collinear
    X[:, 6] = 3.0
    regression = n_classes == 4
    y = X @ rng.normal(size=7) + rng.normal(size=200)
    y = y if regression else np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    weight = rng.integers(1, 4, 200).astype(float) if weighted else None
    kept = None if n_kept == 6 else n_kept
    task = "regression" if regression else "classification"
    inertia = 3.5 if weighted else 0.5
    fast = ForwardPartialCorrelation(kept, half_life=half_life, alpha_drift=None, task=task, inertia=inertia)
    fast.fit(X, y, sample_weight=weight)
    slow = Twin(kept, half_life, regression=regression, inertia=inertia)
    slow.learn(X, y, weight)
    assert fast._order.tolist() == slow.order
    np.testing.assert_allclose(fast._entered, slow.entered, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.delete(fast._left, slow.order), np.delete(slow.left, slow.order), atol=1e-7)


def test_less_inertia_exchanges_features_for_better_ones_sooner():
    """Column 1 is a little better than column 0, which came first: by more than half, so the errors alone decide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X @ [0.9, 0.0] + 0.6 * rng.normal(size=400) > 0).astype(int)
    y[100:] = X[100:] @ [0.0, 1.0] + 0.6 * rng.normal(size=300) > 0
    kept = []
    for inertia in (0.0, 100.0):
        model = ForwardPartialCorrelation(1, inertia=inertia, alpha_drift=None)
        kept.append(fed(model, X, y, 50).get_support(indices=True).tolist())
    assert kept == [[1], [0]]


def test_published_forward_selection():
    """Hald's cement data: Draper and Smith, Applied Regression Analysis, enter x4, x1, x2 with these R squared."""
    X = np.array([
        [7, 26, 6, 60], [1, 29, 15, 52], [11, 56, 8, 20], [11, 31, 8, 47], [7, 52, 6, 33], [11, 55, 9, 22],
        [3, 71, 17, 6], [1, 31, 22, 44], [2, 54, 18, 22], [21, 47, 4, 26], [1, 40, 23, 34], [11, 66, 9, 12],
        [10, 68, 8, 12],
    ])  # fmt: skip
    y = np.array([78.5, 74.3, 104.3, 87.6, 95.9, 109.2, 102.7, 72.5, 93.1, 115.9, 83.8, 113.3, 109.4])
    model = ForwardPartialCorrelation(None, task="regression", half_life=None, alpha=0.5)
    table = fed(model, X, y, 13).table_
    order = np.argsort(table["entered"])[np.count_nonzero(table["entered"] == 0) :]
    assert order.tolist() == [3, 0, 1]
    np.testing.assert_allclose(np.cumsum(table["added"][order]), [0.6745, 0.9725, 0.9823], atol=1e-4)


@pytest.mark.slow
def test_a_batch_is_its_rows():
    X, y = copies(730)
    whole = ForwardPartialCorrelation(3).partial_fit(X, y)
    for size in (
        1,
        33,
        100,
    ):  # one row at a time is slow, and the first rows are the contract's: those around 700
        begun = fed(ForwardPartialCorrelation(3), X[:660], y[:660], max(size, 33), classes=[0, 1])
        parts = fed(begun, X[660:], y[660:], size)
        assert parts.scores_.tolist() == whole.scores_.tolist()


# -- redundancy ----------------------------------------------------------------------------------------------


def test_takes_no_copies_and_says_so():
    X, y = copies()
    model = ForwardPartialCorrelation(2).fit(X, y)
    first, second = model.get_support(indices=True)
    assert (first < 10, second) == (True, 10)
    assert FisherScore(2).fit(X, y).get_support()[:10].sum() == 2  # what it is for
    table = model.table_
    others = [j for j in range(10) if j != first]
    assert model.redundant_to_[others].tolist() == [first] * 9
    assert set(table["redundant_to"][others]) == {f"x{first}"}
    assert (table["alone"][others] > 10 * table["added"][others]).all()
    assert (table["added"] < table["added"][second])[[*others, 11, 12, 13]].all()


def test_none_keeps_what_adds_more_than_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 60))
    y = (X[:, [3, 17, 40]].sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    assert ForwardPartialCorrelation(None).fit(X, y).get_support(indices=True).tolist() == [3, 17, 40]
    found = ForwardPartialCorrelation(None).fit(X, rng.integers(0, 2, 4000))
    assert found.get_support().all()  # nothing adds anything: nothing is left out
    assert not found.scores_[found.scores_ > 0.02].size


@pytest.mark.slow
def test_beats_all_and_the_best_alone_on_copies():
    X, y = copies(4000)
    of = {
        name: prequential((X, y), selector, Perceptron(random_state=0)).summary()["accuracy"]
        for name, selector in {"forward": ForwardPartialCorrelation(2), "fisher": FisherScore(2)}.items()
    }
    assert of["forward"] > of["fisher"] + 0.05


# -- drifts --------------------------------------------------------------------------------------------------


def test_follows_a_drift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 30))
    y = np.where(np.arange(8000) < 5000, X[:, 3] + X[:, 8], X[:, 20] - X[:, 9]) > 0
    model, flagged, found = ForwardPartialCorrelation(2), [], None
    for at in range(0, 8000, 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100])
        if model.drift_detected_:
            flagged.append(at)
        if found is None and at > 5000 and set(model.get_support(indices=True)) == {9, 20}:
            found = at
    assert len(model.drifts_) == 1
    assert 5000 <= flagged[0] <= 5200
    assert found <= 5300
    still = fed(ForwardPartialCorrelation(2, alpha_drift=None), X[:5600], y[:5600], 100)
    assert set(still.get_support(indices=True)) == {3, 8}  # the test is what found it


@pytest.mark.parametrize("seed", range(3))
def test_a_drift_exchanges_no_features_by_chance(seed):
    """All but two of twelve are noise; 30 rows and those after the drift tell nothing of which to keep."""
    X = np.random.default_rng(seed).normal(size=(2000, 60))
    y = X[:, 0] + np.where(np.arange(2000) < 1500, X[:, 1], X[:, 2]) > 0
    model = fed(ForwardPartialCorrelation(12), X[:1500], y[:1500], 100)
    before = model.get_support()
    fed(model, X[1500:], y[1500:], 100)
    assert len(model.drifts_) == 1
    assert model.get_support()[[0, 2]].all()
    assert (before & model.get_support()).sum() >= 4  # 2 or 3 where none was favoured


@pytest.mark.slow
def test_a_relation_that_comes_and_goes_is_found_each_time():
    """Words of a few topics; which of them the reader likes changes every 500 rows."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 3, 3500)
    X = (rng.random((3500, 60)) < np.where(np.arange(60) // 20 == topic[:, None], 0.15, 0.01)).astype(float)
    y = (topic == np.arange(3500) // 500 % 3).astype(int)
    found = np.array(fed(ForwardPartialCorrelation(20), X, y, 25).drifts_)
    late = found - np.arange(500, 3500, 500)
    assert ((late > 0) & (late <= 60)).all()


def test_a_shuffled_stream_does_not_drift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 10))
    y = (X[:, 2] + 2 * rng.normal(size=8000) > 0).astype(int)
    assert fed(ForwardPartialCorrelation(2), X, y, 500).drifts_ == []


def test_a_regression_drifts_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    y = np.where(np.arange(4000) < 2000, X[:, 3], X[:, 7])
    model = fed(ForwardPartialCorrelation(1, task="regression"), X, y, 100)
    assert len(model.drifts_) == 1
    assert model.get_support(indices=True).tolist() == [7]


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_scales_change_nothing(scale):
    X, y = copies(600)
    plain = ForwardPartialCorrelation(3).fit(X, y)
    mixed = np.where(np.arange(14) % 2, scale, 1.0)
    np.testing.assert_allclose(
        ForwardPartialCorrelation(3).fit(X * mixed, y).scores_, plain.scores_, rtol=1e-9
    )
    target = X[:, 0] + X[:, 10]
    one, other = (ForwardPartialCorrelation(3, task="regression").fit(X, target * by) for by in (1.0, scale))
    np.testing.assert_allclose(one.scores_, other.scores_, rtol=1e-9)


def test_offsets_and_moving_means_cost_no_digits():
    X, y = copies(2000)
    far = X + 1e7 * np.where(np.arange(2000) < 1000, 1.0, 1.0)[:, None]
    plain = fed(ForwardPartialCorrelation(3), X, y, 100)
    np.testing.assert_allclose(
        fed(ForwardPartialCorrelation(3), far, y, 100).scores_, plain.scores_, rtol=1e-5
    )
    growing = X.copy()
    growing[300:] *= 1e200  # a column that outgrows its unit
    assert np.isfinite(fed(ForwardPartialCorrelation(3), growing, y, 100).scores_).all()


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kept", [3, None])
def test_degenerate_columns(task, kept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 70))  # more columns than rows
    X[:, 1], X[:, 2], X[:, 3], X[:, 4] = X[:, 0], -X[:, 0], X[:, 5] + X[:, 6], 1e9
    X[:, 7:9] = 0.0
    y = (X[:, 0] > 0).astype(float)
    y[-1] = 2.0  # a class of one row
    model = ForwardPartialCorrelation(kept, task=task)
    for at in (0, 1, 2, 20):
        model.partial_fit(X[at : at + 20], y[at : at + 20])
        assert np.isfinite(model.scores_).all()
        assert all(np.isfinite(column).all() for column in list(model.table_.values())[2:5])
    assert not model.scores_[[4, 7, 8]].any()
    assert not np.isin(model.redundant_to_, [4, 7, 8]).any()
    constant = ForwardPartialCorrelation(kept, task=task).fit(
        np.ones((60, 3)), y[:1].repeat(60) + np.arange(60) % 2
    )
    assert not constant.scores_.any()


def test_scatter_knows_columns_that_come_from_the_rows_at_hand():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 4)) * [1.0, 9.0, 0.2, 1.0]
    scatter = Scatter(4)
    scatter.update(Z, np.ones(300), 1.0)
    full = np.cov(Z.T, bias=True)
    np.testing.assert_allclose(scatter.covariance(), full, atol=1e-12)
    scatter.replace(
        np.array([1]), Z.mean(axis=0)[[1]], full[[1], [1]], full[3:, [1]], Z[200:, :3], np.ones(100)
    )
    deviations = Z - Z.mean(axis=0)
    expected = full.copy()
    expected[1, [0, 2]] = expected[[0, 2], 1] = deviations[200:, 1] @ deviations[200:][:, [0, 2]] / 300
    np.testing.assert_allclose(scatter.covariance(), expected, atol=1e-12)


# -- wide data -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_more_features_than_the_matrix_holds(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 400)) * (rng.random((3000, 400)) < 0.3)
    y = (np.where(np.arange(3000) < 1500, X[:, 7], X[:, 350]) + X[:, 60] > 0).astype(int)
    X[:, 8:12] = X[:, [7]]
    rows = sp.csr_matrix(X) if sparse else X
    model = ForwardPartialCorrelation(3, max_columns=40, half_life=300)
    fed(model, rows[:1500], y[:1500], 100)
    kept = model.get_support(indices=True)
    assert 60 in kept
    assert np.isin(kept, np.arange(7, 12)).sum() >= 1
    fed(model, rows[1500:], y[1500:], 100)
    assert {60, 350} <= set(model.get_support(indices=True))
    assert len(model.table_["alone"]) == 400
    with pytest.raises(ValueError, match="max_columns=40"):
        model.merge(fed(ForwardPartialCorrelation(3, max_columns=40, half_life=300), rows, y, 500))


@pytest.mark.slow
def test_correlations_that_do_not_fit_together_give_finite_gains(rng):
    """Columns that come at different times have correlations of different rows."""
    R = np.triu(rng.uniform(-1.0, 1.0, size=(300, 300)), 1) + np.eye(300)
    b, n, nowhere = rng.uniform(-0.2, 0.2, size=(2, 300)), 1000.0, np.full(300, 300)
    order, entered, _, left, _, factor, made = choose(
        np.asfortranarray(R), np.ones(300), np.full(300, n), n, b, 0.5, 250, nowhere, np.array([300]), n,
        np.zeros(300), 1.0, ADVANTAGE, np.ones(300),
    )  # fmt: skip
    assert len(order) == 250
    for part in (entered, left, factor, made):
        assert np.isfinite(part).all()


@pytest.mark.slow
def test_rare_words_that_come_late_add_no_more_than_there_is():
    """The correlations of newcomers are of few rows: the ridge is for the errors of all rows."""
    rng = np.random.default_rng(0)
    y, rate = rng.integers(0, 10, 1500), np.minimum(0.5 / np.arange(1, 2001), 0.1)
    of_class = rng.random((1500, 2000)) < np.where(rng.integers(0, 10, 2000) == y[:, None], 10.0, 1.0) * rate
    model = ForwardPartialCorrelation(0.1, max_columns=100)
    for start in range(0, 1500, 100):
        model.partial_fit(sp.csr_matrix(of_class[start : start + 100].astype(float)), y[start : start + 100])
        assert model.scores_.max() < 1.0
    assert model.drifts_ == []


def test_a_newcomer_that_copies_a_chosen_column_adds_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 200))
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=1500) > 0).astype(int)
    X[:500, 150:] = 0.0  # they begin to vary late
    X[500:, 150:160] = X[500:, [0]] + 0.2 * rng.normal(size=(1000, 10))
    model = fed(ForwardPartialCorrelation(2, max_columns=30, alpha_drift=None), X, y, 100)
    assert np.isin(np.arange(150, 160), model._columns).all()
    kept = model.get_support(indices=True)
    assert 1 in kept
    assert np.isin(kept, [0, *range(150, 160)]).sum() == 1


def test_wide_and_narrow_agree_while_no_column_comes_or_goes():
    X, y = copies(1000)
    wide = np.hstack([X, np.zeros((1000, 30))])
    a = fed(ForwardPartialCorrelation(3, max_columns=14), wide, y, 100)
    b = fed(ForwardPartialCorrelation(3), X, y, 100)
    assert a.get_support(indices=True).tolist() == b.get_support(indices=True).tolist()


# -- the rest of the contract --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", [{"task": "regression"}, {"n_features_to_select": None}, {"half_life": None}], ids=str
)
def test_variants_conform(variant):
    check_row_selector(ForwardPartialCorrelation(**variant))


def test_merged_parts_in_their_order_are_the_whole():
    X, y = copies(900)
    labels = np.array(["b", "a", "c"])[np.where(X[:, 12] > 1.5, 2, y)]
    parts = [
        fed(ForwardPartialCorrelation(3, half_life=200), X[i : i + 300], labels[i : i + 300], 50)
        for i in (0, 300, 600)
    ]
    whole = fed(ForwardPartialCorrelation(3, half_life=200), X, labels, 50)
    merged = parts[0].merge(parts[1]).merge(parts[2])
    order = [merged.classes_.tolist().index(label) for label in whole.classes_]
    at = np.r_[np.arange(14), 14 + np.array(order)]
    np.testing.assert_allclose(
        merged._scatter.covariance()[np.ix_(at, at)], whole._scatter.covariance(), rtol=1e-9
    )
    assert merged.n_seen_ == 900
    assert set(merged.get_support(indices=True)) == set(whole.get_support(indices=True))
    with pytest.raises(ValueError, match="half_life"):
        merged.merge(ForwardPartialCorrelation(3))
    with pytest.raises(TypeError, match="FisherScore"):
        merged.merge(FisherScore())


def test_saved_in_mid_stream_it_goes_on(tmp_path):
    X, y = copies(700)
    model = fed(ForwardPartialCorrelation(3, max_columns=8), X[:333], y[:333], 50)
    again = load(save(model, tmp_path / "model.tamis"))
    for each in (model, again):
        fed(each, X[333:], y[333:], 70)
    assert model.scores_.tolist() == again.scores_.tolist()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"task": "ranking"}, "task"),
        ({"half_life": 0}, "half_life"),
        ({"alpha": 1.0}, "alpha"),
        ({"alpha_drift": 0.0}, "alpha_drift"),
        ({"max_columns": 0}, "max_columns"),
        ({"n_features_to_select": 0.0}, "n_features_to_select"),
    ],
)
def test_refuses_parameters(parameters, words):
    X, y = copies(100)
    with pytest.raises(ValueError, match=words):
        ForwardPartialCorrelation(**parameters).fit(X, y)


def test_infinite_values_are_refused_by_name():
    X, y = copies(100)
    X[40, 3] = np.inf
    with pytest.raises(ValueError, match="column 3 of row 40"):
        ForwardPartialCorrelation().fit(X, y)


def test_features_are_chosen_anew_after_an_eighth_more_rows(rng):
    X = rng.normal(size=(3000, 6))
    y = X[:, 0] + rng.normal(size=3000) > 0
    model, read = ForwardPartialCorrelation(2), []
    for at in range(0, 3000, 100):
        read.append(model.partial_fit(X[at : at + 100], y[at : at + 100]).scores_)
    renewed = [(one != other).any() for one, other in itertools.pairwise(read)]
    assert 2 <= sum(renewed[20:]) <= 4  # of ten blocks


def test_one_row_at_a_time_looks_at_no_new_shapes(monkeypatch):
    """The look at shapes that are new to it takes a hundred times what learning from a row does."""
    X, y = copies(1250)
    model, looks = fed(ForwardPartialCorrelation(3), X[:1050], y[:1050], 50), []
    compare = Shapes._compare
    monkeypatch.setattr(Shapes, "_compare", lambda *given: looks.append(1) or compare(*given))
    for at in range(1050, 1250):
        model.partial_fit(X[at : at + 1], y[at : at + 1]).get_support()
    assert len(looks) <= 4  # twice for each block that is full


@pytest.mark.parametrize("first", [sp.csr_matrix, np.asarray])
def test_dense_and_sparse_rows_share_a_block(first):
    X, y = copies(330)
    mixed, whole = ForwardPartialCorrelation(3), ForwardPartialCorrelation(3).partial_fit(X, y)
    for at in range(0, 330, 11):
        part = X[at : at + 11]
        other = np.asarray if first is sp.csr_matrix else sp.csr_matrix
        mixed.partial_fit(first(part) if at % 2 else other(part), y[at : at + 11], classes=[0, 1])
    np.testing.assert_allclose(mixed.scores_, whole.scores_, rtol=1e-12)


@pytest.mark.slow
def test_features_beyond_the_steps_stay_unless_another_is_clearly_better(monkeypatch):
    """A hundred equal features and ten steps: the others kept are ties, and ties do not flicker."""
    monkeypatch.setattr("tamis.rows.forward.forward._STEPS", 10)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = rng.normal(size=(4000, 100)) + 0.2 * y[:, None]
    model, swapped, before = ForwardPartialCorrelation(40), 0, None
    for at in range(0, 4000, 100):
        kept = set(model.partial_fit(X[at : at + 100], y[at : at + 100]).get_support(indices=True))
        assert len(kept) == 40
        swapped += len(kept - before) if at > 1000 else 0
        before = kept
    assert swapped <= 10


@pytest.mark.slow
@pytest.mark.parametrize("cls", [ForwardPartialCorrelation, Auto])
def test_a_batch_that_fails_in_its_second_block_leaves_the_rows_that_wait(cls, monkeypatch):
    """Without this, the rows of the second block take the place of those that waited before the call."""
    X, y = copies(600)
    model = cls(3).partial_fit(X[:350], y[:350])
    waiting, take, calls = model._pending.rows(), cls._take_block, itertools.count()

    def second_fails(self, **options):
        if next(calls) == 1:
            raise MemoryError
        take(self, **options)

    monkeypatch.setattr(cls, "_take_block", second_fails)
    with pytest.raises(MemoryError):
        model.partial_fit(X[350:600], y[350:600])
    for before, after in zip(waiting, model._pending.rows(), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_lasso_of_the_matrix_is_that_of_the_rows(n_classes):
    from sklearn.linear_model import Lasso

    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 12)) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12))) * np.linspace(0.1, 9, 12)
    y = np.digitize(X[:, 0] / X[:, 0].std() - X[:, 5] / X[:, 5].std(), [0.0, 1.0][: n_classes - 1])
    order, n_weights = ForwardPartialCorrelation().fit(X, y).lasso_order(0.05)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    targets = [y == k for k in (range(n_classes) if n_classes > 2 else [1])]
    weights = np.max(
        [np.abs(Lasso(0.05, tol=1e-8).fit(Z, (one - one.mean()) / one.std()).coef_) for one in targets],
        axis=0,
    )
    assert n_weights == np.count_nonzero(weights)
    assert np.array_equal(order[:n_weights], np.argsort(-weights)[:n_weights])


def test_a_prior_multiplies_gains_by_weights_of_mean_one(rng):
    """Of two features of almost equal gain the favoured one enters; the weights of a group are its columns' own."""
    signal = rng.normal(size=(2000, 2))
    X = np.column_stack([signal, rng.normal(size=(2000, 6))])
    y = signal[:, 0] + 0.8 * signal[:, 1] + rng.normal(size=2000)
    plain, prior = (
        ForwardPartialCorrelation(1, task="regression", prior=prior) for prior in (None, {1: 4.0})
    )
    assert plain.fit(X, y).get_support(indices=True).tolist() == [0]
    assert prior.fit(X, y).get_support(indices=True).tolist() == [1]
    as_prices = ForwardPartialCorrelation(1, task="regression", prices=[1.0, 0.25, *[1.0] * 6]).fit(X, y)
    np.testing.assert_allclose(prior.scores_, as_prices.scores_)
    assert prior._terms.prior.mean() == pytest.approx(1.0)
    named = ForwardPartialCorrelation(1, task="regression", prior={"b": 4.0}).fit(
        pd.DataFrame(X, columns=list("abcdefgh")), y
    )
    assert named.get_feature_names_out().tolist() == ["b"]
    with pytest.raises(ValueError, match="prior names 'z', which is not a column of X"):
        ForwardPartialCorrelation(prior={"z": 2.0}).fit(X, y > 0)


@pytest.mark.slow
def test_levels_by_prior_keep_the_error_rate_and_gain_power():
    """alpha bounds the probability of any irrelevant feature, for any weights; a suspected one is found sooner."""
    rng, any_false, found = np.random.default_rng(3), [], {None: 0, "good": 0, "bad": 0}
    for _ in range(60):
        X, noise = rng.normal(size=(300, 50)), rng.normal(size=300)
        for kind, prior in ((None, None), ("good", {0: 20.0}), ("bad", {1: 20.0})):
            model = ForwardPartialCorrelation(None, task="regression", alpha=0.1, inertia=0.0, prior=prior)
            found[kind] += 0 in model.fit(X, 0.18 * X[:, 0] + noise)._order
            if kind is not None:
                any_false.append(len(model.fit(X, noise)._order) > 0)
    assert np.mean(any_false) < 0.1 + 3 * np.sqrt(0.09 / len(any_false))
    assert found["good"] > found[None] + 3
    assert found["bad"] > 0.6 * found[None]
