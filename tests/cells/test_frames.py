"""Acquisition for all rows of a frame with categories and missing values, as in sessions."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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


def rows(n=320):
    """Text, a category of pandas, and numbers, one in eight values missing."""
    rng = np.random.default_rng(0)
    y = rng.choice(["ill", "well"], n)
    known = rng.random((n, 4)) > 0.125
    colour = np.where(rng.random(n) < 0.7, np.where(y == "ill", "red", "blue"), "grey").astype(object)
    frame = pd.DataFrame(
        {
            "colour": np.where(known[:, 0], colour, None),
            "heat": np.where(known[:, 1], rng.normal(size=n) + 1.2 * (y == "ill"), np.nan),
            "ward": pd.Categorical(
                np.where(known[:, 2], rng.choice(["a", "b", "c"], n).astype(object), None)
            ),
            "pulse": np.where(known[:, 3], rng.normal(size=n) + 0.6 * (y == "ill"), np.nan),
        }
    )
    return frame, y


@pytest.mark.parametrize("name", METHODS)
def test_every_step_has_its_probabilities(name):
    frame, y = rows()
    model = METHODS[name].fit(frame[:200], y[:200])
    held = frame[200:240]
    cases = model.acquire(held)
    assert len(cases) == 40
    label, posterior, cost, n = (
        model.predict(held),
        model.predict_proba(held),
        model.cost_,
        model.n_features_used_,
    )
    for i, (case, (_, row)) in enumerate(zip(cases, held.iterrows(), strict=True)):
        assert (case.label, case.cost, len(case.features)) == (label[i], cost[i], n[i])
        assert case.posteriors.shape == (n[i] + 1, 2)
        np.testing.assert_allclose(case.posteriors.sum(axis=1), 1.0)
        np.testing.assert_array_equal(case.posteriors[-1], posterior[i])
        assert case.values == [row[feature] for feature in case.features]
        session = model.open()
        while session.next_feature is not None:
            value = row[session.next_feature]
            session.observe(None if pd.isna(value) else value)
        steps = [step for step in session.explain() if step["paid"]]
        assert [step["feature"] for step in steps] == case.features
        after = [[step["posterior"][one] for one in ("ill", "well")] for step in steps]
        np.testing.assert_allclose(np.reshape(after, (-1, 2)), case.posteriors[1:], atol=1e-12)
    assert sum(n) > 40


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_kind_of_frame_gives_the_same(convert):
    frame, y = rows()
    model = METHODS["AdaptiveIFC2F"].fit(frame[:200], y[:200])
    expected = model.acquire(frame[200:].reset_index(drop=True))
    whole = convert(frame)
    other = METHODS["AdaptiveIFC2F"].fit(whole[:200], y[:200]).acquire(whole[200:])
    for case, same in zip(expected, other, strict=True):
        assert (case.features, case.values, case.label, case.cost) == (
            same.features,
            same.values,
            same.label,
            same.cost,
        )
        np.testing.assert_array_equal(case.posteriors, same.posteriors)


def test_integers_become_numbers():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.column_stack([y * 3 + rng.integers(0, 2, 200), rng.integers(0, 9, 200)])
    model = METHODS["ETANA"].fit(X, y)
    assert model.acquire(X[:1])[0].values == [float(X[0, 0])]
    assert isinstance(model.acquire(X[0]).values[0], float)
