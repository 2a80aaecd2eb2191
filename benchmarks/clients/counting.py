"""Floor of the Spark sink: Arrow writers that only count rows, batch and streaming (format ``bench_counting``)."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

__all__ = ["CountingSource"]


@dataclass
class Counted(WriterCommitMessage):
    """Carry one partition's count to the driver."""

    rows: int


class CountingWriter(DataSourceArrowWriter):
    """Count the rows of each batch and drop them."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Counted:
        """Return the number of rows of one partition."""
        return Counted(sum(batch.num_rows for batch in iterator))


class CountingStreamWriter(DataSourceStreamArrowWriter):
    """Count the rows of each micro-batch and drop them."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Counted:
        """Return the number of rows of one partition."""
        return Counted(sum(batch.num_rows for batch in iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Do nothing."""


class CountingSource(DataSource):
    """Name the writers to Spark."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "bench_counting"

    def writer(self, schema: StructType, overwrite: bool) -> CountingWriter:
        """Return the writer; it takes every schema."""
        return CountingWriter()

    def streamWriter(self, schema: StructType, overwrite: bool) -> CountingStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer of a stream; it takes every schema."""
        return CountingStreamWriter()
