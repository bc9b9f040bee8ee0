#!/usr/bin/env bash
# How much does watching cost, and how often is its verdict wrong? First watches fifty idle JVMs for a while, and prints
# Loadline's CPU time and RSS, the JVMs' RSS with and without it, and the size of the histories. Then runs a soak of
# simulated JVMs with real histories, and a search among ten thousand processes. Finally, calibrates the verdict on
# simulated JVM lifetimes and compares it with common trend tests. With LOADLINE_ARCHIVES (directories of archives,
# separated as in PATH), also does so on real trials stretched in time.
# Needs a quiet machine.
#   bench/watch.sh [JVMS] [SECONDS] [LIVES]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jvms=${1:-50} seconds=${2:-300} lives=${3:-100}
[ -n "${LOADLINE:-}" ] || cargo build --profile dist
loadline=${LOADLINE:-$PWD/target/dist/loadline}
work=$(mktemp -d)
pids=() watch=
stop() { for pid in "${pids[@]}" $watch; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"; }
trap stop EXIT
mkdir "$work/classes"
javac -nowarn --release 17 -d "$work/classes" java/subjects/loadline/subjects/{Leaks,ClassFiles}.java
printf 'machine: %s cores, Linux %s, %s\n' "$(nproc)" "$(uname -r)" "$(java -version 2>&1 | head -n 1)"
printf 'command: bench/watch.sh %s %s %s\n\n' "$jvms" "$seconds" "$lives"
mkfifo "$work/open"
sleep infinity >"$work/open" & pids+=($!)
for ((n = 0; n < jvms; n++)); do
    java -Xmx16m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$work/classes" loadline.subjects.Leaks idle rate=0 \
        <"$work/open" >/dev/null & pids+=($!)
done
sleep 20
rss() { local sum=0 kib; for pid in "${pids[@]:1}"; do kib=$(awk '/^VmRSS/{print $2}' "/proc/$pid/status"); sum=$((sum + kib)); done; echo "$sum"; }
before=$(rss)
"$loadline" watch "${pids[@]:1}" --history "$work/history" --account never --quiet & watch=$!
sleep 30 # Opening the JVMs must not count as sampling.
ticks() { awk '{print $14 + $15}' "/proc/$watch/stat"; }
from=$(ticks)
sleep "$seconds"
used=$(($(ticks) - from)) held=$(awk '/^VmRSS/{print $2}' "/proc/$watch/status") peak=$(awk '/^VmHWM/{print $2}' "/proc/$watch/status")
after=$(rss)
kill -INT "$watch"
wait "$watch"
watch=
awk -v u="$used" -v hz="$(getconf CLK_TCK)" -v s="$seconds" -v n="$jvms" -v h="$held" -v p="$peak" 'BEGIN {
    printf "%d JVMs every 10 s: %.2f %% of a core, RSS %.1f MiB (peak %.1f)\n", n, 100 * u / hz / s, h / 1024, p / 1024 }'
awk -v b="$before" -v a="$after" -v n="$jvms" 'BEGIN { printf "RSS of a JVM: %.1f KiB before, %.1f KiB after, on average\n", b / n, a / n }'
du -k "$work"/history/*.history | awk '{ sum += $1; if ($1 > most) most = $1 } END { printf "histories: %.0f KiB each so far, at most %d KiB\n", sum / NR, most }'
printf '\n'
# A million samples of fifty simulated JVMs with real histories, then a search among ten thousand processes.
cargo bench --bench watch 2>/dev/null | grep '^|'
cargo bench --package loadline-jvm --bench find 2>/dev/null | grep '^|'
LOADLINE_LIVES=$lives cargo bench --package loadline-stats --bench calibration 2>/dev/null | grep '^|\|^$'
