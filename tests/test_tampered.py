"""Saved models that were altered: each is rejected, or it works; it never crashes, hangs, compiles or returns NaN.

Every file has a valid checksum. In half of them numbers were changed, in the other half the structure: attributes, keys
and items were removed or replaced by values of another type, arrays have another dtype, shape or order, objects another
class. It is loaded and used in a forked process with limited memory and time.
``python -m tests.test_tampered FILES [FIRST [KEY ...]]`` tries the files of numbers FIRST, FIRST + 1, ..., and prints
the outcome of those that fail.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import io
import json
import math
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn

import tamis
from tamis import evaluate
from tamis.catalog import CATALOG, LEARNERS
from tamis.drift import DETECTORS
from tamis.errors import CheckpointError, TamisError
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.entropy import WindowCounts
from tamis.summaries.moments import RunningMoments
from tamis.summaries.pruned_quantiles import PrunedQuantiles
from tamis.summaries.quantiles import QuantileSummary

SECONDS = 5
MEMORY = 800 << 20  # more than the process had before
IN_SUITE, IN_SEARCH = 208, 3200  # files
INTEGERS = [-1, -2, 0, 1, 2, 5, 100, 1 << 20, 1 << 30, -(1 << 30), 2**31 - 1, 2**62, -(2**63)]
FLOATS = [
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    -1e308,
    -0.0,
    0.0,
    -1.0,
    1.0,
    1e-300,
    0.5,
    1e9,
    -1e9,
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 6)).round(2)
X[:, 1] = RNG.integers(0, 4, size=260)
Y = (X[:, 0] > 0).astype(int) + (X[:, 2] > 1)
MORE = slice(200, 260)


# -- what is saved, and how it is used ---------------------------------------------------------------------


# So that 200 rows lead to splits and full windows.
SMALL: dict[str, Any] = {"random_state": 0, "grace_period": 20, "delta": 0.5, "tie_threshold": 0.5, "categorical": [1],
                         "window": 100, "n_estimators": 5}  # fmt: skip


def _make(entry: Any) -> Any:
    model = entry.load()(**dict(entry.parameters))
    known = model.get_params(deep=False)
    unset = {
        name: value for name, value in SMALL.items() if name in known and name not in dict(entry.parameters)
    }
    return model.set_params(**(unset if entry.module.startswith("tamis.learners") else {}))


def _train(entry: Any) -> Any:
    model = _make(entry)
    if entry.family == "columns":
        return _offered(model)
    if entry.family == "cells":
        model.set_params(cost=0.001)
    if not hasattr(model, "partial_fit"):
        return model.fit(np.abs(X[:200]), Y[:200])
    for rows in (slice(0, 90), slice(90, 200)):
        model.partial_fit(np.abs(X[rows]), Y[rows], **_classes(model))
    return model


def _offered(selector: Any) -> Any:
    selector.start((Y > 0).astype(int)).offer_many(X[:, :4])
    return selector


def _classes(model: Any) -> dict[str, Any]:
    return {"classes": [0, 1, 2]} if "classes" in inspect.signature(model.partial_fit).parameters else {}


def _read(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the results of a model that has learned."""
    rows = np.abs(X[:9])
    for name in ("get_support", "scores_", "feature_weights_", "predict", "predict_proba", "decision_function",
                 "transform"):  # fmt: skip
        if hasattr(model, name):
            found = getattr(model, name)
            yield name, found if not callable(found) else found(*([] if name == "get_support" else [rows]))


def use_rows(model: Any) -> Iterator[tuple[str, Any]]:
    yield from _read(model)
    if hasattr(model, "merge"):
        with contextlib.suppress(TypeError):  # a selector that cannot be merged
            yield from _read(tamis.loads(tamis.dumps(model)).merge(tamis.loads(tamis.dumps(model))))
    if hasattr(model, "open"):
        session = model.open()
        while (feature := session.next_feature) is not None:
            session.observe(float(X[0, int(str(feature).lstrip("x"))]))
        yield "decision", session.decision
        yield "posterior", list(session.posterior.values())
        yield "cost", session.cost
    if hasattr(model, "partial_fit"):
        new = Y.copy()
        if not _classes(model) or hasattr(model, "get_support"):
            new[255:] = 3  # a class that was not seen before
        labels = new if not _classes(model) else Y
        model.partial_fit(np.abs(X[MORE][:1]), labels[MORE][:1])
        model.partial_fit(np.abs(X[MORE]), labels[MORE])
        yield from _read(model)


def use_columns(model: Any) -> Iterator[tuple[str, Any]]:
    yield "get_support", model.get_support()
    model.offer(X[:, 4], "new")
    model.offer_many(X[:, 5:])
    yield "trace", model.trace_["p_value"] if "p_value" in (model.trace_.dtype.names or ()) else 0.0
    yield "transform", model.transform(X)


def use_gram(model: Any) -> Iterator[tuple[str, Any]]:
    model.partial_fit({f"c{j}": X[MORE, j] for j in range(6)}, Y[MORE])
    yield "predict", model.predict({f"c{j}": X[:9, j] for j in range(6)})


def use_detector(detector: Any) -> Iterator[tuple[str, Any]]:
    for part in (X[:50, 0] > 0, X[:, 0] > 0):
        yield "drifts", detector.drifts(part.astype(float))
    yield "update", [detector.update(float(value)) for value in X[:30, 0] > 0]


def use_measure(measure: Any) -> Iterator[tuple[str, Any]]:
    count(measure, slice(200, 205))
    count(measure, slice(205, 260))
    for name in ("values", "value", "variance", "windowed", "mean"):
        if hasattr(measure, name) and not isinstance(getattr(measure, name), dict):
            yield name, getattr(measure, name)


def count(measure: Any, rows: slice) -> None:
    if isinstance(measure, evaluate.SlidingStability):
        return measure.add(np.flatnonzero(X[rows.start] > 0))
    codes = Y[rows] > 0
    measure.update(codes, codes.copy() if isinstance(measure, evaluate.RunningMetrics) else X[rows, 0])


def use_summary(summary: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(summary, RunningMoments):
        summary.update(X[:9])
        yield "moments", [summary.mean, summary.m2]
        return
    summary.update(X[:9], Y[:9])
    read: dict[str, Callable[[], Any]] = {
        "WindowCounts": lambda: summary.symmetrical_uncertainty(),
        "ClassMoments": lambda: summary.mean(),
        "QuantileSummary": lambda: summary.counts(3),
        "PrunedQuantiles": lambda: summary.counts(3),
    }
    yield "summary", read[type(summary).__name__]()


SUMMARIES: dict[str, Callable[[], Any]] = {
    "counts": partial(WindowCounts, 6, 3, window=60),
    "class moments": partial(ClassMoments, 6, 3),
    "quantiles": partial(QuantileSummary, 6, 3, eps=0.05),
    "pruned quantiles": partial(PrunedQuantiles, 6, 3, eps=0.4),
}

COLUMNS: dict[str, Callable[[], Any]] = {  # with other models and tests than by default
    "logistic columns": partial(tamis.AlphaInvesting, model="logistic"),
    "poisson columns": partial(tamis.AlphaInvesting, model="poisson"),
    "logistic grafting": partial(tamis.Grafting, model="logistic"),
    "g-square": partial(tamis.OSFS, test="g-square"),
}

OPTIONS: dict[str, dict[str, Any]] = {
    "run": {"selector": tamis.FIRES, "baselines": "all", "auc": True},
    "delayed run": {"selector": tamis.FCBF, "delay": 30, "n_draws": 1, "replay": 40},
    "timed run": {"selector": tamis.TScore, "delay": ("x4", "x5"), "baselines": "none", "keep_steps": 20},
    "run of numbers": {"selector": partial(tamis.FIRES, model="gaussian"), "n_draws": 1},
}  # fmt: skip


def _run(name: str, path: Path, **more: Any) -> Any:
    options = dict(OPTIONS[name])
    rows, target = X.copy(), Y > 0 if options.get("auc") else Y
    rows[:, 4] = np.arange(len(X))
    rows[:, 5] = rows[:, 4] + 35
    selector = options.pop("selector")(2)
    target = X[:, 0] + 0.5 if "numbers" in name else target
    return evaluate.prequential(
        (rows, target), selector, checkpoint=path, batch_size=10, window=60, **{**options, **more}
    )


def saved_run(name: str) -> bytes:
    """Return a checkpoint of a run that was interrupted."""

    def stop(step: Any) -> None:
        if step.step == 14:
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        _run(name, path, on_step=stop, on_interrupt="return")
        return path.read_bytes()


def use_run(data: bytes, name: str) -> Iterator[tuple[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        path.write_bytes(data)
        result = _run(name, path)
        tamis.load(path)
        yield "summary", result.summary()["mae" if "numbers" in name else "accuracy"]


# -- subjects ----------------------------------------------------------------------------------------------


def _updated(summary: Any) -> Any:
    summary.update(X, Y)
    return summary


def _counted(measure: Any) -> Any:
    for start in range(0, 100, 10):
        count(measure, slice(start, start + 10))
    return measure


def _observed(detector: Any) -> Any:
    detector.drifts((X[:, 0] > 0).astype(float))
    return detector


def _gram() -> Any:
    return tamis.GramInvesting().partial_fit({f"c{j}": X[:200, j] for j in range(6)}, Y[:200])


Use = Callable[[Any], Iterator[tuple[str, Any]]]


def subjects() -> dict[str, tuple[Callable[[], bytes], Use]]:
    """Return how to make each file, and how to use what is loaded (of a run: the file)."""
    models: dict[str, tuple[Callable[[], Any], Use]] = {"gram-investing": (_gram, use_gram)}
    for entry in (*CATALOG, *LEARNERS):
        if "river" not in entry.module:  # River's models are pickled by River, and cannot be saved
            models[entry.key] = partial(_train, entry), use_columns if entry.family == "columns" else use_rows
    for name, detector in DETECTORS.items():
        models[name] = partial(lambda cls: _observed(cls()), detector), use_detector
    for measure in (evaluate.RunningMetrics, evaluate.RunningErrors, evaluate.SlidingAUC,
                    evaluate.SlidingPrecisionRecall, evaluate.SlidingStability):  # fmt: skip
        size = 6 if measure is evaluate.SlidingStability else 60
        models[measure.__name__] = partial(lambda cls, n: _counted(cls(n)), measure, size), use_measure
    for name, summary in SUMMARIES.items():
        models[name] = partial(lambda make: _updated(make()), summary), use_summary
    for name, selector in COLUMNS.items():
        models[name] = partial(lambda make: _offered(make()), selector), use_columns
    models["pipeline"] = _pipeline, use_rows
    models["network of numbers"] = _network_of_numbers, use_rows
    files: dict[str, tuple[Callable[[], bytes], Use]] = {
        name: (partial(lambda make: tamis.dumps(make()), make), use) for name, (make, use) in models.items()
    }
    return files | {name: (partial(saved_run, name), partial(use_run, name=name)) for name in OPTIONS}


def _network_of_numbers() -> Any:
    return tamis.MonteCarloFIRES(2, hidden=(4, 3), task="regression").partial_fit(X[:200], X[:200, 0])


def _pipeline() -> Any:
    model = tamis.StreamPipeline(tamis.FCBF(3), tamis.HoeffdingTree(), scale="standard")
    return model.partial_fit(X[:100], Y[:100], classes=[0, 1, 2]).partial_fit(X[100:200], Y[100:200])


# -- changes -----------------------------------------------------------------------------------------------


def _near(value: int | float, draw: random.Random) -> int | float:
    if isinstance(value, float):
        return draw.choice([*FLOATS, -value, 2 * value, value + 1, value - 1])
    return draw.choice([*INTEGERS, value + 1, value - 1, 2 * value, -value])


def _change_array(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    array = np.load(io.BytesIO(data))
    if array.size == 0 or array.dtype.kind not in "biuf":
        return data, ""
    at, kind = draw.randrange(array.size), array.dtype.kind
    before = array.flat[at]
    if kind == "b":
        array.flat[at] = not before
    else:
        value = _near(before.item(), draw)
        info: Any = np.iinfo(array.dtype) if kind in "iu" else None
        array.flat[at] = min(max(value, info.min), info.max) if info else value
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0))
    return file.getvalue(), f"{array.dtype} {array.shape} [{at}]: {before} to {array.flat[at]}"


def _numbers(content: Any, where: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield each number of a manifest: its holder, its key, and where it is."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in pairs:
        if isinstance(content, dict) and key in ("at", "array", "objects"):
            continue
        if type(value) in (int, float) or (key == "float" and isinstance(content, dict)):
            yield content, key, where
        elif isinstance(value, dict | list):
            name = value[0] if isinstance(value, list) and value and type(value[0]) is str else ""
            yield from _numbers(value, f"{where} {name}" if name else where)


def _change_manifest(text: bytes, draw: random.Random) -> tuple[bytes, str]:
    content = json.loads(text)
    # Estimators of other packages validate their own parameters: a million trees are slow, but no damage.
    ours = [one for one in _numbers(content["nodes"]) if not re.search("sklearn|lightgbm", one[2])]
    holder, key, where = draw.choice(ours or [(None, None, "")])
    if holder is None:
        return text, ""
    before = holder[key] if key != "float" else float("nan")
    value = _near(before, draw)
    holder[key] = value
    if isinstance(value, float) and (key == "float" or not math.isfinite(value)):
        written = struct.pack(">d", value).hex()
        holder[key] = written if key == "float" else {"float": written}
    elif isinstance(value, int) and abs(value) >= 2**63:
        holder[key] = {"int": hex(value)}
    return json.dumps(content).encode(), f"manifest{where}: {before} to {value}"


# -- changes of the structure ------------------------------------------------------------------------------

DTYPES = ("<f8", "<f4", ">f8", "<f2", "<i8", "<i4", "|i1", "<u8", ">i8", "|b1", "<c16", "<U3", "|S2",
          "<M8[s]")  # fmt: skip
# Inserted as the first nodes of a manifest, so that every value can refer to them.
NEW_NODES: list[Any] = [{"list": []}, {"dict": []}, {"tuple": []}, {"list": [1, "a"]}, {"dict": [["a", 1]]},
                        {"set": ["a"]}, {"tuple": [0, 1.5]}]  # fmt: skip
NEW_VALUES: list[Any] = [None, None, None, True, "a", "", 1.5, 0, 3, -1, {"int": hex(2**70)}, {"bytes": "00"},
                         {"float": struct.pack(">d", math.nan).hex()}, {"scalar": ["<i8", "02" + "00" * 7]},
                         {"scalar": ["<f8", "00" * 8]}, *({"at": at} for at in range(len(NEW_NODES)))]  # fmt: skip
SWAPPED = {"list": "tuple", "tuple": "list", "set": "list", "frozenset": "tuple"}


def _shift(written: Any, by: int) -> Any:
    """Return a node or value that refers to nodes `by` places later."""
    if isinstance(written, list):
        return [_shift(item, by) for item in written]
    if isinstance(written, dict):
        return {key: part + by if key == "at" else _shift(part, by) for key, part in written.items()}
    return written


def _change_structure(text: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Return a manifest in which one node has another structure, and what was changed."""
    content = json.loads(text)
    nodes = content["nodes"] = NEW_NODES + _shift(content["nodes"], len(NEW_NODES))
    content["root"] = _shift(content["root"], len(NEW_NODES))
    foreign = _nodes_of_other_packages(nodes)
    places = [at for at, node in enumerate(nodes) if at >= len(NEW_NODES) and at not in foreign and
              next(iter(node)) in ("instance", "dict", *SWAPPED)]  # fmt: skip
    if not places:
        return text, ""
    at = draw.choice(places)
    ((kind, whole),) = nodes[at].items()
    name, items = whole if kind == "instance" else ("", whole)
    paired = kind in ("instance", "dict")
    how = draw.choice(["remove", "replace", "replace", "replace", "exchange", "repeat", "kind", "key"])
    where = f"node {at} {kind} {name.rpartition(':')[2]}"
    if how == "kind":
        if kind == "instance":
            names = sorted({node["instance"][0] for node in nodes if "instance" in node} - {name})
            names += ["tamis.rows.ofs:OFS", "tamis.summaries.moments:RunningMoments"]
            whole[0] = draw.choice(names)
            return json.dumps(content).encode(), f"{where} becomes a {whole[0]}"
        new = "list" if kind == "dict" else draw.choice([SWAPPED[kind], "dict"])
        nodes[at] = {new: [key for key, _ in items] if kind == "dict" else
                     [[n, item] for n, item in enumerate(items)] if new == "dict" else items}  # fmt: skip
        return json.dumps(content).encode(), f"{where} becomes a {new}"
    if not items:
        return text, ""
    n = draw.randrange(len(items))
    where += f" {items[n][0] if paired else n}"
    if how == "remove":
        items.pop(n)
    elif how == "repeat":
        items.append([f"{items[n][0]}x", items[n][1]] if paired else items[n])
    elif how == "key" and paired:
        items[n][0] = draw.choice(["a", 7, -1, None, 1.5, f"{items[n][0]}_"])
    elif how == "exchange" and len(items) > 1:
        other = draw.choice([m for m in range(len(items)) if m != n])
        where += f" and {items[other][0] if paired else other}"
        if paired:
            items[n][1], items[other][1] = items[other][1], items[n][1]
        else:
            items[n], items[other] = items[other], items[n]
    elif paired:
        how = f"{how} {str(items[n][1])[:40]} by {(value := draw.choice(_others(content, at, draw)))}"
        items[n][1] = value
    else:
        how = f"{how} {str(items[n])[:40]} by {(value := draw.choice(_others(content, at, draw)))}"
        items[n] = value
    return json.dumps(content).encode(), f"{where}: {how}"


def _nodes_of_other_packages(nodes: list[Any]) -> set[int]:
    """Return the nodes of estimators of other packages and their attributes, which these packages validate."""
    found = set[int]()
    for n, node in enumerate(nodes):
        name, pairs = node.get("instance", ("tamis", []))
        if not name.startswith("tamis"):
            found |= {n, *(value["at"] for _, value in pairs if isinstance(value, dict) and "at" in value)}
    return found


def _foreign_arrays(manifest: bytes) -> set[str]:
    nodes = json.loads(manifest)["nodes"]
    return {f"{nodes[n]['array']}.npy" for n in _nodes_of_other_packages(nodes) if "array" in nodes[n]}


def _others(content: Any, at: int, draw: random.Random) -> list[Any]:
    """Return values that a slot of a node may get instead: new ones, other nodes and strings of the file."""
    words = re.findall(r'"([a-z-]{2,12})"', json.dumps(content["nodes"]))
    nodes = [{"at": draw.randrange(at)} for _ in range(5)]
    return [*NEW_VALUES, *nodes, *draw.sample(words, min(2, len(words)))]


def _reshape_array(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Return an array of another dtype, shape or order, and what was changed."""
    array = np.load(io.BytesIO(data))
    if array.dtype.kind not in "biuf":
        return data, ""
    changed = array
    how = draw.choice(["dtype", "dtype", "dtype", "order", "ndim", "flat", "longer", "shorter", "empty"])
    with warnings.catch_warnings(), contextlib.suppress(ValueError, TypeError):
        warnings.simplefilter("ignore")
        if how == "dtype":
            changed = array.astype(draw.choice(DTYPES))
        elif how == "order":
            changed = np.asfortranarray(array)
        elif how == "ndim":
            changed = array[None] if draw.random() < 0.5 else array[..., None]
        elif how == "flat":
            changed = array.ravel()
        elif array.ndim:
            axis = draw.randrange(array.ndim)
            if how == "longer" and array.shape[axis]:
                changed = np.concatenate([array, array.take([0, -1], axis)], axis)
            elif how == "shorter":
                changed = array.take(range(max(array.shape[axis] - 1, 0)), axis)
            elif how == "empty":
                changed = array.take([], axis)
    is_same = changed.dtype == array.dtype and changed.shape == array.shape
    if is_same and changed.flags.f_contiguous == array.flags.f_contiguous:
        return data, ""
    file = io.BytesIO()
    np.lib.format.write_array(file, changed, version=(1, 0))
    return file.getvalue(), f"{how} {array.dtype} {array.shape} to {changed.dtype} {changed.shape}"


# -- files -------------------------------------------------------------------------------------------------


def tampered(members: dict[str, bytes], draw: random.Random, *, structure: bool = False) -> tuple[bytes, str]:
    """Return a file in which one number or part is changed, sometimes several, and what was changed."""
    members, done = dict(members), []
    of_array, of_manifest, share = (
        (_reshape_array, _change_structure, 0.3) if structure else (_change_array, _change_manifest, 0.8)
    )
    foreign = _foreign_arrays(members["manifest.json"]) if structure else set()
    arrays = [name for name in members if name.endswith(".npy") and name not in foreign]
    for _ in range(1 if structure else draw.choice([1, 1, 1, 1, 3])):
        change = ""
        for _ in range(20):
            name = draw.choice(arrays) if arrays and draw.random() < share else "manifest.json"
            work = of_array if name.endswith(".npy") else of_manifest
            members[name], change = work(members[name], draw)
            if change:
                break
        done.append(f"{name} {change}")
    return _packed(members), "; ".join(done)


def _packed(members: dict[str, bytes]) -> bytes:
    """Return a file with a valid checksum."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as whole:
        for name, data in members.items():
            whole.writestr(zipfile.ZipInfo(name), data)
    body = file.getvalue()
    body = body[: body.rindex(b"PK\x05\x06") + 20] + (77).to_bytes(2, "little")
    return body + b"tamis sha256 " + hashlib.sha256(body).hexdigest().encode()


# -- outcomes ----------------------------------------------------------------------------------------------


def _is_ours(error: BaseException) -> bool:
    """Whether an error is a sentence of Tamis, or of scikit-learn's validation."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    file = "" if at is None else at.tb_frame.f_code.co_filename
    if isinstance(error, ValueError) and file.startswith((sklearn.__path__[0], "sklearn/", "numpy/random/")):
        return True  # scikit-learn validates its own estimators
    text = str(error)
    own = file.startswith(tamis.__path__[0]) and isinstance(error, ValueError | TypeError)
    return "\n" not in text and text.endswith((".", "?")) and (own or isinstance(error, TamisError))


def _is_finite(value: Any) -> bool:
    found = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    return found.dtype.kind not in "fc" or bool(np.isfinite(found).all())


def _signatures() -> dict[str, set[Any]]:
    """Return the types of arguments that each kernel was compiled or loaded for."""
    found: dict[str, set[Any]] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("tamis."):
            for what, kernel in vars(module).items():
                if signatures := getattr(kernel, "signatures", None):
                    found[f"{getattr(kernel, '__module__', name)}.{what}"] = set(signatures)
    return found


def outcome(data: bytes, use: Use, finite: set[str]) -> str:
    """Load and use a file, and save it again; return "refused", "worked" or what is wrong."""
    before = _signatures()
    try:
        thing = data if getattr(use, "func", None) is use_run else tamis.loads(data)
    except CheckpointError as error:
        return "refused" if _is_ours(error) else f"load: {error}"
    try:
        for name, value in use(thing):
            if name in finite and not _is_finite(value):
                return f"{name} is not finite"
        if thing is not data:
            tamis.loads(tamis.dumps(thing))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        return "refused in use" if _is_ours(error) else told.replace("\n", " ")
    for kernel, known in _signatures().items():
        if known - before.get(kernel, known):
            return f"compiled {kernel} again for {known - before[kernel]}"[:400]
    return "worked"


def in_child(work: Callable[[], str]) -> str:
    """Return what a function returns in a forked process, or how the process ended."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(60)
            found = work()
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(write, found[:2000].encode(errors="replace"))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        found = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return found if status == 0 else f"ended by {signal.Signals(os.WTERMSIG(status)).name}"


@dataclass
class Subject:
    """A file that can be changed and used, warmed up: what it needs is imported and compiled."""

    use: Use
    members: dict[str, bytes]
    finite: set[str]  # names of results that must be finite


@functools.cache
def subject(key: str) -> Subject:
    """Make the file of a key and use it once."""
    make, use = subjects()[key]
    data = make()
    results = [*use(data if key in OPTIONS else tamis.loads(data))]
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    finite = {name for name, _ in results} - {name for name, value in results if not _is_finite(value)}
    if b"sklearn." in members["manifest.json"].split(b'"root"')[0] and key not in OPTIONS:
        finite = set()  # what scikit-learn's estimators hold is theirs to validate
    return Subject(use, members, finite)


class Tampered:
    """Changed files, each with a number."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self.keys = list(keys) or [*subjects()]

    def outcome(self, number: int) -> tuple[str, str]:
        """Return the outcome of the file of a number, and what was changed in it."""
        key = self.keys[number % len(self.keys)]
        one = subject(key)
        turn = number // len(self.keys)
        data, change = tampered(one.members, random.Random(f"{turn} {key}"), structure=turn % 2 == 1)
        found = in_child(lambda: outcome(data, one.use, one.finite))
        return found, f"{number} {key}: {change}"


def main(files: int, first: int = 0, keys: Sequence[str] = ()) -> int:
    """Try files, print those that fail and a summary; return how many failed."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    every, counts, began = Tampered(keys), Counter[str](), time.process_time()
    for number in range(first, first + files):
        found, change = every.outcome(number)
        is_fine = found in ("refused", "refused in use", "worked")
        counts[found if is_fine else "failed"] += 1
        if not is_fine:
            print(f"FAILED {change}: {found}", flush=True)
    print(f"{files} files: {dict(counts)}; {time.process_time() - began:.0f} s", flush=True)
    return counts["failed"]


@pytest.mark.slow
@pytest.mark.hypothesis  # with the search profile: more files, and other ones
@pytest.mark.skipif(sys.platform != "linux", reason="forks with a limit of memory")
def test_a_changed_number_is_refused_or_does_no_harm(is_search: bool) -> None:
    files, first = (IN_SEARCH, random.randrange(1 << 40)) if is_search else (IN_SUITE, 0)
    command = [sys.executable, "-m", "tests.test_tampered", str(files), str(first)]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # OpenMP's threads do not survive a fork
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "worked" in done.stdout and "refused" in done.stdout  # noqa: PT018


# Attributes with labels, or with rows of any precision.
OF_ANY_DTYPE = {"classes_", "classes", "_declared", "categorical", "feature_names_in_", "blocks[0][0]"}


@pytest.mark.slow
def test_an_array_of_another_dtype_is_refused() -> None:
    """Kernels are compiled for one dtype: for another one they would be compiled again, for many seconds."""
    seen, passed = set[str](), set[str]()
    for key, (make, _) in subjects().items():
        if key in OPTIONS:  # validated when the run continues
            continue
        with zipfile.ZipFile(io.BytesIO(make())) as whole:
            members = {name: whole.read(name) for name in whole.namelist()}
        manifest = members["manifest.json"]
        for name, where in _places_of_arrays(manifest).items():
            array, file = np.load(io.BytesIO(members[name])), io.BytesIO()
            if where in seen or not array.size or name in _foreign_arrays(manifest):
                continue
            seen.add(where)
            other = (
                np.float32 if array.dtype == np.float64 else np.int16 if array.dtype.kind == "i" else np.int8
            )
            np.lib.format.write_array(file, array.astype(other), version=(1, 0))
            with contextlib.suppress(CheckpointError):
                tamis.loads(_packed(members | {name: file.getvalue()}))
                passed.add(where)
    assert len(seen) > 500
    assert {one for one in passed if one.rpartition(".")[2] not in OF_ANY_DTYPE} == set()


def _places_of_arrays(manifest: bytes) -> dict[str, str]:
    """Return the class and attribute of each array; of one in a container, the class that contains it."""
    nodes, places = json.loads(manifest)["nodes"], dict[int, str]()
    for node in reversed(nodes):
        ((kind, content),) = node.items()
        owner, pairs = content if kind == "instance" else ("", [])
        values = (
            [value for _, value in content]
            if kind == "dict"
            else content
            if kind in ("list", "tuple")
            else []
        )
        above = places.get(nodes.index(node), "")
        for step, value in pairs or enumerate(values):
            if isinstance(value, dict) and "at" in value:
                places[value["at"]] = f"{owner}.{step}" if owner else f"{above}[{step}]"
    return {
        f"{node['array']}.npy": places[n] for n, node in enumerate(nodes) if "array" in node and n in places
    }


def _rows_of(way: str) -> tuple[Any, Any]:
    """Return rows that lead to an unusual state, and their labels."""
    rows = {
        "one row": X[:1], "one label": X[:40], "constant": np.ones((60, 6)), "large": np.abs(X[:120]) * 1e40,
        "tiny": np.abs(X[:120]) * 1e-40, "outliers": np.where(RNG.random((120, 6)) < 0.02, 1e9, np.abs(X[:120])),
        "zero": np.zeros((60, 6)), "many": np.abs(np.tile(X, (4, 1))),
    }[way]  # fmt: skip
    labels = np.zeros(len(rows), dtype=int) if way == "one label" else np.resize(Y, len(rows))
    return rows, labels


WAYS = ("one row", "one label", "constant", "large", "tiny", "outliers", "zero", "many")


def _taught(entry: Any, way: str) -> Any:
    """Return a model that has seen such rows, or was refused some of them."""
    model, (rows, labels) = _make(entry), _rows_of(way)
    with contextlib.suppress(TamisError, ValueError):  # what a model refuses leaves it as it was
        if entry.family == "columns":
            model.start((labels > 0).astype(int)).offer_many(rows)
        elif hasattr(model, "partial_fit") and entry.family != "cells":
            for part in (slice(0, 30), slice(30, None)):
                if len(labels[part]):
                    model.partial_fit(rows[part], labels[part], **_classes(model))
        else:
            model.fit(rows, labels)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_rows_lead_to_is_loaded(way: str) -> None:
    for entry in (*CATALOG, *LEARNERS):
        if "river" in entry.module:
            continue
        data = tamis.dumps(_taught(entry, way))
        assert tamis.dumps(tamis.loads(data)) == data, entry.key


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int([*sys.argv, 0][2]), sys.argv[3:]) > 0)
