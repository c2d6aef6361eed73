"""One mechanism fills in the paragraphs that docstrings share."""

import re

import pytest

import tamis
from tamis._docstrings import fill_docstring, paragraphs_of
from tamis.catalog import CATALOG


def test_a_paragraph_has_the_indentation_of_its_line():
    class Model:
        """A model.

        Parameters
        ----------
        %(seed)s
        other : int
        """

    filled = fill_docstring({"seed": "\n    random_state : int\n        Seed, 5 %(x)s.\n    "})(Model)
    assert filled is Model
    lines = Model.__doc__.splitlines()
    at = next(i for i, line in enumerate(lines) if "random_state" in line)
    margin = lines[at + 2][: -len("other : int")]
    assert lines[at : at + 2] == [f"{margin}random_state : int", f"{margin}    Seed, 5 %(x)s."]


def test_an_unknown_paragraph_is_an_error():
    class Model:
        """A model.

        %(sead)s
        """

    with pytest.raises(KeyError, match="sead"):
        fill_docstring({"seed": "random_state : int"})(Model)


def test_a_docstring_quotes_sections_and_parameters_of_its_bases():
    class Base:
        """A base.

        Parameters
        ----------
        level : float
            Larger is stricter.
        seed : int

        Raises
        ------
        ValueError
            If `level` is negative.
        """

    class Derived(Base):
        """A derived class.

        Parameters
        ----------
        seed : int or str
        """

    paragraphs = paragraphs_of(Derived)
    assert paragraphs["level"] == "level : float\n    Larger is stricter."
    assert paragraphs["Raises"] == "ValueError\n    If `level` is negative."
    assert paragraphs["seed"] == "seed : int or str"
    assert paragraphs_of(type("Bare", (), {})).keys() <= paragraphs.keys()


def test_a_class_without_docstring_stays_so():
    class Model:
        pass

    assert fill_docstring({})(Model).__doc__ is None


@pytest.mark.parametrize("name", sorted({entry.name for entry in CATALOG}))
def test_no_placeholder_is_left(name):
    text = getattr(tamis, name).__doc__
    assert not re.search(r"%\(\w+\)s", text)
