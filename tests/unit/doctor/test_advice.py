"""What results mean, and what to do."""

import pytest

from dataproxy.codes import LOCAL_CODES, SERVER_CODES
from dataproxy.config import load_producer_config
from dataproxy.doctor import Level, ManagerReport, MessageReport, NameReport, ProxyReport, TlsReport
from dataproxy.doctor.advice import STATES, proxy_findings, setting_findings
from dataproxy.doctor.managers import manager_findings
from dataproxy.doctor.names import name_findings
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "doctor.md"


def config(**options):
    return load_producer_config("tcp://h:1", env={}, **options)


def well(name="p:1", beat=0.001, **rest):
    return ProxyReport(name, "p", "p", 1, state="ok", connect_seconds=0.001, heartbeat_seconds=beat, **rest)


def only(report, check, *others):
    return [one for one in proxy_findings([report, *others], by_manager=False) if one.check == check]


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_an_error_with_a_meaning_an_advice_and_a_known_code(state):
    (one,) = proxy_findings([ProxyReport("p:1", "p", "p", 1, state=state, text="as it is")], by_manager=False)
    assert (one.level, one.text) == (Level.ERROR, "as it is")
    assert one.means
    assert one.advice
    assert one.code in LOCAL_CODES
    assert f"| `{state}` |" in PAGE.read_text()


def test_an_ipv6_address_beside_a_working_ipv4_address_is_not_needed():
    good, bad = well(), ProxyReport("p:1 (::1)", "p", "::1", 1, used=False, state="refused", text="no")
    assert [one.level for one in proxy_findings([good, bad], by_manager=False)] == [Level.OK, Level.NOTE]
    good.state, good.heartbeat_seconds = "refused", None
    assert [one.level for one in proxy_findings([good, bad], by_manager=False)] == [Level.ERROR, Level.ERROR]


def test_a_proxy_that_is_much_slower_than_the_others():
    levels = [one.level for one in proxy_findings([well(), well(), well(), well(beat=0.5)], by_manager=False)]
    assert levels == [Level.OK] * 3 + [Level.WARNING]
    assert [one.level for one in proxy_findings([well(beat=0.5)], by_manager=False)] == [Level.OK]
    assert [one.level for one in proxy_findings([well(beat=1.5)], by_manager=False)] == [Level.WARNING]


def test_addresses_of_a_manager_may_be_of_an_inner_network():
    (one,) = proxy_findings([ProxyReport("p:1", "p", "p", 1, state="connect_timeout", text="t")], by_manager=True)
    assert "container" in one.advice


def test_loads():
    assert "load unknown" in only(well(load=None), "proxy")[0].text
    assert "load 7" in only(well(load=7), "proxy")[0].text


def test_a_certificate_that_ends_soon():
    (one,) = only(well(tls=TlsReport("TLSv1.3", "x", days_left=3.4)), "tls")
    assert (one.level, one.text) == (Level.WARNING, "its certificate ends in 3 days")
    assert only(well(tls=TlsReport("TLSv1.3", "x", days_left=60)), "tls") == []


def test_a_frame_limit():
    (one,) = only(well(frame_refused=131072, frame_taken=65536), "frame")
    assert one.level is Level.ERROR
    assert "131,072" in one.text
    assert "max_frame_bytes=65536" in one.advice
    (one,) = only(well(frame_refused=4096), "frame")
    assert "no smaller one was answered" in one.text
    assert "no second connection" in one.means
    assert only(well(frame_taken=524288), "frame") == []
    (one,) = only(well(frame_unanswered=524288), "frame")
    assert (one.level, "524,288" in one.text) == (Level.NOTE, True)


@pytest.mark.parametrize("code", [code for code in SERVER_CODES if code not in (0, 120)])
def test_every_code_of_a_refused_message_is_explained(code):
    (one,) = only(well(message=MessageReport("m", "refused", code, "its words")), "message")
    assert (one.level, one.code) == (Level.ERROR, code)
    assert f"refused with code {code} {SERVER_CODES[code].name}: its words" in one.text
    assert one.means
    assert one.advice


def test_a_group_that_only_some_proxies_know_yet():
    known = well("q:1", message=MessageReport("n", "acknowledged", 0))
    (one, _) = only(well(message=MessageReport("m", "refused", 115)), "message", known)
    assert "has not heard of them yet" in one.means
    assert "wait a minute" in one.advice


@pytest.mark.parametrize("state", ["unanswered", "closed", "misaddressed", "malformed"])
def test_messages_without_an_answer(state):
    (one,) = only(well(message=MessageReport("m", state, text="so it was")), "message")
    assert (one.level, one.text) == (Level.ERROR, "so it was")
    assert one.means


def test_a_gateway_that_answers_a_message():
    (one,) = only(well(heartbeat="http", message=MessageReport("m", "malformed", text="status 502")), "message")
    assert "gateway" in one.means
    (one,) = only(well(message=MessageReport("m", "malformed", text="its answer is wrong")), "message")
    assert "another version of the protocol" in one.means


def test_settings():
    def subjects(*, sent=False, measured=False, cluster_limit=0, **options):
        found = setting_findings(
            config(**options), sent=sent, stream_id="s", measured=measured, cluster_limit=cluster_limit
        )
        assert {one.level for one in found} <= {Level.NOTE}
        return [one.subject for one in found]

    assert subjects(ordering="key", group_id="g") == ["ordering", "group", "max_frame_bytes"]
    assert subjects(group_id="g", sent=True, measured=True) == []
    assert subjects(cluster_limit=65536) == []


@pytest.mark.parametrize(("protocol", "words"), [("tcp", "without an answer"), ("http", "with status 413")])
def test_what_a_server_does_with_too_large_a_frame(protocol, words):
    (one,) = setting_findings(config(protocol=protocol), sent=False, stream_id="", measured=False, cluster_limit=0)
    assert words in one.means


def failed(code, **rest):
    report = ManagerReport("http://m:8083", code, "went wrong", "do this", **rest)
    (one,) = manager_findings([report], config())
    return one


def test_a_login_page_in_front_of_the_manager():
    page = failed("MANAGER_ANSWER", status=200, content_type="text/html; charset=utf-8")
    assert "a login" in page.means
    assert "login" in failed("MANAGER_URL", status=302).advice
    assert "login" not in failed("MANAGER_ANSWER", status=200, content_type="application/json").means


def test_a_proxy_in_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.delenv("http_proxy", raising=False)
    assert "the HTTP proxy in HTTP_PROXY is not used" in failed("DISCOVERY").advice
    assert "HTTP_PROXY" not in failed("MANAGER_REFUSED", status=403).advice


def test_several_managers():
    good = ManagerReport("http://a", nodes=["h:1"], cluster_id=1)
    bad = ManagerReport("http://b", "MANAGER_TIMEOUT", "late", "")
    assert [one.level for one in manager_findings([good, bad], config())] == [Level.OK, Level.WARNING]
    other = ManagerReport("http://b", nodes=["h:2"], cluster_id=1)
    assert [one.level for one in manager_findings([good, other], config())] == [Level.OK, Level.OK, Level.WARNING]


def test_nodes_with_a_local_address():
    (_, one) = manager_findings([ManagerReport("http://m", nodes=["127.0.0.1:46801", "h:1", "[::1]:2"])], config())
    assert one.level is Level.WARNING
    assert "127.0.0.1:46801, [::1]:2" in one.text
    assert len(manager_findings([ManagerReport("http://127.0.0.1:8083", nodes=["127.0.0.1:1"])], config())) == 1


def test_the_managers_limit_of_frames():
    (_, one) = manager_findings([ManagerReport("http://m", nodes=["h:1"], max_packet_length=65536)], config())
    assert (one.check, one.level) == ("frame", Level.NOTE)
    assert "65,536" in one.text


def test_names():
    found = name_findings(
        [
            NameReport("a", ["10.0.0.1"], ["fd00::1"]),
            NameReport("b", error="Name or service not known"),
            NameReport("c", ["10.0.0.2"], seconds=4.2),
        ]
    )
    assert [one.level for one in found] == [Level.OK, Level.ERROR, Level.WARNING]
    assert found[0].text == "A 10.0.0.1; AAAA fd00::1"
    assert "getent ahosts b" in found[1].advice
    assert "4.2 s" in found[2].text
