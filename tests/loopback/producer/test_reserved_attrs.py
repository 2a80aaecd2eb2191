"""Names of attributes that steer a server are refused at every entrance, and nothing is accepted."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.cli.app import app
from dataproxy.observe.logship import LogHandler

STEERS = ["syncSend", "partitionKey", "proxySend", "isAck", "auditVersion", "bid"]
MAP = pa.map_(pa.string(), pa.string())


def entrances(p: dataproxy.Producer, attrs: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """Return one call for each way of giving attributes to a producer."""
    names = list(attrs)
    batch = pa.record_batch({"value": pa.array([b"x"]), "attrs": pa.array([list(attrs.items())], MAP)})
    frame = pa.table({"a": [1], **{name: [value] for name, value in attrs.items()}})
    maps = pa.table({"a": [1], "m": pa.array([list(attrs.items())], MAP)})
    return {
        "send": lambda: p.send("s", b"x", attrs=attrs),
        "send_nowait": lambda: p.send_nowait("s", b"x", attrs=attrs),
        "send_batch": lambda: p.send_batch("s", [b"x"], attrs=attrs),
        "send_arrow": lambda: p.send_arrow("s", pa.array([b"x"]), attrs=attrs),
        "stream": lambda: p.stream("s", attrs=attrs),
        "stream.send": lambda: p.stream("s").send(b"x", attrs=attrs),
        "stream.send_nowait": lambda: p.stream("s").send_nowait(b"x", attrs=attrs),
        "stream.send_batch": lambda: p.stream("s").send_batch([b"x"], attrs=attrs),
        "columns of a table": lambda: p.send_rows("s", frame, attrs_column=names),
        "a map of a table": lambda: p.send_rows("s", maps, attrs_column="m"),
        "a column of Spark's": lambda: send_record_batch(p, batch, value=0, attrs=1, group="g", stream="s"),
    }


@pytest.mark.parametrize("escape", ["none", "percent"])
@pytest.mark.parametrize("key", STEERS)
def test_every_call_refuses_it(server, key: str, escape: str) -> None:
    with dataproxy.Producer(server.target, group_id="g", attribute_escape=escape) as p:
        for name, call in entrances(p, {"fine": "1", key: "true"}).items():
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call()
            assert f"attribute '{key}'='true'" in str(caught.value), name
            assert "its key is reserved" in str(caught.value), name
            assert caught.value.code == "BAD_ATTRIBUTE", name
        assert p.report().accepted == 0
        for call in entrances(p, {"fine": "1"}).values():
            call()
    assert p.report().delivered == len(entrances(p, {"fine": "1"})) - 1


def test_coroutines_refuse_it(server) -> None:
    async def main() -> int:
        async with dataproxy.AsyncProducer(server.target, group_id="g") as p:
            attrs = {"isAck": "false"}
            with pytest.raises(dataproxy.InvalidMessageError, match="reserved"):
                await p.send("s", b"x", attrs=attrs)
            with pytest.raises(dataproxy.InvalidMessageError, match="reserved"):
                await p.send_batch("s", [b"x"], attrs=attrs)
            for call in (p.send_soon, p.send_nowait):
                with pytest.raises(dataproxy.InvalidMessageError, match="reserved"):
                    call("s", b"x", attrs=attrs)
            async with p.batch("s") as batch:
                with pytest.raises(dataproxy.InvalidMessageError, match="reserved"):
                    batch.add(b"x", attrs=attrs)
            with pytest.raises(dataproxy.InvalidMessageError, match="reserved"):
                p.stream("s", attrs=attrs)
            return p.report().accepted

    assert asyncio.run(main()) == 0


def test_the_command_line_refuses_it(server, tmp_path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"one\n")
    words = ["send", "-t", server.target, "-g", "g", "-s", "s", "-f", str(lines), "-a", "proxySend=true"]
    server.frames.clear()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "'proxySend'='true'" in result.stderr and "reserved" in result.stderr
    assert server.bodies() == []


def test_a_log_record_s_extra_fields_do_not_travel(server) -> None:
    """The handler sends the text alone: whatever ``extra=`` says steers nothing."""
    server.frames.clear()
    handler = LogHandler(server.target, "g")
    log = logging.getLogger("tests.reserved")
    log.addHandler(handler)
    try:
        log.warning("text", extra={"isAck": "false", "syncSend": "true"})
    finally:
        log.removeHandler(handler)
        handler.close()
    assert [attrs.keys() & set(STEERS) for _, attrs in server.messages()] == [set()]
