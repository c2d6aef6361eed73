"""Checks of models of named features, which may appear, vanish, return and change their order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from tamis._validation import Array
from tamis.checks.subject import fail, skip
from tamis.checks.suite import Report, run_all, run_check
from tamis.errors import DataError
from tamis.persistence import dumps, loads

_Batch: TypeAlias = tuple[list[dict[str, float]], Array]
_N_BATCHES, _N_ROWS, _BUDGET = 16, 40, 5


def check_named_model(model: Any) -> Report:
    """Run every check on a model of named features.

    Parameters
    ----------
    model : ByName
        A selector of yours or a pipeline with a learner of yours, wrapped in :class:`tamis.ByName`. It is not fitted
        itself. Its parts must be of classes that pickle can find: defined in a module, not in a function.

    Returns
    -------
    Report
        The checks that ran, and those skipped with their reasons.

    Raises
    ------
    AssertionError
        If a check fails; the message lists all failed checks, each with its name and the difference.

    Examples
    --------
    >>> from tamis import ByName, FisherScore, HoeffdingTree, StreamPipeline
    >>> from tamis.checks import check_named_model
    >>> report = check_named_model(ByName(StreamPipeline(FisherScore(3), HoeffdingTree())))
    >>> len(report.passed) > 5, report.failed
    (True, {})
    """
    return run_all(model, named_model_checks(model))


def named_model_checks(model: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    model : ByName
        As for :func:`check_named_model`.

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the model does not keep this promise, and unittest.SkipTest if it does not
        apply.

    Examples
    --------
    >>> from tamis import OFS, ByName
    >>> dict(named_model_checks(ByName(OFS(2))))["order_of_names"]()
    """
    for check in (
        _order_of_names, _names_return, _unknown_names, _same_as_fixed_columns, _rejected_batch, _budget, _save_and_load
    ):  # fmt: skip
        name = check.__name__[1:]
        yield name, functools.partial(run_check, name, check, model)


def _batches(model: Any, seed: int = 0) -> Iterator[_Batch]:
    """Yield rows of sensors: one more appears every third batch, and one is absent in the middle of the stream."""
    rng, is_numeric = np.random.default_rng(seed), model.__sklearn_tags__().estimator_type == "regressor"
    for number in range(_N_BATCHES):
        y = rng.integers(0, 2, _N_ROWS)
        y[:2] = 0, 1
        names = [f"x{j}" for j in range(4 + number // 3) if j != 1 or not 5 <= number < 10]
        effect = np.outer(2.0 * y - 1.0, np.arange(len(names)) % 3 == 1)
        values = np.round(rng.normal(size=effect.shape) + effect, 2)
        present = rng.random(values.shape) < 0.8
        present[0] = True  # the first row names all
        rows = [
            {name: value for name, value, is_there in zip(names, row, there, strict=True) if is_there}
            for row, there in zip(values.tolist(), present, strict=True)
        ]
        yield rows, y.astype(np.float64) + 0.5 if is_numeric else y


def _learned(model: Any, batches: Iterator[_Batch] | list[_Batch]) -> Any:
    fitted = clone(model)
    for rows, y in batches:
        fitted.partial_fit(rows, y)
    return fitted


def _answers(fitted: Any, rows: list[dict[str, float]]) -> Array:
    """Return what the model answers: predictions, or for a selector its scores."""
    if hasattr(fitted, "predict"):
        for name in ("predict_proba", "decision_function", "predict"):
            if hasattr(fitted, name):
                return np.asarray(getattr(fitted, name)(rows), dtype=np.float64)
    return np.asarray(fitted.scores_)


def _compare(one: Any, other: Any, rows: list[dict[str, float]], what: str, tolerance: float = 0.0) -> None:
    ours, theirs = _answers(one, rows), _answers(other, rows)
    if ours.shape != theirs.shape or not np.allclose(
        ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True
    ):
        fail(f"{what}: the answers differ, such as {ours.ravel()[:4]} and {theirs.ravel()[:4]}.")


def _order_of_names(model: Any) -> None:
    """The order of the names in a row, after their first appearance, does not matter."""
    batches, rng = [*_batches(model)], np.random.default_rng(1)

    def shuffled(row: dict[str, float]) -> dict[str, float]:
        return {name: row[name] for name in rng.permutation(list(row)).tolist()}

    other = [([rows[0], *map(shuffled, rows[1:])], y) for rows, y in batches]
    fitted = _learned(model, batches)
    _compare(fitted, _learned(model, other), batches[-1][0], "rows with other orders of names")


def _names_return(model: Any) -> None:
    """A name that vanishes and returns keeps its column, and rows may name any of the names."""
    fitted = _learned(model, _batches(model))
    names = fitted.feature_names_
    if len(set(names)) != len(names) or set(names) != {f"x{j}" for j in range(4 + (_N_BATCHES - 1) // 3)}:
        fail(f"feature_names_ is {names}.")
    _answers(fitted, [{}, {"x1": 1.0}, dict.fromkeys(names, 0.5)])


def _unknown_names(model: Any) -> None:
    """Names that were never learned are ignored in a prediction."""
    if not hasattr(model, "predict"):
        skip("the model does not predict")
    fitted, (rows, _) = _learned(model, _batches(model)), [*_batches(model)][-1]
    more = _answers(fitted, [row | {"unknown": 1e3} for row in rows])
    if not np.array_equal(more, _answers(fitted, rows), equal_nan=True):
        fail("an unknown name changes the predictions.")


def _same_as_fixed_columns(model: Any) -> None:
    """A model that grows answers as one with columns for all names from the first row on, where that is defined."""
    if model.max_columns is not None or model.budget is not None:
        skip("the number of columns is limited")
    if hasattr(model, "predict"):
        learner = model.estimator.learner
        if model.absent == "zero" or model.estimator.selector is not None or not hasattr(learner, "widen"):
            skip("parts of the pipeline are fitted again, or count a new feature as missing")
        batches = [*_batches(model)]
        try:
            _learned(model, batches[:4]).estimator_.learner_.widen(100)
        except ValueError:
            skip("the learner is fitted again")
    elif not model.estimator._claims().widens or model.estimator._claims().counts_columns:
        skip("what the method learns depends on the number of columns")
    batches = [*_batches(model)]
    wide = clone(model).set_params(max_columns=4 + (_N_BATCHES - 1) // 3)
    fitted = _learned(model, batches)
    _compare(fitted, _learned(wide, batches), batches[-1][0], "columns that came later", 1e-9)


def _rejected_batch(model: Any) -> None:
    """A rejected batch, whose first rows are valid and name new features, leaves the model unchanged."""
    batches = [*_batches(model)]
    fitted = _learned(model, batches[:-1])
    before = dumps(fitted)
    rows, y = batches[-1]
    for value in (np.inf, "text"):
        bad: Any = [*({**row, "new": 1.0} for row in rows[:-1]), {**rows[-1], "newer": value}]
        try:
            fitted.partial_fit(bad, y)
        except DataError:
            pass
        else:
            fail(f"a row with the value {value!r} is accepted.")
        if dumps(fitted) != before:
            fail(f"a rejected batch with the value {value!r} changes the model.")
    _compare(fitted.partial_fit(rows, y), _learned(model, batches), rows, "after a rejected batch")


def _budget(model: Any) -> None:
    """A budget bounds the number of names and of columns, whatever appears; an evicted name may return."""
    limited = clone(model).set_params(budget=_BUDGET, max_columns=None)
    rng, seen = np.random.default_rng(2), set()
    for number, (rows, y) in enumerate(_batches(limited)):
        some = {f"x{j}" for j in range(3)} | {f"new{number % 6}"}
        rows = [{name: row.get(name, float(rng.normal())) for name in sorted(some)} for row in rows]
        try:
            limited.partial_fit(rows, y)
        except ValueError as error:
            if not number and "budget=" in str(error):
                skip("the method cannot forget single columns")
            raise
        seen |= set(limited.feature_names_)
        if len(limited.feature_names_) > _BUDGET or limited.estimator_.n_features_in_ > max(_BUDGET, 4):
            fail(
                f"{len(limited.feature_names_)} names in {limited.estimator_.n_features_in_} columns, budget {_BUDGET}."
            )
    if hasattr(model, "predict") and len(seen) <= _BUDGET:
        fail("no name was evicted.")
    _answers(limited, rows)


def _save_and_load(model: Any) -> None:
    """A saved model continues as the model itself."""
    batches = [*_batches(model)]
    for end in (1, _N_BATCHES // 2):
        fitted = _learned(model, batches[:end])
        again = loads(dumps(fitted), classes=_classes_of(model))
        for rows, y in batches[end : end + 4]:
            fitted.partial_fit(rows, y)
            again.partial_fit(rows, y)
        _compare(again, fitted, batches[-1][0], "a loaded model, and the model itself")


def _classes_of(model: Any) -> list[type]:
    """Return the classes of the parts, which may be a user's."""
    parts = [model.estimator, *(getattr(model.estimator, name, None) for name in ("selector", "learner"))]
    return [type(part) for part in parts if part is not None]
