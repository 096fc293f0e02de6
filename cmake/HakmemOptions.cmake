# The build options. Each is a plain 0 or 1, but for three, and reaches the C code as a macro that
# is always defined, for use in C `if`.

set(HAKMEM_DEBUG 0 CACHE STRING "1: check internal invariants at run time (slow)")
set(HAKMEM_FAULTS 0 CACHE STRING "Test builds: 1: a test may let system calls fail")
set(HAKMEM_HARDENED 0 CACHE STRING "1: libhakmem is the hardened library")
set(HAKMEM_SCOPES 1 CACHE STRING "0: the default library has no scopes")
set(HAKMEM_WERROR 0 CACHE STRING "1: a compiler warning is an error")
set(HAKMEM_SANITIZE "" CACHE STRING "Test builds: empty, address, thread or undefined")
set(HAKMEM_DEFAULT_PRESET balanced CACHE STRING "The preset where nothing is set")
set(HAKMEM_CONF /etc/hakmem.conf CACHE STRING "The file in which root sets options")
set_property(CACHE HAKMEM_DEFAULT_PRESET PROPERTY STRINGS speed balanced lean)
set_property(CACHE
    HAKMEM_DEBUG HAKMEM_FAULTS HAKMEM_HARDENED HAKMEM_SCOPES HAKMEM_WERROR PROPERTY STRINGS 0 1)
set_property(CACHE HAKMEM_SANITIZE PROPERTY STRINGS "" address thread undefined)

foreach(option HAKMEM_DEBUG HAKMEM_FAULTS HAKMEM_HARDENED HAKMEM_SCOPES HAKMEM_WERROR)
    if(NOT ${option} MATCHES "^[01]$")
        message(FATAL_ERROR "${option} must be 0 or 1, not '${${option}}'")
    endif()
endforeach()
if(NOT HAKMEM_SANITIZE MATCHES "^(address|thread|undefined|)$")
    message(FATAL_ERROR "HAKMEM_SANITIZE must be address, thread or undefined, not "
        "'${HAKMEM_SANITIZE}'")
endif()
# In the order of core/base/options.def.
set(presets speed balanced lean)
list(FIND presets "${HAKMEM_DEFAULT_PRESET}" HAKMEM_DEFAULT_PRESET_NUMBER)
if(HAKMEM_DEFAULT_PRESET_NUMBER EQUAL -1)
    message(FATAL_ERROR "HAKMEM_DEFAULT_PRESET must be speed, balanced or lean, not "
        "'${HAKMEM_DEFAULT_PRESET}'")
endif()
if(NOT HAKMEM_CONF MATCHES "^/")
    message(FATAL_ERROR "HAKMEM_CONF must be an absolute path, not '${HAKMEM_CONF}'")
endif()

# The tests need cmocka and C++. Without them the library still builds; `make check` installs them.
# A project that takes hakmem in with add_subdirectory() does not get the tests.
set(HAKMEM_TESTS 0)
if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
    find_path(HAKMEM_CMOCKA_INCLUDE_DIR cmocka.h)
    find_library(HAKMEM_CMOCKA_LIBRARY cmocka)
    mark_as_advanced(HAKMEM_CMOCKA_INCLUDE_DIR HAKMEM_CMOCKA_LIBRARY)
    # Looked for anew where there was none: it may have been installed since.
    if(NOT CMAKE_CXX_COMPILER)
        unset(CMAKE_CXX_COMPILER CACHE)
    endif()
    include(CheckLanguage)
    check_language(CXX)
    if(HAKMEM_CMOCKA_INCLUDE_DIR AND HAKMEM_CMOCKA_LIBRARY AND CMAKE_CXX_COMPILER)
        set(HAKMEM_TESTS 1)
    else()
        message(STATUS "cmocka or a C++ compiler is missing: the tests are left out")
    endif()
endif()
