from typing import Any

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy._core.producer.ingest.columnar.rowkeys import RowKeys
from dataproxy._core.producer.producer import ProducerCore

__all__ = ["send_record_batch"]

def send_record_batch(
    core: ProducerCore,
    batch: Any,
    *,
    value: int = -1,
    encoder: BodyEncoder | None = None,
    group_id: int = -1,
    stream_id: int = -1,
    dt: int = -1,
    attrs: int = -1,
    marked: frozenset[int] | None = None,
    message_id: int = -1,
    key: int = -1,
    row_ids: bytes | RowKeys | None = None,
    first_row: int = 0,
    group: str = "",
    stream: str = "",
    exact_time: bool = False,
    refused: list[tuple[int, str, str]] | None = None,
    lost_before: int = -1,
) -> tuple[int, int, int, int]: ...
