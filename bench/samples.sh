#!/usr/bin/env bash
# Creates the samples for the documentation. Each one there is an excerpt from the full output of a real run, which this
# script writes to docs/pictures/NAME.txt. `find` also draws the README's pictures. Maven fetches WireMock and
# async-profiler; `load` needs nginx. Needs a quiet machine without other JVMs. The whole run takes about 8 minutes, 4 of
# which are for `find`. LOADLINE names another binary to use.
#   bench/samples.sh [NAME…]    default: account accounts changes charge explain findings gate load find
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=bench/nginx.sh
source bench/nginx.sh
build_loadline
pictures=docs/pictures
mkdir "$work/classes"
javac -nowarn --release 17 -d "$work/classes" \
    java/subjects/loadline/subjects/{Appetite,DemoServer,Dialogue,Listener,Plants,RetainedMalloc}.java 2>/dev/null
demo=(java -cp "$work/classes" loadline.subjects.DemoServer)

# Removes this machine's paths.
without_paths() { sed -E -e "s|$work/||g" -e 's|(/[^ )]*)?/bin/java|java|g' -e 's/(cgroup v[12]), [^)]*\)/\1)/' -e 's| *$||'; }

jvms=()
# start PORT COMMAND…: starts a JVM in the background and waits until it listens on the port; its pid is ${jvms[-1]}.
start() {
    "${@:2}" >"$work/said" 2>&1 &
    jvms+=($!)
    for _ in {1..300}; do
        (: >"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    echo "error: nothing is listening on port $1: $(tail -n 3 "$work/said")" >&2
    exit 3
}
end_jvms() {
    # Without a pid, `wait` would wait for nginx too.
    ((${#jvms[@]})) || return 0
    kill "${jvms[@]}" 2>/dev/null || true
    wait "${jvms[@]}" 2>/dev/null || true
    jvms=()
}
trap 'end_jvms; clean_up' EXIT
loaded() { "$loadline" load "http://127.0.0.1:$1" --quiet "${@:2}" >/dev/null; }

# cgroup NAME: makes a memory cgroup of 512 MiB. A shell that runs $within joins it, so nothing else is charged to it.
cgroup() {
    local top=/sys/fs/cgroup/memory
    [[ -d $top ]] || top=/sys/fs/cgroup
    cgroup=$top/loadline-sample/$1
    mkdir -p "$cgroup"
    echo 512M >"$cgroup/memory.limit_in_bytes" 2>/dev/null || echo 512M >"$cgroup/memory.max"
    within="echo \$\$ >$cgroup/cgroup.procs;"
}
end_cgroup() {
    end_jvms
    for _ in {1..50}; do rmdir "$cgroup" "${cgroup%/*}" 2>/dev/null && break || sleep 0.1; done
}

sample_account() {
    local disk
    cgroup account
    # On a disk, unlike $work, because a jar on tmpfs would count as memory.
    disk=$(mktemp -d)
    mvn -q -B dependency:copy -Dartifact=org.wiremock:wiremock-standalone:3.13.1 -DoutputDirectory="$disk"
    start 21080 sh -c "$within cd $disk; exec java -Xmx256m -jar wiremock-standalone-3.13.1.jar --port 21080 \
        --no-request-journal"
    loaded 21080/__admin/mappings -d 20s -c 10
    sleep 2
    "$loadline" account "${jvms[-1]}" | without_paths >$pictures/account.txt
    end_cgroup
    rm -rf "$disk"
}

sample_accounts() {
    start 21081 "${demo[@]}" 21081
    start 21082 "${demo[@]}" 21082
    start 21083 java -Xmx6m "${demo[@]:1}" 21083
    loaded 21081/hello -n 20000
    "$loadline" account --all | without_paths >$pictures/accounts.txt
    end_jvms
}

sample_changes() {
    start 21084 "${demo[@]}" 21084
    "$loadline" account "${jvms[-1]}" --json >"$work/then.json"
    loaded 21084/hello -n 100000
    "$loadline" account "${jvms[-1]}" --against "$work/then.json" | without_paths >$pictures/changes.txt
    end_jvms
}

# A container, identified by its cgroup: a JVM with three helpers, a deleted spool file that is still open, and a log.
sample_charge() {
    local id log
    # On a disk, unlike $work.
    log=$(mktemp)
    id=8c91f0a3b2d4$(printf '%052d' 0)
    cgroup "$id"
    start 21088 sh -c "$within cd $work; exec java -Xmx64m -cp classes loadline.subjects.Plants 21088 children"
    sh -c "$within exec 7>/dev/shm/loadline-spool; rm /dev/shm/loadline-spool; dd if=/dev/zero bs=1M count=48 >&7 2>/dev/null
        dd if=/dev/zero of=$log bs=1M count=40 2>/dev/null; exec sleep 60" &
    jvms+=($!)
    sleep 3
    "$loadline" account --container 8c91f0a3b2d4 | without_paths >$pictures/charge.txt
    end_cgroup
    rm -f "$log"
}

sample_explain() {
    mvn -q -B dependency:get -Dartifact=tools.profiler:async-profiler:4.4
    "$loadline" explain --rate 200 -d 5s --out "$work/explained" --url 'http://127.0.0.1:{port}/' -- java -Xmx160m -Xmn128m \
        -XX:+UseSerialGC -cp "$work/classes" loadline.subjects.Plants '{port}' garbage | without_paths >$pictures/explain.txt
}

sample_findings() {
    mkfifo "$work/lines"
    sleep 60 >"$work/lines" &
    local writer=$!
    cgroup findings
    sh -c "$within cd $work; exec java -Xmx64m -cp classes loadline.subjects.RetainedMalloc" <"$work/lines" \
        >"$work/said" 2>&1 &
    jvms+=($!)
    echo >"$work/lines"
    for _ in {1..100}; do grep -q AFTER "$work/said" && break || sleep 0.1; done
    "$loadline" account "${jvms[-1]}" | without_paths >$pictures/findings.txt
    kill "$writer"
    end_cgroup
}

# A failing gate: after the change, the live heap is 32 MiB larger.
sample_gate() {
    local load='{closed: {connections: 10, requests: 20000}, get: /}'
    local command='[java, "{jvm}", -cp, classes, loadline.subjects.Appetite, "{port}"'
    for live in 8 40; do
        cat >"$work/app-$live.loadline.yaml" <<END
name: app
subject: {command: $command, live=$live]}
configurations: {app: {heap: 64m, gc: serial}}
load: [warmup: $load, steady: $load, rest: {idle: 12s}]
END
    done
    "$loadline" run "$work/app-8.loadline.yaml" --trials 5 --quiet --out "$work/main" >/dev/null
    "$loadline" run "$work/app-40.loadline.yaml" --trials 5 --out "$work/change" --baseline "$work/main" \
        --budget 'rss_in_use.rested<=+2%' | without_paths >$pictures/gate.txt || true
}

# Pauses nginx four times, for a second each.
sample_load() {
    start_nginx
    local worker
    worker=$(cat "/proc/$server/task/$server/children")
    for _ in 1 2 3 4; do
        # shellcheck disable=SC2086
        sleep 2 && kill -STOP $worker && sleep 1 && kill -CONT $worker && sleep 2
    done &
    "$loadline" load "http://127.0.0.1:$port/12" --rate 500 -d 20s --load-cpus 1 --require 'p99<50ms' --strict \
        >$pictures/load.txt || true
    wait $!
}

# Runs one search on the Vert.x template. Maven builds the server, which takes a minute the first time.
sample_find() {
    "$loadline" find scenarios/vertx/vertx-find.loadline.yaml --out "$work/archive" |
        sed "s#$work/archive#loadline-archive/vertx-find#" | without_paths >$pictures/load-line.txt
    "$loadline" report "$work/archive" --plot "$work/pictures" >/dev/null
    cp "$work/pictures/load-line.svg" $pictures/load-line.svg
    cp "$work/pictures/account-trial-1.svg" $pictures/memory.svg
}

(($#)) || set -- account accounts changes charge explain findings gate load find
for name; do "sample_$name"; done
