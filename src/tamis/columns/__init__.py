"""Features that arrive: a selector is told the target once, then offered columns, and decides upon each at once."""

from tamis.columns.alpha_investing import AlphaInvesting
from tamis.columns.gram import GramInvesting
from tamis.columns.penalised import PenalisedSelector
from tamis.columns.stepwise import ForwardStepwise

__all__ = ["AlphaInvesting", "ForwardStepwise", "GramInvesting", "PenalisedSelector"]
