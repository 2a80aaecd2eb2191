#!/usr/bin/env bash
# InLong's released message classes against our producer and hub: fetches their jars with Maven, once, into .interop.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v mvn >/dev/null; then
    if [ -z "${DATAPROXY_NO_APT:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -q update && apt-get -q install -y --no-install-recommends maven' >&2
    else
        echo "interop: Maven is missing; install it and call again:  sudo apt-get install -y maven" >&2
        exit 1
    fi
fi
exec "${VENV:-.venv}/bin/python" -m pytest -q tests/interop
