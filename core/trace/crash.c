/* See crash.h. */
#include "trace/crash.h"

#include <errno.h>
#include <string.h>

#include "api/environment.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "base/text.h"
#include "hardened.h"
#include "os/fatal.h"
#include "os/os.h"
#include "report/report.h"
#include "report/stats.h"
#include "slab/bin.h"
#include "slab/shard.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "trace/address.h"
#include "trace/frames.h"
#include "trace/guard.h"
#include "trace/modules.h"
#include "trace/signals.h"

/* If a function calls itself without end, the innermost calls tell why. */
enum { FRAMES_MAX = 64 };

/* A piece of text has room for such a path and the rest of its line. */
enum { SHOWN_OF_PATH = 255 };

/* The reporting thread only; one at a time. */
static struct {
    int fd;
    char buffer[1024];
    struct text text;
} out;

/* The line of the misuse that the thread is about to abort for. */
static __thread const struct fatal_line *misuse;

/* ---- One reporter ---------------------------------------------------------------------------- */

enum claim { CLAIM_OURS, CLAIM_NESTED, CLAIM_OVER };

/* The reporter's process id above its thread id, which is 0 when the report is done. Atomic, any
 * thread. */
static uint64_t claimed;

static enum claim claim_report(void)
{
    enum { WAITS_MAX = 500, WAIT_MS = 10 };
    uint64_t process = (uint64_t)os_process_id() << 32, self = process | os_thread_id();
    for (int i = 0; i < WAITS_MAX; i++) {
        uint64_t seen = ATOMIC_LOAD_RELAXED(&claimed);
        if (seen == self)
            return CLAIM_NESTED;
        if (seen == process)
            return CLAIM_OVER;
        /* A claim that the parent process made is void. */
        if (seen >> 32 != process >> 32) {
            if (__atomic_compare_exchange_n(
                    &claimed, &seen, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return CLAIM_OURS;
            continue;
        }
        os_sleep_ms(WAIT_MS);
    }
    return CLAIM_OVER;
}

static void end_report(void)
{
    ATOMIC_STORE_RELEASE(&claimed, (uint64_t)os_process_id() << 32);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static struct text *start_piece(void)
{
    text_init(&out.text, out.buffer, sizeof out.buffer);
    return &out.text;
}

static void write_piece(void)
{
    os_write_quietly(out.fd, out.buffer, text_stored(&out.text));
}

static void print_number(struct text *text, const char *name, uint64_t value)
{
    text_string(text, name);
    text_unsigned(text, value);
}

static void print_program(struct text *text)
{
    char path[512];
    size_t length = os_read_link("/proc/self/exe", path, sizeof path);
    text_string(text, " in ");
    text_foreign(text, length ? path : "?", length ? length : 1);
    print_number(text, ", process ", (uint64_t)os_process_id());
    print_number(text, ", thread ", os_thread_id());
    text_char(text, '\n');
}

static void print_hex_bytes(struct text *text, const uint8_t *bytes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        text_char(text, "0123456789abcdef"[bytes[i] >> 4]);
        text_char(text, "0123456789abcdef"[bytes[i] & 15]);
    }
}

/* In the form that other tools read. */
static void write_frame(unsigned number, uintptr_t pc)
{
    struct text *text = start_piece();
    const struct module *module = modules_find(pc);
    print_number(text, "  #", number);
    text_char(text, ' ');
    text_hex(text, pc);
    if (module) {
        text_string(text, " (");
        text_foreign(text, module->path, size_min(module->path_bytes, SHOWN_OF_PATH));
        text_char(text, '+');
        text_hex(text, pc - module->bias);
        text_char(text, ')');
        if (module->build_id_bytes)
            text_string(text, " (BuildId: ");
        print_hex_bytes(text, module->build_id, module->build_id_bytes);
        text_string(text, module->build_id_bytes ? ")" : "");
    }
    text_char(text, '\n');
    write_piece();
}

static void write_backtrace(struct frame *frame, struct reader *reader)
{
    unsigned number = 0;
    text_string(start_piece(), "backtrace:\n");
    write_piece();
    do
        write_frame(number, frame->pc);
    while (frame_up(frame, reader) && ++number < FRAMES_MAX);
    if (number < FRAMES_MAX)
        return;
    text_string(start_piece(), "  and more\n");
    write_piece();
}

static void write_stack(const char *what, uint32_t thread, const struct site *site)
{
    struct text *text = start_piece();
    text_string(text, what);
    print_number(text, " by thread ", thread);
    text_string(text, ":\n");
    write_piece();
    for (unsigned i = 0; site && i < site->frames && site->frame[i] < LOG_PYTHON; i++)
        write_frame(i, site->frame[i]);
}

/* The stack that allocated the block at the address, if it is sampled. The record may belong to
 * another sample by now; sites stay. */
static void write_sample(const void *address)
{
    struct sample copy;
    struct site site;
    const struct sample *sample = address_sample(address);
    if (sample && modules_read((uintptr_t)sample, &copy, sizeof copy) && copy.site &&
        modules_read((uintptr_t)copy.site, &site, sizeof site) && site.frames <= SITE_FRAMES_MAX)
        write_stack("allocated", copy.thread, copy.site);
}

/* The stacks that allocated and freed the block at the address, if it is guarded or sampled. */
static void write_origin(const void *address)
{
    if (!guard_covers(address)) {
        write_sample(address);
        return;
    }
    const struct guard *guard = guard_of(address);
    if (!guard->born)
        return;
    write_stack("allocated", guard->born_by, guard->born);
    if (guard->freed_by)
        write_stack("freed", guard->freed_by, guard->freed);
}

/* Describes the address that the program died of. */
static void write_address(const void *address)
{
    struct text *text = start_piece();
    text_hex(text, (uintptr_t)hardened_address(address));
    text_string(text, ": ");
    if (!address_describe(text, address, MIB))
        text_string(text, "not of hakmem's memory");
    text_char(text, '\n');
    address_describe_neighbours(text, address);
    write_piece();
}

static void write_registers(const struct frame *frame)
{
    struct text *text = start_piece();
    text_string(text, "registers:\n  pc   ");
    text_hex(text, frame->pc);
    text_char(text, '\n');
    write_piece();
    for (unsigned i = 0; i < FRAME_REGISTERS; i++) {
        text = start_piece();
        text_string(text, "  ");
        text_string_padded(text, frame_register_names[i], 5);
        text_hex(text, frame->registers[i]);
        size_t length = text->length;
        text_string(text, "  ");
        if (!address_describe(text, (const void *)frame->registers[i], 0))
            text->length = length;
        text_char(text, '\n');
        write_piece();
    }
}

static void write_tiers(void)
{
    uint64_t slabs[TIER_COUNT] = {0}, bytes[TIER_COUNT] = {0};
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        enum hakmem_tier tier = stats_tier_of(size_class);
        uint64_t count = 0;
        for (unsigned shard = 0; shard < shard_count(); shard++)
            count += ATOMIC_LOAD_RELAXED(&bin_of(shard, size_class)->slab_count);
        slabs[tier] += count;
        bytes[tier] += count * size_classes[size_class].units * UNIT_SIZE;
    }
    struct text *text = start_piece();
    for (unsigned tier = 0; tier < HAKMEM_TIER_BIG; tier++) {
        text_string(text, "  ");
        text_string(text, stats_tier_names[tier]);
        print_number(text, ": ", slabs[tier]);
        print_number(text, " slabs, ", bytes[tier]);
        text_string(text, " bytes\n");
    }
    print_number(text, "  big: ", big_live_bytes());
    print_number(text, " bytes live, ", big_cache_bytes());
    text_string(text, " bytes cached\n");
    write_piece();
}

/* Without locks: the thread may have been interrupted while it held one. */
static void write_memory(void)
{
    struct page_heap_stats pages = page_heap_stats();
    struct text *text = start_piece();
    text_string(text, "memory:\n");
    write_piece();
    write_tiers();
    text = start_piece();
    print_number(text, "  superslabs: ", pages.superslabs);
    print_number(text, ", pages in slabs: ", pages.used_pages);
    print_number(text, ", free and dirty: ", pages.dirty_free_pages);
    print_number(text, "\n  given back so far: ", pressure_total());
    text_string(text, " bytes\n");
    write_piece();
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* As SEGV_MTESERR, which old C libraries do not know. */
enum { WRONG_TAG = 9 };

static void print_signal(struct text *text, int signal, const siginfo_t *info)
{
    text_string(
        text, signal == SIGSEGV  ? "hakmem: SIGSEGV"
              : signal == SIGBUS ? "hakmem: SIGBUS"
                                 : "hakmem: SIGABRT");
    if (info->si_code <= 0) {
        if (signal != SIGABRT || info->si_pid != os_process_id())
            print_number(text, " sent by process ", (uint64_t)info->si_pid);
        return;
    }
    if (info->si_code == SI_KERNEL) {
        text_string(text, " at an address that no program can have");
        return;
    }
    text_string(text, " at ");
    text_hex(text, (uintptr_t)info->si_addr);
    if (signal == SIGSEGV && info->si_code == SEGV_MAPERR)
        text_string(text, ", where nothing is mapped,");
    if (signal == SIGSEGV && info->si_code == SEGV_ACCERR)
        text_string(text, ", where that is not allowed,");
    if (signal == SIGSEGV && info->si_code == WRONG_TAG)
        text_string(text, ", by a pointer of another block,");
}

static bool has_address(const siginfo_t *info)
{
    return info->si_code > 0 && info->si_code != SI_KERNEL;
}

static void write_report(int signal, const siginfo_t *info, const void *context)
{
    struct frame frame;
    struct reader reader = {.find = modules_code};
    struct text *text = start_piece();
    print_signal(text, signal, info);
    print_program(text);
    write_piece();
    if (misuse)
        os_write_quietly(out.fd, misuse->text, misuse->length);
    if (misuse && misuse->pointer)
        write_address(misuse->pointer);
    else if (has_address(info))
        write_address(info->si_addr);
    memset(&frame, 0, sizeof frame);
    frame_from_signal(&frame, context);
    write_registers(&frame);
    modules_open();
    write_backtrace(&frame, &reader);
    if (misuse && misuse->pointer)
        write_origin(misuse->pointer);
    else if (has_address(info))
        write_origin(info->si_addr);
    modules_close();
    write_memory();
}

/* True: the caller has to close the output. */
static bool open_output(void)
{
    const char *path = environment_file(CRASH_FILE);
    bool is_standing = true;
    out.fd = path ? report_open("crash_file", path, 0644, &is_standing) : STDERR;
    if (out.fd < 0)
        out.fd = STDERR;
    return !is_standing && out.fd != STDERR;
}

/* If no report is asked for, only crashes at guarded blocks are reported. */
static bool is_reported(int signal, const siginfo_t *info)
{
    return environment_wants_crash_report() ||
           (signal != SIGABRT && has_address(info) && guard_covers(info->si_addr));
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
    int kept = errno;
    if (!is_reported(signal, info)) {
        signals_pass_on(signal, info, context, false);
        return;
    }
    enum claim claim = claim_report();
    if (claim == CLAIM_OURS) {
        bool is_file = open_output();
        write_report(signal, info, context);
        if (is_file)
            os_close(out.fd);
        end_report();
    }
    errno = kept;
    signals_pass_on(signal, info, context, claim == CLAIM_NESTED);
}

/* Reports a misuse after its line, unless the handler of SIGABRT is about to. */
void crash_tell_misuse(const struct fatal_line *line)
{
    misuse = line;
    if ((environment_wants_crash_report() && signals_are_caught(SIGABRT)) ||
        claim_report() != CLAIM_OURS)
        return;
    struct frame frame;
    struct reader reader = {.find = modules_code};
    out.fd = STDERR;
    struct text *text = start_piece();
    text_string(text, " ");
    print_program(text);
    write_piece();
    if (line->pointer)
        write_address(line->pointer);
    modules_open();
    frame_from_here(&frame, &reader);
    write_backtrace(&frame, &reader);
    if (line->pointer)
        write_origin(line->pointer);
    modules_close();
    end_report();
}

void crash_start(void)
{
    if (!environment_wants_crash_report() && !POLICY(sample_guards))
        return;
    signals_catch(on_crash);
    signals_give_stack(NULL);
}
