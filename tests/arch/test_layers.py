"""Dependencies point down, in the compiled half and in the Python half."""

from pathlib import Path

import pytest

from tests.arch.layers import compiled_violations, python_violations

ROOT = Path(__file__).parents[2]
CORE = "cython_ext/dataproxy/_core"


def test_compiled_layers_point_down():
    assert compiled_violations(ROOT) == []


def test_python_layers_point_down():
    assert python_violations(ROOT) == []


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("plat/clock.pxd", "from dataproxy._core.base.status cimport ST_OK"),
        ("base/buf.pyx", "from dataproxy._core.wire.api cimport WireOps"),
        ("wire/api.pxd", "from dataproxy._core.wire.inlong.const cimport MAGIC"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.wire.tubemq.const cimport MAGIC"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.plat.socket cimport recv"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.plat.clock cimport now_us"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.plat.thread cimport pthread_mutex_t"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.conn.sendq cimport SendQ"),
        ("net/executor.pyx", "from dataproxy._core.wire.inlong.codec cimport inlong_ops"),
        ("net/executor.pyx", "from dataproxy._core.wire cimport inlong"),
        ("net/executor.pyx", "from dataproxy._core.producer.accumulate.batcher cimport Batcher"),
        ("net/executor.pyx", "cimport dataproxy._core.server.loop"),
        ("producer/producer.pyx", "from dataproxy._core.server.entries cimport Entry"),
        ("producer/producer.pyx", "from dataproxy._core.wire.inlong.decode cimport parse"),
        ("producer/producer.pyx", "from tests.native.probe cimport peek"),
        ("producer/producer.pyx", "from dataproxy.config import load"),
        ("net/executor.pyx", "from dataproxy.errors import ConfigError"),
        ("producer/producer.pyx", "from .accumulate cimport Batcher"),
        ("server/loop.pyx", "from dataproxy._core.producer.accumulate.batcher cimport Batcher"),
        ("pack/pack.pyx", "from dataproxy._core.conn.connection cimport Connection"),
        ("conn/pool.pyx", "from dataproxy._core.net.executor cimport Executor"),
        ("novel/thing.pyx", "from dataproxy._core.base.buf cimport Buf"),
    ],
)
def test_a_cimport_upwards_or_sideways_is_found(tmp_path, name, line):
    plant(tmp_path, {f"{CORE}/{name}": f'"""Docs."""\n\n{line}\n'})
    (violation,) = compiled_violations(tmp_path)
    assert f"{name}:3" in violation


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("base/buf.pyx", "from dataproxy._core.plat.endian cimport load_be32"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.wire.api cimport WireOps"),
        ("wire/inlong/decode.pyx", "from dataproxy._core.wire.inlong.const cimport MAGIC"),
        ("net/executor.pyx", "from dataproxy._core.wire.api cimport WireOps"),
        ("net/executor.pyx", "from libc.string cimport memcpy"),
        ("producer/producer.pyx", "from dataproxy._core.wire.registry cimport wire_of_family"),
        ("producer/producer.pyx", "from dataproxy.errors import ConfigError"),
        ("server/loop.pyx", "from dataproxy._core.net.poller cimport Poller"),
    ],
)
def test_a_cimport_downwards_is_accepted(tmp_path, name, line):
    plant(tmp_path, {f"{CORE}/{name}": f"{line}\n"})
    assert compiled_violations(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dataproxy/errors.py", "from dataproxy.config import load"),
        ("dataproxy/config/loader.py", "from dataproxy.producer.producer import Producer"),
        ("dataproxy/config/loader.py", "from dataproxy import Producer"),
        ("dataproxy/producer/producer.py", "import dataproxy.hub"),
        ("dataproxy/producer/producer.py", "from dataproxy import spark"),
        ("dataproxy/producer/producer.py", "def f():\n    from dataproxy.testing import faults"),
        ("dataproxy/producer/producer.py", "from dataproxy._core.net.executor import Executor"),
        ("dataproxy/producer/producer.py", "from .dispatcher import Dispatcher"),
        ("dataproxy/spark/sink.py", "from dataproxy.cli.main import main"),
        ("dataproxy/spark/sink.py", "from dataproxy.hub import Hub"),
        ("dataproxy/hub/server.py", "from dataproxy.spark.sink import Sink"),
        ("dataproxy/cli/main.py", "from dataproxy.spark.sink import Sink"),
        ("dataproxy/cli/main.py", "from dataproxy.hub import Hub"),
        ("dataproxy/__init__.py", "from dataproxy.hub import Hub"),
        ("dataproxy/novel/thing.py", "from dataproxy.errors import ConfigError"),
        ("pyspark_dataproxy/__init__.py", "from dataproxy.spark.source import DefaultSource"),
        ("pyspark_tubemq/__init__.py", "from dataproxy.spark.tubemq.source import DefaultSource"),
        ("inlong_dataproxy/api.py", "from dataproxy.hub import Hub"),
        ("dataproxy/testing/fixture.py", "from inlong_dataproxy import InLongApi"),
    ],
)
def test_an_import_upwards_or_sideways_is_found(tmp_path, name, text):
    for part in ("hub", "spark", "cli", "testing", "client", "config"):
        (tmp_path / "dataproxy" / part).mkdir(parents=True, exist_ok=True)
    plant(tmp_path, {name: text + "\n"})
    (violation,) = python_violations(tmp_path)
    assert violation.startswith(f"{name}:")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dataproxy/producer/producer.py", "from dataproxy._core.producer.producer import ProducerCore"),
        ("dataproxy/cli/main.py", "def hub():\n    from dataproxy.hub import Hub"),
        ("dataproxy/testing/fixture.py", "from dataproxy.hub import Hub"),
        ("dataproxy/spark/sink.py", "from dataproxy import Producer"),
        ("dataproxy/config/loader.py", "import json, difflib"),
        ("inlong_dataproxy/api.py", "from inlong_dataproxy.groups import Groups\nfrom dataproxy import Producer"),
    ],
)
def test_an_import_downwards_is_accepted(tmp_path, name, text):
    plant(tmp_path, {name: text + "\n", "dataproxy/_core/producer/producer.pyi": "class ProducerCore: ...\n"})
    (tmp_path / "dataproxy" / "hub").mkdir()
    assert python_violations(tmp_path) == []
