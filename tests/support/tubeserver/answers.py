"""Answers of success and of failure, and exceptions of a server."""

from __future__ import annotations

from typing import Any, Final

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.calls import METHODS

__all__ = ["ServerError", "failure", "success"]

_OK: Final = 200
_ANSWERS: Final = {one.request: one.answer for one in METHODS.values()}
#: What the real servers say beside the code of a failure: -1 is no offset and no version.
_FAILED: Final[dict[str, dict[str, Any]]] = {
    "RegisterResponseM2P": {"brokerCheckSum": -1},
    "HeartResponseM2P": {"brokerCheckSum": -1},
    "RegisterResponseB2C": {"currOffset": -1},
    "GetMessageResponseB2C": {"currOffset": -1, "escFlowCtrl": False, "currDataDlt": -1, "minLimitTime": 0},
    "CommitOffsetResponseB2C": {"currOffset": -1},
}


class ServerError(Exception):
    """The answer is an exception: the name of a Java class, and a text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


def _answer(request: str) -> Any:
    return getattr(messages, _ANSWERS[request])


def success(request: str, **fields: Any) -> Any:
    """Return a successful answer to a request, by the name of its message."""
    return _answer(request)(success=True, errCode=_OK, **{"errMsg": "OK!", **fields})


def failure(request: str, code: int, text: str, **fields: Any) -> Any:
    """Return an answer with a code; 415 asks for credentials where the message can."""
    kind = _answer(request)
    more = {"requireAuth": True} if code == 415 and "requireAuth" in kind.DESCRIPTOR.fields_by_name else {}
    known = _FAILED.get(kind.DESCRIPTOR.name, {})
    if "success" in kind.DESCRIPTOR.fields_by_name:
        more["success"] = code == _OK
    return kind(errCode=code, errMsg=text, **{**known, **more, **fields})
