"""Frames and dicts are streams: the same rows whichever library has them, categories as codes, the label by name."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from tamis import FIRES, OFS, Auto, prequential
from tamis.errors import DataError, StreamError
from tamis.streams import ArrayStream, BatchStream, DictStream, FrameStream, as_stream

N = 300
COLOURS = ["red", "blue", None]
RNG = np.random.default_rng(0)
HEAT = RNG.normal(size=N).round(3).tolist()
DATA = {
    "heat": [None if i % 50 == 7 else value for i, value in enumerate(HEAT)],
    "count": list(range(N)),
    "open": [i % 3 == 0 for i in range(N)],
    "colour": [COLOURS[i % 3] for i in range(N)],
    "at": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=i) for i in range(N)],
    "state": ["on" if value > 0 else "off" for value in HEAT],
}
ROWS = [dict(zip(DATA, row, strict=True)) for row in zip(*DATA.values(), strict=True)]


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(DATA)


def polars_frame():
    return pytest.importorskip("polars").DataFrame(DATA)


def arrow_table():
    return pytest.importorskip("pyarrow").table(DATA)


def lazy_frame():
    return polars_frame().lazy()


def relation():
    duckdb, table = pytest.importorskip("duckdb"), arrow_table()
    return duckdb.from_arrow(table)


FRAMES = [pandas_frame, polars_frame, arrow_table, lazy_frame, relation]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda make: make.__name__)
def test_the_same_rows_whichever_library_has_them(frame):
    stream = as_stream(frame(), "state")
    X, y = stream.take(N)
    seconds = [value.replace(tzinfo=dt.UTC).timestamp() for value in DATA["at"]]
    heat = [np.nan if value is None else value for value in DATA["heat"]]
    expected = np.column_stack([heat, DATA["count"], DATA["open"], [i % 3 for i in range(N)], seconds])
    np.testing.assert_array_equal(X, expected)
    assert y.tolist() == DATA["state"]
    assert stream.feature_names == ["heat", "count", "open", "colour", "at"]
    assert (stream.categorical, stream.categories) == ([3], {"colour": COLOURS})


def test_declared_categories_keep_their_order_and_objects_may_be_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(["M", "S", "L"], categories=["S", "M", "L"]),
            "price": pd.Series([1, None, 2.5], dtype=object),
            "n": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    stream = as_stream((frame, ["a", "b", "a"]))
    assert stream.categories == {"size": ["S", "M", "L"]}
    np.testing.assert_array_equal(stream.take(3)[0], [[1, 1, 1], [0, np.nan, np.nan], [2, 2.5, 3]])


def test_a_frame_leads_to_the_run_of_its_codes():
    """The selector and the learner get the positions of the categories."""
    frame = polars_frame().drop("heat")
    selector = FIRES(2)
    result = prequential(frame, selector, label="state", batch_size=50)
    assert selector.categorical == [2]
    codes = ArrayStream(*as_stream(frame, "state").take(N))
    codes.categorical = [2]
    other = prequential(codes, FIRES(2, categorical=[2]), batch_size=50)
    np.testing.assert_array_equal(result.frames["steps"]["accuracy"], other.frames["steps"]["accuracy"])
    assert result.feature_names == ["count", "open", "colour", "at"]
    assert Auto(2, categorical=[0]).categorical == [0]  # what the user named stays


def test_a_selector_of_numbers_rejects_categories():
    selector = OFS(2)
    with pytest.raises(DataError, match="OFS learns from numbers, but column 'colour' contains categories"):
        prequential(polars_frame().drop("heat"), selector, label="state")
    assert not hasattr(selector, "n_features_in_")


def test_dicts_alone_or_with_their_labels():
    x = [{key: value for key, value in row.items() if key not in ("state", "at")} for row in ROWS]
    pairs = list(zip(x, DATA["state"], strict=True))
    rows = [one | {"state": label} for one, label in pairs]
    expected = FrameStream(polars_frame().drop("at"), "state").take(N)
    for stream in (
        as_stream(rows, "state"), as_stream(pairs), DictStream(iter(pairs)), as_stream(iter(rows), "state"),
    ):  # fmt: skip
        assert (stream.feature_names, stream.categorical) == (["heat", "count", "open", "colour"], [3])
        for got, wanted in zip(stream.take(N), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
        assert stream.categories == {"colour": COLOURS}
    np.testing.assert_array_equal(
        np.vstack([X for X, _ in as_stream(pairs).batches(7, start=13)]), expected[0][13:]
    )
    with pytest.raises(StreamError, match=r"pass tamis\.streams\.DictStream"):
        prequential(iter(pairs))
    once = DictStream(iter(pairs))
    once.take(3)
    with pytest.raises(StreamError, match="have been read already"):
        once.take(3)


def test_rows_that_are_no_rows_are_told():
    with pytest.raises(StreamError, match=r"Row 2 has 'hot' for 'heat', which began as numbers"):
        DictStream([({"heat": 1.0}, 0), ({"heat": "hot"}, 1)]).take(2)
    with pytest.raises(StreamError, match="Row 2 has a key 'light' that is absent from the first row"):
        DictStream([({"heat": 1.0}, 0), ({"heat": 2.0, "light": 1}, 1)]).take(2)
    with pytest.raises(StreamError, match="dicts without labels"):
        DictStream([{"heat": 1.0}])
    with pytest.raises(StreamError, match="no key 'y'"):
        DictStream([{"heat": 1.0, "y": 1}, {"heat": 1.0}], "y").take(2)
    with pytest.raises(StreamError, match="no rows"):
        DictStream(iter([]))
    lacks = DictStream([({"heat": 1.0, "light": 2}, 0), ({"light": 3}, 1)])
    np.testing.assert_array_equal(lacks.take(2)[0], [[1.0, 2.0], [np.nan, 3.0]])


def test_wrong_labels_and_names_have_their_remedy():
    with pytest.raises(DataError, match=r"label='stat' is not a column: did you mean 'state'\?"):
        prequential(pandas_frame(), label="stat")
    with pytest.raises(DataError, match=r'pass label="\.\.\."'):
        prequential(pandas_frame())
    with pytest.raises(DataError, match="these rows have labels"):
        prequential((np.eye(4), [0, 1, 0, 1]), label="y")
    with pytest.raises(TypeError, match=r"pass tamis\.load_dataset\('electricity'\)"):
        prequential("electricity")
    with pytest.raises(TypeError, match=r"pass tamis\.load_stream\('sea'\)"):
        prequential("sea")
    with pytest.raises(TypeError, match=r"is a file: pass tamis\.open_file\("):
        prequential(__file__)
    with pytest.raises(TypeError, match="neither a file nor the name of a data set"):
        prequential("electricty")
    with pytest.raises(DataError, match=r"Column 'a' contains \[1\], which is neither"):
        as_stream(pytest.importorskip("polars").DataFrame({"a": [[1], [2]], "y": [0, 1]}), "y")


def test_batches_and_pairs_are_what_they_were():
    X = np.arange(12.0).reshape(4, 3)
    assert type(as_stream((X, [0, 1, 0, 1]))) is ArrayStream
    assert type(as_stream([(X, [0, 1, 0, 1])])) is BatchStream
    assert type(as_stream(iter([(X, [0, 1, 0, 1])]))) is BatchStream


def test_batches_of_a_data_loader():
    torch = pytest.importorskip("torch")
    rows = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1] * 3))
    X, y = as_stream(torch.utils.data.DataLoader(rows, batch_size=4)).take(6)
    assert (X.tolist(), y.tolist()) == (np.arange(12.0).reshape(6, 2).tolist(), [0, 1] * 3)


def test_river_data_and_a_learner():
    pytest.importorskip("river")
    from river import datasets, naive_bayes

    result = prequential(datasets.Phishing(), FIRES(3), naive_bayes.GaussianNB(), max_rows=600)
    assert len(result.feature_names) == 9
    assert result.summary()["accuracy"] > 0.8
    assert result.settings["learner"]["class"].endswith("RiverClassifier")


def test_a_result_displays_itself_in_a_notebook(tmp_path):
    pytest.importorskip("matplotlib")
    result = prequential(polars_frame().drop("heat"), FIRES(2), label="state")
    assert result.plot()._repr_png_().startswith(b"\x89PNG")
    page = result.report()
    shown = page._repr_html_()
    assert shown.startswith("<iframe")
    assert "sandbox" in shown
    assert "<script" not in shown
    assert result.report(tmp_path / "r.html").read_text(encoding="utf-8") == page
    assert "InlinePage(" in repr(page)
