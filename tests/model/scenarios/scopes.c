/* Scopes while others work in them, reset them, or fork: what each holds is right, in the child
 * too. By core/scope/. */
#include "api/alloc.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "map/metadata.h"
#include "scope/cache.h"
#include "scope/tree.h"
#include "thread/fork.h"

enum { STAY = 4096, SIZE = 8192, LARGE = 1200 * 1024, BIG = LARGE_MAX + 1 };

static struct hakmem_scope *outer, *inner;
static void *block;

static void *take(struct hakmem_scope *scope, size_t size)
{
    void *taken = scope_take(scope, NULL, size, MIN_ALIGNMENT);
    CHECK(taken);
    *(volatile char *)taken = 1;
    return taken;
}

static void initialise(void)
{
    outer = scope_create("outer", 0, NULL, NULL);
    scope_enter(outer);
    inner = scope_create("inner", 0, NULL, NULL);
    scope_leave(outer);
    block = take(inner, SIZE);
    free_slow(take(outer, 64));
    fork_init();
}

/* Slabs and spans begin and end. */
static void use_inner(void)
{
    void *taken = take(inner, LARGE), *other = take(inner, LARGE);
    free_slow(taken);
    free_slow(other);
}

static void use_block(void)
{
    free_slow(take(inner, SIZE));
}

static void use_big(void)
{
    free_slow(take(outer, BIG));
}

/* A thread stays: it takes a block, and others into its cache, uses these so many times, and leaves
 * with what is there. */
static void stay_for(int hits)
{
    struct scope_entry *entry = metadata_alloc(sizeof *entry);
    *entry = (struct scope_entry){.scope = inner, .calls = SCOPE_PAYS - 1};
    scope_entered = entry;
    CHECK(scope_alloc(STAY, MIN_ALIGNMENT, size_class_of(STAY), false, NULL));
    while (hits-- > 0) {
        void *taken = cache_pop(size_class_of(STAY));
        unsigned left = entry->cache->count[size_class_of(STAY)];
        CHECK(taken);
        scope_release(taken, entry);
        CHECK(entry->cache->count[size_class_of(STAY)] == left + 1);
    }
    cache_empty(entry->cache);
    metadata_free(entry->cache, sizeof *entry->cache);
    metadata_free(entry, sizeof *entry);
    scope_entered = NULL;
}

static void stay(void)
{
    stay_for(2);
}

static void stay_idle(void)
{
    stay_for(0);
}

static void free_the_block(void)
{
    free_slow(block);
}

static void reset_inner(void)
{
    scope_reset(inner);
}

static void end_all(void)
{
    scope_destroy(outer);
    CHECK(!scope_lives(outer) && !scope_lives(inner));
}

/* An arena is a scope that nobody handed on: it is found by its number. */
static void make_arena(void)
{
    CHECK(scope_create(NULL, 0, NULL, NULL));
}

static void find_arena(void)
{
    struct hakmem_scope *found = scope_of_arena(inner->arena + 1);
    if (found)
        free_slow(take(found, SIZE));
}

static void finish(void)
{
    scope_check_all();
    if (scope_lives(outer)) {
        free_slow(take(outer, SIZE));
        scope_reset(outer);
        CHECK(outer->live_bytes == 0);
        scope_check_all();
    }
}

/* Blocks may stay live that nobody has. */
static void clone_child(void)
{
    model_fork();
    if (scope_lives(outer)) {
        void *taken = take(outer, SIZE), *other = take(scope_lives(inner) ? inner : outer, LARGE);
        scope_check_all();
        free_slow(taken);
        free_slow(other);
    }
    struct hakmem_scope *fresh = scope_create("fresh", 0, NULL, NULL);
    CHECK(fresh && fresh != outer && fresh != inner);
    free_slow(take(fresh, SIZE));
    scope_check_all();
    scope_destroy(fresh);
    finish();
}

#define SCOPE_SCENARIO(id, text, first, second)                                                    \
    SCENARIO(scopes_##id) = {                                                                      \
        .name = "scopes_" #id,                                                                     \
        .about = text,                                                                             \
        .prepare = initialise,                                                                     \
        .thread = {first, second},                                                                 \
        .finish = finish}

SCOPE_SCENARIO(share, "two threads use one scope", use_inner, use_block);
SCOPE_SCENARIO(nest, "a scope and the one around it are used", use_inner, use_big);
SCOPE_SCENARIO(free, "a block is freed while others come and go", free_the_block, use_inner);
SCOPE_SCENARIO(stay, "a thread stays in a scope that is reset", stay_idle, reset_inner);
SCOPE_SCENARIO(stay_two, "two threads stay in a scope", stay, stay);
SCOPE_SCENARIO(stay_free, "a block is freed while a thread stays", stay, free_the_block);
SCOPE_SCENARIO(fork_stay, "fork while a thread stays in a scope", clone_child, stay);
SCOPE_SCENARIO(reset, "a scope is reset while the one around it is used", reset_inner, use_big);
SCOPE_SCENARIO(make_find, "an arena is made and found", make_arena, find_arena);
SCOPE_SCENARIO(make_end, "an arena is made while others end", make_arena, end_all);
SCOPE_SCENARIO(fork, "fork while slabs come and go", clone_child, use_inner);
SCOPE_SCENARIO(fork_big, "fork while a big block comes and goes", clone_child, use_big);
SCOPE_SCENARIO(fork_free, "fork while a block is freed", clone_child, free_the_block);
SCOPE_SCENARIO(fork_reset, "fork while a scope is reset", clone_child, reset_inner);
SCOPE_SCENARIO(fork_end, "fork while scopes end", clone_child, end_all);

SCENARIO(scopes_make_two) = {
    .name = "scopes_make_two",
    .about = "two threads make arenas",
    .prepare = initialise,
    .thread = {make_arena, make_arena},
    .finish = finish,
    .preemptions_max = 2};
