/* Hash tables of 16-byte entries by calloc, which double when they are half full and are then
 * dropped: each is written at random places, so that all of its pages are used.
 *
 * usage: tables ENTRIES ROUNDS
 * figures: cpu_ms    processor time
 *          faults    page faults
 */
#include "hostile.h"

struct entry {
    uint64_t key, value;
};

static void put(struct entry *table, size_t places, uint64_t key)
{
    size_t place = key * 0x9e3779b97f4a7c15u >> 20 & (places - 1);
    while (table[place].key) {
        place = (place + 1) & (places - 1);
    }
    table[place] = (struct entry){key, key};
}

static struct entry *make(size_t places)
{
    struct entry *table = calloc(places, sizeof *table);
    REQUIRE(table != NULL);
    return table;
}

int main(int argc, char **argv)
{
    size_t entries = argument(argc, argv, 1), rounds = argument(argc, argv, 2);
    double faults = page_faults(), start = cpu_s();
    for (size_t round = 0; round < rounds; round++) {
        size_t places = 16;
        struct entry *table = make(places);
        for (size_t count = 0; count < entries; count++) {
            if (2 * count >= places) {
                struct entry *larger = make(2 * places);
                for (size_t i = 0; i < places; i++) {
                    if (table[i].key) {
                        put(larger, 2 * places, table[i].key);
                    }
                }
                free(table);
                table = larger;
                places *= 2;
            }
            put(table, places, random_next() | 1);
        }
        free(table);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("faults", page_faults() - faults);
    conclude();
    return 0;
}
