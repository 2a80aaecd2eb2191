"""Nothing above the wires asks for a message type, and what Python says of each type is what the wire says."""

from pathlib import Path

import pytest

from dataproxy import messagetypes
from dataproxy.numbers import FAMILY_BINARY_LINES, FAMILY_REPORT, FAMILY_V1
from tests.arch.messagetypes import asked_types
from tests.native import probe_wire

ROOT = Path(__file__).parents[2]
CORE = "cython_ext/dataproxy/_core"


def test_message_types_are_known_to_the_wires_alone():
    assert asked_types(ROOT) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (f"{CORE}/server/receive.pyx", "elif r.msg_type == 1 or r.msg_type == 8:"),
        (f"{CORE}/producer/producer.pyx", "g.batcher.lines = rules.family == 3"),
        (f"{CORE}/producer/ingest/stream.pyx", "if self.message_type != 7:"),
        (f"{CORE}/producer/producer.pyx", 'b.lines = o["message_type"] == 3'),
        (f"{CORE}/producer/producer.pyx", "from dataproxy._core.wire.inlong.const cimport TYPE_LINES"),
        ("dataproxy/perf/run.py", "if producer.config.message_type == _LINES:"),
        ("dataproxy/spark/options.py", "if 7 == config.message_type:"),
        ("dataproxy/config/rules.py", "if message_type in (5, 7):"),
    ],
)
def test_a_question_for_the_type_is_found(tmp_path, name, line):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n")
    (violation,) = asked_types(tmp_path)
    assert violation.startswith(f"{name}:1:")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (f"{CORE}/wire/inlong/encode.pyx", "if spec.family == TYPE_BINARY:"),
        (f"{CORE}/producer/producer.pyx", 'rules.family = options["message_type"]'),
        (f"{CORE}/server/receive.pyx", "elif r.heartbeat:"),
        ("dataproxy/producer/names.py", "if ascii_only(message_type):"),
        ("dataproxy/producer/discovery.py", "if family == socket.AF_INET6:"),
    ],
)
def test_what_only_passes_a_type_on_is_accepted(tmp_path, name, line):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n")
    assert asked_types(tmp_path) == []


@pytest.mark.parametrize("message_type", [7, 6, 5, 3, 2, FAMILY_BINARY_LINES])
def test_python_and_the_wire_agree_on_each_type(message_type):
    lines, ids = probe_wire.Wire("inlong").family(message_type)
    assert messagetypes.has_item_attributes(message_type) is not lines
    assert messagetypes.has_item_ids(message_type) is ids


@pytest.mark.parametrize(("wire", "family"), [("inlongv1", FAMILY_V1), ("http", FAMILY_REPORT)])
def test_python_and_the_other_wires_agree_on_their_family(wire, family):
    lines, ids = probe_wire.Wire(wire).family(family)
    assert messagetypes.joins_lines(family) is lines
    assert messagetypes.has_item_ids(family) is ids
    assert probe_wire.Wire("inlong").family(family) is None
    assert probe_wire.Wire(wire).family(7) is None


@pytest.mark.parametrize("message_type", [0, 1, 4, 8, 0x2005])
def test_the_wire_refuses_types_without_plain_messages(message_type):
    assert probe_wire.Wire("inlong").family(message_type) is None
