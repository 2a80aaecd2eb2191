"""What PySpark's Python Data Source API offers; stand-ins where it does not exist (Spark 3.5)."""

from __future__ import annotations

__all__ = ["HAS_DATA_SOURCES", "WriterCommitMessage"]

try:
    from pyspark.sql.datasource import WriterCommitMessage

    HAS_DATA_SOURCES = True
except ImportError:
    HAS_DATA_SOURCES = False

    class WriterCommitMessage:  # type: ignore[no-redef]
        """Stand in for the base class of what a task reports."""

        __slots__ = ()
