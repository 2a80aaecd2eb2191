"""Wrong uses of the producer and the exact texts they get."""

import asyncio
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dataproxy
from dataproxy.codes import LOCAL_CODES
from tests.loopback.producer.test_delivery import producer
from tests.support.scripted import Scripted

TARGET = "tcp://127.0.0.1:9"
TIMEOUT = (
    "a timeout is a number of seconds from 0 on, or a timedelta, not {}; 0 asks without waiting, None takes the default"
    " [BAD_TIMEOUT]"
)
CALLBACK = "{} is a function of one argument, not {}; pass a callable [BAD_CALLBACK]"
CLOSED = "the producer is closed; open a new one to continue [CLOSED]"
Use = Callable[[dataproxy.Producer], Any]


def closed_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop


def refused(error: type[Exception], text: str, call: Callable[[], Any]) -> None:
    """Check class, exact text, and that the code is in the table."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text
    if isinstance(caught.value, dataproxy.DataProxyError):
        assert caught.value.code in LOCAL_CODES


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"on_delivery": "print"}, CALLBACK.format("on_delivery", "'print'")),
        (
            {"callback_on": 7},
            (
                "callback_on=7 is neither an asyncio event loop nor a concurrent.futures.Executor; "
                "leave it out to have callbacks on the producer's dispatcher thread [BAD_CALLBACK_TARGET]"
            ),
        ),
        (
            {"callback_on": ThreadPoolExecutor},
            (
                "callback_on is the class 'ThreadPoolExecutor', not an instance; "
                "give an object, such as a ThreadPoolExecutor() or asyncio.get_running_loop() [BAD_CALLBACK_TARGET]"
            ),
        ),
        (
            {"callback_on": asyncio.SelectorEventLoop},
            (
                "callback_on is the class '_UnixSelectorEventLoop', not an instance; "
                "give an object, such as a ThreadPoolExecutor() or asyncio.get_running_loop() [BAD_CALLBACK_TARGET]"
            ),
        ),
        (
            {"config": {}},
            (
                "config is a 'dict', not a ProducerConfig; "
                "make one by dataproxy.config.load_producer_config, or give the options themselves [CONFIG]"
            ),
        ),
        ({"config_file": 5}, "a file is named by text or a path, not by 5 [CONFIG]"),
        (
            {"message_type": 3, "exact_time": True},
            (
                "message_type 3 has no attributes of single messages, which exact_time needs; "
                "leave exact_time out, or choose message_type 7 or 5 [CONFIG]"
            ),
        ),
        (
            {"callback_on": closed_loop()},
            (
                "callback_on is an event loop that is closed already; "
                "give the running one: asyncio.get_running_loop() [BAD_CALLBACK_TARGET]"
            ),
        ),
        (
            {"delivery_timeout": 0},
            "option delivery_timeout (argument): 0 is too small; allowed is 10ms .. 7d [CONFIG]",
        ),
        (
            {"ack_timeout": -1},
            "option ack_timeout (argument): -1 is too small; allowed is 1ms .. 1h [CONFIG]",
        ),
        (
            {"close_timeout": -1},
            "option close_timeout (argument): -1 is too small; allowed is 0s .. 7d [CONFIG]",
        ),
        (
            {"retry_budget": -1},
            "option retry_budget (argument): -1 is too small; allowed is 0 .. 100000 [CONFIG]",
        ),
        (
            {"undelivered_bytes": -1},
            "option undelivered_bytes (argument): -1 is too small; allowed is 0 .. 1TiB [CONFIG]",
        ),
    ],
)
def test_making_one(options: dict[str, Any], text: str) -> None:
    refused(dataproxy.ConfigError, text, lambda: dataproxy.Producer(TARGET, group_id="g", **options))


@pytest.mark.parametrize("value", [-1, -0.001, float("nan"), "soon", [], object, True, False])
@pytest.mark.parametrize(
    "use",
    [
        lambda p, t: p.flush(t),
        lambda p, t: p.close(t),
        lambda p, t: p.send("s", b"x").result(t),
        lambda p, t: p.send("s", b"x").exception(t),
        lambda p, t: p.send_batch("s", [b"x"]).result(t),
    ],
)
def test_timeouts(use: Callable[[dataproxy.Producer, Any], Any], value: Any) -> None:
    with Scripted() as server, producer(server.target) as p:
        refused(dataproxy.ConfigError, TIMEOUT.format(repr(value)), lambda: use(p, value))
        assert not p.closed


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.send("s", b"x", on_delivery=5),
        lambda p: p.send_batch("s", [b"x"], on_delivery=5),
        lambda p: p.stream("s").send(b"x", on_delivery=5),
        lambda p: p.stream("s").send_batch([b"x"], on_delivery=5),
        lambda p: p.send("s", b"x").add_done_callback(5),
    ],
)
def test_callbacks_that_cannot_be_called(use: Use) -> None:
    with Scripted() as server, producer(server.target) as p:
        refused(dataproxy.ConfigError, CALLBACK.format("a callback", "5"), lambda: use(p))
        assert p.flush().accepted <= 1  # the last one was accepted before its callback was looked at


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.send("s", b"x"),
        lambda p: p.send_nowait("s", b"x"),
        lambda p: p.send_batch("s", [b"x"]),
        lambda p: p.stream("other"),
        lambda p: p.__enter__(),
    ],
)
def test_use_after_close(use: Use) -> None:
    with Scripted() as server:
        p = producer(server.target)
        handle = p.stream("s")
        p.close()
        refused(dataproxy.ClosedError, CLOSED, lambda: use(p))
        refused(dataproxy.ClosedError, CLOSED, lambda: handle.send(b"x"))


def test_what_works_after_close() -> None:
    with Scripted() as server:
        p = producer(server.target)
        delivery = p.send("s", b"x")
        final = p.close()
        assert p.close() == p.close(0) == p.flush() == p.report() == final
        assert delivery.result(0).attempts == 1
        assert p.stats().delivered == 1
        assert list(p.undelivered()) == []


@pytest.mark.parametrize(
    ("what", "use"),
    [
        ("flush", lambda p, d: p.flush()),
        ("a wait for a result", lambda p, d: d.result()),
        ("a wait for a result", lambda p, d: d.exception(5)),
    ],
)
def test_waiting_inside_a_callback(what: str, use: Callable[[dataproxy.Producer, dataproxy.Delivery], Any]) -> None:
    texts: list[str] = []
    ended = threading.Event()
    with Scripted() as server, producer(server.target, linger=0.5) as p:

        def callback(delivery: dataproxy.Delivery) -> None:
            other = p.send("s", b"later")
            try:
                use(p, other)
            except dataproxy.DataProxyError as error:
                texts.append(str(error))
            ended.set()

        p.send("s", b"x").add_done_callback(callback)
        assert ended.wait(20)
    assert texts == [
        (
            f"{what} was called inside a callback of the same producer and would block every other callback; "
            "let another thread wait, or use add_done_callback [IN_CALLBACK]"
        )
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (dataproxy.Delivery, "Delivery objects are made by Producer.send"),
        (dataproxy.BatchDelivery, "BatchDelivery objects are made by Producer.send_batch, send_arrow and send_rows"),
        (dataproxy.Stream, "Stream objects are made by Producer.stream"),
    ],
)
def test_things_that_nobody_makes_by_hand(kind: type, text: str) -> None:
    refused(TypeError, text, kind)


def test_a_producer_cannot_be_pickled() -> None:
    with Scripted() as server, producer(server.target) as p:
        refused(
            TypeError,
            "a Producer owns threads and sockets and cannot be pickled: send its settings (producer.config, which can "
            "be pickled) and make Producer(config=...) in the other process",
            lambda: pickle.dumps(p),
        )


def test_config_twice(tmp_path) -> None:
    from dataproxy.config import load_producer_config

    config = load_producer_config(TARGET)
    refused(
        dataproxy.ConfigError,
        "config and config_file were both given; give one of them [CONFIG]",
        lambda: dataproxy.Producer(config=config, config_file=tmp_path / "x.toml"),
    )
