#!/usr/bin/env bash
# Counts the instructions of a record under callgrind and holds them against benchmarks/instructions.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
    if [ -z "${DATAPROXY_NO_APT:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -q update && apt-get -q install -y --no-install-recommends valgrind' >&2
    else
        echo "instructions: valgrind is missing; install it and call again:  sudo apt-get install -y valgrind" >&2
        exit 1
    fi
fi
exec "${VENV:-.venv}/bin/python" -m benchmarks.instructions
