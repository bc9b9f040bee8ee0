#!/usr/bin/env bash
# How much does it cost to merge a fleet's results? Merges a plan of 300 services, their results, and the archives of
# simulated searches several times. Prints wall time and peak RSS, for the table alone and with every output file. The
# documented bounds are 2 s and 64 MiB.
#   bench/fleet.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-5}
[ -n "${LOADLINE:-}" ] || cargo build --profile dist
loadline=${LOADLINE:-$PWD/target/dist/loadline}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LOADLINE_FLEET=$work cargo bench --quiet --bench fleet >"$work/made" 2>&1 ||
    { cat "$work/made"; exit 1; }
printf 'machine: %s cores, Linux %s\n' "$(nproc)" "$(uname -r)"
printf 'command: bench/fleet.sh %s\n' "$rounds"
results=$(find "$work/results" -name result.json | wc -l)
trials=$(find "$work/results" -mindepth 3 -maxdepth 3 -type d | wc -l)
printf 'fleet: %s results of %s KiB in total, %s trials in archives of %s MiB\n\n' "$results" \
    "$(cat "$work"/results/*/result.json | wc -c | awk '{ printf "%.0f", $1 / 1024 }')" "$trials" \
    "$(du -sm "$work/results" | cut -f 1)"
cat >"$work/measure.py" <<'PYTHON'
import os, sys, time
# Prints a child's wall time and peak RSS. Until it calls exec, the child has this program's RSS, which must be small.
start = time.monotonic()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
_, status, used = os.wait4(child, 0)
print(f"{time.monotonic() - start:.3f} {used.ru_maxrss / 1024:.1f} {os.waitstatus_to_exitcode(status)}")
PYTHON
merge() {
    local name=$1
    shift
    for ((round = 0; round < rounds; round++)); do
        python3 -S -E "$work/measure.py" "$loadline" merge "$work/results" "$@"
    done | sort -n | awk -v name="$name" '{ s[NR] = $1; if ($2 > rss) rss = $2; code = $3 } END {
        printf "%-26s median %.3f s, maximum %.3f s, peak RSS %.1f MiB, exit code %d\n", name, s[int((NR + 1) / 2)], s[NR], rss, code }'
}
merge 'the table'
merge 'the document' --json "$work/fleet.json"
merge 'every file' --json "$work/fleet.json" --html "$work/f.html" --markdown "$work/f.md" --csv "$work/f.csv" \
    --openmetrics "$work/f.txt"
