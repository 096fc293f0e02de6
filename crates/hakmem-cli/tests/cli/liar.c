/* A program without hakmem that has a descriptor of its own making, and lists that have no end. */
#define _GNU_SOURCE
#include <linux/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "report/descriptor.h"

#define ADDRESS(object) A_##object,
#define MEASURED(object) A_##object,
#define CALL(function) A_##function,
#define NUMBER(constant)
#define SIZE(type)
#define FIELD(type, member)
#define TAIL(type, member)
enum {
#include "report/descriptor.def"
    ADDRESSES
};

#define ADDRESS(object)
#define MEASURED(object)
#define CALL(function)
#define NUMBER(constant) N_##constant,
#define SIZE(type) S_##type,
#define FIELD(type, member) F_##type##_##member,
#define TAIL(type, member) F_##type##_##member,
enum {
#include "report/descriptor.def"
    ITEMS
};

static struct {
    char magic[16];
    void *self;
    uint32_t layout;
    uint16_t addresses, items;
    char version[16];
    uint64_t address[ADDRESSES];
    struct {
        uint32_t number, bytes;
    } item[ITEMS];
} d = {.layout = DESCRIPTOR_LAYOUT, .addresses = ADDRESSES, .items = ITEMS, .version = "6.6.6"};

static uint64_t zeros[1 << 16];
static uint64_t classes[256 * 3], registry[64], heap[512], root[1 << 16];

static void number(int item, uint32_t value)
{
    d.item[item].number = value;
}

static void field(int item, uint32_t offset)
{
    d.item[item].number = offset;
    d.item[item].bytes = 8;
}

static void *map(size_t bytes, int rights)
{
    return mmap(NULL, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void harmless(void)
{
    for (int i = 0; i < ITEMS; i++)
        d.item[i].bytes = 8;
    for (int i = 0; i < ADDRESSES; i++)
        d.address[i] = (uint64_t)zeros;
    number(N_REGION_SHIFT, 21), number(N_UNIT_SHIFT, 16), number(N_SUPERSLAB_UNITS, 32);
    number(N_LEAF_BITS, 13), number(N_ROOT_BITS, 13), number(N_REGION_BIG, 2);
    number(N_ENTRY_SUPERSLAB, 1);
    number(N_SIZE_COUNT, 254), number(N_CLASS_COUNT, 255), number(N_SHARD_MAX, 1);
    number(N_TINY_CLASS_LAST, 1), number(N_MID_CLASS_LAST, 2);
    number(N_HEAP_BYTES, 4096), number(N_OS_CALL_COUNT, 6), number(N_SITE_PARTS, 1);
    for (int i = 1; i < 256; i++)
        classes[3 * i] = 16, classes[3 * i + 1] = 4096, classes[3 * i + 2] = 1;
    d.item[S_size_class].bytes = 24;
    field(F_size_class_size, 0), field(F_size_class_blocks, 8), field(F_size_class_units, 16);
    d.address[A_size_classes] = (uint64_t)classes;
    d.address[A_cycles_copies] = 0;
    d.address[A_registry] = (uint64_t)registry;
    d.address[A_page_map_root] = (uint64_t)root;
    field(F_registry_all, 0), field(F_registry_gone, 8);
    registry[0] = (uint64_t)heap;
    d.item[S_heap].bytes = 128;
    field(F_heap_next, 0), field(F_heap_area, 8), field(F_heap_owner, 16);
    field(F_heap_shard, 24), field(F_heap_bare, 32), field(F_heap_next_slot, 40);
    field(F_heap_reallocs_in_place, 48);
    heap[1] = (uint64_t)zeros;
    d.item[S_shard].bytes = 64;
}

/* The number of slots, times eight, is none. */
static void product(void)
{
    heap[5] = UINT64_MAX;
}

/* Each number is the largest. */
static void sums(void)
{
    static uint64_t shards[2];
    shards[0] = shards[1] = (uint64_t)zeros;
    memset(zeros, 0xff, sizeof zeros);
    d.address[A_shard_table] = (uint64_t)shards;
    d.item[S_shard].bytes = 4096;
    d.item[S_heap_counts].bytes = 64;
    heap[6] = UINT64_MAX;
}

/* One leaf stands for each part of a reservation without memory. */
static void leaves(void)
{
    number(N_REGION_SHIFT, 17), number(N_UNIT_SHIFT, 12);
    number(N_LEAF_BITS, 20), number(N_ROOT_BITS, 16);
    map(60ull << 40, PROT_NONE);
    uint64_t *leaf = map(8 << 20, PROT_READ | PROT_WRITE);
    for (int i = 0; i < 1 << 20; i++)
        leaf[i] = (uint64_t)zeros;
    for (int i = 0; i < 1 << 16; i++)
        root[i] = (uint64_t)leaf;
}

/* A list of four million heaps, each of which is long. */
static void heaps(void)
{
    enum { COUNT = 4 << 20, BYTES = 4 << 20 };
    uint64_t *list = map(COUNT * 8ull + BYTES + 4096, PROT_READ | PROT_WRITE);
    for (uint64_t i = 0; i + 1 < COUNT; i++)
        list[i] = (uint64_t)(list + i + 1);
    d.item[S_heap].bytes = BYTES;
    field(F_heap_bare, 0);
    registry[0] = (uint64_t)list;
}

/* All magazines of all classes are the same 16 MiB. */
static void magazines(void)
{
    enum { BYTES = 16 << 20 };
    number(N_HEAP_BYTES, BYTES);
    uint64_t *area = map(BYTES, PROT_READ | PROT_WRITE);
    heap[1] = (uint64_t)area;
    heap[5] = BYTES / 8;
    d.item[F_heap_front_top].bytes = 8 * 255;
    field(F_heap_area_magazine, 4096);
    for (int i = 0; i < 255; i++)
        area[i] = (uint64_t)(area + BYTES / 8 - 1);
}

/* Spans of slow paths have histograms of half a million places. */
static void histograms(void)
{
    d.address[A_cycles_copies] = (uint64_t)zeros;
    number(N_CYCLES_COPIES, 1), number(N_CYCLES_SIDES, 64), number(N_CYCLES_KINDS, 64);
    memset(zeros, 1, sizeof zeros);
    d.item[F_cycles_counts_buckets].bytes = 4 << 20;
    d.item[S_cycles_copy].bytes = 1 << 18;
    d.item[S_cycles_counts].bytes = 64;
}

/* A big block of all the addresses that a program can reserve. */
static void big(void)
{
    enum { GIB = 1 << 30 };
    char *block = map(64ull << 40, PROT_NONE);
    uint64_t unit = ((uint64_t)block >> 21) + 1;
    uint64_t *leaf = map(1 << 16, PROT_READ | PROT_WRITE);
    static uint64_t record[8];
    number(N_ROOT_BITS, 14);
    root[unit >> 13] = (uint64_t)leaf;
    leaf[unit & 8191] = (uint64_t)record;
    d.item[S_big].bytes = 64;
    field(F_region_kind, 0), field(F_region_base, 8);
    field(F_big_mapped, 16), field(F_big_dirty, 24), field(F_big_live, 32);
    record[0] = 2, record[1] = unit << 21, record[2] = 63ull << 40, record[4] = 1;
}

static uint64_t stat_number(int place)
{
    static char text[4096];
    FILE *file = fopen("/proc/self/stat", "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *word = strrchr(text, ')');
    for (int i = 2; i < place; i++)
        word = strchr(word + 1, ' ');
    return strtoull(word, NULL, 10);
}

/* The command line and the variables are 4 TiB of nothing. Some kernels let nobody say so. */
static void words(void)
{
    enum { GIB = 1 << 30 };
    uint64_t text = (uint64_t)map(4096ull * GIB, PROT_READ | PROT_WRITE);
    struct prctl_mm_map parts = {
        .start_code = stat_number(26),
        .end_code = stat_number(27),
        .start_stack = stat_number(28),
        .start_data = stat_number(45),
        .end_data = stat_number(46),
        .start_brk = stat_number(47),
        .brk = (uint64_t)sbrk(0),
        .arg_start = text,
        .arg_end = text + 4096ull * GIB,
        .env_start = text,
        .env_end = text + 4096ull * GIB,
        .exe_fd = (uint32_t)-1,
    };
    prctl(PR_SET_MM, PR_SET_MM_MAP, &parts, sizeof parts, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*lie)(void);
    } lies[] = {{"product", product}, {"sums", sums},           {"leaves", leaves},
                {"heaps", heaps},     {"magazines", magazines}, {"histograms", histograms},
                {"big", big},         {"words", words}};
    harmless();
    for (size_t i = 0; argc > 1 && i < sizeof lies / sizeof *lies; i++) {
        if (strcmp(lies[i].name, argv[1]) == 0)
            lies[i].lie();
    }
    /* The word is in no file, so that nobody finds it there. */
    memcpy(d.magic, "hakmem-layou", 12);
    memcpy(d.magic + 12, "t\r\n", 4);
    d.self = &d;
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
