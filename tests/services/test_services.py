"""The programs of docs/services.md with their real servers: what was accepted is stored when the server has ended."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataproxy.hub import Hub

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "services.md").read_text()
SECONDS = 60.0
MESSAGES = 40
SHOWN = "tcp://host1:46801,host2:46801"


@pytest.fixture
def hub() -> Iterator[Hub]:
    """Run a hub."""
    with Hub() as running:
        yield running


def program(name: str, folder: Path, target: str) -> None:
    """Write a program of the page; it lingers so long that only its closing can deliver."""
    found = re.search(rf"^```python\n(# {re.escape(name)}\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no {name}"
    (folder / name).write_text(found[1].replace(SHOWN, target))


class Server:
    """A server in a process of its own; what it says is in a file."""

    def __init__(self, folder: Path, *words: str, **environment: str) -> None:
        self.log = folder / "server.log"
        usual = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "DATAPROXY_LINGER": "30s"}
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=folder, stdout=file, stderr=file, env={**os.environ, **usual, **environment},
            )  # fmt: skip

    def said(self, pattern: str, times: int = 1) -> re.Match[str]:
        """Wait until the server has said something."""
        end = time.monotonic() + SECONDS
        while True:
            found = list(re.finditer(pattern, self.log.read_text()))
            if len(found) >= times:
                return found[0]
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def kill(self) -> None:
        """End what a failed test has left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(SECONDS)


@contextlib.contextmanager
def running(folder: Path, *words: str, **environment: str) -> Iterator[Server]:
    """Run a server."""
    server = Server(folder, *words, **environment)
    try:
        yield server
    finally:
        server.kill()


def post(url: str, number: int) -> None:
    """Post one click."""
    with urllib.request.urlopen(urllib.request.Request(url, b"%d" % number, method="POST"), timeout=SECONDS) as answer:
        assert answer.status == 200


def stored(hub: Hub, stream: str = "s_click") -> list[bytes]:
    """Return the bodies of the clicks that the hub has."""
    return sorted((record.body for record in hub.records("b_app", stream)), key=lambda body: (len(body), body))


ALL = [b"%d" % i for i in range(MESSAGES)]


@pytest.mark.parametrize("workers", [1, 4])
def test_uvicorn_with_a_lifespan(tmp_path: Path, hub: Hub, workers: int) -> None:
    program("app.py", tmp_path, hub.target)
    words = ("uvicorn", "app:app", "--host", "127.0.0.1", "--port", "0", "--workers", str(workers))
    with running(tmp_path, *words) as server:
        server.said("Application startup complete", workers)
        url = server.said(r"running on (http://127\.0\.0\.1:\d+)")[1]
        for i in range(MESSAGES):
            post(f"{url}/click", i)
        assert stored(hub) == []  # all of it lingers
        server.end()
    assert stored(hub) == ALL


def test_uvicorn_with_a_producer_of_the_module(tmp_path: Path, hub: Hub) -> None:
    program("plain.py", tmp_path, hub.target)
    with running(tmp_path, "uvicorn", "plain:app", "--host", "127.0.0.1", "--port", "0") as server:
        url = server.said(r"running on (http://127\.0\.0\.1:\d+)")[1]
        for i in range(MESSAGES):
            post(url, i)
        assert server.end() == -signal.SIGTERM
    assert stored(hub) == ALL


def test_gunicorn(tmp_path: Path, hub: Hub) -> None:
    program("wsgi.py", tmp_path, hub.target)
    program("gunicorn_conf.py", tmp_path, hub.target)
    words = ("gunicorn", "-c", "gunicorn_conf.py", "-b", "127.0.0.1:0", "wsgi:app")
    with running(tmp_path, *words) as server:
        url = server.said(r"Listening at: (http://127\.0\.0\.1:\d+)")[1]
        server.said("Booting worker", 2)
        for i in range(MESSAGES):
            post(url, i)
        assert server.end() == 0
    assert stored(hub) == ALL


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_celery(tmp_path: Path, hub: Hub, pool: str) -> None:
    program("tasks.py", tmp_path, hub.target)
    queue = tmp_path / "queue"
    queue.mkdir()
    tasks = tmp_path / "tasks.py"
    options = {"data_folder_in": str(queue), "data_folder_out": str(queue), "control_folder": str(tmp_path / "control")}
    text = tasks.read_text().replace("amqp://broker//", "filesystem://")
    tasks.write_text(f"{text}\napp.conf.broker_transport_options = {options!r}\n")
    words = (
        "celery",
        "-A",
        "tasks",
        "worker",
        "-P",
        pool,
        "-c",
        "2",
        "-l",
        "INFO",
        "--without-gossip",
        "--without-mingle",
    )
    with running(tmp_path, *words) as server:
        server.said(r"ready\.")
        sender = f"import tasks\nfor i in range({MESSAGES}): tasks.click.delay(str(i))\ntasks.producer.close()\n"
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        subprocess.run([sys.executable, "-c", sender], cwd=tmp_path, env=environment, check=True, timeout=SECONDS)
        server.said(r"tasks\.click\[[^]]*\] succeeded", MESSAGES)
        server.end()
    assert stored(hub) == ALL


SITE = """
import logging, sys
from django.conf import settings
import settings as mine
settings.configure(LOGGING=mine.LOGGING, LOGGING_CONFIG="logging.config.dictConfig")
import django
django.setup()
logging.getLogger("shop").error("card refused")
print("served", flush=True)
"""


def site(folder: Path) -> tuple[int, str]:
    """Run a process of Django that logs one line; return its status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", SITE], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    return done.returncode, done.stdout


def test_django_logging(tmp_path: Path, hub: Hub) -> None:
    program("settings.py", tmp_path, hub.target)
    assert site(tmp_path) == (0, "served\n")
    (line,) = stored(hub, "s_log")
    assert line.endswith(b"ERROR shop card refused")


@pytest.mark.parametrize("target", ["tcp://host.invalid:46801", "http://127.0.0.1:1", "tcp://127.0.0.1:1"])
def test_django_starts_without_a_proxy(tmp_path: Path, target: str) -> None:
    program("settings.py", tmp_path, target)
    assert site(tmp_path) == (0, "served\n")


def test_a_pod_that_is_ended(tmp_path: Path, hub: Hub) -> None:
    program("job.py", tmp_path, hub.target)
    (tmp_path / "pod.py").write_text(
        "import job, signal, threading\n"
        "job.producer.wait_ready(30)\n"
        "assert job.ready() == (True, ''), job.ready()\n"
        "for i in range(40): job.producer.send_nowait('s_click', b'%d' % i)\n"
        "print('sent', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with running(tmp_path, "pod") as server:
        server.said("sent")
        assert server.end() == -signal.SIGTERM
    assert stored(hub) == ALL


def test_a_handler_that_was_there_is_called_behind_the_closing(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "service.py").write_text(
        "import signal, sys, dataproxy\n"
        "def handler(number, frame):\n"
        "    print('reported', producer.report().delivered, producer.closed, flush=True)\n"
        "    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, handler)\n"
        f"producer = dataproxy.Producer({hub.target!r}, group_id='b_app', close_on=['SIGTERM'])\n"
        f"other = dataproxy.Producer({hub.target!r}, group_id='b_app', close_on='SIGTERM')\n"
        "left = dataproxy.Producer('tcp://127.0.0.1:1', group_id='b_app', close_timeout=0, warn_at_exit=False)\n"
        "producer.send_nowait('s_click', b'0')\n"
        "print('sent', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with running(tmp_path, "service") as server:
        server.said("sent")
        assert server.end() == 7
        assert "reported 1 True" in server.log.read_text()
    assert stored(hub) == [b"0"]


def test_a_notebook_and_a_test(tmp_path: Path, hub: Hub) -> None:
    program("notebook.py", tmp_path, hub.target)
    program("test_clicks.py", tmp_path, hub.target)
    with running(tmp_path, "notebook", DATAPROXY_LINGER="5ms") as server:
        assert server.process.wait(SECONDS) == 0, server.log.read_text()
    assert stored(hub) == [b"one", b"two"]
    with running(
        tmp_path, "pytest", "-q", "-p", "dataproxy.testing.plugin", "-p", "no:cacheprovider", "test_clicks.py"
    ) as server:
        assert server.process.wait(SECONDS) == 0, server.log.read_text()


def checks(call: Callable[[], object]) -> str:
    """Return the text of the error that a call raises."""
    with pytest.raises(ValueError, match="close_on") as caught:
        call()
    return str(caught.value)


def test_what_close_on_refuses() -> None:
    import threading

    import dataproxy

    assert "SIGKILL" in checks(lambda: dataproxy.Producer("tcp://127.0.0.1:1", close_on=["SIGKILL"]))
    told: list[str] = []

    def work() -> None:
        told.append(checks(lambda: dataproxy.Producer("tcp://127.0.0.1:1", close_on="SIGHUP")))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(SECONDS)
    assert "main thread" in told[0]
