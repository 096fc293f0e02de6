/* Places the hardened library's superslabs and records at random addresses, between guard pages. */
#include "base/random.h"
#include "hardened/fence.h"
#include "hardened/front.h"
#include "os/os.h"

/* Superslabs lie in one TiB, which starts at a random place of 32: the page map keeps memory for
 * each GiB in which one has ever lain, and superslabs come and go. Const after the start. */
static char *room;
static const size_t room_bytes = 1024 * GIB;

static uint64_t random_state; /* lock of the page heap's only part */
uint64_t random_of_process;

/* A multiple of `alignment` somewhere in `bytes` bytes; NULL: the system has no random numbers. */
static char *random_place(char *start, size_t bytes, size_t alignment)
{
    uint64_t random = 0;
    if (!os_random(&random, sizeof random))
        return NULL;
    return start + random % (bytes / alignment) * alignment;
}

/* A random address in 32 TiB that neither programs nor the system begin to use. */
static char *random_address(size_t alignment)
{
    return random_place((char *)((uintptr_t)1 << 44), (size_t)1 << 45, alignment);
}

void hardened_begin_process(void)
{
    if (!os_random(&random_of_process, sizeof random_of_process))
        random_of_process = os_clock_ns() ^ (uint64_t)os_thread_id() << 40;
    random_state ^= random_of_process;
}

void hardened_start(void)
{
    bytes_start();
    fence_prepare();
    tags_start();
    hardened_begin_process();
    room = random_address(REGION_SIZE);
}

/* Each superslab at a random place is a mapping of its own, so if there are many, the system
 * chooses. */
char *hardened_place(size_t superslabs)
{
    enum { ALONE_MAX = 8192 };
    bool alone = superslabs < ALONE_MAX && room;
    return alone ? random_place(room, room_bytes, REGION_SIZE) : NULL;
}

/* Mappings that a superslab's fence costs: at most two a unit, around its open pages. */
enum { FENCE_MAPPINGS = 2 * SUPERSLAB_UNITS };

void hardened_start_superslab(struct superslab *superslab)
{
    char *base = superslab->region.base;
    tags_prepare(base, REGION_SIZE);
    superslab->fence = (uint8_t)fence_start(base, REGION_SIZE, FENCE_MAPPINGS);
}

void hardened_end_superslab(const struct superslab *superslab)
{
    fence_end(superslab->fence, FENCE_MAPPINGS);
}

/* Makes the distance between slabs hard to foresee. */
unsigned hardened_first_unit(void)
{
    return random_below(&random_state, SUPERSLAB_UNITS);
}

/* Zeroed memory between two closed pages. These fences stay. */
void *hardened_map_records(size_t size, bool anywhere)
{
    size_t page = os_page_size();
    char *start = os_map(size + 2 * page, page, anywhere ? random_address(page) : NULL);
    if (!start)
        return NULL;
    fence_start(start, page, 1);
    fence_start(start + page + size, page, 1);
    return start + page;
}
