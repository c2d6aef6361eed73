"""Online feature selection: selectors that learn from rows as they arrive."""

import tamis._deferred  # noqa: F401 - before scikit-learn is imported
from tamis.rows.abfs.abfs import ABFS
from tamis.rows.auto.auto import Auto
from tamis.rows.cancel_out import CancelOut
from tamis.rows.discuss.discuss import DISCUSS
from tamis.rows.efs import EFS
from tamis.rows.fcbf import FCBF
from tamis.rows.fires.fires import FIRES
from tamis.rows.fires.monte_carlo import MonteCarloFIRES
from tamis.rows.forward.forward import ForwardPartialCorrelation
from tamis.rows.fsds import FSDS
from tamis.rows.joint.joint import JointScreening
from tamis.rows.leverage import LeverageScores
from tamis.rows.ofs import OFS
from tamis.rows.random_subset import RandomSubset
from tamis.rows.screening import ChiSquare, FisherScore, GiniIndex, MutualInformation, Screening, TScore
from tamis.rows.sofs import SOFS

__all__ = [
    "ABFS", "DISCUSS", "EFS", "FCBF", "FIRES", "FSDS", "OFS", "SOFS", "Auto", "CancelOut", "ChiSquare", "FisherScore",
    "ForwardPartialCorrelation", "GiniIndex", "JointScreening", "LeverageScores", "MonteCarloFIRES",
    "MutualInformation", "RandomSubset", "Screening", "TScore",
]  # fmt: skip
