"""The driver's log, in Spark's own Python processes that plan and commit writes.

No application can configure logging there, so the sink's records of a write would never be seen.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import Final

__all__ = ["commits_streams", "end_in_order", "is_sparks_own", "open_log"]

_COMMITS: Final = "pyspark.sql.worker.python_streaming_sink_runner"
_TOP: Final = logging.getLogger("dataproxy.spark")
_shown: Final[list[logging.Handler]] = []


def open_log(wanted: bool) -> None:
    """Show records of ``dataproxy.spark`` of level INFO and above, or hide them again.

    They go to stderr, which Spark shares with the driver, or to Spark where it gathers the logs of Python workers.
    Does nothing in a process that is not Spark's own.  Thread rule: the process's one thread.
    """
    if not is_sparks_own():
        return
    for handler in _shown:
        _TOP.removeHandler(handler)
    _shown.clear()
    _TOP.setLevel(logging.INFO if wanted else logging.NOTSET)
    if wanted and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%y/%m/%d %H:%M:%S"))
        _TOP.addHandler(handler)
        _shown.append(handler)


def is_sparks_own() -> bool:
    """Tell whether this process runs one of PySpark's worker modules."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and str(spec.name).startswith("pyspark.")


def end_in_order() -> None:
    """Let SIGTERM end this process as an exception, so that what is open is closed: so Spark stops a stream's source.

    Does nothing in a process that is not Spark's own, or in one that handles the signal itself.  Thread rule: the
    process's main thread.
    """
    main = threading.current_thread() is threading.main_thread()
    if is_sparks_own() and main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def commits_streams() -> bool:
    """Tell whether this is the process in which Spark commits micro-batches; it plans each of them there again."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _COMMITS in (*sys.argv[1:], getattr(spec, "name", ""))  # the daemon's argument is its workers' module
