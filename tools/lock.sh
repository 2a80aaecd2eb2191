#!/usr/bin/env bash
# Resolves requirements/dev.in into requirements/dev.lock, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install -q -r requirements/dev.in
{
    echo "# Exact versions of the developer's environment, made by 'make lock' from dev.in."
    "$folder/bin/python" -m pip freeze --all | grep -vE '^(pip|wheel)=='
} >requirements/dev.lock.new
mv requirements/dev.lock.new requirements/dev.lock
