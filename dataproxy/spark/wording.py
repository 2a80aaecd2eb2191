"""Errors for users of Spark: options have Spark's names, and the text has no traceback before the error."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dataproxy.codes import code_name, describe
from dataproxy.config import PRODUCER
from dataproxy.config.spark import camel_case
from dataproxy.errors import DataProxyError
from dataproxy.spark.driverlog import is_sparks_own

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["causes_in_words", "code_in_words", "sparks_words"]

_COLUMNS: Final = ("group_id", "stream_id")  # names of columns, which are not translated
_NAMES: Final = {name: camel_case(name) for name in PRODUCER.by_name if "_" in name and name not in _COLUMNS}
_OPTION: Final = re.compile(r"(?<![\w.])(" + "|".join(sorted(_NAMES, key=len, reverse=True)) + r")(?!\w)")
# PySpark's own switch, read when an exception is handed to the JVM.  A worker that has raised is not used again.
_NO_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def sparks_words() -> Iterator[None]:
    """Translate option names to Spark's in this package's errors from the block, and hide their traceback.

    Other exceptions are not changed.
    """
    try:
        yield
    except DataProxyError as error:
        error.message, error.hint = _translated(error.message), _translated(error.hint)
        error.args = (error.message,)
        if is_sparks_own():
            os.environ[_NO_TRACEBACK] = "1"
        raise


def _translated(text: str) -> str:
    return _OPTION.sub(lambda found: _NAMES[found[1]], text)


def causes_in_words(errors: Mapping[str | int, int]) -> str:
    """Return codes with their meanings and how many messages each one ended, the most frequent first."""
    words = []
    for code, count in sorted(errors.items(), key=lambda item: -item[1]):
        meaning = _meaning(code)
        words.append(f"code {code}: {count}" + (f" ({meaning})" if meaning else ""))
    return ", ".join(words) or "without an answer"


def code_in_words(code: str | int) -> str:
    """Return a code with its meaning."""
    meaning = _translated(_meaning(code))
    return f"{code} ({meaning})" if meaning else f"{code}"


def _meaning(code: str | int) -> str:
    return ", ".join(part for part in (code_name(code) if isinstance(code, int) else "", describe(code)[0]) if part)
