"""Lines of a pipe that another program has made not to block."""

import os

from dataproxy.cli.send import lines


def test_lines_of_a_pipe_that_does_not_block(monkeypatch):
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    really = os.read
    waits = []

    def read(descriptor, size):
        try:
            return really(descriptor, size)
        except BlockingIOError:
            waits.append(descriptor)
            os.write(theirs, b"c\n")
            os.close(theirs)
            raise

    monkeypatch.setattr(lines.os, "read", read)
    try:
        os.write(theirs, b"a\nb")
        assert list(lines.read_lines(ours, b"\n", 100)) == [[b"a"], [b"bc"]]
        assert waits == [ours]
    finally:
        os.close(ours)
