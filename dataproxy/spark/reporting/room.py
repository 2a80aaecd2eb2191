"""The folder of one write in which each attempt leaves what it counted, for the driver to read."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import ConfigError
from dataproxy.logs import logger
from dataproxy.spark.folders import open_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Room", "make_room", "stream_name"]

_log = logger("spark.room")
_OWN: Final = 0o700


def stream_name(options: Mapping[str, str]) -> str:
    """Return the name of a streaming write, the same whenever Spark plans it with the same options."""
    given = "\n".join(f"{key.lower()}={value}" for key, value in sorted(options.items()))
    return f"stream-{hashlib.sha256(given.encode()).hexdigest()[:16]}"


def make_room(where: str, name: str) -> str:
    """Make the folder of a write in ``where`` (empty for one below the driver's temporary folder); return it.

    Returns "" and logs a warning if it cannot be made: a write must not fail because its counts cannot be kept.
    Thread rule: the driver's thread that plans.
    """
    from pyarrow import ArrowException

    try:
        if "://" in where:
            system, path = open_folder("reportFolder", f"{where.rstrip('/')}/{name}")
            system.create_dir(path, recursive=True)
            return f"{where.rstrip('/')}/{name}"
        room = Path(where or _temporary(), name)
        room.mkdir(parents=True, exist_ok=True)
    except (ArrowException, ConfigError, OSError) as error:
        _log.warning("counts of failed attempts will be missing: %s", error)
        return ""
    return str(room)


def _temporary() -> Path:
    """Return the folder of this user's writes below the temporary folder.  Raises OSError.

    Its name contains the machine's name, so that a task on another machine does not use a folder of its own machine.
    """
    folder = Path(tempfile.gettempdir(), f"dataproxy-spark-{os.getuid()}-{socket.gethostname()}")
    folder.mkdir(mode=_OWN, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o170777 != 0o040000 | _OWN:  # another user has made it before
        raise PermissionError(f"{str(folder)!r} is not a folder that only this user can use")
    return folder


class Room:
    """The files of a room, by name; local ones without pyarrow's file systems, whose import is slow.

    Every function raises OSError where the room cannot be reached.  Thread rule: one thread of each process.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.is_local = "://" not in where
        self._opened: tuple[Any, str] | None = None

    def _far(self) -> tuple[Any, str]:
        """Return pyarrow's file system and the folder in it."""
        if self._opened is None:
            try:
                self._opened = open_folder("reportFolder", self.where)
            except ConfigError as error:
                raise OSError(error.message) from error
        return self._opened

    def write(self, name: str, text: bytes) -> None:
        """Write a file into the room; a room that does not exist on this machine is not created."""
        if self.is_local:
            with open(f"{self.where}/{name}", "wb", buffering=0) as file:  # noqa: PTH123 - each task calls this
                file.write(text)
            return
        system, folder = self._far()
        with system.open_output_stream(f"{folder}/{name}") as file:
            file.write(text)

    def rename(self, old: str, new: str) -> None:
        """Give an empty file another name; outside of the machine both are there afterwards."""
        if self.is_local:
            os.rename(f"{self.where}/{old}", f"{self.where}/{new}")  # noqa: PTH104 - each task calls this
        else:
            self.write(new, b"")

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        if self.is_local:
            return Path(self.where, name).read_bytes()
        system, folder = self._far()
        with system.open_input_stream(f"{folder}/{name}") as file:
            return bytes(file.read())

    def names(self) -> list[str]:
        """Return the names of all files."""
        if self.is_local:
            return os.listdir(self.where)  # noqa: PTH208 - each commit calls this
        from pyarrow import fs

        system, folder = self._far()
        return [entry.base_name for entry in system.get_file_info(fs.FileSelector(folder)) if entry.is_file]

    def clear(self, names: Iterable[str], *, keep: bool = False) -> None:
        """Remove files, and without ``keep`` also the empty room; errors of removing are ignored."""
        try:
            for name in names:
                if self.is_local:
                    Path(self.where, name).unlink(missing_ok=True)
                else:
                    system, folder = self._far()
                    system.delete_file(f"{folder}/{name}")
            if keep:
                return
            if self.is_local:
                Path(self.where).rmdir()
            elif not self.names():
                system, folder = self._far()
                system.delete_dir(folder)
        except OSError as error:
            _log.debug("counts of attempts were not deleted in %r: %s", self.where, error)
