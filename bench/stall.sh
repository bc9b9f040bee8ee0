#!/usr/bin/env bash
# Checks Loadline's open model against known results: the times of a stalling server, Loadline's own lag, and overload.
#
#   bench/stall.sh [CASE…]      default: all, about a minute
#
# stall   500/s for 20 s over 25 connections to a server that stalls for 1 s in every 5
# lag     5,000/s for 10 s over 100 connections: how late requests start because of the generator
# flood   100,000/s for 10 s over 10,000 connections, more than the server can handle: every request is accounted for
#
# SECONDS_MAX shortens lag and flood. SERVER_CPU, LOAD_CPU, and LOADLINE are as in load.sh.
# Stops only processes it started. Prints Markdown to stdout. Exits with 1 if a bound is missed.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=bench/nginx.sh
source "$root/bench/nginx.sh"

cases=("$@")
((${#cases[@]})) || cases=(stall lag flood)
seconds=${SECONDS_MAX:-10}
missed=0

# within NAME VALUE MINIMUM MAXIMUM: prints one line that shows whether the value is in range.
within() {
    local verdict=yes
    awk -v v="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(v != "-" && v >= a && v <= b) }' || verdict='**no**'
    [[ $verdict == yes ]] || missed=1
    echo "| $1 | $2 | $3 to $4 | $verdict |"
}

# load RATE SECONDS CONNECTIONS: runs the open model, and puts its output in $work/out.
# Exit code 1 would mean a missed threshold, but none is set, so every code other than 0 is an error.
load() {
    taskset -c "$load_cpu" "$loadline" load "http://127.0.0.1:$port/12" --rate "$1" -d "$2s" -c "$3" --json --quiet \
        >"$work/out" 2>"$work/err" &
    tool=$!
    wait "$tool" || { echo "error: exit code $?: $(tail -n 5 "$work/err")" >&2 && exit 1; }
    tool=''
}

# Stops the worker for a second at a time, like a GC pause: the kernel still accepts and buffers, but nothing responds.
silent_1_in_5() {
    local worker
    worker=$(cat "/proc/$server/task/$server/children")
    for _ in 1 2 3 4; do
        sleep 2
        # shellcheck disable=SC2086
        kill -STOP $worker
        sleep 1
        # shellcheck disable=SC2086
        kill -CONT $worker
        sleep 2
    done
}

stall() {
    silent_1_in_5 &
    local stalls=$!
    load 500 20 25
    wait "$stalls"
    read -r requests ok queued p50 p90 p99 max lag < <(of_loadline requests ok queue.requests response_ms.p50 \
        response_ms.p90 response_ms.p99 response_ms.max generator.lag_ms_p99 <"$work/out")
    within 'requests' "$requests" 10000 10000
    within 'correct responses' "$ok" 10000 10000
    within 'p50 ms' "$p50" 0 1
    within 'p90 ms' "$p90" 485 515
    within 'p99 ms' "$p99" 935 965
    within 'max ms' "$max" 1000 1050
    echo "| waited for a connection | $queued | | |"
    echo "| lag p99 ms | $lag | | |"
}

lag() {
    load 5000 "$seconds" 100
    read -r requests ok lag < <(of_loadline requests ok generator.lag_ms_p99 <"$work/out")
    within 'requests' "$requests" $((5000 * seconds)) $((5000 * seconds))
    within 'correct responses' "$ok" $((5000 * seconds)) $((5000 * seconds))
    within 'lag p99 ms' "$lag" 0 1
}

flood() {
    local offered=$((100000 * seconds))
    load 100k "$seconds" 10000
    read -r requests ok under_way unanswered rate p50 max lag queue < <(of_loadline requests ok \
        in_flight failed.unanswered achieved_per_s response_ms.p50 response_ms.max generator.lag_ms_p99 \
        queue.length_max <"$work/out")
    within 'answered, failed, or in flight' $((requests + under_way)) "$offered" "$offered"
    echo "| correct responses | $ok | | |"
    echo "| failed | $((requests - ok)) | | |"
    echo "| without a response at the end of the drain | $unanswered | | |"
    echo "| responses/s in time | $rate | | |"
    echo "| response time p50, max ms | $p50, $max | | |"
    echo "| longest queue | $queue | | |"
    echo "| lag p99 ms | $lag | | |"
}

for name in "${cases[@]}"; do
    case $name in
    stall | lag | flood) ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
needs nginx openssl taskset
build_loadline
ulimit -n "$(ulimit -Hn)"
start_nginx
describe_machine
echo "$("$loadline" --version), $(nginx_version), $(date -u +%F);" \
    "server on CPU $server_cpu, generator on CPU $load_cpu."
for name in "${cases[@]}"; do
    printf '\n%s\n\n| %s | value | expected | met |\n|---|---|---|---|\n' "Command: \`bench/stall.sh $name\`." "$name"
    "$name"
done
exit "$missed"
