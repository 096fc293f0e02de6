/* See fatal.h. */
#include "os/fatal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/probe.h"
#include "base/text.h"
#include "os/os.h"
#include "trace/trace.h"

/* A message in the making; the longest is a failed assertion. */
struct message {
    char buffer[512];
    struct text text;
};

static struct text *begin_message(struct message *message)
{
    text_init(&message->text, message->buffer, sizeof message->buffer);
    text_string(&message->text, "hakmem: ");
    return &message->text;
}

/* Begins the line about a pointer that the program passed to `call`. */
static struct text *begin_misuse(
    struct message *message, const char *call, const char *what, const void *pointer)
{
    struct text *text = begin_message(message);
    PROBE_2(misuse, pointer, call);
    text_string(text, call);
    text_string(text, "(): ");
    text_string(text, what);
    text_char(text, ' ');
    text_hex(text, (uintptr_t)pointer);
    return text;
}

static _Noreturn void print_and_abort(struct text *text, const void *pointer)
{
    text_char(text, '\n');
    text_terminate(text);
    const struct fatal_line line = {text->buffer, text_stored(text), pointer};
    os_write(STDERR, line.text, line.length);
    if (trace_now())
        trace_now()->misuse(&line);
    abort();
}

void fatal_pointer(
    const char *call, enum defect defect, const void *pointer, const void *base, size_t size)
{
    static const char *const names[] = {
        [DEFECT_DOUBLE_FREE] = "double free of",
        [DEFECT_WRITTEN] = "write after free of",
        [DEFECT_STRAY] = "stray write to",
        [DEFECT_OVERFLOW] = "write beyond the end of",
        [DEFECT_UNDERFLOW] = "write before the start of",
        [DEFECT_FOREIGN] = "invalid pointer",
        [DEFECT_LIBC] = "invalid pointer",
        [DEFECT_INTERIOR] = "invalid pointer",
        [DEFECT_MISALIGNED] = "invalid pointer"};
    struct message message;
    struct text *text = begin_misuse(&message, call, names[defect], pointer);
    if (defect == DEFECT_FOREIGN || defect == DEFECT_LIBC)
        text_string(text, ": not allocated by hakmem");
    if (defect == DEFECT_LIBC)
        text_string(text, ", but by the C library, it seems");
    if (defect == DEFECT_MISALIGNED)
        text_string(text, ": misaligned");
    if (defect == DEFECT_INTERIOR) {
        text_string(text, ": inside a block of ");
        text_unsigned(text, size);
        text_string(text, " bytes at ");
        text_hex(text, (uintptr_t)base);
    }
    print_and_abort(text, pointer);
}

void fatal_maker(const char *call, const void *pointer, const char *maker)
{
    struct message message;
    struct text *text = begin_misuse(&message, call, "wrong function for pointer", pointer);
    text_string(text, ": allocated by ");
    text_string(text, maker);
    print_and_abort(text, pointer);
}

void fatal_told(
    const char *call, const char *mistake, size_t told, const void *pointer, size_t made)
{
    struct message message;
    struct text *text = begin_misuse(&message, call, mistake, pointer);
    text_string(text, ": ");
    text_unsigned(text, told);
    text_string(text, ", not ");
    text_unsigned(text, made);
    print_and_abort(text, pointer);
}

void fatal_scope(
    const char *call, const char *what, const void *pointer, const char *in_what, const char *name)
{
    struct message message;
    struct text *text = begin_misuse(&message, call, what, pointer);
    text_string(text, in_what);
    text_string(text, "scope '");
    text_string(text, name);
    text_char(text, '\'');
    print_and_abort(text, pointer);
}

void fatal(const char *message)
{
    struct message whole;
    struct text *text = begin_message(&whole);
    text_string(text, message);
    print_and_abort(text, NULL);
}

void assert_failed(const char *expression, const char *file, int line)
{
    struct message message;
    struct text *text = begin_message(&message);
    text_string(text, "internal error: ");
    text_string(text, expression);
    text_string(text, " at ");
    text_string(text, file);
    text_char(text, ':');
    text_unsigned(text, (uint64_t)line);
    print_and_abort(text, NULL);
}
