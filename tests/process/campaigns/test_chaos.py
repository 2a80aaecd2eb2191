"""Short runs of what make chaos and make soak do for long."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from tests.campaigns.chaos.__main__ import Dialect, chaos
from tests.campaigns.chaos.failover import failover
from tests.campaigns.chaos.processes import HubProcess
from tests.campaigns.chaos.refresh import refresh
from tests.campaigns.soak.samples import Sample, slope_mib_per_hour
from tests.support.ports import HeldPorts


def test_faults_of_processes_and_hubs_lose_nothing(tmp_path: Path) -> None:
    facts, found = chaos(tmp_path, seed=11, faults=15, senders=2)
    assert not found, "\n".join(found)
    assert facts["messages"] == facts["delivered"]
    assert facts["faults"] == 15
    assert facts["seen"] >= facts["delivered"]
    assert set(facts["rockets"]) == {"delivered"}
    assert facts["rockets_done"] >= facts["rockets"]["delivered"] > 0


def test_encrypted_connections_and_renewed_certificates(tmp_path: Path) -> None:
    facts, found = chaos(tmp_path, seed=12, faults=12, senders=2, tls=True)
    assert not found, "\n".join(found)
    assert facts["messages"] == facts["delivered"]
    assert facts["broken_files"] == 4


@pytest.mark.parametrize(
    ("dialect", "good"),
    [
        (Dialect(protocol="v1"), "delivered"),
        (Dialect(protocol="http"), "delivered"),
        (Dialect(message_type=3, ack="none"), "sent"),
    ],
)
def test_every_dialect_keeps_the_laws(tmp_path: Path, dialect: Dialect, good: str) -> None:
    facts, found = chaos(tmp_path, seed=13, faults=8, senders=2, dialect=dialect)
    assert not found, "\n".join(found)
    assert facts["messages"] == facts[good]


def test_one_of_three_proxies_dies(tmp_path: Path) -> None:
    facts, found = failover(tmp_path, kills=1)
    assert not found, "\n".join(found)
    assert facts["failed"] == 0


def test_a_list_that_changes_all_the_time(tmp_path: Path) -> None:
    facts, found = refresh(tmp_path, seconds=12.0)
    assert not found, "\n".join(found)
    assert facts["failed"] == 0


def test_a_slope_is_found_and_a_step_is_none() -> None:
    steady = [Sample(second, 30_000 + second % 3, 9, 4) for second in range(600)]
    assert abs(slope_mib_per_hour(steady)) < 0.1
    growing = [sample._replace(rss_kib=30_000 + sample.seconds * 1024 / 360) for sample in steady]
    assert 9.9 < slope_mib_per_hour(growing) < 10.1


def test_a_port_stays_with_its_hub_while_the_hub_is_dead() -> None:
    ports = HeldPorts()
    port = ports.take()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port), 5.0):
            pass
        with socket.socket() as other, pytest.raises(OSError) as refused:  # as the system does for a connection
            other.bind(("127.0.0.1", port))
        assert refused.value.errno == errno.EADDRINUSE
        with pytest.raises(OSError):
            HeldPorts()._hold("127.0.0.1", port)
    ports.close()


def test_a_hub_that_does_not_start_leaves_no_pipe_open(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, "hub")
    with socket.create_server(("127.0.0.1", 0)) as other:
        hub.port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match="another program listens there"):
            hub.start()
    hub.close()
    assert hub.process is not None and hub.process.stdin is not None and hub.process.stdout is not None
    assert (hub.process.stdin.closed, hub.process.stdout.closed) == (True, True)
