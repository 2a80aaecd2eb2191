#!/usr/bin/env bash
# Prepares a checkout, completely and once: Debian packages that are missing, a virtual environment with the pinned
# packages, and in it the import path of this checkout and the command `dataproxy`.  Writes only below the checkout.
#   PYTHON  interpreter to start from (python3)      VENV  where the environment goes (.venv)
#   LOCK    exact versions (requirements/dev.lock)   SPARK another PySpark version than the lock's
#   DATAPROXY_NO_APT=1  never call apt-get, print its command instead (tools/packages.sh)
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} venv=${VENV:-.venv} lock=${LOCK:-requirements/dev.lock} spark=${SPARK:-}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore

key="$(sha256sum <"$lock") $(sha256sum <tools/setup.sh) $python $spark $PWD"
[ "$(cat "$venv/.installed" 2>/dev/null)" != "$key" ] || ! "$venv/bin/python" -c '' 2>/dev/null || exit 0

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# Prints the Debian packages that this machine still needs.
missing_packages() {
    local cc=${CC:-cc}
    if command -v "${cc%% *}" >/dev/null && echo '#include <stdio.h>' | $cc -E -x c - >/dev/null 2>&1; then
        echo '#include <snappy-c.h>' | $cc ${CPPFLAGS:-} -E -x c - >/dev/null 2>&1 || echo libsnappy-dev
        echo '#include <lmdb.h>' | $cc ${CPPFLAGS:-} -E -x c - >/dev/null 2>&1 || echo liblmdb-dev
    else
        echo gcc libc6-dev libsnappy-dev liblmdb-dev
    fi
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || echo python3-dev
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    command -v "${JAVA_HOME:+$JAVA_HOME/bin/}java" >/dev/null || echo openjdk-17-jre-headless
}

command -v "$python" >/dev/null || die "$python not found; on Debian:  apt-get install -y python3 python3-venv python3-dev"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$("$python" --version) is too old, 3.11 or newer is needed; name another one:  make PYTHON=/path/to/python3.11"
packages=$(missing_packages | xargs)
# shellcheck disable=SC2086  # one word is one package
[ -z "$packages" ] || tools/packages.sh setup $packages

say "creating $venv with $("$python" --version) and the packages of $lock${spark:+, PySpark $spark}"
rm -rf "$venv"
"$python" -m venv "$venv"
if [ -n "$spark" ]; then
    # py4j follows PySpark's own pin.
    sed -e "s/^pyspark==.*/pyspark==$spark/" -e '/^py4j==/d' "$lock" >"$venv/requirements.txt"
    "$venv/bin/python" -m pip install -q -r "$venv/requirements.txt"
else
    "$venv/bin/python" -m pip install -q --no-deps -r "$lock"
fi
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD" >"$site/dataproxy-checkout.pth"
cat >"$venv/bin/dataproxy" <<END
#!$PWD/$venv/bin/python
import sys

from dataproxy.cli.main import main

sys.exit(main())
END
chmod +x "$venv/bin/dataproxy"
printf '%s\n' "$key" >"$venv/.installed"
