# Objects are made, grouped, rewritten, turned into text and parsed again; some of the results are
# printed. $count says how many, the numbers come from a fixed sequence.
def number($n): ($n * 69069 + 12345) % 65536;

def record($n): {
    id: $n,
    name: "record-\(number($n) % 1000)",
    tags: [range(number($n + 1) % 6) | "tag\(number($n * 7 + .) % 64)"],
    position: {x: (number($n + 2) / 7 | floor), y: (number($n + 3) / 3 | floor)}
};

[range($count) | record(.) | tojson]
| map(fromjson | .name |= ascii_upcase | .position |= with_entries(.key |= "at_" + .))
| [group_by(.name)[] | {name: .[0].name, count: length, tags: [.[].tags[]] | unique}]
| sort_by([-.count, .name])
| .[:20][], (map(.tags | join("+")) | map(gsub("tag(?<n>[0-9])"; "\(.n)")) | join(",") | length)
