"""A batch is learned completely or not at all, whatever interrupts it."""

from __future__ import annotations

import copy
import ctypes
import faulthandler
import math
import random
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import _atomic, _guard
from tamis._atomic import Snapshot, atomically, parts
from tamis._guard import ThreadSafe
from tamis._interrupts import ACTION_SIZE, defer_interrupts, sigaction, stop_signals_as_interrupt
from tamis.base import RowSelector, row_intake
from tamis.catalog import CATALOG, LEARNERS
from tamis.errors import DataError, StateError
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.moments import RunningMoments
from tamis.summaries.quantiles import QuantileSummary

SELECTORS = [entry for entry in CATALOG if entry.family == "rows"]
CASES = [*SELECTORS, *(e for e in LEARNERS if e.module.startswith("tamis.") and "river" not in e.module)]
if find_spec("lightgbm") is None:
    CASES = [entry for entry in CASES if "lightgbm" not in entry.key]
unix = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no sigaction")
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(700, 8))
Y = (X[:, 0] + X[:, 3] > 0).astype(int)


class Sum(ThreadSafe):
    """A state of an array, an attribute and a container."""

    def __init__(self, n: int = 3) -> None:
        self.total, self.n_updates, self.last = np.zeros(n), 0, [0.0]

    def add(self, x: float, error: BaseException | None = None, **options: Any) -> None:
        atomically(self, self._add, x, error, **options)

    def _add(self, x: float, error: BaseException | None) -> None:
        self.total += x
        self.n_updates += 1
        self.last.append(x)
        if error is not None:
            raise error

    def read(self) -> tuple[Any, ...]:
        return self.total.tolist(), self.n_updates, list(self.last)

    def fit(self) -> Sum:
        self.__init__(len(self.total))  # type: ignore[misc]
        return self


def test_what_raises_leaves_everything_as_before() -> None:
    one = Sum()
    one.add(1.0)
    before, total, last = one.read(), one.total, one.last
    with pytest.raises(MemoryError):
        one.add(2.0, MemoryError())
    assert one.read() == before
    assert one.total is total
    assert one.last is last
    one.add(2.0)
    assert one.read() == ([3.0] * 3, 2, [0.0, 1.0, 2.0])


def test_a_snapshot_restores_every_kind_of_part() -> None:
    inner = SimpleNamespace(a=np.arange(3.0))
    state: dict[str, Any] = {
        "array": np.arange(4.0), "objects": np.array(["a", None], dtype=object), "turned": np.zeros((2, 3)).T,
        "list": [1, [2]], "dict": {"k": {"l": 1}}, "set": {1, 2}, "deque": deque([1], maxlen=2), "pair": (inner, [7]),
        "random": np.random.RandomState(0), "generator": np.random.default_rng(0), "python": random.Random(0),
        "nan": np.array([np.nan]),
    }  # fmt: skip
    one = SimpleNamespace(**state)
    one.itself = one
    draws = [
        copy.deepcopy(one.random).rand(),
        copy.deepcopy(one.generator).random(),
        copy.deepcopy(one.python).random(),
    ]
    before = Snapshot(one)
    assert before.is_complete
    one.array[:], one.objects[1], one.turned[0, 0], one.nan[0] = 9.0, "b", 5.0, 1.0
    one.list[1].append(3), one.dict["k"].clear(), one.set.add(3), one.deque.extend([2, 3]), one.pair[1].pop()
    inner.a += 1.0
    inner.more = one.more = 1
    del one.list
    one.random.rand(), one.generator.random(), one.python.random()
    before.restore()
    assert vars(one).keys() == {*state, "itself"}
    assert all(getattr(one, name) is part for name, part in state.items())
    assert (one.array.tolist(), one.objects.tolist(), one.turned.any()) == ([0, 1, 2, 3], ["a", None], False)
    assert (one.list, one.dict, one.set, list(one.deque), one.pair[1]) == (
        [1, [2]],
        {"k": {"l": 1}},
        {1, 2},
        [1],
        [7],
    )
    assert np.isnan(one.nan[0])
    assert (vars(inner).keys(), inner.a.tolist()) == ({"a"}, [0, 1, 2])
    assert [one.random.rand(), one.generator.random(), one.python.random()] == draws


class Ring(ThreadSafe):
    """The last five rows, and what they are looked up in."""

    _shapes = "table fixed  rows (j, w) ring w[its.n_seen]"

    def __init__(self) -> None:
        self.rows, self.n_seen, self.table, self.parts = (
            np.zeros((2, 5)),
            0,
            np.arange(3.0),
            (np.zeros(2), [1]),
        )

    def add(self, rows: Any) -> None:
        _put(self, rows)


def _put(ring: Any, rows: Any) -> None:
    for row in rows:
        ring.rows[:, ring.n_seen % 5] = row
        ring.n_seen += 1


@pytest.mark.parametrize("n_seen", range(12))
def test_slots_of_a_ring_are_restored(n_seen: int) -> None:
    for n_rows in range(1, 8):
        one = Ring()
        one.add(np.arange(2.0 * n_seen).reshape(-1, 2))
        rows = one.rows.copy()
        before = Snapshot(one, n_rows=n_rows)
        assert before.is_complete
        one.add(np.full((n_rows, 2), -1.0))
        before.restore()
        assert one.n_seen == n_seen
        np.testing.assert_array_equal(one.rows, rows)


class Rings(ThreadSafe):
    """A ring in another object, whose words it declares, and one in a container, which learns earlier rows, too."""

    _shapes = "inner.rows (j, w) ring w[its.n_seen]  rings late 2"

    def __init__(self) -> None:
        self.inner, self.rings = SimpleNamespace(rows=np.zeros((2, 5)), n_seen=0), {"a": Ring()}

    def add(self, rows: Any) -> None:
        _put(self.inner, rows)
        self.rings["a"].add([*rows, *rows[:2]])


@pytest.mark.parametrize("n_seen", range(12))
def test_slots_of_rings_in_other_objects_are_restored(n_seen: int) -> None:
    for n_rows in range(1, 8):
        one = Rings()
        one.add(np.arange(2.0 * n_seen).reshape(-1, 2))
        before = Snapshot(one, n_rows=n_rows)
        for ring, n in ((one.inner, n_rows), (one.rings["a"], n_rows + 2)):
            is_part = n < 5 and ring.n_seen % 5 + n <= 5  # the slots do not wrap around
            copied = [array.size for array in before._arrays if np.shares_memory(array, ring.rows)]
            assert copied == [2 * n if is_part else 10]
        rows = one.inner.rows.copy(), one.rings["a"].rows.copy()
        one.add(np.full((n_rows, 2), -1.0))
        before.restore()
        assert one.inner.n_seen == n_seen
        np.testing.assert_array_equal((one.inner.rows, one.rings["a"].rows), rows)


def test_a_snapshot_notices_that_attributes_have_other_types() -> None:
    one = Ring()
    for held in (
        (np.ones(2), [1]),
        None,
        [np.ones(3)],
        tuple(np.ones(2) for _ in range(99)),
        {"a": (np.ones(2),)},
        one,
    ):
        one.parts = held
        flat = [*(held if isinstance(held, tuple | list) else held["a"] if isinstance(held, dict) else ())]
        before = Snapshot(one)
        for part in flat:
            if isinstance(part, np.ndarray):
                part += 1.0
        one.parts = "another"
        before.restore()
        assert one.parts is held
        assert all((part == 1.0).all() for part in flat if isinstance(part, np.ndarray))


def test_a_large_state_that_is_half_updated_refuses_use_until_it_is_made_anew() -> None:
    one = Sum(100_000)
    one.add(1.0)
    with pytest.raises(MemoryError):
        one.add(2.0, MemoryError())
    for use in (
        one.read,
        lambda: one.add(1.0),
        lambda: copy.copy(one),
        lambda: copy.deepcopy(one),
        lambda: tamis.dumps(one),
    ):
        with pytest.raises(
            StateError,
            match=r"An update of this Sum failed \(MemoryError\): load the model from .* or fit it",
        ):
            use()
    one.fit().add(2.0)
    assert one.read()[0][0] == 2.0


def test_a_refusal_does_not_close_a_large_state() -> None:
    one = Sum(100_000)
    with pytest.raises(DataError):
        atomically(one, _refuse)
    one.add(1.0)
    with pytest.raises(MemoryError):
        one.add(2.0, MemoryError(), n_bytes=1 << 20)  # a batch so large that the state is copied
    assert one.read()[0][0] == 1.0


def test_a_large_state_is_copied_if_updates_take_much_longer() -> None:
    one = Sum(100_000)
    record = _guard.record_of(one)
    for pace, is_copied in (
        (math.inf, True),
        (1e5, True),
        (1.0, False),
    ):  # nanoseconds per byte, at first unknown
        record.pace = pace
        one.add(1.0, n_bytes=100)
        assert 0.0 < record.pace <= pace
        record.pace, before = pace, one.total.copy()
        with pytest.raises(MemoryError):
            one.add(1.0, MemoryError(), n_bytes=100)
        assert (record.failure is None) == is_copied == np.array_equal(one.total, before)
    huge = Sum(1 << 24)  # not even in the first update
    with pytest.raises(MemoryError):
        huge.add(1.0, MemoryError(), n_bytes=100)
    assert _guard.record_of(huge).failure == "MemoryError"


def _refuse() -> None:
    raise DataError("no")


def handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


def test_signals_wait_until_the_state_is_whole() -> None:
    before, came, one = handlers(), [], Sum()
    usual = signal.signal(
        signal.SIGTERM, lambda number, frame: came.append((number, one.read(), frame is not None))
    )
    try:

        def update() -> None:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            one._add(1.0, None)

        with pytest.raises(KeyboardInterrupt):
            atomically(one, update)
        assert came == [(signal.SIGTERM, ([1.0] * 3, 1, [0.0, 1.0]), True)]
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert handlers() == before


def test_signals_are_let_in_between_parts_if_that_does_no_harm() -> None:
    one = Sum()

    def update() -> None:
        for rows in parts(10, 5 << 20, "exactly"):
            one._add(1.0, None)
            if rows.start == 2:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        atomically(one, update, in_parts=True)
    assert one.read() == ([0.0] * 3, 0, [0.0])
    with pytest.raises(KeyboardInterrupt):
        atomically(
            Sum(100_000), lambda: atomically(one, update, in_parts=True)
        )  # half of the outer one is not saved
    assert one.n_updates == 5
    with pytest.raises(KeyboardInterrupt):
        atomically(one, lambda: atomically(Sum(), update, in_parts=True), in_parts=True)
    assert one.n_updates == 5


def test_an_interrupt_while_handlers_are_put_back_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first handler that is back raises at once; the other one is still represented."""
    before, came = handlers(), []
    usual = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    put_back = _atomic.signal

    def interrupting(number: int, handler: Any) -> Any:
        found = put_back(number, handler)
        if handler is signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)
        return found

    try:
        monkeypatch.setattr(_atomic, "signal", interrupting)
        with pytest.raises(KeyboardInterrupt):
            Sum().add(1.0)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGTERM)
        assert came == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is not _atomic._record
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert handlers() == before


# -- handlers in C, and flags ------------------------------------------------------------------------------


def action(number: int, new: Any = None) -> tuple[int, int]:
    """Return the handler that C code sees and the flags of a signal, after setting those of a structure."""
    found = ctypes.create_string_buffer(ACTION_SIZE)
    assert sigaction(number, new, found) == 0
    return _atomic._address_and_flags(found)


@pytest.fixture
def usr1() -> Iterator[list[int]]:
    """The signals that a handler of SIGUSR1 received, which is removed at the end."""
    received: list[int] = []
    saved = ctypes.create_string_buffer(ACTION_SIZE)
    sigaction(signal.SIGUSR1, None, saved)
    usual = signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
    try:
        yield received
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, usual)
        sigaction(signal.SIGUSR1, saved, None)


@unix
@pytest.mark.parametrize("chain", [False, True])
def test_faulthandler_dumps_during_and_after_updates(
    usr1: list[int], chain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Sum()
    one.add(0.0)  # an update before it is registered
    with open(tmp_path / "dump", "w+") as file:
        faulthandler.register(signal.SIGUSR1, file, chain=chain)
        before = action(signal.SIGUSR1)

        def update() -> None:
            assert action(signal.SIGUSR1) == before
            signal.raise_signal(signal.SIGUSR1)
            one._add(1.0, None)
            assert usr1 == []

        for n in (1, 2):
            atomically(one, update)
            assert usr1 == [signal.SIGUSR1] * chain
            usr1.clear()
            signal.raise_signal(signal.SIGUSR1)
            assert usr1 == [signal.SIGUSR1] * chain
            usr1.clear()
            file.seek(0)
            assert file.read().count("Current thread") == 2 * n
        with pytest.raises(MemoryError):
            one.add(1.0, MemoryError())
        assert action(signal.SIGUSR1) == before


@unix
def test_a_handler_in_c_is_kept(usr1: list[int]) -> None:
    called: list[int] = []
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(called.append)
    ctypes.CDLL(None).signal(signal.SIGUSR1, handler)
    one, before = Sum(), action(signal.SIGUSR1)
    atomically(one, lambda: signal.raise_signal(signal.SIGUSR1))
    signal.raise_signal(signal.SIGUSR1)
    assert action(signal.SIGUSR1) == before
    assert (called, usr1) == ([signal.SIGUSR1] * 2, [])


@unix
def test_flags_are_kept(usr1: list[int]) -> None:
    """As of `loop.add_signal_handler`, after which system calls are restarted."""
    one, usual = Sum(), action(signal.SIGUSR1)
    one.add(1.0)
    assert action(signal.SIGUSR1) == usual
    signal.siginterrupt(signal.SIGUSR1, False)
    restarting, during = action(signal.SIGUSR1), []
    assert restarting != usual
    for _ in range(2):
        atomically(one, lambda: during.append(action(signal.SIGUSR1)))
        assert action(signal.SIGUSR1) == restarting
    assert during == [restarting] * 2
    with defer_interrupts():
        one.add(1.0)
    signal.signal(signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))
    one.add(1.0)
    assert action(signal.SIGUSR1) == usual


@unix
def test_a_deferred_interrupt_keeps_handlers_in_c() -> None:
    saved = ctypes.create_string_buffer(ACTION_SIZE)
    sigaction(signal.SIGTERM, None, saved)
    try:
        faulthandler.register(signal.SIGTERM, sys.__stderr__)
        before = action(signal.SIGTERM)
        with defer_interrupts():
            assert action(signal.SIGTERM) != before
        assert action(signal.SIGTERM) == before
    finally:
        faulthandler.unregister(signal.SIGTERM)
        sigaction(signal.SIGTERM, saved, None)


def test_an_ignored_hangup_stays_ignored() -> None:
    if not hasattr(signal, "SIGHUP"):
        pytest.skip("this system has no SIGHUP")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with defer_interrupts() as stop_if_asked, stop_signals_as_interrupt():
            signal.raise_signal(signal.SIGHUP)
            stop_if_asked()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with defer_interrupts() as stop_if_asked:
            for _ in range(2):  # of the kernel and of the shell
                signal.raise_signal(signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                stop_if_asked()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
        with stop_signals_as_interrupt(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_handlers_alone() -> None:
    found: list[Any] = []

    def work() -> None:
        one = Sum()
        atomically(one, lambda: found.append(handlers()))
        with pytest.raises(MemoryError):
            one.add(1.0, MemoryError())
        found.append(one.read())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [handlers(), ([0.0] * 3, 0, [0.0])]


# -- the catalogue -----------------------------------------------------------------------------------------


def fresh(entry: Any) -> Any:
    model = entry.load()(**dict(entry.parameters))
    return model.set_params(random_state=0) if "random_state" in model.get_params(deep=False) else model


def started(entry: Any) -> Any:
    return fresh(entry).partial_fit(X[:200], Y[:200], classes=[0, 1])


_known: dict[str, bytes] = {}


def known(entry: Any) -> bytes:
    """Return a model of the catalogue that has learned 400 rows, the last ones one by one."""
    if entry.key not in _known:
        model = started(entry)
        for i in range(200, 400):
            model.partial_fit(X[i : i + 1], Y[i : i + 1])
        _known[entry.key] = tamis.dumps(model)
    return _known[entry.key]


def hook_of(model: Any) -> str:
    hooks = {"ResetOnDrift": "_learn_until_drift", "Refit": "_update"}
    return hooks.get(type(model).__name__, "_learn")


@pytest.mark.parametrize("n_rows", [1, 5, 200])
@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.key)
@pytest.mark.parametrize("error", [MemoryError, SystemError])
def test_an_error_after_a_batch_leaves_the_state_before(
    entry: Any, n_rows: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, batch = known(entry), (X[400 : 400 + n_rows], Y[400 : 400 + n_rows])
    model, whole = tamis.loads(before), tamis.loads(before).partial_fit(*batch)
    name, learn = hook_of(model), getattr(type(model), hook_of(model))

    def late(self: Any, *args: Any, **kwargs: Any) -> None:
        learn(self, *args, **kwargs)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(model), name, late)
        with pytest.raises(error):
            model.partial_fit(*batch)
    assert tamis.dumps(model) == before
    assert tamis.dumps(model.partial_fit(*batch)) == tamis.dumps(whole)


def _raising_late(patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    done = getattr(owner, name)

    def late(*args: Any, **kwargs: Any) -> None:
        done(*args, **kwargs)
        raise MemoryError

    patch.setattr(owner, name, late)


@pytest.mark.parametrize("entry", SELECTORS, ids=lambda entry: entry.key)
def test_an_error_leaves_a_selector_as_before_it_was_widened_or_merged(
    entry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = sp.csr_matrix(np.abs(X) * (X > 0.5))
    hooks = {"_widen": lambda one: one.widen(11), "_forget_columns": lambda one: one.forget_columns([1, 2])}
    model = fresh(entry).partial_fit(rows[:200], Y[:200], classes=[0, 1])
    before = tamis.dumps(model)
    for name, call in hooks.items():
        if getattr(type(model), name) is not getattr(RowSelector, name):
            with monkeypatch.context() as patch:
                _raising_late(patch, type(model), name)
                with pytest.raises(MemoryError):
                    call(model)
            assert tamis.dumps(model) == before
            call(model)
            model = tamis.loads(before)
    if not entry.mergeable:
        return
    other = model.clone_unfitted().partial_fit(rows[200:300], Y[200:300], classes=[0, 1])
    with monkeypatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("tamis.rows.") and hasattr(module, "joint_classes"):
                _raising_late(patch, module, "joint_classes")
        with pytest.raises(MemoryError):
            model.merge(other, "after")
    assert tamis.dumps(model) == before


@pytest.mark.parametrize("cls", [RunningMoments, ClassMoments, QuantileSummary])
def test_an_error_leaves_a_summary_as_before_it_was_merged(
    cls: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(rows: slice) -> Any:
        if cls is not RunningMoments:
            one = cls(8, 2)
            one.update(X[rows], Y[rows])
            return one
        one = cls(8)
        one.update(X[rows])
        return one

    one, other = made(slice(0, 200)), made(slice(200, 300))
    before, merge = tamis.dumps(one), cls.merge.__wrapped__.__wrapped__

    def late(self: Any, other: Any) -> None:
        merge(self, other)
        raise MemoryError

    monkeypatch.setattr(cls, "merge", _guard._exclusive(_atomic.atomic(late), of_two=True))
    with pytest.raises(MemoryError):
        one.merge(other)
    monkeypatch.undo()
    assert tamis.dumps(one) == before
    one.merge(other)


def test_memory_that_runs_out_before_anything_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tamis.FisherScore(2).partial_fit(X[:200], Y[:200])
    before = tamis.dumps(model)

    def failing(*args: Any) -> None:
        raise MemoryError

    # One known row is learned without the encoder of labels.
    for owner, name, n_rows in (
        (row_intake, "encode_labels", 2), (_atomic, "Snapshot", 1), (_atomic, "Snapshot", 2),
        (type(model), "_learn", 1), (type(model), "_learn", 2),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, failing)
            with pytest.raises(MemoryError):
                model.partial_fit(X[200 : 200 + n_rows], Y[200 : 200 + n_rows])
        assert tamis.dumps(model) == before


@pytest.mark.slow
@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.key)
def test_memory_that_runs_out_leaves_the_state_before(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for n_rows in (1, 100):
        _with_failing_allocations(entry, n_rows, monkeypatch)


def _with_failing_allocations(entry: Any, n_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The k-th array cannot be allocated, for k = 1, 2, 4, 7, ... until the batch is learned."""
    before, batch = known(entry), (X[400 : 400 + n_rows], Y[400 : 400 + n_rows])
    whole = tamis.dumps(tamis.loads(before).partial_fit(*batch))
    k = 0
    while True:
        k += 1 + k // 2
        model, left = tamis.loads(before), [k]

        def counted(make: Any, left: list[int] = left) -> Any:
            def allocate(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    raise MemoryError
                return make(*args, **kwargs)

            return allocate

        with monkeypatch.context() as patch:
            for name in ("empty", "zeros", "full", "concatenate", "append", "vstack", "where", "flatnonzero"):
                patch.setattr(np, name, counted(getattr(np, name)))
            try:
                model.partial_fit(*batch)
                failed = False
            except MemoryError:
                failed = True
        if not failed:
            assert tamis.dumps(model) == whole
            return
        assert tamis.dumps(model) == before
        assert tamis.dumps(model.partial_fit(*batch)) == whole


@pytest.mark.parametrize("key", ["fires-mc", "cancel-out", "discuss", "forward", "auto"])
def test_a_state_much_larger_than_the_batch_is_restored_where_learning_takes_long(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = next(entry for entry in SELECTORS if entry.key == key)
    draw = np.random.default_rng(2)
    wide = draw.normal(size=(300, 50))
    label = (wide[:, 0] > 0).astype(int)
    model = fresh(entry).partial_fit(wide[:200], label[:200])
    before, learn = tamis.dumps(model), type(model)._learn

    def late(self: Any, *args: Any) -> None:
        learn(self, *args)
        raise RuntimeError

    monkeypatch.setattr(type(model), "_learn", late)
    with pytest.raises(RuntimeError):
        model.partial_fit(wide[200:], label[200:])
    assert tamis.dumps(model) == before


@pytest.mark.parametrize("entry", [e for e in SELECTORS if not e.per_batch], ids=lambda entry: entry.key)
def test_parts_of_a_batch_make_the_same_model(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = started(entry).partial_fit(X[200:], Y[200:])
    monkeypatch.setitem(_atomic.LARGEST_PART, entry.load().claims.equals_rows, 97 * X[0].nbytes)
    in_parts = started(entry).partial_fit(X[200:], Y[200:])
    if entry.rounding:
        np.testing.assert_allclose(in_parts.scores_, whole.scores_, rtol=1e-9)
    else:
        assert tamis.dumps(in_parts) == tamis.dumps(whole)


INTERRUPTED = """
import copy, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np, tamis
from time import monotonic, perf_counter
from tests.test_atomic import X, Y, SELECTORS, started
draw, counts = np.random.default_rng(1), [0, 0]
signal.signal(signal.SIGALRM, signal.default_int_handler)
for entry in SELECTORS:
    first = started(entry)
    before, twin = tamis.dumps(first), copy.deepcopy(first)
    t = perf_counter(); twin.partial_fit(X[200:], Y[200:]); t = min(perf_counter() - t, 0.2)
    after = tamis.dumps(twin)
    for _ in range(int(sys.argv[1])):
        model = copy.deepcopy(first)
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, draw.random() * t))
            model.partial_fit(X[200:], Y[200:])
            end = monotonic() + 20
            while monotonic() < end:
                pass
            raise AssertionError(f"{entry.key}: the signal is lost")
        except KeyboardInterrupt:
            pass
        found = tamis.dumps(model)
        assert found in (before, after), f"{entry.key}: half a state"
        counts[found == after] += 1
        thread = threading.Thread(target=lambda: tamis.dumps(model), daemon=True)
        thread.start(); thread.join(30)
        assert not thread.is_alive(), f"{entry.key}: the lock is held"
        if found == before:
            assert tamis.dumps(model.partial_fit(X[200:], Y[200:])) == after, f"{entry.key}: again"
        assert signal.getsignal(signal.SIGALRM) is signal.default_int_handler
print(*counts)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_timers_that_interrupt_leave_the_state_before_or_after() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "12"], capture_output=True, text=True, timeout=900, check=False,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    n_before, n_after = map(int, done.stdout.split())
    assert n_before + n_after == 12 * len(SELECTORS)
    assert n_after > n_before


class Timeout(Exception):
    """What a handler of somebody's raises."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Timeout, TimeoutError])
def test_what_a_handler_raises_within_a_kernel_is_no_system_error(kind: type[BaseException]) -> None:
    class Reads(ThreadSafe):
        def read(self) -> None:
            try:
                try:
                    raise kind
                except kind as error:
                    raise SystemError("CPUDispatcher returned a result with an exception set") from error
            except SystemError as error:
                raise SystemError("another kernel, which called it") from error

        fit = read

        def merge(self, other: object) -> None:
            self.read()

        def fail(self) -> None:
            try:
                raise kind
            except kind as error:
                raise SystemError("another") from error

    for call in (Reads().read, Reads().fit, lambda: Reads().merge(Reads())):
        with pytest.raises(kind):
            call()
    with pytest.raises(SystemError, match="another"):
        Reads().fail()


ASYNCHRONOUS = """
import ctypes, signal, sys, threading
import numpy as np
import tamis
from collections import Counter

class Timeout(Exception):
    pass

def late(number, frame):
    raise Timeout

X = np.random.default_rng(0).normal(size=(400, 8))
y = (X[:, 0] > 0).astype(int)
models = [tamis.FIRES(2).fit(X, y), tamis.MutualInformation(2).fit(X, y), tamis.FisherScore(2).fit(X, y)]
for model in models:  # while kernels are compiled, exceptions are lost in callbacks of LLVM
    for _ in range(300):
        model.partial_fit(X[:5], y[:5]).scores_
        tamis.dumps(model)
signal.signal(signal.SIGALRM, late)
main, found = threading.get_ident(), Counter()
raise_in_main = ctypes.pythonapi.PyThreadState_SetAsyncExc

def go(model, i):
    try:
        if i % 2:
            raised = ctypes.c_ulong(main), ctypes.py_object(Timeout)
            threading.Timer(0.001 + i % 7 * 0.0003, raise_in_main, raised).start()
        else:
            signal.setitimer(signal.ITIMER_REAL, 0.001 + i % 7 * 0.0003)
        while True:
            model.partial_fit(X[:5], y[:5])
            model.scores_
            tamis.dumps(model)
    except BaseException as error:
        return type(error).__name__

for i in range(120):
    found[go(models[i % 3], i // 3)] += 1
for model in models:
    tamis.loads(tamis.dumps(model.partial_fit(X, y)))
print(dict(found))
"""


@pytest.mark.slow
@unix
def test_asynchronous_exceptions_arrive_as_they_were_raised() -> None:
    """By a handler, and by another thread."""
    done = subprocess.run(
        [sys.executable, "-c", ASYNCHRONOUS], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.strip() == "{'Timeout': 120}", done.stderr
