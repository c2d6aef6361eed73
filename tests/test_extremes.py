"""Parameters at the ends of what is declared, over the whole catalogue: refused in one sentence, or they work.

``python -m tests.test_extremes KEY ...`` tries more values of some classes.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis._validation.parameters import Kind, allowed
from tamis.drift import DETECTORS
from tamis.errors import TamisError
from tests.test_intake import ALL, make

DRAW = np.random.default_rng(0)
X = np.round(DRAW.normal(size=(60, 4)), 2)
Y = (X[:, 1] + 0.3 * DRAW.normal(size=60) > 0).astype(int)
MOST = 800 << 20  # bytes; a window of ten million rows, the largest there may be, takes 762 MB
WORK = {
    "n_epochs",
    "n_iterations",
    "n_beliefs",
    "resolution",
    "n_bins",
    "n_steps",
}  # as much as is asked for, however long it takes
WHOLE = 2**31 - 1
_INTERVAL = re.compile(r"an? (number|integer) in ([\[(])(.+), (.+)([\])])$")


def ends(description: str, more: bool = False) -> list[Any]:
    """Return the values at the ends of an interval, and some very small and large ones inside; of any kind of number.

    >>> ends("an integer in [2, 9]"), ends("a number in (0, 1]")[0]
    ([2, 9], 5e-324)
    """
    found = _INTERVAL.match(description)
    if found is None:
        return [0, 2**32 - 1] if description.startswith("an integer from 0") else []
    low, high = float(found[3]), float(found[4])
    if found[1] == "integer":
        least = max(low, -WHOLE) + (found[2] == "(")
        most = min(high, WHOLE) - (found[5] == ")" and high < WHOLE)
        inside = [least + 1, 1000, 10**6, most - 1] if more else []
        found = sorted({int(value) for value in (least, most, *inside) if least <= value <= most})
        return [np.int8(value) if more and abs(value) < 128 else value for value in found]
    first = float(np.nextafter(low, np.inf)) if found[2] == "(" else low
    last = float(np.nextafter(high, -np.inf)) if found[5] == ")" else high
    first, last = max(first, -1.7e308), min(last, 1.7e308)
    inside = [1e-310, 10**300, *([1e-9, 1e9, 1e-30, 1e30, 1e150, -1e150, 0.5] if more else [])]
    return sorted({value for value in (first, last, *inside) if first <= value <= last})


def values(kinds: tuple[Any, ...], more: bool = False) -> list[Any]:
    """Return values at the ends of the intervals that a parameter may lie in; with `more` its other values too."""
    found: list[Any] = []
    for kind in kinds:
        if isinstance(kind, Kind):
            found += ends(kind.description, more)
        elif more and not isinstance(kind, type):
            found.append(kind)
    return found


def use(key: str, model: Any) -> None:
    """Do with a model what people do, on a small stream."""
    if key == "gram-investing":
        for part in (slice(0, 30), slice(30, 60)):
            model.partial_fit({f"c{j}": X[part, j] for j in range(4)}, Y[part])
        return
    if hasattr(type(model), "offer"):
        model.start(Y)
        model.offer(X[:, 1], "first")
        model.offer_many(X)
    elif hasattr(model, "open"):
        model.fit(X[:40], Y[:40])
        if hasattr(model, "partial_fit"):
            model.partial_fit(X[40:], Y[40:])
    elif hasattr(model, "partial_fit"):
        for part in (slice(0, 1), slice(1, 25), slice(25, 60)):
            model.partial_fit(X[part], Y[part], classes=[0, 1])
    else:
        model.fit(X, Y)
    rows = np.resize(X, (10, model.n_features_in_))
    for name in ("scores_", "feature_weights_", "predict", "predict_proba", "get_support", "transform"):
        if name.endswith("_"):
            found = (
                0.0 if hasattr(model, "open") else getattr(model, name, 0.0)
            )  # NaN: a value that is never bought
        elif hasattr(model, name):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "No features were selected")
                found = getattr(model, name)(*([] if name == "get_support" else [rows]))
        else:
            continue
        if found is not None:
            assert not np.isnan(np.asarray(found, dtype=float)).any(), f"NaN in {name}"


@contextmanager
def at_most(more: int) -> Iterator[None]:
    """Let the process have so many bytes more (on Linux); whoever asks for more than that meets a MemoryError."""
    if sys.platform != "linux":
        yield
        return
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def wrong(action: Callable[[], None]) -> str:
    """Return what is wrong with an action, or nothing where it works quietly, or is refused in a sentence."""
    try:
        with at_most(MOST), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            action()
    except (TamisError, ValueError, TypeError) as error:
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        own = at is not None and at.tb_frame.f_code.co_filename.startswith(tamis.__path__[0])
        text = str(error)
        if not own or "\n" in text or not text.endswith((".", "?")) or len(text) > 900:
            return f"{type(error).__name__}: {text}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def tried(key: str, more: bool = False) -> list[str]:
    """Return what is wrong with the parameters of a class, one by one at their ends."""
    found = []
    use(key, make(key))  # what it needs is compiled before memory is limited
    for name, kinds in allowed(type(make(key))).items():
        for value in values(kinds, more) if name not in WORK else ():
            if problem := wrong(
                lambda name=name, value=value: use(key, make(key).set_params(**{name: value}))
            ):  # type: ignore[misc]
                found.append(f"{key}: {name}={value!r}: {problem}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("key", ALL)
def test_a_parameter_at_the_end_of_what_is_declared_works_or_is_refused(key: str) -> None:
    assert tried(key) == []


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_at_the_end_of_what_it_takes_works_or_is_refused(name: str) -> None:
    errors = (DRAW.random(400) < np.r_[np.full(200, 0.1), np.full(200, 0.7)]).astype(float)

    def run(**given: Any) -> None:
        detector = DETECTORS[name](**given)
        assert all(0 <= at < 400 for at in detector.drifts(errors))

    for parameter in inspect.signature(DETECTORS[name]).parameters:
        for value in (-1, 0, 1, 2, 5, 5e-324, 1e-300, 1e-9, 0.5, 1 - 1e-16, 1e9, 1e300, WHOLE, 10**30):
            assert not wrong(lambda parameter=parameter, value=value: run(**{parameter: value})), (
                parameter,
                value,
            )  # type: ignore[misc]


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ALL:
        for line in tried(chosen, more=True):
            print(line, flush=True)
