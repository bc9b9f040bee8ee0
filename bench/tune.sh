#!/usr/bin/env bash
# Does `tune` find the fix? Tunes servers with a known problem, using several seeds, and compares the result with the
# right one. Needs a quiet machine: about three minutes per run. LOADLINE names another binary to measure.
#   bench/tune.sh [SEEDS [SUBJECT...]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seeds=${1:-10}
shift || true
[ -n "${LOADLINE:-}" ] || cargo build --profile dist
loadline=${LOADLINE:-$PWD/target/dist/loadline}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/classes"
javac -nowarn --release 17 -d "$work/classes" java/subjects/loadline/subjects/{Appetite,Curable,Listener}.java 2>/dev/null

# For each subject: class and arguments, JVM options, Loadline options, and a test of the result (`a` is the set of
# settings, `o` the outcome).
declare -A program=(
    [arenas]='Curable {port} arenas=96' [free]='Appetite {port} live=8 churn=64' [g1]='Appetite {port} live=2 churn=8'
    [threads]='Appetite {port} threads=200 churn=1' [hurts]='Curable {port} arenas=96' [breaks]='Curable {port} direct=48'
    [nothing]='Appetite {port} live=2'
)
declare -A jvm=(
    [arenas]='-Xmx32m' [free]='' [g1]='-Xmx16m' [threads]='-Xmx32m' [hurts]='-Xmx96m' [breaks]='-Xmx96m' [nothing]='-Xmx16m'
)
declare -A options=(
    [arenas]='' [free]='' [g1]='--cpus all' [threads]='--skip compiler --skip cds' [hurts]='--try -Dhurts=48'
    [breaks]='--try -Dhelps=true --try -Dbreaks=400' [nothing]='--skip compiler --skip cds'
)
declare -A right=(
    [arenas]='o == "proved" and a & {"MALLOC_ARENA_MAX=1", "-XX:TrimNativeHeapInterval=2000", "MALLOC_TRIM_THRESHOLD_=131072"}'
    [free]='o == "proved" and any(w.startswith("-Xmx") for w in a)'
    [g1]='o == "proved" and "-XX:+UseSerialGC" in a'
    [threads]='o == "nothing_proved"'
    [hurts]='o == "proved" and "-Dhurts=48" not in a and fate["try.1"] == "harmful"'
    [breaks]='o == "proved" and "-Dhelps=true" in a and "-Dbreaks=400" not in a'
    [nothing]='o == "nothing_proved"'
)
read -ra subjects <<<"${*:-arenas free g1 threads hurts breaks nothing}"

printf 'machine: %s cores, Linux %s, %s\n' "$(nproc)" "$(uname -r)" "$(java -version 2>&1 | head -n 1)"
printf 'command: bench/tune.sh %s %s\n\n' "$seeds" "${subjects[*]}"
printf '%-8s %4s %-5s %-14s %7s %8s %9s  %s\n' subject seed right outcome trials seconds 'saved MiB' answer
for subject in "${subjects[@]}"; do
    for ((seed = 1; seed <= seeds; seed++)); do
        out="$work/$subject-$seed"
        # shellcheck disable=SC2086
        "$loadline" tune --rate 300 -d 3s --warmup 2s --rest 1s -c 8 --target 'p99<200ms' --target 'rate>=98%' \
            --target 'failed==0' --seed "$seed" --out "$out" --json --quiet --url 'http://127.0.0.1:{port}/' \
            ${options[$subject]} -- java ${jvm[$subject]} -cp "$work/classes" loadline.subjects.${program[$subject]} \
            >"$out.json" 2>"$out.err" || true
        RIGHT="${right[$subject]}" python3 - "$out.json" "$subject" "$seed" <<'PYTHON'
import json, os, sys
t = json.load(open(sys.argv[1]))["tune"]
names = dict(o=t["outcome"], a=set(t["answer"]), fate={r["id"]: r["fate"] for r in t["remedies"]}, any=any)
saved = -t["gains"][0]["difference"] / 2**20 if t["gains"] else 0
print("%-8s %4s %-5s %-14s %7d %8.0f %9.1f  %s" % (sys.argv[2], sys.argv[3], "yes" if eval(os.environ["RIGHT"], names) else "NO",
    t["outcome"], t["trials"], t["seconds"], saved, " ".join(t["answer"])))
PYTHON
    done
done
