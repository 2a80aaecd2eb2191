"""Rows that cannot be sent: left out, counted by reason, and written to files where a path is given."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy.errors import ConfigError
from dataproxy.logs import logger
from dataproxy.rows.zones import zone_table
from dataproxy.spark.folders import open_folder, read_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from dataproxy.spark.reporting.reports import PartitionReport

__all__ = ["FAIL", "SKIP", "BadRecords", "keep_committed", "read_policy", "remove_all"]

FAIL: Final = "fail"
SKIP: Final = "skip"
_COPIES: Final = 1  # attempts after the committed one: a speculative copy that was slower
_log = logger("spark.badrecords")


def read_policy(text: str) -> str:
    """Return ``fail``, ``skip``, or a path (absolute) or URI; a ``file:`` URI becomes a path.  Raises ConfigError."""
    if text.lower() in (FAIL, SKIP):
        return text.lower()
    if not text or ("/" not in text and "\\" not in text):
        raise ConfigError(
            f"option badRecords={text!r} is neither fail nor skip nor a path",
            hint='give a folder with a slash in it, such as "./bad" or "s3://bucket/bad"',
        )
    return read_folder("badRecords", text)


def _names_of(run: str) -> str:
    return f"bad-{run}-"


def _file_names(run: str, partition: int, attempt: int) -> tuple[str, str]:
    """Return the name of an attempt's file and that of its draft, which Spark does not read."""
    name = f"{_names_of(run)}{partition:05d}-{attempt}.jsonl"
    return name, f".{name}"


class BadRecords:
    """Collect the rows of one task that cannot be sent; the complete file appears when the task closes it.

    ``where`` is a policy of `read_policy` other than ``fail``.  Thread rule: the worker's one task thread.
    """

    def __init__(self, where: str, *, run: str, partition: int, attempt: int) -> None:
        self.where = where
        self.reasons: Counter[str] = Counter()
        self._facts = {"run": run, "partition": partition, "attempt": attempt}
        self._name, self._draft = _file_names(run, partition, attempt)
        self._file: Any = None
        self._system: Any = None
        self._folder = ""
        self._encoder: BodyEncoder | None = None

    @property
    def count(self) -> int:
        """Return how many rows were taken."""
        return self.reasons.total()

    def add(self, batch: pa.RecordBatch, first_row: int, refused: Sequence[tuple[int, str, str]]) -> None:
        """Add rows of a batch: (row, code, reason).  Raises OSError when the file cannot be written."""
        self.reasons.update(code for _, code, _ in refused)
        if self.where == SKIP or not refused:
            return
        if self._file is None:
            self._open(batch.num_columns)
        assert self._encoder is not None  # made with the file
        import pyarrow as pa

        rows = batch.take(pa.array([row for row, _, _ in refused], pa.int64()))
        for (row, code, reason), columns in zip(refused, self._encoder.texts(rows), strict=True):
            text = reason.replace(f" (item {row})", "").replace(f" of row {row}", "")
            facts = {**self._facts, "row": first_row + row, "code": code, "reason": text}
            head = json.dumps(facts, ensure_ascii=False)[:-1].encode("utf-8", "replace")
            self._file.write(head + b', "columns": ' + (columns or b"{}") + b"}\n")

    def close(self) -> str:
        """Give the file its final name; return its path, "" when there was no row or rows are not kept."""
        if self._file is None:
            return ""
        self._file.close()
        self._file = None
        path = f"{self._folder}/{self._name}"
        self._system.move(f"{self._folder}/{self._draft}", path)
        return path

    def abandon(self) -> None:
        """Remove the unfinished file: the attempt failed."""
        if self._file is None:
            return
        try:
            self._file.close()
            self._system.delete_file(f"{self._folder}/{self._draft}")
        except OSError as error:
            _log.warning("a file of bad records was not deleted: %s", error)
        self._file = None

    def _open(self, n_columns: int) -> None:
        self._system, self._folder = open_folder("badRecords", self.where)
        self._system.create_dir(self._folder, recursive=True)
        self._file = self._system.open_output_stream(f"{self._folder}/{self._draft}")
        self._encoder = BodyEncoder(
            "json", range(n_columns), zone_table=zone_table, times="iso_micros", leave_nulls_out=False
        )


def keep_committed(where: str, parts: Iterable[PartitionReport]) -> None:
    """Remove the files of other attempts of committed partitions, as far as the driver's machine sees them.

    It looks for them by name and never lists the folder, to which a stream may add files for months: a partition
    without bad records has no such file in any attempt, and other partitions have few attempts.  Files that cannot be
    removed are logged.
    """
    if where in (FAIL, SKIP):
        return
    with_bad = [part for part in parts if part.bad_file]
    attempts = range(max((part.attempt for part in with_bad), default=0) + 1 + _COPIES)
    names = [
        name
        for part in with_bad
        for attempt in attempts
        for name in _file_names(part.run, part.partition, attempt)
        if attempt != part.attempt
    ]
    if names:
        _remove(where, lambda system, folder: system.get_file_info([f"{folder}/{name}" for name in names]))


def remove_all(where: str, run: str) -> None:
    """Remove the files of a failed batch that the driver's machine can see; files that stay are logged."""
    if where in (FAIL, SKIP):
        return
    from pyarrow import fs

    def ours(system: Any, folder: str) -> list[Any]:
        found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return [entry for entry in found if entry.base_name.removeprefix(".").startswith(_names_of(run))]

    _remove(where, ours)


def _remove(where: str, find: Callable[[Any, str], Iterable[Any]]) -> None:
    """Remove the files among what ``find`` returns for a file system and the folder in it."""
    from pyarrow import ArrowException

    try:
        system, folder = open_folder("badRecords", where)
        for entry in find(system, folder):
            if entry.is_file:
                system.delete_file(entry.path)
    except (ArrowException, ConfigError, OSError) as error:
        _log.warning("files of attempts that were not committed may be left in %r: %s", where, error)
