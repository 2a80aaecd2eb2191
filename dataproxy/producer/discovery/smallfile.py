"""Small files that others may replace at any time: read without waiting, and looked at for changes."""

from __future__ import annotations

import os
import stat

__all__ = ["FileState", "file_state", "read_small"]

#: What changes when a file is replaced or written to: device, inode, size, times of the last changes (ns).
FileState = tuple[int, int, int, int, int]


def file_state(path: str) -> FileState | None:
    """Return the state of a file, by which a change is noticed; None: there is no file.  Reads nothing."""
    try:
        found = os.stat(path)  # noqa: PTH116 - as the rest of this module, without objects of pathlib
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_small(path: str, most: int) -> bytes:
    """Return the content of a file of at most ``most`` bytes.

    Waits for nobody: anything but a regular file is refused.  Raises OSError; ValueError for a larger file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait for its writer
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        parts: list[bytes] = []
        left = most + 1
        while left > 0 and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise ValueError(f"has more than {most} bytes")
    return b"".join(parts)
