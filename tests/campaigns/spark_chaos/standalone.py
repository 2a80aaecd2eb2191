"""Daemons of Spark on this machine: a standalone master with workers on addresses of their own, a Connect server."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["HOSTS", "cluster", "connect_server", "daemon"]

HOSTS = ("127.0.0.1", "127.0.0.2")
_SECONDS = 120.0  # for a daemon to announce itself
_numbers = itertools.count()


@contextlib.contextmanager
def daemon(folder: Path, environment: Mapping[str, str], command: Sequence[str], *, announces: str) -> Iterator[str]:
    """Run a daemon of Spark, all of whose processes end with the block; yield what follows the words in its log.

    Raises RuntimeError with the end of its log when it ends, or says nothing for two minutes.
    """
    log = folder / f"daemon-{next(_numbers)}.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=written,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield _announced(process, log, announces)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _announced(process: subprocess.Popen[bytes], log: Path, words: str) -> str:
    end = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < end:
        for line in log.read_text(errors="replace").split("\n")[:-1]:
            if words in line:
                return line.partition(words)[2].strip()
        time.sleep(0.05)
    raise RuntimeError(f"{words!r} is not in the log:\n{log.read_text(errors='replace')[-2000:]}")


def _spark_class() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-class")


@contextlib.contextmanager
def cluster(
    folder: Path,
    environment: Mapping[str, str],
    *,
    cores: int = 1,
    memory: str = "600m",
    prefix: Sequence[str] = (),
) -> Iterator[str]:
    """Run a master, and a worker on each of `HOSTS`, its command behind `prefix`; yield the master's address."""
    master = ["org.apache.spark.deploy.master.Master", "--host", HOSTS[0], "--port", "0", "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        starting = daemon(folder, environment, [_spark_class(), *master], announces="Starting Spark master at ")
        url = stack.enter_context(starting)
        for host in HOSTS:
            words = ["org.apache.spark.deploy.worker.Worker", url, "--host", host, "--webui-port", "0"]
            words += ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder / host)]
            command = [*prefix, _spark_class(), *words]
            stack.enter_context(daemon(folder, environment, command, announces="registered with master "))
        yield url


@contextlib.contextmanager
def connect_server(folder: Path, environment: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[str]:
    """Run a Spark Connect server; yield the address for its clients."""
    command = [_spark_class(), "org.apache.spark.deploy.SparkSubmit"]
    for name, value in {**settings, "spark.connect.grpc.binding.port": "0"}.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with daemon(folder, environment, command, announces="Spark Connect server started at: ") as said:
        yield f"sc://127.0.0.1:{said.rstrip(',').rpartition(':')[2]}"
