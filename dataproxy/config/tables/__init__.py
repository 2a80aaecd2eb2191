"""The tables of options, and nothing else: what each option is called, its type, default, range and text.

What lives here.  `producer`, `consumer` and `hub`: their options; `TABLES` has all three.  `tls`: options that producer
and consumer share.  `spark`: options that only the Spark sink and reader have.  `aliases`: names of the official SDKs'
options and what stands for them here, from `cpp` (with Python's), `java` and `golang`; `tubemq`: the same of TubeMQ's
consumers; `conversions` and `reasons` are what their entries are made of.  `kafka`: names of Kafka's options.

Threads.  Constants; any thread.

What it may use.  `option`, `rules` and `units` beside this folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.config.tables.consumer import CONSUMER
from dataproxy.config.tables.hub import HUB
from dataproxy.config.tables.producer import PRODUCER

if TYPE_CHECKING:
    from dataproxy.config.option import OptionTable

__all__ = ["TABLES"]

#: Every table, in the order of the manual.
TABLES: Final[tuple[OptionTable, ...]] = (PRODUCER, CONSUMER, HUB)
