#!/usr/bin/env bash
# Does `loadline advise` come close to the limits that `loadline find` finds, without going below them? Each server runs
# under its load for M minutes, several servers at a time, and is then given advice. After that, `find` searches for its
# limit under the same load, one server at a time; keep the machine quiet. For comparison, also prints the limits that a
# VerticalPodAutoscaler's recommender would set after one day with this peak, and those of the buildpack calculator.
# Needs Maven, and JDK 21 or newer for Helidon.
#   bench/advise.sh [--minutes M] [--at-once N] [--keep DIR] [NAME…]
# LOADLINE names another binary. WAIT is a prefix for each search command, such as `flock FILE`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=bench/nginx.sh
source "$root/bench/nginx.sh"
minutes=10 at_once=4 keep='' wanted=()
while (($#)); do
    case $1 in
        --minutes) minutes=$2 && shift 2 ;;
        --at-once) at_once=$2 && shift 2 ;;
        --keep) keep=$(realpath -m "$2") && shift 2 ;;
        *) wanted+=("$1") && shift ;;
    esac
done
build_loadline
out=${keep:-$work}
mkdir -p "$out"

jvm='java -XX:+UseSerialGC -Xmx256m'
libs='-cp target/classes:target/lib/*'
newest=$(printf '%s\n' /usr/lib/jvm/*/bin/java | sort -t- -k2 -V | tail -n 1)
# NAME  RATE  PATH and further load options  FOLDER  BUILD  COMMAND, with PORT in place of the port.
servers=(
    "demo|300|/hello|java/subjects|javac -nowarn --release 17 -d $work/demo loadline/subjects/{Appetite,DemoServer,Dialogue,Listener,Plants,RetainedMalloc}.java|$jvm -cp $work/demo loadline.subjects.DemoServer PORT"
    "tiny-http|300|/hello|scenarios/tiny-http|./build|$jvm -jar target/httpserver.jar PORT"
    "file-server|10|/10m|scenarios/file-server|./build|$jvm -cp target/classes FileServer PORT target/files 8192"
    "stateful-services|300|/documents/available|scenarios/stateful-services|mvn -q -B compile|$jvm $libs stateful.Server PORT $work/state memory"
    "netty-pools|20|/upload --method PUT --body-size 100k|scenarios/netty-pools|./build|$jvm -jar target/netty-4.2.20.Final/upload-server.jar PORT"
    "tomcat|200|/examples/servlets/servlet/HelloWorldExample|scenarios/tomcat|./build|$jvm -Dhttp.port=PORT -Dcatalina.home=target/tomcat -cp target/tomcat/bin/bootstrap.jar:target/tomcat/bin/tomcat-juli.jar org.apache.catalina.startup.Bootstrap start"
    "vertx|200|/hello|scenarios/vertx|mvn -q -B package|$jvm $libs WebApp PORT"
    "spring-boot|50|/orders|scenarios/spring-boot|mvn -q -B package|$jvm -jar target/app.jar --server.port=PORT"
    "quarkus|100|/orders|scenarios/quarkus|mvn -q -B package|$jvm -Dquarkus.http.port=PORT -jar target/quarkus-app/quarkus-run.jar"
    "micronaut|100|/orders|scenarios/micronaut|mvn -q -B package|$jvm -Dmicronaut.server.port=PORT -jar target/app.jar"
    "helidon|100|/orders|scenarios/helidon|./build|$newest ${jvm#java } -Dserver.port=PORT -jar target/app.jar"
    "wiremock|100|/__admin/mappings|$work|mvn -q -B dependency:copy -Dartifact=org.wiremock:wiremock-standalone:3.13.1 -DoutputDirectory=.|$jvm -jar wiremock-standalone-3.13.1.jar --port PORT"
)
is_wanted() { ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* ]]; }

# advise PORT SERVER: runs the JVM under its load, and asks for advice just before the load ends.
advise() {
    local name rate path folder command said
    IFS='|' read -r name rate path folder _ command <<<"$2"
    cd "$root/${folder#"$root"}" 2>/dev/null || cd "$folder"
    # shellcheck disable=SC2086
    (set -f && exec ${command/PORT/$1}) >"$out/$name.log" 2>&1 &
    local pid=$!
    for _ in {1..600}; do
        curl -sf -o "$work/page.$1" "http://127.0.0.1:$1${path%% *}" && break
        sleep 0.2
    done
    # shellcheck disable=SC2086
    "$loadline" load "http://127.0.0.1:$1"$path --rate "$rate" -d "$((minutes * 60))s" --quiet --json >"$out/$name.load.json" &
    local load=$!
    sleep "$((minutes * 60 - 5))"
    "$loadline" advise "$pid" --json --quiet >"$out/$name.advice.json" || said=$?
    awk '/^VmHWM/ { print $2 * 1024 }' "/proc/$pid/status" >"$out/$name.peak"
    wait "$load" || said=$?
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    [[ -z ${said:-} ]] || echo "$name: exit code $said" >&2
}

# search SERVER
search() {
    local name rate path folder command
    IFS='|' read -r name rate path folder _ command <<<"$1"
    cd "$root/${folder#"$root"}" 2>/dev/null || cd "$folder"
    command=${command/ -Xmx256m/} command=${command/PORT/\{port\}}
    # shellcheck disable=SC2086
    (set -f && exec ${WAIT:-} "$loadline" find --step 5% --proofs 2 -d 5s --rate "$rate" \
        --target 'p99<200ms' --target 'rate>=98%' --target 'failed==0' --url "http://127.0.0.1:{port}"$path \
        --out "$out/$name.archive" --json --quiet -- $command) >"$out/$name.found.json" 2>"$out/$name.find.log" ||
        echo "$name: $(tail -n 3 "$out/$name.find.log")" >&2
}

for server in "${servers[@]}"; do
    IFS='|' read -r name _ _ folder build _ <<<"$server"
    is_wanted "$name" || continue
    (cd "$root/${folder#"$root"}" 2>/dev/null || cd "$folder" && eval "$build") >&2
done
port=18100 running=()
for server in "${servers[@]}"; do
    is_wanted "${server%%|*}" && [[ ! -s $out/${server%%|*}.advice.json ]] || continue
    port=$((port + 1))
    advise "$port" "$server" &
    running+=($!)
    ((${#running[@]} < at_once)) || { wait "${running[@]}" && running=(); }
done
wait
for server in "${servers[@]}"; do
    is_wanted "${server%%|*}" && [[ ! -s $out/${server%%|*}.found.json ]] || continue
    search "$server"
done

printf 'machine: %s cores, Linux %s; %s min of load\n\n' "$(nproc)" "$(uname -r)" "$minutes"
python3 - "$out" <<'PYTHON'
import glob, json, os, statistics, sys
mib = lambda n: n / 2**20
shares = []
print("%-18s %8s %7s %8s %7s %6s %9s %8s %9s" % ("server", "advised", "-Xmx", "line", "to set", "ratio", "VPA", "ratio", "buildpack"))
for file in sorted(glob.glob(sys.argv[1] + "/*.advice.json")):
    name = os.path.basename(file).split(".")[0]
    advice = json.load(open(file))["advice"][0]
    try:
        found = json.load(open(file.replace("advice", "found")))["find"]
        line, to_set = mib(found["line"]["limit_bytes"]), mib(found["limit_bytes"])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as why:
        print("%-18s no search: %r" % (name, why))
        continue
    if not advice.get("limit_bytes"):
        print("%-18s refused: %s" % (name, advice.get("refused")))
        continue
    # The Vertical Pod Autoscaler's recommender: the peak of the day plus 15%, at least 250 MiB.
    vpa = max(250.0, mib(float(open(file.replace("advice.json", "peak")).read())) * 1.15)
    buildpack = next((mib(rule["limit_bytes"]) for rule in found["others"] if "buildpack" in rule["name"]), 0)
    shares.append(mib(advice["limit_bytes"]) / line)
    print("%-18s %8.0f %7.0f %8.1f %7.0f %6.2f %9.0f %8.2f %9.0f" % (name, mib(advice["limit_bytes"]),
        mib(advice["heap_bytes"]), line, to_set, shares[-1], vpa, vpa / line, buildpack))
if shares:
    print("\nmedian %.2f, min %.2f, max %.2f of the line" % (statistics.median(shares), min(shares), max(shares)))
PYTHON
