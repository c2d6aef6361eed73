"""Exceptions are of the built-in kinds that callers expect, and say their sentence plainly."""

from __future__ import annotations

import pickle

import pytest

from tamis import errors


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DataError", ValueError), ("StreamError", ValueError), ("CheckpointError", ValueError),
        ("UnknownNameError", KeyError),
    ],
)  # fmt: skip
def test_every_error_is_one_of_tamis_and_of_python(name: str, kind: type[Exception]) -> None:
    error = getattr(errors, name)("Column 'x' is empty: fill it.")
    assert isinstance(error, errors.TamisError)
    assert isinstance(error, kind)
    assert str(error) == "Column 'x' is empty: fill it."  # KeyError alone would add quotes
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # as from another process


def test_every_error_is_public() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert defined == set(errors.__all__)
    assert str(errors.UnknownNameError()) == ""
