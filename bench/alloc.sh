#!/usr/bin/env bash
# How steady are bytes per request, and how small a change do they show? On servers that nobody tuned for (Tomcat,
# Vert.x, WireMock): fresh JVMs of one configuration beside each other; and two builds of the Vert.x application, the
# second of which allocates so many bytes more for each answer, by five blocks, beside what the clock says.
# Nothing else may run beside it: about 15 minutes.
#   bench/alloc.sh [--wiremock JAR] [--jdks LIST] [--trials N]
set -euo pipefail
export LC_ALL=C
typed="bench/alloc.sh $*"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jdks='17 25' wiremock='' trials=5
while (($#)); do
    (($# > 1)) || { echo "error: $1 needs a value" >&2 && exit 2; }
    case $1 in
        --jdks) jdks=$2 ;;
        --wiremock) wiremock=$(realpath "$2") ;;
        --trials) trials=$2 ;;
        *) echo "error: no option $1" >&2 && exit 2 ;;
    esac
    shift 2
done
command -v mvn >/dev/null || { echo 'error: no mvn found' >&2 && exit 4; }
loadline=${LOADLINE:-$root/target/release/loadline}
[[ -x $loadline ]] || (cd "$root" && cargo build --quiet --release --bin loadline)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'machine: %s cores, Linux %s\ncommand: %s\n' "$(nproc)" "$(uname -r)" "$typed"

# The column of one metric, a line for each trial.
values() { "$loadline" report "$1" --csv - | awk -F, -v key="$2" '$5 == key { print $7 }'; }

# spread NAME FOLDER SUBJECT GET REQUESTS EXPECT: trials of one configuration, on each release.
spread() {
    local name=$1 folder=$2 subject=$3 get=$4 requests=$5 expect=$6 jdk
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
  - warmup: {same: steady}
  - steady: {closed: {connections: 25, requests: $requests}, get: $get, expect: $expect}
marks: [start, loaded]
YAML
        "$loadline" run "$work/$name.loadline.yaml" --trials "$trials" --quiet --out "$work/$name-$jdk" >"$work/$name.txt" ||
            echo "$name ended with $?" >&2
        values "$work/$name-$jdk" alloc_per_request.steady | sort -n | awk -v name="$name" -v jdk="$jdk" '
            { value[NR] = $1; sum += $1; square += $1 * $1 }
            END { mean = sum / NR; middle = value[int((NR + 1) / 2)]
                printf "%-10s %3s %9.1f bytes per request, largest to smallest %.2f %%, standard deviation %.2f %% (%d JVMs)\n",
                    name, jdk, middle, (value[NR] - value[1]) / middle * 100, sqrt((square - NR * mean * mean) / (NR - 1)) / mean * 100, NR }'
        grep -i 'not warm\|alloc' "$work/$name.txt" | sort -u | head -n 3 || true
        middle=$(values "$work/$name-$jdk" alloc_per_request.steady | sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }')
        eval "middle_${name}_$jdk=\$middle"
    done
}

printf '\nfresh JVMs of one configuration:\n'
spread tomcat "$root/scenarios/tomcat" '  build: ./build
  command: [sh, -c, "_RUNJAVA={jdk} exec target/tomcat/bin/catalina.sh run"]
  env: {CATALINA_OPTS: "-Dhttp.port={port}"}' /examples/servlets/servlet/HelloWorldExample 60000 200
spread vertx "$root/scenarios/vertx" '  build: mvn -q -B package
  command: [java, "{jvm}", -cp, "target/classes:target/lib/*", WebApp, "{port}"]' /hello 100000 200
[[ -z $wiremock ]] || spread wiremock "$work" "  command: [java, \"{jvm}\", -jar, $wiremock, --port, \"{port}\",
            --bind-address, 127.0.0.1, --disable-banner, --no-request-journal]" /x 20000 404

# The application as it is, and one that allocates more for each answer.
lib=$root/scenarios/vertx/target/lib
mkdir -p "$work/before"
for jdk in $jdks; do
    share=$([[ $jdk == 17 ]] && echo 100 || echo 50)
    eval "middle=\$middle_vertx_$jdk"
    more=$(awk -v bytes="$middle" -v share="$share" 'BEGIN { print int(bytes / share / 8) * 8 }')
    mkdir -p "$work/after-$jdk/src"
    sed -e "s|    private WebApp() {}|    private static volatile byte[] spare;\n\n    private WebApp() {}|" \
        -e "s|handler(context -> context.json(|handler(context -> { spare = new byte[$((more - 16))]; context.json(|" \
        -e 's|put("hello", "world")));|put("hello", "world")); });|' \
        "$root/scenarios/vertx/src/main/java/WebApp.java" >"$work/after-$jdk/src/WebApp.java"
    javac --release 11 -cp "$lib/*" -d "$work/before" "$root/scenarios/vertx/src/main/java/WebApp.java"
    javac --release 11 -cp "$lib/*" -d "$work/after-$jdk" "$work/after-$jdk/src/WebApp.java"
    cat >"$work/builds.loadline.yaml" <<YAML
name: builds
subject:
  dir: $work
  command: [java, "{jvm}", WebApp, "{port}"]
  ready: {http: /hello, within: 60s}
configurations:
  before: {heap: 256m, gc: serial, jdk: $jdk, jvm: [-cp, "before:$lib/*"]}
  after: {heap: 256m, gc: serial, jdk: $jdk, jvm: [-cp, "after-$jdk:$lib/*"]}
load:
  - warmup: {same: steady}
  - steady: {closed: {connections: 25, requests: 100000}, get: /hello}
marks: [start, loaded]
compare: {metrics: [alloc_per_request, rate, p50, cpu_per_1000]}
YAML
    printf '\ntwo builds on JDK %s, the second allocates %s bytes more for each answer (1/%s):\n' "$jdk" "$more" "$share"
    "$loadline" compare "$work/builds.loadline.yaml" --trials 5 --seed "$jdk" --out "$work/builds-$jdk" --quiet --yes |
        awk '/^ +(better|worse|equivalent|cannot tell) /' || true
done
