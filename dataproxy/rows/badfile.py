"""Rows that cannot be sent, kept in a file of JSON lines."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy.errors import DataProxyError

__all__ = ["FAIL", "SKIP", "BadFile", "read_bad_records", "refuser"]

FAIL: Final = "fail"
SKIP: Final = "skip"


def read_bad_records(text: str) -> str:
    """Return ``fail``, ``skip`` or the folder that ``bad_records`` names.  Raises ConfigError."""
    if text.lower() in (FAIL, SKIP):
        return text.lower()
    if "://" in text:
        raise ConfigError(
            f"bad_records={text!r} is a URI, and send_rows writes bad rows to local files",
            hint="name a folder",
        )
    if "/" not in text:
        raise ConfigError(
            f"bad_records={text!r} is neither fail nor skip nor a path",
            hint='give a folder with a slash in it, such as "./bad"',
        )
    return text


class BadFile:
    """Collect the rows of one call that cannot be sent; the complete file appears if the call ends without an error.

    Without a bad row there is no file.  Thread: that of the call.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._name = f"bad-{uuid.uuid4().hex}.jsonl"
        self._file: IO[bytes] | None = None

    @property
    def _draft(self) -> Path:
        return self._folder / f".{self._name}"

    def add(self, row: int, error: DataProxyError, columns: bytes | None) -> None:
        """Add one row.  Raises ConfigError for a folder that cannot be written, and OSError."""
        if self._file is None:
            self._file = self._open()
        facts = {"row": row, "code": error.code, "reason": error.message}
        head = json.dumps(facts, ensure_ascii=False)[:-1].encode("utf-8", "replace")
        self._file.write(head + b', "columns": ' + (columns or b"{}") + b"}\n")

    def _open(self) -> IO[bytes]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return self._draft.open("wb")
        except OSError as problem:
            raise ConfigError(
                f"bad_records={str(self._folder)!r}: no file can be written to this folder: {problem}",
                hint="give a folder that this process may write to",
            ) from problem

    def close(self) -> None:
        """Close the file and give it its final name.  Raises OSError."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._draft.rename(self._folder / self._name)

    def abandon(self) -> None:
        """Remove the unfinished file: the call failed."""
        if self._file is not None:
            self._file.close()
            self._draft.unlink(missing_ok=True)


def refuser(where: str, file: BadFile | None) -> Callable[[int, DataProxyError, bytes | None], object] | None:
    """Return the function that takes a bad row; None if the first bad row ends the call."""
    if where == FAIL:
        return None
    return _drop if file is None else file.add


def _drop(row: int, error: DataProxyError, columns: bytes | None) -> None:
    """Drop a row."""
