"""The discriminant of any columns against matrix algebra, and against what it must not mind."""

import numpy as np
import pytest

from tamis.cells.discriminant import Discriminant, posterior_of
from tamis.cells.ensemble import fit_evidence_weight


def rows(rng, n=400, K=5, n_classes=3):
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, K)) + rng.normal(size=(n_classes, K))[y]
    X[:, 1] += X[:, 0]
    return X, y


def by_algebra(model, x, known):
    """P(class | known columns), (1), with the inverse of the covariance of just these features."""
    at = np.flatnonzero(np.repeat(known, model.n_bins))
    inverse = np.linalg.inv(model._covariance[np.ix_(at, at)])
    means = model._means[:, at]
    score = means @ inverse @ x[at] - np.einsum("cd,de,ce->c", means, inverse, means) / 2
    joint = model.prior * np.exp(model.evidence_weight * (score - score.max()))
    return joint / joint.sum()


def test_any_columns_as_matrix_algebra_has_them(rng):
    X, y = rows(rng)
    model = Discriminant(n_bins=3, n_classes=3).fit(X, y)
    model.evidence_weight = 0.7
    some = X[:60].copy()
    some[rng.random(some.shape) < 0.4] = np.nan
    some[:6] = [
        [v if j < k else np.nan for j, v in enumerate(X[k])] for k in range(6)
    ]  # the first k, none at all
    found, features = model.posterior(some), model._features(some).reshape(60, -1)
    expected = [by_algebra(model, x, ~np.isnan(row)) for x, row in zip(features, some, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(found[0], model.prior, rtol=1e-15)


def test_step_by_step_in_any_order(rng):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = Discriminant(n_bins=4, n_classes=3).fit(X, y)
    order = np.array([rng.permutation(5) for _ in X])
    steps = model.evidence(X, order)
    for k in range(6):
        known = np.full(X.shape, np.nan)
        np.put_along_axis(known, order[:, :k], np.take_along_axis(X, order[:, :k], axis=1), axis=1)
        np.testing.assert_allclose(steps[k], model.evidence(known)[-1], rtol=1e-8, atol=1e-9)


def test_more_rows_are_as_all_at_once(rng):
    X, y = rows(rng)
    whole = Discriminant(n_bins=3, n_classes=3).fit(X, y)
    parts = Discriminant(n_bins=3, n_classes=3).fit(X, y)
    parts._count[:], parts._sum[:], parts._products[:] = (
        0.0,
        0.0,
        0.0,
    )  # the bins of all rows, the sums of none
    for part in (slice(0, 130), slice(130, 131), slice(131, 400)):
        parts.partial_fit(X[part], y[part], 1.0)
    np.testing.assert_allclose(parts.posterior(X), whole.posterior(X), rtol=1e-9)
    faded = Discriminant(n_bins=3, n_classes=3).fit(X, y).partial_fit(X, y, 0.5)
    np.testing.assert_allclose(faded._count.sum(), (1 - 0.5**400) / 0.5 + 400 * 0.5**400)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_numbers_of_any_size(rng, scale):
    X, y = rows(rng)
    plain = Discriminant(n_bins=4, n_classes=3).fit(X, y).posterior(X)
    np.testing.assert_allclose(
        Discriminant(n_bins=4, n_classes=3).fit(X * scale, y).posterior(X * scale), plain, rtol=1e-6
    )


def test_constant_duplicate_and_absent_columns(rng):
    X, y = rows(rng)
    wide = np.column_stack([X, X[:, 0], np.ones(len(X)), np.full(len(X), np.nan)])
    found = Discriminant(n_bins=4, n_classes=3).fit(wide, y).posterior(wide)
    assert np.isfinite(found).all()
    assert (found.argmax(axis=1) == y).mean() > 0.6


def test_a_class_without_rows_is_never_believed(rng):
    X, y = rows(rng)
    found = Discriminant(n_bins=3, n_classes=5).fit(X, y).posterior(X)
    assert not found[:, 3:].any()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_evidence_of_noise_is_worth_nothing(rng):
    y = rng.integers(0, 2, 200)
    evidence = rng.normal(size=(1, 200, 2))
    prior = np.full((200, 2), 0.5)
    assert fit_evidence_weight(evidence, prior, y) < 0.15
    evidence[0, np.arange(200), y] += 3.0
    assert fit_evidence_weight(evidence, prior, y) > 0.8


def test_worth_is_the_likeliest_of_those_tried(rng):
    y = rng.integers(0, 3, 100)
    evidence = 2 * rng.normal(size=(2, 100, 3))
    evidence[:, np.arange(100), y] += 1.0
    prior = rng.dirichlet(np.ones(3), 100)

    def loss(weight):
        return -sum(
            np.log(posterior_of(evidence[s, i], prior[i], weight)[y[i]]) for s in range(2) for i in range(100)
        )

    found = fit_evidence_weight(evidence, prior, y)
    assert loss(found) == pytest.approx(min(loss(w) for w in np.linspace(0, 1.2, 25)))


def test_a_class_that_cannot_be_does_not_count_for_what_evidence_is_worth(rng):
    y = rng.integers(0, 2, 50)
    evidence = np.where(np.arange(2) == y[:, None], 0.0, -1.5) + rng.normal(size=(50, 2))
    prior = np.full((50, 2), 0.5)
    impossible = np.column_stack([evidence - 400.0, np.zeros(50)]), np.column_stack([prior, np.zeros(50)])
    assert fit_evidence_weight(*impossible, y) == fit_evidence_weight(evidence, prior, y)


def test_where_all_is_right_evidence_is_not_believed_more_than_it_takes():
    evidence, prior = np.array([[0.0, -36.0]]), np.full((1, 2), 0.5)
    assert (
        1.0 < fit_evidence_weight(evidence, prior, np.array([0])) < 1.1
    )  # from there on no label is in doubt
