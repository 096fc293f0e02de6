#!/bin/sh
# screenshots.sh: makes the pictures of pages in docs/ anew, for `make pictures` and `make results`.
#
#     docs/screenshots.sh [BUILD]                       those of recording.md and inspecting.md
#     docs/screenshots.sh [BUILD] comparison RESULTS    that of the README, from RESULTS/workloads.json
#
# It records and looks at a Redis server under load, writes the pages, and lets a browser take pictures
# of them. Those two commands install what it needs.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build}
hakmem=$build/bin/hakmem
port=7977
work=$(mktemp -d)
trap 'redis-cli -p $port shutdown nosave >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

# picture PAGE HEIGHT OUTPUT
picture() {
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$work/browser" --window-size="1280,$2" \
        --screenshot="$3" "file://$work/$1" >/dev/null 2>&1
    [ -s "$3" ] || { echo "screenshots.sh: the browser made no picture of $1" >&2; exit 1; }
}

if [ "${2:-}" = comparison ]; then
    "$hakmem" report "$3/workloads.json" --html "$work/comparison.html" >/dev/null
    picture comparison.html 1090 "$top/docs/comparison.png"
    python3 "$top/tests/source/readme_results.py" --stamp "$top"
    exit 0
fi

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

for page in recording inspecting; do
    picture $page.html 1500 "$top/docs/$page.png"
done
ls -l "$top"/docs/*.png
