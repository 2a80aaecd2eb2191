"""The destinations of a write's report: the driver's log, a file, and a function of the user."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dataproxy.errors import ConfigError
from dataproxy.logs import logger

if TYPE_CHECKING:
    from dataproxy.spark.reporting.reports import JobReport

__all__ = ["Outlets", "find_function"]

_log = logger("spark.reports")


@dataclass(frozen=True, slots=True)
class Outlets:
    """Hold the report file and the callback of a write ("" for none), and whether the driver's log gets the report.

    ``room`` names the folder below which attempts leave their counts, "" for a folder of the driver's machine.
    """

    file: str = ""
    callback: str = ""
    log: bool = True
    room: str = ""

    def check(self) -> None:
        """Raise ConfigError when the file's folder cannot be written or the function is not found."""
        if self.file:
            _check_file(self.file)
        if self.callback:
            find_function(self.callback)

    def publish(self, report: JobReport, *, stream: bool = False) -> None:
        """Save the report and call the callback; what the callback raises is logged.

        The report of a job replaces the file in one step; that of a micro-batch is added to it as one line.
        Raises OSError when the file cannot be written.
        """
        if self.file:
            _save(report, Path(self.file), append=stream)
        if self.callback:
            try:
                find_function(self.callback)(report)
            except Exception:  # noqa: BLE001 - the user's own code; the rows are delivered
                _log.exception("the report callback %r raised", self.callback)

    def publish_aborted(self, report: JobReport, *, stream: bool = False) -> None:
        """Save the report of a write that failed; if that fails too, log it."""
        if self.file:
            try:
                _save(report, Path(self.file), append=stream)
            except OSError as error:
                _log.warning("the report of a write that failed cannot be saved: %s", error)


def find_function(name: str) -> Callable[[JobReport], object]:
    """Return the function that ``module:function`` names.  Raises ConfigError."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"option reportCallback={name!r}: {error}",
            hint="give module:function, importable where PYSPARK_PYTHON runs on the driver's machine",
        ) from None
    if not callable(found):
        raise ConfigError(f"option reportCallback={name!r} is not a function", hint="give module:function")
    return found  # type: ignore[no-any-return]


def _check_file(name: str) -> None:
    folder = Path(name).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(f"option reportFile={name!r}: its folder cannot be written", hint="create the folder")
    if Path(name).is_dir():
        raise ConfigError(f"option reportFile={name!r} is a folder", hint="name a file in it")


def _save(report: JobReport, path: Path, *, append: bool) -> None:
    if append:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(report)) + "\n")
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    draft.replace(path)
