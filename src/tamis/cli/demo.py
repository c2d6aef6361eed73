"""`tamis demo`: a selection that follows concept drift on bundled data, and one that raises accuracy; works offline."""

from __future__ import annotations

import textwrap
from multiprocessing import get_context
from typing import Annotated, Any

from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.run import RunOutput, evaluate
from tamis.cli.warm_up import compile_missing
from tamis.options import RunOptions

__all__: list[str] = []

_BENEFIT = """\
Is selection worth it? 300 sensors measure 20 signals, and the cause of an alarm
changes halfway. Prequential accuracy of logistic regression with

  all 300 sensors                    {all:.3f}
  9 random sensors                   {random:.3f}   mean of {n_draws} draws
  9 sensors selected once            {frozen:.3f}   L1 logistic regression, 1,000 rows
  9 sensors selected by `forward`    {forward:.3f}   updated while rows arrive
"""
_BEFORE_THE_DEMO = """\
Concept drift: electricity prices in New South Wales, every half hour from
May 1996 to December 1998. Label: is the price above the mean of the last 24 h?
For each batch of 100 rows, FIRES selects 3 of 8 features for a perceptron.
"""
_AFTER_THE_DEMO = """\
vicprice, the price in Victoria, is constant until that market opens in May 1997. FIRES selects it in {before:.0%} \
of the batches before and in {after:.0%} after. The perceptron's accuracy is {three:.3f} with the 3 selected features \
and {all:.3f} with all 8.

{benefit}
A page with every figure:  tamis demo --report demo.html
Your own file:             tamis run FILE --label NAME"""


@command()
def demo(
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Show a selection that follows concept drift; works offline.

    A second selection, from 300 sensors, raises accuracy.

    Parameters
    ----------
    report : FILE
        Write an HTML report.

    Examples
    --------
    `tamis demo --report demo.html`
    """
    output = RunOutput(as_json, quiet, report)
    output.check([], force)
    return _show(output)


def _show(output: RunOutput) -> int:
    """Run the bundled stream, in which a feature becomes relevant, and print the main results."""
    if not output.as_json:
        print(_BEFORE_THE_DEMO, flush=True)
    compile_missing("demo", quiet=output.quiet)
    from tamis.learners.linear import Perceptron
    from tamis.rows import FIRES
    from tamis.streams import load_dataset

    stream = load_dataset("electricity")
    names = stream.feature_names or []
    options = RunOptions(baselines="both")
    with get_context("spawn").Pool(1) as pool:
        benefit = pool.apply_async(_benefit)
        result = evaluate(stream, FIRES(n_features_to_select=3), Perceptron(), output, options)
        if result.settings["interrupted"]:
            return output.finish_run(result)
        pays = benefit.get()
    everything = result.summary()["all_accuracy"]
    column = stream.take(stream.n_rows or 1)[0][:, names.index("vicprice")]
    opened = int((column != column[0]).argmax())
    split = int((result.frames["steps"]["n_seen"] <= opened).sum())
    chosen = dict(zip(names, result.selection_map().T, strict=True))
    before, after = (
        {name: float(c[part].mean()) for name, c in chosen.items()}
        for part in (slice(split), slice(split, None))
    )
    lesson = _AFTER_THE_DEMO.format(
        benefit=_BENEFIT.format(**pays),
        before=before["vicprice"],
        after=after["vicprice"],
        three=result.summary()["accuracy"],
        all=everything,
    )
    lines = (textwrap.fill(line, 80) if len(line) > 80 else line for line in lesson.splitlines())
    lesson = "\n".join(lines)
    result.event = (opened, "Victoria's market opens")
    return output.finish_run(
        result, closing=lesson, market_opened_at_row=opened, accuracy_of_every_feature=everything,
        chosen_before=before, chosen_after=after, pays=pays,
    )  # fmt: skip


def sensors(seed: int = 0, n_rows: int = 6000, noise: float = 0.1) -> tuple[Any, Any]:
    """Return 300 sensors that measure 20 signals, and a state of two signals, one of which is replaced halfway.

    Parameters
    ----------
    seed : int, default=0
    n_rows : int, default=6000
    noise : float, default=0.1
        Standard deviation of a sensor's noise; that of a signal is 1.

    Returns
    -------
    X : ndarray of shape (n_rows, 300)
    y : ndarray of bool, shape (n_rows,)
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(n_rows, 20))
    X = signals[:, rng.integers(0, 20, 300)] + noise * rng.normal(size=(n_rows, 300))
    before, after = signals[:, 3] + signals[:, 8], signals[:, 11] - signals[:, 3]
    return X, np.where(np.arange(n_rows) < n_rows // 2, before, after) > 0


def _benefit() -> dict[str, Any]:
    """Return the accuracy with all sensors, and with nine: random, selected once, or by `forward`."""
    from tamis.evaluate import prequential
    from tamis.rows import ForwardPartialCorrelation

    n_draws = 4
    result = prequential(
        sensors(), ForwardPartialCorrelation(9), baselines="both", n_draws=n_draws, auc=False
    )
    names = {
        "forward": "accuracy",
        "random": "random_accuracy",
        "all": "all_accuracy",
        "frozen": "frozen_accuracy",
    }
    return {**{name: result.summary()[key] for name, key in names.items()}, "n_draws": n_draws}
