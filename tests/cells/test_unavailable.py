"""Features that cannot be acquired for a row: what is asked for in their place."""

import numpy as np
import pytest

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

METHODS = {
    "IFC2F": IFC2F(0.004, order="mrmr", random_state=0),
    "ETANA": ETANA(0.004, order="mrmr", random_state=0),
    "FETANA": FETANA(0.004, order="mrmr", n_iterations=300, random_state=0),
    "AdaptiveIFC2F": AdaptiveIFC2F(0.004, decision="discriminant", max_steps=4, random_state=0),
    "FixedSubset": FixedSubset(0.004),
    "AACO": AACO(0.004, n_subsets=20, n_stored=200, random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    """Columns 1 and 2 are noisy copies of one measurement, column 0 is noise; a fifth of the rows are positive."""
    rng = np.random.default_rng(0)
    y = (rng.random(900) < 0.2).astype(int)
    X = rng.normal(size=(900, 4)) + np.array([0.0, 2.0, 1.8, 0.8]) * y[:, None]
    return X, y


def before(features, column):
    return features[: features.index(column)] if column in features else features


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in ("AACO", "IFC2F") else name for name in METHODS],
)
def test_the_next_best_is_asked_for_and_noise_changes_nothing(name, rows):
    X, y = rows
    model = METHODS[name].fit(X[:500], y[:500])
    held, label = X[500:700], y[500:700]
    plain = model.acquire(held)
    for trace, other in zip(plain, model.acquire(held, unavailable=[0]), strict=True):
        assert 0 not in other.features
        if name != "AACO":  # its subsets without the column are others
            kept = before(trace.features, 0)
            assert other.features[: len(kept)] == kept
    usual = plain[0].features[0]
    without = model.acquire(held, unavailable=[usual])
    assert all(trace.features and usual not in trace.features for trace in without)
    right = np.mean([trace.label == truth for trace, truth in zip(without, label, strict=True)])
    assert right > np.mean(label == 0) + 0.02


def test_one_row_is_refused_its_own_columns(rows):
    X, y = rows
    model = METHODS["AdaptiveIFC2F"].fit(X[:500], y[:500])
    mask = np.zeros((3, 4), dtype=bool)
    mask[1, [1, 2]] = True
    found = model.acquire(X[500:503], unavailable=mask)
    alone = [model.acquire(X[500 + i], unavailable=np.flatnonzero(mask[i])) for i in range(3)]
    assert [one.features for one in found] == [one.features for one in alone]
    assert not {1, 2} & set(found[1].features)


@pytest.mark.parametrize(
    ("unavailable", "words"),
    [(["nose"], "'nose', which is not a column"), ("ab", "list of columns"), ([True], "True"), (5, "got 5"),
     (np.zeros((2, 4), dtype=bool), r"shape \(2, 4\).*\(1, 4\)"), (np.zeros((1, 4)), "type float64")],
    ids=str,
)  # fmt: skip
def test_what_cannot_name_columns_is_rejected(unavailable, words, rows):
    X, y = rows
    model = METHODS["FixedSubset"].fit(X[:500], y[:500])
    with pytest.raises(ValueError, match=words):
        model.acquire(X[0], unavailable=unavailable)


@pytest.mark.parametrize("n_features", [1, 2, None])
def test_a_fixed_subset_acquires_the_next_best_instead_of_an_unavailable_column(rows, n_features):
    X, y = rows
    model = FixedSubset(0.004, n_features=n_features).fit(X[:500], y[:500])
    held = X[500:800]
    usual = model.acquire(held)[0].features
    without = model.acquire(held, unavailable=[usual[0]])
    spare = [name for name in (model.name_of(k) for k in range(len(model.candidates_))) if name not in usual]
    expected = [*usual[1:], *spare[:1]]
    assert {tuple(trace.features) for trace in without} == {tuple(expected)}
    assert without[0].cost == pytest.approx(0.004 * len(expected))
    session = model.open(unavailable=[usual[0]])
    while session.next_feature is not None:
        session.observe(held[0, session.next_feature])
    assert [step["feature"] for step in session.explain()] == expected
    assert session.decision == without[0].label
    np.testing.assert_array_equal(list(session.posterior.values()), without[0].posteriors[-1])
    if n_features == 1:
        right = np.mean([trace.label == truth for trace, truth in zip(without, y[500:800], strict=True)])
        assert right > np.mean(y[500:800] == 0) + 0.02
    assert model.acquire(held[:1], unavailable=[0, 1, 2, 3])[0].features == []


def test_the_columns_of_a_classifier_have_no_substitutes(rows):
    from sklearn.linear_model import LogisticRegression

    X, y = rows
    model = FixedSubset(0.004, n_features=1, classifier=LogisticRegression()).fit(X[:500], y[:500])
    [usual] = model.acquire(X[500]).features
    assert model.acquire(X[500], unavailable=[usual]).features == []
