/* Scopes by jemalloc's names: what programs do with arenas of their own, and the figures that they
 * read. */
#include "scope_support.h"

#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#include "../behaviour/jemalloc.h"

enum { ARENAS_ALL = 4096 };

static unsigned create(void)
{
    unsigned arena = 0;
    size_t length = sizeof arena;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    return arena;
}

/* Makes the name of an arena's control. */
static const char *name_of(const char *form, unsigned arena)
{
    static __thread char name[64];
    snprintf(name, sizeof name, form, arena);
    return name;
}

static size_t figure(const char *form, unsigned arena)
{
    size_t value = 0, length = sizeof value;
    CHECK(mallctl(name_of(form, arena), &value, &length, NULL, 0) == 0);
    return value;
}

static size_t allocated(unsigned arena)
{
    return figure("stats.arenas.%u.small.allocated", arena) +
           figure("stats.arenas.%u.large.allocated", arena);
}

static int act(const char *form, unsigned arena)
{
    return mallctl(name_of(form, arena), NULL, NULL, NULL, 0);
}

/* Lets the thread allocate from the arena; returns the one before. */
static unsigned change(unsigned arena)
{
    unsigned before = 0;
    size_t length = sizeof before;
    CHECK(mallctl("thread.arena", &before, &length, &arena, sizeof arena) == 0);
    return before;
}

/* Nothing is made whose number would not fit. */
static void a_wrong_length_makes_nothing(void **state)
{
    (void)state;
    unsigned before = create(), arena[2] = {0, 0};
    for (size_t wrong = 0; wrong <= sizeof arena; wrong++) {
        size_t length = wrong;
        if (wrong != sizeof *arena)
            CHECK(mallctl("arenas.create", arena, &length, NULL, 0) == EINVAL);
    }
    CHECK(!arena[0] && !arena[1]);
    unsigned after = create();
    CHECK(after == before + 1);
    CHECK(act("arena.%u.destroy", before) == 0 && act("arena.%u.destroy", after) == 0);
}

static void a_thread_changes_its_arena(void **state)
{
    (void)state;
    unsigned one = create(), two = create();
    CHECK(one && two && one != two);
    CHECK(change(one) == 0);
    void *in_one = malloc(100);
    CHECK(change(two) == one);
    void *in_two = malloc(1000);
    CHECK(change(0) == two);
    void *outside = malloc(5000);
    CHECK(change(0) == 0);
    CHECK(allocated(one) == malloc_usable_size(in_one));
    CHECK(allocated(two) == malloc_usable_size(in_two));
    free(in_one), free(in_two), free(outside);
    CHECK(allocated(one) == 0 && allocated(two) == 0);
    CHECK(act("arena.%u.destroy", one) == 0 && act("arena.%u.destroy", two) == 0);
}

/* An arena and a scope are one thing: the number of the scope that was entered is read, and that
 * outside is one, too. */
static void arenas_and_scopes_are_one(void **state)
{
    (void)state;
    struct hakmem_scope *scope = make_scope("named", 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    unsigned arena = create(), named = change(arena);
    void *block = malloc(100);
    CHECK(named != 0 && change(named) == arena);
    hakmem_scope_leave(scope);
    CHECK(allocated(named) == 0 && allocated(arena) == malloc_usable_size(block));
    /* It does not lie in the scope in which it was made. */
    hakmem_scope_destroy(scope);
    CHECK(allocated(arena) == malloc_usable_size(block));
    CHECK(act("arena.%u.reset", arena) == 0 && allocated(arena) == 0);
    CHECK(act("arena.%u.destroy", arena) == 0);
}

static void flags_name_an_arena(void **state)
{
    (void)state;
    unsigned arena = create();
    int flags = MALLOCX_ARENA((int)arena) | MALLOCX_TCACHE_NONE;
    char *block = mallocx(1000, flags | MALLOCX_ZERO);
    for (size_t i = 0; i < sallocx(block, 0); i++)
        CHECK(block[i] == 0);
    CHECK(allocated(arena) == sallocx(block, flags));
    memset(block, 1, 1000);
    block = rallocx(block, 100000, flags | MALLOCX_ALIGN(4096));
    CHECK(block[999] == 1 && (uintptr_t)block % 4096 == 0);
    CHECK(allocated(arena) == sallocx(block, flags));
    CHECK(change(arena) == 0);
    void *outside = mallocx(64, MALLOCX_ARENA(0)), *inside = malloc(64);
    CHECK(allocated(arena) == sallocx(block, flags) + malloc_usable_size(inside));
    free(inside);
    CHECK(change(0) == arena && allocated(arena) == sallocx(block, flags));
    dallocx(block, flags);
    dallocx(outside, 0);
    CHECK(allocated(arena) == 0);
    CHECK(rallocx(mallocx(10, flags), 5000, MALLOCX_ARENA(0)) != NULL && allocated(arena) == 0);
    CHECK(act("arena.%u.destroy", arena) == 0);
}

static void figures_are_those_of_the_arena(void **state)
{
    (void)state;
    unsigned arena = create();
    size_t all = 0, length = sizeof all, outside = allocated(0), page = 0;
    CHECK(mallctl("arenas.page", &page, &length, NULL, 0) == 0);
    char *block = mallocx(3 * MIB, MALLOCX_ARENA((int)arena));
    memset(block, 1, 3 * MIB);
    CHECK(allocated(arena) == 3 * MIB && allocated(0) <= outside + MIB);
    CHECK(figure("stats.arenas.%u.pactive", arena) == 3 * MIB / page);
    CHECK(figure("stats.arenas.%u.resident", arena) == 3 * MIB);
    CHECK(figure("stats.arenas.%u.mapped", arena) == 3 * MIB);
    CHECK(figure("stats.arenas.%u.pdirty", arena) == 0);
    CHECK(figure("stats.arenas.%u.pmuzzy", arena) == 0);
    CHECK(mallctl("stats.allocated", &all, &length, NULL, 0) == 0);
    CHECK(all == allocated(0) + 3 * MIB && all == allocated(ARENAS_ALL));
    CHECK(act("arena.%u.reset", arena) == 0);
    CHECK(figure("stats.arenas.%u.resident", arena) == 0);
    CHECK(act("arena.%u.destroy", arena) == 0);
}

static void names_have_numbers(void **state)
{
    (void)state;
    unsigned arena = create(), arenas = 0;
    size_t mib[5], parts = 5, value = 0, length = sizeof value;
    CHECK(mallctlnametomib("stats.arenas.0.small.allocated", mib, &parts) == 0 && parts == 5);
    mib[2] = arena;
    void *block = mallocx(100, MALLOCX_ARENA((int)arena));
    CHECK(mallctlbymib(mib, parts, &value, &length, NULL, 0) == 0);
    CHECK(value == malloc_usable_size(block));
    parts = 3;
    CHECK(mallctlnametomib("arena.0.destroy", mib, &parts) == 0 && parts == 3);
    mib[1] = arena;
    CHECK(mallctlbymib(mib, parts, NULL, NULL, NULL, 0) == 0);
    CHECK(mallctlbymib(mib, parts, NULL, NULL, NULL, 0) == EFAULT);
    length = sizeof arenas;
    CHECK(mallctl("arenas.narenas", &arenas, &length, NULL, 0) == 0 && arenas > arena);
}

static void mistakes_are_errors(void **state)
{
    (void)state;
    unsigned arena = create(), none = 4000;
    size_t value, length = sizeof value;
    CHECK(act("arena.%u.destroy", arena) == 0);
    CHECK(act("arena.%u.destroy", arena) == EFAULT && act("arena.%u.reset", arena) == EFAULT);
    CHECK(act("arena.%u.destroy", 0) == EFAULT && act("arena.%u.reset", ARENAS_ALL) == EFAULT);
    CHECK(mallctl("thread.arena", NULL, NULL, &none, sizeof none) == EFAULT);
    CHECK(mallctl(name_of("stats.arenas.%u.pactive", none), &value, &length, NULL, 0) == ENOENT);
    CHECK(mallctl("arenas.create", NULL, NULL, &none, sizeof none) == EPERM);
}

/* Arenas that come and go have numbers that flags can hold. */
static void numbers_serve_again(void **state)
{
    (void)state;
    for (int i = 0; i < 6000; i++) {
        unsigned arena = create();
        CHECK(arena < ARENAS_ALL);
        memset(mallocx(100, MALLOCX_ARENA((int)arena)), 1, 100);
        CHECK(act("arena.%u.destroy", arena) == 0);
    }
}

/* Neither is a scope taken for all arenas, nor do flags lead to another one than that of the
 * number. */
static void more_scopes_than_numbers(void **state)
{
    (void)state;
    enum { SCOPES_MADE = 4300 };
    struct hakmem_scope *scopes[SCOPES_MADE];
    for (int i = 0; i < SCOPES_MADE; i++)
        CHECK((scopes[i] = hakmem_scope_create("many", 0, NULL, NULL)) != NULL);
    unsigned arena = 0;
    size_t length = sizeof arena, before = figure("stats.allocated", 0);
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == EAGAIN);
    void *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    CHECK(figure("stats.allocated", 0) >= before + (1 << 20));
    CHECK(act("arena.%u.reset", ARENAS_ALL) == EFAULT);
    free(block);
    for (int i = 0; i < SCOPES_MADE; i++)
        hakmem_scope_destroy(scopes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_length_makes_nothing),
        cmocka_unit_test(a_thread_changes_its_arena),
        cmocka_unit_test(arenas_and_scopes_are_one),
        cmocka_unit_test(flags_name_an_arena),
        cmocka_unit_test(figures_are_those_of_the_arena),
        cmocka_unit_test(names_have_numbers),
        cmocka_unit_test(mistakes_are_errors),
        cmocka_unit_test(numbers_serve_again),
        cmocka_unit_test(more_scopes_than_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
