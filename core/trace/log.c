/* See log.h: sites and samples. */
#include "trace/log.h"

#include <string.h>

#include "base/random.h"
#include "os/os.h"
#include "thread/fork.h"
#include "trace/log_modules.h"
#include "trace/log_snapshots.h"
#include "trace/log_store.h"

/* How many records a birth looks at for a dead sample in a full file. Half of the dead ones that it
 * finds have to stay. */
enum { LOOKS_MAX = 64 };

static uint64_t next_look; /* atomic, any thread: number of the next record to look at */

/* ---- Sites ----------------------------------------------------------------------------------- */

static struct log_site_record *site_of(uint32_t site)
{
    struct log_site_record *record = store_record(LOG_SITES, site);
    bool is_whole = record && ATOMIC_LOAD_ACQUIRE(&record->state) == LOG_WHOLE;
    return is_whole ? record : store_record(LOG_SITES, 0);
}

bool log_is_on(void)
{
    return store_is_wanted();
}

bool log_knows_site(uint32_t site)
{
    identity_self();
    if (!store_is_open() && !store_follow())
        return true; /* nothing is logged here */
    const struct log_site_record *record = store_record(LOG_SITES, site);
    return record && ATOMIC_LOAD_ACQUIRE(&record->state) == LOG_WHOLE;
}

/* The record of a site that is not known yet, being written; NULL: there is no room, or another
 * thread writes it. */
static struct log_site_record *begin_site(uint32_t site)
{
    uint32_t is_free = LOG_FREE;
    if (!store_is_open())
        return NULL;
    if (!store_reach(LOG_SITES, site)) {
        ATOMIC_ADD_RELAXED(&store_header()->lost_sites, 1);
        return NULL;
    }
    struct log_site_record *record = store_record(LOG_SITES, site);
    bool is_mine = __atomic_compare_exchange_n(
        &record->state, &is_free, LOG_BEING_WRITTEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    return is_mine ? record : NULL;
}

void log_place(uint32_t site, uint32_t line, unsigned kinds, const char *function, const char *file)
{
    struct log_site_record *record = begin_site(site);
    if (!record)
        return;
    record->frame[0] = (uint64_t)kinds << 32 | line;
    memcpy(record->frame + 1, file, LOG_FILE_BYTES);
    memcpy(record->scope, function, LOG_FUNCTION_BYTES);
    ATOMIC_STORE_RELEASE(&record->state, LOG_WHOLE);
}

void log_site(
    uint32_t site, const uintptr_t *frames, unsigned count, const char *scope, uint64_t time_ns)
{
    struct log_site_record *record = begin_site(site);
    if (!record)
        return;
    count = count < LOG_FRAMES_MAX ? count : LOG_FRAMES_MAX;
    modules_note(frames, count, time_ns);
    record->time_ns = time_ns;
    record->frames = count;
    for (unsigned i = 0; i < count; i++)
        record->frame[i] = frames[i];
    if (SCOPES)
        memcpy(record->scope, scope, strnlen(scope, SCOPE_PATH_BYTES - 1));
    ATOMIC_STORE_RELEASE(&record->state, LOG_WHOLE);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Uses the record of a dead sample again. */
static struct log_sample_record *reuse(uint32_t *number)
{
    uint32_t capacity = store_capacity(LOG_SAMPLES);
    if (!capacity)
        return NULL; /* another log is being opened */
    for (unsigned looks = 0; looks < LOOKS_MAX; looks++) {
        uint64_t look = ATOMIC_ADD_RELAXED(&next_look, 1);
        uint32_t dead = LOG_DEAD;
        struct log_sample_record *record =
            store_record(LOG_SAMPLES, *number = (uint32_t)(look % capacity));
        if (!record || !__atomic_compare_exchange_n(
                           &record->state, &dead, LOG_BEING_WRITTEN, false, __ATOMIC_ACQUIRE,
                           __ATOMIC_RELAXED))
            continue;
        /* An even chance, by a number that is never the same twice. */
        if (random_next(&look) >> 63 && record->thinned < 63) {
            record->thinned++;
            ATOMIC_STORE_RELEASE(&record->state, LOG_DEAD);
            continue;
        }
        ATOMIC_ADD_RELAXED(&store_header()->thinned_samples, 1);
        return record;
    }
    return NULL;
}

static void fill_record(struct log_sample_record *record, const struct log_birth *birth)
{
    record->site = birth->site;
    record->birth_ns = birth->time_ns;
    record->death_ns = 0;
    record->requested_bytes = birth->requested_bytes;
    record->usable_bytes = birth->usable_bytes;
    record->weight_bytes = birth->weight_bytes;
    record->birth_thread = birth->thread;
    record->death_thread = 0;
    record->size_class = birth->size_class;
    record->birth_flags = birth->flags;
    record->death_flags = record->thinned = 0;
    ATOMIC_STORE_RELEASE(&record->state, LOG_WHOLE);
}

static void lose(const struct log_birth *birth)
{
    static const char message[] =
        "hakmem: recording: more samples live than the log has room for: the newest are lost\n";
    struct log_header *header = store_header();
    ATOMIC_ADD_RELAXED(&header->lost_bytes, birth->weight_bytes);
    if (ATOMIC_ADD_RELAXED(&header->lost_samples, 1) == 0)
        store_settings()->say(message, sizeof message - 1);
}

log_handle log_birth(const struct log_birth *birth)
{
    uint32_t number = 0;
    if (!store_is_open())
        return 0;
    snapshots_tick(birth->time_ns, birth->size_class ? 0 : birth->usable_bytes);
    struct log_sample_record *record = store_append(LOG_SAMPLES, &number);
    if (!record)
        record = reuse(&number);
    struct log_site_record *site = site_of(birth->site);
    if (!site)
        return 0;
    ATOMIC_ADD_RELAXED(&site->born_samples, 1);
    ATOMIC_ADD_RELAXED(&site->born_bytes, birth->weight_bytes);
    ATOMIC_STORE_RELAXED(&store_header()->last_ns, birth->time_ns);
    if (!record) {
        lose(birth);
        return 0;
    }
    fill_record(record, birth);
    return (log_handle)ATOMIC_LOAD_RELAXED(&store_number) << 32 | ((log_handle)number + 1);
}

void log_death(log_handle handle, const struct log_death *death)
{
    if (handle == 0 || !store_is_open() || handle >> 32 != ATOMIC_LOAD_RELAXED(&store_number))
        return;
    snapshots_tick(death->time_ns, 0);
    struct log_sample_record *record = store_record(LOG_SAMPLES, (uint32_t)handle - 1);
    if (!record || ATOMIC_LOAD_ACQUIRE(&record->state) != LOG_WHOLE)
        return;
    struct log_site_record *site = site_of(record->site);
    if (!site)
        return;
    uint64_t weight = record->weight_bytes;
    ATOMIC_ADD_RELAXED(&site->dead_samples, 1);
    ATOMIC_ADD_RELAXED(&site->dead_bytes, weight);
    if (death->flags & LOG_REMOTE)
        ATOMIC_ADD_RELAXED(&site->remote_bytes, weight);
    if (death->flags & LOG_REALLOC)
        ATOMIC_ADD_RELAXED(&site->realloc_bytes, weight);
    record->death_ns = death->time_ns;
    record->death_thread = death->thread;
    record->death_flags = death->flags;
    ATOMIC_STORE_RELAXED(&store_header()->last_ns, death->time_ns);
    ATOMIC_STORE_RELEASE(&record->state, LOG_DEAD);
}

/* ---- Start and end --------------------------------------------------------------------------- */

void log_start(const struct log_settings *settings)
{
    store_start(settings);
    if (store_is_open())
        snapshots_last(os_clock_ns());
}

static void end_log(uint32_t ended)
{
    uint64_t now = os_clock_ns();
    if (!store_is_open())
        return;
    /* A signal handler may end the program where its thread holds a lock that a snapshot takes. */
    if (!fork_holds_lock())
        snapshots_last(now);
    ATOMIC_STORE_RELAXED(&store_header()->last_ns, now);
    ATOMIC_STORE_RELEASE(&store_header()->ended, ended);
}

void log_stop(void)
{
    end_log(LOG_ENDED);
}

void log_detach(void)
{
    end_log(LOG_DETACHED);
    store_close();
}
