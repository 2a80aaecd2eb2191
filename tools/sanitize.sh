#!/usr/bin/env bash
# sanitize.sh asan|tsan TESTS...: builds a copy of the checkout with the sanitizer and runs these tests there, but for
# the files in LEAVE.  PART=1/2 runs every second file of them, PART=0/2 the others; PART=0/3, 1/3, 2/3 a third each.
# Fails when a test fails or when the sanitizer wrote one report, be it of a process that a test started.
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
    # Every process looks for leaks at its end; what the interpreter and other packages keep is put aside below.
    environment+=(
        LD_PRELOAD="$(runtime libasan.so) $(runtime libubsan.so) $(runtime libstdc++.so)"
        ASAN_OPTIONS="detect_leaks=1:log_path=$reports/asan:allocator_may_return_null=1"
        LSAN_OPTIONS="exitcode=0"
        UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/ubsan"
    ) ;;
tsan)
    # Arrow's own allocator is not built for this sanitizer, which sees races in it when threads end.
    environment+=(ARROW_DEFAULT_MEMORY_POOL=system)
    # The shadow memory needs addresses where the kernel's randomisation leaves room.
    if setarch -R true 2>/dev/null; then launch=(setarch -R); fi
    environment+=(
        LD_PRELOAD="$(runtime libtsan.so)"
        TSAN_OPTIONS="halt_on_error=0:exitcode=0:history_size=4:second_deadlock_stack=1:log_path=$reports/tsan:suppressions=$tree/tests/sanitizer/tsan.supp"
    ) ;;
*) echo "sanitize: unknown profile $profile" >&2; exit 2 ;;
esac

# Removes leak reports in which no block was allocated by the core.  The interpreter uses the memory of a float again for
# the next one, whoever makes that: the stack tells nothing of the float that was left.
leave_out_leaks_of_others() {
    local report
    for report in "$reports"/*; do # either runtime may be the one that opens the file
        grep -qs 'ERROR: LeakSanitizer' "$report" || continue
        ! grep -qE 'ERROR: AddressSanitizer|runtime error:' "$report" || continue
        [ -n "$(awk -v RS= '/leak of/ && /dataproxy\/_core\// && !/#1 .* in PyFloat_FromDouble/' "$report")" ] || rm "$report"
    done
}

found=()
for test in "$@"; do [ ! -e "${test%%::*}" ] || found+=("$test"); done
if [ -n "${PART:-}" ]; then
    # By name, since pytest heeds --ignore only for files that it finds in a folder.
    mapfile -t found < <(find "${found[@]}" -name 'test_*.py' | grep -vxF "$(printf '%s\n' ${LEAVE:-none})" |
        LC_ALL=C sort -u | awk -v n="${PART%/*}" -v of="${PART#*/}" 'NR % of == n')
    [ ${#found[@]} != 0 ] || { echo "sanitize: PART=$PART leaves no file" >&2; exit 2; }
    found+=(tests/sanitizer)
fi
for test in ${LEAVE:-}; do found+=("--ignore=$test"); done
status=0
"${launch[@]}" env -u DATAPROXY_SIM_SEEDS "${environment[@]}" "$venv/bin/python" -m pytest -p no:cacheprovider --timeout=600 -q -n "${WORKERS:-2}" --dist loadfile "${found[@]}" || status=$?
leave_out_leaks_of_others
count=$(find "$reports" -type f -size +0 | wc -l)
if [ "$count" != 0 ]; then
    find "$reports" -type f -size +0 -print -exec head -n 60 {} \; >&2
    echo "sanitize: $profile wrote reports of $count process(es), see $reports" >&2
    exit 1
fi
[ $status = 0 ] || exit "$status"
echo "sanitize: $profile: 0 reports"
