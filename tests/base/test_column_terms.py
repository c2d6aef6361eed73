"""Prices, kept columns and groups: what a user determines about columns holds for every row selector with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis.base import PriceList
from tamis.base.column_terms import ColumnTerms, name_to_position
from tamis.evaluate.prequential import run as run_module
from tamis.rows import FIRES, Auto, ForwardPartialCorrelation, JointScreening

SELECTORS = {
    "forward": lambda **terms: ForwardPartialCorrelation(2, **terms),
    "forward-none": lambda **terms: ForwardPartialCorrelation(None, **terms),
    "fires": lambda **terms: FIRES(2, **terms),
    "joint": lambda **terms: JointScreening(**terms),
    "auto": lambda **terms: Auto(2, **terms),
    "auto-sizes": lambda **terms: Auto(learner="naive-bayes", **terms),
}
NAMES = [f"c{j}" for j in range(12)]


def rows(n: int = 2000, n_classes: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns 0 and 1 decide; 2 is a copy of 0 with little noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12))
    X[:, 2] = X[:, 0] + 0.1 * X[:, 2]
    signal = X[:, 0] + 0.8 * X[:, 1] + 0.3 * rng.normal(size=n)
    return pd.DataFrame(X, columns=NAMES), np.digitize(signal, [0.0, 1.0][: n_classes - 1])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", SELECTORS)
def test_kept_columns_are_selected_and_groups_together(name, n_classes):
    F, y = rows(n_classes=n_classes)
    alone = SELECTORS[name]().fit(F, y).get_support()
    assert alone[1]
    assert not alone[[7, 8, 9]].any()
    kept = SELECTORS[name](keep=["c7"]).fit(F, y).get_support()
    assert kept[7]
    assert np.array_equal(np.delete(kept, 7), np.delete(alone, 7))
    together = SELECTORS[name](groups=[["c1", "c8", "c9"], ["c10", "c11"]]).fit(F, y)
    assert together.get_support()[[1, 8, 9]].all()
    assert not together.get_support()[[10, 11]].any()
    by_number = SELECTORS[name](groups=[[1, 8, 9], (10, 11)], keep=(7,)).fit(F.to_numpy(), y)
    assert by_number.get_support()[[1, 7, 8, 9]].all()
    assert list(together.transform(F)[:5].shape) == [5, together.get_support().sum()]


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("form", ["names", "array", "list"])
def test_of_a_column_and_its_copy_the_cheap_one_is_selected(name, form):
    F, y = rows()
    own = {column: 20.0 if column == "c0" else 1.0 for column in NAMES}
    prices: Any = {"names": own, "array": np.array(list(own.values())), "list": PriceList(own)}[form]
    assert SELECTORS[name]().fit(F, y).get_support()[0]
    found = SELECTORS[name](prices=prices).fit(F, y).get_support()
    assert found[[1, 2]].all()
    assert not found[0]


@pytest.mark.parametrize("name", SELECTORS)
def test_equal_prices_and_no_terms_change_nothing_and_files_keep_them(name):
    F, y = rows()
    plain = SELECTORS[name]().fit(F, y)
    for terms in ({"prices": 3.0}, {"groups": []}, {"keep": []}):
        assert np.array_equal(SELECTORS[name](**terms).fit(F, y).get_support(), plain.get_support())
    model = SELECTORS[name](keep=["c5"], groups=[["c3", "c4"]], prices=PriceList(1.0, fees=[(["c3"], 5.0)]))
    model.fit(F[:1000], y[:1000])
    loaded = tamis.loads(tamis.dumps(model))
    for one in (model, loaded):
        one.partial_fit(F[1000:], y[1000:])
    assert np.array_equal(model.get_support(), loaded.get_support())
    assert model.get_support()[5]


@pytest.mark.parametrize(
    "terms", [{"groups": [["c1", "c8"]]}, {"keep": ["c8"]}, {"prices": dict.fromkeys(NAMES, 2.0)}]
)
def test_a_run_of_a_frame_takes_names_and_knows_whether_the_size_is_fixed(terms, monkeypatch):
    """A baseline of a fixed size is reset when that changes; with groups it changes."""
    fixed: list[bool] = []
    make = run_module.make_pairs
    monkeypatch.setattr(
        run_module, "make_pairs", lambda *args, **more: fixed.append(more["is_fixed"]) or make(*args, **more)
    )
    F, y = rows(1500)
    for selector in (FIRES(2, **terms), Auto(2, **terms)):
        result = tamis.prequential((F, y), selector, GaussianNB(), frozen_after=500)
        assert np.isfinite(result.summary()["frozen_accuracy"])
        assert selector.get_support()[1]
        assert selector.get_support()[8] == ("prices" not in terms)
    assert not any(fixed[:1]) or "prices" in terms
    pipeline = tamis.StreamPipeline(FIRES(2, **terms), GaussianNB()).fit(F, y)
    assert ("c8" in pipeline.get_feature_names_out()) == ("prices" not in terms)


def test_names_of_a_price_list_become_positions_and_unknown_ones_stay():
    prices = PriceList(
        {"a": 1.0, "b": 2.0}, fees=[(["b"], 5.0)], if_known={"b": {"a": 1.0}}, delays={"a": 3.0}
    )
    selector = FIRES(1, prices=prices, keep=("b", "z"), groups=[["a", "b"]])
    name_to_position(selector, ["a", "b"])
    assert (selector.keep, selector.groups) == ((1, "z"), [[0, 1]])
    assert selector.prices == PriceList({0: 1.0, 1: 2.0}, [([1], 5.0)], {1: {0: 1.0}}, {0: 3.0})


def test_parts_with_the_same_groups_merge():
    F, y = rows()
    terms: dict[str, Any] = {"groups": [["c0", "c8"], ["c10"]], "keep": ["c7"]}
    for make in (SELECTORS["forward"], SELECTORS["fires"]):
        merged = make(**terms).fit(F[:1000], y[:1000]).merge(make(**terms).fit(F[1000:], y[1000:]))
        assert merged.get_support()[[0, 7, 8]].all()
        with pytest.raises(ValueError, match="groups is"):
            merged.merge(make(keep=["c7"]).fit(F, y))


def test_a_selector_with_terms_gets_no_further_columns():
    F, y = rows()
    with pytest.raises(ValueError, match="fixed number of columns"):
        FIRES(2, keep=[3]).fit(F.to_numpy(), y).widen(14)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"keep": ["zz"]}, "keep names 'zz', which is not a column of X"),
        ({"keep": [True]}, "keep names True, which is not a column of X"),
        ({"keep": "c1"}, "keep must be a list of columns or None, got 'c1'"),
        ({"groups": [["c1", "zz"]]}, "groups names 'zz', which is not a column of X"),
        ({"groups": [["c1"], ["c1"]]}, "groups names 'c1' twice: a column belongs to one group"),
        ({"groups": ["c1"]}, "groups must be a list of lists of columns or None"),
        ({"prices": {"c1": 1.0}}, "prices has no entry for column 'c0'"),
        (
            {"prices": {**dict.fromkeys(NAMES, 1.0), "zz": 1.0}},
            "prices names 'zz', which is not a column of X",
        ),
        ({"prices": [1.0, 2.0]}, "prices has 2 entries for 12 features"),
        ({"prices": [-1.0] * 12}, "prices of column 0 is -1.0: it must be 0, or from 1e-100"),
        ({"prices": -1.0}, r"prices must be a number in \[0, 1e100\], an array of numbers"),
    ],
)
@pytest.mark.parametrize("name", SELECTORS)
def test_terms_of_unknown_columns_are_rejected(name, terms, message):
    F, y = rows(300)
    with pytest.raises(ValueError, match=message):
        SELECTORS[name](**terms).fit(F, y)


def test_a_group_is_paid_once_and_free_columns_come_first():
    prices = PriceList({"a": 0.0, "b": 2.0, "c": 4.0, "d": 1.0}, fees=[(["d"], 3.0)])
    terms = ColumnTerms.of(prices, None, [["b", "c"]], list("abcd"), is_named=True)
    masks = np.array([[0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]], bool)
    assert terms.total(masks).tolist() == [4.0, 4.0, 4.0, 0.0]
    assert terms.worth[1:].tolist() == [0.75, 0.75, 0.75]
    assert terms.worth[0] == pytest.approx(750.0)
    assert ColumnTerms.of(None, None, None, list("ab"), is_named=True).total(masks[:, :2]).tolist() == [
        1,
        1,
        1,
        0,
    ]
    nothing = ColumnTerms.of(0.0, None, None, [0, 1], is_named=False)
    assert nothing.worth.tolist() == [1.0, 1.0]
