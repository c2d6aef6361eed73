"""States merge: associative, commutative, as old as they are, whatever the parts and their order."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.catalog import CATALOG
from tamis.rows.forward.forward import ForwardPartialCorrelation
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.contingency import Contingency
from tamis.summaries.moments import RunningMoments
from tamis.summaries.quantiles import QuantileSummary

# Largest difference of a score, as a fraction of the largest one, where bins are exact: as docs/persistence.md says.
TOLERANCE = {"t-score": 1e-12, "fisher": 1e-12, "mi": 1e-12, "chi2": 1e-12, "gini": 1e-12, "screening": 1e-12}
SCREENS = [entry for entry in CATALOG if entry.key in TOLERANCE]
N = 160


def rows(seed: int = 0) -> tuple[Any, Any]:
    """Rows of three classes; the third value of few, the fourth constant, the fifth with gaps."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N, 5)), rng.integers(0, 3, N)
    X[:, 0] += y
    X = np.round(X, 1)  # few values are counted one by one: exact
    X[:, 3] = 7.0
    X[rng.random(N) < 0.2, 4] = np.nan
    return X, y


partitions = st.tuples(
    st.lists(st.integers(1, N - 1), max_size=9, unique=True).map(sorted), st.integers(0, 2**32 - 1)
)


def bounds(cuts: list[int]) -> list[slice]:
    ends = [0, *cuts, N]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def at_random(states: list[Any], rng: np.random.Generator, **how: Any) -> Any:
    """Merge neighbours in any order until one is left."""
    states = list(states)
    while len(states) > 1:
        i = int(rng.integers(len(states) - 1))
        if how and rng.random() < 0.5:  # the same from the other side
            states[i] = states.pop(i + 1).merge(states[i], when="before")
        else:
            right = states.pop(i + 1)
            states[i].merge(right, **how)
    return states[0]


def assert_same_scores(one: Any, other: Any, tolerance: float) -> None:
    largest = np.abs(other.scores_).max()
    assert np.abs(one.scores_ - other.scores_).max() <= tolerance * largest
    assert one.n_seen_ == other.n_seen_
    np.testing.assert_allclose(one.n_observed_, other.n_observed_, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.key)
@given(partition=partitions)
@settings(max_examples=10, deadline=None)
def test_any_parts_in_any_order_are_the_whole(entry: Any, partition: tuple[list[int], int]) -> None:
    (cuts, seed), (X, y) = partition, rows()
    rng = np.random.default_rng(seed)
    new = lambda part: entry.load()(2).partial_fit(X[part], y[part], classes=[0, 1, 2])  # noqa: E731
    parts = [new(part) for part in bounds(cuts)]
    shuffled = [parts[i] for i in rng.permutation(len(parts))]
    before = [tamis.dumps(part) for part in parts]
    tree = tamis.merge_tree(shuffled)
    assert [tamis.dumps(part) for part in parts] == before
    whole = new(slice(None))
    assert_same_scores(tree, whole, TOLERANCE[entry.key])
    assert_same_scores(at_random(shuffled, rng), whole, TOLERANCE[entry.key])


@pytest.mark.slow
@pytest.mark.parametrize("per", ["row", "batch"])
@pytest.mark.parametrize("clock", ["global", "class"])
@pytest.mark.parametrize("key", ["screening", "mi"])
@given(partition=partitions)
@settings(max_examples=6, deadline=None)
def test_parts_that_fade_are_as_old_as_in_one_pass(
    key: str, clock: str, per: str, partition: tuple[list[int], int]
) -> None:
    (cuts, seed), (X, y) = partition, rows()
    options: dict[str, Any] = {"half_life": 30 if per == "row" else 1.5, "fade_per": per, "clock": clock}
    make = {"screening": tamis.Screening, "mi": tamis.MutualInformation}[key]
    new = lambda: make(2, **options)  # noqa: E731
    whole, parts = new(), []
    for part in bounds(cuts):
        whole.partial_fit(X[part], y[part], classes=[0, 1, 2])
        parts.append(new().partial_fit(X[part], y[part], classes=[0, 1, 2]))
    tree = tamis.merge_tree(parts, when="after")
    merged = at_random(parts, np.random.default_rng(seed), when="after")
    # The moments are T's, the bins of few values exact; both keep 12 digits.
    for one in (tree, merged):
        assert_same_scores(one, whole, 1e-11 if key == "mi" else 1e-12)


@pytest.mark.parametrize("per", ["row", "batch"])
@pytest.mark.parametrize("clock", ["global", "class"])
@given(cuts=st.lists(st.integers(1, N - 1), min_size=2, max_size=2, unique=True).map(sorted))
@settings(max_examples=8, deadline=None)
def test_rows_that_went_elsewhere_make_the_earlier_part_older(per: str, clock: str, cuts: list[int]) -> None:
    X, y = rows()
    options: dict[str, Any] = {"half_life": 30 if per == "row" else 1.5, "fade_per": per, "clock": clock}
    whole, parts = tamis.Screening(2, **options), []
    for i, part in enumerate(bounds(cuts)):  # rows of hardly any weight pass, but do not count
        weights = np.full(len(y[part]), 1e-90 if i == 1 else 1.0)
        whole.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=weights)
        parts.append(tamis.Screening(2, **options).partial_fit(X[part], y[part], classes=[0, 1, 2]))
    early, lost, late = parts
    counts = [np.bincount(y[part], minlength=3) for part in bounds(cuts)[1:]]
    ticks = sum(counts if per == "row" else [np.minimum(c, 1) for c in counts])
    if clock == "global":
        age: Any = N - cuts[0] if per == "row" else 2
    else:
        age = dict(enumerate(ticks.tolist()))
    other_way = copy.deepcopy(late).merge(early, when="before", age=age)
    merged = early.merge(late, age=age)
    for one in (merged, other_way):
        one.n_seen_ += lost.n_seen_
        assert_same_scores(one, whole, 1e-12)
    later = tamis.Screening(2, **options).partial_fit(X[:9], y[:9], classes=[0, 1, 2])
    assert_same_scores(  # and goes on as old as it is
        copy.deepcopy(later).merge(merged, "after"),
        copy.deepcopy(later).merge(whole, "after"),
        1e-12,
    )


@pytest.mark.parametrize(
    ("options", "how", "words"),
    [
        ({"half_life": 9}, {}, "when is None, but rows fade: state whether .*; or give the age of this one"),
        ({"half_life": 9}, {"age": -1}, r"age must be a number in \[0, inf\), got -1"),
        ({"half_life": 9}, {"age": np.inf}, "age must be a number"),
        ({"half_life": 9}, {"when": "together", "age": 3}, "age=3, but parts that end together do not age"),
        ({"half_life": 9}, {"age": {0: 1}}, "age={0: 1} has a clock for each class, but clock='global'"),
    ],
)
def test_an_age_that_says_nothing_is_refused(options: Any, how: Any, words: str) -> None:
    X, y = rows()
    one, new = tamis.TScore(2, **options).fit(X, y), tamis.TScore(2, **options)
    before = tamis.dumps(one)
    for either in (one, new):
        with pytest.raises(ValueError, match=words):
            either.merge(one, **how)
    assert tamis.dumps(one) == before
    assert not hasattr(new, "n_seen_")


@given(partition=partitions)
@settings(max_examples=10, deadline=None)
def test_parts_of_a_matrix_that_fades_are_as_old_as_in_one_pass(partition: tuple[list[int], int]) -> None:
    (cuts, seed), (X, y) = partition, rows()
    X, rng = np.nan_to_num(X), np.random.default_rng(seed)
    new = lambda part: ForwardPartialCorrelation(2, half_life=40, alpha_drift=None).partial_fit(  # noqa: E731
        X[part], y[part], classes=[0, 1, 2]
    )
    whole = new(slice(None))
    parts = [new(part) for part in bounds(cuts)]
    for one in (tamis.merge_tree(parts, when="after"), at_random(parts, rng, when="after")):
        one.merge(new(slice(0, 0 + 7)))  # blocks that wait are taken in
        both = copy.deepcopy(whole).merge(new(slice(0, 7)))
        np.testing.assert_allclose(
            one._scatter.covariance(), both._scatter.covariance(), rtol=1e-9, atol=1e-12 * 40
        )


@given(partition=partitions, tree=st.booleans())
@settings(max_examples=8, deadline=None)
def test_the_certificate_of_merged_quantiles_holds(partition: tuple[list[int], int], tree: bool) -> None:
    cuts, seed = partition
    rng, eps = np.random.default_rng(seed), 0.02
    X = np.concatenate([np.sort(rng.normal(size=(10 * N, 2)), axis=0), rng.normal(size=(10 * N, 2))], axis=1)
    y = rng.integers(0, 2, len(X))
    parts = []
    for part in bounds(cuts):
        summary = QuantileSummary(4, 2, eps)
        rows_of = slice(10 * part.start, 10 * part.stop)
        summary.update(X[rows_of], y[rows_of])
        parts.append(summary)
    shuffled = [parts[i] for i in rng.permutation(len(parts))]
    merged = tamis.merge_tree(shuffled) if tree else at_random(shuffled, rng)
    certified = merged.rank_error(by_class=True)
    at = np.quantile(X, np.arange(1, 40) / 40, axis=0).T
    below = merged.weight_below(at)
    for c in range(2):
        true = (X[y == c][:, :, None] <= at).sum(axis=0)
        error = np.abs(below[:, :, c] - true).max(axis=1) / np.count_nonzero(y == c)
        assert (error <= certified[:, c] + 1e-12).all()
    assert certified.max() <= eps
    assert merged.rank_error().max() <= eps
    np.testing.assert_allclose(merged.weight(), np.bincount(y), rtol=0)


@pytest.mark.parametrize("key", ["mi", "screening", "t-score"])
def test_parts_that_began_as_blanks_of_one_are_together_as_large_as_one(key: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 4)), rng.integers(0, 2, 4000)
    X[:, 1] += 0.1 * y
    make = next(entry for entry in CATALOG if entry.key == key).load()
    options = {"dependence": "independent"}  # every eighth row is another series than all rows
    whole, first = make(2, **options).fit(X, y), make(2, **options).fit(X[:256], y[:256])
    before = tamis.dumps(first)
    parts = [tamis.loads(tamis.dumps(first.clone_unfitted())).partial_fit(X[i::8], y[i::8]) for i in range(8)]
    assert tamis.dumps(first) == before
    merged = tamis.merge_tree(parts)
    assert merged.n_seen_ == 4000
    np.testing.assert_allclose(merged.pvalues_, whole.pvalues_, rtol=1e-9)  # counted in the same bins
    assert len(tamis.dumps(merged)) < 1.2 * len(tamis.dumps(whole))
    with pytest.raises(ValueError, match="not fitted"):
        make(2).clone_unfitted()
    nothing = first.clone_unfitted()
    assert (nothing.warming_up_, nothing.n_seen_) == (True, 0)
    np.testing.assert_allclose(nothing.merge(whole).scores_, whole.scores_, rtol=1e-12)


def test_blanks_know_what_a_level_needs(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(4000, 4)), rng.integers(0, 2, 4000)
    X[:, 1] += y
    new = tamis.ChiSquare(None, level=0.05, categorical=[3])
    X[:, 3] = rng.integers(0, 9, 4000)
    first = new.fit(X[:256], y[:256])
    merged = tamis.merge_tree([first.clone_unfitted().partial_fit(X[i::4], y[i::4]) for i in range(4)])
    assert merged.get_support(indices=True).tolist() == [1]


def moments(part: Any, X: Any, y: Any) -> Any:
    found = RunningMoments(5)
    found.update(X[part])
    return found


def by_class(part: Any, X: Any, y: Any) -> Any:
    found = ClassMoments(5, 3)
    found.update(X[part], y[part])
    return found


def counts(part: Any, X: Any, y: Any) -> Any:
    found = Contingency(5, 80, 3)
    found.update(np.abs(np.round(10 * X[part])), y[part])
    return found


READ = {
    moments: lambda state: np.stack([state.mean, state.variance(), np.full(5, state.weight)]),
    by_class: ClassMoments.read,
    counts: Contingency.table,
}


@pytest.mark.parametrize("make", READ, ids=lambda make: make.__name__)
@given(partition=partitions, keep=st.floats(0.01, 1.0))
@settings(max_examples=10, deadline=None)
def test_summaries_merge_and_age_by_fade(make: Any, partition: tuple[list[int], int], keep: float) -> None:
    (cuts, seed), (X, y) = partition, rows()
    X, rng = np.nan_to_num(X), np.random.default_rng(seed)
    parts = [make(part, X, y) for part in bounds(cuts)]
    shuffled = [parts[i] for i in rng.permutation(len(parts))]
    whole = READ[make](make(slice(None), X, y))
    for one in (tamis.merge_tree(shuffled), at_random(shuffled, rng)):
        np.testing.assert_allclose(READ[make](one), whole, rtol=1e-12, atol=1e-13)
    late, early, twice = (make(part, X, y) for part in (slice(60, N), slice(60), slice(60)))
    options = {} if make is moments else {"codes": y[60:]}
    values = np.abs(np.round(10 * X)) if make is counts else X
    twice.update(values[60:], **options, keep=keep)  # what one pass does
    early.fade(keep)
    early.merge(late)
    np.testing.assert_allclose(READ[make](early), READ[make](twice), rtol=1e-12, atol=1e-13)


class Counted:
    """A state that says how many merges it went through."""

    def __init__(self, items: str) -> None:
        self.items, self.depth = items, 0

    def merge(self, other: Counted) -> None:
        self.items += other.items
        self.depth = 1 + max(self.depth, other.depth)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 26])
def test_a_tree_is_as_high_as_the_logarithm_and_keeps_the_order(n: int) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"[:n]
    states = [Counted(letter) for letter in letters]
    merged = tamis.merge_tree(state for state in states)
    assert merged.items == letters
    assert merged.depth <= int(np.ceil(np.log2(n))) + (n > 1)
    assert merged not in states
    assert [state.items for state in states] == list(letters)


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(ValueError, match="states is empty: give at least one"):
        tamis.merge_tree([])
    with pytest.raises(TypeError, match=r"An? EFS cannot be merged: its catalogue entry states the reason"):
        tamis.merge_tree([tamis.EFS()])
    with pytest.raises(TypeError, match="A TScore can be merged only with another one, got a FisherScore"):
        tamis.merge_tree([tamis.TScore(), tamis.FisherScore()])
