#!/usr/bin/env bash
# Software that was not written here against our producer and hub: InLong's released message classes, whose jars Maven
# fetches once into .interop, TubeMQ's master and broker, and nginx as a TLS proxy, from Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mvn >/dev/null || tools/packages.sh interop maven
[ -n "${NGINX_MODULES:-}" ] || [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] ||
    tools/packages.sh interop nginx libnginx-mod-stream
exec "${VENV:-.venv}/bin/python" -m pytest -q tests/interop --ignore=tests/interop/rocketmq/long
