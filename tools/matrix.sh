#!/usr/bin/env bash
# Every CPython >= 3.11 of this machine builds the wheel and runs the unit and loopback tests; every supported PySpark runs
# tests/spark on the oldest of them (PySpark 3.5 has no data sources: foreachPartition alone).  Prints one line for each.
#   matrix.sh spark  the PySpark versions alone
#   matrix.sh chaos  make spark-chaos on each PySpark that has data sources, with KILLS (20) kills
#   PYTHONS  interpreters, instead of those found     SPARKS  PySpark versions, instead of requirements/spark.matrix
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p .cache/matrix

# Prints "VERSION PATH", one interpreter for each minor version.
interpreters() {
    local candidate version
    { compgen -c python3. | grep -xE 'python3\.[0-9]+' | sort -u | while read -r name; do type -ap "$name"; done
      ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3 /usr/local/bin/python3 2>/dev/null
      echo "${PYTHON:-python3}"
    } | while read -r candidate; do
        version=$("$candidate" -c 'import sys
if sys.implementation.name == "cpython" and sys.version_info >= (3, 11): print("%d.%d" % sys.version_info[:2], sys.executable)' \
            2>/dev/null) && [ -n "$version" ] && echo "$version"
    done | sort -t. -k1,1n -k2,2n -s | awk '!seen[$1]++'
}

failed=0
report() {  # NAME STATUS LOG
    if [ "$2" = 0 ]; then
        echo "matrix: $1: $(grep -E '[0-9]+ passed|^spark chaos: ' "$3" | tail -n 1)"
    else
        failed=1; tail -n 40 "$3" >&2; echo "matrix: $1: FAILED, see $3"
    fi
}

found=$(if [ -n "${PYTHONS:-}" ]; then for p in $PYTHONS; do "$p" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)'; done; else interpreters; fi)
[ -n "$found" ] || { echo "matrix: no CPython 3.11 or newer found" >&2; exit 1; }
[ -n "${1:-}" ] || while read -r version path; do
    log=.cache/matrix/python-$version.log
    (PYTHON=$path VENV=.venv-$version tools/setup.sh && VENV=.venv-$version T="tests/unit tests/loopback" tools/wheel.sh) >"$log" 2>&1 </dev/null
    report "Python $version ($path)" $? "$log"
done <<<"$found"

oldest=$(head -n 1 <<<"$found" | cut -d' ' -f2)
for spark in ${SPARKS:-$(cat requirements/spark.matrix)}; do
    log=.cache/matrix/spark-$spark.log
    venv=.venv-spark-$spark
    tests=tests/spark
    only=()
    case $spark in
        3.*) tests=tests/spark/test_foreach.py ;;
        4.0.*) # a format that was found cannot be registered once more
            only=(-k "not connect and not every_stage and not with_a_restart and not test_counters and not test_block") ;;
        4.[12].*) only=(-k "not connect") ;; # older Connect clients want older protobuf packages
    esac
    case $spark in # their accumulator servers leave a socket to the garbage collector
        3.*|4.[01].*) only+=(-W ignore::pytest.PytestUnraisableExceptionWarning) ;;
    esac
    if [ "${1:-}" = chaos ]; then
        [[ $spark != 3.* ]] || continue
        log=.cache/matrix/chaos-$spark.log
        (PYTHON=$oldest VENV=$venv SPARK=$spark tools/setup.sh && "$venv/bin/python" tools/build.py &&
            "$venv/bin/python" -m tests.campaigns.spark_chaos --kills "${KILLS:-20}") >"$log" 2>&1 </dev/null
        report "PySpark $spark" $? "$log"
        continue
    fi
    (PYTHON=$oldest VENV=$venv SPARK=$spark tools/setup.sh && "$venv/bin/python" tools/build.py &&
        "$venv/bin/python" -m pytest -q "${only[@]}" "$tests") >"$log" 2>&1 </dev/null
    report "PySpark $spark" $? "$log"
done
exit $failed
