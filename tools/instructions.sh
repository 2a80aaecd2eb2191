#!/usr/bin/env bash
# Counts the instructions of a record under callgrind and holds them against benchmarks/instructions.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || tools/packages.sh instructions valgrind
exec "${VENV:-.venv}/bin/python" -m benchmarks.instructions
