#!/usr/bin/env bash
# Measures the time and memory it takes to read a heap dump: Loadline's reader versus hprof-slurp and Eclipse MAT, if
# they are installed, on the same file in the page cache. Needs a quiet machine.
#
#   bench/explain.sh [--mib N] [--rounds N] [DUMP]    without DUMP, it makes one of about 1 GiB
#
# Needs a JDK and GNU time. To get hprof-slurp, run `cargo install hprof-slurp`; it doesn't compute dominators. MAT
# names the `ParseHeapDump.sh` of Eclipse MAT. MAT writes its indexes next to the dump, so each round has a separate
# directory with a link to it. Prints Markdown to stdout, progress to stderr.
set -euo pipefail
export LC_ALL=C
typed="bench/explain.sh $*"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mib=1200 rounds=3 dump=''
while (($#)); do
    case $1 in
        --mib | --rounds)
            (($# > 1)) || { echo "error: $1 needs a value" >&2 && exit 2; }
            [[ $1 == --mib ]] && mib=$2 || rounds=$2
            shift
            ;;
        -*) echo "error: $1 is not an option" >&2 && exit 2 ;;
        *) dump=$(realpath "$1") ;;
    esac
    shift
done
[[ -x /usr/bin/time ]] || { echo 'error: no /usr/bin/time (Debian: time)' >&2 && exit 4; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$root" && cargo build --quiet --profile dist -p loadline-heap-dump --example holders)
holders=${CARGO_TARGET_DIR:-$root/target}/dist/examples/holders
if [[ -z $dump ]]; then
    dump=$work/heap.hprof
    echo "making a dump" >&2
    java -Xmx6g -XX:+UseParallelGC "$root/bench/HeapOfAll.java" "$dump" "$mib"
fi
cat "$dump" >/dev/null

# measured NAME COMMAND…
measured() {
    local name=$1 round
    shift
    for ((round = 0; round < rounds; round++)); do
        mkdir "$work/round"
        ln -s "$dump" "$work/round/heap.hprof"
        if ! /usr/bin/time -a -o "$work/$name" -f '%e %U %S %M' "$@" >"$work/said" 2>&1; then
            echo "error: \`$*\` failed:" >&2
            tail -n 3 "$work/said" >&2
            exit 4
        fi
        rm -r "$work/round"
    done
    sort -n "$work/$name" | awk -v name="$name" '{ wall[NR] = $1; cpu[NR] = $2 + $3; if ($4 > kib) kib = $4 } END {
        printf "| %s | %.1f | %.1f | %.1f | %.0f |\n", name, wall[int((NR + 1) / 2)], wall[1], cpu[int((NR + 1) / 2)],
            kib / 1024 }'
}

printf 'Machine: %s cores, Linux %s, %s. Command: `%s`.\n' "$(nproc)" "$(uname -r)" "$(date -u +%F)" "$typed"
printf 'Dump: %s bytes.\n\n' "$(stat -c %s "$dump")"
echo '| reader | wall s, median | wall s, best | CPU s | peak RSS, MiB |'
echo '|---|---|---|---|---|'
measured Loadline "$holders" "$dump"
! command -v hprof-slurp >/dev/null || measured hprof-slurp hprof-slurp "$dump"
[[ -z ${MAT:-} ]] || measured 'Eclipse MAT' "$MAT" "$work/round/heap.hprof"
