"""Streams of rows: arrays, files of any size, named data sets, and streams with known relevant features."""

from tamis.streams.appended import Irrelevant, Redundant
from tamis.streams.datasets import list_datasets, load_dataset
from tamis.streams.files import open_file
from tamis.streams.frames import DictStream, FrameStream
from tamis.streams.named_streams import as_stream, list_streams, load_stream
from tamis.streams.stream import ArrayStream, BatchStream, Stream, VaryingStream
from tamis.streams.synthetic import SyntheticStream
from tamis.streams.tail import FollowedStream, follow_files

__all__ = [
    "ArrayStream", "BatchStream", "DictStream", "FollowedStream", "FrameStream", "Irrelevant", "Redundant", "Stream",
    "SyntheticStream", "VaryingStream", "as_stream", "follow_files", "list_datasets", "list_streams", "load_dataset",
    "load_stream", "open_file",
]  # fmt: skip
