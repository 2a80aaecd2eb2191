"""Secrets stay secret: each path that fails is driven with secrets set, and what it leaves is searched for them."""

import base64
import logging
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import pytest
import urllib3

import dataproxy
from dataproxy.config import load_hub_config, load_producer_config
from dataproxy.config.secret import Secret
from dataproxy.errors import DataProxyError
from dataproxy.hub import Hub
from dataproxy.spark.planning.following import KnownProxies
from dataproxy.spark.planning.options import read_options
from tests.support.certificates import Authority, write
from tests.support.tlsserver import tls_front

PACKAGE = str(Path(dataproxy.__file__).parent)
SECONDS = 30.0
MANAGER_KEY, KEY_PASSWORD, HUB_KEY, TOKEN = "mgr&Key=1f7c", "pass/Word+93aa", "hub-Key-55e1", "token-0b6d-0b6d-0b6d"
SECRETS = (MANAGER_KEY, KEY_PASSWORD, HUB_KEY, TOKEN)


def forms() -> list[str]:
    """Return every form in which a secret could show up."""
    encoded = [base64.b64encode(f"{who}:{key}".encode()).decode() for who in ("id", "") for key in SECRETS]
    return [*SECRETS, *map(quote, SECRETS), *(quote(one, safe="") for one in SECRETS), *encoded]


class Findings:
    """Collect what failures leave behind."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failures = 0

    def keep(self, *values: object) -> None:
        """Keep what people may print of some values."""
        for value in values:
            self.texts += [str(value), repr(value)]

    def failed(self, call: Callable[[], object]) -> None:
        """Make a call that must fail, and keep its error, with the local variables of our frames."""
        with pytest.raises(DataProxyError) as caught:
            call()
        self.failures += 1
        error = caught.value
        self.keep(error, error.details, error.hint)
        self.texts.append(repr(pickle.dumps(error)))
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        ours = [frame for frame in shown.stack if frame.filename.startswith(PACKAGE)]
        self.texts += [f"{frame.name}: {frame.locals}" for frame in ours]
        self._walk(error.__traceback__)

    def _walk(self, trace: TracebackType | None) -> None:
        """Look into the variables that a traceback holds, too: tools show their attributes."""
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
                self.texts += [repr(vars(one)) for one in trace.tb_frame.f_locals.values() if hasattr(one, "details")]
            trace = trace.tb_next

    def check(self, log: str) -> None:
        """Fail if a secret is in what was kept."""
        text = "\n".join([*self.texts, log])
        assert not [one for one in forms() if one in text]


@pytest.fixture
def findings(caplog: pytest.LogCaptureFixture) -> Iterator[Findings]:
    """Search everything at the end, and what was logged at DEBUG by anyone."""
    caplog.set_level(logging.DEBUG)
    found = Findings()
    yield found
    assert found.failures or found.texts
    found.check("\n".join(f"{record.getMessage()} {record.args}" for record in caplog.records))


def closed_port() -> int:
    """Return a port where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def manager(url: str, **options: object) -> dataproxy.Producer:
    """Open a producer that knows the secrets for a Manager."""
    given = {"group_id": "g", "manager_secret_id": "id", "manager_secret_key": MANAGER_KEY, "manager_timeout": 5.0}
    return dataproxy.Producer(url, **{**given, **options})  # type: ignore[arg-type]


def test_configurations(findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"manager_secret_id": "id", "manager_secret_key": MANAGER_KEY}
    tls = {"tls_certificate": "/c", "tls_key_password": KEY_PASSWORD}
    config = load_producer_config("tls://h", env={}, **secrets, **tls)
    findings.keep(config, list(config.shown()), config.origin("tls_key_password"))
    assert config.manager_secret_key.reveal() == MANAGER_KEY
    findings.failed(lambda: load_producer_config("tls://h", env={}, **secrets, **tls, linger="x"))
    findings.failed(lambda: load_producer_config("tls://h", env={}, **secrets, **tls, no_option=1))
    findings.failed(lambda: load_producer_config("tls://h", env={}, manager_secret_key=MANAGER_KEY))
    findings.failed(lambda: load_producer_config("tls://h", env={}, auth_key=MANAGER_KEY + "\0"))
    findings.failed(lambda: config.replace(tls_key_password=KEY_PASSWORD + "\0"))
    findings.failed(lambda: config.replace(tls_key_password=KEY_PASSWORD, linger=-1))
    findings.failed(lambda: dataproxy.Producer("tls://h", **secrets, **tls, linger="x"))  # type: ignore[arg-type]
    findings.failed(lambda: dataproxy.AsyncProducer("tls://h", **secrets, **tls, linger="x"))  # type: ignore[arg-type]
    findings.failed(lambda: Hub(secret_id="id", secret_key=HUB_KEY, token="short"))
    findings.failed(lambda: Hub(secret_id="id", secret_key=HUB_KEY, token=TOKEN, load="x"))
    findings.failed(lambda: Hub(secret_key=HUB_KEY, token=TOKEN))
    variables = {"DATAPROXY_MANAGER_SECRET_KEY": MANAGER_KEY, "DATAPROXY_TLS_KEY_PASSWORD": KEY_PASSWORD}
    findings.failed(lambda: load_producer_config("tls://h", env=variables))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DATAPROXY_LINGERR", "5")
    findings.failed(lambda: dataproxy.Producer("tls://h"))
    file = tmp_path / "producer.toml"
    file.write_text(f'manager_secret_key = "{MANAGER_KEY}"\ntls_key_password = "{KEY_PASSWORD}"\nlinger = "x"\n')
    findings.failed(lambda: load_producer_config("tls://h", file=file, env={}))
    hub = load_hub_config(env={}, secret_id="id", secret_key=HUB_KEY, token=TOKEN)
    findings.keep(hub, list(hub.shown()))


def test_files(findings: Findings, authority: Authority, tmp_path: Path) -> None:
    own = authority.identity(password=KEY_PASSWORD)
    files = {"tls_certificate": str(own.certificate), "tls_key": str(own.key), "tls_ca": str(authority.ca)}
    write(tmp_path / "wrong", (KEY_PASSWORD + "x").encode())
    write(tmp_path / "none", b"\xff" + KEY_PASSWORD.encode())

    def broken() -> str:
        raise RuntimeError(KEY_PASSWORD)

    for password in (KEY_PASSWORD + "x", f"file:{tmp_path / 'wrong'}", f"file:{tmp_path / 'none'}", broken,
                     lambda: KEY_PASSWORD.encode() + b"\xff", lambda: [KEY_PASSWORD]):  # fmt: skip
        findings.failed(lambda password=password: dataproxy.Producer("tls://h", tls_key_password=password, **files))
        findings.failed(
            lambda password=password: Hub(
                tls_certificate=files["tls_certificate"], tls_key=files["tls_key"], tls_key_password=password
            )
        )
    other = {**files, "tls_key": str(authority.identity(password=KEY_PASSWORD).key)}
    findings.failed(lambda: dataproxy.Producer("tls://h", tls_key_password=KEY_PASSWORD, **other))


def test_managers(findings: Findings, authority: Authority, stranger: Authority) -> None:
    with Hub(secret_id="id", secret_key=HUB_KEY, token=TOKEN) as hub:
        findings.failed(lambda: manager(hub.manager_url))  # the wrong key
        findings.failed(lambda: manager(hub.manager_url.replace("http:", "https:"), tls_ca=str(authority.ca)))
        hub.manager.denied = frozenset({"g"})
        findings.failed(lambda: manager(hub.manager_url, manager_secret_key=HUB_KEY))
        for path, headers in (
            ("/hub/stats", {}),
            ("/hub/stats", {"Authorization": f"Bearer {MANAGER_KEY}"}),
            ("/hub/records", {"Authorization": f"Basic {MANAGER_KEY}"}),
            ("/hub/faults", {"Authorization": f"Bearer {TOKEN}x"}),
        ):
            answer = urllib3.request("GET", hub.manager_url + path, headers=headers, retries=False)
            findings.keep(answer.data.decode(), dict(answer.headers))
        findings.keep(hub, hub.stats(), hub.manager, hub.config)
        findings.failed(lambda: Hub(secret_id="id", secret_key=HUB_KEY, token=TOKEN, manager_port=hub.manager_port))
    findings.failed(lambda: manager(f"http://127.0.0.1:{closed_port()}"))
    findings.failed(lambda: manager("http://no-such-host.invalid"))
    with tls_front(closed_port(), authority.identity(days=-1)) as front:
        findings.failed(lambda: manager(f"https://127.0.0.1:{front.port}", tls_ca=str(authority.ca)))
    with tls_front(closed_port(), stranger.identity()) as front:
        findings.failed(lambda: manager(f"https://127.0.0.1:{front.port}", tls_ca=str(authority.ca)))


def test_proxies(findings: Findings, hub: Hub, authority: Authority, stranger: Authority) -> None:
    """Handshakes that fail, with a key whose password is known."""
    own = stranger.identity(password=KEY_PASSWORD)
    files = {"tls_certificate": str(own.certificate), "tls_key": str(own.key), "tls_key_password": KEY_PASSWORD}
    options = {"group_id": "g", "tls_ca": str(authority.ca), "delivery_timeout": 1.0, **files}
    for identity, client_ca in (
        (authority.identity(days=-1), None),
        (authority.identity("elsewhere.example.org"), None),
        (stranger.identity(), None),
        (authority.identity(), authority.ca),
    ):
        with tls_front(hub.port, identity, client_ca=client_ca) as front:
            target = f"tls://127.0.0.1:{front.port}"
            producer = dataproxy.Producer(target, **options)  # type: ignore[arg-type]
            delivery = producer.send("s", b"x")
            findings.failed(lambda delivery=delivery: delivery.result(SECONDS))
            findings.keep(producer, producer.stats(), producer.report(), producer.config, vars(producer))
            producer.close(0)
            if client_ca is None:
                findings.failed(lambda target=target: dataproxy.Producer(target, start="connect", **options))  # type: ignore[arg-type]


def test_plans_of_spark(findings: Findings) -> None:
    options = {
        "target": "http://manager:8083", "groupId": "g", "streamId": "s",
        "managerSecretId": "id", "managerSecretKey": MANAGER_KEY, "tls": "true",
    }  # fmt: skip
    settings = read_options(options)
    plan = settings.for_tasks(KnownProxies("tls://h:1"))
    findings.keep(settings, plan, pickle.dumps(plan), dict(plan.producer))
    assert plan.config().tls
    files = {"tlsCertificate": "/c", "tlsKeyPassword": KEY_PASSWORD}
    findings.failed(lambda: read_options({**options, **files}))
    settings = read_options({**options, "tlsCertificate": "/c", "tlsKeyPassword": "env:KEY_PASSWORD"})
    assert pickle.loads(pickle.dumps(settings.for_tasks(KnownProxies("tls://h:1")))).config().tls_key_password == (
        Secret("env:KEY_PASSWORD")
    )


def test_commands_and_the_process_list(findings: Findings, tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(
        f'[producer]\nmanager_secret_id = "id"\nmanager_secret_key = "{MANAGER_KEY}"\n'
        f'tls_certificate = "/c"\ntls_key_password = "{KEY_PASSWORD}"\ntarget = "tls://h"\n'
        f'[hub]\nsecret_id = "id"\nsecret_key = "{HUB_KEY}"\ntoken = "{TOKEN}"\n'
    )
    command = [sys.executable, "-m", "dataproxy"]
    for words in (
        ("config", "show", "producer", "-c", str(file)),
        ("config", "show", "hub", "-c", str(file), "--json"),
        ("send", "--config", str(file), "--group", "g", "--stream", "s", "--file", "/nowhere"),
        ("hub", "--config", str(file), "--port", "x"),
    ):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
        findings.keep(done.stdout, done.stderr)
    running = subprocess.Popen(
        [*command, "hub", "--memory", "--config", str(file), "--port", "0", "--manager-port", "0", "--print-urls"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        addresses = running.stdout.readline()
        assert addresses, "the hub has ended"
        findings.keep(addresses)
        process = Path("/proc", str(running.pid))
        findings.keep((process / "cmdline").read_bytes().decode(), (process / "comm").read_text())
        findings.keep(*((task / "comm").read_text() for task in (process / "task").iterdir()))
        findings.keep((process / "environ").read_bytes().decode())
    finally:
        running.terminate()
        out, err = running.communicate(timeout=SECONDS)
    findings.keep(out, err)
