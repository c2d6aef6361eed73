"""A run states how many independent rows a series counts as: labels and targets, resumed, in the report."""

import numpy as np
import pytest

from tamis import FIRES, prequential
from tests.evaluate.prequential.test_prequential import stop_after


def rows(rng, length, numbers=False):
    """1,200 rows whose label or target stays the same for `length` rows."""
    kept = rng.normal(size=1200) if numbers else rng.choice(["a", "b"], size=1200)
    return rng.normal(size=(1200, 4)), np.repeat(kept, length)[:1200]


def run(data, **options):
    model = FIRES(2, model="gaussian") if data[1].dtype.kind == "f" else FIRES(2)
    return prequential(data, model, baselines="none", **options)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_series_counts_as_fewer_rows(rng, numbers):
    result = run(rows(rng, 10, numbers))
    found = result.settings["dependence"]
    assert found["n_rows"] == 1200
    assert 80 < found["n_effective"] < 240  # 120 in truth
    note = f"rows are autocorrelated: 1,200 rows count as {found['n_effective']:,.0f}"
    assert result.dependence_note() == note


def test_independent_rows_are_not_mentioned(rng, tmp_path):
    result = run(rows(rng, 1))
    assert result.dependence_note() == ""
    result.report(tmp_path / "page.html")
    assert "autocorrelated" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_resumed_run_counts_as_one_run(rng, tmp_path):
    data, path = rows(rng, 10), tmp_path / "run.tamis"
    whole = run(data)
    run(data, checkpoint=path, checkpoint_every=1, on_step=stop_after(6), on_interrupt="return")
    again = run(data, checkpoint=path)
    assert again.dependence_note() == whole.dependence_note() != ""
    again.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"The {again.dependence_note()}." in page
