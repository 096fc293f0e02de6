"""The runner must not call bad what is good, nor the other way round."""

import pathlib
import tempfile
import unittest

import run_platforms
import tables
from platforms import PLATFORMS, Platform

JUNIT = """<testsuite>
<testcase name="good" status="run"><system-out>[  SKIPPED ] inner_case
</system-out></testcase>
<testcase name="bad" status="fail"><failure message=""/><system-out/></testcase>
<testcase name="aside" status="notrun"><skipped message=""/><system-out>skipped: no tool
</system-out></testcase>
<testcase name="absent" status="notrun"><failure message="Unable to find executable"/></testcase>
</testsuite>"""


def result(**changes):
    return {"name": "row", "what": "it", "state": "run", "compiler": "1.2.3", "passed": ["a"],
            "failed": [], "skipped": [], "skipped_cases": [], "reports": [], "problem": "",
            "seconds": 1, **changes}


def problems(**changes):
    return list(run_platforms.problems(result(**changes), pathlib.Path("row")))


class Verdicts(unittest.TestCase):
    def test_a_row_that_passes_has_no_problem(self):
        self.assertEqual(problems(), [])

    def test_everything_else_is_a_problem(self):
        self.assertEqual(len(problems(failed=["b"])), 1)
        self.assertEqual(len(problems(reports=["report.1"])), 1)
        self.assertEqual(len(problems(passed=[])), 1)
        self.assertEqual(len(problems(state="build failed", passed=[], problem="error")), 1)

    def test_a_platform_that_is_not_there_is_none(self):
        self.assertEqual(problems(state="not run", passed=[], problem="gcc is missing"), [])


class Results(unittest.TestCase):
    def test_what_ctest_writes_is_read(self):
        read = result(passed=[])
        with tempfile.TemporaryDirectory() as directory:
            report = pathlib.Path(directory) / "report.xml"
            report.write_text(JUNIT, encoding="utf-8")
            run_platforms.read_results(report, read)
        self.assertEqual(read["passed"], ["good"])
        self.assertEqual(read["failed"], ["bad", "absent"])
        self.assertEqual(read["skipped"], [["aside", "no tool"]])
        self.assertEqual(read["skipped_cases"], ["good: inner_case"])

    def test_a_case_that_cannot_work_is_named_and_nothing_else_is_forgiven(self):
        def known(output):
            return run_platforms.known_failures("test", output, (("test: first", "no limits"),))
        first, second = "[  FAILED  ] first\n", "[  FAILED  ] second\n"
        self.assertEqual(known(first + "\n 1 FAILED TEST(S)\n"), [("first", "no limits")])
        google_test = first + "\n 1 FAILED TEST\n"
        self.assertEqual(known(google_test), [("first", "no limits")])
        self.assertIsNone(known(first + second + "\n 2 FAILED TEST(S)\n"))
        self.assertIsNone(known(first + "it crashed"))
        self.assertIsNone(known("it crashed"))


class Reports(unittest.TestCase):
    def test_an_empty_log_is_no_report(self):
        self.assertFalse(run_platforms.is_report("\n"))
        self.assertTrue(run_platforms.is_report("==1== Invalid read of size 1\n"))
        self.assertFalse(run_platforms.is_report("Memcheck: failure\nhost stacktrace:\n"))


class Runs(unittest.TestCase):
    def run_row(self, **settings):
        with tempfile.TemporaryDirectory() as directory:
            row = Platform("row", "it", **settings)
            return run_platforms.Runner(row, pathlib.Path(directory), 1, False).run()

    def test_a_missing_compiler_is_said(self):
        done = self.run_row(compiler="no-such-compiler")
        self.assertEqual((done["state"], done["problem"]),
                         ("not run", "no-such-compiler is missing"))

    def test_a_build_that_fails_is_said(self):
        done = self.run_row(settings=("HAKMEM_DEBUG=neither",))
        self.assertEqual(done["state"], "build failed")
        self.assertIn("HAKMEM_DEBUG must be 0 or 1", done["problem"])


class Rows(unittest.TestCase):
    def test_names_are_unique(self):
        names = [platform.name for platform in PLATFORMS]
        self.assertEqual(len(names), len(set(names)))

    def test_the_table_is_written_from_all_rows_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            page = pathlib.Path(directory) / "page.md"
            page.write_text(f"head\n{tables.BEGIN}\nold\n{tables.END}\ntail\n", encoding="utf-8")
            with self.assertRaises(SystemExit):
                tables.write(page, [result()], PLATFORMS)
            tables.write(page, [result()], [Platform("row", "it")])
            text = page.read_text(encoding="utf-8")
        self.assertIn("| row | it | 1.2.3 | 1 | 1 | 0 | 0 | 0 |", text)
        self.assertTrue(text.startswith("head\n") and text.endswith("\ntail\n"))
        self.assertNotIn("old", text)


if __name__ == "__main__":
    unittest.main()
