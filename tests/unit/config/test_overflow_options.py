"""What the options of a full buffer allow together."""

import pytest

from dataproxy.config import load_producer_config
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.errors import ConfigError

TARGET = "tcp://127.0.0.1:1"
DROPPING = ("raise", "drop_newest", "drop_oldest")


@pytest.mark.parametrize("mode", DROPPING)
@pytest.mark.parametrize(("value", "shown"), [(5.0, "5s"), ("100ms", "100ms"), (0, "0s"), (60.0, "1m")])
def test_max_block_without_block_is_refused(mode, value, shown) -> None:
    with pytest.raises(ConfigError) as caught:
        load_producer_config(TARGET, env={}, on_full=mode, max_block=value)
    assert str(caught.value) == (
        f"max_block ({shown}) has no effect with on_full={mode!r}, which never waits; leave max_block out, or choose"
        " on_full='block' [CONFIG]"
    )


def test_max_block_from_the_environment_counts_as_given() -> None:
    with pytest.raises(ConfigError, match="max_block"):
        load_producer_config(TARGET, env={"DATAPROXY_MAX_BLOCK": "60"}, on_full="raise")


@pytest.mark.parametrize("mode", DROPPING)
def test_the_default_of_max_block_gives_way(mode) -> None:
    config = load_producer_config(TARGET, env={}, on_full=mode)
    assert (config.on_full, config.max_block) == (mode, 0.0)
    assert config.origin("max_block") == "default, changed to fit on_full"
    assert config.replace(linger=1).max_block == 0.0
    assert config.replace(on_full="block").max_block == 60.0


def test_spill_is_no_choice() -> None:
    assert PRODUCER.by_name["on_full"].choices == ("block", "raise", "drop_newest", "drop_oldest")
    with pytest.raises(ConfigError, match="spill"):
        load_producer_config(TARGET, env={}, on_full="spill")
