#!/usr/bin/env bash
# Does the result of `tune` hold up on a warm server? Weighs each server, both unchanged and tuned, after MINUTES under
# its load. The two run at the same time, so conditions are the same for both; keep the machine quiet.
# LOADLINE names another binary to measure.
#   bench/tune-long.sh MINUTES SCENARIO=ARCHIVE...
set -euo pipefail
minutes=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -n "${LOADLINE:-}" ] || (cd "$root" && cargo build --profile dist)
loadline=${LOADLINE:-$root/target/dist/loadline}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf 'machine: %s cores, Linux %s\n' "$(nproc)" "$(uname -r)"
printf 'command: bench/tune-long.sh %s, one trial each after %s min of load, both at the same time\n\n' "$minutes" "$minutes"
printf '%-12s %-8s %10s %10s %8s %8s  %s\n' server as MiB p99_ms us/req failed options
for pair in "$@"; do
    scenario=${pair%%=*}
    # One option per line: JVM options verbatim, variables as NAME=VALUE.
    "$loadline" report --json "${pair#*=}" | python3 -c \
        'import json, sys; print("\n".join(json.load(sys.stdin)["tune"]["answer"]))' >"$work/answer"
    options=()
    while read -r word; do
        case $word in
            '') ;;
            -*) options+=(--jvm "$word") ;;
            *) options+=(--env "$word") ;;
        esac
    done <"$work/answer"
    name=$(basename "$scenario" .yaml)
    weigh() { # weigh AS OPTION...
        "$loadline" run "$scenario" --warmup "$((minutes * 60))s" --trials 1 --json --quiet --out "$work/$name-$1" \
            "${@:2}" >"$work/$1.json" || true
    }
    weigh as-is &
    weigh answer "${options[@]}" &
    wait
    for as in as-is answer; do
        given=()
        [ "$as" = as-is ] || given=("${options[@]}")
        python3 - "$work/$as.json" "$name" "$as" "${given[*]}" <<'PYTHON'
import json, sys
trial = json.load(open(sys.argv[1]))["trials"][0]
mark = {m["name"]: m for m in trial["marks"]}.get("loaded", {})
phase = [p for p in trial["phases"] if p["name"] != "warmup" and p["model"] != "idle"][-1]
split = phase["subject"].get("cpu_by_purpose") or {}
cpu = (split.get("app_s", 0) + split.get("gc_s", 0)) / max(phase["ok"], 1) * 1e6
times = phase.get("response_ms") or phase["service_ms"]
failed = sum(p["requests"] - p["ok"] for p in trial["phases"])
print("%-12s %-8s %10.1f %10.2f %8.0f %8d  %s" % (sys.argv[2], sys.argv[3], mark.get("rss_bytes", 0) / 2**20, times["p99"],
    cpu, failed, sys.argv[4].replace("--jvm ", "").replace("--env ", "")))
PYTHON
    done
done
