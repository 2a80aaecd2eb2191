"""An authority, and a hub without TLS that stands behind servers that were not written here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataproxy.hub import Hub
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Make an authority for a file's tests."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Make an authority that nobody knows."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture
def hub() -> Iterator[Hub]:
    """Run a hub without TLS."""
    with Hub() as running:
        yield running


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the system's authorities out: a test trusts whom it names."""
    nobody = tmp_path / "nobody.pem"
    nobody.write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(nobody))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
