"""Certificates of hubs and producers that trust each other, which are renewed while they run."""

from __future__ import annotations

from pathlib import Path

from tests.support.certificates import Authority, write

__all__ = ["Renewed"]

_BROKEN = 3  # each so-many-th renewal of the producers' file is one that cannot be read


class Renewed:
    """One file with certificate and key for all hubs, and one for all producers; each side asks the other for its own.

    ``hub``: the hubs' file, and the authority of their clients.  ``options``: those of producers.  ``broken``: how many
    files were written that nobody can use.
    """

    def __init__(self, folder: Path) -> None:
        (folder / "trust").mkdir()
        self._authority = Authority(folder / "trust")
        self._own = self._authority.identity("127.0.0.1", file="hub")
        self._client = self._authority.identity("producer", file="producer")
        self._renewals = 0
        self.hub = (self._own.both, self._authority.ca)
        self.options = ("tls=true", f"tls_ca={self._authority.ca}", f"tls_certificate={self._client.both}")
        self.broken = 0

    def renew(self) -> None:
        """Replace the files by new ones; that of the producers by a broken one at times.

        The hubs' file is always whole, because hubs are killed and start again with it.
        """
        self._authority.identity("127.0.0.1").copy_to(self._own)
        self._renewals += 1
        if self._renewals % _BROKEN == 0:
            new = self._client.both.with_suffix(".new")
            write(new, self._client.certificate.read_bytes())  # without its key
            new.rename(self._client.both)
            self.broken += 1
        else:
            self._authority.identity("producer").copy_to(self._client)
