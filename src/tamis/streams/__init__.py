"""Where rows come from: arrays, files of any size, named data sets."""

from tamis.streams.datasets import list_datasets, load_dataset
from tamis.streams.files import open_file
from tamis.streams.stream import ArrayStream, BatchStream, Stream, as_stream

__all__ = [
    "ArrayStream",
    "BatchStream",
    "Stream",
    "as_stream",
    "list_datasets",
    "load_dataset",
    "open_file",
]
