"""Endless streams: a growing file, appearing files, standard input; each row is read once, even after a kill.

:func:`follow_files` returns after each batch the *position* of the next row. A checkpoint stores model and position in
one file, so neither can be newer than the other.

=========== ======================================================================
stream      batches and positions: the public interface
decoder     the columns, and the decoding of rows into numbers
files       which files exist, and which were renamed
file        one file: how much of it was read, and its identity
text        rows of a growing text file, or of standard input
parquet     rows of a Parquet file
row_numbers which rows of a producer that numbers them are new
pending     rows with delayed labels, which arrive in another row of the same key
bad_rows    rows that cannot be read: where they are written, why, how many
=========== ======================================================================
"""

from tamis.streams.tail.stream import FollowedStream, follow_files

__all__ = ["FollowedStream", "follow_files"]
