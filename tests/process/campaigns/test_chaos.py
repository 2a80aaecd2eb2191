"""Short runs of what make chaos and make soak do for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.chaos.__main__ import Dialect, chaos
from tests.campaigns.chaos.failover import failover
from tests.campaigns.chaos.refresh import refresh
from tests.campaigns.soak.samples import Sample, slope_mib_per_hour


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
