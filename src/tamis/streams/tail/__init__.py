"""Streams without an end: a file that grows, files that appear, standard input; each row once, also after a kill.

:func:`follow_files` knows at each batch where the next row begins, and says it as a *position*. Whoever saves a model
saves the position with it, in one file, so neither can be newer than the other.

========== ==========================================================================
stream     batches and positions: what users see
columns    what the columns are, and rows of them as numbers
files      which files are there, and which stand under another name now
part       what is known of one file: how much of it was taken, and which file it is
text       rows of a text file that grows, or of standard input
row_groups rows of a Parquet file
numbered   which rows of a producer that numbers them are new
keyed      rows whose label comes later, in another row of the same key
bad_rows   rows that cannot be read: where they go, why, how many
========== ==========================================================================
"""

from tamis.streams.tail.stream import FollowedStream, follow_files

__all__ = ["FollowedStream", "follow_files"]
