"""A selector and a learner as one incremental model."""

import tamis._deferred  # noqa: F401 - before scikit-learn is imported
from tamis.pipeline.by_name import ByName
from tamis.pipeline.heft_stream import HEFTStream
from tamis.pipeline.stream_pipeline import StreamPipeline

__all__ = ["ByName", "HEFTStream", "StreamPipeline"]
