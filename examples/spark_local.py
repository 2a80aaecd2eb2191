"""What the Spark examples share: the command line, a quiet local session, and an end without tracebacks."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

INTERRUPTED = 130


def command_line(about: str | None) -> argparse.ArgumentParser:
    """Return a parser of an example's command line: a target, which may be left out."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "target",
        nargs="?",
        help="proxies as tcp://host:port,... or a Manager as http://host:port; without it a hub in this process",
    )
    return parser


def local_session(name: str) -> SparkSession:
    """Return a session with two task slots and this interpreter for the workers; its errors come as exceptions."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # set it in your own programs too
    # py4j logs a traceback for each call that Ctrl-C ends, with the root logger
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)

    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def ended(main: Callable[[], int]) -> int:
    """Run an example and return its exit status; an error or Ctrl-C is reported in one line."""
    from pyspark.errors import PySparkException

    from dataproxy.errors import DataProxyError

    try:
        return main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was acknowledged stays delivered\n")
        return INTERRUPTED
    except (PySparkException, DataProxyError) as error:
        sys.stderr.write(f"{reason(error)}\n")
        return 1


def reason(error: Exception) -> str:
    """Return the sink's message from an error of Spark, which adds its own text or a Python traceback before it."""
    words = re.findall(r"(?:^|: )dataproxy\.errors\.\w+: (.*)$", str(error), re.MULTILINE)
    return str(words[-1] if words else error)
