"""One measurement: a server on one core, a client process on the other, and the client's JSON line."""

import importlib
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.floors import BUILT, ROOT
from benchmarks.machine import Watch

__all__ = [
    "Bound",
    "Conditions",
    "Contestant",
    "Mark",
    "RunFailedError",
    "balance",
    "cores_of",
    "derive",
    "measure",
    "missing",
    "read_result",
    "serve",
    "stated",
    "stream_results",
    "verify",
]

RUN_LIMIT_SECONDS = 300
TEXT_BODIES = BUILT / "bodies-1024.txt"
TEXT_COUNT = 2000
HUB = (sys.executable, "-m", "benchmarks.servers.hub")
FULL = ("--set", f"max_store_bytes={128 << 20}")  # soon full: the oldest entries are dropped for the newest
SERVERS = {
    "sink": (str(BUILT / "sink"),),
    "sink, acks 20 ms late": (str(BUILT / "sink"), "--delay-ms", "20"),
    "sink, acks 500 ms late": (str(BUILT / "sink"), "--delay-ms", "500"),
    "sink with TLS": (str(BUILT / "sink-tls"),),
    "verifying sink": (str(BUILT / "sink"), "--verify"),
    "verifying sink with TLS": (str(BUILT / "sink-tls"), "--verify"),
    "mock cluster": (sys.executable, "-m", "benchmarks.servers.kafka_mock"),
    "hub in memory": (*HUB, *FULL, "--set", "compress_entries=false"),
    "hub in memory, compressing": (*HUB, *FULL),
    "hub in memory, filling": (*HUB, "--set", "compress_entries=false"),
    "hub durable": (*HUB, "--store", "{folder}", "--set", "compress_entries=false"),
    "hub durable, compressing": (*HUB, "--store", "{folder}"),
}

VERIFYING = {"sink with TLS": "verifying sink with TLS"}


class RunFailedError(Exception):
    """A measurement failed; the text says how."""


@dataclass(frozen=True)
class Bound:
    """Hold one condition of a mark: a metric and the value that it is compared with."""

    metric: str
    relation: str  # ">=" or "<="
    value: float

    def met(self, figure: float) -> bool:
        """Return whether the figure keeps the bound."""
        return figure >= self.value if self.relation == ">=" else figure <= self.value


@dataclass(frozen=True)
class Mark:
    """Hold a goal, which is met if one of its bounds is kept; the text names the bounds."""

    text: str
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class Contestant:
    """Describe what is measured: its command, its server, and the contestant that it is compared with."""

    name: str
    scenario: str
    role: str  # "ours", "peer", "floor"
    command: tuple[str, ...]
    server: str = "none"
    metric: str = "rate"  # the figure that shares and plots use
    floor: str = ""  # name of the contestant whose figure is 100 percent
    needs: tuple[str, ...] = ()  # "module" or "module:attribute" that must be importable
    marks: tuple[Mark, ...] = ()
    options: str = ""
    cores: str = "one"  # "all": the client shares all cores with the server
    every: int = 1  # measured in each so-many-th round: long or less important ones not in every round
    quick: bool = False  # also in the quick run
    verify: bool = False  # sends once to the verifying sink; its client prints a checksum


@dataclass(frozen=True)
class Conditions:
    """Hold what all measurements of a run share."""

    seconds: float
    warmup: float
    client_cores: frozenset[int]
    server_cores: frozenset[int]
    folder: Path


def missing(contestant: Contestant) -> str:
    """Return why a contestant cannot be run here, empty when it can."""
    for need in contestant.needs:
        module, _, attribute = need.partition(":")
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            return str(error)
        if attribute and not hasattr(found, attribute):
            return f"{module} has no {attribute}"
    programs = (*contestant.command[:1], *SERVERS.get(contestant.server, ())[:1])
    absent = [path for path in map(Path, programs) if path.parent == BUILT and not path.exists()]
    return f"{absent[0].name} was not built: OpenSSL 3 has no headers here (Debian: libssl-dev)" if absent else ""


def settings_in(command: Sequence[str]) -> str:
    """Return the values that a command line gives to options by ``--set``."""
    return ", ".join(value for word, value in itertools.pairwise(command) if word == "--set")


def stated(contestant: Contestant) -> str:
    """Return the options of a line: those that it names and those of its command and its hub; or that none is given."""
    own = ", ".join(filter(None, (contestant.options, settings_in(contestant.command))))
    if contestant.server.startswith("hub"):
        own = f"hub: {settings_in(SERVERS[contestant.server]) or 'defaults'}"
    return own or ("all defaults" if contestant.role == "ours" else "")


def measure(contestant: Contestant, conditions: Conditions) -> dict[str, float]:
    """Run one contestant once; return its figures and derived ones.  Raises RunFailedError with its last output."""
    watch = Watch()
    with serve(contestant.server, conditions) as (port, counts):
        result = derive(read_result(client(contestant, conditions, port)))
    result["others"] = watch.others()
    balance(result, counts)
    if counts.get("frames"):
        result.setdefault("packed", counts["records"] / counts["frames"])
    if "cpu_user" in counts and "total_records" in result:
        result["server_cpu_per_million"] = (counts["cpu_user"] + counts["cpu_sys"]) / result["total_records"] * 1e6
    return result


def balance(result: dict[str, float], counts: dict[str, float]) -> None:
    """Compare the client's count of acknowledged messages with the server's count.  Raises RunFailedError.

    The server may have counted more if the client says that messages were sent twice.
    """
    if "total_records" not in result or "records" not in counts:
        return
    extra = counts["records"] - result["total_records"]
    if extra < 0 or (extra > 0 and not result.get("duplicates_possible")):
        raise RunFailedError(f"{result['total_records']} acknowledged, the server counted {counts['records']}")


def derive(result: dict[str, float]) -> dict[str, float]:
    """Return a client's figures together with rates, and CPU seconds for a million records."""
    derived = {
        "rate": result["records"] / result["seconds"],
        "body_rate": result["bytes"] / result["seconds"],
        "cpu_per_million": (result["cpu_user"] + result["cpu_sys"]) / result["records"] * 1e6,
    }
    if "frames" in result:
        derived["frame_rate"] = result["frames"] / result["seconds"]
    return result | derived


def verify(contestant: Contestant, conditions: Conditions) -> str:
    """Send to the verifying sink; return what was compared, "" if nothing was.  Raises RunFailedError if it differs."""
    with serve(VERIFYING.get(contestant.server, "verifying sink"), conditions) as (port, counts):
        result = read_result(client(contestant, conditions, port))
    if "total_crc_sum" not in result:
        return ""
    sent, seen = (result["total_records"], result["total_crc_sum"]), (counts["records"], counts["body_crc_sum"])
    if sent != seen or counts["bad_frames"]:
        raise RunFailedError(f"sent (records, checksum) {sent}, the sink saw {seen}, {counts['bad_frames']} bad frames")
    return f"{int(seen[0])} records, checksums equal"


def read_result(output: str) -> dict[str, float]:
    """Return the object on the last line of a client's output; raise RunFailedError when there is none."""
    lines = output.strip().splitlines()
    try:
        result = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise RunFailedError(f"no JSON at the end of {output[-200:]!r}") from None
    if not isinstance(result, dict):
        raise RunFailedError(f"not an object: {lines[-1]!r}")
    wanted = ("records", "bytes", "seconds", "cpu_user", "cpu_sys")
    absent = [name for name in wanted if name not in result]
    if absent or result["records"] <= 0 or result["seconds"] <= 0:
        raise RunFailedError(f"incomplete result {result!r}")
    return dict(result)


def fill(command: tuple[str, ...], conditions: Conditions, port: int) -> list[str]:
    """Return a client's command with the values of this run."""
    values = {"port": port, "seconds": conditions.seconds, "warmup": conditions.warmup, "folder": conditions.folder}
    return [part.format(**values) for part in command]


def pinned(cores: frozenset[int], command: list[str]) -> list[str]:
    """Return the command line that runs a command on given cores."""
    return ["taskset", "-c", ",".join(str(core) for core in sorted(cores)), *command]


def cores_of(contestant: Contestant, conditions: Conditions) -> frozenset[int]:
    """Return the cores that a client may use."""
    both = conditions.client_cores | conditions.server_cores
    return both if contestant.cores == "all" else conditions.client_cores


def client(contestant: Contestant, conditions: Conditions, port: int) -> str:
    """Run the client command on its cores and return what it printed."""
    try:
        ran = subprocess.run(
            pinned(cores_of(contestant, conditions), fill(contestant.command, conditions, port)),
            check=False,
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT_SECONDS,
            cwd=ROOT,
        )
    except subprocess.TimeoutExpired:
        raise RunFailedError(f"no end after {RUN_LIMIT_SECONDS} s") from None
    if ran.returncode != 0:
        raise RunFailedError(f"exit status {ran.returncode}: {(ran.stderr or ran.stdout).strip()[-800:]}")
    return ran.stdout


def stream_results(
    contestant: Contestant, extra: tuple[str, ...], conditions: Conditions, port: int
) -> Iterator[tuple[str, dict[str, float]]]:
    """Run a client that measures several contestants itself; yield the name and the figures of each of its lines."""
    whole = Contestant(**vars(contestant) | {"command": (*contestant.command, *extra)})
    for line in client(whole, conditions, port).splitlines():
        if line.startswith("{"):
            result = derive(read_result(line))
            yield str(result.pop("name")), result


@contextmanager
def serve(name: str, conditions: Conditions) -> Iterator[tuple[int, dict[str, float]]]:
    """Start a server on its cores; yield its port, and a dictionary that gets the server's counts at the end."""
    counts: dict[str, float] = {}
    if name == "none":
        yield 0, counts
        return
    folder = tempfile.mkdtemp(prefix="store-", dir=conditions.folder)
    process = subprocess.Popen(
        pinned(conditions.server_cores, [part.format(folder=folder) for part in SERVERS[name]]),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield int(first_object(name, process.stdout)["port"]), counts
        process.terminate()
        printed, _ = process.communicate(timeout=RUN_LIMIT_SECONDS)
        if process.returncode != 0:
            raise RunFailedError(f"the {name} ended with status {process.returncode}")
        counts.update(json.loads(printed.strip().splitlines()[-1]))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def first_object(name: str, output: IO[str] | None) -> dict[str, float]:
    """Return the first line of a server's output as an object."""
    line = output.readline() if output else ""
    if not line:
        raise RunFailedError(f"the {name} did not start")
    return dict(json.loads(line))
