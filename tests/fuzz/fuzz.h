/* What the fuzz targets and their drivers share.
 *
 * A target is a program with one function that takes any bytes, runs the allocator by them, and
 * aborts with a message when a promise is broken. libFuzzer and AFL++ call it with inputs that
 * they invent; replay.c calls it with files.
 *
 *     replay.c or an engine        finds inputs, keeps its own malloc, that of the C library
 *       | bytes
 *     heap, options, text          one target each: what the bytes mean, and the checks; `heap`
 *       |                          is another one in the hardened preset
 *       | calls                    heap: the model of tests/stress
 *     the core                     compiled once more, with its debug assertions; the exported
 *       | os_map, os_clock_ms ...  names are changed to fuzzed_malloc ... (renamed.txt)
 *     system.c                     the system as the target wants it: clock, refusals
 *
 * Every input meets a core that has done nothing yet: system_reset brings back the first value of
 * each of its variables and unmaps all that it mapped. Then `heap` starts it as the library's
 * constructor does (core_start). So what an input finds, its file and the options alone show
 * again. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names that the engines know. Both return 0. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Set by replay.c: the target says on stderr what it makes of its input. */
extern bool fuzz_explain;

/* Prints the message and aborts, by which engines notice a finding. */
_Noreturn void fuzz_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define FUZZ_CHECK(x)                                                                              \
    do {                                                                                           \
        if (!(x))                                                                                  \
            fuzz_failed("%s:%d: %s", __FILE__, __LINE__, #x);                                      \
    } while (0)

/* The bytes of an input, taken from the front; zeros when there are no more. */
struct input {
    const uint8_t *next;
    size_t left;
};

static inline uint8_t input_byte(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->next++;
}

#endif
