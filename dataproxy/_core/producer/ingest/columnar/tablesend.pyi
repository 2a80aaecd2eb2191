from collections.abc import Callable, Sequence
from typing import Any

from dataproxy._core.producer.ingest.columnar.arrowtable import ArrowTable
from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy._core.producer.producer import ProducerCore
from dataproxy._core.producer.results.delivery import BatchDelivery
from dataproxy.errors import DataProxyError, InvalidMessageError
from dataproxy.outcomes import DeliveryResult

__all__ = ["send_table"]

def send_table(
    core: ProducerCore,
    table: ArrowTable,
    encoder: BodyEncoder,
    shower: BodyEncoder,
    *,
    explain: Callable[[str, int, str | None, bytes | None, dict[str, Any]], InvalidMessageError],
    refuse: Callable[[int, DataProxyError, bytes | None], object] | None = None,
    group_id: int = -1,
    stream_id: int = -1,
    dt: int = -1,
    message_id: int = -1,
    key: int = -1,
    attr_map: int = -1,
    attr_encoder: BodyEncoder | None = None,
    attr_keys: Sequence[bytes] = (),
    group: str = "",
    stream: str = "",
    exact_time: bool = False,
    escape: bool = False,
    on_delivery: Callable[[DeliveryResult], object] | None = None,
) -> BatchDelivery: ...
