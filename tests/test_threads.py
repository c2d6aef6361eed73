"""Threads on one object of every class: none crashes it, no batch is lost, and what is read is a state that there was.

``python -m tests.test_threads SECONDS [FIRST]`` goes on for so long, a process for each class in turn, from the
class of that name on, and prints the counts.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

import tamis
from tamis.catalog import CATALOG, LEARNERS
from tamis.drift import DETECTORS
from tamis.errors import TamisError
from tamis.evaluate import RunningErrors, RunningMetrics, SlidingAUC, SlidingPrecisionRecall, SlidingStability
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.contingency import Contingency, chi_square
from tamis.summaries.entropy import WindowCounts
from tamis.summaries.evidence import Evidence
from tamis.summaries.fixed_bins import FixedBins
from tamis.summaries.moments import RunningMoments
from tamis.summaries.quantiles import QuantileSummary

DRAW = np.random.default_rng(0)
X = np.round(DRAW.normal(size=(90, 6)), 3)
Y = (X[:, 0] > 0).astype(np.int64)
OTHER = np.round(DRAW.normal(size=(61, 6)), 3), DRAW.integers(0, 3, 61)
BLOCK = np.round(DRAW.normal(size=(90, 5)) + Y[:, None] * np.arange(5) / 2, 3)

Call = Callable[[Any], Any]


@dataclass
class Subject:
    """An object, what two threads do to it, and what others read of it meanwhile."""

    make: Callable[[], Any]
    writes: list[Call]  # one for each thread that writes
    reads: dict[str, Call]
    wild: list[Call] = field(default_factory=list)  # what else may be done to it, in any order
    is_chain: bool = True  # each write moves the state on; else each one restarts


def told(value: Any) -> Any:
    """Return what tells a value from another."""
    if isinstance(value, np.ndarray):
        return hashlib.sha256(f"{value.dtype} {value.shape} {value.tolist()}".encode()).hexdigest()[:16]
    if sp.issparse(value):
        return told(value.toarray())
    if isinstance(value, list | tuple):
        return tuple(told(part) for part in value)
    if isinstance(value, dict):
        return tuple((key, told(part)) for key, part in value.items())
    return repr(value)


def outcome(read: Call, one: Any) -> Any:
    """Return what a reading gives, a refusal included."""
    try:
        return told(read(one))
    except (TamisError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def restored(one: Any) -> Any:
    handle, path = tempfile.mkstemp()
    os.close(handle)
    try:
        return tamis.load(tamis.save(one, path))
    finally:
        os.unlink(path)


def with_copies(subject: Subject, first: str) -> Subject:
    """Read what every object has, and one of its readings from copies of it."""
    read = subject.reads[first]
    subject.reads |= {
        "repr": lambda one: repr(one).partition(" object at ")[0],
        "deepcopy": lambda one: read(copy.deepcopy(one)),
        "pickle": lambda one: read(pickle.loads(pickle.dumps(one))),
        "save": lambda one: read(restored(one)),
    }
    # A shallow copy shares the arrays, so it is not of one moment.
    subject.wild.append(lambda one: read(copy.copy(one)))
    if hasattr(subject.make(), "merge"):

        def merged(one: Any) -> Any:
            fresh = subject.make()
            fresh.merge(one)
            return read(fresh)

        def merge(one: Any) -> None:
            one.merge(copy.deepcopy(one))

        subject.reads["merge"] = merged
        subject.wild.append(merge)
    if isinstance(subject.make(), BaseEstimator):
        subject.reads |= {"clone": clone, "html": lambda one: one._repr_html_()[:50]}
    return subject


def estimator(key: str) -> Subject:
    entry = next(entry for entry in (*CATALOG, *LEARNERS) if entry.key == key)

    def make() -> Any:
        model = entry.load()(**dict(entry.parameters))
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=0)
        return model.fit(X, Y)

    def reading(name: str) -> Call:
        if name.endswith("_"):
            return lambda one: getattr(one, name)
        return lambda one: getattr(one, name)(*([] if name == "get_support" else [X]))

    one = make()
    names = [
        "scores_",
        "selected_",
        "feature_weights_",
        "predict",
        "predict_proba",
        "get_support",
        "transform",
    ]
    reads = {name: reading(name) for name in names if hasattr(one, name)}
    first = next(iter(reads))
    wild: list[Call] = [lambda one: one.fit(*OTHER) if "multiclass" in entry.targets else one.fit(X, Y)]
    if hasattr(one, "offer"):
        wild += [
            lambda one: one.start(Y[:50]),
            lambda one: one.offer_many(OTHER[0][:50]),
            lambda one: one.trace_,
        ]
        subject = Subject(make, [lambda one: one.offer_many(BLOCK)] * 2, reads, wild)
    elif hasattr(one, "partial_fit"):
        rows = [(X[:1], Y[:1]), (X[:40], Y[:40]), (X[7:19].astype(np.float32), Y[7:19])]
        rows += [(sp.csr_matrix(X), Y)] * entry.sparse
        wild += [lambda one, part=part: one.partial_fit(*part) for part in rows]  # type: ignore[misc]
        subject = Subject(make, [lambda one: one.partial_fit(X[20:60], Y[20:60])] * 2, reads, wild)
    else:
        if hasattr(one, "acquire"):
            wild += [
                lambda one: one.n_features_used_,
                lambda one: one.acquire(X[0]),
                lambda one: one.open().next_feature,
            ]
        half = X[:50], Y[:50]
        subject = Subject(make, [lambda one: one.fit(X, Y), lambda one: one.fit(*half)], reads, wild, False)
    return with_copies(subject, first)


def detector(name: str) -> Subject:
    errors = (DRAW.random(700) < np.r_[np.full(350, 0.1), np.full(350, 0.6)]).astype(float)
    wild: list[Call] = [lambda one: one.reset(), lambda one: one.update(1.0), lambda one: one.drifts(errors)]
    reads: dict[str, Call] = {"n_seen": lambda one: one.n_seen, "in_warning": lambda one: one.in_warning}
    reads["next"] = lambda one: copy.deepcopy(one).drifts(errors)
    return with_copies(Subject(DETECTORS[name], [lambda one: one.drifts(errors)] * 2, reads, wild), "next")


def summary(made: Callable[[], Any], write: Call, *readings: Call, wild: tuple[Call, ...] = ()) -> Subject:
    reads = {f"reading {i}": reading for i, reading in enumerate(readings)}
    return with_copies(Subject(made, [write] * 2, reads, list(wild)), "reading 0")


def begun(one: Any, write: Call) -> Any:
    write(one)
    return one


def summaries() -> dict[str, Callable[[], Subject]]:
    def update(one: Any) -> Any:
        return one.update(X, Y)

    def grow(one: Any) -> Any:
        return one.grow(one.n_classes + 1) if one.n_classes < 9 else None

    def fade(one: Any) -> Any:
        return one.fade(0.5)

    bins = (X > 0).astype(np.int64)
    return {
        "RunningMoments": lambda: summary(
            lambda: RunningMoments(6), lambda one: one.update(X), lambda one: one.mean, lambda one: one.variance()
        ),
        "ClassMoments": lambda: summary(
            lambda: ClassMoments(6, 2), update, lambda one: one.variance(), lambda one: one.read(), wild=(grow, fade)
        ),
        "Contingency": lambda: summary(
            lambda: Contingency(6, 2, 2), lambda one: one.update(bins, Y), lambda one: one.table(), wild=(grow, fade)
        ),
        "WindowCounts": lambda: summary(
            lambda: WindowCounts(6, 2, 50), update, lambda one: one.symmetrical_uncertainty(), lambda one: one.rows(),
            wild=(grow,),
        ),
        "WindowCounts sparse": lambda: summary(
            lambda: WindowCounts(6, 2, 50), lambda one: one.update(sp.csr_matrix(bins.astype(float)), Y),
            lambda one: one.symmetrical_uncertainty(), wild=(grow,),
        ),
        "FixedBins": lambda: summary(
            lambda: begun(FixedBins(6, 2, 4, cut_every=200), lambda one: [one.update(X, Y) for _ in range(4)]), update,
            lambda one: one.test(chi_square), wild=(grow, fade),
        ),
        "QuantileSummary": lambda: summary(
            lambda: QuantileSummary(6, 2), update, lambda one: one.quantile(np.linspace(0, 1, 9)),
            lambda one: one.counts(4), wild=(grow, fade),
        ),
        "Evidence": lambda: summary(lambda: Evidence(6, 2), update, lambda one: one.log_e(), wild=(grow,)),
        "RunningMetrics": lambda: summary(
            lambda: RunningMetrics(70), lambda one: one.update(Y, Y[::-1]), lambda one: one.cumulative,
            lambda one: one.windowed,
        ),
        "RunningErrors": lambda: summary(
            lambda: RunningErrors(70), lambda one: one.update(X[:, 0], X[:, 1]), lambda one: one.cumulative,
            lambda one: one.windowed,
        ),
        "SlidingAUC": lambda: summary(
            lambda: SlidingAUC(70), lambda one: one.update(Y, X[:, 0]), lambda one: one.windowed
        ),
        "SlidingPrecisionRecall": lambda: summary(
            lambda: SlidingPrecisionRecall(70), lambda one: one.update(Y, X[:, 0]), lambda one: one.windowed
        ),
        "SlidingStability": lambda: summary(
            lambda: SlidingStability(6, 4), lambda one: one.add([0, 4]), lambda one: one.value,
            wild=(lambda one: one.add([1, 2, 3]),),
        ),
    }  # fmt: skip


def subjects() -> dict[str, Callable[[], Subject]]:
    keys = dict.fromkeys(
        entry.key for entry in (*CATALOG, *LEARNERS)
        if entry.module.startswith("tamis.") and "river" not in entry.key
    )  # fmt: skip
    return {
        **{key: lambda key=key: estimator(key) for key in keys},  # type: ignore[misc]
        **{name: lambda name=name: detector(name) for name in DETECTORS},  # type: ignore[misc]
        **summaries(),
    }


def together(*works: Callable[[], None]) -> None:
    """Run each in a thread of its own; raise what the first of them raised."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def no_batch_is_lost(subject: Subject, n_writes: int, n_reads: int) -> Counter[str]:
    """Let each thread write the same; what is read must be what is read of one thread's work after some write."""
    one, known = subject.make(), {name: set() for name in subject.reads}
    after: dict[str, Any] = {}
    for i in range(n_writes * len(subject.writes) + 1):
        if i:
            subject.writes[i % len(subject.writes)](one)
        for name, read in subject.reads.items():
            after[name] = outcome(read, one)
            known[name].add(after[name])
        if not subject.is_chain and i == len(subject.writes):
            break
    # Lists, since of two threads' additions to a number one may be lost, of their appends never.
    shared, seen, ended = subject.make(), list[str](), list[Call]()

    def write(call: Call) -> None:
        try:
            for _ in range(n_writes):
                call(shared)
                seen.append("writes")
        finally:
            ended.append(call)

    def read(first: int) -> None:
        names = list(subject.reads)
        for i in itertools.count(first):
            if len(ended) == len(subject.writes) and i >= n_reads:
                return
            name = names[i % len(names)]
            found = outcome(subject.reads[name], shared)
            assert found in known[name], f"{name} gave {found}, which one thread never reads"
            seen.append("reads")

    together(*(lambda call=call: write(call) for call in subject.writes), lambda: read(0), lambda: read(3))  # type: ignore[misc]
    if subject.is_chain:
        for name, call in subject.reads.items():
            assert outcome(call, shared) == after[name], f"{name} after all: a batch was lost"
    return Counter(seen)


def nothing_breaks(subject: Subject, n_calls: int, seed: int) -> Counter[str]:
    """Let four threads do anything to one object; what is refused is refused in one sentence."""
    shared, seen = subject.make(), list[str]()
    calls = [*subject.writes, *subject.reads.values(), *subject.wild * 2]

    def work(draw: random.Random) -> None:
        for _ in range(n_calls):
            try:
                draw.choice(calls)(shared)
                seen.append("wild calls")
            except (TamisError, ValueError) as error:
                if "\n" in str(error):
                    raise AssertionError(f"{error!r} is no sentence") from error
                seen.append("refused")

    together(*(lambda i=i: work(random.Random(seed + i)) for i in range(4)))  # type: ignore[misc]
    return Counter(seen)


def stress(name: str, n: int, seed: int = 0) -> Counter[str]:
    # Not by a filter: scikit-learn's forests change the filters of all threads while they are fitted.
    warnings.showwarning = lambda *args, **kwargs: None
    sys.setswitchinterval(1e-5)
    subject = subjects()[name]()
    return no_batch_is_lost(subject, n, 3 * n) + nothing_breaks(subject, 3 * n, seed)


def in_a_process(names: list[str], n: int, seed: int = 0) -> Counter[str]:
    """Stress some classes in a process of their own; what it counted, or what became of it."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.test_threads", "--class", str(n), str(seed), *names],
        capture_output=True, text=True, timeout=900, check=False, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr[-3000:])
    return Counter(
        {name: int(found) for name, found in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}
    )


@pytest.mark.slow
def test_threads_on_one_object_leave_it_whole() -> None:
    counted = in_a_process(list(subjects()), 1)
    assert min(counted["writes"], counted["reads"], counted["wild calls"]) >= 2 * len(subjects())


def main(seconds: float, first: str | None = None) -> None:
    began, counted, failed, names = time.monotonic(), Counter[str](), 0, list(subjects())
    at = 0 if first is None else names.index(first)
    while time.monotonic() - began < seconds:
        name, seed = names[at % len(names)], 4 * (at // len(names))
        try:
            found = in_a_process([name], 8, seed)
            counted += found + Counter({"processes": 1})
            print(f"{name}: {dict(found)}, {time.monotonic() - began:.0f} s", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"{name} (seed {seed}): {error}", flush=True)
        at += 1
    print(
        f"{len(names)} classes, up to {name} of round {(at - 1) // len(names) + 1}: {dict(counted)}, {failed} failed"
    )


if __name__ == "__main__":
    if sys.argv[1] == "--class":
        sums = Counter[str]()
        for subject in sys.argv[4:]:
            try:
                sums += stress(subject, int(sys.argv[2]), int(sys.argv[3]))
            except Exception as error:
                where = "".join(traceback.format_tb(error.__traceback__)[-3:])
                print(f"{subject}: {error!r}\n{where}", file=sys.stderr, flush=True)
        for what, number in sums.items():
            print(what, number)
    else:
        main(float(sys.argv[1]), *sys.argv[2:3])
