"""The page on faults lists what there is, and nothing else."""

import re
from pathlib import Path

from dataproxy.hub import KINDS, Fault
from dataproxy.testing.proxyfault import PROXY_KINDS

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    table = re.search(r"^\|.*?(?=^[^|]|\Z)", PAGE.partition(heading)[2], re.MULTILINE | re.DOTALL)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_kinds():
    expected = [
        [
            f"`{kind.name}`",
            kind.text,
            ", ".join(kind.on if kind.name != "slow" else ("bytes",)),
            ", ".join(f"`{name}`" for name in kind.parameters),
        ]
        for kind in KINDS.values()
    ]
    assert rows("### Kinds") == expected


def test_fields():
    named = {name for row in rows("### Where and when") for name in re.findall(r"`(\w+)`", row[0])}
    fields = Fault.__slots__
    assert named == set(fields[1 : fields.index("code")])


def test_kinds_of_the_proxy():
    named = {
        name: tuple(re.findall(r"`(\w+)`", row[2]))
        for row in rows("## A bad network")
        for name in re.findall(r"`(\w+)`", row[0])
    }
    assert named == {name: tuple(parameters) for name, parameters in PROXY_KINDS.items()}
