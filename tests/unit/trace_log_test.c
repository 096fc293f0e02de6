/* trace/log: what a process logs is in the file, whatever becomes of the process or the disk.
 *
 * The log starts once a process, so each case is a child, which writes to a folder of its own; the
 * parent reads the file.
 */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/identity.h"
#include "os/os.h"
#include "thread/registry.h"
#include "trace/log_file.h"

static char folder[64] = "/tmp/hakmem-log-XXXXXX";
static int said; /* write end of a pipe */

/* ---- The process that logs ------------------------------------------------------------------- */

static void take(struct log_snapshot *snapshot)
{
    static uint64_t taken;
    snapshot->live = ++taken;
}

static void say(const char *line, size_t length)
{
    (void)!write(said, line, length);
}

static void start_as(const char *name, size_t limit_bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const struct log_settings settings = {
        .path = path,
        .limit_bytes = limit_bytes,
        .sample_mean_bytes = 65536,
        .take = take,
        .say = say};
    identity_start(NULL);
    log_start(&settings);
}

static void start(size_t limit_bytes)
{
    start_as("%e.%p.hakprof", limit_bytes);
}

static log_handle bear(uint32_t site, uint64_t bytes)
{
    const struct log_birth birth = {
        .time_ns = os_clock_ns(),
        .requested_bytes = bytes,
        .usable_bytes = bytes + 8,
        .weight_bytes = 65536,
        .site = site,
        .thread = os_thread_id(),
        .size_class = 7,
        .flags = LOG_GUARDED};
    if (!log_knows_site(site)) {
        const uintptr_t here = (uintptr_t)__builtin_return_address(0);
        const uintptr_t frames[] = {here, here, site};
        log_site(site, frames, 3, "", birth.time_ns);
    }
    return log_birth(&birth);
}

static void bury(log_handle handle, uint8_t flags)
{
    const struct log_death death = {
        .time_ns = os_clock_ns(), .thread = os_thread_id(), .flags = flags};
    log_death(handle, &death);
}

/* ---- The one that reads ---------------------------------------------------------------------- */

struct file {
    const char *bytes;
    size_t size;
    const struct log_header *header;
};

static struct file map_file(const char *name)
{
    char path[600];
    struct stat status;
    struct file file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    file.size = (size_t)status.st_size;
    file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(file.bytes, MAP_FAILED);
    close(fd);
    file.header = (const struct log_header *)file.bytes;
    assert_memory_equal(file.header->magic, LOG_MAGIC, 8);
    assert_int_equal(file.header->version, LOG_VERSION);
    assert_true(LOG_HEADER_BYTES + file.header->extents * (size_t)LOG_EXTENT_BYTES <= file.size);
    return file;
}

/* The file of the process; the names of all others that end so are its later programs. */
static struct file file_of(pid_t process)
{
    char end[64];
    struct dirent *entry;
    struct file file = {0};
    DIR *listing = opendir(folder);
    snprintf(end, sizeof end, ".%d.hakprof", process);
    while ((entry = readdir(listing)))
        if (strstr(entry->d_name, end))
            file = map_file(entry->d_name);
    closedir(listing);
    return file;
}

static const void *record_of(const struct file *file, enum log_kind kind, uint64_t number)
{
    for (uint32_t i = 0; i < file->header->extents; i++) {
        const char *start = file->bytes + LOG_HEADER_BYTES + i * (size_t)LOG_EXTENT_BYTES;
        const struct log_extent *extent = (const struct log_extent *)start;
        assert_int_equal(extent->magic, LOG_EXTENT_MAGIC);
        if (extent->kind == (uint32_t)kind && number / extent->records == extent->order)
            return start + sizeof *extent +
                   number % extent->records * file->header->record_bytes[kind - 1];
    }
    fail_msg("no record %lu of kind %d", (unsigned long)number, kind);
    return NULL;
}

struct sums {
    uint64_t live, dead, weight, sites_born, sites_dead;
};

static struct sums add_up(const struct file *file)
{
    struct sums sums = {0};
    for (uint64_t i = 0; i < file->header->rows[LOG_SAMPLES - 1]; i++) {
        const struct log_sample_record *sample = record_of(file, LOG_SAMPLES, i);
        sums.live += sample->state == LOG_WHOLE;
        sums.dead += sample->state == LOG_DEAD;
        if (sample->state == LOG_WHOLE || sample->state == LOG_DEAD)
            sums.weight += sample->weight_bytes << sample->thinned;
    }
    for (uint64_t i = 0; i < file->header->rows[LOG_SITES - 1]; i++) {
        const struct log_site_record *site = record_of(file, LOG_SITES, i);
        sums.sites_born += site->born_samples;
        sums.sites_dead += site->dead_samples;
    }
    return sums;
}

/* Runs `body` in a process; returns its number, and what it said. */
static pid_t run(void (*body)(void), char *text, size_t size, int *status)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (process == 0) {
        said = ends[1];
        alarm(HANG_SECONDS);
        body();
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(process, status, 0), process);
    ssize_t length = read(ends[0], text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    return process;
}

static struct file run_well(void (*body)(void))
{
    char text[1024];
    int status;
    pid_t process = run(body, text, sizeof text, &status);
    assert_int_equal(status, 0);
    assert_string_equal(text, "");
    return file_of(process);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void log_three(void)
{
    start(8 * MIB);
    bear(1, 100);
    bury(bear(2, 200), LOG_REMOTE | LOG_REALLOC);
    bear(1, 300);
    log_stop();
}

static void births_deaths_and_sites_are_there(void **state)
{
    (void)state;
    struct file file = run_well(log_three);
    assert_int_equal(file.header->ended, 1);
    assert_int_equal(file.header->parent, 0);
    assert_int_equal(file.header->rows[LOG_SAMPLES - 1], 3);
    const struct log_sample_record *sample = record_of(&file, LOG_SAMPLES, 1);
    assert_int_equal(sample->state, LOG_DEAD);
    assert_int_equal(sample->site, 2);
    assert_int_equal(sample->requested_bytes, 200);
    assert_int_equal(sample->usable_bytes, 208);
    assert_int_equal(sample->size_class, 7);
    assert_int_equal(sample->birth_flags, LOG_GUARDED);
    assert_int_equal(sample->death_flags, LOG_REMOTE | LOG_REALLOC);
    assert_true(sample->death_ns >= sample->birth_ns);
    assert_true(sample->birth_ns >= file.header->start_ns);
    const struct log_site_record *site = record_of(&file, LOG_SITES, 1);
    assert_int_equal(site->state, LOG_WHOLE);
    assert_int_equal(site->frames, 3);
    assert_int_equal(site->frame[2], 1);
    assert_int_equal(site->born_samples, 2);
    assert_int_equal(site->born_bytes, 2 * 65536);
    assert_int_equal(site->dead_bytes, 0);
    site = record_of(&file, LOG_SITES, 2);
    assert_int_equal(site->dead_bytes, 65536);
    assert_int_equal(site->remote_bytes, 65536);
    assert_int_equal(site->realloc_bytes, 65536);
    assert_true(file.header->rows[LOG_SNAPSHOTS - 1] >= 2);
    assert_memory_equal(file.header->writer, "hakmem ", 7);
    assert_non_null(strstr(file.header->program, "unit_trace_log"));
}

static void modules_have_their_build_id(void **state)
{
    (void)state;
    struct file file = run_well(log_three);
    assert_int_equal(file.header->rows[LOG_MODULES - 1], 1);
    const struct log_module_record *module = record_of(&file, LOG_MODULES, 0);
    const struct log_site_record *site = record_of(&file, LOG_SITES, 1);
    assert_int_equal(module->state, LOG_WHOLE);
    assert_true(site->frame[0] > module->start && site->frame[0] <= module->end);
    assert_non_null(strstr(module->path, "/unit_trace_log"));
    /* GNU ld makes 20 bytes, lld 8, and some linkers none. */
    uint32_t bytes = module->build_id_bytes;
    assert_true(bytes == 20 || bytes == 8 || bytes == 0);
    assert_true(module->start >= module->bias);
}

static void *log_much(void *argument)
{
    uint32_t first = (uint32_t)(uintptr_t)argument;
    for (unsigned i = 0; i < 5000; i++) {
        log_handle handle = bear(first + i % 300, i);
        if (i % 5)
            bury(handle, 0);
    }
    return NULL;
}

static void log_from_threads(void)
{
    pthread_t threads[8];
    start(64 * MIB);
    for (uintptr_t i = 0; i < ARRAY_LENGTH(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_much, (void *)(1 + i * 100)), 0);
    for (unsigned i = 0; i < ARRAY_LENGTH(threads); i++)
        pthread_join(threads[i], NULL);
}

static void threads_log_at_the_same_time(void **state)
{
    (void)state;
    struct file file = run_well(log_from_threads);
    struct sums sums = add_up(&file);
    assert_int_equal(file.header->ended, 0);
    assert_int_equal(file.header->lost_samples, 0);
    assert_int_equal(sums.live, 8 * 1000);
    /* Where the thread that adds an extent is kept waiting, others reuse records of the dead. */
    assert_int_equal(sums.dead + file.header->thinned_samples, 8 * 4000);
    assert_int_equal(sums.sites_born, 8 * 5000);
    assert_int_equal(sums.sites_dead, 8 * 4000);
    for (uint32_t site = 1; site < 1000; site++)
        assert_int_equal(
            ((const struct log_site_record *)record_of(&file, LOG_SITES, site))->state, LOG_WHOLE);
}

static pid_t child_to_tell;

static void fork_while_logging(void)
{
    start(8 * MIB);
    log_handle inherited = bear(1, 1);
    pid_t child = fork();
    if (child == 0) {
        bury(inherited, 0); /* nobody's here */
        bear(1, 11);
        bear(3, 12);
        log_stop();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    say((const char *)&child, sizeof child);
    bear(2, 2);
}

static void a_child_has_a_file_of_its_own(void **state)
{
    (void)state;
    char text[64];
    int status;
    pid_t process = run(fork_while_logging, text, sizeof text, &status);
    memcpy(&child_to_tell, text, sizeof child_to_tell);
    assert_int_equal(status, 0);
    struct file parents = file_of(process), childs = file_of(child_to_tell);
    assert_non_null(childs.bytes);
    assert_int_equal(childs.header->parent, process);
    assert_int_equal(childs.header->process, child_to_tell);
    assert_int_equal(add_up(&parents).live, 2);
    assert_int_equal(add_up(&parents).dead, 0);
    assert_int_equal(add_up(&childs).live, 2);
    assert_int_equal(childs.header->ended, 1);
    assert_int_equal(parents.header->ended, 0);
}

static void log_twice(void)
{
    start_as("first.%p.hakprof", 8 * MIB);
    log_handle first = bear(1, 100);
    log_detach();
    if (log_is_on() || !log_knows_site(1) || bear(1, 200))
        _exit(1);
    bury(first, 0);
    start_as("second.%p.hakprof", 8 * MIB);
    bury(first, 0); /* of the first log: not here */
    bear(1, 300);
    bury(bear(2, 400), 0);
    log_stop();
}

/* A log that was ended while the process goes on stays as it was, and the next one knows nothing of
 * it. */
static void a_log_follows_another(void **state)
{
    (void)state;
    char text[64], name[64];
    int status;
    pid_t process = run(log_twice, text, sizeof text, &status);
    assert_int_equal(status, 0);
    snprintf(name, sizeof name, "first.%d.hakprof", process);
    struct file first = map_file(name);
    snprintf(name, sizeof name, "second.%d.hakprof", process);
    struct file second = map_file(name);
    assert_int_equal(first.header->ended, LOG_DETACHED);
    assert_int_equal(second.header->ended, LOG_ENDED);
    assert_int_equal(add_up(&first).live, 1);
    assert_int_equal(add_up(&first).dead, 0);
    assert_int_equal(add_up(&second).live, 1);
    assert_int_equal(add_up(&second).dead, 1);
}

static void log_under_one_name(void)
{
    start_as("one.name.hakprof", 8 * MIB);
    bear(1, 100);
    log_stop();
}

/* The second process of a name without %p once found all names taken, and so did all after it. */
static void processes_of_one_name_have_files_of_their_own(void **state)
{
    (void)state;
    char text[1024], path[600];
    for (unsigned i = 0; i < 3; i++) {
        int status;
        pid_t process = run(log_under_one_name, text, sizeof text, &status);
        assert_int_equal(status, 0);
        assert_string_equal(text, "");
        snprintf(path, sizeof path, "%s/one.name.hakprof", folder);
        if (i > 0)
            snprintf(path, sizeof path, "%s/one.name.%d.hakprof", folder, process);
        assert_int_equal(access(path, R_OK), 0);
    }
}

static void log_and_be_killed(void)
{
    start(8 * MIB);
    for (unsigned i = 0; i < 2000; i++)
        bear(1 + i % 10, i);
    kill(getpid(), SIGKILL);
}

static void what_was_logged_survives_the_process(void **state)
{
    (void)state;
    char text[64];
    int status;
    pid_t process = run(log_and_be_killed, text, sizeof text, &status);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    struct file file = file_of(process);
    assert_int_equal(add_up(&file).live, 2000);
    assert_int_equal(file.header->ended, 0);
}

enum { MANY = 200000, KEPT = 2000 };

static void log_too_much(void)
{
    start(2 * MIB);
    for (unsigned i = 0; i < MANY; i++) {
        log_handle handle = bear(1, i);
        if (i % (MANY / KEPT))
            bury(handle, 0);
    }
}

static void a_full_log_thins_out_what_is_dead(void **state)
{
    (void)state;
    struct file file = run_well(log_too_much);
    struct sums sums = add_up(&file);
    assert_true(file.size <= 2 * MIB);
    assert_int_equal(file.header->lost_samples, 0);
    assert_int_equal(sums.live, KEPT);
    assert_int_equal(sums.sites_born, MANY);
    assert_true(file.header->thinned_samples > MANY / 2);
    /* The sum is an estimate: records of much weight are few. */
    double ratio = (double)sums.weight / 65536 / MANY;
    assert_true(ratio > 0.8 && ratio < 1.25);
}

static void log_what_lives(void)
{
    start(1 * MIB);
    for (unsigned i = 0; i < 30000; i++)
        bear(1, i);
}

static void too_many_live_samples_are_said_once(void **state)
{
    (void)state;
    char text[1024];
    int status;
    pid_t process = run(log_what_lives, text, sizeof text, &status);
    struct file file = file_of(process);
    assert_int_equal(status, 0);
    assert_non_null(strstr(text, "more samples live"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
    assert_true(file.header->lost_samples > 1000);
    assert_int_equal(file.header->lost_samples + add_up(&file).live, 30000);
    assert_int_equal(file.header->lost_bytes, 65536 * file.header->lost_samples);
}

static void log_under_a_file_limit(void)
{
    const struct rlimit limit = {1 * MIB, 1 * MIB};
    start(64 * MIB);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (unsigned i = 0; i < 100000; i++)
        bury(bear(1, i), 0);
}

static void a_limit_on_files_is_said_once(void **state)
{
    (void)state;
    char text[1024];
    int status;
    pid_t process = run(log_under_a_file_limit, text, sizeof text, &status);
    struct file file = file_of(process);
    assert_int_equal(status, 0);
    assert_non_null(strstr(text, "files may not become that long\n"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
    assert_true(file.header->thinned_samples > 50000);
}

static bool mount_small_disk(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, "size=1m") == 0;
}

static void log_to_a_full_disk(void)
{
    uint64_t handles = 0;
    if (!mount_small_disk()) {
        say("skipped", 7);
        return;
    }
    start(64 * MIB);
    for (unsigned i = 0; i < 100000; i++) {
        log_handle handle = bear(1, i);
        handles += handle != 0;
        bury(handle, 0);
    }
    if (handles != 100000)
        _exit(1);
}

static void a_full_disk_is_said_once(void **state)
{
    (void)state;
    char text[1024];
    int status;
    run(log_to_a_full_disk, text, sizeof text, &status);
    assert_int_equal(status, 0);
    if (strcmp(text, "skipped") == 0)
        skip();
    assert_non_null(strstr(text, "the disk is full\n"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

static void log_to_nowhere(void)
{
    strcat(folder, "/missing");
    start(8 * MIB);
    if (log_is_on() || bear(1, 1) != 0)
        _exit(1);
    bury(0, 0);
    log_stop();
}

static void no_file_is_said_once(void **state)
{
    (void)state;
    char text[1024];
    int status;
    run(log_to_nowhere, text, sizeof text, &status);
    assert_int_equal(status, 0);
    assert_non_null(strstr(text, "there is no such folder\n"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

static void log_for_long(void)
{
    start(2 * MIB);
    /* With times of our own: a snapshot is due each time. */
    for (uint64_t i = 0; i < 5000; i++) {
        const struct log_birth birth = {
            .time_ns = os_clock_ns() + i * 1000000000, .site = 1, .weight_bytes = 1};
        log_birth(&birth);
    }
}

static void snapshots_thin_out(void **state)
{
    (void)state;
    struct file file = run_well(log_for_long);
    uint64_t last = 0, whole = 0, rows = file.header->rows[LOG_SNAPSHOTS - 1];
    for (uint64_t i = 0; i < rows; i++) {
        const struct log_snapshot_record *record = record_of(&file, LOG_SNAPSHOTS, i);
        if (record->state != LOG_WHOLE)
            continue;
        whole++;
        assert_true(record->snapshot.time_ns > last);
        assert_true(record->snapshot.rss > 0);
        last = record->snapshot.time_ns;
    }
    assert_true(rows <= LOG_EXTENT_BYTES / sizeof(struct log_snapshot_record));
    assert_true(whole >= rows / 2 - 1);
}

static void log_inside_a_lock(void)
{
    start(2 * MIB);
    lock_acquire(&registry.lock);
    log_stop();
}

/* A signal handler may have called exit there: a snapshot takes locks. */
static void the_end_inside_a_lock_takes_no_snapshot(void **state)
{
    (void)state;
    struct file file = run_well(log_inside_a_lock);
    assert_int_equal(file.header->ended, 1);
    assert_int_equal(file.header->rows[LOG_SNAPSHOTS - 1], 1);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[600];
    struct dirent *entry;
    DIR *listing = opendir(folder);
    while ((entry = readdir(listing))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(listing);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(births_deaths_and_sites_are_there),
        cmocka_unit_test(modules_have_their_build_id),
        cmocka_unit_test(threads_log_at_the_same_time),
        cmocka_unit_test(a_child_has_a_file_of_its_own),
        cmocka_unit_test(a_log_follows_another),
        cmocka_unit_test(processes_of_one_name_have_files_of_their_own),
        cmocka_unit_test(what_was_logged_survives_the_process),
        cmocka_unit_test(a_full_log_thins_out_what_is_dead),
        cmocka_unit_test(too_many_live_samples_are_said_once),
        cmocka_unit_test(a_limit_on_files_is_said_once),
        cmocka_unit_test(a_full_disk_is_said_once),
        cmocka_unit_test(no_file_is_said_once),
        cmocka_unit_test(snapshots_thin_out),
        cmocka_unit_test(the_end_inside_a_lock_takes_no_snapshot),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
