"""Any classifier decides from the values bought so far, in every cell classifier."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset, load, save
from tamis.cells.masked import Masked

BOOSTING = HistGradientBoostingClassifier(max_iter=20, random_state=0)
ALL = [IFC2F(order="relevance", random_state=0), ETANA(order="spread", random_state=0),
       FETANA(order="spread", n_iterations=200, random_state=0),
       AdaptiveIFC2F(max_steps=4, random_state=0), FixedSubset()]  # fmt: skip
names = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


def corners(rng, n=700):
    """The class is whether two columns have one sign, a third tells a little by itself."""
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[:, 2] += 0.8 * y
    X[:, 0] += 0.5 * y
    X[:, 1] += 0.5 * y
    return X, y


def test_a_row_is_taught_at_several_moments(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    given = []

    class Noted(LogisticRegression):
        def fit(self, X, y):
            given.append((X, y))
            return super().fit(X, y)

    order = np.array([rng.permutation(3) for _ in range(40)])
    model = Masked(Noted(), 2).fit(X, y, order)
    rows, labels = given[0]
    assert len(rows) == 120
    for i in range(40):
        for s in range(3):  # one, two and three values known, the others at their means
            known = np.isin(np.arange(3), order[i, : s + 1])
            want = np.where(known, X[i], X.mean(axis=0))
            at = np.flatnonzero(np.isclose(rows, want).all(axis=1))
            assert len(at) >= 1
            assert labels[at[0]] == y[i]
    assert model.n_columns == 3


def test_evidence_is_step_by_step_what_is_known(rng):
    X, y = corners(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    order = np.array([rng.permutation(4) for _ in y])
    model = Masked(BOOSTING, 2).fit(X, y, order)
    found = model.evidence(X[:20], order[:20])
    assert (found[0] == 0.0).all()
    for s in range(1, 5):
        seen = np.full((20, 4), np.nan)
        for i in range(20):
            seen[i, order[i, :s]] = X[i, order[i, :s]]
        score = found[s] + np.log(model.prior)
        p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(p, model.posterior(seen), rtol=1e-9)


@pytest.mark.slow
@names
def test_it_decides_and_is_asked_whether_to_go_on(rng, model):
    X, y = corners(rng)
    own = type(model)(0.03, **_small(model)).fit(X[:500], y[:500])
    boosted = type(model)(0.03, classifier=BOOSTING, **_small(model)).fit(X[:500], y[:500])
    assert boosted.score(X[500:], y[500:]) > own.score(X[500:], y[500:]) - 0.03
    assert boosted.score(X[500:], y[500:]) > 0.75
    if not isinstance(model, FixedSubset):
        assert len(np.unique(boosted.n_features_used_)) > 1  # rows stop at other places


def _small(model):
    return {name: value for name, value in model.get_params().items()
            if name in ("order", "random_state", "n_iterations", "max_steps")}  # fmt: skip


@pytest.mark.slow
@names
def test_walks_are_sessions_and_files_keep_them(rng, model, tmp_path):
    X, y = corners(rng, 400)
    X[rng.random(X.shape) < 0.1] = np.nan
    fitted = type(model)(0.005, classifier=BOOSTING, **_small(model)).fit(X, y)
    beliefs = fitted.predict_proba(X[:15])
    for x, belief in zip(X[:15], beliefs, strict=True):
        session = fitted.open()
        while session.next_feature is not None:
            session.observe(x[session.next_feature])
        assert [*session.posterior.values()] == belief.tolist()
    again = load(save(fitted, tmp_path / "model.tamis"))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@names
@pytest.mark.parametrize("classifier", [BOOSTING, GaussianNB()], ids=["boosting", "naive Bayes"])
def test_noise_is_not_bought(model, classifier):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 12)), (rng.random(300) < 0.3).astype(int)
    fitted = type(model)(0.01, classifier=classifier, **_small(model)).fit(X[:150], y[:150])
    assert fitted.score(X[150:], y[150:]) >= (1 - y[150:]).mean() - 0.03
    assert fitted.n_features_used_.mean() < 1.0


@names
def test_refuses_what_has_no_probabilities(rng, model):
    X, y = corners(rng, 100)
    with pytest.raises(ValueError, match="a classifier with predict_proba"):
        type(model)(classifier=LinearSVC()).fit(X, y)


def test_refuses_a_classifier_that_nobody_would_ask(rng):
    X, y = corners(rng, 100)
    with pytest.raises(ValueError, match="needs calibrate=True"):
        IFC2F(classifier=GaussianNB(), calibrate=False).fit(X, y)
    with pytest.raises(ValueError, match="needs decision='auto'"):
        AdaptiveIFC2F(classifier=GaussianNB(), decision="tree").fit(X, y)
