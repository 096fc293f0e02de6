# HAKMEM_VERSION, from the one place that has it: `version` in Cargo.toml, which Cargo cannot take
# from elsewhere. The header says the same, for compilers that know neither CMake nor Cargo;
# packaging/release.py set-version changes both.
#
# Included before project(), and by `cmake -P` in the test packaging_version.

function(hakmem_read_version file pattern result)
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../${file} found REGEX "${pattern}")
    if(NOT found MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)\"")
        message(FATAL_ERROR "${file} has no version of the form \"1.2.3\"")
    endif()
    set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

hakmem_read_version(Cargo.toml "^version = " HAKMEM_VERSION)
hakmem_read_version(include/hakmem/hakmem.h "^#define HAKMEM_VERSION " header_version)
if(NOT header_version VERSION_EQUAL HAKMEM_VERSION)
    message(FATAL_ERROR "Cargo.toml says version ${HAKMEM_VERSION}, include/hakmem/hakmem.h "
        "${header_version}: run python3 packaging/release.py set-version ${HAKMEM_VERSION}")
endif()
