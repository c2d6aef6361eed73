"""`tamis demo`: a selection that raises the accuracy, then one that follows a drift, on bundled data; works offline."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from tamis.cli.options import AsJSON, Debug, Force, Quiet, option
from tamis.cli.run import Output, evaluate
from tamis.options import RunOptions

__all__ = ["add"]

_BENEFIT = """\
Does a selection pay? 569 tumours, 30 numbers about the cells of each: is it
malignant? Accuracy of naive Bayes, test first, then train, the mean over three
random orders of the rows, with

  every column               {all:.3f}
  6 columns drawn by chance  {random:.3f}   mean of {n_draws} draws
  6 that add to one another  {forward:.3f}   chosen by `forward`, in the end:
  {names}
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
    """Watch a selection that pays, and one that follows a market as it changes; no network needed."""
    output = Output(report, None, None, as_json, quiet)
    output.check([], force)
    return _show(output)


def _show(output: Output) -> int:
    """Run the bundled stream, in which a feature comes alive, and say what there is to see."""
    pays = _benefit()
    if not output.as_json:
        listed = textwrap.fill(", ".join(pays["names"]), 78, subsequent_indent="  ")
        print(_BENEFIT.format(**{**pays, "names": listed}), flush=True)
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
    lesson = _AFTER_THE_DEMO.format(
        before=before["vicprice"], after=after["vicprice"], three=result.summary()["accuracy"], all=everything
    )
    event = (split, "Victoria's market opens")
    return output.finish(
        result, event=event, closing=lesson, market_opened_at_row=opened, accuracy_of_every_feature=everything,
        chosen_before=before, chosen_after=after, pays=pays,
    )  # fmt: skip


def _benefit() -> dict[str, Any]:
    """Run naive Bayes on scikit-learn's tumours: with all columns, with a fifth of them, and with as many by chance."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    from tamis.evaluate import prequential
    from tamis.rows import ForwardPartialCorrelation

    data, n_draws, found = load_breast_cancer(), 4, []
    for order in range(3):
        at = np.random.default_rng(order).permutation(len(data.target))
        selector = ForwardPartialCorrelation(6)
        result = prequential(
            (data.data[at], data.target[at]), selector, GaussianNB(),
            batch_size=25, baselines="both", n_draws=n_draws, auc=False,
        )  # fmt: skip
        found.append(result.summary())
    metrics = {"forward": "accuracy", "random": "random_accuracy", "all": "all_accuracy"}
    return {
        **{name: float(np.mean([one[key] for one in found])) for name, key in metrics.items()},
        "n_draws": 3 * n_draws,
        "names": data.feature_names[selector.get_support()].tolist(),
    }
