#!/bin/sh
# Print where one way of sending spends its time: top symbols of the client process by perf.
#
#   benchmarks/profile.sh send_nowait [extra arguments of benchmarks.clients.ours]
#   FREQUENCY=4999 SECONDS_RUN=5 benchmarks/profile.sh send_batch --body 1024
#   CLIENT=spread benchmarks/profile.sh send_nowait --streams 10000
#   CLIENT=openloop benchmarks/profile.sh - --load 0.5
#
# The C sink runs on the second core. perf.data and the report go to build/bench.
set -eu
cd "$(dirname "$0")/.."
mode=${1:?which mode? one of send_nowait stream_nowait send_delivery send_await send_batch send_numpy send_arrow}
shift
python=${PYTHON:-python3}
out=build/bench
command -v perf >/dev/null || { echo "perf is missing: apt-get install linux-perf" >&2; exit 1; }
"$python" -c 'from benchmarks.floors import build; build()'
fifo=$out/sink.$$
mkfifo "$fifo"
taskset -c 1 "$out/sink" >"$fifo" &
sink=$!
trap 'kill "$sink" 2>/dev/null || true; rm -f "$fifo"' EXIT
trap 'exit 1' HUP INT TERM PIPE
read -r line <"$fifo"
port=$(printf '%s' "$line" | tr -dc 0-9)
[ "$mode" = - ] || set -- --mode "$mode" "$@"
client=${CLIENT:-ours}
[ "$client" = spread ] || set -- "$@" --seconds "${SECONDS_RUN:-3}"
taskset -c 0 perf record -q -F "${FREQUENCY:-2999}" -g -o "$out/perf.data" -- \
    "$python" -m "benchmarks.clients.$client" --port "$port" "$@"
echo "--- by library"
perf report -q -i "$out/perf.data" --no-children --sort dso -g none --percent-limit 1 2>/dev/null | cut -c1-100
echo "--- by symbol"
perf report -q -i "$out/perf.data" --no-children --sort dso,symbol -g none --percent-limit 0.7 2>/dev/null | cut -c1-140
echo "--- call graph: perf report -i $out/perf.data"
