"""The options of a run, each defined once: name, default, valid values, and help of the command line.

:func:`tamis.prequential`, :func:`tamis.run_experiment`, `tamis run`, `tamis follow`, `tamis compare`, the settings of a
result and the command that repeats a run all read :class:`RunOptions`. :func:`model_parameters` defines how a run
constructs a selector or a learner of the catalogue, beyond its own defaults.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

from tamis.catalog import Entry

__all__ = ["Option", "RunOptions", "learner_kind", "model_parameters", "read_value"]

Delay = int | tuple[str, str]


@dataclass(frozen=True)
class Option:
    """Properties of an option besides its name and its default.

    Attributes
    ----------
    type : str, default="int"
        As written in a docstring.
    least : int, optional
        Smallest value of a number.
    choices : tuple, optional
        All valid values, for an option that is not a number.
    word : str, optional
        A valid alternative to a number, such as "auto".
    accepts : callable, optional
        For all others: returns whether a value is valid.
    description : str
        Description of the valid values, for the error message.
    help : str
        One sentence for the command line; "" if `tamis run` has no such option.
    metavar : str
        Placeholder for the value on the command line.
    read : callable, optional
        Converts the text of the command line. By default, to the type of the default.
    flag : str, optional
        Name on the command line, of an option that may be repeated.
    is_setting : bool
        Whether it changes the result and thus belongs to the settings of a run.
    """

    type: str = "int"
    least: float | None = None
    choices: tuple[Any, ...] = ()
    word: str | None = None
    accepts: Callable[[Any], bool] | None = None
    description: str = ""
    help: str = ""
    metavar: str = "N"
    read: Callable[[str], Any] | None = None
    flag: str = ""
    is_setting: bool = True

    def check(self, name: str, value: Any, default: Any) -> None:
        """Raise ValueError if the value is invalid; None is valid if it is the default."""
        from tamis._validation import check_choice, check_number, short_repr

        if (value is None and default is None) or (self.word is not None and value == self.word):
            return
        if self.choices:
            check_choice(name, value, self.choices)
        elif self.least is not None:
            check_number(name, value, low=self.least, integer=self.type.startswith("int"))
        elif self.accepts is not None and not self.accepts(value):
            raise ValueError(f"{name} must be {self.description}, got {short_repr(value)}.")


def _is_count(value: Any) -> bool:
    from tamis._validation import is_integer

    return is_integer(value) and value >= 0


def _is_replay(value: Any) -> bool:
    return value in ("auto", "always", "never") if isinstance(value, str) else _is_count(value)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_delay(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return _is_count(value) or (
        is_pair and all(isinstance(name, str) for name in value) and value[0] != value[1]
    )


def _is_metrics(value: Any) -> bool:
    """Return whether these are metrics or, from the settings of a run, their descriptions."""
    return isinstance(value, list | tuple) and all(
        isinstance(one, str | dict) or callable(one) or hasattr(one, "get") for one in value
    )


def _read_delay(text: str) -> Delay:
    """Return the delay written on the command line: `500`, or `sold,returned`."""
    if text.isdecimal():
        return int(text)
    names = text.split(",")
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise ValueError(
            "delay must be a number of rows, 0 or more, or two columns, the time of a row and of its label, as in"
            f" sold,returned; got {text}."
        )
    return names[0], names[1]


def _read_batch_size(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise ValueError(f"--batch-size must be a number of rows, or auto, got {text!r}.") from None


def _read_replay(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True)
class RunOptions:
    """The options of :func:`tamis.prequential`, which documents them.

    Raises
    ------
    ValueError
        If an option is out of range, or two options exclude each other.

    Examples
    --------
    >>> RunOptions(delay=500).words()
    ['--delay', '500']
    >>> RunOptions(window=0)
    Traceback (most recent call last):
    ...
    ValueError: window must be an integer in [1, inf), got 0.
    """

    batch_size: Annotated[
        int | str,
        Option(
            'int or "auto"',
            least=1,
            word="auto",
            read=_read_batch_size,
            help="Rows per step; auto: row by row while the labels are autocorrelated, else 100.",
        ),
    ] = 100
    max_rows: Annotated[int | None, Option(least=1, help="Stop after this many rows.")] = None
    protocol: Annotated[
        str,
        Option(
            '{"honest", "paper"}',
            choices=("honest", "paper"),
            metavar="ORDER",
            help="honest: select before the labels are seen; paper: as in the FIRES paper.",
        ),
    ] = "honest"
    delay: Annotated[
        Delay,
        Option(
            "int or pair of str",
            accepts=_is_delay,
            description="an integer in [0, inf), or the names of two columns, the time of a row and of its label",
            read=_read_delay,
            help="Number of rows after which a label arrives; or two columns, the time of a row and of its label, as"
            " in sold,returned.",
        ),
    ] = 0
    max_waiting: Annotated[int, Option(least=1)] = 100_000
    window: Annotated[
        int, Option(least=1, help="Number of recent rows that the current accuracy covers.")
    ] = 1000
    stability_window: Annotated[
        int, Option(least=2, help="Number of recent selections that the stability compares.")
    ] = 10
    n_tracked: Annotated[int, Option(least=0)] = 20
    auc: Annotated[bool | str, Option('bool or "auto"', choices=(False, True, "auto"))] = "auto"
    metrics: Annotated[
        tuple[Any, ...],
        Option(
            "list of str, metric or callable",
            accepts=_is_metrics,
            description="a list of names, metrics, or functions of y_true and y_pred",
            help="A further metric, such as log_loss or precision(spam); may be repeated.",
            metavar="NAME",
            flag="--metric",
        ),
    ] = ()
    replay: Annotated[
        str | int,
        Option(
            '{"auto", "always", "never"} or int',
            accepts=_is_replay,
            description="'auto', 'always', 'never' or a number of rows",
            read=_read_replay,
            metavar="WHEN",
            help="When the learner resets: auto (when the selector reports a drift, a reset copy is tried and replaces"
            " it if it predicts better), always (at each drift), never, or a number: at each change of the selection,"
            " refitted on that many recent rows.",
        ),
    ] = "auto"
    masking: Annotated[str, Option('{"auto", "zeros"}', choices=("auto", "zeros"))] = "auto"
    scale: Annotated[
        str,
        Option(
            '{"auto", "standard", "none"}',
            choices=("auto", "standard", "none"),
            metavar="HOW",
            help="Scaling for the learner: auto (standardised if it needs that), standard or none.",
        ),
    ] = "auto"
    baselines: Annotated[
        str,
        Option(
            '{"random", "all", "both", "none"}',
            choices=("random", "all", "both", "none"),
            metavar="WHICH",
            help="Baselines beside the selector: all (features and a frozen selection), random (also subsets of the"
            " same size) or none; both is random.",
        ),
    ] = "random"
    n_draws: Annotated[int, Option(least=1, help="Number of random subsets.")] = 3
    frozen_after: Annotated[
        int,
        Option(
            least=0,
            help="Number of first rows on which the frozen-selection baseline selects its features (L1); 0: no such"
            " baseline.",
        ),
    ] = 1000
    checkpoint: Annotated[
        str | os.PathLike[str] | None,
        Option("path-like", accepts=_is_path, description="a path", is_setting=False),
    ] = None
    checkpoint_every: Annotated[
        int, Option(least=1, help="Number of steps between checkpoints.", is_setting=False)
    ] = 100
    checkpoint_seconds: Annotated[float | None, Option("float", least=0, is_setting=False)] = None
    keep_steps: Annotated[int | None, Option(least=20)] = None

    def __post_init__(self) -> None:
        for name, one in self.known().items():
            value = getattr(self, name)
            one.check(name, value, getattr(RunOptions, name))
            object.__setattr__(self, name, _plain(value))
        if self.delay and self.protocol == "paper":
            raise ValueError(
                f"protocol='paper' shows the selector the labels of the batch, so delay={self.delay!r} is impossible:"
                " choose protocol='honest'."
            )

    @property
    def rows_per_block(self) -> int:
        """Number of rows read at once: the batch size, or 100 if it is determined automatically."""
        return self.batch_size if isinstance(self.batch_size, int) else 100

    @property
    def batches(self) -> str:
        """The size of the batches, in words."""
        return "batch size chosen" if isinstance(self.batch_size, str) else f"batches of {self.batch_size:,}"

    @property
    def clock(self) -> tuple[str, ...]:
        """Columns with the times of rows and labels, which are not features."""
        return self.delay if isinstance(self.delay, tuple) else ()

    @classmethod
    @functools.cache
    def known(cls) -> dict[str, Option]:
        """Return the properties of each option."""
        hints = get_type_hints(cls, include_extras=True)
        return {one.name: hints[one.name].__metadata__[0] for one in fields(cls)}

    @classmethod
    def settings(cls) -> tuple[str, ...]:
        """Return the names of the options that change the result."""
        return tuple(name for name, one in cls.known().items() if one.is_setting)

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> RunOptions:
        """Return the options in the settings of a result; absent ones have their defaults."""
        values = settings.get("options", {})
        return cls(**{name: values[name] for name in cls.settings() if name in values})

    def keywords(self) -> dict[str, Any]:
        """Return all options by name, as keyword arguments of :func:`tamis.prequential`."""
        return {name: getattr(self, name) for name in self.known()}

    def describe(self) -> dict[str, Any]:
        """Return the options that change the result, as JSON values."""
        values = {name: getattr(self, name) for name in self.settings()}
        values["metrics"] = [_describe_metric(one) for one in self.metrics]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from their default."""
        values = {name: getattr(self, name) for name in self.settings()}
        return {name: value for name, value in values.items() if value != getattr(RunOptions, name)}

    def words(self) -> list[str] | None:
        """Return the arguments of `tamis run` for these settings; None if it cannot express one of them."""
        words = []
        for name, value in self.changed().items():
            if (flag := self.known()[name].flag) and all(isinstance(one, str) for one in value):
                words += [word for one in value for word in (flag, one)]
                continue
            parts = value if isinstance(value, tuple) else (str(value),)
            if not self.known()[name].help or flag or any("," in part for part in parts):
                return None
            words += [f"--{name.replace('_', '-')}", ",".join(parts)]
        return words


def _describe_metric(metric: Any) -> str | dict[str, str]:
    """Return the name by which a metric can be requested again, or the description of one without such a name."""
    if isinstance(metric, str | dict):
        return metric
    return getattr(metric, "name", None) or {"repr": getattr(metric, "__name__", type(metric).__name__)}


def _plain(value: Any) -> Any:
    """Return a NumPy number as a Python number, and a pair as a tuple."""
    if isinstance(value, list):
        return tuple(value)
    return value.item() if hasattr(value, "item") else value


def model_parameters(
    entry: Entry, *, seed: int, categorical: Sequence[int] = (), n_features_to_select: Any = None,
    learner: Entry | None = None, is_regression: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the parameters with which a run constructs a selector or learner of the catalogue.

    Parameters
    ----------
    entry : Entry
        Of the selector or the learner.
    seed : int
        Passed as `random_state`.
    categorical : sequence of int
        Categorical features.
    n_features_to_select : int or float, optional
    learner : Entry, optional
        The learner of the run, for a selector that compares candidate selectors by means of one.
    is_regression : bool, default=False
        Whether the selector is used for regression.

    Examples
    --------
    >>> from tamis.catalog import find, find_learner
    >>> model_parameters(find("auto", "rows"), seed=7, learner=find_learner("naive-bayes"))
    {'random_state': 7, 'learner': 'naive-bayes'}
    >>> model_parameters(find_learner("logistic"), seed=0)
    {'learning_rate': 'constant', 'random_state': 0}
    """
    offered = {
        "random_state": seed,
        "n_features_to_select": n_features_to_select,
        "categorical": list(categorical) or None,
        "learner": None if learner is None else learner_kind(learner),
    }
    known = inspect.signature(entry.load()).parameters
    own = dict(entry.parameters) | (dict(entry.regression) if is_regression else {})
    return own | {name: value for name, value in offered.items() if name in known and value is not None}


_LINEAR = ("Perceptron", "SGDLogisticRegression", "SGDLinearSVM", "SGDClassifier", "SGDRegressor")


def learner_kind(learner: Entry) -> str:
    """Return the learner that is used to compare selectors and is most similar to one of the catalogue."""
    if learner.name in _LINEAR:
        return "linear"
    words = learner.key.split("-")
    return "naive-bayes" if "bayes" in words or "nb" in words else "trees"


def read_value(text: str) -> Any:
    """Return the value of a parameter written on the command line: a number, True, False, None, a list, else text.

    >>> read_value("0.5"), read_value("none"), read_value("[9, 10]"), read_value("partial")
    (0.5, None, [9, 10], 'partial')
    """
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    if text.lower() in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
