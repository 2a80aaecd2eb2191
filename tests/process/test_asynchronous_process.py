"""AsyncProducer in processes that fork, that end without closing, and that turn every warning into an error."""

import subprocess
import sys
import textwrap

import pytest

from dataproxy.hub import Hub

COMMON = """
import asyncio, os, sys
import dataproxy
from dataproxy import AsyncProducer, Delivered, ForkedError
target = sys.argv[1]
if sys.argv[2] == "uvloop":
    import uvloop
    run = uvloop.run
else:
    run = asyncio.run
"""

FORK = """
async def main():
    p = await AsyncProducer(target, group_id="g", linger=0.001).open()
    handle = p.stream("s")
    delivery, batch = p.send_soon("s", b"1"), p.batch("s")
    await p.send("s", b"2")
    child = os.fork()
    if child == 0:
        def refused(call):
            try:
                call()
            except ForkedError as error:
                return "the child process" in str(error) or "in the process that sent" in str(error)
            return False
        calls = [lambda: p.send("s", b"x"), lambda: p.send_soon("s", b"x"), lambda: p.send_nowait("s", b"x"),
                 lambda: handle.send(b"x"), lambda: handle.send_soon(b"x"), lambda: handle.send_nowait(b"x"),
                 lambda: p.stream("s"), p.stats, p.report, delivery.__await__, p._check,
                 lambda: p.open().send(None), lambda: p.flush().send(None), lambda: p.close().send(None),
                 lambda: batch.__aenter__().send(None)]
        told = [refused(call) for call in calls]
        async def own():
            async with AsyncProducer(target, group_id="g", linger=0.001) as mine:
                return isinstance(await mine.send("s", b"child"), Delivered)
        asyncio._set_running_loop(None)
        fine = all(told) and asyncio.run(own())
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    assert await delivery
    await p.send("s", b"3")
    assert (await p.close()).delivered == 3

run(main())
"""

UNCLOSED = """
async def main():
    p = await AsyncProducer(target, group_id="g", linger="10s").open()
    for i in range(1000):
        p.send_nowait("s", b"%d" % i)
    tasks = [asyncio.create_task(p.send("s", b"t%d" % i)) for i in range(100)]
    await asyncio.sleep(0)
    return p

p = run(main())
"""

WARNINGS = """
async def main():
    async with AsyncProducer(target, group_id="g", linger=0.001) as p:
        await asyncio.gather(*(p.send("s", b"%d" % i) for i in range(100)))
        waiting = [asyncio.create_task(p.send("s", b"%d" % i)) for i in range(100)]
        p.send_soon("s", b"nobody looks")
        await asyncio.sleep(0)
        for task in waiting[::3]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await p.send_batch("s", [b"x"] * 10)

for _ in range(3):
    run(main())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("program", "records"),
    [(FORK, 4), (UNCLOSED, 1100), (WARNINGS, 3 * 211)],
    ids=["fork", "unclosed", "warnings"],
)
def test_a_program(program: str, records: int, loop: str) -> None:
    with Hub() as hub:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(COMMON + program), hub.target, loop],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        noise = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
        assert noise == []
        assert sum(count.records for count in hub.counts().values()) == records
