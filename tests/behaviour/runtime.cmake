# Tests of how the library lives in a process: start-up, dynamic linking, threads, fork, exit,
# signals and scarce mappings (behaviours 14, 25-36, 38 and 43). Included by CMakeLists.txt here.
#
# Programs that must be linked with the library are made by hakmem_test(); those that must not
# know of it are plain executables, run with the library preloaded.

find_package(Threads REQUIRED)
find_program(HAKMEM_PYTHON python3 HINTS /usr/bin REQUIRED)

function(runtime_options target)
    target_compile_options(${target} PRIVATE ${HAKMEM_TEST_WARNINGS} -O1 -g -fno-builtin)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

function(runtime_program name)
    add_executable(${name} ${ARGN})
    runtime_options(${name})
endfunction()

function(runtime_library name)
    add_library(${name} SHARED ${ARGN})
    runtime_options(${name})
endfunction()

# A test by script: runtime_script(NAME SCRIPT TIMEOUT ARGUMENT...). Status 77 means skipped.
function(runtime_script name script timeout)
    add_test(NAME ${name}
        COMMAND ${HAKMEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

# Linked with the library. runtime_*_long repeat some of them in the size that a release needs.
hakmem_test(NAME runtime_fork SOURCES runtime_fork.c)
hakmem_test(NAME runtime_fork_signal SOURCES runtime_fork_signal.c)
add_test(NAME runtime_fork_signal_bare COMMAND runtime_fork_signal _Fork)
set_tests_properties(runtime_fork_signal_bare PROPERTIES TIMEOUT 300)
hakmem_test(NAME runtime_spawn SOURCES runtime_spawn.c)
hakmem_test(NAME runtime_threads SOURCES runtime_threads.c)
hakmem_test(NAME runtime_remote SOURCES runtime_remote.c)
hakmem_test(NAME runtime_cancel SOURCES runtime_cancel.c)
hakmem_test(NAME runtime_signals SOURCES runtime_signals.c)
hakmem_test(NAME runtime_maps SOURCES runtime_maps.c)
hakmem_test(NAME runtime_clone SOURCES runtime_clone.c LIBS ${CMAKE_DL_LIBS})
hakmem_test(NAME runtime_many_threads SOURCES runtime_many_threads.c)
hakmem_test(NAME runtime_fork_cost SOURCES runtime_fork_cost.c)
set_tests_properties(runtime_fork_cost PROPERTIES ENVIRONMENT HAKMEM_SHARDS=64)

add_test(NAME runtime_fork_long COMMAND runtime_fork 64 100000)
add_test(NAME runtime_threads_long COMMAND runtime_threads 1000000)
set_tests_properties(runtime_fork_long runtime_threads_long PROPERTIES
    LABELS long TIMEOUT 7200)

runtime_library(runtime_exit_lib runtime_exit_lib.c)
hakmem_test(NAME runtime_exit SOURCES runtime_exit.c LIBS runtime_exit_lib)

runtime_library(runtime_tls_lib runtime_tls_lib.c)
runtime_library(runtime_audit_lib runtime_audit_lib.c)
hakmem_test(NAME runtime_load SOURCES runtime_load.c LIBS ${CMAKE_DL_LIBS}
    ARGS $<TARGET_FILE:runtime_tls_lib> $<TARGET_FILE:hakmem>)

# The rest is about the shared library as it is shipped; a sanitizer's run-time library would
# have to come first in every process.
if(HAKMEM_SANITIZE)
    return()
endif()

hakmem_test(NAME runtime_turnover SOURCES runtime_turnover.c)
hakmem_test(NAME runtime_stack SOURCES runtime_stack.c)
# What the dynamic linker needs to bind a function at its first call depends on the processor.
target_link_options(runtime_stack PRIVATE -Wl,-z,now)
add_test(NAME runtime_stack_limited COMMAND runtime_stack)
set_tests_properties(runtime_stack_limited PROPERTIES TIMEOUT 300 ENVIRONMENT HAKMEM_LIMIT_MIB=200)
hakmem_test(NAME runtime_exhaust SOURCES runtime_exhaust.c)
hakmem_test(NAME runtime_crash_handler SOURCES runtime_crash_handler.c)
# behaviours 51 and 52: resident memory, which sanitizers need for themselves
hakmem_test(NAME runtime_idle SOURCES runtime_idle.c)
hakmem_test(NAME runtime_helper SOURCES runtime_helper.c)
set_tests_properties(runtime_helper PROPERTIES ENVIRONMENT HAKMEM_BACKGROUND=1)

add_test(NAME runtime_load_audited COMMAND runtime_load
    $<TARGET_FILE:runtime_tls_lib> $<TARGET_FILE:hakmem> 1000)
set_tests_properties(runtime_load_audited PROPERTIES TIMEOUT 300
    ENVIRONMENT "LD_AUDIT=$<TARGET_FILE:runtime_audit_lib>")

# behaviour 25: the plain library knows nothing of hakmem, the linked one depends on it. Once
# with resolvers that allocate, in the program and in the linked library, and once without.
# A resolver that runs while its library is relocated cannot call through a lazily bound table.
runtime_library(runtime_early_plain runtime_early_lib.c)
function(runtime_early_test name resolver)
    runtime_library(${name}_library runtime_early_lib.c)
    target_compile_options(${name}_library PRIVATE -fno-plt)
    target_link_libraries(${name}_library PRIVATE hakmem::hakmem)
    runtime_program(${name}_program runtime_early.c)
    runtime_program(${name}_linked runtime_early.c)
    # The program refers to the library only weakly, which a linker may take for not at all.
    target_link_libraries(${name}_linked PRIVATE -Wl,--no-as-needed ${name}_library hakmem::hakmem)
    foreach(target ${name}_library ${name}_program ${name}_linked)
        target_compile_definitions(${target} PRIVATE EARLY_RESOLVER=${resolver})
    endforeach()
    runtime_script(${name} runtime_early.py 120
        --library $<TARGET_FILE:hakmem>
        --program $<TARGET_FILE:${name}_program>
        --linked-program $<TARGET_FILE:${name}_linked>
        --plain-library $<TARGET_FILE:runtime_early_plain>
        --linked-library $<TARGET_FILE:${name}_library>
        --tls-library $<TARGET_FILE:runtime_tls_lib>)
endfunction()
runtime_early_test(runtime_early 0)
runtime_early_test(runtime_early_resolver 1)

# behaviour 26
runtime_library(runtime_spy runtime_spy.c)
runtime_program(runtime_spy_main runtime_spy_main.c)
add_test(NAME runtime_spy_calls COMMAND runtime_spy_main)
add_test(NAME runtime_spy_high_keys COMMAND runtime_spy_main hog)
set_tests_properties(runtime_spy_calls runtime_spy_high_keys PROPERTIES TIMEOUT 300
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:runtime_spy>:$<TARGET_FILE:hakmem>")

# behaviour 58
runtime_library(runtime_watched_lib runtime_watched_lib.c)
runtime_program(runtime_watched runtime_watched.c)
target_link_libraries(runtime_watched PRIVATE hakmem::hakmem)
foreach(mode told early locking allocating wrapped)
    add_test(NAME runtime_watched_${mode} COMMAND runtime_watched ${mode})
    set_tests_properties(runtime_watched_${mode} PROPERTIES TIMEOUT 300)
endforeach()
set_tests_properties(runtime_watched_wrapped PROPERTIES
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:runtime_watched_lib>")

# behaviours 59 and 60
hakmem_test(NAME runtime_advised SOURCES runtime_advised.c)
if(NOT HAKMEM_HARDENED) # see docs/limitations.md
    hakmem_test(NAME runtime_observed SOURCES runtime_observed.c)
    set_tests_properties(runtime_observed PROPERTIES SKIP_RETURN_CODE 77)
endif()

# behaviours 26 and 27
set(code)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT HAKMEM_DEBUG AND NOT HAKMEM_MUSL)
    set(code --code)
endif()
runtime_script(runtime_elf runtime_elf.py 30 $<TARGET_FILE:hakmem> ${code})
runtime_program(runtime_dlopen runtime_dlopen.c)
add_test(NAME runtime_dlopen COMMAND runtime_dlopen $<TARGET_FILE:hakmem>)
# Plugins with a copy inside, which nobody linked so that they stay.
function(runtime_plugin name library)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.c "extern int plugin;\n")
    runtime_library(${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
    target_link_libraries(${name} PRIVATE ${library})
    target_link_options(${name} PRIVATE -Wl,-u,malloc -Wl,-Bsymbolic)
endfunction()
runtime_plugin(runtime_plugin_archive hakmem::static)
runtime_plugin(runtime_plugin_object hakmem::override)
add_test(NAME runtime_dlopen_plugin COMMAND runtime_dlopen
    $<TARGET_FILE:runtime_plugin_archive> $<TARGET_FILE:runtime_plugin_object>)
set_tests_properties(runtime_dlopen runtime_dlopen_plugin PROPERTIES TIMEOUT 300)

# behaviour 28: RTLD_DEEPBIND, with the library preloaded, also before and behind another dlopen and
# under an audit library, linked, and opened by a program that it does not serve. What is opened
# lies where only the RUNPATH of its caller leads.
if(NOT HAKMEM_MUSL)
    runtime_library(runtime_deepbind_lib runtime_deepbind_lib.c)
    # clang would call its own function without asking the dynamic linker.
    target_compile_options(runtime_deepbind_lib PRIVATE -fsemantic-interposition)
    set_target_properties(runtime_deepbind_lib PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/deepbind)
    runtime_library(runtime_deepbind_caller runtime_deepbind_caller.c)
    set_target_properties(runtime_deepbind_caller PROPERTIES BUILD_RPATH "$ORIGIN/deepbind")
    target_link_options(runtime_deepbind_caller PRIVATE -Wl,--enable-new-dtags)
    runtime_library(runtime_deepbind_between runtime_deepbind_between.c)
    foreach(name runtime_deepbind runtime_deepbind_linked)
        runtime_program(${name} runtime_deepbind.c)
        set_target_properties(${name} PROPERTIES ENABLE_EXPORTS TRUE)
        add_dependencies(${name} runtime_deepbind_lib)
    endforeach()
    target_link_libraries(runtime_deepbind_linked PRIVATE hakmem::hakmem)
    # runtime_deepbind_test(NAME PROGRAM HOW OTHER VARIABLE=VALUE...)
    function(runtime_deepbind_test name program how other)
        add_test(NAME ${name} COMMAND
            ${program} ${how} $<TARGET_FILE:runtime_deepbind_lib> $<TARGET_FILE:${other}>)
        set_tests_properties(${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${ARGN}")
    endfunction()
    set(own LD_PRELOAD=$<TARGET_FILE:hakmem>)
    set(caller $<TARGET_FILE:runtime_deepbind_caller>)
    set(between $<TARGET_FILE:runtime_deepbind_between>)
    runtime_deepbind_test(
        runtime_deepbind_cleared runtime_deepbind cleared runtime_deepbind_caller ${own})
    runtime_deepbind_test(
        runtime_deepbind_linked runtime_deepbind_linked cleared runtime_deepbind_caller)
    runtime_deepbind_test(
        runtime_deepbind_audited runtime_deepbind cleared runtime_deepbind_caller
        ${own} LD_AUDIT=$<TARGET_FILE:runtime_audit_lib>)
    runtime_deepbind_test(
        runtime_deepbind_early runtime_deepbind early runtime_deepbind_caller
        ${own}:${caller} RUNTIME_DEEPBIND_EARLY=1)
    runtime_deepbind_test(
        runtime_deepbind_before runtime_deepbind between runtime_deepbind_between ${own}:${between})
    runtime_deepbind_test(
        runtime_deepbind_behind runtime_deepbind between runtime_deepbind_between
        LD_PRELOAD=${between}:$<TARGET_FILE:hakmem>)
    runtime_deepbind_test(
        runtime_deepbind_kept runtime_deepbind kept hakmem ${own} HAKMEM_DEEPBIND=1)
    runtime_deepbind_test(runtime_deepbind_opened runtime_deepbind opened hakmem)
endif()

# behaviour 44: linked before and behind the library with handlers of its own, and preloaded.
runtime_library(runtime_fork_lib runtime_fork_lib.c)
function(runtime_fork_beside_test name)
    runtime_program(${name} runtime_fork_beside.c)
    target_link_libraries(${name} PRIVATE -Wl,--no-as-needed ${ARGN})
    add_test(NAME ${name} COMMAND ${name} $<TARGET_FILE:runtime_fork_lib>)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
runtime_fork_beside_test(runtime_fork_beside_first hakmem::hakmem runtime_fork_lib)
runtime_fork_beside_test(runtime_fork_beside_last runtime_fork_lib hakmem::hakmem)
runtime_fork_beside_test(runtime_fork_beside_archive runtime_fork_lib hakmem::static)
runtime_fork_beside_test(runtime_fork_beside_preloaded runtime_fork_lib)
set_tests_properties(runtime_fork_beside_preloaded PROPERTIES
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:hakmem>")

# behaviour 29
runtime_program(runtime_secure runtime_secure.c)
target_link_libraries(runtime_secure PRIVATE hakmem::hakmem)
runtime_script(runtime_secure runtime_secure.py 60 $<TARGET_FILE:runtime_secure>)

# The file in which root sets options, and the default of a distribution: the library once more,
# with two files compiled in another way.
set(runtime_conf_file ${CMAKE_CURRENT_BINARY_DIR}/hakmem.conf)
set(kept_definitions ${HAKMEM_DEFINITIONS})
list(FILTER HAKMEM_DEFINITIONS EXCLUDE REGEX "^HAKMEM_(CONF|DEFAULT_PRESET)=")
list(APPEND HAKMEM_DEFINITIONS HAKMEM_DEFAULT_PRESET=0 "HAKMEM_CONF=\"${runtime_conf_file}\"")
hakmem_add_objects(hakmem_configured core/base/policy.c core/api/conf.c)
set(HAKMEM_DEFINITIONS ${kept_definitions})
set(shared_only_objects)
if(HAKMEM_SHARED_SOURCES)
    set(shared_only_objects $<TARGET_OBJECTS:hakmem_shared_only>)
endif()
add_library(hakmem_distribution SHARED $<TARGET_OBJECTS:hakmem_override_names>
    $<TARGET_OBJECTS:hakmem_configured> ${shared_only_objects}
    "$<FILTER:$<TARGET_OBJECTS:hakmem_core>,EXCLUDE,/(policy|conf)[.]c[.]o>")
set_target_properties(hakmem_distribution PROPERTIES LINKER_LANGUAGE C)
target_link_options(hakmem_distribution PRIVATE
    ${HAKMEM_LINK_FLAGS} -Wl,--version-script=${version_script})
target_include_directories(hakmem_distribution INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(hakmem_distribution PRIVATE Threads::Threads)
runtime_program(runtime_conf runtime_conf.c)
target_link_libraries(runtime_conf PRIVATE hakmem_distribution)
runtime_script(runtime_conf runtime_conf.py 60 $<TARGET_FILE:runtime_conf> ${runtime_conf_file})

# Reports at exit.
runtime_program(runtime_report runtime_report.c)
target_link_libraries(runtime_report PRIVATE hakmem::hakmem)
runtime_script(runtime_report runtime_report.py 120
    $<TARGET_FILE:runtime_report> $<TARGET_FILE:hakmem>)

# Cancelled in the middle of a sample, too.
add_test(NAME runtime_cancel_sampled COMMAND runtime_cancel)
set_tests_properties(runtime_cancel_sampled PROPERTIES TIMEOUT 300
    ENVIRONMENT HAKMEM_SAMPLE_KIB=1)

# Samples where locks of others are held, and on other stacks.
foreach(name attributes frames coroutines)
    runtime_program(runtime_${name} runtime_${name}.c)
    target_link_libraries(runtime_${name} PRIVATE hakmem::hakmem)
    foreach(stack unwind frames)
        add_test(NAME runtime_${name}_${stack} COMMAND runtime_${name})
        set_tests_properties(runtime_${name}_${stack} PROPERTIES TIMEOUT 300
            ENVIRONMENT "HAKMEM_SAMPLE_KIB=1;HAKMEM_SAMPLE_STACK=${stack}")
    endforeach()
endforeach()
# Its return address lies beside the saved frame pointer.
target_compile_options(runtime_coroutines PRIVATE -fno-omit-frame-pointer)
runtime_program(runtime_attributes_static runtime_attributes.c)
target_link_libraries(runtime_attributes_static PRIVATE hakmem::static -static)
add_test(NAME runtime_attributes_static COMMAND runtime_attributes_static)
set_tests_properties(runtime_attributes_static PROPERTIES
    TIMEOUT 300 ENVIRONMENT HAKMEM_SAMPLE_KIB=1)

# The live profile.
runtime_program(runtime_profile runtime_profile.c)
target_link_libraries(runtime_profile PRIVATE hakmem::hakmem Threads::Threads)
runtime_program(runtime_dump runtime_dump.c)
target_link_libraries(runtime_dump PRIVATE hakmem::hakmem Threads::Threads)
runtime_script(runtime_profile runtime_profile.py 180
    $<TARGET_FILE:runtime_profile> $<TARGET_FILE:runtime_dump>)

# behaviour 30: each way to put the allocator into a statically linked program, and the archive
# and the object in a program that is linked with the C library dynamically.
function(runtime_static_test name library)
    runtime_program(${name} runtime_static.c)
    target_compile_options(${name} PRIVATE -fPIE)
    target_link_libraries(${name} PRIVATE ${library} ${ARGN})
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()

foreach(form static override)
    runtime_static_test(runtime_${form}_full hakmem::${form} -static)
    runtime_static_test(runtime_${form}_pie hakmem::${form} -static-pie)
    runtime_static_test(runtime_${form}_dynamic hakmem::${form})
endforeach()

# behaviour 43
runtime_program(runtime_own_malloc runtime_aside.c)
target_compile_definitions(runtime_own_malloc PRIVATE OWN_MALLOC=1)
runtime_script(runtime_aside_own runtime_aside.py 60 --library $<TARGET_FILE:hakmem>
    --program $<TARGET_FILE:runtime_own_malloc> own)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    runtime_program(runtime_asan runtime_aside.c)
    target_compile_options(runtime_asan PRIVATE -fsanitize=address)
    target_link_options(runtime_asan PRIVATE -fsanitize=address -static-libasan)
    runtime_script(runtime_aside_asan runtime_aside.py 60 --library $<TARGET_FILE:hakmem>
        --program $<TARGET_FILE:runtime_asan> asan)
endif()
runtime_script(runtime_aside_valgrind runtime_aside.py 120 --library $<TARGET_FILE:hakmem>
    --program $<TARGET_FILE:runtime_early_program> valgrind)

# behaviour 57: programs that are linked with jemalloc. What holds for the one here under hakmem has
# to hold under jemalloc as well.
find_library(HAKMEM_JEMALLOC NAMES libjemalloc.so.2)
mark_as_advanced(HAKMEM_JEMALLOC)
if(HAKMEM_JEMALLOC)
    runtime_program(runtime_jemalloc_main runtime_jemalloc_main.c)
    target_link_libraries(runtime_jemalloc_main PRIVATE ${HAKMEM_JEMALLOC})
    add_test(NAME runtime_jemalloc_alone COMMAND runtime_jemalloc_main libjemalloc)
    add_test(NAME runtime_jemalloc_behind COMMAND runtime_jemalloc_main libhakmem)
    set_tests_properties(runtime_jemalloc_alone runtime_jemalloc_behind PROPERTIES TIMEOUT 300)
    set_tests_properties(runtime_jemalloc_behind PROPERTIES
        ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:hakmem>")
endif()
runtime_script(runtime_redis runtime_redis.py 120 $<TARGET_FILE:hakmem>)
