"""Values that were not asked for count at once, in any order, and do no harm."""

import numpy as np
import pytest

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.cells.any_order import AnyOrder, subset_orders

METHODS = {
    "IFC2F": IFC2F(random_state=0),
    "IFC2F as published": IFC2F.published(random_state=0),
    "ETANA": ETANA(random_state=0),
    "ETANA as published": ETANA.published(method="points", prior="empirical", random_state=0),
    "FETANA": FETANA(n_iterations=500, random_state=0),
    "AdaptiveIFC2F": AdaptiveIFC2F(max_steps=4, random_state=0),
    "AdaptiveIFC2F, ensemble": AdaptiveIFC2F(max_steps=4, decision="ensemble", random_state=0),
    "FixedSubset": FixedSubset(random_state=0),
}
every_method = pytest.mark.parametrize("name", METHODS)


def rows(n=900, seed=0):
    """Seven classes; each of six columns separates some of them, two more are noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 7, n)
    X = rng.normal(size=(n, 8))
    X[:, :6] += 1.5 * np.random.default_rng(1).normal(size=(7, 6))[y]
    return X.round(3), y


@pytest.fixture(scope="module")
def fitted():
    X, y = rows()
    return {
        name: model.__class__(**model.get_params()).fit(X[:600], y[:600]) for name, model in METHODS.items()
    }


def posterior_given(model, X, positions):
    """The posterior of each row after the candidates at these positions were given unasked, in this order."""
    values, codes = model._cells(X, np.arange(len(X)))
    state = model._start(len(X))
    for position in positions:
        state.volunteered[:] = True
        model._observe(state, np.full(len(X), position), codes[:, position], values[:, position])
        model._next(state)
    return state.posterior


def log_loss(posterior, y):
    return -np.log(np.maximum(posterior[np.arange(len(y)), y], 1e-12))


@pytest.mark.slow
@every_method
def test_one_value_given_unasked_is_not_worse_than_the_class_shares(fitted, name):
    X, y = rows()
    model, X, y = fitted[name], X[600:], y[600:]
    before, better = log_loss(np.tile(model.prior_, (len(y), 1)), y), 0
    for position, column in enumerate(model.candidates_):
        if column >= 6 and "published" in name:
            continue  # the published tables of noise are not shrunk
        gap = log_loss(posterior_given(model, X, [position]), y) - before
        assert gap.mean() <= 2.5 * gap.std() / np.sqrt(len(y)), position
        better += gap.mean() < -2.0 * gap.std() / np.sqrt(len(y))
    assert better >= 3


@every_method
def test_the_order_in_which_values_become_known_does_not_matter(fitted, name):
    X, _ = rows()
    model = fitted[name]
    some = np.arange(len(model.candidates_))[1:4]
    one, other = (posterior_given(model, X[600:700], order) for order in (some, some[::-1]))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert np.abs(one - model.prior_).max() > 0.1


@every_method
def test_a_session_counts_a_value_before_its_turn(fitted, name):
    X, _ = rows()
    model, row = fitted[name], X[601]
    session = model.open()
    other = [model.name_of(k) for k in range(len(model.candidates_))]
    other = next(name for name in other if name != session.next_feature)
    session.observe(row[other], other)
    assert max(abs(p - q) for p, q in zip(session.posterior.values(), model.prior_, strict=True)) > 1e-3
    assert session.cost == 0.0
    while session.next_feature is not None:
        asked = session.next_feature
        assert asked != other
        session.observe(row[asked])
    again = model.open(session.state())
    assert again.posterior == session.posterior
    assert again.decision == session.decision


@every_method
def test_two_values_more_tell_more(fitted, name):
    """The posterior of all six columns, given in reverse order, is better than that of one."""
    X, y = rows()
    model, X, y = fitted[name], X[600:], y[600:]
    order = np.arange(min(len(model.candidates_), 6))[::-1]
    one, all_ = (log_loss(posterior_given(model, X, order[:n]), y).mean() for n in (1, len(order)))
    assert all_ < one - 0.2


def test_values_that_were_asked_for_leave_no_flag_and_use_the_first_model(fitted):
    X, _ = rows()
    model = fitted["ETANA"]
    session = model.open()
    while session.next_feature is not None:
        session.observe(X[600, session.next_feature])
    assert not session._state.volunteered.any()
    np.testing.assert_array_equal(session._state.posterior, model.predict_proba(X[600:601]))


def test_subsets_are_small_and_large_and_begin_as_rows_do():
    order = subset_orders(4000, 20, np.random.default_rng(0))
    known = (order >= 0).sum(axis=1)
    assert set(known.tolist()) == {20, 5}
    assert all(len(set(one[one >= 0].tolist())) == (one >= 0).sum() for one in order[:200])
    assert 0.45 < np.mean(order[:, 0] == 0) < 0.6  # half of them begin with the first column
    assert set(order[:, 0].tolist()) == set(range(20))


def test_weights_depend_on_the_number_of_known_values():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 9)) + 0.7 * y[:, None]
    model = AnyOrder.fit("ensemble", X[:600], y[:600], n_bins=4, n_classes=2, classifier=None, random_state=0)
    assert model.weights.shape == (4, 4)
    assert (model.weights >= 0.0).all()
    for n_known in (1, 3, 9):
        part = X[600:].copy()
        part[:, n_known:] = np.nan
        assert log_loss(model.posterior(part), y[600:]).mean() < np.log(2) - 0.03


def test_a_class_with_few_rows_and_one_column():
    X, y = np.arange(12.0)[:, None], np.r_[np.zeros(11), 1].astype(int)
    model = AnyOrder.fit("ensemble", X, y, n_bins=4, n_classes=2, classifier=None)
    np.testing.assert_allclose(model.posterior(X).sum(axis=1), 1.0)
