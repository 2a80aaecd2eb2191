"""The generated manual and samples are current, complete and usable."""

import logging.config
import re
import tomllib
from pathlib import Path

import pytest

import dataproxy
from dataproxy.config import CONSUMER, HUB, PRODUCER, load_consumer_config, load_hub_config, load_producer_config
from dataproxy.config.render import main, rendered_files

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", rendered_files())
def test_files_are_current(name):
    """Modules are looked for in the package that is tested, which may be an installed one."""
    place = Path(dataproxy.__file__).parents[1] if name.startswith("dataproxy/") else ROOT
    assert (place / name).read_text(encoding="utf-8") == rendered_files()[name]


def test_check_and_write(tmp_path, capfd):
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert "conf/hub.toml is not current" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())
    assert main(["--root", str(tmp_path)]) == 0
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == set(rendered_files())
    capfd.readouterr()
    assert main(["--check", "--root", str(tmp_path)]) == 0
    assert capfd.readouterr() == ("", "")


def test_manual_names_every_option():
    manual = rendered_files()["CONFIGURATION.md"]
    for table in (PRODUCER, CONSUMER, HUB):
        for name in (*table.by_name, *[entry.name for entry in (*table.aliases, *table.refusals)]):
            assert f"| `{name}` |" in manual


@pytest.mark.parametrize(
    ("name", "table", "load"),
    [
        ("producer", PRODUCER, load_producer_config),
        ("consumer", CONSUMER, load_consumer_config),
        ("hub", HUB, load_hub_config),
    ],
)
def test_samples_load(name, table, load, tmp_path):
    text = rendered_files()[f"conf/{name}.toml"]
    path = tmp_path / "sample.toml"
    path.write_text(text)
    load(file=path, env={})
    # With every comment sign of an option taken away it still loads, and says what the defaults are.
    path.write_text(re.sub(r"^#(\w)", r"\1", text, flags=re.MULTILINE))
    config = load(file=path, env={})
    given = tomllib.loads(path.read_text())
    assert list(given) == list(table.by_name)
    chosen = tomllib.loads(text)
    for option in table.options:
        assert config.origin(option.name) == f"file {path}"
        if option.name not in chosen:
            assert getattr(config, option.name) == option.default


def test_logging_sample_is_accepted():
    settings = tomllib.loads(rendered_files()["conf/logging.toml"])
    settings["loggers"] = {"dataproxy.sample": settings["loggers"]["dataproxy"]}
    logging.config.dictConfig(settings)
    logger = logging.getLogger("dataproxy.sample")
    assert logger.level == logging.INFO
    logger.handlers.clear()
    logger.propagate = True
