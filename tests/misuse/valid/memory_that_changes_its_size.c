/* Memory that held small freed blocks is handed out as one large block, and copied into small ones.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
            blocks[i] = need(malloc(size));
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        hakmem_thread_flush();
        char *large = need(malloc(60000));
        for (size_t offset = 0; offset + 1024 <= 60000; offset += 200) {
            void *copy = need(malloc(1024));
            memcpy(copy, large + offset, 1024);
            free(copy);
        }
        free(large);
    }
}
