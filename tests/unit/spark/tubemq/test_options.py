"""Options of the source: from texts to settings, and what is refused."""

import pickle

import pytest

from dataproxy.config.spark import camel_case
from dataproxy.config.tables.consumer import CONSUMER
from dataproxy.config.tables.spark import OF_CONSUMERS, SOURCE_OPTIONS
from dataproxy.errors import ConfigError
from dataproxy.spark.tubemq.options import named_records, source_settings

GIVEN = {"target": "tubemq://h:1", "group": "g", "topics": "a,b=x+y"}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("TARGET", "GROUP", "TOPICS", "USER", "PASSWORD"):
        monkeypatch.delenv(f"DATAPROXY_CONSUMER_{name}", raising=False)


def settings(*, stream=False, **options):
    return source_settings({**GIVEN, **options}, stream=stream)


def refusal(*, stream=False, **options):
    with pytest.raises(ConfigError) as caught:
        source_settings({**GIVEN, **{k.replace("_DOT_", "."): v for k, v in options.items()}}, stream=stream)
    return str(caught.value)


def test_defaults():
    found = settings()
    assert found.config.topics == (("a", ()), ("b", ("x", "y")))
    assert (found.inlong, found.fail_on_loss, found.max_offsets, found.min_partitions) == (False, True, 0, 0)
    assert (found.start.word, found.end.word, found.time_zone) == ("earliest", "latest", "UTC")
    assert settings(stream=True).start.word == "latest"


def test_names_in_every_case_and_with_the_prefix():
    found = settings(
        STARTINGOFFSETS="stored", failondataloss="false", call_timeout="5s", **{"dataproxy.records": "inlong"}
    )
    assert (found.start.word, found.fail_on_loss, found.config.call_timeout, found.inlong) == (
        "stored",
        False,
        5.0,
        True,
    )


def test_filters_of_topics_that_have_none():
    assert dict(settings(filters="p,q").config.topics) == {"a": ("p", "q"), "b": ("x", "y")}


def test_the_environment_fills_in(monkeypatch):
    monkeypatch.setenv("DATAPROXY_CONSUMER_GROUP", "of_the_environment")
    assert source_settings({"target": "tubemq://h", "topics": "a"}, stream=True).config.group == "of_the_environment"


def test_settings_travel_with_a_password_from_a_file(tmp_path):
    place = tmp_path / "password"
    place.write_text("env:secret\n")
    found = settings(user="ann", password=f"file:{place}")
    place.unlink()
    again = pickle.loads(pickle.dumps(found))
    assert again.config.password.reveal() == "env:secret"
    assert "secret" not in repr(again)


def test_every_option_of_consumers_that_is_named_is_one():
    assert set(OF_CONSUMERS) <= set(CONSUMER.by_name)
    names = [*map(camel_case, OF_CONSUMERS), *(option.name for option in SOURCE_OPTIONS)]
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("startingOffset", "did you mean 'startingOffsets'?"),
        ("subscribe", "did you mean 'topics'?"),
        ("kafka_DOT_bootstrap_DOT_servers", "did you mean 'target'?"),
        ("groupId", "did you mean 'group'?"),
        ("prefetchBytes", "consumers have it, and the source needs none"),
        ("auto_confirm", "consumers have it, and the source needs none"),
        ("xyzzy", "there is no option 'xyzzy' of the source tubemq; the options are target, group"),
    ],
)
def test_unknown_names(name, told):
    assert told in refusal(**{name: "1"})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"group": ""}, "there is no group"),
        ({"topics": ""}, "there are no topics"),
        ({"target": ""}, "there is no target"),
        ({"target": "http://h:8080"}, "8080 is the port of a master's web page"),
        ({"target": "tubemq://ann:secret@h"}, "it holds a secret"),
        ({"path": "/x"}, "the read was given the path '/x'"),
        ({"GROUP": "h"}, "two options set group"),
        ({"records": "avro"}, "records"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss"),
        ({"startingOffsets": '{"1:one:0": 0, "1:one:0": 28}'}, "names '1:one:0' twice"),
        ({"timeZone": "Mars/Base"}, "timeZone='Mars/Base' is no time zone"),
        ({"timeZone": "../etc/passwd"}, "is no time zone"),
        ({"timeZone": "posix/UTC"}, "is no time zone"),  # Python knows it, Arrow does not
        ({"maxOffsetsPerTrigger": "9"}, "maxOffsetsPerTrigger is for streams"),
        ({"maxOffsetsPerTrigger": "-1"}, "maxOffsetsPerTrigger"),
        ({"startingOffsets": "soon"}, "startingOffsets='soon' is not allowed"),
        ({"topics": "a b"}, "a b"),
    ],
)
def test_what_is_refused(options, told):
    text = refusal(**options)
    assert told in text
    assert "secret@" not in text


def test_a_stream_has_no_end():
    assert "endingOffsets is for batches" in refusal(stream=True, endingOffsets="latest")


def test_the_kind_of_rows_alone():
    assert named_records({}) == "raw"
    assert named_records({"Records": "inlong"}) == "inlong"
    with pytest.raises(ConfigError, match="no option 'reccords'"):
        named_records({"reccords": "inlong"})
