"""Code blocks of the project's pages."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dataproxy import Producer
from dataproxy._core.wire.inlong import message
from dataproxy.hub import Hub
from tests.support.rocketserver import RocketServer
from tests.support.tubeserver import TubeServer

__all__ = ["ROOT", "Block", "blocks", "execute", "places_here"]

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """Hold one fenced block: its page, the line of its first line of code, its language and text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def needs_spark(self) -> bool:
        """Tell whether the block uses a Spark session or a DataFrame of the reader's."""
        return re.search(r"\b(df|spark)\b", self.text) is not None


def blocks(*languages: str) -> Iterator[Block]:
    """Yield the blocks in some languages of all pages that are here (a wheel's tests have only those of docs)."""
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        text = path.read_text()
        for found in _BLOCK.finditer(text):
            if found[1] in languages:
                line = text.count("\n", 0, found.start(2)) + 1
                yield Block(str(path.relative_to(ROOT)), line, found[1], found[2])


@contextmanager
def places_here(folder: Path) -> Iterator[dict[str, str]]:
    """Yield what stands in the pages for a server or a folder -> what is here, around a running hub."""
    store = folder / "store"
    with (
        Hub(store) as hub,
        TubeServer(topics={"orders": 2, "clicks": 1, "b_app": 1}) as tubemq,
        RocketServer({"orders": 2}) as rocketmq,
    ):
        rocketmq.put("orders", 0, b"order", "TAGS\x01new\x02amount\x017")
        tubemq.put("b_app", message.encode(1, [({"groupId": "b_app", "streamId": "s", "dt": "1767225600000"}, [b"x"])]))
        for i in range(20):
            tubemq.put("orders", b"order %d" % i, i % 2, "$msgType$=new,$msgTime$=202601010000")
            tubemq.put("clicks", b"click", 0, "$msgType$=view,$msgTime$=202601010000")
        with Producer(hub.target) as producer:
            producer.send("s_click", b"one", group_id="b_app").result()
        yield {
            "rocketmq://names1:9876": rocketmq.target,
            "tubemq://master1:8715,master2:8715": tubemq.target,
            "tubemq://master1:8715": tubemq.target,
            "http://manager:8083": hub.manager_url,
            "tcp://host1:46801,host2:46801": hub.target,
            "tcp://127.0.0.1:46801": hub.target,
            "http://127.0.0.1:8083": hub.manager_url,
            "/var/lib/hub": str(store),
        }


def execute(block: Block, places: Mapping[str, str], names: dict[str, Any]) -> None:
    """Run a block with ``names`` given; tracebacks show the page and its line."""
    text = block.text
    for shown, here in places.items():
        text = text.replace(shown, here)
    padded = "\n" * (block.line - 1) + textwrap.dedent(text)
    exec(compile(padded, str(ROOT / block.page), "exec"), names)
