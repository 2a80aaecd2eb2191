"""Files of TLS that are followed: what goes wrong is told, and tried again."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

import pytest

from dataproxy.trust import watched
from dataproxy.trust.files import TlsFiles
from dataproxy.trust.watched import Trust
from tests.support.certificates import Authority
from tests.support.waiting import eventually


def test_a_fault_that_is_not_of_the_files_is_logged_and_they_are_loaded_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watched, "_LOOK_SECONDS", 0.01)
    authority = Authority(tmp_path)
    trust = Trust(TlsFiles(authorities=str(authority.ca)), core=False)
    before, real = trust.context, watched.ssl_context
    faults = [MemoryError(), MemoryError()]

    def loaded(files: TlsFiles) -> ssl.SSLContext:
        if faults:
            raise faults.pop()
        return real(files)

    monkeypatch.setattr(watched, "ssl_context", loaded)
    threads: list[threading.Thread] = []

    def start(name: str, body: object) -> None:
        threads.append(threading.Thread(target=body, name=name))  # type: ignore[arg-type]
        threads[0].start()

    trust.follow(start)
    Authority(tmp_path)  # another one, in the same file
    assert eventually(lambda: trust.context is not before)
    trust.stop()
    threads[0].join()
    assert caplog.text.count("TLS files could not be looked at") == 1
