"""Forward selection by partial correlation, and its parts."""

from tamis.rows.forward.forward import ForwardPartialCorrelation

__all__ = ["ForwardPartialCorrelation"]
