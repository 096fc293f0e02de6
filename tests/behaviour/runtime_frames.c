/* Samples in a program that tells the unwinder of its own code, as compilers at run time do. Up to
 * GCC 12 the unwinder sorts what it was told when it is first asked, and calls malloc for that
 * while it holds a lock: whoever asks it there for a stack waits for itself.
 */
#include "runtime_support.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <hakmem/hakmem.h>

enum { TABLES = 40, FUNCTIONS = 600, COMMON_BYTES = 16, ENTRY_BYTES = 24 };
enum { DEPTH_MAX = 300, FORKS = 60, PROFILES = 200 };

extern void __register_frame(void *table);
extern void __deregister_frame(void *table);

struct table {
    unsigned char common[COMMON_BYTES];
    unsigned char entry[FUNCTIONS][ENTRY_BYTES];
    uint32_t end;
};

static void put_word(unsigned char *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

/* What an entry has in common with others: version 1, no augmentation, code aligned to 1 byte and
 * data to 8, the return address in the register 16. */
static void write_table(struct table *table, uintptr_t code)
{
    static const unsigned char common[] = {1, 0, 1, 0x78, 16};
    memset(table, 0, sizeof *table);
    put_word(table->common, COMMON_BYTES - 4);
    memcpy(table->common + 8, common, sizeof common);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        unsigned char *entry = table->entry[i];
        uintptr_t bounds[2] = {code + (uintptr_t)i * 16, 16};
        put_word(entry, ENTRY_BYTES - 4);
        put_word(entry + 4, (uint32_t)(entry + 4 - table->common));
        memcpy(entry + 8, bounds, sizeof bounds);
    }
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count)
{
    (void)context;
    ++*(unsigned *)count;
    return _URC_NO_REASON;
}

static struct table table[TABLES];
static char code[TABLES][FUNCTIONS * 16];

static void have_tables_sorted(void)
{
    for (unsigned i = 0; i < TABLES; i++) {
        unsigned frames = 0;
        write_table(&table[i], (uintptr_t)code[i]);
        __register_frame(&table[i]);
        REQUIRE(_Unwind_Backtrace(count_frame, &frames) == _URC_END_OF_STACK);
        REQUIRE(frames > 1);
    }
    for (unsigned i = 1; i < TABLES; i++)
        __deregister_frame(&table[i]);
}

/* Stacks that differ, so that each sample is unwound. */
static __attribute__((noinline)) int allocate_below(unsigned depth)
{
    volatile char room[16 + depth % 64];
    room[0] = (char)depth;
    if (depth > 0)
        return allocate_below(depth - 1) + room[0];
    free(malloc(20000));
    return room[0];
}

static volatile int goes_on = 1;

static void *allocate(void *unused)
{
    unsigned seed = 1;
    (void)unused;
    while (goes_on)
        allocate_below((unsigned)rand_r(&seed) % DEPTH_MAX);
    return NULL;
}

static void fork_meanwhile(void)
{
    pthread_t thread[2];
    int status;
    for (unsigned i = 0; i < 2; i++)
        REQUIRE(pthread_create(&thread[i], NULL, allocate, NULL) == 0);
    for (unsigned i = 0; i < FORKS; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        for (unsigned depth = 0; child == 0 && depth < 40; depth++)
            allocate_below(depth);
        if (child == 0)
            _exit(0);
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    goes_on = 0;
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

static volatile unsigned profiles;

static void take_profile(int signal)
{
    void *frames[50];
    (void)signal;
    backtrace(frames, 50);
    profiles++;
}

static void profile_meanwhile(void)
{
    void *frame;
    unsigned seed = 1;
    const struct itimerval each_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    backtrace(&frame, 1);
    signal(SIGPROF, take_profile);
    REQUIRE(setitimer(ITIMER_PROF, &each_ms, NULL) == 0);
    while (profiles < PROFILES)
        allocate_below((unsigned)rand_r(&seed) % DEPTH_MAX);
    REQUIRE(setitimer(ITIMER_PROF, &never, NULL) == 0);
}

int main(void)
{
    long mean_kib;
    watchdog(HANG_SECONDS, "hangs in the unwinder\n");
    REQUIRE(hakmem_option_get("sample_kib", &mean_kib) == 0 && mean_kib > 0);
    have_tables_sorted();
    profile_meanwhile();
    fork_meanwhile();
    printf(
        "%d tables have been sorted, %u profiles taken, %d children forked\n", TABLES, profiles,
        FORKS);
    return 0;
}
