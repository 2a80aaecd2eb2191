from typing import final

ACTIONS: dict[str, int]
POINTS: dict[str, int]
NUMBERS: dict[str, int]
LIMITS: dict[str, int]

@final
class FaultCore:
    def __init__(self) -> None: ...
    def add(
        self,
        *,
        action: str,
        points: int,
        listener: int = -1,
        connection: int = 0,
        group: bytes | None = None,
        stream: bytes | None = None,
        each: bool = False,
        after: int = 0,
        every: int = 0,
        first: int = 0,
        times: int = 0,
        at_byte: int = -1,
        share: float = 1.0,
        seed: int = 0,
        code: int = 0,
        load: int = -1,
        copies: int = 1,
        batch: int = 0,
        stage: int = 0,
        side: int = 0,
        reset: bool = False,
        mask: int = 0,
        corrupt_at: int = 0,
        delay_us: int = 0,
        rate: int = 0,
        number: int = 0,
        text: bytes = b"",
        garbage: bytes = b"",
    ) -> int: ...
    def remove(self, id: int) -> tuple[int, int]: ...  # noqa: A002 - as the compiled method names it
    def counts(self, id: int) -> tuple[int, int]: ...  # noqa: A002
