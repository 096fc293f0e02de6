"""mutate.py --source DIR --build DIR [--sample N] [--report FILE]: weakens the core on purpose.

Each mutant of the core's sources has one memory order made relaxed, one lock left out of one
function, one structure that the child of fork does not put right, or one step of a protocol left
out. The models have to fail for each of them; those that cannot are in SURVIVORS, with the reason.
Nothing in the source tree is changed. Exit status 0: all as it should be.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

PROGRAMS = ("model_core", "model_locks")
RUN_LIMIT_S = 300
SCENARIO_LIMIT_S = 60
EXECUTIONS_MAX = 200000
CRASHED = "ended with status %d" % signal.SIGSEGV

WEAKER = (
    (r"ATOMIC_LOAD_ACQUIRE\(", "ATOMIC_LOAD_RELAXED("),
    (r"ATOMIC_STORE_RELEASE\(", "ATOMIC_STORE_RELAXED("),
    (r"__ATOMIC_ACQUIRE\b", "__ATOMIC_RELAXED"),
    (r"__ATOMIC_RELEASE\b", "__ATOMIC_RELAXED"),
    (r"__ATOMIC_ACQ_REL\b", "__ATOMIC_ACQUIRE"),
    (r"__ATOMIC_ACQ_REL\b", "__ATOMIC_RELEASE"),
)

# Steps of protocols: file, text that occurs once, what to put there, and what that breaks.
STEPS = (
    ("os/lock.c", "os_futex_wake(&lock->word);", ";", "nobody is woken"),
    ("os/lock.c", "try_word(lock, 0, self | LOCK_WAITERS)", "try_word(lock, 0, self)",
     "who has waited forgets the others"),
    ("os/lock.c", "(word & LOCK_HOLDER) == before ? now : 0", "0",
     "the child opens a lock that it is inside of"),
    ("os/lock.c", "return holder && holder != before;", "return false;",
     "the child takes half a change for a whole one"),
    ("os/identity.c", "            repair_process(before, id);",
     "            ;",
     "nobody puts the new process right"),
    ("slab/bin_walk.c", " && slab->attached &&", " &&",
     "the child puts back a slab that its thread is about to make or end"),
    ("span/big_part.c", "        if (big->live) {", "        if (!big->cached) {",
     "the child takes a mapping that its thread is about to unmap for a live one"),
    ("thread/fork.c", "->lock, bin_repair, bin);", "->lock, page_heap_repair, 0);",
     "the child does not put bins right"),
    ("thread/heap.c", "        ATOMIC_STORE_RELAXED(&init_state, FRESH);\n", "        ;\n",
     "the child waits for an initialisation that nobody goes on with"),
    ("thread/registry.c", "        pool->warm = pool->empty = pool->bare = NULL;\n", "",
     "the child keeps a list that was in the middle of a change"),
    ("thread/heap.c", "        registry_enter_process(heap);", "            ;",
     "a thread's heap stays one of the parent's"),
    ("thread/registry.c", "!identity_is_local(owner) && !forget_blocks(heap)", "false",
     "the child uses what a thread of the parent cached"),
    ("slab/slab.c", "(uint16_t)bitmap_count_range(slab->free, 0, slab->blocks);",
     "slab->free_blocks;", "the child does not count the free blocks of a slab"),
    ("slab/transfer.c", "    if (count)\n        memcpy(bin->stack + held, blocks, count * "
     "sizeof *blocks);\n    KEEP_STORE_ORDER();\n    set_count(bin, held + count);\n",
     "    set_count(bin, held + count);\n    if (count)\n"
     "        memcpy(bin->stack + held, blocks, count * sizeof *blocks);\n",
     "the child finds blocks in the transfer cache that are not there yet"),
    ("slab/transfer.c", "bin->stacked || bin->kept", "bin->kept",
     "a drain passes by a cache that got blocks meanwhile"),
    ("slab/transfer.c", "bin->stacked || bin->kept", "bin->stacked",
     "empty slabs stay where nobody looks for them"),
    ("slab/transfer.c", "    if (left_slots)\n", "    if (left)\n",
     "the child gives back a record whose size it does not know"),
    ("map/metadata.c", "    freed->next = *list;\n    KEEP_STORE_ORDER();\n    *list = freed;\n",
     "    struct free_record *next = *list;\n    *list = freed;\n    freed->next = next;\n",
     "the child finds a record in a list that ends with it"),
    ("slab/slab.c", "        set_units(slab, after, before, NULL);\n", "",
     "units that a block gave back are still found to be its"),
    ("slab/slab.c", "        ATOMIC_STORE_RELAXED(superslab_state(superslab, slab_block(slab, i)), "
     "BLOCK_UNUSED);\n", "        ;\n",
     "the states of a slab that has gone are found in the next one"),
    ("slab/slab.c", "        superslab_start_block(slab->base, size_class);\n",
     "        (void)0;\n",
     "a block that changed its class goes into a magazine of the old one"),
    ("api/alloc.c", "        superslab_start_block(block, size_class);\n", "",
     "a block that was handed out is free"),
    ("slab/sweep.c", "    set_blocks_of(bin, slab, start, length, false);\n", "",
     "blocks are handed out while their pages are purged"),
    ("span/page_heap.c", "        unsigned dirty = take_run(superslab, run);\n        lock_release",
     "        unsigned dirty = 0;\n        lock_release",
     "pages are handed out while they are purged"),
    ("map/page_map.c", "    set(&wide_class_map, address, units, class);\n",
     "    if (class)\n        set(&wide_class_map, address, units, class);\n",
     "a slab that is gone is still in the wide class map"),
    ("span/page_heap.c", "    page_map_unregister(&superslab->region);\n", "",
     "a superslab that is gone is still found"),
    ("span/big_cache.c",
     "        big_part_extract(part, big);\n        big_part_hand_out(part, big, size);\n",
     "        big_part_hand_out(part, big, size);\n",
     "a mapping that was taken is still in the cache"),
    ("span/big_part.c", "big && big->mapped < size && big", "big && big",
     "a mapping that came between two looks is made longer, by less"),
    ("thread/registry.c", "    *list = heap->next_free;\n    count_owned(heap, 1);\n",
     "    count_owned(heap, 1);\n", "two threads take the same heap"),
    ("thread/registry.c", "    heap_flush(heap, SIZE_MAX);\n    if (ATOMIC", "    if (ATOMIC",
     "a heap is pooled with blocks"),
    ("thread/idle.c",
     "os_time_between(os_clock_ns(), heap->closed_ns) >= SETTLE_NS",
     "true", "a heap is drained as soon as it is closed"),
    ("thread/idle.c", "FLUSH_MAX, heap->state == HEAP_CLOSED)", "FLUSH_MAX, 0)",
     "the block on top is taken from under a hit"),
    ("thread/idle.c", "    heap_find_sentinels(heap);\n", "",
     "a child goes on where another thread had just drained"),
    ("reclaim/engine.c", "state == ENGINE_WORKS ||", "false ||", "two threads move the hand"),
    ("reclaim/background.c", "    os_sleep_ms(1);\n    bool more", "    bool more",
     "the helper ends before it could see what came free"),
    ("reclaim/background.c", "bool more = has_work()", "bool more = false",
     "the helper ends though something came free"),
    ("reclaim/background.c", "state == HELPER_ENDS ||", "false ||",
     "a second helper is started beside the first"),
    ("reclaim/engine.c", "    if (UNLIKELY(POLICY(background)))\n        background_works();",
     "    ;", "the last call finds something, and tells no helper"),
    ("base/pressure.c", "    change_armed(ARMED, 0);",
     "    ATOMIC_STORE_RELAXED(&pressure_armed, 0);",
     "what came free in the last round is taken for what it left"),
    ("base/pressure.c", "before & ARMED_ANEW ? ARMED_BEFORE : 0", "0",
     "what came free just before the last round stays"),
    ("thread/heap.c", "        idle_disown(heap);\n        enter_process(heap);",
     "        enter_process(heap);", "a heap is pooled and still drained"),
)

WALKERS = re.compile(r"_check(_all|_pool)?$")

Mutant = collections.namedtuple("Mutant", "file line function kind text")

# Mutants that no model can see, by (file, function, kind); the value says why.
_SET_ENTRY = "stronger than needed: set_entry, which every user of the leaf calls, acquires it"
_SHARED = "for the id of a process that shares the memory: one process is modelled"
_EXCHANGE = ("not modelled: the exchange in take_over could come before the store of the owner, "
             "which was made earlier; in the engine it reads the newest store")
_ONE_SHARD = "not modelled: the scenarios have one shard, which is there before their threads"
_SUSPECT = ("a formal race that needs a heap made after the first look: more threads than the "
            "scenarios have")
SURVIVORS = {
    ("map/page_map.c", "page_map_prepare", "atomic_load_acquire to atomic_load_relaxed"):
        _SET_ENTRY,
    ("map/page_map.c", "page_map_is_prepared", "atomic_load_acquire to atomic_load_relaxed"):
        _SET_ENTRY,
    ("map/page_map.c", "page_map_prepare_by_spare",
     "atomic_load_acquire to atomic_load_relaxed"): _SET_ENTRY,
    ("slab/shard.c", "shard_count", "atomic_load_acquire to atomic_load_relaxed"): _ONE_SHARD,
    ("slab/shard.c", "prepare_next", "acquire to relaxed"): _ONE_SHARD,
    ("slab/shard.c", "prepare_next", "release to relaxed"): _ONE_SHARD,
    ("slab/shard.c", "prepare_next", "acq_rel to acquire"): _ONE_SHARD,
    ("slab/shard.c", "prepare_next", "acq_rel to release"): _ONE_SHARD,
    ("thread/heap.c", "heap_begin_process",
     "the child waits for an initialisation that nobody goes on with"):
        "not modelled: a child without fork handlers, which would have waited for the first call",
    ("thread/heap.c", "init_once", "atomic_load_acquire to atomic_load_relaxed"):
        "for the key of the destructors, which the C library writes; the rest is ordered by the "
        "lock of the registry",
    ("thread/registry.c", "keep_areas", "without lock registry.lock"):
        "not modelled: the scenarios have too few heaps for areas that are kept",
    ("thread/registry.c", "take_over", "acquire to relaxed"):
        "stronger than needed: who learns from the kernel that the owner is gone comes after it",
    ("thread/registry.c", "make_owned", "atomic_store_release to atomic_store_relaxed"): _SHARED,
    ("thread/registry.c", "take_over", "atomic_load_acquire to atomic_load_relaxed"): _SHARED,
    ("span/big_cache.c", "unmap_cached", "without lock part->lock"):
        "not modelled: a mapping goes back into the cache when the system refuses to unmap it",
    ("thread/registry.c", "registry_start", "without lock registry.lock"):
        "not needed: it runs once, and others wait for it",
    ("thread/registry.c", "registry_enter_process",
     "atomic_store_release to atomic_store_relaxed"): _EXCHANGE,
    ("thread/registry.c", "is_gone", "atomic_load_acquire to atomic_load_relaxed"): _EXCHANGE,
    ("thread/registry.c", "take_counts", "without lock registry.lock"):
        "not modelled: make_bare then clears counts that are 0 already, a formal race with the "
        "same statistics",
    ("thread/registry.c", "find_abandoned", "atomic_load_acquire to atomic_load_relaxed"): _SUSPECT,
    ("thread/registry.c", "find_abandoned", "atomic_store_release to atomic_store_relaxed"):
        _SUSPECT,
    ("thread/magazine.c", "magazine_take_bottom", "atomic_load_acquire to atomic_load_relaxed"):
        "stronger than needed: what lies below the top was there when the heap was closed, which "
        "ThreadSanitizer cannot know",
    ("os/lock.c", "lock_inherit", "atomic_store_release to atomic_store_relaxed"):
        "for the compiler: a child of the child may be made in the middle",
}


def core_sources(commands, source):
    """The modelled files of the core, and the lock's header."""
    core = source / "core"
    files = {pathlib.Path(entry["file"]) for entry in commands}
    return sorted(file for file in files if core in file.parents) + [core / "os" / "lock.h"]


def functions(text):
    """(name, first line, line after the last) of the functions in a C file, lines from 0."""
    lines = text.split("\n")
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 4):start])
            head = re.split(r"[;}]|\*/", head)[-1]
            found = re.search(r"(\w+)\s*\(", head)
            yield found.group(1) if found else "?", start, number + 1
            start = None


def order_mutants(name, text):
    spans = list(functions(text))
    lines = text.split("\n")
    for number, line in enumerate(lines):
        function = next((f for f, first, end in spans if first <= number < end), None)
        if function is None or WALKERS.search(function):
            continue
        for pattern, weaker in WEAKER:
            for found in re.finditer(pattern, line):
                changed = line[:found.start()] + weaker + line[found.end():]
                rest = lines[:number] + [changed] + lines[number + 1:]
                kind = "%s to %s" % (found.group().rstrip("(").replace("__ATOMIC_", ""),
                                     weaker.rstrip("(").replace("__ATOMIC_", ""))
                yield Mutant(name, number + 1, function, kind.lower(), "\n".join(rest))


def lock_mutants(name, text):
    lines = text.split("\n")
    for function, first, end in functions(text):
        body = "\n".join(lines[first:end])
        if WALKERS.search(function) or function.startswith("lock_"):
            continue
        for lock in sorted(set(re.findall(r"\block_acquire\(([^;]+)\);", body))):
            changed = re.sub(r"\block_(acquire|release)\(%s\);" % re.escape(lock), ";", body)
            rest = "\n".join(lines[:first]) + "\n" + changed + "\n" + "\n".join(lines[end:])
            yield Mutant(name, first, function, "without lock " + lock.lstrip("&"), rest)


def fork_mutants(name, text):
    """Locks that are not inherited, and those that are without the repair of what they protect."""
    pattern = r"\binherit(?:_\w+)?\(((&[^,;]+), (\w+)[^;]*|[^;()]+)\);"
    for found in re.finditer(pattern, text):
        line = text.count("\n", 0, found.start()) + 1

        def changed(to, found=found):
            return text[:found.start()] + to + text[found.end():]
        yield Mutant(name, line, "repair_child", "without " + found.group().rstrip(";"),
                     changed(";"))
        if found.group(3):
            yield Mutant(name, line, "repair_child", "without " + found.group(3),
                         changed("lock_inherit(%s, own_ids.before, own_ids.now);" % found.group(2)))


def step_mutants(name, text):
    for file, old, new, why in STEPS:
        if file != name:
            continue
        if text.count(old) != 1:
            raise SystemExit("FAILED: %r is in core/%s %d times: renew STEPS in mutate.py"
                             % (old, file, text.count(old)))
        line = text.count("\n", 0, text.index(old)) + 1
        spans = list(functions(text))
        function = next((f for f, first, end in spans if first < line <= end), "?")
        yield Mutant(name, line, function, why, text.replace(old, new))


def all_mutants(sources, core):
    for file in sources:
        name, text = str(file.relative_to(core)), file.read_text()
        makers = [order_mutants, lock_mutants, step_mutants]
        if name == "thread/fork.c":
            makers.append(fork_mutants)
        for maker in makers:
            yield from maker(name, text)


def object_of(entry):
    words = shlex.split(entry["command"])
    return pathlib.Path(entry["directory"]) / words[words.index("-o") + 1]


class Builder:
    """Builds a program with some files replaced, by the commands of the build itself."""

    def __init__(self, source, commands):
        self.core = source / "core"
        self.entries = {program: [] for program in PROGRAMS + ("model_engine",)}
        for entry in commands:
            for program, entries in self.entries.items():
                if "/%s.dir/" % program in str(object_of(entry)):
                    entries.append(entry)

    def compile(self, entry, mutant, directory):
        """Returns the new object; the mutant's file takes the place of the one of that name."""
        words = shlex.split(entry["command"])
        target = directory / (str(abs(hash(entry["file"]))) + ".o")
        words[words.index("-o") + 1] = str(target)
        if entry["file"] == str(self.core / mutant.file):
            words[words.index(entry["file"])] = str(directory / mutant.file)
        words[1:1] = ["-w", "-I", str(directory)]
        subprocess.run(words, cwd=entry["directory"], check=True, capture_output=True, text=True)
        return target

    def program(self, program, mutant, directory):
        """The path of the program with the mutant in it; None when it is not part of it."""
        header = mutant.file.endswith(".h")
        entries = self.entries[program]
        if header and program == "model_core":
            return None
        if not header and not any(e["file"] == str(self.core / mutant.file) for e in entries):
            return None
        objects = []
        for entry in entries:
            changed = header or entry["file"] == str(self.core / mutant.file)
            objects.append(self.compile(entry, mutant, directory) if changed else object_of(entry))
        objects += [object_of(entry) for entry in self.entries["model_engine"]]
        compiler = shlex.split(entries[0]["command"])[0]
        target = directory / program
        subprocess.run([compiler, "-no-pie", "-o", str(target)] + [str(o) for o in objects],
                       check=True, capture_output=True, text=True)
        return target


def failure_of(path, scenarios, limit_s):
    """The first failure as a match of (scenario, what), None if all goes well."""
    run = subprocess.run([str(path), "--brief", "--limit", str(EXECUTIONS_MAX), *scenarios],
                         capture_output=True, text=True, timeout=limit_s)
    return re.search(r"^FAILED: (\w+): (.*)", run.stdout, re.MULTILINE)


def failure_beside_endless(path):
    """The same, where a mutant goes round in circles in one of the scenarios."""
    listed = subprocess.run([str(path), "--list"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        try:
            found = failure_of(path, [line.partition("\t")[0]], SCENARIO_LIMIT_S)
        except subprocess.TimeoutExpired:
            continue
        if found:
            return found
    return None


def try_mutant(builder, mutant):
    """(who killed it, how), or (None, why not)."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        directory = pathlib.Path(name)
        (directory / mutant.file).parent.mkdir(parents=True)
        (directory / mutant.file).write_text(mutant.text)
        for program in PROGRAMS:
            try:
                path = builder.program(program, mutant, directory)
            except subprocess.CalledProcessError as error:
                return None, "does not compile: " + (error.stderr or "").strip()[:300]
            if not path:
                continue
            try:
                found = failure_of(path, [], RUN_LIMIT_S)
            except subprocess.TimeoutExpired:
                found = failure_beside_endless(path)
                if not found:
                    return None, f"{program} did not end within {RUN_LIMIT_S} s"
            # The core may follow a wild pointer, and the checker with it.
            if found and "the checker" in found.group(2) and CRASHED not in found.group(2):
                return None, found.group(2)
            if found:
                return found.group(1), found.group(2)
        return None, "no model fails"


def verdicts(builder, mutants, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda mutant: try_mutant(builder, mutant), mutants)
        for mutant, (killer, how) in zip(mutants, results):
            expected = SURVIVORS.get((mutant.file, mutant.function, mutant.kind))
            print("%-8s %s:%d %s: %s; %s" % ("killed" if killer else "survived", mutant.file,
                                           mutant.line, mutant.function, mutant.kind,
                                           killer or expected or how), flush=True)
            yield mutant, killer, how, expected


def check_baseline(build, wanted=None):
    """Where the core itself fails, a mutant that fails shows nothing. `wanted`: scenarios, else
    all of them."""
    for program in PROGRAMS:
        path = build / "tests" / "model" / program
        listed = subprocess.run([str(path), "--list"], capture_output=True, text=True, check=True)
        names = [line.partition("\t")[0] for line in listed.stdout.splitlines()]
        names = [name for name in names if wanted is None or name in wanted]
        run = subprocess.run([str(path), "--brief", "--limit", "1000", *names],
                             capture_output=True, text=True) if names else None
        if run and run.returncode == 1:
            raise SystemExit(run.stdout + "FAILED: the core itself fails, and mutants show nothing")


def check_survivors(mutants):
    """A reason for a mutant that is no more would be taken for one of the next of that name."""
    gone = set(SURVIVORS) - {(m.file, m.function, m.kind) for m in mutants}
    if gone:
        raise SystemExit("FAILED: SURVIVORS names what is no mutant: "
                         + "; ".join(sorted(": ".join(key) for key in gone)))


def cell(text):
    return text.replace("|", "\\|")


def write_report(path, models, results):
    """A page of all scenarios and mutants."""
    lines = ["# Model checking", "", "## Scenarios", "", "| Scenario | What happens | Result |",
             "|---|---|---|"]
    lines += ["| `%s` | %s | %s |" % (name, cell(about), cell(result))
              for name, about, result in models]
    killed = [r for r in results if r[1]]
    lines += ["", "## Mutants", "", "%d mutants: %d make a model fail, %d cannot. The files of the "
              "hardened preset have none: no scenario turns it on."
              % (len(results), len(killed), len(results) - len(killed)), "",
              "| Where | Mutation | Fails in |", "|---|---|---|"]
    lines += ["| `%s`, `%s` | %s | `%s` |" % (m.file, m.function, cell(m.kind), killer)
              for m, killer, _, _ in killed]
    lines += ["", "## Mutants that no model can see", "", "| Where | Mutation | Why |",
              "|---|---|---|"]
    lines += ["| `%s`, `%s` | %s | %s |" % (m.file, m.function, cell(m.kind),
                                           cell(expected or "**not explained**"))
              for m, killer, _, expected in results if not killer]
    path.write_text("\n".join(lines) + "\n")


def run_models(build):
    """(name, about, result) of all scenarios, from the programs as they are."""
    for program in ("model_litmus",) + PROGRAMS:
        path = str(build / "tests" / "model" / program)
        listed = subprocess.run([path, "--list"], capture_output=True, text=True, check=True)
        for line in listed.stdout.splitlines():
            name, _, about = line.partition("\t")
            run = subprocess.run([path, name], capture_output=True, text=True)
            last = run.stdout.strip().splitlines()[-1]
            result = re.sub(r"\s+", " ", last[len(name):]).strip()
            yield name, about, re.sub(r" it should: .*", " it should", result)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the project")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="its binary directory")
    parser.add_argument("--sample", type=int, help="try so many mutants, always the same ones")
    parser.add_argument("--only", default="", help="try those whose file has this in its name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", type=pathlib.Path, help="the page to write the tables to")
    return parser.parse_args()


def sample_of(mutants, count):
    """So many mutants that nothing but a change of theirs replaces, and that fail: one that does
    not is run through all scenarios."""
    def draw(mutant):
        identity = "%s %s %s" % (mutant.file, mutant.function, mutant.kind)
        return hashlib.sha256(identity.encode()).digest()
    failing = [m for m in mutants if (m.file, m.function, m.kind) not in SURVIVORS]
    return sorted(failing, key=draw)[:count]


def main():
    options = arguments()
    commands = json.loads((options.build / "compile_commands.json").read_text())
    commands = [entry for entry in commands if "/tests/model/" in str(object_of(entry))]
    if not options.sample:
        check_baseline(options.build)
    builder = Builder(options.source.resolve(), commands)
    core = options.source.resolve() / "core"
    mutants = list(all_mutants(core_sources(commands, options.source.resolve()), core))
    check_survivors(mutants)
    mutants = [m for m in mutants if options.only in m.file]
    if options.sample:
        mutants = sample_of(mutants, options.sample)
    results = list(verdicts(builder, mutants, options.jobs))
    if options.sample:
        check_baseline(options.build, {killer for _, killer, *_ in results})
    if options.report:
        write_report(options.report, list(run_models(options.build)), results)
    failures = 0
    for mutant, killer, how, expected in results:
        if bool(killer) == bool(expected):
            failures += 1
            print("FAILED: %s:%d %s: %s: %s" % (mutant.file, mutant.line, mutant.function,
                  mutant.kind, "SURVIVORS says that no model sees it, but " + killer + " does"
                  if killer else how))
    print("%d mutants, %d killed, %d as they should not be"
          % (len(results), sum(bool(r[1]) for r in results), failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
