/* See frames.h. */
#include "trace/frames.h"

#include <string.h>
#include <ucontext.h>

#include "trace/encoded.h"
#include "trace/trace.h"

/* Addresses may carry signatures in their upper bits. */
static uintptr_t plain_address(uintptr_t address)
{
    return sizeof(void *) == 8 && COLUMNS == 32 ? address & (((uintptr_t)1 << 48) - 1) : address;
}

/* What an expression yields: of its language, what compilers write for frames that they align. */
static bool evaluate(
    const uint8_t *expression, const struct frame *frame, struct reader *reader, uintptr_t *value)
{
    enum { DEREF = 0x06, PLUS_CONSTANT = 0x23, REGISTER_0 = 0x70 };
    struct bytes bytes = unwind_table_expression(expression);
    bool has_value = false;
    while (bytes.at < bytes.end && !bytes.is_bad) {
        uint8_t code = read_byte(&bytes), number = (uint8_t)(code - REGISTER_0);
        if (number < FRAME_REGISTERS && !has_value)
            *value = frame->registers[number] + (uintptr_t)read_leb(&bytes, true);
        else if (code == PLUS_CONSTANT && has_value)
            *value += (uintptr_t)read_leb(&bytes, false);
        else if (code != DEREF || !has_value || !read_word(reader, *value, value))
            return false;
        has_value = true;
    }
    return has_value && !bytes.is_bad;
}

static bool apply(
    const struct rule *rule, uintptr_t cfa, const struct frame *from, struct reader *reader,
    uintptr_t *value)
{
    uintptr_t address;
    switch (rule->kind) {
    case RULE_AT_OFFSET:
        return read_word(reader, cfa + (uintptr_t)rule->value, value);
    case RULE_OFFSET:
        *value = cfa + (uintptr_t)rule->value;
        return true;
    case RULE_REGISTER:
        if ((uint64_t)rule->value < FRAME_REGISTERS)
            *value = from->registers[rule->value];
        return (uint64_t)rule->value < FRAME_REGISTERS;
    case RULE_AT_EXPRESSION:
        return evaluate((const uint8_t *)(intptr_t)rule->value, from, reader, &address) &&
               read_word(reader, address, value);
    case RULE_SAME:
        return true;
    case RULE_UNDEFINED:
        break;
    }
    return false;
}

static bool up_by_rules(struct frame *frame, struct reader *reader, const struct rules *rules)
{
    struct frame from = *frame;
    uintptr_t cfa = from.registers[rules->cfa_register] + (uintptr_t)rules->cfa_offset;
    if (rules->cfa_expression && !evaluate(rules->cfa_expression, &from, reader, &cfa))
        return false;
    for (unsigned i = 0; i < FRAME_REGISTERS; i++)
        if (rules->column[i].kind != RULE_SAME)
            apply(&rules->column[i], cfa, &from, reader, &frame->registers[i]);
    frame->registers[STACK_POINTER] = cfa;
    uintptr_t pc = COLUMNS == 32 ? from.registers[RETURN_COLUMN % FRAME_REGISTERS] : 0;
    if (!apply(&rules->column[RETURN_COLUMN], cfa, &from, reader, &pc))
        return false;
    frame->pc = plain_address(pc);
    return true;
}

static bool up_by_pointer(struct frame *frame, struct reader *reader)
{
    uintptr_t pc, at = frame->registers[FRAME_POINTER] + TRACE_FRAME_SAVED * sizeof pc;
    if (reader->is_sampling && !in_stack(reader, at, 2 * sizeof at))
        return false; /* it was no frame pointer */
    if (at < frame->registers[STACK_POINTER] || !read_word(reader, at + sizeof at, &pc) ||
        !read_word(reader, at, &frame->registers[FRAME_POINTER]))
        return false;
    frame->registers[STACK_POINTER] = at + 2 * sizeof at;
    frame->pc = plain_address(pc);
    return true;
}

/* The program jumped to an unmapped address: goes to the caller of the last call. */
static bool up_from_nowhere(struct frame *frame, struct reader *reader)
{
    uintptr_t pc = frame->registers[RETURN_COLUMN % FRAME_REGISTERS];
    if (COLUMNS == 17) {
        if (!read_word(reader, frame->registers[STACK_POINTER], &pc))
            return false;
        frame->registers[STACK_POINTER] += sizeof pc;
    }
    frame->pc = plain_address(pc);
    return true;
}

/* How much of a context is read. */
enum { CONTEXT_BYTES = offsetof(ucontext_t, uc_mcontext) + sizeof(mcontext_t) };

/* A signal handler returns to a trampoline, which makes the system call that ends the handler. */
static bool is_trampoline(uintptr_t pc, struct reader *reader)
{
#if defined(__x86_64__)
    static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined(__aarch64__)
    static const uint8_t trampoline[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#else
    static const uint8_t trampoline[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0};
#endif
    return can_read(reader, pc, sizeof trampoline) &&
           memcmp((const void *)pc, trampoline, sizeof trampoline) == 0;
}

static bool up_from_handler(struct frame *frame, struct reader *reader)
{
    uintptr_t context = frame->registers[STACK_POINTER] + (COLUMNS == 32 ? 128 : 0);
    if (!can_read(reader, context, CONTEXT_BYTES))
        return false;
    frame_from_signal(frame, (const void *)context);
    return frame->pc != 0;
}

bool frame_up(struct frame *frame, struct reader *reader)
{
    struct rules rules;
    bool was_exact = frame->is_exact, found;
    uintptr_t pc = frame->pc, sp = frame->registers[STACK_POINTER];
    /* A call may be a function's last instruction; then the return address belongs to the next. */
    uintptr_t place = pc - !was_exact;
    reader_find(reader, place);
    frame->is_exact = false;
    frame->had_table = unwind_table_find(reader, place, &rules);
    bool may_be_trampoline = !frame->had_table || rules.is_handler;
    if (reader->find && may_be_trampoline && is_trampoline(pc, reader))
        return up_from_handler(frame, reader);
    if (frame->had_table)
        found = up_by_rules(frame, reader, &rules);
    else if (was_exact && !can_read(reader, pc, 1))
        found = up_from_nowhere(frame, reader);
    else
        found = up_by_pointer(frame, reader);
    /* A leaf that keeps its return address in a register has no frame of its own. */
    bool has_moved = frame->registers[STACK_POINTER] > sp || (was_exact && frame->pc != pc);
    return found && has_moved && frame->pc != 0;
}

/* ---- Where they start ------------------------------------------------------------------------ */

#if defined(__x86_64__)

#define REGISTER_NAMES                                                                             \
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",       \
        "r13", "r14", "r15"

void frame_from_signal(struct frame *frame, const void *context)
{
    static const uint8_t order[FRAME_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
    for (unsigned i = 0; i < FRAME_REGISTERS; i++)
        frame->registers[i] = (uintptr_t)registers[order[i]];
    frame->pc = (uintptr_t)registers[REG_RIP];
    frame->is_exact = true;
}

__attribute__((noinline)) void frame_from_here(struct frame *frame, struct reader *reader)
{
    uintptr_t *registers = frame->registers;
    *frame = (struct frame){.is_exact = true};
    __asm__ volatile("movq %%rbx, %0\nmovq %%rbp, %1\nmovq %%rsp, %2\nmovq %%r12, %3\n"
                     "movq %%r13, %4\nmovq %%r14, %5\nmovq %%r15, %6\nleaq 0(%%rip), %%rax\n"
                     "movq %%rax, %7\n"
                     : "=m"(registers[3]), "=m"(registers[6]), "=m"(registers[7]),
                       "=m"(registers[12]), "=m"(registers[13]), "=m"(registers[14]),
                       "=m"(registers[15]), "=m"(frame->pc)
                     :
                     : "rax");
    frame_up(frame, reader);
    __asm__ volatile(""); /* a tail call would overwrite the stack that it reads */
}

#elif defined(__aarch64__)

#define REGISTER_NAMES                                                                             \
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", \
        "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", \
        "x28", "x29", "x30", "sp"

void frame_from_signal(struct frame *frame, const void *context)
{
    const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
    for (unsigned i = 0; i < STACK_POINTER; i++)
        frame->registers[i] = machine->regs[i];
    frame->registers[STACK_POINTER] = machine->sp;
    frame->pc = machine->pc;
    frame->is_exact = true;
}

__attribute__((noinline)) void frame_from_here(struct frame *frame, struct reader *reader)
{
    uintptr_t *registers = frame->registers;
    *frame = (struct frame){.is_exact = true};
    __asm__ volatile("stp x19, x20, [%1, #152]\nstp x21, x22, [%1, #168]\n"
                     "stp x23, x24, [%1, #184]\nstp x25, x26, [%1, #200]\n"
                     "stp x27, x28, [%1, #216]\nstp x29, x30, [%1, #232]\n"
                     "mov x16, sp\nstr x16, [%1, #248]\nadr x16, .\nstr x16, %0\n"
                     : "=m"(frame->pc)
                     : "r"(registers)
                     : "x16", "memory");
    frame_up(frame, reader);
    __asm__ volatile(""); /* a tail call would overwrite the stack that it reads */
}

#else

#define REGISTER_NAMES                                                                             \
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",    \
        "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3",      \
        "t4", "t5", "t6"

void frame_from_signal(struct frame *frame, const void *context)
{
    const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
    for (unsigned i = 1; i < FRAME_REGISTERS; i++)
        frame->registers[i] = machine->__gregs[i];
    frame->registers[0] = 0;
    frame->pc = machine->__gregs[REG_PC];
    frame->is_exact = true;
}

#define STORE(name, number) "sd " name ", 8 * " #number "(%1)\n"

__attribute__((noinline)) void frame_from_here(struct frame *frame, struct reader *reader)
{
    uintptr_t *registers = frame->registers;
    *frame = (struct frame){.is_exact = true};
    __asm__ volatile(STORE("ra", 1) STORE("sp", 2) STORE("s0", 8) STORE("s1", 9) STORE("s2", 18)
                         STORE("s3", 19) STORE("s4", 20) STORE("s5", 21) STORE("s6", 22)
                             STORE("s7", 23) STORE("s8", 24) STORE("s9", 25) STORE("s10", 26)
                                 STORE("s11", 27) "1: auipc t0, 0\nsd t0, %0\n"
                     : "=m"(frame->pc)
                     : "r"(registers)
                     : "t0", "memory");
    frame_up(frame, reader);
    __asm__ volatile(""); /* a tail call would overwrite the stack that it reads */
}

#endif

const char *const frame_register_names[FRAME_REGISTERS] = {REGISTER_NAMES};
