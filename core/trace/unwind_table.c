/* See unwind_table.h. */
#include "trace/unwind_table.h"

#include <string.h>

#include "trace/encoded.h"
#include "trace/modules.h"

/* A common entry, which holds for all frame entries that refer to it. */
struct common {
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t return_column;
    uint8_t encoding;
    bool has_augmentation;
};

/* ---- Finding the entry ----------------------------------------------------------------------- */

/* Most entries are shorter; the rest is cut off, and read as far as it goes. */
enum { ENTRY_BYTES = 1024 };

struct entry {
    uint8_t buffer[ENTRY_BYTES];
    struct bytes bytes;
    uintptr_t id_at; /* address of the second word, which says what kind of entry it is */
    uint32_t id;
};

static bool read_entry(uintptr_t address, struct entry *entry)
{
    uint32_t head[2];
    if (!modules_read(address, head, sizeof head) || head[0] < 4 || head[0] >= 0xfffffff0)
        return false;
    size_t size = size_min(head[0] - 4, ENTRY_BYTES);
    entry->id_at = address + 4;
    entry->id = head[1];
    entry->bytes = (struct bytes){entry->buffer, entry->buffer + size, address + 8 + size, false};
    return modules_read(address + 8, entry->buffer, size);
}

/* The header has a table of pairs, sorted by the first: where code begins, and its entry, both
 * relative to the header. Returns the address of the entry; 0: none. */
static uintptr_t search_table(uintptr_t header, uintptr_t pc)
{
    enum { USUAL_TABLE = 0x3b, PAIR = 8 };
    uint8_t start[12];
    if (!modules_read(header, start, sizeof start) || start[0] != 1 || start[3] != USUAL_TABLE)
        return 0;
    struct bytes bytes = {start + 4, start + sizeof start, header + sizeof start, false};
    read_encoded(&bytes, start[1]);
    uintptr_t low = 0, high = read_encoded(&bytes, start[2]);
    uintptr_t table = header + (uintptr_t)(bytes.at - start);
    int32_t pair[2] = {0};
    if (bytes.is_bad)
        return 0;
    while (low < high) {
        uintptr_t middle = low + (high - low) / 2;
        if (!modules_read(table + middle * PAIR, pair, sizeof pair))
            return 0;
        if (header + (uintptr_t)(intptr_t)pair[0] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || !modules_read(table + (low - 1) * PAIR, pair, sizeof pair))
        return 0;
    return header + (uintptr_t)(intptr_t)pair[1];
}

/* Leaves the entry's bytes at its instructions. */
static bool read_common(uintptr_t address, struct entry *entry, struct common *common)
{
    if (!read_entry(address, entry) || entry->id != 0)
        return false;
    struct bytes *bytes = &entry->bytes;
    uint8_t version = (uint8_t)read_fixed(bytes, 1);
    const char *letter = (const char *)bytes->at;
    while (read_fixed(bytes, 1) && !bytes->is_bad)
        continue;
    common->code_factor = read_leb(bytes, false);
    common->data_factor = (int64_t)read_leb(bytes, true);
    common->return_column = version == 1 ? read_fixed(bytes, 1) : read_leb(bytes, false);
    common->encoding = ENCODED_ABSOLUTE;
    common->has_augmentation = *letter == 'z';
    if (!common->has_augmentation)
        return *letter == '\0' && !bytes->is_bad;
    uint64_t length = read_leb(bytes, false);
    const uint8_t *data = bytes->at;
    for (letter++; *letter && !bytes->is_bad; letter++) {
        if (*letter == 'R')
            common->encoding = (uint8_t)read_fixed(bytes, 1);
        else if (*letter == 'P')
            read_encoded(bytes, (uint8_t)(read_fixed(bytes, 1) & ENCODED_FORMAT));
        else if (*letter == 'L')
            read_fixed(bytes, 1);
    }
    if (length > (uint64_t)(bytes->end - data))
        return false;
    bytes->at = data + length;
    return !bytes->is_bad;
}

/* ---- Instructions ---------------------------------------------------------------------------- */

struct machine {
    const struct common *common;
    struct rules rules;
    struct rules first; /* after the common entry's instructions */
    struct rules kept[4];
    unsigned kept_count;
    uintptr_t place, pc; /* instructions hold from `place` on; those beyond `pc` do not matter */
};

static void set_rule(struct machine *machine, uint64_t column, enum rule_kind kind, int64_t value)
{
    if (column < COLUMNS)
        machine->rules.column[column] = (struct rule){kind, (long)value};
}

static void advance(struct machine *machine, uint64_t steps)
{
    machine->place += steps * machine->common->code_factor;
}

static void set_cfa(struct machine *machine, uint64_t column, int64_t offset)
{
    machine->rules.has_cfa = column < FRAME_REGISTERS;
    machine->rules.cfa_register = (unsigned)column;
    machine->rules.cfa_offset = (long)offset;
}

/* Instructions with the operand in their lower bits; false: another kind. */
static bool step_short(struct machine *machine, struct bytes *bytes, uint8_t code)
{
    uint64_t operand = code & 0x3f;
    switch (code >> 6) {
    case 1: /* advance_loc */
        advance(machine, operand);
        return true;
    case 2: /* offset */
        set_rule(
            machine, operand, RULE_AT_OFFSET,
            (int64_t)read_leb(bytes, false) * machine->common->data_factor);
        return true;
    case 3: /* restore */
        if (operand < COLUMNS)
            machine->rules.column[operand] = machine->first.column[operand];
        return true;
    default:
        return false;
    }
}

enum instruction {
    NOP = 0x00,
    SET_LOC,
    ADVANCE_LOC1,
    ADVANCE_LOC2,
    ADVANCE_LOC4,
    OFFSET_EXTENDED,
    RESTORE_EXTENDED,
    UNDEFINED,
    SAME_VALUE,
    REGISTER,
    REMEMBER_STATE,
    RESTORE_STATE,
    DEF_CFA,
    DEF_CFA_REGISTER,
    DEF_CFA_OFFSET,
    DEF_CFA_EXPRESSION,
    EXPRESSION,
    OFFSET_EXTENDED_SF,
    DEF_CFA_SF,
    DEF_CFA_OFFSET_SF,
    VAL_OFFSET,
    VAL_OFFSET_SF,
    VAL_EXPRESSION,
    NEGATE_RA_STATE = 0x2d,
    GNU_ARGS_SIZE = 0x2e
};

static void skip_expression(struct bytes *bytes)
{
    uint64_t length = read_leb(bytes, false);
    if (length > (uint64_t)(bytes->end - bytes->at))
        bytes->is_bad = true;
    else
        bytes->at += length;
}

static void keep_state(struct machine *machine, struct bytes *bytes)
{
    if (machine->kept_count < ARRAY_LENGTH(machine->kept))
        machine->kept[machine->kept_count++] = machine->rules;
    else
        bytes->is_bad = true;
}

static void restore_state(struct machine *machine, struct bytes *bytes)
{
    if (machine->kept_count)
        machine->rules = machine->kept[--machine->kept_count];
    else
        bytes->is_bad = true;
}

/* Instructions that define the frame's address; false: another kind. */
static bool step_cfa(struct machine *machine, struct bytes *bytes, uint8_t code)
{
    struct rules *rules = &machine->rules;
    uint64_t column = rules->cfa_register;
    int64_t factor = machine->common->data_factor;
    switch (code) {
    case DEF_CFA:
        column = read_leb(bytes, false);
        set_cfa(machine, column, (int64_t)read_leb(bytes, false));
        return true;
    case DEF_CFA_SF:
        column = read_leb(bytes, false);
        set_cfa(machine, column, (int64_t)read_leb(bytes, true) * factor);
        return true;
    case DEF_CFA_REGISTER:
        set_cfa(machine, read_leb(bytes, false), rules->cfa_offset);
        return true;
    case DEF_CFA_OFFSET:
        set_cfa(machine, column, (int64_t)read_leb(bytes, false));
        return true;
    case DEF_CFA_OFFSET_SF:
        set_cfa(machine, column, (int64_t)read_leb(bytes, true) * factor);
        return true;
    case DEF_CFA_EXPRESSION:
        skip_expression(bytes);
        rules->has_cfa = false;
        return true;
    default:
        return false;
    }
}

/* Instructions that define a register; any other is an error. */
static void step_register(struct machine *machine, struct bytes *bytes, uint8_t code)
{
    int64_t factor = machine->common->data_factor;
    uint64_t column = code == GNU_ARGS_SIZE || code == NOP ? COLUMNS : read_leb(bytes, false);
    switch (code) {
    case OFFSET_EXTENDED:
        set_rule(machine, column, RULE_AT_OFFSET, (int64_t)read_leb(bytes, false) * factor);
        break;
    case OFFSET_EXTENDED_SF:
        set_rule(machine, column, RULE_AT_OFFSET, (int64_t)read_leb(bytes, true) * factor);
        break;
    case VAL_OFFSET:
        set_rule(machine, column, RULE_OFFSET, (int64_t)read_leb(bytes, false) * factor);
        break;
    case VAL_OFFSET_SF:
        set_rule(machine, column, RULE_OFFSET, (int64_t)read_leb(bytes, true) * factor);
        break;
    case RESTORE_EXTENDED:
        if (column < COLUMNS)
            machine->rules.column[column] = machine->first.column[column];
        break;
    case UNDEFINED:
        set_rule(machine, column, RULE_UNDEFINED, 0);
        break;
    case SAME_VALUE:
        set_rule(machine, column, RULE_SAME, 0);
        break;
    case REGISTER:
        set_rule(machine, column, RULE_REGISTER, (int64_t)read_leb(bytes, false));
        break;
    case EXPRESSION:
    case VAL_EXPRESSION:
        skip_expression(bytes);
        set_rule(machine, column, RULE_UNDEFINED, 0);
        break;
    case GNU_ARGS_SIZE:
        read_leb(bytes, false);
        break;
    default:
        bytes->is_bad = true;
    }
}

static void step(struct machine *machine, struct bytes *bytes)
{
    uint8_t code = (uint8_t)read_fixed(bytes, 1);
    if (step_short(machine, bytes, code) || step_cfa(machine, bytes, code))
        return;
    switch (code) {
    case NOP:
    case NEGATE_RA_STATE: /* signatures of return addresses are taken off all of them */
        return;
    case SET_LOC:
        machine->place = read_encoded(bytes, machine->common->encoding);
        return;
    case ADVANCE_LOC1:
    case ADVANCE_LOC2:
    case ADVANCE_LOC4:
        advance(machine, read_fixed(bytes, (size_t)1 << (code - ADVANCE_LOC1)));
        return;
    case REMEMBER_STATE:
        keep_state(machine, bytes);
        return;
    case RESTORE_STATE:
        restore_state(machine, bytes);
        return;
    default:
        step_register(machine, bytes, code);
    }
}

static bool run(struct machine *machine, struct bytes *bytes)
{
    while (bytes->at < bytes->end && machine->place <= machine->pc && !bytes->is_bad)
        step(machine, bytes);
    return !bytes->is_bad;
}

bool unwind_table_find(uintptr_t pc, struct rules *rules)
{
    /* One thread at a time is here, perhaps on a short stack. */
    static struct entry frame_entry, common_entry;
    static struct machine machine;
    struct common common = {0};
    const struct module *module = modules_find(pc);
    uintptr_t at = module && module->unwind_table ? search_table(module->unwind_table, pc) : 0;
    if (!at || !read_entry(at, &frame_entry) ||
        !read_common(frame_entry.id_at - frame_entry.id, &common_entry, &common))
        return false;
    struct bytes *bytes = &frame_entry.bytes;
    uintptr_t start = read_encoded(bytes, common.encoding);
    uintptr_t length = read_encoded(bytes, common.encoding & ENCODED_FORMAT);
    if (bytes->is_bad || pc < start || pc - start >= length)
        return false;
    if (common.has_augmentation)
        skip_expression(bytes);
    memset(&machine, 0, sizeof machine);
    machine.common = &common;
    machine.pc = pc;
    bool is_good = run(&machine, &common_entry.bytes);
    if (is_good) {
        machine.first = machine.rules;
        machine.place = start;
        is_good =
            run(&machine, bytes) && machine.rules.has_cfa && common.return_column == RETURN_COLUMN;
        *rules = machine.rules;
    }
    machine.common = NULL;
    return is_good;
}
