"""In programs that the library is linked into, no function of it is named as a call site.

usage: linked_test.py HAKMEM FOLDER"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HAKMEM = ""
FOLDER = pathlib.Path()


class Linked(unittest.TestCase):
    def sites(self, program):
        with tempfile.TemporaryDirectory() as place:
            record = [HAKMEM, "record", "--sample-kib", "1", "--output", place, "--", program]
            subprocess.run(record, check=True, timeout=250, stderr=subprocess.DEVNULL)
            [log] = pathlib.Path(place).glob("linked*.hakprof")
            text = subprocess.run([HAKMEM, "report", log, "--json"], check=True, timeout=250,
                                  stdout=subprocess.PIPE).stdout
        report = json.loads(text)
        return [site for site in report["sites"] if site["end_bytes"]], report["problems"]

    def check(self, program, has_tables=True):
        sites, problems = self.sites(FOLDER / program)
        owners = {site["stack"][0]["function"] for site in sites if site["stack"]}
        source = (pathlib.Path(__file__).parent / "linked.c").read_text()
        calls = {f"hold_by_{name}" for name in re.findall(r"^HOLD\((\w+),", source, re.MULTILINE)}
        # Others are the C library's.
        own = {owner for owner in owners if owner.startswith("hold_by_")}
        self.assertEqual(own, calls)
        held = sum(site["end_bytes"] for site in sites)
        by_calls = sum(site["end_bytes"] for site in sites
                       if site["stack"] and site["stack"][0]["function"] in calls)
        self.assertGreater(by_calls, 0.99 * held, owners - calls)
        self.assertEqual(any("stacks end early" in problem for problem in problems),
                         not has_tables, problems)

    def test_linked(self):
        self.check("linked")

    def test_static(self):
        self.check("linked_static", has_tables=False)

    def test_static_pie(self):
        self.check("linked_static_pie")


if __name__ == "__main__":
    HAKMEM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1], verbosity=2)
