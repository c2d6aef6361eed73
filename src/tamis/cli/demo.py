"""`tamis demo`: a selection that raises accuracy under concept drift, and one that does not pay; works offline."""

from __future__ import annotations

from multiprocessing import get_context
from typing import Annotated, Any

from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.run import RunOutput, evaluate
from tamis.cli.warm_up import compile_missing
from tamis.options import RunOptions

_BEFORE_THE_DEMO = """\
300 sensors measure 20 signals, many of them the same one, with noise. An alarm
has two causes, signals 3 and 8; after 6,000 of 12,000 rows they are 3 and 11.
`forward` selects nine sensors for logistic regression while the rows arrive.
"""
_AFTER_THE_DEMO = """\
Accuracy, each row predicted before it is learned:

  9 sensors selected by `forward`    {own:.3f}   updated while rows arrive
  all 300 sensors                    {all:.3f}
  9 sensors selected once            {frozen:.3f}   L1 logistic regression, 1,000 rows
  9 random sensors                   {random:.3f}   mean of {n_draws} draws

Why: copies of a signal add noise to the model, and one of each is enough. A
sensor of signal 11 is selected {late} rows after it became a cause; a selection
made once cannot follow.

Where it does not pay: the price of electricity in New South Wales, 45,312 half
hours, 8 features of which few are redundant. FIRES selects 3 for a perceptron:

  the previous label, no feature     {no_change:.3f}
  3 features selected once           {once:.3f}
  all 8 features                     {every:.3f}
  3 features selected by `fires`     {fires:.3f}

Keep all 8 there. Each run has these baselines, and its verdict says what pays.

A page with every figure:  tamis demo --report demo.html
Your own file:             tamis run FILE --label NAME"""


@command()
def demo(
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Show a selection that pays, and one that does not; works offline.

    Nine of 300 sensors are more accurate than all of them, and follow concept drift.

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
    """Run the sensors, of which few are needed, and print the results beside those of a stream of other kind."""
    if not output.as_json:
        print(_BEFORE_THE_DEMO, flush=True)
    compile_missing("demo", quiet=output.quiet)
    from tamis.learners.linear import SGDLogisticRegression
    from tamis.rows import ForwardPartialCorrelation
    from tamis.streams import ArrayStream

    X, y = sensors()
    signal = signal_of_sensors()
    places = [int((signal[:j] == k).sum()) + 1 for j, k in enumerate(signal)]
    names = [f"s{k}.{place}" for k, place in zip(signal, places, strict=True)]
    stream = ArrayStream(X, y, feature_names=names)
    with get_context("spawn").Pool(1) as pool:
        other = pool.apply_async(_electricity)
        result = evaluate(
            stream,
            ForwardPartialCorrelation(9),
            SGDLogisticRegression(learning_rate="constant"),
            output,
            RunOptions(baselines="both"),
        )
        if result.settings["interrupted"]:
            return output.finish_run(result)
        loses = other.get()
    total, seen = result.summary(), result.frames["steps"]["n_seen"]
    follows = result.selection_map()[:, signal == 11].any(axis=1) & (seen > len(y) // 2)
    late = int(seen[follows.argmax()]) - len(y) // 2
    pays = {
        "own": total["accuracy"], "all": total["all_accuracy"], "frozen": total["frozen_accuracy"],
        "random": total["random_accuracy"],
    }  # fmt: skip
    lesson = _AFTER_THE_DEMO.format(**pays, **loses, late=late, n_draws=RunOptions().n_draws)
    result.event = (len(y) // 2, "Signal 11 replaces 8")
    return output.finish_run(result, closing=lesson, pays=pays, loses=loses, rows_to_follow=late)


def signal_of_sensors(seed: int = 0, n_rows: int = 12_000) -> Any:
    """Return the signal that each sensor measures, shape (300,)."""
    return _signals(seed, n_rows)[2]


def _signals(seed: int, n_rows: int) -> tuple[Any, Any, Any]:
    """Return the generator, the 20 signals, and the one that each sensor measures."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n_rows, 20)), rng.integers(0, 20, 300)


def sensors(seed: int = 0, n_rows: int = 12_000, noise: float = 0.1) -> tuple[Any, Any]:
    """Return 300 sensors that measure 20 signals, and a state of two signals, one of which is replaced halfway.

    Parameters
    ----------
    seed : int, default=0
    n_rows : int, default=12,000
    noise : float, default=0.1
        Standard deviation of a sensor's noise; that of a signal is 1.

    Returns
    -------
    X : ndarray of shape (n_rows, 300)
    y : ndarray of bool, shape (n_rows,)
    """
    import numpy as np

    rng, signals, measured = _signals(seed, n_rows)
    X = signals[:, measured] + noise * rng.normal(size=(n_rows, 300))
    before, after = signals[:, 3] + signals[:, 8], signals[:, 11] - signals[:, 3]
    return X, np.where(np.arange(n_rows) < n_rows // 2, before, after) > 0


def _electricity() -> dict[str, float]:
    """Return the accuracy on electricity with three features, all of them, three selected once, and none."""
    from tamis.evaluate import prequential
    from tamis.learners.linear import Perceptron
    from tamis.rows import FIRES
    from tamis.streams import load_dataset

    stream, selector = load_dataset("electricity"), FIRES(n_features_to_select=3)
    total = prequential(stream, selector, Perceptron(), baselines="all", auc=False).summary()
    names = {
        "fires": "accuracy", "every": "all_accuracy", "once": "frozen_accuracy", "no_change": "no_change_accuracy",
    }  # fmt: skip
    return {name: float(total[key]) for name, key in names.items()}
