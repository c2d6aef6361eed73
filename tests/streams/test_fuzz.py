"""Files of every format, changed at random: each is read, or refused in one sentence, in time and memory in proportion.

``python -m tests.streams.test_fuzz SECONDS [FIRST]`` goes on for so long, from the change of that number on, and prints
what became of them. Each 250 have a process of their own; one that dies is reported with the number of its change.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tamis.errors import StreamError
from tamis.streams import open_file
from tamis.streams.files import open_table
from tamis.streams.profile import profile_table

MOST, FREE = 2000, 48 << 20  # bytes of memory for each byte of a file, and for any file
SLOWEST = 5.0  # seconds of a processor for a file of some kilobytes
EACH = 250  # changes in one process of the command


def _rows(separator: str, decimal: str) -> str:
    draw = random.Random(0)
    lines = [separator.join(["when", "size", "colour", "note", "y"])]
    for i in range(60):
        size = f"{draw.gauss(0, 3):.3f}".replace(".", decimal)
        note = draw.choice(['"a, b"', "plain", "'it''s'", "", "ä"])
        values = [
            f"2024-01-{i % 28 + 1:02d}",
            size if i % 9 else "",
            draw.choice(["red", "blue"]),
            note,
            str(i % 2),
        ]
        lines.append(separator.join(values))
    return "\n".join(lines) + "\n"


def _table() -> pa.Table:
    return pa.table({
        "size": pa.array(np.arange(40.0)), "colour": pa.array(["red", "blue"] * 20).dictionary_encode(),
        "note": pa.array(["a", None] * 20), "y": pa.array([0, 1] * 20),
    })  # fmt: skip


def originals(folder: Path) -> dict[str, bytes]:
    """Return a sound file of each format, by its name."""
    pa.parquet.write_table(_table(), folder / "t.parquet")
    pa.feather.write_feather(_table(), folder / "t.arrow")
    head = "@relation r\n@attribute 'a b' real\n@attribute s {x,'y, z'}\n@attribute d date\n@attribute y {0,1}\n@data\n"
    nominal = ("x", "'y, z'")
    dense = "".join(f"{i}.5,{nominal[i % 2]},2024-01-0{i % 9 + 1},{i % 2}\n" for i in range(40))
    sparse = "".join(f"{{0 {i}.5, 1 'y, z', 3 {i % 2}}}\n" for i in range(40))
    return {
        "t.csv": _rows(",", ".").encode(), "semicolon.csv": _rows(";", ",").encode("latin-1"),
        "wide.csv": _rows("\t", ".").encode("utf-16"), "dense.arff": (head + "% a remark\n" + dense).encode(),
        "sparse.arff": (head + sparse).encode(),
        "t.svm": "".join(f"{i % 2} {i % 7 + 1}:0.5 {i % 11 + 9}:2 # remark\n" for i in range(60)).encode(),
        **{name: (folder / name).read_bytes() for name in ("t.parquet", "t.arrow")},
    }  # fmt: skip


WORDS = [
    b"\n", b"\r", b"\r\n", b",", b";", b"\t", b'"', b"'", b"\\", b"\\'", b" ", b"{", b"}", b"?", b"%", b":", b"#",
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\x28", b"-", b"e", b".", b"1e999", b"nan", b"inf", b"-0", b"9" * 40,
    b"2000000000:1", b"@data", b"@attribute", b"@attribute x real\n", b"qid:1 ", b"0:1", b"NA", b"2024-99-99", b"=1+1",
    b"true", b"\xe2\x80\xa8",
]  # fmt: skip


def changed(data: bytes, draw: random.Random) -> bytes:
    """Return a file with some bytes changed, words put in, parts left out, doubled or repeated."""
    found = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4, 12])):
        at = draw.randrange(len(found) + 1)
        stop = min(len(found), at + draw.choice([1, 3, 30, 300]))
        what = draw.randrange(6)
        if what == 0 and at < len(found):
            found[at] = draw.randrange(256)
        elif what == 1:
            found[at:at] = draw.choice(WORDS)
        elif what == 2:
            del found[at:stop]
        elif what == 3:
            found[at:at] = found[at:stop] * draw.choice([1, 5])
        elif what == 4:
            found[at:at] = draw.choice(WORDS) * draw.choice([10, 3000])
        elif draw.random() < 0.3:
            del found[at:]
    return bytes(found)


def read(path: Path, draw: random.Random) -> None:
    """Look at a file, and read all of its rows in some way."""
    how: dict[str, Any] = {"missing": draw.choice(["keep", "keep", "mean", "error"])}
    if path.suffix == ".svm":
        how = {"n_features": draw.choice([None, "any", 30])}
    else:
        how["label"] = draw.choice(["y", -1, -1])
        how["drop_unlabelled"] = draw.random() < 0.5
        if draw.random() < 0.3 and path.suffix == ".csv":
            profile_table(open_table(str(path)), label="y")
    for X, y in open_file(path, **how).batches(draw.choice([1, 7, 1000])):
        assert X.shape[0] == len(y)
        values = X.data if hasattr(X, "indptr") else np.asarray(X)
        assert not np.isinf(values).any()
        assert how["missing"] == "keep" if np.isnan(values).any() else True


def fuzz(seed: int, files: dict[str, bytes], folder: Path) -> str:
    """Change one file and read it; return what became of it."""
    draw = random.Random(seed)
    name = draw.choice(sorted(files))
    path = folder / name
    path.write_bytes(changed(files[name], draw))
    began = time.process_time()
    tracemalloc.reset_peak()
    held = tracemalloc.get_traced_memory()[0]
    try:
        read(path, draw)
        became = f"{path.suffix} read"
    except (StreamError, ValueError) as error:
        if "\n" in str(error) or not str(error).endswith((".", "?")) or len(str(error)) > 1000:
            raise AssertionError(f"change {seed}: {error!r} is no sentence") from error
        became = f"{path.suffix} refused"
    peak = tracemalloc.get_traced_memory()[1] - held
    assert time.process_time() - began < SLOWEST, (seed, name)
    assert peak < MOST * path.stat().st_size + FREE, (seed, name, peak)
    return became


@pytest.mark.slow
def test_any_change_is_read_or_refused_in_one_sentence() -> None:
    done = in_a_process(0)
    assert done.returncode == 0, done.stderr[-3000:]
    became = counted(done.stdout)
    assert sum(became.values()) == EACH
    assert sum(n for what, n in became.items() if what.endswith("read")) > 20
    assert len(became) >= 8


def in_a_process(first: int) -> subprocess.CompletedProcess[str]:
    """Change files in a process of their own."""
    command = [sys.executable, "-m", "tests.streams.test_fuzz", "--some", str(first)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])


def counted(printed: str) -> Counter[str]:
    return Counter({what: int(n) for what, n in (line.rsplit(",", 1) for line in printed.splitlines())})


def _some(first: int) -> None:
    """Change files in this process; print what became of them."""
    warnings.simplefilter("ignore")
    # Never stopped: in CPython 3.11 that races with Arrow's threads, which allocate without the GIL.
    tracemalloc.start()
    with tempfile.TemporaryDirectory() as name:
        folder, became = Path(name), Counter[str]()
        files = originals(folder)
        for seed in range(first, first + EACH):
            print(seed, file=sys.stderr, flush=True)  # should this process die
            became[fuzz(seed, files, folder)] += 1
        for what, n in became.items():
            print(f"{what},{n}")


def main(seconds: float, first: int = 10**6) -> None:
    became, failed, began = Counter[str](), 0, time.monotonic()
    while time.monotonic() - began < seconds:
        done = in_a_process(first)
        if done.returncode:
            failed += 1
            print(f"exit {done.returncode}: {done.stderr[-1500:]}", flush=True)
            first = max(int(line) for line in done.stderr.splitlines() if line.isdigit()) + 1
        else:
            became += counted(done.stdout)
            first += EACH
    print(f"{sum(became.values()):,} changed files: {dict(sorted(became.items()))}; {failed} failed")


if __name__ == "__main__":
    if sys.argv[1] == "--some":
        _some(int(sys.argv[2]))
    else:
        main(float(sys.argv[1]), *map(int, sys.argv[2:]))
