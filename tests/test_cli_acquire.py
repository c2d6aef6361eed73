"""`tamis train` and `tamis acquire` as a stranger uses them: prices, categories, a dialogue, JSON lines, mistakes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tamis
from tamis import IFC2F
from tamis.cli import main
from tamis.cli.dialogue import Dialogue


def table(n=900, grey=0.4):
    """The state shows in `pressure` and in `colour`, which says nothing where it is grey; `light` has holes."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)).round(3)
    X[:, 2] += 2 * state
    colour = np.where(rng.random(n) < grey, "grey", np.where(state == 1, "red", "blue"))
    lines = ["heat,light,pressure,colour,state"]
    for i, (heat, light, pressure) in enumerate(X.tolist()):
        lines.append(f"{heat},{'' if i % 5 == 0 else light},{pressure},{colour[i]},{('off', 'on')[state[i]]}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acquire")
    (folder / "table.csv").write_text(table(), encoding="utf-8")
    prices = {"heat": 0.01, "light": 0.01, "pressure": 0.02, "colour": 0.01}
    (folder / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    (folder / "less.json").write_text('{"heat": 0.01}', encoding="utf-8")
    return folder


@pytest.fixture
def call(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "90")

    def call(*arguments, said=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        code = main([*map(str, arguments)])
        return (code, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def model(folder):
    place = str(folder / "adaptive.tamis")
    arguments = [
        "--label",
        "state",
        "--cost",
        str(folder / "prices.json"),
        "--save",
        place,
        "--method",
        "adaptive",
    ]
    assert main(["train", str(folder / "table.csv"), *arguments]) == 0
    return place


def test_what_is_unavailable_is_not_asked_for(call, model):
    _, out, _ = call("acquire", model, "--json", said='{"stop": true}')
    usual = json.loads(out.splitlines()[0])["next"]
    code, out, _ = call(
        "acquire", model, "--json", "--unavailable", usual, said='{"observed": []}\n{"stop": true}'
    )
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert all(line["next"] not in (usual, None) and line["unavailable"] == [usual] for line in lines[:2])
    code, _, err = call("acquire", model, "--unavailable", "nose")
    assert code == 2
    assert "--unavailable names 'nose', which is not a column" in err


def test_training_says_how_well_it_does(call, folder, model):
    code, out, err = call(
        "train", "table.csv", "--label", "state", "--method", "ifc2f", "--save", "m.tamis", "--json",
        "--set", "n_bins=3", "--seed", 3,
    )  # fmt: skip
    printed = json.loads(out)
    assert (code, err) == (0, "")
    assert (printed["method"], printed["n_rows"], printed["held_out"]["n_rows"]) == ("IFC2F", 675, 225)
    assert printed["classes"] == ["off", "on"]
    assert printed["held_out"]["accuracy"] > 0.85
    assert printed["held_out"]["mean_cost"] == pytest.approx(0.01 * printed["held_out"]["mean_features"])
    assert tamis.load(folder / "m.tamis").n_bins == 3
    beside = {one["name"]: one for one in printed["held_out"]["baselines"]}
    assert list(beside) == [
        "same values for every row", "nothing", "forward selection, boosting", "all values, logistic",
        "all values, boosting",
    ]  # fmt: skip
    assert printed["held_out"]["loss"] == pytest.approx(
        1 - printed["held_out"]["accuracy"] + printed["held_out"]["mean_cost"]
    )
    assert beside["nothing"]["cost"] == 0.0
    assert (
        0.036 < beside["all values, boosting"]["cost"] < 0.04
    )  # a fifth of the values of a column is missing
    assert printed["held_out"]["loss"] < min(one["loss"] for one in beside.values()) + 0.03
    code, out, err = call(
        "train", "table.csv", "--label", "state", "--cost", "5", "--save", "n.tamis", "--method", "adaptive",
        "--max-rows", "300",
    )  # fmt: skip
    assert "225 training rows" in out
    assert "No value is worth its cost: every decision follows the class proportions." in out
    (hint,) = re.findall(r"To rank rows by probability instead: (.*)", out)
    code, out, _ = call(
        "train", "table.csv", "--label", "state", "--cost", "5", *hint.split(), "--max-rows", "300",
        "--save", "n.tamis", "--force", "--json",
    )  # fmt: skip
    ranked = json.loads(out)["held_out"]
    beside = {one["name"]: one["auc"] for one in ranked["baselines"]}
    assert code == 0
    assert beside["nothing"] == 0.5
    assert ranked["auc"] >= 0.5
    assert beside["all values, logistic"] > 0.9


def test_prices_and_errors_may_be_in_a_currency(call, folder):
    """The same prices from a CSV file, in euros, as in units of an error: the same values, and totals in euros."""
    lines = "column,euros\nheat,5\nlight,5\npressure,10\n\ncolour,5\n"
    (folder / "prices.csv").write_text(lines, encoding="utf-8-sig")
    arguments = [
        "train",
        "table.csv",
        "--label",
        "state",
        "--method",
        "etana",
        "--save",
        "e.tamis",
        "--force",
        "--json",
    ]
    code, out, _ = call(*arguments, "--cost", "prices.csv", "--error-cost", 500)
    in_euros = json.loads(out)["held_out"]
    _, out, _ = call(*arguments, "--cost", "prices.json")
    in_errors = json.loads(out)["held_out"]
    assert code == 0
    assert in_euros["accuracy"] == in_errors["accuracy"]
    for name in ("mean_cost", "loss"):
        assert in_euros[name] == pytest.approx(500 * in_errors[name])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("column,euros\nheat,5\nlight,much\n", "line 3: write a column and its price"),
        ("heat,5\nheat,6\n", "line 2: column 'heat' has a price already"),
        ("column,euros\n", "has no prices"),
        ("heat,-5\n", "line 1: write a column"),
    ],
)
def test_a_price_list_that_cannot_be_read_is_refused(call, folder, content, message):
    (folder / "list.csv").write_text(content, encoding="utf-8")
    code, _, err = call("train", "table.csv", "--label", "state", "--save", "n.tamis", "--cost", "list.csv")
    assert code != 0
    assert message in err
    code, _, err = call("train", "table.csv", "--label", "state", "--save", "n.tamis", "--error-cost", 0)
    assert "--error-cost 0 must be above 0" in err


@pytest.mark.slow
def test_a_race_chooses_the_method_and_is_reported(call, folder):
    """Two values decide together here, which one depends on the row: an own order for each row is ahead."""
    rng = np.random.default_rng(0)
    state, which = rng.integers(0, 2, (2, 500))
    X = rng.normal(size=(500, 3)).round(2)
    X[:, 0] = which
    X[:, 1:] += 4 * (2 * state[:, None] - 1) * (which[:, None] == [0, 1])
    lines = [
        "which,one,other,state",
        *(",".join(map(str, [*row, s])) for row, s in zip(X, state, strict=True)),
    ]
    (folder / "race.csv").write_text("\n".join(lines) + "\n")
    arguments = ("train", "race.csv", "--label", "state", "--cost", "0.05", "--save", "race.tamis", "--force")
    _, out, _ = call(*arguments, "--json")
    printed = json.loads(out)
    compared = {one["name"]: one for one in printed["candidates"]}
    assert list(compared) == ["fixed-subset", "ifc2f", "etana", "fetana", "adaptive-ifc2f", "aaco"]
    best = max(
        (one for one in printed["candidates"] if one["ahead"] > one["error"]), key=lambda one: one["ahead"]
    )
    assert best["ahead"] > best["error"] > 0
    assert printed["method"].lower() == best["name"].replace("-", "")
    for one in printed["candidates"]:
        assert compared["fixed-subset"]["loss"] - one["loss"] == pytest.approx(one["ahead"], abs=1e-12)


def test_a_number_is_learned_and_asked_for(call, folder):
    rng = np.random.default_rng(0)
    area, age, kind = (
        rng.normal(size=(300, 2)).round(3),
        rng.normal(size=300),
        rng.choice(["flat", "house"], 300),
    )
    price = 200 + 30 * area[:, 0] + 40 * (kind == "house") + rng.normal(size=300)
    lines = [f"{a},{b},{c},{d:.3f}" for (a, _), b, c, d in zip(area, age.round(3), kind, price, strict=True)]
    (folder / "prices.csv").write_text("area,age,kind,price\n" + "\n".join(lines) + "\n")
    learn = (
        "train",
        "prices.csv",
        "--label",
        "price",
        "--task",
        "regression",
        "--save",
        "price.tamis",
        "--force",
    )
    code, out, _ = call(*learn, "--method", "fixed-subset", "--cost", "0.02", "--json")
    held = json.loads(out)["held_out"]
    assert code == 0
    assert held["r2"] > 0.85
    assert "classes" not in json.loads(out)
    names = [one["name"] for one in held["baselines"]]
    assert names == [
        "same values for every row",
        "nothing: the mean",
        "forward selection, boosting",
        "all values, linear",
        "all values, boosting",
    ]
    nothing, forward, linear = held["baselines"][1:4]
    assert forward["loss"] < nothing["loss"]
    assert nothing["loss"] == pytest.approx(1.0, abs=0.5)
    assert linear["r2"] > 0.9
    answers = {"area": 1.0, "kind": "house", "age": 0.0}
    session = tamis.load(folder / "price.tamis").open()
    while session.next_feature:
        session.observe(answers[session.next_feature])
    assert 240 < session.decision < 290
    asked = [step["feature"] for step in session.explain()]
    _, out, _ = call("acquire", "price.tamis", said="\n".join(str(answers[name]) for name in asked) + "\n")
    assert f"Decision: {session.decision:.5g} ± {session.deviation:.2g}, paid 0.04" in out
    _, out, _ = call("acquire", "price.tamis", "--json", said='{"stop": true}')
    first = json.loads(out.splitlines()[0])
    assert first["decision"] == pytest.approx(price.mean(), abs=10)
    assert first["deviation"] == pytest.approx(price.std(), rel=0.2)
    method = ("--method", "fixed-subset", "--json")
    _, out, _ = call(*learn, *method, "--cost", "4", "--error-cost", "200", "--report", "price.html")
    scaled = json.loads(out)["held_out"]
    assert scaled["mean_features"] == held["mean_features"]
    assert scaled["loss"] == pytest.approx(200 * held["loss"])
    assert scaled["baselines"][1]["loss"] == pytest.approx(200 * nothing["loss"])
    page = (folder / "price.html").read_text(encoding="utf-8")
    assert "A squared error of its variance costs 200." in page
    assert "Squared error against cost" in page


@pytest.mark.slow
def test_the_page_shows_what_is_printed(call, folder, monkeypatch):
    """What docs/cli.md shows of both commands, less what is typed, which a terminal echoes and a file does not."""
    monkeypatch.setenv("COLUMNS", "100")
    (folder / "patients.csv").write_text(table(1500, 0.2), encoding="utf-8")
    _, trained, _ = call("train", "patients.csv", "--label", "state", "--save", "ward.tamis")
    _, asked, _ = call("acquire", "ward.tamis", said="grey\n2.9\n")
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    block = page[page.index("$ tamis train patients.csv") :].split("```")[0]
    shown = re.sub(r"(for 0.01: )\S+\n", r"\1", re.sub(r"\$ tamis .*\n", "", block))
    printed = trained + "\n" + asked
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in printed.splitlines()]


def test_the_saved_model_has_the_categories_of_text(model):
    saved = tamis.load(model)
    assert sorted(saved.categories_["colour"]) == ["blue", "grey", "red"]
    assert saved.feature_names_in_.tolist() == ["heat", "light", "pressure", "colour"]
    np.testing.assert_allclose(sorted(saved.prices_), [0.01, 0.01, 0.01, 0.02])


def test_names_of_classes_change_neither_accuracy_nor_cost(call, folder):
    """A column that indicates the class in the middle of the alphabet: it had one place for the other two."""
    rng = np.random.default_rng(0)
    state, noise = rng.integers(0, 3, 600), rng.normal(size=600).round(3)
    found = []
    for names in ("abc", "bac", "cba"):
        lines = [f"{noise[i]},{'xyz'[state[i]]},{names[state[i]]}" for i in range(600)]
        (folder / "three.csv").write_text("noise,smell,ill\n" + "\n".join(lines) + "\n")
        _, out, _ = call(
            "train",
            "three.csv",
            "--label",
            "ill",
            "--save",
            "t.tamis",
            "--json",
            "--force",
            "--method",
            "etana",
        )
        found.append(json.loads(out)["held_out"])
    assert found[0] == found[1] == found[2]
    assert found[0]["accuracy"] == 1.0


def test_dialogue_asks_until_it_is_sure(call, model):
    code, out, err = call("acquire", model, said="green\nred\n")
    assert (code, err) == (0, "")
    assert "colour (blue, grey, red), for 0.01:" in out
    assert "choose one of blue, grey, red" in out  # and asks again
    assert "Decision: on (0.9" in out
    assert out.splitlines()[-1].startswith("  colour = red  paid 0.01  on 0.9")
    code, out, _ = call("acquire", model, said="grey\n2.9\n")
    assert "pressure, for 0.02:" in out
    assert "Decision: on" in out
    assert "paid 0.03" in out


def test_what_is_not_to_be_had_and_what_is_told_unasked(call, model):
    code, out, _ = call("acquire", model, said="?\npressure = 4.5\n")
    assert code == 0
    assert "colour = unavailable" in out
    assert "Decision: on" in out
    code, out, _ = call("acquire", model, said="light = 0.5\nq\n")
    assert "light = 0.5  paid -" in out
    assert "paid 0" in out
    code, out, _ = call("acquire", model)  # the input ends
    assert code == 0
    assert "Decision:" in out


def test_programs_speak_lines(call, model):
    lines = ['{"value": "grey"}', '{"value": "mauve"}', "nonsense", '{"feature": "nose", "value": 1}',
             '{"feature": "heat", "value": 0.2}', '{"value": 2.8}']  # fmt: skip
    code, out, err = call("acquire", model, "--json", said="\n".join(lines))
    said = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert (said[0]["next"], said[0]["values"]) == ("colour", ["blue", "grey", "red"])
    assert (said[1]["next"], said[1]["price"], said[1]["cost"]) == ("pressure", 0.02, 0.01)
    assert "may be blue, grey, red" not in said[2]["error"]  # pressure is asked for now, and takes numbers
    assert all("error" in one for one in said[2:5])
    assert said[4]["error"] == "No feature is named 'nose'."
    last = said[-1]
    assert last["finished"]
    assert last["decision"] == "on"
    assert [(step["feature"], step["value"], step["paid"]) for step in last["path"]] == [
        ("colour", "grey", True), ("heat", 0.2, False), ("pressure", 2.8, True)
    ]  # fmt: skip
    assert last["cost"] == pytest.approx(0.03)


def test_a_program_goes_on_where_another_stopped(call, model):
    _, out, _ = call("acquire", model, "--json", said='{"value": "grey"}\n{"stop": true}\n')
    state = json.loads(out.splitlines()[1])
    line = json.dumps({"observed": state["observed"]})
    _, out, _ = call("acquire", model, "--json", said=f'{line}\n{{"value": 2.8}}\n')
    said = [json.loads(text) for text in out.splitlines()]
    assert said[1]["posterior"] == state["posterior"]
    assert said[-1]["cost"] == pytest.approx(0.03)


@pytest.mark.slow
def test_report_and_ensemble_are_kept(call, folder):
    code, out, err = call(
        "train", "table.csv", "--label", "state", "--set", "decision=ensemble", "--set", "max_steps=2",
        "--method", "adaptive", "--save", "b.tamis", "--report", "b.html", "--quiet",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "The report: b.html" in out
    page = (folder / "b.html").read_text(encoding="utf-8")
    assert "<h1>AdaptiveIFC2F on table.csv</h1>" in page
    assert "red</td>" in page  # the category's name, not its code
    code, out, _ = call("acquire", "b.tamis", said="red\n1\n2\n")
    assert code == 0
    assert "Decision: on" in out


def test_models_from_python_are_asked_by_column_numbers(call, folder, rng):
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) + 2 * y[:, None]
    tamis.save(IFC2F(random_state=0).fit(X, y), folder / "plain.tamis")
    code, out, _ = call("acquire", "plain.tamis", said="1=2.5\n2.2\n2.2\n")
    assert code == 0
    assert "1 = 2.5" in out
    dialogue = Dialogue.load(str(folder / "plain.tamis"))
    dialogue.observe(2.5, "0")
    assert dialogue.path()[0]["feature"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [("train table.csv --label state --set n_bins=3 --save m", "--set n_bins=3 needs a method"),
     ("train table.csv --label state", "Name an output: --save FILE"),
     ("train table.csv --label state --method ifc --save m", "No classifier is named 'ifc'; did you mean 'ifc2f'"),
     ("train table.csv --label state --task numbers --save m", "--task must be classification or"),
     ("train table.csv --label state --cost much --save m", "--cost much is neither a price nor a readable"),
     ("train table.csv --label state --cost table.csv --save m", "--cost table.csv, line 2: write a column"),
     ("train table.csv --label state --cost less.json --save m", "--cost less.json has no price for column 'light'"),
     ("train table.csv --label state --cost -1 --save m", "--cost -1 must be 0 or more"),
     ("train table.csv --label state --held-out 1 --save m", "--held-out 1.0 must be a share below 1"),
     ("train table.csv --label state --set bins=3 --method ifc2f --save m",
      "has no parameter 'bins'; did you mean 'n_bins'?"),
     ("train table.csv --label state --save none/m", "/none' does not exist; create it first"),
     ("acquire table.csv", "was not written by tamis.save"),
     ("acquire nothing.tamis", "nothing.tamis"),
     ("acquire other.tamis", "other.tamis contains no classifier that acquires values"),
     ("acquire new.tamis", "was saved before it was fitted")],
    ids=lambda value: value[:48],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(call, folder, arguments, message):
    tamis.save({"a": 1}, folder / "other.tamis")
    tamis.save(IFC2F(), folder / "new.tamis")
    code, out, err = call(*arguments.split())
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


NOT_A_NUMBER = "heat must be a finite number, got {}; enter {} if the value is unavailable."


def test_what_is_no_value_is_refused_in_the_words_of_who_asks(call, model):
    """Nobody at a terminal types None, and no program reads of characters and columns of a parser."""
    _, out, _ = call("acquire", model, "-q", said="heat=inf\nheat=1e400\nheat=much\ncolour=pink\nq\n")
    for value in ("'inf'", "'1e400'", "'much'"):
        assert NOT_A_NUMBER.format(value, "?") in " ".join(out.split())
    assert (
        "colour has no value 'pink': choose one of blue, grey, red; enter ? if the value is unavailable."
        in " ".join(out.split())
    )
    lines = [
        '{"value": 1',
        "[" * 100_000,
        "3",
        *(f'{{"feature": "heat", "value": {v}}}' for v in ("true", "1e999", "[1]")),
    ]
    code, out, err = call("acquire", model, "--json", said="\n".join(lines))
    found = [json.loads(line).get("error") for line in out.splitlines()]
    assert (code, err, found[0], found[-1]) == (0, "", None, None)  # at the end of the input it decides
    assert (
        found[1]
        == 'A line is not valid JSON: write one object, such as {"value": 3.5}, on a line, not \'{"value": 1\'.'
    )
    assert found[2].startswith("A line is not valid JSON")
    assert len(found[2]) < 200
    assert found[3].startswith("A line must be an object")
    assert found[4:7] == [NOT_A_NUMBER.format(value, "null") for value in ("True", "inf", "[1]")]


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
def test_a_process_may_be_started_without_input_or_output(model, closed):
    program = f"{sys.executable} -m tamis acquire {model} --json {closed}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, input="")
    assert (done.returncode, done.stderr) == (0, "")
    assert (done.stdout == "") == (">&-" in closed.split())


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (
            ["yes"] * 40,
            [],
            "The 30 training rows are all of class 'yes': give rows of two classes or more",
        ),
        (
            [0, 1] * 20,
            ["--held-out", "0.999"],
            "The 0 training rows are none of 40: give rows of two classes",
        ),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused(
    labels: list[object], options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "rows.csv", tmp_path / "model.tamis"
    path.write_text("a,y\n" + "".join(f"{i * i % 7},{label}\n" for i, label in enumerate(labels)))
    assert main(["train", str(path), "--label", "y", "--save", str(model), *options]) == 1
    assert message in capsys.readouterr().err
    assert not model.exists()


def test_a_price_list_is_paid_and_printed_in_its_currency(call, folder):
    """The shared fee of two columns is paid once, by the model and by the baselines."""
    (folder / "patients.csv").write_text(table(400, 0.2), encoding="utf-8")
    prices = dict.fromkeys(("heat", "light", "pressure", "colour"), 1)
    listed = {"prices": prices, "fees": [{"columns": ["heat", "light"], "fee": 2}], "currency": "EUR"}
    (folder / "prices.json").write_text(json.dumps(listed), encoding="utf-8")
    arguments = (
        "--label",
        "state",
        "--method",
        "fixed-subset",
        "--cost",
        "prices.json",
        "--error-cost",
        "100",
    )
    _, out, _ = call("train", "patients.csv", *arguments, "--save", "listed.tamis", "--force", "--json")
    printed = json.loads(out)
    assert printed["currency"] == "EUR"
    every = {one["name"]: one for one in printed["held_out"]["baselines"]}["all values, logistic"]
    assert every["n_values"] + 1.9 < every["cost"] <= every["n_values"] + 2.0
    _, out, _ = call("acquire", "listed.tamis", "-q", said="grey\n2.9\n")
    assert "for 1 EUR" in out
    listed["fees"] = [{"columns": ["heat"]}]
    (folder / "prices.json").write_text(json.dumps(listed), encoding="utf-8")
    _, _, error = call("train", "patients.csv", *arguments, "--save", "listed.tamis", "--force")
    assert "A price list must look like" in error


@pytest.fixture(scope="module")
def priced(folder):
    """A file with an identifier, which is left out."""
    rng = np.random.default_rng(1)
    lines = ["case,heat,pressure,state"]
    for i in range(200):
        on = rng.random() < 0.5
        lines.append(f"c{i:04d},{rng.normal() + 2 * on:.3f},{rng.normal() + on:.3f},{'on' if on else 'off'}")
    (folder / "cases.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "cases.csv"


@pytest.mark.parametrize(
    ("prices", "said"),
    [("heat,1\npresure,2\n", "has a price for 'presure', which is not a column; did you mean 'pressure'?"),
     ("heat,1\npressure,2\nzzz,2\n", "has a price for 'zzz', which is not a column: remove it."),
     ("heat,1\n", "has no price for column 'pressure': add it, 0 if it is free.")],
    ids=str,
)  # fmt: skip
def test_prices_that_do_not_fit_the_columns_are_explained(call, folder, priced, prices, said):
    (folder / "wrong.csv").write_text(prices, encoding="utf-8")
    code, _, err = call("train", priced, "--label", "state", "--cost", "wrong.csv", "--save", "no.tamis")
    assert code == 2
    assert f"--cost wrong.csv {said}" in " ".join(err.split())
    assert not (folder / "no.tamis").exists()


def test_the_price_of_a_column_that_is_left_out_is_not_used(call, folder, priced):
    (folder / "more.csv").write_text("case,3\nheat,1\npressure,2\nstate,0\n", encoding="utf-8")
    learn = (
        "train",
        priced,
        "--label",
        "state",
        "--cost",
        "more.csv",
        "--error-cost",
        "100",
        "--save",
        "c.tamis",
    )
    code, _, err = call(*learn, "--method", "fixed-subset", "--force")
    assert code == 0
    assert "the price of case, state is not used: the column is excluded." in " ".join(err.split())
    assert tamis.load(folder / "c.tamis").cost == {"heat": 1.0, "pressure": 2.0}


def test_a_decimal_comma_is_a_number_and_thousands_are_not(call, folder, priced):
    call("train", priced, "--label", "state", "--method", "fixed-subset", "--save", "d.tamis", "--force")
    _, out, _ = call("acquire", "d.tamis", said="heat=2,5\nq\n")
    assert "heat = 2.5" in out
    _, out, _ = call("acquire", "d.tamis", said="heat=1,234\nheat=-0,125\nq\n")
    assert "a decimal comma or thousands" in " ".join(out.split())
    assert "heat = -0.125" in out
    _, out, _ = call("acquire", "d.tamis", said="heat=1,2,3\nq\n")
    assert "heat must be a finite number" in " ".join(out.split())


def test_an_implausible_value_is_asked_for_once_more(call, model):
    """In the terminal and for programs; confirmed, it is recorded."""
    _, out, _ = call("acquire", model, "-q", said="heat=98.6\nheat=98.6\ncolour=pink\ncolour=pink\nq\n")
    printed = " ".join(out.split())
    assert re.search(r"98.6 is outside -?[\d.]+ to [\d.]+: which unit\?", printed)
    assert printed.count("colour has no value 'pink': choose one of blue, grey, red") == 1
    assert "heat = 98.6 paid -" in printed
    assert "colour = pink" in printed
    lines = [
        {"feature": "heat", "value": 98.6}, {"feature": "heat", "value": 98.6, "confirmed": True},
        {"outcome": "no result"}, {"outcome": "lost"}, {"stop": True},
    ]  # fmt: skip
    _, out, _ = call("acquire", model, "--json", said="\n".join(map(json.dumps, lines)))
    found = [json.loads(line) for line in out.splitlines()]
    assert "which unit?" in found[1]["question"]
    assert found[2]["observed"] == [["heat", 98.6, False]]
    assert found[3]["observed"][1:] == [[found[2]["next"], None, True]]
    assert found[3]["cost"] == found[2]["price"] > 0
    assert "no result" in found[4]["error"]
    assert [step["outcome"] for step in found[-1]["path"]] == ["out of range", "no result"]


def test_units_and_ranges_are_declared_in_the_price_file(call, folder):
    (folder / "units.csv").write_text(
        "heat,0.01,°C,35.1,40.9\nlight,0.01\npressure,0.02,mmHg\ncolour,0.01\n", encoding="utf-8"
    )
    content = {"prices": {"heat": 0.01, "light": 0.01, "pressure": 0.02, "colour": 0.01}}
    content |= {
        "units": {"heat": {"°C": 1, "°F": [0.5555555556, -17.7777777778]}},
        "ranges": {"heat": [35.1, 40.9]},
    }
    (folder / "units.json").write_text(json.dumps(content), encoding="utf-8")
    for name, said in (("units.csv", "heat=98.6\nq\n"), ("units.json", "heat=98.6\nheat=98.6 F\nq\n")):
        code, _, err = call(
            "train", "table.csv", "--label", "state", "--cost", name, "--method", "fixed-subset", "--set",
            "n_features=2", "--save", f"{name}.tamis", "--held-out", "0", "-q",
        )  # fmt: skip
        assert code == 0, err
        _, out, _ = call("acquire", f"{name}.tamis", "-q", said=said)
        printed = " ".join(out.split())
        assert "98.6 is outside 35.1 to 40.9 °C: which unit?" in printed
        assert ("heat = 37" in printed) == (name == "units.json")


def test_records_are_followed_and_drawn(call, folder, model):
    lines = table().splitlines()
    few = [
        lines[0],
        *(line if i % 2 else re.sub(r",[^,]*(,[^,]*)$", r",\1", line) for i, line in enumerate(lines[1:])),
    ]
    (folder / "records.csv").write_text(
        "id," + "\n".join(f"r{i},{line}" for i, line in enumerate(few))[3:], encoding="utf-8"
    )
    code, out, err = call(
        "acquire", model, "records.csv", "--label", "state", "--out", "policy.csv", "--tree", "tree.svg",
        "--report", "r.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "The policy would cost" in out
    assert "The tree: tree.svg" in out
    rows = (folder / "policy.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "record,decision,probability,cost,acquired,next,next_cost,label"
    assert len(rows) == 901
    assert "<svg" in (folder / "tree.svg").read_text(encoding="utf-8")
    assert "Policy per record" in (folder / "r.html").read_text(encoding="utf-8")
    code, out, _ = call("acquire", model, "records.csv", "--label", "state", "--json", "--budget", "0.015")
    found = json.loads(out)
    assert found["n_rows"] == 900
    assert max(row["cost"] for row in found["records"]) <= 0.015
    assert found["error"]["low"] < found["error"]["value"] < found["error"]["high"]
    # Written files are replaced without --force, and rows without labels have a policy too.
    (folder / "open.csv").write_text("\n".join(line.rpartition(",")[0] for line in few), encoding="utf-8")
    code, out, err = call("acquire", model, "open.csv", "--out", "policy.csv")
    assert (code, err) == (0, "")
    assert "colour is acquired next." in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--out", "p.csv"), "--out, --tree and --report are for records: give a FILE"),
        (("table.csv", "--tree", "t.svg"), "--tree t.svg needs the outcome of each record"),
        (("table.csv", "--label", "state", "--tree", "t.pdf"), "--tree t.pdf must end in .html or .svg"),
        (("table.csv", "--serve"), "--serve and --log are for single cases: omit table.csv"),
        (("table.csv", "--budget", "-1"), "--budget -1 must be 0 or more"),
        (("nose.csv",), "There is no file 'nose.csv'"),
    ],
)
def test_records_that_cannot_be_followed_are_explained(call, model, arguments, said):
    code, _, err = call("acquire", model, *arguments)
    assert code in (1, 2)
    assert said in err


def test_an_answer_is_undone_explained_and_logged(call, model, folder):
    _, out, _ = call("acquire", model, "--json", said='{"stop": true}')
    first = json.loads(out.splitlines()[0])["next"]
    value = "grey" if first == "colour" else "1.5"
    (folder / "log.jsonl").unlink(missing_ok=True)
    code, out, _ = call(
        "acquire", model, "--log", "log.jsonl", "--case", "Miller", said=f"w\n{value}\nu\n{value}\nq\n"
    )
    assert code == 0
    assert "An answer can move the probability of" in " ".join(out.split())
    assert out.count(f"{first} = ") == 1
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["open", "answer", "undo", "answer", "decision"]
    assert {line["case"] for line in lines} == {"Miller"}
    assert lines[1]["feature"] == first
    assert lines[2]["posterior"] == lines[0]["posterior"]
    code, out, _ = call(
        "acquire", model, "--json", "--log", "log.jsonl",
        said=f'{{"value": "{value}"}}\n{{"undo": true}}\n{{"undo": true}}\n{{"stop": true}}',
    )  # fmt: skip
    found = [json.loads(line) for line in out.splitlines()]
    assert found[2]["observed"] == []
    assert "nothing to undo" in found[3]["error"]
    assert len((folder / "log.jsonl").read_text(encoding="utf-8").splitlines()) == 9  # appended
    code, _, err = call("acquire", model, "--log", "table.csv")
    assert code == 2
    assert "--log table.csv exists already, and is not from Tamis" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            {"heat": 12, "light": 3.5, "pressure": 40, "colour": 0},
            "prices up to 40, but a wrong decision costs 1",
        ),
        (
            {"heat": 0.6, "light": 0.7, "pressure": 0.6, "colour": 0},
            "prices up to 0.7, but a wrong decision costs 1",
        ),
        (
            {"prices": {"heat": 0.1, "light": 0.1, "pressure": 0.2, "colour": 0}, "currency": "EUR"},
            "prices up to 0.2 EUR, but a wrong decision costs 1",
        ),
    ],
)
def test_prices_in_a_currency_need_the_cost_of_an_error(call, folder, content, said):
    (folder / "euros.json").write_text(json.dumps(content), encoding="utf-8")
    command = (
        "train",
        "table.csv",
        "--label",
        "state",
        "--cost",
        "euros.json",
        "--save",
        "euros.tamis",
        "--force",
        "-q",
    )
    for method in ((), ("--method", "fixed-subset")):
        code, _, err = call(*command, "-q", *method)
        assert code == 2
        assert said in " ".join(err.split())
    most = max(content.get("prices", content).values())
    assert f"such as --error-cost {10 * most:g}, ten times the highest price" in " ".join(err.split())
    code, _, err = call(*command, "-q", "--method", "fixed-subset", "--error-cost", 1)
    assert code == 0, err
    code, _, err = call(*command, "-q", "--method", "fixed-subset", "--error-cost", 10 * most)
    assert code == 0, err
    assert tamis.load(folder / "euros.tamis").candidates_.size > 0
