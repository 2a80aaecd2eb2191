"""A server loop's memory is bounded, and who holds it pays: half-received frames, unread answers, answers that wait."""

import pytest

from tests.loopback.hub.peer import binary_frame
from tests.sim.byhand import ByHand, Peer

HEARTBEAT = bytes.fromhex("0000000101")


def beat(attrs: int) -> bytes:
    """Return a heartbeat of type 8 whose answer echoes so many bytes."""
    rest = b"\x08" + bytes(4) + b"\x01" + bytes(4) + attrs.to_bytes(2, "big") + b"k" * attrs + b"\xee\x01"
    return len(rest).to_bytes(4, "big") + rest


def frames(data: bytes) -> list[bytes]:
    """Return the whole frames in some bytes."""
    found = []
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        found.append(data[:size])
        data = data[size:]
    return found


def whole(size: int) -> bytes:
    """Return a frame of about so many bytes."""
    return binary_frame(1, [b"x" * (size - 60)])


def half_sent(server: ByHand, count: int, size: int, address: str) -> list[Peer]:
    """Return connections that have sent a frame but for its last byte."""
    peers = [server.connect(address) for _ in range(count)]
    for peer in peers:
        peer.say(whole(size)[:-1])
        server.rounds()
    return peers


# --- turns


@pytest.mark.parametrize(("flooders", "most"), [(0, 1 << 20), (1, 262_144), (2, 131_072), (30, 65_536)])
def test_who_says_little_waits_for_a_little_of_the_others(flooders, most):
    """In one round; one connection alone is read for as long as it has something to say."""
    flood = whole(1000) * (most // 900)
    with ByHand(queue_bytes=64 << 20) as server:
        peers = [server.connect("10.0.0.2") for _ in range(flooders)]
        honest = server.connect()
        for peer in peers:
            peer.say(flood)
        honest.say(flood if not flooders else HEARTBEAT)
        server.node.round(server.now + 1, 0)
        waited = server.stats()["bytes_in"] - len(HEARTBEAT) * bool(flooders)
        assert waited == most * max(1, flooders)
        assert flooders == 0 or len(frames(honest.hear())) == 1


# --- half-received frames


@pytest.mark.parametrize("address", ["10.0.0.1", "10.9.9.9"])
def test_half_sent_frames_do_not_starve_who_completes_his(address):
    """The same holds from the address of those that hold the memory, and from another."""
    with ByHand(queue_bytes=1 << 20, max_frame=262_144) as server:
        honest = server.connect(address)
        holders = half_sent(server, 24, 262_144, "10.0.0.1")
        for number in range(50):
            frame = binary_frame(number, [b"x" * (30 if number % 2 else 150_000)])
            for part in (frame[:40], frame[40 : len(frame) // 2], frame[len(frame) // 2 :]):
                honest.say(part)
                server.rounds()
            half_sent(server, 2, 262_144, "10.0.0.1")
            assert not honest.closed, number
            assert len(frames(honest.hear())) == 1, number
        stats = server.stats()
        assert stats["frame_bytes"] <= 1 << 20
        assert stats["entries"] == 50
        assert stats["closed"]["memory"] >= 24
        assert all(peer.closed for peer in holders), "the oldest went first"


def test_among_holders_the_longest_without_a_frame_pays():
    with ByHand(queue_bytes=1 << 20, max_frame=262_144) as server:
        steady, stuck = half_sent(server, 2, 262_000, "10.0.0.1")
        steady.say(whole(262_000)[-1:] + whole(262_000)[:-1])  # the older one has completed a frame
        server.rounds()
        while not (steady.closed or stuck.closed):
            half_sent(server, 1, 262_000, "10.0.0.1")
        assert stuck.closed
        assert not steady.closed


def test_who_has_completed_a_frame_is_waited_for_before_those_who_never_have():
    """A busy machine may hold up an honest frame for longer than hostile ones last, which come again and again."""
    with ByHand(queue_bytes=1 << 20, max_frame=262_144) as server:
        honest = server.connect("10.0.0.1")
        honest.say(HEARTBEAT)
        server.rounds()
        frame = binary_frame(1, [b"x" * 200_000])
        honest.say(frame[:-1])
        server.rounds()
        half_sent(server, 24, 262_144, "10.0.0.1")
        assert not honest.closed
        honest.say(frame[-1:])
        server.rounds()
        assert server.stats()["entries"] == 1
        assert server.stats()["closed"]["memory"] >= 20


def test_who_has_completed_nothing_yet_is_not_starved_by_those_who_completed_a_little():
    """A heartbeat costs nothing: it does not buy all memory for as long as the connection lasts."""
    with ByHand(queue_bytes=1 << 20, max_frame=262_144) as server:
        squatters = [server.connect("10.0.0.1") for _ in range(24)]
        for peer in squatters:
            peer.say(HEARTBEAT)
            server.rounds()
            peer.say(whole(262_144)[:-1])
            server.rounds()
        frame = binary_frame(1, [b"x" * 200_000])
        honest = server.connect("10.0.0.1")
        for part in (frame[:100_000], frame[100_000:-1], frame[-1:]):
            honest.say(part)
            server.rounds()
            assert not honest.closed
        assert server.stats()["entries"] == 1


def test_an_address_that_holds_little_is_left_alone():
    with ByHand(queue_bytes=1 << 20, max_frame=262_144) as server:
        patient = half_sent(server, 1, 100_000, "10.0.0.7")[0]
        half_sent(server, 40, 262_144, "10.0.0.1")
        assert not patient.closed
        assert server.stats()["closed"]["memory"] > 30


# --- unread answers


def test_a_peer_that_never_reads_holds_no_more_than_its_bound():
    with ByHand() as server:
        mute = server.connect(window=1000)
        size = len(beat(20_000)) + 2
        for _ in range(200):
            mute.say(beat(20_000))
            server.rounds()
        stats = server.stats()
        assert stats["answer_bytes"] <= 2 * (65536 + size), "the buffer grows by doubling"
        assert stats["replies"] * size <= 65536 + size + 1000
        assert not mute.closed, "it is not read; it goes when it is idle for too long"


def test_a_burst_is_answered_in_parts_and_in_full():
    """Frames that were received when there was no room for their answers are gone on with, without any new event."""
    with ByHand(reply_bytes=5000) as server:
        slow = server.connect(window=3000)
        burst = b"".join(beat(700) + binary_frame(n, [b"x" * 20]) + HEARTBEAT for n in range(200))
        slow.say(burst)
        heard = []
        for _ in range(2000):
            server.rounds()
            assert server.stats()["answer_bytes"] <= 2 * (5000 + 1000)
            heard += frames_of(slow)
        assert [one[4] & 0x1F for one in heard] == [8, 7, 1] * 200
        assert server.stats()["entries"] == 200
        assert not slow.closed


def frames_of(peer: Peer) -> list[bytes]:
    """Return the whole answers that came, and keep the rest for the next call."""
    data = peer.__dict__.pop("rest", b"") + peer.hear()
    found = []
    while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
        size = 4 + int.from_bytes(data[:4], "big")
        found.append(data[:size])
        data = data[size:]
    peer.__dict__["rest"] = data
    return found


def test_peers_that_never_read_share_a_bound_and_the_greatest_goes():
    with ByHand(queue_bytes=1 << 20) as server:
        honest = server.connect("10.0.0.1")
        mutes = [server.connect("10.0.0.1", window=100) for _ in range(60)]
        for _ in range(4):
            for mute in mutes:
                if not mute.closed:
                    mute.say(beat(30_000))
                    server.rounds()
            honest.say(binary_frame(1, [b"x"]))
            server.rounds()
            assert len(frames(honest.hear())) == 1
            assert server.stats()["answer_bytes"] <= 1 << 20
        assert not honest.closed
        gone = [mute.closed for mute in mutes]
        assert sum(gone) == server.stats()["closed"]["replies"] > 0
        assert not all(gone)


def test_answers_that_wait_for_a_commit_are_bounded_and_then_all_given():
    with ByHand(reply_bytes=10_000, queue_bytes=1 << 20) as server:
        eager = server.connect()
        eager.say(binary_frame(0, [b"first"]))
        eager.say(b"".join(beat(3000) for _ in range(100)))
        eager.say(binary_frame(1, [b"last"]))
        server.rounds(commits=False)
        stats = server.stats()
        assert eager.hear() == b"", "nothing overtakes the first"
        assert stats["replies"] == 0
        assert 10_000 < stats["queued_bytes"] < 20_000, "what waits is counted with what waits for the store"
        server.rounds()
        assert [one[4] & 0x1F for one in frames(eager.hear())] == [7] + [8] * 100 + [7]
        server.rounds()
        assert server.stats()["queued_bytes"] == 0


def test_answers_of_requests_at_the_store_are_bounded_too():
    with ByHand(reply_bytes=10_000, queue_bytes=64 << 20) as server:
        eager = server.connect()
        attrs = b"groupId=g&streamId=s&long=" + b"v" * 3000
        rest = b"\x03" + (1).to_bytes(4, "big") + b"x" + len(attrs).to_bytes(4, "big") + attrs
        eager.say((len(rest).to_bytes(4, "big") + rest) * 200)
        server.rounds(commits=False)
        assert server.stats()["frames"] < 20
        server.rounds()
        assert len(frames(eager.hear())) == 200
        assert server.stats()["entries"] == 200


def test_a_peer_that_goes_away_leaves_nothing_behind():
    with ByHand(reply_bytes=10_000) as server:
        for kind in range(3):
            peer = server.connect(window=10)
            peer.say(binary_frame(0, [b"x"]) + beat(3000) * 2)
            if kind:
                peer.say(beat(9000)[:5000])
            server.rounds(commits=kind == 2)
            server.net.break_off(len(server.net) - 1, 1, 104)
            server.rounds(commits=False)
            assert peer.closed
        server.rounds()
        stats = server.stats()
        assert (stats["connections"], stats["queued_bytes"], stats["frame_bytes"], stats["answer_bytes"]) == (0,) * 4


def test_compat_closes_a_peer_over_the_mark_and_serves_one_below():
    with ByHand(compat=True) as server:
        mute, slow = server.connect(window=1000), server.connect(window=1000)
        for _ in range(5):
            mute.say(beat(20_000))
            slow.say(beat(9_000))
            server.rounds()
        assert mute.closed
        assert not slow.closed
        slow.hear()
        assert server.stats()["replies"] >= 9


def test_compat_refuses_order_messages_behind_a_full_queue_and_takes_the_others():
    with ByHand(compat=True, queue_bytes=4000) as server:
        peer = server.connect()
        order = binary_frame(2, [b"x"], stream="s&syncSend=true&partitionKey=k")
        peer.say(binary_frame(1, [b"y" * 5000]) + order + binary_frame(3, [b"z"]))
        server.rounds(commits=False)
        server.rounds()
        heard = frames(peer.hear())
        assert [b"errCode=114" in one for one in heard] == [False, True, False]
        assert server.stats()["entries"] == 2
