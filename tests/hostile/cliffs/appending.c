/* Texts that grow by appending, as std::string does: the capacity doubles, the old text is copied.
 *
 * usage: appending KIB_MAX ROUNDS THREADS
 * figures: cpu_ms    processor time
 *          faults    page faults
 */
#include "hostile.h"

static size_t bytes_max, rounds;

static void grow(void)
{
    static const char piece[100] = "abcdefghijklmnopqrstuvwxyz";
    size_t capacity = 15, length = 0;
    char *text = allocate(capacity + 1);
    while (length + sizeof piece <= bytes_max) {
        if (length + sizeof piece > capacity) {
            capacity = 2 * capacity > length + sizeof piece ? 2 * capacity : length + sizeof piece;
            char *longer = allocate(capacity + 1);
            memcpy(longer, text, length);
            free(text);
            text = longer;
        }
        memcpy(text + length, piece, sizeof piece);
        length += sizeof piece;
    }
    free(text);
}

static void *work(void *unused)
{
    for (size_t round = 0; round < rounds; round++) {
        grow();
    }
    return unused;
}

int main(int argc, char **argv)
{
    enum { THREADS_MAX = 64 };
    pthread_t threads[THREADS_MAX];
    bytes_max = argument(argc, argv, 1) * KIB;
    rounds = argument(argc, argv, 2);
    size_t count = argument(argc, argv, 3);
    REQUIRE(count <= THREADS_MAX);
    double faults = page_faults(), start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        start_thread(&threads[i], work, NULL, 256 * KIB);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("faults", page_faults() - faults);
    conclude();
    return 0;
}
