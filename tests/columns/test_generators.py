"""Generators make what the plain twin makes, each product once; a walk can be cut anywhere and taken up again."""

from __future__ import annotations

import os
import shutil
import signal
import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import AlphaInvesting, PenalisedSelector, load, save
from tamis.columns.generators import (
    CandidateBlock,
    Chain,
    Columns,
    FeatureGenerator,
    FromIterable,
    Interactions,
    Logs,
    Originals,
    Powers,
    PrincipalComponents,
    Ratios,
    explore,
)
from tamis.columns.generators.transforms import shift_and_floor
from tamis.errors import CheckpointError, DataError
from tests.twins import column_generators as twin


def table(rng, n=120, p=6):
    X = rng.normal(size=(n, p))
    y = X[:, 1] - X[:, 1] * X[:, 4] + 0.6 * X[:, 2] + X[:, 1] * X[:, 4] * X[:, 2]
    return X, y + 0.3 * rng.normal(size=n)


def everything(X, squares=True, degree=3):
    return Chain(PrincipalComponents(X, 2), Originals(X), Powers(X, (7, 0.5)), Logs(X),
                 Interactions(X, of="selected originals", squares=squares, degree=degree),
                 Ratios(X, of="selected originals"))  # fmt: skip


def drawn(stream, selector, limit=None):
    """The candidates of a stream until it ends or the selector stops: names and values."""
    names, values = [], []
    while selector.stopped_ is None and (made := stream.next_features(selector, limit)) is not None:
        selector.offer_many(made[1], made[0])
        names += made[0]
        values.append(made[1].toarray() if sp.issparse(made[1]) else np.array(made[1]))
    return names, np.hstack(values)


# -- what is made ------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), p=st.integers(3, 7), limit=st.integers(1, 40), squares=st.booleans(),
    degree=st.integers(2, 4),
)  # fmt: skip
def test_equals_its_twin_however_many_are_drawn_at_once(seed, p, limit, squares, degree):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, p))
    y = X[:, 0] * X[:, 1] + X.sum(axis=1) + 0.5 * X[:, 0] ** 2 * X[:, -1] + rng.normal(size=60)
    fast = PenalisedSelector("aic").start(y)
    names, values = drawn(everything(X, squares, degree), fast, limit)
    plain = twin.OneByOne(
        twin.components(X, 2), twin.originals(X), twin.powers(X, (7, 0.5)), twin.logs(X),
        twin.interactions(X, squares, degree), twin.ratios(X),
    )  # fmt: skip
    slow, expected = PenalisedSelector("aic").start(y), []
    while slow.stopped_ is None and (made := plain.next_features(slow)) is not None:
        slow.offer(made[1], made[0])
        expected.append(made)
    assert fast.selected_ == slow.selected_
    assert names[: len(expected)] == [name for name, _ in expected]
    np.testing.assert_allclose(values[:, : len(expected)].T, [column for _, column in expected], 1e-7, 1e-9)


@given(p=st.integers(1, 12), squares=st.booleans(), seed=st.none() | st.integers(0, 9))
@settings(max_examples=20)
def test_every_pair_comes_once(p, squares, seed):
    X = np.random.default_rng(0).normal(size=(9, p))
    selector = AlphaInvesting().start(np.arange(9.0))
    stream = Interactions(X, of="originals", squares=squares, random_state=seed)
    made = iter(lambda: stream.next_features(selector, 5), None)
    pairs = [
        tuple(sorted(name.replace("^2", f"*{name[:-2]}").split("*"))) for names, _ in made for name in names
    ]
    assert len(set(pairs)) == len(pairs) == p * (p + 1) // 2 - (0 if squares else p)


@pytest.mark.parametrize("kind", ["sparse", "frame", "memory map"])
def test_any_kind_of_table_gives_the_same(kind, rng, tmp_path):
    X, y = table(rng)
    X[rng.random(X.shape) < 0.5] = 0
    given = {"sparse": sp.csr_matrix, "frame": lambda a: pd.DataFrame(a).add_prefix("x")}.get(kind)
    if given is None:
        np.save(tmp_path / "X.npy", X)
        other = np.load(tmp_path / "X.npy", mmap_mode="r")
    else:
        other = given(X)
    before = [PenalisedSelector("aic").start(y) for _ in range(2)]
    (names, values), (others, theirs) = (
        drawn(everything(t), s) for t, s in zip([X, other], before, strict=True)
    )
    assert names == others
    np.testing.assert_allclose(values, theirs, rtol=1e-9, atol=1e-12)
    assert before[0].selected_ == before[1].selected_


def test_products_of_sparse_columns_stay_sparse_and_of_a_memory_map_are_made_in_parts(rng, tmp_path):
    S = sp.random(200, 50, 0.1, random_state=0, format="csc")
    selector = AlphaInvesting().start(rng.normal(size=200))
    made = Interactions(S, of="originals").next_features(selector)
    assert sp.issparse(made[1])
    assert sp.issparse(Powers(S).next_features(selector)[1])
    big = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", shape=(100, 60_000), dtype=np.float64)
    big[:] = rng.normal(size=(100, 1))
    big[:, 7] = y = rng.normal(size=100)
    selector = AlphaInvesting(trace="selected", max_features=1)
    stream = Chain(Originals(big), Interactions(big))
    tracemalloc.start()
    assert PrincipalComponents(big, 2).next_features(AlphaInvesting().start(y))[0] == ["pc0", "pc1"]
    found = explore(selector, stream, y + 0.1 * rng.normal(size=100), max_candidates=90_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert selector.selected_ == ["x7"]
    assert found.recipes.names == ["x7"]
    assert peak < 0.9 * big.nbytes


def test_a_generator_reacts_to_what_was_accepted(rng):
    X, y = table(rng)
    selector = AlphaInvesting(target_fdr=0.05).start(y + X[:, 4])
    stream = Interactions(X)
    assert stream.next_features(selector) is None
    selector.offer(X[:, 4], "x4")
    names, _ = stream.next_features(selector)
    assert names == ["x4*x0", "x4*x1", "x4*x2", "x4*x3", "x4^2", "x4*x5"]
    assert stream.next_features(selector) is None
    selector.offer(X[:, 1], "x1")
    assert stream.next_features(selector)[0] == ["x1*x0", "x1^2", "x1*x2", "x1*x3", "x1*x5"]


def test_a_chain_goes_round_until_nothing_is_left(rng):
    """A logarithm that was accepted is multiplied, and no power comes from two generators."""
    X = rng.lognormal(size=(300, 4))
    y = np.log(X[:, 2]) * (1 + X[:, 3]) + 0.1 * rng.normal(size=300)
    stream = Chain(Interactions(X), Powers(X, of="selected"), Logs(X))
    selector = AlphaInvesting(target_fdr=0.05).start(y)
    names, _ = drawn(stream, selector)
    assert names[:4] == ["log(x0)", "log(x1)", "log(x2)", "log(x3)"]
    assert "log(x2)*x3" in selector.selected_
    assert max(Counter(names).values()) == 1
    both = Chain(Originals(X), Powers(X, (2, 3)), Interactions(X, of="originals"))
    names, _ = drawn(both, AlphaInvesting().start(y))
    assert max(Counter(names).values()) == 1


def test_the_seed_shuffles_inside_blocks(rng):
    X, y = table(rng)
    runs = [
        drawn(Chain.published(X, 2, random_state=seed), AlphaInvesting().start(y))[0]
        for seed in (1, 1, 2, None)
    ]
    assert runs[0] == runs[1] != runs[2]
    assert all(run[:2] == ["pc0", "pc1"] and sorted(run[2:8]) == [f"x{j}" for j in range(6)] for run in runs)


@pytest.mark.parametrize("shape", [(40, 90), (90, 40)])
@pytest.mark.parametrize("scale", [True, False])
def test_components_are_those_of_a_singular_value_decomposition(shape, scale, rng):
    X = rng.normal(size=shape) * rng.uniform(1, 5, size=shape[1]) + 7
    stream = PrincipalComponents(X, 5, scale=scale)
    _, found = drawn(stream, AlphaInvesting().start(rng.normal(size=shape[0])))
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) if scale else 1)
    left, size, _ = np.linalg.svd(Z, full_matrices=False)
    np.testing.assert_allclose(np.abs(found), np.abs(left * size)[:, :5], atol=1e-8)
    few = PrincipalComponents(np.outer(np.arange(9.0), [1, 2, 3]), 5)
    assert drawn(few, AlphaInvesting().start(rng.normal(size=9)))[0] == ["pc0"]


# -- recipes -----------------------------------------------------------------------------------------------


def test_recipes_make_the_features_again_and_are_saved_with_the_selector(rng, tmp_path):
    X, y = table(rng, n=300)
    stream = everything(X)
    selector = PenalisedSelector("aic").start(y)
    names, values = drawn(stream, selector)
    recipes = stream.recipes(selector)
    assert recipes.names == selector.get_feature_names_out().tolist()
    assert {type(recipes[name]).__name__ for name in recipes} >= {
        "Column",
        "Component",
        "Product",
        "Power",
        "Ratio",
    }
    np.testing.assert_allclose(
        recipes.transform(X), values[:, [names.index(name) for name in recipes]], rtol=1e-9
    )
    path = save({"selector": selector, "recipes": recipes}, tmp_path / "found.tamis")
    new = rng.normal(size=(20, 6))
    again = load(path)["recipes"]
    np.testing.assert_array_equal(again.transform(new), recipes.transform(new))
    as_frame = (
        pd.DataFrame(new).add_prefix("x").assign(text="a")[["text", *(f"x{j}" for j in (3, 1, 0, 2, 5, 4))]]
    )
    np.testing.assert_allclose(again.transform(as_frame), recipes.transform(new), rtol=1e-12)


def test_new_rows_beyond_the_old_ones_stay_finite(rng):
    X = rng.lognormal(size=(50, 2)) - 0.2
    X[0, 1] = 0
    stream = Chain(Logs(X), Ratios(X, of="originals"))
    selector = AlphaInvesting(initial_wealth=1.0, payout=0.9).start(
        np.log(X[:, 0] + 0.5) + 1e-3 * rng.normal(size=50)
    )
    drawn(stream, selector)
    stream.book.recipes.clear()
    for part, name in ((stream.parts[0], "log(x0)"), (stream.parts[1], "x0/x1")):
        recipe = part._recipe("x0", 0 if name[0] == "l" else 1)
        rows = Columns(np.array([[-1e6, 0.0], [1.0, -1e-300]]))
        assert np.isfinite(recipe.values(rows)).all()
        assert str(recipe).startswith(name.rstrip(")"))


@pytest.mark.parametrize("of", ["selected", "".join(["sel", "ected"])])  # a text of a file is another object
def test_a_selected_column_of_another_source_is_a_parent(rng, of):
    frame = pd.DataFrame(rng.lognormal(size=(200, 2)), columns=list("ab"))
    y = frame["a"] / frame["b"] + 0.01 * rng.normal(size=200)
    selector = AlphaInvesting().fit_stream(Chain(Originals(frame), Ratios(frame[["b"]], of=of)), y)
    assert [record["name"] for record in selector.trace_] == ["a", "b", "a/b", "b/a"]
    assert "a/b" in selector.selected_


def test_missing_values_are_treated_as_the_selector_says(rng):
    X, y = table(rng, 300)
    X[5, 1] = np.nan
    with pytest.raises(DataError, match="'x1' contains NaN in row 5"):
        explore(AlphaInvesting(), Chain.published(X, 0), y)
    found = explore(AlphaInvesting(missing="mean", target_fdr=0.05), Chain.published(X, 2), y)
    assert {"x1", "x1*x4"} <= set(found.selector.selected_)
    known = np.delete(X, 5, axis=0)
    at = found.recipes.names.index("x1*x4")
    assert found.transform(X)[5, at] == pytest.approx((known[:, 1] * known[:, 4]).mean())
    refused = explore(AlphaInvesting(target_fdr=0.05), Chain.published(known, 0), np.delete(y, 5))
    with pytest.raises(DataError, match=r"Feature 'x1.*' is nan in row 5"):
        refused.transform(X)
    with pytest.raises(DataError, match="3 features, but the features were computed from 6"):
        refused.transform(X[:, :3])
    with pytest.raises(DataError, match="no column 'x1'"):
        refused.transform(pd.DataFrame({"x0": [1.0]}))


def test_names_that_look_like_formulas_are_told_apart(rng):
    X = rng.normal(size=(80, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "a*b"])
    y = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 0] * X[:, 2] + 0.01 * rng.normal(size=80)
    stream = Chain(Originals(frame), Interactions(frame, of="originals"))
    selector = AlphaInvesting(target_fdr=0.05).fit_stream(stream, y)
    assert set(selector.selected_) == {"a*b", "(a*b)", "a*(a*b)"}
    values = dict(zip(selector.selected_, stream.recipes(selector).transform(frame).T, strict=True))
    np.testing.assert_allclose(values["a*b"], X[:, 2])
    np.testing.assert_allclose(values["(a*b)"], X[:, 0] * X[:, 1])


# -- long walks --------------------------------------------------------------------------------------------


def alike(one, other):
    assert one.selected_ == other.selected_
    for field in one.trace_.dtype.names:
        if one.trace_[field].dtype == float:  # a block that was cut is multiplied in other parts
            np.testing.assert_allclose(one.trace_[field], other.trace_[field], rtol=1e-9)
        else:
            np.testing.assert_array_equal(one.trace_[field], other.trace_[field])


def make_stream(kind, X):
    if kind == "iterable":
        return FromIterable((f"w{j}", np.sin(j * X[:, 1])) for j in range(60))
    return Chain(everything(X), Powers(X, of="selected"), random_state=5)


@pytest.mark.parametrize("kind", ["chain", "iterable"])
def test_a_walk_killed_anywhere_goes_on_as_if_nothing_had_been(kind, rng, tmp_path):
    X, y = table(rng)
    whole = explore(AlphaInvesting(), make_stream(kind, X), y)
    assert whole.ended == "exhausted"
    for cut in (1, 17, 30, 45, whole.n_candidates - 1):
        path = tmp_path / f"{cut}.tamis"
        explore(AlphaInvesting(), make_stream(kind, X), y, max_candidates=cut, checkpoint=path)
        resumed = explore(AlphaInvesting(), make_stream(kind, X), y, checkpoint=path)
        alike(resumed.selector, whole.selector)
        assert (resumed.n_candidates, resumed.ended) == (whole.n_candidates, "exhausted")
        if kind == "chain":
            np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


def test_what_was_saved_on_the_way_is_enough_after_a_kill(rng, tmp_path):
    X, y = table(rng)
    path, copies = tmp_path / "walk.tamis", []

    def copy(progress):
        if path.exists():
            copies.append(tmp_path / f"{progress.n_candidates}.tamis")
            shutil.copy(path, copies[-1])

    walk = {"checkpoint": path, "checkpoint_seconds": 0.0}
    whole = explore(AlphaInvesting(), make_stream("chain", X), y, on_step=copy, **walk)
    assert len(copies) > 5
    for saved in copies:
        resumed = explore(AlphaInvesting(), make_stream("chain", X), y, checkpoint=saved)
        assert repr(resumed.selector.trace_.tolist()) == repr(whole.selector.trace_.tolist())
        np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


def test_a_checkpoint_of_another_walk_is_refused(rng, tmp_path):
    X, y = table(rng)
    path = tmp_path / "walk.tamis"
    explore(AlphaInvesting(), Chain.published(X), y, checkpoint=path, max_candidates=3)
    others = {"target": (AlphaInvesting(), X, -y), "stream": (AlphaInvesting(), X + 1, y),
              "selector": (AlphaInvesting(payout=0.1), X, y)}  # fmt: skip
    for what, (selector, table_, target) in others.items():
        with pytest.raises(CheckpointError, match=f"the {what} differs"):
            explore(selector, Chain.published(table_), target, checkpoint=path)
    save([1], path)
    with pytest.raises(CheckpointError, match="not a checkpoint of a stream of features"):
        explore(AlphaInvesting(), Chain.published(X), y, checkpoint=path)
    with pytest.raises(CheckpointError, match="Cannot write"):
        explore(AlphaInvesting(), Chain.published(X), y, checkpoint=tmp_path / "no" / "walk")


class Interrupted(AlphaInvesting):
    """Ctrl-C while its n-th block is in work, after part of it was decided."""

    blocks = 0

    def _consider_block(self, columns):
        verdicts = super()._consider_block(columns)
        Interrupted.blocks += 1
        if Interrupted.blocks == 3:
            raise KeyboardInterrupt
        return verdicts


def test_an_interrupt_in_a_block_leaves_a_whole_selector_that_goes_on(rng):
    X, y = table(rng)
    whole = explore(AlphaInvesting(), Chain.published(X, 1), y).selector
    Interrupted.blocks = 0
    stream = Chain.published(X, 1)
    cut = explore(Interrupted(), stream, y)
    assert cut.ended == "interrupted"
    assert 0 < cut.n_candidates == len(cut.selector.trace_) < len(whole.trace_)
    assert cut.transform(X).shape == (120, len(cut.selector.selected_))
    alike(explore(cut.selector, stream).selector, whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_wait_for_the_block_in_work(rng, number):
    X, y = table(rng)
    before = signal.getsignal(number)
    seen = []

    def press(progress):
        seen.append(progress)
        if len(seen) == 2:
            os.kill(os.getpid(), number)

    found = explore(AlphaInvesting(), Chain.published(X, 2), y, on_step=press)
    assert (found.ended, len(seen), found.n_candidates) == ("interrupted", 2, 8)
    assert [progress.stage for progress in seen] == ["PrincipalComponents", "Originals"]
    assert seen[1].n_selected == len(found.selector.selected_)
    assert signal.getsignal(number) is before


def test_budgets_are_kept(rng):
    X, y = table(rng)
    for n in (0, 1, 7, 11):
        found = explore(AlphaInvesting(), Chain.published(X, 2), y, max_candidates=n)
        assert (found.n_candidates, len(found.selector.trace_), found.ended) == (n, n, "max_candidates")
    forever = ((f"f{j}", rng.normal(size=120)) for j in iter(int, 1))
    found = explore(AlphaInvesting(), forever, y, max_seconds=0.05)
    assert found.ended == "max_seconds"
    assert found.n_candidates > 0
    stopped = explore(AlphaInvesting(max_features=1), Chain.published(X), y)
    assert stopped.ended == "max_features: 1 features are selected"


def test_an_error_keeps_what_was_found(rng, tmp_path):
    X, y = table(rng)
    pairs = [("good", X[:, 1]), ("short", X[:5, 0]), ("next", X[:, 2])]
    selector = AlphaInvesting()
    with pytest.raises(DataError, match="'short' has 5 values, but y has 120 rows"):
        explore(selector, pairs, y, checkpoint=tmp_path / "walk.tamis")
    assert selector.selected_ == ["good"]
    pairs[1] = ("mended", X[:, 0])
    again = explore(AlphaInvesting(), pairs, y, checkpoint=tmp_path / "walk.tamis")
    assert again.n_candidates == 3
    assert again.selector.selected_[0] == "good"


class Wave(FeatureGenerator):
    """A generator of one's own."""

    at = 0

    def _draw(self, selector, width):
        if self.at == 5:
            return None
        self.at += 1
        name, j = f"x{self.at}", self.at
        return CandidateBlock([name], self.columns.block([j]), lambda i: self.recipe_of(name))

    def position(self):
        return self.at

    def seek(self, position):
        self.at = position


def test_a_generator_of_ones_own_is_resumed(rng, tmp_path):
    X, y = table(rng)
    whole = AlphaInvesting().fit_stream(Wave(Columns(X)), y)
    explore(AlphaInvesting(), Wave(Columns(X)), y, max_candidates=2, checkpoint=tmp_path / "w")
    alike(explore(AlphaInvesting(), Wave(Columns(X)), y, checkpoint=tmp_path / "w").selector, whole)


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: Columns(X, names=["a"] * 6), "Column 'a' occurs twice"),
        (lambda X: Columns(X, names=["a"]), "names has 1 entries, but X has 6"),
        (lambda X: Powers(X, (1, 2)), "none of them 1"),
        (lambda X: Powers(X, (-1,)), "exponents must be"),
        (lambda X: Interactions(X, of="all"), "of must be one of"),
        (lambda X: Interactions(X, of="originals", degree=3), "degree must be 2"),
        (lambda X: Interactions(X, random_state=-1), "random_state must be"),
        (lambda X: PrincipalComponents(X, 0), "n_components must be"),
        (lambda X: Originals(pd.DataFrame({"word": ["a", "b"]})), "'word'"),
    ],
)
def test_bad_parameters_are_named(make, message, rng):
    with pytest.raises(ValueError, match=message):
        make(rng.normal(size=(20, 6)))


@pytest.mark.parametrize(("n", "shown"), [(5, "'x4'."), (6, "'x4' and 1 more."), (70, "'x4' and 65 more.")])
def test_an_unknown_column_is_named_beside_a_few_that_are_there(n, shown):
    with pytest.raises(
        DataError, match=rf"^The rows have no column 'y': the columns are 'x0', 'x1', .*, {shown}$"
    ):
        Columns(np.zeros((2, n))).column("y")


def test_bad_streams_are_named(rng):
    X, y = table(rng)
    start = AlphaInvesting().start
    with pytest.raises(DataError, match=r"Originals have 120 values, the first is 'x0', but y has 119 rows"):
        start(y[1:]).offer_stream(Originals(X))
    with pytest.raises(DataError, match="'pc0' of a component"):
        start(y).offer_stream(PrincipalComponents(pd.DataFrame(X).add_prefix("pc")))
    with pytest.raises(DataError, match="pairs of a name and a column"):
        start(y).offer_stream(FromIterable([3]))
    with pytest.raises(DataError, match="2 names for 6 columns"):
        start(y).offer_stream(FromIterable([(["a", "b"], X)]))
    with pytest.raises(DataError, match=r"'x.' is selected already"):
        start(y).offer_stream(Chain(Originals(X), Originals(X)))
    with pytest.raises(TypeError, match="Chain takes generators"):
        Chain(Originals(X), X)
    with pytest.raises(ValueError, match="occurs twice"):
        Chain(*[Originals(X)] * 2)
    selector = start(y)
    selector.offer(X[:, 1], "mine")
    with pytest.raises(DataError, match="'mine' was not generated by this stream"):
        explore(selector, Originals(X))


def test_the_shift_of_a_logarithm_passes_over_what_is_missing():
    """By the mean of what is known less the least: -1, 3 and a gap have the mean 1, so the least becomes 2."""
    shift, floor = shift_and_floor(np.array([[-1.0, 2.0], [np.nan, np.nan], [3.0, 5.0]]))
    assert (shift.tolist(), floor.tolist()) == ([3.0, 0.0], [2.0, 2.0])


def test_adjacent_columns_are_a_view_and_others_a_copy(rng):
    X = rng.normal(size=(20, 5))
    table = Columns(X)
    for places, is_view in (
        ([1, 2, 3], True),
        ([4], True),
        (slice(0, 2), True),
        ([1, 3], False),
        ([3, 2, 1], False),
    ):
        block = table.block(places)
        np.testing.assert_array_equal(block, X[:, places])
        assert np.shares_memory(block, X) == is_view


@pytest.mark.parametrize("make", [np.array, sp.csc_matrix])
def test_the_digest_of_a_table_is_that_of_all_columns(make):
    X = np.random.default_rng(0).normal(size=(20, 300))
    known = Columns(make(X)).digest()
    assert Columns(make(X.copy())).digest() == known
    for j in range(300):
        other = X.copy()
        other[7, j] += 1e-9
        assert Columns(make(other)).digest() != known
