"""Paragraphs shared by the docstrings of the classifiers, by the name of their placeholder, such as ``%(costs)s``."""

from __future__ import annotations

_IN_ORDER = """
    budget : float, optional
        Largest total price per row; columns whose price exceeds the remaining budget are omitted from the order.
    """
_PER_ROW = """
    budget : float, optional
        Largest total price per row.
    """
_GOALS = """
    mean_budget : float, optional
        Largest mean total price per row, over rows like those of `fit`. `cost` then determines only the relative
        prices.{needs}
    objective : {{"loss", "log-loss", "auc", "squared-error"}}, default="loss"
        The loss that acquisitions reduce on held-out rows, and the unit of prices. "loss": the misclassification cost.
        "log-loss": the negative logarithm of the probability of the class, in nats. "auc": one minus the area under the
        ROC curve, of each class against the rest, weighted by its rows. "squared-error": the target is a number,
        predicted by its mean; a squared error of its variance costs 1, or `misclassification_cost`.{needs}
    """

SHARED_DOCS = {
    "costs": """
    cost : float, array of shape (n_features,), mapping from column name to float or PriceList, default=0.01
        The price of a feature, 0 or from 1e-100 to 1e100, in units of `misclassification_cost`.
    misclassification_cost : array of shape (n_classes, n_classes) or float, optional
        The cost of predicting class j (column) if i (row) is true; by default 0 if right and 1 if wrong. With
        ``objective="squared-error"``, the cost of a squared error of one variance, 1 by default.
    groups : sequence of sequences of columns, optional
        Columns (names or numbers) that are acquired together, like the values of one blood test. The price of a group
        is that of its most expensive column, paid once.
    """,
    "calibrate": """
    calibrate : bool or "never", default=True
        Whether to calibrate on held-out rows (cross-validation). Two choices then minimise the cost: which
        probabilities are used (those of the method, of a discriminant analysis of the same values, or of an ensemble of
        it and boosted trees) and when to stop. No feature is acquired unless this reduces the cost. `decided_by_` names
        what was chosen, often the same for IFC2F, ETANA and F-ETANA. "never" or False: the method itself decides.
    """,
    "row_budgets": _PER_ROW.rstrip() + _GOALS.format(needs=""),
    "order_budgets": _IN_ORDER.rstrip() + _GOALS.format(needs=""),
    "calibrated_budgets": _IN_ORDER.rstrip() + _GOALS.format(needs=" Requires `calibrate`."),
    "categorical": """
    categorical : None, "all", list of int or str, or bool mask, optional
        Categorical features; each category has its own bin. Text columns and categorical columns of a frame are
        always included.
    fading : float, default=1.0
        Factor of the weight of earlier rows for each new row of `partial_fit`, in (0, 1]: after a drift, a model of
        about 1 / (1 - fading) recent rows replaces the old one.
    missingness : {"uninformative", "informative"}, default="uninformative"
        Whether a value that was recorded in the rows of `fit` is evidence because it was. If the class depends on which
        values were recorded, "uninformative" fits the model to completed rows
        (:mod:`tamis.base.missingness`), as if all values were available. "informative": values are recorded for the
        same reason in the rows to predict.
    """,
    "memory": """
    Fitting takes at most 250 MB and six times the memory of the columns that it considers; with many classes, fewer
    rows are held out. Predicting takes at most 150 MB, independent of the number of rows.
    """,
    "attributes": """
    classes_, prior_, candidates_, prices_, n_features_used_, cost_
        As in :class:`tamis.base.CellClassifier`.
    """,
}
