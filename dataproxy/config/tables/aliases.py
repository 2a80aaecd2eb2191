"""Option names of the official SDKs: what they stand for here, or why they have no counterpart."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Alias, Refusal
from dataproxy.config.tables.conversions import proxies
from dataproxy.config.tables.cpp import CPP_ALIASES, CPP_REFUSALS
from dataproxy.config.tables.golang import GO_ALIASES, GO_REFUSALS
from dataproxy.config.tables.java import JAVA_ALIASES, JAVA_REFUSALS

__all__ = ["PRODUCER_ALIASES", "PRODUCER_REFUSALS"]

#: Of no SDK: what people write who know their proxies.
_OBVIOUS: Final = (Alias("proxies", proxies, "`target` (`tcp://` is put in front)"),)

#: Names that are accepted.
PRODUCER_ALIASES: Final[tuple[Alias, ...]] = (*_OBVIOUS, *CPP_ALIASES, *JAVA_ALIASES, *GO_ALIASES)

#: Names that have no counterpart, with the reason.
PRODUCER_REFUSALS: Final[tuple[Refusal, ...]] = (*CPP_REFUSALS, *JAVA_REFUSALS, *GO_REFUSALS)
