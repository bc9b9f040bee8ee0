#!/usr/bin/env bash
# Captures the final output of load tools for tests/samples/drivers/:
#
#   $ tests/samples/capture-drivers.sh
#
# Covers whichever of wrk, ab, h2load, oha, and k6 are on the PATH; K6_OLD=PATH names a k6 older than 1.0. Starts a
# small server on port 8080 and kills only that, by pid.
set -uo pipefail
to=$(cd "$(dirname "$0")" && pwd)/drivers
work=$(mktemp -d)
pid=
finish() { [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"; }
trap finish EXIT

cat > "$work/server.py" <<'END'
import asyncio, itertools, random
count = itertools.count()
async def handle(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path, lower = head.split(b" ", 2)[1], head.lower()
            close = b"connection: close" in lower or (b"http/1.0" in lower and b"keep-alive" not in lower)
            status, body = b"200 OK", b"Hello, World!\n"
            if path == b"/slow": await asyncio.sleep(0.03)
            if path == b"/slower": await asyncio.sleep(1.2)
            if path == b"/404": status = b"404 Not Found"
            if path == b"/mixed" and next(count) % 5 == 0: status = b"500 Internal Server Error"
            if path == b"/vary": body = b"x" * random.randint(5, 9)
            if path == b"/reset" and next(count) % 3 == 0: writer.transport.abort(); return
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain\r\nConnection: "
                + (b"close" if close else b"keep-alive")
                + b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
            await writer.drain()
            if close: break
    except (asyncio.IncompleteReadError, ConnectionError): pass
    finally: writer.close()
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 8080)
    await server.serve_forever()
asyncio.run(main())
END
cat > "$work/s.js" <<'END'
import http from 'k6/http';
import { check } from 'k6';
export const options = { vus: 5, duration: '2s', summaryTrendStats: (__ENV.STATS || 'avg,min,med,max,p(90),p(95)').split(','), thresholds: __ENV.TH ? { http_req_duration: [__ENV.TH] } : {} };
export default function () { const r = http.get(__ENV.U); if (__ENV.CHECK) check(r, { 'is 200': (x) => x.status === 200 }); }
END
cp "$work/s.js" "$work/s-json.js"
echo 'export function handleSummary(data) { return { stdout: JSON.stringify(data) }; }' >> "$work/s-json.js"
python3 "$work/server.py" & pid=$!
sleep 1
cd "$work"
export NO_COLOR=1 K6_NO_USAGE_REPORT=true
url=http://127.0.0.1:8080 nobody=http://127.0.0.1:9/
trends='avg,med,max,p(90),p(99),p(99.9)'

# keep NAME COMMAND...: captures both output streams; if the tool is missing, keeps the old sample.
keep() {
  local name=$1; shift
  command -v "$1" > /dev/null || { echo "skipped $name, because there is no $1" >&2; return 0; }
  timeout 60 "$@" > "$to/$name" 2>&1 || echo "$name: exit code $?" >&2
}

keep wrk.txt wrk -t1 -c5 -d2s $url/hello
keep wrk-latency.txt wrk -t2 -c10 -d2s --latency $url/slow
keep wrk-timeouts.txt wrk -t1 -c4 -d3s --timeout 1s --latency $url/slower
keep wrk-non2xx.txt wrk -t1 -c4 -d1s $url/404
keep wrk-errors.txt wrk -t1 -c4 -d1s --latency $url/reset
keep wrk-seconds.txt wrk -t1 -c2 -d5s --timeout 10s $url/slower
keep ab-keepalive.txt ab -n 2000 -c 5 -k $url/hello
keep ab.txt ab -q -n 200 -c 5 $url/slow
keep ab-non2xx.txt ab -q -n 500 -c 5 -k $url/404
keep ab-failed.txt ab -q -n 500 -c 5 -k $url/vary
keep ab-reset.txt ab -q -r -n 300 -c 5 -k $url/reset
keep ab-refused.txt ab -q -n 10 -c 2 $nobody
keep h2load.txt h2load --h1 -n 2000 -c 5 -t 1 $url/hello
keep h2load-duration.txt h2load --h1 -D 2 -c 5 -t 1 $url/slow
keep h2load-non2xx.txt h2load --h1 -n 200 -c 5 $url/404
keep h2load-errors.txt h2load --h1 -n 300 -c 5 $url/reset
keep h2load-refused.txt h2load --h1 -n 10 -c 2 $nobody
keep h2load-seconds.txt h2load --h1 -n 10 -c 2 $url/slower
keep oha.txt oha --no-tui -n 2000 -c 5 $url/hello
keep oha-slow.txt oha --no-tui -z 2s -c 5 $url/slow
keep oha-mixed.txt oha --no-tui -n 500 -c 5 $url/mixed
keep oha-errors.txt oha --no-tui -n 300 -c 5 $url/reset
keep oha-refused.txt oha --no-tui -n 10 -c 2 $nobody
keep oha-slower.txt oha --no-tui -z 3s -c 2 $url/slower
keep oha-corrected.txt oha --no-tui -z 2s -q 100 --latency-correction -c 5 $url/slow
keep oha.json oha --no-tui --output-format json -z 1s -c 5 $url/slow
keep oha-errors.json oha --no-tui --output-format json -n 300 -c 5 $url/reset
keep oha-refused.json oha --no-tui --output-format json -n 10 -c 2 $nobody
keep k6-compact.txt k6 run -q -e U=$url/slow s.js
keep k6-full.txt k6 run -e U=$url/mixed -e CHECK=1 -e "STATS=$trends" --summary-mode=full s.js
keep k6-threshold.txt k6 run -e U=$url/hello -e 'TH=p(95)<0.001' s.js
keep k6-legacy.txt k6 run -e U=$url/hello --summary-mode=legacy s.js
keep k6-handle.json k6 run -q -e U=$url/slow -e "STATS=$trends" s-json.js
keep k6-export.json k6 run -q -e U=$url/mixed --summary-export=/dev/stdout s.js
keep k6-new.json k6 run -q -e U=$url/slow --new-machine-readable-summary --summary-export=/dev/stdout s.js
keep k6-refused.txt k6 run -e U=$nobody s.js
keep k6-052.txt "${K6_OLD:-k6-old}" run -q -e U=$url/mixed s.js
keep k6-052-stats.txt "${K6_OLD:-k6-old}" run -q -e U=$url/slow -e CHECK=1 -e "STATS=avg,min,$trends" s.js
