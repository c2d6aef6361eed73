import pytest

from tamis.watch import read_rules


def write(tmp_path, text):
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_each_rule_with_its_severity_and_cooldown(tmp_path):
    text = """
    [[rules]]
    when = 'psi("age") > 0.2 for 500 rows'
    severity = "info"
    cooldown = 20_000

    [[rules]]
    when = "auc drops by more than 0.05"
    """
    first, second = read_rules(write(tmp_path, text))
    assert (first.text, first.severity, first.cooldown) == ('psi("age") > 0.2 for 500 rows', "info", 20_000)
    assert (second.severity, second.cooldown) == ("warning", 5000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rules", "is not valid TOML"),
        ("", "must have a table"),
        ("rules = 3", "must have a table"),
        ("webhook = 'http://a'\n[[rules]]\nwhen = 'auc > 1'", "must have a table"),
        ("[[rules]]\nseverity = 'info'", "Rule 1 must have 'when'"),
        ("[[rules]]\nwhen = 'auc > 1'\nunless = 'x'", "Rule 1 must have 'when'"),
        ("[[rules]]\nwhen = 'auc > 1'\n[[rules]]\nwhen = 'auc >'", "Rule 2: .*cannot be parsed"),
        ("[[rules]]\nwhen = 'auc > 1'\nseverity = 'loud'", "Rule 1: severity"),
        ("[[rules]]\nwhen = 'auc > 1'\ncooldown = 'long'", "Rule 1: cooldown"),
    ],
)
def test_names_what_is_wrong(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_rules(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.toml' cannot be read"):
        read_rules(tmp_path / "none.toml")
