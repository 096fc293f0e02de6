/* See python.h. */
#include "trace/python.h"

#include <string.h>

#include "trace/log.h"
#include "trace/reader.h"
#include "trace/site.h"

/* NULL: the program is not Python. */
#define OF_PYTHON __attribute__((weak, visibility("default")))
extern void *PyGILState_GetThisThreadState(void) OF_PYTHON;
extern void _PyEval_EvalFrameDefault(void) OF_PYTHON;
extern const unsigned long Py_Version OF_PYTHON;
extern const uint64_t _PyRuntime[] OF_PYTHON;
extern const char PyCode_Type[] OF_PYTHON;

/* ---- The interpreter's structures ------------------------------------------------------------ */

/* Where they differ from version to version: in what a thread's state points to, or itself; in a
 * frame; in the code of a function. */
enum field { CURRENT, PREVIOUS, CODE, OWNER, FIRST_LINE, START, FIELDS };

enum { THREAD_FRAMES = 56 };
enum { FRAME_INSTRUCTION = 56, FRAME_BYTES = 72, OWNED_BY_C = 3 };
enum { CODE_TYPE = 8, CODE_FILE = 112, CODE_NAME = 128, CODE_LINES = 136, CODE_BYTES = 144 };
enum { OBJECT_LENGTH = 16, OBJECT_BYTES = 32, TEXT_STATE = 32, TEXT_BYTES = 40 };

static unsigned minor_version(void)
{
    return Py_Version >> 24 == 3 ? Py_Version >> 16 & 0xff : 0;
}

static uintptr_t at(uintptr_t structure, enum field field)
{
    static const uint8_t offsets[][FIELDS] = {
        {8, 48, 32, 69, 72, 184}, {0, 8, 0, 70, 68, 192}, {72, 8, 0, 70, 68, 200}};
    return structure + offsets[minor_version() - 11][field];
}

/* 3.13 may have been built without the lock, and says so: its structures are others. */
static bool is_known_version(void)
{
    static const uint64_t described = 0x7970677562656478; /* "xdebugpy" */
    unsigned minor = minor_version();
    return minor == 11 || minor == 12 ||
           (minor == 13 && _PyRuntime[0] == described && !_PyRuntime[2]);
}

static uintptr_t peek(uintptr_t address)
{
    return *(const volatile uintptr_t *)address;
}

static bool can_read_words(struct reader *reader, uintptr_t address, size_t size)
{
    return address % sizeof address == 0 && can_read(reader, address, size);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Copies the end of a text, and returns how many bytes a letter has; 0: it cannot be read. */
static unsigned copy_text(struct reader *reader, uintptr_t text, char *to, size_t room)
{
    if (!can_read_words(reader, text, TEXT_BYTES))
        return 0;
    size_t length = peek(text + OBJECT_LENGTH), more = minor_version() == 11 ? 8 : 0;
    unsigned state = (unsigned)peek(text + TEXT_STATE), kind = state >> 2 & 7;
    bool is_compact = state & 0x20, is_ascii = state & 0x40;
    if (!is_compact || (kind != 1 && kind != 2 && kind != 4))
        return 0;
    uintptr_t letters = text + TEXT_BYTES + more + (is_ascii ? 0 : 16 + more);
    size_t kept = size_min(length, room / kind);
    letters += (length - kept) * kind;
    if (!can_read(reader, letters, kept * kind))
        return 0;
    memcpy(to, (const void *)letters, kept * kind);
    return kind;
}

/* By a table of lines, in which the head of each entry alone has its highest bit set. It says how
 * the entry tells its line, and of how many instructions it is. */
static uint32_t line_at(const uint8_t *table, const uint8_t *end, uint32_t line, uintptr_t place)
{
    enum { SAME_LINE = 10, TWO_FURTHER = 12, DISTANCE = 13, DISTANCE_TOO = 14 };
    for (uintptr_t next = 0; table < end && next <= place;) {
        uint32_t head = *table++, code = head >> 3 & 15, value = 0;
        if (code >= SAME_LINE && code <= TWO_FURTHER)
            line += code - (uint32_t)SAME_LINE;
        /* A number of six bits a byte, of which the lowest is its sign. */
        bool is_told = code == DISTANCE || code == DISTANCE_TOO;
        for (unsigned shift = 0; table < end && !(*table & 0x80); table++, shift += 6) {
            value |= is_told && shift < 32 ? (*table & 0x3fu) << shift : 0;
            is_told = is_told && *table & 0x40;
        }
        line += value & 1 ? 0 - (value >> 1) : value >> 1;
        next += (head & 7) + 1;
    }
    return line;
}

static uint32_t line_of(struct reader *reader, uintptr_t code, uintptr_t place)
{
    enum { TABLE_BYTES_MAX = 64 * KIB };
    uintptr_t lines = peek(code + CODE_LINES);
    uint32_t line = *(const volatile uint32_t *)at(code, FIRST_LINE);
    if (!can_read_words(reader, lines, OBJECT_BYTES))
        return line;
    size_t length = size_min(peek(lines + OBJECT_LENGTH), TABLE_BYTES_MAX);
    const uint8_t *table = (const uint8_t *)lines + OBJECT_BYTES;
    bool is_there = length && can_read(reader, (uintptr_t)table, length);
    return is_there ? line_at(table, table + length, line, place) : line;
}

static void log_names(struct reader *reader, uint32_t number, uintptr_t code, uintptr_t place)
{
    char function[LOG_FUNCTION_BYTES] = {0}, file[LOG_FILE_BYTES] = {0};
    unsigned kinds = copy_text(reader, peek(code + CODE_NAME), function, sizeof function);
    kinds |= copy_text(reader, peek(code + CODE_FILE), file, sizeof file) << 8;
    log_place(number, line_of(reader, code, place), kinds, function, file);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* 0: there is no code of a function. */
static uintptr_t place_of(struct reader *reader, uintptr_t code, uintptr_t instruction)
{
    if (!can_read_words(reader, code, CODE_BYTES) ||
        peek(code + CODE_TYPE) != (uintptr_t)PyCode_Type)
        return 0;
    /* One that has not begun is before its first instruction. */
    uintptr_t start = at(code, START), place = instruction > start ? (instruction - start) / 2 : 0;
    /* Not that of code which lay there before. */
    const uintptr_t key[] = {
        code, place, peek(code + CODE_NAME), peek(code + CODE_FILE), peek(code + CODE_LINES)};
    uint32_t number = site_find(key, ARRAY_LENGTH(key), 0, "")->number;
    if (number && !log_knows_site(number))
        log_names(reader, number, code, place);
    return number ? LOG_PYTHON | number : 0;
}

uintptr_t python_frame(void)
{
    struct reader reader = {0};
    uintptr_t frame = 0;
    if (LIKELY(!PyGILState_GetThisThreadState) || !log_is_on() || !is_known_version())
        return 0;
    uintptr_t state = (uintptr_t)PyGILState_GetThisThreadState();
    if (state && minor_version() < 13 && !read_word(&reader, state + THREAD_FRAMES, &state))
        return 0;
    return state && read_word(&reader, at(state, CURRENT), &frame) ? frame : 0;
}

bool python_runs(uintptr_t pc)
{
    enum { LENGTH_MAX = 64 * KIB };
    return pc - (uintptr_t)_PyEval_EvalFrameDefault < LENGTH_MAX;
}

unsigned python_places(uintptr_t frame, uintptr_t *places, unsigned most)
{
    enum { LOOKS_MAX = 128 };
    struct reader frames = {0}, codes = {0};
    unsigned count = 0;
    for (unsigned looks = 0; count < most && looks < LOOKS_MAX; looks++) {
        if (!frame || !can_read_words(&frames, frame, FRAME_BYTES))
            break;
        bool is_function = *(const volatile uint8_t *)at(frame, OWNER) < OWNED_BY_C;
        uintptr_t code = peek(at(frame, CODE)), place = peek(frame + FRAME_INSTRUCTION);
        if (is_function && (place = place_of(&codes, code, place)))
            places[count++] = place;
        frame = peek(at(frame, PREVIOUS));
    }
    return count;
}
