"""A name that other clients have, and this one does not, is an error and ends nothing."""

import pytest

import dataproxy


def test_a_word_of_other_clients_does_not_end_the_engine_behind_the_accounting() -> None:
    """``stop`` ended the executors: what was sent later was accepted, and nobody was ever told of it."""
    with dataproxy.Producer("tcp://127.0.0.1:9", group_id="g") as producer:
        with pytest.raises(AttributeError, match="no attribute 'stop'"):
            producer.stop()  # type: ignore[attr-defined]
        assert not producer.closed
