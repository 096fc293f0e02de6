# hakmem_test(): builds one test program and adds it to CTest.
#
#   hakmem_test(NAME name SOURCES file... [LIBS lib...] [ENV "K=V"...] [ARGS arg...]
#               [INTERNAL [CORE objects]])
#
# The program is linked with libhakmem.so, so all its allocations are served by it. With INTERNAL
# it is linked with the core's objects instead: it sees core/ and every hidden function, and
# malloc stays the C library's. CORE names other objects than those of the products. C programs get
# cmocka; C++ programs name their framework in LIBS.

enable_testing()

# The core and the exported names with the internal assertions on, in every build, for tests that
# have them inside: NAME_core_checked, NAME_names_checked. They are compiled once.
function(hakmem_add_checked name)
    list(TRANSFORM HAKMEM_DEFINITIONS REPLACE "^HAKMEM_DEBUG=.*" "HAKMEM_DEBUG=1")
    hakmem_add_objects(${name}_core_checked ${HAKMEM_CORE_SOURCES})
    hakmem_add_objects(${name}_names_checked ${HAKMEM_OVERRIDE_SOURCES} ${HAKMEM_COMPAT_SOURCES})
    set_target_properties(
        ${name}_core_checked ${name}_names_checked PROPERTIES EXCLUDE_FROM_ALL TRUE)
endfunction()
hakmem_add_checked(hakmem)
hakmem_begin_hardened()
hakmem_add_checked(hakmem_hardened)
hakmem_end_hardened()

# hakmem_not_hardened(NAME...): tests that do not run on the hardened library; whoever calls it says
# why.
function(hakmem_not_hardened)
    if(HAKMEM_HARDENED)
        set_tests_properties(${ARGN} PROPERTIES DISABLED TRUE)
    endif()
endfunction()

function(hakmem_test)
    cmake_parse_arguments(TEST "INTERNAL" "NAME;CORE" "SOURCES;LIBS;ENV;ARGS"
        ${ARGN})
    if(TEST_UNPARSED_ARGUMENTS OR NOT TEST_NAME OR NOT TEST_SOURCES)
        message(FATAL_ERROR "hakmem_test(${TEST_NAME}): bad arguments ${TEST_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT TEST_CORE)
        set(TEST_CORE hakmem_core)
    endif()

    add_executable(${TEST_NAME} ${TEST_SOURCES})
    target_compile_options(${TEST_NAME} PRIVATE ${HAKMEM_TEST_WARNINGS} -O1 -g -fno-builtin)
    target_compile_definitions(${TEST_NAME} PRIVATE ${HAKMEM_DEFINITIONS})
    if(TEST_INTERNAL)
        target_sources(${TEST_NAME} PRIVATE $<TARGET_OBJECTS:${TEST_CORE}>)
        target_compile_definitions(${TEST_NAME} PRIVATE _GNU_SOURCE)
        target_include_directories(${TEST_NAME} PRIVATE
            ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/core)
    else()
        target_link_libraries(${TEST_NAME} PRIVATE hakmem::hakmem)
    endif()
    if(NOT TEST_SOURCES MATCHES "\\.cpp")
        target_link_libraries(${TEST_NAME} PRIVATE ${HAKMEM_CMOCKA_LIBRARY})
        target_include_directories(${TEST_NAME} PRIVATE ${HAKMEM_CMOCKA_INCLUDE_DIR})
    endif()
    target_link_libraries(${TEST_NAME} PRIVATE ${TEST_LIBS} Threads::Threads)

    add_test(NAME ${TEST_NAME} COMMAND ${TEST_NAME} ${TEST_ARGS})
    set_tests_properties(${TEST_NAME} PROPERTIES
        TIMEOUT 300
        ENVIRONMENT "${TEST_ENV}")
endfunction()
