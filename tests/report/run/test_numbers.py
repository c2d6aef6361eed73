import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.evaluate import PrequentialResult
from tamis.report.charts.thinning import bucket_starts, mean_per_bucket, thin, thin_band
from tamis.report.run import numbers
from tests.report.runs import make_run, with_truth


def selected_sets(run: PrequentialResult) -> list[set[int]]:
    """The selected set of each step, by replaying the changes one at a time."""
    events, sets, current = run.frames["changes"], [], set()
    for step in run.frames["steps"]["step"]:
        for at, feature, event in zip(events["step"], events["feature"], events["event"], strict=True):
            if at == step:
                (current.add if event == "enter" else current.discard)(int(feature))
        sets.append(set(current))
    return sets


@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(np.nan)), max_size=300), st.integers(1, 40))
def test_thin_keeps_the_extremes_in_order(values, half):
    y = np.array(values, float)
    x = np.arange(len(y), dtype=float)
    thin_x, thin_y = thin(x, y, 2 * half)
    assert len(thin_x) <= max(2 * half, 0)
    assert (np.diff(thin_x) >= 0).all()
    np.testing.assert_array_equal(thin_y, y[thin_x.astype(int)])
    if not np.isnan(y).all():
        assert np.nanmax(thin_y) == np.nanmax(y)
        assert np.nanmin(thin_y) == np.nanmin(y)


def test_thin_keeps_a_gap_that_can_be_seen():
    y = np.ones(10_000)
    y[3000:5000] = np.nan
    x, thinned = thin(np.arange(10_000), y)
    assert np.isnan(thinned).sum() == pytest.approx(0.2 * len(x), abs=2)
    assert ((x[np.isnan(thinned)] >= 3000) & (x[np.isnan(thinned)] < 5000)).all()


def test_band_encloses_every_point(rng):
    low = rng.normal(size=5003)
    high = low + 1
    x, thin_low, thin_high = thin_band(np.arange(5003), low, high, 100)
    assert len(x) == 100
    assert thin_low.min() == low.min()
    assert thin_high.max() == high.max()
    bucket = np.searchsorted(bucket_starts(5003, 100), np.arange(5003), side="right") - 1
    assert (low >= thin_low[bucket]).all()
    assert (high <= thin_high[bucket]).all()


@given(st.integers(0, 500), st.integers(1, 50))
def test_buckets_are_of_nearly_one_size(n, at_most):
    sizes = np.diff(np.append(bucket_starts(n, at_most), n))
    assert sizes.sum() == n
    assert len(sizes) == min(n, at_most)
    assert n == 0 or np.ptp(sizes) <= 1


def test_mean_per_bucket_skips_what_is_missing():
    mean = mean_per_bucket(np.array([1.0, np.nan, 3.0, 5.0, np.nan, np.nan]), 3)
    np.testing.assert_array_equal(mean, [1.0, 4.0, np.nan])


@pytest.mark.parametrize("n_steps", [1, 39, 173])
def test_selection_map_equals_the_replayed_sets(n_steps):
    run = make_run(n_steps, 30, 5, churn=0.7, seed=n_steps)
    sets = selected_sets(run)
    shown = numbers.selection_map(run, max_features=12, max_buckets=40)
    matrix = np.array([[j in chosen for chosen in sets] for j in range(30)])
    total = matrix.sum(axis=1)
    assert total[shown.features].tolist() == sorted(total, reverse=True)[: len(shown.features)]
    np.testing.assert_allclose(shown.kept, matrix[shown.features].mean(axis=1))
    parts = np.split(matrix[shown.features], bucket_starts(n_steps, 40)[1:], axis=1)
    np.testing.assert_allclose(shown.shares, np.stack([part.mean(axis=1) for part in parts], axis=1))
    assert shown.n_ever == (total > 0).sum()
    assert numbers.last_selection(run) == [f"x{j}" for j in sorted(sets[-1])]


def test_map_shows_the_truth_beside_what_was_kept():
    run = with_truth(make_run(40, 30, 5, churn=0.7), drift=0.6)
    shown = numbers.selection_map(run, max_features=12)
    assert shown.features[:3].tolist() == [1, 0, 29]  # all the time, for 24 steps, for 16
    expected = np.zeros((12, 40))
    expected[0], expected[1, :24], expected[2, 24:] = 1, 1, 1
    np.testing.assert_array_equal(shown.relevant, expected)
    sets = selected_sets(run)
    matrix = np.array([[j in chosen for chosen in sets] for j in shown.features])
    np.testing.assert_array_equal(shown.shares, matrix)
    pixels, palette = numbers.map_pixels(shown)
    colours = {
        (True, True): "relevant, kept",
        (True, False): "relevant, not kept",
        (False, True): "kept, not relevant",
    }
    for (row, column), is_relevant in np.ndenumerate(expected == 1):
        kept = matrix[row, column]
        found = tuple(palette[pixels[row, column]].tolist())
        if is_relevant or kept:
            assert found == numbers.MAP_COLOURS[colours[bool(is_relevant), bool(kept)]]
        else:
            assert found[3] == 0
    assert numbers.drift_rows(run).tolist() == [run.frames["steps"]["n_seen"][24]]


def test_map_is_empty_where_nothing_was_selected():
    run = make_run(5)
    run.frames["changes"] = {name: column[:0] for name, column in run.frames["changes"].items()}
    assert numbers.selection_map(run).shares.shape == (0, 5)
    assert numbers.selection_map(make_run(0)).names == []
    assert numbers.last_selection(run) == []


def test_score_lines_are_those_of_the_highest_ranks():
    run = make_run(50, 12, n_tracked=12)
    by_step = run.frames["scores"]["score"].reshape(50, 12)
    borda = by_step.argsort(axis=1).argsort(axis=1).sum(axis=0)
    at, lines = numbers.score_lines(run, 4)
    np.testing.assert_array_equal(at, run.frames["steps"]["n_seen"])
    assert {line.name for line in lines} == {f"x{j}" for j in np.argsort(-borda)[:4]}
    assert [line.last for line in lines] == sorted((line.last for line in lines), reverse=True)
    for line in lines:
        np.testing.assert_array_equal(line.scores, by_step[:, int(line.name[1:])])


def test_score_line_pauses_while_its_feature_is_not_tracked():
    run = make_run(4, 2, 1)
    scores = {"step": [0, 0, 1, 3, 3], "feature": [0, 1, 1, 0, 1], "score": [2.0, 1.0, 1.5, -1.0, -2.0]}
    run.frames["scores"] = {name: np.array(column) for name, column in scores.items()}
    at, (first, second) = numbers.score_lines(run)
    np.testing.assert_array_equal(at, [200, 300, 500])  # nothing was recorded at step 2
    np.testing.assert_array_equal(first.scores, [2.0, np.nan, -1.0])
    np.testing.assert_array_equal(second.scores, [1.0, 1.5, -2.0])


@pytest.mark.parametrize(
    "scores", [None, {}, {"step": np.zeros(0), "feature": np.zeros(0, int), "score": np.zeros(0)}]
)
def test_no_score_lines_without_scores(scores):
    run = make_run(4)
    del run.frames["scores"]
    if scores is not None:
        run.frames["scores"] = scores
    assert numbers.score_lines(run)[1] == []


def test_changes_are_the_differences_of_the_sets():
    run = make_run(80, 20, 5, churn=0.5)
    sets = selected_sets(run)
    differ = [t for t in range(1, 80) if sets[t] != sets[t - 1]]
    latest = numbers.changes(run, 7)
    assert [change.step for change in latest] == differ[::-1][:7]
    for change in latest:
        assert set(change.entered) == {f"x{j}" for j in sets[change.step] - sets[change.step - 1]}
        assert set(change.left) == {f"x{j}" for j in sets[change.step - 1] - sets[change.step]}
        assert change.n_seen == 200 + 100 * change.step


def test_largest_changes_come_first():
    run = make_run(3, 6, 1)
    events = [(0, 0, "enter"), (1, 1, "enter"), (1, 2, "enter"), (1, 0, "leave"), (2, 1, "leave")]
    step, feature, event = zip(*events, strict=True)
    run.frames["changes"] = {
        "step": np.array(step),
        "feature": np.array(feature),
        "name": np.array([f"x{j}" for j in feature], object),
        "event": np.array(event, object),
    }
    assert [(change.step, change.n_features) for change in numbers.changes(run, 5, largest=True)] == [
        (1, 3),
        (2, 1),
    ]
    assert numbers.changes(run, 5, largest=True)[0].left == ["x0"]


def test_change_rates_count_every_change_but_the_first_selection():
    run = make_run(437, 20, 5, churn=0.5)
    entered, left, edges = numbers.change_rates(run, 50)
    sizes = np.diff(edges) / 100
    steps = run.frames["steps"]
    assert (entered * sizes).sum() == pytest.approx(steps["n_entered"][1:].sum())
    assert (left * sizes).sum() == pytest.approx(steps["n_left"].sum())
    assert (edges[0], edges[-1]) == (100, 43_800)


def test_one_leap_does_not_flatten_the_other_changes():
    usual = np.ones(200)
    leap = usual.copy()
    leap[3] = 500
    assert numbers.most_changes(usual, usual) == 1
    assert numbers.most_changes(leap, usual) < 5
    assert numbers.most_changes(np.zeros(3), np.zeros(3)) == 1
