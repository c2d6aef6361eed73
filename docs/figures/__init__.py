"""The pictures of the method pages: each function computes what its picture shows and returns how to draw it.

`conf.py` draws each in light and in dark, under the name of its function. Colours are those of the style (C0, C1, ...)
or a middle grey, so that both can be read.
"""

from __future__ import annotations

from . import cells, columns, learners, rows

FIGURES = (
    *(rows.copies, rows.annealing, rows.pairs, rows.gates, rows.redundant, rows.followed, rows.truncation),
    *(rows.arms, rows.gains, rows.winnow, rows.directions),
    *(columns.blanket, columns.penalties, columns.steps, columns.grafting, columns.neighbourhoods),
    *(columns.gate, columns.beaten),
    *(cells.beliefs, cells.half_spaces, cells.how_many, cells.questions, cells.beside_fixed),
    *(learners.agreement, learners.one_drift),
    *(learners.window, learners.words_of_pairs, learners.noise, learners.rule_regions),
)
