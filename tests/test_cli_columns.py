"""`tamis columns` as a stranger uses it: any table, every rule, budgets, Ctrl-C, going on; mistakes in one line."""

from __future__ import annotations

import html
import json
import re
import shlex
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import tamis
from tamis.cli import main
from tamis.cli.candidates import RULES
from tamis.columns.generators import Chain, Interactions, Originals, PrincipalComponents, explore
from tamis.columns.online_fdr import RULES as SPENDING


@pytest.fixture(scope="module")
def table():
    """The price is made of `a`, `a*b`, being red and being m; `c` has holes, `same` is constant, `twice` is 2 a."""
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["colour"] = rng.choice(["blue", "green", "red"], n)
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["same"] = 1
    frame["twice"] = 2 * frame["a"]
    frame["price"] = (
        3 * frame["a"] + 2 * frame["a"] * frame["b"] + 2 * (frame["colour"] == "red") + (frame["sex"] == "m")
    )
    frame["price"] += 0.5 * rng.normal(size=n)
    frame["visits"] = rng.poisson(np.exp(0.4 * frame["a"] + 0.3))
    frame["state"] = np.where(frame["a"] + rng.normal(size=n) > 0, "on", "off")
    frame["code"] = rng.integers(0, 3, n)
    frame["url"] = [f"u{i}" for i in range(n)]
    frame.loc[::9, "c"] = np.nan
    return frame


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    table.drop(columns=["url"]).to_csv(folder / "table.csv", index=False)
    table.to_csv(folder / "text.csv", index=False)
    table[["a", "b", "c", "state"]].fillna(0).to_parquet(folder / "table.parquet")
    table.iloc[:2, [0, 1, 7]].to_csv(folder / "two.csv", index=False)
    rng = np.random.default_rng(1)
    words = rng.random((200, 400)) * (rng.random((200, 400)) < 0.1)
    kind = np.where(words[:, 7] + words[:, 90] + 0.1 * rng.normal(size=200) > 0.1, 1, -1)
    dump_svmlight_file(sp.csr_matrix(words), kind, str(folder / "words.svm"), zero_based=False)
    genes = pd.DataFrame(rng.normal(size=(60, 3000)), columns=[f"g{j}" for j in range(3000)])
    genes["type"] = np.where(genes["g1234"] > 0, "ALL", "AML")
    genes.to_csv(folder / "genes.csv", index=False)
    return folder


@pytest.fixture
def call(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TAMIS_DATA", str(folder / "none"))

    def call(*arguments):
        code = main(["columns", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return call


PRICE = ("table.csv", "--label", "price", "--drop", "visits", "--drop", "state", "--drop", "code", "-q")


def document_of(call, *arguments):
    code, out, err = call(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_what_is_shown_fits_the_terminal(call):
    code, out, err = call(*PRICE, "--interactions", "--top", "3")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "alpha-investing on table.csv"
    detail = " ".join(" ".join(lines[1:6]).split())
    assert "linear model for a numeric label of 300 values" in detail
    assert "text as 4 columns of 0 and 1 (colour, sex)" in detail
    assert re.search(r"p-value  threshold  wealth after  coefficient", out)
    assert re.search(r"^ *1  a +[\d.]+e-\d+ +0\.0125 +0\.0375", out, flags=re.MULTILINE)
    assert re.search(r"^and \d more$", out, flags=re.MULTILINE)
    text = " ".join(out.split())
    assert re.search(r"\d+ of \d+ candidates are accepted: a, ", text)
    assert re.search(r"Rejected \d+ for insufficient evidence", text)
    assert re.search(r"Skipped \d+ \d+ constant, \d+ collinear", text)
    assert "had missing values, replaced by the mean of the others" in text
    assert "The search stopped: no more candidates." in text
    assert re.search(r"Wealth left 0\.\d+", text)
    assert max(map(len, lines)) <= 80


def test_numbers_are_those_of_the_api(call, table):
    found = document_of(
        call, *PRICE, "--interactions", "--pca", "2", "--shuffle", "--seed", "3", "--target-fdr", "0.1"
    )
    frame = pd.get_dummies(table[["a", "b", "c", "colour", "sex", "twice"]], prefix_sep="=", dtype=float)
    frame = frame[
        ["a", "b", "c", "colour=blue", "colour=green", "colour=red", "sex=m", "twice"]
    ]  # `same` is left out
    chain = Chain(PrincipalComponents(frame, 2), Originals(frame), Interactions(frame), random_state=3)
    selector = tamis.AlphaInvesting(target_fdr=0.1, missing="mean")
    same = explore(selector, chain, table["price"].to_numpy())
    assert found["selected"] == selector.selected_
    assert found["n_offered"] == same.n_candidates
    trace = {record["name"]: record for record in selector.trace_}
    for feature in found["features"]:
        record = trace[feature["name"]]
        for name in ("p_value", "threshold", "wealth"):
            assert feature[name] == pytest.approx(record[name], rel=1e-6)
    made = same.transform(frame)
    fitted = np.linalg.lstsq(np.column_stack([made, np.ones(300)]), table["price"].to_numpy(), rcond=None)[0]
    named = dict(zip(selector.get_feature_names_out(), fitted, strict=False))
    for feature in found["features"]:
        assert feature["coefficient"] == pytest.approx(named[feature["name"]], rel=1e-6)


def test_every_spending_rule_has_its_name():
    assert set(SPENDING) <= set(RULES)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "alpha-investing"])
def test_every_rule_finds_what_shows(call, rule):
    found = document_of(call, "table.parquet", "--label", "state", "--rule", rule.upper())
    assert found["rule"] == rule
    assert found["selected"][0] == "a"
    assert found["n_offered"] == 3
    assert found["model"] == (None if "fs" in rule or rule == "saola" else "logistic")


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (("--label", "state"), "logistic"),
        (("--label", "visits"), "linear"),
        (("--label", "visits", "--model", "poisson"), "poisson"),
        (("--label", "sex", "--robust"), "logistic"),
        (("--label", "colour"), "multinomial"),
    ],
)
def test_model_is_guessed_and_said(call, words, model):
    found = document_of(call, "table.csv", "-q", *words)
    assert found["model"] == model
    if model != "poisson":
        return
    assert found["features"][0]["name"] == "a"
    assert 0.2 < found["features"][0]["coefficient"] < 0.6


def test_a_stand_in_is_let_go(call, folder):
    rng = np.random.default_rng(0)
    true = rng.normal(size=300)
    columns = {
        "like": true + 0.5 * rng.normal(size=300),
        "true": true,
        "y": true + 0.7 * rng.normal(size=300),
    }
    np.savetxt(
        folder / "like.csv",
        np.column_stack(list(columns.values())),
        delimiter=",",
        header="like,true,y",
        comments="",
    )
    assert document_of(call, "like.csv", "--label", "y")["selected"] == ["like", "true"]
    assert document_of(call, "like.csv", "--label", "y", "--release", "0.05")["selected"] == ["true"]


@pytest.mark.slow
def test_svmlight_and_wide_tables(call):
    found = document_of(call, "words.svm")
    assert {"x8", "x91"} <= set(found["selected"])  # counted from 1, as in the file
    assert found["classes"] == [-1, 1] or found["classes"] == [1, -1]
    found = document_of(call, "words.svm", "--interactions", "--rule", "bic", "--max-features", "2")
    assert len(found["selected"]) == 2
    assert found["ended"].startswith("max_features")
    assert document_of(call, "genes.csv", "--label", "type")["selected"] == ["g1234"]
    assert (
        document_of(call, "genes.csv", "--label", "type", "--rule", "saola", "--max-candidates", "50")[
            "n_offered"
        ]
        == 50
    )


@pytest.fixture(scope="module")
def sensors(folder):
    """Whether a part fails: of two columns of one sensor, neither of which shows it, and by a material."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        rng.integers(0, 2, size=(600, 6)), columns=["s1_a", "s2_a", "s1_b", "s3.a", "s2_b", "s3.b"]
    )
    frame["metal"] = rng.choice(["iron", "lead", "tin", "zinc"], 600)
    fails = (frame["s2_a"] ^ frame["s2_b"] == 1) & (frame["metal"] != "tin")
    frame["fails"] = np.where(fails ^ (rng.random(600) < 0.05), "yes", "no")
    frame.to_csv(folder / "sensors.csv", index=False)
    return frame


SENSORS = ("sensors.csv", "--label", "fails", "--rule", "gfsfs")


def test_groups_by_prefix_are_decided_on_together(call, sensors):
    """The exclusive or of two columns shows only if both arrive in one group."""
    alone = document_of(call, *SENSORS)
    assert not {"s2_a", "s2_b"} & set(alone["selected"])
    grouped = document_of(call, *SENSORS, "--groups", "prefix")
    assert {"s2_a", "s2_b"} <= set(grouped["selected"])
    assert not {"s1_a", "s1_b", "s3.a"} & set(grouped["selected"])
    code, out, _ = call(*SENSORS, "--groups", "prefix", "-q")
    assert code == 0
    assert "3 groups of columns" in out  # s1, s2 and the metal; a dot separates the names of s3


def test_groups_of_a_file_are_those_of_the_api(call, sensors, folder):
    groups = {"second": ["s2_a", "s2_b"], "metal": ["metal"], "rest": ["s1_a", "s3.b"]}
    (folder / "groups.json").write_text(json.dumps(groups))
    lines = [f"{column},{group}\n" for group, columns in groups.items() for column in columns]
    (folder / "groups.csv").write_text("".join(lines))
    by_json, by_csv = (document_of(call, *SENSORS, "--groups", f"groups.{kind}") for kind in ("json", "csv"))
    assert by_json["selected"] == by_csv["selected"]
    metals = [f"metal={value}" for value in sorted(set(sensors["metal"]))]
    order = ["s1_a", "s3.b", "s2_a", "s2_b", "s1_b", "s3.a", *metals]
    X = np.column_stack([sensors["metal"] == m.partition("=")[2] if "=" in m else sensors[m] for m in order])
    made = tamis.GFSFS({"second": ["s2_a", "s2_b"], "metal": metals, "rest": ["s1_a", "s3.b"]})
    made.start(sensors["fails"])
    for part in (order[:2], order[2:4], order[4:6], metals):
        at = [order.index(name) for name in part]
        made.offer_many(X[:, at].astype(float), part)
    assert by_json["selected"] == made.selected_


def test_spending_rules_take_groups(call, sensors):
    found = document_of(call, "sensors.csv", "--label", "fails", "--groups", "text")
    assert {name for name in found["selected"] if name.startswith("metal=")}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "--groups a.json: line 1 is not JSON"),
        ("a.json", "[1]", "--groups a.json: write an object of lists"),
        ("a.json", '{"g": ["s9"]}', "group 'g' names 's9', which is not a column of the file."),
        ("a.json", '{"g": ["s1_a"], "h": ["s1_a"]}', "column 's1_a' is in two groups: name it once."),
        ("a.csv", "s1_a\n", "--groups a.csv: line 1 has 1 field: write a column and its group."),
    ],
)
def test_a_wrong_file_of_groups_is_rejected(call, sensors, folder, name, text, message):
    (folder / name).write_text(text)
    code, out, err = call(*SENSORS, "--groups", name)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_stepwise_searches_all_columns(call, table):
    found = document_of(call, *PRICE, "--rule", "stepwise-bic", "--drop", "c")
    assert found["selected"][0] in ("a", "twice")
    assert set(found["selected"][1:]) <= {"colour=red", "colour=blue", "colour=green", "sex=m", "b"}
    assert found["features"][0]["name"] == found["selected"][0]


@pytest.mark.slow
def test_stepwise_searches_all_columns_of_a_wide_table(call, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20_000))
    y = X[:, -1] + X[:, -2] + 0.3 * rng.normal(size=60)
    X[:, 5] = X[:, -1] + 0.5 * rng.normal(size=60)  # comes first, in a block of its own if there were blocks
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(20_000)])
    frame.assign(y=y).to_parquet(folder / "wide.parquet")
    found = document_of(call, "wide.parquet", "--label", "y", "--rule", "stepwise-ric")
    assert found["selected"] == tamis.ForwardStepwise("ric").fit(frame, y).selected_
    assert found["selected"][:2] == ["x19998", "x19999"] or found["selected"][:2] == ["x19999", "x19998"]


def test_stepwise_takes_sparse_rows(call, folder, tmp_path):
    found = document_of(call, "words.svm", "--rule", "stepwise-bic", "--save", tmp_path / "words.tamis")
    X, _ = load_svmlight_file(str(folder / "words.svm"))
    assert {"x8", "x91"} <= set(found["selected"])
    places = sorted(int(name[1:]) - 1 for name in found["selected"])
    made = tamis.load(tmp_path / "words.tamis")["recipes"].transform(X)
    assert np.array_equal(made, X[:, places].toarray())


def test_features_are_made_again_from_what_was_saved(call, table, tmp_path):
    found = document_of(call, *PRICE, "--interactions", "--save", tmp_path / "price.tamis")
    saved = tamis.load(tmp_path / "price.tamis")
    frame = pd.get_dummies(table, prefix_sep="=", dtype=float)
    made = saved["recipes"].transform(frame)
    assert saved["selector"].selected_ == found["selected"]
    np.testing.assert_allclose(made[:, saved["recipes"].names.index("a*b")], table["a"] * table["b"])
    assert saved["texts"] == {"colour": ["colour=blue", "colour=green", "colour=red"], "sex": ["sex=m"]}


def test_report_says_how_to_repeat_it(call, tmp_path):
    line = ("--interactions", "--payout", "0.1", "--robust", "--report")
    code, out, _ = call(*PRICE, *line, tmp_path / "first.html")
    page = (tmp_path / "first.html").read_text(encoding="utf-8")
    assert (code, out.splitlines()[-1]) == (0, f"The report: {tmp_path / 'first.html'}")
    again = html.unescape(re.search(r"tamis columns (table\.csv [^<]*)", page).group(1))
    assert call(*shlex.split(again)[:-1], tmp_path / "second.html", "-q")[0] == 0
    pages = [
        re.sub(r"<dt>Time.*?</dd>", "", text)
        for text in (page, (tmp_path / "second.html").read_text("utf-8"))
    ]
    assert pages[0] == pages[1]


def test_interrupt_keeps_what_was_found_and_goes_on(call, tmp_path, monkeypatch):
    line = (*PRICE, "--interactions", "--checkpoint", tmp_path / "walk.tamis")
    whole = document_of(call, *PRICE, "--interactions")
    draw = Interactions._draw

    def interrupted(self, selector, width):
        signal.raise_signal(signal.SIGINT)
        return draw(self, selector, min(width, 5))

    with monkeypatch.context() as patch:
        patch.setattr(Interactions, "_draw", interrupted)
        code, out, err = call(*line, "--report", tmp_path / "part.html")
    assert (code, err) == (130, "tamis: interrupted; the same command resumes from the checkpoint\n")
    assert "The search stopped: interrupted." in " ".join(out.split())
    assert "This search was interrupted" in (tmp_path / "part.html").read_text(encoding="utf-8")
    rest = document_of(call, *line)
    for name in ("selected", "features", "n_offered", "decisions"):
        assert rest[name] == whole[name]


@pytest.mark.parametrize("options", [("--checkpoint", "walk.tamis"), ("--checkpoint=walk.tamis",)])
def test_interrupt_before_the_first_checkpoint_promises_none(call, tmp_path, monkeypatch, options):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tamis.cli.columns.ColumnTask", interrupted)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,price\n1,2\n3,5\n")
    code, out, err = call("table.csv", "--label", "price", "-q", *options)
    assert (code, out, err) == (130, "", "tamis: interrupted\n")
    assert not (tmp_path / "walk.tamis").exists()


def test_error_in_the_middle_keeps_what_was_found(call, monkeypatch):
    from tamis.errors import DataError

    def broken(self, selector, width):
        raise DataError("The disk is gone.")

    monkeypatch.setattr(Interactions, "_draw", broken)
    code, out, err = call(*PRICE, "--interactions")
    assert (code, err) == (1, "tamis: The disk is gone.\n")
    assert "Interrupted by: The disk is gone." in out
    assert "  a  " in out


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (("--rule", "alpha-investin"), 2, "--rule alpha-investin is not a rule; did you mean 'alpha-investing'? "),
        (("--label", "prise"), 2, "'table.csv' has no column 'prise'; did you mean 'price'"),
        (("--model", "logit"), 2, "--model logit is not a model; did you mean 'logistic'? Known: linear, "),
        (("--label", "same"), 1, "All 300 rows have the label 1, so there is nothing to explain: "),
        (("--model", "logistic"), 1, "'price' has 300 different labels, but a logistic model has two: choose --mod"),
        (("--rule", "bic", "--label", "colour"), 1, "'colour' has 3 different labels, but a logistic model has two: "),
        (("--label", "state", "--model", "linear"), 2, "--model linear needs a numeric label, but 'state' contains"),
        (("--model", "poisson"), 2, "--model poisson needs counts, but 'price' contains -"),
        (("--rule", "osfs"), 2, "--rule osfs separates classes, but 'price' has 300 different numbers"),
        (("--rule", "osfs", "--model", "linear"), 2, "--rule osfs fits no model: omit --model."),
        (("--rule", "bic", "--label", "colour", "--model", "multinomial"), 2, "--rule bic has no multinomial model: "),
        (("--rule", "grafting", "--model", "poisson"), 2, "--rule grafting has no model for counts: choose --model"),
        (("--rule", "grafting", "--max-features", "3"), 2, "--rule grafting may drop features again: omit --max"),
        (("--rule", "bic", "--robust"), 2, "--robust is for spending rules, not for bic."),
        (("--rule", "bic", "--release", "0.1"), 2, "--release is for spending rules, not for bic."),
        (("--rule", "lond", "--payout", "0.1"), 2, "--initial-wealth and --payout are for --rule alpha-"),
        (("--target-fdr", "0.1", "--payout", "0.1"), 2, "Give either --target-fdr, or --initial-wealth and --payout."),
        (("--target-fdr", "2"), 2, "--target-fdr must be a number in (0, 1) or None, got 2.0."),
        (("--rule", "bic", "--groups", "text"), 2, "--groups is for gfsfs and spending rules, not for bic."),
        (("--groups", "text", "--logs"), 2, "--groups offers the columns of the file in their order: omit --pca, "),
        (("--groups", "text", "--max-candidates", "4"), 2, "--max-candidates can end within a group: omit it, or --"),
        (("--groups", "text", "--release", "0.1"), 2, "--release drops single features: omit it, or --groups."),
        (("--groups", "none.json"), 2, "--groups none.json: cannot be read (FileNotFoundError): write text, prefix, "),
        (("--max-candidates", "0"), 2, "--max-candidates must be 1 or more, got 0."),
        (("--missing", "keep"), 2, "--missing keep is not known here: write mean or error."),
        (("--missing", "error"), 1, "'table.csv': c (11.3 %) has missing values, the first in row 1; add"),
        (("--report", "no/a.html"), 2, "Cannot write the report 'no/a.html': the folder 'no' does not exist"),
        (("--save", "no/a.tamis"), 2, "--save no/a.tamis: the folder"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(call, line, code, message):
    given = line if "--label" in line else (*line, "--label", "price")
    found = call("table.csv", "-q", *given)
    assert (found[0], found[1]) == (code, "")
    assert found[2].startswith(f"tamis: {message}")
    assert found[2].count("\n") == 1


def test_text_and_too_few_rows_are_told(call):
    code, out, err = call("text.csv", "--label", "price")
    assert (code, "url" in out) == (0, False)
    assert "url is excluded: an identifier, 300 distinct texts in 300 rows; --keep url keeps it." in err
    code, _, err = call("text.csv", "--label", "price", "--keep", "url", "-q")
    assert (code, err) == (
        1, "tamis: Column 'url' contains text with 300 distinct values such as 'u0': exclude it with --drop url.\n"
    )  # fmt: skip
    code, _, err = call("two.csv", "--label", "price")
    assert (code, err) == (1, "tamis: 2 rows are too few to test a column: give 3 or more.\n")


def test_page_shows_what_the_command_prints(call):
    page = (Path(__file__).resolve().parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    command, shown = re.search(r"\$ tamis columns (.*)\n((?:.|\n)*?)```", page).groups()
    out = call(*shlex.split(command), "-q")[1]

    def steady(text):
        return [line.rstrip() for line in text.rstrip().splitlines() if " candidates a second" not in line]

    assert steady(out) == steady(shown)
