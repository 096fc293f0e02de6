/* Reads the tables that compilers write for exceptions: how to find a caller's registers, for each
 * place in the code. They are described in the Linux Standard Base and in DWARF, chapter 6.4.
 */
#ifndef TRACE_UNWIND_TABLE_H
#define TRACE_UNWIND_TABLE_H

#include "trace/encoded.h"
#include "trace/reader.h"

/* The numbers of registers, and of what has a rule: on x86-64 the return address has no register.
 */
#if defined(__x86_64__)
enum { FRAME_REGISTERS = 16, FRAME_POINTER = 6, STACK_POINTER = 7 };
enum { RETURN_COLUMN = 16, COLUMNS = 17 };
#elif defined(__aarch64__)
enum { FRAME_REGISTERS = 32, FRAME_POINTER = 29, STACK_POINTER = 31 };
enum { RETURN_COLUMN = 30, COLUMNS = 32 };
#else
enum { FRAME_REGISTERS = 32, FRAME_POINTER = 8, STACK_POINTER = 2 };
enum { RETURN_COLUMN = 1, COLUMNS = 32 };
#endif

/* How a register of the caller, or the frame's address, is found. */
enum rule_kind {
    RULE_SAME,
    RULE_UNDEFINED,
    RULE_AT_OFFSET,
    RULE_OFFSET,
    RULE_REGISTER,
    RULE_AT_EXPRESSION
};

struct rule {
    enum rule_kind kind : 8;
    long
        value : 56; /* an offset from the frame's address, a register, or where the expression is */
};

struct rules {
    unsigned cfa_register;
    long cfa_offset;
    const uint8_t *cfa_expression; /* NULL: by register and offset */
    bool has_cfa;
    bool is_handler; /* the code calls a handler of signals, and does nothing else */
    struct rule column[COLUMNS];
};

/* Finds the rules that hold at the place, which lies in the reader's code; false: there are none,
 * or none that can be used. */
bool unwind_table_find(struct reader *reader, uintptr_t pc, struct rules *rules);

/* The expression that begins with its length there. */
struct bytes unwind_table_expression(const uint8_t *at);

#endif
