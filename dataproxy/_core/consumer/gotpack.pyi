from dataproxy._core.consumer.pack import Pack

__all__ = ["find_first", "read_pack"]

def read_pack(
    answer: bytes, topic: str, partition: str, filters: list[bytes]
) -> tuple[int, str, int, int, int, int, Pack | None] | None: ...
def find_first(pack: Pack, other: Pack) -> int: ...
