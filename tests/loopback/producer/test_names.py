"""The room that a stream's ids leave for its attributes."""

import pytest

from dataproxy import Producer
from dataproxy.errors import InvalidMessageError
from dataproxy.producer.ingest.names import (
    ATTRS_MAX_BYTES,
    FRAME_OWN_BYTES,
)


def test_a_stream_has_the_room_that_its_ids_leave():
    room = ATTRS_MAX_BYTES - len("groupId=gr&streamId=str&") - FRAME_OWN_BYTES
    with Producer("tcp://127.0.0.1:9", group_id="gr", close_timeout=0) as p:
        p.stream("str", attrs={"a": "x" * (room - 2)})
        with pytest.raises(InvalidMessageError, match=f"allowed are {room} "):
            p.stream("str", attrs={"a": "x" * (room - 1)})
