"""What the tests of ``InLongApi`` share."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inlong_dataproxy import InLongApi


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a configuration file and returns its path."""

    def write(url: str, **options: Any) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"init-param": {"manager_url": url, "pack_timeout": 5, **options}}))
        return str(path)

    return write


@pytest.fixture
def begun(written: Callable[..., str]) -> Iterator[Callable[..., InLongApi]]:
    """Return a function that begins with a configuration; each object is closed after the test."""
    opened: list[InLongApi] = []

    def begin(url: str, **options: Any) -> InLongApi:
        api = InLongApi()
        assert api.init_api(written(url, **options)) == 0, api.last_error
        opened.append(api)
        return api

    yield begin
    for api in opened:
        api.close_api(0)
