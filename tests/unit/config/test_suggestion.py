"""The nearest name: every slip of one key must lead back to the right option."""

import string

import pytest

from dataproxy.config import CONSUMER, HUB, PRODUCER, load_producer_config
from dataproxy.config.spark import camel_case
from dataproxy.config.suggestion import nearest_name
from dataproxy.errors import ConfigError

LETTERS = string.ascii_lowercase + "_"


def slips(word: str) -> set[str]:
    """Return everything one edit away from ``word``."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    found = {a + b[1:] for a, b in cuts if b}
    found |= {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    found |= {a + c + b[1:] for a, b in cuts if b for c in LETTERS}
    found |= {a + c + b for a, b in cuts for c in LETTERS}
    return found - {word}


@pytest.mark.parametrize("table", [PRODUCER, CONSUMER, HUB], ids=lambda table: table.section)
def test_one_edit_leads_back(table):
    names = list(table.by_name)
    tried = right = 0
    for name in names:
        for slip in slips(name) - set(names):
            tried += 1
            right += nearest_name(slip, names) == name
    assert tried > 8000
    assert right / tried >= 0.99


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("LINGER", "linger"),
        ("batch-bytes", "batch_bytes"),
        ("batchbytes", "batch_bytes"),
        ("delivery_timeuot", "delivery_timeout"),
        ("max_frame_size", "max_frame_bytes"),
        ("q", None),
        ("completely_else", None),
    ],
)
def test_other_slips(word, expected):
    assert nearest_name(word, PRODUCER.by_name) == expected


def test_message():
    with pytest.raises(ConfigError, match=r"there is no option 'linges', did you mean 'linger'?") as caught:
        load_producer_config("tcp://h", env={}, linges=1)
    assert caught.value.code == "UNKNOWN_OPTION"
    with pytest.raises(ConfigError, match=r"there is no option 'xyzzy'; CONFIGURATION.md lists"):
        load_producer_config("tcp://h", env={}, xyzzy=1)
    with pytest.raises(
        ConfigError, match=r"'batch_sise', did you mean 'batch_size'\? here it is batch_bytes, in bytes"
    ):
        load_producer_config("tcp://h", env={}, batch_sise=1)
    with pytest.raises(ConfigError, match="did you mean 'pack_timeout'"):
        load_producer_config("tcp://h", env={}, pack_timeot=1)


def test_camel_case():
    assert [camel_case(name) for name in ("linger", "batch_bytes", "retry_backoff_max")] == [
        "linger", "batchBytes", "retryBackoffMax",
    ]  # fmt: skip
