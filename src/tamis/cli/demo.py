"""`tamis demo`: a selection that follows a drift on bundled data, then one that raises the accuracy; works offline."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tamis.cli.options import AsJSON, Debug, Force, Quiet, option
from tamis.cli.run import Output, evaluate
from tamis.options import RunOptions

__all__ = ["add"]

_BENEFIT = """\
Does a selection pay? 300 sensors repeat 20 signals, and what causes an alarm
changes halfway. Accuracy of a perceptron, test first, then train, with

  every sensor                       {all:.3f}
  9 sensors drawn by chance          {random:.3f}   mean of {n_draws} draws
  9 sensors frozen after 1,000 rows  {frozen:.3f}   L1-regularised logistic regression
  9 sensors kept by `forward`        {forward:.3f}   they change with the cause
"""
_BEFORE_THE_DEMO = """\
Concept drift: electricity in New South Wales, each half hour from
May 1996 to December 1998: is the price above its mean of the last day? Before
each batch of 100 rows FIRES chooses 3 of 8 columns; a perceptron sees no others.
"""
_AFTER_THE_DEMO = """\
vicprice, the price in Victoria, stood still until that market opened in May 1997. FIRES chose it in {before:.0%} \
of the batches before and in {after:.0%} after. Its 3 columns bring the perceptron to an accuracy of {three:.3f}; \
with all 8 it comes to {all:.3f}.

{benefit}
A page with every figure:  tamis demo --report demo.html
Your own file:             tamis run FILE --label NAME"""


def add(root: typer.Typer) -> None:
    """Add the command."""
    root.command(epilog="Example: [bold]tamis demo --report demo.html[/]")(demo)


def demo(
    report: Annotated[str | None, option("Output", "FILE", "Write an HTML report.")] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Watch a selection that follows a market as it changes, and one that pays; no network needed."""
    output = Output(report, None, None, as_json, quiet)
    output.check([], force)
    return _show(output)


def _show(output: Output) -> int:
    """Run the bundled stream, in which a feature becomes relevant, and point out the main results."""
    if not output.as_json:
        print(_BEFORE_THE_DEMO, flush=True)
    from tamis.learners.linear import Perceptron
    from tamis.rows import FIRES
    from tamis.streams import load_dataset
    from tamis.terminal import chosen_steps

    stream = load_dataset("electricity")
    names = stream.feature_names or []
    options = RunOptions(baselines="both")
    result = evaluate(stream, FIRES(n_features_to_select=3), Perceptron(), output, options)
    if result.settings["interrupted"]:
        return output.finish(result)
    everything = result.summary()["all_accuracy"]
    column = stream.take(stream.n_rows or 1)[0][:, names.index("vicprice")]
    opened = int((column != column[0]).argmax())
    split = int((result.frames["steps"]["n_seen"] <= opened).sum())
    chosen = {name: chosen_steps(result, j) for j, name in enumerate(names)}
    before, after = (
        {name: float(c[part].mean()) for name, c in chosen.items()}
        for part in (slice(split), slice(split, None))
    )
    pays = _benefit()
    lesson = _AFTER_THE_DEMO.format(
        benefit=_BENEFIT.format(**pays),
        before=before["vicprice"],
        after=after["vicprice"],
        three=result.summary()["accuracy"],
        all=everything,
    )
    event = (split, "Victoria's market opens")
    return output.finish(
        result, event=event, closing=lesson, market_opened_at_row=opened, accuracy_of_every_feature=everything,
        chosen_before=before, chosen_after=after, pays=pays,
    )  # fmt: skip


def sensors(seed: int = 0, n_rows: int = 6000) -> tuple[Any, Any]:
    """Return 300 sensors that repeat 20 signals, and a state of three signals, two of which change after half the rows.

    Parameters
    ----------
    seed : int, default=0
    n_rows : int, default=6000

    Returns
    -------
    X : ndarray of shape (n_rows, 300)
    y : ndarray of bool, shape (n_rows,)
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(n_rows, 20))
    scale, shift = rng.uniform(0.5, 20.0, 300), rng.uniform(-500.0, 500.0, 300)
    X = signals[:, rng.integers(0, 20, 300)] * scale + 0.7 * rng.normal(size=(n_rows, 300)) + shift
    before = signals[:, 3] + 0.8 * signals[:, 8] + 0.6 * signals[:, 14]
    after = signals[:, 11] - signals[:, 3] + 0.6 * signals[:, 5]
    return X, np.where(np.arange(n_rows) < n_rows // 2, before, after) > 0


def _benefit() -> dict[str, Any]:
    """Run a perceptron on the sensors: with all of them, and with nine by chance, frozen, or kept by `forward`."""
    from tamis.evaluate import prequential
    from tamis.learners.linear import Perceptron
    from tamis.rows import ForwardPartialCorrelation

    n_draws = 4
    result = prequential(
        sensors(), ForwardPartialCorrelation(9), Perceptron(), baselines="both", n_draws=n_draws, auc=False
    )
    names = {
        "forward": "accuracy",
        "random": "random_accuracy",
        "all": "all_accuracy",
        "frozen": "frozen_accuracy",
    }
    return {**{name: result.summary()[key] for name, key in names.items()}, "n_draws": n_draws}
