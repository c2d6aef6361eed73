"""Merges that follow a stated rule instead of one pass: FIRES and OFS; and FCBF, whose window is that of one pass."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis import FCBF, FIRES, OFS


def rows(n=4000, classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12)) * np.r_[5.0, np.ones(11)]
    margin = X[:, 3] - X[:, 7] + 0.3 * rng.normal(size=n)
    return X, (margin > 0) + (margin > 1.5).astype(int) if classes == 3 else (margin > 0).astype(int)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("make", [FIRES, OFS], ids=["fires", "ofs"])
def test_merged_parts_select_what_one_pass_selects(make, classes):
    X, y = rows(classes=classes)
    options = {"half_life": np.inf} if make is FIRES else {}
    X = X / X.std(axis=0)
    parts = [make(2, **options).fit(X[i::8], y[i::8]) for i in range(8)]
    merged = tamis.merge_tree(parts)
    assert merged.get_support(indices=True).tolist() == [3, 7]
    assert merged.n_seen_ == 4000
    again = tamis.loads(tamis.dumps(merged)).partial_fit(X[:100], y[:100])
    assert again.get_support(indices=True).tolist() == [3, 7]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("make", [FIRES, OFS], ids=["fires", "ofs"])
def test_classes_in_another_order_are_the_same_classes(make, classes):
    X, y = rows(800, classes)
    names = np.array(["no", "yes", "very"])[y]
    first = make(3).partial_fit(X[:400], names[:400], classes=["no", "yes", "very"][:classes])
    same = make(3).partial_fit(X[400:], names[400:], classes=["no", "yes", "very"][:classes])
    other = make(3).partial_fit(X[400:], names[400:], classes=["very", "yes", "no"][3 - classes :])
    one, two = (tamis.loads(tamis.dumps(first)).merge(part) for part in (same, other))
    np.testing.assert_allclose(one.scores_, two.scores_, rtol=1e-9)
    assert one.classes_.tolist() == two.classes_.tolist()


def test_the_product_of_normal_posteriors():
    X, y = rows()
    options = {"update": "assumed-density", "scaling": None, "half_life": None, "sigma": 0.7}
    parts = [FIRES(2, **options).fit(X[i::2], y[i::2]) for i in range(2)]
    precision = sum(part.sigma_**-2.0 for part in parts) - 0.7**-2
    mean = sum(part.mu_ * part.sigma_**-2.0 for part in parts) / precision
    merged = parts[0].merge(parts[1])
    np.testing.assert_allclose(merged.sigma_, precision**-0.5, rtol=1e-12)
    np.testing.assert_allclose(merged.mu_, mean, rtol=1e-12)


def test_evidence_of_the_earlier_part_fades():
    X, y = rows()
    early, late = (
        FIRES(2, half_life=50).fit(X[:2000, ::-1], y[:2000]),
        FIRES(2, half_life=50).fit(X[2000:], y[2000:]),
    )
    merged = tamis.loads(tamis.dumps(early)).merge(late)
    np.testing.assert_allclose(merged.scores_, late.scores_, rtol=1e-6)
    np.testing.assert_allclose(late.merge(early, when="before").scores_, merged.scores_, rtol=1e-12)


def test_the_mean_of_weights_is_truncated():
    X, y = rows(600)
    parts = [OFS(4).fit(X[:400], y[:400]), OFS(4).fit(X[400:], y[400:])]
    vectors = [
        part._scale * part._weights[0] * (1 if part._order[0] == parts[0]._order[0] else -1) for part in parts
    ]
    mean = (2 * vectors[0] + vectors[1]) / 3
    mean[np.argsort(-abs(mean), kind="stable")[4:]] = 0.0
    np.testing.assert_allclose(parts[0].merge(parts[1])._weights[0], mean, rtol=1e-12)


@pytest.mark.parametrize("n_later", [1, 150, 400])
def test_a_merged_window_is_that_of_one_pass(n_later):
    """Bit for bit below a window; from there on the bins are cut at another row."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(900, 4)), rng.integers(0, 3, 900)
    X[:, 0] += y
    X[:, 2] = rng.integers(0, 5, 900)
    X[rng.random(X.shape) < 0.05] = np.nan
    new = lambda part: FCBF(window=400, categorical=[2]).partial_fit(X[part], y[part], classes=[0, 1, 2])  # noqa: E731
    parts = [new(slice(0, 900 - n_later)), new(slice(900 - n_later, 900))]
    whole = new(slice(0, 900))
    merged = tamis.loads(tamis.dumps(parts[0])).merge(parts[1])
    np.testing.assert_array_equal(merged._counts.rows()[0], whole._counts.rows()[0])
    np.testing.assert_array_equal(merged._counts.class_counts, whole._counts.class_counts)
    if n_later < 400:
        np.testing.assert_array_equal(merged.scores_, whole.scores_)
    else:
        np.testing.assert_allclose(merged.scores_, whole.scores_, atol=0.01)
    assert parts[1].merge(parts[0], when="before").n_seen_ == merged.n_seen_ == 900
