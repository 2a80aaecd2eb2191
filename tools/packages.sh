#!/usr/bin/env bash
# packages.sh WHO PACKAGE...: installs Debian packages into the system.  Says the command before it runs it.  Without
# apt-get, or without the permission (root, or sudo without a password), says the command and fails.
#   DATAPROXY_NO_APT=1  never call apt-get
set -euo pipefail
who=$1; shift
say() { echo "$who: $*" >&2; }

root=""
[ "$(id -u)" = 0 ] || root="sudo "
install="${root}apt-get install -y --no-install-recommends $*"
if ! command -v apt-get >/dev/null; then
    say "these Debian packages, or what your system calls them, are missing: $*"
    exit 1
fi
if [ -n "${DATAPROXY_NO_APT:-}" ]; then
    say "system packages are missing, and DATAPROXY_NO_APT forbids to install them; run this and call make again:  $install"
    exit 1
fi
if [ -n "$root" ] && ! sudo -n true 2>/dev/null; then
    say "system packages are missing, and this user may not install them; run this and call make again:  $install"
    exit 1
fi
say "installing into the system:  ${root}apt-get update && $install"
export DEBIAN_FRONTEND=noninteractive
run=(); [ -z "$root" ] || run=(sudo -n env DEBIAN_FRONTEND=noninteractive)
if ! { "${run[@]}" apt-get -q update && "${run[@]}" apt-get -q install -y --no-install-recommends "$@"; } >&2; then
    say "apt-get failed; repair it, and call make again, or run:  $install"
    exit 1
fi
