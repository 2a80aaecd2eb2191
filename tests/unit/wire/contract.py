"""What every wire must hold; a test module gives it a wire and its golden replies."""

from tests.native.probe_wire import ProbeError

__all__ = ["Feed", "check_corruption", "check_splits", "check_truncation", "read_all"]

NEED_DATA = 1


class Feed:
    """A receiver as io has one: bytes come in pieces, whole frames go to the parser."""

    def __init__(self, wire, max_frame=524288):
        self.wire = wire
        self.max_frame = max_frame
        self.rest = b""
        self.events = []
        self.failed = None

    def push(self, piece):
        """Take some bytes; after a failure nothing more is read."""
        self.rest += piece
        while self.failed is None:
            status, size = self.wire.delimit(self.rest, self.max_frame)
            if status == NEED_DATA:
                return
            if status != 0:
                self.failed = status
                return
            try:
                self.events.append(self.wire.parse_reply(self.rest[:size]))
            except ProbeError as error:
                self.failed = error.status
            self.rest = self.rest[size:]


def read_all(wire, pieces):
    """Return (events, failure) of a stream that comes in these pieces."""
    feed = Feed(wire)
    for piece in pieces:
        feed.push(piece)
    return feed.events, feed.failed


def check_splits(wire, stream):
    """Whole, byte by byte and every split in two give the same events."""
    expected = read_all(wire, [stream])
    assert expected[1] is None
    assert read_all(wire, [stream[i : i + 1] for i in range(len(stream))]) == expected
    for cut in range(len(stream) + 1):
        assert read_all(wire, [stream[:cut], stream[cut:]]) == expected


def check_truncation(wire, frame):
    """Every beginning of a frame asks for more, and says how much once it knows."""
    for n in range(len(frame)):
        status, size = wire.delimit(frame[:n])
        assert status == NEED_DATA
        assert size in (0, len(frame))


def check_corruption(wire, frame):
    """Every change of one byte ends in events or a protocol error."""
    for at in range(len(frame)):
        for value in range(256):
            changed = bytearray(frame)
            changed[at] = value
            events, failed = read_all(wire, [bytes(changed)])
            assert failed in (None, -2, -3)
            assert len(events) <= len(frame)
