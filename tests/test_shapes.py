"""Arrays of a state that do not fit together: one sentence, or the right answer; never another process that dies."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import tamis
from tamis._shapes import Shapes, SizedState, _resolve, _split
from tamis.base.rows import RowSelector
from tamis.catalog import CATALOG, LEARNERS, find
from tamis.errors import CheckpointError, StateError
from tamis.persistence.attributes import attribute_types
from tamis.rows.fires.fires import FIRES
from tamis.rows.softsign_scaler import SoftsignScaler
from tests.test_tampered import OPTIONS, subjects

BREAK = """
import copy, faulthandler, inspect, sys, warnings
import numpy as np
from tamis._guard import state_of
from tamis.catalog import CATALOG, LEARNERS
from tamis.learners.hoeffding import VFDR
from tamis.learners.hoeffding.member import Member
from tamis.drift import ADWIN, DDM, ECDD, HDDMA, HDDMW
from tamis.errors import DataError, StateError
from tamis.evaluate import RunningErrors, RunningMetrics, SlidingAUC, SlidingPrecisionRecall, SlidingStability
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.contingency import Contingency
from tamis.summaries.entropy import WindowCounts
from tamis.summaries.moments import RunningMoments
from tamis.summaries.quantiles import QuantileSummary

faulthandler.enable()
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 5)).round(1)
X[:, 1] = rng.integers(0, 4, size=150)
y = ((X[:, 0] > 0).astype(int) + (X[:, 2] > 1)).astype(int)
ROWS = np.abs(X[:3])


def models():
    for entry in (*CATALOG, *LEARNERS):
        if entry.key not in sys.argv[1:]:
            continue
        if entry.family == "columns" or not entry.module.startswith("tamis.") or "river" in entry.module:
            continue
        model = entry.load()(**dict(entry.parameters))
        if not hasattr(model, "partial_fit"):
            yield entry.key, model.fit(X, y)
            continue
        takes = entry.family != "rows" and "classes" in inspect.signature(model.partial_fit).parameters
        extra = {"classes": [0, 1, 2]} if takes else {}
        for start in range(0, 150, 50):
            model.partial_fit(X[start : start + 50], y[start : start + 50], **extra)
        yield entry.key, model
    if "summaries" not in sys.argv[1:]:
        return
    for name, summary in (("counts", WindowCounts(5, 3, window=60)), ("moments", ClassMoments(5, 3)),
                          ("quantiles", QuantileSummary(5, 3, eps=0.05))):
        summary.update(X, y)
        yield name, summary
    yield "sparse counts", WindowCounts(5, 3, window=60)
    table = Contingency(5, 4, 3)
    table.update(np.abs(X).astype(int) % 4, y)
    yield "table", table
    running = RunningMoments(5)
    running.update(X)
    yield "running", running
    for detector in (ADWIN(), DDM(), ECDD(), HDDMA(), HDDMW()):
        detector.drifts(rng.random(100))
        yield type(detector).__name__, detector
    for make in (RunningMetrics, RunningErrors, SlidingAUC, SlidingPrecisionRecall, SlidingStability):
        measure = make(5 if make is SlidingStability else 60)
        for start in range(0, 100, 10):
            count(measure, slice(start, start + 10))
        yield type(measure).__name__, measure


def count(measure, rows):
    if isinstance(measure, SlidingStability):
        return measure.add(np.flatnonzero(X[rows.start] > 0))
    codes = y[rows] > 0
    measure.update(codes, codes.copy() if isinstance(measure, RunningMetrics) else X[rows, 0])


def arrays(thing, path, seen):
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield path
    elif isinstance(thing, dict):
        for key in thing:
            yield from arrays(thing[key], (*path, key), seen)
    elif isinstance(thing, (list, tuple)):
        of_one_kind = len(thing) > 3 and isinstance(thing[0], (tuple, Member, VFDR))  # batches, trees, sets of rules
        for i, item in enumerate(thing[:2] if of_one_kind else thing):
            yield from arrays(item, (*path, i), seen)
    elif type(thing).__module__.startswith("tamis.") and hasattr(thing, "__dict__"):
        for name, part in state_of(thing).items():
            if name == "_rankers":  # selectors of their own, which have their turn
                continue
            yield from arrays(part, (*path, name), seen)


def get(thing, path):
    for step in path:
        thing = thing[step] if isinstance(thing, (dict, list, tuple)) else getattr(thing, step)
    return thing


def put(thing, path, value):
    owner, last = get(thing, path[:-1]), path[-1]
    if isinstance(owner, tuple):
        items = list(owner)
        items[last] = value
        made = type(owner)(*items) if hasattr(owner, "_fields") else tuple(items)
        put(thing, path[:-1], made)
    elif isinstance(owner, (dict, list)):
        owner[last] = value
    else:
        object.__setattr__(owner, last, value)  # of frozen ones too


def broken(a):
    if a.ndim == 0:
        return
    for axis in dict.fromkeys((0, a.ndim - 1)):
        yield "padded", np.pad(a, [(0, 2 * (i == axis)) for i in range(a.ndim)], mode="edge" if a.size else "constant")
        if a.shape[axis]:
            yield "cut", np.delete(a, -1, axis)
            yield "emptied", np.take(a, [], axis)
    yield "in more dimensions", a[None]
    if a.ndim > 1:
        yield "flat", a.ravel()
        if a.shape[0] != a.shape[-1]:
            yield "turned", np.ascontiguousarray(a.T)


def use(model):
    found = []
    for name in ("get_support", "scores_", "feature_weights_"):
        if hasattr(type(model), name) and getattr(model, "features", "few") == "few":  # Refit has it only then
            what = getattr(model, name)
            found.append(np.array(what() if callable(what) else what))
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(model, name):
            found.append(np.array(getattr(model, name)(ROWS)))
    if hasattr(model, "partial_fit"):
        model.partial_fit(ROWS, np.array([0, 1, 2]))
        model.partial_fit(X[:40], y[:40])
        found += use_again(model)
    elif hasattr(model, "drifts"):
        found.append(np.array([model.update(float(v)) for v in X[:, 0] > 0]))
    elif type(model).__module__.startswith("tamis.evaluate"):
        count(model, slice(100, 105))
        count(model, slice(105, 150))
        found += [np.array(getattr(model, name)) for name in ("values", "value", "variance", "windowed", "mean")
                  if hasattr(model, name) and not isinstance(getattr(model, name), dict)]
    elif type(model).__name__ == "RunningMoments":
        model.update(X[:9])
        found += [model.mean, model.m2]
    elif type(model).__name__ == "Contingency":
        model.update(np.abs(X[:9]).astype(int) % 4, y[:9])
        found.append(model.table())
    elif hasattr(model, "update"):
        model.update(X[:9], y[:9])
        found.append({"WindowCounts": lambda: model.symmetrical_uncertainty(), "ClassMoments": lambda: model.mean(),
                      "QuantileSummary": lambda: model.counts(3)}[type(model).__name__]())
    return found


def use_again(model):
    return [np.array(model.predict(ROWS))] if hasattr(model, "predict") else [np.array(model.get_support())]


# Any labels, some of them, any number of points or of subsets: not what there was, but a state.
OF_ANY_SIZE = ("classes_", "_unseen", "points", "_waiting", "_subsets")

n = 0
for key, model in models():
    print(key, flush=True)
    truth = use(copy.deepcopy(model))
    for path in list(arrays(model, (), set())):
        for how, array in broken(get(model, path)):
            one = copy.deepcopy(model)
            put(one, path, array)
            told = f"{key} {'.'.join(map(str, path))} {how} {get(model, path).shape} to {array.shape}"
            n += 1
            try:
                found = use(one)
            except (DataError, StateError) as error:
                if str(error).count(". ") or "\\n" in str(error):
                    print("WRONG", told, "several sentences:", error)
            except Exception as error:
                if path[-1] == "classes_" and "a label twice" in str(error):
                    continue
                print("WRONG", told, type(error).__name__, str(error)[:100])
            else:
                same = all(a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
                           for a, b in zip(truth, found))
                if not same and path[-1] not in OF_ANY_SIZE:
                    print("WRONG", told, "another answer")
print("done", n)
"""
KEYS = [e.key for e in (*CATALOG, *LEARNERS) if e.family != "columns" and "river" not in e.module]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [KEYS[::2], [*KEYS[1::2], "summaries"]], ids=["half", "other half"])
def test_arrays_that_do_not_fit_are_refused_in_one_sentence_or_do_no_harm(keys: list[str]) -> None:
    """In a process of its own, which a kernel that reads beyond an array may end."""
    done = subprocess.run(
        [sys.executable, "-c", BREAK, *keys], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WRONG" not in done.stdout, done.stdout
    assert int(done.stdout.split()[-1]) > 20  # broken arrays


def test_the_array_is_named_with_its_shape_and_the_one_that_fits() -> None:
    model = FIRES().fit(np.eye(4), [0, 1, 0, 1])
    model._models.mu = np.zeros((1, 9))
    told = r"'_models.mu' of a FIRES has the shape \(1, 9\), but \(\*, 4\) fits the rest"
    with pytest.raises(StateError, match=told):
        model.partial_fit(np.eye(4), [0, 1, 0, 1])
    model.fit(np.eye(4), [0, 1, 0, 1])  # restarts, whatever there was
    assert model.get_support().shape == (4,)


def test_sizes_are_computed_optional_and_of_each_item() -> None:
    shapes = Shapes("n (=j)  a (j)  pairs (j*(j-1)//2)  maybe? (j)  items[] (N, >j)  most (j?)")
    fine = {"n": 3, "a": np.ones(3), "pairs": np.ones(3), "most": np.ones(0)}
    items = [np.ones((1, 3)), np.ones((2, 5))]
    shapes.check(SimpleNamespace(**fine, items=items))
    shapes.check(SimpleNamespace(**fine, items=items, maybe=np.ones(3)))
    for name, array in (
        ("a", np.ones(4)),
        ("pairs", np.ones(4)),
        ("maybe", np.ones(2)),
        ("most", np.ones(2)),
    ):
        with pytest.raises(StateError, match=name):
            shapes.check(SimpleNamespace(**{**fine, "items": items, name: array}))
    with pytest.raises(StateError, match="items"):
        shapes.check(SimpleNamespace(**fine, items=[np.ones((1, 2))]))


@pytest.mark.parametrize("entry", [e for e in CATALOG if e.family == "rows"], ids=lambda e: e.key)
def test_every_array_of_a_row_selector_has_a_shape_that_is_said(entry: object) -> None:
    """A new attribute that holds an array, and of which the class does not say the shape, is noticed here."""
    rng = np.random.default_rng(0)
    model: RowSelector = entry.load()(**dict(entry.parameters))  # type: ignore[attr-defined]
    model.fit(rng.normal(size=(90, 4)), rng.integers(0, 2, 90))
    said = {one.name for one in type(model)._state_spec.declared}  # type: ignore[union-attr]
    kept = {name for name, part in vars(model).items() if isinstance(part, np.ndarray)}
    assert kept <= said | {"feature_names_in_"}


@pytest.fixture(scope="module")
def learned() -> dict[str, RowSelector]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = (X[:, 0] > X[:, 1]).astype(int)
    keys = ("discuss", "fcbf", "joint", "mi", "abfs", "auto", "forward", "ofs", "efs", "random", "cancel-out")
    more = {"abfs": {"categorical": "all"}, "cancel-out": {"hidden": (3,)}}
    return {
        key: (e := find(key)).load()(**dict(e.parameters), **more.get(key, {})).fit(X.round(), y)
        for key in keys
    }


@pytest.mark.parametrize(
    ("key", "path", "at", "value"),
    [
        ("discuss", "_counts._ring", 7, 1 << 30),
        ("discuss", "_counts._bins", 100, -2),
        ("discuss", "_counts._counts", 3, 1 << 20),
        ("fcbf", "_counts._start", 2, 1 << 20),
        ("fcbf", "_counts._seen", 0, -1),
        ("joint", "_labels", 5, 1 << 20),
        ("joint", "_arrays.2", 1, 1 << 30),
        ("joint", "_arrays.8", 1, 100),
        ("mi", "_bins.numeric", 1, 1 << 30),
        ("abfs", "_values.used", 0, 1 << 20),
        ("abfs", "_values.start", 1, 3),
        ("abfs", "_codes", 0, 9),
        ("auto", "_candidate", 0, 99),
        ("auto", "_ranks", 3, -1),
        ("auto", "_history.followed", 0, 99),
        ("forward", "_order", 0, 99),
        ("forward", "_pending.n_rows", 0, 101),
        ("forward", "_recency.models.0.0", 0, 99),
        ("ofs", "_support", 0, 99),
        ("ofs", "_order", 0, 5),
        ("efs", "_order", 1, 7),
        ("random", "_rank", 1, 9),
        ("cancel-out", "_size", 0, 7),
    ],
)
def test_a_saved_model_with_an_index_out_of_range_is_refused(
    learned: dict[str, RowSelector], key: str, path: str, at: int, value: int
) -> None:
    model = copy.deepcopy(learned[key])
    assert tamis.dumps(tamis.loads(tamis.dumps(model))) == tamis.dumps(model)
    part: Any = model
    *steps, last = path.split(".")
    for step in steps:
        part = part[int(step)] if step.isdigit() else getattr(part, step)
    found = part[int(last)] if last.isdigit() else getattr(part, last)
    if isinstance(found, np.ndarray):
        found.flat[at] = value
    elif last.isdigit():
        part[int(last)] = value
    else:
        setattr(part, last, value)
    with pytest.raises(CheckpointError, match="was changed from outside"):
        tamis.loads(tamis.dumps(model))


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [("fsds", "n_components", 1 << 20), ("abfs", "delta", -0.5), ("ofs", "margin", -1.0)],
)
def test_a_saved_selector_with_a_parameter_out_of_its_range_is_refused(
    key: str, name: str, value: float
) -> None:
    model = find(key).load()().fit(np.eye(6), [0, 1] * 3)
    setattr(model, name, value)
    with pytest.raises(CheckpointError, match=f"The file contains an invalid .*: {name} must be"):
        tamis.loads(tamis.dumps(model))


# Arrays whose values depend on one another, in ways that no range can express: what validates them at load.
VALIDATED_BY = {
    **dict.fromkeys(("Pools.links", "Pools.notes", "Pools.state"), "check_trees"),
    "RuleSet.order": "RuleSet.check",
    "Member.drawn": "Member.check",
    "Categories._table": "check_trees",
    "ClassLikelihoods._start": "ClassLikelihoods.check_state",
    "StreamingStacking._roots_": "check_trees",
    "RecentRows.blocks": "Refit.check_state",
    "_numeric_": "HoeffdingClassifier.check_state",
    "_categorical_": "HoeffdingClassifier.check_state",
}
LABELS = ("classes_", "_declared", "RowSample.classes")  # never an index


@pytest.fixture(scope="module")
def saved() -> dict[str, Any]:
    """Every kind of object that can be saved, after it was saved and loaded."""
    files = subjects().items()
    return {key: tamis.loads(make()) for key, (make, _) in files if key not in OPTIONS}


@pytest.mark.slow
def test_every_saved_array_of_integers_declares_which_values_are_safe(saved: dict[str, Any]) -> None:
    """A kernel may use them as indices: the class that holds them declares a range, or why any value will do."""
    undeclared, n = set[str](), 0
    for key, model in saved.items():
        arrays, declared = dict[int, tuple[str, Any]](), set[int]()
        _find_integers(model, key, {}, arrays, declared)
        undeclared |= {where.rstrip("[]") for at, (where, _) in arrays.items() if at not in declared}
        n += len(arrays)
    assert n > 300
    assert {where for where in undeclared if not where.endswith((*VALIDATED_BY, *LABELS))} == set()
    for where in VALIDATED_BY:
        assert any(name.endswith(where) for name in undeclared), f"{where} is declared by now"


# Attributes that may be anything with the methods that are called.
OF_ANY_TYPE = {"Refit._detector_", "ResetOnDrift.detector_"}


@pytest.mark.slow
def test_every_attribute_has_a_type(saved: dict[str, Any]) -> None:
    """A new attribute whose type cannot be read from the source is noticed here: annotate its first assignment."""
    untyped, seen = set[str](), dict[int, Any]()
    for one in (part for model in saved.values() for part in _parts(model, seen)):
        shapes = getattr(type(one), "_state_spec", None)
        known = {one.path for one in shapes.declared} if isinstance(shapes, Shapes) else set[str]()
        known |= attribute_types(type(one)).keys() | set(getattr(type(one), "_get_param_names", tuple)())
        arrays = {name for name, value in vars(one).items() if isinstance(value, np.ndarray)}
        untyped |= {f"{type(one).__name__}.{name}" for name in vars(one).keys() - known - arrays}
    assert len(seen) > 1000
    assert untyped <= OF_ANY_TYPE


def test_every_declared_attribute_exists(saved: dict[str, Any]) -> None:
    """A declaration of what was renamed would be passed over, and protect nothing."""
    exists = dict[tuple[str, str], bool]()
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
    named = [
        tamis.OFS(1).fit(frame, frame["a"] > 0),
        tamis.learners.WeightedNaiveBayes().fit(frame, frame["a"] > 0),
    ]
    for model in (*saved.values(), *named):
        for part in _parts_with_shapes(model, {}):
            shapes = type(part)._state_spec
            for path in {one.path for one in shapes.declared}:
                at = _declaring(type(part), path), path
                exists[at] = exists.get(at, False) or _has(
                    part, re.findall(r"\w+|\[\w*\]", re.sub(r"\[[^\]]*:[^\]]*\]$", "", path))
                )
    assert len(exists) > 300
    assert {at for at, is_there in exists.items() if not is_there} == set()


def _declaring(cls: type, path: str) -> str:
    """Return the class that declares a path for itself and its subclasses, some of which may lack it."""
    first = [one for one in cls.__mro__ if path in (getattr(one, "_shapes", None) or "").replace("?", "")]
    return (first or [cls])[-1].__name__


def _parts_with_shapes(part: Any, seen: dict[int, Any]) -> Iterator[Any]:
    for one in _parts(part, seen):
        if isinstance(getattr(type(one), "_state_spec", None), Shapes):
            yield one


def _parts(part: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield the objects of Tamis in an object."""
    if id(part) in seen:
        return
    seen[id(part)] = part
    if isinstance(part, dict | list | tuple):
        for item in part.values() if isinstance(part, dict) else part:
            yield from _parts(item, seen)
    elif type(part).__module__.startswith("tamis.") and hasattr(part, "__dict__"):
        yield part
        for item in vars(part).values():
            yield from _parts(item, seen)


def _has(part: Any, steps: list[str]) -> bool:
    """Return whether a path leads somewhere, or to a part that may be missing or empty."""
    if part is None or not steps:
        return True
    if steps[0][0] == "[":
        if isinstance(part, np.ndarray):
            return True
        items = list(part.values() if isinstance(part, dict) else part)
        return not items or any(_has(item, steps[1:]) for item in items)
    return hasattr(part, steps[0]) and _has(getattr(part, steps[0]), steps[1:])


def _find_integers(
    part: Any, where: str, seen: dict[int, Any], arrays: dict[int, tuple[str, Any]], declared: set[int]
) -> None:
    if id(part) in seen:
        return
    seen[id(part)] = part
    if isinstance(part, np.ndarray):
        if part.dtype.kind in "iu":
            arrays[id(part)] = where, part
    elif isinstance(part, dict | list | tuple):
        for item in part.values() if isinstance(part, dict) else part:
            _find_integers(item, f"{where}[]", seen, arrays, declared)
    elif type(part).__module__.startswith("tamis.") and hasattr(part, "__dict__"):
        if isinstance(shapes := getattr(type(part), "_state_spec", None), Shapes):
            kept = [one for one in _with_values(shapes, part) if isinstance(one, np.ndarray)]
            declared |= {id(one) for one in kept}
        for name, item in vars(part).items():
            _find_integers(item, f"{type(part).__name__}.{name}", seen, arrays, declared)


def _with_values(shapes: Shapes, model: Any) -> Iterator[Any]:
    """Yield the parts of a model whose values are declared."""
    for path, values in shapes._valued:
        if values.low or values.words or values.dtype in ("codes", "labels"):
            yield from (part for _, part in _resolve(model, _split(path)[0]))


def test_ranges_are_of_integers_floats_columns_and_items() -> None:
    shapes = Shapes("""
        n (=j)
        start (j+1) int64 in [0, len(keys)] increasing
        links (m, 2) int
        links[:, 0] in [-1, m)
        at in [0, j)
        cuts (j) float in [-inf, inf) or nan
        grid (j) finite
        items[].slot (N) in [0, len(its.pool))
        bits (*) any "random words"
        order (o) in [0, 9) distinct
        labels (l) codes
    """)
    item = SimpleNamespace(slot=np.array([1]), pool=np.ones(2))
    fine: dict[str, Any] = {
        "n": 2, "keys": np.ones(5), "start": np.array([0, 3, 5]), "links": np.array([[-1, 99], [1, -99]]), "at": 1,
        "cuts": np.array([np.nan, -np.inf]), "grid": np.zeros(2), "items": [item], "bits": np.array([1 << 62]),
        "order": np.array([8, 0]), "labels": np.array([0, 1]), "classes_": np.array(["a", "b"]),
    }  # fmt: skip
    shapes.check_values(SimpleNamespace(**fine))
    shapes.check_values(SimpleNamespace(n=2))  # not started
    for name, value in (
        ("start", np.array([0, 3, 6])),
        ("start", np.array([0, 4, 3])),
        ("start", np.array([0, 3, 5], np.int32)),
        ("links", np.array([[2, 0]])),
        ("at", 2),
        ("at", 1.0),
        ("cuts", np.array([np.inf, 0.0])),
        ("grid", np.array([np.nan, 0.0])),
        ("bits", np.array([0.5])),
        ("items", [item, SimpleNamespace(slot=np.array([0, 2]), pool=np.ones(2))]),
        ("n", "2"),
        ("n", 3),
        ("keys", None),
        ("order", np.array([3, 3])),
        ("labels", np.array([0, 2])),
        ("labels", np.array([0.0, 1.0])),
    ):
        with pytest.raises(StateError, match="was changed from outside"):
            shapes.check_values(SimpleNamespace(**{**fine, name: value}))
    del fine["classes_"]  # of a regression, the targets are numbers
    shapes.check_values(SimpleNamespace(**{**fine, "labels": np.array([0.5])}))
    with pytest.raises(StateError, match="labels"):
        shapes.check_values(SimpleNamespace(**{**fine, "labels": np.array([np.nan])}))


def test_a_part_that_a_model_need_not_have_is_compared_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = Shapes("a (k)  part?.b (k) in [0, k)  part?.c[] (*, k)")
    part = SimpleNamespace(b=np.array([1, 0]), c=[np.ones((1, 2))])
    for look in (shapes.check, shapes.check_values):
        look(SimpleNamespace(a=np.ones(2)))
        look(SimpleNamespace(a=np.ones(2), part=part))
        with pytest.raises(StateError, match=r"'part\.b' of a SimpleNamespace has the shape \(2,\)"):
            look(SimpleNamespace(a=np.ones(3), part=part))
        with pytest.raises(StateError, match=r"'part\.c\[\]'"):
            look(SimpleNamespace(a=np.ones(2), part=SimpleNamespace(b=part.b, c=[np.ones((1, 3))])))
    with pytest.raises(StateError, match=r"'part\.b' of a SimpleNamespace contains 2"):
        shapes.check_values(SimpleNamespace(a=np.ones(2), part=SimpleNamespace(b=np.array([0, 2]), c=[])))
    monkeypatch.setattr(Shapes, "_compare", None)  # the slow comparison is for errors only
    shapes.check(SimpleNamespace(a=np.ones(2)))


def test_a_size_that_is_a_number_must_fit_wherever_it_is_declared() -> None:
    shapes = Shapes("a (k)  size (=k)")
    shapes.check(SimpleNamespace(a=np.ones(2), size=2))
    for look in (shapes.check, shapes.check_values):
        with pytest.raises(StateError, match="'size' of a SimpleNamespace is 3, but 2 fits the rest"):
            look(SimpleNamespace(a=np.ones(2), size=3))


@dataclass(frozen=True)
class Leaf:
    _state_spec = Shapes("size (j) fill 4")
    size: np.ndarray


class Tree(SizedState):
    """A state with every kind of path: parts, tuples, lists, CSR rows, an optional part, a trailing bias."""

    _state_spec = Shapes("""
        n (=j)  weight (c) fill 1  mean (c, j) fill "its.weight[:, None]"  beta (j+1) fill 0  stored (c, j?) fill 0
        part.order (j) fill -1  part.table (c, c) fill 0  rows[][0] (N, j) fill 0  maybe?.x (j) fill 7
        own (its own) fill own  leaves[] (its own) fill own  leaf.size (j) fill 5  other.x (*)
    """)

    def __init__(self, n: int) -> None:
        self.n, self.weight, self.mean, self.beta = (
            n,
            np.array([2.0, 3.0]),
            np.ones((2, n)),
            np.arange(n + 1.0),
        )
        self.stored, self.maybe = np.zeros((2, 0)), None
        self.part = SimpleNamespace(order=np.arange(n), table=np.eye(2, order="F"))
        self.rows = [(sp.csr_matrix(np.ones((2, n))), "a"), (np.ones((1, n)), "b")]
        self.leaf, self.leaves = Leaf(np.ones(n)), [Leaf(np.ones(n)), Leaf(np.ones(n))]
        self.own, self.other = SoftsignScaler(np.ones((3, n))), SimpleNamespace(x=np.ones(1))


def test_new_features_and_classes_have_the_fill_values_in_new_arrays() -> None:
    tree = Tree(2)
    before = copy.deepcopy(vars(tree))
    shared = {name: id(value) for name, value in vars(tree).items() if name not in ("n", "maybe", "stored")}
    wide = tree.widened(4)
    assert wide.n == 4
    assert wide.other is tree.other  # no part of it changed
    assert wide.mean.tolist() == [[1, 1, 2, 2], [1, 1, 3, 3]]
    assert wide.beta.tolist() == [0, 1, 0, 0, 2]
    assert wide.stored.shape == (2, 0)
    assert wide.part.order.tolist() == [0, 1, -1, -1]
    assert [X.shape for X, _ in wide.rows] == [(2, 4), (1, 4)]
    assert wide.own._unit.tolist() == [0.5, 0.5, 1e-300, 1e-300]
    assert [leaf.size.tolist() for leaf in (wide.leaf, *wide.leaves)] == [
        [1, 1, 5, 5],
        [1, 1, 4, 4],
        [1, 1, 4, 4],
    ]
    assert [leaf.size.tolist() for leaf in (tree.leaf, *tree.leaves)] == [[1, 1]] * 3
    more = wide.grown(3)
    assert more.weight.tolist() == [2, 3, 1]
    assert more.mean[2].tolist() == [1, 1, 1, 1]
    assert more.part.table.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert more.part.table.flags.c_contiguous  # as in a loaded model
    for name, value in shared.items():  # the first one still has its own objects, with the same contents
        assert id(getattr(tree, name)) == value
    np.testing.assert_equal(tree.part.order, before["part"].order)
    np.testing.assert_equal(tree.mean, before["mean"])
    assert Tree._state_spec.check(more) is None


def test_forgotten_features_and_reordered_classes() -> None:
    tree = Tree(3)
    cleared = tree.without(np.array([1]))
    assert cleared.mean.tolist() == [[1, 2, 1], [1, 3, 1]]
    assert cleared.beta.tolist() == [0, 0, 2, 3]
    assert cleared.rows[0][0].toarray().tolist() == [[1, 0, 1]] * 2
    assert cleared.rows[1][0].tolist() == [[1, 0, 1]]
    assert tree.rows[0][0].nnz == 6
    cleared.reorder(np.array([1, 0]))
    assert cleared.mean.tolist() == [[1, 3, 1], [1, 2, 1]]
    assert cleared.weight.tolist() == [3, 2]


def test_a_fill_value_that_names_a_missing_part_is_an_error() -> None:
    class Wrong(Tree):
        _state_spec = Shapes("mean (c, j) fill its.nothing")

    with pytest.raises(StateError, match=r"fill value of a Wrong refers to a missing part, 'its\.nothing'"):
        Wrong(2).widen(3)


def test_dtypes_are_of_arrays_numbers_and_the_attribute_dtype() -> None:
    shapes = Shapes("""
        mean (k, j)  count (k) in [0, 9]  support (j) bool  names (j) labels  n in [0, 9]  rate float in [0, 1]
        points (p, j) dtype finite  table (j, k) fortran  model[0] (j)  model[1] (j) in [0, j)  part.link (j)
    """)
    part = SimpleNamespace(link=np.zeros(3))
    fine: dict[str, Any] = {
        "mean": np.zeros((2, 3)), "count": np.array([1, 2]), "support": np.ones(3, bool), "names": np.array(["a"] * 3),
        "n": 3, "rate": 0.5, "points": np.zeros((4, 3), np.float32), "dtype": "float32",
        "table": np.asfortranarray(np.zeros((3, 2))), "model": (np.zeros(3), np.zeros(3, int)), "part": part,
    }  # fmt: skip
    shapes.check_values(SimpleNamespace(**fine))
    shapes.check_values(SimpleNamespace(**{**fine, "names": np.arange(3), "model": ()}))
    for name, value in (
        ("mean", np.zeros((2, 3), np.float32)),
        ("mean", np.zeros((2, 3), ">f8")),
        ("mean", np.zeros((2, 3), object)),
        ("count", np.array([1, 2], np.int32)),
        ("support", np.ones(3, np.int8)),
        ("names", np.zeros(3, complex)),
        ("n", 3.0),
        ("n", True),
        ("n", "3"),
        ("rate", 1),
        ("points", np.zeros((4, 3))),
        ("model", (np.zeros(3), np.zeros(3, int), np.zeros(3))),
        ("model", (np.zeros(3), np.zeros(3))),
        ("part", SimpleNamespace(link=np.zeros(3, int))),
    ):
        with pytest.raises(StateError, match="was changed from outside"):
            shapes.check_values(SimpleNamespace(**{**fine, name: value}))


def test_a_part_that_declares_its_own_arrays_declares_their_dtypes() -> None:
    class Part(SimpleNamespace):
        _state_spec = Shapes("link (j) int32 in [0, 9]")

    Shapes("part.link (j)").check_values(SimpleNamespace(part=Part(link=np.zeros(3, np.int32))))


def test_an_array_of_another_order_is_copied() -> None:
    model = SimpleNamespace(
        a=np.zeros((3, 2), order="F"), b=np.zeros((3, 2)), c=(np.zeros((3, 2), order="F"),)
    )
    Shapes("a (j, k)  b (j, k) fortran  c[0] (j, k)").check_values(model)
    assert model.a.flags.c_contiguous
    assert model.c[0].flags.c_contiguous
    assert model.b.flags.f_contiguous


@pytest.mark.parametrize("text", ["a [0, 1)", "a (k) in [0]", "a (k) on [0, 1)", "a (k"])
def test_a_declaration_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="_shapes declares"):
        Shapes(text)
