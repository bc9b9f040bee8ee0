#!/usr/bin/env bash
# Measures what observation costs a JVM: `loadline account` versus JMX, NMT, and JFR, on the same server.
#
#   bench/account.sh [OPTIONS] [-- ARGUMENTS]   five methods, each with a fresh JVM per repetition
#   bench/account.sh --large [OPTIONS]          loadline on a large resident heap, Parallel and G1
#
#   --repeats N     repetitions (5; 3 with --large)
#   --java HOME     the JDK (default: that of `java` on the PATH)
#   --jvm OPTIONS   JVM options as one argument (-Xms64m -Xmx64m -XX:+UseSerialGC)
#   --jar FILE      the server (the built-in demo); ARGUMENTS are its arguments, in which {port} is a free port
#   --path PATH     the path to request (/hello)
#   --requests N    how many requests to send before the observation (500)
#   --settle S      seconds of rest before RSS is read (3)
#   --heap SIZE     the heap for --large (8g)
#
# LOADLINE names a built binary. Stops only processes it started. Prints Markdown to stdout, progress to stderr.
set -euo pipefail
export LC_ALL=C
typed="bench/account.sh $*"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

large='' repeats='' java_home='' jvm='-Xms64m -Xmx64m -XX:+UseSerialGC' jar='' path=/hello requests=500 settle=3 heap=8g
arguments=('{port}')
while (($#)); do
    case $1 in
        --large) large=1 ;;
        --) shift && arguments=("$@") && break ;;
        --repeats | --java | --jvm | --jar | --path | --requests | --settle | --heap)
            (($# > 1)) || { echo "error: $1 needs a value" >&2 && exit 2; }
            case $1 in
                --repeats) repeats=$2 ;;
                --java) java_home=$2 ;;
                --jvm) jvm=$2 ;;
                --jar) jar=$2 ;;
                --path) path=$2 ;;
                --requests) requests=$2 ;;
                --settle) settle=$2 ;;
                --heap) heap=$2 ;;
            esac
            shift
            ;;
        *) echo "error: $1 is not an option" >&2 && exit 2 ;;
    esac
    shift
done
repeats=${repeats:-$([[ $large ]] && echo 3 || echo 5)}
if [[ -z $java_home ]]; then
    java_home=$(readlink -f "$(command -v java)") || { echo 'error: no java found' >&2 && exit 4; }
    java_home=${java_home%/bin/java}
fi
for tool in java javac jcmd jstat; do
    [[ -x $java_home/bin/$tool ]] || { echo "error: no $tool in $java_home, which must be a JDK" >&2 && exit 4; }
done
unset JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS

loadline=${LOADLINE:-}
target=${CARGO_TARGET_DIR:-$root/target}
if [[ -z $loadline ]]; then
    (cd "$root" && cargo build --quiet --profile dist --bin loadline)
    loadline=$target/dist/loadline
fi
[[ $jar ]] || jar=$root/java/compiled/demo.jar

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

# ask: sends one request and reads the whole response.
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$path" >&3
    timeout 20 cat <&3 >/dev/null || true
    exec 3>&-
}

# start_server OPTIONS: starts the server and waits until it responds. If the port is taken, the server exits at once.
start_server() {
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        # The options contain no spaces within a word.
        # shellcheck disable=SC2086
        "$java_home/bin/java" $1 -jar "$jar" "${arguments[@]//\{port\}/$port}" >"$work/server.log" 2>&1 &
        server=$!
        for _ in {1..600}; do
            kill -0 "$server" 2>/dev/null || break
            if ask 2>/dev/null; then return; fi
            sleep 0.1
        done
        end_server
    done
    echo "error: the server did not start: $(tail -n 1 "$work/server.log")" >&2
    exit 4
}

end_server() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=''
}

# Prints the server's RSS in KiB; statm counts pages.
rss() { awk -v page="$(getconf PAGESIZE)" '{ print $2 * page / 1024 }' "/proc/$server/statm"; }

# run_tool COMMAND…: puts its output in $work/out, and sets wall_ms and peak_kib. Without GNU time, polls for the peak.
run_tool() {
    local before=$EPOCHREALTIME
    if [[ -x /usr/bin/time ]]; then
        timeout 300 /usr/bin/time -o "$work/peak" -f %M "$@" >"$work/out" 2>"$work/err" &
        tool=$!
    else
        "$@" >"$work/out" 2>"$work/err" &
        tool=$!
        while awk '/^VmHWM:/ { print $2 }' "/proc/$tool/status" >"$work/hwm" 2>/dev/null; do
            # The peak only grows, so the last value counts.
            if [[ -s $work/hwm ]]; then mv "$work/hwm" "$work/peak"; fi
            sleep 0.005
        done
    fi
    local code=0
    wait "$tool" || code=$?
    tool=''
    wall_ms=$(awk -v a="$before" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", (b - a) * 1000 }')
    peak_kib=$(tail -n 1 "$work/peak")
    if ((code)); then
        echo "error: $1 ended with $code: $(cat "$work/err" "$work/out" | head -c 2000)" >&2
        exit 1
    fi
}

# number NAME: prints the first number with this name in Loadline's output, or nothing if it is null.
number() { grep -oE "\"$1\": ?-?[0-9.]+" "$work/out" | sed -n '1s/.*: *//p'; }

way_nothing() { wall_ms=0 peak_kib=0; }

way_loadline() {
    run_tool "$loadline" account "$server" --json
    awk -v p="$(number pause_ms)" -v u="$(number unexplained_bytes)" -v t="$(number total_bytes)" -v w="$wall_ms" \
        -v k="$peak_kib" 'BEGIN { printf "%s %.3f %s %.1f\n", p == "" ? "nan" : p, 100 * u / t, w, k / 1024 }' >>"$work/own"
}

way_jmx() { run_tool "$java_home/bin/java" -Xmx64m -XX:+UseSerialGC -cp "$work" JmxPolls "$server"; }

way_nmt() { run_tool "$java_home/bin/jcmd" "$server" VM.native_memory detail; }

way_jfr() {
    local all=$EPOCHREALTIME
    run_tool "$java_home/bin/jcmd" "$server" JFR.start name=account
    sleep 2
    run_tool "$java_home/bin/jcmd" "$server" JFR.stop name=account filename="$work/account.jfr"
    wall_ms=$(awk -v a="$all" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", (b - a) * 1000 }')
}

# Prints the JVM's heap and metaspace use in KiB, and its number of classes. Called last, because asking adds memory.
# Serial, 25: "DefNew     total 184320K, used 141542K [0x…"; metaspace: "Both: … 384.00 KB committed, … 206.00 KB ( 54%) used".
insides() {
    local heap_used meta classes
    heap_used=$(timeout 60 "$java_home/bin/jcmd" "$server" GC.heap_info |
        awk '!/space|Metaspace/ && match($0, /used [0-9]+[KM]/) {
            text = substr($0, RSTART + 5, RLENGTH - 5); sum += text ~ /M$/ ? text * 1024 : text + 0 } END { print sum + 0 }')
    meta=$(timeout 60 "$java_home/bin/jcmd" "$server" VM.metaspace scale=KB |
        awk '/Both:/ && / used/ { sub(/\([^)]*\) used.*/, ""); print $(NF - 1); exit }')
    classes=$(timeout 60 "$java_home/bin/jstat" -class "$server" | awk 'NR == 2 { print $1 }')
    echo "$heap_used ${meta:-nan} ${classes:-nan}"
}

# look WAY: records one line: RSS added, heap used, metaspace used (KiB), classes, wall ms, the tool's peak (KiB).
look() {
    local options=$jvm before after
    [[ $1 != nmt ]] || options+=' -XX:NativeMemoryTracking=detail'
    start_server "$options"
    for ((i = 0; i < requests; i++)); do ask; done
    sleep "$settle"
    before=$(rss)
    "way_$1"
    sleep "$settle"
    after=$(rss)
    awk -v a="$before" -v b="$after" -v i="$(insides)" -v w="$wall_ms" -v p="$peak_kib" \
        'BEGIN { print b - a, i, w, p }' >>"$work/$1"
    end_server
}

# spread FORMAT: prints the median (minimum–maximum) of a column of numbers.
spread() {
    sort -g | awk -v f="$1" '$1 == $1 + 0 { v[++n] = $1 }
        END { if (!n) { print "–"; exit }
              m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
              printf f " (" f "–" f ")", m, v[1], v[n] }'
}

# beside WAY COLUMN: prints the difference from the repetition without observation.
beside() { paste -d ' ' "$work/$1" "$work/nothing" | awk -v n="$2" '{ print $n - $(n + 6) }'; }

of_tool() { awk -v n="$2" '{ print $n }' "$work/$1"; }

machine() {
    echo "Machine: $(nproc) cores, $(sed -n 's/^model name\t*: //p' /proc/cpuinfo | sed -n 1p), Linux $(uname -r)," \
        "load average before $(cut -d ' ' -f 1 /proc/loadavg)."
    echo "$("$java_home/bin/java" -version 2>&1 | sed -n 1p), $("$loadline" --version), $(date -u +%F)." \
        "Command: \`$typed\`."
}

compare_ways() {
    local ways=(nothing loadline jmx nmt jfr) names n
    "$java_home/bin/javac" -d "$work" "$root/bench/JmxPolls.java"
    for ((repeat = 0; repeat < repeats; repeat++)); do
        # Rotates the order, because the machine may warm up or slow down.
        for ((n = 0; n < ${#ways[@]}; n++)); do
            local way=${ways[$(((n + repeat) % ${#ways[@]}))]}
            look "$way"
            echo "repetition $((repeat + 1))/$repeats: $way: $(tail -n 1 "$work/$way")" >&2
        done
    done
    names=('nothing' '`loadline account`' 'JMX, 20 polls' '`jcmd VM.native_memory detail`' '`jcmd JFR.start`, `JFR.stop`')
    echo "Subject: \`java $jvm -jar $(basename "$jar")\`, $requests requests, then $settle s of rest before each reading."
    echo "Median of $repeats (minimum–maximum). Heap, metaspace, and classes: difference from the same repetition without observation."
    echo
    echo '| method | RSS added, KiB | heap used, KiB | metaspace, KiB | classes | wall, ms | RSS of the tool, MiB |'
    echo '|---|---|---|---|---|---|---|'
    for n in "${!ways[@]}"; do
        local way=${ways[n]}
        printf '| %s | %s ' "${names[n]}" "$(of_tool "$way" 1 | spread %.0f)"
        if [[ $way == nothing ]]; then
            echo '| – | – | – | – | – |'
            continue
        fi
        printf '| %s | %s | %s ' "$(beside "$way" 2 | spread %+.0f)" "$(beside "$way" 3 | spread %+.0f)" \
            "$(beside "$way" 4 | spread %+.0f)"
        printf '| %s | %s |\n' "$(of_tool "$way" 5 | spread %.0f)" \
            "$(of_tool "$way" 6 | awk '{ print $1 / 1024 }' | spread %.1f)"
    done
    echo
    echo "\`loadline account\`: pause $(of_tool own 1 | spread %.2f) ms, unexplained $(of_tool own 2 | spread %.3f) % of RSS."
    echo "RSS added, loadline / JMX: $(paste -d ' ' "$work/loadline" "$work/jmx" | awk '{ print $1 / $7 }' | spread %.3f)."
}

look_into_large() {
    echo "Subject: \`-Xms$heap -Xmx$heap -XX:+AlwaysPreTouch\`. Median of $repeats (minimum–maximum)."
    echo
    echo '| collector | RSS, MiB | wall, ms | pause, ms | unexplained, % | RSS of loadline, MiB |'
    echo '|---|---|---|---|---|---|'
    for gc in Parallel G1; do
        : >"$work/own"
        start_server "-Xms$heap -Xmx$heap -XX:+AlwaysPreTouch -XX:+Use${gc}GC"
        sleep "$settle"
        local weight=$(($(rss) / 1024))
        # The first account has to attach. It counts like the others, so its cost shows in the maximum.
        for ((repeat = 0; repeat < repeats; repeat++)); do way_loadline; done
        end_server
        echo "| $gc | $weight | $(of_tool own 3 | spread %.0f) | $(of_tool own 1 | spread %.2f)" \
            "| $(of_tool own 2 | spread %.3f) | $(of_tool own 4 | spread %.1f) |"
    done
}

machine
echo
if [[ $large ]]; then look_into_large; else compare_ways; fi
