"""Which data time a record has."""

import pytest

from dataproxy.stored.entry import time_of


@pytest.mark.parametrize(
    ("attrs", "when"),
    [
        ({}, 7),
        ({"dt": "1720000000000"}, 1_720_000_000_000),
        ({"dt": "1720000000000", "dtMs": "1720000000123"}, 1_720_000_000_123),
        ({"dt": "1720000000000", "dtMs": "soon"}, 1_720_000_000_000),
        ({"dt": "1720000000000", "dtMs": "9" * 30}, 1_720_000_000_000),
        ({"dt": "9" * 30}, 7),
        ({"dt": "-1", "dtMs": ""}, 7),
    ],
)
def test_the_message_s_own_time_comes_first(attrs, when):
    assert time_of(attrs, 7) == when
