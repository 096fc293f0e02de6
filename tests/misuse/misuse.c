/* The program that makes one mistake of the table, its words to the runner, and what several cases
 * need. */
#include "misuse.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* At a time. */
enum { PIECE = 4096 };

bool by_memcpy;
size_t distance;
_Alignas(64) char storage[64];
static bool staged;

/* The rows of all files, as the linker puts them together. */
extern const struct misuse __start_misuses[], __stop_misuses[];

/* Nothing here may allocate between the announcement and the mistake. */
static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(3);
}

void announce(const void *bad, const void *base)
{
    char text[128];
    size_t usable = base ? malloc_usable_size((void *)base) : 0;
    snprintf(
        text, sizeof text, "bad 0x%zx base 0x%zx usable %zu\n", (size_t)bad, (size_t)base, usable);
    say(text);
}

void survived(void)
{
    say("survived\n");
    if (!staged)
        return;
    hakmem_thread_flush();
    say("flushed\n");
    (void)hakmem_purge();
    say("drained\n");
}

void has_read(bool zero)
{
    say(zero ? "reads zero\n" : "reads data\n");
}

void write_bytes(void *where, size_t count)
{
    static const char letters[PIECE] = {[0 ... PIECE - 1] = 0x41};
    volatile char *bytes = hide(where);
    for (size_t i = 0; !by_memcpy && i < count; i++)
        bytes[i] = 0x41;
    for (size_t i = 0; by_memcpy && i < count; i += PIECE)
        memcpy(hide((char *)where + i), letters, count - i < PIECE ? count - i : PIECE);
}

void read_bytes(const void *where, size_t count)
{
    static char copy[PIECE];
    const volatile char *bytes = hide(where);
    char seen = 0;
    for (size_t i = 0; !by_memcpy && i < count; i++)
        seen |= bytes[i];
    for (size_t i = 0; by_memcpy && i < count; i += PIECE) {
        size_t piece = count - i < PIECE ? count - i : PIECE;
        memcpy(hide(copy), hide((const char *)where + i), piece);
        for (size_t j = 0; j < piece; j++)
            seen |= copy[j];
    }
    has_read(seen == 0);
}

_Noreturn void not_applicable(void)
{
    say("not applicable\n");
    _exit(77);
}

_Noreturn void broken(const char *what)
{
    say("broken: ");
    say(what);
    say("\n");
    _exit(3);
}

void *announced(void *block)
{
    need(block);
    announce(block, block);
    return block;
}

void *new_victim(size_t size)
{
    for (int i = 0; i < 5; i++)
        (void)need(malloc(size));
    return announced(malloc(size));
}

void *new_purged_victim(size_t size)
{
    void *block = new_victim(size);
    free(block);
    (void)hakmem_purge();
    return block;
}

void free_wrongly(const void *pointer)
{
    free(hide(pointer));
    survived();
}

void free_foreign(const void *pointer)
{
    announce(pointer, NULL);
    free_wrongly(pointer);
}

void free_inside(size_t size, size_t offset)
{
    char *block = need(malloc(size));
    announce(block + offset, block);
    free_wrongly(block + offset);
}

char *behind(char *block)
{
    const size_t region = (size_t)2 << 20;
    size_t usable = malloc_usable_size(block);
    if (usable >= region && (size_t)(block + usable) % region == 0)
        not_applicable();
    return block + usable;
}

size_t many(size_t size)
{
    size_t count = ((size_t)64 << 20) / size;
    return count > 20000 ? 20000 : count < 40 ? 40 : count;
}

void run_in_thread(void *(*body)(void *), const void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, hide(argument)) != 0 || pthread_join(thread, NULL) != 0)
        broken("no thread");
}

void *thread_frees(void *block)
{
    free(block);
    return NULL;
}

void *thread_frees_wrongly(void *block)
{
    free_wrongly(block);
    return NULL;
}

void *thread_frees_foreign(void *pointer)
{
    free_foreign(pointer);
    return NULL;
}

static void *help(void *argument)
{
    struct helper *helper = argument;
    for (;;) {
        sem_wait(&helper->asked);
        if (helper->ends)
            return NULL;
        free(helper->block);
        sem_post(&helper->done);
    }
}

void helper_start(struct helper *helper)
{
    helper->ends = false;
    sem_init(&helper->asked, 0, 0);
    sem_init(&helper->done, 0, 0);
    if (pthread_create(&helper->thread, NULL, help, helper) != 0)
        broken("no thread");
}

void helper_free(struct helper *helper, const void *block)
{
    helper->block = hide(block);
    sem_post(&helper->asked);
    sem_wait(&helper->done);
}

void helper_end(struct helper *helper)
{
    helper->ends = true;
    sem_post(&helper->asked);
    pthread_join(helper->thread, NULL);
}

static bool is_mapped(const void *where)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore((void *)((uintptr_t)where / page * page), page, &resident) == 0;
}

void check_freed(const void *block, size_t size)
{
    long hardened = 0;
    if (hakmem_option_get("hardened", &hardened) != 0)
        broken("no such option");
    /* There a block waits before it is handed out again. For one that was unmapped the system may
     * give the next another place. */
    if (!hardened && need(malloc(size)) != block && is_mapped(block))
        broken("the block is not free");
}

/* Fills a block, a long one at both ends, as far as the mistakes reach. */
static void *fill(void *block, int byte, size_t size)
{
    size_t length = size < MIB ? size : MIB;
    memset(block, byte, length);
    memset((char *)block + size - length, byte, length);
    return block;
}

static struct {
    char **blocks;
    size_t count, size;
} surroundings;

static int compare_addresses(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    return (left > right) - (left < right);
}

char *surrounded(size_t size)
{
    size_t count = ((size_t)5 << 20) / size, middle;
    count = count < 5 ? 5 : count;
    /* Out of reach of what is written past the block. */
    char **blocks = mmap(
        NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(blocks == MAP_FAILED ? NULL : blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i] = fill(need(malloc(size)), 1, size);
    qsort(blocks, count, sizeof *blocks, compare_addresses);
    middle = count / 2;
    surroundings.blocks = blocks;
    surroundings.count = count;
    surroundings.size = size;
    announce(blocks[middle], blocks[middle]);
    return blocks[middle];
}

void free_surrounded(void)
{
    say("freeing\n");
    for (size_t i = 0; i < surroundings.count; i++)
        free(surroundings.blocks[i]);
    for (size_t i = 0; i < surroundings.count; i++) {
        size_t size = 1 + i * 37 % surroundings.size;
        free(fill(need(malloc(size)), 2, size));
    }
}

size_t group_for(size_t size)
{
    size_t count = ((size_t)64 << 20) / size;
    return count > GROUP_MAX ? GROUP_MAX : count < 4 ? 4 : count;
}

void *free_group(void *blocks)
{
    for (void **block = blocks; *block; block++)
        free(*block);
    return NULL;
}

void fill_words(void *block, size_t size, uintptr_t word)
{
    uintptr_t *words = block;
    size_t count = size / sizeof word, most = MIB / sizeof word;
    for (size_t i = 0; i < count; i++) {
        if (i == most && count > 2 * most)
            i = count - most;
        words[i] = word;
    }
}

/* Where free memory may be read although it has lost its tag. */
static const void *without_tag(const void *block)
{
#if defined(__aarch64__)
    return (const void *)((uintptr_t)block & UINTPTR_MAX >> 8);
#else
    return block;
#endif
}

size_t words_of_freed(size_t size, uintptr_t *words)
{
    void *block = need(malloc(size));
    size_t count = size / sizeof *words < WORDS_MAX ? size / sizeof *words : WORDS_MAX;
    fill_words(block, count * sizeof *words, 0x5555);
    free(block);
    /* Slab memory stays readable; looking at it is the point here. */
    memcpy(words, hide(without_tag(block)), count * sizeof *words);
    return count;
}

static const struct misuse *find(const char *name)
{
    for (const struct misuse *row = __start_misuses; row < __stop_misuses; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* The row of a name, which may be that of a variant: read_past_end_8_by_memcpy is of the row
 * read_past_end_n_way. */
static const struct misuse *find_variant(const char *name)
{
    char stem[80], *end;
    const char *way = strstr(name, "_by_store");
    if (!way) {
        way = strstr(name, "_by_memcpy");
        by_memcpy = way;
    }
    if (!way || way - name > 60)
        return NULL;
    memcpy(stem, name, (size_t)(way - name));
    end = stem + (way - name);
    strcpy(end, "_way");
    if (find(stem))
        return find(stem);
    while (end[-1] >= '0' && end[-1] <= '9')
        end--;
    distance = strtoul(end, NULL, 10);
    strcpy(end, "n_way");
    return find(stem);
}

int main(int count, char **arguments)
{
    const struct rlimit no_core = {0, 0};
    const struct misuse *row = NULL;
    setrlimit(RLIMIT_CORE, &no_core);
    staged = count == 4 && strcmp(arguments[3], "staged") == 0;
    if (count == 3 || staged)
        row = find(arguments[1]);
    if ((count == 3 || staged) && !row)
        row = find_variant(arguments[1]);
    if (!row) {
        fprintf(stderr, "usage: %s CHAPTER/NAME SIZE [staged]\n", arguments[0]);
        return 2;
    }
    if (strcmp(hakmem_version(), HAKMEM_VERSION) != 0)
        broken("another version of the library");
    row->make(strtoul(arguments[2], NULL, 10));
    return 0;
}
