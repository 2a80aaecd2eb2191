"""A TubeMQ master and a broker in plain Python, for tests on real sockets without Java.

    with TubeServer(topics={"one": 1, "three": 3}) as server:
        server.put("one", b"body", attribute="$msgType$=a")
        server.on("GetMessageRequestC2B", ("code", 503, "busy"), times=2)
        ...

What lives here.  `server`: the object that tests use.  `listener`: ports and connections.  `service`: one call from
its bytes to the bytes of its answer.  `faults`: what is done to calls instead.  `master`, `broker`: what the two
servers do; time is an argument of theirs.  `store`: a topic's messages and the offsets of groups.  `answers`: messages
of success and failure.  `settings`: what a test may choose.

Threads.  Everything runs on one thread of its own; the object hands each question of a test over to it.

What it may use.  The protocol's messages and texts, the reference codec, the master of `tests/simgroup`; nothing
compiled, so that it is no second copy of what is tested.
"""

from tests.support.tubeserver.server import TubeServer

__all__ = ["TubeServer"]
