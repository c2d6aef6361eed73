"""IFC2F against its twin, its published numbers, and bad input."""

import contextlib
import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold, cross_val_score

import tamis
from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F
from tamis.errors import DataError, StateError
from tests.twins import ifc2f as twin

MODELS = [IFC2F(random_state=0), ETANA(random_state=0), FETANA(n_iterations=300, random_state=0)]


def rows(rng, n=400, d=12, n_classes=3):
    """Half of the columns say something of the class, and neighbours are correlated."""
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d))
    X[:, 1:] += 0.7 * X[:, :-1]
    X[:, : d // 2] += 1.2 * (y[:, None] == np.arange(d // 2) % n_classes)
    return X, y


@pytest.mark.parametrize(
    "settings",
    [{}, {"order": "relevance"}, {"context": "exact", "n_bins": 2}, {"context": "pooled"}, {"always_first": True},
     {"structure": "line"}, {"structure": "random"}, {"structure": "clique", "order": "mrmr"}, {"sampling": "uniform"},
     {"binning": "width", "n_bins": 3}],
    ids=str,
)  # fmt: skip
def test_decides_as_the_twin(rng, settings):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = IFC2F(cost=0.01, calibrate=False, random_state=0, **settings).fit(X[:300], y[:300])
    test = X[300:]
    codes = model._codes(test[:, model.candidates_], np.arange(len(model.candidates_)))
    want = [twin.walk(model, row) for row in codes]
    found = model.predict_proba(test)
    np.testing.assert_array_equal(model.n_features_used_, [used for _, used, _ in want])
    np.testing.assert_allclose(found, [belief for _, _, belief in want], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict(test), model.classes_[[label for label, _, _ in want]])
    np.testing.assert_allclose(model.cost_, 0.01 * model.n_features_used_)


def test_a_clique_links_each_feature_to_the_one_before(rng):
    """Table 4: every table has the value of the feature acquired last, counted with one row added to each cell."""
    X, y = rows(rng)
    model = IFC2F(structure="clique", order="mrmr", calibrate=False, random_state=0).fit(X, y)
    chain, codes = model._chain, model._codes(X[:, model.candidates_], np.arange(len(model.candidates_)))
    assert chain.link.tolist() == [*range(-1, len(chain) - 1)]
    of_class = np.searchsorted(model.classes_, y)
    for k in range(1, len(chain)):
        for c in range(len(model.classes_)):
            counts = np.ones(chain.tables[k].shape[1:])
            np.add.at(counts, (codes[of_class == c, k], codes[of_class == c, k - 1]), 1.0)
            np.testing.assert_allclose(chain.tables[k][c], counts / counts.sum(axis=0))
    published = IFC2F.published(structure="clique", random_state=0).fit(X, y)
    assert len(published.candidates_) == 1  # all others are its neighbours


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_walk_is_the_session_is_the_trace(rng, model):
    X, y = rows(rng)
    model.fit(X, y)
    labels, used = model.predict(X[:30]), model.n_features_used_
    for x, label, n, trace in zip(X[:30], labels, used, model.acquire(X[:30]), strict=True):
        session = model.open()
        while session.next_feature is not None:
            session.observe(x[session.next_feature])
        steps = session.explain()
        assert session.decision == label == trace.label
        assert len(steps) == n == len(trace.features)
        assert [step["feature"] for step in steps] == trace.features
        np.testing.assert_allclose(
            [[*s["posterior"].values()] for s in steps], trace.posteriors[1:], rtol=1e-12
        )
        assert session.cost == pytest.approx(trace.cost)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_sparse_rows_decide_as_dense_ones(rng, model):
    X, y = rows(rng)
    X[np.abs(X) < 0.8] = 0.0
    dense = model.fit(X, y).predict_proba(X)
    sparse = model.fit(sp.csr_array(X), y).predict_proba(sp.csr_array(X))
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)


def test_small_blocks_of_rows_make_no_difference(rng, monkeypatch):
    X, y = rows(rng)
    model = IFC2F(random_state=0).fit(X, y)
    whole, used = model.predict_proba(X), model.n_features_used_
    monkeypatch.setattr("tamis.base.cells._CELLS", 100)
    np.testing.assert_array_equal(model.predict_proba(X), whole)
    np.testing.assert_array_equal(model.n_features_used_, used)


@pytest.mark.slow
def test_dearer_features_are_bought_less(rng):
    X, y = rows(rng, n=1000)
    used = []
    for cost in (0.001, 0.01, 0.05, 0.2, 10.0):
        model = IFC2F(cost=cost, random_state=0).fit(X, y)
        model.predict(X)
        used.append(model.n_features_used_.mean())
    assert used == sorted(used, reverse=True)
    assert used[0] > 2 > used[-1] == 0
    assert (model.predict(X) == np.bincount(y).argmax()).all()


def test_cheap_features_come_first(rng):
    y = rng.integers(0, 2, 600)
    X = pd.DataFrame(rng.normal(size=(600, 2)) + 1.5 * y[:, None], columns=["scan", "pulse"])
    X["scan"] += 0.5 * y
    model = IFC2F({"scan": 0.2, "pulse": 0.01}, order="relevance", random_state=0).fit(X, y)
    assert [model.name_of(k) for k in range(2)] == ["pulse", "scan"]
    model.predict(X)
    np.testing.assert_allclose(np.unique(model.cost_.round(9)), [0.01, 0.21])
    free = IFC2F([0.0, 0.01], random_state=0).fit(X, y)
    assert free.candidates_[0] == 0


def test_misclassification_costs_move_the_decision(rng):
    X, y = rows(rng, n=1000, n_classes=2)
    X += rng.normal(scale=2.0, size=X.shape)
    wary = IFC2F(misclassification_cost=[[0, 1], [10, 0]], random_state=0).fit(X, y)
    plain = IFC2F(random_state=0).fit(X, y)
    assert (wary.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
    missed = lambda model: ((model.predict(X) == 0) & (y == 1)).mean()  # noqa: E731
    assert missed(wary) < missed(plain) / 2


def test_missing_values_cost_nothing(rng):
    X, y = rows(rng)
    model = IFC2F(random_state=0).fit(X, y)
    nothing = np.full((5, X.shape[1]), np.nan)
    assert (model.predict(nothing) == model.classes_[np.argmax(model.prior_)]).all()
    assert (model.n_features_used_ == 0).all()
    np.testing.assert_allclose(model.predict_proba(nothing), np.tile(model.prior_, (5, 1)))


@pytest.mark.slow
def test_same_seed_same_model(rng):
    X, y = rows(rng)
    first, second = (IFC2F(random_state=3).fit(X, y) for _ in range(2))
    for a, b in zip(first.stopping_.stages, second.stopping_.stages, strict=True):
        np.testing.assert_array_equal(a.vectors, b.vectors)
    before = X.copy()
    first.predict(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.slow
def test_order_of_columns_does_not_matter(rng):
    X, y = rows(rng)
    order = rng.permutation(X.shape[1])
    model, other = IFC2F(random_state=0).fit(X, y), IFC2F(random_state=0).fit(X[:, order], y)
    np.testing.assert_array_equal(order[other.candidates_], model.candidates_)
    np.testing.assert_allclose(other.predict_proba(X[:, order]), model.predict_proba(X))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_saved_model_decides_the_same(rng, model, tmp_path):
    X, y = rows(rng)
    model.fit(X, y)
    again = tamis.load(tamis.save(model, tmp_path / "model.tamis") or tmp_path / "model.tamis")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# -- more rows ---------------------------------------------------------------------------------------------


def test_more_rows_count_as_if_they_had_been_there(rng):
    X, y = rows(rng)
    model = IFC2F(random_state=0).fit(X[:300], y[:300])
    model.partial_fit(X[300:340], y[300:340]).partial_fit(X[340:], y[340:])
    codes = model._kept_bins.codes(X[:, model.kept_])
    counts = model._network._count(codes, y, model.n_bins, 3)
    np.testing.assert_array_equal(model._network.counts, counts)
    np.testing.assert_allclose(model.prior_, np.bincount(y) / len(y))
    assert model.score(X, y) > 0.5


def test_faded_rows_give_way(rng):
    X, y = rows(rng, n=1200, n_classes=2)
    old, turned = (IFC2F(fading=f, random_state=0).fit(X[:400], y[:400]) for f in (1.0, 0.99))
    for model in (old, turned):
        for at in range(400, 700, 100):
            model.partial_fit(X[at : at + 100], 1 - y[at : at + 100])
    assert turned.score(X, 1 - y) > old.score(X, 1 - y) + 0.05
    weights = 0.99 ** np.arange(59, -1, -1.0)
    again = IFC2F(fading=0.99, random_state=0).fit(X[:100], y[:100]).partial_fit(X[:60], y[:60])
    assert again._network.of_class.sum() == pytest.approx(100 * 0.99**60 + weights.sum())
    again.partial_fit(X[:10], y[:10])  # more than the weight of 100 rows: fitted again
    assert again._network.of_class.sum() < 70


def test_unseen_label_is_refused(rng):
    X, y = rows(rng)
    model = IFC2F(random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(DataError, match="Label 7 was not seen in fit"):
        model.partial_fit(X[:3], [0, 1, 7])
    np.testing.assert_array_equal(model.predict_proba(X), before)


# -- edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_one_class_is_decided_at_once(rng, model):
    X = rng.normal(size=(20, 3))
    model.fit(X, np.full(20, "only"))
    assert (model.predict(X) == "only").all()
    assert (model.n_features_used_ == 0).all()


@pytest.mark.slow
def test_words_need_more_columns_than_fifteen(rng):
    """Each word is in few documents: fifteen of them are absent from many."""
    y = rng.integers(0, 2, 600)
    lean = np.geomspace(0.12, 0.02, 200) * (y[:, None] == np.arange(200) % 2)
    X = sp.csr_array((rng.random((600, 200)) < 0.01 + lean).astype(float))
    few, more = (
        IFC2F(0.001, threshold=t, order="relevance", calibrate=False, random_state=0).fit(X[:400], y[:400])
        for t in ("count", 80)
    )
    assert 15 <= len(few.candidates_) < 80 <= len(more.candidates_)
    assert more.score(X[400:], y[400:]) > few.score(X[400:], y[400:]) + 0.02
    assert len(AdaptiveIFC2F(0.001, max_features=80).fit(X[:400], y[:400]).candidates_) == 80


def test_one_feature_and_constant_columns(rng):
    y = rng.integers(0, 2, 200)
    X = np.column_stack([np.ones(200), y + 0.1 * rng.normal(size=200), np.zeros(200)])
    model = IFC2F(random_state=0).fit(X, y)
    assert model.candidates_.tolist() == [1]
    assert model.score(X, y) > 0.9


def test_more_bins_than_values_and_values_beyond(rng):
    y = rng.integers(0, 2, 200)
    X = y[:, None] + np.zeros((1, 2))
    model = IFC2F(n_bins=10, random_state=0).fit(X, y)
    assert model.predict([[1e6, 1e6], [-1e6, -1e6]]).tolist() == [1, 0]


def test_free_features_are_all_bought_while_they_help(rng):
    X, y = rows(rng)
    model = IFC2F(cost=0.0, order="relevance", random_state=0).fit(X, y)
    model.predict(X)
    assert model.n_features_used_.mean() > len(model.candidates_) / 3


def test_columns_that_say_nothing_are_refused():
    X, y = np.ones((40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError, match="No column is relevant to the class: check the labels"):
        IFC2F(threshold="count").fit(X, y)
    assert IFC2F().fit(X, y).predict(X).tolist() == [0] * 40  # nothing is bought, the classes decide


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"cost": -0.1}, "cost must be a number in .*, an array of numbers, a mapping of .* or a PriceList, got -0.1"),
     ({"cost": [0.1, 0.2]}, "cost has 2 entries for 12 features"),
     ({"cost": {"x": 1.0}}, "cost names its features, but X has no column names"),
     ({"cost": np.nan}, "cost must be a number in .*got nan"),
     ({"misclassification_cost": [[0, 1]]}, r"misclassification_cost has shape \(1, 2\)"),
     ({"misclassification_cost": [[2, 1, 1], [1, 0, 1], [1, 1, 0]]}, "more expensive to predict class 0"),
     ({"misclassification_cost": [[0, -1, 1], [1, 0, 1], [1, 1, 0]]}, "negative or not finite"),
     ({"misclassification_cost": [[0, 1, 1], [1, 0, np.nan], [1, 1, 0]]},
      r"has nan at \[1, 2\], for predicting 2 when the class is 1, which is negative or not finite: give numbers of 0"),
     ({"n_bins": 1}, "n_bins must be"), ({"binning": "equal"}, "binning"), ({"context": "none"}, "context"),
     ({"order": "best"}, "order"), ({"threshold": 0}, "threshold must be"), ({"n_beliefs": 0}, "n_beliefs must be")],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_parameters_out_of_range(rng, settings, message):
    X, y = rows(rng)
    with pytest.raises(ValueError, match=message):
        IFC2F(**settings).fit(X, y)


def test_named_costs_must_fit_the_columns(rng):
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match="cost names 'c', which is not a column"):
        IFC2F({"a": 1, "b": 1, "c": 1}).fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match="cost has no entry for column 'b'"):
        IFC2F({"a": 1}).fit(X, np.arange(20) % 2)


def test_failed_fit_leaves_the_model_as_it_was(rng):
    X, y = rows(rng)
    model = IFC2F(random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(DataError):
        model.fit(np.where(X > 2, np.inf, X), y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(DataError, match="X has 3 features, but IFC2F is expecting 12 features"):
        model.predict(X[:, :3])


# -- published and measured numbers ------------------------------------------------------------------------


def five_folds(model, X, y):
    accuracy, used = [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        accuracy.append(model.fit(X[train], y[train]).score(X[test], y[test]))
        used.append(model.n_features_used_.mean())
    return np.mean(accuracy), np.mean(used)


@pytest.mark.parametrize(
    ("name", "n_bins", "accuracy", "used"),
    [("spambase", 4, 0.905, 3.9), ("spambase", 10, 0.898, 5.3), ("allaml", 3, 0.971, 2.8), ("allaml", 4, 0.943, 3.1)],
)  # fmt: skip
def test_accuracy_and_features_of_five_folds(load_shared, name, n_bins, accuracy, used):
    X, y, _ = load_shared(name)
    model = IFC2F(n_bins=n_bins, threshold="count", calibrate=False, random_state=0)
    found = five_folds(model, np.asarray(X, dtype=float), y)
    assert found == (pytest.approx(accuracy, abs=0.005), pytest.approx(used, abs=0.3))


def test_dorothea_is_the_published_row(shared, load_shared):
    """Table 6 and 7 of the paper: accuracy 0.9429 with 2.29 features."""
    X, y, _ = load_shared("dorothea")
    split = np.load(shared / "data" / "dorothea" / "data.npz")["split"]
    model = IFC2F(n_bins=10, threshold="count", calibrate=False, random_state=0).fit(
        X[split == 0], y[split == 0]
    )
    assert model.score(X[split == 1], y[split == 1]) == pytest.approx(0.9429, abs=0.003)
    assert model.n_features_used_.mean() == pytest.approx(2.29, abs=0.1)


@pytest.mark.slow
def test_cross_validation_works(rng):
    X, y = rows(rng)
    assert cross_val_score(IFC2F(random_state=0), X, y, cv=3).mean() > 0.5


def test_what_is_free_and_worth_nothing_is_not_bought():
    """To go on then costs as much as to stop."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = y[:, None] + rng.normal(size=(200, 3))
    model = IFC2F(cost=0.0, misclassification_cost=np.zeros((2, 2)), always_first=False, random_state=0).fit(
        X, y
    )
    model.predict(X)
    assert model.n_features_used_.sum() == 0


def test_the_published_method_has_the_documented_price():
    assert IFC2F.published().cost == IFC2F().cost == 0.01


@pytest.mark.parametrize("lookahead", [True, False])
def test_contexts_that_do_not_fit_the_vectors_are_rejected(lookahead):
    """The kernel uses the key of a context as an index: with two more positions it read beyond the array."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 5)), rng.integers(0, 3, 150)
    model = IFC2F(lookahead=lookahead, random_state=0).fit(X + y[:, None], y)
    for k, context in enumerate(model.stopping_.context):
        broken = copy.deepcopy(model)
        broken.stopping_.context[k] = np.append(context, [0, 0])
        with contextlib.suppress(StateError):
            broken.predict(X)
        with pytest.raises(StateError, match=f"The contexts of stage {k} do not match its vectors"):
            broken.stopping_.continuation_value(
                k, np.full((1, 3), 1 / 3), np.zeros((1, 5), int), lookahead=False
            )
