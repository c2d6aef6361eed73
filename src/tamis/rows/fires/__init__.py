"""FIRES and its parts."""

from tamis.rows.fires.fires import FIRES
from tamis.rows.fires.monte_carlo import MonteCarloFIRES

__all__ = ["FIRES", "MonteCarloFIRES"]
