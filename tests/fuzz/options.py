"""Fuzz target: options from files, the environment, arguments, Spark, and the texts of targets.

Whatever comes in, the answer is a configuration that settles to itself once more, or a ConfigError.
"""

import tempfile
from pathlib import Path

from dataproxy.config import PRODUCER, load_hub_config, load_producer_config, spark_options
from dataproxy.errors import ConfigError
from dataproxy.producer.discovery.targets import parse_target
from tests.fuzz.engine import main

__all__ = ["SEEDS", "check"]

NAMES = sorted(PRODUCER.by_name)
SAMPLES = Path(__file__).parents[2] / "conf"
TARGET = "tcp://127.0.0.1:1"
_folder = tempfile.TemporaryDirectory(prefix="dataproxy-fuzz-")
FOLDER = Path(_folder.name)

SEEDS = [
    *(b"\0" + path.read_bytes()[:4000] for path in sorted(SAMPLES.glob("*.toml"))),
    b'\0[producer]\ntarget = "tcp://h:1"\nlinger = "5ms"\nbuffer_bytes = "64MiB"\n',
    b'\1{"producer": {"target": "http://m:8083", "executors": 2, "retry_backoff": 0.1}}',
    b"\2DATAPROXY_LINGER=5ms\nDATAPROXY_BUFFER_BYTES=1GiB",
    *(b"\3" + name.encode() + b"=" + value for name in NAMES for value in (b"1", b"2.5s", b"64MiB", b"none")),
    b"\4groupId=g\nbatchBytes=256KiB\ndeliveryTimeout=2m",
    b"\5tcp://host1:46801,[::1]:46802",
    b"\5http://manager:8083/inlong",
    b"\6port=46801\nread_idle=180s",
]


def check(data: bytes) -> None:
    """Read ``data`` in the way that its first byte chooses."""
    text = data[1:].decode("utf-8", "surrogateescape")
    try:
        (_toml, _json, _environment, _keyword, _spark, _target, _hub)[data[0] % 7 if data else 0](text)
    except ConfigError as error:
        if not str(error):
            raise AssertionError("an error without a text") from error


def _pairs(text: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in text.splitlines())


def _toml(text: str) -> None:
    _file("c.toml", text)


def _json(text: str) -> None:
    _file("c.json", text)


def _file(name: str, text: str) -> None:
    path = FOLDER / name
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    _settled(load_producer_config(TARGET, file=path, env={}))


def _environment(text: str) -> None:
    _settled(load_producer_config(TARGET, env=_pairs(text)))


def _keyword(text: str) -> None:
    pairs = {key: value for key, value in _pairs(text).items() if key not in ("file", "env", "require_target")}
    _settled(load_producer_config(env={}, **{"target": TARGET, **pairs}))


def _spark(text: str) -> None:
    _settled(load_producer_config(env={}, **{"target": TARGET, **spark_options(_pairs(text))}))


def _target(text: str) -> None:
    parse_target(text)


def _hub(text: str) -> None:
    pairs = {key: value for key, value in _pairs(text).items() if key not in ("file", "env")}
    load_hub_config(env={}, **pairs)


def _settled(config) -> None:
    values = config.as_dict()
    assert load_producer_config(env={}, **values).as_dict() == values


if __name__ == "__main__":
    main(check, SEEDS)
