"""JSON, dictionaries and strings, then one checksum.

    python-json.py ROUNDS

PYTHONMALLOC=malloc makes every object come from malloc.
"""

import hashlib
import json
import sys


def make_records(count, seed):
    """A list of nested records from a fixed pseudo-random sequence."""
    state = seed
    records = []
    for number in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        records.append({
            "id": number,
            "name": "record-%d-%d" % (number, state % 1000),
            "tags": ["tag%d" % (state >> shift & 63) for shift in (8, 16, 24, 32)],
            "position": {"x": (state >> 11 & 0xFFFF) / 7, "y": (state >> 27 & 0xFFFF) / 3},
            "text": "abcdefgh" * (state >> 40 & 15),
        })
    return records


def group_by_tag(records):
    """Maps each tag to the ids that carry it; churns dictionaries and lists."""
    groups = {}
    for record in records:
        for tag in record["tags"]:
            groups.setdefault(tag, []).append(record["id"])
    return {tag: sorted(set(ids)) for tag, ids in groups.items()}


def count_words(records):
    counts = {}
    for record in records:
        for word in (record["name"] + "-" + record["text"]).split("-"):
            counts[word] = counts.get(word, 0) + 1
    return counts


def main():
    digest = hashlib.sha256()
    for round_number in range(int(sys.argv[1])):
        text = json.dumps(make_records(12000, round_number + 1), sort_keys=True)
        records = json.loads(text)
        digest.update(json.dumps(group_by_tag(records), sort_keys=True).encode())
        digest.update(json.dumps(count_words(records), sort_keys=True).encode())
        digest.update(text.encode())
    print("checksum", digest.hexdigest())


main()
