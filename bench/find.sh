#!/usr/bin/env bash
# Is the load line found? Servers whose appetite is known are searched with several seeds, and the truth beside it is
# every limit in steps of 1 MiB around the line, so often each, with the heap that was found. A line is right when it is
# within 3 % of the smallest limit from which on all of them held, and not below one that failed.
# Nothing else may run beside it: about an hour and a half for all.
#   bench/find.sh [SEEDS [SUBJECT...]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seeds=${1:-10}
shift || true
cargo build --release
loadline=$PWD/target/release/loadline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/classes"
javac --release 17 -d "$work/classes" java/subjects/loadline/subjects/{Appetite,Listener}.java

# What each subject holds.
declare -A appetite=(
    [live]='live=40 churn=16'
    [direct]='direct=48 churn=4'
    [threads]='threads=200 churn=4'
    [churn]='live=8 churn=256'
)
# The truth is asked so often at each limit.
truth_times=3
subjects=("${@:-live direct threads churn}")
read -ra subjects <<<"${subjects[*]}"

load=(--rate 200 -d 4s --warmup 2s -c 8 --gc serial --cpus apart --quiet)
target=(--target 'p99<100ms' --target 'rate>=98%' --target 'failed==0')
server() {
    echo java -XX:TieredStopAtLevel=1 -cp "$work/classes" loadline.subjects.Appetite '{port}' ${appetite[$1]}
}
field() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"d": d}))' "$@"; }

printf 'machine: %s cores, Linux %s, %s\n' "$(nproc)" "$(uname -r)" "$(java -version 2>&1 | head -n 1)"
printf 'command: bench/find.sh %s %s\n\n' "$seeds" "${subjects[*]}"
printf '%-8s %4s %9s %8s %7s %8s  %s\n' subject seed 'line MiB' 'heap MiB' trials seconds broke
for subject in "${subjects[@]}"; do
    for ((seed = 1; seed <= seeds; seed++)); do
        out="$work/$subject-$seed"
        # shellcheck disable=SC2046
        "$loadline" find "${load[@]}" "${target[@]}" --no-warm --seed "$seed" --out "$out" --json -- $(server "$subject") \
            >"$out.json" || { printf '%-8s %4s exit code %s\n' "$subject" "$seed" "$?"; continue; }
        field "$out.json" '"%-8s %4s %9.1f %8.0f %7d %8.0f  %s" % ("'"$subject"'", '"$seed"', d["find"]["line"]["limit_bytes"]/2**20,
            (d["find"]["line"]["heap_bytes"] or 0)/2**20, d["find"]["trials"], d["find"]["seconds"], d["find"]["line"]["broke"])'
    done
    # The truth: with the heap that most searches found.
    heap=$(for f in "$work/$subject"-*.json; do field "$f" 'd["find"]["line"]["heap_bytes"]>>20'; done | sort -n | uniq -c | sort -rn | awk 'NR==1 {print $2}')
    line=$(for f in "$work/$subject"-*.json; do field "$f" 'd["find"]["line"]["limit_bytes"]>>20'; done | sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}')
    printf '%-8s truth with a heap of %s MiB, held of %s at each limit:' "$subject" "$heap" "$truth_times"
    for ((limit = line - line / 12; limit <= line + line / 20; limit++)); do
        held=0
        for ((time = 1; time <= truth_times; time++)); do
            # shellcheck disable=SC2046
            if "$loadline" find "${load[@]}" "${target[@]}" --prove "${limit}m" --proofs 1 --jvm "-Xmx${heap}m" --out "$work/truth-$subject-$limit-$time" -- $(server "$subject") \
                >/dev/null 2>&1; then held=$((held + 1)); fi
        done
        printf ' %s:%s' "$limit" "$held"
    done
    printf '\n'
done
