#!/usr/bin/env bash
# sanitize.sh asan|tsan TESTS...: builds a copy of the checkout with the sanitizer and runs these tests there.
# Fails when a test fails or when the sanitizer wrote one report.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=$1; shift
venv=$PWD/${VENV:-.venv} cc=${CC:-gcc} cc=${cc#ccache }
tree=$("$venv/bin/python" tools/build.py "$profile")
cd "$tree"
reports=$tree/build/reports
rm -rf "$reports"; mkdir -p "$reports"

runtime() { "${cc%% *}" -print-file-name="$1"; }
environment=(
    PYTHONPATH="$tree" PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1
    DATAPROXY_SANITIZER="$profile" DATAPROXY_HYPOTHESIS=short
)
launch=()
case $profile in
asan)
    # libsnappy is C++: without libstdc++ the first throw would end inside the sanitizer.
    # Leak detection would list what the interpreter keeps until its end; the suite counts live objects itself.
    environment+=(
        LD_PRELOAD="$(runtime libasan.so) $(runtime libubsan.so) $(runtime libstdc++.so)"
        ASAN_OPTIONS="detect_leaks=0:log_path=$reports/asan:allocator_may_return_null=1"
        UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/ubsan"
    ) ;;
tsan)
    # The shadow memory needs addresses where the kernel's randomisation leaves room.
    if setarch -R true 2>/dev/null; then launch=(setarch -R); fi
    environment+=(
        LD_PRELOAD="$(runtime libtsan.so)"
        TSAN_OPTIONS="halt_on_error=0:exitcode=0:history_size=4:second_deadlock_stack=1:log_path=$reports/tsan:suppressions=$tree/tests/sanitizer/tsan.supp"
    ) ;;
*) echo "sanitize: unknown profile $profile" >&2; exit 2 ;;
esac

found=()
for test in "$@"; do [ ! -e "${test%%::*}" ] || found+=("$test"); done
status=0
"${launch[@]}" env "${environment[@]}" "$venv/bin/python" -m pytest -p no:cacheprovider --timeout=600 -q "${found[@]}" || status=$?
count=$(find "$reports" -type f -size +0 | wc -l)
if [ "$count" != 0 ]; then
    find "$reports" -type f -size +0 -print -exec head -n 60 {} \; >&2
    echo "sanitize: $profile wrote reports of $count process(es), see $reports" >&2
    exit 1
fi
[ $status = 0 ] || exit "$status"
echo "sanitize: $profile: 0 reports"
