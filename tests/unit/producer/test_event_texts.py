"""What the log says of events of the core."""

import logging

import pytest

from dataproxy.producer.results.dispatcher import EventLog


@pytest.mark.parametrize("kind", [11, 12])
def test_an_ignored_refusal_is_logged_with_its_code_and_text(kind: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dataproxy")
    log = EventLog()
    log.write(kind, "a:1", 94, "magicInMsg(1) != 60929")
    log.write(kind, "b:1", 0)
    refused, success = [record.getMessage() for record in caplog.records]
    assert refused.endswith("ignored (code 94): 'magicInMsg(1) != 60929'")
    assert success.endswith("ignored")


def test_an_illegal_change_of_state_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    EventLog().write(13, "a:1", 0, "from idle to active")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "a:1 was not made; please report this: 'from idle to active'" in record.getMessage()
