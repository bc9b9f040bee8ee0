# Shared by benchmarks, which source it: runs nginx on one core, builds Loadline, and reads its output.
# Needs $root. On exit, stops nginx and the tool being measured, and removes $work.
# shellcheck shell=bash disable=SC2034,SC2154

server_cpu=${SERVER_CPU:-0} load_cpu=${LOAD_CPU:-1}
PATH=$PATH:/usr/sbin
wrk=${WRK:-wrk} oha=${OHA:-oha}
# Everything, including uploads, is in memory, so the disk does not affect the results.
work=$(mktemp -d -p "$([[ -d /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
server='' tool=''
clean_up() {
    local pid
    for pid in $tool $server; do
        # A stopped process must continue before it can handle another signal.
        kill -CONT "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# needs PROGRAM… or NAME=PROGRAM…: exits with a hint unless all of them are installed.
needs() {
    local word lacking=()
    for word in "$@"; do
        command -v "${word#*=}" >/dev/null || lacking+=("${word%%=*}")
    done
    if ((${#lacking[@]})); then
        echo "error: this benchmark needs ${lacking[*]}" >&2
        echo "hint: apt-get install wrk nginx-light openssl util-linux; cargo install oha; or set WRK and OHA" >&2
        exit 4
    fi
}

# Sets $loadline to the binary, and builds it if necessary.
build_loadline() {
    loadline=${LOADLINE:-}
    if [[ -z $loadline ]]; then
        (cd "$root" && cargo build --quiet --profile dist --bin loadline)
        loadline=${CARGO_TARGET_DIR:-$root/target}/dist/loadline
    fi
}

# of_loadline NAME…: reads the output of `loadline load --json` on stdin, and prints these numbers of the first phase.
# In a path such as response_ms.p90, the last part is looked up inside the first.
of_loadline() {
    tr -d '\n' | awk -v names="$*" '{
        sub(/.*"phases": *\[/, ""); count = split(names, name, " ")
        for (i = 1; i <= count; i++) {
            text = $0; parts = split(name[i], part, ".")
            for (p = 1; p < parts; p++) { at = index(text, "\"" part[p] "\":"); text = at ? substr(text, at) : "" }
            found = match(text, "\"" part[parts] "\": *[0-9.eE+-]+")
            number = found ? substr(text, RSTART, RLENGTH) : ": -"
            sub(/.*: */, "", number); printf "%s%s", number, i < count ? " " : "\n"
        }
    }'
}

nginx_version() { nginx -v 2>&1 | cut -d ' ' -f 3; }

describe_machine() {
    echo "Machine: $(nproc) cores, $(sed -n 's/^model name\t*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)," \
        "load average before $(cut -d ' ' -f 1 /proc/loadavg)."
}

# Starts nginx with one worker on the loopback ports $port and $tls_port. If one is taken, nginx exits at once.
# Serves the files 12 (12 bytes) and 1m (1 MiB); uploads go to up/. $work/body is a body of 1 MiB to send.
start_nginx() {
    mkdir -p "$work/html/up"
    printf 'hello world\n' >"$work/html/12"
    head -c 1048576 /dev/zero | tr '\0' 'x' >"$work/body"
    cp "$work/body" "$work/html/1m"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
    # If root starts nginx, its worker runs as another user.
    chmod -R a+rX "$work" && chmod a+rwx "$work/html/up"
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000)) tls_port=$((30000 + RANDOM % 2000))
        cat >"$work/nginx.conf" <<CONF
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 16384; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_max_body_size 2m;
    client_body_temp_path $work/uploads;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    root $work/html;
    server {
        listen 127.0.0.1:$port backlog=16384;
        location /up/ { dav_methods PUT; }
    }
    server {
        listen 127.0.0.1:$tls_port ssl backlog=4096;
        ssl_certificate $work/cert.pem;
        ssl_certificate_key $work/key.pem;
        # The same cipher for all tools.
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    }
}
CONF
        taskset -c "$server_cpu" nginx -p "$work" -c "$work/nginx.conf" 2>"$work/nginx.err" &
        server=$!
        for _ in {1..50}; do
            kill -0 "$server" 2>/dev/null || break
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
            sleep 0.1
        done
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=''
    done
    echo "error: nginx did not start: $(tail -n 1 "$work/nginx.err")" >&2
    exit 4
}
