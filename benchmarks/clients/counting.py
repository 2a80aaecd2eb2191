"""Floor of the Spark sink: an Arrow writer that only counts rows (format ``bench_counting``)."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
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


class CountingSource(DataSource):
    """Name the writer to Spark."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "bench_counting"

    def writer(self, schema: StructType, overwrite: bool) -> CountingWriter:
        """Return the writer; every schema will do."""
        return CountingWriter()
