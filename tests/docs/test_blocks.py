"""Every code block of the pages works: Python runs against a hub, commands and JSON are parsed.

Blocks that need Spark run in tests/spark.
"""

import json
import re
import shlex

import pytest
import typer

from dataproxy import Producer
from dataproxy.cli.app import app
from tests.docs.pages import ROOT, blocks, execute, places_here

PLAIN = [block for block in blocks("python") if not block.needs_spark]


@pytest.mark.parametrize("block", PLAIN, ids=str)
def test_python(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with places_here(tmp_path) as places:
        execute(block, places, names)
        for value in names.values():
            if isinstance(value, Producer):
                value.close()  # services have producers of a module, which the end of their process closes


@pytest.mark.parametrize("block", list(blocks("json")), ids=str)
def test_json(block):
    json.loads(block.text)


@pytest.mark.parametrize("block", list(blocks("sh")), ids=str)
def test_commands(block):
    """Each `make` target exists, and each `dataproxy` command takes what is shown."""
    makefile = (ROOT / "Makefile").read_text() if (ROOT / "Makefile").exists() else None
    for line in block.text.replace("\\\n", " ").splitlines():
        for part in re.split(r"[|]|&&", line):
            words = shlex.split(part, comments=True)
            while words and re.match(r"[A-Z_]+=", words[0]):
                words.pop(0)
            if words[:1] == ["make"] and makefile is not None:
                for target in (word for word in words[1:] if "=" not in word):
                    assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"no target {target}"
            if words[:1] == ["dataproxy"]:
                parse(words[1:])


def parse(words):
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    if "--help" not in words:
        command.make_context("dataproxy", words)
