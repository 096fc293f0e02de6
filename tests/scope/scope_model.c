/* Scopes against a shadow model: what each holds equals, to the byte, what the model says that it
 * was given and did not free, and its resident memory, to the page, what the system says of all
 * places where it ever had blocks.
 *
 * Threads allocate, resize and free blocks of 50 scopes, some of which lie inside others, by all
 * functions, entered or not; mostly another thread frees what one has made. Each stays in a scope
 * for a round, from which it allocates most, and is still in it when, between rounds, all stand
 * still, each scope is compared, some are reset, destroyed and made anew, and a child is forked
 * from a thread in the middle of the work, which compares what cannot have moved, and goes on by
 * itself.
 *
 *     scope_model [SEED [ROUNDS]] */
#include "scope_support.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

enum {
    SCOPES = 50,
    THREADS = 8,
    SLOTS = 4000,
    STEPS = 3000,
    PLACES = 4096,
    INNER = 20,
    BATCH = 17
};

/* A scope of the model. The first INNER lie in the ones INNER places behind them. */
struct shadow {
    struct hakmem_scope *scope;
    size_t limit;
};

/* 2 MiB of addresses in which blocks up to 2 MiB lay, and of which scope the last one was. */
static struct place {
    uintptr_t number;
    int scope; /* -1: of none */
} places[PLACES];
static unsigned place_count;
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

/* A block that lives. The thread that has the lock owns it. */
struct slot {
    pthread_mutex_t lock;
    unsigned char *block;
    size_t size;
    int scope; /* -1: none */
    unsigned char mark;
};

static struct shadow shadows[SCOPES];
static __thread int stays = -1; /* in that scope of the model, which was `stayed` */
static __thread struct hakmem_scope *stayed;
static struct slot slots[SLOTS];
static pthread_barrier_t barrier;
static uint64_t seed = 1;
static int rounds = 20;

static int outer_of(int scope)
{
    return scope < INNER ? scope + INNER : -1;
}

static void make(int number)
{
    char name[16];
    struct hakmem_scope *outer = outer_of(number) < 0 ? NULL : shadows[outer_of(number)].scope;
    snprintf(name, sizeof name, "scope %d", number);
    CHECK(hakmem_scope_enter(outer) == 0);
    shadows[number].scope = make_scope(name, shadows[number].limit);
    hakmem_scope_leave(outer);
}

static bool has_own_mapping(void *block)
{
    return malloc_usable_size(block) > 2 * MIB;
}

/* Of a block with a mapping of its own, nobody has the places any more. */
static void note_place(int scope, void *block)
{
    uintptr_t number = (uintptr_t)block >> 21;
    uintptr_t last = ((uintptr_t)block + malloc_usable_size(block) - 1) >> 21;
    pthread_mutex_lock(&places_lock);
    for (; number <= last; number++) {
        unsigned i = 0;
        while (i < place_count && places[i].number != number)
            i++;
        CHECK(i < PLACES);
        place_count += i == place_count;
        places[i] = (struct place){number, has_own_mapping(block) ? -1 : scope};
    }
    pthread_mutex_unlock(&places_lock);
}

static size_t draw_size(uint64_t *random)
{
    uint64_t drawn = scope_random(random);
    unsigned kind = drawn % 1000;
    size_t most = kind < 800 ? 600 : kind < 960 ? 20000 : kind < 996 ? 400000 : 5 * MIB;
    return (drawn >> 16) % most;
}

/* A block of the scope, by one of the functions. */
static void *allocate(int number, size_t size, uint64_t *random)
{
    struct hakmem_scope *scope = number < 0 ? NULL : shadows[number].scope;
    unsigned way = (unsigned)(scope_random(random) % 6);
    unsigned char *block;
    if (way == 0 && scope)
        return hakmem_scope_malloc(scope, size);
    if (way == 1 && scope)
        return hakmem_scope_aligned_alloc(scope, (size_t)16 << scope_random(random) % 14, size);
    bool enters = !scope || scope != stayed;
    CHECK(!enters || hakmem_scope_enter(scope) == 0);
    switch (way) {
    case 2:
        block = calloc(1, size);
        for (size_t at = 0; block && at < size; at++)
            CHECK(!block[at]);
        break;
    case 3:
        block = aligned_alloc((size_t)16 << scope_random(random) % 18, size);
        break;
    case 4:
        block = realloc(NULL, size);
        break;
    default:
        block = malloc(size);
    }
    if (enters)
        hakmem_scope_leave(scope);
    return block;
}

static void fill(struct slot *slot, uint64_t *random)
{
    slot->mark = (unsigned char)scope_random(random);
    memset(slot->block, slot->mark, slot->size);
}

static void check_contents(const struct slot *slot, size_t size)
{
    for (size_t at = 0; at < size; at += 1 + at / 8)
        CHECK(slot->block[at] == slot->mark);
    CHECK(!size || slot->block[size - 1] == slot->mark);
}

static void use(struct slot *slot, uint64_t *random)
{
    unsigned what = (unsigned)(scope_random(random) % 8);
    size_t size = draw_size(random);
    int number = (int)(scope_random(random) % (SCOPES + 5));
    number = scope_random(random) % 2 ? stays : number < SCOPES ? number : -1;
    if (!slot->block) {
        slot->block = allocate(number, size, random);
        slot->size = size;
        slot->scope = number;
        CHECK(slot->block || (number >= 0 && errno == ENOMEM));
        if (!slot->block)
            return;
    } else if (what < 2) {
        struct hakmem_scope *scope = number < 0 ? NULL : shadows[number].scope;
        size_t before = slot->size < size ? slot->size : size;
        CHECK(hakmem_scope_enter(scope) == 0);
        unsigned char *moved = realloc(slot->block, size ? size : 1);
        hakmem_scope_leave(scope);
        if (!moved)
            return;
        slot->scope = moved == slot->block ? slot->scope : number;
        slot->block = moved;
        check_contents(slot, before);
        slot->size = size ? size : 1;
    } else {
        check_contents(slot, slot->size);
        free(slot->block);
        slot->block = NULL;
        return;
    }
    note_place(slot->scope, slot->block);
    fill(slot, random);
}

static void step(uint64_t *random)
{
    struct slot *slot = &slots[scope_random(random) % SLOTS];
    if (pthread_mutex_trylock(&slot->lock) != 0)
        return;
    use(slot, random);
    pthread_mutex_unlock(&slot->lock);
}

/* Resident bytes, as the system says; 0 where nothing is mapped. */
static size_t resident_at(void *address, size_t size)
{
    static unsigned char states[512];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 0;
    for (size_t at = 0, piece; at < size; at += piece) {
        piece = size - at < sizeof states * page ? size - at : sizeof states * page;
        if (mincore((char *)address + at, piece, states) == 0)
            for (size_t i = 0; i < piece / page; i++)
                bytes += (states[i] & 1) * page;
    }
    return bytes;
}

static void add_resident(size_t *resident)
{
    for (unsigned i = 0; i < place_count; i++) {
        void *start = (void *)(places[i].number << 21);
        /* Not ours any more, else. */
        if (places[i].scope >= 0 && malloc_object_size(start) != SIZE_MAX)
            resident[places[i].scope] += resident_at(start, 2 * MIB);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].block && slots[i].scope >= 0 && has_own_mapping(slots[i].block))
            resident[slots[i].scope] +=
                resident_at(slots[i].block, malloc_usable_size(slots[i].block));
}

static void compare(void)
{
    size_t blocks[SCOPES] = {0}, bytes[SCOPES] = {0}, resident[SCOPES] = {0};
    for (int i = 0; i < SLOTS; i++)
        for (int in = slots[i].block ? slots[i].scope : -1; in >= 0; in = outer_of(in)) {
            blocks[in]++;
            bytes[in] += malloc_usable_size(slots[i].block);
        }
    add_resident(resident);
    for (int i = 0; i < SCOPES; i++) {
        struct hakmem_scope_figures usage = usage_of(shadows[i].scope);
        size_t inner = i >= INNER && i < 2 * INNER ? resident[i - INNER] : 0;
        CHECK(usage.live_blocks == blocks[i]);
        CHECK(usage.live_bytes == bytes[i]);
        CHECK(usage.resident_bytes == resident[i] + inner);
        CHECK(!shadows[i].limit || bytes[i] <= shadows[i].limit);
    }
}

/* The blocks of the scope and of that inside it have gone. */
static void forget(int number)
{
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].scope == number)
            slots[i].block = NULL;
    if (number >= INNER && number < 2 * INNER)
        forget(number - INNER);
}

/* While all threads stand still. */
static void change(uint64_t *random)
{
    int number = (int)(scope_random(random) % SCOPES);
    bool ends = scope_random(random) % 2;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].block)
            check_contents(&slots[i], slots[i].size);
    if (ends)
        hakmem_scope_destroy(shadows[number].scope);
    else
        hakmem_scope_reset(shadows[number].scope);
    forget(number);
    if (ends) {
        make(number);
        if (number >= INNER && number < 2 * INNER)
            make(number - INNER);
    }
}

/* In a child that was forked while other threads worked, all but what these were doing is as the
 * model says: each may have been moving a batch of blocks. And scopes serve. */
static void live_on(uint64_t *random)
{
    size_t blocks[SCOPES] = {0}, moving = 0;
    for (int i = 0; i < SLOTS; i++) {
        if (pthread_mutex_trylock(&slots[i].lock) != 0) {
            moving++;
            continue;
        }
        for (int in = slots[i].block ? slots[i].scope : -1; in >= 0; in = outer_of(in))
            blocks[in]++;
        if (slots[i].block)
            check_contents(&slots[i], slots[i].size);
        pthread_mutex_unlock(&slots[i].lock);
    }
    for (int i = 0; i < SCOPES; i++) {
        size_t live = usage_of(shadows[i].scope).live_blocks;
        CHECK(live >= blocks[i] && live <= blocks[i] + BATCH * moving);
    }
    pthread_mutex_init(&places_lock, NULL);
    for (int i = 0; i < 2000; i++)
        step(random);
    for (int i = 0; i < SLOTS; i++)
        pthread_mutex_init(&slots[i].lock, NULL);
    for (int i = SCOPES - 1; i >= INNER; i--) {
        hakmem_scope_reset(shadows[i].scope);
        CHECK(usage_of(shadows[i].scope).live_bytes == 0);
        hakmem_scope_destroy(shadows[i].scope);
    }
    _exit(0);
}

static void fork_and_wait(uint64_t *random)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        live_on(random);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *work(void *number)
{
    uint64_t random = seed * THREADS + (uintptr_t)number;
    for (int round = 0; round < rounds; round++) {
        if (stayed)
            hakmem_scope_leave(stayed);
        stays = (int)(scope_random(&random) % SCOPES);
        stayed = shadows[stays].scope;
        CHECK(hakmem_scope_enter(stayed) == 0);
        for (int i = 0; i < STEPS; i++) {
            step(&random);
            if (number == NULL && i == STEPS / 2)
                fork_and_wait(&random);
        }
        pthread_barrier_wait(&barrier);
        if (!number) {
            compare();
            change(&random);
            compare();
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : seed;
    rounds = argc > 2 ? atoi(argv[2]) : rounds;
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < SLOTS; i++) {
        pthread_mutex_init(&slots[i].lock, NULL);
        slots[i].scope = -1;
    }
    for (int i = SCOPES - 1; i >= 0; i--) {
        shadows[i].limit = i % 5 == 1 ? (size_t)(2 + i % 3 * 2) * MIB : 0;
        make(i);
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d rounds of %d steps in %d threads: equal\n", rounds, STEPS, THREADS);
    return 0;
}
