/* Children are made while other threads are in the middle of calls of every kind. Each child
 * allocates much, starts a thread, trims, frees: what was live in the parent must stay what it was,
 * whoever owned it, and nobody may hang. A child by fork may rely on that everywhere; hakmem allows
 * it for those made by _Fork and clone as well.
 *
 * usage: beside_busy fork|_Fork|clone THREADS CHILDREN
 */
#include "hostile.h"

#include <stdatomic.h>

enum { THREADS_MAX = 16, BUSY_BLOCKS = 400, CHILD_BLOCKS = 6000, STAMP_BYTES = 64 };

struct block {
    size_t size;
    unsigned char stamp;
    unsigned char bytes[];
};

/* A block is put here when it is stamped, and taken out before it is freed: what a child finds here
 * was live when the child was made. */
static _Atomic(struct block *) busy_blocks[THREADS_MAX][BUSY_BLOCKS];

static size_t some_size(void)
{
    size_t kind = random_next() % 1000;
    if (kind < 900) {
        return random_between(1, 1000);
    }
    return kind < 990 ? random_between(1, 32768)
                      : random_between(32769, kind < 998 ? MIB : 4 * MIB);
}

/* Both ends carry the stamp: stamping all of it would leave little time for calls. */
static struct block *make_block(unsigned char stamp)
{
    size_t size = some_size();
    struct block *block = allocate(sizeof *block + size);
    size_t length = size < STAMP_BYTES ? size : STAMP_BYTES;
    block->size = size;
    block->stamp = stamp;
    memset(block->bytes, stamp, length);
    memset(block->bytes + size - length, stamp, length);
    return block;
}

static void check_block(const struct block *block, unsigned char stamp)
{
    REQUIRE(block->stamp == stamp && block->size > 0);
    size_t length = block->size < STAMP_BYTES ? block->size : STAMP_BYTES;
    for (size_t i = 0; i < length; i++) {
        REQUIRE(block->bytes[i] == stamp && block->bytes[block->size - 1 - i] == stamp);
    }
}

static void *busy(void *number)
{
    uintptr_t id = (uintptr_t)number;
    random_state += id * 77;
    for (;;) {
        _Atomic(struct block *) *place = &busy_blocks[id][random_next() % BUSY_BLOCKS];
        struct block *old = atomic_exchange(place, NULL);
        if (old) {
            check_block(old, (unsigned char)(id + 1));
            free(old);
        }
        atomic_store(place, make_block((unsigned char)(id + 1)));
    }
    return NULL;
}

static void *allocate_much(void *stamp_of_child)
{
    static __thread struct block *blocks[CHILD_BLOCKS];
    unsigned char stamp = (unsigned char)(uintptr_t)stamp_of_child;
    random_state += stamp;
    for (int i = 0; i < CHILD_BLOCKS; i++) {
        blocks[i] = make_block(stamp);
    }
    for (int i = 0; i < CHILD_BLOCKS; i++) {
        check_block(blocks[i], stamp);
        free(blocks[i]);
    }
    return NULL;
}

static void check_all(size_t threads)
{
    for (size_t id = 0; id < threads; id++) {
        for (int i = 0; i < BUSY_BLOCKS; i++) {
            struct block *block = atomic_load(&busy_blocks[id][i]);
            if (block) {
                check_block(block, (unsigned char)(id + 1));
            }
        }
    }
}

static void child_main(size_t threads)
{
    pthread_t thread;
    watch("a child made beside busy threads");
    allocate_much((void *)200);
    check_all(threads);
    REQUIRE(pthread_create(&thread, NULL, allocate_much, (void *)201) == 0);
    allocate_much((void *)202);
    REQUIRE(pthread_join(thread, NULL) == 0);
    check_all(threads);
    malloc_trim(0);
    for (size_t id = 0; id < threads; id++) {
        for (int i = 0; i < BUSY_BLOCKS; i += 2) {
            free(atomic_exchange(&busy_blocks[id][i], NULL));
        }
    }
    allocate_much((void *)203);
    check_all(threads);
    _exit(0);
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 2), children = argument(argc, argv, 3);
    REQUIRE(threads <= THREADS_MAX);
    for (uintptr_t id = 0; id < threads; id++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, busy, (void *)id) == 0);
    }
    for (size_t i = 0; i < children; i++) {
        watch("making a child");
        pid_t child = argv[1][0] == 'f'   ? fork()
                      : argv[1][0] == '_' ? _Fork()
                                          : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        REQUIRE(child >= 0);
        if (child == 0) {
            child_main(threads);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    alarm(0);
    conclude();
    _exit(0);
}
