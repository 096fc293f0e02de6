# The allocator without core/trace and core/hardened: what it is while nobody watches. No product,
# but the proof that the walls before these folders have no holes.

# It is the default library's; a sanitizer in the program has its own heap.
if(HAKMEM_HARDENED OR HAKMEM_SANITIZE)
    return()
endif()

set(bare_sources ${HAKMEM_COMMON_SOURCES} ${HAKMEM_FRONT_SOURCES})
if(HAKMEM_SCOPES)
    list(APPEND bare_sources ${HAKMEM_SCOPE_SOURCES})
endif()
hakmem_add_objects(bare_core ${bare_sources})
add_library(bare SHARED $<TARGET_OBJECTS:bare_core> $<TARGET_OBJECTS:hakmem_override_names>
    $<TARGET_OBJECTS:hakmem_compat>)
# It takes the place of libhakmem.so in programs that are linked with that, by its file name: musl
# asks no library for its SONAME, and would load both if this one were preloaded.
set_target_properties(bare PROPERTIES NO_SONAME TRUE LINKER_LANGUAGE C)
target_link_options(bare PRIVATE ${HAKMEM_LINK_FLAGS}
    -Wl,-soname,libhakmem.so.${HAKMEM_SONAME_NUMBER}
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/core/hakmem.map)
target_link_libraries(bare PRIVATE Threads::Threads)
set(bare_folder ${CMAKE_CURRENT_BINARY_DIR}/bare)
file(MAKE_DIRECTORY ${bare_folder})
file(CREATE_LINK ../libbare.so ${bare_folder}/libhakmem.so.${HAKMEM_SONAME_NUMBER} SYMBOLIC)

hakmem_test(NAME bare_observed SOURCES ${CMAKE_CURRENT_LIST_DIR}/bare_observed.c
    ENV LD_LIBRARY_PATH=${bare_folder} HAKMEM_SAMPLE_KIB=1 HAKMEM_CRASH=1)
foreach(program semantics_usable runtime_fork)
    add_test(NAME bare_${program} COMMAND ${program})
    set_tests_properties(bare_${program} PROPERTIES TIMEOUT 300
        ENVIRONMENT LD_LIBRARY_PATH=${bare_folder})
endforeach()
