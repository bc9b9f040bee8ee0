#!/usr/bin/env bash
# Does `find` report the right load line? Runs searches, with several seeds, on servers whose memory use is known. To
# find the true line, tries each limit around the reported lines three times, in steps of 1 MiB, with the heap that was
# found. The true line is the smallest limit at and above which all trials passed. A reported line is right if it is
# within 3% of the true one and not below a limit that failed.
# Needs a quiet machine, for about an hour in all. LOADLINE names another binary to measure.
#   bench/find.sh [SEEDS [SUBJECT...]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seeds=${1:-10}
shift || true
[ -n "${LOADLINE:-}" ] || cargo build --profile dist
loadline=${LOADLINE:-$PWD/target/dist/loadline}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/classes"
javac --release 17 -d "$work/classes" java/subjects/loadline/subjects/{Appetite,Listener}.java

# How much memory each subject uses, and for what.
declare -A appetite=(
    [live]='live=40 churn=16'
    [direct]='direct=48 churn=4'
    [threads]='threads=200 churn=4'
    [churn]='live=8 churn=256'
)
truth_times=3
read -ra subjects <<<"${*:-live direct threads churn}"

load=(--rate 200 -d 2s --warmup 1s -c 8 --gc serial --cpus apart --quiet)
target=(--target 'p99<100ms' --target 'rate>=98%' --target 'failed==0')
server() {
    echo java -XX:TieredStopAtLevel=1 -cp "$work/classes" loadline.subjects.Appetite '{port}' ${appetite[$1]}
}
# field FILE EXPRESSION: evaluates the expression on a result; `d` is the document, `line` the line found.
field() {
    python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); line=d["find"]["line"] or {}
print(eval(sys.argv[2], {"d": d, "line": line}))' "$@"
}
most_common() { sort | uniq -c | sort -rn | awk 'NR==1 {$1=""; print substr($0, 2)}'; }

printf 'machine: %s cores, Linux %s, %s\n' "$(nproc)" "$(uname -r)" "$(java -version 2>&1 | head -n 1)"
"$loadline" doctor | grep read-ahead
printf 'command: bench/find.sh %s %s\n\n' "$seeds" "${subjects[*]}"
printf '%-8s %4s %9s %7s %8s  %s\n' subject seed 'line MiB' trials seconds 'cause and options'
for subject in "${subjects[@]}"; do
    for ((seed = 1; seed <= seeds; seed++)); do
        out="$work/$subject-$seed"
        # shellcheck disable=SC2046
        "$loadline" find "${load[@]}" "${target[@]}" --no-warm --headroom 0 --soak 0s --seed "$seed" --out "$out" --json -- $(server "$subject") \
            >"$out.json" || { printf '%-8s %4s exit code %s\n' "$subject" "$seed" "$?"; continue; }
        field "$out.json" '"%-8s %4s %9.1f %7d %8.0f  %s at %.1f MiB; %s" % ("'"$subject"'", '"$seed"', line["limit_bytes"]/2**20,
            d["find"]["trials"], d["find"]["seconds"], line["cause"], line["below_bytes"]/2**20, " ".join(d["find"]["options"]))'
    done
    # The true line, with the options that most searches found.
    read -ra options <<<"$(for f in "$work/$subject"-*.json; do
        field "$f" '" ".join("--jvm " + o for o in d["find"]["options"] if "Use" not in o)'
    done | most_common)"
    lines=$(for f in "$work/$subject"-*.json; do field "$f" 'line["limit_bytes"]/2**20'; done | sort -n)
    low=$(head -n 1 <<<"$lines")
    high=$(tail -n 1 <<<"$lines")
    printf '%-8s true line with %s: passes out of %s at each limit in MiB:' "$subject" "${options[*]}" "$truth_times"
    truth=
    for ((limit = $(python3 -c "print(int($low * 0.93))"); limit <= $(python3 -c "print(int($high * 1.04) + 1)"); limit++)); do
        # shellcheck disable=SC2046
        "$loadline" find "${load[@]}" "${target[@]}" --prove "${limit}m" --proofs "$truth_times" "${options[@]}" \
            --out "$work/truth-$subject-$limit" --json -- $(server "$subject") >"$work/truth.json" || true
        held=$(field "$work/truth.json" 'sum(t["probe"]["stage"] == "limit" and t["probe"]["verdict"] == "holds" for t in d["trials"])')
        printf ' %s:%s' "$limit" "$held"
        if [ "$held" != "$truth_times" ]; then truth=; elif [ -z "$truth" ]; then truth=$limit; fi
    done
    python3 - "$subject" "$truth" $lines <<'P'
import sys
subject, truth, lines = sys.argv[1], float(sys.argv[2]), [float(line) for line in sys.argv[3:]]
# The limit 1 MiB lower failed, so a smaller line is below a failing limit.
off = [line / truth - 1 for line in lines]
print(f"\n{subject:8} truth {truth:.0f} MiB, lines {min(lines):.1f} to {max(lines):.1f}, off by {min(off):+.1%} to {max(off):+.1%},"
      f" below a limit that failed: {sum(line < truth - 1 for line in lines)} of {len(lines)},"
      f" at most {max(lines) / min(lines) - 1:.1%} apart\n")
P
done
