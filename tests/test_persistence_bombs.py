"""What a file asks for is in proportion to its size, whatever it says, with a valid checksum too.

``python -m tests.test_persistence_bombs SECONDS [FIRST]`` goes on changing files for so long, from the change of that
number on, and prints what became of them.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Perceptron

import tamis
from tamis.catalog import CATALOG, LEARNERS
from tamis.errors import CheckpointError
from tests.test_persistence import forge, holding, manifest_of, npy

MODULUS = sys.hash_info.modulus
MOST = 200  # bytes of memory for each byte of a file
FREE = 4 << 20


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Break off what hangs."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt("the file takes too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pairs(**values: Any) -> list[Any]:
    return [[name, value] for name, value in values.items()]


def peak_of(path: Path) -> tuple[int, str]:
    """Load a file; return the memory that it took, and what became of it."""
    tracemalloc.start()
    try:
        tamis.load(path)
        return tracemalloc.get_traced_memory()[1], "loaded"
    except CheckpointError as error:
        return tracemalloc.get_traced_memory()[1], str(error)
    finally:
        tracemalloc.stop()


# -- bombs -------------------------------------------------------------------------------------------------


def shared_tuples(depth: int, last: dict[str, Any]) -> Any:
    nodes: list[Any] = [{"tuple": [1]}]
    nodes += [{"tuple": [{"at": i}, {"at": i}]} for i in range(depth)]
    return holding(*nodes, last)


def seeded(pool_size: int = 4, entropy: Any = 1, **nodes: Any) -> Any:
    inner = {"dict": pairs(state=1, inc=3)}
    state = {"dict": pairs(bit_generator="PCG64", state={"at": 0}, has_uint32=0, uinteger=0)}
    seed = {"dict": pairs(entropy=entropy, spawn_key={"at": 2}, pool_size=pool_size, n_children_spawned=0)}
    last = {"Generator": pairs(state={"at": 1}, seed={"at": 3})}
    return holding(inner, state, {"tuple": []}, seed, last)


WRITTEN = tamis.save(np.random.RandomState(0), Path(tempfile.mkdtemp()) / "state")
with zipfile.ZipFile(WRITTEN) as archive:
    KEY = archive.read("0.npy")
MERSENNE = manifest_of(WRITTEN)["nodes"]

BOMBS: dict[str, tuple[Any, dict[str, bytes]]] = {
    "values of no bytes": (holding({"array": 0}), {"_0": npy(np.zeros(0, "<U0"), shape=(10**8,), descr="<U0")}),
    "an array named often": (
        holding(*[{"array": 0}] * 3000),
        {"_0": npy(np.zeros(20_000))},
    ),
    "tuples of tuples in a set": (shared_tuples(60, {"set": [{"at": 60}]}), {}),
    "tuples of tuples as a key": (shared_tuples(60, {"dict": [[{"at": 60}, 1]]}), {}),
    "tuples of tuples in a frozenset": (shared_tuples(60, {"frozenset": [{"at": 60}]}), {}),
    "tuples of tuples as a recipe's key": (
        holding(
            {"instance": ["tamis.columns.generators.formulas:Column", pairs(name="a")]},
            *[{"instance": ["tamis.columns.generators.formulas:Ratio",
                            pairs(above={"at": i}, below={"at": i}, names="ab", floor=1.0)]} for i in range(60)],
            {"set": [{"at": 60}]},
        ),
        {},
    ),
    "keys of one hash": (holding({"set": [{"int": hex(5 + i * MODULUS)} for i in range(20_000)]}), {}),
    "a large pool": (seeded(pool_size=10**6), {}),
    "a pool of half the size": (seeded(pool_size=1 << 16), {}),
    "a long seed": (seeded(entropy={"int": "0x" + "f" * 2_000_000}), {}),
    "tuples of tuples as a seed": (
        holding(
            *[{"tuple": [{"at": i - 1}, {"at": i - 1}] if i else [1]} for i in range(50)],
            {"dict": pairs(state={"at": 49}, inc=3)},
            {"dict": pairs(bit_generator="PCG64", state={"at": 50}, has_uint32=0, uinteger=0)},
            {"Generator": pairs(state={"at": 51}, seed=None)},
        ),
        {},
    ),
    "many generators of one state": (
        holding(*MERSENNE, *[MERSENNE[-1]] * 2_000),
        {"_0": KEY},
    ),
    "many matrices of one array": (
        holding({"array": 0}, {"array": 1}, {"array": 2}, {"tuple": [1, 100_000]},
                *[{"csr_matrix": pairs(data={"at": 0}, indices={"at": 1}, indptr={"at": 2}, shape={"at": 3})}] * 5000),
        {"_0": npy(np.ones(100_000)), "_1": npy(np.arange(100_000, dtype=np.int32)),
         "_2": npy(np.array([0, 100_000], np.int32))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_goes_off(name: str, tmp_path: Path) -> None:
    content, members = BOMBS[name]
    path = forge(tmp_path / "bomb", content, **members)
    memory, became = peak_of(path)
    assert became != "loaded"
    assert "is not a valid file" not in became  # refused for what it is, not for what it breaks
    assert memory < MOST * path.stat().st_size + FREE


def test_a_member_that_reads_beyond_its_end_is_refused(tmp_path: Path) -> None:
    path = forge(tmp_path / "bomb", holding({"array": 0}), _0=npy(np.zeros(1000)))
    with zipfile.ZipFile(path) as whole:
        size = whole.getinfo("0.npy").file_size.to_bytes(4, "little")
    body = path.read_bytes()[:-77]
    at = body.rindex(size)  # in the central directory: the file's size, after the compressed one
    forged = body[:at] + (10).to_bytes(4, "little") + body[at + 4 :]
    path.write_bytes(
        forged + b"tamis sha256 " + tamis.persistence.archive.hashlib.sha256(forged).hexdigest().encode()
    )
    with pytest.raises(CheckpointError, match="declares more data than it contains"):
        tamis.load(path)


@pytest.mark.slow
def test_many_small_nodes_take_memory_in_proportion(tmp_path: Path) -> None:
    """The dearest ways to write a byte."""
    kinds: list[Any] = [
        {"list": []}, {"set": []}, {"dict": []}, {"frozenset": []}, {"list": [[{"at": 0}]] * 0 + [{"at": 0}] * 20},
        {"tuple": [{"float": "7ff8000000000000"}] * 5}, {"dict": [["a", 1]]}, {"objects": ["C", [0], []]},
        {"instance": ["tamis.columns.generators.formulas:Column", [["name", "a"]]]}, {"set": [1, 2, 3, 4, 5, 6, 7, 8]},
        {"list": [{"scalar": ["|b1", "01"]}] * 10},
    ]  # fmt: skip
    tamis.load(forge(tmp_path / "once", holding({"list": []}, *kinds)))
    for kind in kinds:
        path = forge(tmp_path / "many", holding({"list": []}, *[kind] * (200_000 // len(json.dumps(kind)))))
        memory, _ = peak_of(path)
        assert memory < MOST * path.stat().st_size, kind


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a regular file"):
        tamis.load("/dev/zero")


def test_text_of_no_length_is_saved(tmp_path: Path) -> None:
    loaded = tamis.load(tamis.save(np.zeros(3, "<U0"), tmp_path / "texts"))
    assert loaded.tolist() == ["", "", ""]


# -- the manifest against the classes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 1}, "has the schema 1, but this Tamis reads schema 2"), ({"schema": -5}, "has the schema -5"),
        ({"schema": "one"}, "has the schema 'one'"), ({"schema": True}, "has the schema True"),
        ({"schema": None}, "has the schema None"), ({"versions": {}}, "has no manifest of"),
        ({"versions": {"tamis": 1, "sklearn": "1"}}, "has no manifest"), ({"format": "other"}, "has no manifest"),
        ({"nodes": {}}, "has no manifest"), ({"root": {"at": -1}}, "refers to node -1, but the earlier nodes are 0"),
        ({"root": {"at": True}}, "refers to node True"), ({"root": {"at": "0"}}, "refers to node '0'"),
        ({"root": [1]}, "where a node of one kind is expected"), ({"root": {}}, "where a node of one kind is expected"),
        ({"nodes": [3]}, "contains 3 where a node of one kind is expected"),
    ],
)  # fmt: skip
def test_a_manifest_that_is_none_is_refused_in_one_sentence(
    change: Any, message: str, tmp_path: Path
) -> None:
    path = forge(tmp_path / "file", {**holding({"list": []}), **change})
    with pytest.raises(CheckpointError, match=message) as caught:
        tamis.load(path)
    assert not any(name in str(caught.value) for name in ("TypeError", "ValueError", "not supported"))


def trained(key: str) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 1] + 0.3 * rng.normal(size=90) > 0).astype(int)
    entry = next(entry for entry in (*CATALOG, *LEARNERS) if entry.key == key)
    return entry.load()(**dict(entry.parameters)).fit(X, y), X, y


def use(model: Any, X: Any, y: Any) -> None:
    for name in ("predict", "transform", "get_support", "get_feature_names_out"):
        if hasattr(type(model), name):
            getattr(model, name)(*([] if name.startswith("get") else [X]))
    for name in dir(type(model)):
        if name.endswith("_") and not name.startswith("_"):
            getattr(model, name)
    for name in ("partial_fit", "start"):
        if hasattr(model, name):
            getattr(model, name)(*([y] if name == "start" else [X, y]))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["fires", "alpha-investing", "osfs", "etana", "knn-su"])
def test_an_object_that_lacks_an_attribute_is_refused_or_works_without(key: str, tmp_path: Path) -> None:
    model, X, y = trained(key)
    path = tamis.save(model, tmp_path / "model")
    content = manifest_of(path)
    with zipfile.ZipFile(path) as whole:
        members = {f"_{i}": whole.read(f"{i}.npy") for i in range(len(whole.namelist()) - 1)}
    refused = 0
    for node in content["nodes"]:
        own = node["instance"][1] if "instance" in node else []
        for i in range(len(own)):
            left = own.pop(i)
            try:
                loaded = tamis.load(forge(path, content, **members))
            except CheckpointError as error:
                refused += f"without the required attribute {left[0]!r}" in str(error)
            else:
                use(loaded, X, y)
            own.insert(i, left)
    assert refused > 5


# -- any change --------------------------------------------------------------------------------------------


def subjects() -> dict[str, Any]:
    """Files of every kind of node, small enough to be changed thousands of times."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    return {
        "values": {"a": np.arange(6.0), "i": 2**70, "t": ((1, "b"), frozenset({2, (3,)})), "n": None, "f": float("nan"),
                   "l": np.array(["a", 1, None], dtype=object), "s": {np.float32(1.0), "é"}, "b": b"\0\1"},
        "random": [np.random.default_rng(3), np.random.RandomState(1), np.random.Generator(np.random.Philox(2)),
                   np.random.Generator(np.random.SFC64(2))],
        "sparse": [sp.random(5, 4, 0.4, format="csr", random_state=0), sp.csr_array(np.eye(2))],
        "sklearn": Perceptron().fit(X, y),
        "rows": tamis.FIRES(2).fit(X, y),
        "columns": tamis.AlphaInvesting().fit(X, X[:, 1]),
    }  # fmt: skip


ODD: list[Any] = [
    None, True, 0, -1, 1, 7, 2**31, 2**63 - 1, 1e300, "", "a", "state", "\0", [], {}, [[]], {"at": 0}, {"at": -1},
    {"at": 10**6}, {"int": "-0x1"}, {"float": "7ff0000000000000"}, {"bytes": "00"}, {"scalar": ["<U0", ""]},
    {"scalar": ["<i8", "00" * 8]}, {"list": []}, {"array": 0}, {"array": 1}, {"dict": []}, {"set": [{"at": 0}]},
]  # fmt: skip


def places(content: Any) -> list[tuple[Any, Any]]:
    """Return every place of a manifest: what holds it, and the key."""
    found, left = [], [content]
    while left:
        one = left.pop()
        if isinstance(one, dict | list):
            keys = list(one) if isinstance(one, dict) else range(len(one))
            found += [(one, key) for key in keys]
            left += [one[key] for key in keys]
    return found


def change(content: Any, draw: random.Random) -> None:
    """Change a manifest in place: other values, what stands elsewhere, twice, or not at all."""
    every = places(content)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        holder, key = draw.choice(every)
        other, place = draw.choice(every)
        what = draw.randrange(6)
        try:
            if what == 0:
                holder[key] = draw.choice(ODD)
            elif what == 1:
                holder[key] = json.loads(json.dumps(other[place]))
            elif what == 2 and isinstance(holder, list):
                holder.insert(draw.randrange(len(holder) + 1), holder[key])
            elif what == 3 and isinstance(holder, list):
                holder[key : key + 1] = [holder[key]] * draw.choice([2, 30])
            elif what == 4:
                del holder[key]
            elif isinstance(holder[key], int | float):
                holder[key] += draw.choice([-1, 1, 2**16, -(2**40)])
            elif isinstance(holder[key], str):
                at = draw.randrange(len(holder[key]) + 1)
                holder[key] = (
                    holder[key][:at] + draw.choice("0aZ_é\0") + holder[key][at + draw.randrange(2) :]
                )
        except (IndexError, KeyError, TypeError):  # an earlier change took the place away
            continue


def changed_members(members: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    members = dict(members)
    for name in [name for name in members if draw.random() < 0.2]:
        data = bytearray(members[name])
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.choice(b"0123456789'<>|UbifOc,()")
        members[name] = bytes(data[: draw.choice([len(data), len(data), draw.randrange(len(data))])])
    return members


def fuzz(seed: int, texts: dict[str, tuple[str, dict[str, bytes]]], folder: Path) -> tuple[str, float, float]:
    """Change one file and load it; return what became of it, and memory and seconds for each of its bytes."""
    draw = random.Random(seed)
    text, members = texts[draw.choice(sorted(texts))]
    content = json.loads(text)
    change(content, draw)
    path = forge(folder / "changed", content, **changed_members(members, draw))
    size, began = path.stat().st_size, time.process_time()
    memory, became = peak_of(path)
    assert "\n" not in became, became
    assert memory < MOST * size + FREE, (seed, memory, size)
    return (
        ("loaded" if became == "loaded" else "refused"),
        memory / size,
        (time.process_time() - began) / size,
    )


def written(folder: Path) -> dict[str, tuple[str, dict[str, bytes]]]:
    found = {}
    for name, subject in subjects().items():
        path = tamis.save(subject, folder / name)
        with zipfile.ZipFile(path) as whole:
            members = {f"_{i}": whole.read(f"{i}.npy") for i in range(len(whole.namelist()) - 1)}
        found[name] = json.dumps(manifest_of(path)), members
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_any_change_is_refused_or_loads_in_proportion(tmp_path: Path) -> None:
    texts = written(tmp_path)
    became = Counter(fuzz(seed, texts, tmp_path)[0] for seed in range(1400))
    assert min(became["loaded"], became["refused"]) > 100


def main(seconds: float, seed: int = 10**6) -> None:
    """Change files until the time is over; the number of each change is shown before it, for the one that hangs."""
    import warnings

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, became, began = written(folder), Counter[str](), time.monotonic()
        most, slowest = (0.0, 0), (0.0, 0)
        while time.monotonic() - began < seconds:
            print(seed, end="\r", file=sys.stderr, flush=True)
            what, memory, duration = fuzz(seed, texts, folder)
            became[what] += 1
            most, slowest = max(most, (memory, seed)), max(slowest, (duration, seed))
            seed += 1
        print(
            f"{dict(became)}; at most {most[0]:.0f} bytes of memory (change {most[1]}) and"
            f" {slowest[0] * 1e6:.1f} us (change {slowest[1]}) for each byte of a file"
        )


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
