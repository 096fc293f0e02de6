"""The platforms that hakmem is tested on: a row each, as plain data.

A platform is a compiler, its options and what the programs run under. Everything else, from the
build to the table, is the same for all of them (run_platforms.py).
"""

import dataclasses
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

# Directories of tests/ that a row runs. `platforms` has a stress of its own, a tenth as long.
BASE = ("unit", "platforms")
HEAP = (*BASE, "misuse")
ALL = (*HEAP, "stress", "cxx", "behaviour")


@dataclasses.dataclass(frozen=True)
class Platform:
    """One configuration. Text in braces is filled in by run_platforms.py."""

    name: str
    what: str
    compiler: str = "gcc"
    cxx_compiler: str = "g++"
    suites: tuple = BASE        # directories of tests
    short: tuple = ()           # those of the short form; none: it is not part of that
    level: str = ""             # a compiler option that is put behind all others
    settings: tuple = ()        # CMake variables
    emulator: tuple = ()        # what each program runs under
    environment: tuple = ()     # pairs, for the tests
    needs: tuple = ()           # commands that must exist
    targets: tuple = ()         # what is built instead of the suites' own targets
    only: str = ""              # regular expression of the tests that mean something here
    skipped: tuple = ()         # pairs: regular expression of tests, why they cannot run here
    failing: tuple = ()         # pairs: regular expression of "test: case", why it must fail here
    own_frameworks: bool = False  # cmocka and GoogleTest are built by this compiler
    slower: int = 1             # factor on the time limits


def levels(compiler, cxx_compiler):
    for level in ("-O0", "-O1", "-O2", "-O3"):
        yield Platform(f"{compiler}{level}", f"every file with {level}", compiler, cxx_compiler,
                       suites=HEAP, level=level)


QEMU_FAILS = (
    ("unit_os_linux: the_limit_on_address_space_is_known|"
     "unit_os_limits: limits_of_resources_are_read|"
     "unit_map_class_map: the_window_shrinks_with_the_address_space|"
     "unit_map_metadata: a_small_program_maps_nothing|"
     "unit_span_parts: the_first_serves_where_memory_is_short|"
     "unit_span_page_heap: exhaustion_is_reported_and_passes|"
     "unit_span_big: no_memory_changes_nothing|"
     "unit_reclaim_limit: near_the_limit_on_addresses_mappings_go|"
     "unit_api_long: a_thread_without_heap_frees_long_blocks|"
     "unit_hardened_hold: exhaustion_is_null|"
     "unit_os_limits: limits_of_resources_are_read|"
     "unit_span_parts: the_first_serves_where_memory_is_short|"
     "cxx_new_handler: NewHandler.HandlerThatMakesRoomLetsNewSucceed",
     "qemu does not enforce limits on address space"),
    ("unit_os_linux: (mappings_are_aligned_zero_and_exact|scattered_memory_lies_anywhere)|"
     "semantics_align: (gibibyte_alignments|tebibyte_sizes)|"
     "runtime_remote: test_blocks_outlive_their_thread|runtime_load: test_load_and_unload|"
     "runtime_exit: (test_thread_destructors|test_first_use_in_destructor)",
     "the kernel counts qemu's memory with that of the program"),
    ("unit_reclaim_limit: (blocks_of_changing_sizes_stay_below|"
     "beyond_the_limit_little_stays_free|a_child_of_fork_keeps_to_it)",
     "the kernel counts qemu's memory with that of the program, and in pages of its own"),
    ("unit_span_huge: clearing_takes_the_cheaper_way|"
     "unit_hardened_large: without_fences_blocks_are_purged|"
     "unit_report_stats: many_ended_threads_cost_nothing",
     "the kernel counts qemu's page faults with those of the program"),
    ("unit_os_linux: mappings_grow_in_place_or_move",
     "qemu's own mappings may take the addresses that the test has freed"),
    ("unit_os_linux: files_and_links_are_read", "the process has the name of qemu"),
    ("runtime_maps: test_mappings_exhausted",
     "qemu reserves all addresses, and what the program unmaps stays mapped in its own account"),
    ("runtime_spawn: (test_vfork|test_clone_vm)|"
     "unit_os_lock: a_child_that_shares_memory_is_not",
     "qemu makes a fork of vfork, and knows no such clone"),
    ("unit_os_lock: (a_child_is_another_process|a_second_thread_may_ask_first)|"
     "unit_os_linux: advice_is_seen",
     "qemu says that it wipes memory in children, and does not"),
    ("unit_thread_destructors: .*",
     "threads of qemu are there for a moment after pthread_join"),
    ("unit_slab_slab: every_class_agrees_with_the_model",
     "qemu places superslabs farther apart than the window of the class map is wide"),
    ("unit_thread_class_map: .*",
     "qemu places mappings below the last one, and leaves the gaps that the test would fill"),
    ("unit_hardened_slab: superslabs_lie_apart|"
     "platforms_high_addresses: blocks_outside_the_window_work",
     "the addresses that are drawn from lie beyond those that qemu has"),
    ("unit_hardened_large: (blocks_of_bursts_are_cleared|few_of_a_tick_are_closed)",
     "qemu's mincore refuses pages that are closed by rights"),
    ("unit_hardened_hold: children_of_a_busy_process_go_on|"
     "unit_thread_heap: threads_that_make_no_calls_do_not|"
     "unit_thread_exit: the_child_of_fork_abandons_other_heaps",
     "qemu fails an assertion of its own when a child of several threads starts one"),
)


QEMU_SKIPS = (
    ("runtime_fork$|runtime_fork_signal_bare|runtime_clone|runtime_threads$|"
     "runtime_many_threads|runtime_exhaust$|runtime_idle$|runtime_fork_cost",
     "qemu fails an assertion of its own in children of several threads, loses "
     "270 KiB with every thread that ends, and has page faults of its own"),
    ("_audited", "LD_AUDIT would reach qemu"),
    ("runtime_coroutines_unwind",
     "qemu refuses the call that tells what can be read before it looks there"),
    ("unit_trace_guard", "the pages that it tells the core of are not those that qemu maps by"),
    ("hardened_fuzz", "the fuzzers are a suite of their own, which is not built"),
    ("_early|_spy_|runtime_elf|runtime_dlopen|_secure|_address_space|_overcommit|"
     "_aside_|differential|unit_api_options|unit_stats_file|unit_options_table|"
     "unit_cycles_report|runtime_report|runtime_conf|runtime_profile|runtime_redis|"
     "misuse_hardened|fault_seccomp",
     "a script starts the program, or preloads the library, outside of qemu"),
)


# qemu 7.2 does not take the tag from a pointer that clears a block of the cache (DC ZVA), as memset
# does, but for this processor.
OTHER_MEMSET = "GLIBC_TUNABLES=glibc.cpu.name=kunpeng920"

TAGS_FAIL = (
    (r"(platforms_stress_static|runtime_\w+)_pie$",
     "the C library ends static PIE programs by SIGSEGV if GLIBC_TUNABLES names a processor"),
    ("unit_hardened_hold",
     "qemu loses tags that two threads give to parts of one page at once, and the test aborts"))


def emulated(machine, name, what, suites, processor=(), page_size=4096, skipped=()):
    """Under qemu-user."""
    return Platform(
        name, what, f"{machine}-linux-gnu-gcc", f"{machine}-linux-gnu-g++", suites,
        settings=("CMAKE_SYSTEM_NAME=Linux", f"CMAKE_SYSTEM_PROCESSOR={machine}"),
        emulator=("env", "LD_PRELOAD={quiet_qemu}", f"qemu-{machine}", "-U", "LD_PRELOAD",
                  *processor, "-L", f"/usr/{machine}-linux-gnu", "-p", str(page_size)),
        needs=(f"{machine}-linux-gnu-g++", f"qemu-{machine}"), own_frameworks=True, slower=10,
        failing=QEMU_FAILS, skipped=(*QEMU_SKIPS, *skipped))


def aarch64(name, what, page_size, suites):
    # With longer pages qemu 7.2 crashes where tags of memory are turned on.
    has_tags = page_size == 4096
    cpu = ("-E", OTHER_MEMSET, "-cpu", "max") if has_tags else ("-cpu", "cortex-a76")
    # It places mappings in 4 TiB, as a kernel does. For RISC-V it must not be told to: what mremap
    # has moved it then refuses to read.
    return emulated("aarch64", name, what, suites, (*cpu, "-R", "0x40000000000"), page_size,
                    skipped=TAGS_FAIL if has_tags else ())


def large_pages(kib):
    return Platform(
        f"pages-{kib}k", f"pages of {kib} KiB, simulated", suites=("unit", "stress", "platforms"),
        emulator=("env", f"LD_PRELOAD={{large_pages_{kib}}}"),
        skipped=(("platforms_stress_static", "nothing can be preloaded into a static program"),))


WRAPPED = (("platforms_high_addresses|unit_reclaim_engine|unit_trace_guard|unit_cycles_report",
            "the linker cannot replace functions that are optimised together with their callers"),)
OWN_MALLOC = (("unit_report_stats|unit_api_options|unit_stats_file|unit_cycles_report",
               "malloc is the sanitizer's in programs that are linked with the library"),)
NAME_SPACES = (("runtime_load: test_(name_spaces|second_copy)",
                "with the sanitizer's libraries in every name space, static TLS runs out"),)

EARLY_CALLS = (("unit_cycles_report",
                "the sanitizer's libraries call malloc before the measuring library has begun"),)

# A thread has one stack for signals: the tests of ours find none of the sanitizer's.
OWN_STACKS = ":use_sigaltstack=0"


def sanitizer(name, what, variable, options="", compiler="gcc", cxx_compiler="g++", settings=(),
              **row):
    return Platform(
        name, what, compiler, cxx_compiler, slower=20,
        settings=(f"HAKMEM_SANITIZE={name.removeprefix('clang-')}", *settings),
        environment=((variable, "log_path={reports}" + options),), **row)


PLATFORMS = (
    Platform("gcc", "as shipped", suites=ALL),
    *levels("gcc", "g++"),
    Platform("gcc-lto", "link-time optimisation", suites=HEAP, skipped=WRAPPED,
             settings=("CMAKE_C_FLAGS=-flto=auto -ffat-lto-objects",)),
    # valgrind 3.19, which is among the tests, does not read what clang writes of itself.
    Platform("clang", "as shipped", "clang", "clang++", suites=ALL,
             settings=("CMAKE_C_FLAGS=-gdwarf-4",)),
    *levels("clang", "clang++"),
    Platform("clang-lto", "link-time optimisation", "clang", "clang++", HEAP,
             skipped=WRAPPED,
             settings=("CMAKE_C_FLAGS=-flto", "CMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld",
                       "CMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld", "CMAKE_LINKER=ld.lld"),
             needs=("ld.lld",)),
    Platform("static-pie", "static and static-PIE programs", suites=("platforms", "behaviour"),
             only="_static|_override"),
    Platform("musl", "musl in place of glibc", "musl-gcc",
             suites=("unit", "platforms", "misuse", "stress", "behaviour"), own_frameworks=True,
             settings=("CMAKE_C_FLAGS=-idirafter {kernel_headers}",
                       "CMAKE_EXE_LINKER_FLAGS=-Wl,--eh-frame-hdr"),
             failing=(("semantics_errno: free_null_before_initialisation",
                       "musl calls no function of .preinit_array"),),
             skipped=(("runtime_report|runtime_redis|runtime_jemalloc",
                       "the library is preloaded into programs of glibc"),
                      ("unit_trace_(frames|unwind)|runtime_(frames|stack|coroutines)|"
                       "runtime_crash_handler|semantics_libc|runtime_exit",
                       "it calls functions that musl has not: backtrace, contexts, obstacks, "
                       "__cxa_thread_atexit_impl"),
                      ("runtime_load|runtime_dlopen",
                       "musl has no name spaces and no auditing, and opens no malloc later"),
                      ("runtime_early|runtime_spy|differential",
                       "it is about glibc's dynamic linker, or compares with glibc's malloc"),
                      ("_aside_(asan|valgrind)", "the sanitizer and valgrind are for glibc"))),
    # Its blocks have tags of memory in the hardened preset, which has tests of its own therefore.
    aarch64("aarch64", "under qemu-user", 4096, (*ALL, "hardened")),
    aarch64("aarch64-16k", "under qemu-user, pages of 16 KiB", 16384, BASE),
    aarch64("aarch64-64k", "under qemu-user, pages of 64 KiB", 65536, BASE),
    emulated("riscv64", "riscv64", "under qemu-user", ALL, skipped=(
        (r"_(static|override)_pie$", "the C library has no start file of static PIE programs"),)),
    large_pages(16),
    large_pages(64),
    Platform("debug", "`HAKMEM_DEBUG=1`", suites=ALL, settings=("HAKMEM_DEBUG=1",), slower=4),
    sanitizer("thread", "ThreadSanitizer", "TSAN_OPTIONS", OWN_STACKS, suites=(*BASE, "stress"),
              short=("platforms",), skipped=OWN_MALLOC),
    # With the next one's checks besides, so that the short form has them without a third build.
    sanitizer("address", "AddressSanitizer, and UndefinedBehaviorSanitizer", "ASAN_OPTIONS",
              OWN_STACKS, suites=(*BASE, "stress"), short=("platforms",), skipped=OWN_MALLOC,
              settings=("CMAKE_C_FLAGS=-fsanitize=undefined",)),
    sanitizer("undefined", "UndefinedBehaviorSanitizer", "UBSAN_OPTIONS", ":print_stacktrace=1",
              suites=(*BASE, "stress", "behaviour"), failing=NAME_SPACES, skipped=EARLY_CALLS),
    sanitizer("clang-undefined", "UndefinedBehaviorSanitizer of clang", "UBSAN_OPTIONS",
              f":print_stacktrace=1{OWN_STACKS}", "clang", "clang++",
              suites=(*BASE, "behaviour"),
              failing=NAME_SPACES, skipped=EARLY_CALLS),
    Platform("valgrind", "memcheck, which leaves malloc to hakmem",
             suites=("unit", "behaviour", "platforms"), needs=("valgrind",), slower=30,
             failing=((r"semantics_\w+: .*(kernel_refuses|_that_failed|munmap\w*_fails).*",
                       "valgrind itself cannot do without what the kernel refuses there"),
                      ("unit_os_linux: mappings_are_aligned_zero_and_exact|"
                       r"runtime_load\w*: test_load_and_unload|"
                       "unit_report_stats: many_ended_threads_cost_nothing",
                       "the kernel counts valgrind's memory with that of the program"),
                      ("unit_os_linux: mappings_grow_in_place_or_move|"
                       "unit_span_big: ((resizing|random_steps)_keeps?_contents|"
                       r"a_block_that_grows_\w+|a_shorter_block_is_made_longer|"
                       "many_blocks_are_few_mappings)",
                       "they need mremap, which valgrind does not get right"),
                      ("unit_span_big: no_memory_changes_nothing|"
                       "unit_span_page_heap: exhaustion_is_reported_and_passes|"
                       "runtime_maps: test_mappings_exhausted",
                       "valgrind itself comes to its end there"),
                      ("runtime_spawn: test_clone_vm",
                       "valgrind knows clone only as threads and fork use it"),
                      ("unit_trace_log: a_full_disk_is_said_once",
                       "memcheck knows no mount without a type"),
                      ("runtime_spawn: test_vfork",
                       "valgrind makes a fork of it, which takes too long beside busy threads")),
             skipped=((r"(_static|_override)(_full|_pie)$|platforms_stress_static",
                       "memcheck takes what a static C library gets from brk for its threads, "
                       "which is zero, for uninitialised"),
                      ("unit_trace_(unwind|frames)|runtime_(attributes|frames|coroutines)_|"
                       "runtime_cancel_sampled|semantics_jemalloc_guarded|runtime_stack",
                       "stacks are looked at where nobody wrote, and below their ends"),
                      ("unit_hardened_(fence|slab|large|hold|front|object|sample)|unit_os_lock",
                       "valgrind refuses the call that tells what can be read, and clone"),
                      ("runtime_many_threads|runtime_exhaust|runtime_idle|runtime_fork_cost",
                       "valgrind has at most 500 threads, and memory and page faults of its own"),
                      ("runtime_fork_(beside|signal_bare)|runtime_exit$",
                       "threads take turns, which takes too long beside busy ones")),
             emulator=("{without_mremap}", "valgrind", "--quiet", "--error-exitcode=9",
                       "--log-file={reports}.%p", "--soname-synonyms=somalloc=nouserintercepts",
                       "--fair-sched=yes")),
)
