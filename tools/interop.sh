#!/usr/bin/env bash
# InLong's released message classes against our producer and hub: fetches their jars with Maven, once, into .interop.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mvn >/dev/null || tools/packages.sh interop maven
exec "${VENV:-.venv}/bin/python" -m pytest -q tests/interop
