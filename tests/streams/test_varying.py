"""Features that appear and vanish: the truth is that of the batches, by the definition of each kind."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from tamis import ByName, FisherScore, prequential
from tamis.errors import StreamError
from tamis.learners import HoeffdingTree
from tamis.streams import ArrayStream, BatchStream, load_stream

KINDS = ("trapezoidal", "capricious", "evolvable", "shuffled", "open")


def arrays(n: int = 1000, d: int = 12) -> ArrayStream:
    X = np.random.default_rng(0).normal(size=(n, d))
    return ArrayStream(X, (X[:, 0] > 0).astype(int))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_named_rows_contain_what_exists(kind: str) -> None:
    stream = arrays().with_varying_features(kind, seed=3)
    exists, X = stream.present_rows(0, 1000), arrays().take(1000)[0]
    assert exists.any(axis=1).all()
    for size, start in ((1000, 0), (77, 0), (100, 250)):
        rows = np.concatenate([block for block, _ in stream.batches(size, start=start)])
        np.testing.assert_array_equal(rows, np.where(exists, X, np.nan)[start:])
        named = [row for block, _ in stream.named_batches(size, start=start) for row in block]
        for row, there, values in zip(named, exists[start:], X[start:], strict=True):
            assert row == {f"x{j}": values[j] for j in np.flatnonzero(there)}
    assert np.array_equal(stream.present_rows(123, 456), exists[123:456])
    orders = [[*row] for row in (named[0], named[1], named[-1])]
    if kind == "shuffled":
        assert orders[0] == orders[1]
        assert sorted(orders[1]) == sorted(orders[2])
        assert orders[1] != orders[2]
    other = arrays().with_varying_features(kind, seed=4)
    assert other.describe() != stream.describe()
    if kind != "shuffled":
        assert (other.present_rows(0, 1000) != exists).any()


def test_the_definition_of_each_kind() -> None:
    def counts(kind: str, **options: float) -> np.ndarray:
        return arrays().with_varying_features(kind, n_periods=4, **options).present_rows(0, 1000)  # type: ignore[arg-type]

    grown = counts("trapezoidal")
    assert grown.sum(axis=1)[::250].tolist() == [3, 6, 9, 12]
    assert (np.diff(grown.astype(int), axis=0) >= 0).all()
    assert abs(counts("capricious", share=0.3).mean() - 0.3) < 0.02
    groups = counts("evolvable")
    assert groups.sum(axis=1)[[0, 199, 200, 249, 250]].tolist() == [3, 3, 6, 6, 3]
    assert (groups[0] ^ groups[250])[groups[200]].all()
    assert counts("shuffled").all()
    periods = counts("open")[::250]
    assert 0 < sum((a != b).sum() for a, b in itertools.pairwise(periods)) < 20
    assert (counts("open", share=1.0)).all()


def test_the_truth_is_that_of_the_stream_where_a_feature_exists() -> None:
    whole = load_stream("sea", n_rows=600, seed=1)
    stream = whole.with_varying_features("open", n_periods=6)
    exists = stream.present_rows(0, 600)
    np.testing.assert_array_equal(stream.relevant_rows(0, 600), whole.relevant_rows(0, 600) & exists)
    known = set(np.flatnonzero(exists[450])) & set(whole.relevant_at(450).tolist())
    assert set(stream.relevant_at(450).tolist()) == known
    assert not hasattr(arrays().with_varying_features("open"), "relevant_rows")
    assert prequential(stream, FisherScore(2), HoeffdingTree(), batch_size=50).summary()["accuracy"] > 0.5
    model = ByName(FisherScore(2))
    for rows, y in stream.named_batches(50):
        model.partial_fit(rows, y)
    assert set(model.feature_names_) == {stream.feature_names[j] for j in np.flatnonzero(exists.any(axis=0))}


def test_what_is_refused() -> None:
    for options, words in (
        ({"kind": "other"}, "kind must be"), ({"kind": "open", "share": 0.0}, "share must be"),
        ({"kind": "open", "n_periods": 1}, "n_periods must be"), ({"kind": "open", "period": 0}, "period must be"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            arrays().with_varying_features(**options)  # type: ignore[arg-type]
    batches = BatchStream([(np.ones((3, 2)), [0, 1, 0])])
    with pytest.raises(ValueError, match="number of features of this stream is not known"):
        batches.with_varying_features("open")
    with pytest.raises(ValueError, match="number of rows of this stream is not known: pass period"):
        BatchStream([(np.ones((3, 2)), [0, 1, 0])], ["a", "b"]).with_varying_features("open")
    sparse = ArrayStream(sp.csr_matrix(np.ones((4, 2))), [0, 1, 0, 1])
    with pytest.raises(StreamError, match="need dense rows"):
        sparse.with_varying_features("open").take(2)
