"""Errors for packs whose confirm does not count, and for members that a master refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfirmError, GroupRefusedError

if TYPE_CHECKING:
    from dataproxy._core.consumer.pack import Pack
    from dataproxy.consumer.group.asking import Refusal

__all__ = [
    "BAD_FILTER", "CLOSED", "LATE", "NO_PUSH", "RENEWED", "REVOKED", "SOUGHT", "UNANSWERED", "check_confirmed",
    "refusal_error",
]  # fmt: skip

#: Codes of packs that have expired; others are those of brokers.
LATE, REVOKED, UNANSWERED, CLOSED, RENEWED = -1, -2, -3, -4, -6
#: Codes of refusals that no master has sent: brokers that do not push, or cannot read an expression.
NO_PUSH, BAD_FILTER = -1, -2
#: Code of a pack that was out when its partition was read from another place.
SOUGHT: Final = -5
_REASONS: Final = {
    LATE: ("CONFIRM_LATE", "it was not confirmed within confirm_timeout"),
    REVOKED: ("CONFIRM_REVOKED", "its partition was taken away before it was confirmed"),
    UNANSWERED: ("CONFIRM_UNANSWERED", "the broker's answer to the confirm did not come"),
    SOUGHT: ("CONFIRM_SOUGHT", "its partition was sought elsewhere before it was confirmed"),
    RENEWED: ("CONFIRM_REVOKED", "its queue began anew, after a lost connection or a reset, before it was confirmed"),
    CLOSED: ("CONFIRM_REVOKED", "the consumer was closed before it was confirmed"),
}
_UNPUSHED: Final = {
    NO_PUSH: ("NO_PUSH", "use dataproxy.rocketmq.PushConsumer, or PullConsumer: these ask brokers for messages"),
    BAD_FILTER: ("BAD_FILTER", "correct the expression"),
}
_REFUSALS: Final = {
    424: "other members are bound to offsets, or this one alone is",
    425: "other members have other topics",
    426: "other members have other filter items",
    427: "other members have another session key",
    428: "other members choose between offsets in another way",
    429: "other members have another number of members",
    430: "another member has this number",
    431: "the master has none of the topics",
    450: "the group is not allowed to read",
    455: "the group is not allowed to read with these filter items",
}


def check_confirmed(pack: Pack) -> None:
    """Raise ConfirmError for a pack whose messages may come again, although it was to be confirmed."""
    outcome = pack.outcome
    if outcome == "confirmed":
        return
    if outcome == "expired":
        code, why = _REASONS.get(pack.code, ("CONFIRM_REFUSED", f"the broker answered with code {pack.code}"))
    elif outcome == "held":
        code, why = _REASONS[UNANSWERED]
    else:
        code, why = "CONFIRM_REVOKED", "it was given back"
    raise ConfirmError(f"{pack!r}: {why}; its messages may come again", code=code, details={"code": pack.code})


def refusal_error(refusal: Refusal, group: str) -> GroupRefusedError:
    """Return the error for a master's refusal of a member of ``group``, or for brokers that cannot push to it."""
    if refusal.code in _UNPUSHED:
        code, hint = _UNPUSHED[refusal.code]
        return GroupRefusedError(
            f"nothing can be read in group {group!r}: {refusal.text}",
            code=code, hint=hint, details={"text": refusal.text},
        )  # fmt: skip
    why = _REFUSALS.get(refusal.code, "")
    return GroupRefusedError(
        f"the master refuses this consumer in group {group!r} with code {refusal.code}"
        f"{f' ({why})' if why else ''}: {refusal.text!r}",
        details={"code": refusal.code, "text": refusal.text},
    )
