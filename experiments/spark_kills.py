"""Kill -9 at random moments: a stream of Structured Streaming, again and again, and a worker of a cluster.

    python experiments/spark_kills.py stream --kills 30 --out kills.json
    python experiments/spark_kills.py executor

`stream`: a program learns from files, one a batch, and is killed with its Java a random while after it was offered
its first batch; it is started again until all kills are done, then runs to the end. Counted: how often batches
were offered, and how often the state of one was there already. The final state must be, byte for byte, that of a
run that was not killed. `executor`: of a cluster with two workers, the Java of one is killed while it learns; the
result must be, byte for byte, that of a cluster where nothing is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis.adapters.spark import StreamingScreen, screen

NAMES = list("abcde")
SELECTOR = tamis.Screening(2, scores=["t", "mi"])
SCHEMA = "a double, b double, c double, d double, e double, y int"


def session(master: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    found = builder.config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", "")).getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def write(folder: Path, n_files: int, n_rows: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(n_files):
        X, y = rng.normal(size=(n_rows, 5)), rng.integers(0, 2, n_rows).astype(np.int32)
        X[:, 2] += y
        path = folder / f"{i:04d}.parquet"
        pq.write_table(pa.table({**{n: X[:, j] for j, n in enumerate(NAMES)}, "y": y}), path)
        os.utime(path, (1_700_000_000 + i,) * 2)


def follow(folder: Path, name: str) -> None:
    """Learn from the files, telling each batch that is offered."""
    learn = StreamingScreen(SELECTOR, "y", folder / f"{name} states")

    def told(df: Any, batch_id: int) -> None:
        there = (folder / f"{name} states" / f"batch-{batch_id:015d}.tamis").exists()
        with open(folder / f"{name} log", "a") as log:
            log.write(json.dumps({"batch": batch_id, "there": there}) + "\n")
        learn(df, batch_id)

    stream = (
        session("local[1]")
        .readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "rows"))
    )
    writer = stream.writeStream.foreachBatch(told).option("checkpointLocation", str(folder / f"{name} query"))
    writer.trigger(availableNow=True).start().awaitTermination()


def newest(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = tamis.load(max((folder / f"{name} states").glob("batch-*.tamis")))
    return found


def killed_streams(n_kills: int, n_files: int, wait: float, out: Path) -> None:
    folder = Path(tempfile.mkdtemp())
    write(folder / "rows", n_files, 200)
    command = [sys.executable, "-W", "ignore", __file__, "follow", "--folder", str(folder), "--name"]
    rng, killed = np.random.default_rng(int(time.time())), 0
    states, offered = folder / "killed states", folder / "killed log"
    while killed < n_kills:
        more = len(offered.read_text().splitlines()) + int(rng.integers(1, 4)) if offered.exists() else 2
        child = subprocess.Popen([*command, "killed"], start_new_session=True, stderr=subprocess.DEVNULL)
        while child.poll() is None and (not offered.exists() or len(offered.read_text().splitlines()) < more):
            time.sleep(0.02)
        time.sleep(float(rng.exponential(wait)))
        if child.poll() is not None:
            break  # it was at the end
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        killed += 1
        torn = len(list(states.glob(".batch-*.tmp")))
        log = [json.loads(line) for line in offered.read_text().splitlines()]
        result = {"kills": killed, "batch": log[-1]["batch"], "offered": len(log), "torn files": torn}
        result["already there"] = sum(line["there"] for line in log)
        out.write_text(json.dumps(result) + "\n")
    for name in ("killed", "whole"):
        subprocess.run([*command, name], check=True, stderr=subprocess.DEVNULL)
    log = [json.loads(line) for line in offered.read_text().splitlines()]
    ours, theirs = newest(folder, "killed"), newest(folder, "whole")
    same = tamis.dumps(ours["selector"]) == tamis.dumps(theirs["selector"])
    result = {
        "kills": killed,
        "batches": n_files,
        "offered": len(log),
        "already there": sum(line["there"] for line in log),
        "rows": ours["selector"].n_seen_,
        "rows of the whole": theirs["selector"].n_seen_,
        "same bytes": same,
    }
    out.write_text(json.dumps(result) + "\n")
    print(result)
    assert same


def killed_executor() -> None:
    folder = Path(tempfile.mkdtemp())
    write(folder / "rows", 8, 20_000)
    spark = session("local-cluster[2,1,1024]")
    # A partition for each file.
    df = spark.read.schema(SCHEMA).option("recursiveFileLookup", True).parquet(str(folder / "rows"))
    # Rows that Python has passed on, so that Spark hands them over rather than their files.
    want = tamis.dumps(screen(df.mapInArrow(lambda batches: batches, df.schema), "y", SELECTOR))
    flag = str(folder / "killed")

    def kill_once(batches: Any) -> Any:
        import os

        for batch in batches:
            if not os.path.exists(flag):
                with open(flag, "w") as file:
                    file.write("killed")
                daemon = os.getppid()
                with open(f"/proc/{daemon}/stat") as file:
                    java = int(file.read().rsplit(")", 1)[1].split()[1])
                os.kill(java, 9)
            yield batch

    start = time.time()
    got = screen(df.mapInArrow(kill_once, df.schema), "y", SELECTOR)
    print({"killed": Path(flag).exists(), "rows": got.n_seen_, "seconds": round(time.time() - start, 1)})
    print({"same bytes": tamis.dumps(got) == want})
    assert tamis.dumps(got) == want


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["stream", "executor", "follow"])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--wait", type=float, default=0.5, help="seconds that a kill waits, on average")
    parser.add_argument("--out", type=Path, default=Path("spark_kills.json"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--name")
    given = parser.parse_args()
    if given.what == "follow":
        follow(given.folder, given.name)
    elif given.what == "executor":
        killed_executor()
    else:
        killed_streams(given.kills, given.files, given.wait, given.out)


if __name__ == "__main__":
    main()
