"""The columns of a stream, ranked by the scores of a screening, in one pass over the rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.catalog import SCORE_TITLES
from tamis.cli.output import deferred_interrupt, progress, terminal, warnings_in_one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.rows.screening import Screening
    from tamis.rows.screening.ranking import ColumnRanking
    from tamis.streams import Stream


class Ranking:
    """The columns of a stream, ranked by the scores of a screening.

    Parameters
    ----------
    stream : Stream
    screening : Screening
        Not fitted yet.

    Attributes
    ----------
    n_rows : int
        Number of rows learned.
    interrupted : bool
        Whether the run was interrupted.
    seconds : float
    """

    def __init__(self, stream: Stream, screening: Screening) -> None:
        self.stream, self.screening = stream, screening
        self.n_rows, self.interrupted, self.seconds = 0, False, 0.0
        self._slots = _ColumnSlots() if stream.n_features is None else None

    def read(self, batch_size: int, max_rows: int | None, quiet: bool) -> None:
        """Learn from all rows, or until Ctrl-C, after which the model is consistent."""
        began = time.perf_counter()
        total = min((n for n in (max_rows, self.stream.n_rows) if n is not None), default=None)
        console = terminal(stderr=True)
        with (
            warnings_in_one_line(console),
            deferred_interrupt() as stop_if_asked,
            progress(quiet) as show,
        ):
            try:
                for X, y in self.stream.batches(min(batch_size, max_rows or batch_size)):
                    n = len(y) if max_rows is None else min(len(y), max_rows - self.n_rows)
                    self._learn(X[:n], y[:n])
                    self.n_rows += n
                    share = self.n_rows / total if total else self.stream.progress()
                    show(share, f"{self.n_rows:,} rows")
                    stop_if_asked()
                    if self.n_rows == max_rows:
                        break
            except KeyboardInterrupt:
                self.interrupted = True
            finally:
                self.seconds = time.perf_counter() - began

    def _learn(self, X: Any, y: Any) -> None:
        import scipy.sparse as sp

        if self.n_rows == 0:
            self.screening.set_params(categorical=getattr(self.stream, "categorical", None) or None)
        if self._slots is not None:
            places = self._slots.assign(X.indices)
            room = self.screening.n_features_in_ if self.n_rows else 1
            if len(self._slots.columns) > room:  # by halves, so that making room costs little in all
                room = max(len(self._slots.columns), room + room // 2)
                if self.n_rows:
                    self.screening.widen(room)
            X = sp.csr_matrix((X.data, places, X.indptr), (X.shape[0], room))
        self.screening.partial_fit(X, y)

    def empty_reason(self) -> str:
        """Return why nothing can be ranked, or "" if it can."""
        if self.n_rows == 0:
            return "No rows were read: pass a file with rows."
        if self.screening.warming_up_:
            label = self.screening.classes_[0]
            return f"The only label is {label!s}: a score needs rows of two classes."
        if self._slots is not None and len(self._slots.columns) == 0:
            return f"None of the {self.n_rows:,} rows has a value: there is nothing to rank."
        return ""

    @property
    def scores(self) -> list[str]:
        """The requested scores; the first one determines the ranks."""
        return list(self.screening.scores)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return rank, name and scores of all columns, the best first; ties keep their order."""
        import numpy as np

        table = self.screening.table_
        at = np.arange(len(table["feature"]))
        if self._slots is not None:
            at = self._slots.columns + getattr(self.stream, "first_index", 0)
            table = {name: column[: len(at)] for name, column in table.items()}
        names = self.stream.feature_names or [f"x{j}" for j in at]
        table["feature"] = np.array(names, dtype=object)
        order = np.lexsort((at, -table[self.scores[0]]))
        if self.screening.redundancy is not None:  # those that are kept come first
            order = order[np.argsort(~table["selected"][order], kind="stable")]
        ranked = {name: column[order] for name, column in table.items()}
        return {"rank": np.arange(1, len(order) + 1), **ranked}

    @property
    def title(self) -> str:
        """The subject and the criterion of the ranking."""
        described = self.stream.describe()
        where = described.get("name") or Path(str(described.get("path", "a stream"))).name
        return f"{SCORE_TITLES[self.scores[0]]} on {'standard input' if where == '-' else where}"

    def result(self, top: int, error: str | None = None) -> ColumnRanking:
        """Return the ranking as a result."""
        from tamis.report import Remark
        from tamis.rows.screening.ranking import ColumnRanking

        note = self.dependence_note()
        remarks: list[str] = [Remark(f"{note[0].upper()}{note[1:]}.", "note")] if note else []
        if error or self.interrupted:
            why = (
                f"Interrupted by: {error}"
                if error
                else "This run was interrupted: only the rows until then count."
            )
            remarks.insert(0, why)
        return ColumnRanking(
            self.screening, self.columns(), self.title, self.detail, remarks=remarks, n_rows=self.n_rows, top=top,
            seconds=self.seconds,
        )  # fmt: skip

    def dependence_note(self) -> str:
        """Return a note with the effective number of autocorrelated rows; empty if rows are independent."""
        import numpy as np

        if self.screening.warming_up_ or not self.screening.rows_dependent_:
            return ""
        worth = self.screening.n_effective_
        missing = float(f"{self.screening.rows_missing_:.1g}")
        if np.isnan(worth).mean() > 0.5:
            return (
                f"rows are autocorrelated over so many rows that p-values are undetermined: about {missing:,.0f} more"
                f" rows than {self.n_rows:,} are needed"
            )
        return f"rows are autocorrelated: {self.n_rows:,} rows count as {np.nanmedian(worth):,.0f}"

    @property
    def detail(self) -> str:
        """Number of columns, rows and classes, and further facts."""
        n_columns = len(self.screening.table_["feature"]) if self._slots is None else len(self._slots.columns)
        parts = [f"{n_columns:,} columns, {self.n_rows:,} rows", f"{len(self.screening.classes_):,} classes"]
        if self.screening.half_life is not None:
            parts.append(f"half-life {self.screening.half_life:,g} rows")
        if self.screening.level is not None:
            n_selected = int(self.screening.get_support().sum())
            parts.append(f"{n_selected:,} selected at level {self.screening.level:g}")
        if self.screening.restarts is not None:
            at = self.screening.restarts_
            last = f", last after row {at[-1]:,}" if at else ""
            parts.append(f"restarted {len(at):,} time{'s' * (len(at) != 1)}{last}")
        if self.screening.redundancy is not None:
            parts.append(f"the best {self.screening.redundancy:,} ordered by relevance minus redundancy")
        return ", ".join([*parts, *["interrupted"] * self.interrupted, f"{self.seconds:.1f} s"])


class _ColumnSlots:
    """Slots of the columns of rows of unknown width, in the order in which their values first appear."""

    def __init__(self) -> None:
        import numpy as np

        self.columns: NDArray[Any] = np.empty(0, np.int64)  # which column is in each place
        self._known: NDArray[Any] = self.columns  # the same in ascending order, and where each of them is
        self._slots: NDArray[Any] = self.columns

    def assign(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the place of each of these columns; new ones get the next places."""
        import numpy as np

        arrived = np.unique(columns)
        at = np.searchsorted(self._known, arrived)
        is_new = ~np.isin(arrived, self._known[at[at < len(self._known)]])
        new = arrived[is_new]
        places = len(self.columns) + np.arange(len(new))
        self.columns = np.concatenate([self.columns, new])
        self._slots = np.insert(self._slots, at[is_new], places)
        self._known = np.insert(self._known, at[is_new], new)
        result: NDArray[Any] = self._slots[np.searchsorted(self._known, columns)]
        return result
