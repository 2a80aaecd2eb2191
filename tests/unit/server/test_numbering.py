"""Names for numeric ids, as the option gives them."""

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub.numbering import parse_numbers


def test_groups_and_their_streams_in_the_order_of_their_numbers():
    lines = ["20/7=s_late", "3=b_app", "3/65535=s_last", "20=b_other", "3/1=s_click"]
    assert parse_numbers(lines) == [
        (3, 0, "b_app"),
        (3, 1, "s_click"),
        (3, 65535, "s_last"),
        (20, 0, "b_other"),
        (20, 7, "s_late"),
    ]
    assert parse_numbers([]) == []


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["0=g"], "'0' where a number from 1 to 65535"),
        (["65536=g"], "'65536' where"),
        (["-1=g"], "'-1' where"),
        (["g=10"], "'g' where"),
        (["10/=s"], "'' where"),
        (["10/0=s"], "'0' where"),
        (["٣=g"], "where a number"),
        (["10"], "no name"),
        (["10="], "no name"),
        (["10=a=b"], "no name"),
        (["10=a&b"], "no name"),
        (["10= a"], "no name"),
        (["10=" + "ä" * 128], "more than 255 bytes"),
        (["10=a", "10=b"], "a second time, first 'a'"),
        (["10/20=s"], "a stream of group 10, which has no name"),
    ],
)
def test_what_is_wrong_is_named(lines, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        parse_numbers(lines)
    assert "10/20=s_click" in caught.value.hint
