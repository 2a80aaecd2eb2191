"""Whether this installation has the hub: a build without liblmdb leaves its compiled modules out.

Imported first by ``dataproxy.hub``, so that whatever needs the hub fails with the cause and the command that helps.
"""

from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from dataproxy import _core

__all__ = ["left_out", "require_hub"]


def left_out(core: Path) -> bool:
    """Return whether the compiled core in this folder was built without the hub: all of it, and nothing else."""
    return any((core / "base").glob(f"*{EXTENSION_SUFFIXES[0]}")) and not any((core / "server").rglob("*.so"))


def require_hub() -> None:
    """Load the hub's compiled module.  Raises ImportError, with the commands that build it where it was left out."""
    try:
        import_module("dataproxy._core.server.core")
    except ModuleNotFoundError as error:
        if not left_out(Path(_core.__file__).parent):
            raise
        raise ImportError(
            "this installation of dataproxy has no hub: it was built without liblmdb; producer and Spark sink need "
            "neither. Install the library (Debian, Ubuntu: apt-get install liblmdb-dev; Fedora: dnf install "
            "lmdb-devel), then build again: DATAPROXY_HUB=yes pip install --force-reinstall --no-cache-dir "
            "dataproxy-sdk (in a checkout: make build)",
            name="dataproxy.hub",
        ) from error


require_hub()
