# HAKMEM_MUSL: whether the compiler is one for musl, by its headers: on Alpine the system's own, on
# others musl-gcc. What musl's headers lack is in core/override/musl.

include(CheckCSourceCompiles)

check_c_source_compiles("#include <features.h>
#ifndef __GLIBC__
#error
#endif
int main(void) { return 0; }" HAKMEM_GLIBC)
set(HAKMEM_MUSL 0)
if(NOT HAKMEM_GLIBC)
    set(HAKMEM_MUSL 1)
    include_directories(BEFORE ${PROJECT_SOURCE_DIR}/core/override/musl)
endif()
