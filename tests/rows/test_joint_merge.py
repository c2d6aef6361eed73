"""Parts of JointScreening merge: their counts, and so the selection, are those of one part that has all rows."""

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import JointScreening
from tamis.rows.joint.pair_counts import Counts, count_pairs


def _rows(n=3000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 24))
    y = ((X[:, 3] * X[:, 8] > 0) | (X[:, 5] > 1.5)).astype(int)
    y[n // 2 :] += rng.random(n - n // 2) < 0.05
    return X, np.array(["no", "yes", "very"])[y]


def _counts(model):
    model._settle()
    count_pairs(model._counts)
    return model._arrays


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_merged_counts_are_those_of_one_part(kind):
    X, y = _rows()
    first = JointScreening().fit(kind(X[:64]), y[:64])
    one = first.clone_unfitted().partial_fit(kind(X), y)
    parts = []
    for chosen in np.array_split(np.arange(len(y)), 5):
        part = first.clone_unfitted()
        for rows in np.array_split(chosen, 3):
            part.partial_fit(kind(X[rows]), y[rows])
        parts.append(part)
    before = [tamis.dumps(part) for part in parts]
    merged = tamis.merge_tree(parts, when="after")
    assert [tamis.dumps(part) for part in parts] == before
    for name, mine, theirs in zip(Counts._fields, _counts(merged), _counts(one), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    one._renew(one._counts)
    np.testing.assert_array_equal(merged.scores_, one.scores_)
    assert merged.selected_ == one.selected_
    assert set(merged.selected_) >= {3, 8, 5}
    assert (merged.n_seen_, merged.classes_.tolist()) == (3000, one.classes_.tolist())
    for mine, theirs in zip(merged._last(1000), one._last(1000), strict=True):
        assert (mine != theirs).sum() == 0


def test_a_part_counts_as_a_selector_whose_levels_it_has():
    """Before a selector drops rows: at 500 rows."""
    X, y = _rows(1000)
    whole = JointScreening().fit(X[:500], y[:500])
    part = JointScreening().fit(X[:64], y[:64]).clone_unfitted().partial_fit(X[:500], y[:500])
    for name, mine, theirs in zip(Counts._fields, _counts(part), _counts(whole), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


@pytest.mark.slow
def test_the_order_of_parts_decides_the_last_rows_alone():
    X, y = _rows(900)
    first = JointScreening(memory=64).fit(X[:64], y[:64])
    new = lambda rows: first.clone_unfitted().partial_fit(X[rows], y[rows])  # noqa: E731
    early, late = slice(0, 400), slice(400, 900)
    one, other = new(early).merge(new(late)), new(late).merge(new(early), when="before")
    np.testing.assert_array_equal(one.scores_, other.scores_)
    np.testing.assert_array_equal(one._last(64)[0], X[-64:])
    np.testing.assert_array_equal(other._last(64)[0], X[-64:])
    more = one.partial_fit(X[:100], y[:100])
    np.testing.assert_array_equal(more._last(64)[0], X[36:100])


@pytest.mark.slow
def test_of_selectors_that_are_no_parts_the_later_one_is_learned_again():
    X, y = _rows(1200)
    one, other = JointScreening().fit(X[:700], y[:700]), JointScreening().fit(X[700:], y[700:])
    merged = tamis.loads(tamis.dumps(one)).merge(other)
    whole = JointScreening().fit(X[:700], y[:700]).partial_fit(X[700:], y[700:])
    np.testing.assert_array_equal(merged.scores_, whole.scores_)
    assert merged.selected_ == whole.selected_
    np.testing.assert_array_equal(other.merge(one, when="before").scores_, whole.scores_)
    assert merged.n_seen_ == other.n_seen_ == 1200


def test_refuses_to_merge_evidence():
    X, y = _rows(200)
    one = JointScreening(level=0.05).fit(X, y)
    with pytest.raises(ValueError, match=r"level is 0\.05, but the evidence of parts cannot be added"):
        one.merge(JointScreening(level=0.05).fit(X, y))
    with pytest.raises(ValueError, match="alpha is"):
        JointScreening().fit(X, y).merge(JointScreening(alpha=0.05).fit(X, y))
