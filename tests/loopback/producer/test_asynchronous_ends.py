"""AsyncProducers that are closed while they open, and by several event loops at once."""

import asyncio
import socket
import threading

import dataproxy

NOBODY = "tcp://127.0.0.1:9"


def test_what_comes_while_a_producer_opens_and_closes_is_told() -> None:
    """A batch that waits for the opening finds the producer closed then; nothing is left that nobody works off."""

    async def main() -> None:
        producer = dataproxy.AsyncProducer(NOBODY, group_id="g", close_timeout=0.1)
        sends = [
            asyncio.ensure_future(producer.send_batch("s", [b"x"] * 10)),
            asyncio.ensure_future(producer.send("s", b"x")),
            asyncio.ensure_future(producer.room()),
        ]
        await asyncio.sleep(0)
        report = await producer.close()
        assert [type(error) for error in await asyncio.gather(*sends, return_exceptions=True)] == [
            dataproxy.ClosedError
        ] * 3
        assert report.accepted == 0

    asyncio.run(asyncio.wait_for(main(), 60))


def test_closing_ends_a_batch_that_waits_for_room() -> None:
    """The batch holds the worker thread, on which the closing comes after it."""

    async def main() -> None:
        producer = dataproxy.AsyncProducer(NOBODY, group_id="g", buffer_bytes="64KiB", max_block="10m")
        await producer.open()
        batch = asyncio.ensure_future(producer.send_batch("s", [b"x" * 100] * 20_000))
        await asyncio.sleep(0)
        report = await producer.close(0.1)
        assert isinstance((await asyncio.gather(batch, return_exceptions=True))[0], dataproxy.ClosedError)
        assert 0 < report.accepted == report.failed < 20_000

    asyncio.run(asyncio.wait_for(main(), 60))


def test_closing_leaves_an_opening_behind_that_has_no_answer() -> None:
    async def main(url: str) -> None:
        producer = dataproxy.AsyncProducer(url, group_id="g", manager_timeout="10m")
        opening = asyncio.ensure_future(producer.open())
        await asyncio.sleep(0)
        assert (await producer.close(0.1)).accepted == 0
        assert not opening.done()
        opening.cancel()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(asyncio.wait_for(main(f"http://127.0.0.1:{silent.getsockname()[1]}"), 60))


def test_several_loops_may_close_one_producer() -> None:
    producer = dataproxy.AsyncProducer(NOBODY, group_id="g", close_timeout=0.1)
    opened = threading.Barrier(4, timeout=60)
    told: list[object] = []

    async def main() -> None:
        await producer.open()
        waiting = asyncio.ensure_future(producer.send("s", b"x"))
        await asyncio.sleep(0)
        await asyncio.to_thread(opened.wait)
        told.append(await asyncio.wait_for(producer.close(), 60))
        told.append(type((await asyncio.gather(waiting, return_exceptions=True))[0]))

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    reports = [one for one in told if isinstance(one, dataproxy.Report)]
    assert len(reports) == 4 and len(set(map(repr, reports))) == 1, told
    assert len(told) == 8, told
