"""``python -m dataproxy``: the command line without its script."""

from dataproxy.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
