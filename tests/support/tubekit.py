"""Servers of TubeMQ, RocketMQ and ZooKeeper on free ports of loopback, by the kit of the interoperability tests.

Their jars are fetched once, into ``.interop`` or where the variable ``INTEROP_HOME`` says.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.support.ports import HeldPorts

__all__ = ["KIT", "RocketServers", "Servers", "ZooKeeper", "link_jars"]

_ROOT: Final = Path(__file__).resolve().parents[2]
KIT: Final = _ROOT / "tests" / "interop" / "peers" / "interop.sh"
_JARS: Final = Path(os.environ.get("INTEROP_HOME", _ROOT / ".interop"))
_PORTS: Final = ("TUBE_MASTER_PORT", "TUBE_MASTER_WEB", "TUBE_MASTER_BDB", "TUBE_MASTER_PROM", "TUBE_BROKER_PORT",
                 "TUBE_BROKER_WEB", "TUBE_BROKER_PROM")  # fmt: skip


def link_jars(home: Path) -> None:
    """Let the kit find its jars in ``home``, and keep there what it fetches."""
    jars = _JARS.resolve() / "lib"
    jars.mkdir(parents=True, exist_ok=True)
    (home / "lib").symlink_to(jars)


class _Kit:
    """Servers of the kit that live in the folder ``home``."""

    def __init__(self, home: Path, ports: tuple[str, ...], **more: str) -> None:
        link_jars(home)
        self._home = home
        self.env = {**os.environ, "INTEROP_HOME": str(home), "INTEROP_START_LIMIT": "180", **more}
        self._ports = HeldPorts()
        self.env |= {name: str(self._ports.take()) for name in ports}

    def run(self, *words: str, seconds: float = 400, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command of the kit, which ends with one of the codes, and return what it printed."""
        done = subprocess.run(
            [str(KIT), *words], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode in codes, f"{words}: {done.stdout}"
        return done.stdout

    def pid(self, service: str) -> int:
        """Return the process of a service that was started."""
        return int((self._home / service / "pid").read_text())


class Servers(_Kit):
    """A master and a broker; ``master`` and ``broker`` are their ports.

    ``topics``: names and numbers of partitions, such as ``one:1 three:3``.
    """

    def __init__(self, home: Path, topics: str) -> None:
        super().__init__(home, _PORTS, TUBE_TOPICS=topics)
        self.master, self.broker = int(self.env["TUBE_MASTER_PORT"]), int(self.env["TUBE_BROKER_PORT"])


class ZooKeeper(_Kit):
    """A server of ZooKeeper's; ``address`` is where it listens, also after it was killed and started again."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, ("ZK_PORT",))
        self.address = f"127.0.0.1:{self.env['ZK_PORT']}"


class RocketServers(_Kit):
    """A name server and a broker of RocketMQ; ``names`` is the address of the first, ``broker`` that of the other.

    A broker takes three ports: its own, the one above, and the second below.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(home, ("MQ_NAMESRV_PORT",))
        self.env["MQ_BROKER_PORT"] = str(self._ports.take(1, -2))
        self.names = f"127.0.0.1:{self.env['MQ_NAMESRV_PORT']}"
        self.broker = f"127.0.0.1:{self.env['MQ_BROKER_PORT']}"

    def create_topic(self, name: str, queues: int = 4) -> None:
        """Make a topic that clients can use at once."""
        self.drive("admin", name, "any", "create", f"queues={queues}")

    def drive(self, command: str, *words: object, names: str = "", codes: tuple[int, ...] = (0,)) -> list[Any]:
        """Run a command of Java's client, and return the JSON lines that it printed.

        ``names``: the address of a name server, or of a hub, that stands in for this one.
        """
        line = ("drive", "rocketmq", "RocketDriver", command, names or self.names, *map(str, words))
        for last in (False, False, True):
            try:
                printed = self.run(*line, codes=codes)
                break
            except AssertionError as error:
                if last or "RemotingTimeoutException" not in str(error):
                    raise  # else the machine is busy: Java's client has given its first call up
        return [json.loads(text) for text in printed.splitlines() if text.startswith("{")]
