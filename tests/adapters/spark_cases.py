"""What holds with Spark: one session for all cases. `test_spark.py` runs them; by hand, name this file."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import tamis
from tamis.adapters.spark import StreamingScreen, arrow_rows, jobs, recommend, screen, select, transform
from tamis.adapters.spark.sources import FrameRows, plain_files
from tamis.errors import DataError, StreamError

pytest.importorskip("pyspark", reason="no Spark here: pip install 'tamis[spark]'")
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def start(master="local[2,3]"):
    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


def make(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 3] = np.round(X[:, 3])  # few values, counted one by one
    y = np.where(X[:, 2] + rng.normal(size=n) > 0, "yes", "no")
    X[rng.random(X.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y, w=rng.integers(0, 3, n).astype(float))
    return frame


@pytest.fixture(scope="module")
def frame():
    return make()


@pytest.fixture(scope="module")
def parts(spark, frame, tmp_path_factory):
    """The frame as files, a partition for each."""
    return stored(spark, frame, tmp_path_factory.mktemp("parts"))


def stored(spark, frame, folder, n_files=7):
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        pq.write_table(
            pa.Table.from_pandas(frame.iloc[rows], preserve_index=False), folder / f"{i:03d}.parquet"
        )
    # In the order of the files, one partition each.
    found = [spark.read.parquet(str(path)) for path in sorted(folder.glob("*.parquet"))]
    df = found[0]
    for other in found[1:]:
        df = df.union(other)
    return df


NAMES = list("abcde")


# -- the same as in one process -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["string", "int", "boolean", "double", "decimal(3,0)"])
def test_labels_of_any_kind_and_moments_as_in_one_process(parts, frame, kind):
    is_yes = F.col("y") == "yes"
    df = parts if kind == "string" else parts.withColumn("y", is_yes.cast("int").cast(kind))
    y = frame["y"].to_numpy() if kind == "string" else (frame["y"] == "yes").to_numpy()
    y = y.astype({"int": int, "double": float, "decimal(3,0)": int}.get(kind, y.dtype))
    got = screen(df, "y", tamis.Screening(2, scores=["t", "fisher"]), features=NAMES)
    one = tamis.Screening(2, scores=["t", "fisher"]).fit(frame[NAMES], y)
    assert got.n_seen_ == 3000
    assert got.classes_.tolist() == one.classes_.tolist()
    assert got.classes_.dtype.kind == one.classes_.dtype.kind
    np.testing.assert_allclose(got.scores_, one.scores_, rtol=1e-12)
    np.testing.assert_array_equal(got.n_observed_, one.n_observed_)
    assert got.get_feature_names_out().tolist() == ["c", "d"]


def test_bins_within_their_certificate_and_the_same_bytes_from_run_to_run(parts, frame):
    selector = tamis.MutualInformation(2, eps=0.01)
    got, again = (screen(parts, "y", selector, features=NAMES) for _ in range(2))
    assert tamis.dumps(got) == tamis.dumps(again)
    assert not hasattr(selector, "n_seen_")
    one = tamis.MutualInformation(2, eps=0.01).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(got.scores_[3], one.scores_[3], rtol=1e-12)
    np.testing.assert_allclose(got.pvalues_, one.pvalues_, rtol=1e-9)  # cut by the same rows
    quantiles = got._bins._quantiles
    certified = quantiles.rank_error(by_class=True)
    assert 0 < certified.max() <= 0.01
    at = np.nanquantile(frame[NAMES], np.arange(1, 20) / 20, axis=0).T
    below = quantiles.weight_below(at)
    for c, label in enumerate(got.classes_):
        X = frame.loc[frame["y"] == label, NAMES].to_numpy(dtype=np.float32)[:, :, None]
        error = np.abs(below[:, :, c] - (at.astype(np.float32) >= X).sum(axis=0)).max(axis=1)
        assert (error / len(X) <= certified[:, c] + 1e-12).all()
    # Many parts are no larger than one: they count in the same bins.
    assert len(got._bins._exact._parts) == 1


def test_pairs_of_features_are_selected_from_files(spark, tmp_path):
    """By JointScreening, whose parts count in the levels of the first rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=np.where(X[:, 1] * X[:, 4] > 0, "yes", "no"))
    stored(spark, frame, tmp_path)
    selector = screen(str(tmp_path), "y", tamis.JointScreening())
    first = tamis.JointScreening().fit(frame[list("abcdef")][:64], frame["y"][:64])
    one = first.clone_unfitted().partial_fit(frame[list("abcdef")], frame["y"])
    assert set(selector.get_feature_names_out()) >= {"b", "e"}
    assert selector.n_seen_ == 3000
    np.testing.assert_array_equal(selector._counts.alone, one._counts.alone)


def test_a_window_and_its_counts_from_partitions(spark, tmp_path):
    """By DISCUSS, whose parts have the scale and the bins of the first window."""
    rng = np.random.default_rng(0)
    names = list("abcdef")
    X = rng.normal(size=(4500, 6))
    frame = pd.DataFrame(X, columns=names).assign(y=np.where(X[:, 1] > X[:, 4], "yes", "no"))
    selector = screen(stored(spark, frame, tmp_path, 3), "y", tamis.DISCUSS(window=300))
    first = tamis.DISCUSS(window=300).fit(frame[names][:300], frame["y"][:300])
    parts = [
        first.clone_unfitted().partial_fit(frame[names][i : i + 1500], frame["y"][i : i + 1500])
        for i in range(0, 4500, 1500)
    ]
    merged = tamis.merge_tree(parts)
    assert set(selector.get_feature_names_out()) == {"b", "e"}
    assert selector.n_seen_ == 4500
    np.testing.assert_array_equal(selector.scores_, merged.scores_)
    np.testing.assert_array_equal(selector._present._tables, merged._present._tables)


def test_auto_compares_selectors_on_the_workers(spark, tmp_path):
    """Its parts have the classes of the first rows."""
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(12)]
    X = rng.normal(size=(6000, 12))
    y = np.where(X[:, 4] + X[:, 11] + 0.5 * rng.normal(size=6000) > 0, "yes", "no")
    df = stored(spark, pd.DataFrame(X, columns=names).assign(y=y), tmp_path, 3)
    selector = screen(df, "y", tamis.Auto(), classes=["yes", "no"])
    assert (selector.n_seen_, selector.classes_.tolist()) == (6000, ["yes", "no"])
    assert set(selector.get_feature_names_out()) == {"c4", "c11"}


@pytest.mark.parametrize("n_files", [1, 9])
def test_a_deep_tree(spark, frame, tmp_path, monkeypatch, n_files):
    monkeypatch.setattr(jobs, "_GROUP_BYTES", 1)  # two at a time
    got = screen(stored(spark, frame, tmp_path, n_files), "y", tamis.TScore(2), features=NAMES)
    one = tamis.TScore(2).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(got.scores_, one.scores_, rtol=1e-12)
    assert got.n_seen_ == 3000


def test_weights_and_declared_classes(parts, frame):
    classes = ["maybe", "yes", "no"]
    got = screen(parts, "y", tamis.FisherScore(2), weight="w", classes=classes)
    one = tamis.FisherScore(2).partial_fit(frame[NAMES], frame["y"], classes, frame["w"])
    np.testing.assert_allclose(got.scores_, one.scores_, rtol=1e-12)
    assert got.classes_.tolist() == classes


def test_numbers_of_every_kind(spark, frame):
    frame = frame.dropna().iloc[:300]
    whole = frame[NAMES].round().astype(int).assign(y=frame["y"])
    kinds = dict(zip(NAMES, ["tinyint", "smallint", "float", "decimal(8,2)", "bigint"], strict=True))
    df = spark.createDataFrame(whole).select("y", *(F.col(n).cast(kind) for n, kind in kinds.items()))
    one = tamis.TScore(2).fit(whole[NAMES], whole["y"])
    np.testing.assert_allclose(screen(df, "y", tamis.TScore(2)).scores_, one.scores_, rtol=1e-12)
    single = df.select("y", *(F.col(n).cast("float") for n in NAMES))
    got = screen(single, "y", tamis.GiniIndex(2))
    np.testing.assert_allclose(
        got.scores_, tamis.GiniIndex(2).fit(whole[NAMES], whole["y"]).scores_, rtol=1e-12
    )
    true = df.select("y", *((F.col(n) > 0).alias(n) for n in NAMES))
    got = screen(true, "y", tamis.TScore(2))
    np.testing.assert_allclose(
        got.scores_, tamis.TScore(2).fit(whole[NAMES] > 0, whole["y"]).scores_, rtol=1e-12
    )


def test_rows_that_fade_are_in_the_order_of_the_partitions(parts, frame):
    selector = tamis.TScore(2, half_life=200)
    with pytest.raises(ValueError, match="when is None, but rows fade"):
        screen(parts, "y", selector, features=NAMES)
    got = screen(parts, "y", selector, features=NAMES, when="after")
    one = tamis.TScore(2, half_life=200).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(got.scores_, one.scores_, rtol=1e-12)


def test_a_regression(parts, frame):
    df = parts.dropna()
    rows = frame.dropna()
    got = screen(
        df, "c", tamis.ForwardPartialCorrelation(2, task="regression"), features=["a", "b", "d", "e"]
    )
    cuts = [rows[rows.index.isin(part)] for part in np.array_split(np.arange(3000), 7)]
    learned = (
        tamis.ForwardPartialCorrelation(2, task="regression").fit(r[["a", "b", "d", "e"]], r["c"])
        for r in cuts
    )
    np.testing.assert_allclose(got.scores_, tamis.merge_tree(learned).scores_, rtol=1e-9)


# -- vectors --------------------------------------------------------------------------------------------


def vectors(spark, X, y, kinds):
    rows = []
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        at = np.flatnonzero(row)
        sparse = kinds == "sparse" or (kinds == "both" and i % 3 == 0)
        rows.append((int(label), Vectors.sparse(len(row), at, row[at]) if sparse else Vectors.dense(row)))
    return spark.createDataFrame(
        rows, StructType([StructField("y", IntegerType()), StructField("x", VectorUDT())])
    )


@pytest.mark.parametrize("kinds", ["dense", "sparse", "both"])
@pytest.mark.parametrize("selector", [tamis.FisherScore(2), tamis.ChiSquare(2)], ids=["moments", "bins"])
def test_vectors(spark, kinds, selector):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(600, 8)), 1) * (rng.random((600, 8)) < 0.3)
    y = rng.integers(0, 2, 600)
    X[:, 5] += y
    got = screen(vectors(spark, X, y, kinds), "y", selector)
    one = type(selector)(2).fit(X if kinds == "dense" else sp.csr_matrix(X), y)
    np.testing.assert_allclose(got.scores_, one.scores_, atol=1e-12 * one.scores_.max())
    assert got.get_support(indices=True).tolist() == one.get_support(indices=True).tolist()


def test_transform(spark, parts, frame):
    selector = screen(parts, "y", tamis.TScore(2), features=NAMES)
    assert transform(parts, selector).columns == ["c", "d", "y", "w"]
    with pytest.raises(DataError, match="features names 'c', which df does not have: its columns are a, b"):
        transform(parts.drop("c"), selector)
    X, y = np.eye(4)[np.arange(40) % 4] * 7.0, np.arange(40) % 4 == 2
    for kinds in ("dense", "sparse"):
        df = vectors(spark, X, y, kinds)
        kept = transform(df, screen(df, "y", tamis.TScore(2)))
        assert kept.columns == ["y", "x"]
        rows = kept.collect()
        assert [row.y for row in rows] == y.astype(int).tolist()
        support = screen(df, "y", tamis.TScore(2)).get_support()
        np.testing.assert_array_equal([row.x.toArray() for row in rows], X[:, support])
    with pytest.raises(DataError, match="df has 0 vector columns"):
        transform(parts, screen(df, "y", tamis.TScore(2)))


# -- what is refused, in one sentence ---------------------------------------------------------------------


def test_what_is_refused_before_a_job_is_started(spark, parts):
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    t, fades = tamis.TScore(2), tamis.TScore(2, fading=0.9, fade_per="batch")
    nested = parts.select(
        "y", F.array("a", "b").alias("list"), F.struct("a").alias("s"), F.col("y").alias("text")
    )
    for error, message, act in [
        (DataError, "label names 'Y2', which df does not have: its columns are a, b", lambda: screen(parts, "Y2", t)),
        (DataError, r"features names 'z', which df", lambda: screen(parts, "y", t, features=["a", "z"])),
        (DataError, "weight names 'v', which df", lambda: screen(parts, "y", t, weight="v")),
        (DataError, "'y', the weight, is of type string", lambda: screen(parts, "a", t, weight="y")),
        (DataError, "Column 'y' is of type string, not numeric: encode it, or", lambda: screen(parts, "a", t)),
        (DataError, "features names 'y', which is the label", lambda: screen(parts, "y", t, features=["y"])),
        (DataError, "features is empty", lambda: screen(parts, "y", t, features=[])),
        (DataError, "'list' is of type array<double>.*_to_vector", lambda: screen(nested, "y", t, features="list")),
        (DataError, "'s' is of type struct<a:double>, not numeric", lambda: screen(nested, "y", t, features=["s"])),
        (DataError, "Column 's', the label, is of type struct", lambda: screen(nested, "s", t)),
        (DataError, "2 columns named 'a': rename", lambda: screen(parts.select("a", "a", "y"), "y", t)),
        (TypeError, r"selector cannot be an? EFS, .* merge\. Prod", lambda: screen(parts, "y", tamis.EFS(2))),
        (TypeError, "selector must be a row selector, got 'mi'", lambda: screen(parts, "y", "mi")),
        (TypeError, "df must be a DataFrame of Spark", lambda: screen(pd.DataFrame(), "y", t)),
        (ValueError, "n_bins must be an integer", lambda: screen(parts, "y", tamis.MutualInformation(2, n_bins=1))),
        (ValueError, "when must be 'after' or None", lambda: screen(parts, "y", t, when="before")),
        (ValueError, "fade_per='batch' counts calls", lambda: screen(parts, "y", fades)),
        (ValueError, "classes names a label twice", lambda: screen(parts, "y", t, classes=["a", "a"])),
    ]:  # fmt: skip
        with pytest.raises(error, match=message) as caught:
            act()
        assert "\n" not in str(caught.value)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == jobs


@pytest.mark.parametrize("selector", [tamis.TScore(1), tamis.ChiSquare(1)], ids=["moments", "bins"])
def test_what_only_the_rows_tell(spark, parts, selector):
    df = spark.createDataFrame(
        [(1.0, "a", 1.0), (2.0, None, 1.0), (3.0, "b", None)], "x double, y string, w double"
    )
    infinite = df.select((F.col("x") / 1e-308 / 1e-9).alias("x"), F.lit("a").alias("y"))
    for message, rows, more in [
        (r"Column 'y', the label, is null in 1 of \d rows: .* df.dropna\(subset=\['y'\]\)", df.drop("w"), {}),
        (r"Column 'w', the weight, is null in 1 of \d rows", df.fillna("c"), {"weight": "w"}),
        ("w|weights must be", df.fillna(-1.0).fillna("c"), {"weight": "w"}),
        ("df has no rows", df.filter("x > 7"), {}),
        ("df has no rows", parts.filter("a > 99").select("a", "y"), {}),
        ("Input X contains infinity in column 'x'", infinite, {}),
    ]:  # fmt: skip
        with pytest.raises(DataError, match=message) as caught:
            screen(rows, "y", selector, **more)
        assert "\n" not in str(caught.value)
    x = [Vectors.dense([1.0, 2.0]), Vectors.dense([1.0]), None]
    for other, message in ((1, "of 2 and of 1 entries|2 here and 1 there"), (2, "null in 1 of")):
        schema = StructType([StructField("y", IntegerType()), StructField("x", VectorUDT())])
        with pytest.raises((DataError, ValueError), match=message):
            screen(spark.createDataFrame([(0, x[0]), (1, x[other])], schema), "y", selector)


# -- workers ------------------------------------------------------------------------------------------------


def test_a_killed_worker_changes_nothing(parts, tmp_path):
    want = tamis.dumps(screen(parts, "y", tamis.Screening(2), features=NAMES))
    killed = str(tmp_path / "killed")

    def kill_once(batches):
        import os

        for batch in batches:
            if not os.path.exists(killed):
                open(killed, "w").close()
                os.kill(os.getpid(), 9)
            yield batch

    df = parts.mapInArrow(kill_once, parts.schema)
    # Spark's own words: the columns and their types are the same.
    got = screen(df, "y", tamis.Screening(2), features=NAMES)
    assert Path(killed).exists()
    assert tamis.dumps(got) == want


HIDES = """
import builtins
real = builtins.__import__

def found(name, *args, **named):
    if name.split(".")[0] == "PACKAGE":
        raise ModuleNotFoundError(f"No module named '{name}'")
    return real(name, *args, **named)

builtins.__import__ = found
"""


def test_workers_of_another_python(spark, parts, monkeypatch, tmp_path):
    context = spark.sparkContext
    with monkeypatch.context() as patch:
        patch.setattr(context, "pythonVer", "3.8")
        with pytest.raises(
            RuntimeError, match=r"^The workers run another Python than this program.*PYSPARK_PYTHON"
        ):
            screen(parts, "y", tamis.TScore(2), features=NAMES)
    with monkeypatch.context() as patch:
        patch.setattr(context, "pythonExec", "no-such-python")
        with pytest.raises(RuntimeError, match=r"^A worker cannot start 'no-such-python'.*PYSPARK_PYTHON"):
            screen(parts, "y", tamis.TScore(2), features=NAMES)
    for package, message in [
        (
            "tamis",
            r"^A worker's Python, \S+, cannot use tamis \(.*\): install it there, or set PYSPARK_PYTHON",
        ),
        ("pyarrow", r"^The Python of a worker has no package 'pyarrow': set PYSPARK_PYTHON"),
    ]:
        (tmp_path / package).mkdir()
        (tmp_path / package / "sitecustomize.py").write_text(HIDES.replace("PACKAGE", package))
        python = tmp_path / package / "python"
        python.write_text(
            f'#!/bin/sh\nPYTHONPATH="{tmp_path / package}:$PYTHONPATH" exec {sys.executable} "$@"\n'
        )
        python.chmod(stat.S_IRWXU)
        with monkeypatch.context() as patch:
            patch.setattr(context, "pythonExec", str(python))
            with pytest.raises(RuntimeError, match=message) as caught:
                screen(parts, "y", tamis.TScore(2), features=NAMES)
            assert "\n" not in str(caught.value)


def test_a_selector_of_ones_own(parts, frame):
    Mine = type("Mine", (tamis.TScore,), {"__module__": "__main__", "__doc__": "Mine."})
    got = screen(parts, "y", Mine(2), features=NAMES)
    assert type(got) is Mine
    np.testing.assert_allclose(got.scores_, tamis.TScore(2).fit(frame[NAMES], frame["y"]).scores_, rtol=1e-12)


# -- streams ------------------------------------------------------------------------------------------------


SELECTOR = tamis.Screening(2, scores=["t", "mi"])


def files(folder, n_files=6):
    folder.mkdir()
    frame = make(n_files * 100, seed=3)
    for i in range(n_files):
        path = folder / f"{i:03d}.parquet"
        pq.write_table(pa.Table.from_pandas(frame[100 * i : 100 * i + 100], preserve_index=False), path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))  # Spark reads them in the order of their times
    return frame


def query(spark, rows, learn, checkpoint):
    schema = "a double, b double, c double, d double, e double, y string, w double"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(rows))
    writer = stream.writeStream.foreachBatch(learn).option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def follow(spark, rows, states, checkpoint, selector=SELECTOR):
    learn = StreamingScreen(selector, "y", states, features=NAMES)
    query(spark, rows, learn, checkpoint).awaitTermination()
    return learn


def test_a_stream_is_learned_from_batch_by_batch(spark, tmp_path):
    frame = files(tmp_path / "rows")
    learn = follow(spark, tmp_path / "rows", tmp_path / "states", tmp_path / "query")
    assert learn.batch_id_ == 5
    one = tamis.Screening(2, scores=["t", "mi"]).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(learn.selector_.scores_, one.scores_, rtol=1e-12)
    assert learn.selector_.n_seen_ == 600
    assert len(learn.selector_._bins._exact._parts) == 1
    assert sorted(p.name for p in (tmp_path / "states").iterdir()) == [
        f"batch-{i:015d}.tamis" for i in (4, 5)
    ]
    again = StreamingScreen(SELECTOR, "y", tmp_path / "states", features=NAMES)
    assert tamis.dumps(again.selector_) == tamis.dumps(learn.selector_)
    # Another query, or one that restarted, is not taken for this one; nor are batches passed over.
    with pytest.raises(Exception, match="contains the state of another query: use a separate folder"):
        follow(spark, tmp_path / "rows", tmp_path / "states", tmp_path / "other")
    with pytest.raises(StreamError, match=r"offers batch 9, but .* contains the state after batch 5"):
        again(None, 9)
    with pytest.raises(StreamError, match=r"offers batch 3, but .* contains no state: pass the folder"):
        StreamingScreen(SELECTOR, "y", tmp_path / "new", features=NAMES)(None, 3)
    again(None, 5)  # which it has learned from
    with pytest.raises(AttributeError, match="after the first batch"):
        _ = StreamingScreen(SELECTOR, "y", tmp_path / "new", features=NAMES).selector_
    with pytest.raises(ValueError, match="df is a stream: give a StreamingScreen"):
        screen(spark.readStream.schema("y int, a double").parquet(str(tmp_path / "rows")), "y", SELECTOR)


CHILD = """
import os, signal, sys
from pathlib import Path
from types import ModuleType
sys.path.insert(0, {root!r})
from tests.adapters import spark_cases as cases
from tamis.adapters.spark import screening as adapter

rows, states, checkpoint, at, when = sys.argv[1:]
real = adapter.save

def save(state, path):
    if state["batch"] == int(at) and when == "before":
        os.killpg(0, signal.SIGKILL)
    real(state, path)
    if state["batch"] == int(at) and when == "after":  # Spark has not written down that the batch is done
        os.killpg(0, signal.SIGKILL)

adapter.save = save
cases.follow(cases.start("local[2]"), rows, states, checkpoint)
"""


def test_a_stream_that_is_killed_learns_from_each_batch_once(spark, tmp_path):
    files(tmp_path / "rows", 4)
    whole = follow(spark, tmp_path / "rows", tmp_path / "whole", tmp_path / "query of whole")
    given = [str(tmp_path / name) for name in ("rows", "states", "query")]
    for at, when in ((1, "after"), (2, "before")):
        code = [sys.executable, "-W", "ignore", "-c", CHILD.format(root=str(ROOT)), *given, str(at), when]
        done = subprocess.run(code, start_new_session=True, capture_output=True, check=False, timeout=300)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
        assert max((tmp_path / "states").glob("batch-*")).name == f"batch-{1:015d}.tamis"
    learn = follow(spark, tmp_path / "rows", tmp_path / "states", tmp_path / "query")
    assert learn.selector_.n_seen_ == 400
    assert tamis.dumps(learn.selector_) == tamis.dumps(whole.selector_)


# -- two passes, and a sample -------------------------------------------------------------------------------


def wide_rows(n=2000):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 30)).astype(np.float32)
    X[:, 4] = X[:, 3] + 0.1 * X[:, 4]  # a copy
    y = X[:, 3] + 0.6 * X[:, 21] + 0.5 * rng.normal(size=n) > 0.8
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]).assign(y=np.where(y, "yes", "no"))


def test_select_in_two_passes_also_where_a_worker_is_killed(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_rows, "_PART_BYTES", 100_000)
    frame = wide_rows()
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    got = select(tmp_path / "rows.parquet", "y", candidates=10)
    assert set(got.table["feature"]) in ({"x3", "x21"}, {"x4", "x21"})
    assert (got.n_seen, got.n_candidates, len(got.feature_names_in_)) == (2000, 10, 30)
    assert got.table["adjusted"].max() < 1e-6
    assert got.selector.get_support().sum() == got.get_support().sum() == 2
    page = got.report(tmp_path / "selection.html").read_text(encoding="utf-8")
    assert "2 of 30 columns; 2,000 rows; 10 candidates; 2 significant at level 0.01" in page
    assert len(select(tmp_path / "rows.parquet", "y", 4, candidates=30).table["feature"]) == 4
    killed, df = str(tmp_path / "killed"), spark.read.parquet(str(tmp_path / "rows.parquet"))

    def kill_once(batches):
        import os

        for batch in batches:
            if not os.path.exists(killed):
                open(killed, "w").close()
                os.kill(os.getpid(), 9)
            yield batch

    again = select(df.mapInArrow(kill_once, df.schema), "y", candidates=10)
    assert Path(killed).exists()
    assert again.table["feature"].tolist() == got.table["feature"].tolist()
    np.testing.assert_allclose(again.table["gain"], got.table["gain"], rtol=1e-9)
    x = vectors(spark, frame.drop(columns="y").to_numpy(dtype=float), frame["y"] == "yes", "dense")
    of_vectors = select(x, "y", candidates=10)
    assert of_vectors.table["feature"].tolist() == [name[1:] for name in got.table["feature"]]
    assert of_vectors.transform(x).first()["x"].size == 2
    noise = frame.assign(y=np.arange(2000) % 2)
    noise.to_parquet(tmp_path / "noise.parquet")
    assert select(tmp_path / "noise.parquet", "y").table["feature"].tolist() == []


def test_recommend_on_a_sample_of_every_class_and_period(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_rows, "_PART_BYTES", 50_000)
    frame = wide_rows().assign(x0=np.arange(2000.0))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    seen = {}

    def race(stream, **given):
        seen.update(given, X=stream[0], y=stream[1])
        return "raced"

    monkeypatch.setattr("tamis.evaluate.recommendation.recommend", race)
    for df in (tmp_path / "rows.parquet", spark.read.parquet(str(tmp_path / "rows.parquet"))):
        assert recommend(df, "y", n_rows=400, learner="naive-bayes") == "raced"
        rows = seen["X"][:, 0].astype(int)
        assert (np.diff(rows) > 0).all()  # in the order of the stream
        assert (seen["y"] == frame["y"].to_numpy()[rows]).all()
        for label in ("yes", "no"):
            of_class = np.flatnonzero(frame["y"] == label)
            n = len(of_class)
            taken = np.searchsorted(of_class, rows[seen["y"] == label])
            assert len(taken) == pytest.approx(seen["max_rows"] * n / 2000, abs=1)
            assert np.ptp(np.diff(taken)) <= 1  # every k-th row of the class


# -- the page -----------------------------------------------------------------------------------------------


def test_the_page_runs(spark, tmp_path):
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    names, before = {"spark": spark}, set(Path.cwd().iterdir())
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for name in (
            "arriving",
            "states",
            "query",
            "measurements.parquet",
            "selection.html",
        ):  # Java stays where it was started
            block = block.replace(f'"{name}"', repr(str(tmp_path / name)))
        exec(block, names)
    assert names["selector"].get_feature_names_out().tolist() == ["pressure"]
    assert set(Path.cwd().iterdir()) == before  # every file that the page writes is in tmp_path


def test_the_tutorial_runs(spark, tmp_path, monkeypatch, capfd):
    """A block of text right after a block of Python is what that prints."""
    text = (ROOT / "docs" / "tutorials" / "many_machines.md").read_text(encoding="utf-8")
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    block = r"^```(?:python|{code-block} python)\n(.*?)^```(?:\n+```text\n(.*?)^```)?"
    for code, printed in re.findall(block, text, flags=re.MULTILINE | re.DOTALL):
        if "matplotlib" not in code:
            capfd.readouterr()
            # Java stays where it was started
            exec(code.replace('"market', f'"{tmp_path}/market'), vars(module))
            assert capfd.readouterr().out == printed


# -- files --------------------------------------------------------------------------------------------------


def test_a_relative_folder_has_files_with_absolute_paths(tmp_path, monkeypatch):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.csv").write_text("x,y\n1,a\n")
    monkeypatch.chdir(tmp_path)
    assert arrow_rows.list_files("rows") == [(str(tmp_path / "rows" / "0.csv"), 8)]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_read_by_the_workers(spark, frame, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(arrow_rows, "_PART_BYTES", 10_000)  # several partitions, and shares of a file
    folder = tmp_path / "rows.and.more"
    (folder / "_hidden").mkdir(parents=True)
    (folder / "_hidden" / "x.parquet").write_bytes(b"none of ours")
    (folder / "_SUCCESS").touch()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        path = folder / f"{i}.{suffix}"
        if suffix == "csv":
            frame.iloc[rows].to_csv(path, index=False)
        else:
            table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
            pq.write_table(table, path, row_group_size=150)
    parts = arrow_rows.split_files(arrow_rows.list_files(folder))
    assert len(parts) >= 3
    selector = tamis.Screening(2, scores=["t", "mi"], dependence="independent")
    one = clone(selector).fit(frame[NAMES], frame["y"])
    paths = [folder / f"{i}.{suffix}" for i in range(3)]
    for given in (folder, paths):
        got = screen(given, "y", selector, features=NAMES)
        np.testing.assert_allclose(got.scores_, one.scores_, rtol=1e-12)
        assert (got.n_seen_, got.get_feature_names_out().tolist()) == (3000, ["c", "d"])
    weighted = screen(str(folder), "y", tamis.FisherScore(2), weight="w")
    want = tamis.FisherScore(2).fit(frame[NAMES], frame["y"], sample_weight=frame["w"])
    np.testing.assert_allclose(weighted.scores_, want.scores_, rtol=1e-12)
    fades = tamis.TScore(2, half_life=200)
    got = screen(folder, "y", fades, features=NAMES, when="after")  # in the order of the files' names
    np.testing.assert_allclose(got.scores_, fades.fit(frame[NAMES], frame["y"]).scores_, rtol=1e-12)


def test_files_that_are_rejected(spark, frame, tmp_path):
    t, path = tamis.TScore(2), tmp_path / "a.parquet"
    frame.to_parquet(path)
    frame.drop(columns="c").to_parquet(tmp_path / "b.parquet")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.csv").write_text("a,y\n1,u\n2,v\nthree,u\n")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    for error, message, source in [
        (DataError, "No file or folder '.*none'", tmp_path / "none"),
        (DataError, "is a Delta table", tmp_path / "delta"),
        (DataError, "files have several formats", [path, tmp_path / "text.csv"]),
        (DataError, "neither Parquet nor CSV by its name", [ROOT / "pyproject.toml"]),
        (DataError, "cannot be read as Parquet", tmp_path / "torn.parquet"),
        (DataError, "b.parquet' has no column 'c', which the first file has", [path, tmp_path / "b.parquet"]),
        (DataError, "Column 'a' is of type string, not numeric", tmp_path / "text.csv"),
        (DataError, "contains no data files", tmp_path / "empty"),
        (TypeError, "a path or a list of paths, got 7", 7),
        (TypeError, r"a path or a list of paths, got \[\]", []),
    ]:
        with pytest.raises(error, match=message):
            screen(source, "y", t)
    with pytest.raises(
        DataError, match=r"label names 'z', which .*a\.parquet' does not have: its columns are a, b"
    ):
        screen(path, "z", t)
    with pytest.raises(DataError, match=r"'y' is of type .*string, not numeric: encode it"):
        screen(path, "a", t)


def test_ten_thousand_columns_of_a_file_are_no_part_of_the_plan(spark, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 10_000)).astype(np.float32), np.arange(40) % 2
    X[:, 7777] += 9 * y
    names = [f"x{j}" for j in range(10_000)]
    table = pa.table({**dict(zip(names, X.T, strict=True)), "y": y})
    pq.write_table(table, tmp_path / "wide.parquet")
    assert screen(tmp_path / "wide.parquet", "y", tamis.TScore(1)).get_feature_names_out().tolist() == [
        "x7777"
    ]


# -- DataFrames that are files ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(spark, frame, tmp_path_factory):
    """A folder with two files, whose name has to be quoted in a URL."""
    folder = tmp_path_factory.mktemp("plain") / "rows of a b%"
    folder.mkdir()
    for i, rows in enumerate(np.split(np.arange(3000), [1200])):
        pq.write_table(pa.Table.from_pandas(frame.iloc[rows], preserve_index=False), folder / f"{i}.parquet")
    return folder


@pytest.mark.parametrize("selector", [tamis.TScore(2), tamis.MutualInformation(2)], ids=repr)
def test_a_frame_that_is_files_is_read_by_the_workers(spark, frame, plain, selector, monkeypatch):
    df = spark.read.parquet(str(plain))
    monkeypatch.setattr(FrameRows, "map", None)  # the rows of Spark
    monkeypatch.setattr(FrameRows, "first", None)
    for one in (df, df.select("y", *NAMES), df.select(F.col("e"), "y", *NAMES[:4]).select("y", *NAMES)):
        got = screen(one, "y", selector, features=NAMES)
        by_path = screen(str(plain), "y", selector, features=NAMES)
        assert (got.n_seen_, got.get_feature_names_out().tolist()) == (
            3000,
            by_path.get_feature_names_out().tolist(),
        )
        np.testing.assert_array_equal(got.scores_, by_path.scores_)
    n_weighted = int((frame["w"] > 0).sum())  # a row of weight 0 is not seen
    assert screen(df, "y", tamis.TScore(2), weight="w").n_seen_ == n_weighted


def test_what_spark_computes_is_not_read_from_files(spark, frame, plain, tmp_path):
    df = spark.read.parquet(str(plain))
    df.write.partitionBy("y").parquet(str(tmp_path / "folders"))
    cached = spark.read.parquet(str(plain)).persist()
    try:
        for one in (
            df.filter("a > 0"), df.limit(10), df.withColumn("a", -F.col("a")), df.select("y", F.col("b").alias("a")),
            df.union(df), df.sample(0.5, seed=0), df.repartition(2), cached, spark.createDataFrame(frame),
            spark.read.schema("a float, y string").parquet(str(plain)), spark.read.parquet(str(tmp_path / "folders")),
        ):  # fmt: skip
            assert plain_files(one, ["y", "a"]) is None, one
    finally:
        cached.unpersist()
    assert [Path(path).name for path, _ in plain_files(df, ["y", "a"])] == ["0.parquet", "1.parquet"]
    got = screen(df.filter("a > 0"), "y", tamis.TScore(2), features=NAMES)
    one = tamis.TScore(2).fit(frame.loc[frame["a"] > 0, NAMES], frame.loc[frame["a"] > 0, "y"])
    np.testing.assert_allclose(got.scores_, one.scores_, rtol=1e-12)


def test_a_column_that_a_file_lacks_is_missing(spark, frame, tmp_path):
    pq.write_table(pa.Table.from_pandas(frame[:1000], preserve_index=False), tmp_path / "0.parquet")
    late = frame[1000:].drop(columns="b")
    pq.write_table(pa.Table.from_pandas(late, preserve_index=False), tmp_path / "1.parquet")
    df = spark.read.option("mergeSchema", "true").parquet(str(tmp_path))
    assert plain_files(df, ["y", *NAMES]) is not None
    whole = frame.copy()
    whole.loc[1000:, "b"] = np.nan
    got = screen(df, "y", tamis.TScore(2), features=NAMES)
    np.testing.assert_allclose(got.scores_, tamis.TScore(2).fit(whole[NAMES], whole["y"]).scores_, rtol=1e-12)
