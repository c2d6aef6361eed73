"""A state for each partition, and the tree that merges them on the workers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from tamis.adapters.spark.sources import FileRows, FrameRows
from tamis.adapters.spark.workers import SCHEMA, on_worker
from tamis.errors import DataError
from tamis.persistence import dumps, loads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_GROUP_BYTES = 256 << 20  # of states that a worker merges at once


def merge_options(when: str | None) -> dict[str, str]:
    """Return the arguments of `merge`."""
    return {} if when is None else {"when": when}


def learn_partitions(rows: FrameRows | FileRows, start: Any, classes: Any, when: str | None) -> Any:
    """Return the merged selectors of the partitions; None without rows."""
    from pyspark.sql import functions as F

    own, classes = foreign_class(start), None if classes is None else list(classes)
    blank = start.clone_unfitted() if hasattr(start, "n_seen_") else _with_first_rows(rows, start, classes)
    if blank is None:
        return None
    task = dumps({**rows.columns, "selector": blank, "classes": classes})
    states = rows.map(on_worker("learn", task, own), SCHEMA).persist()
    try:
        failed = F.min(F.when(F.col("error").isNotNull(), F.struct("part", "error")))
        summary = _run_job(lambda: states.agg(F.max("part"), F.max(F.length("state")), failed).first())
        if summary[2] is not None:
            _raise(summary[2]["error"])
        if summary[0] is None:
            return None
        fan_in = max(2, min(32, _GROUP_BYTES // summary[1]))
        merged = _merge_states(
            states, summary[0] + 1, fan_in, on_worker("merge", dumps(merge_options(when)), own)
        )
        [last] = _run_job(lambda: merged.select("state", "error").collect())
    finally:
        states.unpersist()
    if last["error"] is not None:
        _raise(last["error"])
    return loads(last["state"], classes=own)


def collect(rows: FrameRows | FileRows, verb: str, task: dict[str, Any]) -> list[tuple[int, Any]]:
    """Return the outputs of a function of the workers for each partition with rows, in their order."""
    outputs = rows.map(on_worker(verb, dumps({**rows.columns, **task}), ()), SCHEMA)
    states = sorted(_run_job(outputs.collect), key=lambda row: int(row["part"]))
    for row in states:
        if row["error"] is not None:
            _raise(row["error"])
    return [(int(row["part"]), loads(row["state"])) for row in states]


def _with_first_rows(rows: FrameRows | FileRows, selector: Any, classes: Any) -> Any:
    """Return an unfitted selector with the settings that the first rows determine; None without rows."""
    if not selector._claims().first_rows:
        return selector
    some = False
    for X, y, weights in _run_job(lambda: list(rows.first(selector._claims().first_rows))):
        selector.partial_fit(X, y, classes, weights)
        some = True
    return selector.clone_unfitted() if some else None


def _merge_states(states: DataFrame, n_parts: int, fan_in: int, merge: Any) -> DataFrame:
    """Merge neighbours, `fan_in` at a time, until one state is left."""
    from pyspark.sql import functions as F

    while n_parts > 1:
        n_parts = -(-n_parts // fan_in)
        states = states.select(F.expr(f"int(part div {fan_in})").alias("group"), "part", "state", "error")
        if hasattr(states, "repartitionById"):  # Spark 4.1: each group to a worker of its own
            states = states.repartitionById(n_parts, "group")
        else:
            states = states.repartition(n_parts, "group")
        states = states.mapInArrow(merge, SCHEMA)
    return states


def foreign_class(selector: Any) -> tuple[type, ...]:
    """Return the class of a selector from outside Tamis, which is sent with the job."""
    return () if type(selector).__module__.startswith("tamis.") else (type(selector),)


def _run_job(act: Callable[[], Any]) -> Any:
    """Run a job; if the Python of the workers makes it fail, raise an error that explains it."""
    try:
        return act()
    except Exception as error:  # Spark's own, or one of its Java
        if (why := _python_problem(str(error))) is None:
            raise
    raise RuntimeError(
        f"{why}: set PYSPARK_PYTHON to one that has the packages of this program, on every machine."
    )


def _python_problem(text: str) -> str | None:
    if "PYTHON_VERSION_MISMATCH" in text:
        return "The workers run another Python than this program, which is {}.{}".format(
            *sys.version_info[:2]
        )
    if (match := re.search(r"No module named '([\w.]+)'", text)) is not None:
        return f"The Python of a worker has no package {match[1]!r}"
    if (match := re.search(r'Cannot run program "([^"]+)"', text)) is not None:
        return f"A worker cannot start {match[1]!r} as its Python"
    return None


def _raise(error: str) -> NoReturn:
    kind, _, text = error.partition(": ")
    raise {"DataError": DataError, "TypeError": TypeError, "ValueError": ValueError}.get(kind, RuntimeError)(
        text
    )
