/* trace/python: the functions of an interpreter, which this program plays, and one whose structures
 * make no sense.
 *
 * The log starts once a process, so each case is a child.
 */
#include "unit.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "os/identity.h"
#include "trace/log_store.h"
#include "trace/python.h"

/* ---- The interpreter, of version 3.12 -------------------------------------------------------- */

struct text {
    const void *head[2];
    uint64_t length, hash, state;
    char letters[64];
};

struct table {
    const void *head[2];
    uint64_t length, hash;
    uint8_t bytes[64];
};

struct code {
    const void *head[8];
    uint32_t sizes, first_line;
    const void *names[5];
    const struct text *file, *short_name, *name;
    const struct table *lines;
    const void *rest[6];
    uint16_t instructions[64];
};

struct frame {
    const struct code *code;
    struct frame *previous;
    const void *rest[5];
    const uint16_t *instruction;
    uint32_t top;
    uint8_t more[2], owner;
};

_Static_assert(offsetof(struct code, file) == 112, "a code's file");
_Static_assert(offsetof(struct code, lines) == 136, "a code's lines");
_Static_assert(offsetof(struct code, instructions) == 192, "a code's instructions");
_Static_assert(offsetof(struct frame, instruction) == 56, "a frame's instruction");
_Static_assert(offsetof(struct frame, owner) == 70, "a frame's owner");

unsigned long Py_Version = 0x030c01f0;
uint64_t _PyRuntime[64];
char PyCode_Type[8];
void *PyGILState_GetThisThreadState(void);
void _PyEval_EvalFrameDefault(void);

static struct frame *current;
static void *state[16] = {[7] = &current};
static void *thread_state = state;

void *PyGILState_GetThisThreadState(void)
{
    return thread_state;
}

void _PyEval_EvalFrameDefault(void)
{
}

enum { COMPACT = 0x20, ASCII = 0x40, ONE = 1 << 2, TWO = 2 << 2, FOUR = 4 << 2 };

static struct text file = {.length = 4, .state = COMPACT | ASCII | ONE, .letters = "a.py"};
static struct text name = {.length = 1, .state = COMPACT | ASCII | ONE, .letters = "f"};
/* Two instructions of the first line, one of the next, two of line 7; and one of no line. */
static struct table lines = {
    .length = 11,
    .bytes = {0x80 | 1, 0x12, 0x80 | 11 << 3, 1, 2, 0x80 | 13 << 3 | 1, 64 | 8, 0, 0xf8, 0x80, 1}};
static struct code function = {
    .head = {NULL, PyCode_Type}, .first_line = 2, .file = &file, .name = &name, .lines = &lines};

static struct frame frame_in(const struct code *code, unsigned unit, struct frame *previous)
{
    return (struct frame){
        .code = code, .previous = previous, .instruction = code->instructions + unit};
}

/* ---- Cases ----------------------------------------------------------------------------------- */

enum { MOST = 32 };
static uintptr_t places[MOST];

static void take(struct log_snapshot *snapshot)
{
    (void)snapshot;
}

static void say(const char *line, size_t length)
{
    (void)line;
    _exit(length > 0 ? 2 : 3);
}

static void in_a_child(void (*body)(void))
{
    int status;
    pid_t process = fork();
    if (process == 0) {
        char path[] = "/tmp/hakmem-python-XXXXXX";
        close(mkstemp(path));
        unlink(path);
        const struct log_settings settings = {
            .path = path, .limit_bytes = 8 * MIB, .sample_mean_bytes = 1, .take = take, .say = say};
        alarm(HANG_SECONDS);
        identity_start(NULL);
        CHECK(python_frame() == 0);
        log_start(&settings);
        body();
        unlink(path);
        _exit(0);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
}

static unsigned look(struct frame *frame)
{
    current = frame;
    uintptr_t found = python_frame();
    return found ? python_places(found, places, MOST) : 0;
}

static const struct log_site_record *record_of(uintptr_t place)
{
    CHECK(place & LOG_PYTHON);
    return store_record(LOG_SITES, (uint32_t)place);
}

static uint32_t line_of(unsigned unit)
{
    struct frame frame = frame_in(&function, unit, NULL);
    CHECK(look(&frame) == 1);
    return (uint32_t)record_of(places[0])->frame[0];
}

static void name_functions(void)
{
    struct frame outer = frame_in(&function, 2, NULL), entry = frame_in(&function, 0, &outer);
    struct frame inner = frame_in(&function, 4, &entry);
    entry.owner = 3;
    CHECK(look(&inner) == 2);
    const struct log_site_record *record = record_of(places[0]);
    CHECK(record->state == LOG_WHOLE && record->frames == 0);
    CHECK(record->frame[0] == (7 | (uint64_t)0x101 << 32));
    CHECK(strcmp((const char *)(record->frame + 1), "a.py") == 0);
    CHECK(strcmp(record->scope, "f") == 0);
    CHECK((uint32_t)record_of(places[1])->frame[0] == 3);
    uintptr_t known = places[1];
    CHECK(look(&outer) == 1 && places[0] == known);
    /* Other code in the same place. */
    static struct text other = {.length = 2, .state = COMPACT | TWO};
    memcpy((char *)&other + 56, "\x42\x04g\0", 4);
    function.name = &other;
    CHECK(look(&outer) == 1 && places[0] != known);
    CHECK(memcmp(record_of(places[0])->scope, "\x42\x04g\0", 5) == 0);
    CHECK((record_of(places[0])->frame[0] >> 32) == 0x102);
}

static void find_lines(void)
{
    CHECK(line_of(0) == 2 && line_of(1) == 2 && line_of(2) == 3);
    CHECK(line_of(3) == 7 && line_of(4) == 7);
    lines.length = UINT64_MAX;
    CHECK(line_of(5) == 2 || line_of(5) == 7);
    function.lines = (const struct table *)16;
    CHECK(line_of(2) == 2);
}

static void end_well(void)
{
    char *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct frame *edge = (struct frame *)(hole + 4096 - 64);
    CHECK(munmap(hole + 4096, 4096) == 0);
    struct frame first, second = frame_in(&function, 0, &first), bad = frame_in(&function, 0, edge);
    first = frame_in(&function, 1, &second);
    CHECK(look(&first) == MOST); /* a circle */
    first.owner = second.owner = 3;
    CHECK(look(&first) == 0);                  /* one of no functions */
    CHECK(look(&bad) == 1 && look(edge) == 0); /* a frame that is there in part */
    CHECK(look((struct frame *)((char *)&bad + 1)) == 0);
    bad.code = (const struct code *)edge;
    CHECK(look(&bad) == 0);
    struct code other = function;
    other.head[1] = &other;
    bad.code = &other;
    CHECK(look(&bad) == 0); /* no code */
    state[7] = (char *)edge + 64;
    CHECK(look(&first) == 0);
    thread_state = NULL;
    CHECK(look(&first) == 0);
}

static void take_any_text(void)
{
    static struct text texts[] = {
        {.length = UINT64_MAX, .state = COMPACT | ASCII | ONE},
        {.length = UINT64_MAX / 4, .state = COMPACT | FOUR},
        {.length = 1 << 30, .state = COMPACT | FOUR},
        {.length = 4, .state = COMPACT | 3 << 2},
        {.length = 4, .state = ONE}};
    struct code other = function;
    struct frame frame = frame_in(&other, 0, NULL);
    /* What a length that lies leads to is read if it can be; AddressSanitizer minds. */
    for (unsigned i = HAKMEM_SANITIZE_ADDRESS ? 3 : 0; i < ARRAY_LENGTH(texts); i++) {
        other.name = &texts[i];
        other.file = (const struct text *)((uintptr_t)i << 44 | 8);
        CHECK(look(&frame) == 1 && record_of(places[0])->state == LOG_WHOLE);
    }
}

static void know_versions(void)
{
    struct frame frame = frame_in(&function, 0, NULL);
    static const unsigned long others[] = {0, 0x030a00f0, 0x030e00f0, 0x040c00f0, 0x030d00f0};
    for (unsigned i = 0; i < ARRAY_LENGTH(others); i++) {
        Py_Version = others[i];
        CHECK(look(&frame) == 0);
    }
    memcpy(_PyRuntime, "xdebugpy", 8);
    thread_state = &current - 9;
    current = &frame;
    CHECK(python_frame() == (uintptr_t)&frame);
    _PyRuntime[2] = 1; /* without the lock */
    CHECK(python_frame() == 0);
}

#define CASE(body)                                                                                 \
    static void it_can_##body(void **unused)                                                       \
    {                                                                                              \
        (void)unused;                                                                              \
        in_a_child(body);                                                                          \
    }

CASE(name_functions)
CASE(find_lines)
CASE(end_well)
CASE(take_any_text)
CASE(know_versions)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_can_name_functions), cmocka_unit_test(it_can_find_lines),
        cmocka_unit_test(it_can_end_well),       cmocka_unit_test(it_can_take_any_text),
        cmocka_unit_test(it_can_know_versions),
    };
    return cmocka_run_group_tests_name("trace_python", tests, NULL, NULL);
}
