"""Tamis: online feature selection on streaming data, in which rows, columns or cells arrive."""

from __future__ import annotations

import importlib
import sys
from typing import Any

__version__: str  # of the installed package

# Public names and their modules; imported on first access (PEP 562), which keeps `import tamis` light.
_NAMES = {
    "AACO": "tamis.cells.aaco",
    "ABFS": "tamis.rows.abfs.abfs",
    "AdaptiveIFC2F": "tamis.cells.adaptive",
    "AdaptiveRandomForest": "tamis.learners.hoeffding",
    "AlphaInvesting": "tamis.columns.alpha_investing",
    "AlphaInvestingPerTarget": "tamis.columns.targets",
    "DISCUSS": "tamis.rows.discuss.discuss",
    "EFS": "tamis.rows.efs",
    "ETANA": "tamis.cells.etana",
    "FETANA": "tamis.cells.fetana",
    "FixedSubset": "tamis.cells.fixed_subset",
    "ByName": "tamis.pipeline.by_name",
    "PerTarget": "tamis.base.per_target",
    "CancelOut": "tamis.rows.cancel_out",
    "ChiSquare": "tamis.rows.screening",
    "FCBF": "tamis.rows.fcbf",
    "FIRES": "tamis.rows.fires.fires",
    "FSDS": "tamis.rows.fsds",
    "ForwardStepwise": "tamis.columns.stepwise",
    "FisherScore": "tamis.rows.screening",
    "Auto": "tamis.rows.auto.auto",
    "ForwardPartialCorrelation": "tamis.rows.forward.forward",
    "GiniIndex": "tamis.rows.screening",
    "JointScreening": "tamis.rows.joint.joint",
    "LeverageScores": "tamis.rows.leverage",
    "MonteCarloFIRES": "tamis.rows.fires.monte_carlo",
    "MutualInformation": "tamis.rows.screening",
    "Screening": "tamis.rows.screening",
    "IFC2F": "tamis.cells.ifc2f",
    "IncrementalPFI": "tamis.importance",
    "IncrementalSAGE": "tamis.importance",
    "Perceptron": "tamis.learners.linear",
    "SGDLinearSVM": "tamis.learners.linear",
    "SGDLogisticRegression": "tamis.learners.linear",
    "PenalisedSelector": "tamis.columns.penalised",
    "GramInvesting": "tamis.columns.gram",
    "FastOSFS": "tamis.columns.fast_osfs",
    "GFSFS": "tamis.columns.gfsfs",
    "Grafting": "tamis.columns.grafting",
    "HEFTStream": "tamis.pipeline.heft_stream",
    "HUWRS": "tamis.learners.huwrs",
    "HoeffdingAdaptiveTree": "tamis.learners.hoeffding",
    "HoeffdingTree": "tamis.learners.hoeffding",
    "OFS": "tamis.rows.ofs",
    "OzaBoost": "tamis.learners.hoeffding",
    "OFSA3M": "tamis.columns.ofs_a3m",
    "OFSDensity": "tamis.columns.ofs_density",
    "OSFS": "tamis.columns.osfs",
    "SAOLA": "tamis.columns.saola",
    "SGBT": "tamis.learners.sgbt",
    "SOFS": "tamis.rows.sofs",
    "RandomRules": "tamis.learners.hoeffding",
    "RandomSubset": "tamis.rows.random_subset",
    "Refit": "tamis.learners.refit",
    "ResetOnDrift": "tamis.learners.reset",
    "StreamingRandomPatches": "tamis.learners.hoeffding",
    "StreamingStacking": "tamis.learners.hoeffding",
    "SparseFSA": "tamis.learners.sparse_fsa",
    "CVFDT": "tamis.learners.hoeffding",
    "VFDR": "tamis.learners.hoeffding",
    "Watch": "tamis.watch",
    "WeightedKNN": "tamis.learners.knn",
    "WeightedNaiveBayes": "tamis.learners.naive_bayes",
    "TScore": "tamis.rows.screening",
    "StreamPipeline": "tamis.pipeline",
    "dumps": "tamis.persistence",
    "freeze": "tamis.pipeline.freezing",
    "load": "tamis.persistence",
    "loads": "tamis.persistence",
    "merge_tree": "tamis.merging",
    "save": "tamis.persistence",
    "prequential": "tamis.evaluate.prequential",
    "prequential_by_target": "tamis.evaluate.prequential.targets",
    "recommend": "tamis.evaluate",
    "recommend_by_target": "tamis.evaluate",
    "run_experiment": "tamis.evaluate.experiment",
    "load_dataset": "tamis.streams.datasets",
    "load_stream": "tamis.streams.named_streams",
    "open_file": "tamis.streams.files",
}
_PACKAGES = (
    "adapters",
    "base",
    "catalog",
    "cells",
    "checks",
    "columns",
    "errors",
    "drift",
    "evaluate",
    "importance",
    "learners",
    "pipeline",
    "report",
    "rows",
    "streams",
    "summaries",
    "watch",
)

__all__ = [*_NAMES, *_PACKAGES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        found = getattr(importlib.import_module(_NAMES[name]), name)
        if "tamis.base" in sys.modules:
            # Complete before there is a model: a signal handler that saves one may interrupt any later import.
            importlib.import_module("tamis.persistence")
        return found
    if name in _PACKAGES:
        return importlib.import_module(f"tamis.{name}")
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            version_ = version("tamis")
        except PackageNotFoundError:  # a source tree that is not installed
            version_ = "0+unknown"
        return globals().setdefault(name, version_)
    raise AttributeError(f"module 'tamis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
