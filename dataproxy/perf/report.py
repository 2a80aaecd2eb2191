"""The report as text, made from a result alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataproxy.shown import printable

if TYPE_CHECKING:
    from dataproxy.perf.result import Result, Second

__all__ = ["milliseconds", "second_line", "text_report", "verdict_line"]

_MIB = 1 << 20


def milliseconds(seconds: float | None) -> str:
    """Return a time in milliseconds as text; ``-`` for None."""
    return "-" if seconds is None else f"{seconds * 1000:,.2f} ms"


def verdict_line(result: Result) -> str:
    """Return the first line of every report: whether the run is valid, and whether its loop was open or closed."""
    if reasons := result.invalid:
        return f"INVALID: {'; '.join(reasons)}"
    if result.closed:
        return "CLOSED LOOP: each thread waits for a result before it sends again; an open load shows other latencies"
    return "valid: the generator kept to its plan"


def text_report(result: Result) -> str:
    """Return the report in plain lines, without percentiles if the run is not valid."""
    load, counts = result.load, result.counts
    how = f"{load['threads']} threads" if load["threads"] > 1 else "1 thread"
    loop = "closed loop" if result.closed else f"plan {load['plan']}, {load['arrivals']} arrivals, seed {load['seed']}"
    lines = [
        verdict_line(result),
        printable(f"target {load['target']}, group {load['group']}, bodies of {load['size']}"),
        printable(f"{loop}; path {_path(load)}, {load['batch']} at a time, {how}, streams: {load['streams']}"),
        *_count_lines(result, counts),
    ]
    if not result.invalid:
        lines += _latency_lines(result)
    lines += _lag_lines(result)
    if result.stopped:
        lines.append("stopped before the end of the plan")
    return "\n".join(lines)


def _path(load: dict[str, Any]) -> str:
    """Return the way of sending in words, and which part of a Python caller's work it includes."""
    if load["path"] == "send_nowait":
        return "send_nowait by compiled code without the interpreter"
    if load["path"] == "asyncio":
        return f"asyncio: AsyncProducer.send in a task each, event loop {load['loop']}"
    return f"{load['path']} called from Python"


def _count_lines(result: Result, counts: dict[str, Any]) -> list[str]:
    bad = [f"{counts[name]:,} {name}" for name in ("failed", "expired", "dropped", "pending") if counts[name]]
    sent = counts.get("sent", 0)
    delivered = f"{result.good:,} {'sent' if sent else 'delivered'} in {result.seconds:.2f} s: {result.rate:,.0f}/s"
    lines = [
        f"{counts['due']:,} messages due, {counts['accepted']:,} accepted, {delivered}, {counts['retries']:,} retries"
    ]
    if sent:
        lines.append("sent without asking for an answer: only a hub that is asked knows how many arrived")
    if counts["refused"]:
        bad.append(f"{counts['refused']:,} refused because the buffer was full")
    if bad:
        lines.append(f"not delivered: {', '.join(bad)}")
    if counts["blocked"]:
        lines.append(f"calls waited {counts['blocked']:.2f} s for room in the buffer (sum of all threads)")
    if result.stored is not None:
        word = "sent" if sent else "delivered"
        more = result.stored - result.good
        equal = f"{more:+,} against what was {word}" if more else f"the same as {word}"
        lines.append(f"the hub stored {result.stored:,}, {equal}")
    return lines


def _latency_lines(result: Result) -> list[str]:
    since = "from the call to the result" if result.closed else "from the planned time to the result"
    lines = [f"latency {since}, {len(result.latencies):,} samples:"]
    for found in result.percentiles():
        rests = _rests(found.behind)
        lines.append(f"  p{found.percent:<6g} {milliseconds(found.seconds):>14}   {rests}")
    lines.append(f"  max     {milliseconds(result.percentile(100)):>14}")
    return lines


def _rests(behind: int) -> str:
    """Return in words how many samples are larger than a percentile."""
    if not behind:
        return "this is the largest sample"
    return f"{behind:,} {'sample is' if behind == 1 else 'samples are'} larger"


def _lag_lines(result: Result) -> list[str]:
    if result.closed or not len(result.lags):
        return []
    shown = ", ".join(f"p{p:g} {milliseconds((result.lags.percentile(p) or 0) / 1e6)}" for p in (50, 99, 99.9, 100))
    return [f"the generator itself was late: {shown.replace('p100', 'max')} (part of the latencies above)"]


def second_line(second: Second) -> str:
    """Return one second of a running load in a line."""
    stored = "" if second.hub_stored is None else f", hub has {second.hub_stored:,}"
    return (
        f"{second.at:6.1f} s  {second.results / second.seconds:>11,.0f}/s  p50 {milliseconds(second.p50)}, "
        f"p99 {milliseconds(second.p99)}, {second.in_flight:,} in flight, {second.retries:,} retries, "
        f"cpu {second.cpu:.2f}, {second.memory / _MIB:,.0f} MiB{stored}"
    )
