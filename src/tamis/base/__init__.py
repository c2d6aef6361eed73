"""The base classes of the selectors of rows and columns and of the classifiers of cells, one file each.

================  ==========================  ====================================  ==============================
what arrives      class                       hooks to write                        verbs
================  ==========================  ====================================  ==============================
rows              :class:`RowSelector`        ``_start``, ``_learn``,               ``partial_fit``, ``transform``
                                              ``_relevance``
columns           :class:`ColumnSelector`     ``_begin``, and ``_consider`` or      ``start``, ``offer``
                                              ``_consider_block``
cells             :class:`CellClassifier`     ``_learn``, ``_codes``, ``_next``,    ``fit``, ``open``, ``observe``
                                              ``_observe``
================  ==========================  ====================================  ==============================

Each has its own result types: a column selector writes a :class:`Trace` of :class:`Verdicts`, a cell classifier opens
a :class:`Session` on a :class:`State` and returns an :class:`Acquisition`. A class states what it learns from in
``accepts``, :class:`Inputs`, and what it guarantees in ``claims``, :class:`Claims`; :mod:`tamis.checks` verifies both.
"""

from __future__ import annotations

import tamis._deferred  # noqa: F401 - before scikit-learn is imported
from tamis.base.cells import Acquisition, CellClassifier
from tamis.base.columns import ColumnSelector, FeatureStream
from tamis.base.declarations import Claims, Inputs
from tamis.base.html_repr import html_repr
from tamis.base.prices import Panel, PriceList
from tamis.base.rows import RowSelector, n_to_select, top_mask
from tamis.base.session import Session, State
from tamis.base.trace import Trace, Verdicts

__all__ = [
    "Acquisition", "CellClassifier", "Claims", "ColumnSelector", "FeatureStream", "Inputs", "Panel", "PriceList",
    "RowSelector", "Session", "State", "Trace", "Verdicts", "html_repr", "n_to_select", "top_mask",
]  # fmt: skip
