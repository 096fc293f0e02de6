/* Samples in a program that tells the unwinder of its own code, as compilers at run time do. Up to
 * GCC 12 the unwinder sorts what it was told when it is first asked, and calls malloc for that
 * while it holds a lock: whoever asks it there for a stack waits for itself.
 */
#include "runtime_support.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include <hakmem/hakmem.h>

enum { TABLES = 40, FUNCTIONS = 600, COMMON_BYTES = 16, ENTRY_BYTES = 24 };

extern void __register_frame(void *table);
extern void __deregister_frame(void *table);

struct table {
    unsigned char common[COMMON_BYTES];
    unsigned char entry[FUNCTIONS][ENTRY_BYTES];
    uint32_t end;
};

static void put_word(unsigned char *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

/* What an entry has in common with others: version 1, no augmentation, code aligned to 1 byte and
 * data to 8, the return address in the register 16. */
static void write_table(struct table *table, uintptr_t code)
{
    static const unsigned char common[] = {1, 0, 1, 0x78, 16};
    memset(table, 0, sizeof *table);
    put_word(table->common, COMMON_BYTES - 4);
    memcpy(table->common + 8, common, sizeof common);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        unsigned char *entry = table->entry[i];
        uintptr_t bounds[2] = {code + (uintptr_t)i * 16, 16};
        put_word(entry, ENTRY_BYTES - 4);
        put_word(entry + 4, (uint32_t)(entry + 4 - table->common));
        memcpy(entry + 8, bounds, sizeof bounds);
    }
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count)
{
    (void)context;
    ++*(unsigned *)count;
    return _URC_NO_REASON;
}

int main(void)
{
    static struct table table[TABLES];
    static char code[TABLES][FUNCTIONS * 16];
    long mean_kib;
    watchdog(60, "hangs in the unwinder\n");
    REQUIRE(hakmem_option_get("sample_kib", &mean_kib) == 0 && mean_kib > 0);
    free(malloc(1 << 20)); /* the unwinder has been opened */
    for (unsigned i = 0; i < TABLES; i++) {
        unsigned frames = 0;
        write_table(&table[i], (uintptr_t)code[i]);
        __register_frame(&table[i]);
        REQUIRE(_Unwind_Backtrace(count_frame, &frames) == _URC_END_OF_STACK);
        REQUIRE(frames > 1);
    }
    for (unsigned i = 0; i < TABLES; i++)
        __deregister_frame(&table[i]);
    printf("%d tables have been sorted\n", TABLES);
    return 0;
}
