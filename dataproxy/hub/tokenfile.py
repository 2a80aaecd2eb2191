"""The token of a running hub, and the file through which commands of the same user find it."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Final

from dataproxy.errors import HubError

__all__ = ["make_token", "read_token", "remove_token", "runtime_file", "write_token"]

_MOST: Final = 4096
_TOKEN_BYTES: Final = 32


def make_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def runtime_file(host: str, port: int) -> Path:
    """Return the private file for the token of the hub with this Manager address, which ``dataproxy hub`` writes.

    It is below ``XDG_RUNTIME_DIR``, else in this user's folder below the folder for temporary files.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime, "dataproxy") if runtime else Path(tempfile.gettempdir(), f"dataproxy-{os.getuid()}")
    return folder / f"hub-{host}-{port}.token"


def write_token(path: Path, token: str, *, folder: bool = False) -> None:
    """Write ``token`` to a file that only its owner may read; ``folder`` also makes its folder, also private.

    An existing file is replaced in one step.  Raises HubError.
    """
    try:
        if folder:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _check_private(path.parent)
        handle, name = tempfile.mkstemp(prefix=".token-", dir=path.parent)  # mode 0600, and a unique name
        try:
            with os.fdopen(handle, "w") as stream:
                stream.write(token + "\n")
            os.replace(name, path)  # noqa: PTH105
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108
            raise
    except OSError as error:
        raise HubError(
            f"the token cannot be written to {str(path)!r}: {error.strerror or error}",
            code="TOKEN_FILE",
            hint="set token_file to a path in a folder of your own",
        ) from None


def read_token(path: Path) -> str:
    """Return the token in a file that only this user can read or write, "" if there is no such file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:  # it may be a folder, of which no stream can be made
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            return ""
        return os.read(handle, _MOST).decode("ascii", "replace").strip()
    finally:
        os.close(handle)


def remove_token(path: Path, token: str) -> None:
    """Remove the file if it still holds ``token``; another hub may have taken its place."""
    if read_token(path) == token:
        with contextlib.suppress(OSError):
            path.unlink()


def _check_private(folder: Path) -> None:
    """Raise PermissionError unless the folder is private to this user: another user could have created it first."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(0, f"other users may write to the folder {str(folder)!r}")
