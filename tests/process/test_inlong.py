"""Programs that use the module ``inlong_dataproxy``: their ends, their forks, and what they write."""

import json
from pathlib import Path

import pytest

from dataproxy.hub import Hub
from tests.process.programs import finish, start
from tests.support.scripted import Scripted, silent

HEAD = """
    import os, sys, threading, warnings
    import inlong_dataproxy
    warnings.simplefilter("ignore")     # Python warns of forks with threads
    api = inlong_dataproxy.InLongApi()
    assert api.init_api(sys.argv[1]) == 0, api.last_error
    def send(text, callback=None):
        status = api.send("g", "s", text, len(text), callback)
        assert status == 0, status
"""


def configuration(folder: Path, url: str, **options: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps({"init-param": {"manager_url": url, "pack_timeout": 5, **options}}))
    return str(path)


def bodies(hub: Hub) -> list[bytes]:
    return sorted(record.body for record in hub.records("g", "s"))


@pytest.mark.parametrize("by_manager", [True, False])
def test_a_program_that_closes(tmp_path: Path, by_manager: bool) -> None:
    with Hub() as hub:
        path = configuration(tmp_path, hub.manager_url if by_manager else hub.target, inlong_group_ids="g", log_level=3)
        code = """
    for number in range(1000):
        send(str(number), print)
    assert api.close_api(30000) == 0
"""
        assert finish(start(HEAD + code, path)) == (0, "", "")
        assert len(bodies(hub)) == 1000
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.json"]  # no log files, no list of proxies


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "del api"])
def test_a_program_that_does_not_close(tmp_path: Path, end: str) -> None:
    with Hub() as hub:
        path = configuration(tmp_path, hub.target, pack_timeout=3000)
        assert finish(start(f"{HEAD}    send('last')\n    {end}\n", path)) == (0, "", "")
        assert bodies(hub) == [b"last"]


def test_callbacks_are_made_before_close_returns(tmp_path: Path) -> None:
    with Scripted(silent) as server:
        path = configuration(tmp_path, server.target, ser_ip="10.0.0.9")
        code = """
    send("row", lambda *given: print(given[:4], given[5], flush=True))
    status = api.close_api(1)
    print(status)
    os._exit(0)
"""
        status, out, err = finish(start(HEAD + code, path))
        assert (status, out, err) == (0, "('g', 's', 'row', 3) 10.0.0.9\n20\n", "")


def test_a_forked_child_goes_on_with_the_object(tmp_path: Path) -> None:
    with Hub() as hub:
        path = configuration(tmp_path, hub.manager_url, inlong_group_ids="g", pack_timeout=3000)
        code = """
    send("parent before", print)
    for number in range(4):
        child = os.fork()
        if child == 0:
            assert api.counts().accepted == 0
            send(f"child {number}", print)
            send(f"child {number} again")
            assert api.send("other", "s", "x", 1) == 0
            assert api.counts().accepted == 3
            assert api.close_api(30000) == 0
            assert api.send("g", "s", "x", 1) == 22
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    send("parent after")
    assert api.counts().accepted == 2
    assert api.close_api(30000) == 0
"""
        assert finish(start(HEAD + code, path)) == (0, "", "")
        expected = [f"child {n}{again}".encode() for n in range(4) for again in ("", " again")]
        assert bodies(hub) == sorted([*expected, b"parent after", b"parent before"])


def test_a_child_that_was_forked_while_another_thread_held_the_locks(tmp_path: Path) -> None:
    with Hub() as hub:
        path = configuration(tmp_path, hub.manager_url)
        code = """
    held = threading.Event()
    def hold():
        with api._lock, api._groups._lock:
            held.set()
            threading.Event().wait(300)
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    child = os.fork()
    if child == 0:
        send("child")
        assert api.close_api(30000) == 0
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os._exit(0)
"""
        assert finish(start(HEAD + code, path)) == (0, "", "")
        assert bodies(hub) == [b"child"]


def test_a_child_does_not_answer_for_what_its_parent_lost(tmp_path: Path) -> None:
    with Scripted(silent) as server:
        path = configuration(tmp_path, server.target, delivery_timeout=0.3)
        code = """
    told = threading.Event()
    send("lost", lambda *given: told.set())
    assert told.wait(30)
    child = os.fork()
    if child == 0:
        assert api.close_api(0) == 0
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert api.close_api(0) == 0
"""
        assert finish(start(HEAD + code, path)) == (0, "", "")


def test_a_file_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    code = """
    import logging, sys
    import inlong_dataproxy
    logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
    api = inlong_dataproxy.InLongApi()
    print(api.init_api(sys.argv[1]))
"""
    status, out, err = finish(start(code, str(tmp_path / "none.json")))
    assert (status, err) == (0, "")
    assert out.startswith("dataproxy.inlong ERROR init_api: file '")
    assert out.endswith("cannot be read: No such file or directory [CONFIG]\n5\n")
