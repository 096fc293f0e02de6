/* Owns the cases in which a pointer is passed that no allocation returned: behaviour 24.
 */
#include "misuse.h"

#include <sys/mman.h>
#include <unistd.h>

static void free_foreign(void *pointer)
{
    announce(pointer, NULL);
    free(pointer);
    survived();
}

static void foreign_stack(size_t size)
{
    _Alignas(16) char local[64];
    (void)size;
    local[0] = 0;
    free_foreign(hide(local));
}

static void foreign_static(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    free_foreign(hide(storage));
}

static void foreign_constant(size_t size)
{
    static const _Alignas(16) char text[16] = "not a block";
    (void)size;
    free_foreign(hide(text));
}

static void foreign_misaligned(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    free_foreign(hide(storage + 5));
}

static void foreign_function(size_t size)
{
    (void)size;
    free_foreign(hide((void *)((uintptr_t)&foreign_function & ~(uintptr_t)15)));
}

static void foreign_brk(size_t size)
{
    (void)size;
    char *start = sbrk(8192);
    if (start == (char *)-1) {
        not_applicable();
    }
    free_foreign(hide((void *)(((uintptr_t)start + 15) & ~(uintptr_t)15)));
}

static char *map_pages(size_t bytes)
{
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        not_applicable();
    }
    return pages;
}

static void foreign_mmap(size_t size)
{
    (void)size;
    free_foreign(hide(map_pages(65536) + 4096));
}

/* A mapping that looks like one of the library's own: whole 2 MiB units at a multiple of that. */
static void foreign_mmap_2mib(size_t size)
{
    const uintptr_t unit = (uintptr_t)2 << 20;
    (void)size;
    char *pages = map_pages(3 * unit);
    free_foreign(hide((void *)(((uintptr_t)pages + unit - 1) & ~(unit - 1))));
}

static void foreign_unmapped(size_t size)
{
    (void)size;
    char *pages = map_pages(65536);
    munmap(pages, 65536);
    free_foreign(hide(pages));
}

static void foreign_null_page(size_t size)
{
    (void)size;
    free_foreign(hide((void *)(uintptr_t)0x40));
}

static void foreign_small_integer(size_t size)
{
    (void)size;
    free_foreign(hide((void *)(uintptr_t)1));
}

static void foreign_non_canonical(size_t size)
{
    (void)size;
    free_foreign(hide((void *)((uintptr_t)0x7ff0 << 48 | 0x1000)));
}

static void foreign_kernel(size_t size)
{
    (void)size;
    free_foreign(hide((void *)(uintptr_t)-4096));
}

static void foreign_minus_one(size_t size)
{
    (void)size;
    free_foreign(hide((void *)(uintptr_t)-1));
}

/* A thread that has not allocated yet takes another path into the library. */
static void *free_in_new_thread(void *pointer)
{
    free(pointer);
    survived();
    return NULL;
}

static void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0 || pthread_join(thread, NULL) != 0) {
        broken("no thread");
    }
}

static void foreign_in_new_thread(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    run_thread(free_in_new_thread, hide(storage));
}

static void foreign_realloc(size_t size)
{
    static _Alignas(16) char storage[64];
    announce(storage, NULL);
    void *volatile result = realloc(hide(storage), size);
    (void)result;
    survived();
}

static void foreign_reallocarray(size_t size)
{
    static _Alignas(16) char storage[64];
    announce(storage, NULL);
    void *volatile result = reallocarray(hide(storage), 2, size);
    (void)result;
    survived();
}

static void foreign_realloc_to_nothing(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    void *volatile result = realloc(hide(storage), 0);
    (void)result;
    survived();
}

static void foreign_usable_size(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    (void)malloc_usable_size(hide(storage));
    survived();
}

static void foreign_own_usable_size(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    (void)hakmem_usable_size(hide(storage));
    survived();
}

static void foreign_cfree(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    cfree(hide(storage));
    survived();
}

static void foreign_free_sized(size_t size)
{
    static _Alignas(16) char storage[64];
    announce(storage, NULL);
    free_sized(hide(storage), size);
    survived();
}

static void foreign_free_aligned_sized(size_t size)
{
    static _Alignas(64) char storage[64];
    announce(storage, NULL);
    free_aligned_sized(hide(storage), 64, size);
    survived();
}

static void foreign_delete(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    _ZdlPv(hide(storage));
    survived();
}

static void free_inside(size_t size, size_t offset)
{
    char *block = need(malloc(size));
    announce(block + offset, block);
    free(hide(block + offset));
    survived();
}

static void interior_first(size_t size)
{
    free_inside(size, 16);
}

static void interior_middle(size_t size)
{
    free_inside(size, size / 2 / 16 * 16);
}

static void interior_last(size_t size)
{
    free_inside(size, (size - 1) / 16 * 16);
}

static void misaligned_by_one(size_t size)
{
    free_inside(size, 1);
}

static void misaligned_by_eight(size_t size)
{
    free_inside(size, 8);
}

static void misaligned_middle(size_t size)
{
    free_inside(size, size / 2 / 16 * 16 + 9);
}

/* An aligned block has the same rules as any other. */
static void interior_of_aligned(size_t size)
{
    char *block = need(memalign(256, size));
    announce(block + 16, block);
    free(hide(block + 16));
    survived();
}

static void interior_in_another_thread(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    run_thread(free_in_new_thread, hide(block + 16));
}

static void interior_realloc(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    void *volatile result = realloc(hide(block + 16), 2 * size);
    (void)result;
    survived();
}

static void interior_usable_size(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    (void)malloc_usable_size(hide(block + 16));
    survived();
}

static void misaligned_realloc(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 8, block);
    void *volatile result = realloc(hide(block + 8), 2 * size);
    (void)result;
    survived();
}

static void misaligned_usable_size(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 8, block);
    (void)malloc_usable_size(hide(block + 8));
    survived();
}

const struct misuse_case invalid_cases[] = {
    {"foreign_stack", foreign_stack},
    {"foreign_static", foreign_static},
    {"foreign_constant", foreign_constant},
    {"foreign_misaligned", foreign_misaligned},
    {"foreign_function", foreign_function},
    {"foreign_brk", foreign_brk},
    {"foreign_mmap", foreign_mmap},
    {"foreign_mmap_2mib", foreign_mmap_2mib},
    {"foreign_unmapped", foreign_unmapped},
    {"foreign_null_page", foreign_null_page},
    {"foreign_small_integer", foreign_small_integer},
    {"foreign_non_canonical", foreign_non_canonical},
    {"foreign_kernel", foreign_kernel},
    {"foreign_minus_one", foreign_minus_one},
    {"foreign_in_new_thread", foreign_in_new_thread},
    {"foreign_realloc", foreign_realloc},
    {"foreign_reallocarray", foreign_reallocarray},
    {"foreign_realloc_to_nothing", foreign_realloc_to_nothing},
    {"foreign_usable_size", foreign_usable_size},
    {"foreign_own_usable_size", foreign_own_usable_size},
    {"foreign_cfree", foreign_cfree},
    {"foreign_free_sized", foreign_free_sized},
    {"foreign_free_aligned_sized", foreign_free_aligned_sized},
    {"foreign_delete", foreign_delete},
    {"interior_first", interior_first},
    {"interior_middle", interior_middle},
    {"interior_last", interior_last},
    {"interior_of_aligned", interior_of_aligned},
    {"interior_in_another_thread", interior_in_another_thread},
    {"interior_realloc", interior_realloc},
    {"interior_usable_size", interior_usable_size},
    {"misaligned_by_one", misaligned_by_one},
    {"misaligned_by_eight", misaligned_by_eight},
    {"misaligned_middle", misaligned_middle},
    {"misaligned_realloc", misaligned_realloc},
    {"misaligned_usable_size", misaligned_usable_size},
    {NULL, NULL},
};
