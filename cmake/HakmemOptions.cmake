# The build options. Each is a plain 0 or 1 (HAKMEM_SANITIZE is a word) and reaches the C code as
# a macro that is always defined, for use in C `if`.

set(HAKMEM_DEBUG 0 CACHE STRING "1: check internal invariants at run time (slow)")
set(HAKMEM_FAULTS 0 CACHE STRING "Test builds: 1: a test may let system calls fail")
set(HAKMEM_WERROR 0 CACHE STRING "1: a compiler warning is an error")
set(HAKMEM_SANITIZE "" CACHE STRING "Test builds: empty, address, thread or undefined")
set_property(CACHE HAKMEM_DEBUG HAKMEM_FAULTS HAKMEM_WERROR PROPERTY STRINGS 0 1)
set_property(CACHE HAKMEM_SANITIZE PROPERTY STRINGS "" address thread undefined)

foreach(option HAKMEM_DEBUG HAKMEM_FAULTS HAKMEM_WERROR)
    if(NOT ${option} MATCHES "^[01]$")
        message(FATAL_ERROR "${option} must be 0 or 1, not '${${option}}'")
    endif()
endforeach()
if(NOT HAKMEM_SANITIZE MATCHES "^(address|thread|undefined|)$")
    message(FATAL_ERROR "HAKMEM_SANITIZE must be address, thread or undefined, not "
        "'${HAKMEM_SANITIZE}'")
endif()

# The tests need cmocka and C++. Without them the library still builds; `make check` installs them.
# A project that takes hakmem in with add_subdirectory() does not get the tests.
set(HAKMEM_TESTS 0)
if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
    find_path(HAKMEM_CMOCKA_INCLUDE_DIR cmocka.h)
    find_library(HAKMEM_CMOCKA_LIBRARY cmocka)
    mark_as_advanced(HAKMEM_CMOCKA_INCLUDE_DIR HAKMEM_CMOCKA_LIBRARY)
    include(CheckLanguage)
    check_language(CXX)
    if(HAKMEM_CMOCKA_INCLUDE_DIR AND HAKMEM_CMOCKA_LIBRARY AND CMAKE_CXX_COMPILER)
        set(HAKMEM_TESTS 1)
    else()
        message(STATUS "cmocka or a C++ compiler is missing: the tests are left out")
    endif()
endif()
