"""The client of C++ in the PyPI package ``rocketmq`` 0.4.4 at the hub."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

from dataproxy.hub import Hub

PLAY = """
import json, sys, time
from rocketmq.client import Message, Producer, PushConsumer

address, topic = sys.argv[1:]
producer = Producer("cpp_producers")
producer.set_namesrv_addr(address)
producer.start()
sent = []
for i in range(5):
    message = Message(topic)
    message.set_keys(f"k{i}")
    message.set_tags("red")
    message.set_property("number", str(i))
    message.set_body(f"m-{i}")
    sent.append(producer.send_sync(message).status)
message = Message(topic)
message.set_body("one-way")
producer.send_oneway(message)
got = []
consumer = PushConsumer("cpp_consumers")
consumer.set_namesrv_addr(address)
consumer.subscribe(topic, lambda message: got.append(message.body.decode()))
consumer.start()
until = time.monotonic() + 60
while len(got) < 6 and time.monotonic() < until:
    time.sleep(0.1)
consumer.shutdown()
producer.shutdown()
print(json.dumps({"sent": sent, "got": sorted(set(got))}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the package."""
    home = tmp_path_factory.mktemp("cpp")
    venv.create(home, with_pip=True)
    found = home / "bin" / "python"
    subprocess.run([found, "-m", "pip", "install", "-q", "rocketmq==0.4.4"], check=True, timeout=240)
    return found


def test_the_client_of_cpp_gets_what_it_sent(python: Path, tmp_path: Path) -> None:
    with Hub(rocketmq_port=0) as hub:
        done = subprocess.run(
            [python, "-c", PLAY, f"127.0.0.1:{hub.rocketmq_port}", "cpp"],
            env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        assert found == {"sent": [0] * 5, "got": [*(f"m-{i}" for i in range(5)), "one-way"]}
