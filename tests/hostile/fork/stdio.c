/* A thread reads long lines with getline, a second one calls fflush(NULL), and the first thread of
 * the process forks. A correct program, which must not hang: getline holds a stream and wants
 * memory, fflush holds the list of streams and wants the stream, fork wants the list.
 *
 * usage: stdio FORKS
 */
#include "hostile.h"

static char path[] = "/tmp/hakmem-hostile-XXXXXX";

static void write_long_lines(void)
{
    enum { LINES = 4, LINE_BYTES = 300000 };
    int descriptor = mkstemp(path);
    REQUIRE(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    for (int line = 0; line < LINES; line++) {
        for (int i = 0; i < LINE_BYTES; i++) {
            fputc('a', file);
        }
        fputc('\n', file);
    }
    REQUIRE(fclose(file) == 0);
}

static void *read_lines(void *unused)
{
    for (;;) {
        FILE *file = fopen(path, "r");
        char *line = NULL;
        size_t capacity = 0;
        while (file && getline(&line, &capacity, file) > 0) {
        }
        free(line);
        if (file) {
            fclose(file);
        }
    }
    return unused;
}

static void *flush_all(void *unused)
{
    for (;;) {
        fflush(NULL);
    }
    return unused;
}

static void remove_and_bark(int signal_number)
{
    unlink(path);
    watch_barks(signal_number);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    size_t forks = argument(argc, argv, 1);
    write_long_lines();
    REQUIRE(pthread_create(&thread, NULL, read_lines, NULL) == 0);
    REQUIRE(pthread_create(&thread, NULL, flush_all, NULL) == 0);
    for (size_t i = 0; i < forks; i++) {
        watch("fork beside getline and fflush(NULL)");
        signal(SIGALRM, remove_and_bark);
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            free(allocate(100));
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    alarm(0);
    unlink(path);
    conclude();
    _exit(0);
}
