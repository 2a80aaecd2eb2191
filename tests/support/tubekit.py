"""TubeMQ's own master and broker on free ports of loopback, by the kit of the interoperability tests.

Their jars are fetched once, into ``.interop`` or where the variable ``INTEROP_HOME`` says.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["KIT", "Servers", "link_jars"]

_ROOT: Final = Path(__file__).resolve().parents[2]
KIT: Final = _ROOT / "tests" / "interop" / "peers" / "interop.sh"
_JARS: Final = Path(os.environ.get("INTEROP_HOME", _ROOT / ".interop"))
_PORTS: Final = ("TUBE_MASTER_PORT", "TUBE_MASTER_WEB", "TUBE_MASTER_BDB", "TUBE_MASTER_PROM", "TUBE_BROKER_PORT",
                 "TUBE_BROKER_WEB", "TUBE_BROKER_PROM")  # fmt: skip


def _free_ports(n: int) -> list[int]:
    """Return ports that nobody listens on now."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def link_jars(home: Path) -> None:
    """Let the kit find its jars in ``home``, and keep there what it fetches."""
    jars = _JARS.resolve() / "lib"
    jars.mkdir(parents=True, exist_ok=True)
    (home / "lib").symlink_to(jars)


class Servers:
    """A master and a broker that live in the folder ``home``; ``master`` and ``broker`` are their ports.

    ``topics``: names and numbers of partitions, such as ``one:1 three:3``.
    """

    def __init__(self, home: Path, topics: str) -> None:
        link_jars(home)
        ports = _free_ports(len(_PORTS))
        self.env = {**os.environ, "INTEROP_HOME": str(home), "INTEROP_START_LIMIT": "180", "TUBE_TOPICS": topics}
        self.env |= {name: str(port) for name, port in zip(_PORTS, ports, strict=True)}
        self.master, self.broker = int(self.env["TUBE_MASTER_PORT"]), int(self.env["TUBE_BROKER_PORT"])

    def run(self, *words: str, seconds: float = 400, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command of the kit, which ends with one of the codes, and return what it printed."""
        done = subprocess.run(
            [str(KIT), *words], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode in codes, f"{words}: {done.stdout}"
        return done.stdout
