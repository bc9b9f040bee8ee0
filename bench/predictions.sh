#!/usr/bin/env bash
# Compares the memory that an account expects a full GC to free with the memory actually freed, for the gallery and some
# well-known servers. Also prints the share of their pages that have no owner.
#
#   bench/predictions.sh [OPTIONS] [SUBJECT…]    default: all subjects
#
#   --jdks LIST     releases (17, 25)
#   --gcs LIST      collectors (serial, g1, parallel); z and shenandoah are possible too
#   --wiremock JAR  a standalone WireMock; without it, that subject is skipped
#   --keep FOLDER   where to keep the documents
#   --from FOLDER   run nothing; print the tables from documents kept earlier
#
# The subjects are those of scenarios/, each with a small load of its own: once with its scenario's heap, and once with
# a heap that may grow. LOADLINE names a built binary. Prints Markdown to stdout, progress to stderr.
set -euo pipefail
export LC_ALL=C
typed="bench/predictions.sh $*"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scenarios=$root/scenarios

jdks='17, 25' gcs='serial, g1, parallel' wiremock='' keep='' from='' wanted=()
while (($#)); do
    case $1 in
        --jdks | --gcs | --wiremock | --keep | --from)
            (($# > 1)) || { echo "error: $1 needs a value" >&2 && exit 2; }
            case $1 in
                --jdks) jdks=$2 ;;
                --gcs) gcs=$2 ;;
                --wiremock) wiremock=$(realpath "$2") ;;
                --keep) keep=$2 ;;
                --from) from=$2 keep=$2 ;;
            esac
            shift
            ;;
        -*) echo "error: $1 is not an option" >&2 && exit 2 ;;
        *) wanted+=("$1") ;;
    esac
    shift
done
for tool in jq mvn; do
    command -v "$tool" >/dev/null || { echo "error: no $tool found" >&2 && exit 4; }
done
loadline=${LOADLINE:-$root/target/dist/loadline}
[[ -x $loadline ]] || (cd "$root" && cargo build --quiet --profile dist --bin loadline)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
documents=${keep:-$work}
mkdir -p "$documents"

# weigh NAME FOLDER SUBJECT LOAD [HEAP]: runs one scenario with these lines under `subject:` and `load:`, with a heap of
# this size and with one that may grow.
weigh() {
    local name=$1 folder=$2 subject=$3 load=$4 heap=${5:-}
    ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $name "* ]] || return 0
    {
        printf 'name: %s\nsubject:\n  dir: %s\n  ready: {within: 90s}\n%s\nmatrix:\n' "$name" "$folder" "$subject"
        printf '  jdk: [%s]\n  gc: [%s]\n' "$jdks" "$gcs"
        [[ -z $heap ]] || printf '  jvm: {fixed: [-Xms%s, -Xmx%s], free: [-Xmx1g]}\n' "$heap" "$heap"
        printf 'load:\n%s\n  - rest: {idle: 1s}\nmarks: [rested, collected]\n' "$load"
    } >"$work/$name.loadline.yaml"
    echo "$name" >&2
    "$loadline" run "$work/$name.loadline.yaml" --json --quiet --out "$work/$name" >"$documents/$name.json" \
        2>"$documents/$name.log" || echo "  $name ended with $?: $(grep -m 1 '^error' "$documents/$name.log")" >&2
}

get() { printf '  - steady: {closed: {connections: 25, requests: %s}, get: %s}' "$1" "$2"; }

put() {
    printf '  - small: {closed: {connections: 1, requests: 500}, put: /upload, body: {size: 100k}, keep_alive: false}\n'
    printf '  - large: {closed: {connections: 1, requests: 10}, put: /upload, body: {size: 20m}, keep_alive: false}'
}

gallery() {
    local code
    for code in httpserver jlhttp own; do
        weigh "tiny-http-$code" "$scenarios/tiny-http" "  build: ./build
  command: [java, \"{jvm}\", -jar, target/$code.jar, \"{port}\"]" "$(get 5000 /hello)" 16m
    done
    for code in whole 8192; do
        weigh "file-server-$code" "$scenarios/file-server" "  build: ./build
  command: [java, -Xmx1g, \"{jvm}\", -cp, target/classes, FileServer, \"{port}\", target/files, $code]" \
            '  - steady: {closed: {connections: 8, requests: 40}, get: /10m, expect: {length: 10000000}}'
    done
    local aggregate
    for code in 4.1.0.CR3,pooled 4.1.0.CR3,streaming 4.1.140.Final,pooled 4.2.20.Final,adaptive; do
        aggregate=$([[ $code == *,streaming ]] && echo no || echo yes)
        weigh "netty-pools-${code//,/-}" "$scenarios/netty-pools" "  build: ./build
  command: [java, -Xms64m, -Xmx768m, -XX:ActiveProcessorCount=24, -XX:MaxDirectMemorySize=256M, \"{jvm}\", -jar,
            target/netty-${code%,*}/upload-server.jar, \"{port}\", aggregate=$aggregate]" "$(put)"
    done
    weigh class-churn "$scenarios/class-churn" "  build: javac --release 11 -d target src/ClassChurn.java src/ClassBytes.java
  command: [java, \"{jvm}\", -cp, target, ClassChurn, \"5\", \"8\", \"100\", \"10\"]" \
        '  - churn: {phases: [empty, spike, valley, again, end], within: 120s}' 32m
    # Its version of Kryo does not run on JDK 25.
    jdks=17 weigh stateful-services "$scenarios/stateful-services" "  build: mvn -q -B compile
  command: [java, \"{jvm}\", -cp, \"target/classes:target/lib/*\", stateful.Server, \"{port}\", \"{work}\", memory]" \
        '  - create: {closed: {connections: 8, requests: 64}, post: /documents, headers: {Content-Type: application/json},
             body: {text: "{\"documentSelfLink\":\"/documents/{seq}\"}"}}
'"$(get 1000 '"/documents/{rand 0 63}"')" 64m
}

others() {
    weigh vertx "$scenarios/vertx" '  build: mvn -q -B package
  command: [java, "{jvm}", -cp, "target/classes:target/lib/*", WebApp, "{port}"]' "$(get 20000 /hello)" 32m
    weigh tomcat "$scenarios/tomcat" '  build: ./build
  command: [sh, -c, "_RUNJAVA={jdk} exec target/tomcat/bin/catalina.sh run"]
  env: {CATALINA_OPTS: "-Dhttp.port={port}"}' "$(get 5000 /examples/servlets/servlet/HelloWorldExample)" 64m
    [[ -z $wiremock ]] || weigh wiremock "$work" "  command: [java, \"{jvm}\", -jar, $wiremock, --port, \"{port}\",
            --bind-address, 127.0.0.1, --disable-banner, --no-request-journal]" \
        '  - steady: {closed: {connections: 25, requests: 3000}, get: /x, expect: 404}' 256m
}

# Prints one line per trial: predicted and freed memory, and whether they agree; then the memory freed in the heap and
# its tables alone, and whether that agrees. Values are negative if RSS grew.
rows() {
    jq -r '.trials[] | .configuration as $configuration | (.marks | map({(.name): .account}) | add) as $account
        | select($account.rested and $account.collected) | $account.rested.would_return as $would
        | (($account.rested.total_bytes - $account.collected.total_bytes) / 1048576) as $came
        | (if $would.gc_bytes == null then null
           else ($would.gc_bytes - ($would.gc_grown_bytes // 0)) / 1048576 end) as $said
        | def heap: [.owners[] | select((.name | startswith("java_heap")) or .name == "gc") | .rss_bytes] | add;
          def agrees($came): if $said == null then "not predicted"
              elif ($said - $came | fabs) <= ([5, ($came | fabs) * 0.15] | max) then "yes" else "no" end;
          ((($account.rested | heap) - ($account.collected | heap)) / 1048576) as $of_heap
        | [input_filename | split("/")[-1] | rtrimstr(".json"), $configuration, $would.gc_reason, $said, $came,
           agrees($came), $of_heap, agrees($of_heap)] | @tsv' \
        "$documents"/*.json
}

# Prints one line per account: release, collector, subject, configuration, mark, unexplained in percent of RSS.
unexplained() {
    jq -r '.trials[] | select(.jvm.version) | . as $trial | (.jvm.version | split(".")[0]) as $release
        | .marks[] | select(.account)
        | [$release, $trial.jvm.collector, (input_filename | split("/")[-1] | rtrimstr(".json")), $trial.configuration,
           .name, .account.unexplained_bytes * 100 / .account.total_bytes] | @tsv' "$documents"/*.json
}

if [[ -z $from ]]; then
    gallery
    others
fi
echo "Machine: $(nproc) cores, $(sed -n 's/^model name\t*: //p' /proc/cpuinfo | sed -n 1p), Linux $(uname -r)."
echo "$("$loadline" --version), $(date -u +%F). Command: \`$typed\`."
echo
rows | awk -F '\t' '{ n[$6]++; heap[$8]++; all++ } END {
    said = n["yes"] + n["no"]
    printf "%d trials: %d predicted, %d of them within 15%% or 5 MiB (%.0f %%); %d not predicted (%.0f %%).\n", all, said,
        n["yes"], said ? 100 * n["yes"] / said : 0, n["not predicted"], all ? 100 * n["not predicted"] / all : 0
    printf "Counting only the heap and its tables, not what the JVM frees elsewhere: %d (%.0f %%).\n", heap["yes"],
        said ? 100 * heap["yes"] / said : 0 }'
echo
echo '| subject | configuration | reason | predicted, MiB | freed, MiB | within 15% or 5 MiB | in the heap and its tables, MiB |'
echo '|---|---|---|---|---|---|---|'
rows | awk -F '\t' '{
    printf "| %s | %s | %s | %s | %.1f | %s | %.1f |\n", $1, $2, $3, $4 == "" ? "–" : sprintf("%.1f", $4), $5, $6, $7 }'
echo
echo '| JDK | collector | accounts | unexplained, % of RSS: median | largest | where |'
echo '|---|---|---|---|---|---|'
unexplained | sort -t $'\t' -k1,1n -k2,2 -k6,6g | awk -F '\t' '
    function tell() {
        if (n) printf "| %s | %s | %d | %.3f | %.3f | %s %s, %s |\n", release, gc, n, share[int((n + 1) / 2)], share[n], subject,
            configuration, mark
    }
    $1 != release || $2 != gc { tell(); n = 0 }
    { release = $1; gc = $2; subject = $3; configuration = $4; mark = $5; share[++n] = $6 }
    END { tell() }'
