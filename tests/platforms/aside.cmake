# Programs whose sanitizer brings an allocator: the library stands aside, and says so (behaviour
# 43; the plainest of them are in tests/behaviour). The run-time library of gcc's sanitizers comes
# as a shared one, too, and has to stand before every other in LD_PRELOAD: AddressSanitizer refuses
# to start behind another, and ThreadSanitizer crashes, whatever that other is.

set(behaviour ${PROJECT_SOURCE_DIR}/tests/behaviour)

# platforms_aside(NAME KIND PROGRAM [RUNTIME]): KIND is that of runtime_aside.py.
function(platforms_aside name kind program)
    set(libraries $<TARGET_FILE:hakmem>)
    if(ARGN)
        set(libraries ${ARGN}:${libraries})
    endif()
    add_test(NAME platforms_aside_${name}
        COMMAND ${HAKMEM_PYTHON} -B ${behaviour}/runtime_aside.py
            --library ${libraries} --program ${program} ${kind})
    set_tests_properties(platforms_aside_${name} PROPERTIES TIMEOUT 300)
endfunction()

function(sanitized_program name sanitizer)
    add_executable(${name} ${behaviour}/runtime_aside.c)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
    target_compile_options(${name} PRIVATE ${HAKMEM_TEST_WARNINGS} -O1 -g -fno-builtin
        -fsanitize=${sanitizer})
    target_link_options(${name} PRIVATE -fsanitize=${sanitizer} ${ARGN})
    target_link_libraries(${name} PRIVATE Threads::Threads)
endfunction()

if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    foreach(pair address:libasan.so:asan thread:libtsan.so:own)
        string(REPLACE : ";" pair ${pair})
        list(GET pair 0 sanitizer)
        list(GET pair 1 library)
        list(GET pair 2 kind)
        execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${library}
            OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
        sanitized_program(aside_${sanitizer} ${sanitizer})
        platforms_aside(${sanitizer}_shared ${kind} $<TARGET_FILE:aside_${sanitizer}> ${runtime})
    endforeach()
    sanitized_program(aside_thread_static thread -static-libtsan)
    platforms_aside(thread own $<TARGET_FILE:aside_thread_static>)
endif()

# clang's are part of the program, and come in a package of their own.
find_program(HAKMEM_CLANG clang)
if(HAKMEM_CLANG)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/clang_has.c "int main(void) { return 0; }\n")
    foreach(pair address:asan thread:own memory:own)
        string(REPLACE : ";" pair ${pair})
        list(GET pair 0 sanitizer)
        list(GET pair 1 kind)
        execute_process(
            COMMAND ${HAKMEM_CLANG} -fsanitize=${sanitizer} clang_has.c -o clang_has
            WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} RESULT_VARIABLE lacking
            OUTPUT_QUIET ERROR_QUIET)
        if(lacking)
            continue()
        endif()
        set(program ${CMAKE_CURRENT_BINARY_DIR}/clang_${sanitizer})
        add_custom_command(OUTPUT ${program}
            COMMAND ${HAKMEM_CLANG} -std=gnu17 -D_GNU_SOURCE -O1 -g -fno-builtin
                -fsanitize=${sanitizer} ${behaviour}/runtime_aside.c -o ${program} -pthread
            DEPENDS ${behaviour}/runtime_aside.c ${behaviour}/runtime_support.h VERBATIM)
        add_custom_target(aside_clang_${sanitizer} ALL DEPENDS ${program})
        platforms_aside(clang_${sanitizer} ${kind} ${program})
    endforeach()
endif()
