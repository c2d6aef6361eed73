"""A walk through the first ten minutes: Python calls with what strangers pass, and every page as it looks.

    python experiments/first_contact.py calls                     15 inputs through nine doors: 135 calls
    python experiments/first_contact.py screens FOLDER [SITE]     twelve pages, two widths, light and dark: 48 pictures
    python experiments/public_files.py                            24 public files, by the command line

A call ends in an answer, or in one sentence that says what to pass; anything else is a stumble, and the exit code
counts them. Screens needs Selenium and Chromium; SITE is the folder of the built documentation.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tamis
from tamis.errors import TamisError

ROWS = 240
STUMBLES = ("Traceback", "NoneType", "object at 0x", "\n")


def inputs() -> dict[str, tuple[Any, Any]]:
    """Return rows and labels as strangers have them, by what is peculiar about them."""
    import pandas as pd
    import polars as pl
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 5))
    y = (X[:, 1] + 0.3 * rng.normal(size=ROWS) > 0).astype(int)
    names = ["heat", "sound", "light", "pressure", "time"]
    frame = pd.DataFrame(X, columns=names)
    state = np.where(y == 1, "on", "off")
    text = frame.assign(sound=np.where(X[:, 1] > 0, "high", "low"))
    holes = frame.mask(rng.random((ROWS, 5)) < 0.1)
    comma = frame.map(lambda value: f"{value:.3f}".replace(".", ","))
    dated = frame.assign(time=pd.date_range("2026-01-01", periods=ROWS, freq="h", tz="Europe/Vienna"))
    kinds = frame.assign(sound=(X[:, 1] > 0), light=pd.array(rng.integers(0, 9, ROWS), dtype="Int64"))
    return {
        "arrays": (X, y),
        "lists": (X.tolist(), y.tolist()),
        "a frame, labels of text": (frame, pd.Series(state)),
        "Polars": (pl.DataFrame(X, schema=names), pl.Series(state)),
        "Arrow": (pl.DataFrame(X, schema=names).to_arrow(), pl.Series(y).to_arrow()),
        "a column of text": (text, y),
        "missing values": (holes, y),
        "a column of times": (dated, state),
        "booleans and nullable integers": (kinds, y),
        "decimal commas": (comma, y),
        "sparse, by columns": (sp.csc_array(np.where(np.abs(X) > 1, X, 0.0)), y),
        "infinite values": (np.where(X > 2, np.inf, X), y),
        "missing labels": (X, np.where(np.arange(ROWS) % 7 == 0, np.nan, y)),
        "labels as a frame": (frame, pd.DataFrame({"state": state})),
        "more labels than rows": (X, np.r_[y, y]),
    }


def doors() -> dict[str, Callable[[Any, Any], Any]]:
    """Return what a newcomer calls first, with default parameters where there are any."""
    from tamis import (
        FIRES,
        AdaptiveIFC2F,
        AlphaInvesting,
        Auto,
        ForwardPartialCorrelation,
        HoeffdingTree,
        Perceptron,
        StreamPipeline,
        TScore,
        prequential,
    )

    def evaluated(X: Any, y: Any) -> Any:
        return prequential((X, y), FIRES(2), batch_size=20).summary()["accuracy"]

    return {
        "FIRES(2).fit": lambda X, y: FIRES(2).fit(X, y).get_support(),
        "Auto().fit_transform": lambda X, y: Auto().fit_transform(X, y),
        "TScore(2).partial_fit": lambda X, y: TScore(2).partial_fit(X, y).transform(X),
        "ForwardPartialCorrelation(2).fit": lambda X, y: (
            ForwardPartialCorrelation(2).fit(X, y).get_feature_names_out()
        ),
        "StreamPipeline.fit.predict": lambda X, y: (
            StreamPipeline(FIRES(2), Perceptron()).fit(X, y).predict(X)
        ),
        "HoeffdingTree().fit.predict": lambda X, y: HoeffdingTree().fit(X, y).predict(X),
        "prequential((X, y), FIRES(2))": evaluated,
        "AlphaInvesting().fit": lambda X, y: AlphaInvesting().fit(X, y).selected_,
        "AdaptiveIFC2F(0.01).fit.predict": lambda X, y: AdaptiveIFC2F(0.01).fit(X, y).predict(X),
    }


def calls() -> Iterator[tuple[str, str, str, str]]:
    """Yield each call: the door, the input, "answer", "sentence" or "stumble", and what was said."""
    for door, call in doors().items():
        for what, (X, y) in inputs().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(X, y)
                except (TamisError, TypeError) as error:
                    said = str(error)
                    ours = isinstance(error, TamisError) or said.endswith("pass X.toarray().")
                    stumble = not ours or any(mark in said for mark in STUMBLES) or len(said) > 400
                    yield door, what, "stumble" if stumble else "sentence", said
                except Exception as error:
                    yield door, what, "stumble", f"{type(error).__name__}: {error}"
                else:
                    yield door, what, "answer", ""


def pages(folder: Path) -> Iterator[Path]:
    """Write the pages of nine kinds of results and yield their paths."""
    from tamis import FIRES, OFS, FixedSubset, IncrementalPFI, Watch, load_dataset
    from tamis.cells.acquisition_result import AcquisitionResult
    from tamis.cells.paper_tree import PaperTree
    from tamis.cells.records import replay_records
    from tamis.cli import main

    stream = load_dataset("electricity")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 4)) + y[:, None]
    X[::5, 0] = np.nan
    fitted = FixedSubset(0.01, n_features=2).fit(X[:400], y[:400])
    rows = rng.normal(size=(2000, 4))
    state = (rows[:, 0] + rng.normal(size=2000) > 0).astype(int)
    watch = Watch(lambda part: 1 / (1 + np.exp(-2 * part[:, 0])), importance=IncrementalPFI())
    for at in range(0, 2000, 100):
        watch.update(rows[at : at + 100], y=state[at : at + 100])
    results: dict[str, Any] = {
        "run": tamis.prequential(stream.take(8000), FIRES(3), baselines="both"),
        "recommendation": tamis.recommend(stream.take(2000), learner="logistic"),
        "comparison": tamis.run_experiment(["electricity", "SEA"], [FIRES(3), OFS(3)], max_rows=2000),
        "acquisition": AcquisitionResult(fitted, X[:400], y[:400], X[400:], y[400:]),
        "records": replay_records(fitted, X, y),
        "tree": PaperTree(fitted, X, y),
        "watch": watch,
    }
    for name, result in results.items():
        result.report(folder / f"{name}.html")
        yield folder / f"{name}.html"
    for name, line in {
        "screen": ["screen", "--dataset", "electricity", "--score", "mi"],
        "demo": ["demo"],
    }.items():
        main([*line, "--quiet", "--report", str(folder / f"{name}.html")])
        yield folder / f"{name}.html"


def screens(folder: Path, site: Path | None) -> int:
    """Take the pictures; return how many pages are wider than their screen."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    folder.mkdir(parents=True, exist_ok=True)
    wide = 0
    with tempfile.TemporaryDirectory() as work:
        shown = list(pages(Path(work)))
        if site:
            shown += [site / page for page in ("index.html", "api/gallery.html", "api/first_notebook.html")]
        driver = webdriver.Chrome(options=options)
        try:
            for page in shown:
                for width in (1440, 390):
                    for scheme in ("light", "dark"):
                        wide += _picture(driver, page, width, scheme, folder)
        finally:
            driver.quit()
    return wide


def _picture(driver: Any, page: Path, width: int, scheme: str, folder: Path) -> int:
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.resolve().as_uri())
    measured = driver.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": min(measured[1], 6000)})
    driver.save_screenshot(str(folder / f"{page.stem}_{width}_{scheme}.png"))
    wider = measured[0] > width
    print(
        f"{page.stem:15} {width:5} {scheme:5} {measured[1]:6} px high{', wider than the screen' if wider else ''}"
    )
    return int(wider)


if __name__ == "__main__":
    if sys.argv[1:2] == ["screens"]:
        sys.exit(screens(Path(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None))
    if sys.argv[1:] != ["calls"]:
        sys.exit(__doc__)
    counts: dict[str, int] = {}
    for door, what, kind, said in calls():
        counts[kind] = counts.get(kind, 0) + 1
        if kind != "answer":
            print(f"{kind:8} {door:34} {what:32} {said}")
    print(counts)
    sys.exit(counts.get("stumble", 0))
