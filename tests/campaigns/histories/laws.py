"""The laws that every history has to keep.  Nothing here knows how the client works.

S1 accounting balances.  S2 one final result.  S3 what is told is true, and bytes are equal.  S4 order of each key.
S5 nothing is sent after close.  S6 limits of memory hold.  S7 an id names one content.  S9 who is
refused for its content is guilty.  L1 results come in time.
L2 the rate comes back.  L3 close ends in time.  L4 idle costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.campaigns.histories.history import Accounting, History, Stored, Told, Violation

__all__ = ["RECOVERY_SECONDS", "judge"]

RECOVERY_SECONDS = 3.0
_IDLE_SHARE = 0.01
_OUTCOMES = ("delivered", "sent", "failed", "expired", "dropped")
_SHOWN = 5  # violations of one law that are spelled out

Copies = dict[tuple[str, int], list[Stored]]


def judge(history: History) -> list[Violation]:
    """Return every violation, at most a few of each law."""
    copies: Copies = defaultdict(list)
    for one in history.stored:
        copies[one.producer, one.sequence].append(one)
    found: list[Violation] = []
    for law in (_balance, _one_result, _truth, _phantoms, _key_order, _silence, _limits, _ids, _guilt, _duplicates,
                _in_time, _recovery, _closing, _idling):  # fmt: skip
        for n, text in enumerate(law(history, copies)):
            name, _, words = text.partition(" ")
            if n == _SHOWN:
                found.append(Violation(name, "and more"))
                break
            found.append(Violation(name, words))
    return found


def _name(one: Told | Stored) -> str:
    return f"{one.producer}/{one.sequence}" + (f" (key {one.key})" if one.key else "")


def _balance(history: History, copies: Copies) -> Iterator[str]:
    counted: dict[str, Accounting] = {}
    for b in history.accounting:
        if b.accepted != b.delivered + b.sent + b.failed + b.expired + b.dropped + b.pending:
            yield f"S1 the accounting of {b.producer} do not balance at {b.at:.6f}: {b}"
        if b.final:
            counted[b.producer] = b
    sums: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(("accepted", *_OUTCOMES, "blind"), 0))
    for told in history.told:
        mine = sums[told.producer.partition(".")[0]]
        mine["accepted"] += 1
        if not told.watched:
            mine["blind"] += 1
        elif told.results:
            mine[told.results[0].outcome] += 1
    for producer, b in counted.items():
        mine = sums[producer]
        if b.accepted != mine["accepted"]:
            yield f"S1 {producer} counts {b.accepted} accepted messages, its callers {mine['accepted']}"
        for outcome in _OUTCOMES:
            told, said = mine[outcome], getattr(b, outcome)
            if not told <= said <= told + mine["blind"]:
                yield f"S1 {producer} counts {said} {outcome} messages, its callers were told of {told}"


def _one_result(history: History, copies: Copies) -> Iterator[str]:
    for told in history.told:
        if told.watched and len(told.results) != 1:
            yield f"S2 {_name(told)} has {len(told.results)} results: {told.results}"


def _truth(history: History, copies: Copies) -> Iterator[str]:
    for told in history.told:
        here = copies.get((told.producer, told.sequence), ())
        for copy in here:
            if not copy.intact or copy.digest != told.digest or copy.key != told.key or copy.stream != told.stream:
                yield f"S3 {_name(told)} is stored with other bytes: {copy}"
        for result in told.results[:1]:
            if result.outcome == "delivered" and not here:
                yield f"S3 {_name(told)} was reported delivered and is at no hub"
            elif result.outcome == "sent" and len(here) > 1:
                yield f"S3 {_name(told)} was sent once, without asking for an answer, and is stored {len(here)} times"
            elif result.outcome not in ("delivered", "sent") and not result.maybe and here:
                yield f"S3 {_name(told)} was reported {result.outcome}, surely not delivered, and is at {here[0].log}"


def _phantoms(history: History, copies: Copies) -> Iterator[str]:
    known = {(told.producer, told.sequence) for told in history.told}
    if history.foreign:
        yield f"S3 {history.foreign} stored bodies are none that was sent"
    for key, here in copies.items():
        if key not in known:
            yield f"S3 {_name(here[0])} is stored and was never accepted"


def _first(here: list[Stored]) -> Stored:
    return min(here, key=lambda copy: (copy.at, copy.place))


def _before(a: Stored, b: Stored) -> bool:
    return a.place < b.place if a.log == b.log else a.at < b.at


def _key_order(history: History, copies: Copies) -> Iterator[str]:
    last: dict[tuple[str, str, str], tuple[Told, Stored]] = {}
    for told in sorted(history.told, key=lambda one: one.sequence):
        if not told.key or not told.results or told.results[0].outcome != "delivered":
            continue
        here = copies.get((told.producer, told.sequence))
        if not here:
            continue
        mine = _first(here)
        group = (told.producer, told.stream, told.key)
        earlier = last.get(group)
        if earlier is not None and _before(mine, earlier[1]):
            yield (
                f"S4 {_name(told)} at {mine.log} {mine.place} stands before {_name(earlier[0])}"
                f" at {earlier[1].log} {earlier[1].place}"
            )
        last[group] = (told, mine)


def _silence(history: History, copies: Copies) -> Iterator[str]:
    returned = {close.producer: close.returned_at for close in history.closes}
    for close in history.closes:
        if close.written_after:
            yield f"S5 {close.producer} wrote {close.written_after} bytes after close had returned"
    for told in history.told:
        end = returned.get(told.producer.partition(".")[0])
        if end is not None and told.accepted_at > end:
            yield f"S5 {_name(told)} was accepted at {told.accepted_at:.6f}, after close had returned at {end:.6f}"


def _limits(history: History, copies: Copies) -> Iterator[str]:
    for b in history.accounting:
        if b.limit and not 0 <= b.buffered <= b.limit:
            yield f"S6 {b.producer} holds {b.buffered} bytes at {b.at:.6f}, its limit is {b.limit}"
        if b.final and b.pending == 0 and b.buffered:
            yield f"S6 {b.producer} still counts {b.buffered} bytes when nothing is pending"


def _ids(history: History, copies: Copies) -> Iterator[str]:
    owner: dict[tuple[str, str], Stored] = {}
    for here in copies.values():
        for copy in here:
            if not copy.id:
                continue
            first = owner.setdefault((copy.stream, copy.id), copy)
            if (first.digest, first.producer, first.sequence) != (copy.digest, copy.producer, copy.sequence):
                yield f"S7 the id {copy.id} names {_name(first)} and {_name(copy)}"
        if len({copy.id for copy in here}) > 1:
            yield f"S7 the copies of {_name(here[0])} have several ids: {sorted({copy.id for copy in here})}"
    for told in history.told:
        here = copies.get((told.producer, told.sequence)) if history.with_ids else None
        if here and told.results and told.results[0].id and told.results[0].id != here[0].id:
            yield f"S7 {_name(told)} was told the id {told.results[0].id}, the hub has {here[0].id}"


def _guilt(history: History, copies: Copies) -> Iterator[str]:
    for told in history.told:
        for result in told.results[:1]:
            if result.refused and result.refused != told.guilty:
                yield f"S9 {_name(told)} was refused with code {result.refused}, hubs refuse it with {told.guilty}"


def _duplicates(history: History, copies: Copies) -> Iterator[str]:
    if history.resent_frames is not None and history.extra_frames > history.resent_frames:
        yield f"S3 {history.extra_frames} frames are stored once more, {history.resent_frames} were sent once more"
    if history.most_duplicates is None:
        return
    extra = sum(len(here) - 1 for here in copies.values())
    if extra > history.most_duplicates:
        yield f"S3 {extra} copies more than needed are stored, {history.most_duplicates} were in flight at faults"


def _in_time(history: History, copies: Copies) -> Iterator[str]:
    for told in history.told:
        if told.limit and told.results:
            took = told.results[0].at - told.accepted_at
            if took > told.limit + history.grace:
                yield f"L1 {_name(told)} got its result after {took:.6f} s, its limit was {told.limit:g} s"


def _recovery(history: History, copies: Copies) -> Iterator[str]:
    for dip in history.dips:
        if dip.recovered_at is None or dip.recovered_at - dip.fault_at > RECOVERY_SECONDS:
            yield f"L2 the rate was not back {RECOVERY_SECONDS:g} s after the fault at {dip.fault_at:.3f}: {dip}"


def _closing(history: History, copies: Copies) -> Iterator[str]:
    for close in history.closes:
        if close.returned_at - close.called_at > close.timeout + history.close_grace:
            took = close.returned_at - close.called_at
            yield f"L3 close of {close.producer} took {took:.3f} s of {close.timeout:g} s"


def _idling(history: History, copies: Copies) -> Iterator[str]:
    for idle in history.idle:
        if idle.cpu > _IDLE_SHARE * idle.seconds:
            yield f"L4 {idle.cpu:.3f} s of processor time in {idle.seconds:.1f} idle seconds"
