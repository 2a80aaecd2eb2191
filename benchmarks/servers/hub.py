"""The embedded hub in a process of its own: prints its port and its Manager's URL, ends on SIGTERM.

``python -m benchmarks.servers.hub [--store FOLDER] [--set OPTION=VALUE]``
"""

import argparse
import json
import resource
import signal
from collections.abc import Sequence
from typing import Any

from dataproxy.hub import Hub

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Start the hub in memory mode, or durable when a folder is given, and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE")
    asked = parser.parse_args(argv)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    options: dict[str, Any] = dict(text.split("=", 1) for text in asked.set)
    with Hub(asked.store, **options) as hub:
        idle = resource.getrusage(resource.RUSAGE_SELF)
        ports = {"port": int(hub.target.rsplit(":", 1)[1]), "manager_url": hub.manager_url}
        print(json.dumps(ports), flush=True)
        signal.sigwait({signal.SIGTERM})
        kept = sum(count.records for count in hub.counts().values())
        dropped = hub.stats()["store"]["dropped_records"]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "records": kept + dropped,
                "cpu_user": usage.ru_utime - idle.ru_utime,
                "cpu_sys": usage.ru_stime - idle.ru_stime,
                "peak_rss_kb": usage.ru_maxrss,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
