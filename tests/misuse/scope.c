/* Mistakes with scopes, and with blocks of scopes. The hardened library has none. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "misuse.h"

static struct hakmem_scope *staying;
static sem_t freed;

static struct hakmem_scope *new_scope(void)
{
    struct hakmem_scope *scope = hakmem_scope_create("victim", 0, NULL, NULL);
    if (!scope)
        not_applicable();
    return scope;
}

/* A block of the scope, which is the bad one. */
static char *scoped(struct hakmem_scope *scope, size_t size)
{
    return announced(need(hakmem_scope_malloc(scope, size)));
}

/* A scope that has ended. */
static struct hakmem_scope *ended_scope(void)
{
    struct hakmem_scope *scope = new_scope();
    announce(scope, NULL);
    hakmem_scope_destroy(scope);
    return scope;
}

/* A block of a scope is freed twice.
 * tiny, mid, large: at once | free(): double free of BAD: in scope 'victim'
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened all: not applicable */
CASE(scope, double)
{
    char *block = scoped(new_scope(), size);
    free(block);
    free(hide(block));
    survived();
}

/* A block is freed twice by a thread that stays in the scope.
 * tiny, mid, large: at once | free(): double free of BAD: in scope 'victim'
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened all: not applicable */
CASE(scope, double_inside)
{
    (void)hakmem_scope_enter(new_scope());
    for (int i = 0; i < 200; i++)
        free(hide(need(malloc(size))));
    char *block = announced(need(malloc(size)));
    free(block);
    free(hide(block));
    survived();
}

/* A block is freed by a thread that stays in the scope, and again outside of it.
 * tiny, mid, large: at once | free(): double free of BAD: in scope 'victim'
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened all: not applicable */
CASE(scope, double_outside)
{
    struct hakmem_scope *scope = new_scope();
    (void)hakmem_scope_enter(scope);
    for (int i = 0; i < 200; i++)
        free(hide(need(malloc(size))));
    char *block = announced(need(malloc(size)));
    free(block);
    (void)hakmem_scope_enter(NULL);
    free(hide(block));
    survived();
}

/* Enters the scope, stays until it has a cache there, frees the block, and goes on to live. */
static void *free_and_stay(void *block)
{
    (void)hakmem_scope_enter(staying);
    for (int i = 0; i < 200; i++)
        free(hide(need(malloc(100))));
    free(block);
    (void)sem_post(&freed);
    (void)pause();
    return NULL;
}

/* A block lies in the cache of a thread that stays in the scope, and another thread frees it.
 * tiny, mid, large: at once | free(): double free of BAD: in scope 'victim'
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened all: not applicable */
CASE(scope, double_across)
{
    pthread_t thread;
    char *block = scoped(staying = new_scope(), size);
    (void)sem_init(&freed, 0, 0);
    (void)pthread_create(&thread, NULL, free_and_stay, block);
    (void)sem_wait(&freed);
    free(hide(block));
    survived();
}

static void *destroy_it(void *unused)
{
    (void)unused;
    hakmem_scope_destroy(staying);
    return NULL;
}

/* A thread that stays in a scope goes on allocating when another one has destroyed it.
 * any: at once | malloc(): use after the end of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, malloc_staying)
{
    pthread_t thread;
    announce(staying = new_scope(), NULL);
    (void)hakmem_scope_enter(staying);
    for (int i = 0; i < 200; i++)
        free(hide(need(malloc(100))));
    (void)pthread_create(&thread, NULL, destroy_it, NULL);
    (void)pthread_join(thread, NULL);
    need(malloc(100));
    survived();
}

/* A thread that stays in a scope frees a block of it when another one has destroyed it.
 * all: at once | free(): double free of BAD: in the ended scope 'victim'
 * hardened all: not applicable */
CASE(scope, free_staying)
{
    pthread_t thread;
    (void)hakmem_scope_enter(staying = new_scope());
    for (int i = 0; i < 200; i++)
        free(hide(need(malloc(100))));
    char *block = announced(need(malloc(size)));
    (void)pthread_create(&thread, NULL, destroy_it, NULL);
    (void)pthread_join(thread, NULL);
    free(hide(block));
    survived();
}

/* A pointer into a block of a scope is freed.
 * all: at once | free(): invalid pointer BAD: in scope 'victim'
 * hardened all: not applicable */
CASE(scope, interior)
{
    char *block = need(hakmem_scope_malloc(new_scope(), size));
    announce(block + 16, block);
    free(hide(block + 16));
    survived();
}

/* A thread that stays in a scope frees a pointer into a block, and leaves the scope.
 * all: at once | free(): invalid pointer BAD: in scope 'victim'
 * hardened all: not applicable */
CASE(scope, interior_inside)
{
    struct hakmem_scope *scope = new_scope();
    (void)hakmem_scope_enter(scope);
    for (int i = 0; i < 200; i++)
        free(hide(need(malloc(size))));
    char *block = need(malloc(size));
    announce(block + 16, block);
    free(hide(block + 16));
    hakmem_scope_leave(scope);
    survived();
}

/* A block is freed after its scope was reset.
 * tiny, mid, large: at once | free(): double free of BAD: in the reset scope 'victim'
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened all: not applicable */
CASE(scope, free_after_reset)
{
    struct hakmem_scope *scope = new_scope();
    char *block = scoped(scope, size);
    hakmem_scope_reset(scope);
    free(hide(block));
    survived();
}

/* A block is freed after its scope was destroyed.
 * all: at once | free(): double free of BAD: in the ended scope 'victim'
 * hardened all: not applicable */
CASE(scope, free_after_destroy)
{
    struct hakmem_scope *scope = new_scope();
    char *block = scoped(scope, size);
    hakmem_scope_destroy(scope);
    free(hide(block));
    survived();
}

/* A block is made longer after its scope was reset.
 * tiny, mid, large: at once | realloc(): double free of BAD: in the reset scope 'victim'
 * big: at once | realloc(): invalid pointer BAD: not allocated by hakmem
 * hardened all: not applicable */
CASE(scope, realloc_after_reset)
{
    struct hakmem_scope *scope = new_scope();
    char *block = scoped(scope, size);
    hakmem_scope_reset(scope);
    need(realloc(hide(block), 2 * size));
    survived();
}

/* A block is read after its scope was reset.
 * tiny, mid, large: reads zero
 * big: ends by SIGSEGV
 * hardened all: not applicable */
CASE(scope, read_after_reset)
{
    struct hakmem_scope *scope = new_scope();
    char *block = scoped(scope, size);
    write_bytes(block, size);
    hakmem_scope_reset(scope);
    read_bytes(block, size);
    survived();
}

/* A block is read after its scope was destroyed.
 * all: ends by SIGSEGV
 * hardened all: not applicable */
CASE(scope, read_after_destroy)
{
    struct hakmem_scope *scope = new_scope();
    char *block = scoped(scope, size);
    write_bytes(block, size);
    hakmem_scope_destroy(scope);
    read_bytes(block, size);
    survived();
}

/* A scope is destroyed twice.
 * any: at once | hakmem_scope_destroy(): use after the end of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, destroy_twice)
{
    hakmem_scope_destroy(ended_scope());
    survived();
}

/* A scope is reset after it was destroyed.
 * any: at once | hakmem_scope_reset(): use after the end of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, reset_after_destroy)
{
    hakmem_scope_reset(ended_scope());
    survived();
}

/* A scope is entered after it was destroyed.
 * any: at once | hakmem_scope_enter(): use after the end of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, enter_after_destroy)
{
    (void)hakmem_scope_enter(ended_scope());
    survived();
}

/* A scope is destroyed together with the one around it, and asked what it holds.
 * any: at once | hakmem_scope_usage(): use after the end of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, usage_after_end_of_outer)
{
    struct hakmem_scope *outer = new_scope();
    (void)hakmem_scope_enter(outer);
    struct hakmem_scope *inner = new_scope();
    announce(inner, NULL);
    hakmem_scope_leave(outer);
    hakmem_scope_destroy(outer);
    struct hakmem_scope_figures usage;
    hakmem_scope_usage(inner, &usage, sizeof usage);
    survived();
}

/* A thread allocates in a scope that was destroyed after it had entered it.
 * any: at once | malloc(): use after the end of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, malloc_after_destroy)
{
    struct hakmem_scope *scope = new_scope();
    announce(scope, NULL);
    (void)hakmem_scope_enter(scope);
    hakmem_scope_destroy(scope);
    need(malloc(size));
    survived();
}

/* A thread leaves another scope than it has entered last.
 * any: at once | hakmem_scope_leave(): wrong order of BAD: scope 'victim'
 * hardened any: not applicable */
CASE(scope, leave_out_of_order)
{
    struct hakmem_scope *scope = new_scope(), *other = new_scope();
    announce(scope, NULL);
    (void)hakmem_scope_enter(scope);
    (void)hakmem_scope_enter(other);
    hakmem_scope_leave(scope);
    survived();
}
