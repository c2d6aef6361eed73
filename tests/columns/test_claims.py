"""A claim is about the selected column and those that correlate with it, whatever kind of matrix they come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tamis import OSFS, AlphaInvesting
from tamis.columns.claims import claims
from tamis.errors import DataError


def data(rng):
    X = rng.normal(size=(200, 2500))  # more than are looked at together
    X[:, 3] = X[:, 2400] + 0.5 * rng.normal(size=200)
    X[:, 7] = -X[:, 2400] + 2.0 * rng.normal(size=200)
    X[:, 9] = 4.0
    return X, X[:, 2400] + X[:, 12] + 0.5 * rng.normal(size=200)


def test_clusters_are_those_of_the_correlations(rng):
    X, y = data(rng)
    selector = AlphaInvesting(target_fdr=0.1).fit(X, y)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.abs(np.corrcoef(X.T))
    for bound in (0.3, 0.5, 1.0):
        found = claims(selector, X, bound)
        assert list(found) == selector.get_feature_names_out().tolist()
        for name, cluster in found.items():
            wanted = set(np.flatnonzero(near[int(name[1:])] >= bound)) | {int(name[1:])}
            assert cluster == [f"x{j}" for j in sorted(wanted)]
    assert {"x3", "x2400"} <= set(claims(selector, X)["x3"])


def test_any_matrix_and_any_scale_gives_the_same_claims(rng):
    X, y = data(rng)
    selector = AlphaInvesting(target_fdr=0.1).fit(X, y)
    wanted = claims(selector, X)
    assert claims(selector, sp.csr_matrix(X)) == wanted
    assert claims(selector, X * np.where(np.arange(2500) % 2, 1e-200, 1e160)) == wanted
    gaps = X.copy()
    gaps[0, 5] = np.nan
    assert claims(selector, gaps) == wanted
    names = [f"gene {j}" for j in range(2500)]
    frame = pd.DataFrame(X, columns=names)
    named = claims(AlphaInvesting(target_fdr=0.1).fit(frame, y), frame)
    assert [[name.replace("gene ", "x") for name in cluster] for cluster in named.values()] == [
        *wanted.values()
    ]


def test_any_selector_of_columns_may_claim(rng):
    X, y = data(rng)
    selector = OSFS().fit(X[:, :40], y > 0)
    assert list(claims(selector, X[:, :40])) == selector.get_feature_names_out().tolist()


def test_impossible_claims_are_refused(rng):
    X, y = data(rng)
    selector = AlphaInvesting(target_fdr=0.1).fit(X, y)
    with pytest.raises(DataError, match="X has 10 columns, but AlphaInvesting was offered 2500"):
        claims(selector, X[:, :10])
    for bound in (0.0, 1.1, "half"):
        with pytest.raises(ValueError, match=r"correlation must be a number in \(0, 1\]"):
            claims(selector, X, bound)
