"""A ``logging.Handler`` that ships log records through a producer.

::

    logging.getLogger().addHandler(dataproxy.observe.logship.LogHandler("tcp://proxy:46801", "g_app", "s_logs"))
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from dataproxy.errors import BufferFullError, ConfigError, DataProxyError
from dataproxy.producer.producer import Producer

if TYPE_CHECKING:
    from dataproxy._core.producer.ingest.stream import Stream

__all__ = ["LogHandler"]

_CLOSE_SECONDS = 2.0


class LogHandler(logging.Handler):
    """Send each log record as one message: its formatted text, UTF-8, with the record's time as data time.

    ``target``, ``group_id`` and ``options`` are those of a Producer, which the handler then owns and closes; or give
    your own as ``producer``.  Its ``on_full`` must not be ``block``: logging never waits for a network (the handler's
    own producer has ``on_full="raise"``).  It never delays the start or the end of a process: the handler's own
    producer has ``start="lazy"``, which looks for proxies in the background, and ``close_timeout=2``, the longest time
    that the end of the process waits for records that no proxy has accepted.  Records of ``dataproxy`` itself are not
    shipped, so that sending a record cannot cause another one.

    ``sent`` counts records taken by the producer, ``lost`` those that found the buffer full, ``refused`` those
    that could not be a message (empty, or over the largest frame).  Raises ConfigError.  Thread: any.
    """

    def __init__(
        self,
        target: str | None = None,
        group_id: str | None = None,
        stream_id: str = "logs",
        *,
        level: int | str = logging.NOTSET,
        producer: Producer | None = None,
        **options: Any,
    ) -> None:
        super().__init__(level)
        self._own = producer is None
        if producer is None:
            usual = {"on_full": "raise", "start": "lazy", "close_timeout": _CLOSE_SECONDS}
            producer = Producer(target, group_id=group_id, **{**usual, **options})
            group_id = None
        elif target is not None or options:
            raise ConfigError("a producer and options for another one were both given", hint="give one of them")
        self.producer = producer
        try:
            if producer.config.on_full == "block":
                raise ConfigError(
                    "a log handler must not wait for room: on_full='block'",
                    hint="use a producer with on_full='raise', 'drop_newest' or 'drop_oldest'",
                )
            self._stream: Stream = producer.stream(stream_id, group_id=group_id, serializer=bytes)
        except BaseException:
            self.close()
            raise
        self._busy = threading.local()
        self.addFilter(self._ships)
        self.sent = 0
        self.lost = 0
        self.refused = 0

    def _ships(self, record: logging.LogRecord) -> bool:
        """Pass over the records of ``dataproxy``, and those made while one is being sent."""
        own = record.name == "dataproxy" or record.name.startswith("dataproxy.")
        return not own and not getattr(self._busy, "now", False)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; never waits for the network.  Called by ``handle`` under the handler's lock."""
        self._busy.now = True
        try:
            body = self.format(record).encode("utf-8", "backslashreplace")
            self._stream.send_nowait(body, dt=int(record.created * 1000))
            self.sent += 1
        except BufferFullError:
            self.lost += 1
        except DataProxyError:
            self.refused += 1
        except Exception:  # noqa: BLE001 - as logging asks: an error of formatting must not reach the caller
            self.handleError(record)
        finally:
            self._busy.now = False

    def flush(self) -> None:
        """Do nothing: ``logging`` calls it at any time; ``close`` waits."""

    def close(self) -> None:
        """Deliver the accepted records and close the handler's own producer; one given as an argument stays open."""
        super().close()
        if self._own:
            self.producer.close()
