#!/usr/bin/env bash
# Are the verdicts right? A configuration compared repeatedly with itself must show no difference and break no budget. A
# subject that really uses 4 MiB more must be detected. Also prints this machine's noise, for the simulations in
# crates/comparison. Needs a quiet machine for about 15 minutes.
#   bench/compare.sh [COMPARISONS [BLOCKS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
comparisons=${1:-20}
blocks=${2:-5}
cargo build --profile dist
loadline=$PWD/target/dist/loadline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp java/compiled/demo.jar "$work"
javac -d "$work" java/subjects/loadline/subjects/{NativeHungry,Listener,Dialogue}.java

cat >"$work/same.loadline.yaml" <<'YAML'
name: same
subject:
  command: [java, "{jvm}", -jar, demo.jar, "{port}"]
  ready: {http: /hello, within: 30s}
configurations:
  a: {heap: 16m, gc: serial}
  b: {heap: 16m, gc: serial}
load:
  - warmup: {same: steady}
  - steady: {closed: {connections: 25, requests: 30000}, get: /hello}
marks: [start, loaded]
compare: {metrics: [rss.loaded, cpu_per_1000, rate]}
budgets: ["rss.loaded<=+2%", "rss.loaded<=+1MiB", "cpu_per_1000<=+3%"]
YAML
cat >"$work/more.loadline.yaml" <<'YAML'
name: more
subject:
  command: [java, "{jvm}", -cp, ., loadline.subjects.NativeHungry, "{port}"]
  ready: {http: /, within: 30s}
configurations:
  eight: {heap: 32m, gc: serial, args: [8]}
  twelve: {heap: 32m, gc: serial, args: [12]}
load:
  - steady: {closed: {connections: 5, requests: 3000}, get: /}
marks: [start, loaded]
compare: {metrics: [rss.start, rss.loaded]}
YAML

printf 'machine: %s cores, Linux %s, %s\n' "$(nproc)" "$(uname -r)" "$(java -version 2>&1 | head -n 1)"
printf 'command: bench/compare.sh %s %s\n\n' "$comparisons" "$blocks"
for ((i = 1; i <= comparisons; i++)); do
    "$loadline" compare "$work/same.loadline.yaml" --trials "$blocks" --seed "$i" --out "$work/same-$i" --yes \
        >"$work/same-$i.txt" || printf 'comparison %s: exit code %s\n' "$i" "$?"
    "$loadline" report "$work/same-$i" --csv - >"$work/same-$i.csv"
    awk '/^ +(better|worse|equivalent|cannot tell) / || /^ +(pass|fail|undecided) /' "$work/same-$i.txt" >>"$work/verdicts"
done

printf '%s comparisons of a configuration with itself, %s blocks each:\n' "$comparisons" "$blocks"
awk '{ verdict = $1 == "cannot" ? "cannot tell" : $1; what = $1 == "cannot" ? $3 : $2; count[what "\t" verdict]++ }
    END { for (key in count) { split(key, part, "\t"); printf "  %-20s %-12s %d\n", part[1], part[2], count[key] } }' \
    "$work/verdicts" | sort

printf '\nnoise of trials within a block, and between blocks (standard deviations):\n'
for i in $(seq "$comparisons"); do
    awk -v comparison="$i" -F, 'NR > 1 && ($5 == "rss.loaded" || $5 == "cpu_per_1000.steady") { print comparison "," $2 "," $5 "," $7 }' \
        "$work/same-$i.csv"
done | awk -F, '
    { key = $3; block = $1 "." $2; sum[key, block] += $4; square[key, block] += $4 * $4; seen[key, block]++; keys[key]; blocks[block] }
    END {
        for (key in keys) {
            n = total = within = 0
            for (block in blocks) if (seen[key, block] == 2) {
                mean = sum[key, block] / 2
                within += square[key, block] - 2 * mean * mean
                total += mean; squares += mean * mean; n++
            }
            between = (squares - total * total / n) / (n - 1) - within / n / 2
            squares = 0
            scale = key ~ /^rss/ ? 1048576 : total / n / 100
            printf "  %-20s within %.3f, between %.3f %s (%d blocks)\n", key, sqrt(within / n) / scale,
                sqrt(between > 0 ? between : 0) / scale, key ~ /^rss/ ? "MiB" : "%", n
        }
    }'

printf '\na subject that uses 4 MiB more:\n'
"$loadline" compare "$work/more.loadline.yaml" --trials 10 --out "$work/more" --yes |
    awk '/^ +(better|worse|equivalent|cannot tell) /'
