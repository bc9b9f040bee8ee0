#!/bin/sh
# Captures what `loadline account --from BUNDLE` needs to know about a JVM, for places where Loadline cannot run.
#
#   loadline capture | kubectl exec -i POD -- sh > bundle.tar
#   loadline capture | kubectl exec -i POD -- sh -s PID > bundle.tar          if the container has several JVMs
#   loadline capture | kubectl exec -i POD -- sh -s -- --no-jcmd > bundle.tar
#
# Writes a tar file to stdout and notes to stderr, and removes its working directory. If `jcmd` is available, it attaches
# to the JVM (which costs the JVM 0.2 MiB) and uses about 40 MiB itself for a second. The script skips it with
# `--no-jcmd`, or if the limit leaves too little room. The bundle contains the command lines of the container's processes
# and the environment variables that configure a JVM or malloc. It never contains memory contents.
set -u && export LC_ALL=C && unset JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS
needs='cat cut date dd du grep head mkdir mktemp readlink rm sed sort tar tr uname'
# The maximum numbers of other processes and of page map blocks (512 pages each), and the free bytes that `jcmd` needs.
others_max=200 blocks_max=16384 jcmd_needs=100000000 && timeout=$(command -v timeout) && timeout="$timeout 20"

note() { printf 'capture: %s\n' "$*" >&2; }
fail() { note "$1" && exit 1; }
copy() { cat "$1" >"$2" 2>/dev/null || rm -f "$2"; }
about() { printf '%s=%s\n' "$@" >>"$bundle/about"; }

find_jvm() {
    set -- $(grep -l '/libjvm\.so' /proc/[0-9]*/maps 2>/dev/null | sed 's/[^0-9]//g')
    case $# in
        0) fail "no JVM found: run this script in the JVM's container, as the JVM's user or as root" ;;
        1) jvm=$1 ;;
        *) fail "several JVMs are running ($*); choose one: sh -s PID" ;;
    esac
}

process() {
    into=$bundle/proc/$1 && mkdir -p "$into"
    for file in status stat statm cmdline smaps_rollup cgroup mountinfo; do copy "/proc/$1/$file" "$into/$file"; done
    # The name, type, device, inode, blocks, and link count of each open file.
    ls -l "/proc/$1/fd" >"$into/fd.names" 2>/dev/null
    $timeout stat -L -c '%f %d %i %b %h %n' "/proc/$1/fd"/* >"$into/fd.stat" 2>/dev/null
}

threads() {
    for thread in "/proc/$jvm/task"/*; do
        of=$into/task/${thread##*/} && mkdir -p "$of"
        for file in comm stat status schedstat syscall; do copy "$thread/$file" "$of/$file"; done
    done
}

libraries() {
    sed -n 's/^[0-9a-f-]* r.xp [0-9a-f]* [^ ]* [0-9]* *\(\/.*\)$/\1/p' "$into/maps" | sort -u | while read -r file; do
        mkdir -p "$into/root${file%/*}"
        dd if="/proc/$jvm/root$file" of="$into/root$file" bs=4096 count=1 2>/dev/null
    done
}

# Copies the page map of each mapping that has resident pages, and merges adjacent blocks.
page_map() {
    page=$(sed -n '/^KernelPageSize:/{s/[^0-9]//g;p;q;}' "$into/smaps")
    page=$((${page:-4} * 1024)) blocks=0 first=0 last=-1000 && about page "$page"
    while read -r word value _; do
        case $word in
            [0-9a-f]*-[0-9a-f]*) range=$word ;;
            Rss:) if [ "$value" != 0 ] && [ "${#range}" -lt 30 ]; then resident "${range%-*}" "${range#*-}"; fi ;;
        esac
    done <"$into/smaps"
    copy_blocks
}
resident() {
    from=$((0x$1 / page / 512)) to=$(((0x$2 - 1) / page / 512))
    if [ "$from" -gt $((last + 16)) ]; then copy_blocks; first=$from; fi
    if [ "$to" -gt "$last" ]; then last=$to; fi
}
copy_blocks() {
    if [ "$last" -lt 0 ]; then return; fi
    count=$((last - first + 1)) blocks=$((blocks + last - first + 1))
    if [ "$blocks" -gt "$blocks_max" ]; then
        about left_out "$count blocks of the page map, which is too large"
    else
        dd if="/proc/$jvm/pagemap" of="$into/pagemap.$first" bs=4096 skip="$first" count="$count" 2>/dev/null
    fi
}

# Copies the files of the memory cgroup (v1 or v2), which can be mounted at the cgroup itself or above it.
cgroup() {
    path=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory\(,[^:]*\)\{0,1\}://p' "/proc/$jvm/cgroup")
    path=${path:-$(sed -n 's/^0:://p' "/proc/$jvm/cgroup")}
    for folder in "/sys/fs/cgroup/memory$path" /sys/fs/cgroup/memory "/sys/fs/cgroup$path" /sys/fs/cgroup; do
        if cat "$folder/memory.stat" >/dev/null 2>&1; then break; fi
    done
    about cgroup "$path"
    for file in "$folder"/memory.*; do copy "$file" "$bundle/cgroup/${file##*/}"; done
    # The shell reads the list without starting a process, so the list contains no child of this script.
    while read -r pid; do
        # Cgroup v2 lists a process in another PID namespace as 0.
        if [ "$pid" = 0 ] || { [ "$pid" != $$ ] && [ -e "/proc/$pid/status" ]; }; then echo "$pid"; fi
    done 2>/dev/null <"$folder/cgroup.procs" >"$bundle/cgroup/cgroup.procs"
    number() { cat "$bundle/cgroup/memory.$1" "$bundle/cgroup/memory.$2" 2>/dev/null | sed -n '/^[0-9]\{1,17\}$/p'; }
    limit=$(number max limit_in_bytes) usage=$(number current usage_in_bytes)
    grep -vx -e "$jvm" -e 0 "$bundle/cgroup/cgroup.procs" | head -n $others_max | while read -r other; do process "$other"; done
}

ask() {
    exe=$(readlink "/proc/$jvm/exe") jcmd='' without=''
    for found in "${JAVA_HOME:-/nowhere}/bin/jcmd" "${exe%/*}/jcmd" "$(command -v jcmd)"; do
        [ ! -x "$found" ] || jcmd=$found
    done
    [ -z "$limit" ] || [ $((limit - usage)) -ge $jcmd_needs ] || without='jcmd needs 100 MB of room below the limit'
    [ -n "$jcmd" ] || without='no jcmd was found'
    [ -z "${no_jcmd:-}" ] || without="$no_jcmd was given"
    [ -z "$without" ] || { about left_out "JVM command output: $without, so classes, code, and malloc share a row" && return; }
    for question in GC.heap_info Compiler.codecache 'VM.metaspace vslist' VM.classloader_stats VM.flags \
        'VM.native_memory summary scale=KB'; do
        reply="$bundle/jcmd/$(printf '%s' "$question" | tr ' ' +)"
        $timeout "$jcmd" -J-Xmx16m -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 "$jvm" $question >"$reply" 2>&1 ||
            rm -f "$reply"
    done
}

main() {
    if [ "${1:-}" = --no-jcmd ]; then no_jcmd=$1 && shift; fi
    for tool in $needs; do command -v "$tool" >/dev/null || lacks="${lacks:-} $tool"; done
    [ -z "${lacks:-}" ] || fail "this image lacks$lacks: capture from a debug container (\`kubectl debug --target\`)"
    case $* in '') find_jvm ;; *[!0-9]*) fail "\`$*\` is not a pid; use sh -s -- [--no-jcmd] [PID]" ;; *) jvm=$1 ;; esac
    grep -q "^Tgid:.$jvm\$" "/proc/$jvm/status" 2>/dev/null || fail "no process has pid $jvm here: use the JVM's pid in this container"
    cat "/proc/$jvm/smaps" >/dev/null 2>&1 || fail "cannot read pid $jvm: run this script as the JVM's user or as root"
    grep -q '/libjvm\.so' "/proc/$jvm/maps" || fail "pid $jvm is not a HotSpot JVM: it has no libjvm.so"
    for place in "${TMPDIR:-/tmp}" /dev/shm /var/tmp /run; do
        if work=$(mktemp -d "$place/loadline-XXXXXX" 2>/dev/null); then break; fi
    done
    [ -d "${work:-}" ] || fail 'no directory is writable: mount one at /tmp'
    trap 'rm -rf "$work"' EXIT && trap 'exit 130' INT TERM
    bundle=$work/loadline-capture && mkdir -p "$bundle/cgroup" "$bundle/jcmd"
    about format loadline-capture/1 pid "$jvm" kernel "$(uname -r)" cores "$(grep -c '^processor' /proc/cpuinfo)" \
        memory_kib "$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)" taken_s "$(date +%s)" \
        uptime_s "$(cut -d ' ' -f 1 /proc/uptime)" boot_id "$(cat /proc/sys/kernel/random/boot_id)"
    cgroup
    process "$jvm"
    for file in smaps maps; do copy "/proc/$jvm/$file" "$into/$file"; done
    tr '\0' '\n' <"/proc/$jvm/environ" 2>/dev/null | grep -E '^(MALLOC_|GLIBC_TUNABLES=|[A-Z_]*JAVA_[A-Z]*OPTIONS=)' |
        tr '\n' '\0' >"$into/environ"
    page_map
    threads; libraries
    command -v stat >/dev/null || about left_out 'the sizes of open files: no stat was found'
    inner=$(sed -n 's/^NSpid:.*[^0-9]\([0-9][0-9]*\)$/\1/p' "$into/status")
    for counters in "/proc/$jvm/root"/tmp/hsperfdata_*/"${inner:-$jvm}"; do copy "$counters" "$into/hsperfdata"; done
    ask
    about ended_uptime_s "$(cut -d ' ' -f 1 /proc/uptime)"
    note "captured $(du -sk "$bundle" | cut -f 1) KiB from pid $jvm"
    # `about` comes last, so a bundle without it is truncated.
    tar -cf - -C "$work" loadline-capture/cgroup loadline-capture/jcmd loadline-capture/proc loadline-capture/about
}
# With everything in functions, the shell reads the whole script before running any of it, even from stdin.
main "$@" </dev/null && exit
