# What each call must do, whoever makes it: behaviours 1 to 23 and 57. Which names the library
# exports beyond these is checked in tests/packaging.

# A sanitizer in the program has its own heap.
if(HAKMEM_SANITIZE)
    return()
endif()

foreach(subject symbols sizes realloc zero errno align usable introspect mallopt libc
        jemalloc mallctl gperftools)
    hakmem_test(NAME semantics_${subject}
        SOURCES ${CMAKE_CURRENT_LIST_DIR}/semantics_${subject}.c
        LIBS ${CMAKE_DL_LIBS})
endforeach()

# Presets differ in what is purged and kept, which is where calloc and realloc could go wrong.
foreach(subject zero realloc)
    foreach(preset speed lean)
        add_test(NAME semantics_${subject}_${preset} COMMAND semantics_${subject})
        set_tests_properties(semantics_${subject}_${preset} PROPERTIES
            TIMEOUT 300 ENVIRONMENT HAKMEM_PRESET=${preset})
    endforeach()
endforeach()

# Guarded samples have no more bytes than were asked for, and nallocx promises no more.
add_test(NAME semantics_jemalloc_guarded COMMAND semantics_jemalloc)
set_tests_properties(semantics_jemalloc_guarded PROPERTIES TIMEOUT 300
    ENVIRONMENT "HAKMEM_SAMPLE_KIB=1;HAKMEM_SAMPLE_GUARDS=1")

# It frees by each function what each other one made; asks for bytes of M_PERTURB, where there are
# zeros; bounds what short blocks take, which is more with canaries, and awaits caches.
hakmem_not_hardened(
    semantics_symbols semantics_mallopt semantics_introspect semantics_gperftools)

add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/differential ${CMAKE_CURRENT_BINARY_DIR}/differential)
