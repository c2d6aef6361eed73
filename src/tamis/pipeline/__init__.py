"""A selector and a learner as one incremental model."""

from tamis.pipeline.heft_stream import HEFTStream
from tamis.pipeline.stream_pipeline import StreamPipeline

__all__ = ["HEFTStream", "StreamPipeline"]
