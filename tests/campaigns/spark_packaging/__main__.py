"""``python -m tests.campaigns.spark_packaging``: every way to bring the package to a cluster, tried with a local one.

What docs/clusters.md says of each way must be seen here: rows that arrive, or the error of a way that does not work.
A machine without libsnappy and liblmdb is this one with empty files over them, which needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from dataproxy.hub import Hub
from tests.campaigns.counters import keep
from tests.campaigns.spark_chaos.sessions import borrowed_home
from tests.campaigns.spark_packaging.environments import Packages, prepare

__all__ = ["Way", "main", "ways"]

_JOB = Path(__file__).with_name("job.py")
_SECONDS = 400
# Runs a command where an empty file lies over each of the libraries, for it and its children alone.
_BARE = r"""
for file in $(ldconfig -p | awk '/lib(snappy|lmdb)\.so/ { print $NF }'); do
    mount --bind /dev/null "$(readlink -f "$file")" || exit 1
done
exec "$@"
"""


@dataclass(frozen=True)
class Way:
    """One way: how the job is started, and what must be seen."""

    name: str
    python: str  # PYSPARK_PYTHON, on driver and executors
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    unpacked: dict[str, Path] = field(default_factory=dict)  # folder in the driver's working directory -> archive
    package: str = ""  # part of the place where tasks find the package
    bare: bool = False  # on a machine that has neither libsnappy nor liblmdb
    error: str = ""  # part of the error where the way does not work


def ways(made: Packages) -> list[Way]:
    """Return all ways, those that do not work included."""
    driver, image, inside = str(made.driver / "bin/python"), str(made.image / "bin/python"), "./environment/bin/python"
    packed = {"spark.archives": f"{made.environment}#environment"}
    modules = {"spark.archives": f"{made.modules}#modules", "spark.executorEnv.PYTHONPATH": "./modules"}
    here = {"environment": made.environment}
    zipped = "cannot be imported from a zip"
    return [
        Way("wheel in the image", image, package=str(made.image)),
        Way("wheel in the image, nodes without the libraries", image, package=str(made.image), bare=True),
        Way("environment in --archives", inside, packed, unpacked=here, package="/environment/"),
        Way("the same, not unpacked for the driver", inside, packed, error="Failed to find the data source: dataproxy"),
        Way(
            "modules in --archives",
            driver,
            modules,
            {"PYTHONPATH": "./modules"},
            {"modules": made.modules},
            package="/modules/",
        ),
        *(
            Way(
                f"{file.suffix[1:]} in --py-files",
                driver,
                {"spark.submit.pyFiles": str(file)},
                {"PYTHONPATH": str(file)},
                error=zipped,
            )
            for file in (made.modules, made.wheel)
        ),
    ]


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip file."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
    else:
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="fully_trusted")  # an environment has links to its interpreter


def attempt(way: Way, made: Packages, folder: Path) -> list[str]:
    """Try a way in an empty folder; return what was not as it should be."""
    folder.mkdir()
    for name, archive in way.unpacked.items():
        unpack(archive, folder / name)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_DRIVER_PYTHON")
    }
    environment |= {"PYSPARK_PYTHON": way.python, "SPARK_HOME": str(borrowed_home(folder)), **way.environment}
    settings = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", **way.settings}
    bare = ["unshare", "--mount", "sh", "-c", _BARE, "sh"] if way.bare else []
    with Hub() as hub:
        done = subprocess.run(
            [*bare, str(made.driver / "bin" / "python"), str(_JOB), hub.target, json.dumps(settings)],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        stored = sorted(int(record.body) for record in hub.records("packaging"))
    if done.returncode:
        return [f"the job ended with {done.returncode}: {done.stderr[-2000:]}"]
    said = json.loads(done.stdout.splitlines()[-1])
    print(f"{way.name}: {len(stored)} rows; tasks find {said['package']}", flush=True)
    if way.error:
        return [] if way.error in said["error"] and not stored else [f"{way.error!r} is not in {said['error']!r}"]
    wrong = [] if way.package in said["package"] else [f"tasks found {said['package']}"]
    if way.bare and said["libraries"]:
        wrong.append(f"tasks could load {said['libraries']} of the system")
    return wrong if stored == list(range(1000)) else [*wrong, f"{len(stored)} rows arrived: {said['error'][-2000:]}"]


def main(arguments: list[str] | None = None) -> int:
    """Try all ways, print a line for each, and return 1 if one was not as documented."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.spark_packaging", description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of the ways to try")
    only = parser.parse_args(arguments).only
    began = time.monotonic()
    wrong: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = prepare(folder)
        sizes = {
            file.name: round(file.stat().st_size / 1e6, 1) for file in (made.wheel, made.environment, made.modules)
        }
        print(f"MB: {sizes}", flush=True)
        for number, way in enumerate(way for way in ways(made) if only in way.name):
            wrong[way.name] = attempt(way, made, folder / f"way-{number}")
            print(f"{way.name}: {'as documented' if not wrong[way.name] else wrong[way.name]}", flush=True)
    facts = {"mb": sizes, "wrong": wrong, "seconds": round(time.monotonic() - began, 1)}
    print(keep("spark_packaging", facts))
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
