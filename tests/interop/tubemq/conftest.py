"""TubeMQ's own master and broker on free ports of loopback, started once.

Their jars are fetched once, into .interop.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KIT = HERE.parent / "peers" / "interop.sh"
JARS = Path(os.environ.get("INTEROP_HOME", HERE.parents[2] / ".interop"))
PORTS = ("TUBE_MASTER_PORT", "TUBE_MASTER_WEB", "TUBE_MASTER_BDB", "TUBE_MASTER_PROM", "TUBE_BROKER_PORT",
         "TUBE_BROKER_WEB", "TUBE_BROKER_PROM")  # fmt: skip
TOPICS = "one:1 three:3 group:6"


def free_ports(n: int) -> list[int]:
    """Return ports that nobody listens on now."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


class Servers:
    """A master and a broker; ``master`` and ``broker`` are their ports."""

    def __init__(self, home: Path) -> None:
        ports = free_ports(len(PORTS))
        self.env = {**os.environ, "INTEROP_HOME": str(home), "INTEROP_START_LIMIT": "180", "TUBE_TOPICS": TOPICS}
        self.env |= {name: str(port) for name, port in zip(PORTS, ports, strict=True)}
        self.master, self.broker = int(self.env["TUBE_MASTER_PORT"]), int(self.env["TUBE_BROKER_PORT"])

    def run(self, *words: str, seconds: float = 400) -> str:
        """Run a command of the kit and return what it printed."""
        done = subprocess.run(
            [str(KIT), *words], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}"
        return done.stdout


@pytest.fixture(scope="session")
def tubemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    home = tmp_path_factory.mktemp("tubemq")
    jars = JARS.resolve() / "lib"
    jars.mkdir(parents=True, exist_ok=True)
    (home / "lib").symlink_to(jars)
    servers = Servers(home)
    try:
        servers.run("start", "tubemq")
        yield servers
    finally:
        servers.run("stop", "tubemq-master", "tubemq-broker")
