"""``consume`` in this process, against a TubeMQ server in plain Python."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dataproxy.cli.app import app
from dataproxy.cli.tubemq import reading as work
from dataproxy.cli.tubemq.printing import Format, printer
from dataproxy.cli.tubemq.reading import Job, Reading
from dataproxy.config import load_consumer_config
from dataproxy.consumer.consumer import Consumer
from dataproxy.errors import ConfirmError, DataProxyError
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

INDEX = 28


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer({"one": 1, "two": 2}, balance_s=0) as running:
        yield running


def consume(server: TubeServer, *arguments: str, topics: str = "one", group: str = "g") -> Any:
    return CliRunner().invoke(app, ["consume", topics, "-g", group, "-t", server.target, *arguments])


def put(server: TubeServer, *bodies: bytes, topic: str = "one", attribute: str = "", partition: int = 0) -> None:
    for body in bodies:
        server.put(topic, body, partition, attribute)


def test_bodies_are_printed_as_they_are_and_confirmed(server: TubeServer) -> None:
    put(server, b"a", b"\xff\x00", b"c\nd", b"")
    result = consume(server, "--max", "4")
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, b"a\n\xff\x00\nc\nd\n\n", "")
    assert server.confirmed("g", "one", 0) == 4 * INDEX
    assert server.members("g") == []
    assert server.owner("g", "one", 0) is None


def test_they_end_with_a_nul_byte_if_that_is_asked_for(server: TubeServer) -> None:
    put(server, b"a\nb", b"c")
    assert consume(server, "--max", "2", "-0").stdout_bytes == b"a\nb\0c\0"


def test_json_has_everything_of_a_message(server: TubeServer) -> None:
    put(server, b"a", b"\xff", attribute="$msgType$=view,$msgTime$=202601020304,k=v")
    result = consume(server, "--max", "2", "--format", "json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert list(first) == ["topic", "partition", "offset", "index", "id", "attributes", "body"]
    assert (first["topic"], first["partition"], first["offset"], first["index"]) == ("one", "1:one:0", 0, 0)
    assert first["attributes"] == {"$msgType$": "view", "$msgTime$": "202601020304", "k": "v"}
    assert (first["body"], second["body_base64"], second["index"]) == ("a", "/w==", 1)
    assert "body" not in second
    assert first["id"] != second["id"]


def test_a_pack_that_max_cuts_comes_again_as_a_whole(server: TubeServer) -> None:
    put(server, b"a", b"b", b"c")
    assert consume(server, "--max", "2").stdout_bytes == b"a\nb\n"
    assert server.confirmed("g", "one", 0) == 0
    assert consume(server, "--max", "3").stdout_bytes == b"a\nb\nc\n"
    assert server.confirmed("g", "one", 0) == 3 * INDEX


def test_max_ends_behind_packs_that_are_confirmed(server: TubeServer) -> None:
    server.settings.pack_bytes = 1  # each message is a pack
    put(server, *(b"%d" % i for i in range(5)))
    assert consume(server, "--max", "3").stdout_bytes == b"0\n1\n2\n"
    assert server.confirmed("g", "one", 0) == 3 * INDEX


def test_max_0_joins_no_group(server: TubeServer) -> None:
    result = consume(server, "--max", "0", "--format", "count")
    assert (result.exit_code, result.stdout) == (0, "0\n")
    assert server.calls == []


def test_count_prints_one_number_and_confirms(server: TubeServer) -> None:
    put(server, b"a", b"b", b"c")
    result = consume(server, "--format", "count", "--timeout", "300ms", "--progress")
    assert (result.exit_code, result.stdout) == (0, "3\n")
    assert server.confirmed("g", "one", 0) == 3 * INDEX


def test_the_summary_is_for_terminals_or_for_those_who_ask(server: TubeServer) -> None:
    put(server, b"a", b"b", b"c")
    result = consume(server, "--max", "2", "-v")
    for words in ("messages", "packs confirmed", "packs given back", "bytes read"):
        assert words in result.stderr
    assert result.stdout == "a\nb\n"


def test_filters_and_starts(server: TubeServer) -> None:
    put(server, b"a", attribute="$msgType$=view")
    put(server, b"b", attribute="$msgType$=buy")
    put(server, b"c", attribute="$msgType$=back")
    assert consume(server, "--max", "2", "--filter", "buy", "--filter", "back").stdout_bytes == b"b\nc\n"
    same = consume(server, "--timeout", "200ms", topics="one=buy", group="h")
    assert (same.exit_code, same.stdout_bytes) == (0, b"b\n")
    both = consume(server, "--filter", "view", topics="one=buy")
    assert (both.exit_code, "--filter and filter items of TOPIC were both given" in both.stderr) == (2, True)
    for start in ("latest", "end"):
        result = consume(server, "--from", start, "--timeout", "200ms", group=start)
        assert (result.exit_code, result.stdout) == (0, "")


def test_several_topics(server: TubeServer) -> None:
    put(server, b"a")
    put(server, b"b", topic="two", partition=1)
    assert sorted(consume(server, "--max", "2", topics="one,two").stdout_bytes.split()) == [b"a", b"b"]


def test_auto_confirm_of_a_file_has_no_effect(server: TubeServer, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'auto_confirm = true\ngroup = "g"\ntarget = "{server.target}"\n')
    put(server, b"a", b"b")
    result = CliRunner().invoke(app, ["consume", "one", "-c", str(file), "--max", "2"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "a\nb\n", "")
    assert server.confirmed("g", "one", 0) == 2 * INDEX


def test_a_group_that_is_refused(server: TubeServer) -> None:
    result = consume(server, topics="none", group="g")
    assert result.exit_code == 1
    assert "refuses this consumer in group 'g' with code 431" in result.stderr
    assert "before its servers had answered" not in result.stderr


def test_no_master(server: TubeServer) -> None:
    server.stop_master()
    result = consume(server, "--timeout", "500ms", "--format", "count")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "took this consumer within 0.5 s: no connection: Connection refused" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-o", "balance=client"], "balance='client' does not go with this command"),
        (["--timeout", "-1"], "--timeout '-1' is below 0"),
    ],
)
def test_what_would_wait_for_ever_is_refused(server: TubeServer, arguments: list[str], text: str) -> None:
    result = consume(server, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr
    assert server.calls == []


@pytest.mark.parametrize(("topic", "group"), [("a b", "g"), ("one", "a b"), ("one", "\udcff")])
def test_a_name_that_a_hub_cannot_have_is_a_wrong_argument(topic: str, group: str) -> None:
    result = CliRunner().invoke(app, ["consume", topic, "-g", group, "-t", "rocketmq://127.0.0.1:1"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not a name of a " in result.stderr and "[BAD_NAME]" in result.stderr


def test_a_master_that_comes_late(server: TubeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_SOON_S", 0.3)
    put(server, b"a")
    server.stop_master()

    def tell(text: str) -> None:
        said.append(text)
        server.start_master()

    said: list[str] = []
    monkeypatch.setattr(work, "complain", tell)
    result = consume(server, "--max", "1")
    assert (result.exit_code, result.stdout) == (0, "a\n")
    assert "Connection refused; it is tried for 29.7 s more" in said[0]


def test_a_member_without_a_partition(server: TubeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_PARTITION_S", 0.5)
    with Consumer(server.target, group="g", topics=["one"], heartbeat_interval=1.0) as first:
        assert eventually(first.assignment)
        result = consume(server, "--timeout", "100ms")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no partition was assigned to this member of group 'g' within 0.5 s" in result.stderr


def test_a_confirm_that_does_not_count_is_told(server: TubeServer) -> None:
    put(server, b"a")
    server.on("GetMessageRequestC2B", "drop", times=None, when=lambda request: request.lastPackConsumed)
    server.on("CommitOffsetRequestC2B", ("code", 411, "nobody knows you"), times=None)
    result = consume(server, "--max", "1", "-v")
    assert (result.exit_code, result.stdout) == (0, "a\n")
    assert "its messages may come again" in result.stderr
    assert "packs written but not confirmed" in result.stderr


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), BrokenPipeError(), KeyboardInterrupt()])
def test_what_cannot_be_written_is_given_back(server: TubeServer, error: BaseException) -> None:
    put(server, b"a", b"b")

    def show(_pack: Any, _count: int) -> bytes:
        raise error

    config = load_consumer_config(server.target, "g", ["one"], env={})
    reading = Reading()
    with pytest.raises(type(error)):
        work.run(Job(config, Format.TEXT, show, None, None), reading, None)
    assert reading.stats is not None
    assert (reading.messages, reading.stats.packs.confirmed, reading.stats.state) == (0, 0, "closed")
    assert reading.stats.packs.rolled_back >= 1
    assert reading.interrupted == isinstance(error, KeyboardInterrupt)
    assert server.confirmed("g", "one", 0) == 0
    assert server.members("g") == []


def test_a_pack_that_takes_too_long_to_write(server: TubeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """It is written, and then comes once more: its confirm would not count."""
    put(server, b"a")

    def show(pack: Any, _count: int) -> bytes:
        assert eventually(lambda: pack.outcome == "expired")
        return b""

    config = load_consumer_config(server.target, "g", ["one"], confirm_timeout=1.0, env={})
    reading = Reading()
    work.run(Job(config, Format.TEXT, show, 1, None), reading, None)
    assert (reading.messages, reading.unconfirmed) == (1, 1)
    assert "not confirmed within confirm_timeout; its messages may come again" in capsys.readouterr().err


def test_a_signal_while_it_leaves_ends_at_once() -> None:
    class Slow:
        def __init__(self) -> None:
            self.closed: list[float | None] = []

        def close(self, seconds: float | None) -> None:
            self.closed.append(seconds)
            if seconds != 0:
                raise KeyboardInterrupt

    slow: Any = Slow()
    with pytest.raises(KeyboardInterrupt):
        work._leave(slow, None)
    assert slow.closed == [None, 0]


def test_the_progress_is_one_line_in_a_narrow_terminal(server: TubeServer) -> None:
    assert not work._progress_line(Reading()).plain
    put(server, b"a")
    with Consumer(server.target, group="g", topics=["one"]) as consumer:
        pack = consumer.poll(30)
        assert pack is not None
        reading = Reading(messages=1_234, unconfirmed=2, consumer=consumer)
        line = work._progress_line(reading)
        consumer.confirm(pack)
    (shown,) = Console(width=40).render_lines(line)
    assert line.plain.startswith("1,234 messages  2 packs not confirmed  1 partitions")
    assert "".join(part.text for part in shown).startswith("1,234 messages")


def test_packs_that_are_not_confirmed_are_told_once_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    reading = Reading()
    for number in range(3):
        work._tell(reading, ConfirmError(f"pack {number}"))
    work.report(Job(load_consumer_config(complete=False, env={}), Format.TEXT, printer(Format.TEXT, b"", escaped=False),
                    None, None), reading, verbose=False)  # fmt: skip
    told = capsys.readouterr().err
    assert told.count("pack 0") == 1
    assert "pack 1" not in told
    assert "3 packs in all were written but not confirmed" in told


def test_on_a_terminal_bodies_are_escaped(server: TubeServer) -> None:
    put(server, b"\x1b[31m\xff")
    with Consumer(server.target, group="g", topics=["one"]) as consumer:
        pack = consumer.poll(30)
        assert pack is not None
        assert printer(Format.TEXT, b"\n", escaped=True)(pack, 1) == b"\\x1b[31m\\xff\n"
        assert printer(Format.TEXT, b"\n", escaped=False)(pack, 1) == b"\x1b[31m\xff\n"
        assert printer(Format.COUNT, b"\n", escaped=False)(pack, 1) == b""
        consumer.confirm(pack)


def test_a_wait_for_the_first_partition_gives_the_pack_that_came(server: TubeServer) -> None:
    with Consumer(server.target, group="g", topics=["one"]) as consumer:
        threading.Timer(0.2, put, (server, b"late")).start()
        pack = work._first(consumer, 30) or consumer.poll(30)
        assert pack is not None
        consumer.confirm(pack)
    with pytest.raises(DataProxyError):
        consumer.poll(0)


def test_where_a_partition_begins(server: TubeServer) -> None:
    put(server, b"0", b"1", b"2", b"3")
    result = consume(server, "--from-offset", f"1:one:0={2 * INDEX}", "--max", "2")
    assert (result.exit_code, result.stdout_bytes) == (0, b"2\n3\n")
    put(server, b"a", b"b", topic="two")
    result = consume(
        server, "--from-offset", f"1:two:0={INDEX}", "--from-offset", "1:two:1=0", "--max", "1", topics="two", group="h"
    )
    assert (result.exit_code, result.stdout_bytes) == (0, b"b\n")
    result = consume(server, "--from-offset", "1:one:0=5")
    assert (result.exit_code, "is no offset" in result.stderr) == (2, True)
