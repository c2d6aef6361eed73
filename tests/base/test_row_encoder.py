"""Missing values and categories in selectors that know numbers only: against the definition, in frames and files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import tamis
from tamis import FIRES, Auto, ForwardPartialCorrelation, JointScreening
from tamis.base.row_encoder import RowEncoder, class_targets
from tamis.errors import DataError
from tests.twins.row_encoder import encoded

METHODS = [lambda **k: FIRES(2, **k), lambda **k: ForwardPartialCorrelation(2, **k), JointScreening]
METHODS += [lambda **k: Auto(2, **k)]
NAMES = ["FIRES", "ForwardPartialCorrelation", "JointScreening", "Auto"]
methods = pytest.mark.parametrize("method", METHODS, ids=NAMES)


def mixed(n=1500, seed=0):
    """Column 2 is a number, a fifth of it missing; of 20 states every other one fails; `user` is an identifier."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 100.0
    state = rng.integers(0, 20, n)
    y = (1.5 * (state % 2) + X[:, 2] - 100.0 + 0.5 * rng.normal(size=n) > 0.75).astype(int)
    X[rng.random((n, 4)) < 0.2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["state"] = pd.Categorical([f"s{v}" for v in state])
    frame["user"] = [None if v == 7 else f"u{v}" for v in rng.integers(0, n // 2, n).tolist()]
    return frame, y


def in_numbers(frame, y, n_exact=0):
    columns = [
        encoded(
            [None if v is None or v != v else v for v in frame[c].tolist()],
            y,
            c in ("state", "user", "few"),
            n_exact=n_exact,
        )
        for c in frame.columns
    ]
    return np.array(columns, dtype=float).T


@pytest.mark.parametrize("n_exact", [0, 10])
@pytest.mark.parametrize("bounds", [[0], [0, 1, 2, 90, 1000, 1001], [0, 700, 1300]])
def test_numbers_are_those_of_the_definition(bounds, n_exact):
    frame, y = mixed()
    target = class_targets(y)
    frame["few"] = [
        f"{min(v, 2 + i // 100)}" for i, v in enumerate(np.random.default_rng(1).integers(0, 20, len(y)))
    ]
    encoder, found = RowEncoder(7, [4, 5, 6], n_exact), []
    raw = {j: [None if v is None or v != v else v for v in frame.iloc[:, j].tolist()] for j in (4, 5, 6)}
    X = np.column_stack([frame[list("abcd")].to_numpy(), np.zeros((len(y), 3))])
    for start, stop in zip(bounds, [*bounds[1:], len(y)], strict=True):
        part = {j: values[start:stop] for j, values in raw.items()}
        rows, encoder = encoder.with_rows(X[start:stop], part, target[start:stop])
        found.append(rows)
    np.testing.assert_allclose(np.vstack(found), in_numbers(frame, target, n_exact), rtol=1e-9)
    assert np.isnan(X).any()  # the caller's rows stay as they are
    assert set(encoder.many) == (
        {4, 5} if n_exact else set()
    )  # of `few`, the eleventh category comes in row 900


@methods
def test_frames_of_both_libraries_are_learned_as_their_numbers(method):
    frame, y = mixed()
    polars = pl.DataFrame(
        {
            c: pl.Series(c, frame[c].astype(object).where(frame[c].notna(), None).tolist())
            for c in frame.columns
        }
    )
    one, other, plain = method(), method(), method()
    numbers = in_numbers(frame, class_targets(y), one._n_exact_categories)
    for start in range(0, len(y), 100):
        rows = slice(start, start + 100)
        one.partial_fit(frame.iloc[rows], y[rows], classes=[0, 1])
        other.partial_fit(polars[rows], y[rows], classes=[0, 1])
        plain.partial_fit(numbers[rows], y[rows], classes=[0, 1])
    np.testing.assert_array_equal(one.scores_, other.scores_)
    np.testing.assert_allclose(one.scores_, plain.scores_, rtol=1e-6)
    assert one.get_feature_names_out().tolist() == ["c", "state"]
    kept = one.set_output(transform="pandas").transform(frame)  # values as they came
    assert kept["state"].tolist() == frame["state"].tolist()
    assert type(other.set_output(transform="polars").transform(polars)) is pl.DataFrame


@methods
def test_codes_that_are_declared_to_be_categories_are_encoded(method):
    frame, y = mixed(800)
    codes = frame.assign(state=frame["state"].cat.codes.astype(float), user=0.0).to_numpy(dtype=float)
    model = method(categorical=[4]).partial_fit(codes, y)
    assert model.get_support(indices=True).tolist() == [2, 4]


@methods
def test_a_rejected_batch_and_a_file_keep_the_encoding(method, tmp_path):
    frame, y = mixed(600)
    model, other = (method().partial_fit(frame[:300], y[:300]) for _ in range(2))
    worse = frame[300:400].assign(state="new", a=np.inf)
    with pytest.raises(DataError, match="infinity in column 'a'"):
        model.partial_fit(worse, y[300:400])
    with pytest.raises(DataError, match="Column 'b' has categories, but had numbers in earlier rows"):
        model.partial_fit(frame[300:400].assign(b="text"), y[300:400])
    tamis.save(model, tmp_path / "model.tamis")
    loaded = tamis.load(tmp_path / "model.tamis")
    for one in (model, loaded, other):
        one.partial_fit(frame[300:], y[300:])
    np.testing.assert_array_equal(model.scores_, other.scores_)
    np.testing.assert_array_equal(loaded.scores_, other.scores_)


def test_a_numeric_target_encodes_categories_and_columns_can_be_added():
    frame, y = mixed(1000)
    price = 1e3 + y + 0.3 * np.sin(np.arange(1000.0))
    for model in (
        FIRES(2, model="gaussian"),
        ForwardPartialCorrelation(2, task="regression"),
        Auto(2, task="regression"),
    ):
        assert set(model.fit(frame, price).get_feature_names_out()) == {"c", "state"}
    model = FIRES(2).partial_fit(frame[list("abcd")].to_numpy(), y).widen(6)
    rows = np.column_stack([frame[list("abcd")].to_numpy(), np.full((1000, 2), np.nan)])
    model.partial_fit(rows, y).forget_columns([5])
    assert np.isfinite(model.scores_).all()
    sparse = sp.csr_matrix(np.nan_to_num(rows, nan=0.0))
    missing = sparse.copy()
    missing.data[3] = np.nan
    sparse.data[3] = 0.0
    np.testing.assert_array_equal(FIRES(2).fit(missing, y).scores_, FIRES(2).fit(sparse, y).scores_)


def test_three_classes_and_many_categories_in_bounded_memory(monkeypatch):
    encoder = FIRES(1).fit(np.eye(2), [0, 1])._intake.encoder
    monkeypatch.setattr(type(encoder), "_most", 50)
    rng = np.random.default_rng(0)
    state = rng.integers(0, 9, 900)
    frame = pd.DataFrame(
        {"a": rng.normal(size=900), "state": [f"s{v}" for v in state], "id": [f"i{i}" for i in range(900)]}
    )
    model = ForwardPartialCorrelation(1).fit(frame, (state % 3).astype(str))
    assert model.get_feature_names_out().tolist() == ["state"]
    assert len(model._intake.encoder.categories[2]) == 50
    assert model._intake.encoder.tables[2].shape == (51, 2)


@pytest.mark.parametrize(
    "method", [JointScreening(), Auto(2, learner="trees")], ids=["JointScreening", "Auto"]
)
def test_categories_that_matter_only_together_are_found(method):
    """Each colour and each shape is as frequent in both classes, so their mean targets are equal."""
    rng = np.random.default_rng(0)
    colour, shape = rng.integers(0, 4, (2, 4000))
    y = (colour + shape) % 2
    frame = pd.DataFrame({f"n{j}": rng.normal(size=4000) for j in range(6)})
    frame.insert(2, "colour", [("red", "green", "blue", "black")[v] for v in colour])
    frame.insert(5, "shape", [f"s{v}" for v in shape])
    for start in range(0, 4000, 100):
        method.partial_fit(frame[start : start + 100], y[start : start + 100])
    assert set(method.get_feature_names_out()) == {"colour", "shape"}
