"""The catalogue's rows are true, and names are found, or the nearest ones suggested."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.utils import get_tags

from tamis.base import RowSelector
from tamis.base.declarations import Claims, Inputs
from tamis.catalog import CATALOG, LEARNERS, Entry, find, find_learner
from tamis.errors import UnknownNameError

ROWS = [entry for entry in CATALOG if entry.family == "rows"]
by_key = pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.key)


def test_names_are_unique() -> None:
    every = [entry for entry in (*CATALOG, *LEARNERS) if not entry.parameters]
    names = [name for entry in every for name in {entry.key, entry.name.lower()}]
    names += [entry.key for entry in LEARNERS if entry.parameters]
    assert len(set(names)) == len(names)


@by_key
def test_row_is_true(entry: Entry) -> None:
    cls = entry.load()
    assert cls.__name__ == entry.name
    assert entry.module.startswith(f"tamis.{entry.family}.")
    assert entry.family in ("rows", "columns", "cells", "learners")
    assert set(entry.targets) <= {"binary", "multiclass", "regression"}
    assert entry.mergeable != bool(entry.not_mergeable)
    assert entry.mergeable or re.fullmatch(r"[A-Z][^.\n]+\.", entry.not_mergeable)
    for text in (entry.title, entry.paper):
        assert text
        assert "\n" not in text
    assert entry.title.endswith(".")


@pytest.mark.parametrize(
    "entry", [e for e in (*CATALOG, *LEARNERS) if type(e) is Entry], ids=lambda entry: entry.key
)
def test_declaration_is_that_of_the_class(entry: Entry) -> None:
    """What is read from the source without an import is what the imported class has."""
    cls, none = entry.load(), object()
    assert entry.title == inspect.getdoc(cls).splitlines()[0]
    assert entry.module == cls.__module__
    assert entry.mergeable == hasattr(cls, "merge")
    assert entry.declaration.get("_whole_blocks", none) == getattr(cls, "_whole_blocks", none)
    for name, kind in (("accepts", Inputs), ("claims", Claims)):
        read = entry.declaration.get(name)
        assert (None if read is None else kind(**read)) == getattr(cls, name, None)


@by_key
def test_source_names_the_paper(entry: Entry) -> None:
    source = inspect.getdoc(inspect.getmodule(entry.load())) or ""
    first_author = entry.paper.split(",")[0].split(" ")[0]
    assert first_author in source


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.key)
def test_row_selector_is_one(entry: Entry) -> None:
    selector = entry.load()()
    assert isinstance(selector, RowSelector)
    assert get_tags(selector).input_tags.sparse >= entry.sparse


@pytest.mark.parametrize("entry", LEARNERS, ids=lambda entry: entry.key)
def test_learner_learns_batch_by_batch(entry: Entry) -> None:
    learner = entry.load()(**dict(entry.parameters))
    X, y = np.abs(np.eye(4)), [0, 0, 1, 1]
    told = {} if entry.targets == ("regression",) else {"classes": [0, 1]}
    assert learner.partial_fit(X, y, **told).predict(X).shape == (4,)


def test_found_by_key_or_class_in_any_case() -> None:
    assert find("fires") is find("FIRES") is find("Fires") is find("fires", family="rows")
    assert find_learner("GaussianNB") is find_learner("naive-bayes")
    assert find_learner("SGDClassifier") is find_learner("sgd") is not find_learner("logistic")


@pytest.mark.parametrize(("wrong", "near"), [("firse", "fires"), ("of", "ofs"), ("FIRE", "fires")])
def test_nearest_names_are_suggested(wrong: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find(wrong)
    known = ", ".join(entry.key for entry in CATALOG)
    assert str(caught.value).startswith(f"No selector is named {wrong!r}; did you mean {near!r}")
    assert str(caught.value).endswith(f"? Known: {known}.")


def test_unknown_names_list_what_is_known() -> None:
    with pytest.raises(UnknownNameError, match=r"No learner is named 'zzz'\. Known: perceptron, sgd"):
        find_learner("zzz")
    with pytest.raises(UnknownNameError, match="No classifier is named 'fires'"):
        find("fires", family="cells")
