# Refuses a processor that the core has no system calls for (core/os/syscall.h), by what the
# compiler says that it compiles for.

include(CheckCSourceCompiles)

check_c_source_compiles("#if !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error
#elif !defined(__x86_64__) && !defined(__aarch64__)
#error
#endif
int main(void) { return 0; }" HAKMEM_KNOWN_PROCESSOR)
if(NOT HAKMEM_KNOWN_PROCESSOR)
    message(FATAL_ERROR "hakmem runs on x86-64 and 64-bit ARM, not on ${CMAKE_SYSTEM_PROCESSOR} as "
        "${CMAKE_C_COMPILER} ${CMAKE_C_FLAGS} compiles for it")
endif()
