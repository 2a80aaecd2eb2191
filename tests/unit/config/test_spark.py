"""Options as Spark writes them."""

import pytest

from dataproxy.config import PRODUCER, load_producer_config, spark_options
from dataproxy.config.spark import camel_case
from dataproxy.errors import ConfigError


@pytest.mark.parametrize("option", PRODUCER.options, ids=lambda option: option.name)
def test_every_spelling(option):
    camel = camel_case(option.name)
    for key in (camel, camel.lower(), camel.upper(), f"dataproxy.{option.name}", f"DataProxy.{camel}", option.name):
        assert spark_options({key: "1"}) == {option.name: "1"}


def test_values_are_read_from_text():
    given = {
        "managerUrl": "http://m:8083",
        "batchBytes": "8KiB",
        "exacttime": "true",
        "LINGER": "0.5",
        "messageType": "5",
    }
    config = load_producer_config(env={}, **spark_options(given))
    assert (config.target, config.batch_bytes, config.exact_time, config.linger, config.message_type) == (
        "http://m:8083", 8192, True, 0.5, 5,
    )  # fmt: skip


def test_names_of_the_caller_are_left_out():
    assert spark_options({"streamId": "s", "PATH": "x", "dataproxy.streamid": "s"}, known=["streamId", "path"]) == {}
    with pytest.raises(ConfigError, match="there is no option 'streamI', did you mean 'streamId'"):
        spark_options({"streamI": "s"}, known=["streamId"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batchByte": "1"}, "there is no option 'batchByte', did you mean 'batchBytes'?"),
        ({"dataproxy.lingr": "1"}, "there is no option 'dataproxy.lingr', did you mean 'linger'?"),
        ({"wholly.other": "1"}, "there is no option 'wholly.other'"),
        (
            {"batchBytes": "1", "batch_bytes": "2"},
            "options 'batchBytes' and 'batch_bytes' both set batch_bytes; keep one",
        ),
    ],
)
def test_refused(options, message):
    with pytest.raises(ConfigError) as caught:
        spark_options(options)
    assert str(caught.value).startswith(message)
    assert caught.value.code == "UNKNOWN_OPTION"


def test_refusals_keep_their_reason():
    with pytest.raises(ConfigError, match="retries are limited by time"):
        load_producer_config("tcp://h", env={}, **spark_options({"retry_num": "3"}))
