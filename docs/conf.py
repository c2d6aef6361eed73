"""How the documentation is built; the API and catalogue pages are written from the package itself."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from latex2mathml.converter import convert as latex_to_mathml

import tamis
from tamis.catalog import CATALOG, LEARNERS, Entry

sys.path.insert(0, str(Path(__file__).parent))
from gallery import gallery_page
from systems import matrix_page, page_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.writers.html5 import HTML5Translator

project = "Tamis"
author = "The Tamis founders"
copyright = "The Tamis founders, BSD-3-Clause"
version = release = tamis.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
bibtex_bibfiles = ["references.bib"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# ARCHITECTURE and CONTRIBUTING, included here, link to files of the repository, which are not pages here.
suppress_warnings = ["myst.xref_missing", "ref.python"]  # scores_ and the like are attributes of many classes

autosummary_generate = True
autodoc_typehints = "none"  # the numpydoc sections say types, with shapes and ranges
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()
numpydoc_xref_param_type = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "Tamis"
html_theme_options = {
    "logo": {"text": f"Tamis {release}"},
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "header_links_before_dropdown": 6,
    "footer_end": [],
}
if len(json.loads(Path(__file__).with_name("switcher.json").read_text(encoding="utf-8"))) > 1:
    # The sites of all versions stand side by side, and the list above them: switcher.json, dev/, 0.1.0/.
    html_theme_options |= {
        "footer_end": ["version-switcher"],
        "switcher": {"json_url": "../switcher.json", "version_match": "dev" if "dev" in release else release},
        "check_switcher": False,  # it would look for the list on this machine
    }
html_sidebars = {"index": [], "api/gallery": []}
html_static_path = ["_static"]
html_extra_path = ["switcher.json"]  # for a site that is served from the root, above which there is nothing
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_css_files = ["tamis.css"]


# The API reference by task: the module from which users import, and the names; a page for each name.
_API = {
    "Online feature selection": [("tamis", "rows")],
    "Streaming features": [("tamis", "columns")],
    "Active feature acquisition": [("tamis", "cells"), ("tamis.cells", "PriceList Session")],
    "Learners": [("tamis", "learners")],
    "Evaluate and compare": [
        ("tamis", "prequential recommend run_experiment"),
        (
            "tamis.evaluate",
            "PrequentialResult Step ExperimentResult Recommendation recovery detections nogueira preq_cv_stability"
            " selection_accuracy",
        ),
    ],
    "Open data": [
        ("tamis", "open_file load_dataset load_stream"),
        (
            "tamis.streams",
            "FrameStream DictStream ArrayStream BatchStream Stream SyntheticStream VaryingStream Redundant Irrelevant"
            " as_stream follow_files list_datasets list_streams",
        ),
    ],
    "Monitor a live model": [
        ("tamis", "Watch IncrementalPFI IncrementalSAGE"),
        ("tamis.watch", "InputDrift DriftMagnitude drift_over_time Rule read_rules"),
    ],
    "Save, load and merge": [("tamis", "save load dumps loads freeze merge_tree")],
    "Write a method": [
        ("tamis.base", "RowSelector ColumnSelector CellClassifier"),
        (
            "tamis.checks",
            "check_row_selector check_column_selector check_cell_classifier check_named_model check_target_model",
        ),
    ],
}
# Modules that are described on one page each.
_MODULES = {
    "tamis.columns.generators": "Generated features",
    "tamis.columns.online_fdr": "Rules of online false discovery rates",
    "tamis.drift": "Drift detectors",
    "tamis.adapters.river": "River",
    "tamis.adapters.spark": "Spark",
    "tamis.adapters.mlflow": "MLflow",
    "tamis.errors": "Errors",
}
_PUBLIC: dict[str, str] = {}  # where a thing is defined -> the name under which it is imported


def _names(module: str, what: str) -> list[str]:
    """Return names, or those of `tamis` that are of a family of the catalogue."""
    if what not in (*_ARRIVES, "learners"):
        return what.split()
    own = [
        name for name in tamis.__all__ if getattr(getattr(tamis, name), "__module__", "").startswith("tamis.")
    ]
    folders = ("tamis.learners.", "tamis.pipeline.") if what == "learners" else (f"tamis.{what}.",)
    mine = [name for name in own if getattr(tamis, name).__module__.startswith(folders)]
    return sorted((name for name in mine if isinstance(getattr(tamis, name), type)), key=str.lower)


def _api_page() -> str:
    lines = ["# API reference", "", "Public names by task, as imported.", ""]
    for task, groups in _API.items():
        lines += [f"## {task}", ""]
        for module, what in groups:
            names = _names(module, what)
            for name in names:
                thing = getattr(importlib.import_module(module), name)
                _PUBLIC[f"{thing.__module__}.{thing.__qualname__}"] = f"{module}.{name}"
            listed = [f"   {name}" for name in names]
            lines += [
                "```{eval-rst}",
                f".. currentmodule:: {module}",
                ".. autosummary::",
                "   :toctree: .",
                "",
            ]
            lines += [*listed, "```", ""]
    lines += ["## More", "", "```{toctree}", ":maxdepth: 1", "", *_MODULES, "```", ""]
    return "\n".join(lines)


def _module_page(module: str, title: str) -> str:
    found = importlib.import_module(module)
    lines = [
        f"# {title}",
        "",
        f"Import these from `{module}`.",
        "",
        "```{eval-rst}",
        f".. currentmodule:: {module}",
        "",
    ]
    for name in found.__all__:
        thing = getattr(found, name)
        if (
            not (inspect.isclass(thing) or inspect.isfunction(thing))
            or f"{thing.__module__}.{name}" in _PUBLIC
        ):
            continue
        _PUBLIC[f"{thing.__module__}.{thing.__qualname__}"] = f"{module}.{name}"
        kind = "autofunction" if inspect.isfunction(thing) else "autoclass"
        lines += [f".. {kind}:: {name}", *(["   :members:"] if kind == "autoclass" else []), ""]
    return "\n".join([*lines, "```", ""])


def _by_public_name(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, contnode: nodes.Element
) -> nodes.Element | None:
    """Resolve a link to where a thing is defined: its page has the name under which it is imported."""
    if node.get("refdomain") != "py":
        return None
    target, _, member = str(node["reftarget"]), "", ""
    if target not in _PUBLIC:
        target, _, member = target.rpartition(".")
    if target not in _PUBLIC:
        return None
    name = ".".join(filter(None, (_PUBLIC[target], member)))
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, contnode)


_NOT_SEARCHED = re.compile(
    r"changelog|architecture|contributing|performance|thesis_chapter\d|evidence|evidence/.*|references"
)


def _leave_out_of_search(app: Sphinx, doctree: nodes.document) -> None:
    """Keep internals, benchmarks and the changelog out of the search, which is for guides and the API."""
    if _NOT_SEARCHED.fullmatch(app.env.docname):
        app.env.metadata[app.env.docname]["nosearch"] = "true"


def _write_llms_txt(app: Sphinx, error: Exception | None) -> None:
    """Write the list of guides for programs that read the site: title, address, first sentence."""
    if error is not None:
        return
    lines = ["# Tamis", "", "> Feature selection for data streams in Python.", ""]
    for docname in sorted(app.env.found_docs):
        path = Path(app.env.doc2path(docname))
        if path.suffix != ".md" or _NOT_SEARCHED.fullmatch(docname) or docname.startswith("api/tamis"):
            continue
        body = re.sub(
            r"(?s)```.*?```|^#.*?$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE
        ).strip()
        first = " ".join(re.split(r"\n\s*\n", body)[0].split())[:200] if body else ""
        lines.append(f"- [{app.env.titles[docname].astext()}]({docname}.html): {first}")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


_ARRIVES = {
    "rows": "Online feature selection: which features are relevant now?",
    "columns": "Streaming features: is this feature selected?",
    "cells": "Active feature acquisition: which value to acquire next, and when to stop?",
}


def _catalogue_page() -> str:
    tables = {question: [e for e in CATALOG if e.family == family] for family, question in _ARRIVES.items()}
    tables["Learners"] = [*(e for e in CATALOG if e.family == "learners"), *LEARNERS]
    lines = ["# Methods", "", "One row per method, as `tamis list` prints them.", ""]
    lines += ["[Which selector?](../which_selector.md) recommends one for your stream.", ""]
    for question, entries in tables.items():
        lines += [f"- **{question}** {', '.join(dict.fromkeys(map(_link, entries)))}"]
    for question, entries in tables.items():
        lines += ["", f"## {question}", ""]
        if question == "Learners":
            lines += [
                "`tamis run --learner` trains these; from Python, any classifier with `partial_fit`.",
                "",
            ]
        lines += _table(entries)
    for question, entries in tables.items():
        known = [f"../{page}" for page in dict.fromkeys(map(page_of, entries)) if page and page != "drift"]
        lines += ["", "```{toctree}", ":hidden:", f":caption: {question.split(':')[0]}", "", *known, "```"]
    return "\n".join(lines) + "\n"


def _table(entries: Sequence[Entry]) -> list[str]:
    rows = [f"| {_link(e)} (`{e.key}`) | {e.title} *{e.paper}* | {_abilities(e)} |" for e in entries]
    return [
        ":::{container} methods",
        "",
        "| method | what it does | for |",
        "| --- | --- | --- |",
        *rows,
        "",
        ":::",
    ]


def _link(entry: Entry) -> str:
    page = page_of(entry)
    return f"[{entry.name}](../{page}.md)" if page else entry.name


def _abilities(entry: Entry) -> str:
    able = {"sparse rows": entry.sparse, "mergeable": entry.mergeable}
    return ", ".join([*entry.targets, *(what for what, can in able.items() if can)])


def _write_pages() -> None:
    folder = Path(__file__).parent / "api"
    folder.mkdir(exist_ok=True)
    pages = {"index.md": _api_page(), "catalogue.md": _catalogue_page(), "systems.md": matrix_page()}
    pages["gallery.md"] = gallery_page()
    pages |= {f"{module}.md": _module_page(module, title) for module, title in _MODULES.items()}
    known = {*_PUBLIC.values()}
    for path in folder.glob("tamis.*"):  # of an earlier build
        if path.suffix == ".rst" and path.stem not in known:
            path.unlink()
    for name, text in pages.items():
        if not (path := folder / name).exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _is_routing(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out what scikit-learn, River and the server of Python add to their classes; it has pages of its own."""
    added = name in ("set_output", "get_metadata_routing", "score") or re.fullmatch(r"set_\w+_request", name)
    foreign = str(getattr(member, "__module__", None)).startswith(("river.", "http.", "socketserver"))
    return True if added or foreign else None


def _inline_formula(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(latex_to_mathml(node.astext()))
    raise nodes.SkipNode


def _block_formula(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(f"<p class='formula'>{latex_to_mathml(node.astext(), display='block')}</p>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", _is_routing)
    app.connect("missing-reference", _by_public_name)
    app.connect("doctree-read", _leave_out_of_search)
    app.connect("build-finished", _write_llms_txt)
    # Formulas as MathML: browsers draw it themselves, offline too.
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_block_formula, None))


def _write_notebooks() -> None:
    """Write the executed notebooks as pages, with their tables and pictures."""
    folder = Path(__file__).parent
    notebooks = sorted((folder / "notebooks").glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as copies:
        for notebook in notebooks:
            content = json.loads(notebook.read_text(encoding="utf-8"))
            for output in (one for cell in content["cells"] for one in cell.get("outputs", ())):
                if "text/html" in output.get("data", {}):
                    # Markdown would end the HTML at a blank line, and read indented lines as code.
                    shown = "".join(output["data"]["text/html"])
                    output["data"]["text/html"] = f"\n```{{raw}} html\n{shown}\n```\n"
            (Path(copies) / notebook.name).write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "nbconvert", "--log-level=WARN", "--to=markdown"]
        # A process of its own, which returns its memory.
        subprocess.run(
            [*command, f"--output-dir={folder / 'api'}", *map(str, Path(copies).glob("*.ipynb"))], check=True
        )
    for notebook in notebooks:
        page = folder / "api" / f"{notebook.stem}.md"
        subjects = "```{index} ! jupyter, ! notebook, ! colab\n```\n\n" if "first" in notebook.stem else ""
        page.write_text(subjects + page.read_text(encoding="utf-8"), encoding="utf-8")


_write_pages()
_write_notebooks()
# Pictures whose source has changed; a process of its own, since models and matplotlib take memory.
subprocess.run([sys.executable, str(Path(__file__).with_name("draw.py"))], check=True)
