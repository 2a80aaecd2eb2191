"""What a hub's HTTP port says to people and to Prometheus, and a hub that listens for both families."""

import base64
import re
from http.client import HTTPConnection
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dataproxy import Producer
from dataproxy.hub import Hub


def get(hub, path, headers=None, host="127.0.0.1"):
    """Return (status, content type, text)."""
    connection = HTTPConnection(host, hub.manager_port, timeout=30)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def test_the_root_is_a_page_of_links_that_work():
    with Hub() as hub:
        status, kind, text = get(hub, "/")
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert f"<code>{hub.target}</code>" in text
        links = re.findall(r'href="([^"]+)"', text)
        assert set(links) >= {"/healthz", "/metrics", "/hub/stats", "/hub/counts"}
        for link in links:
            assert get(hub, link)[0] == 200, link
        for path in re.findall(r"<code>(/hub/[^<]+)</code>: The", text):
            named = path.replace("&amp;", "&").replace("GROUP", "g").replace("STREAM", "s")
            assert get(hub, named)[0] == 200, named


def test_metrics_are_those_of_stats():
    with Hub() as hub:
        with Producer(hub.target, group_id="g") as producer:
            for _ in range(3):
                producer.send("s", b"x")
        hub.set_service("not_ready")
        refused = Producer(hub.target, group_id="g", delivery_timeout=0.2)
        refused.send_nowait("s", b"x")
        assert refused.close().delivered == 0
        status, kind, text = get(hub, "/metrics")
        stats = hub.stats()
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = list(text_string_to_metric_families(text))
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(families)
    values = {(one.name, *one.labels.items()): one.value for family in families for one in family.samples}
    assert values["dataproxy_hub_healthy",] == 1
    assert values["dataproxy_hub_records_total",] == stats["records"] == 3
    assert values["dataproxy_hub_store_entries_total",] == stats["store"]["entries"]
    assert values["dataproxy_hub_service_code",] == 1
    assert values["dataproxy_hub_refused_total", ("code", "1")] > 0
    assert values["dataproxy_hub_closed_total", ("reason", "oversize")] == 0
    assert next(f.type for f in families if f.name == "dataproxy_hub_connections") == "gauge"
    assert next(f.type for f in families if f.name == "dataproxy_hub_frames") == "counter"


def test_metrics_want_what_other_pages_of_the_hub_want():
    with Hub(secret_id="me", secret_key="s3cr3t-w0rd") as hub:
        assert get(hub, "/")[0] == 200
        assert get(hub, "/metrics")[0] == 403
        proof = base64.b64encode(b"me:s3cr3t-w0rd").decode()
        assert get(hub, "/metrics", {"Authorization": f"Basic {proof}"})[0] == 200
        assert get(hub, "/metrics", {"Host": "evil.test"})[0] == 403


@pytest.mark.parametrize("way", ["tcp", "manager"])
def test_a_hub_on_all_addresses_of_ipv6_is_reached_by_both_families(way):
    with Hub(host="::", insecure=True) as hub:
        for host, address in (("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")):
            target = f"tcp://{host}:{hub.port}" if way == "tcp" else f"http://{host}:{hub.manager_port}"
            with Producer(target, group_id="g") as producer:
                assert producer.send("s", b"x").result(30).node == f"{host}:{hub.port}"
            *_, record = hub.records("g", "s")
            assert record.source == address
            with urlopen(f"http://{host}:{hub.manager_port}/healthz", timeout=30) as answer:
                assert answer.status == 200
