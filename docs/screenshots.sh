#!/bin/sh
# screenshots.sh: makes the pictures of pages in docs/ anew, for `make pictures` and `make results`.
#
#     docs/screenshots.sh [BUILD]               all of them
#     docs/screenshots.sh [BUILD] comparison    that of the README, from docs/benchmarks.json
#
# It records and looks at a Redis server under load and records a C++ compiler, writes the pages, and
# lets a browser take pictures of them, 1280 pixels wide and 400. Those two commands install what it
# needs.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build}
hakmem=$build/bin/hakmem
port=7977
work=$(mktemp -d)
trap 'redis-cli -p $port shutdown nosave >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

# picture PAGE WIDTH HEIGHT OUTPUT. A browser's window has a width of 500 at least: a narrow page lies in
# a frame.
picture() {
    cat >"$work/frame.html" <<FRAME
<body style="margin:0"><iframe src="$1" style="border:0;width:$2px;height:$3px"></iframe>
FRAME
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$work/browser" --window-size="$2,$3" \
        --screenshot="$4" "file://$work/frame.html" >/dev/null 2>&1
    [ -s "$4" ] || { echo "screenshots.sh: the browser made no picture of $1" >&2; exit 1; }
}

"$hakmem" report "$top/docs/benchmarks.json" --html "$work/comparison.html" >/dev/null
picture comparison.html 1280 1090 "$top/docs/comparison.png"
python3 "$top/tests/source/readme_results.py" --stamp "$top"
[ "${2:-}" != comparison ] || exit 0

"$hakmem" record --sample-kib 64 --output "$work/redis" -- \
    redis-server --port $port --save '' --daemonize no >/dev/null 2>&1 &
recorder=$!
sleep 2
redis-benchmark -p $port -n 20000 -r 20000 -d 400 -t set,lpush,hset -q >/dev/null
server=$(redis-cli -p $port info server | tr -d '\r' | sed -n 's/^process_id://p')
"$hakmem" inspect "$server" --html "$work/inspecting.html" >/dev/null
redis-cli -p $port shutdown nosave >/dev/null 2>&1 || true
wait $recorder || true
"$hakmem" report "$work"/redis/redis-server.*.hakprof --html "$work/recording.html" >/dev/null

"$hakmem" record --sample-kib 64 --output "$work/compiler" -- \
    g++ -DTYPES=6 -O1 -c "$top/lab/programs/templates.cpp" -o /dev/null >/dev/null 2>&1
"$hakmem" report "$work"/compiler/cc1plus.*.hakprof --html "$work/compiler.html" >/dev/null

for page in recording compiler inspecting; do
    picture $page.html 1280 1500 "$top/docs/$page.png"
done
picture recording.html 400 2600 "$top/docs/recording-narrow.png"
picture inspecting.html 400 2600 "$top/docs/inspecting-narrow.png"
ls -l "$top"/docs/*.png
