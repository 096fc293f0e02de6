/* A file is read into a buffer that grows by doubling, is cut to its length, and taken to pieces of
 * 20 to 100 bytes; then all is dropped.
 *
 * usage: slurp FILES LOW_KIB HIGH_KIB
 * figures: cpu_ms   processor time
 */
#include "hostile.h"

static char *read_file(size_t size)
{
    size_t capacity = 4096, length = 0;
    char *buffer = allocate(capacity);
    while (length < size) {
        if (length == capacity) {
            capacity *= 2;
            buffer = realloc(buffer, capacity);
            REQUIRE(buffer != NULL);
        }
        size_t piece = capacity - length < 64 * KIB ? capacity - length : 64 * KIB;
        piece = piece < size - length ? piece : size - length;
        memset(buffer + length, 1, piece);
        length += piece;
    }
    buffer = realloc(buffer, length);
    REQUIRE(buffer != NULL);
    return buffer;
}

int main(int argc, char **argv)
{
    size_t files = argument(argc, argv, 1), low = argument(argc, argv, 2);
    size_t high = argument(argc, argv, 3);
    double start = cpu_s();
    for (size_t i = 0; i < files; i++) {
        size_t size = random_between(low, high) * KIB, count = size / 600;
        char *buffer = read_file(size);
        char **lines = allocate(count * sizeof *lines);
        for (size_t k = 0; k < count; k++) {
            size_t line = random_between(20, 100);
            lines[k] = allocate(line);
            memset(lines[k], 1, line);
        }
        for (size_t k = 0; k < count; k++) {
            free(lines[k]);
        }
        free(lines);
        free(buffer);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    conclude();
    return 0;
}
