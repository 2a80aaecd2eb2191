"""Folders that a driver and its tasks share: paths that all of them see, and URIs that pyarrow knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from dataproxy.errors import ConfigError

__all__ = ["open_folder", "read_folder"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # a single letter is a folder or a drive, not a scheme
_S3: Final = "write s3://; keys and region come from the environment of driver and executors, not from fs.s3a options"
_HINTS: Final = {
    "s3a": _S3,
    "s3n": _S3,
    "hdfs": "pyarrow needs libjvm and libhdfs on driver and executors (JAVA_HOME, HADOOP_HOME, CLASSPATH)",
    "wasb": "write abfs://",
    "wasbs": "write abfss://",
}


def read_folder(option: str, text: str) -> str:
    """Return the folder that an option names, as an absolute path or a URI; a ``file:`` URI becomes a path.

    Raises ConfigError.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return str(Path(text).absolute())
    if scheme[1].lower() == "file":
        return _local_path(option, text, text[scheme.end() :])
    if not text.startswith("//", scheme.end()):
        raise ConfigError(f"option {option}={text!r} is no URI", hint=f"write {scheme[0]}//..., or ./{text} for a path")
    open_folder(option, text)
    return text


def _local_path(option: str, text: str, rest: str) -> str:
    """Return the path of a ``file:`` URI, whose ``rest`` follows the colon."""
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise ConfigError(
                f"option {option}={text!r} names the machine {host!r}",
                hint="write file:///path, seen by all executors",
            )
        rest = f"/{rest}"
    return str(Path(unquote(rest)).absolute())


def open_folder(option: str, where: str) -> tuple[Any, str]:
    """Return pyarrow's file system of a path or URI, and the path in it.  Raises ConfigError."""
    from pyarrow import ArrowException, fs

    try:
        if "://" not in where:
            return fs.LocalFileSystem(), where
        system, path = fs.FileSystem.from_uri(where)
    except (ArrowException, OSError, ValueError) as error:
        lines = str(error).splitlines() or [type(error).__name__]  # it lists every place of libhdfs
        raise ConfigError(
            f"option {option}={where!r} cannot be used: {lines[0]}",
            hint=_HINTS.get(where.partition(":")[0].lower(), "use a path, or a URI that pyarrow.fs knows"),
        ) from None
    return system, path
