"""A broker: messages in (13), registrations (15), heartbeats (16), packs (17) and confirms (18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Failure, Partition
from tests.simgroup.servers import Locks
from tests.support.reference.tubemq import checksum_of, hash_of
from tests.support.tubeserver.answers import failure, success
from tests.support.tubeserver.settings import Settings
from tests.support.tubeserver.store import INDEX_BYTES, Entry, Progress, Store

__all__ = ["Broker"]

_REGISTER, _UNREGISTER = 31, 32
_FROM_FIRST, _FROM_END_ALWAYS = 0, 2  # readStatus of a registration
_COMMIT: Final = 0  # readStatus of its end
_NOT_GIVEN: Final = -1  # of a checksum
_NO_TYPE: Final = -1  # code of a message without a type
_BODY: Final = 1 << 20
_ROOM_FOR_HEADERS: Final = 10 << 10
_NEAR_THE_END: Final = 13_500 * 3 * 10 * INDEX_BYTES

_Key = tuple[str, str, int]  # group, topic, partition


class Broker:
    """Topics with one store each, registrations, and the offsets of groups.  One thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.stores = {topic: Store(partitions) for topic, partitions in settings.topics.items()}
        self.locks = Locks(settings.lock_limit_s)
        self.progress: dict[_Key, Progress] = {}
        self._filters: dict[_Key, frozenset[int]] = {}
        self._work: dict[str, Callable[[Any, float], Any]] = {
            "SendMessageRequestP2B": self._send,
            "RegisterRequestC2B": self._register,
            "HeartBeatRequestC2B": self._heartbeat,
            "GetMessageRequestC2B": self._get,
            "CommitOffsetRequestC2B": self._commit,
        }

    def open_topic(self, topic: str, partitions: int) -> None:
        """Add a topic, or give one another number of partitions."""
        self.stores.setdefault(topic, Store(partitions)).partitions = partitions

    def restart(self, positions: dict[_Key, Progress] | None = None) -> None:
        """Forget registrations and packs that nobody confirmed, as after a crash; messages stay.

        ``positions``: what was stored of offsets; None: all of them.
        """
        self.locks.clear()
        self._filters.clear()
        if positions is not None:
            self.progress = positions
        for progress in self.progress.values():
            progress.commit(False)

    def work(self, name: str, request: Any, now: float) -> Any:
        """Answer a call, by the name of its message."""
        return self._work[name](request, now)

    def put(self, topic: str, partition: int, payload: bytes, flag: int, item: str) -> Entry:
        """Store a message of a type."""
        code = hash_of(item.strip()) if item.strip() else _NO_TYPE
        return self.stores[topic].append(partition, payload, flag, checksum_of(payload), code)

    def _refusal(self, name: str, request: Any) -> Any:
        """Return the answer to a request that proves no user, or lacks a name; None if it may go on."""
        proves = "authInfo" not in request.DESCRIPTOR.fields_by_name or request.authInfo.authAuthorizedToken.strip()
        if self._settings.require_auth and not proves:
            return failure(name, 415, "authAuthorizedToken is Blank!")
        for field in ("clientId", "groupName", "topicName"):
            if field in request.DESCRIPTOR.fields_by_name and not getattr(request, field).strip():
                return failure(name, 400, f"Request miss necessary {field} data!")
        if "topicName" in request.DESCRIPTOR.fields_by_name and request.topicName not in self.stores:
            return failure(name, 403, f"topicName {request.topicName} not existed, please check your configure")
        return None

    def _has(self, request: Any) -> bool:
        return bool(0 <= request.partitionId < self.stores[request.topicName].partitions)

    @staticmethod
    def _absent(name: str, request: Any) -> Any:
        text = f"partitionId {request.topicName}-{request.partitionId} not existed, please check your configure"
        return failure(name, 403, text)

    # --- messages in

    def _send(self, request: Any, now: float) -> Any:
        name = "SendMessageRequestP2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        if not self._has(request):
            return self._absent(name, request)
        most = (self._settings.max_body_bytes or _BODY) + _ROOM_FOR_HEADERS
        if not request.data:
            return failure(name, 400, "data length is zero!")
        if len(request.data) > most:
            text = f"data length over max length, allowed max length is {most}, data length is {len(request.data)}"
            return failure(name, 400, text)
        checksum = checksum_of(request.data)
        if request.checkSum not in (_NOT_GIVEN, checksum):
            text = f"Checksum msg data failure: {request.checkSum} of {request.topicName} not equal to {checksum}"
            return failure(name, 403, text)
        entry = self.put(request.topicName, request.partitionId, request.data, request.flag, request.msgType)
        return success(
            name, errMsg=str(entry.message), requireAuth=False, messageId=entry.message, appendTime=entry.received_ms,
            appendOffset=entry.offset,
        )  # fmt: skip

    # --- registrations

    def _register(self, request: Any, now: float) -> Any:
        name = "RegisterRequestC2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        key = (request.groupName, request.topicName, request.partitionId)
        if request.opType == _UNREGISTER:
            return self._unregister(key, request, now)
        if request.opType != _REGISTER:
            return failure(name, 400, f"Invalid request:{request.opType}")
        owner = self.locks.owner(key, now)
        if not self.locks.take(key, request.clientId, now):
            place = f"Partition {self._settings.broker_id}#{':'.join(map(str, key))}"
            told = f"{place} has been registered by {owner}" if owner else "Remove Invalid Consumer Register"
            return failure(name, 410, f"[Duplicated Register] {told}")
        items = {item.strip() for item in request.filterCondStr if item.strip()}
        self._filters[key] = frozenset(map(hash_of, items))
        store = self.stores[request.topicName]
        if not self._has(request):  # the real one looks only now, and keeps the registration
            text = f"Wrong partition value {request.partitionId},valid partitions in (0,{store.partitions - 1})"
            return failure(name, 500, f"Register broker failure!, exception is {text}")
        first = store.least if request.readStatus == _FROM_FIRST else store.end
        progress = self.progress.setdefault(key, Progress(first))
        progress.commit(False)
        if request.readStatus == _FROM_END_ALWAYS:
            progress.confirmed = store.end
        elif request.HasField("currOffset") and request.currOffset >= 0:
            progress.confirmed = min(max(request.currOffset, store.least), store.end)
        return success(name, currOffset=progress.confirmed, maxOffset=store.end)

    def _unregister(self, key: _Key, request: Any, now: float) -> Any:
        name = "RegisterRequestC2B"
        code = self.locks.leave(key, request.clientId, now)
        if code == 411:
            return failure(name, code, f"UnRegistered Consumer {request.clientId}, you have to register firstly!")
        if code != 200:
            return failure(name, code, "[Duplicated Request]")
        if key in self.progress:
            self.progress[key].commit(request.readStatus == _COMMIT)
        return success(name, currOffset=-1)

    def _heartbeat(self, request: Any, now: float) -> Any:
        name = "HeartBeatRequestC2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        failed = []
        for text in request.partitionInfo:
            partition = Partition.read(text)
            code = self.locks.use((request.groupName, partition.topic, partition.id), request.clientId, now)
            if code != 200:
                failed.append(str(Failure(code, partition)))
        return success(name, requireAuth=False, hasPartFailure=bool(failed), failureInfo=failed)

    # --- packs

    def _get(self, request: Any, now: float) -> Any:
        name = "GetMessageRequestC2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        key = (request.groupName, request.topicName, request.partitionId)
        code = self.locks.use(key, request.clientId, now)
        if code == 411:
            return failure(name, code, f"UnRegistered Consumer:{request.clientId}, you have to register firstly!")
        if code != 200:
            text = f"Partition={':'.join(map(str, key))} of Broker={self._settings.broker_id} has been consumed by "
            return failure(name, code, f"[Duplicated Request] {text}{self.locks.owner(key, now)}")
        if key not in self.progress:
            return failure(name, 500, f"Get the store of topic {key[1]} in partition {key[2]} failure!")
        store, progress, manual = self.stores[request.topicName], self.progress[key], request.manualCommitOffset
        position = progress.locate(store, consumed=request.lastPackConsumed, manual=manual)
        wait = {"minLimitTime": self._settings.empty_wait_ms}
        if position >= store.end:
            return failure(name, 404, "The request offset reached maxOffset!", **wait)
        codes = self._filters[key]
        pack = store.read(position, request.partitionId, codes, self._settings.pack_bytes, self._settings.scan_entries)
        progress.book(pack, manual=manual)
        if not pack.there:
            return failure(name, 404, "Can't found Message by index!", **wait)
        found = [
            messages.TransferedMessage(
                messageId=one.message, checkSum=one.checksum, payLoadData=one.payload, flag=one.flag
            )
            for one in pack.entries
        ]
        near = store.end - position - pack.scanned < _NEAR_THE_END
        return success(
            name, messages=found, currOffset=position, minLimitTime=0, escFlowCtrl=False, currDataDlt=pack.behind,
            requireSlow=bool(codes) and near, maxOffset=store.end,
        )  # fmt: skip

    def _commit(self, request: Any, now: float) -> Any:
        name = "CommitOffsetRequestC2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        if not self._has(request):
            return self._absent(name, request)
        key = (request.groupName, request.topicName, request.partitionId)
        owner = self.locks.owner(key, now)
        if owner is None:
            return failure(name, 401, "The partition not registered by consumers")
        if owner != request.clientId:
            return failure(name, 401, f"The partition has been registered by other consumer: {owner}")
        consumed = request.lastPackConsumed if request.HasField("lastPackConsumed") else True
        return success(
            name, currOffset=self.progress[key].commit(consumed), maxOffset=self.stores[request.topicName].end
        )
