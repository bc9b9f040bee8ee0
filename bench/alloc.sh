#!/usr/bin/env bash
# How stable are bytes per request, and how small a change can they reveal? Measures untuned servers (Tomcat, Vert.x,
# WireMock), each in several fresh JVMs with one configuration. Then compares two builds of the Vert.x application in
# five blocks, by allocation and by response time; the second build allocates a few more bytes per response.
# Needs a quiet machine for about 15 minutes.
#   bench/alloc.sh [--wiremock JAR] [--jdks LIST] [--trials N] [tomcat|vertx|wiremock|builds …]
set -euo pipefail
export LC_ALL=C
typed="bench/alloc.sh $*"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jdks='17 25' wiremock='' trials=5 wanted=()
while (($#)); do
    case $1 in
        --*) (($# > 1)) || { echo "error: $1 needs a value" >&2 && exit 2; } ;;&
        --jdks) jdks=$2 ;;
        --wiremock) wiremock=$(realpath "$2") ;;
        --trials) trials=$2 ;;
        tomcat | vertx | wiremock | builds) wanted+=("$1") ;;
        *) echo "error: $1 is not an option" >&2 && exit 2 ;;
    esac
    [[ $1 != --* ]] || shift
    shift
done
asked() { ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* ]]; }
command -v mvn >/dev/null || { echo 'error: no mvn found' >&2 && exit 4; }
loadline=${LOADLINE:-$root/target/dist/loadline}
[[ -x $loadline ]] || (cd "$root" && cargo build --quiet --profile dist --bin loadline)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'machine: %s cores, Linux %s\ncommand: %s\n' "$(nproc)" "$(uname -r)" "$typed"

# Prints the values of one metric, one line per trial.
values() { "$loadline" report "$1" --csv - | awk -F, -v key="$2" '$5 == key { print $7 }'; }

# spread NAME FOLDER SUBJECT GET REQUESTS EXPECT: runs trials of one configuration on each release, after a warm-up with
# four times as many requests as are measured.
spread() {
    local name=$1 folder=$2 subject=$3 get=$4 requests=$5 expect=$6 jdk
    asked "$name" || return 0
    for jdk in $jdks; do
        cat >"$work/$name.loadline.yaml" <<YAML
name: $name
subject:
  dir: $folder
  ready: {within: 90s}
$subject
configurations:
  same: {heap: 256m, gc: serial, jdk: $jdk}
load:
  - warmup: {closed: {connections: 25, requests: $((4 * requests))}, get: $get, expect: $expect}
  - steady: {closed: {connections: 25, requests: $requests}, get: $get, expect: $expect}
marks: [start, loaded]
YAML
        "$loadline" run "$work/$name.loadline.yaml" --trials "$trials" --out "$work/$name-$jdk" >"$work/$name.txt" ||
            echo "$name ended with $?" >&2
        values "$work/$name-$jdk" alloc_per_request.steady | sort -n | awk -v name="$name" -v jdk="$jdk" '
            { value[NR] = $1; sum += $1; square += $1 * $1 }
            END { mean = sum / NR; middle = value[int((NR + 1) / 2)]
                printf "%-10s %3s %9.1f bytes per request, range %.2f %%, standard deviation %.2f %% (%d JVMs)\n",
                    name, jdk, middle, (value[NR] - value[1]) / middle * 100, sqrt((square - NR * mean * mean) / (NR - 1)) / mean * 100, NR }'
        grep 'not warm' "$work/$name.txt" | sort -u | head -n 3 || true
    done
}

printf '\nfresh JVMs of one configuration:\n'
spread tomcat "$root/scenarios/tomcat" '  build: ./build
  command: [sh, -c, "_RUNJAVA={jdk} exec target/tomcat/bin/catalina.sh run"]
  env: {CATALINA_OPTS: "-Dhttp.port={port}"}' /examples/servlets/servlet/HelloWorldExample 75000 200
spread vertx "$root/scenarios/vertx" '  build: mvn -q -B package
  command: [java, "{jvm}", -cp, "target/classes:target/lib/*", WebApp, "{port}"]' /hello 50000 200
[[ -z $wiremock ]] || spread wiremock "$work" "  command: [java, \"{jvm}\", -jar, $wiremock, --port, \"{port}\",
            --bind-address, 127.0.0.1, --disable-banner, --no-request-journal]" /x 15000 404

# builds JDK BYTES WORDS OPTIONS: compares the unchanged application with one that allocates BYTES more per response.
lib=$root/scenarios/vertx/target/lib
app=$root/scenarios/vertx/src/main/java/WebApp.java
if asked builds && [[ ! -d $lib ]]; then
    (cd "$root/scenarios/vertx" && mvn -q -B package)
fi
builds() {
    local jdk=$1 more=$2
    mkdir -p "$work/before" "$work/source"
    rm -rf "$work/after"
    sed -e "s|    private WebApp() {}|    private static volatile byte[] spare;\n\n    private WebApp() {}|" \
        -e "s|handler(context -> context.json(|handler(context -> { spare = new byte[$((more - 16))]; context.json(|" \
        -e 's|put("hello", "world")));|put("hello", "world")); });|' "$app" >"$work/source/WebApp.java"
    javac --release 11 -cp "$lib/*" -d "$work/before" "$app"
    javac --release 11 -cp "$lib/*" -d "$work/after" "$work/source/WebApp.java"
    cat >"$work/builds.loadline.yaml" <<YAML
name: builds
subject:
  dir: $work
  command: [java, "{jvm}", WebApp, "{port}"]
  ready: {http: /hello, within: 60s}
configurations:
  before: {heap: 256m, gc: serial, jdk: $jdk, jvm: [-cp, "before:$lib/*"]}
  after: {heap: 256m, gc: serial, jdk: $jdk, jvm: [-cp, "after:$lib/*"]}
load:
  - warmup: {same: steady}
  - steady: {closed: {connections: 25, requests: 200000}, get: /hello}
marks: [start, loaded]
compare: {metrics: [alloc_per_request, rate, p50, cpu_per_1000]$4}
YAML
    printf '\ntwo builds on JDK %s; the second allocates %s more bytes per response (%s):\n' "$jdk" "$more" "$3"
    "$loadline" compare "$work/builds.loadline.yaml" --trials 5 --seed "$jdk" --out "$work/builds-$jdk-$more" --yes |
        awk '/^ +(better|worse|equivalent|cannot tell) /' || true
}

for jdk in $(asked builds && echo "$jdks"); do
    percent=$([[ $jdk == 17 ]] && echo 1 || echo 2)
    # A percentage of what it allocates: 2,340 bytes on 17, and 2,389 on 25. Object sizes are multiples of eight.
    more=$([[ $jdk == 17 ]] && echo 24 || echo 48)
    builds "$jdk" "$more" "$percent %" ''
    builds "$jdk" 1944 '1.9 KiB' ', least: {alloc_per_request: 100B}'
done
