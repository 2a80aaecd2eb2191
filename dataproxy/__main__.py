"""``python -m dataproxy`` is the command ``dataproxy``."""

from dataproxy.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
