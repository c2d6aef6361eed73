"""Signs that a file is not a stream: sorted labels, columns that reveal the label, rows that repeat."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tamis import prequential, recommend
from tamis.streams.files import open_table
from tamis.streams.leaks import leak_of, missingness_of, orders, repeats_of, runs_of_labels
from tamis.streams.profile import profile_table

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N = 1000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def warnings_of(tmp_path, **columns):
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    return profile_table(open_table(tmp_path / "t.csv"), "y").warnings


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_what_reveals_the_label_is_asked_about(rng, share):
    y = (rng.random(N) < share).astype(int)
    reveals = {
        "copy": y, "negated": 1.0 - y, "codes": np.where(y, 7, rng.integers(0, 3, N)),
        "of more values": y + 2 * rng.integers(0, 2, N),
        "monotone": np.exp(y + 0.9 * rng.random(N)), "missing": np.where(y, np.nan, 1.0),
        "missing or any": np.where(y, rng.normal(size=N), np.nan),
        "with errors": np.where(rng.random(N) < 0.01 * share, 1 - y, y),
    }  # fmt: skip
    for name, values in reveals.items():
        assert leak_of(np.asarray(values, dtype=float), y) > 0.97, name
    innocent = {
        "noise": rng.normal(size=N), "codes": rng.integers(0, 900, N), "strong": y + 0.5 * rng.normal(size=N),
        "often right": np.where(rng.random(N) < 0.2 * share, 1 - y, y), "rows": np.arange(N), "constant": np.zeros(N),
        "distinct": rng.permutation(N),
    }  # fmt: skip
    for name, values in innocent.items():
        assert leak_of(np.asarray(values, dtype=float), y) == 0.0, name


def test_times_of_autocorrelated_labels_reveal_nothing(rng):
    y = np.repeat(rng.integers(0, 2, N // 20), 20)
    assert leak_of(np.arange(N) + rng.random(N), y) == 0.0
    assert runs_of_labels(y) == ""


def test_several_classes(rng):
    y = rng.integers(0, 5, N)
    assert leak_of(10.0 * y, y) == 1.0
    assert leak_of(np.minimum(y, 3).astype(float), y) == 0.0


def test_values_known_for_one_class_only(rng):
    y = rng.integers(0, 3, N)
    assert missingness_of(y != 2, y) == ("present", 2)
    assert missingness_of((y == 1) & (rng.random(N) < 0.5), y) == ("missing", 1)
    assert missingness_of((y != 2) | (rng.random(N) < 0.5), y) == ("present", 2)
    assert missingness_of(rng.random(N) < 0.5, y) is None
    assert (
        missingness_of(rng.random(N) < 0.1, (rng.random(N) < 0.02).astype(int)) is None
    )  # of a class of most rows
    assert missingness_of(np.arange(N) < 12, np.zeros(N, dtype=int)) is None  # of a class that all rows have


def test_numbers_in_the_order_of_a_number(tmp_path, rng):
    y = rng.normal(size=N).round(2)
    assert orders(y**3, y)
    assert orders(-y, y)
    assert not orders(y + 0.2 * rng.normal(size=N), y)
    assert not orders(np.zeros(N), y)
    [found] = warnings_of(tmp_path, a=rng.normal(size=N), cents=np.round(np.exp(y), 4), y=y)
    assert found == "cents alone predicts every label: is it known before the label? (otherwise --drop cents)"


@pytest.mark.parametrize("n_classes", [2, 5])
def test_labels_in_sorted_order(rng, n_classes):
    y = rng.integers(0, n_classes, N)
    assert runs_of_labels(y) == ""
    assert "sorted by the label" in runs_of_labels(np.sort(y))
    assert "few runs" in runs_of_labels(np.tile(np.sort(y[: N // 2]), 2))
    rare = np.zeros(N, dtype=int)
    rare[rng.choice(N, 2, replace=False)] = 1
    assert runs_of_labels(rare) == ""
    assert runs_of_labels(np.zeros(N, dtype=int)) == ""


def test_rows_that_repeat(rng):
    x = rng.normal(size=(N, 2))
    assert not repeats_of([*x.T]).any()
    assert np.flatnonzero(repeats_of([*np.concatenate([x, x[:50]]).T])).tolist() == [*range(N, N + 50)]
    few = rng.integers(0, 2, (N, 3)).astype(float)
    assert not repeats_of([*few.T]).any()


def test_a_look_has_all_signs(tmp_path, rng):
    y = rng.choice(["no", "yes"], N)
    found = warnings_of(
        tmp_path, a=rng.normal(size=N), action=np.where(y == "yes", "approved", rng.choice(["denied", "open"], N)),
        death=np.where(y == "yes", rng.integers(80, 92, N), np.nan), y=y,
    )  # fmt: skip
    assert found == [
        "action alone predicts every label: is it known before the label? (otherwise --drop action)",
        "death is present only where y is yes: is it known before the label? (otherwise --drop death)",
    ]
    [found] = warnings_of(tmp_path, i=range(N), a=rng.normal(size=N), y=np.sort(y))
    assert found.startswith(
        "the rows are sorted by the label y: it changes once in 1,000 rows; no selection can be judged"
    )
    x = rng.normal(size=(N, 2))
    [found] = warnings_of(tmp_path, a=[*x[:, 0]] * 2, b=[*x[:, 1]] * 2, y=[*y] * 2)
    assert found.startswith("50.0 % of the rows repeat the features of an earlier row")


def test_labels_spelt_in_several_ways(tmp_path, rng):
    y = rng.choice(["on", "ON", "On ", "off"], N)
    [found] = warnings_of(tmp_path, a=rng.normal(size=N), city=rng.choice(["Rome", "Oslo"], N), y=y)
    assert found.startswith("y contains one label in 3 spellings: ")
    assert found.endswith("; they are read as separate classes, so unify them")
    [found] = warnings_of(
        tmp_path, a=rng.normal(size=N), city=rng.choice(["Rome", "ROME", "Oslo"], N), y=y == "on"
    )
    assert found.startswith("city contains one text in 2 spellings: ")


def test_no_selection_is_recommended_for_rows_sorted_by_the_label(rng):
    X, y = rng.normal(size=(N, 3)), np.repeat([0, 1], N // 2)
    found = recommend((X, y), learner="naive-bayes")
    assert found.arguments() == "--selector none --learner naive-bayes"
    assert found.reason.startswith("No selection is recommended, since the rows are sorted by the label")
    run = prequential((X, y), None, GaussianNB(), baselines="none")
    assert "The label changes only 1 time in 900 rows: they are sorted by it" in run.remarks()[0]
    mixed = prequential((X, rng.permutation(y)), None, GaussianNB(), baselines="none")
    assert not any("sorted" in remark for remark in mixed.remarks())


def test_recommend_asks_about_a_column_that_reveals_the_label(rng):
    X = rng.normal(size=(N, 3))
    y = (X[:, 1] > 0).astype(int)
    X[:, 1] = np.exp(X[:, 1])
    frame = pd.DataFrame(X, columns=["a", "action", "c"]).assign(y=y)
    remarks = recommend(frame, label="y", learner="naive-bayes").run_remarks
    assert any(remark.startswith("action alone predicts ") for remark in remarks)
    assert not any("a alone" in remark for remark in remarks)
