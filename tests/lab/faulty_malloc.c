/* A malloc with one fault, on top of the C library's: preloaded into a workload it must make the
 * workload end with an error. FAULTY_MALLOC names the fault:
 *
 *     clobber   changes a live block
 *     dirty     calloc does not clear
 *     misalign  aligned blocks lie beside their boundary
 *     fail      returns NULL after some calls */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* The C library's own requests come first; they are left alone. */
#define CALLS_LEFT_ALONE 20
#define CALLS_BEFORE_FAILURE 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under `lock`. */
static unsigned calls;
static unsigned char *victim; /* a live block, or NULL */
static size_t victim_size;

static bool fault_is(const char *name)
{
    const char *fault = getenv("FAULTY_MALLOC");
    return fault && strcmp(fault, name) == 0;
}

/* A block that is handed out. The next call changes its last byte if it is alive then. */
static void select_victim(unsigned char *block, size_t size)
{
    if (victim) {
        victim[victim_size - 1] ^= 0xff;
        victim = NULL;
    } else if (size > 0) {
        victim = block;
        victim_size = size;
    }
}

/* Counts a block that is handed out. */
static void *handed_out(void *block, size_t size)
{
    pthread_mutex_lock(&lock);
    calls++;
    if (fault_is("fail") && calls > CALLS_BEFORE_FAILURE) {
        __libc_free(block);
        block = NULL;
        errno = ENOMEM;
    } else if (fault_is("clobber") && calls > CALLS_LEFT_ALONE) {
        select_victim(block, size);
    }
    pthread_mutex_unlock(&lock);
    return block;
}

static void taken_back(void *block)
{
    pthread_mutex_lock(&lock);
    if (block == victim) {
        victim = NULL;
    }
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t size)
{
    return handed_out(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
    void *block = __libc_calloc(count, size);
    if (block && fault_is("dirty")) {
        memset(block, 0x55, count * size);
    }
    /* No victim: what calloc gives may be the C library's own, for a thread. */
    return handed_out(block, 0);
}

void *realloc(void *block, size_t size)
{
    taken_back(block);
    return handed_out(__libc_realloc(block, size), size);
}

static void *aligned_block(size_t alignment, size_t size)
{
    if (fault_is("misalign")) {
        return handed_out((char *)__libc_memalign(alignment, size + 16) + 16, size);
    }
    return handed_out(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return aligned_block(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = aligned_block(alignment, size);
    return *block ? 0 : ENOMEM;
}

void free(void *block)
{
    taken_back(block);
    __libc_free(block);
}
