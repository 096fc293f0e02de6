# Compiler and linker flags of the library, as lists used by HakmemLibraries.cmake.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(HAKMEM_WARNINGS -Wall -Wextra)
set(HAKMEM_CORE_WARNINGS ${HAKMEM_WARNINGS} -Wshadow -Wundef -Wvla -Wpointer-arith -Wwrite-strings
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wformat=2
    -Wimplicit-fallthrough)
# Tests misuse memory on purpose; the compiler need not point it out, nor the C library see to it,
# as in Ubuntu by default.
# cmocka 2 gives macros other names, which cmocka 1 does not have.
set(HAKMEM_TEST_WARNINGS ${HAKMEM_WARNINGS} -Wno-deprecated-declarations -U_FORTIFY_SOURCE)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND HAKMEM_TEST_WARNINGS -Wno-use-after-free -Wno-free-nonheap-object
        -Wno-alloc-size-larger-than -Wno-mismatched-dealloc
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
endif()
if(HAKMEM_WERROR)
    list(APPEND HAKMEM_WARNINGS -Werror)
    list(APPEND HAKMEM_CORE_WARNINGS -Werror)
    list(APPEND HAKMEM_TEST_WARNINGS -Werror)
endif()

# What stacks are followed by: the default of compilers, but not on RISC-V.
add_compile_options(-fasynchronous-unwind-tables)

# Debugging information names files from the top of the tree, so that the library is the same
# wherever that lies; a debugger that is started there finds them.
set(HAKMEM_PREFIX_FLAGS -fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.
    -fdebug-prefix-map=${PROJECT_BINARY_DIR}=.)

set(HAKMEM_CORE_FLAGS
    ${HAKMEM_PREFIX_FLAGS}
    -fPIC
    -fvisibility=hidden
    -fno-semantic-interposition
    # Calls into libc go through the GOT directly: with -z now there is nothing to bind lazily.
    -fno-plt
    # One load from the thread pointer. Works with dlopen as long as the TLS block stays small.
    -ftls-model=initial-exec
    # The exception of a C++ new_handler travels through our C frames.
    -fexceptions
    # Keeps the compiler from using what it believes of malloc, e.g. making malloc + memset calloc.
    -fno-builtin
    # Ubuntu's default: a name of the C library more for each, and a canary that a thread which is
    # just being made has not yet.
    -U_FORTIFY_SOURCE -fno-stack-protector
    -ffunction-sections
    -fdata-sections)

# The linker compiles, too, where it optimises.
set(HAKMEM_LINK_FLAGS ${HAKMEM_PREFIX_FLAGS}
    -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--gc-sections -Wl,-O1 -Wl,--hash-style=gnu
    # Small variables lie together, also those of link-time optimization, so that a process touches
    # few pages.
    -fdata-sections -Wl,--sort-section=alignment
    # dlclose must be harmless: live blocks and thread heaps outlive any handle.
    -Wl,-z,nodelete)

# What other compilers tell their linker themselves, and musl-gcc does not: stacks are followed by
# the one, a recording knows the library by the other.
if(HAKMEM_MUSL)
    set(HAKMEM_MUSL_LINK_FLAGS -Wl,--eh-frame-hdr -Wl,--build-id)
    list(APPEND HAKMEM_LINK_FLAGS ${HAKMEM_MUSL_LINK_FLAGS})
endif()

# The macros that the C code may test.
set(HAKMEM_DEFINITIONS HAKMEM_DEBUG=${HAKMEM_DEBUG} HAKMEM_FAULTS=${HAKMEM_FAULTS}
    HAKMEM_HARDENED=0 HAKMEM_MEASURING=0 HAKMEM_SCOPES=${HAKMEM_SCOPES}
    HAKMEM_DEFAULT_PRESET=${HAKMEM_DEFAULT_PRESET_NUMBER}
    "HAKMEM_CONF=\"${HAKMEM_CONF}\"")
foreach(tool ADDRESS THREAD UNDEFINED)
    string(TOLOWER ${tool} word)
    if(HAKMEM_SANITIZE STREQUAL word)
        list(APPEND HAKMEM_DEFINITIONS HAKMEM_SANITIZE_${tool}=1)
    else()
        list(APPEND HAKMEM_DEFINITIONS HAKMEM_SANITIZE_${tool}=0)
    endif()
endforeach()

# A sanitizer brings undefined symbols that only its run-time library in the program resolves.
if(HAKMEM_SANITIZE)
    set(HAKMEM_SANITIZE_FLAGS -fsanitize=${HAKMEM_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_compile_options(${HAKMEM_SANITIZE_FLAGS})
    add_link_options(${HAKMEM_SANITIZE_FLAGS})
else()
    list(APPEND HAKMEM_LINK_FLAGS -Wl,--no-undefined)
endif()
