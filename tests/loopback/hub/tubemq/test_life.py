"""The port of TubeMQ in the life of a hub: forks, forgotten hubs, TLS, the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dataproxy import Producer
from dataproxy.errors import ForkedError
from dataproxy.hub import Hub
from tests.support.certificates import Authority
from tests.support.rawclient import Connection
from tests.support.waiting import SECONDS

ROOT = Path(__file__).parents[4]
MAIN = "from dataproxy.cli.main import main; main()"


def test_a_child_gets_an_error_and_the_parent_goes_on(hub: Hub) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert hub._tubemq is not None
            hub._tubemq.run(lambda: None)
        except ForkedError:
            hub.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Producer(hub.tubemq_target) as producer:
        producer.send("one", b"x").result(SECONDS)


def test_a_forgotten_hub_warns_and_ends_its_thread() -> None:
    hub = Hub(tubemq_port=0)
    with Connection(hub.tubemq_port) as connection:
        assert connection.ask("CloseRequestP2M", clientId="p").errCode == 200
    with pytest.warns(ResourceWarning, match="was not closed"):
        del hub
    assert not any(one.name == "dataproxy-hub-tubemq" for one in threading.enumerate())


def test_hubs_come_and_go_on_one_port(start_hub: Callable[..., Hub]) -> None:
    first = start_hub(tubemq_port=0)
    port = first.tubemq_port
    first.close()
    again = start_hub(tubemq_port=port)
    with Producer(again.tubemq_target) as producer:
        producer.send("one", b"x").result(SECONDS)


def test_it_speaks_tls(start_hub: Callable[..., Hub], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.identity()
    hub = start_hub(tubemq_port=0, tls_certificate=str(identity.certificate), tls_key=str(identity.key))
    assert hub.tubemq_target.startswith("tubemqs://127.0.0.1:")
    with Producer(hub.tubemq_target, tls_ca=str(authority.ca)) as producer:
        for i in range(20):
            producer.send_nowait("one", b"%d" % i * 1000)
        assert producer.flush(SECONDS).delivered == 20
    assert sum(1 for _ in hub.records("one")) == 20


def test_the_command_opens_the_port() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "hub", "--memory", "--port", "0", "--manager-port", "0", "--tubemq", "0",
         "--print-urls"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    urls = json.loads(process.stdout.readline())
    with Producer(urls["tubemq_target"]) as producer:
        producer.send("one", b"x").result(SECONDS)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert f"hub: TubeMQ {urls['tubemq_target']}" in err.splitlines()


def test_the_command_refuses_a_port_twice() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "hub", "--memory", "--tubemq", "0", "-o", "tubemq_port=0"],
        capture_output=True, text=True, cwd=ROOT, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "--tubemq and -o tubemq_port were both given" in done.stderr
