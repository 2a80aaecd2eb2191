"""Entry point of the command ``dataproxy``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code (docs/cli.md lists them)."""
    try:
        from dataproxy.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"dataproxy: the package {error.name!r} is missing; pip install 'dataproxy[cli]'\n")
        raise SystemExit(2) from None
    app(prog_name="dataproxy")
