"""A selector and a learner as one model that learns from rows as they come."""

from tamis.pipeline.stream_pipeline import StreamPipeline

__all__ = ["StreamPipeline"]
