import math

import pytest

from tamis.watch import Rule
from tamis.watch.alerts import AlertLog


def holds(text, values=None, performance=None, before=None, feature=None):
    values = values or {}
    return Rule(text).holds(
        lambda measure, name: values[measure, name], performance or {}, before or {}, feature
    )


def test_comparisons_of_measures():
    values = {
        ("reliance", "age"): 0.5,
        ("relevance", "age"): 0.2,
        ("psi", "age"): math.nan,
        ("state", "age"): "neither",
    }
    assert holds('reliance("age") > 2 * relevance("age")', values)
    assert not holds('reliance("age") > 3 * relevance("age")', values)
    assert not holds('psi("age") > 0.2', values)
    assert not holds('psi("age") <= 0.2', values)
    assert holds('not psi("age") > 0.2 and reliance("*") - 0.1 >= 0.4', values, feature="age")
    assert holds('state("age") == "neither"', values)
    assert holds("0.5 < auc <= 0.7", performance={"auc": 0.7})
    assert not holds(
        "accuracy / majority_accuracy < 1", performance={"accuracy": 0.5, "majority_accuracy": 0.0}
    )


def test_a_drop_is_measured_from_the_first_window():
    rule = "auc drops by more than 0.05"
    assert holds(rule, performance={"auc": 0.7}, before={"auc": 0.8})
    assert not holds(rule, performance={"auc": 0.76}, before={"auc": 0.8})
    assert not holds(rule, performance={"auc": 0.7})
    assert Rule(rule).names == {"auc"}


def test_reads_the_number_of_rows_and_the_names():
    rule = Rule('reliance("a b") > relevance("*") for 2,000 rows', severity="critical", cooldown=10)
    assert rule.n_rows == 2000
    assert rule.names == {"reliance", "relevance"}
    assert rule.features == ["a b", "*"]


@pytest.mark.parametrize(
    "text",
    [
        "", "psi", 'psi("a")', 'psi("a") > ', 'psi("a") > "b"', 'state("a") > "b"', 'psi("a", 1) > 0', "psi(a) > 0",
        '__import__("os").system("true") > 0', '"a".join("b") == "c"', "[x for x in y] > 1", "(lambda: 1)() > 0",
        "auc ** 9 > 1", "1 if auc else 2", "not auc", 'psi("a") > 0 and 1', "(" * 240 + "1" + ")" * 240,
    ],
)  # fmt: skip
def test_refuses_what_is_no_comparison(text):
    with pytest.raises(ValueError, match="cannot be parsed"):
        Rule(text)


def test_refuses_other_arguments():
    for arguments, name in ((("auc > 1", "fatal"), "severity"), (("auc > 1", "info", -1), "cooldown")):
        with pytest.raises(ValueError, match=name):
            Rule(*arguments)
    for text in (3, "a" * 501):
        with pytest.raises(ValueError, match="at most 500 characters"):
            Rule(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'state("*") == "used but no longer relevant"',
            "'age' is stale since row 1,200; 11.0% of the reliance is on it.",
        ),
        ('state("*") != "neither"', "'age' is stale since row 1,200; 11.0% of the reliance is on it."),
        ('psi("*") > 0.2 for 500 rows', "The PSI of 'age' is 0.312, above 0.2 since row 1,200."),
        (
            'missing("age") <= 0.5',
            "The share of missing values of 'age' is 0.1, at most 0.5 since row 1,200.",
        ),
        (
            "auc drops by more than 0.05",
            "The AUC has fallen from 0.900 to 0.800, by more than 0.05 since row 1,200.",
        ),
        (
            'reliance("age") > 2 * relevance("age") and auc < 0.9',
            'reliance("age") > 2 * relevance("age") and auc < 0.9 since row 1,200: AUC 0.8, reliance of \'age\' 0.11,'
            " relevance of 'age' 0.004.",
        ),
    ],
)
def test_an_alert_is_a_sentence_with_its_evidence(text, said):
    values = {"psi": 0.3124, "relevance": 0.004, "reliance": 0.11, "state": "stale", "missing": 0.1}
    sentence = Rule(text).sentence(
        lambda measure, name: values[measure], {"auc": 0.8}, {"auc": 0.9}, "age", 1200
    )
    assert sorted(sentence) == sorted(said)  # the order of the evidence is that of the parts
    assert sentence.split(":")[0] == said.split(":")[0]


def test_a_state_is_reported_once_while_it_lasts_and_a_number_again_after_the_cooldown():
    log = AlertLog([Rule('state("*") == "gone"', cooldown=200), Rule("accuracy < 0.5", cooldown=200)])
    shown: dict[str, list[int]] = {"a": [], "None": []}
    for row in range(100, 2_000, 100):
        state = "there" if 900 <= row < 1_000 else "gone"
        for alert in log.update(
            row,
            ["a"],
            lambda measure, name, s=state: 0.0 if measure != "state" else s,
            {"accuracy": 0.4},
            {},
            None,
        ):
            shown[str(alert["feature"])].append(row)
    assert shown == {"a": [100, 1_000], "None": [*range(100, 2_000, 200)]}
