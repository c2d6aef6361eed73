"""Metrics of predictions against scikit-learn on random weighted rows, by hand, of recent rows, and in a run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sklearn.metrics as scores
from sklearn.linear_model import SGDClassifier, SGDRegressor

import tamis
from tamis import FIRES, Perceptron, evaluate, prequential
from tamis.errors import UnknownNameError
from tamis.evaluate import (
    F1,
    MAE,
    R2,
    RMSE,
    Accuracy,
    BalancedAccuracy,
    BrierScore,
    Fading,
    Kappa,
    LogLoss,
    MacroAUC,
    Metric,
    PinballLoss,
    Precision,
    Recall,
    Sliding,
)
from tests.evaluate.prequential.test_prequential import same, stop_after

LABELS = ["ham", "junk", "spam"]
OF_LABELS = {
    Accuracy: scores.accuracy_score,
    BalancedAccuracy: scores.balanced_accuracy_score,
    Kappa: scores.cohen_kappa_score,
    Precision: lambda y, p, sample_weight: scores.precision_score(
        y, p, average="macro", sample_weight=sample_weight
    ),
    Recall: lambda y, p, sample_weight: scores.recall_score(
        y, p, average="macro", sample_weight=sample_weight
    ),
    F1: lambda y, p, sample_weight: scores.f1_score(y, p, average="macro", sample_weight=sample_weight),
}
OF_PROBABILITIES = {
    LogLoss: lambda y, p, w, labels: scores.log_loss(y, p, sample_weight=w, labels=labels),
    BrierScore: lambda y, p, w, labels: scores.brier_score_loss(
        y, p if len(labels) > 2 else p[:, 1], sample_weight=w, labels=labels,
        **({} if len(labels) > 2 else {"pos_label": labels[1]}),
    ),
    MacroAUC: lambda y, p, w, labels: (
        scores.roc_auc_score(y, p, sample_weight=w, multi_class="ovr")
        if len(labels) > 2
        else scores.roc_auc_score(y == labels[1], p[:, 1], sample_weight=w)
    ),
}  # fmt: skip
OF_NUMBERS = {
    MAE: scores.mean_absolute_error,
    RMSE: scores.root_mean_squared_error,
    R2: scores.r2_score,
    PinballLoss: scores.mean_pinball_loss,
    lambda: PinballLoss(0.9): lambda y, p, sample_weight: scores.mean_pinball_loss(
        y, p, sample_weight=sample_weight, alpha=0.9
    ),
}


def weighted(seed, n=300, n_classes=3):
    rng = np.random.default_rng(seed)
    y, p = (rng.choice(LABELS[:n_classes], n) for _ in range(2))
    w = rng.gamma(1.0, size=n) * (rng.random(n) < 0.9)
    return y, p, rng.dirichlet(np.ones(n_classes), n), w


def feed(metric, *columns, size=37, **labels):
    for start in range(0, len(columns[0]), size):
        metric.update(*(column[start : start + size] for column in columns), **labels)
    return metric.get()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", OF_LABELS, ids=lambda kind: kind.__name__)
def test_labels_as_scikit_learn(kind, seed):
    y, p, _, w = weighted(seed)
    expected = OF_LABELS[kind](y, p, sample_weight=w)
    assert feed(kind(), y, p, w) == pytest.approx(expected, abs=1e-12)
    assert feed(kind(), y, p, w, size=1) == pytest.approx(expected, abs=1e-12)
    recent = OF_LABELS[kind](y[-80:], p[-80:], sample_weight=w[-80:])
    assert feed(Sliding(kind(), 80), y, p, w) == pytest.approx(recent, abs=1e-12)
    faded = w * 2.0 ** (np.arange(300) / 25)
    assert feed(Fading(kind(), 25), y, p, w) == pytest.approx(
        OF_LABELS[kind](y, p, sample_weight=faded), abs=1e-12
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", OF_PROBABILITIES, ids=lambda kind: kind.__name__)
def test_probabilities_as_scikit_learn(kind, n_classes):
    y, _, p, w = weighted(0, n_classes=n_classes)
    labels = LABELS[:n_classes]
    expected = OF_PROBABILITIES[kind](y, p, w, labels)
    assert feed(kind(), y, p, w, labels=labels) == pytest.approx(expected, abs=1e-12)
    # Columns in another order; as dicts, one row at a time.
    assert feed(kind(), y, p[:, ::-1], w, labels=labels[::-1]) == pytest.approx(expected, abs=1e-12)
    one = kind()
    for label, row, weight in zip(y.tolist(), p.tolist(), w.tolist(), strict=True):
        one.update(label, dict(zip(labels, row, strict=True)), weight)
    assert one.get() == pytest.approx(expected, abs=1e-12)
    recent = OF_PROBABILITIES[kind](y[-90:], p[-90:], w[-90:], labels)
    assert feed(Sliding(kind(), 90), y, p, w, labels=labels) == pytest.approx(recent, abs=1e-12)


@pytest.mark.parametrize("kind", OF_NUMBERS, ids=lambda kind: kind().name)
def test_numbers_as_scikit_learn(kind):
    rng = np.random.default_rng(1)
    y = 1e3 + rng.normal(size=400)
    p, w = y + rng.normal(size=400), rng.gamma(1.0, size=400)
    assert feed(kind(), y, p, w) == pytest.approx(OF_NUMBERS[kind](y, p, sample_weight=w), rel=1e-9)
    faded = w * 2.0 ** (np.arange(400) / 30)
    assert feed(Fading(kind(), 30), y, p, w) == pytest.approx(
        OF_NUMBERS[kind](y, p, sample_weight=faded), rel=1e-9
    )
    recent = OF_NUMBERS[kind](y[-70:], p[-70:], sample_weight=w[-70:])
    assert feed(Sliding(kind(), 70), y, p, w) == pytest.approx(recent, rel=1e-9)


GOLDEN = {
    "accuracy": 0.30741624, "balanced_accuracy": 0.30865618, "kappa": -0.03902304, "precision": 0.30541034,
    "recall": 0.30865618, "f1": 0.30570489, "log_loss": 1.47005457, "brier_score": 0.82955746, "macro_auc": 0.52170630,
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_numbers(name):
    y, p, probabilities, w = weighted(0)
    metric = Sliding(name, 300).metric
    columns = (y, probabilities) if metric.takes == "probabilities" else (y, p)
    assert feed(metric, *columns, w, labels=LABELS) == pytest.approx(GOLDEN[name], abs=1e-8)


def test_by_hand():
    metric = Precision()
    metric.update(["a", "a", "b", "b"], ["a", "b", "b", "b"], [1, 2, 3, 4])
    assert metric.by_class == {"a": 1.0, "b": 7 / 9}
    assert math.isnan(Precision("c").get())
    loss = LogLoss()
    loss.update(1, 0.25)
    loss.update(0, 0.5, 3.0)
    assert loss.get() == pytest.approx((math.log(4) + 3 * math.log(2)) / 4)
    brier = BrierScore()
    brier.update([1, 0], [0.25, 0.5])
    assert brier.get() == pytest.approx((0.75**2 + 0.5**2) / 2)
    pinball = PinballLoss(0.75)
    pinball.update([4.0, 0.0], [0.0, 4.0])
    assert pinball.get() == (0.75 * 4 + 0.25 * 4) / 2


def test_fading_forgets_without_overflow():
    metric = Fading(Accuracy(), half_life=0.01)
    for _ in range(50):
        metric.update([1] * 100, [0] * 100)
    metric.update([1] * 10, [1] * 10)
    assert metric.get() == 1.0
    assert metric.bigger_is_better
    assert not Fading("log_loss").bigger_is_better
    with pytest.raises(ValueError, match="choose Sliding instead"):
        Fading(MacroAUC())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 1], [0]), "inconsistent numbers of samples"),
        (([0, 1], [0, 1], [1.0, -1.0]), "w must be a finite weight of at least 0"),
        (([0, 1], [0, 1], [1.0]), "w must be a finite weight"),
        (([0, None], [0, 1]), "is missing"),
    ],
)
def test_wrong_rows_change_nothing(columns, message):
    metric = Accuracy()
    metric.update([0, 1], [1, 1])
    with pytest.raises(ValueError, match=message):
        metric.update(*columns)
    assert metric.get() == 0.5
    with pytest.raises(ValueError, match="y_pred must have a probability"):
        LogLoss().update([0, 1], [1.5, 0.5])


def test_protocol():
    kinds = [kind for kind in vars(evaluate).values() if isinstance(kind, type) and issubclass(kind, Metric)]
    assert len(kinds) == 16
    regressor, classifier = SGDRegressor(), SGDClassifier(loss="log_loss")
    for metric in (Accuracy(), LogLoss(), MacroAUC(), evaluate.RunningMetrics(), evaluate.SlidingAUC()):
        assert metric.works_with(classifier)
        assert not metric.works_with(regressor)
        assert isinstance(metric.bigger_is_better, bool)
        assert math.isnan(metric.get())
    assert not LogLoss().works_with(Perceptron())
    assert Accuracy().works_with(Perceptron())
    for metric in (RMSE(), R2(), PinballLoss(), evaluate.RunningErrors()):
        assert metric.works_with(regressor)
        assert not metric.works_with(classifier)
    assert [m.bigger_is_better for m in (R2(), RMSE(), evaluate.RunningErrors(), BrierScore())] == [
        True,
        *[False] * 3,
    ]
    running = evaluate.RunningMetrics()
    running.update([0, 1], [0, 0])
    assert running.get() == 0.5


def test_metrics_are_saved(tmp_path):
    y, p, _, w = weighted(0)
    for metric in (Fading("f1", 20), Sliding("kappa", 50), Precision("spam")):
        feed(metric, y, p, w)
        again = tamis.loads(tamis.dumps(metric))
        assert again.get() == metric.get()
        again.update(y[:9], p[:9]), metric.update(y[:9], p[:9])
        assert again.get() == metric.get()


# -- in a run --------------------------------------------------------------------------------------------------


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return X, np.where(X[:, 3] - X[:, 5] + 0.5 * rng.normal(size=n) > 0, "spam", "ham")


def test_a_run_evaluates_metrics_of_three_libraries():
    river = pytest.importorskip("river.metrics")
    seen = []
    given = [
        "log_loss", "precision(spam)", Fading(Accuracy(), 100), "f1_macro", "roc_auc", scores.matthews_corrcoef,
        river.MacroF1(), "kappa", "macro_auc",
    ]  # fmt: skip
    result = prequential(
        rows(), FIRES(2), metrics=given, window=300, on_step=lambda s: seen.append(s.batch[1:])
    )
    steps, total = result.frames["steps"], result.summary()
    y, p = (np.concatenate(part) for part in zip(*[(a.copy(), b.copy()) for a, b in seen], strict=True))
    assert result.settings["metrics"] == [
        "log_loss", "precision(spam)", "fading(accuracy, 100)", "f1_macro", "roc_auc", "matthews_corrcoef", "MacroF1",
        "kappa", "macro_auc",
    ]  # fmt: skip
    assert total["precision(spam)"] == pytest.approx(scores.precision_score(y, p, pos_label="spam"))
    assert total["MacroF1"] == pytest.approx(scores.f1_score(y, p, average="macro"))
    assert steps["MacroF1_windowed"][-1] == pytest.approx(
        scores.f1_score(y[-300:], p[-300:], average="macro")
    )
    assert steps["f1_macro_windowed"][-1] == steps["MacroF1_windowed"][-1]
    assert steps["matthews_corrcoef_windowed"][-1] == scores.matthews_corrcoef(y[-300:], p[-300:])
    windowed = steps["f1_macro_windowed"]
    assert total["f1_macro"] == pytest.approx(np.average(windowed, weights=steps["n_rows"]))
    assert total["kappa"] == pytest.approx(scores.cohen_kappa_score(y, p))
    assert steps["roc_auc_windowed"][-1] == pytest.approx(steps["auc_windowed"][-1], abs=1e-9)
    assert steps["macro_auc_windowed"][-1] == pytest.approx(steps["auc_windowed"][-1], abs=1e-3)
    assert 0.0 < total["log_loss"] < math.log(2)
    plain = prequential(rows(), FIRES(2), window=300)
    assert plain.summary()["accuracy"] == total["accuracy"]
    assert np.isnan(plain.summary()["macro_auc"])


def test_metrics_of_a_regression():
    X, _ = rows()
    y = 3 * X[:, 2] + 10
    total = prequential(
        (X, y), FIRES(1, model="gaussian"), metrics=["rmse", "pinball_loss(0.5)", "neg_max_error"]
    )
    total = total.summary()
    assert total["rmse"] >= total["mae"] == pytest.approx(2 * total["pinball_loss(0.5)"])
    assert total["neg_max_error"] < 0


def test_a_run_with_metrics_continues(tmp_path):
    options = {"metrics": ["log_loss", "f1_macro", "fading(kappa, 70)"], "checkpoint": tmp_path / "run.tamis"}
    whole = prequential(rows(), FIRES(2), **options | {"checkpoint": None})
    with pytest.raises(KeyboardInterrupt):
        prequential(rows(), FIRES(2), **options, checkpoint_every=1, on_step=stop_after(7))
    same(prequential(rows(), FIRES(2), **options), whole)
    river = pytest.importorskip("river.metrics")
    with pytest.raises(ValueError, match="'F1' of River, which a checkpoint cannot store"):
        prequential(rows(), FIRES(2), **options | {"metrics": [river.F1()], "checkpoint": tmp_path / "b"})


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        (["log_los"], UnknownNameError, "No metric is named 'log_los'; did you mean 'log_loss'"),
        (["rmse"], ValueError, "'rmse', which evaluates numbers"),
        (["pinball_loss(2)"], ValueError, "alpha must be"),
        (["log_loss(1)"], ValueError, "parameters of log_loss are: none"),
        ([scores.roc_auc_score], ValueError, "pass the name of a scorer"),
        (["kappa", "kappa"], ValueError, "twice"),
        ("kappa", ValueError, "metrics must be a list"),
    ],
)
def test_metrics_that_do_not_fit(metrics, error, message):
    with pytest.raises(error, match=message):
        prequential(rows(300), FIRES(2), metrics=metrics)


def test_the_command_line_and_what_it_prints(tmp_path, capsys):
    pytest.importorskip("typer")
    from tamis.cli import main
    from tamis.evaluate.prequential.rerun import command_line, snippet

    X, y = rows(600)
    path = tmp_path / "mail.csv"
    lines = [",".join([*map(str, row), label]) for row, label in zip(X.round(3), y, strict=True)]
    path.write_text("\n".join([",".join([*"abcdefgh", "kind"]), *lines]) + "\n")
    words = ["run", str(path), "--label", "kind", "--selector", "fires", "--learner", "nb", "--quiet"]
    assert main([*words, "--metric", "log_loss", "--metric", "precision(spam)", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert 0 < document["summary"]["log_loss"] < 1
    assert 0.5 < document["summary"]["precision(spam)"] <= 1
    assert "--metric log_loss --metric 'precision(spam)'" in command_line(document["settings"])
    assert "metrics=('log_loss', 'precision(spam)')" in snippet(document["settings"])
    assert main([*words, "--metric", "log_loss"]) == 0
    assert "log loss" in capsys.readouterr().out.replace("_", " ")
    assert main([*words, "--metric", "nonsense"]) == 2
