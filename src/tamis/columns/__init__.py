"""Streaming features: a selector receives the target and then columns one by one, and decides on each immediately."""

import tamis._deferred  # noqa: F401 - before scikit-learn is imported
from tamis.columns.alpha_investing import AlphaInvesting
from tamis.columns.claims import claims
from tamis.columns.fast_osfs import FastOSFS
from tamis.columns.gfsfs import GFSFS
from tamis.columns.grafting import Grafting
from tamis.columns.gram import GramInvesting
from tamis.columns.ofs_a3m import OFSA3M
from tamis.columns.ofs_density import OFSDensity
from tamis.columns.osfs import OSFS
from tamis.columns.penalised import PenalisedSelector
from tamis.columns.saola import SAOLA
from tamis.columns.stepwise import ForwardStepwise

__all__ = [
    "GFSFS", "OFSA3M", "OSFS", "SAOLA", "AlphaInvesting", "FastOSFS", "ForwardStepwise", "Grafting", "GramInvesting",
    "OFSDensity", "PenalisedSelector", "claims",
]  # fmt: skip
