"""Answers of success and of failure, as TubeMQ's servers fill them."""

from __future__ import annotations

from typing import Any, Final

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.calls import METHODS

__all__ = [
    "BAD_REQUEST", "NONE", "NO_ROOM", "OK", "UNKNOWN", "UNPROVEN", "RefusedError", "ServerError", "failure", "success",
]  # fmt: skip

NONE: Final = -2  #: an id that is not there
OK: Final = 200
BAD_REQUEST: Final = 400
UNKNOWN: Final = 411
UNPROVEN: Final = 415
NO_ROOM: Final = 500
_ANSWERS: Final = {one.request: getattr(messages, one.answer) for one in METHODS.values()}
_FIELDS: Final = {
    name: frozenset(field.name for field in kind.DESCRIPTOR.fields) for name, kind in _ANSWERS.items()
}  # fmt: skip
_SUCCESS: Final = {
    name: {"success": True} if "success" in fields else {} for name, fields in _FIELDS.items()
}  # fmt: skip
#: What TubeMQ's servers say beside the code of a failure: -1 is no version and no offset; a broker goes on as it is.
_FAILED: Final[dict[str, dict[str, Any]]] = {
    "RegisterRequestP2M": {"brokerCheckSum": -1},
    "HeartRequestP2M": {"brokerCheckSum": -1},
    "RegisterRequestC2B": {"currOffset": -1},
    "RegisterRequestB2M": {"stopRead": False, "stopWrite": False, "takeConfInfo": False},
    "HeartRequestB2M": {
        "stopRead": False, "stopWrite": False, "takeConfInfo": False, "takeRemoveTopicInfo": False,
        "needReportData": True, "curBrokerConfId": NONE, "confCheckSumId": NONE,
    },
}  # fmt: skip


class RefusedError(Exception):
    """A request is answered with a code that is not 200, and a text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class ServerError(Exception):
    """A request is answered with an exception of TubeMQ's: its name without the package, and a text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


def success(request: str, **fields: Any) -> Any:
    """Return the successful answer to a request, by the name of its message."""
    return _ANSWERS[request](errCode=OK, errMsg="OK!", **_SUCCESS[request], **fields)


def failure(request: str, error: RefusedError) -> Any:
    """Return the answer that refuses a request; 415 asks for credentials where the message can."""
    more = dict(_FAILED.get(request, {}))
    if "success" in _FIELDS[request]:
        more["success"] = False
    if error.code == UNPROVEN and "requireAuth" in _FIELDS[request]:
        more["requireAuth"] = True
    return _ANSWERS[request](errCode=error.code, errMsg=error.text, **more)
