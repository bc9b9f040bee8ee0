#!/usr/bin/env bash
# Compares Loadline's load generator with wrk and oha, on the same nginx, in rotating order.
#
#   bench/load.sh [--rounds N] [--seconds S] [CASE…]     default: 5 rounds of 5 s for every case, ten minutes in all
#   bench/load.sh --soak [SECONDS]                       RSS over time at 2,000 connections, default: 600 s
#
# Cases: 25 256 2000 (keep-alive), close, get1m, put1m, tls.
# nginx runs on one core, the load generator on another.
# SERVER_CPU and LOAD_CPU choose the cores (0, 1); LOADLINE, WRK, and OHA choose the programs.
# Stops only processes it started. Prints Markdown to stdout, progress to stderr.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=bench/nginx.sh
source "$root/bench/nginx.sh"

rounds=5 seconds=5 soak='' cases=()
while (($#)); do
    case $1 in
    --rounds) rounds=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --soak) soak=yes && if [[ ${2:-} =~ ^[0-9]+$ ]]; then soak=$2 && shift; else soak=600; fi ;;
    25 | 256 | 2000 | close | get1m | put1m | tls) cases+=("$1") ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
((${#cases[@]})) || cases=(25 256 2000 close get1m put1m tls)

# Goals for the median ratios to wrk and to oha: minimum requests/s, maximum CPU per request; - means no goal.
declare -A goals=(
    [25]='1.00 0.80 1.10 0.60'
    [256]='1.00 0.80 1.25 0.55'
    [2000]='1.00 0.75 1.50 0.42'
    [close]='1.10 0.90 1.40 0.65'
    [get1m]='1.00 - - -'
    [put1m]='1.00 - - -'
    [tls]='- 1.00 - 0.80'
)
# For the cases with 25 and 2,000 keep-alive connections.
goal_rss_mib=7

# Runs a generator. Puts its output in $work/out, its CPU seconds in $work/cpu, and its peak RSS in $rss_kib.
# exec keeps the pid, so the recorded pid is the generator's; bash reports its CPU time.
run_tool() {
    local TIMEFORMAT='%U %S' key value
    rm -f "$work/pid"
    {
        time bash -c 'echo $$ >"$0"; exec taskset -c "$@"' "$work/pid" "$load_cpu" "$@" >"$work/out" 2>"$work/err"
    } 2>"$work/cpu" &
    local timer=$!
    until [[ -s $work/pid ]]; do sleep 0.01; done
    tool=$(<"$work/pid")
    rss_kib=0
    while kill -0 "$tool" 2>/dev/null; do
        # The peak only grows, so the last value counts. Does not fork, because that would cost CPU time.
        while read -r key value _; do
            if [[ $key == VmHWM: ]]; then rss_kib=$value; fi
        done 2>/dev/null <"/proc/$tool/status" || true
        sleep 0.1
    done
    tool=''
    wait "$timer" || { tail -n 20 "$work/out" "$work/err" >&2 && exit 1; }
}

# Each of these functions prints one line: requests/s, requests, failures.
drive_loadline() {
    local words=("$loadline" load "$url" -c "$connections" -d "${seconds}s" --json --quiet)
    case $setting in
    close) words+=(--close) ;;
    put1m) words+=(--method PUT --body "$work/body") ;;
    tls) words+=(--insecure) ;;
    esac
    run_tool "${words[@]}"
    of_loadline achieved_per_s requests ok <"$work/out" | awk '{ print $1, $2, $2 - $3 }'
}

drive_wrk() {
    local words=("$wrk" -t 1 -c "$connections" -d "${seconds}s")
    case $setting in
    close) words+=(-H 'Connection: close') ;;
    put1m) words+=(-s "$work/put.lua") ;;
    esac
    run_tool "${words[@]}" "$url"
    awk '/^Requests\/sec:/ { rate = $2 } / requests in / { requests = $1 } /^ *Non-2xx/ { failed += $NF }
        /Socket errors:/ { gsub(",", ""); failed += $4 + $6 + $8 + $10 }
        END { print rate, requests, failed + 0 }' "$work/out"
}

drive_oha() {
    local words=("$oha" --no-tui --output-format json -z "${seconds}s" -c "$connections")
    case $setting in
    close) words+=(--disable-keepalive) ;;
    put1m) words+=(-m PUT -D "$work/body") ;;
    tls) words+=(--insecure) ;;
    esac
    run_tool "${words[@]}" "$url"
    # Requests cut off by oha's deadline count neither as responses nor as failures.
    tr -d '\n' <"$work/out" | awk '
        function of(name, text) {
            return match(text, "\"" name "\": *[0-9.]+") ? value(substr(text, RSTART, RLENGTH)) : 0
        }
        function value(text) { sub(/.*: */, "", text); return text + 0 }
        function sum(name, but, text, all, i, parts) {
            if (!match(text, "\"" name "\": *{[^}]*}")) return 0
            text = substr(text, RSTART, RLENGTH); sub(/^[^{]*{/, "", text)
            for (i = split(text, parts, ","); i > 0; i--) if (but == "" || parts[i] !~ but) all += value(parts[i])
            return all
        }
        { answers = sum("statusCodeDistribution", "", $0); good = sum("statusCodeDistribution", "\"[13-5]..\"", $0)
          printf "%.1f %d %d\n", good / of("total", $0), answers,
              answers - good + sum("errorDistribution", "deadline", $0) }'
}

# measure TOOL: adds one line to $work/TOOL: requests/s, CPU us/request, peak RSS in KiB.
measure() {
    "drive_$1" >"$work/counts"
    read -r rate requests failed <"$work/counts"
    ((failed == 0)) || echo "note: $1: $failed failed" >&2
    ((requests > 0)) || { echo "error: $1 sent nothing: $(tail -n 3 "$work/out" "$work/err")" >&2 && exit 1; }
    awk -v rate="$rate" -v requests="$requests" -v rss="$rss_kib" \
        '{ printf "%.1f %.3f %d\n", rate, ($1 + $2) * 1e6 / requests, rss }' "$work/cpu" >>"$work/$1"
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# column FILE N: prints the median of a column.
column() { awk -v n="$2" '{ print $n }' "$1" | median; }

# ratio TOOL N: prints the median, over all rounds, of loadline / TOOL.
ratio() {
    paste -d ' ' "$work/loadline" "$work/$1" | awk -v n="$2" '{ print $n / $(n + 3) }' | median
}

compare() {
    setting=$1 connections=25 url=http://127.0.0.1:$port/12 body_mib=0 label="25, keep-alive"
    case $setting in
    256 | 2000) connections=$setting label="$setting, keep-alive" ;;
    close) label='25, connection per request' ;;
    get1m) url=http://127.0.0.1:$port/1m body_mib=1 label='25, GET of 1 MiB' ;;
    put1m) url=http://127.0.0.1:$port/up/1m body_mib=1 label='25, PUT of 1 MiB' ;;
    tls) url=https://127.0.0.1:$tls_port/12 label='25, keep-alive, TLS 1.3' ;;
    esac
    local tools=(loadline wrk oha) name round n
    for name in "${tools[@]}"; do : >"$work/$name"; done
    for ((round = 0; round < rounds; round++)); do
        # Each tool goes first equally often, because the machine may warm up or slow down.
        for ((n = 0; n < 3; n++)); do
            name=${tools[(round + n) % 3]}
            measure "$name"
            echo "$label, round $((round + 1))/$rounds: $name: $(tail -n 1 "$work/$name")" >&2
        done
    done
    for name in "${tools[@]}"; do
        awk -v l="$label" -v n="$name" -v r="$(column "$work/$name" 1)" -v c="$(column "$work/$name" 2)" \
            -v m="$(column "$work/$name" 3)" -v body="$body_mib" \
            'BEGIN { bodies = body ? sprintf("%.0f", r * body) : "-"
                printf "| %s | %s | %.0f | %.2f | %.1f | %s |\n", l, n, r, c, m / 1024, bodies }'
    done
    local goal
    read -r -a goal <<<"${goals[$setting]}"
    against wrk "${goal[0]}" "${goal[1]}"
    against oha "${goal[2]}" "${goal[3]}"
}

# against TOOL RATE CPU: prints the median ratios next to their goals.
against() {
    local mib
    mib=$(column "$work/loadline" 3)
    awk -v l="$label" -v n="$1" -v r="$(ratio "$1" 1)" -v c="$(ratio "$1" 2)" -v m="$(ratio "$1" 3)" -v rate="$2" \
        -v cpu="$3" -v setting="$setting" -v mib="$mib" -v rss="$goal_rss_mib" '
        function beside(value, sign, goal) {
            if (goal == "-") return sprintf("%.3f", value)
            met = sign == "≥" ? value >= goal : value <= goal
            return sprintf("**%.3f** (%s %s%s)", value, sign, goal, met ? "" : ", missed")
        }
        BEGIN {
            memory = sprintf("%.2f", m)
            mib /= 1024
            if ((setting == 25 || setting == 2000) && n == "wrk")
                memory = memory sprintf("; %.1f MiB (≤ %d%s)", mib, rss, mib <= rss ? "" : ", missed")
            rate_said = beside(r, "≥", rate)
            printf "| %s | loadline / %s | %s | %s | %s | |\n", l, n, rate_said, beside(c, "≤", cpu), memory
        }'
}

# Prints the RSS of a long run every ten seconds: it must not grow with the number of requests.
soak() {
    local every=$((soak >= 60 ? 10 : 1)) start=$SECONDS kib
    taskset -c "$load_cpu" "$loadline" load "http://127.0.0.1:$port/12" -c 2000 -d "${soak}s" --json --quiet \
        >"$work/out" 2>"$work/err" &
    tool=$!
    echo '| s | RSS MiB |'
    echo '|---|---|'
    : >"$work/rss"
    while sleep "$every" && kill -0 "$tool" 2>/dev/null; do
        kib=$(awk '/^VmRSS:/ { print $2 }' "/proc/$tool/status" 2>/dev/null) || break
        [[ -n $kib ]] || break
        echo "$kib" >>"$work/rss"
        awk -v s=$((SECONDS - start)) -v k="$kib" 'BEGIN { printf "| %d | %.2f |\n", s, k / 1024 }'
    done
    wait "$tool" || { cat "$work/err" >&2 && exit 1; }
    tool=''
    echo
    of_loadline requests ok <"$work/out" | awk '{ printf "%d requests, %d failed.\n", $1, $1 - $2 }'
    awk 'NR == 1 { least = $1 } { most = $1 > most ? $1 : most; least = $1 < least ? $1 : least; last = $1 }
        END { printf "RSS between %.2f and %.2f MiB, %.2f at the end.\n", least / 1024, most / 1024, last / 1024 }' \
        "$work/rss"
}

needs wrk="${WRK:-wrk}" oha="${OHA:-oha}" nginx openssl taskset
build_loadline
ulimit -n "$(ulimit -Hn)"
start_nginx
printf 'wrk.method = "PUT"\nlocal file = io.open("%s", "rb")\nwrk.body = file:read("*a")\nfile:close()\n' "$work/body" \
    >"$work/put.lua"
describe_machine
# wrk prints its version and exits with 1.
wrk_version=$("$wrk" -v 2>&1 | head -n 1 | cut -d ' ' -f 2 || true)
echo "$("$loadline" --version), wrk $wrk_version, $("$oha" --version), $(nginx_version), $(date -u +%F);" \
    "server on CPU $server_cpu, generator on CPU $load_cpu."
echo
if [[ -n $soak ]]; then
    echo "Command: \`bench/load.sh --soak $soak\`."
    echo
    soak
    exit
fi
echo "Command: \`bench/load.sh --rounds $rounds --seconds $seconds ${cases[*]}\`."
echo
echo "| connections | tool | requests/s | CPU µs/request | peak RSS MiB | bodies MiB/s |"
echo "|---|---|---|---|---|---|"
for setting in "${cases[@]}"; do
    compare "$setting"
done
