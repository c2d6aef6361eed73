"""The Parquet files behind a DataFrame, if it is their rows and nothing else.

Spark's scan turns a file of more than 100 columns into rows at 250 ns a value, and plans 10,000 columns for 11 s each
time; pyarrow reads a value in 3 ns. So a DataFrame that is a plain scan is learned from its files, as a path is.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["plain_files"]

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"


def plain_files(df: Any, needed: list[str]) -> list[tuple[str, int]] | None:
    """Return the files and their sizes, in the order of their paths; None if the rows are not theirs.

    A filter, a join, a computed column, a table format such as Delta, columns that only the names of folders contain,
    a cached DataFrame and files on a remote store are left to Spark.
    """
    if not _is_scan(df) or df.is_cached:
        return None
    urls = [urlsplit(url) for url in df.inputFiles()]
    if not urls or any(url.scheme != "file" for url in urls):
        return None
    paths = sorted(unquote(url.path) for url in urls)
    try:
        sizes = [os.path.getsize(path) for path in paths]
    except OSError:  # the workers' disks are not the driver's
        return None
    return list(zip(paths, sizes, strict=True)) if _has_types(df, paths[0], needed) else None


def _is_scan(df: Any) -> bool:
    """Return whether the plan reads columns of Parquet files, and does nothing else."""
    try:
        plan = df._jdf.queryExecution().analyzed()
        # The list of expressions equals the list of columns, unless one of them is computed or renamed.
        while plan.nodeName() == "Project" and plan.projectList().equals(plan.output()):
            plan = plan.child()
        if plan.getClass().getSimpleName() != "LogicalRelation":
            return False
        relation = plan.relation()
        return bool(
            relation.getClass().getSimpleName() == "HadoopFsRelation"
            and relation.fileFormat().getClass().getName() == _PARQUET
            and relation.partitionSchema().length() == 0
        )
    except Exception:  # another kind of session, such as Spark Connect, has no plan here
        return False


def _has_types(df: Any, path: str, needed: list[str]) -> bool:
    """Return whether the needed columns have the types of the file."""
    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import from_arrow_type

    kinds = {field.name: field.dataType for field in df.schema.fields}
    own = {field.name: field.type for field in pq.read_schema(path)}
    try:
        return all(from_arrow_type(own[name]) == kinds[name] for name in needed if name in own)
    except Exception:  # a type that Spark does not have
        return False
