import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.evaluate import PrequentialResult
from tamis.evaluate.prequential.selection_history import MAP_COLOURS
from tamis.report.charts.chart import HeatStrip, Line, bucket_starts, mean_per_bucket, thin, thin_band
from tests.report.runs import make_run, with_truth


def places(names):
    return [int(name[1:]) for name in names]


def score_lines(run):
    """Return the lines of the chart of the scores."""
    charts = [chart for chart in run.charts() if chart.key == "sco"]
    return [mark for chart in charts for mark in chart.marks if isinstance(mark, Line)]


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
    shown = run.history.map(max_features=12, max_buckets=40)
    features = places(shown.names)
    matrix = np.array([[j in chosen for chosen in sets] for j in range(30)])
    total = matrix.sum(axis=1)
    assert total[features].tolist() == sorted(total, reverse=True)[: len(features)]
    np.testing.assert_allclose(shown.kept, matrix[features].mean(axis=1))
    parts = np.split(matrix[features], bucket_starts(n_steps, 40)[1:], axis=1)
    np.testing.assert_allclose(shown.shares, np.stack([part.mean(axis=1) for part in parts], axis=1))
    assert shown.n_ever == (total > 0).sum()
    assert run.selected() == [f"x{j}" for j in sorted(sets[-1])]


def test_map_shows_the_truth_beside_what_was_kept():
    run = with_truth(make_run(40, 30, 5, churn=0.7), drift=0.6)
    shown = run.history.map(max_features=12)
    assert shown.names[:3] == ["x1", "x0", "x29"]  # all the time, for 24 steps, for 16
    expected = np.zeros((12, 40))
    expected[0], expected[1, :24], expected[2, 24:] = 1, 1, 1
    np.testing.assert_array_equal(shown.relevant, expected)
    sets = selected_sets(run)
    matrix = np.array([[j in chosen for chosen in sets] for j in places(shown.names)])
    np.testing.assert_array_equal(shown.shares, matrix)
    [strip] = [mark for mark in run.map_chart(shown).marks if isinstance(mark, HeatStrip)]
    colours = {
        (True, True): "relevant, kept",
        (True, False): "relevant, not kept",
        (False, True): "kept, not relevant",
    }
    for (row, column), is_relevant in np.ndenumerate(expected == 1):
        kept = matrix[row, column]
        found = tuple(strip.palette[strip.pixels[row, column]].tolist())
        if is_relevant or kept:
            assert found == MAP_COLOURS[colours[bool(is_relevant), bool(kept)]]
        else:
            assert found[3] == 0
    assert run.drift_rows.tolist() == [run.frames["steps"]["n_seen"][24]]


def test_map_is_empty_where_nothing_was_selected():
    run = make_run(5)
    run.frames["changes"] = {name: column[:0] for name, column in run.frames["changes"].items()}
    assert run.history.map().shares.shape == (0, 5)
    assert make_run(0).history.map().names == []
    assert run.selected() == []


def test_score_lines_are_those_of_the_highest_ranks():
    run = make_run(50, 12, n_tracked=12)
    by_step = run.frames["scores"]["score"].reshape(50, 12)
    borda = by_step.argsort(axis=1).argsort(axis=1).sum(axis=0)
    lines = score_lines(run)
    assert {line.name for line in lines} == {f"x{j}" for j in np.argsort(-borda)[:6]}
    last = [line.y[-1] for line in lines]
    assert last == sorted(last, reverse=True)
    for line in lines:
        np.testing.assert_array_equal(line.x, run.frames["steps"]["n_seen"])
        np.testing.assert_array_equal(line.y, by_step[:, int(line.name[1:])])


def test_score_line_pauses_while_its_feature_is_not_tracked():
    run = make_run(4, 2, 1)
    scores = {"step": [0, 0, 1, 3, 3], "feature": [0, 1, 1, 0, 1], "score": [2.0, 1.0, 1.5, -1.0, -2.0]}
    run.frames["scores"] = {name: np.array(column) for name, column in scores.items()}
    first, second = score_lines(run)
    np.testing.assert_array_equal(first.x, [200, 300, 500])  # nothing was recorded at step 2
    np.testing.assert_array_equal(first.y, [2.0, np.nan, -1.0])
    np.testing.assert_array_equal(second.y, [1.0, 1.5, -2.0])


@pytest.mark.parametrize(
    "scores", [None, {}, {"step": np.zeros(0), "feature": np.zeros(0, int), "score": np.zeros(0)}]
)
def test_no_score_lines_without_scores(scores):
    run = make_run(4)
    del run.frames["scores"]
    if scores is not None:
        run.frames["scores"] = scores
    assert score_lines(run) == []


def test_changes_are_the_differences_of_the_sets():
    run = make_run(80, 20, 5, churn=0.5)
    sets = selected_sets(run)
    differ = [t for t in range(1, 80) if sets[t] != sets[t - 1]]
    latest = run.history.largest_changes(7)
    assert [change.n_seen for change in latest] == [200 + 100 * step for step in differ[::-1][:7]]
    for change, step in zip(latest, differ[::-1], strict=False):
        assert set(change.entered) == {f"x{j}" for j in sets[step] - sets[step - 1]}
        assert set(change.left) == {f"x{j}" for j in sets[step - 1] - sets[step]}


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
    largest = run.history.largest_changes(5, by_size=True)
    assert [(change.n_seen, change.n_features) for change in largest] == [(300, 3), (400, 1)]
    assert largest[0].left == ["x0"]


def test_change_counts_are_whole_and_have_every_change_but_the_first_selection():
    run = make_run(437, 20, 5, churn=0.5)
    entered, left, edges = run.history.change_counts(50)
    steps = run.frames["steps"]
    assert entered.sum() == steps["n_entered"][1:].sum()
    assert left.sum() == steps["n_left"].sum()
    assert (entered == entered.round()).all()
    assert (edges[0], edges[-1]) == (100, 43_800)


@pytest.mark.parametrize(("leap", "most"), [(0, 1.0), (500, 5.0)])
def test_one_leap_does_not_flatten_the_other_changes(leap, most):
    run = make_run(100, 20, 5, churn=1.0)
    run.frames["steps"]["n_entered"][30] += leap
    [chart] = [chart for chart in run.charts() if chart.key == "cha"]
    assert 1.0 <= chart.y.high <= most + 0.5
    assert ("Cut off: 1 bar" in chart.caption) == (leap > 0)
