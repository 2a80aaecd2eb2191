"""Options of a cluster that cannot be meant are refused before anything is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub

CLUSTER = "127.0.0.1:1/hubs"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tubemq_cluster": CLUSTER}, "tubemq_cluster is given without tubemq_port"),
        ({"tubemq_cluster": "127.0.0.1:1", "tubemq_port": 0}, "names no ZooKeeper"),
        ({"tubemq_cluster": CLUSTER, "tubemq_port": 0, "tubemq_broker": 0}, "tubemq_broker"),
        (
            {"tubemq_cluster": CLUSTER, "tubemq_port": 0, "host": "0.0.0.0", "insecure": True},
            r"on 0\.0\.0\.0 would name itself 127\.0\.0\.1",
        ),
    ],
)
def test_what_cannot_be_meant(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Hub(None, port=0, manager_port=0, **options)


def test_hubs_of_a_cluster_have_no_tls(tmp_path: Path) -> None:
    certificate = tmp_path / "c.pem"
    certificate.write_text("")
    options: dict[str, Any] = {"tls_certificate": str(certificate), "tls_key": str(certificate)}
    with pytest.raises(ConfigError, match="speak to each other without TLS"):
        Hub(None, port=0, manager_port=0, tubemq_port=0, tubemq_cluster=CLUSTER, **options)
