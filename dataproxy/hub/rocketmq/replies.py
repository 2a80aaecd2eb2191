"""Replies to messages (324, 325): they are passed on to the client that has sent the request, and not stored."""

from __future__ import annotations

from typing import Final

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.sends import BODY_MOST, PROPERTIES_MOST
from dataproxy.hub.rocketmq.topics.remoting import Request
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import PushedReply, read_header
from dataproxy.wire.rocketmq.messages import SendHeader, read_properties, send_fields, write_properties

__all__ = ["Replies"]

_REPLY_TO: Final = "REPLY_TO_CLIENT"


class Replies:
    """Codes 324 and 325.  One thread."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def reply(self, request: Request, _: None) -> None:
        """Pass a reply on (326); the client's answer is the answer.  Raises RefusedError, RemoteProtocolError."""
        call = request.call
        header = read_header(SendHeader, send_fields(call.code, call.fields))
        properties = read_properties(header.properties)
        client = properties.get(_REPLY_TO, "")
        if not client:
            raise RefusedError(Code.SYSTEM_ERROR, f"{_REPLY_TO} is null, can not reply message")
        properties["PUSH_REPLY_TIME"] = str(request.wall_ms)
        text = write_properties(properties)
        if len(call.body) > BODY_MOST or len(text.encode("utf-8", "surrogateescape")) > PROPERTIES_MOST:
            what = f"a body of {len(call.body)} bytes, or properties of {len(text)} characters, are too long"
            raise RefusedError(Code.MESSAGE_ILLEGAL, what)
        pushed = PushedReply(
            producer_group=header.producer_group, topic=header.topic, default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums, queue_id=header.queue_id,
            sys_flag=header.sys_flag, born_timestamp=header.born_timestamp, flag=header.flag, properties=text,
            reconsume_times=header.reconsume_times, unit_mode=header.unit_mode, born_host=call.peer,
            store_host=call.local, store_timestamp=request.wall_ms,
        )  # fmt: skip
        place = {
            "msgId": "0", "queueId": str(max(header.queue_id, 0)), "queueOffset": "0",
            "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
        }  # fmt: skip
        self._registry.pass_reply(call, client, pushed, call.body, place, request.now)
