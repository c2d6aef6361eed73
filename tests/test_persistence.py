"""What is saved comes back equal and goes on the same; what is damaged or hostile is refused in one sentence."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import tamis
from tamis import catalog
from tamis.errors import CheckpointError
from tamis.persistence import archive, codec
from tamis.persistence.attributes import check_attributes
from tamis.summaries.moments import RunningMoments


class Own(BaseEstimator):
    """An estimator of the user's own."""

    def __init__(self, step: float = 1.0) -> None:
        self.step = step


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal in type, in every bit, and all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape or a.flags.f_contiguous != b.flags.f_contiguous:
            return False
        if a.dtype == object:
            return all(same(x, y) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
        return a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return all(same(x, y) for x, y in zip(a.items(), b.items(), strict=True)) and len(a) == len(b)
    if isinstance(a, sp.csr_matrix | sp.csr_array):
        parts = ("data", "indices", "indptr", "shape")
        return all(same(getattr(a, part), getattr(b, part)) for part in parts)
    if isinstance(a, BaseEstimator | RunningMoments):
        return same(vars(a), vars(b))
    return bool(a == b)


def round_trip(value: Any, folder: Path, **options: Any) -> Any:
    return tamis.load(tamis.save(value, folder / "value.tamis"), **options)


def flipped(text: str) -> np.ndarray:
    labels = np.array([["a", 1, None], [2.5, True, text]], dtype=object)
    return np.asfortranarray(labels)


VALUES: dict[str, Any] = {
    "none": None,
    "bools": [True, False],
    "ints": [0, -1, 2**62, 2**63, -(2**63), 10**6000],
    "floats": [0.1, -0.0, 1e-320, float("nan"), float("inf"), -float("inf")],
    "text": ["", "é\u2028\n", "\ud800", "x" * 10_000],
    "bytes": b"\x00\xff",
    "containers": ([], (), {}, set(), frozenset({(1, "a")}), [(1, [2, {3}])]),
    "dict": {"a": 1, 2: "b", (3, "c"): None, 1.5: [], None: {}, True: "one"},
    "scalars": [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("é"), np.complex64(1j), np.datetime64(9, "M")],
    "dtypes": [np.arange(4).astype(kind) for kind in "?bBhHiIlLqQefdgFD"] + [np.arange(3, dtype=">f4")],
    "text arrays": [np.array(["é", "bb"]), np.array([b"x", b"yy"]), np.array(["2020-01-01", "NaT"], dtype="M8[ns]")],
    "orders": [np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.asfortranarray(np.ones((3, 4, 2)))],
    "shapes": [np.array(2.5), np.zeros((0, 3)), np.zeros((2, 0)), np.zeros((1, 1, 1, 1))],
    "labels": [np.array(["a", 1, None], dtype=object), flipped("z"), np.array(None, object), np.array([], object)],
    "csr": [
        sp.random(5, 7, 0.3, format="csr", random_state=0),
        sp.csr_array(np.eye(3, dtype=np.float32)),
        sp.csr_matrix((3, 4)),
    ],
    "objects": [Perceptron(alpha=0.5), RunningMoments(3), tamis.FIRES(0.2)],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name: str, tmp_path: Path) -> None:
    assert same(round_trip(VALUES[name], tmp_path), VALUES[name])


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.integers() | st.text() | st.tuples(st.text(), st.booleans())
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(value=TREES)
@settings(max_examples=150, deadline=None)
def test_any_nesting_comes_back(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert same(round_trip(value, tmp_path_factory.getbasetemp()), value)


def test_view_is_saved_as_it_reads(tmp_path: Path) -> None:
    table = np.arange(20.0).reshape(4, 5)
    loaded = round_trip(table[::2, 1:4], tmp_path)
    np.testing.assert_array_equal(loaded, table[::2, 1:4])
    loaded[0, 0] = -1.0  # its own memory, and writable
    assert table[0, 1] == 1.0


def test_an_object_met_twice_stays_one(tmp_path: Path) -> None:
    array, generator = np.zeros(1000), np.random.default_rng(0)
    loaded = round_trip({"a": array, "b": [array], "one": generator, "two": generator}, tmp_path)
    assert loaded["a"] is loaded["b"][0]
    assert loaded["one"] is loaded["two"]
    assert (tmp_path / "value.tamis").stat().st_size < 2 * array.nbytes


def test_equal_state_makes_equal_bytes(tmp_path: Path) -> None:
    value = {"model": tamis.FIRES().fit(np.eye(4), [0, 0, 1, 1]), "names": {"b", "a", "c"}}
    first, second = tamis.save(value, tmp_path / "a"), tamis.save(value, tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


def test_arrays_can_be_looked_at_with_numpy(tmp_path: Path) -> None:
    path = tamis.save({"weights": np.arange(3.0)}, tmp_path / "value.npz")
    assert np.load(path)["0"].tolist() == [0.0, 1.0, 2.0]


# -- what was saved goes on --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
@pytest.mark.parametrize("make", [np.random.Generator, np.random.RandomState])
def test_random_numbers_go_on(make: Any, bits: str, tmp_path: Path) -> None:
    generator = make(getattr(np.random, bits)(7))
    generator.standard_normal(5)
    generator.bytes(3)
    loaded = round_trip(generator, tmp_path)
    assert loaded.standard_normal(700).tolist() == generator.standard_normal(700).tolist()
    assert loaded.bytes(9) == generator.bytes(9)
    if make is np.random.Generator:
        assert loaded.spawn(2)[1].random() == generator.spawn(2)[1].random()


def test_what_is_set_together_is_loaded_together(rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 3))
    attributes = vars(tamis.JointScreening().fit(X, X[:, 0] > 0))
    check_attributes(tamis.JointScreening, attributes)
    for name in ("_evidence", "_bars"):
        part = {key: value for key, value in attributes.items() if key != name}
        with pytest.raises(
            CheckpointError, match=f"a JointScreening without the required attribute '{name}'"
        ):
            check_attributes(tamis.JointScreening, part)
    before = tamis.JointScreening()
    before.partial_fit(X[:20], X[:20, 0] > 0)  # too few rows: nothing of it is set
    check_attributes(tamis.JointScreening, vars(before))


def test_a_sparse_matrix_costs_all_that_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent, own = [], codec._Decoder._charge

    def spend(self: codec._Decoder, work: int) -> None:
        spent.append(work)
        own(self, work)

    monkeypatch.setattr(codec._Decoder, "_charge", spend)
    X = sp.random(200, 50, 0.3, format="csr", rng=np.random.default_rng(0))
    tamis.load(tamis.save(X, tmp_path / "matrix"))
    assert codec._MATRIX_WORK + X.data.nbytes + X.indices.nbytes + X.indptr.nbytes in spent


class OwnBits(np.random.PCG64):
    """Bits of one's own, which no file can name."""


def test_random_numbers_of_unknown_bits_are_refused(tmp_path: Path) -> None:
    generator = np.random.Generator(OwnBits(0))
    with pytest.raises(TypeError, match=r"Cannot save the generator: it draws from a OwnBits\."):
        tamis.save(generator, tmp_path / "value")
    with pytest.raises(TypeError, match=r"Cannot save model\.rng: it draws from a OwnBits\."):
        tamis.save({"model": {"rng": generator}}, tmp_path / "value")


def test_seeded_random_state_goes_on(tmp_path: Path) -> None:
    generator = np.random.RandomState(3)
    generator.standard_normal()  # makes a pair, keeps one
    loaded = round_trip(generator, tmp_path)
    assert loaded.standard_normal(3).tolist() == generator.standard_normal(3).tolist()


LEARNERS = [
    Perceptron(random_state=0), Perceptron(penalty="elasticnet", random_state=1),
    SGDClassifier(average=True, random_state=0), SGDClassifier(loss="log_loss", average=30, random_state=0),
    SGDClassifier(loss="modified_huber", learning_rate="adaptive", eta0=0.1, random_state=0),
    GaussianNB(), MultinomialNB(), BernoulliNB(),
]  # fmt: skip


@pytest.mark.parametrize("labels", [[0, 1], ["a", "b", "c"]], ids=["binary", "multiclass"])
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_learner_goes_on(learner: Any, labels: list[Any], tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.random(size=(300, 6))
    y = np.array(labels)[np.minimum((X[:, 0] * len(labels)).astype(int), len(labels) - 1)]
    original = type(learner)(**learner.get_params()).partial_fit(X[:100], y[:100], classes=labels)
    loaded = round_trip(original, tmp_path)
    assert same(loaded.predict(X), original.predict(X))
    for start in (100, 200):
        original.partial_fit(X[start : start + 100], y[start : start + 100])
        loaded.partial_fit(X[start : start + 100], y[start : start + 100])
    state = {name: value for name, value in vars(original).items() if name != "_loss_function_"}
    assert same({name: vars(loaded)[name] for name in state}, state)


def test_pipeline_goes_on(tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 5))
    pipeline = make_pipeline(MinMaxScaler(), StandardScaler(), tamis.FIRES(2), GaussianNB()).fit(
        X, X[:, 3] > 0
    )
    assert same(round_trip(pipeline, tmp_path).predict_proba(X), pipeline.predict_proba(X))


def test_own_estimator_loads_if_its_class_is_given(tmp_path: Path) -> None:
    path = tamis.save({"mine": Own(step=0.5)}, tmp_path / "own.tamis")
    assert tamis.load(path, classes=[Own])["mine"].step == 0.5
    with pytest.raises(CheckpointError, match=r"Own, which belongs neither .* classes=\[Own\]"):
        tamis.load(path)


def test_other_version_of_scikit_learn_warns(tmp_path: Path) -> None:
    path = tamis.save(Perceptron(), tmp_path / "model.tamis")
    content = manifest_of(path)
    content["versions"]["sklearn"] = "0.1"
    with pytest.warns(InconsistentVersionWarning, match=r"Perceptron from version 0\.1"):
        tamis.load(forge(path, content))


def test_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[1] / "docs" / "persistence.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(
        r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    ):
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "[3 7]"
    assert printed[1].startswith("Cannot save learner.tree_: it is a sklearn.tree._tree.Tree, but ")


# -- what cannot be saved ----------------------------------------------------------------------------------


def test_unsavable_value_is_named_by_its_path(tmp_path: Path) -> None:
    tree = DecisionTreeClassifier().fit(np.eye(4), [0, 0, 1, 1])
    cases = [
        ({"learner": tree}, "learner.tree_: it is a sklearn.tree._tree.Tree"),
        (tree, "DecisionTreeClassifier.tree_"),
        ({"a": [1, {2: print}]}, "a[1][2]: it is a builtins.builtin_function_or_method"),
        (CountVectorizer(), "CountVectorizer.dtype: it is a builtins.type"),
        (np.array([1, object()], dtype=object), "[1]: it is a builtins.object"),
        (np.zeros(2, dtype=[("a", "f4")]), "the array: its dtype"),
        (sp.eye(3, format="coo"), "the object: it is a scipy.sparse"),
        (
            {"error": tamis.errors.DataError("no")},
            "error: a tamis.errors.DataError is not restored by its attributes",
        ),
        (lambda: None, "the object: it is a builtins.function"),
    ]
    for value, message in cases:
        with pytest.raises(TypeError) as caught:
            tamis.save(value, tmp_path / "value.tamis")
        assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_pickle_is_written_even_of_what_the_encoder_lets_through() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        archive.write(io.BytesIO(), b"{}", [np.array([{}], dtype=object)])


def test_value_that_contains_itself_is_refused(tmp_path: Path) -> None:
    loop: dict[str, Any] = {"inner": []}
    loop["inner"].append(loop)
    with pytest.raises(TypeError, match=r"inner\[0\]: it contains itself"):
        tamis.save(loop, tmp_path / "value.tamis")


@pytest.mark.parametrize(
    ("target", "reason"),
    [("no/such/folder/x.tamis", "No such file or directory"), ("folder", "Is a directory")],
)
def test_unwritable_path(target: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(
        CheckpointError, match=rf"Cannot write '.*{target}' \({reason}\): choose an existing, writable folder"
    ):
        tamis.save(1, tmp_path / target)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_full_disk_leaves_the_old_file(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tamis.save({"step": 1}, tmp_path / "value.tamis")

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(CheckpointError, match="No space left on device"):
        tamis.save({"step": 2}, path)
    monkeypatch.undo()
    assert tamis.load(path) == {"step": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_link_keeps_pointing(tmp_path: Path) -> None:
    target, link = tamis.save(1, tmp_path / "target"), tmp_path / "link"
    link.symlink_to(target)
    tamis.save(2, link)
    assert link.is_symlink()
    assert tamis.load(target) == 2


# -- damaged files -----------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return tamis.save({"a": np.arange(3.0), "b": [1, "two"], "c": Perceptron()}, tmp_path / "small.tamis")


def test_every_altered_byte_is_noticed(small: Path, rng: np.random.Generator) -> None:
    whole = small.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        small.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            tamis.load(small)


def test_every_truncation_is_noticed(small: Path) -> None:
    whole = small.read_bytes()
    for length in range(len(whole)):
        small.write_bytes(whole[:length])
        with pytest.raises(
            CheckpointError, match="truncated" if length >= 64 else "truncated|not written by"
        ):
            tamis.load(small)
    small.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="truncated or was altered: use another copy"):
        tamis.load(small)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    np.savez(path, a=np.zeros(3))
    for other in (path.with_suffix(".npz"), Path(__file__)):
        with pytest.raises(CheckpointError, match=r"was not written by tamis\.save: pass the path"):
            tamis.load(other)
    with pytest.raises(CheckpointError, match=r"Cannot read .*missing' \(No such file or directory\)"):
        tamis.load(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="Is a directory"):
        tamis.load(tmp_path)


# -- files made to harm ------------------------------------------------------------------------------------


def manifest_of(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


def forge(path: Path, content: Any, compression: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    """Write a file with a valid checksum and this content, as someone who knows the format could."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.comment = b" " * 77
        text = content if isinstance(content, str) else json.dumps(content)
        archive.writestr("manifest.json", text)
        for name, data in members.items():
            archive.writestr(name.replace("_", "") + ".npy", data)
    body = file.getvalue()[:-77]
    path.write_bytes(body + b"tamis sha256 " + hashlib.sha256(body).hexdigest().encode())
    return path


def holding(*nodes: Any) -> dict[str, Any]:
    versions = {"tamis": "0", "sklearn": sklearn.__version__}
    return {
        "format": "tamis",
        "schema": 2,
        "versions": versions,
        "nodes": nodes,
        "root": {"at": len(nodes) - 1},
    }


def npy(array: np.ndarray, **header: Any) -> bytes:
    file = io.BytesIO()
    honest = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(file, {**honest, **header})
    return file.getvalue() + array.tobytes()


def test_newer_schema_says_what_to_do(small: Path) -> None:
    content = manifest_of(small)
    content["schema"] = 3
    content["versions"]["tamis"] = "9.1"
    with pytest.raises(CheckpointError, match=r"saved by Tamis 9\.1, which is newer .* upgrade"):
        tamis.load(forge(small, content))


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "builtins:eval", "subprocess:Popen", "sklearn.conftest:Path", "sklearn.utils:Bunch",
        "sklearn.linear_model._base:LinearModel", "sklearn.datasets:fetch_openml", "tamis.persistence:save",
        "tamis.persistence:Path", "tamis.__main__:main", "tamis.errors:DataError", "tamis.base:RowSelector",
        "tamis.nowhere:Thing", "tamisx:Thing", "tamis:load", "", ":",
    ],
)  # fmt: skip
def test_classes_of_others_are_not_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        tamis.load(forge(tmp_path / "hostile", holding({"instance": [name, []]})))


HOSTILE: dict[str, dict[str, Any]] = {
    "a node that comes later": holding({"list": [{"at": 1}]}, {"list": []}),
    "a node that does not exist": holding({"list": [{"at": 7}]}),
    "an unknown kind": holding({"pickle": "gASVBQAAAAAAAAB9lC4="}),
    "an unknown value": holding({"list": [{"eval": "1"}]}),
    "a magic attribute": holding({"instance": ["sklearn.linear_model:Perceptron", [["__class__", 1]]]}),
    "an attribute that is no name": holding({"instance": ["sklearn.linear_model:Perceptron", [[1, 1]]]}),
    "a list as a key": holding({"list": []}, {"dict": [[{"at": 0}, 1]]}),
    "an object as bytes": holding({"list": [{"scalar": ["|O", "00" * 8]}]}),
    "too few bytes": holding({"list": [{"scalar": ["<U99999999", "00"]}]}),
    "too few labels": holding({"objects": ["C", [10**12], []]}),
    "a missing array": holding({"array": 3}),
    "a generator of another name": holding(
        {"dict": [["bit_generator", "seed"], ["state", None]]},
        {"Generator": [["state", {"at": 0}], ["seed", None]]},
    ),
    "no manifest": [],
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_manifest_is_refused(case: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        tamis.load(forge(tmp_path / "hostile", HOSTILE[case]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_any_change_of_the_manifest_is_refused_or_loads(tmp_path: Path, rng: np.random.Generator) -> None:
    """With a valid checksum, as by someone who knows the format: nothing but CheckpointError may come of it."""
    value = {
        "a": np.arange(3.0),
        "g": np.random.default_rng(0),
        "s": sp.eye(3, format="csr"),
        "m": Perceptron(),
        "i": 2**70,
    }
    path = tamis.save(value, tmp_path / "hostile")
    text = json.dumps(manifest_of(path))
    with zipfile.ZipFile(path) as archive:
        members = {f"_{i}": archive.read(f"{i}.npy") for i in range(len(archive.namelist()) - 1)}
    letters = "0123456789-[]{},:.eE\"' _abcdefnprstu"
    loaded, refused = 0, []
    for _ in range(1500):
        at, letter = int(rng.integers(len(text))), letters[rng.integers(len(letters))]
        changed = text[:at] + letter + text[at + int(rng.integers(2)) :]
        try:
            tamis.load(forge(path, changed, **members))
            loaded += 1
        except CheckpointError as error:
            refused.append(str(error))
    assert min(loaded, len(refused)) > 100
    assert not any("\n" in message for message in refused)


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a valid file"):
        tamis.load(forge(tmp_path / "hostile", "[" * 100_000))


def test_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = holding({"array": 0})
    path = forge(tmp_path / "bomb", bomb, zipfile.ZIP_DEFLATED, _0=npy(np.zeros(1_000_000)))
    assert path.stat().st_size < 20_000
    with pytest.raises(CheckpointError, match="declares more data than it contains"):
        tamis.load(path)


@pytest.mark.parametrize(
    "data",
    [
        npy(np.zeros(2), shape=(10**15,)),
        npy(np.zeros(2), shape=(2**62, 2**62)),
        npy(np.zeros(2), shape=(-2,)),
        npy(np.zeros(2), descr="|O"),
        npy(np.zeros(2), descr="<U4000000000"),
        npy(np.zeros(2), descr=[("a", "|O")]),
        npy(np.zeros(2))[:-1],
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"",
    ],
    ids=["long", "huge", "negative", "objects", "wide", "record", "short", "header", "empty"],
)
def test_array_that_lies_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        tamis.load(forge(tmp_path / "hostile", holding({"array": 0}), _0=data))


def test_sparse_matrix_that_points_outside_is_refused(tmp_path: Path) -> None:
    matrix = sp.csr_matrix(np.eye(3))
    matrix.indices[1] = 10**6
    with pytest.raises(CheckpointError, match="indices"):
        tamis.load(tamis.save(matrix, tmp_path / "hostile"))


@pytest.mark.parametrize(("bits", "position"), [("MT19937", 10**6), ("MT19937", -1), ("Philox", -(2**20))])
def test_generator_that_points_outside_is_refused(bits: str, position: int, tmp_path: Path) -> None:
    path = tamis.save(np.random.Generator(getattr(np.random, bits)(0)), tmp_path / "hostile")
    content = manifest_of(path)
    pairs = [
        pair for node in content["nodes"] for pair in node.get("dict", []) if pair[0] in ("pos", "buffer_pos")
    ]
    pairs[0][1] = position
    with zipfile.ZipFile(path) as archive:
        members = {f"_{i}": archive.read(f"{i}.npy") for i in range(len(archive.namelist()) - 1)}
    with pytest.raises(CheckpointError, match="impossible position"):
        tamis.load(forge(path, content, **members))


def test_a_class_without_source_loads_unchecked() -> None:
    """Its attributes cannot be known; nothing else is refused for that."""
    scope: dict[str, Any] = {"__name__": "tamis.made_up"}
    exec("class Part:\n    def __init__(self):\n        self.size = 1\n", scope)
    check_attributes(scope["Part"], {})


# -- bytes and file objects ------------------------------------------------------------------------------------


class Trickle(io.RawIOBase):
    """A raw file that takes and gives seven bytes at a time."""

    def __init__(self, data: bytes = b"") -> None:
        self.data, self.at = bytearray(data), 0

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data[:7])
        return min(len(data), 7)

    def readinto(self, room: Any) -> int:
        part = self.data[self.at : self.at + min(7, len(room))]
        room[: len(part)] = part
        self.at += len(part)
        return len(part)


GOING_ON = [
    entry.key
    for entry in (*catalog.CATALOG, *catalog.LEARNERS)
    if entry.module.startswith(("tamis.rows", "tamis.columns", "tamis.learners"))
    and entry.key != "sparse-fsa"
]


@pytest.mark.slow
@pytest.mark.parametrize("key", GOING_ON)
def test_equal_models_are_saved_as_equal_bytes_also_after_loading(key: str) -> None:
    """What a model holds room for, but never wrote, is not what stood in the memory before.

    Nor does it show which of its equal parts are one object: those of a loaded model are others.
    """
    rng = np.random.default_rng(0)
    entry = next(entry for entry in (*catalog.CATALOG, *catalog.LEARNERS) if entry.key == key)
    X, y = rng.uniform(size=(420, 24)), rng.integers(0, 2, 420)
    y[:200] = X[:200, 0] > 0.5
    y[200:] = X[200:, 5] + X[200:, 9] > 1.0

    def saved(*, loaded: int | None) -> bytes:
        model = entry.load()(**dict(entry.parameters))
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        if entry.family == "columns":
            model.start(y)
        for i in range(24 if entry.family == "columns" else 60):
            if i == loaded:
                model = tamis.loads(tamis.dumps(model))
            if entry.family == "columns":
                model.offer(X[:, i], f"x{i}")
            else:
                model.partial_fit(X[7 * i : 7 * i + 7], y[7 * i : 7 * i + 7], classes=[0, 1])
        return tamis.dumps(model)

    first = saved(loaded=None)
    for size in range(8, 4000, 8):  # what is freed now is what the second one is given
        np.full(size, 7.5)
    assert saved(loaded=10) == first
    assert saved(loaded=23) == first


def test_bytes_and_file_objects_are_what_a_file_holds(tmp_path: Path) -> None:
    state = {"model": tamis.FisherScore(1).partial_fit(np.eye(4), [0, 0, 1, 1]), "rows": 4}
    path = tamis.save(state, tmp_path / "state.tamis")
    assert path is not None
    data = tamis.dumps(state)
    assert data == path.read_bytes()
    memory, slow = io.BytesIO(), Trickle()
    assert tamis.save(state, memory) is None
    tamis.save(state, slow)
    assert memory.getvalue() == bytes(slow.data) == data
    with open(path, "rb") as file, open(tmp_path / "other", "wb", buffering=0) as raw:
        loaded = [tamis.load(file), tamis.load(Trickle(data)), tamis.load(io.BytesIO(data))]
        tamis.save(state, raw)
        assert not file.closed
    loaded += [
        tamis.load(tmp_path / "other"),
        *(tamis.loads(kind(data)) for kind in (bytes, bytearray, memoryview)),
    ]
    assert all(tamis.dumps(one) == data for one in loaded)
    with_head = io.BytesIO(b"head" + data)
    with_head.seek(4)
    assert tamis.load(with_head)["rows"] == 4  # from where it stands


def test_bytes_are_checked_as_files_are(small: Path, rng: np.random.Generator) -> None:
    data = small.read_bytes()
    for at in rng.integers(0, len(data), size=50).tolist():
        altered = bytearray(data)
        altered[at] ^= 1 + int(rng.integers(255))
        for read in (lambda: tamis.loads(altered), lambda: tamis.load(io.BytesIO(altered))):  # noqa: B023
            with pytest.raises(CheckpointError):
                read()
    with pytest.raises(CheckpointError, match=r"'<bytes>' is truncated or was altered: use another copy"):
        tamis.loads(data[:-1])
    with pytest.raises(
        CheckpointError, match=r"'<bytes>' was not written by tamis.save: pass the path, file obj"
    ):
        tamis.loads(b"")
    with pytest.raises(
        TypeError, match=r"data must be bytes, got 'state.tamis': read a file with tamis.load"
    ):
        tamis.loads("state.tamis")  # type: ignore[arg-type]
    own = tamis.dumps(Own(3.0))
    assert tamis.loads(own, classes=[Own]).step == 3.0
    with pytest.raises(CheckpointError, match="if it is yours, load the file with classes"):
        tamis.loads(own)


def test_file_objects_that_are_no_saved_file_are_left_alone(tmp_path: Path) -> None:
    with (
        open("/dev/zero", "rb") as endless,
        pytest.raises(CheckpointError, match="'/dev/zero' was not written by"),
    ):
        tamis.load(endless)
    with pytest.raises(TypeError, match="'<StringIO>' accepts text only: open it in binary mode"):
        tamis.save([1], io.StringIO())  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="'<StringIO>' returns str, not bytes: open it in binary mode"):
        tamis.load(io.StringIO("x" * 99))  # type: ignore[call-overload]
    with open(tmp_path / "read-only", "xb+") as file:
        pass
    with (
        open(tmp_path / "read-only", "rb") as file,
        pytest.raises(CheckpointError, match=r"Cannot write '.*read-only': open it for writing"),
    ):
        tamis.save([1], file)
    if Path("/dev/full").exists():
        with (
            open("/dev/full", "wb", buffering=0) as full,
            pytest.raises(CheckpointError, match=r"^Cannot write '/dev/full' \(No space left on device\)\.$"),
        ):
            tamis.save([1], full)

    class Silent(io.RawIOBase):
        def write(self, _: Any) -> int:
            raise OSError("the line is dead")

    with pytest.raises(CheckpointError, match=r"^Cannot write '<Silent>' \(the line is dead\)\.$"):
        tamis.save([1], Silent())
    with pytest.raises(TypeError, match="must be a path or a binary file object, got 3"):
        tamis.save([1], 3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"got b'PK\.\.\.': pass bytes to tamis\.loads"):
        tamis.load(b"PK...")  # type: ignore[arg-type]
    memory = io.BytesIO()
    with pytest.raises(TypeError, match="Cannot save"):
        tamis.save({"x": object()}, memory)
    assert memory.getvalue() == b""


class Constant(tamis.TScore):
    """Has the declarations of its base class, but a state of its own."""

    def _start(self, n_features: int) -> None:
        self._scores = np.arange(float(n_features))

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None: ...

    def _relevance(self) -> Any:
        return self._scores


def test_a_subclass_of_somebody_has_a_state_of_its_own() -> None:
    model = Constant(1).partial_fit(np.eye(4), [0, 0, 1, 1])
    loaded = tamis.loads(tamis.dumps(model), classes=[Constant])
    assert loaded.scores_.tolist() == [0.0, 1.0, 2.0, 3.0]
