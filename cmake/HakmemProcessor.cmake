# Refuses a processor that the core has no system calls for (core/os/syscall.h), by what the
# compiler says that it compiles for.

include(CheckCSourceCompiles)

check_c_source_compiles("#if !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error
#elif !defined(__x86_64__) && !defined(__aarch64__) && !defined(__riscv)
#error
#endif
int main(void) { return 0; }" HAKMEM_KNOWN_PROCESSOR)
if(NOT HAKMEM_KNOWN_PROCESSOR)
    message(FATAL_ERROR "hakmem runs on x86-64 and on 64-bit ARM and RISC-V, not on "
        "${CMAKE_SYSTEM_PROCESSOR} as ${CMAKE_C_COMPILER} ${CMAKE_C_FLAGS} compiles for it")
endif()

# On RISC-V gcc before 13 takes atomic operations on bytes from a library, which it links with
# -pthread by itself.
check_c_source_compiles("char byte;
int main(void) { return __atomic_exchange_n(&byte, 1, __ATOMIC_ACQUIRE); }" HAKMEM_BYTES_ARE_ATOMIC)
if(NOT HAKMEM_BYTES_ARE_ATOMIC)
    add_link_options(-pthread)
endif()
