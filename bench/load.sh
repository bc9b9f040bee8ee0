#!/usr/bin/env bash
# Loadline's load engine beside wrk, on the same nginx, in alternated pairs.
#
#   bench/load.sh [PAIRS [SECONDS]]        default: 5 pairs of 5 s
#
# nginx serves a 12-byte file from one core, the generator runs on another.
# SERVER_CPU, LOAD_CPU choose the cores (0, 1); DRIVE a built examples/drive.
# Ends only what it started. Prints Markdown on stdout, progress on stderr.
set -euo pipefail
export LC_ALL=C

pairs=${1:-5} seconds=${2:-5}
server_cpu=${SERVER_CPU:-0} load_cpu=${LOAD_CPU:-1}
root=$(cd "$(dirname "$0")/.." && pwd)

missing=()
command -v wrk >/dev/null || missing+=(wrk)
command -v nginx >/dev/null || missing+=(nginx-light)
command -v taskset >/dev/null || missing+=(util-linux)
if ((${#missing[@]})); then
    echo "error: this benchmark needs ${missing[*]}" >&2
    echo "hint: apt-get install ${missing[*]}" >&2
    exit 4
fi

drive=${DRIVE:-}
if [[ -z $drive ]]; then
    (cd "$root" && cargo build --quiet --release --example drive)
    drive=${CARGO_TARGET_DIR:-$root/target}/release/examples/drive
fi

work=$(mktemp -d)
server='' tool=''
clean_up() {
    for pid in $tool $server; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Starts nginx on a free loopback port; a taken one makes it end at once.
start_server() {
    mkdir "$work/html" && printf 'hello world\n' >"$work/html/12"
    # As root nginx's worker is another user.
    chmod -R a+rX "$work"
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        cat >"$work/nginx.conf" <<CONF
daemon off;
worker_processes 1;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 8192; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    server { listen 127.0.0.1:$port backlog=4096; root $work/html; }
}
CONF
        taskset -c "$server_cpu" nginx -p "$work" -c "$work/nginx.conf" 2>"$work/nginx.err" &
        server=$!
        for _ in {1..50}; do
            kill -0 "$server" 2>/dev/null || break
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
                url=http://127.0.0.1:$port/12
                return
            fi
            sleep 0.1
        done
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=''
    done
    echo "error: nginx did not start: $(tail -n 1 "$work/nginx.err")" >&2
    exit 4
}

# Runs a generator; its output is in $work/out, its CPU seconds in $work/cpu, its peak RSS in $work/rss.
# exec keeps the pid, so that what is watched is the generator itself; CPU time is bash's own account of it.
run_tool() {
    local TIMEFORMAT='%U %S'
    rm -f "$work/pid"
    {
        time bash -c 'echo $$ >"$0"; exec taskset -c "$@"' "$work/pid" "$load_cpu" "$@" >"$work/out" 2>&1
    } 2>"$work/cpu" &
    local timer=$!
    until [[ -s $work/pid ]]; do sleep 0.01; done
    tool=$(<"$work/pid")
    echo 0 >"$work/rss"
    while kill -0 "$tool" 2>/dev/null; do
        # The peak grows only; the last value seen is the one that counts.
        awk '/^VmHWM:/ { print $2 }' "/proc/$tool/status" >"$work/hwm" 2>/dev/null || true
        if [[ -s $work/hwm ]]; then mv "$work/hwm" "$work/rss"; fi
        sleep 0.1
    done
    tool=''
    wait "$timer" || { cat "$work/out" >&2; exit 1; }
}

# One line: requests/s, CPU us/request, peak RSS in KiB.
measure_loadline() {
    run_tool "$drive" "$url" "$connections" "$seconds" ${close:+close}
    grep -q '"failed":0,' "$work/out" || echo "note: loadline: $(<"$work/out")" >&2
    sed -E 's/.*"achieved_per_s":([0-9.]+).*"requests":([0-9]+).*/\1 \2/' "$work/out" >"$work/counts"
    summarise
}

measure_wrk() {
    run_tool wrk -t 1 -c "$connections" -d "${seconds}s" ${close:+-H 'Connection: close'} "$url"
    grep -E 'Socket errors|Non-2xx' "$work/out" >&2 || true
    awk '/^Requests\/sec:/ { rate = $2 } / requests in / { requests = $1 } END { print rate, requests }' \
        "$work/out" >"$work/counts"
    summarise
}

summarise() {
    paste -d ' ' "$work/counts" "$work/cpu" "$work/rss" |
        awk '{ printf "%.0f %.3f %d\n", $1, ($3 + $4) * 1e6 / $2, $5 }'
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# column FILE N: the median of a column.
column() { awk -v n="$2" '{ print $n }' "$1" | median; }

# ratio N: the median over pairs of loadline / wrk.
ratio() {
    paste -d ' ' "$work/loadline" "$work/wrk" | awk -v n="$1" '{ print $n / $(n + 3) }' | median
}

compare() {
    connections=$1 close=$2
    local label="$connections, keep-alive"
    [[ -z $close ]] || label="$connections, connection per request"
    : >"$work/loadline"
    : >"$work/wrk"
    for ((pair = 1; pair <= pairs; pair++)); do
        # Each goes first as often as second: the machine may warm up or slow down.
        if ((pair % 2)); then order='loadline wrk'; else order='wrk loadline'; fi
        for name in $order; do
            "measure_$name" >>"$work/$name"
            echo "$label, pair $pair/$pairs: $name: $(tail -n 1 "$work/$name")" >&2
        done
    done
    for name in loadline wrk; do
        awk -v l="$label" -v n="$name" -v r="$(column "$work/$name" 1)" -v c="$(column "$work/$name" 2)" \
            -v m="$(column "$work/$name" 3)" \
            'BEGIN { printf "| %s | %s | %.0f | %.2f | %.1f |\n", l, n, r, c, m / 1024 }'
    done
    awk -v l="$label" -v r="$(ratio 1)" -v c="$(ratio 2)" -v m="$(ratio 3)" \
        'BEGIN { printf "| %s | **loadline / wrk** | **%.3f** | **%.3f** | **%.2f** |\n", l, r, c, m }'
}

start_server
echo "Machine: $(nproc) cores, $(sed -n 's/^model name\t*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)," \
    "load average before $(cut -d ' ' -f 1 /proc/loadavg)."
# wrk prints its version and exits with 1.
wrk_version=$(wrk -v 2>&1 | head -n 1 | cut -d ' ' -f 2 || true)
echo "wrk $wrk_version, $(nginx -v 2>&1 | cut -d ' ' -f 3), $(date -u +%F)." \
    "Command: \`bench/load.sh $pairs $seconds\`" \
    "($pairs pairs of $seconds s; server on CPU $server_cpu, generator on CPU $load_cpu)."
echo
echo "| connections | tool | requests/s | CPU µs/request | peak RSS MiB |"
echo "|---|---|---|---|---|"
compare 25 ''
compare 256 ''
compare 25 close
