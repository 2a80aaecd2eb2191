"""Log records through a producer: shipped as they are, never waiting, never feeding on themselves."""

import logging
import threading

import pytest

from dataproxy import ConfigError, DataProxyError, Producer
from dataproxy.hub import Hub
from dataproxy.observe.logship import LogHandler


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


@pytest.fixture
def app():
    logger = logging.getLogger("app")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def test_records_arrive_formatted_with_their_time(hub, app):
    handler = LogHandler(hub.target, "g", "s")
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    app.addHandler(handler)
    app.warning("size %d, name %s", 7, "größe")
    app.debug("two")
    handler.close()
    first, second = hub.records("g", "s")
    assert (first.body.decode(), second.body) == ("WARNING size 7, name größe", b"DEBUG two")
    assert handler.sent == 2


def test_the_package_s_own_records_are_not_shipped(hub):
    handler = LogHandler(hub.target, "g", "s")
    logger = logging.getLogger("dataproxy")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        logging.getLogger("dataproxy.conn").error("about myself")
        logger.error("about myself")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    handler.close()
    assert handler.sent == 0
    assert list(hub.records("g", "s")) == []


def test_a_formatter_that_logs_does_not_recurse(hub, app):
    class Chatty(logging.Formatter):
        def format(self, record):
            app.info("inside")
            return super().format(record)

    handler = LogHandler(hub.target, "g", "s")
    handler.setFormatter(Chatty())
    app.addHandler(handler)
    app.info("outside")
    handler.close()
    assert [record.body for record in hub.records("g", "s")] == [b"outside"]


def test_a_full_buffer_loses_and_counts(hub, app):
    hub.set_service("not_ready")
    handler = LogHandler(hub.target, "g", "s", buffer_messages=5, delivery_timeout=0.5)
    app.addHandler(handler)
    for number in range(8):
        app.info("%d", number)
    assert (handler.sent, handler.lost) == (5, 3)


def test_what_cannot_be_a_message_is_counted(hub, app):
    handler = LogHandler(hub.target, "g", "s")
    app.addHandler(handler)
    app.info("")
    app.info("x" * (1 << 20))
    assert (handler.sent, handler.refused) == (0, 2)


def test_an_error_of_formatting_goes_the_way_of_logging(hub, app, monkeypatch, capsys):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    handler = LogHandler(hub.target, "g", "s")
    app.addHandler(handler)
    app.info("%d", "no number")
    assert (handler.sent, handler.refused) == (0, 0)
    assert capsys.readouterr().err == ""


def test_a_blocking_producer_is_refused(hub):
    with pytest.raises(ConfigError, match="must not wait for room: on_full='block'"):
        LogHandler(hub.target, "g", "s", on_full="block")
    with Producer(hub.target, group_id="g") as producer:
        with pytest.raises(ConfigError, match="must not wait for room"):
            LogHandler(producer=producer, stream_id="s")
        with pytest.raises(ConfigError, match="were both given"):
            LogHandler(hub.target, producer=producer)


@pytest.mark.parametrize("wrong", [{"stream_id": ""}, {"stream_id": "a&b"}, {"stream_id": 5}, {"on_full": "block"}])
def test_a_handler_that_cannot_be_leaves_nothing(hub, wrong):
    before = set(threading.enumerate())
    with pytest.raises((DataProxyError, TypeError)):
        LogHandler(hub.target, "g", **wrong)
    assert set(threading.enumerate()) <= before


def test_a_producer_of_the_caller_stays_open(hub, app):
    with Producer(hub.target, group_id="g", on_full="raise") as producer:
        handler = LogHandler(producer=producer, stream_id="s", group_id="other")
        app.addHandler(handler)
        app.info("one")
        handler.close()
        producer.send("s", b"two").result()
    assert [record.body for record in hub.records("other", "s")] == [b"one"]


def test_many_threads(hub, app):
    handler = LogHandler(hub.target, "g", "s")
    app.addHandler(handler)
    threads = [threading.Thread(target=lambda: [app.info("%d", n) for n in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.close()
    assert handler.sent == 2000
    assert sum(1 for _ in hub.records("g", "s")) == 2000
