#!/usr/bin/env bash
# Compares the memory that a finding expects its fix to free with the memory that the fix actually frees. Weighs each
# case unchanged, then with the first remedy of its first finding. Needs a quiet machine: about half a minute per case.
#
#   bench/cures.sh [--rate N] [--time D] CASE…
#
# A case is a directory with `run.sh PORT`, which adds $EXTRA to its JVM's options.
#
# A case does its work on `GET /`, and responds to `GET /ping` when it is ready. LOADLINE names a built binary. RUNS
# names a directory in which to keep the JSON of both runs. Prints Markdown to stdout, progress to stderr.
set -euo pipefail
export LC_ALL=C
typed="bench/cures.sh $*"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rate=200 time=8s cases=()
while (($#)); do
    case $1 in
        --rate | --time)
            (($# > 1)) || { echo "error: $1 needs a value" >&2 && exit 2; }
            [[ $1 == --rate ]] && rate=$2 || time=$2
            shift
            ;;
        -*) echo "error: $1 is not an option" >&2 && exit 2 ;;
        *) cases+=("$(realpath "$1")") ;;
    esac
    shift
done
((${#cases[@]})) || { echo "error: name a case; see the comment at the top of this script" >&2 && exit 2; }
loadline=${LOADLINE:-$root/target/dist/loadline}
[[ -x $loadline ]] || (cd "$root" && cargo build --quiet --profile dist --bin loadline)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=${RUNS:-$work}
mkdir -p "$runs"

# weigh CASE FILE EXTRA [VARIABLE=VALUE…]
weigh() {
    local case=$1 file=$2 extra=$3
    shift 3
    "$loadline" weigh --json --quiet --rate "$rate" -d "$time" --out "$work/archive-${file##*/}" \
        --url 'http://127.0.0.1:{port}/' --ready http:/ping \
        -- env "EXTRA=$extra" "$@" sh "$case/run.sh" '{port}' >"$file" 2>"$file.log" ||
        echo "  $file ended with $?: $(grep -m 1 '^error' "$file.log")" >&2
}

# Prints the options of the first remedy on one line, then each of its variables on a line of its own.
remedy() {
    jq -r 'def options: if .jvm then .jvm[] elif .gc then {serial: "-XX:+UseSerialGC", g1: "-XX:+UseG1GC",
               parallel: "-XX:+UseParallelGC", z: "-XX:+UseZGC", shenandoah: "-XX:+UseShenandoahGC"}[.gc]
           elif .heap_max then "-Xmx\(.heap_max)" elif .direct_max then "-XX:MaxDirectMemorySize=\(.direct_max)"
           elif .heap then "-Xms\(.heap) -Xmx\(.heap)" else empty end;
        (.findings[0].remedies[0] // {}) | ([options] | join(" ")), (.env // [] | .[] | "\(.[0])=\(.[1])")' "$1"
}

loaded() { jq '[.trials[0].marks[] | select(.name == "loaded")][0].rss_bytes / 1048576' "$1"; }

printf 'Machine: %s cores, Linux %s. %s, %s. Command: `%s`.\n\n' "$(nproc)" "$(uname -r)" "$("$loadline" --version)" \
    "$(date -u +%F)" "$typed"
echo '| case | first finding | fix | unchanged, MiB | fixed, MiB | freed, MiB | expected at most, MiB | within 15% or 5 MiB |'
echo '|---|---|---|---|---|---|---|---|'
for case in "${cases[@]}"; do
    name=${case##*/}
    echo "$name" >&2
    weigh "$case" "$runs/$name.json" ''
    mapfile -t cure < <(remedy "$runs/$name.json")
    finding=$(jq -r '.findings[0].finding.kind // "none"' "$runs/$name.json")
    if [[ -z ${cure[*]} ]]; then
        printf '| %s | %s | no flag | %.1f | | | | |\n' "$name" "$finding" "$(loaded "$runs/$name.json")"
        continue
    fi
    weigh "$case" "$runs/$name-cured.json" "${cure[0]}" "${cure[@]:1}"
    said=$(jq '.findings[0] | (.finding.holder.malloc_keeps_bytes // 0) as $kept | .gain_bytes_max // empty
        | (. - $kept) / 1048576' "$runs/$name.json")
    awk -v name="$name" -v finding="$finding" -v cure="${cure[*]}" -v before="$(loaded "$runs/$name.json")" \
        -v after="$(loaded "$runs/$name-cured.json")" -v said="$said" 'BEGIN {
            freed = before - after; off = said > freed ? said - freed : freed - said
            printf "| %s | %s | `%s` | %.1f | %.1f | %.1f | %s | %s |\n", name, finding, cure, before, after, freed,
                said == "" ? "nothing" : sprintf("%.1f", said),
                said == "" ? "" : (off <= 5 || off <= 0.15 * freed) ? "yes" : "no" }'
done
