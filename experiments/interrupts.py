"""Atomic updates: after an exception at any place of an update, the model is as before the call or as after it.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python experiments/interrupts.py [--family rows ...] [--only WORD ...]
        [--interrupts 200] [--allocations 400] [--sample 8] [--seed 0]

Every class of the catalogue, and what else has an update that promises it, learns the same batch again and again while

1. its hook raises KeyboardInterrupt after it has done its work,
2. NumPy's functions raise MemoryError at the k-th allocation, k = 1, 2, 3, ...,
3. a timer signal (SIGALRM) or Ctrl-C (SIGINT, sent by another thread) interrupts it at a random moment,
   `--interrupts` times per family.

After each exception the state must have the bytes of before or of after the call, another thread must be able to use
the object, and the same batch must lead to the same bytes as in an undisturbed run. The program ends with 1 if anything
else happened. No state here is too large to copy, so no model may be `closed` (raise StateError until it is fitted).
`tests/test_interrupts.py` runs a sample of this.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis.base import CellClassifier, ColumnSelector, RowSelector
from tamis.catalog import CATALOG, LEARNERS, Entry
from tamis.columns.gram import GramInvesting
from tamis.drift import DETECTORS
from tamis.errors import StateError
from tamis.learners import ResetOnDrift
from tamis.pipeline import StreamPipeline

N_KNOWN, N_NEW = 600, 400
RNG = np.random.default_rng(20200823)
X = np.round(RNG.normal(size=(N_KNOWN + N_NEW, 8)), 3)
LABELS = np.where(np.arange(len(X)) < N_KNOWN + 150, X[:, 0] + X[:, 3] > 0, X[:, 5] > 0.2).astype(int)
KNOWN, NEW = slice(0, N_KNOWN), slice(N_KNOWN, N_KNOWN + N_NEW)

# NumPy's functions that allocate, as the modules of Tamis (and of scikit-learn) call them.
ALLOCATORS = (
    "array", "ascontiguousarray", "bincount", "column_stack", "concatenate", "empty", "empty_like", "flatnonzero",
    "full", "full_like", "ones", "ones_like", "pad", "repeat", "stack", "tile", "vstack", "where", "zeros",
    "zeros_like",
)  # fmt: skip


_HOOKS = {
    "ResetOnDrift": "_learn_until_drift",
    "SparseFSA": "_anneal",
    "Refit": "_update",
    "GFSFS": "_consider_groups",
}


@dataclass(frozen=True)
class Case:
    """An object that has learned, and an update of it."""

    name: str
    family: str
    make: Callable[[], Any]
    update: Callable[[Any], Any]
    hook: str  # the method that does the work
    state: Callable[[Any], bytes] = tamis.dumps


def cases(families: list[str] | None = None) -> dict[str, Case]:
    """Return the cases of some families, or of all, by name."""
    found = [*_of_catalogue(), *_others()]
    return {case.name: case for case in found if families is None or case.family in families}


def _of_catalogue() -> Iterator[Case]:
    for entry in (*CATALOG, *LEARNERS):
        if not entry.module.startswith("tamis.") or "river" in entry.module:
            continue  # other libraries promise nothing
        if "lightgbm" in entry.key and find_spec("lightgbm") is None:
            continue
        cls = entry.load()
        if issubclass(cls, ColumnSelector):
            yield Case(f"{entry.key}: offer", "columns", _started(entry), _offer, _column_hook(cls))
            yield Case(f"{entry.key}: offer_many", "columns", _started(entry), _offer_many, _column_hook(cls))
            yield Case(f"{entry.key}: fit", "columns", _started(entry), _fit, _column_hook(cls))
        elif issubclass(cls, CellClassifier):
            yield Case(f"{entry.key}: fit", "cells", _fitted(entry), _fit_cells, "_learn")
            yield Case(
                f"{entry.key}: observe", "sessions", _session(entry), _observe, "_posterior_of", _of_session
            )
            # As many rows as before: the model is fitted again.
            yield Case(f"{entry.key}: partial_fit", "cells", _fitted(entry), _partial_fit_cells, "_refit")
        else:
            family = "rows" if issubclass(cls, RowSelector) else "learners"
            hook = _HOOKS.get(entry.name, "_learn")
            if hasattr(cls, "partial_fit"):
                yield Case(f"{entry.key}: partial_fit", family, _learned(entry), _partial_fit, hook)
            yield Case(f"{entry.key}: fit", family, _learned(entry), _fit, hook)


def _others() -> Iterator[Case]:
    for name, make in {
        "fires, sgd": lambda: StreamPipeline(tamis.FIRES(2), SGDClassifier(random_state=0)),
        "t-score, nb": lambda: StreamPipeline(tamis.TScore(2), tamis.WeightedNaiveBayes(), batch_size=150),
        "no selector, hoeffding-tree": lambda: StreamPipeline(None, tamis.HoeffdingTree()),
    }.items():
        make_known = functools.partial(_after_rows, make)
        yield Case(
            f"StreamPipeline({name}): partial_fit", "pipeline", make_known, _partial_fit, "_learn_batch"
        )
        yield Case(f"StreamPipeline({name}): fit", "pipeline", make_known, _fit, "_learn_batch")
    yield Case(
        "ResetOnDrift(GaussianNB): partial_fit", "learners", _after_rows_of(ResetOnDrift, GaussianNB()),
        _partial_fit, "_learn_until_drift",
    )  # fmt: skip
    yield Case("GramInvesting: partial_fit", "columns", _gram, _by_name, "_decide")
    for name, cls in DETECTORS.items():
        yield Case(f"{name}: drifts", "detectors", cls, lambda one: one.drifts(LABELS[NEW]), "_run")


def _new(entry: Entry) -> Any:
    model = entry.load()(**dict(entry.parameters))
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def _after_rows(make: Callable[[], Any]) -> Any:
    model = make()
    if hasattr(model, "partial_fit"):
        return model.partial_fit(X[KNOWN], LABELS[KNOWN], classes=[0, 1])
    return model.fit(X[KNOWN], LABELS[KNOWN])


def _after_rows_of(cls: type[Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: _after_rows(lambda: cls(*arguments))


def _learned(entry: Entry) -> Callable[[], Any]:
    return lambda: _after_rows(lambda: _new(entry))


def _fitted(entry: Entry) -> Callable[[], Any]:
    return lambda: _new(entry).fit(X[:100, :4], LABELS[:100])  # a fit takes half a second


def _fit_cells(model: Any) -> None:
    model.fit(X[100:200, :4], LABELS[100:200])


def _partial_fit_cells(model: Any) -> None:
    model.partial_fit(X[100:200, :4], LABELS[100:200])


def _partial_fit(model: Any) -> None:
    model.partial_fit(X[NEW], LABELS[NEW])


def _fit(model: Any) -> None:
    model.fit(X[NEW], LABELS[NEW])


def _started(entry: Entry) -> Callable[[], Any]:
    def make() -> Any:
        model = _new(entry).start(LABELS[KNOWN])
        model.offer_many(X[KNOWN, :4], [f"known{j}" for j in range(4)])
        return model

    return make


def _column_hook(cls: type[Any]) -> str:
    has_blocks = cls._consider_block is not ColumnSelector._consider_block
    return _HOOKS.get(cls.__name__, "_consider_block" if has_blocks else "_consider")


def _offer(model: Any) -> None:
    model.offer(X[KNOWN, 0] + 0.3 * X[KNOWN, 3] + X[KNOWN, 6], "new")


def _offer_many(model: Any) -> None:
    model.offer_many(
        np.column_stack([X[KNOWN, 4:], X[KNOWN, :3] + X[KNOWN, 5:]]), [f"new{j}" for j in range(7)]
    )


def _frame(rows: slice) -> dict[str, Any]:
    return {f"x{j}": X[rows, j] for j in range(X.shape[1])}


def _gram() -> Any:
    return GramInvesting(trial_rows=300).partial_fit(_frame(KNOWN), LABELS[KNOWN])


def _by_name(model: Any) -> None:
    model.partial_fit(_frame(NEW) | {"late": X[NEW, 5] + 0.1 * X[NEW, 6]}, LABELS[NEW])


def _session(entry: Entry) -> Callable[[], Any]:
    def make() -> Any:
        return _fitted(entry)().open()

    return make


def _observe(session: Any) -> None:
    feature = next(iter(session._model.candidates_.tolist()))
    session.observe(0.25, int(feature))


def _of_session(session: Any) -> bytes:
    state = session._state
    return pickle.dumps([session._position, session._steps, [a.tolist() for a in vars(state).values()]])


# -- one case ----------------------------------------------------------------------------------------------


class Trial:
    """A case with the states of before and after its update, and the count of outcomes."""

    def __init__(self, case: Case) -> None:
        self.case, self.counts = case, Counter[str]()
        self.model = case.make()
        self.before = case.state(self.model)
        one, self.after, self.seconds = self.copy(), b"", np.inf
        for _ in range(3):  # the first one compiles
            one = self.copy()
            started = time.perf_counter()
            case.update(one)
            self.seconds = min(self.seconds, time.perf_counter() - started)
            if self.after not in (b"", case.state(one)):
                raise AssertionError(f"{case.name}: the same update of the same model gives different bytes")
            self.after = case.state(one)

    def copy(self) -> Any:
        """Return a copy of the model of before."""
        return copy.deepcopy(self.model)

    def judge(self, model: Any, error: BaseException, expected: type[BaseException]) -> str:
        """Return what an exception in the update of a model has left, and count it."""
        found = self._judged(model)
        if type(error) is not expected:
            found = f"raised {type(error).__name__}: {str(error)[:80]}"
        self.counts[found] += 1
        return found

    def _judged(self, model: Any) -> str:
        try:
            state = self.case.state(model)
        except StateError:
            state = None
        if state == self.after:
            found = "after"
        elif state == self.before or state is None:
            failed = self._again(model)
            if isinstance(failed, StateError):
                return "closed"
            found = (
                "before" if failed is None else f"the next update raised {type(failed).__name__}: {failed}"
            )
            if failed is None and self.case.state(model) != self.after:
                return "the same batch again gives another model"
        else:
            return "closed" if isinstance(self._again(model), StateError) else "between"
        return found

    def _again(self, model: Any) -> BaseException | None:
        """Update the model in another thread, which also shows that nobody holds its lock; return what it raises."""
        raised: list[BaseException | None] = [TimeoutError("another thread waits for ever")]

        def update() -> None:
            try:
                self.case.update(model)
                raised[0] = None
            except BaseException as error:
                raised[0] = error

        thread = threading.Thread(target=update, daemon=True)
        thread.start()
        thread.join(20)
        return raised[0]

    # -- what goes wrong -----------------------------------------------------------------------------------

    def hook_raises(self) -> str:
        """Raise after the hook has done its work."""
        model, cls, name = self.copy(), type(self.model), self.case.hook
        done = getattr(cls, name)

        @functools.wraps(done)
        def raising(*args: Any, **kwargs: Any) -> Any:
            done(*args, **kwargs)
            raise KeyboardInterrupt

        is_own = name in vars(cls)
        setattr(cls, name, raising)
        error = None
        try:
            self.case.update(model)
        except BaseException as raised:
            error = raised
        finally:
            setattr(cls, name, done) if is_own else delattr(cls, name)
        if error is None:
            raise AssertionError(f"{self.case.name}: {name} was not called")
        return self.judge(model, error, KeyboardInterrupt)

    def allocation_fails(self, k: int) -> str | None:
        """Raise MemoryError at the k-th allocation; None if there are fewer."""
        model = self.copy()
        try:
            with failing_allocation(k):
                self.case.update(model)
        except BaseException as error:
            return self.judge(model, error, MemoryError)
        if self.case.state(model) != self.after:
            self.counts["an allocation that failed was ignored"] += 1
        return None

    def n_allocations(self) -> int:
        """Return how many allocations the update makes."""
        with failing_allocation(0) as count:
            self.case.update(self.copy())
        return count[0]

    def interrupted(self, delay: float, how: str) -> str | None:
        """Send a signal after a delay; None if the update was faster."""
        model, is_done, error = self.copy(), False, None
        try:
            with _signal_after(delay, how):
                self.case.update(model)
                is_done = True
        except BaseException as raised:
            error = raised
        if error is None or is_done:
            return None
        return self.judge(model, error, KeyboardInterrupt)


@contextlib.contextmanager
def failing_allocation(k: int) -> Iterator[list[int]]:
    """Let the k-th call of a function of NumPy that allocates raise MemoryError; 0: none. Yields their count."""
    count, here = [0], threading.get_ident()
    known = {name: getattr(np, name) for name in ALLOCATORS}

    def counted(function: Any) -> Any:
        @functools.wraps(function)
        def allocate(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == here:
                count[0] += 1
                if count[0] == k:
                    raise MemoryError(f"allocation {k}")
            return function(*args, **kwargs)

        return allocate

    for name, function in known.items():
        setattr(np, name, counted(function))
    try:
        yield count
    finally:
        for name, function in known.items():
            setattr(np, name, function)


@contextlib.contextmanager
def _signal_after(delay: float, how: str) -> Iterator[None]:
    """Send SIGALRM by a timer, or SIGINT from another thread; both raise KeyboardInterrupt."""
    if how == "SIGALRM":
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        return
    begin = threading.Event()

    def send() -> None:
        begin.wait()
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    begin.set()
    try:
        yield
    finally:
        while sender.is_alive():  # `join` would be interrupted, too
            with contextlib.suppress(KeyboardInterrupt):
                sender.join()
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(0.0002)


def interrupts(trials: list[Trial], n: int, seed: int) -> int:
    """Interrupt updates of some cases in turn until they were hit so often; return how often."""
    draw, hits = random.Random(seed), 0
    handlers = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGALRM)
    }
    try:
        for at in range(20 * n):
            trial = trials[at % len(trials)]
            how = ("SIGALRM", "SIGINT")[at // len(trials) % 2]
            hits += trial.interrupted(max(1e-6, draw.random() * 1.02 * trial.seconds), how) is not None
            if hits >= n:
                break
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return hits


def run(trials: list[Trial], n_interrupts: int, n_allocations: int, seed: int) -> dict[str, Counter[str]]:
    """Try everything on some cases of one family; return the outcomes by what went wrong."""
    found: dict[str, Counter[str]] = {}
    for trial in trials:
        trial.hook_raises()
    found["hook"] = _gathered(trials)
    for trial in trials:
        total = trial.n_allocations()
        for k in np.unique(np.linspace(1, total, min(total, n_allocations)).astype(int)):
            trial.allocation_fails(int(k))
    found["allocation"] = _gathered(trials)
    interrupts(trials, n_interrupts, seed)
    found["interrupt"] = _gathered(trials)
    return found


def _gathered(trials: list[Trial]) -> Counter[str]:
    """Return the outcomes counted since the last call; those that break the promise with the name of the case."""
    found: Counter[str] = Counter()
    for trial in trials:
        for outcome, n in trial.counts.items():
            found[outcome if outcome in ("before", "after") else f"{outcome} [{trial.case.name}]"] += n
        trial.counts.clear()
    return found


def is_broken(outcome: str) -> bool:
    """Return whether an outcome breaks the promise."""
    return outcome.split(" [")[0] not in ("before", "after")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", nargs="*", help="by default all")
    parser.add_argument("--only", nargs="*", help="cases whose name has one of these words")
    parser.add_argument("--interrupts", type=int, default=200, help="per family")
    parser.add_argument("--allocations", type=int, default=400, help="per case")
    parser.add_argument("--sample", type=int, help="so many cases of each family, drawn; by default all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = cases(options.family).values()
    if options.only:
        chosen = [case for case in chosen if any(word in case.name for word in options.only)]
    n_broken = 0
    for family in dict.fromkeys(case.family for case in chosen):
        started = time.perf_counter()
        own = [case for case in chosen if case.family == family]
        if options.sample is not None:
            own = random.Random(options.seed).sample(own, min(options.sample, len(own)))
        trials = [Trial(case) for case in own]
        found = run(trials, options.interrupts, options.allocations, options.seed)
        print(f"{family}: {len(trials)} cases, {time.perf_counter() - started:.0f} s")
        for what, outcomes in found.items():
            print(f"  {what}: {sum(outcomes.values())}")
            for outcome, n in sorted(outcomes.items(), key=lambda pair: -pair[1]):
                n_broken += n * is_broken(outcome)
                print(f"    {n:5} {outcome}{'  BROKEN' * is_broken(outcome)}")
        sys.stdout.flush()
    print(f"{n_broken} of these break the promise" if n_broken else "all as before or as after")
    return int(n_broken > 0)


if __name__ == "__main__":
    sys.exit(main())
