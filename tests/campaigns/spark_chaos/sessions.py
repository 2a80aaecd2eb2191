"""Sessions of the laboratory: Spark that keeps still, with a home of its own for the files of a local cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import dataproxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "borrowed_home", "start", "worker_environment"]

PACKAGES = Path(dataproxy.__file__).parents[1]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.task.maxFailures": "1000",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "512m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
}


def worker_environment() -> dict[str, str]:
    """Return the variables that give Spark's Python workers this interpreter and this package."""
    path = os.pathsep.join(part for part in (str(PACKAGES), os.environ.get("PYTHONPATH", "")) if part)
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}


def borrowed_home(folder: Path) -> Path:
    """Return a SPARK_HOME with links to PySpark's files: a local cluster writes into SPARK_HOME/work."""
    import pyspark

    home = folder / "spark"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    return home


def start(master: str, **settings: str) -> SparkSession:
    """Return a session in which nothing is given up because it failed often."""
    from pyspark.sql import SparkSession

    os.environ.update(worker_environment())
    builder = SparkSession.builder.master(master).appName("dataproxy-chaos")
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
