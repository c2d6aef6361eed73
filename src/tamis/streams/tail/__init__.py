"""Unbounded streams: a growing file, new files, or standard input; each row is read exactly once, even after a kill.

:func:`follow_files` returns after each batch the *position* of the next row. A checkpoint stores model and position in
one file, so neither can be newer than the other.

=========== ======================================================================
stream      batches and positions: the public interface
decoder     the columns, and the decoding of rows into numbers
files       existing, new and renamed files
file        one file: the position up to which it was read, and its identity
text        rows of a growing text file, or of standard input
parquet     rows of a Parquet file
kafka       rows of Kafka topics
position    validation of saved positions
row_numbers detection of new rows by the numbers of their producer
pending     rows with delayed labels, which arrive in another row of the same key
bad_rows    rows that cannot be read, written to a file with their reasons
=========== ======================================================================
"""

from tamis.streams.tail.stream import FollowedStream, follow_files

__all__ = ["FollowedStream", "follow_files"]
