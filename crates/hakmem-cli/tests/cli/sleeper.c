/* A program that holds much free memory and sleeps in a system call, in one of several ways; then
 * it looks whether anything is other than it should be. A second thread wakes the first one, when a
 * byte comes on standard input; it waits for that in a way that makes it a worse one to stop.
 *
 * usage: sleeper WAY
 * prints "ready", and at the end: WAY, what the call returned, errno, its milliseconds
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "not so: %s\n", #what), abort()))

enum { BLOCKS = 60000, KEPT = 50, LIMIT_MS = 1500, MANY = 200 };

static unsigned char *blocks[BLOCKS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, silent = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_t sleeper;
static int event, listener, ends[2];
static volatile int woken, waiting;

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static size_t size_of(int i)
{
    return 16 + (size_t)(i * 7919u % 1368);
}

static void fill(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size_of(i));
        memset(blocks[i], i & 0xff, size_of(i));
    }
    for (int i = 0; i < BLOCKS; i++)
        if (i % KEPT)
            free(blocks[i]);
}

static void check_kept(void)
{
    for (int i = 0; i < BLOCKS; i += KEPT) {
        for (size_t at = 0; at < size_of(i); at++)
            CHECK(blocks[i][at] == (i & 0xff));
        free(blocks[i]);
    }
}

static void on_signal(int signal)
{
    (void)signal;
}

/* Wakes whatever the first thread sleeps in. */
static void *wake(void *unused)
{
    char byte;
    struct epoll_event got, wanted = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &wanted);
    while (epoll_wait(epoll, &got, 1, 3600000) != 1)
        continue;
    CHECK(read(STDIN_FILENO, &byte, 1) == 1);
    pthread_mutex_lock(&mutex);
    woken = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    sem_post(&semaphore);
    CHECK(write(event, &(uint64_t){1}, 8) == 8);
    CHECK(write(ends[1], "x", 1) == 1);
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    getsockname(listener, (struct sockaddr *)&address, &length);
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(connection, (struct sockaddr *)&address, length);
    pthread_kill(sleeper, SIGUSR1);
    return unused;
}

static void *wait_and_allocate(void *unused)
{
    void *some[100];
    for (int i = 0; i < 100; i++)
        memset(some[i] = malloc(1000), 1, 1000);
    for (int i = 0; i < 100; i++)
        free(some[i]);
    pthread_mutex_lock(&mutex);
    waiting++;
    while (!woken)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    free(malloc(1000));
    return unused;
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += ms * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

#ifdef __x86_64__
/* A call with all vector registers and the red zone in use. */
static long bare(void)
{
    struct timespec most = {1, 500000000};
    unsigned char before[16 * 16], after[16 * 16];
    uint64_t red = 0;
    long result;
    for (int i = 0; i < 16 * 16; i++)
        before[i] = (unsigned char)(i * 13 + 1);
    __asm__ volatile("movdqu 0x00(%[before]), %%xmm0; movdqu 0x10(%[before]), %%xmm1;"
                     "movdqu 0x20(%[before]), %%xmm2; movdqu 0x30(%[before]), %%xmm3;"
                     "movdqu 0x40(%[before]), %%xmm4; movdqu 0x50(%[before]), %%xmm5;"
                     "movdqu 0x60(%[before]), %%xmm6; movdqu 0x70(%[before]), %%xmm7;"
                     "movdqu 0x80(%[before]), %%xmm8; movdqu 0xf0(%[before]), %%xmm15;"
                     "movq $77, -8(%%rsp); movq $78, -128(%%rsp);"
                     "movq $11, %%r8; movq $12, %%r9; movq $13, %%r10; movq $14, %%r12;"
                     "std; syscall; pushfq; popq %%r11; cld;"
                     "shrq $10, %%r11; andq $1, %%r11; movq %%r11, %[red];"
                     "movdqu %%xmm0, 0x00(%[after]); movdqu %%xmm1, 0x10(%[after]);"
                     "movdqu %%xmm2, 0x20(%[after]); movdqu %%xmm3, 0x30(%[after]);"
                     "movdqu %%xmm4, 0x40(%[after]); movdqu %%xmm5, 0x50(%[after]);"
                     "movdqu %%xmm6, 0x60(%[after]); movdqu %%xmm7, 0x70(%[after]);"
                     "movdqu %%xmm8, 0x80(%[after]); movdqu %%xmm15, 0xf0(%[after]);"
                     "addq -128(%%rsp), %[red]; addq %%r8, %[red]; addq %%r9, %[red];"
                     "addq %%r10, %[red]; addq %%r12, %[red];"
                     : "=a"(result), [red] "+r"(red)
                     : "a"(SYS_nanosleep), "D"(&most),
                       "S"(NULL), [before] "r"(before), [after] "r"(after)
                     : "rcx", "r8", "r9", "r10", "r11", "r12", "memory", "cc", "xmm0", "xmm1",
                       "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm15");
    CHECK(red == 1 + 78 + 11 + 12 + 13 + 14);
    CHECK(memcmp(before, after, 0x90) == 0 && memcmp(before + 0xf0, after + 0xf0, 16) == 0);
    return result;
}
#endif

/* Interrupts malloc or free, mostly. */
static void sleep_in_handler(int signal)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    int error = errno;
    (void)signal;
    CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
    while (ppoll(&input, 1, NULL, NULL) != 1)
        continue;
    woken = 1;
    errno = error;
}

static long be_interrupted(unsigned turn)
{
    struct timespec after = {.tv_nsec = 20000000 + 1237 * (long)turn};
    struct itimerspec once = {.it_value = after};
    struct sigevent tells = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    signal(SIGALRM, sleep_in_handler);
    CHECK(timer_create(CLOCK_MONOTONIC, &tells, &timer) == 0);
    CHECK(timer_settime(timer, 0, &once, NULL) == 0);
    while (!woken)
        for (size_t size = 3000000; size > 100; size /= 2) {
            void *volatile block = malloc(size);
            free(block);
        }
    return 0;
}

static void *stress(void *number)
{
    unsigned random = (unsigned)(uintptr_t)number;
    unsigned char *held[500] = {NULL};
    size_t sizes[500];
    while (!__atomic_load_n(&woken, __ATOMIC_RELAXED)) {
        random = random * 1103515245 + 12345;
        unsigned i = (random >> 16) % 500;
        if (held[i]) {
            for (size_t at = 0; at < sizes[i]; at++)
                CHECK(held[i][at] == (unsigned char)i);
            free(held[i]);
            held[i] = NULL;
        } else {
            sizes[i] = 1 + (random >> 8) % (i % 50 ? 5000 : 300000);
            held[i] = malloc(sizes[i]);
            memset(held[i], (int)i, sizes[i]);
        }
    }
    return NULL;
}

static void filter_calls(void)
{
    struct {
        uint16_t code;
        uint8_t if_true, if_false;
        uint32_t value;
    } allow = {0x06, 0, 0, 0x7fff0000};
    struct {
        uint16_t length;
        void *rules;
    } filter = {1, &allow};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, 2, &filter) == 0);
}

/* A child traces this process. */
static void be_traced(void)
{
    int parent = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(ptrace(PTRACE_SEIZE, parent, 0, 0) == 0);
        CHECK(write(ready[1], "x", 1) == 1);
        pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
}

#define IS(name) (strcmp(way, name) == 0)

/* For LIMIT_MS. */
static long sleep_for(const char *way)
{
    struct timespec limit = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000000L}, until;
    struct timeval short_limit = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000L};
    struct epoll_event got;
    sigset_t usr1, none;
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
#ifdef __x86_64__
    if (IS("bare"))
        return bare();
#endif
    if (IS("nanosleep") || IS("filter") || IS("traced") || IS("threads"))
        return syscall(SYS_nanosleep, &limit, NULL);
    if (IS("sleep"))
        return nanosleep(&limit, NULL);
    if (IS("sleep_until")) {
        until = in_ms(CLOCK_MONOTONIC, LIMIT_MS);
        return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    if (IS("poll_time"))
        return poll(NULL, 0, LIMIT_MS);
    if (IS("ppoll_time"))
        return ppoll(NULL, 0, &limit, NULL);
    if (IS("select_time"))
        return select(0, NULL, NULL, NULL, &short_limit);
    if (IS("epoll_time"))
        return epoll_pwait(epoll_create1(0), &got, 1, LIMIT_MS, &usr1);
    if (IS("cond_time")) {
        until = in_ms(CLOCK_REALTIME, LIMIT_MS);
        pthread_mutex_lock(&mutex);
        int result = pthread_cond_timedwait(&silent, &mutex, &until);
        pthread_mutex_unlock(&mutex);
        return result == ETIMEDOUT ? 0 : result;
    }
    if (IS("sigtimedwait"))
        return sigtimedwait(&none, NULL, &limit) == -1 && errno == EAGAIN ? 0 : -1;
    return 2;
}

/* Until the waker comes. */
static long sleep_until_woken(const char *way, pthread_t waker)
{
    struct pollfd file = {event, POLLIN, 0};
    struct epoll_event got, wanted = {.events = EPOLLIN};
    uint64_t count;
    char byte;
    sigset_t usr1, none;
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    int epoll = epoll_create1(0), signal = 0;
    epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted);
    if (IS("poll"))
        return poll(&file, 1, -1);
    if (IS("epoll"))
        return epoll_wait(epoll, &got, 1, -1);
    if (IS("read"))
        return read(ends[0], &byte, 1);
    if (IS("read_event"))
        return read(event, &count, 8) == 8;
    if (IS("accept"))
        return accept(listener, NULL, NULL) >= 0;
    if (IS("cond")) {
        pthread_mutex_lock(&mutex);
        while (!woken)
            pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
        return woken;
    }
    if (IS("sem"))
        return 1 + sem_wait(&semaphore);
    if (IS("join"))
        return 1 + pthread_join(waker, NULL);
    if (IS("sigwait"))
        return sigwait(&usr1, &signal) == 0 && signal == SIGUSR1;
    if (IS("sigsuspend"))
        return sigsuspend(&none) == -1 && errno == EINTR;
    if (IS("wait")) {
        int child = fork();
        if (child == 0)
            _exit(read(ends[0], &byte, 1) != 1);
        return waitpid(child, NULL, 0) == child;
    }
    CHECK(!"a way");
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "nanosleep";
    pthread_t waker, threads[MANY];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    sigset_t usr1;
    signal(SIGUSR1, on_signal);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    sleeper = pthread_self();
    event = eventfd(0, 0);
    sem_init(&semaphore, 0, 0);
    CHECK(pipe(ends) == 0);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&name, sizeof name.sun_family) == 0);
    CHECK(listen(listener, 1) == 0);
    if (IS("filter"))
        filter_calls();
    if (IS("traced"))
        be_traced();
    int count = IS("threads") ? MANY : IS("stress") ? 4 : 0;
    for (int i = 0; i < count; i++)
        pthread_create(
            &threads[i], NULL, IS("stress") ? stress : wait_and_allocate,
            (void *)(uintptr_t)(i + 1));
    fill();
    while (IS("threads") && waiting < MANY)
        usleep(1000);
    if (!IS("interrupted")) {
        CHECK(pthread_create(&waker, NULL, wake, NULL) == 0);
        puts("ready");
    }
    fflush(stdout);
    double began = now_ms();
    errno = 0;
    long result;
    if (IS("interrupted"))
        result = be_interrupted(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
    else if (IS("stress"))
        result = (long)(intptr_t)stress((void *)(uintptr_t)9);
    else
        result = sleep_for(way);
    if (result == 2)
        result = sleep_until_woken(way, waker);
    double ms = now_ms() - began;
    int error = errno;
    if (!IS("join") && !IS("interrupted"))
        pthread_join(waker, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    check_kept();
    printf("%s %ld %d %.0f\n", way, result, error, ms);
    return 0;
}
