"""Pages of the HTTP server for people and for Prometheus: a page of links, and the hub's counters."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any, Final

from dataproxy._version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["METRICS_TYPE", "front_page", "metrics_text"]

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of Prometheus' text format."""

_PREFIX: Final = "dataproxy_hub_"
#: Values that can become smaller; all other values only grow while the hub runs.
_GAUGES: Final = frozenset(
    {"connections", "queued_bytes", "frame_bytes", "answer_bytes", "service_code", "store_queued_bytes"}
)
#: Counters by reason, with the name of the label that gets the reason.
_LABELS: Final = {"refused": "code", "closed": "reason"}
#: Counts of clients that are labelled; those of what there is now are gauges.
_VIEW: Final = {"clients": "protocol", "groups": "protocol", "ends": "reason", "events": "event"}
_VIEW_GAUGES: Final = frozenset({"clients", "groups", "locks", "transactions", "idle_members"})
_LINKS: Final = (
    ("/healthz", "Health: 200, or 503 with the reason why the hub cannot store anything now."),
    ("/hub/stats", "The hub's counters as JSON."),
    ("/metrics", "The same counters for Prometheus."),
    ("/hub/clients", "Who is connected, by every protocol."),
    ("/hub/groups", "Groups of consumers, with their members and what is left to read."),
    ("/hub/events", "What has happened to clients and groups."),
    ("/hub/counts", "Requests, messages and bytes of each stream."),
)
_FORMS: Final = (
    ("/hub/records?group=GROUP&stream=STREAM", "The messages of a stream, page by page."),
    ("/hub/logs?group=GROUP", "The logs of a group, with their first and next offsets."),
    ("/inlong/manager/openapi/dataproxy/getIpList/GROUP", "POST: the addresses of proxies, as a Manager returns them."),
)
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>dataproxy hub</title></head>
<body>
<h1>dataproxy hub {version}</h1>
<p>This port answers HTTP. Producers send to another one: <code>{target}</code>.</p>
<ul>
{links}
</ul>
<p>Replace the capital letters with a group and a stream:</p>
<ul>
{forms}
</ul>
<p>A hub with credentials requires them for all pages except <code>/</code> and <code>/healthz</code>. The page
docs/cli.md of the package says who may request what.</p>
</body></html>
"""


def front_page(target: str) -> str:
    """Return the page of links; ``target`` is the target for producers.  It shows no stored data."""
    links = "\n".join(f'<li><a href="{path}"><code>{path}</code></a>: {escape(said)}</li>' for path, said in _LINKS)
    forms = "\n".join(f"<li><code>{escape(path)}</code>: {escape(said)}</li>" for path, said in _FORMS)
    return _PAGE.format(version=escape(__version__), target=escape(target), links=links, forms=forms)


def metrics_text(stats: Mapping[str, Any], health: Mapping[str, Any], clients: Mapping[str, Any] | None = None) -> str:
    """Return a hub's statistics (``Hub.stats``) and health in Prometheus' text format; texts are left out.

    ``clients``: what `View.metrics` returns.
    """
    lines = [f"# TYPE {_PREFIX}healthy gauge", f"{_PREFIX}healthy {int(bool(health['ok']))}"]
    for name, values in _families(stats, ""):
        gauge = name in _GAUGES
        full = f"{_PREFIX}{name}" if gauge else f"{_PREFIX}{name}_total"
        lines.append(f"# TYPE {full} {'gauge' if gauge else 'counter'}")
        lines += [f"{full}{labels} {value}" for labels, value in values]
    for name, value in (clients or {}).items():
        gauge = name in _VIEW_GAUGES
        full = f"{_PREFIX}{'client_' if name == 'ends' else ''}{name}{'' if gauge else '_total'}"
        lines.append(f"# TYPE {full} {'gauge' if gauge else 'counter'}")
        if isinstance(value, dict):
            lines += [f'{full}{{{_VIEW[name]}="{_label(key)}"}} {count}' for key, count in value.items()]
        else:
            lines.append(f"{full} {value}")
    return "\n".join(lines) + "\n"


def _families(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield the name of each family with its labels and values; the name of a nested one begins with the outer name."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if name in _LABELS:
            yield name, [(f'{{{_LABELS[name]}="{_label(str(one))}"}}', count) for one, count in value.items()]
        elif isinstance(value, dict):
            yield from _families(value, f"{name}_")
        elif isinstance(value, int):
            yield name, [("", int(value))]


def _label(text: str) -> str:
    return re.sub(r'[\\"\n]', lambda found: {"\n": r"\n"}.get(found[0], "\\" + found[0]), text)
