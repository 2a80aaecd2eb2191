#!/bin/sh
# Write benchmarks/profiles/*.txt: where the time of the client's lines that miss a goal goes, by library and symbol.
set -eu
cd "$(dirname "$0")/.."
mkdir -p benchmarks/profiles

save() { # NAME, then arguments of profile.sh
    name=$1
    shift
    echo "$name: $*"
    { echo "# ${CLIENT:+CLIENT=$CLIENT }benchmarks/profile.sh $*"; benchmarks/profile.sh "$@" 2>/dev/null; } |
        grep -v 'perf report -i' | sed 's/ *$//' >"benchmarks/profiles/$name.txt"
}

save send_nowait send_nowait
save stream_send_nowait stream_nowait
save send_batch_1k send_batch --body 1024
save send_batch_10k send_batch --body 10240
save send_batch_100k send_batch --body 102400
save send_batch_1k_snappy send_batch --body 1024 --text --set compression=snappy
save on_delivery send_nowait --told
CLIENT=spread
export CLIENT
save streams_send_nowait send_nowait --streams 10000
save streams_send_arrow send_arrow --streams 10000
CLIENT=openloop
save open_loop - --load 0.5
