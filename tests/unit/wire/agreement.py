"""The reader of frames for people beside the compiled ones."""

from dataproxy._core.wire.inlong import message
from dataproxy.wire.inlong import read_frames
from dataproxy.wire.items import read_items
from tests.native.probe_wire import ProbeError, Server, Wire
from tests.support.reference.vectors import NOW_MS

__all__ = ["WIRE", "agrees_with_the_client", "agrees_with_the_server", "one", "read"]

WIRE = Wire()
#: What a server refuses because the frame is malformed; other codes are about names, states and settings.
MALFORMED = {94, 95, 96, 104, 105, 106, 107, 109, 123}


def read(data, sender="either", **options):
    """Return the frames of a stream, each with its items in a list."""
    out = []
    for frame in read_frames(data, sender, **options):
        out.append((frame, list(read_items(frame))))
    return out


def one(data, sender="either", **options):
    [(frame, items)] = read(data, sender, **options)
    return frame, items


def agrees_with_the_server(data):
    """Compare with the compiled server, which reads frames strictly."""
    frame, items = one(data, "client")
    judged = Server().serve(data, NOW_MS)
    if judged["action"] == "close" or judged["code"] in MALFORMED:
        assert frame.problems, judged
    if judged["action"] != "store":
        return
    assert frame.problems == []
    if frame.kind in (5, 6, 7):
        assert [item.body for item in items] == [body for body, _ in message.records(judged["entry"])]
    else:
        assert frame.content.startswith(next(message.records(judged["entry"]))[0])


def agrees_with_the_client(data):
    """Compare with the compiled client, which reads answers."""
    frame, _ = one(data, "server")
    try:
        event = WIRE.parse_reply(data)
    except ProbeError:
        assert frame.problems
        return
    if event["kind"] == 3:
        assert [problem.field for problem in frame.problems] == ["type"]
        return
    assert frame.problems == []
    if frame.answer is not None:
        code, seq, node, said = frame.answer
        assert (code, seq, node, said) == (event["code"], event["seq"], event["node"], event["message"])
    loads = [field.value for field in frame.fields if field.name == "load"]
    assert event["load"] == (loads[0] if loads and loads[0] != 65535 else -1)
