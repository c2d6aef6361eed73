"""Streams with known truth: rows that do not depend on batches, the law of drift, noise, appended features, names."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tamis.errors import UnknownNameError
from tamis.streams import Irrelevant, Redundant, SyntheticStream, list_streams, load_stream
from tamis.streams.concepts import SEA, STAGGER, Agrawal, LinearWindow
from tamis.streams.draws import Draws, Ranges
from tests.twins import generators as twin

TWO = (SEA((0, 1), 8.0, 6), SEA((2, 5), 9.0, 6))
EVERYTHING = (
    Redundant(3),
    Irrelevant(2),
    Redundant(2, "cosine"),
    Irrelevant(1, 4),
    Redundant(2, "quadratic"),
)


def stream(n_rows=3000, **options):
    options = {"drifts": [n_rows // 2], "width": 100.0, "label_noise": 0.1, "seed": 3, **options}
    return SyntheticStream(TWO, n_rows, **options)


# -- rows --------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(size=st.integers(1, 400), start=st.integers(0, 3000))
def test_rows_do_not_depend_on_batches(size, start):
    mixed = stream(appended=EVERYTHING)
    X, y = mixed.read(0, 3000)
    parts = list(mixed.batches(size, start=start))
    assert {len(part) for part, _ in parts[:-1]} <= {size}
    np.testing.assert_array_equal(np.concatenate([X[:0], *(part for part, _ in parts)]), X[start:])
    np.testing.assert_array_equal(np.concatenate([y[:0], *(part for _, part in parts)]), y[start:])


@pytest.mark.parametrize("name", [row["name"] for row in list_streams()])
def test_named_streams_do_not_depend_on_batches_and_can_be_opened_again(name):
    one = load_stream(name, seed=5, n_rows=900, n_drifts=2, width=200)
    X, y = one.take(900)
    assert X.flags.c_contiguous
    assert X.dtype == np.float64
    assert set(y) <= set(one.classes)
    for size, start in ((1, 889), (128, 0), (300, 451)):
        parts = list(one.batches(size, start=start))
        np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), X[start:])
        np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), y[start:])
    settings = json.loads(json.dumps(one.describe()))
    assert settings.pop("kind") == "generated"
    fingerprint = settings.pop("fingerprint")
    assert load_stream(**settings).describe()["fingerprint"] == fingerprint
    assert load_stream(**{**settings, "seed": 6}).describe()["fingerprint"] != fingerprint


def test_rows_stay_what_they_are():
    """Golden: what was published with a seed must come again."""
    X, y = load_stream("SEA", seed=1).take(3)
    assert y.tolist() == [1, 0, 0]
    assert X[0, :3] == pytest.approx([2.1912503515207327, 6.007117086761387, 9.372051667907348], rel=1e-14)
    assert X[2, 48:] == pytest.approx([-0.9218652800416312, 0.861321511867789], rel=1e-12)
    X, _ = load_stream("AGR", seed=1).take(2)
    people = [117240.79178355687, 0.0, 43.0, 4.0, 8.0, 1.0, 473310.29149293853, 10.0, 219004.95927741675]
    assert X[1, :9] == pytest.approx(people, rel=1e-12)


def test_noise_and_appended_features_leave_the_rest_as_it_was():
    X, y = stream(label_noise=0.0).read(0, 3000)
    more, noisy = stream(appended=EVERYTHING).read(0, 3000)
    np.testing.assert_array_equal(more[:, :6], X)
    assert np.mean(noisy != y) == pytest.approx(0.1, abs=0.02)


def test_numbers_of_rows_are_splitmix_and_do_not_depend_on_their_neighbours():
    draws = Draws(7).child("a")
    state, wanted = int(draws.key), []
    for _ in range(6):
        state, number = twin.splitmix64(state)
        wanted.append((number >> 11) * 2.0**-53)
    assert draws.uniform(np.arange(1), 1)[0, 0] == twin_unit(int(draws.key))
    many = draws.uniform(np.arange(4), 2)
    np.testing.assert_array_equal(many.ravel()[1:7], wanted)
    np.testing.assert_array_equal(draws.uniform(np.array([1, 3]), 2), many[[1, 3]])
    out = np.zeros((2, 5))
    draws.fill(np.array([0, 2]), out, Ranges.same(2, 3.0, 4.0), first=1)
    np.testing.assert_array_equal(out[:, 1:3], 3.0 + 4.0 * many[[0, 2]])
    assert (out[:, [0, 3, 4]] == 0).all()


def twin_unit(key):
    return (twin.splitmix64((key - 0x9E3779B97F4A7C15) % 2**64)[1] >> 11) * 2.0**-53


def test_numbers_are_uniform_and_independent():
    draws = Draws(0)
    values = draws.uniform(np.arange(50_000), 3)
    others = np.column_stack([draws.child(name).one(np.arange(50_000)) for name in ("a", "b", 0, 1)])
    table = np.column_stack([values, others])
    for column in table.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 0.02
    assert np.abs(np.corrcoef(table.T) - np.eye(7)).max() < 0.02
    assert stats.kstest(draws.normal(np.arange(50_000), 1)[:, 0], "norm").pvalue > 1e-4


# -- drift and truth ---------------------------------------------------------------------------------------


def test_the_law_of_drift():
    drifts, width = np.arange(400, 1_200_000, 400), 20
    many = SyntheticStream(TWO, 1_200_000, drifts=drifts.tolist(), width=width)
    concept = many.concept_of_rows(0, many.n_rows)
    after = (np.arange(len(drifts)) + 1) % 2
    for off, published in ((-width // 2, 0.119), (0, 0.5), (width // 2, 0.881), (width, 0.982)):
        share = np.mean(concept[drifts + off] == after)
        assert share == pytest.approx(published, abs=0.03)
        assert twin.share_of_new(drifts[0] + off, drifts[0], width) == pytest.approx(published, abs=5e-4)


def test_concepts_recur_and_a_width_of_0_is_a_clean_cut():
    three = SyntheticStream([STAGGER(f) for f in (1, 2, 3)], 70, drifts=[10, 20, 30, 40, 50, 60], width=0)
    assert three.concept_of_rows(0, 70).tolist() == [t // 10 % 3 for t in range(70)]
    assert [three.concept_at(t) for t in range(70)] == three.concept_of_rows(0, 70).tolist()
    assert (three.drifts, three.drift_widths) == ((10, 20, 30, 40, 50, 60), (0.0,) * 6)


def test_the_truth_of_each_row_is_the_concept_that_made_it():
    mixed = stream(n_rows=6000, label_noise=0.0, width=1500.0)
    X, y = mixed.read(0, 6000)
    truth, concept = mixed.relevant_rows(0, 6000), mixed.concept_of_rows(0, 6000)
    assert np.sum(concept[:3000] != concept[3000:][::-1]) > 500
    for k, sea in enumerate(TWO):
        mine = concept == k
        assert (sea.label(X[mine][:, list(sea.relevant)]) == y[mine]).all()
        assert (np.flatnonzero(truth[mine].all(axis=0)) == sea.relevant).all()
        assert truth[mine].sum() == 2 * mine.sum()
    np.testing.assert_array_equal(mixed.relevant_rows(2900, 3100), truth[2900:3100])
    assert mixed.relevant_at(2999).tolist() == [0, 1]
    assert mixed.relevant_at(3000).tolist() == [2, 5]
    assert mixed.relevant_anywhere.tolist() == [0, 1, 2, 5]


def test_noise_replaces_a_label_by_another():
    from tamis.streams.concepts import RandomRBF

    clouds = [RandomRBF((0, 1), 3, n_classes=4)]
    _, y = SyntheticStream(clouds, 20_000).read(0, 20_000)
    _, noisy = SyntheticStream(clouds, 20_000, label_noise=0.3).read(0, 20_000)
    steps = np.bincount((noisy - y) % 4, minlength=4) / 20_000
    assert steps == pytest.approx([0.7, 0.1, 0.1, 0.1], abs=0.015)


# -- appended features -------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2, 0.5, 1.0])
def test_a_linear_copy_has_the_published_correlation(noise):
    one = SyntheticStream(
        [SEA((0, 2), 8.0, 3, None)], 20_000, appended=[Redundant(3, noise=noise, source="any")]
    )
    X, _ = one.read(0, 20_000)
    for j in range(3):
        correlation = np.corrcoef(X[:, j], X[:, 3 + j])[0, 1]
        assert correlation == pytest.approx(1 / math.sqrt(1 + 4 * noise**2), abs=0.015)


@pytest.mark.parametrize("kind", ["copy", "quadratic", "gaussian", "cosine"])
def test_a_redundant_feature_is_its_formula_but_where_it_is_disturbed(kind):
    def columns(noise):
        part = Redundant(2, kind, noise, source=(4, 1))
        made = SyntheticStream(TWO[:1], 20_000, appended=[part])
        assert made.copy_of.tolist() == [0, 1, 2, 3, 4, 5, 4, 1]
        assert made.feature_names[6:] == [f"x4_{kind}", f"x1_{kind}"]
        return made.read(0, 20_000)[0], made.features[6:]

    X, _ = columns(0.0)
    for j, source in ((6, 4), (7, 1)):
        wanted = [twin.redundant(kind, x, 0.0, 10.0) for x in X[:500, source].tolist()]
        np.testing.assert_allclose(X[:500, j], wanted, rtol=1e-12, atol=1e-14)
    noisy, features = columns(0.2)
    for j, feature in zip((6, 7), features, strict=True):
        changed = noisy[:, j] != X[:, j]
        assert changed.mean() == pytest.approx(0.2, abs=0.015)
        place = (noisy[changed, j] - feature.low) / (feature.high - feature.low)
        assert stats.kstest(place, "uniform").pvalue > 1e-4


def test_a_category_is_copied_and_its_noise_is_another_category():
    parts = [Redundant(4, noise=0.25), Redundant(3, "cosine")]
    people = SyntheticStream([Agrawal(3), Agrawal(4)], 20_000, appended=parts)
    assert people.feature_names[9:] == [
        "salary_linear", "age_linear", "elevel_linear", "salary_linear_2",
        "salary_cosine", "age_cosine", "salary_cosine_2",
    ]  # fmt: skip
    assert people.feature_types[9:13] == ["numeric", "numeric", "nominal", "numeric"]
    X, _ = people.read(0, 20_000)
    step = (X[:, 11] - X[:, 3]) % 5
    assert np.bincount(step.astype(int)) / 20_000 == pytest.approx([0.75, *[0.0625] * 4], abs=0.012)


def test_irrelevant_features():
    X, y = SyntheticStream(TWO[:1], 20_000, appended=[Irrelevant(1), Irrelevant(2, 10)]).read(0, 20_000)
    assert stats.kstest(X[y == 1, 6], "uniform").pvalue > 1e-4
    assert stats.chisquare(np.bincount(X[y == 1, 8].astype(int))).pvalue > 1e-4
    assert np.unique(X[:, 7]).tolist() == list(range(10))


# -- names -------------------------------------------------------------------------------------------------


def test_table_4_1(shared):
    with open(shared / "tables" / "thesis" / "table_4_1.csv", newline="") as file:
        table = {row["experiment"]: row for row in csv.DictReader(file)}
    assert list(table) == [row["name"] for row in list_streams()[:7]]
    for name, row in table.items():
        made = load_stream(name, seed=2)
        assert made.n_features == int(row["n_features"])
        assert (made.n_rows, made.drifts) == (100_000, tuple(range(10_000, 100_000, 10_000)))
        assert made.drift_widths == (float(row["drift_window"]),) * 9
        for kind, column in (("linear", "linear"), ("quadratic", "rbf"), ("cosine", "cosine")):
            n = sum(f"_{kind}" in feature for feature in made.feature_names)
            assert n == int(row[f"n_{column}_redundant"])
        middle, _, spread = row["n_relevant"].partition("+-")
        sizes = [len(made.relevant_at(t)) for t in (0, *made.drifts)]
        assert all(abs(size - float(middle)) <= float(spread or 0) for size in sizes)
        changes = [made.relevant_at(t).tolist() != made.relevant_at(t - 1).tolist() for t in made.drifts]
        assert all(changes) or name in ("AGR", "AN")  # there two rules may ask for the same


def test_the_protocol_of_chapter_9():
    made = load_stream("bg1", protocol="chapter9", n_irrelevant=200, width=1)
    assert (made.n_rows, made.n_features, made.drifts) == (200_000, 203, (66_666, 133_332))
    assert [made.relevant_at(t).tolist() for t in (0, 66_666, 133_332)] == [[0, 1, 2], [3, 4, 5], [1, 3, 5]]
    people = load_stream("agrawal", protocol="chapter9")
    assert [concept.function for concept in people.concepts] == [1, 2, 3]
    assert people.feature_types[9:] == ["numeric"] * 50 + ["nominal"] * 50


def test_names_forgive_and_suggest():
    assert load_stream("Bg2-FD", n_rows=10, n_drifts=0).n_features == 50
    with pytest.raises(UnknownNameError, match="did you mean 'SEA'"):
        load_stream("seaa")
    with pytest.raises(UnknownNameError, match="load_dataset opens real data"):
        load_stream("electricity")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stream(drifts=[0]), "drifts must lie within the stream's 3000 rows, and after the first"),
        (lambda: stream(drifts=[7, 5]), "drifts must be row numbers in ascending order, got \\[7, 5\\]"),
        (lambda: stream(label_noise=1), "label_noise must be a number in \\[0, 1\\), got 1"),
        (lambda: stream(seed=-1), "seed must be an integer in \\[0, inf\\), got -1"),
        (lambda: SyntheticStream([], 5), "concepts must be a list of at least one Concept, got \\[\\]"),
        (
            lambda: SyntheticStream([TWO[0], STAGGER()], 5),
            "All concepts must have the same features and classes",
        ),
        (
            lambda: stream(appended=[Redundant(1, source=(9,))]),
            "source names column 9, but the concepts have 6",
        ),
        (
            lambda: SyntheticStream([STAGGER()], 9, appended=[Redundant(1, "cosine")]),
            "has no numeric source column",
        ),
        (
            lambda: SyntheticStream([LinearWindow(0, 1, 3, target="number")], 9, label_noise=0.1),
            "label_noise must be 0 for a numeric target",
        ),
        (lambda: Irrelevant(2, 1), "n_values must be 0 for numbers or at least 2 for categories"),
        (lambda: stream().relevant_at(3000), "t must be a row from 0 to 2999, got 3000"),
        (lambda: stream().relevant_rows(0, 3001), "stop must be a row from 0 to 3000, got 3001"),
        (lambda: stream().batches(0), "batch_size must be an integer"),
        (lambda: load_stream("SEA", protocol="chapter8"), "protocol must be one of 'thesis', 'chapter9'"),
        (
            lambda: load_stream("SEA", n_drifts=9, n_rows=5),
            "n_drifts must be an integer in \\[0, 4\\], got 9",
        ),
    ],
)
def test_a_wrong_parameter_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_irrelevant_columns_of_stagger_follow_those_of_its_concepts():
    names = load_stream("STAGGER", n_rows=100, n_drifts=1).feature_names
    assert names[:4] == ["size", "color", "shape", "irrelevant0"]
    assert len(names) == 15


@pytest.mark.parametrize("name", ["AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA", "STAGGER", "hyperplane"])
def test_a_stream_with_a_rare_class(name):
    """The share is that of class 1 before the noise; the concepts and their relevant features are the same."""
    options = {"seed": 3, "n_rows": 4000, "n_drifts": 1, "width": 0, "label_noise": 0.0}
    plain, rare = load_stream(name, **options), load_stream(name, **options, positive_share=0.05)
    X, y = rare.take(4000)
    assert y.mean() == pytest.approx(0.05, abs=0.015)
    assert [rare.relevant_at(t).tolist() for t in (0, 3999)] == [
        plain.relevant_at(t).tolist() for t in (0, 3999)
    ]
    wrong = y[:2000] != rare.concepts[0].label(X[:2000, list(rare.concepts[0].tied)])
    assert name == "AGR" or not wrong.any()  # in AGR numbers move after the class is set
    assert rare.settings["positive_share"] == 0.05
    assert "positive_share" not in plain.settings


@pytest.mark.parametrize(
    ("name", "share", "message"), [("RBF", 0.1, "fixed proportions"), ("SEA", 1.0, "positive_share")]
)
def test_a_share_that_a_stream_cannot_have(name, share, message):
    with pytest.raises(ValueError, match=message):
        load_stream(name, positive_share=share)
