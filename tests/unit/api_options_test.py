#!/usr/bin/env python3
"""Options from outside: a program linked with the library runs with an environment, and says what
became of it. Usage: api_options_test.py PROGRAM (the built options_child)."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
CALLS = 50 * 6 * 3  # allocations of `options_child get`, without the reallocs that move

PRESETS = {
    "speed": {"magazine_kib": 128, "big_cache_mib": 256, "retain_percent": 100,
              "purge_delay_ms": 2000, "huge_pages": 1, "shards": 0},
    "balanced": {"magazine_kib": 64, "big_cache_mib": 64, "retain_percent": 25,
                 "purge_delay_ms": 250, "huge_pages": 1, "shards": 0},
    "lean": {"magazine_kib": 16, "big_cache_mib": 0, "retain_percent": 5,
             "purge_delay_ms": 50, "huge_pages": 1, "shards": 1},
}


def run(arguments=("get",), **variables):
    """Runs the program with HAKMEM_<NAME>=value for each variable, and none besides."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("HAKMEM_")}
    environment.update({f"HAKMEM_{name}": value for name, value in variables.items()})
    return subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True,
                          text=True, timeout=250, check=True)


def values(done):
    """The lines `name value` of the output as a dictionary."""
    pairs = (line.split() for line in done.stdout.splitlines())
    return {name: int(value) if value.lstrip("-").isdigit() else value for name, value in pairs}


class Values(unittest.TestCase):
    """What is set, and that nothing is said about it."""

    def check(self, expected, **variables):
        done = run(**variables)
        self.assertEqual(done.stderr, "")
        found = values(done)
        self.assertEqual({name: found[name] for name in expected}, expected)
        self.assertEqual(found["good"], 1)
        return found

    def test_defaults_are_the_balanced_preset(self):
        self.check({**PRESETS["balanced"], "preset": 1, "fallback": 0, "stats": 0})

    def test_presets(self):
        for position, (name, expected) in enumerate(PRESETS.items()):
            self.check({**expected, "preset": position}, PRESET=name)
            self.check({**expected, "preset": position}, OPTIONS=f"preset={name}")

    def test_hardened_is_another_library(self):
        for variables in ({"PRESET": "hardened"}, {"OPTIONS": "preset=hardened"},
                          {"HARDENED": "1"}):
            with self.assertRaises(subprocess.CalledProcessError) as ended:
                run(**variables)
            self.assertEqual(ended.exception.returncode, 127)
            self.assertEqual(ended.exception.stdout, "")
            self.assertEqual(ended.exception.stderr.count("\n"), 1)
            self.assertIn("libhakmem-hardened.so.0", ended.exception.stderr)
        self.check({"preset": 3}, PRESET="hardened", HARDENED="0")

    def test_limits_are_inclusive(self):
        for name, low, high in (("magazine_kib", 1, 1024), ("big_cache_mib", 0, 65536),
                                ("retain_percent", 0, 1000), ("purge_delay_ms", 0, 3600000),
                                ("huge_pages", 0, 1), ("shards", 0, 64)):
            for value in (low, high):
                self.check({name: value}, **{name.upper(): str(value)})

    def test_lists(self):
        self.check({"retain_percent": 7, "shards": 3},
                   OPTIONS="retain_percent=7,shards=3")
        self.check({"retain_percent": 7}, OPTIONS=",retain_percent=7,")
        self.check({}, OPTIONS="")

    def test_the_preset_comes_first_wherever_it_stands(self):
        expected = {**PRESETS["lean"], "magazine_kib": 99}
        self.check(expected, OPTIONS="magazine_kib=99,preset=lean")
        self.check(expected, OPTIONS="magazine_kib=99", PRESET="lean")
        self.check(expected, PRESET="lean", MAGAZINE_KIB="99")

    def test_a_variable_of_its_own_wins_over_the_list(self):
        self.check({"shards": 5}, OPTIONS="shards=3", SHARDS="5")
        self.check({"preset": 0}, OPTIONS="preset=lean", PRESET="speed")


    def test_an_empty_variable_is_none(self):
        empty = {name: "" for name in ("PRESET", "FALLBACK", "STATS", "SHARDS", "RETAIN_PERCENT",
                                       "STATS_FILE", "CRASH_FILE", "OPTIONS", "NO_SUCH_OPTION")}
        self.check({**PRESETS["balanced"], "preset": 1, "fallback": 0, "stats": 0}, **empty)
        self.check({**PRESETS["lean"], "preset": 2}, **{**empty, "PRESET": "lean"})
        self.check({"shards": 3}, OPTIONS="shards=3", SHARDS="")


class Complaints(unittest.TestCase):
    """One line for each mistake; the default holds."""

    def check(self, lines, **variables):
        done = run(**variables)
        self.assertEqual(done.stderr.splitlines(), lines)
        found = values(done)
        for name, value in PRESETS["balanced"].items():
            self.assertEqual(found[name], value)
        self.assertEqual(found["good"], 1)

    def test_unknown_names(self):
        for wrong in ("SHARD", "STATS_FILES", "X"):
            line = f"hakmem: option {wrong.lower()} does not exist"
            self.check([line], **{wrong: "1"})
            self.check([line], OPTIONS=f"{wrong.lower()}=1")

    def test_very_long_names_and_values(self):
        done = run(**{"X" * 5000: "1", "SHARDS": "9" * 5000})
        self.assertEqual(len(done.stderr.splitlines()), 2)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("hakmem: option "), line)
            self.assertLess(len(line), 300)
        done = run(OPTIONS="y" * 5000 + "=1")
        self.assertTrue(done.stderr.startswith("hakmem: option yyyy"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertTrue(done.stderr.endswith("\n"), "the line is not ended")

    def test_numbers_out_of_range(self):
        for name, wrong, values in (
                ("shards", "65", "0 to 64"), ("shards", "-1", "0 to 64"),
                ("magazine_kib", "0", "1 to 1024, in KiB"),
                ("magazine_kib", "1025", "1 to 1024, in KiB"),
                ("big_cache_mib", "99999999999999999999999999", "0 to 65536, in MiB"),
                ("big_cache_mib", "-99999999999999999999999999", "0 to 65536, in MiB"),
                ("big_cache_mib", "100K", "0 to 65536, in MiB"),
                ("big_cache_mib", "65G", "0 to 65536, in MiB"),
                ("big_cache_mib", "M", "0 to 65536, in MiB"),
                ("magazine_kib", "2M", "1 to 1024, in KiB"),
                ("shards", "1K", "0 to 64"),
                ("purge_delay_ms", "3600001", "0 to 3600000, in ms")):
            line = (f"hakmem: option {name} cannot be {wrong}: it is a number from {values}; "
                    f"it stays {PRESETS['balanced'][name]}")
            self.check([line], **{name.upper(): wrong})
            self.check([line], OPTIONS=f"{name}={wrong}")

    def test_what_is_no_number(self):
        for wrong in ("many", "12x", "0x10", "1.5", " 3", "-", "+3"):
            line = (f"hakmem: option retain_percent cannot be {wrong}: it is a number from 0 to "
                    "1000, in %; it stays 25")
            self.check([line], RETAIN_PERCENT=wrong)
        self.check(["hakmem: option stats cannot be yes: it is 0 or 1; it stays 0"], STATS="yes")

    def test_a_line_stays_a_line(self):
        self.check(["hakmem: option shards cannot be 1?2??: it is a number from 0 to 64; "
                    "it stays 0"], SHARDS="1\n2\x1b\x7f")

    def test_words(self):
        for name, wrong, words, stays in (
                ("preset", "fast", "speed, balanced, lean, hardened", "balanced"),
                ("preset", "Speed", "speed, balanced, lean, hardened", "balanced"),
                ("preset", "speed balanced", "speed, balanced, lean, hardened", "balanced"),
                ("preset", "1", "speed, balanced, lean, hardened", "balanced"),
                ("fallback", "glibc", "none, libc", "none")):
            self.check([f"hakmem: option {name} cannot be {wrong}: it is one of {words}; "
                        f"it stays {stays}"], **{name.upper(): wrong})

    def test_list_entries_without_a_value(self):
        line = ("hakmem: option shards has no value in HAKMEM_OPTIONS: write shards=VALUE; "
                "it stays 0")
        for entry in ("shards", "shards="):
            done = run(OPTIONS=f"{entry},retain_percent=7")
            self.assertEqual(done.stderr, line + "\n")
            self.assertEqual(values(done)["retain_percent"], 7)
        self.check(["hakmem: option preset has no value in HAKMEM_OPTIONS: write preset=VALUE; "
                    "it stays balanced"], OPTIONS="preset=")

    def test_the_file_has_a_variable_of_its_own(self):
        for name in ("stats_file", "crash_file"):
            line = (f"hakmem: option {name} cannot stand in HAKMEM_OPTIONS: set "
                    f"HAKMEM_{name.upper()} to the path")
            for entry in (f"{name}=x", name, f"{name}="):
                self.check([line], OPTIONS=entry)

    def test_every_mistake_has_its_line(self):
        done = run(OPTIONS="nope=1,shards=99,preset=quick", RETAIN_PERCENT="x", WRONG="1")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 5, lines)
        for line in lines:
            self.assertTrue(line.startswith("hakmem: option "), line)


class AtRunTime(unittest.TestCase):
    """hakmem_option_set and hakmem_option_get."""

    def check(self, name, value, result, afterwards):
        found = values(run(("set", name, str(value))))
        self.assertEqual(str(found["set"]), result)
        self.assertEqual(found["value"], afterwards)
        self.assertEqual(found["errno"], 77)

    def test_set_within_limits(self):
        for name, value in (("stats", 0), ("magazine_kib", 1024), ("big_cache_mib", 0),
                            ("retain_percent", 1000), ("purge_delay_ms", 0), ("huge_pages", 1)):
            self.check(name, value, "0", value)

    def test_set_beyond_limits(self):
        for name, value in (("stats", 2), ("magazine_kib", 0), ("big_cache_mib", 65537),
                            ("retain_percent", -1), ("huge_pages", 2 ** 62)):
            self.check(name, value, "ERANGE", PRESETS["balanced"].get(name, 0))

    def test_set_what_is_settled_at_the_start(self):
        self.check("preset", 2, "EPERM", 1)
        self.check("fallback", 1, "EPERM", 0)
        self.check("shards", 4, "EPERM", 0)
        self.check("shards", 1000, "EPERM", 0)

    def test_unknown_names(self):
        for name in ("", "nope", "Shards", "shards ", "stats_file", "stat"):
            found = values(run(("set", name, "1")))
            self.assertEqual((found["set"], found["get"]), ("ENOENT", "ENOENT"))
            self.assertEqual(found["value"], -1)

    def test_environment_shows(self):
        found = values(run(("set", "purge_delay_ms", "-1"), PURGE_DELAY_MS="77"))
        self.assertEqual(found["value"], 77)

    def change(self, name, value, **settings):
        """What the option has an effect on, before and after it was set."""
        found = values(run(("change", name, str(value)), **settings))
        self.assertEqual(str(found["set"]), "0", name)
        return found["before"], found["after"]

    def test_less_is_kept(self):
        before, after = self.change("magazine_kib", 1)
        self.assertGreater(before, 1000)
        self.assertLess(after, 1000)
        before, after = self.change("big_cache_mib", 0)
        self.assertGreaterEqual(before, 20 << 20)
        self.assertLess(after, 1 << 20)
        never = {"PURGE_DELAY_MS": "3600000", "RETAIN_PERCENT": "1000"}
        before, after = self.change("purge_delay_ms", 1, **never)
        self.assertGreater(before, 10 << 20)
        self.assertLess(after, before / 2)

    def test_what_was_less_is_more(self):
        before, after = self.change("big_cache_mib", 64, BIG_CACHE_MIB="0")
        self.assertLess(before, 1 << 20)
        self.assertGreaterEqual(after, 20 << 20)
        before, after = self.change("magazine_kib", 64, MAGAZINE_KIB="1")
        self.assertGreater(after, before * 2)

    def test_observation_begins_and_ends(self):
        before, after = self.change("sample_kib", 1)
        self.assertTrue(before == 0 and after > 0)
        self.assertIn("malloc", run(("set", "stats", "1")).stderr)
        self.assertEqual(run(("set", "stats", "0"), STATS="1").stderr, "")

    def test_a_limit_comes_and_goes(self):
        self.assertEqual(self.change("limit_mib", 5, LIMIT_MIB="9"), (9 << 20, 5 << 20))
        self.assertEqual(self.change("limit_mib", 5)[1], 5 << 20)

    def test_numbers_may_have_a_unit(self):
        for text, mib in ("9M", 9), ("2G", 2 << 10), ("1048576G", 1 << 30):
            self.assertEqual(self.change("limit_mib", 5, LIMIT_MIB=text)[0], mib << 20)


class Fallback(unittest.TestCase):
    """HAKMEM_FALLBACK=libc: the C library serves every call."""

    def test_every_call_is_passed_on(self):
        done = run(FALLBACK="libc", STATS="1")
        found = values(done)
        self.assertEqual(found["good"], 1)
        self.assertEqual(found["malloc_calls"], 0)
        self.assertGreaterEqual(found["libc_calls"], CALLS)

    def test_no_call_is_passed_on_otherwise(self):
        found = values(run(STATS="1"))
        self.assertGreaterEqual(found["malloc_calls"], CALLS)
        self.assertEqual(found["libc_calls"], 0)


class Reports(unittest.TestCase):
    """HAKMEM_STATS and HAKMEM_STATS_FILE at exit."""

    def test_table(self):
        done = run(STATS="1", PRESET="lean")
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], r"^hakmem \d+\.\d+\.\d+ statistics of process ")
        self.assertEqual(lines[1], f"command: {PROGRAM} get")
        self.assertIn("preset=lean", lines[2])
        self.assertIn("magazine_kib=16", lines[2])
        rows = {line.split()[0]: line.split() for line in lines if line}
        for tier, least in (("tiny", 450), ("mid", 150), ("large", 150), ("big", 150)):
            self.assertGreaterEqual(int(rows[tier][1]), least, rows[tier])
        self.assertEqual(int(rows["all"][1]), sum(
            int(rows[tier][1]) for tier in ("tiny", "mid", "large", "big")))
        self.assertNotIn("passed on", done.stderr)
        memory = {line[:14].strip(): line[14:27].split() for line in lines}
        for name in ("live", "cached", "free dirty", "metadata", "committed", "mapped",
                     "purged so far", "RSS", "peak RSS"):
            self.assertRegex(" ".join(memory[name]), r"^([0-9]+ B|[0-9]{1,4}\.[0-9] [KMGT]iB)$")
        self.assertEqual(memory["mapped"][1], "MiB")

    def test_table_of_the_c_library(self):
        done = run(STATS="1", FALLBACK="libc")
        self.assertRegex(done.stderr, r"\nof these, passed on to the C library: [0-9]{4,}\n")

    def test_no_table_without_being_asked(self):
        self.assertEqual(run(STATS="0").stderr, "")

    def test_file(self):
        with tempfile.TemporaryDirectory() as directory:
            done = run(STATS_FILE=f"{directory}/stats-%p.json", RETAIN_PERCENT="33")
            self.assertEqual(done.stderr, "")
            files = list(Path(directory).iterdir())
            self.assertEqual(len(files), 1)
            self.assertRegex(files[0].name, r"^stats-[0-9]+\.json$")
            report = json.loads(files[0].read_text(encoding="ascii"))
        self.assertEqual(report["options"]["retain_percent"], 33)
        self.assertEqual(report["options"]["preset"], "balanced")
        self.assertEqual(list(report["tiers"]), ["tiny", "mid", "large", "big"])
        self.assertGreaterEqual(
            sum(tier["malloc_calls"] for tier in report["tiers"].values()), CALLS)
        sizes = [entry["size"] for entry in report["classes"]]
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertEqual((sizes[0], sizes[-1]), (16, 2097152))

    def test_file_of_a_program_that_overwrites_its_environment(self):
        with tempfile.TemporaryDirectory() as directory:
            done = run(("overwrite",), STATS_FILE=f"{directory}/stats.json")
            self.assertEqual(done.stderr, "")
            self.assertTrue(Path(directory, "stats.json").exists())

    def test_file_with_a_path_that_is_too_long(self):
        done = run(STATS_FILE="/tmp/" + "x" * 4096)
        self.assertEqual(done.stderr, "hakmem: option stats_file: the path is too long\n")

    def test_file_that_cannot_be_written(self):
        done = run(STATS_FILE="/nonexistent/stats.json")
        self.assertRegex(done.stderr, "^hakmem: option stats_file: cannot write "
                                      "/nonexistent/stats.json[^\\n]*\\n$")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
