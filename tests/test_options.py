"""The options of a run are stated once: everything that repeats a name, a default or a type agrees with RunOptions."""

import inspect
import re

import numpy as np
import pytest

from tamis import StreamPipeline, prequential, run_experiment
from tamis.options import RunOptions

KNOWN = RunOptions.known()


def described(function):
    """Return the line of each parameter in the docstring of a function."""
    section = re.search(r"Parameters\n-+\n(.*?)\n\n[A-Z]", inspect.getdoc(function), re.DOTALL)[1]
    return dict(re.findall(r"^(\w+) : (.*)$", section, re.MULTILINE))


def line_of(name):
    default = getattr(RunOptions, name)
    shown = (
        f'"{default}"'
        if isinstance(default, str)
        else f"{default:_}"
        if isinstance(default, int)
        else default
    )
    return f"{KNOWN[name].type}, " + ("optional" if default is None else f"default={shown}")


@pytest.mark.parametrize("function", [prequential, StreamPipeline], ids=lambda function: function.__name__)
def test_signature_and_docstring_agree(function):
    parameters, lines = inspect.signature(function).parameters, described(function)
    shared = [name for name in parameters if name in KNOWN]
    assert shared
    for name in shared:
        assert parameters[name].default == getattr(RunOptions, name), name
        if (
            function is StreamPipeline and name == "batch_size"
        ):  # the size of its blocks, which is never chosen
            assert lines[name] == "int, default=100"
        else:
            assert lines[name] == line_of(name).replace("1_000", "1000"), name


def test_prequential_takes_every_option():
    names = list(inspect.signature(prequential).parameters)
    assert names == [
        "stream",
        "selector",
        "learner",
        "label",
        "task",
        "missing",
        *KNOWN,
        "on_step",
        "on_interrupt",
    ]


def test_an_experiment_lists_every_setting():
    listed = re.search(r"Options of :func:`tamis.prequential`:(.*?)\.\n", run_experiment.__doc__, re.DOTALL)[
        1
    ]
    assert re.findall(r"`(\w+)`", listed) == list(RunOptions.settings())


def test_the_command_line_has_the_same_defaults():
    pytest.importorskip("typer")
    from typer.main import get_command

    from tamis.cli import app

    commands = get_command(app()).commands
    for command in ("run", "follow", "compare"):
        options = {one.name: one for one in commands[command].params}
        shared = [name for name, one in KNOWN.items() if one.help and one.is_setting and name in options]
        assert len(shared) >= 8
        for name in shared:
            default = getattr(RunOptions, name)
            assert options[name].default == (str(default) if KNOWN[name].read else default), (command, name)
            assert options[name].help == KNOWN[name].help


def other(name):
    """Return a value that is valid and not the default."""
    known, default = KNOWN[name], getattr(RunOptions, name)
    if known.choices:
        return next(choice for choice in known.choices if choice != default)
    return {"delay": ("at", "known"), "checkpoint": "run.tamis", "replay": 300}.get(
        name, ("log_loss",) if name == "metrics" else int(known.least or 0) + 30
    )


@pytest.mark.parametrize("name", KNOWN)
def test_nonsense_is_rejected(name):
    for value in ("nonsense", object(), -1, np.nan, [1, 2, 3]):
        if KNOWN[name].accepts is not None and name == "checkpoint" and isinstance(value, str):
            continue
        with pytest.raises(ValueError, match=f"^{name} must be "):
            RunOptions(**{name: value})


@pytest.mark.parametrize("name", RunOptions.settings())
def test_settings_give_the_options_back(name):
    options = RunOptions(**{name: other(name)})
    assert RunOptions.from_settings({"options": options.describe()}) == options
    assert list(options.changed()) == [name]


@pytest.mark.parametrize("name", [name for name in RunOptions.settings() if KNOWN[name].help])
def test_words_give_the_options_back(name):
    value = other(name)
    [word, text] = RunOptions(**{name: value}).words()
    assert word == (KNOWN[name].flag or f"--{name.replace('_', '-')}")
    read = KNOWN[name].read or (lambda text: (text,) if KNOWN[name].flag else type(value)(text))
    assert read(text) == value


def test_numbers_of_numpy_become_numbers_of_python():
    options = RunOptions(batch_size=np.int64(7), delay=np.int32(3))
    assert (type(options.batch_size), type(options.delay)) == (int, int)


def test_what_the_command_line_cannot_express_has_no_words():
    assert RunOptions(n_tracked=3).words() is None
    assert RunOptions(delay=("a,b", "c")).words() is None
