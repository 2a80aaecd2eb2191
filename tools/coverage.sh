#!/usr/bin/env bash
# Lines covered by the unit and loopback tests, in Python and in compiled modules.  Extra arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/${VENV:-.venv}
[ $# -gt 0 ] || set -- tests/unit tests/loopback
tree=$("$venv/bin/python" tools/build.py coverage)
cd "$tree"
export PYTHONPATH="$tree" DATAPROXY_HYPOTHESIS=short COVERAGE_CORE=ctrace
"$venv/bin/python" -m pytest -q -p no:cacheprovider --timeout=600 --cov --cov-report=term "$@"
