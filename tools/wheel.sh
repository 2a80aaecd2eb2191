#!/usr/bin/env bash
# sdist -> wheel from the sdist, which carries its libraries, and that of inlong_dataproxy -> a fresh environment -> README
# and introduction in it -> the tests, run from outside the checkout.
#   wheel.sh build  leaves sdist and wheels in dist/ and stops
#   T      tests to run, relative to the checkout, with spaces or commas between them
#   WHEEL  portable: for glibc 2.26 and newer, both libraries from their sources (tools/portable.py), the default on x86-64
#          machine: with this machine's compiler and libraries, for its glibc and newer
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD venv=$PWD/${VENV:-.venv}
kind=${WHEEL:-$([ "$(uname -m)" = x86_64 ] && echo portable || echo machine)}
case $kind in portable | machine) ;; *) echo "wheel: WHEEL=$kind is unknown; choose portable or machine" >&2; exit 1 ;; esac
IFS=", " read -ra tests <<<"${T:-tests/unit tests/loopback tests/process}"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
export DATAPROXY_TRANSLATIONS=${DATAPROXY_TRANSLATIONS:-$root/.cache/cython} # of equal sources, by whatever build
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

say() { echo "wheel: $*" >&2; }
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; say "failed: $*"; exit 1; }; }

say "sdist"
# A copy, since setuptools writes its metadata beside setup.py.
mkdir "$work/source" "$work/tests"
git ls-files -z --cached --others --exclude-standard 2>/dev/null | xargs -0 -I{} cp --parents {} "$work/source" 2>/dev/null ||
    cp -r . "$work/source"
rm -rf dist; mkdir dist
quiet "$venv/bin/python" -m build --no-isolation --sdist --outdir "$root/dist" "$work/source"
mkdir "$work/unpacked"; tar -xzf dist/*.tar.gz -C "$work/unpacked" --strip-components=1

say "wheel from the sdist, $kind"
with=() newest=()
if [ "$kind" = portable ]; then
    "$venv/bin/python" tools/portable.py "$work/libraries" >"$work/environment"
    mapfile -t with <"$work/environment"
    newest=(2.26)
fi
quiet env DATAPROXY_HUB=yes "${with[@]}" "$venv/bin/python" -m build --no-isolation --wheel --outdir "$work/plain" "$work/unpacked"
quiet env "${with[@]}" "$venv/bin/python" tools/graft.py "$work"/plain/*.whl "$root/dist" "${newest[@]}"
wheel=$(echo dist/dataproxy_sdk-*.whl)
listing=$("$venv/bin/python" -m zipfile -l "$wheel")
if grep -E '\.(pyx|pxd|c|h|html) ' <<<"$listing"; then say "the wheel holds sources"; exit 1; fi
for part in py.typed .pyi pyspark_dataproxy/__init__.py pyspark_tubemq/__init__.py .so; do
    grep -qF "$part" <<<"$listing" || { say "the wheel holds no $part"; exit 1; }
done

say "wheel of inlong_dataproxy"
quiet "$venv/bin/python" -m build --no-isolation --wheel --outdir "$root/dist" "$work/unpacked/inlong_dataproxy"

[ "${1:-}" != build ] || { say "ok: $(ls dist | xargs)"; exit 0; }

say "fresh environment"
base=$("$venv/bin/python" -c 'import sys; print(sys._base_executable)')
"$base" -m venv "$work/venv"
quiet "$work/venv/bin/python" -m pip install -q "$wheel"
plain=$("$work/venv/bin/python" -m pip list --format=freeze | grep -vE '^(pip|setuptools)==' | cut -d= -f1 | sort | xargs)
[ "$plain" = "dataproxy-sdk msgspec urllib3" ] || { say "a plain install brought: $plain"; exit 1; }
(cd "$work/tests" && "$work/venv/bin/python" -c 'import dataproxy; print("wheel: plain install imports", dataproxy.__version__)')
say "README and introduction, as a new user plays them"
"$base" tools/first_hour.py "$wheel" --venv "$work/venv" >&2
quiet "$work/venv/bin/python" -m pip install -q --no-deps -r requirements/dev.lock
quiet "$work/venv/bin/python" -m pip install -q --no-deps dist/dataproxy_sdk_inlong-*.whl

say "tests from $work/tests"
cp -r tests pyproject.toml conf docs README.md CONFIGURATION.md examples benchmarks "$work/tests" 2>/dev/null || true
cd "$work/tests"
found=(); for test in "${tests[@]}"; do [ ! -e "$test" ] || found+=("$test"); done
"$work/venv/bin/python" -m pytest -q -p no:cacheprovider -n "${WORKERS:-2}" --dist loadfile "${found[@]}"
"$work/venv/bin/python" -c 'import dataproxy, sys; sys.exit(not dataproxy.__file__.startswith(sys.prefix))'
"$work/venv/bin/dataproxy" --help >/dev/null
say "ok: $(cd "$root" && ls dist | xargs)"
