"""The house keeps its word: documents run, nothing is missing or left lying about, its rules hold."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import io
import json
import pkgutil
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml
from numpydoc.docscrape import FunctionDoc
from packaging.version import Version

import tamis
from tamis.base import CellClassifier, ColumnSelector, RowSelector
from tamis.catalog import CATALOG, Entry, find
from tamis.checks import suite
from tests import test_atomic, test_catalog, test_defaults, test_html_repr, test_shapes

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
import outputs

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tamis"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CORE = {
    "numpy",
    "scipy",
    "sklearn",
    "narwhals",
    "threadpoolctl",
    "jinja2",
}  # numba too, when the first kernel runs
USERS_OWN = {"pandas", "polars"}  # read if the user has them, so no extra brings them
MODULES = [m.name for m in pkgutil.walk_packages(tamis.__path__, "tamis.") if not m.name.endswith("__main__")]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def extras(*names: str) -> set[str]:
    lines = [line for name in names for line in PYPROJECT["project"]["optional-dependencies"][name]]
    return {re.split(r"[\[<>=~!]", line)[0].removesuffix("-skinny").replace("-", "_") for line in lines}


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the documents speak of."""
    outputs.write_measurements(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- documents that run ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_readme_python_runs(measurements: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks("README.md", "python"):
        exec(block, names)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = re.findall(r"total\['(\w+)'\]:\.3f}\"\)  # (0\.\d+)", text)
    assert [name for name, _ in figures] == [
        "accuracy",
        "all_accuracy",
        "frozen_accuracy",
        "random_accuracy",
    ]
    for name, figure in figures:
        np.testing.assert_allclose(names["total"][name], float(figure), atol=0.002)
    assert (measurements / "sensors.html").stat().st_size > 10_000
    assert names["X_small"].shape == (len(names["X"]), 4)


@pytest.mark.slow
@pytest.mark.parametrize("page", outputs.pages())
def test_page_python_prints_what_the_page_shows(page: str, measurements: Path) -> None:
    if "from lightgbm" in (outputs.DOCS / page).read_text(encoding="utf-8"):
        pytest.importorskip("lightgbm", reason="no LightGBM: pip install 'tamis[boosting]'")
    for block in outputs.run(page):
        assert block.agrees, f"run `python docs/outputs.py {page}`, which writes\n{block.printed}"


@pytest.mark.slow
def test_architecture_states_the_walk_of_a_batch() -> None:
    """In a process of its own: the walk depends on what was imported and compiled before."""
    command = [sys.executable, ROOT / "experiments" / "one_batch.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    batch, depth, page = re.findall(r": (\d+) files, .* (\d+) deep\n.*: (\d+) files", printed)[0]
    text = " ".join((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split())
    assert f"{batch} files and calls {depth} deep for a batch" in text
    assert f"{page} files for the page" in text


def test_the_two_commands_are_in_the_readme_and_name_real_extras() -> None:
    lines = "\n".join(blocks("README.md", "bash")).splitlines()
    assert "pip install '.[cli]' && tamis demo" in lines
    assert "pip install '.[dev]' && pytest" in lines
    assert {"cli", "dev"} <= set(PYPROJECT["project"]["optional-dependencies"])
    assert PYPROJECT["project"]["scripts"]["tamis"] == "tamis.cli:main"


@pytest.fixture
def skeleton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Entry, ModuleType]:
    """The selector of CONTRIBUTING in the catalogue, as an author would add it, and its tests.

    Each block stands under its file's name in backticks, the line of the catalogue under `CATALOG`.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`([\w/]+\.py)`:\n\n```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    assert list(files) == [
        "src/tamis/rows/mean_gap.py",
        "tests/twins/mean_gap.py",
        "tests/rows/test_mean_gap.py",
    ]
    for file, source in files.items():
        name = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
        path = tmp_path / file.replace("/", "_")
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    [line] = re.findall(
        r"`CATALOG`:\n\n```python\n(.*?)^```",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    entry = eval(line, {"Entry": Entry})
    monkeypatch.setitem(tamis._NAMES, entry.name, "tamis.rows.mean_gap")
    for user in (tamis.catalog, suite):
        monkeypatch.setattr(user, "CATALOG", (*CATALOG, entry))
    return entry, module


def test_skeleton_of_contributing_works(skeleton: tuple[Entry, ModuleType]) -> None:
    entry, module = skeleton
    tests = [value for key, value in vars(module).items() if key.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
    assert doctest.testmod(sys.modules["tamis.rows.mean_gap"]) == (0, 4)
    assert suite.entry_of(entry.load()()) is entry  # the conformance checks apply what the catalogue promises


def test_skeleton_passes_ruff() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.py)`:\n\n```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    for file, source in files:
        for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
            ran = subprocess.run(
                [sys.executable, "-m", "ruff", *command, "--stdin-filename", file, "-"],
                input=source, capture_output=True, text=True, check=False, cwd=ROOT,
            )  # fmt: skip
            assert (ran.returncode, ran.stdout) == (0, ""), f"{file}: {ran.stdout}{ran.stderr}"


def test_skeleton_passes_the_tests_of_the_catalogue(
    skeleton: tuple[Entry, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every test that runs over the catalogue and is quick, so a contributor finds the whole recipe in one place."""
    entry, _ = skeleton
    assert find("mean-gap") is entry
    for test in (
        test_catalog.test_row_is_true,
        test_catalog.test_source_names_the_paper,
        test_catalog.test_row_selector_is_one,
        test_shapes.test_every_array_of_a_row_selector_has_a_shape_that_is_said,
        test_html_repr.test_every_method_shows_itself,
        test_atomic.test_memory_that_runs_out_leaves_the_state_before,
        test_atomic.test_parts_of_a_batch_make_the_same_model,
    ):
        patch = {"monkeypatch": monkeypatch} if "monkeypatch" in inspect.signature(test).parameters else {}
        test(entry, **patch)
    test_defaults.test_defaults_are_those_of_the_docstring(entry.load())
    test_names_at_the_top_show_how_they_work(entry.name)
    test_public_names_exist_and_are_documented("tamis.rows.mean_gap")


def released() -> str:
    """Return the version that the changelog speaks of last; before the first release, the one that comes."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[\d.]+)\] - \d{4}-\d\d-\d\d$", text, flags=re.MULTILINE)
    return versions[0] if versions else Version(tamis.__version__).base_version


def test_changelog_has_a_section_for_what_comes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[Unreleased\]\n\n### \w+\n\n(\w[^#]*?\n\n)?- ", text, flags=re.MULTILINE)


def test_no_line_of_the_changelog_stands_twice() -> None:
    """A merge by union leaves an entry twice, or the rest of one below another."""
    lines = [
        line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if len(line) > 50
    ]
    assert sorted(line for line in set(lines) if lines.count(line) > 1) == []


def test_citation_is_complete_and_speaks_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license", "references"} <= set(citation)
    assert citation["version"] == released()
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert reference["type"] in {"article", "conference-paper", "thesis"}
        assert reference["title"]
        assert all({"given-names", "family-names"} == set(author) for author in reference["authors"])


def test_the_sites_list_of_versions_has_this_one() -> None:
    versions = json.loads((ROOT / "docs" / "switcher.json").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    present = re.findall(r"^## \[(\d[\w.]+)\]", changelog, flags=re.MULTILINE)
    assert [one["version"] for one in versions] == [*present, "dev"]  # a site that is not there is not listed
    assert all(one["url"] == f"/{one['version']}/" for one in versions)
    assert [one["version"] for one in versions if one.get("preferred")] == present[:1]


def test_a_release_is_cut_in_every_file_that_names_its_version(tmp_path: Path) -> None:
    """The two releases after this one: what stood under Unreleased has the heading of the first."""
    files = ["CHANGELOG.md", "CITATION.cff", "docs/switcher.json", ".ci/cut"]
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())

    def cut(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, tmp_path / ".ci" / "cut", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for words in ([], ["next"], ["7.0.0", "tomorrow"]):
        assert cut(*words).stderr == "usage: .ci/cut VERSION [DAY], as in .ci/cut 0.1.0 2026-11-30\n"
    before = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8").partition("## [Unreleased]\n")[2]
    for version in ("7.0.0", "7.0.1"):
        assert cut(version, "2030-01-02").returncode == 0
        assert f"{version} already" in cut(version).stderr
        citation = yaml.safe_load((tmp_path / "CITATION.cff").read_text(encoding="utf-8"))
        assert (citation["version"], str(citation["date-released"])) == (version, "2030-01-02")
        listed = json.loads((tmp_path / "docs" / "switcher.json").read_text(encoding="utf-8"))
        assert [one["version"] for one in listed if one.get("preferred")] == [version]
    assert [one["name"] for one in listed[:2]] == ["7.0.1", "7.0"]
    text = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([\w.]+)\]", text, flags=re.MULTILINE)[:3] == ["Unreleased", "7.0.1", "7.0.0"]
    assert text.endswith(before.replace("This will be the first release", "This is the first release"))


# -- nothing is missing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.key)
def test_every_algorithm_has_its_page_twin_and_tests(entry: tamis.catalog.Entry) -> None:
    name = entry.module.split(".")[2]
    wanted = [f"docs/{name}.md", f"tests/twins/{name}.py", f"tests/{entry.family}/test_{name}.py"]
    assert [path for path in wanted if not (ROOT / path).is_file()] == []
    assert entry.name in (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    assert entry.name in tamis.__all__


LINKED = {path.stem for path in (ROOT / "docs" / "evidence").glob("*.md")}


@pytest.mark.parametrize("page", sorted(LINKED | {entry.module.split(".")[2] for entry in CATALOG}))
def test_the_page_of_a_method_is_short(page: str) -> None:
    """At most 800 words, code aside: the problem, an example, the parameters; the rest is on the linked page."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    words = re.findall(r"[A-Za-z0-9][\w'.-]*", re.sub(r"(?s)```.*?```", "", text))
    assert len(words) <= 800, f"docs/{page}.md has {len(words)} words: move some to docs/evidence/{page}.md"
    assert "## When to use it" in text or page in ("watch", "which_selector"), (
        f"docs/{page}.md has no section '## When to use it'"
    )
    assert page not in LINKED or f"](evidence/{page}.md#" in text, (
        f"docs/{page}.md has no link to its evidence"
    )


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert len(links) >= 1
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_comments_within_brackets_stand_above_their_lines() -> None:
    """After code, they break a tuple or a call into one line per item."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        depth = 0
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
            is_after_code = token.type == tokenize.COMMENT and token.line[: token.start[1]].strip()
            if depth and is_after_code and not token.string.startswith(("# noqa", "# type", "# fmt")):
                found.append(f"{path.name}:{token.start[0]}: {token.string}")
    assert found == []


def test_no_line_of_a_page_is_lost_as_a_comment() -> None:
    """A line of Markdown that begins with a per cent sign is a comment of MyST: the site leaves it out."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    texts = {page.name: re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8")) for page in pages}
    assert [
        (name, line)
        for name, text in texts.items()
        for line in text.splitlines()
        if line.lstrip().startswith("%")
    ] == []


def test_every_table_of_a_page_has_a_head() -> None:
    """Lines with bars that lack a head and its rule are shown as text."""
    headless = []
    for page in [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]:
        text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
        for table in re.findall(r"(?:^ *\|.*\n)+", text, flags=re.MULTILINE):
            if not re.search(r"\A.*\n *\|(?: *:?-+:? *\|)+\n", table):
                headless.append(f"{page.name}: {table[:60]}")
    assert headless == []


@pytest.mark.parametrize("module_name", ["tamis", *MODULES])
def test_public_names_exist_and_are_documented(module_name: str) -> None:
    """A package lists its public names; those of a module are the ones it defines without an underscore."""
    module = importlib.import_module(module_name)
    assert inspect.getdoc(module)
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module_name]
    for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), f"{module_name}.{name} has no docstring"


@pytest.mark.parametrize("name", sorted(set(tamis._NAMES)))
def test_names_at_the_top_show_how_they_work(name: str) -> None:
    thing = getattr(tamis, name)
    doc = FunctionDoc(thing)
    assert any(">>>" in line for line in doc["Examples"]), f"tamis.{name} has no example"
    parameters = [p for p in inspect.signature(thing).parameters if p not in ("args", "kwargs")]
    documented = {part.strip(" *") for entry in doc["Parameters"] for part in entry.name.split(",")}
    assert [p for p in parameters if p not in documented] == []
    assert len(doc["Summary"]) == 1, f"the first sentence of tamis.{name} takes more than one line"
    assert not re.search(r"\S ---", inspect.getdoc(thing)), f"a section of tamis.{name} stands in a line"


# -- nothing is left lying about ---------------------------------------------------------------------------


def own_files() -> list[Path]:
    folders = ["src", "tests", "docs", "benchmarks", "experiments", ".ci"]
    skip = {"__pycache__", "_build", "api"}
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    found += [path for path in ROOT.iterdir() if path.suffix in {".md", ".toml", ".cff"}]
    text = [
        path for path in found if path.suffix not in {".npz", ".pyc", ".png"} and not skip & set(path.parts)
    ]
    return [path for path in text if path.is_file()]


def test_no_path_of_one_machine() -> None:
    absolute = re.compile(r"(?<![\w.>])/(?:work|root|home|Users)/\w")
    found = [path for path in own_files() if absolute.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_the_package_and_its_pages_do_not_know_the_development_data() -> None:
    found = [path for path in own_files() if "shared/" in path.read_text(encoding="utf-8")]
    assert {path.relative_to(ROOT).parts[0] for path in found} <= {"tests", "experiments", "benchmarks"}


def test_only_known_files_at_the_top() -> None:
    """A page or a model that a test or an example wrote into the root is noticed before it is committed."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in tracked.stdout.splitlines() if "/" not in name]
    known = re.compile(
        r"[A-Z_]+\.md|\.\w+ignore|\.pre-commit-config\.yaml|CITATION\.cff|Dockerfile|LICENSE|paper\.md"
    )
    assert [name for name in names if not known.fullmatch(name)] == ["hatch_build.py", "pyproject.toml"]
    assert not known.fullmatch("selection.html")


def test_no_drawers() -> None:
    drawers = {"utils", "util", "helpers", "common", "core", "misc"}
    assert [
        path for path in own_files() if path.suffix == ".py" and drawers & {path.stem, path.parent.name}
    ] == []


# -- the rules of the house --------------------------------------------------------------------------------


def imports(path: Path) -> list[tuple[str, bool]]:
    """Return (top-level package, whether it is imported when the module is) for each import of a file."""
    found = []

    def walk(node: ast.AST, at_import: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name.split(".")[0], at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module.split(".")[0], at_import))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_extra":
            if isinstance(node.args[0], ast.Constant):
                found.append((str(node.args[0].value).split(".")[0], False))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for child in ast.iter_child_nodes(node):
            walk(
                child, at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            )

    walk(ast.parse(path.read_text(encoding="utf-8")), True)
    return [(name, now) for name, now in found if name != "tamis" and name not in sys.stdlib_module_names]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_core_is_imported_with_a_module(path: Path) -> None:
    at_once = {name for name, at_import in imports(path) if at_import}
    # A command and what it prints are imported once typer and rich are found; an adapter by who has its library.
    more = {"cli": {"typer", "rich"}, "terminal": {"rich"}, "adapters": {path.stem}}.get(
        path.parent.name, set()
    )
    assert at_once <= (CORE if path.name == "__init__.py" else CORE | more)


def named_modules(path: Path, known: Iterable[str]) -> set[str]:
    """Return each known module that a file imports: at once, in a function, for types, or by `import_module`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= parts if parts <= set(known) else parts | {node.module}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return found & set(known)


def imported_at_once(path: Path) -> set[str]:
    """Return the modules that a file names in imports outside of functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules of which each leads to each other."""
    reach = {name: after - {name} for name, after in graph.items()}
    for middle in graph:  # Warshall: who reaches the middle reaches what it reaches
        for name in graph:
            if middle in reach[name]:
                reach[name] = reach[name] | reach[middle]
    around = [name for name in graph if name in reach[name]]
    return sorted(
        {tuple(other for other in around if name in reach[other] and other in reach[name]) for name in around}
    )


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"d"}, "e": {"a"}, "f": {"g"}, "g": {"f"}}
    assert circles(graph) == [("a", "b", "c"), ("f", "g")]


@pytest.mark.slow
def test_no_modules_import_one_another() -> None:
    """Not even for types. A package's own `__init__` gathers its modules, so who imports that imports all of them."""
    files = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
    del files["tamis"]  # the public names are looked up when they are asked for
    graph = {name: named_modules(path, files) for name, path in files.items()}
    [contract] = PYPROJECT["tool"]["importlinter"]["contracts"]
    for line in contract["ignore_imports"]:  # a result's own `report()` and `plot()`
        importer, imported = line.split(" -> ")
        assert imported in graph[importer]
        assert imported not in imported_at_once(files[importer])
        graph[importer].remove(imported)
    assert circles(graph) == []


@pytest.mark.slow
def test_extras_bring_what_is_imported_in_functions() -> None:
    later_extras = (
        "cli",
        "plots",
        "excel",
        "boosting",
        "metrics",
        "spark",
        "torch",
        "onnx",
        "mlflow",
        "kafka",
    )
    later = {name for path in SOURCE.rglob("*.py") for name, at_import in imports(path) if not at_import}
    brought = {"numba", "llvmlite", "joblib"}  # the last two by numba and by scikit-learn
    assert later <= CORE | brought | USERS_OWN | extras(*later_extras)
    assert extras(*later_extras) <= later
    core = {re.split(r"[<>=]", line)[0] for line in PYPROJECT["project"]["dependencies"]}
    assert core == CORE - {"sklearn"} | {"scikit-learn", "numba"}


# Private names that an author of a method needs to know; fewer are better.
PRIVATE_NAMES = {RowSelector: 17, ColumnSelector: 25, CellClassifier: 48}


@pytest.mark.parametrize("cls", PRIVATE_NAMES)
def test_a_base_class_has_few_private_names(cls: type) -> None:
    names = {
        name
        for name in (*vars(cls), *cls.__annotations__)
        if re.match(r"_(?!abc_|sklearn_|state_spec)[a-z]", name)
    }
    assert len(names) <= PRIVATE_NAMES[cls], sorted(names)
