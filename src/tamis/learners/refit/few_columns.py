"""Few columns for a refitted model: candidates with fewer and fewer columns, compared on the rows before the next fit.

Every refit fits these candidates on the same rows:

============  ========================================================================================================
all           every column
1/2 to 1/16   half of the columns of the candidate before: those with the largest importance in its model for their
              price (recursive feature elimination, Guyon et al. 2002). Columns that are relevant only together stay
              together, which a penalty does not ensure.
penalty 2     LightGBM alone: the gain of a split is reduced by 2, 5, 10 or 20 times the price of its column unless the
to 20         model uses the column already (`cegb_penalty_feature_coupled`, Peter et al. 2017)
unchanged     the columns of the model in use; while it had less than three quarters of the present rows, those that the
              candidate from which it has its columns uses now
============  ========================================================================================================

The gain of a column that is irrelevant is approximately chi-square distributed with one degree of freedom, so a penalty
means the same on every stream: a split at random exceeds 2, 5, 10 and 20 with probability .16, .03, .002 and .00001. In
a regression, gains have the unit of the squared target, and the penalties are multiplied by the mean squared error of
"all".

A selection is stable: columns that a candidate used in its previous fit cost it no penalty, and count four times their
importance (gains are squares: another column must explain twice as much of the standard deviation), unless that fit had
more rows, as before a drift. Each candidate refers to its own previous fit, so that "all" does not make every column
free.

All candidates predict the rows until the next refit, and their paired losses (:mod:`tamis.summaries.paired_losses`) on
the last 3,000 rows decide which one is used: the squared error or Brier score, relative to that of a constant. A model
of few rows is overconfident, which fewer columns reduce more than they improve the ranking; so probabilities are
first shrunk towards the proportions of the classes, by the factor that is best for each candidate. If the differences
are autocorrelated, rows count as fewer independent ones. The columns in use change only if another candidate is better,
or if one with about half of the columns or more is cheaper, and its loss is larger by at most a standard error and a
twentieth of what the best one gains over the constant. Before the first fit, candidates are compared on the last third
of its rows.

Guyon, Weston, Barnhill, Vapnik (2002), Machine Learning 46. Peter, Diego, Hamprecht, Nadler (2017), Cost efficient
gradient boosting, NeurIPS.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np

from tamis._shapes import Shapes
from tamis._validation import Mask
from tamis.base.column_terms import ColumnTerms
from tamis.dependence.autocorrelation import variance_inflation
from tamis.learners.refit.fit import Block, Fit
from tamis.summaries.paired_losses import PairedLosses, preferred

_HALVINGS = 4
_FIRST = 1  # the candidate that is used without evidence: half of the columns
_PENALTIES = (2.0, 5.0, 10.0, 20.0)
_LIKE = 0.75  # share of the rows that a fit has, for the columns of the one before to be kept
# Factor of the importance of columns in use. On four streams .078 of the columns change at a refit; 1: .144; 16:
# .128, accuracy .8 points lower: `experiments/few_columns.py --rows 5000 --arms "all,few,few _IN_USE=1"`.
_IN_USE = 4.0
_TOLERANCE = 0.05
_SMALLEST_STEP = 0.45  # of the number of columns, if the cheaper candidate is not better
_COMPARED = 3000  # rows of the comparison
_ENOUGH = 1000  # rows for a cheaper candidate, if standard errors exceed the tolerance; a tenth of them of a rare class
_MOST_REFITS = 200  # in the history: with the defaults, those of 200,000 rows


class FewColumns:
    """The candidates of a refitted model, and their losses; immutable.

    Parameters
    ----------
    n_features : int
    penalises : bool
        Whether the estimator has a penalty on columns, as LightGBM has.

    Attributes
    ----------
    candidates : list of str
        The last one is the model in use, "unchanged".
    fits : tuple of Fit
        The last fit of each candidate; empty before the first one.
    used : ndarray of shape (n_candidates, n_features), bool
        The columns that each of them uses.
    losses : PairedLosses
    at : int
        The candidate from which the model in use has its columns.
    refits : list of dict
        The last 200 refits: `row`, `candidate`, `n_columns`, `price`, and the columns that `entered` and `left`.
    """

    _state_spec = Shapes("used (a, j) bool fixed  losses (its own)  losses.losses (*, a)  at in [0, a)")

    def __init__(self, n_features: int, penalises: bool) -> None:
        halves = [f"1/{2**i}" for i in range(1, _HALVINGS + 1)]
        penalties = [f"penalty {penalty:g}" for penalty in _PENALTIES] if penalises else []
        self.candidates = ["all", *halves, *penalties, "unchanged"]
        self.fits: tuple[Fit, ...] = ()
        self.used = np.zeros((len(self.candidates), n_features), dtype=bool)
        self.losses = PairedLosses(len(self.candidates), _COMPARED)
        self.at = _FIRST
        self.refits = list[dict[str, Any]]()

    def with_rows(self, rows: Block) -> Self:
        """Return a copy with the losses of the last fits on rows that these have not learned."""
        # Several candidates may be one fit.
        by_fit = {id(fit): fit.losses(rows.X, rows.y) for fit in self.fits}
        losses = np.stack([by_fit[id(fit)] for fit in self.fits], axis=1) / self.fits[0].constant_loss()
        differences = (losses - losses[:, :1]).T
        inflation = variance_inflation(differences - differences.mean(axis=1, keepdims=True)).max()
        weights = np.ones(len(rows.y)) if rows.weights is None else rows.weights
        new = copy.copy(self)
        new.losses = self.losses.with_rows(losses, weights / inflation)
        return new

    def refitted(
        self,
        make: Callable[..., Fit],
        allowed: Mask,
        terms: ColumnTerms,
        n_seen: int,
        *,
        is_trial: bool = False,
    ) -> Self:
        """Return a copy with a new choice and new fits.

        Parameters
        ----------
        make : callable
            Returns a fit of columns, with penalties on them.
        allowed : ndarray of shape (n_features,), bool
        terms : ColumnTerms
            With prices.
        n_seen : int
            Number of rows seen.
        is_trial : bool, default=False
            Whether the fits are only compared, and not used.
        """
        new = copy.copy(self)
        fits, used = self._fit_all(make, allowed, terms)
        # The model in use continues, or takes the place of another candidate, and its past.
        chosen = self._choose(terms) if len(self.losses) else _FIRST
        new.at = self.at if chosen == len(fits) - 1 else chosen
        new.fits, new.used = (*fits[:-1], fits[chosen]), np.array([*used[:-1], used[chosen]])
        new.losses = copy.copy(self.losses)
        new.losses.losses = self.losses.losses.take([*range(len(fits) - 1), chosen], axis=1)
        if is_trial:
            return new
        now, before = new.used[-1], self.used[-1] & bool(self.refits)
        new.refits = [
            *self.refits[1 - _MOST_REFITS :],
            {
                "row": n_seen, "candidate": self.candidates[chosen if self.refits else new.at],
                "n_columns": int(now.sum()), "price": float(terms.total(now[None])[0]),
                "entered": np.flatnonzero(now & ~before).tolist(), "left": np.flatnonzero(before & ~now).tolist(),
            },
        ]  # fmt: skip
        return new

    def _choose(self, terms: ColumnTerms) -> int:
        """Return the candidate to use next, by the losses of the last fits and the price of their columns."""
        prices = terms.total(self.used)
        tolerance = _TOLERANCE * max(1.0 - float(self.losses.mean().min()), 0.0)
        share = self.fits[0].fit_once().constant
        enough = max(_ENOUGH, _ENOUGH // 10 / float(share.min())) if len(share) == 2 else _ENOUGH
        choose = partial(preferred, tolerance=tolerance, is_lenient=True, enough=int(enough))
        at, why = choose(prices, self.losses, now=len(prices) - 1)
        near = np.flatnonzero(self.used.sum(axis=1) >= _SMALLEST_STEP * self.used[-1].sum())
        if why != "better" and at not in near:
            place, _ = choose(prices[near], self.losses.select(near), now=len(near) - 1)
            at = int(near[place])
        return at

    def _fit_all(
        self, make: Callable[..., Fit], allowed: Mask, terms: ColumnTerms
    ) -> tuple[list[Fit], list[Mask]]:
        """Return the fit of each candidate, and the columns that it uses."""
        every = np.flatnonzero(allowed)
        fits, used = [make(every)], [allowed]
        # The columns of a trial are not in use, and those in use before a drift may be irrelevant.
        share = self.fits[0].rows.n_rows / fits[0].rows.n_rows if self.refits else 0.0
        in_use, is_like = self.used & (0.0 < share <= 1.0), _LIKE <= share <= 1.0
        for before in in_use[1 : _HALVINGS + 1]:
            half = _half(fits[-1], used[-1], before, terms)
            is_same = np.array_equal(half, used[-1])
            fits.append(fits[-1] if is_same else make(np.flatnonzero(half)))
            used.append(half)
        scale = fits[0].scale_of_gain() / terms.worth
        for penalty, before in zip(_PENALTIES, in_use[_HALVINGS + 1 : -1], strict=False):
            charge = np.where(_paid(before, terms), 0.0, penalty * scale)
            fit = make(every, charge[every])
            mask = fit.used_columns(len(allowed))
            paid = _paid(mask, terms)
            # The other columns of a group that is paid for are free.
            if (paid & ~mask & (charge > 0.0))[every].any():
                fit = make(every, np.where(paid, 0.0, charge)[every])
                mask = fit.used_columns(len(allowed))
            fits.append(fit)
            used.append(mask | (terms.keep & allowed))
        if is_like and (kept := self.used[-1] & allowed).any():
            return [*fits, make(np.flatnonzero(kept))], [*used, kept]
        return [*fits, fits[self.at]], [*used, used[self.at]]

    def comparison(self) -> list[dict[str, Any]]:
        """Return for each candidate its columns, its loss relative to a constant, and how far it is behind "all"."""
        behind, error = self.losses.behind(0)
        return [
            {
                "candidate": name, "n_columns": int(used.sum()), "loss": float(loss), "behind_all": float(gap),
                "behind_all_error": float(spread),
            }
            for name, used, loss, gap, spread in zip(
                self.candidates, self.used, self.losses.mean(), behind, error, strict=True
            )
        ]  # fmt: skip


def _half(fit: Fit, used: Mask, before: Mask, terms: ColumnTerms) -> Mask:
    """Return half of the columns that a fit uses, or two, and those that are always used; groups count as one."""
    importance = np.zeros(len(used))
    importance[used] = fit.importances()
    groups = np.unique(terms.group[used])
    worth = np.bincount(terms.group, importance, len(used)) * terms.worth
    worth[terms.group[before]] *= _IN_USE  # `before` may repeat a group: an assignment multiplies it once
    worth[terms.group[terms.keep]] = np.inf
    n_kept = max(2, len(groups) // 2, int(np.isinf(worth[groups]).sum()))
    return used & np.isin(terms.group, groups[np.argsort(-worth[groups], kind="stable")[:n_kept]])


def _paid(used: Mask, terms: ColumnTerms) -> Mask:
    """Return the columns that cost nothing beside those used."""
    return np.isin(terms.group, terms.group[used | terms.keep])
