/* See unwind_table.h. */
#include "trace/unwind_table.h"

#include <string.h>

/* A common entry, which holds for all frame entries that refer to it. */
struct common {
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t return_column;
    uint8_t encoding;
    bool has_augmentation, is_handler;
};

/* ---- Finding the entry ----------------------------------------------------------------------- */

enum { ENTRY_BYTES_MAX = 1 << 20, LEB_BYTES_MAX = 10 };

struct entry {
    struct bytes bytes;
    uintptr_t id_at; /* address of the second word, which says what kind of entry it is */
    uint32_t id;
};

static uint32_t word_at(uintptr_t address)
{
    uint32_t word;
    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

static bool can_use(struct reader *reader, uintptr_t address, size_t size)
{
    return reader->is_sampling || can_read(reader, address, size);
}

static bool find_entry(struct reader *reader, uintptr_t address, struct entry *entry)
{
    if (!can_use(reader, address, 8))
        return false;
    uint32_t length = word_at(address);
    if (length <= 4 || length > ENTRY_BYTES_MAX)
        return false;
    const uint8_t *start = (const uint8_t *)address + 8;
    *entry = (struct entry){{start, start + length - 4, false}, address + 4, word_at(address + 4)};
    return can_use(reader, address + 8, length - 4);
}

/* The header has a table of pairs, sorted by the first: where code begins, and its entry, both
 * relative to the header. Returns the address of the entry; 0: none. */
static uintptr_t search_table(struct reader *reader, uintptr_t pc)
{
    enum { USUAL_TABLE = 0x3b, PAIR = 8, START = 12 };
    uintptr_t header = reader->code.table;
    const uint8_t *start = (const uint8_t *)header;
    if (!header || !can_use(reader, header, START) || start[0] != 1 || start[3] != USUAL_TABLE)
        return 0;
    struct bytes bytes = {start + 4, start + START, false};
    read_encoded(&bytes, start[1]);
    uintptr_t low = 0, high = read_encoded(&bytes, start[2]), table = (uintptr_t)bytes.at;
    if (bytes.is_bad || !high || high > SIZE_MAX / PAIR || !can_use(reader, table, high * PAIR))
        return 0;
    while (low < high) {
        uintptr_t middle = low + (high - low) / 2;
        if (header + (uintptr_t)(intptr_t)(int32_t)word_at(table + middle * PAIR) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    return header + (uintptr_t)(intptr_t)(int32_t)word_at(table + (low - 1) * PAIR + 4);
}

/* Leaves the entry's bytes at its instructions. */
static bool read_common(
    struct reader *reader, uintptr_t address, struct bytes *bytes, struct common *common)
{
    struct entry entry;
    if (!find_entry(reader, address, &entry) || entry.id != 0)
        return false;
    *bytes = entry.bytes;
    uint8_t version = read_byte(bytes);
    const char *letter = (const char *)bytes->at;
    while (read_byte(bytes) && !bytes->is_bad)
        continue;
    common->code_factor = read_leb(bytes, false);
    common->data_factor = (int64_t)read_leb(bytes, true);
    common->return_column = version == 1 ? read_byte(bytes) : read_leb(bytes, false);
    common->encoding = ENCODED_ABSOLUTE;
    if (bytes->is_bad)
        return false;
    common->has_augmentation = *letter == 'z';
    if (!common->has_augmentation)
        return *letter == '\0';
    uint64_t length = read_leb(bytes, false);
    const uint8_t *data = bytes->at;
    for (letter++; *letter && !bytes->is_bad; letter++) {
        if (*letter == 'R')
            common->encoding = read_byte(bytes);
        else if (*letter == 'P')
            read_encoded(bytes, (uint8_t)(read_byte(bytes) & ENCODED_FORMAT));
        else if (*letter == 'L')
            read_byte(bytes);
        else if (*letter == 'S')
            common->is_handler = true;
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
    struct rules kept[2];
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
    machine->rules.cfa_expression = NULL;
    machine->rules.cfa_register = (unsigned)(column % FRAME_REGISTERS);
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

static void skip(struct bytes *bytes)
{
    uint64_t length = read_leb(bytes, false);
    if (length > (uint64_t)(bytes->end - bytes->at))
        bytes->is_bad = true;
    else
        bytes->at += length;
}

struct bytes unwind_table_expression(const uint8_t *at)
{
    struct bytes bytes = {at, at + LEB_BYTES_MAX, false};
    uint64_t length = read_leb(&bytes, false);
    bytes.end = bytes.at + length; /* was skipped as a whole: it lies in the entry */
    return bytes;
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
        rules->has_cfa = true;
        rules->cfa_expression = bytes->at;
        skip(bytes);
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
        set_rule(machine, column, RULE_AT_EXPRESSION, (intptr_t)bytes->at);
        skip(bytes);
        break;
    case VAL_EXPRESSION:
        set_rule(machine, column, RULE_UNDEFINED, 0);
        skip(bytes);
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
    uint8_t code = read_byte(bytes);
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

bool unwind_table_find(struct reader *reader, uintptr_t pc, struct rules *rules)
{
    struct entry entry;
    struct bytes first;
    struct common common = {0};
    uintptr_t at = search_table(reader, pc);
    if (!at || !find_entry(reader, at, &entry) ||
        !read_common(reader, entry.id_at - entry.id, &first, &common))
        return false;
    struct bytes *bytes = &entry.bytes;
    uintptr_t start = read_encoded(bytes, common.encoding);
    uintptr_t length = read_encoded(bytes, common.encoding & ENCODED_FORMAT);
    if (bytes->is_bad || pc < start || pc - start >= length)
        return false;
    if (common.has_augmentation)
        skip(bytes);
    struct machine machine;
    machine.common = &common;
    machine.kept_count = 0;
    machine.place = 0;
    machine.pc = pc;
    memset(&machine.rules, 0, sizeof machine.rules);
    if (!run(&machine, &first))
        return false;
    machine.first = machine.rules;
    machine.place = start;
    bool is_good =
        run(&machine, bytes) && machine.rules.has_cfa && common.return_column == RETURN_COLUMN;
    *rules = machine.rules;
    rules->is_handler = common.is_handler;
    return is_good;
}
