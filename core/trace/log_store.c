/* See log_store.h. */
#include "trace/log_store.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "trace/claim.h"
#include "trace/log_path.h"
#include "trace/shared_file.h"

enum { NAMES_MAX = 100, SMALLEST_EXTENTS = 8 };

struct kind {
    uint32_t record_bytes;
    uint32_t records;  /* in an extent; const, as are fields without another note */
    uint32_t limit;    /* extents */
    uint32_t *extents; /* those of this kind, by number; const below `count` */
    uint32_t count;    /* atomic: release by the claim's holder pairs with acquire */
    uint32_t used;     /* atomic, any thread: records that were appended */
};

static struct {
    struct log_settings settings;
    char *pattern; /* PATH_BYTES */
    char *base;    /* of the reserved addresses */
    struct kind kinds[LOG_KINDS];
    uint32_t extents_max;

    /* The claim's holder only. */
    char *path; /* PATH_BYTES */
    struct os_file file;
    uint32_t extents; /* atomic: others read it */

    uint64_t claim;  /* atomic: of claim_take */
    uint32_t failed; /* atomic: the file does not grow any more */
} store;

uint32_t store_process, store_number;

static struct kind *kind_of(enum log_kind kind)
{
    return &store.kinds[kind - 1];
}

/* ---- Complaints ------------------------------------------------------------------------------ */

static void complain_of_log(const char *what, const char *path, const char *reason)
{
    char buffer[640]; /* stacks may be small */
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "hakmem: recording: ");
    text_string(&text, what);
    text_char(&text, ' ');
    text_foreign(&text, path, strnlen(path, 400));
    text_string(&text, ": ");
    text_string(&text, reason);
    text_char(&text, '\n');
    text_terminate(&text);
    store.settings.say(buffer, text_stored(&text));
}

static int create_log(int *failure)
{
    int fd = -1;
    *failure = EEXIST;
    for (unsigned again = 1; again <= NAMES_MAX && *failure == EEXIST; again++) {
        if (!path_resolve(store.pattern, store.path, again)) {
            *failure = ENOENT;
            return -1;
        }
        fd = shared_file_create(store.path, failure);
    }
    return fd;
}

/* ---- Extents --------------------------------------------------------------------------------- */

static size_t extent_offset(uint32_t extent)
{
    return LOG_HEADER_BYTES + (size_t)extent * LOG_EXTENT_BYTES;
}

static int map_range(int fd, size_t offset, size_t size)
{
    int failure = shared_file_allocate(fd, offset, size);
    if (!failure && !shared_file_map(fd, offset, size, store.base + offset))
        failure = ENOMEM;
    return failure;
}

/* Makes the next extent of the file one of this kind. */
static int add_extent(int fd, enum log_kind kind)
{
    struct kind *k = kind_of(kind);
    uint32_t extent = store.extents;
    int failure = map_range(fd, extent_offset(extent), LOG_EXTENT_BYTES);
    if (failure)
        return failure;
    struct log_extent *head = (struct log_extent *)(store.base + extent_offset(extent));
    head->magic = LOG_EXTENT_MAGIC;
    head->kind = kind;
    head->order = k->count;
    head->records = k->records;
    k->extents[k->count] = extent;
    ATOMIC_STORE_RELEASE(&k->count, k->count + 1);
    ATOMIC_STORE_RELAXED(&store.extents, extent + 1);
    ATOMIC_STORE_RELEASE(&store_header()->extents, extent + 1);
    return 0;
}

/* Takes an extent written long ago out of memory: it stays in the file. */
static void leave_to_file(const struct kind *kind)
{
    enum { KEPT = 16 };
    if (kind->count > KEPT)
        os_purge(
            store.base + extent_offset(kind->extents[kind->count - 1 - KEPT]), LOG_EXTENT_BYTES);
}

/* With the claim. */
static bool grow_by_one(enum log_kind kind)
{
    struct kind *k = kind_of(kind);
    if (k->count == k->limit || store.extents == store.extents_max)
        return false;
    int failure, fd = shared_file_open(store.path, store.file, &failure);
    if (fd >= 0) {
        failure = add_extent(fd, kind);
        os_close(fd);
    }
    if (failure) {
        ATOMIC_STORE_RELAXED(&store.failed, 1);
        complain_of_log(
            "older samples will be thinned out: no room is left in", store.path,
            shared_file_reason(failure));
        return false;
    }
    if (kind == LOG_SAMPLES)
        leave_to_file(k);
    return true;
}

/* Whether there may be more extents of this kind, as far as one can know. */
static bool may_grow(enum log_kind kind)
{
    const struct kind *k = kind_of(kind);
    return ATOMIC_LOAD_RELAXED(&k->count) < k->limit &&
           ATOMIC_LOAD_RELAXED(&store.extents) < store.extents_max &&
           !ATOMIC_LOAD_RELAXED(&store.failed);
}

/* Makes the file longer. If another thread does, may wait a little for that: a disk may be slow. */
static bool grow_to(enum log_kind kind, uint32_t capacity_wanted, bool may_wait)
{
    if (may_grow(kind) && (may_wait ? claim_wait(&store.claim) : claim_take(&store.claim))) {
        while (may_grow(kind) && store_capacity(kind) < capacity_wanted && grow_by_one(kind))
            continue;
        claim_release(&store.claim);
    }
    return store_capacity(kind) >= capacity_wanted;
}

/* ---- Records --------------------------------------------------------------------------------- */

struct log_header *store_header(void)
{
    return (struct log_header *)store.base;
}

size_t store_bytes(void)
{
    return extent_offset(ATOMIC_LOAD_RELAXED(&store.extents));
}

uint32_t store_capacity(enum log_kind kind)
{
    const struct kind *k = kind_of(kind);
    return ATOMIC_LOAD_ACQUIRE(&k->count) * k->records;
}

void *store_record(enum log_kind kind, uint32_t number)
{
    const struct kind *k = kind_of(kind);
    uint32_t order = number / k->records;
    if (order >= ATOMIC_LOAD_ACQUIRE(&k->count))
        return NULL;
    return store.base + extent_offset(k->extents[order]) + sizeof(struct log_extent) +
           (size_t)(number % k->records) * k->record_bytes;
}

/* The file tells its reader how far to look. */
static void note_row(enum log_kind kind, uint32_t number)
{
    uint64_t *rows = &store_header()->rows[kind - 1], known = ATOMIC_LOAD_RELAXED(rows);
    while (known <= number &&
           !__atomic_compare_exchange_n(
               rows, &known, (uint64_t)number + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

bool store_reach(enum log_kind kind, uint32_t number)
{
    const struct kind *k = kind_of(kind);
    if (number / k->records >= k->limit)
        return false;
    if (number >= store_capacity(kind) && !grow_to(kind, number + 1, true))
        return false;
    note_row(kind, number);
    return true;
}

void *store_append(enum log_kind kind, uint32_t *number)
{
    struct kind *k = kind_of(kind);
    uint32_t used = ATOMIC_LOAD_RELAXED(&k->used);
    for (;;) {
        uint32_t capacity = store_capacity(kind);
        /* Grows ahead of time, so that other threads find room meanwhile. */
        if (capacity - used < (capacity == k->records ? k->records / 4 : k->records))
            grow_to(kind, capacity + 1, false);
        if (used >= capacity && !grow_to(kind, used + 1, true))
            return NULL;
        if (__atomic_compare_exchange_n(
                &k->used, &used, used + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    }
    note_row(kind, *number = used);
    return store_record(kind, used);
}

/* ---- Start ----------------------------------------------------------------------------------- */

static void fill_header(uint32_t parent)
{
    struct log_header *header = store_header();
    memcpy(header->magic, LOG_MAGIC, sizeof header->magic);
    header->version = LOG_VERSION;
    header->header_bytes = LOG_HEADER_BYTES;
    header->extent_bytes = LOG_EXTENT_BYTES;
    for (unsigned i = 0; i < LOG_KINDS; i++)
        header->record_bytes[i] = store.kinds[i].record_bytes;
    header->start_ns = header->last_ns = os_clock_ns();
    header->start_unix_ns = os_clock_unix_ns();
    header->process = (uint32_t)os_process_id();
    header->parent = parent;
    header->attached = store.settings.is_attached;
    header->sample_mean_bytes = store.settings.sample_mean_bytes;
    memcpy(header->writer, "hakmem " HAKMEM_VERSION, sizeof "hakmem " HAKMEM_VERSION);
    os_read_link("/proc/self/exe", header->program, LOG_TEXT_BYTES - 1);
    header->command_bytes =
        (uint32_t)os_read_file("/proc/self/cmdline", header->command, LOG_TEXT_BYTES);
}

/* Maps a new file with an extent of each kind. */
static int fill_file(int fd, uint32_t parent)
{
    int failure = map_range(fd, 0, LOG_HEADER_BYTES);
    if (failure)
        return failure;
    store.file = os_file_of(fd);
    store.extents = 0;
    for (unsigned i = 0; i < LOG_KINDS; i++)
        store.kinds[i].count = store.kinds[i].used = 0;
    fill_header(parent);
    for (enum log_kind kind = LOG_SITES; kind <= LOG_KINDS && !failure; kind++)
        failure = add_extent(fd, kind);
    if (!failure && store_reach(LOG_SITES, 0))
        ((struct log_site_record *)store_record(LOG_SITES, 0))->state = LOG_WHOLE;
    return failure;
}

/* With the claim. If it fails, this process does not try again. */
static void open_log(void)
{
    uint32_t parent = store_process ? store_header()->process : 0;
    int failure;
    int fd = create_log(&failure);
    if (fd >= 0) {
        failure = fill_file(fd, parent);
        os_close(fd);
        if (failure)
            shared_file_remove(store.path);
    }
    if (failure) {
        complain_of_log(
            "nothing will be logged, as this cannot be written:", store.path,
            shared_file_reason(failure));
        ATOMIC_STORE_RELEASE(&store_process, UINT32_MAX);
        return;
    }
    ATOMIC_STORE_RELAXED(&store.failed, 0);
    ATOMIC_ADD_RELAXED(&store_number, 1);
    ATOMIC_STORE_RELEASE(&store_process, identity_process_number());
}

bool store_is_wanted(void)
{
    uint32_t process = ATOMIC_LOAD_RELAXED(&store_process);
    return process != 0 && process != UINT32_MAX;
}

bool store_follow(void)
{
    if (!store_is_wanted() || !claim_take(&store.claim))
        return false;
    if (!store_is_open())
        open_log();
    claim_release(&store.claim);
    return store_is_open();
}

const struct log_settings *store_settings(void)
{
    return &store.settings;
}

/* Which part of the file each kind may have. */
static bool divide(size_t limit_bytes)
{
    static const uint32_t record_bytes[LOG_KINDS] = {
        sizeof(struct log_site_record), sizeof(struct log_sample_record),
        sizeof(struct log_snapshot_record), sizeof(struct log_module_record)};
    uint32_t all = (uint32_t)(limit_bytes / LOG_EXTENT_BYTES) - 1;
    uint32_t limits[LOG_KINDS] = {all / 4, all, all < 64 ? 1 : 4, all < 64 ? 1 : all / 16};
    uint32_t *tables = os_map(
        round_up((size_t)LOG_KINDS * all * sizeof *tables, os_page_size()), os_page_size(), NULL);
    store.extents_max = all;
    for (unsigned i = 0; tables && i < LOG_KINDS; i++) {
        store.kinds[i] = (struct kind){
            .record_bytes = record_bytes[i],
            .records = (LOG_EXTENT_BYTES - sizeof(struct log_extent)) / record_bytes[i],
            .limit = limits[i],
            .extents = tables + (size_t)i * all};
    }
    return tables != NULL;
}

/* If address space is limited, the log takes a small part of it. */
static size_t affordable(size_t limit_bytes)
{
    size_t space = os_address_space_limit();
    if (space != SIZE_MAX)
        limit_bytes = size_min(limit_bytes, space / 16);
    return size_max(
        round_down(limit_bytes, LOG_EXTENT_BYTES), SMALLEST_EXTENTS * (size_t)LOG_EXTENT_BYTES);
}

/* Maps the memory that a log needs; it stays for the next log. */
static bool map_memory(size_t limit_bytes)
{
    if (store.base)
        return true;
    char *texts = os_map(round_up((size_t)2 * PATH_BYTES, os_page_size()), os_page_size(), NULL);
    if (!texts || !divide(limit_bytes))
        return false;
    store.pattern = texts;
    store.path = texts + PATH_BYTES;
    store.base = os_reserve(limit_bytes);
    return store.base != NULL;
}

void store_close(void)
{
    ATOMIC_STORE_RELEASE(&store_process, 0);
}

void store_start(const struct log_settings *settings)
{
    store.settings = *settings;
    store.settings.limit_bytes = affordable(settings->limit_bytes);
    bool has_memory = map_memory(store.settings.limit_bytes);
    if (!has_memory || !path_keep(store.pattern, settings->path)) {
        const char *reason = has_memory ? "the path is too long" : "there is no memory for it";
        complain_of_log("nothing will be logged to", settings->path, reason);
        return;
    }
    store.settings.path = store.pattern;
    if (claim_take(&store.claim)) {
        open_log();
        claim_release(&store.claim);
    }
}
