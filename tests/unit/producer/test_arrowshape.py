"""Arrow structs that contradict each other: one typed error each, for the encoders and for columns of bodies."""

import pytest

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy.errors import InvalidMessageError
from dataproxy.rows.zones import zone_table
from tests.fuzz.arrow import DOWN, NO_BUFFER, NO_CHILD, NO_LIST, NO_NAME, NO_TYPE, Tree, node
from tests.native.probe_arrow import bodies


def texts(*nodes, form="json"):
    tree = Tree(node(b"+s", 1) + b"".join(nodes))
    return BodyEncoder(form, [0], zone_table=zone_table).texts(tree.capsules())


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ([node(b"tsx:UTC")], "'tsx:UTC', which has no form as text"),
        ([node(b"ts:UTC")], "'ts:UTC', which has no form as text"),
        ([node(b"d:38,99999999999")], "no form as text"),
        ([node(b"d:,2")], "no form as text"),
        ([node(b"d:10,")], "no form as text"),
        ([node(b"\xff\xfe")], "no form as text"),
        ([node(b"u", flags=NO_TYPE)], "it has no type"),
        ([node(b"u", flags=DOWN)], "its offsets decrease"),
        ([node(b"U", flags=DOWN)], "its offsets decrease"),
        ([node(b"i", flags=NO_BUFFER)], "its values are missing"),
        ([node(b"u", rest=b"\2")], "2 buffers instead of 3"),
        ([node(b"i", length=5)], "5 values of 12"),
        ([node(b"i", skew=7)], "length 4611686018427387904"),
        ([node(b"i", skew=3)], "offset -1"),
        ([node(b"i", skew=14)], "0 children in the schema, 9 in the data"),
        ([node(b"i", skew=12)], "-1 children"),
        ([node(b"+l")], "no form as text"),
        ([node(b"+l", 1), node(b"i", length=3)], "child 0 has 3 values where 12 are needed"),
        ([node(b"+s", 1, flags=NO_CHILD), node(b"i")], "the data of child 0 is missing"),
        ([node(b"+s", 1, flags=NO_LIST), node(b"i")], "no list of them"),
        (
            [node(b"+m", 1), node(b"+l", 2, 60), node(b"u", length=60), node(b"u", length=60)],
            r"damaged|no form as text",
        ),
        ([*(node(b"+s", 1) for _ in range(80)), node(b"i")], "64 levels deep"),
    ],
)
def test_what_is_damaged_is_refused(nodes, what):
    for form in ("json", "csv", "kv"):
        with pytest.raises(InvalidMessageError, match=what) as caught:
            texts(*nodes, form=form)
        assert caught.value.code == "BAD_COLUMN"


def test_what_is_odd_but_allowed_is_read():
    assert texts(node(b"tsu:UTC", length=12), form="csv")[0]
    assert texts(node(b"u", flags=NO_NAME))[1] == b'{"":"\\u0001"}'
    assert texts(node(b"d:10,2"))[0].startswith(b'{"n')


def first_bodies(made):
    tree = Tree(made)
    return bodies(tree.capsules(), 100)


@pytest.mark.parametrize("form", [b"w:-1", b"w:", b"w:1x", b"w:99999999999", b"w:\xff"])
def test_widths_are_numbers(form):
    with pytest.raises(InvalidMessageError, match="cannot hold bodies"):
        first_bodies(node(form))


def test_values_outside_of_their_buffers_are_refused():
    assert first_bodies(node(b"vz", length=40, rest=b"\4"))[39] == bytes(range(39))
    with pytest.raises(InvalidMessageError, match="value 13 is outside of its buffers"):
        first_bodies(node(b"vz", length=40, rest=b"\3"))
