"""Forked children, whose producers start threads anew, beside a parent that holds bodies: not for ThreadSanitizer."""

import os
import sys

import dataproxy
from tests.support.scripted import Scripted, ack, good, silent

HELD = 4096  # bodies from this size on are sent from where they lie
SECONDS = 20


def test_a_forked_child_sends_its_own() -> None:
    with Scripted() as quiet:
        _sends_its_own(quiet)


def _sends_its_own(quiet: Scripted) -> None:
    one = os.urandom(HELD)
    quiet.react = silent
    p = dataproxy.Producer(quiet.target, group_id="g", linger=0)
    p.send_nowait("s", one)
    quiet.wait_frames(1)
    quiet.react = good
    child = os.fork()
    if child == 0:
        try:
            p.send("s", b"child" + one).result(SECONDS)
            p.close()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    number, frame = quiet.frames[0]
    quiet.peers[number].send(ack(frame))
    assert p.flush(SECONDS).delivered == 1
    p.close()
    assert sorted(quiet.bodies()) == sorted([one, b"child" + one])


def test_a_forked_child_leaves_the_references_of_the_parent_alone() -> None:
    returned, kept = os.urandom(HELD), os.urandom(HELD)
    with Scripted(lambda peer, frame: good(peer, frame) if returned in frame else None) as server:
        p = dataproxy.Producer(server.target, group_id="g", linger=0, delivery_timeout="60s")
        try:
            s = p.stream("s")
            s.send_nowait(kept)  # stays in flight: nobody wakes the dispatcher
            server.wait_frames(1)
            p.send("s", returned).result(SECONDS)
            child = os.fork()
            if child == 0:
                before = sys.getrefcount(returned)
                try:
                    s.send_nowait(bytes(50 << 20))  # too large: not accepted
                except dataproxy.errors.InvalidMessageError:
                    os._exit(0 if sys.getrefcount(returned) == before else 7)
                os._exit(8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            p.close(timeout=0)
