#include "misuse.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Memory from brk is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, brk)
{
    /* musl's sbrk moves nothing. */
    uintptr_t start = (uintptr_t)syscall(SYS_brk, 0), end = start + 8192;
    if ((uintptr_t)syscall(SYS_brk, end) != end)
        not_applicable();
    free_foreign((void *)((start + 15) & ~(uintptr_t)15));
}

/* A block of glibc's own malloc is freed: one that somebody took from its handle.
 * all: at once or not applicable
 *     | free(): invalid pointer BAD: not allocated by hakmem, but by the C library, it seems */
CASE(invalid, c_library)
{
    void *(*make)(size_t);
    void *library = dlopen("libc.so.6", RTLD_NOW);
    void *found = library ? dlsym(library, "malloc") : NULL;
    if (!found || !dlsym(library, "gnu_get_libc_version"))
        not_applicable();
    memcpy(&make, &found, sizeof make);
    char *block = make(size);
    memset(block, 0xff, size);
    free_foreign(block);
}

/* A file that was mapped and has been unmapped is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, closed)
{
    int file = open("/proc/self/exe", O_RDONLY);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED)
        broken("no mapping");
    close(file);
    munmap(page, 4096);
    free_foreign(page);
}

/* A block is freed again when its memory has gone back and belongs to a mapping of the program's
 * own.
 * tiny, mid, large: not applicable
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened big: not applicable */
CASE(invalid, closed_block)
{
    if (size < (size_t)2 << 20)
        not_applicable();
    void *block = new_purged_victim(size);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    /* The hardened preset keeps its addresses. */
    if (mmap(block, 4096, PROT_READ | PROT_WRITE, flags, -1, 0) != block)
        not_applicable();
    free_wrongly(block);
}

/* A block is freed again, by another thread, when its memory has gone back to the system.
 * tiny, mid, large: not applicable
 * big: at once | free(): double free of BAD | free(): invalid pointer BAD: not allocated by hakmem
 */
CASE(invalid, closed_block_in_new_thread)
{
    if (size < (size_t)2 << 20)
        not_applicable();
    void *block = new_purged_victim(size);
    run_in_thread(thread_frees_wrongly, block);
}

/* A pointer to a constant is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, constant)
{
    static const _Alignas(16) char text[16] = "not a block";
    free_foreign(text);
}

/* An address is freed at which nothing was ever mapped.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, far, (void *)((uintptr_t)1 << 40), free(stray))

/* An address is freed that lies 1 GiB above a block.
 * all: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, far_above_heap)
{
    char *block = need(malloc(size));
    free_foreign(block + ((size_t)1 << 30));
}

/* An address is freed that lies 256 MiB below a block: hakmem may use it one day.
 * all: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, far_beside_heap)
{
    char *block = need(malloc(size));
    free_foreign((void *)((uintptr_t)(block - ((size_t)256 << 20)) & ~(uintptr_t)15));
}

/* An address at which nothing was ever mapped is freed by a thread that has made no call before.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, far_in_new_thread)
{
    run_in_thread(thread_frees_foreign, (void *)((uintptr_t)1 << 40));
}

/* cfree, the old name of free, is given a pointer that hakmem never handed out.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_cfree, storage, cfree(stray))

/* operator delete is given a pointer that hakmem never handed out.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_delete, storage, _ZdlPv(stray))

/* free_aligned_sized is given a pointer that hakmem never handed out.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_free_aligned_sized, storage, free_aligned_sized(stray, 64, size))

/* free_sized is given a pointer that hakmem never handed out.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_free_sized, storage, free_sized(stray, size))

/* hakmem's own function for sizes is given a pointer that hakmem never handed out.
 * any: at once | hakmem_usable_size(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_hakmem_usable_size, storage, hakmem_usable_size(stray))

/* realloc is given a pointer that hakmem never handed out.
 * any: at once | realloc(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_realloc, storage, hide(realloc(stray, size)))

/* realloc with size 0 is given a pointer that hakmem never handed out.
 * any: at once | realloc(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_realloc_to_nothing, storage, hide(realloc(stray, 0)))

/* reallocarray is given a pointer that hakmem never handed out.
 * any: at once | realloc(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_reallocarray, storage, hide(reallocarray(stray, 2, size)))

/* The size is asked for of a block that hakmem never handed out.
 * any: at once | malloc_usable_size(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, foreign_by_usable_size, storage, malloc_usable_size(stray))

/* A pointer to code is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, function, (void *)((uintptr_t)&announce & ~(uintptr_t)15), free(stray))

/* A thread's first call frees a pointer that hakmem never handed out.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, in_new_thread)
{
    run_in_thread(thread_frees_foreign, storage);
}

/* An address in the kernel's half is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, kernel, (void *)(uintptr_t)-4096, free(stray))

/* The number -1 is freed.
 * any: at once | free(): invalid pointer BAD: misaligned */
STRAY(invalid, minus_one, (void *)(uintptr_t)-1, free(stray))

/* A page that the program mapped itself is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, mmap)
{
    void *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        broken("no mapping");
    free_foreign(pages);
}

/* A mapping of the program's own that begins where one of hakmem's could, at a multiple of 2 MiB,
 * is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, mmap_like_ours)
{
    const uintptr_t unit = (uintptr_t)2 << 20;
    char *pages = mmap(NULL, 3 * unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        broken("no mapping");
    free_foreign((void *)(((uintptr_t)pages + unit - 1) & ~(unit - 1)));
}

/* A number is freed that is no address on this processor.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, non_canonical, (void *)((uintptr_t)0x7ff0 << 48 | 0x1000), free(stray))

/* An address in the first page is freed: a member of a structure at NULL.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, null_page, (void *)(uintptr_t)0x40, free(stray))

/* A pointer to hakmem's own data is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, of_the_library, (void *)((uintptr_t)hakmem_version() & ~(uintptr_t)15), free(stray))

/* A mapping of the program's own that cannot be touched is freed, at a page inside of it.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, protected)
{
    char *pages = mmap(NULL, 16 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free_foreign(pages + 4096);
}

/* The number 1 is freed.
 * any: at once | free(): invalid pointer BAD: misaligned */
STRAY(invalid, small_integer, (void *)(uintptr_t)1, free(stray))

/* A pointer to a local variable is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, stack)
{
    _Alignas(16) char local[64] = {0};
    free_foreign(local);
}

/* A pointer to a local variable is freed by another thread than the one whose it is.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, stack_in_new_thread)
{
    _Alignas(16) char local[64] = {0};
    run_in_thread(thread_frees_foreign, local);
}

/* A pointer to a static variable is freed.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
STRAY(invalid, static, storage, free(stray))

/* A pointer into a static variable, no multiple of 16, is freed.
 * any: at once | free(): invalid pointer BAD: misaligned */
STRAY(invalid, static_misaligned, storage + 5, free(stray))

/* A pointer to a static variable is freed when a hundred thousand blocks have come and gone.
 * any: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, static_with_many_between)
{
    for (size_t i = 0; i < 100000; i++)
        free(need(malloc(1 + i * 37 % 2000)));
    free_foreign(storage);
}
