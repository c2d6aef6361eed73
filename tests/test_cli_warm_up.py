"""`tamis warm-up`: kernels are compiled once, into the cache that later processes read."""

import json

import pytest

from tamis._compile_ahead import default_kernels
from tamis.catalog import CATALOG
from tamis.cli import main
from tamis.cli.candidates import RULES
from tamis.cli.warm_up import _command, _in_process, _known, _write_rows, compile_missing
from tamis.streams import open_file


@pytest.mark.slow
def test_what_was_compiled_is_in_the_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    counts = []
    for _ in range(2):
        assert main(["warm-up", "osfs", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        (osfs,) = document["methods"]
        assert osfs["method"] == "osfs"
        assert osfs["error"] == ""
        assert document["compiled"] == osfs["compiled"]
        counts.append((osfs["compiled"], osfs["loaded"]))
    (compiled, loaded), again = counts
    assert compiled > 0
    assert loaded == 0
    assert again == (0, compiled)
    assert any((tmp_path / "kernels").rglob("*.nbc"))


@pytest.mark.slow
def test_a_method_that_cannot_run_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tamis.cli.warm_up._command", lambda key, path: ["run", "no-such-file.csv"])
    outcome = _in_process("no-such-method", tmp_path / "rows.csv")
    assert (outcome["method"], outcome["compiled"]) == ("no-such-method", 0)
    assert outcome["error"] == "exit code 1"
    monkeypatch.setattr("tamis.cli.warm_up._in_process", lambda key, path: outcome)
    assert main(["warm-up", "osfs"]) == 1
    printed = capsys.readouterr()
    assert "no-such-method: exit code 1" in printed.err
    assert "0 of 1 ready" in printed.out


LISTED = ["tamis.pipeline.scaling._standardise", "tamis.learners.linear._shuffle"]


@pytest.fixture
def two_listed(tmp_path, monkeypatch):
    """Let default runs use two kernels, and an empty cache."""
    kernels = {name: default_kernels()[name] | {"uses": ["run"]} for name in LISTED}
    monkeypatch.setattr("tamis._compile_ahead.LISTED", tmp_path / "list.json")
    (tmp_path / "list.json").write_text(json.dumps(kernels))
    default_kernels.cache_clear()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("TAMIS_KERNEL_PACK", "0")
    yield
    default_kernels.cache_clear()


@pytest.mark.slow
def test_the_kernels_of_default_runs_are_compiled_once(two_listed, tmp_path, capsys):
    counts = []
    for _ in range(2):
        assert main(["warm-up", "--json", "--quiet"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert {one["name"] for one in document["kernels"]} == set(LISTED)
        assert [one["error"] for one in document["kernels"]] == ["", ""]
        counts.append((document["compiled"], sum(one["loaded"] for one in document["kernels"])))
    (compiled, loaded), again = counts
    assert compiled >= 2
    assert loaded == 0
    assert again == (0, compiled)


@pytest.mark.slow
def test_a_command_announces_what_it_compiles(two_listed, monkeypatch, capsys):
    monkeypatch.setattr("tamis._kernels.is_compiled", lambda kernel, signature: False)
    compile_missing("run", quiet=False)
    assert "compiling 2 kernels once, about 0 s; `tamis warm-up` does it ahead" in capsys.readouterr().err
    compile_missing("run", quiet=True)
    compile_missing("demo", quiet=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["osfsx"], "No command uses a method or learner named 'osfsx': tamis list shows the names."),
        (["osfs", "--all"], "--all includes every method: omit the names, or --all."),
        (["osfs", "--jobs", "0"], "--jobs must be 1 or more, got 0."),
    ],
)
def test_misuse(words, message, capsys):
    assert main(["warm-up", *words]) == 2
    assert message in capsys.readouterr().err


def test_columns_are_used_by_rules_that_exist():
    columns = {entry.key for entry in CATALOG if entry.family == "columns"}
    rules = [_command(key, "rows.csv")[-1] for key in _known() if key in columns]
    assert set(rules) <= {*RULES}
    assert len(rules) >= 8


def test_the_rows_have_two_classes_and_no_negative_number(tmp_path):
    batches = list(open_file(_write_rows(tmp_path), label="y").batches(500))
    assert {label for _, y in batches for label in y.tolist()} == {0, 1}
    assert min(X.min() for X, _ in batches) >= 0.0
