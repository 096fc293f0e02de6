# The products: libhakmem.so, libhakmem.a and hakmem.o, the same of the hardened library
# (libhakmem-hardened.so and so on), and the objects they are made of.
#
# core/CMakeLists.txt lists the sources in HAKMEM_CORE_SOURCES and the lists of names. The
# core objects are a target of their own so that unit tests can reach what the products hide.

function(hakmem_add_objects name)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
    add_library(${name} OBJECT ${ARGN})
    target_compile_options(${name} PRIVATE ${HAKMEM_CORE_FLAGS} ${HAKMEM_CORE_WARNINGS})
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE ${HAKMEM_DEFINITIONS})
    target_include_directories(${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/core)
endfunction()

find_package(Threads REQUIRED)

# In one piece: in several, less is merged.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT HAKMEM_SANITIZE)
    list(APPEND HAKMEM_LINK_FLAGS -flto-partition=one)
endif()

# Linkers other than GNU's may not know how to insert a section.
include(CheckLinkerFlag)
set(rodata_script ${PROJECT_SOURCE_DIR}/core/rodata.ld)
check_linker_flag(C -Wl,-T,${rodata_script} HAKMEM_HAS_RODATA_SCRIPT)
if(HAKMEM_HAS_RODATA_SCRIPT)
    list(APPEND HAKMEM_LINK_FLAGS -Wl,-T,${rodata_script})
endif()

# libhakmem.so. The number of its SONAME counts up with the first change of the interface that
# breaks programs (include/hakmem/hakmem.h has the rule), whatever the version.
set(HAKMEM_SONAME_NUMBER 0)
set(version_script ${PROJECT_SOURCE_DIR}/core/hakmem.map)

# That of the hardened library has the names of copies.map besides. The library's own copies pass
# by what it exports under these names.
set(hardened_version_script ${PROJECT_BINARY_DIR}/hakmem-hardened.map)
function(hakmem_write_hardened_version_script)
    set(names_file ${PROJECT_SOURCE_DIR}/core/hardened/copies.map)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${version_script} ${names_file})
    file(STRINGS ${names_file} names REGEX "^[a-z_]")
    list(JOIN names ";\n" names)
    file(READ ${version_script} script)
    string(REPLACE "global:" "global:\n${names};" script "${script}")
    file(CONFIGURE OUTPUT ${hardened_version_script} CONTENT "${script}" @ONLY)
endfunction()
hakmem_write_hardened_version_script()

# Between the two, the sources, definitions and flags are those of the hardened library.
macro(hakmem_begin_hardened)
    set(hakmem_default_definitions ${HAKMEM_DEFINITIONS})
    set(hakmem_default_sources ${HAKMEM_CORE_SOURCES})
    set(hakmem_default_shared_sources ${HAKMEM_SHARED_SOURCES})
    set(hakmem_default_link_flags ${HAKMEM_LINK_FLAGS})
    set(hakmem_default_version_script ${version_script})
    if(HAKMEM_HARDENED_SHARED_SOURCES)
        list(APPEND HAKMEM_SHARED_SOURCES ${HAKMEM_HARDENED_SHARED_SOURCES})
        list(APPEND HAKMEM_LINK_FLAGS
            -Wl,--wrap=memcpy -Wl,--wrap=memmove -Wl,--wrap=memset)
        set(version_script ${hardened_version_script})
    endif()
    list(TRANSFORM HAKMEM_DEFINITIONS REPLACE "^HAKMEM_HARDENED=.*" "HAKMEM_HARDENED=1")
    list(TRANSFORM HAKMEM_DEFINITIONS REPLACE "^HAKMEM_SCOPES=.*" "HAKMEM_SCOPES=0")
    list(TRANSFORM HAKMEM_DEFINITIONS REPLACE
        "^HAKMEM_DEFAULT_PRESET=.*" "HAKMEM_DEFAULT_PRESET=3") # in the order of options.def
    set(HAKMEM_CORE_SOURCES ${HAKMEM_HARDENED_CORE_SOURCES})
endmacro()
macro(hakmem_end_hardened)
    set(HAKMEM_DEFINITIONS ${hakmem_default_definitions})
    set(HAKMEM_CORE_SOURCES ${hakmem_default_sources})
    set(HAKMEM_SHARED_SOURCES ${hakmem_default_shared_sources})
    set(HAKMEM_LINK_FLAGS ${hakmem_default_link_flags})
    set(version_script ${hakmem_default_version_script})
endmacro()

# The targets and files of one library: `name` is that of its targets, `file` of its files.
function(hakmem_add_products name file)
    hakmem_add_objects(${name}_core ${HAKMEM_CORE_SOURCES})
    hakmem_add_objects(${name}_override_names ${HAKMEM_OVERRIDE_SOURCES})
    hakmem_add_objects(${name}_compat ${HAKMEM_COMPAT_SOURCES})
    # What lies behind the hit paths is optimised as a whole when it is linked, and becomes a ninth
    # smaller. The hit paths are not: their instructions are counted. Not with clang, whose linker
    # may not know how, nor with a sanitizer.
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT HAKMEM_SANITIZE)
        target_compile_options(${name}_core PRIVATE -flto=auto)
        target_compile_options(${name}_compat PRIVATE -flto=auto)
    endif()
    set(shared_only_objects)
    if(HAKMEM_SHARED_SOURCES)
        hakmem_add_objects(${name}_shared_only ${HAKMEM_SHARED_SOURCES})
        set(shared_only_objects $<TARGET_OBJECTS:${name}_shared_only>)
    endif()
    # The hit paths first, so that they do not move with every change of the slow ones: their place
    # counts (docs/decisions/thread.md).
    set(all_objects $<TARGET_OBJECTS:${name}_override_names> $<TARGET_OBJECTS:${name}_core>
        $<TARGET_OBJECTS:${name}_compat>)

    add_library(${name} SHARED ${all_objects} ${shared_only_objects})
    set_target_properties(${name} PROPERTIES
        OUTPUT_NAME ${file}
        VERSION ${PROJECT_VERSION}
        SOVERSION ${HAKMEM_SONAME_NUMBER}
        LINKER_LANGUAGE C
        LINK_DEPENDS "${version_script};${rodata_script}")
    target_link_options(${name} PRIVATE ${HAKMEM_LINK_FLAGS} -Wl,--version-script=${version_script})
    target_link_libraries(${name} PRIVATE Threads::Threads)

    # hakmem.o: everything in one object, the hidden names made local so that they cannot clash with
    # a program's own. A program that links it overrides malloc for certain, whatever the order of
    # its libraries.
    # The compiler calls the linker, so that with link-time optimisation (-flto) the object holds
    # code and not what the optimiser keeps of it, which cannot stand `objcopy`.
    set(object ${PROJECT_BINARY_DIR}/${file}.o)
    set(sections ${PROJECT_SOURCE_DIR}/core/hakmem.ld)
    separate_arguments(relocatable UNIX_COMMAND "${CMAKE_EXE_LINKER_FLAGS} -r -nostdlib")
    list(APPEND relocatable -Wl,-T,${sections})
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        list(APPEND relocatable -flinker-output=nolto-rel ${HAKMEM_PREFIX_FLAGS})
    endif()
    add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_C_COMPILER} ${relocatable} -o ${object} ${all_objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
        DEPENDS ${all_objects} ${sections} ${name}_core ${name}_override_names ${name}_compat
        COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Linking ${file}.o")
    add_custom_target(${name}_object DEPENDS ${object})
    add_library(${name}_override INTERFACE)
    add_dependencies(${name}_override ${name}_object)
    target_link_libraries(${name}_override INTERFACE
        $<BUILD_INTERFACE:${object}>
        $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${file}.o>
        Threads::Threads)

    # libhakmem.a holds that one object. An archive of many would let the linker take malloc from
    # here and realloc from the C library, when a program names only the former.
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    add_library(${name}_static STATIC ${object})
    add_dependencies(${name}_static ${name}_object)
    set_target_properties(${name}_static PROPERTIES OUTPUT_NAME ${file} LINKER_LANGUAGE C)
    target_link_libraries(${name}_static INTERFACE Threads::Threads)
    # What operator new needs when there is no memory it refers to weakly, for the sake of programs
    # in C, and no weak reference brings a member of an archive in.
    foreach(target ${name}_static ${name}_override)
        target_link_options(${target} INTERFACE
            $<$<LINK_LANGUAGE:CXX>:LINKER:-u,_ZSt17__throw_bad_allocv,-u,_ZSt15get_new_handlerv>)
    endforeach()
    foreach(target ${name} ${name}_static ${name}_override)
        target_include_directories(${target} INTERFACE
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()

    # Their names for who links with them: hakmem::hakmem, hakmem::static, hakmem::override, and
    # hakmem::hardened, hakmem::hardened_static, hakmem::hardened_override.
    string(REGEX REPLACE "^hakmem_?" "" short ${name})
    if(short)
        set(names ${short} ${short}_static ${short}_override)
    else()
        set(names hakmem static override)
    endif()
    set(products ${name} ${name}_static ${name}_override)
    foreach(target exported IN ZIP_LISTS products names)
        add_library(hakmem::${exported} ALIAS ${target})
        set_target_properties(${target} PROPERTIES EXPORT_NAME ${exported})
    endforeach()
endfunction()

# What `make` builds: the products without the tests. With HAKMEM_HARDENED=1, for tests and for
# projects that want no other, the hardened library has the name of the default one.
if(HAKMEM_HARDENED)
    hakmem_begin_hardened()
endif()
hakmem_add_products(hakmem hakmem)
set(HAKMEM_PRODUCTS hakmem hakmem_static hakmem_override)
set(built hakmem hakmem_static hakmem_object)
set(HAKMEM_OBJECTS ${PROJECT_BINARY_DIR}/hakmem.o)
if(NOT HAKMEM_HARDENED)
    hakmem_begin_hardened()
    hakmem_add_products(hakmem_hardened hakmem-hardened)
    hakmem_end_hardened()
    list(APPEND HAKMEM_PRODUCTS hakmem_hardened hakmem_hardened_static hakmem_hardened_override)
    list(APPEND HAKMEM_OBJECTS ${PROJECT_BINARY_DIR}/hakmem-hardened.o)
    list(APPEND built hakmem_hardened hakmem_hardened_static hakmem_hardened_object)
endif()
# Of other projects the name is their own.
if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
    add_custom_target(library DEPENDS ${built})
endif()

# libhakmem-profile.so, the measuring library: the same, with time taken around slow paths and at
# locks (core/report/cycles.h, locks.h). The linker puts that around the functions that cycles.def
# and locks.c name, so without link-time optimisation. Its SONAME is that of the other one, so that
# a program that is linked with that has one of them. For `hakmem run --cycles` and `make scale`.
set(wrapped lock_acquire lock_release os_cpu_count reclaim_read_limits heap_enter)
set(spans ${PROJECT_SOURCE_DIR}/core/report/cycles.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${spans})
file(STRINGS ${spans} rows REGEX "^SPAN")
foreach(row ${rows})
    string(REGEX REPLACE "^SPAN.([a-z_]+),.*" "\\1" name "${row}")
    list(APPEND wrapped ${name})
endforeach()
list(TRANSFORM wrapped PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE HAKMEM_MEASURING_LINK_FLAGS)
function(hakmem_add_measuring_library)
    list(TRANSFORM HAKMEM_DEFINITIONS REPLACE "^HAKMEM_MEASURING=.*" "HAKMEM_MEASURING=1")
    hakmem_add_objects(hakmem_core_measuring ${HAKMEM_CORE_SOURCES} ${HAKMEM_MEASURING_SOURCES})
    hakmem_add_objects(
        hakmem_names_measuring
        ${HAKMEM_OVERRIDE_SOURCES} ${HAKMEM_COMPAT_SOURCES} ${HAKMEM_SHARED_SOURCES})
    add_library(hakmem_profile SHARED
        $<TARGET_OBJECTS:hakmem_names_measuring> $<TARGET_OBJECTS:hakmem_core_measuring>)
    set_target_properties(hakmem_profile PROPERTIES
        OUTPUT_NAME hakmem-profile
        NO_SONAME TRUE
        LINKER_LANGUAGE C
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/hakmem
        LINK_DEPENDS ${version_script})
    target_link_options(hakmem_profile PRIVATE
        ${HAKMEM_LINK_FLAGS} ${HAKMEM_MEASURING_LINK_FLAGS}
        -Wl,-soname,libhakmem.so.${HAKMEM_SONAME_NUMBER}
        -Wl,--version-script=${version_script})
    target_link_libraries(hakmem_profile PRIVATE Threads::Threads)
endfunction()
if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR AND NOT HAKMEM_HARDENED)
    hakmem_add_measuring_library()
endif()

# libhakmem-unscoped.so, for tests: the default library without scopes.
function(hakmem_add_unscoped_library)
    list(TRANSFORM HAKMEM_DEFINITIONS REPLACE "^HAKMEM_SCOPES=.*" "HAKMEM_SCOPES=0")
    list(REMOVE_ITEM HAKMEM_CORE_SOURCES ${HAKMEM_SCOPE_SOURCES})
    list(REMOVE_ITEM HAKMEM_OVERRIDE_SOURCES core/override/scope.c)
    hakmem_add_products(hakmem_unscoped hakmem-unscoped)
    set_target_properties(hakmem_unscoped_static PROPERTIES EXCLUDE_FROM_ALL TRUE)
endfunction()
if(HAKMEM_TESTS AND HAKMEM_SCOPES AND NOT HAKMEM_HARDENED AND NOT HAKMEM_SANITIZE)
    hakmem_add_unscoped_library()
endif()
