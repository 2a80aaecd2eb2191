from typing import Final

from dataproxy._core.consumer.pack import Pack
from dataproxy._core.remoting.messages import ReceivedMessage
from dataproxy.errors import DataProxyError

__all__ = [
    "CONFIRMED",
    "EXPIRED",
    "ROLLED_BACK",
    "ask_end",
    "give_out",
    "is_of",
    "is_packed",
    "make_pack",
    "number_of",
    "settle",
]

CONFIRMED: Final[int]
ROLLED_BACK: Final[int]
EXPIRED: Final[int]

def make_pack(
    messages: list[ReceivedMessage],
    topic: str,
    partition: str,
    number: int,
    max_offset: int,
    bodies: list[bytes | DataProxyError | None] | None,
) -> Pack: ...
def is_packed(messages: list[ReceivedMessage]) -> bool: ...
def give_out(pack: Pack, consumer: object) -> Pack: ...
def number_of(pack: Pack) -> int: ...
def is_of(pack: object, consumer: object) -> bool: ...
def ask_end(pack: Pack, consumed: bool) -> bool: ...
def settle(pack: Pack, outcome: int, code: int) -> None: ...
